//! Whole runs, and the command line.

use crate::errors::{Kind, exception, keyword, of_run};
use crate::interrupt::interruptible;
use crate::tables::{Data, TABLE};
use mnar::conformal::SetKind;
use mnar_data::{Column, Memory, Note, SourceKind, Split, check_output};
use mnar_run::{FitOptions, FitRequest, PerClass, PredictOptions, Predictions, RunError, SetOptions};
use numpy::PyArray1;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs all of `mnar fit`: the report as JSON and as a page.
#[pyfunction]
#[pyo3(signature = (data, options, folder, resume, quiet, memory))]
pub(crate) fn fit(
    py: Python<'_>,
    data: Data<'_>,
    options: &str,
    folder: PathBuf,
    resume: bool,
    quiet: bool,
    memory: Option<String>,
) -> PyResult<(String, String)> {
    let (options, memory) = (parse_options(py, options)?, parse_memory(py, memory)?);
    let data = data.owned(py)?;
    let fitted = interruptible(py, quiet, move |progress| -> Result<_, RunError> {
        let mut request = FitRequest::new(data.source().with_memory(memory), folder);
        if request.origin.title == TABLE {
            request.origin.title = "a table in memory".to_owned();
        }
        (request.options, request.resume) = (options, resume);
        let report = mnar_run::fit(&request, progress)?;
        Ok((report.to_json()?, report.to_html()?))
    })?;
    fitted.map_err(|error| of_run(py, &error))
}

/// How much memory there is: as much as the machine has unless it is said, such as "2GB".
fn parse_memory(py: Python<'_>, memory: Option<String>) -> PyResult<Memory> {
    let Some(text) = memory else { return Ok(Memory::default()) };
    text.parse().map_err(|why: String| exception(py, Kind::Settings, format!("memory={text:?}: {why}")))
}

/// The names of the options of [`fit`], as keywords.
#[pyfunction]
pub(crate) fn fit_options() -> Vec<String> {
    FitOptions::names().iter().map(|name| keyword(name)).collect()
}

/// Options from JSON, one by one, so that an error can name the option.
fn parse_options(py: Python<'_>, text: &str) -> PyResult<FitOptions> {
    let wrong = |message: String| exception(py, Kind::Settings, message);
    let given: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    for (name, value) in &given {
        let alone = serde_json::Map::from_iter([(name.clone(), value.clone())]);
        if let Err(error) = serde_json::from_value::<FitOptions>(alone.into()) {
            return Err(wrong(format!("{}={value}: {error}", keyword(name))));
        }
    }
    serde_json::from_value(given.into()).map_err(|error| wrong(error.to_string()))
}

/// Columns and their names.
type NamedValues<'py> = Vec<(String, Values<'py>)>;

/// A column of predictions.
#[derive(IntoPyObject)]
pub(crate) enum Values<'py> {
    Numbers(Bound<'py, PyArray1<f64>>),
    Texts(Vec<Option<String>>),
}

/// Predicts with the model of a run: writes a file, or returns the columns.
#[pyfunction]
#[pyo3(signature = (folder, data, output, id, split, baseline, sets, shares, memory))]
#[expect(clippy::too_many_arguments, reason = "the arguments of the Python method")]
pub(crate) fn predict<'py>(
    py: Python<'py>,
    folder: PathBuf,
    data: Data<'_>,
    output: Option<PathBuf>,
    id: Option<String>,
    split: &str,
    baseline: bool,
    sets: Option<(f64, String)>,
    shares: Option<BTreeMap<String, f64>>,
    memory: Option<String>,
) -> PyResult<(Option<NamedValues<'py>>, Vec<String>)> {
    let split = match split {
        "train" => Split::Train,
        "validation" => Split::Validation,
        "test" => Split::Test,
        "all" => Split::All,
        other => {
            let message = format!("split={other:?}, but it must be \"train\", \"validation\", \"test\" or \"all\"");
            return Err(exception(py, Kind::Settings, message));
        }
    };
    let (data, memory) = (data.owned(py)?, parse_memory(py, memory)?);
    let sets = match sets {
        None => None,
        Some((level, kind)) if kind == "per-class" => Some(SetOptions { level, kind: SetKind::PerClass }),
        Some((level, kind)) if kind == "marginal" => Some(SetOptions { level, kind: SetKind::Marginal }),
        Some((_, kind)) => {
            let message = format!("set_kind={kind:?}, but it must be \"per-class\" or \"marginal\"");
            return Err(exception(py, Kind::Settings, message));
        }
    };
    let options = PredictOptions { id, split, baseline, sets, shares: shares.map(PerClass::Named) };
    let written = output.is_some();
    let predicted = interruptible(py, true, move |_| -> Result<Predictions, RunError> {
        if let (Some(path), SourceKind::Path(from)) = (&output, data.source().kind) {
            check_output(path, &[from])?;
        }
        let predictions = mnar_run::predict(&folder, data.source().with_memory(memory), &options)?;
        if let Some(path) = output {
            predictions.write(&path)?;
        }
        Ok(predictions)
    })?;
    let predictions = predicted.map_err(|error| of_run(py, &error))?;
    let odd = predictions.notes().iter().filter(|note| matches!(note, Note::NotLearnt { .. } | Note::NewGaps { .. }));
    let said = odd.map(ToString::to_string).chain(predictions.warnings().iter().cloned()).collect();
    let columns = (!written).then(|| {
        let columns = predictions.columns().into_iter();
        let values = |column| match column {
            Column::Numbers(numbers) => Values::Numbers(PyArray1::from_slice(py, numbers)),
            Column::Texts(texts) => Values::Texts(texts.into_iter().map(|text| text.map(str::to_owned)).collect()),
            Column::Integers(numbers) => {
                Values::Numbers(PyArray1::from_iter(py, numbers.iter().map(|&number| number as f64)))
            }
        };
        columns.map(|(name, column)| (name, values(column))).collect()
    });
    Ok((columns, said))
}

/// The command `mnar`: runs it with these words, the name of the program first, and returns its exit code.
#[pyfunction]
pub(crate) fn command_line(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| mnar_cli::main(words))
}
