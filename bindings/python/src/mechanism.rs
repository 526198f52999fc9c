//! The estimate, the test, and what follows from them.

use crate::arrays::{Probabilities, View, labels, labels_even_complete, plan, slice, word};
use crate::errors::{Kind, exception, of_run, of_statistics};
use crate::interrupt::interruptible;
use mnar::analysis::{Audit, EstimateSettings, Evidence, TestSettings};
use mnar::calibrate::Bcts;
use mnar::covariates::{Covariate, Design};
use mnar::crossfit::FoldPlan;
use mnar::risk::RiskWeights;
use mnar::{Class, Covariates, Labels, Phi, PosteriorKind, Posteriors};
use mnar_data::AtomicFile;
use mnar_report::{estimate_text, test_text};
use mnar_run::{Origin, RunError, estimate_report};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::time::Instant;

/// Settings from JSON.
pub(crate) fn settings<T: DeserializeOwned>(py: Python<'_>, text: &str) -> PyResult<T> {
    serde_json::from_str(text)
        .map_err(|error| exception(py, Kind::Settings, format!("the settings cannot be read: {error}")))
}

/// Probabilities, codes of classes, names of classes, folds if any, columns that labelling may depend on, and whether each row
/// was audited if some were: a tuple in Python.
#[derive(FromPyObject)]
pub(crate) struct Table<'py>(
    Probabilities<'py>,
    PyReadonlyArray1<'py, i64>,
    Vec<String>,
    Option<PyReadonlyArray1<'py, i64>>,
    Vec<(String, Values)>,
    Option<Vec<bool>>,
);

/// A column as Python hands it over.
#[derive(FromPyObject)]
enum Values {
    Numbers(Vec<f64>),
    Texts(Vec<Option<String>>),
}

impl Values {
    fn covariate(&self, name: &str) -> Covariate {
        match self {
            Self::Numbers(values) => Covariate::numeric(name, values.clone()),
            Self::Texts(values) => Covariate::categorical(name, values.iter().map(Option::as_deref)),
        }
    }
}

impl Table<'_> {
    pub(crate) fn rows(&self, py: Python<'_>) -> PyResult<Rows<'_>> {
        let folds = self.3.as_ref().map(|folds| slice(py, "the folds", folds)).transpose()?;
        Ok(Rows {
            proba: self.0.view(),
            codes: slice(py, "the labels", &self.1)?,
            names: self.2.clone(),
            folds,
            columns: self.4.iter().map(|(name, values)| values.covariate(name)).collect(),
            audited: self.5.clone(),
        })
    }
}

/// The same as views that another thread may read.
pub(crate) struct Rows<'a> {
    proba: View<'a>,
    codes: &'a [i64],
    names: Vec<String>,
    folds: Option<&'a [i64]>,
    columns: Vec<Covariate>,
    audited: Option<Vec<bool>>,
}

/// The same, checked.
pub(crate) struct Checked {
    posteriors: Posteriors,
    labels: Labels,
    plan: FoldPlan,
    covariates: Covariates,
    audit: Option<Audit>,
}

impl Rows<'_> {
    pub(crate) fn checked(self, kind: PosteriorKind) -> Result<Checked, mnar::Error> {
        self.with_labels(kind, labels)
    }

    /// The same, even if no label is missing.
    pub(crate) fn even_complete(self, kind: PosteriorKind) -> Result<Checked, mnar::Error> {
        self.with_labels(kind, labels_even_complete)
    }

    fn with_labels(
        self,
        kind: PosteriorKind,
        read: fn(&[i64], Vec<String>) -> Result<Labels, mnar::Error>,
    ) -> Result<Checked, mnar::Error> {
        let labels = read(self.codes, self.names)?;
        let plan = plan(self.folds, labels.len());
        let (labels, audit) = match self.audited {
            None => (labels, None),
            Some(audited) => {
                let (labels, audit) = Audit::split(&labels, &audited)?;
                (labels, Some(audit))
            }
        };
        let covariates = Covariates::new(self.columns)?;
        Ok(Checked { posteriors: self.proba.posteriors(kind)?, labels, plan, covariates, audit })
    }
}

