//! The paper's check of its test: does it tell labels that are missing at random from informative ones? Beside its
//! likelihood ratio, the test that `auto` chooses.

use crate::data::{Labelling, Source};
use crate::error::ReproduceError;
use crate::experiment::{Experiment, Protocol};
use crate::method::Setting;
use crate::run::{Overrides, Progress, read, read_all, write};
use mnar::Solver;
use mnar::test::{PermutationTest, chi_square_p, likelihood_ratio};
use mnar::{PosteriorKind, Posteriors, Sample};
use mnar_train::crossfit::score;
use mnar_train::mechanism::Method;
use mnar_train::{Observer, TrainSettings};
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// The tests of one draw of labels.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TestDraw {
    /// The experiment.
    pub experiment: String,
    /// How labels were hidden.
    pub labelling: Labelling,
    /// Of the mask and of training.
    pub seed: u64,
    /// Labelled rows of every class.
    pub labelled: Vec<usize>,
    /// The paper's, eq:stattest_ll: Algorithm 1 against a network of the labelled rows, against chi-square.
    pub likelihood_ratio: TestValue,
    /// The same with the network of Algorithm 1 under both hypotheses.
    pub likelihood_ratio_one_network: TestValue,
    /// Ours: permutation within the folds of a cross-fit.
    pub permutation: TestValue,
    /// Both, with the networks behind them.
    pub seconds: f64,
    /// How the network of Algorithm 1 was trained.
    pub settings: TrainSettings,
    /// How the networks of the folds were trained.
    pub folds: TrainSettings,
}

/// A statistic and its p-value.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TestValue {
    /// The statistic.
    pub statistic: f64,
    /// Its p-value.
    pub p_value: f64,
}

impl From<mnar::test::TestResult> for TestValue {
    fn from(result: mnar::test::TestResult) -> Self {
        Self { statistic: result.statistic, p_value: result.p_value }
    }
}

/// Draws labels at random and by the experiment's mechanism, and tests each; `None` if it was stopped. One file a draw
/// below `out`; what is there is not drawn again.
pub fn run_tests(
    experiment: &Experiment,
    overrides: &Overrides,
    data: &Path,
    out: &Path,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Option<Vec<TestDraw>>, ReproduceError> {
    let draws = overrides.seeds.unwrap_or(TEST_DRAWS);
    let device = overrides.device();
    let folder = out.join(&experiment.name).join(FOLDER);
    let source = Source::read(experiment, data)?;
    experiment.check_classes(source.n_classes())?;
    std::fs::create_dir_all(&folder).map_err(|why| ReproduceError::Io { path: folder.clone(), why })?;
    let mut tested = Vec::new();
    for labelling in [Labelling::AtRandom, Labelling::Informative] {
        for seed in 0..draws {
            let masked = source.mask(experiment, labelling, seed)?;
            let (settings, folds) = experiment.settings(seed, overrides.epochs, masked.train.shape());
            // The test may not lean on rows with the true class shares, and has no use for an early stop.
            let settings = TrainSettings { validation: 0.0, ..settings };
            let path = folder.join(format!("{}-{seed}.json", labelling.name()));
            let same = |draw: &TestDraw| draw.settings == settings && draw.folds == folds;
            let draw = match read::<TestDraw>(&path)?.filter(same) {
                Some(draw) => draw,
                None => {
                    progress.begins(labelling.title(), seed, tested.len(), 2 * draws as usize);
                    let setting = Setting {
                        experiment,
                        masked: &masked,
                        settings: &settings,
                        folds: &folds,
                        protocol: Protocol::Real,
                        device: &device,
                        stop,
                        cross_fitted: OnceCell::new(),
                    };
                    let Some(draw) = test(&setting, labelling, progress.observer())? else { return Ok(None) };
                    write(&path, &draw)?;
                    draw
                }
            };
            progress.ended(&draw.line());
            tested.push(draw);
        }
    }
    Ok(Some(tested))
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

fn test(
    setting: &Setting<'_>,
    labelling: Labelling,
    observer: &mut dyn Observer,
) -> Result<Option<TestDraw>, ReproduceError> {
    let start = Instant::now();
    let labels = &setting.masked.labels;
    let Some(alternative) = setting.plain(Method::Likelihood, observer)? else { return Ok(None) };
    let Some(null) = setting.plain(Method::CompleteCase, observer)? else { return Ok(None) };
    let posteriors = |network| score(network, &setting.masked.train, 1.0, PosteriorKind::Population);
    let (alternative, null) = (posteriors(&alternative)?, posteriors(&null)?);
    let one_network = likelihood_ratio(&Sample::new(&alternative, labels)?, &Solver::default())?;
    // At one theta the labelled rows' log p(y | x) cancel; at two they do not.
    let of_labels = |p: &Posteriors| -> f64 {
        labels.labelled().map(|(row, class)| p.row(row)[class.index()].max(f64::MIN_POSITIVE).ln()).sum()
    };
    let statistic = one_network.statistic + 2.0 * (of_labels(&alternative) - of_labels(&null));
    let ratio = TestValue { statistic, p_value: chi_square_p(statistic, labels.n_classes() - 1) };
    let Some((raw, plan)) = setting.fold_posteriors(observer)? else { return Ok(None) };
    let seed = setting.settings.seed;
    let permutation =
        PermutationTest { seed, ..Default::default() }.run(&Sample::new(&raw.posteriors, labels)?, &plan)?;
    Ok(Some(TestDraw {
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
    }))
}

/// All draws of an experiment below `out`.
pub fn test_draws(experiment: &Experiment, out: &Path) -> Result<Vec<TestDraw>, ReproduceError> {
    let folder = out.join(&experiment.name).join(FOLDER);
    let mut draws: Vec<TestDraw> = read_all(&folder)?;
    draws.sort_by_key(|draw| (draw.labelling, draw.seed));
    Ok(draws)
}

/// As many draws as the paper's.
const TEST_DRAWS: u64 = 10;
const FOLDER: &str = "test";
const LEVEL: f64 = 0.05;

/// Lines of cells: a heading, and one line a way of labelling and test.
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
