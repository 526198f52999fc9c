//! Numbers among the options of a run, checked before the data are read. What depends on the data is checked by the plan.

use crate::error::RunError;
use crate::options::FitOptions;
use std::ops::RangeInclusive;

/// More rows than any memory holds the activations of.
const MOST_ROWS: usize = 1 << 20;

/// Longer training takes years.
const MOST_EPOCHS: usize = 1_000_000;

/// Units of a hidden layer: two such layers have 4 billion weights.
const MOST_UNITS: usize = 1 << 16;

const MOST_LAYERS: usize = 64;

/// Pixels along a side of a resized image.
const LONGEST_SIDE: usize = 65_535;

impl FitOptions {
    /// Refuses numbers that are out of range.
    pub(crate) fn check_ranges(&self) -> Result<(), RunError> {
        whole("epochs", self.epochs, 1..=MOST_EPOCHS)?;
        whole("batch-labelled", self.batch_labelled, 1..=MOST_ROWS)?;
        whole("batch-unlabelled", self.batch_unlabelled, 1..=MOST_ROWS)?;
        whole("patience", self.patience, 1..=MOST_EPOCHS)?;
        whole("refresh", self.refresh, 1..=MOST_EPOCHS)?;
        whole("folds", self.folds, 2..=1000)?;
        whole("replicates", self.replicates, 0..=1_000_000)?;
        whole("permutations", self.permutations, 1..=1_000_000_000)?;
        number("learning-rate", self.learning_rate, "a positive number", |rate| rate > 0.0)?;
        number("averaging", self.averaging, "at least 0 and below 1", |decay| (0.0..1.0).contains(&decay))?;
        number("lambda", self.lambda, "at least 0", |weight| weight >= 0.0)?;
        number("threshold", self.threshold, "from 0 to 1", |tau| (0.0..=1.0).contains(&tau))?;
        number("validation", self.validation, "from 0 to 0.5", |share| (0.0..=0.5).contains(&share))?;
        number("clip-weights", self.clip_weights, "at least 1", |factor| factor >= 1.0)?;
        let hidden = self.hidden.iter().flatten();
        hidden.copied().try_for_each(|units| whole("hidden", Some(units), 1..=MOST_UNITS))?;
        let layers = self.hidden.as_ref().map_or(0, Vec::len);
        if layers > MOST_LAYERS {
            return Err(refused("hidden", format!("{layers} layers"), format!("at most {MOST_LAYERS} layers")));
        }
        if let Some((height, width)) = self.read_options()?.resize
            && height.max(width) > LONGEST_SIDE
        {
            let value = format!("{height}x{width}");
            return Err(refused("resize", value, format!("at most {LONGEST_SIDE} pixels along a side")));
        }
        Ok(())
    }
}

fn whole(option: &'static str, value: Option<usize>, range: RangeInclusive<usize>) -> Result<(), RunError> {
    match value {
        Some(value) if !range.contains(&value) => {
            let expected = format!("a whole number from {} to {}", range.start(), range.end());
            Err(refused(option, value.to_string(), expected))
        }
        _ => Ok(()),
    }
}

fn number(
    option: &'static str,
    value: Option<f64>,
    expected: &str,
    fits: impl Fn(f64) -> bool,
) -> Result<(), RunError> {
    match value {
        Some(value) if !(value.is_finite() && fits(value)) => {
            Err(refused(option, value.to_string(), expected.to_owned()))
        }
        _ => Ok(()),
    }
}

fn refused(option: &'static str, value: String, expected: String) -> RunError {
    RunError::OptionValue { option, value, expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_range() {
        assert!(FitOptions::default().check_ranges().is_ok());
        let bad = |toml: &str| toml::from_str::<FitOptions>(toml).unwrap().check_ranges().is_err();
        for option in ["epochs", "batch-labelled", "batch-unlabelled", "patience", "refresh", "folds", "permutations"] {
            assert!(bad(&format!("{option} = 0")), "{option} 0");
            assert!(bad(&format!("{option} = 9223372036854775807")), "{option} 2^63 - 1");
        }
        assert!(bad("replicates = 9223372036854775807"));
        for option in ["learning-rate", "averaging", "lambda", "threshold", "validation", "clip-weights"] {
            for value in ["-1.0", "nan", "inf", "-inf"] {
                assert!(bad(&format!("{option} = {value}")), "{option} {value}");
            }
        }
        assert!(bad("hidden = [0]") && bad("hidden = [128, 1000000]"));
        assert!(bad(&format!("hidden = [{}]", vec!["8"; 65].join(", "))));
        assert!(bad("resize = \"99999999x1\"") && bad("resize = \"0x1\""));
    }
}
