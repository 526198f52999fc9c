//! The estimate's uncertainty for other analyses: replicate weights and imputed labels.

use crate::arrays::word;
use crate::errors::of_statistics;
use crate::interrupt::interruptible;
use crate::mechanism::{Table, settings};
use mnar::PosteriorKind;
use mnar::analysis::EstimateSettings;
use numpy::PyArray2;
use pyo3::prelude::*;

/// One line per row with its weight in every replicate, which is 0 without a label, and how many replicates failed.
#[pyfunction]
#[pyo3(signature = (table, posterior, options, given, count))]
pub(crate) fn replicate_weights<'py>(
    py: Python<'py>,
    table: Table<'_>,
    posterior: &str,
    options: &str,
    given: Vec<String>,
    count: usize,
) -> PyResult<(Bound<'py, PyArray2<f64>>, usize)> {
    let (settings, kind): (EstimateSettings, PosteriorKind) =
        (settings(py, options)?, word(py, "posterior", posterior)?);
    let rows = table.rows(py)?;
    let drawn = interruptible(py, true, move |progress| {
        let checked = rows.checked(kind)?;
        let drawn = settings.replicate_weights(&checked.evidence()?, &given, count, progress)?;
        let mut weights = ndarray::Array2::zeros((checked.n_rows(), drawn.weights.len()));
        for (replicate, of) in drawn.weights.iter().enumerate() {
            drawn.rows.iter().zip(of).for_each(|(&row, weight)| weights[[row, replicate]] = *weight);
        }
        Ok((weights, drawn.failed))
    })?;
    let (weights, failed) = drawn.map_err(|error| of_statistics(py, &error))?;
    Ok((PyArray2::from_owned_array(py, weights), failed))
}

/// One line per row with the number of its class in every draw, and how many draws failed.
#[pyfunction]
#[pyo3(signature = (table, posterior, options, given, count))]
pub(crate) fn imputations<'py>(
    py: Python<'py>,
    table: Table<'_>,
    posterior: &str,
    options: &str,
    given: Vec<String>,
    count: usize,
) -> PyResult<(Bound<'py, PyArray2<i64>>, usize)> {
    let (settings, kind): (EstimateSettings, PosteriorKind) =
        (settings(py, options)?, word(py, "posterior", posterior)?);
    let rows = table.rows(py)?;
    let drawn = interruptible(py, true, move |progress| {
        let checked = rows.checked(kind)?;
        let drawn = settings.imputations(&checked.evidence()?, &given, count, progress)?;
        let mut classes = ndarray::Array2::zeros((checked.n_rows(), drawn.draws.len()));
        for (row, class) in checked.labelled() {
            classes.row_mut(row).fill(class.index() as i64);
        }
        for (draw, of) in drawn.draws.iter().enumerate() {
            drawn.rows.iter().zip(of).for_each(|(&row, class)| classes[[row, draw]] = class.index() as i64);
        }
        Ok((classes, drawn.failed))
    })?;
    let (classes, failed) = drawn.map_err(|error| of_statistics(py, &error))?;
    Ok((PyArray2::from_owned_array(py, classes), failed))
}
