//! Checks of the numbers in a report that was read from a file.

use crate::error::ReportError;
use crate::report::Report;
use serde_json::Value;

/// No number of a report is larger, but for seeds and counts: log-likelihoods of 10^9 rows are about 10^10.
const LARGEST: f64 = 1e15;

/// Refuses numbers that no run could have found; drawing them would fail, or would take for ever.
pub(crate) fn check_sizes(value: &Value) -> Result<(), ReportError> {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(value) if number.is_f64() && value.abs() > LARGEST => {
                Err(ReportError::OutOfRange { field: "a number", value })
            }
            _ => Ok(()),
        },
        Value::Array(items) => items.iter().try_for_each(check_sizes),
        Value::Object(fields) => fields.values().try_for_each(check_sizes),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

impl Report {
    /// Refuses probabilities outside 0 to 1, shares that are none, and temperatures that are not positive.
    pub(crate) fn check_ranges(&self) -> Result<(), ReportError> {
        let found = &self.findings;
        let mut probabilities: Vec<(&'static str, f64)> = Vec::new();
        let mut add =
            |field, values: &mut dyn Iterator<Item = f64>| probabilities.extend(values.map(|value| (field, value)));
        add("prevalence", &mut found.prevalence.iter().copied());
        add("unlabelled_shares", &mut found.unlabelled_shares.iter().copied());
        let ends = |ends: &(f64, f64)| [ends.0, ends.1];
        add("phi_ci95", &mut found.phi_ci95.iter().flatten().flat_map(ends));
        add("prevalence_ci95", &mut found.prevalence_ci95.iter().flatten().flat_map(ends));
        add("p_value", &mut self.test.iter().map(|test| test.result.p_value));
        add("uncertain", &mut self.uncertain.iter().flat_map(|row| &row.classes).map(|guess| guess.probability));
        add("beside", &mut self.training.iter().flat_map(|training| &training.beside).map(|part| part.weight));
        add("evaluation.metrics", &mut self.evaluation.iter().flat_map(|evaluation| evaluation.shares()));
        for (_, _, model) in self.models() {
            add("held_out.accuracy", &mut model.held_out.iter().map(|held_out| held_out.accuracy));
            add("held_out_accuracy_per_class", &mut model.held_out_accuracy_per_class.iter().copied().flatten());
        }
        add("truth.prevalence", &mut self.truth.iter().flat_map(|truth| truth.prevalence.iter().copied()));
        // What was not computed is NaN; rounding may pass the bounds.
        let wrong = |value: f64| !value.is_nan() && !(-1e-6..=1.0 + 1e-6).contains(&value);
        if let Some((field, value)) = probabilities.into_iter().find(|(_, value)| wrong(*value)) {
            return Err(ReportError::OutOfRange { field, value });
        }
        match self.models().into_iter().find(|(_, _, model)| model.temperature <= 0.0) {
            Some((_, _, model)) => Err(ReportError::OutOfRange { field: "temperature", value: model.temperature }),
            None => Ok(()),
        }
    }
}
