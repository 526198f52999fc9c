//! Layout 1 of `report.json`, upgraded when it is read.
//!
//! In layout 1, `interval` was the name of its kind, `calibration` held only the errors, the fields of `classifier` and
//! `training` were at the top level, and the decision of the test, at the 5% level, was left to the reader. Fields that
//! layout 1 did not have are derived if the others determine them, and are otherwise empty.

use crate::report::{Report, SCHEMA};
use mnar::analysis::CONFIDENCE;
use mnar::calibrate::Bcts;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The level of every test in layout 1.
const LEVEL: f64 = 0.05;

/// Reads a report of layout 1.
pub(crate) fn read(value: Value) -> Result<Report, serde_json::Error> {
    let mut fields: Map<String, Value> = serde_json::from_value(value)?;
    let old = Old::deserialize(Value::Object(fields.clone()))?;
    for moved in ["calibration", "confusion", "out_of_fold_accuracy", "training_phi", "debiased", "baseline"] {
        fields.remove(moved);
    }
    fields.extend([
        ("schema".to_owned(), json!(SCHEMA)),
        ("interval".to_owned(), old.interval()),
        ("unlabelled_shares".to_owned(), json!(old.unlabelled_shares())),
        ("posterior".to_owned(), json!("labelled")),
        ("clipped".to_owned(), json!(old.clipped())),
        ("prior_weight".to_owned(), json!(0.0)),
        ("renormalised".to_owned(), json!({ "rows": 0, "largest_drift": 0.0 })),
        ("classifier".to_owned(), old.classifier()),
        ("training".to_owned(), old.training()),
    ]);
    // The numbers of steps and passes were not recorded.
    let stop = match (old.method.as_str(), old.converged) {
        ("none", _) => json!({ "stop": "closed_form" }),
        (_, true) => json!({ "stop": "converged", "iterations": 0, "passes": 0 }),
        (_, false) => json!({ "stop": "no_progress", "iterations": 0, "passes": 0 }),
    };
    if let Value::Object(stop) = stop {
        fields.extend(stop);
    }
    if let Some(p) = old.p_value {
        fields.extend([("level".to_owned(), json!(LEVEL)), ("reject".to_owned(), json!(p <= LEVEL))]);
    }
    if !fields.get("settings").is_some_and(Value::is_object) {
        fields.insert("settings".to_owned(), json!({}));
    }
    let mut report = crate::json::read(Value::Object(fields))?;
    report.findings.calibration = old.calibration.map(Calibration::into_bcts);
    Ok(report)
}

/// The parts of layout 1 that have changed, or that say something about parts that it lacks.
#[derive(Deserialize)]
struct Old {
    classes: Vec<String>,
    n: usize,
    n_labelled: usize,
    labelled_per_class: Vec<usize>,
    phi: Vec<f64>,
    prevalence: Vec<f64>,
    interval: String,
    method: String,
    converged: bool,
    #[serde(default)]
    p_value: Option<f64>,
    #[serde(default)]
    calibration: Option<Calibration>,
    #[serde(default)]
    confusion: Option<Vec<Vec<usize>>>,
    #[serde(default)]
    out_of_fold_accuracy: Option<f64>,
    training_phi: Value,
    #[serde(default)]
    debiased: Option<Value>,
    #[serde(default)]
    baseline: Option<Value>,
    #[serde(default)]
    settings: Value,
}

impl Old {
    fn interval(&self) -> Value {
        let bootstrap = self.interval.starts_with("bootstrap");
        let replicates = if bootstrap { self.settings["replicates"].as_u64().unwrap_or(0) } else { 0 };
        json!({
            "kind": self.interval,
            "level": CONFIDENCE,
            "replicates": replicates,
            "failed_replicates": 0,
            "conditional_on_classifier": !["bootstrap-with-refit", "none"].contains(&self.interval.as_str()),
        })
    }

    /// The rows of a class less its labels, as a share of the unlabelled rows.
    fn unlabelled_shares(&self) -> Vec<f64> {
        if self.n_labelled >= self.n {
            return self.prevalence.clone();
        }
        let (n, unlabelled) = (self.n as f64, (self.n - self.n_labelled) as f64);
        let shares = self.prevalence.iter().zip(&self.labelled_per_class);
        shares.map(|(share, &labels)| ((share * n - labels as f64) / unlabelled).max(0.0)).collect()
    }

    fn clipped(&self) -> Vec<&str> {
        if self.n_labelled >= self.n {
            return Vec::new();
        }
        let at_bound = self.classes.iter().zip(&self.phi).filter(|(_, phi)| **phi == 1.0);
        at_bound.map(|(class, _)| class.as_str()).collect()
    }

    fn classifier(&self) -> Value {
        let Some(confusion) = &self.confusion else { return Value::Null };
        let rows: usize = confusion.iter().flatten().sum();
        let right: usize = confusion.iter().enumerate().filter_map(|(k, row)| row.get(k)).sum();
        let accuracy = self.out_of_fold_accuracy.unwrap_or(right as f64 / rows.max(1) as f64);
        let (before, after) = match &self.calibration {
            Some(calibration) => (calibration.before.clone(), calibration.after.clone()),
            None => (json!([]), json!([])),
        };
        json!({
            "out_of_fold_accuracy": accuracy,
            "reliability_before": before,
            "reliability_after": after,
            "confusion": confusion,
        })
    }

    fn training(&self) -> Value {
        match &self.debiased {
            Some(debiased) => json!({ "phi": self.training_phi, "debiased": debiased, "baseline": self.baseline }),
            None => Value::Null,
        }
    }
}

/// How sure the classifier was and how often it was right, before and after calibration.
#[derive(Deserialize)]
struct Calibration {
    error_before: f64,
    error_after: f64,
    before: Value,
    after: Value,
}

impl Calibration {
    /// The temperature, the biases and the log-losses were not recorded.
    fn into_bcts(self) -> Bcts {
        Bcts {
            inverse_temperature: f64::NAN,
            biases: Vec::new(),
            bias_precision: f64::NAN,
            ece_before: self.error_before,
            ece_after: self.error_after,
            log_loss_before: f64::NAN,
            log_loss_after: f64::NAN,
            converged: true,
        }
    }
}
