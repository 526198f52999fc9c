//! Numbers of settings, checked before anything is computed with them: a slip of the finger in a count must not become an
//! overflow, or a request for all the memory there is.

use super::{EstimateSettings, TestSettings};
use crate::error::Error;

/// More replicates than this take years.
const MOST_REPLICATES: usize = 1_000_000;

/// Replicates times classes: each is kept as two numbers, phi and the share, so that these take 1.6 GB.
const MOST_DRAWS: usize = 100_000_000;

/// More permutations than this take years, and show p-values that nobody needs.
const MOST_PERMUTATIONS: usize = 1_000_000_000;

/// The longest budget, in seconds: a year.
const LONGEST: f64 = 366.0 * 86_400.0;

pub(super) fn out_of_range(name: &'static str, value: impl ToString, range: &'static str) -> Error {
    Error::OutOfRange { name, value: value.to_string(), range }
}

impl EstimateSettings {
    /// Refuses numbers that are out of range.
    pub(super) fn check_ranges(&self) -> Result<(), Error> {
        if let Some(many) = self.replicates.filter(|replicates| *replicates > MOST_REPLICATES) {
            return Err(out_of_range("the number of replicates", many, "at most 1000000"));
        }
        if !(1..=MOST_PERMUTATIONS).contains(&self.permutations) {
            return Err(out_of_range("the number of permutations", self.permutations, "from 1 to 1000000000"));
        }
        if let Some(budget) = self.budget.filter(|budget| !(*budget > 0.0 && *budget <= LONGEST)) {
            return Err(out_of_range("the budget", format!("{budget} s"), "a positive time, at most a year"));
        }
        if let Some(width) = self.width.filter(|width| !(*width > 0.0 && *width <= 1.0)) {
            return Err(out_of_range("the width of an interval", width, "above 0 and at most 1"));
        }
        if let Some(bias) = self.bias_precision.filter(|bias| !(*bias >= 0.0 && bias.is_finite())) {
            return Err(out_of_range("the precision of the biases", bias, "a finite number, at least 0"));
        }
        Ok(())
    }

    /// Refuses more replicates than there is room for with `classes` classes.
    pub(super) fn check_draws(&self, classes: usize) -> Result<(), Error> {
        match self.replicates {
            Some(many) if many.saturating_mul(classes) > MOST_DRAWS => {
                let value = format!("{many} with {classes} classes");
                Err(out_of_range(
                    "the number of replicates",
                    value,
                    "at most 100000000 divided by the number of classes",
                ))
            }
            _ => Ok(()),
        }
    }
}

impl TestSettings {
    /// Refuses numbers that are out of range.
    pub(super) fn check_ranges(&self) -> Result<(), Error> {
        if !(self.level > 0.0 && self.level < 1.0) {
            return Err(out_of_range("the level", self.level, "between 0 and 1"));
        }
        if !(1..=MOST_PERMUTATIONS).contains(&self.permutations) {
            return Err(out_of_range("the number of permutations", self.permutations, "from 1 to 1000000000"));
        }
        if !(1..=MOST_REPLICATES).contains(&self.replicates) {
            return Err(out_of_range("the number of replicates", self.replicates, "from 1 to 1000000"));
        }
        if let Some(power) = self.power.filter(|power| !(*power > 0.0 && *power < 1.0)) {
            return Err(out_of_range("the power", power, "between 0 and 1"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extreme_numbers_are_refused() {
        let estimate = EstimateSettings::default;
        assert!(estimate().check_ranges().is_ok() && TestSettings::default().check_ranges().is_ok());
        for settings in [
            EstimateSettings { replicates: Some(usize::MAX), ..estimate() },
            EstimateSettings { permutations: usize::MAX, ..estimate() },
            EstimateSettings { permutations: 0, ..estimate() },
            EstimateSettings { budget: Some(f64::NAN), ..estimate() },
            EstimateSettings { budget: Some(1e300), ..estimate() },
            EstimateSettings { width: Some(f64::INFINITY), ..estimate() },
            EstimateSettings { width: Some(-0.1), ..estimate() },
            EstimateSettings { bias_precision: Some(-1.0), ..estimate() },
            EstimateSettings { bias_precision: Some(f64::NAN), ..estimate() },
        ] {
            assert!(settings.check_ranges().is_err(), "{settings:?}");
        }
        let many = EstimateSettings { replicates: Some(1_000_000), ..estimate() };
        assert!(many.check_draws(100).is_ok() && many.check_draws(101).is_err());
        for settings in [
            TestSettings { level: f64::NAN, ..Default::default() },
            TestSettings { permutations: usize::MAX, ..Default::default() },
            TestSettings { replicates: usize::MAX, ..Default::default() },
            TestSettings { replicates: 0, ..Default::default() },
            TestSettings { power: Some(1.0), ..Default::default() },
        ] {
            assert!(settings.check_ranges().is_err(), "{settings:?}");
        }
    }
}