impl Checked {
    pub(crate) fn n_rows(&self) -> usize {
        self.labels.len()
    }

    /// The labelled rows and their classes.
    pub(crate) fn labelled(&self) -> impl Iterator<Item = (usize, Class)> {
        self.labels.labelled()
    }

    pub(crate) fn evidence(&self) -> Result<Evidence<'_>, mnar::Error> {
        let evidence = Evidence::predictions(&self.posteriors, &self.labels).with_folds(&self.plan);
        let evidence = evidence.with_covariates(&self.covariates)?;
        Ok(evidence.with_audit(&self.audit))
    }
}

/// What [`estimate`] returns: JSON, text, seconds, and where labelling depends on columns, phi of every row and what the calibration
/// within columns multiplies its probabilities by.
type Estimated<'py> = (String, String, f64, Option<Bound<'py, PyArray2<f64>>>, Option<Bound<'py, PyArray2<f64>>>);

/// Estimates phi: what `mnar estimate --format json` prints, the text for people, the seconds it took, and the probability that
/// a row of each class is labelled for every row, where it depends on columns.
#[pyfunction]
#[pyo3(signature = (table, posterior, options))]
pub(crate) fn estimate<'py>(
    py: Python<'py>,
    table: Table<'_>,
    posterior: &str,
    options: &str,
) -> PyResult<Estimated<'py>> {
    let (settings, kind): (EstimateSettings, PosteriorKind) =
        (settings(py, options)?, word(py, "posterior", posterior)?);
    let rows = table.rows(py)?;
    let found = interruptible(py, true, move |progress| {
        let start = Instant::now();
        let checked = rows.checked(kind)?;
        let found = settings.run(&checked.evidence()?, progress)?;
        let seconds = start.elapsed().as_secs_f64();
        let text = estimate_text(&found, &settings, |_| None);
        let factors = match (&found.column_calibration, &found.labelling) {
            (Some(calibration), Some(labelling)) => {
                let (columns, products) =
                    (checked.covariates.select(&labelling.given)?, checked.covariates.products(&labelling.given)?);
                let design = Design::with_products(&columns, products)?;
                let terms = design.columns();
                let factor = |(row, class): (usize, usize)| {
                    calibration.log_factor(class, terms.iter().map(|term| term[row])).exp()
                };
                Some(ndarray::Array2::from_shape_fn((checked.labels.len(), checked.labels.n_classes()), factor))
            }
            _ => None,
        };
        Ok((found, text, seconds, factors))
    })?;
    let (found, text, seconds, factors) = found.map_err(|error| of_statistics(py, &error))?;
    let row_phi = found.row_phi.as_ref().map(|rows| {
        let rows: Vec<Vec<f64>> = rows.iter().map(|phi| phi.as_slice().to_vec()).collect();
        PyArray2::from_vec2(py, &rows)
    });
    let factors = factors.map(|factors| PyArray2::from_owned_array(py, factors));
    Ok((json(py, &found)?, text, seconds, row_phi.transpose()?, factors))
}

/// Writes the report of an estimate, and returns it.
#[pyfunction]
#[pyo3(signature = (table, posterior, options, title, path))]
pub(crate) fn page(
    py: Python<'_>,
    table: Table<'_>,
    posterior: &str,
    options: &str,
    title: String,
    path: Option<PathBuf>,
) -> PyResult<String> {
    let (settings, kind): (EstimateSettings, PosteriorKind) =
        (settings(py, options)?, word(py, "posterior", posterior)?);
    let rows = table.rows(py)?;
    let html = interruptible(py, true, move |progress| -> Result<String, RunError> {
        let start = Instant::now();
        let checked = rows.checked(kind)?;
        let origin = Origin { title, ..Default::default() };
        let (_, report) = estimate_report(&settings, &checked.evidence()?, &origin, start, progress)?;
        let html = report.to_html()?;
        if let Some(path) = path {
            AtomicFile::write_text(&path, &html)?;
        }
        Ok(html)
    })?;
    html.map_err(|error| of_run(py, &error))
}

