//! Summaries over seeds, and tables with the paper's numbers beside ours.

use crate::experiment::Experiment;
use crate::method::Candidate;
use crate::run::Outcome;

/// Mean and standard deviation over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// Standard deviation, with denominator n − 1; `None` for a single seed.
    pub sd: Option<f64>,
}

impl Spread {
    /// Summarises at least one value.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self { mean, sd: (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt()) }
    }

    /// Mean ± standard deviation as text, both multiplied by `factor`.
    pub fn text(&self, factor: f64, digits: usize) -> String {
        let mean = format!("{:.digits$}", self.mean * factor);
        self.sd.map_or(mean.clone(), |sd| format!("{mean} ±{:.digits$}", sd * factor))
    }
}

/// Results of a method over its seeds.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The method.
    pub method: Candidate,
    /// Number of seeds.
    pub seeds: usize,
    /// Test accuracy.
    pub accuracy: Spread,
    /// Test log-loss.
    pub log_loss: Spread,
    /// Test accuracy of each class, averaged over seeds.
    pub accuracy_per_class: Vec<f64>,
    /// Estimated phi of each class, averaged over seeds.
    pub phi: Vec<f64>,
    /// Normalised squared error of phi, Σ(φ̂−φ)²/Σφ².
    pub phi_error: Spread,
    /// (φ̂−φ)²/φ² of each class, averaged over seeds.
    pub phi_error_per_class: Vec<f64>,
    /// Training time.
    pub seconds: Spread,
}

/// One summary per method, in the order in which methods first occur.
pub fn summarise(outcomes: &[Outcome]) -> Vec<Summary> {
    let mut methods: Vec<Candidate> = Vec::new();
    for outcome in outcomes {
        if !methods.contains(&outcome.method) {
            methods.push(outcome.method);
        }
    }
    methods.into_iter().map(|method| summary(method, outcomes)).collect()
}

fn summary(method: Candidate, outcomes: &[Outcome]) -> Summary {
    let of: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.method == method).collect();
    let spread = |value: fn(&Outcome) -> f64| Spread::of(&of.iter().map(|outcome| value(outcome)).collect::<Vec<_>>());
    let classes = of[0].phi.len();
    let mean = |value: &dyn Fn(&Outcome, usize) -> f64| {
        (0..classes).map(|k| of.iter().map(|outcome| value(outcome, k)).sum::<f64>() / of.len() as f64).collect()
    };
    Summary {
        method,
        seeds: of.len(),
        accuracy: spread(|outcome| outcome.accuracy),
        log_loss: spread(|outcome| outcome.log_loss),
        accuracy_per_class: mean(&|outcome, k| outcome.accuracy_per_class[k]),
        phi: mean(&|outcome, k| outcome.phi[k]),
        phi_error: spread(|outcome| outcome.phi_error),
        phi_error_per_class: mean(&|outcome, k| (outcome.phi[k] / outcome.true_phi[k] - 1.0).powi(2)),
        seconds: spread(|outcome| outcome.seconds),
    }
}

/// Lines of cells: a heading, then one line per method, with each of our numbers followed by the paper's.
pub fn table(experiment: &Experiment, summaries: &[Summary]) -> Vec<Vec<String>> {
    let mut heading = vec!["method", "seeds", "accuracy %", "paper", "log-loss", "paper", "phi error", "paper"];
    let spotlight = experiment.spotlight;
    let of_class = spotlight.map(|class| [format!("class {class} %"), format!("phi error {class}")]);
    if let Some([accuracy, phi]) = &of_class {
        heading.extend([accuracy.as_str(), "paper", phi.as_str()]);
    }
    heading.push("seconds");
    let mut lines = vec![heading.into_iter().map(str::to_owned).collect()];
    for summary in summaries {
        let paper = experiment.paper.get(&summary.method).cloned().unwrap_or_default();
        let number =
            |value: Option<f64>, digits: usize| value.map_or("–".to_owned(), |value| format!("{value:.digits$}"));
        let mut line = vec![
            summary.method.title().to_owned(),
            summary.seeds.to_string(),
            summary.accuracy.text(100.0, 2),
            paper.accuracy.map_or("–".to_owned(), |(mean, sd)| {
                if sd > 0.0 { format!("{mean:.2} ±{sd:.2}") } else { format!("{mean:.2}") }
            }),
            summary.log_loss.text(1.0, 3),
            number(paper.loss, 3),
            summary.phi_error.text(1.0, 4),
            number(paper.phi_error, 4),
        ];
        if let Some(class) = spotlight {
            line.push(format!("{:.2}", 100.0 * summary.accuracy_per_class[class]));
            line.push(number(paper.spotlight_accuracy, 2));
            line.push(format!("{:.3}", summary.phi_error_per_class[class]));
        }
        line.push(format!("{:.0}", summary.seconds.mean));
        lines.push(line);
    }
    lines
}

/// The same table for a terminal of 80 columns: standard deviations of the accuracy only, and no spotlight class.
pub fn short_table(experiment: &Experiment, summaries: &[Summary]) -> Vec<Vec<String>> {
    let full = table(experiment, summaries);
    let mean = |cell: &String| cell.split(" ±").next().unwrap_or_default().to_owned();
    let short = |line: &Vec<String>| {
        let mut short = vec![line[0].clone(), line[2].clone(), line[3].clone()];
        short.extend(line[4..8].iter().map(mean));
        short
    };
    full.iter().map(short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_mean_and_sample_deviation() {
        let spread = Spread::of(&[1.0, 2.0, 3.0]);
        assert_eq!(spread, Spread { mean: 2.0, sd: Some(1.0) });
        assert_eq!(spread.text(10.0, 1), "20.0 ±10.0");
        assert_eq!(Spread::of(&[4.0]).text(1.0, 2), "4.00");
    }
}
