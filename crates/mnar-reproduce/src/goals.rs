//! What an experiment was meant to show, and whether the runs show it.

use crate::method::Candidate;
use crate::summary::Summary;
use serde::Deserialize;

/// A statement about methods that runs can confirm or not.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// What is measured.
    pub measure: Measure,
    /// On these classes alone (their mean); without any, on all test rows.
    #[serde(default)]
    pub classes: Vec<usize>,
    /// Of these methods.
    pub methods: Vec<Candidate>,
    /// Does one of them do, or must all?
    #[serde(default)]
    pub which: Which,
    /// What they must do.
    pub target: Target,
}

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Test accuracy, in percent.
    Accuracy,
    /// Test log-loss.
    LogLoss,
    /// Σ(φ̂−φ)²/Σφ², or of single classes (φ̂−φ)²/φ².
    PhiError,
}

/// Of several methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// All of them.
    #[default]
    Each,
    /// The best of them.
    Best,
}

/// What a method must do.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Target {
    /// A number: at least that accuracy, at most that error.
    Reach(f64),
    /// Better than each of these.
    AheadOf(Vec<Candidate>),
}

/// What became of a goal.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The goal in words.
    pub goal: String,
    /// What was measured.
    pub found: String,
    /// Was it reached?
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
    /// What cannot be right in it.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        match &self.target {
            _ if self.methods.is_empty() => Some("goals: name the methods"),
            Target::AheadOf(others) if others.is_empty() => Some("goals: `ahead-of` names no method"),
            _ if self.measure == Measure::LogLoss && !self.classes.is_empty() => {
                Some("goals: there is no log-loss of single classes")
            }
            _ => None,
        }
    }

    /// All methods it speaks of.
    #[cfg(test)]
    pub(crate) fn all_methods(&self) -> Vec<Candidate> {
        let others = if let Target::AheadOf(others) = &self.target { &others[..] } else { &[] };
        self.methods.iter().chain(others).copied().collect()
    }

    /// Whether the runs show it, of the methods that were run; `None` where that leaves nothing to say.
    pub fn judge(&self, summaries: &[Summary]) -> Option<Verdict> {
        let value = |method: &Candidate| {
            let summary = summaries.iter().find(|summary| summary.method == *method)?;
            Some((*method, self.measure.of(summary, &self.classes)?))
        };
        let ours: Vec<_> = self.methods.iter().filter_map(value).collect();
        let best = best(self.measure, &ours)?;
        let worst = worst(self.measure, &ours)?;
        // Of all that must reach it, the hardest case is shown.
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
    // Some titles have a comma of their own.
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
    fn being_ahead_is_of_the_best_rival_and_lower_losses_are_better() {
        let goal = "measure = 'log-loss'\nmethods = ['me', 'ours']\ntarget = { ahead-of = ['pl'] }";
        let verdict = judged(goal).unwrap();
        assert_eq!((verdict.found.as_str(), verdict.met), ("ours, weights 0.600, Pl 0.500", false));
        assert!(judged(&goal.replace("'me', 'ours'", "'me'")).unwrap().met);
        let classes =
            "measure = 'accuracy'\nclasses = [0, 1]\nmethods = ['me']\ntarget = { ahead-of = ['pl', 'ours'] }";
        assert_eq!(judged(classes).unwrap().found, "ME 85.00%, ours, weights 90.00%");
    }

    #[test]
    fn nothing_is_said_of_methods_that_were_not_run() {
        assert_eq!(judged("measure = 'accuracy'\nmethods = ['mle']\ntarget = { reach = 1.0 }"), None);
        assert_eq!(judged("measure = 'accuracy'\nmethods = ['me']\ntarget = { ahead-of = ['mle'] }"), None);
        let some = "measure = 'accuracy'\nmethods = ['mle', 'me']\ntarget = { ahead-of = ['cadr', 'pl'] }";
        assert_eq!(judged(some).unwrap().goal, "accuracy, ME: ahead of Pl");
        assert_eq!(judged("measure = 'accuracy'\nclasses = [7]\nmethods = ['me']\ntarget = { reach = 1.0 }"), None);
    }
}
