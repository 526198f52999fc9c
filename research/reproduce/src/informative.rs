//! The paper's check of its test: does it distinguish labels that are missing at random from informative ones? The
//! permutation test, which `auto` chooses, is run beside the paper's likelihood ratio.

use crate::data::{Labelling, Source};
use crate::error::ReproduceError;
use crate::experiment::{Experiment, Protocol};
use crate::method::Setting;
use crate::run::{Overrides, read, read_all, write};
use crate::watch::{RunEvent, Watch};
use mnar::test::{PermutationTest, chi_square_p, likelihood_ratio};
use mnar::{PosteriorKind, Posteriors, Sample, Solver};
use mnar_train::method::Method;
use mnar_train::{TrainSettings, score};
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::path::Path;
use std::time::Instant;

/// Test results of one draw of labels.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TestDraw {
    /// Name of the experiment.
    pub experiment: String,
    /// How labels were hidden.
    pub labelling: Labelling,
    /// Seed of the mask and of training.
    pub seed: u64,
    /// Number of labelled rows of each class.
    pub labelled: Vec<usize>,
    /// The paper's likelihood-ratio test: Algorithm 1 against a network trained on the labelled rows, with a chi-square
    /// reference.
    pub likelihood_ratio: TestValue,
    /// The same test with the network of Algorithm 1 under both hypotheses.
    pub likelihood_ratio_one_network: TestValue,
    /// Our permutation test, within the folds of a cross-fit.
    pub permutation: TestValue,
    /// Time of all tests, including the training of their networks.
    pub seconds: f64,
    /// Training settings of the network of Algorithm 1.
    pub settings: TrainSettings,
    /// Training settings of the networks of the folds.
    pub folds: TrainSettings,
}

/// A statistic and its p-value.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TestValue {
    /// Test statistic.
    pub statistic: f64,
    /// p-value.
    pub p_value: f64,
}

impl From<mnar::test::TestResult> for TestValue {
    fn from(result: mnar::test::TestResult) -> Self {
        Self { statistic: result.statistic, p_value: result.p_value }
    }
}

/// Draws labels at random and by the experiment's mechanism, and tests each draw. Each draw has its own file below
/// `out`, and is not repeated where that exists.
///
/// # Errors
/// If the caller cancels ([`ReproduceError::is_cancelled`]), the same call continues with the draws that are missing.
pub fn run_tests(
    experiment: &Experiment,
    overrides: &Overrides,
    data: &Path,
    out: &Path,
    watch: &Watch<'_>,
) -> Result<Vec<TestDraw>, ReproduceError> {
    let draws = overrides.seeds.unwrap_or(TEST_DRAWS);
    let device = overrides.device();
    let folder = out.join(&experiment.name).join(FOLDER);
    let source = Source::read(experiment, data)?;
    experiment.check_classes(source.n_classes())?;
    std::fs::create_dir_all(&folder).map_err(|source| ReproduceError::Io { path: folder.clone(), source })?;
    let mut tested = Vec::new();
    for labelling in [Labelling::AtRandom, Labelling::Informative] {
        for seed in 0..draws {
            let masked = source.mask(experiment, labelling, seed)?;
            let (settings, folds) = experiment.settings(seed, overrides.epochs, masked.train.shape());
            // The test must not use rows with the true class shares, and needs no early stopping.
            let settings = TrainSettings { validation: 0.0, ..settings };
            let path = folder.join(format!("{}-{seed}.json", labelling.name()));
            let same = |draw: &TestDraw| draw.settings == settings && draw.folds == folds;
            let draw = match read::<TestDraw>(&path)?.filter(same) {
                Some(draw) => draw,
                None => {
                    let (what, of) = (labelling.title(), 2 * draws as usize);
                    (watch.on_run)(RunEvent::Begins { what, seed, done: tested.len(), of });
                    let setting = Setting {
                        experiment,
                        masked: &masked,
                        settings: &settings,
                        folds: &folds,
                        protocol: Protocol::Real,
                        device: &device,
                        progress: watch.progress,
                        shifted: OnceCell::new(),
                    };
                    let draw = test(&setting, labelling)?;
                    write(&path, &draw)?;
                    draw
                }
            };
            (watch.on_run)(RunEvent::Ended { line: &draw.line() });
            tested.push(draw);
        }
    }
    Ok(tested)
}

impl TestDraw {
    fn line(&self) -> String {
        format!(
            "{:<12} seed {}  p by likelihood ratio {:.4}, by permutation {:.4}  {:.0} s",
            self.labelling.title(),
            self.seed,
            self.likelihood_ratio.p_value,
            self.permutation.p_value,
            self.seconds
        )
    }
}