/// Tests whether labels are informative: what `mnar test --format json` prints, and the text for people.
#[pyfunction]
#[pyo3(signature = (table, posterior, options))]
pub(crate) fn test(py: Python<'_>, table: Table<'_>, posterior: &str, options: &str) -> PyResult<(String, String)> {
    let (settings, kind): (TestSettings, PosteriorKind) = (settings(py, options)?, word(py, "posterior", posterior)?);
    let rows = table.rows(py)?;
    let found = interruptible(py, true, move |progress| {
        let checked = rows.checked(kind)?;
        let found = settings.run(&checked.evidence()?, progress)?;
        let text = test_text(&found, &settings, false, |_| None);
        Ok((found, text))
    })?;
    let (found, text) = found.map_err(|error| of_statistics(py, &error))?;
    Ok((json(py, &found)?, text))
}

/// Class probabilities calibrated as an estimate was, for the whole population or for rows without a label.
#[pyfunction]
#[pyo3(signature = (proba, posterior, phi, inverse_temperature, biases, unlabelled))]
pub(crate) fn reweigh<'py>(
    py: Python<'py>,
    proba: Probabilities<'_>,
    posterior: &str,
    phi: Vec<f64>,
    inverse_temperature: Option<f64>,
    biases: Vec<f64>,
    unlabelled: bool,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let kind: PosteriorKind = word(py, "posterior", posterior)?;
    let phi = Phi::new(phi).map_err(|error| of_statistics(py, &error))?;
    let view = proba.view();
    let reweighed = interruptible(py, true, move |_| -> Result<ndarray::Array2<f64>, mnar::Error> {
        let raw = view.posteriors(kind)?;
        let posteriors = match inverse_temperature {
            None => raw,
            Some(inverse_temperature) => Bcts::known(inverse_temperature, biases).apply(&raw)?,
        };
        let mut out = ndarray::Array2::zeros((posteriors.len(), posteriors.n_classes()));
        for (i, mut row) in out.rows_mut().into_iter().enumerate() {
            let of_row = if unlabelled {
                // Such a row is never left unlabelled, so nothing can be said about it if it were.
                posteriors.given_unlabelled(i, &phi).unwrap_or_else(|| vec![f64::NAN; phi.len()])
            } else {
                posteriors.of_population(i, &phi)
            };
            row.iter_mut().zip(of_row).for_each(|(out, value)| *out = value);
        }
        Ok(out)
    })?;
    let reweighed = reweighed.map_err(|error| of_statistics(py, &error))?;
    Ok(PyArray2::from_owned_array(py, reweighed))
}

/// The weights of every row's losses in the debiased SSL risk: of the loss with its label, and of the loss
/// without.
#[pyfunction]
#[pyo3(signature = (codes, phi))]
#[expect(clippy::type_complexity, reason = "two arrays")]
pub(crate) fn risk_weights<'py>(
    py: Python<'py>,
    codes: PyReadonlyArray1<'_, i64>,
    phi: Vec<f64>,
) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>)> {
    let classes = phi.len();
    let weights = RiskWeights::new(&Phi::new(phi).map_err(|error| of_statistics(py, &error))?);
    let codes = slice(py, "the labels", &codes)?;
    if let Some(i) = codes.iter().position(|code| *code >= classes as i64) {
        let message = format!("row {}: class number {} but phi has {classes} classes", i + 1, codes[i]);
        return Err(exception(py, Kind::Input, message));
    }
    let class = |code: i64| u32::try_from(code).ok().map(Class);
    let ell: Vec<f64> = codes.iter().map(|&code| weights.ell(class(code))).collect();
    let h: Vec<f64> = codes.iter().map(|&code| weights.h(class(code))).collect();
    Ok((PyArray1::from_vec(py, ell), PyArray1::from_vec(py, h)))
}

pub(crate) fn json(py: Python<'_>, value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| exception(py, Kind::Run, error.to_string()))
}
