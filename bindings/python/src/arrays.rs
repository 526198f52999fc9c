//! numpy arrays as the nouns of the core.

use crate::errors::{Kind, exception};
use mnar::crossfit::FoldPlan;
use mnar::{Class, Labels, PosteriorKind, Posteriors};
use ndarray::ArrayView2;
use numpy::{Element, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

/// Probabilities of either precision, read where they are.
#[derive(FromPyObject)]
pub(crate) enum Probabilities<'py> {
    Double(PyReadonlyArray2<'py, f64>),
    Single(PyReadonlyArray2<'py, f32>),
}

/// The same as a view that another thread may read.
pub(crate) enum View<'a> {
    Double(ArrayView2<'a, f64>),
    Single(ArrayView2<'a, f32>),
}

impl Probabilities<'_> {
    pub(crate) fn view(&self) -> View<'_> {
        match self {
            Self::Double(array) => View::Double(array.as_array()),
            Self::Single(array) => View::Single(array.as_array()),
        }
    }
}

impl View<'_> {
    /// The one copy: classes one after the other, as the sums walk over them.
    pub(crate) fn posteriors(&self, kind: PosteriorKind) -> Result<Posteriors, mnar::Error> {
        match self {
            Self::Double(view) => Posteriors::copied(*view, kind),
            Self::Single(view) => Posteriors::copied(*view, kind),
        }
    }
}

/// Codes of classes, negative for a missing label.
pub(crate) fn labels(codes: &[i64], names: Vec<String>) -> Result<Labels, mnar::Error> {
    let class = |&code: &i64| u32::try_from(code).ok().map(Class);
    Labels::new(codes.iter().map(class).collect(), names)
}

/// The same, even if no label is missing.
pub(crate) fn labels_even_complete(codes: &[i64], names: Vec<String>) -> Result<Labels, mnar::Error> {
    match codes.iter().all(|code| *code >= 0) && names.len() > 1 {
        true => {
            Labels::allow_degenerate(codes.iter().map(|&code| u32::try_from(code).ok().map(Class)).collect(), names)
        }
        false => labels(codes, names),
    }
}

/// Folds as given, or none.
pub(crate) fn plan(folds: Option<&[i64]>, n: usize) -> FoldPlan {
    match folds {
        None => FoldPlan::single(n),
        Some(folds) => FoldPlan::given(folds.iter().map(|&fold| fold as u32).collect()),
    }
}

/// A one-dimensional array as a slice.
pub(crate) fn slice<'a, T: Element>(
    py: Python<'_>,
    what: &str,
    array: &'a PyReadonlyArray1<'_, T>,
) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| exception(py, Kind::Input, format!("{what} must lie in one piece in memory")))
}

/// A word among those a setting may be.
pub(crate) fn word<T: serde::de::DeserializeOwned>(py: Python<'_>, setting: &str, word: &str) -> PyResult<T> {
    serde_json::from_value(serde_json::Value::from(word))
        .map_err(|error| exception(py, Kind::Settings, format!("{setting}: {error}")))
}
