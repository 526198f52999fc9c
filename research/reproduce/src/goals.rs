//! What an experiment is meant to show, and whether its results show it.

use crate::method::Candidate;
use crate::summary::Summary;
use serde::Deserialize;

/// A statement about methods that results can confirm or refute.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// Quantity that is measured.
    pub measure: Measure,
    /// Classes whose mean counts; if empty, all test rows count.
    #[serde(default)]
    pub classes: Vec<usize>,
    /// Methods that the statement is about.
    pub methods: Vec<Candidate>,
    /// Whether the best of them or each of them has to meet the target.
    #[serde(default)]
    pub which: Which,
    /// Target to meet.
    pub target: Target,
}

/// A measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Test accuracy, in percent.
    Accuracy,
    /// Test log-loss.
    LogLoss,
    /// Normalised squared error of phi: Σ(φ̂−φ)²/Σφ², or (φ̂−φ)²/φ² for single classes.
    PhiError,
}

/// Which of several methods have to meet a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// Each of them.
    #[default]
    Each,
    /// The best of them.
    Best,
}

/// The target of a goal.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Target {
    /// Reach a number: at least this accuracy, or at most this loss or error.
    Reach(f64),
    /// Be better than each of these methods.
    AheadOf(Vec<Candidate>),
}

/// Whether a goal was met.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Goal in words.
    pub goal: String,
    /// Measured values.
    pub found: String,
    /// Whether the goal was met.
    pub met: bool,
}

impl Measure {
    fn of(self, summary: &Summary, classes: &[usize]) -> Option<f64> {
        let mean = |values: &[f64]| {
            let chosen: Option<Vec<f64>> = classes.iter().map(|&class| values.get(class).copied()).collect();
            chosen.map(|chosen| chosen.iter().sum::<f64>() / chosen.len() as f64)
        };
        match self {
            Self::Accuracy if classes.is_empty() => Some(100.0 * summary.accuracy.mean),
            Self::Accuracy => mean(&summary.accuracy_per_class).map(|share| 100.0 * share),
            Self::LogLoss => Some(summary.log_loss.mean),
            Self::PhiError if classes.is_empty() => Some(summary.phi_error.mean),
            Self::PhiError => mean(&summary.phi_error_per_class),
        }
    }

    fn is_better(self, a: f64, b: f64) -> bool {
        if self == Self::Accuracy { a > b } else { a < b }
    }

    fn number(self, value: f64) -> String {
        match self {
            Self::Accuracy => format!("{value:.2}%"),
            Self::LogLoss => format!("{value:.3}"),
            Self::PhiError => format!("{value:.4}"),
        }
    }

    fn name(self, classes: &[usize]) -> String {
        let name = match self {
            Self::Accuracy => "accuracy",
            Self::LogLoss => "log-loss",
            Self::PhiError => "phi error",
        };
        let numbers: Vec<String> = classes.iter().map(usize::to_string).collect();
        match &numbers[..] {
            [] => name.to_owned(),
            [class] => format!("{name} of class {class}"),
            _ => format!("{name} of classes {}", numbers.join(", ")),
        }
    }
}

impl Goal {
    /// A description of what is invalid, if anything.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        match &self.target {
            _ if self.methods.is_empty() => Some("goals: `methods` is empty"),
            Target::AheadOf(others) if others.is_empty() => Some("goals: `ahead-of` is empty"),
            _ if self.measure == Measure::LogLoss && !self.classes.is_empty() => {
                Some("goals: log-loss is not available for single classes")
            }
            _ => None,
        }
    }

    /// All methods that it mentions.
    #[cfg(test)]
    pub(crate) fn all_methods(&self) -> Vec<Candidate> {
        let others = if let Target::AheadOf(others) = &self.target { &others[..] } else { &[] };
        self.methods.iter().chain(others).copied().collect()
    }

    /// Judges the goal by the methods that were run; `None` if too few of them were.
    pub fn judge(&self, summaries: &[Summary]) -> Option<Verdict> {
        let value = |method: &Candidate| {
            let summary = summaries.iter().find(|summary| summary.method == *method)?;
            Some((*method, self.measure.of(summary, &self.classes)?))
        };
        let ours: Vec<_> = self.methods.iter().filter_map(value).collect();
        let best = best(self.measure, &ours)?;
        let worst = worst(self.measure, &ours)?;
        // If each method has to meet the target, the one furthest from it is shown.
        let shown = if self.which == Which::Best { best } else { worst };
        let said = |(method, value): (Candidate, f64)| format!("{} {}", method.title(), self.measure.number(value));
        let (met, than, beside) = match &self.target {
            Target::Reach(bound) => {
                let direction = if self.measure == Measure::Accuracy { "at least" } else { "at most" };
                let met = self.measure.is_better(shown.1, *bound) || shown.1 == *bound;
                (met, format!("{direction} {}", self.measure.number(*bound)), String::new())
            }
            Target::AheadOf(others) => {
                let theirs: Vec<_> = others.iter().filter_map(value).collect();
                let rival = self::best(self.measure, &theirs)?;
                let met = self.measure.is_better(shown.1, rival.1);
                (met, format!("ahead of {}", titles(&theirs)), format!(", {}", said(rival)))
            }
        };
        let who = match (self.which, &ours[..]) {
            (_, [(method, _)]) => method.title().to_owned(),
            (Which::Best, ours) => format!("the best of {}", titles(ours)),
            (Which::Each, ours) => format!("each of {}", titles(ours)),
        };
        let goal = format!("{}, {who}: {than}", self.measure.name(&self.classes));
        Some(Verdict { goal, found: format!("{}{beside}", said(shown)), met })
    }
}