fn test(setting: &Setting<'_>, labelling: Labelling) -> Result<TestDraw, ReproduceError> {
    let start = Instant::now();
    let labels = &setting.masked.labels;
    let alternative = setting.plain(Method::Likelihood)?;
    let null = setting.plain(Method::CompleteCase)?;
    let posteriors = |network| score(network, &setting.masked.train, 1.0, PosteriorKind::Population);
    let (alternative, null) = (posteriors(&alternative)?, posteriors(&null)?);
    let one_network = likelihood_ratio(&Sample::new(&alternative, labels)?, &Solver::default())?;
    // With one network, log p(y | x) of the labelled rows cancels; with two it does not.
    let of_labels = |p: &Posteriors| -> f64 {
        labels.labelled().map(|(row, class)| p.row(row)[class.index()].max(f64::MIN_POSITIVE).ln()).sum()
    };
    let statistic = one_network.statistic + 2.0 * (of_labels(&alternative) - of_labels(&null));
    let ratio = TestValue { statistic, p_value: chi_square_p(statistic, labels.n_classes() - 1) };
    let (folds, plan) = setting.fit_folds()?;
    let seed = setting.settings.seed;
    let permutation =
        PermutationTest { seed, ..Default::default() }.run(&Sample::new(&folds.posteriors, labels)?, &plan)?;
    Ok(TestDraw {
        experiment: setting.experiment.name.clone(),
        labelling,
        seed,
        labelled: labels.counts().to_vec(),
        likelihood_ratio: ratio,
        likelihood_ratio_one_network: one_network.into(),
        permutation: permutation.into(),
        seconds: start.elapsed().as_secs_f64(),
        settings: setting.settings.clone(),
        folds: setting.folds.clone(),
    })
}

/// All test draws of an experiment below `out`.
pub fn test_draws(experiment: &Experiment, out: &Path) -> Result<Vec<TestDraw>, ReproduceError> {
    let folder = out.join(&experiment.name).join(FOLDER);
    let mut draws: Vec<TestDraw> = read_all(&folder)?;
    draws.sort_by_key(|draw| (draw.labelling, draw.seed));
    Ok(draws)
}

/// Number of draws in the paper.
const TEST_DRAWS: u64 = 10;
const FOLDER: &str = "test";
const LEVEL: f64 = 0.05;

/// Lines of cells: a heading, then one line per way of labelling and test.
pub fn test_table(draws: &[TestDraw]) -> Vec<Vec<String>> {
    type Pick = fn(&TestDraw) -> f64;
    let tests: [(&str, Pick); 3] = [
        ("likelihood ratio", |draw| draw.likelihood_ratio.p_value),
        ("same, one network", |draw| draw.likelihood_ratio_one_network.p_value),
        ("permutation (auto)", |draw| draw.permutation.p_value),
    ];
    let heading = ["test", "labels", "rejected at 5%", "median p", "lowest", "highest"];
    let mut lines = vec![heading.map(str::to_owned).to_vec()];
    for labelling in [Labelling::AtRandom, Labelling::Informative] {
        for (name, pick) in tests {
            let mut p: Vec<f64> = draws.iter().filter(|draw| draw.labelling == labelling).map(pick).collect();
            if p.is_empty() {
                continue;
            }
            p.sort_by(f64::total_cmp);
            let rejected = p.iter().filter(|p| **p <= LEVEL).count();
            let middle = (p[(p.len() - 1) / 2] + p[p.len() / 2]) / 2.0;
            lines.push(vec![
                name.to_owned(),
                labelling.title().to_owned(),
                format!("{rejected} of {}", p.len()),
                p_text(middle),
                p_text(p[0]),
                p_text(p[p.len() - 1]),
            ]);
        }
    }
    lines
}

fn p_text(p: f64) -> String {
    if p < 1e-4 { "<0.0001".to_owned() } else { format!("{p:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_counts_rejections() {
        let draw = |labelling, seed, p| TestDraw {
            experiment: "x".into(),
            labelling,
            seed,
            labelled: vec![1, 1],
            likelihood_ratio: TestValue { statistic: 1.0, p_value: p },
            likelihood_ratio_one_network: TestValue { statistic: 1.0, p_value: 0.01 },
            permutation: TestValue { statistic: 1.0, p_value: 0.5 },
            seconds: 1.0,
            settings: TrainSettings::default(),
            folds: TrainSettings::default(),
        };
        let draws = [
            draw(Labelling::AtRandom, 0, 0.04),
            draw(Labelling::AtRandom, 1, 0.06),
            draw(Labelling::Informative, 0, 1e-9),
        ];
        let table = test_table(&draws);
        assert_eq!(table.len(), 7);
        assert_eq!(table[1][2..], ["1 of 2", "0.0500", "0.0400", "0.0600"].map(str::to_owned));
        assert_eq!(table[4][2..], ["1 of 1", "<0.0001", "<0.0001", "<0.0001"].map(str::to_owned));
        assert_eq!(table[2][2], "2 of 2");
        assert_eq!(table[6][2], "0 of 1");
    }
}
