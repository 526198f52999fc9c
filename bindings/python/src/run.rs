//! The whole pipeline and the command line.

use crate::errors::{Kind, exception, of_run};
use crate::interrupt::interruptible;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs `mnar fit` with these words: the run's folder, its report as JSON and as a page.
#[pyfunction]
#[pyo3(signature = (words, title=None))]
pub(crate) fn fit(py: Python<'_>, words: Vec<String>, title: Option<String>) -> PyResult<(PathBuf, String, String)> {
    let fitted = interruptible(py, move |stop| -> anyhow::Result<_> {
        let Some(fitted) = mnar_cli::fit(&words, title, &stop.0)? else { return Ok(None) };
        let (json, html) = (fitted.report.to_json()?, fitted.report.to_html()?);
        Ok(Some((fitted.folder, json, html)))
    })?;
    match fitted {
        Ok(Some(fitted)) => Ok(fitted),
        Ok(None) => Err(exception(py, Kind::Run, "the run was stopped before it was done".to_owned())),
        Err(error) => Err(of_run(py, &error)),
    }
}

/// Runs `mnar predict` with these words.
#[pyfunction]
pub(crate) fn predict(py: Python<'_>, words: Vec<String>) -> PyResult<()> {
    interruptible(py, move |_| mnar_cli::predict(&words))?.map_err(|error| of_run(py, &error))
}

/// The command `mnar`: runs it with these words, the program's name first, and returns its exit code.
#[pyfunction]
pub(crate) fn command_line(py: Python<'_>, words: Vec<OsString>) -> u8 {
    let code = py.detach(|| mnar_cli::main(words));
    // An exit code shows its number to the system alone.
    (0..=u8::MAX).find(|&number| code == ExitCode::from(number)).unwrap_or(2)
}