fn best(measure: Measure, values: &[(Candidate, f64)]) -> Option<(Candidate, f64)> {
    values.iter().copied().reduce(|a, b| if measure.is_better(b.1, a.1) { b } else { a })
}

fn worst(measure: Measure, values: &[(Candidate, f64)]) -> Option<(Candidate, f64)> {
    values.iter().copied().reduce(|a, b| if measure.is_better(a.1, b.1) { b } else { a })
}

fn titles(values: &[(Candidate, f64)]) -> String {
    // Not a comma, which some titles contain.
    values.iter().map(|(method, _)| method.title()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Spread;

    fn summary(method: Candidate, accuracy: f64, log_loss: f64, per_class: [f64; 2]) -> Summary {
        let spread = |mean| Spread { mean, sd: None };
        Summary {
            method,
            seeds: 1,
            accuracy: spread(accuracy),
            log_loss: spread(log_loss),
            accuracy_per_class: per_class.to_vec(),
            phi: vec![0.5; 2],
            phi_error: spread(log_loss / 10.0),
            phi_error_per_class: per_class.map(|share| 1.0 - share).to_vec(),
            seconds: spread(1.0),
        }
    }

    fn judged(goal: &str) -> Option<Verdict> {
        let runs = [
            summary(Candidate::Pl, 0.80, 0.5, [0.9, 0.7]),
            summary(Candidate::Me, 0.85, 0.4, [0.8, 0.9]),
            summary(Candidate::Ours, 0.90, 0.6, [0.9, 0.9]),
        ];
        let goal: Goal = toml::from_str(goal).unwrap();
        assert!(goal.fault().is_none());
        goal.judge(&runs)
    }

    #[test]
    fn a_bound_is_for_the_best_or_for_each() {
        let best = "measure = 'accuracy'\nmethods = ['me', 'ours']\nwhich = 'best'\ntarget = { reach = 89.0 }";
        let verdict = judged(best).unwrap();
        assert_eq!(verdict.goal, "accuracy, the best of ME; ours, weights: at least 89.00%");
        assert_eq!((verdict.found.as_str(), verdict.met), ("ours, weights 90.00%", true));
        let each = judged(&best.replace("'best'", "'each'")).unwrap();
        assert_eq!((each.found.as_str(), each.met), ("ME 85.00%", false));
        let error = judged("measure = 'phi-error'\nclasses = [1]\nmethods = ['me']\ntarget = { reach = 0.1 }").unwrap();
        assert_eq!((error.goal.as_str(), error.met), ("phi error of class 1, ME: at most 0.1000", true));
    }

    #[test]
    fn methods_compete_with_the_best_rival_and_lower_losses_are_better() {
        let goal = "measure = 'log-loss'\nmethods = ['me', 'ours']\ntarget = { ahead-of = ['pl'] }";
        let verdict = judged(goal).unwrap();
        assert_eq!((verdict.found.as_str(), verdict.met), ("ours, weights 0.600, Pl 0.500", false));
        assert!(judged(&goal.replace("'me', 'ours'", "'me'")).unwrap().met);
        let classes =
            "measure = 'accuracy'\nclasses = [0, 1]\nmethods = ['me']\ntarget = { ahead-of = ['pl', 'ours'] }";
        assert_eq!(judged(classes).unwrap().found, "ME 85.00%, ours, weights 90.00%");
    }

    #[test]
    fn methods_that_were_not_run_are_ignored() {
        assert_eq!(judged("measure = 'accuracy'\nmethods = ['mle']\ntarget = { reach = 1.0 }"), None);
        assert_eq!(judged("measure = 'accuracy'\nmethods = ['me']\ntarget = { ahead-of = ['mle'] }"), None);
        let some = "measure = 'accuracy'\nmethods = ['mle', 'me']\ntarget = { ahead-of = ['cadr', 'pl'] }";
        assert_eq!(judged(some).unwrap().goal, "accuracy, ME: ahead of Pl");
        assert_eq!(judged("measure = 'accuracy'\nclasses = [7]\nmethods = ['me']\ntarget = { reach = 1.0 }"), None);
    }
}
