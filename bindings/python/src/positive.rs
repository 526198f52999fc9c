//! Data of which only one class is ever labelled.

use crate::arrays::slice;
use crate::errors::of_statistics;
use crate::interrupt::interruptible;
use crate::mechanism::json;
use mnar::analysis::{EstimateSettings, Findings};
use mnar::calibrate::Calibration;
use mnar::positive::PositiveBound;
use mnar::{Class, Labels, PosteriorKind, Posteriors, Sample};
use mnar_report::{bound_text, estimate_text};
use ndarray::Array2;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

/// The inverse temperature and the biases of a calibration.
type Calibrated = (f64, Vec<f64>);

/// Bounds from P(labelled | x) of every row and the codes of the labels, all 0 or missing; with the share of the class the findings
/// too. Both as JSON, then the text for people and the calibration of P(labelled | x).
#[pyfunction]
#[pyo3(signature = (scores, codes, name, share))]
pub(crate) fn positive(
    py: Python<'_>,
    scores: PyReadonlyArray1<'_, f64>,
    codes: PyReadonlyArray1<'_, i64>,
    name: String,
    share: Option<f64>,
) -> PyResult<(String, Option<String>, String, Calibrated)> {
    let (scores, codes) = (slice(py, "the scores", &scores)?, slice(py, "the labels", &codes)?);
    let found = interruptible(py, true, move |_| -> Result<_, mnar::Error> {
        let labels = codes.iter().map(|&code| (code >= 0).then_some(Class(0))).collect();
        let labels = Labels::allow_degenerate(labels, vec![name])?;
        let bound = PositiveBound::new(scores, &labels)?;
        let calibration = calibrated(scores, &labels)?;
        let Some(share) = share else { return Ok((bound_text(&bound, &[]), bound, None, calibration)) };
        let known = bound.with_share(share)?;
        let findings = Findings::positive_unlabelled(&labels, bound.clone(), &known, Vec::new(), 0)?;
        Ok((estimate_text(&findings, &EstimateSettings::default(), |_| None), bound, Some(findings), calibration))
    })?;
    let (text, bound, findings, calibration) = found.map_err(|error| of_statistics(py, &error))?;
    let findings = findings.map(|findings| json(py, &findings)).transpose()?;
    Ok((json(py, &bound)?, findings, text, calibration))
}

fn calibrated(scores: &[f64], labels: &Labels) -> Result<Calibrated, mnar::Error> {
    let p = Array2::from_shape_fn((scores.len(), 2), |(i, k)| if k == 0 { scores[i] } else { 1.0 - scores[i] });
    let p = Posteriors::new(p, PosteriorKind::Labelled)?;
    let whether = labels.as_slice().iter().map(|label| Some(Class(u32::from(label.is_none())))).collect();
    let whether = Labels::allow_degenerate(whether, ["labelled", "unlabelled"].map(String::from).to_vec())?;
    let found = Calibration::default().fit(&Sample::new(&p, &whether)?)?;
    Ok((found.inverse_temperature, found.biases))
}
