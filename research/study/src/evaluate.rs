//! Do 95% intervals of a model's metrics cover the truth when labels are informative?
//!
//! A third of a table trains a model, on labels that the mechanism chose. The other rows are the population: every draw takes
//! rows from it with replacement and labels them by the mechanism, so that the metrics of all those rows are the truth.

use crate::draws::{Failed, Share, run};
use crate::fit::REGRESSION;
use crate::mechanisms::scaled_to;
use anyhow::{Context, Result, bail};
use mnar::analysis::{EstimateSettings, Evidence, Given};
use mnar::classify::{BoostedTrees, Classifier, Training};
use mnar::covariates::Covariate;
use mnar::evaluate::{EvaluateSettings, Evaluation, MetricName, Model, Population, Scores};
use mnar::{Class, Covariates, Labels, PosteriorKind, Posteriors};
use mnar_data::{Inputs, ReadOptions, TableEncoder, read_dataset};
use ndarray::{Array2, Axis};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Results for a table, a mechanism and a model.
#[derive(Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) table: String,
    pub(crate) labels_depend_on: String,
    pub(crate) model: String,
    pub(crate) rows: usize,
    pub(crate) mean_labels: f64,
    pub(crate) draws: usize,
    pub(crate) replicates: usize,
    pub(crate) failed: Failed,
    /// How often the evaluation had a caution to give.
    pub(crate) cautioned: Share,
    pub(crate) metrics: Vec<Covered>,
}

/// Coverage of one metric.
#[derive(Serialize, Deserialize)]
pub(crate) struct Covered {
    pub(crate) name: MetricName,
    pub(crate) class: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) truth: f64,
    pub(crate) covered: Share,
    /// The interval of the labelled rows as they are.
    pub(crate) naive_covered: Share,
    /// Root mean squared errors.
    pub(crate) error: f64,
    pub(crate) naive_error: f64,
    /// Mean error.
    pub(crate) bias: f64,
    /// Mean width of the intervals; of those with all labels, from the first draws.
    pub(crate) width: f64,
    pub(crate) width_all_labels: f64,
}

/// Name, rows of a draw, share of labelled rows.
const TABLES: [(&str, usize, f64); 3] = [("pima", 700, 0.3), ("spam", 1500, 0.25), ("satellite", 1500, 0.3)];
const MECHANISMS: [&str; 2] = ["the class", "class and site"];
const MODELS: [&str; 3] = ["linear", "trees", "network"];
/// Draws that are also evaluated with all labels.
const ALL_LABELS: usize = 20;

/// The population of a table under a mechanism, and a model that has not seen it.
struct World {
    p: Posteriors,
    y: Vec<Class>,
    classes: Vec<String>,
    site: Vec<usize>,
    /// P(labelled) of every row.
    rate: Vec<f64>,
    by_site: bool,
}

struct Rows {
    p: Posteriors,
    y: Vec<Class>,
    labels: Labels,
    columns: Covariates,
}

pub(crate) fn study(
    data: &Path,
    draws: usize,
    replicates: usize,
    only: Option<&str>,
    base: u64,
) -> Result<Vec<Setting>> {
    let mut settings = Vec::new();
    for (at, (name, rows, rate)) in TABLES.into_iter().enumerate() {
        if only.is_some_and(|only| !only.split(',').any(|only| only == name)) {
            continue;
        }
        for (mechanism, words) in MECHANISMS.into_iter().enumerate() {
            for (model, model_name) in MODELS.into_iter().enumerate() {
                let world = World::new(data, name, rate, mechanism == 1, model)?;
                let base = base + 100_000 * (9 * at + 3 * mechanism + model) as u64;
                let setting = setting(&world, name, words, model_name, rows, draws, replicates, base)?;
                settings.push(setting);
            }
        }
    }
    Ok(settings)
}

impl World {
    fn new(data: &Path, name: &str, rate: f64, by_site: bool, model: usize) -> Result<Self> {
        let options = ReadOptions { label: Some("y".to_owned()), ..Default::default() };
        let dataset = read_dataset(data.join(format!("tables/{name}.csv.gz")).as_path(), &options)?;
        let Inputs::Table(features) = &dataset.inputs else { bail!("{name} is not a table") };
        let mut x = TableEncoder::fit(features)?.encode(features)?.mapv(f64::from);
        let y: Vec<Class> = dataset.labels.as_slice().iter().map(|y| y.context("no label")).collect::<Result<_>>()?;
        let classes = dataset.labels.names().to_vec();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let spread = |y: &Class| y.index() as f64 / (classes.len() - 1) as f64;
        // Sites differ in their patients: the first has more of the last classes.
        let site: Vec<usize> = y
            .iter()
            .map(|y| {
                let weights = [spread(y).exp(), 1.0, (-0.5 * spread(y)).exp()];
                let draw = rng.random::<f64>() * weights.iter().sum::<f64>();
                match draw {
                    first if first < weights[0] => 0,
                    second if second < weights[0] + weights[1] => 1,
                    _ => 2,
                }
            })
            .collect();
        if by_site {
            for level in 0..3 {
                let indicator: Vec<f64> = site.iter().map(|&s| f64::from(u8::from(s == level))).collect();
                x.push_column(ndarray::ArrayView1::from(&indicator))?;
            }
            x = x.as_standard_layout().into_owned();
        }
        if model == 2 {
            x = hidden_layer(&x, &mut rng);
        }
        let logits = y
            .iter()
            .zip(&site)
            .map(|(y, &site)| 1.6 * (spread(y) - 0.5) + if by_site { [1.5, -0.5, -1.0][site] } else { 0.0 });
        let rate = scaled_to(logits.collect(), rate);
        let mut order: Vec<usize> = (0..y.len()).collect();
        order.shuffle(&mut rng);
        let (training, population) = order.split_at(y.len() / 3);
        let seen: Vec<usize> = training.iter().copied().filter(|&i| rng.random::<f64>() < rate[i]).collect();
        let seen_classes: Vec<Class> = seen.iter().map(|&i| y[i]).collect();
        let training = Training { rows: &seen, classes: &seen_classes, n_classes: classes.len(), weights: None };
        let trees = BoostedTrees { rounds: 60, ..Default::default() };
        let classifier: &dyn Classifier<Array2<f64>> = if model == 1 { &trees } else { &REGRESSION };
        let p = classifier.fit(&x, &training, 0, &())?.predict_proba(&x, population)?;
        Ok(Self {
            p: Posteriors::new(p, PosteriorKind::Labelled)?,
            y: population.iter().map(|&i| y[i]).collect(),
            classes,
            site: population.iter().map(|&i| site[i]).collect(),
            rate: population.iter().map(|&i| rate[i]).collect(),
            by_site,
        })
    }

    /// Rows of the population, labelled by the mechanism.
    fn rows(&self, which: &[usize], rng: &mut ChaCha8Rng) -> Result<Rows> {
        let y: Vec<Class> = which.iter().map(|&i| self.y[i]).collect();
        let labels = which.iter().map(|&i| (rng.random::<f64>() < self.rate[i]).then_some(self.y[i])).collect();
        let sites = which.iter().map(|&i| Some(["north", "south", "west"][self.site[i]]));
        Ok(Rows {
            p: Posteriors::new(self.p.view().select(Axis(0), which), PosteriorKind::Labelled)?,
            y,
            labels: Labels::allow_degenerate(labels, self.classes.clone())?,
            columns: Covariates::new(vec![Covariate::categorical("site", sites)])?,
        })
    }

    /// The metrics of rows with these labels; without intervals if there are no replicates.
    fn evaluate(&self, rows: &Rows, labels: &Labels, replicates: usize, seed: u64) -> Result<Evaluation> {
        let given = if self.by_site { Given::Columns(vec!["site".to_owned()]) } else { Given::None };
        let settings = EvaluateSettings {
            estimate: EstimateSettings {
                given,
                by: self.by_site.then(|| "site".to_owned()),
                replicates: Some(replicates),
                permutations: 99,
                seed,
                ..Default::default()
            },
            ..Default::default()
        };
        let evidence = Evidence::predictions(&rows.p, labels).with_covariates(&rows.columns)?;
        let model = Model { name: "model".to_owned(), scores: Scores::Probabilities(&rows.p) };
        Ok(settings.run(&evidence, &[model], &())?)
    }

    fn complete(&self, rows: &Rows) -> Result<Labels> {
        Ok(Labels::allow_degenerate(rows.y.iter().copied().map(Some).collect(), self.classes.clone())?)
    }
}

/// A network whose hidden layer is drawn and not learnt: 80 units.
fn hidden_layer(x: &Array2<f64>, rng: &mut ChaCha8Rng) -> Array2<f64> {
    let scale = 1.0 / (x.ncols() as f64).sqrt();
    let mut weight = || -> f64 { StandardNormal.sample(rng) };
    let weights = Array2::from_shape_fn((x.ncols(), 80), |_| scale * weight());
    let shift: Vec<f64> = (0..80).map(|_| 0.5 * weight()).collect();
    let mut hidden = x.dot(&weights);
    hidden
        .rows_mut()
        .into_iter()
        .for_each(|mut row| row.iter_mut().zip(&shift).for_each(|(h, s)| *h = (*h + s).tanh()));
    hidden
}

/// The metrics of the whole population.
fn listed(found: &Evaluation) -> impl Iterator<Item = &mnar::evaluate::Metric> {
    use MetricName as M;
    let reported = |name: M| {
        matches!(name, M::Accuracy | M::Recall | M::Precision | M::Auc | M::LogLoss | M::Brier | M::F1 | M::Prevalence)
    };
    found.metrics.iter().filter(|metric| metric.population == Population::All).filter(move |metric| {
        match metric.group {
            None => reported(metric.name) || matches!(metric.name, M::CalibrationSlope | M::AveragePrecision),
            Some(_) => matches!(metric.name, M::Prevalence | M::Accuracy),
        }
    })
}

/// Value, interval, naive value and naive interval.
type Found = (f64, (f64, f64), f64, (f64, f64));

struct Outcome {
    labels: usize,
    cautioned: bool,
    metrics: Vec<Found>,
    widths_all_labels: Option<Vec<f64>>,
}

#[expect(clippy::too_many_arguments, reason = "names of one setting")]
fn setting(
    world: &World,
    table: &str,
    mechanism: &str,
    model: &str,
    n: usize,
    draws: usize,
    replicates: usize,
    base: u64,
) -> Result<Setting> {
    let everyone: Vec<usize> = (0..world.y.len()).collect();
    let population = world.rows(&everyone, &mut ChaCha8Rng::seed_from_u64(0))?;
    let truth = world.evaluate(&population, &world.complete(&population)?, 0, 0)?;
    let truth: Vec<_> = listed(&truth).collect();
    let none = (f64::NAN, f64::NAN);
    let drawn = run(&format!("{table}, {mechanism}, {model}"), base, draws, |seeds| {
        let mut rng = ChaCha8Rng::seed_from_u64(seeds.data);
        let which: Vec<usize> = (0..n).map(|_| rng.random_range(0..world.y.len())).collect();
        let rows = world.rows(&which, &mut rng)?;
        let found = world.evaluate(&rows, &rows.labels, replicates, seeds.resample)?;
        let seen: Vec<usize> = (0..n).filter(|&i| rows.labels.is_labelled(i)).map(|i| which[i]).collect();
        let seen = world.rows(&seen, &mut rng)?;
        let naive = world.evaluate(&seen, &world.complete(&seen)?, replicates, seeds.resample)?;
        let naive: Vec<_> = listed(&naive).collect();
        let metrics: Vec<Found> = listed(&found)
            .map(|metric| {
                // A group may have no labelled rows of a kind, and then no naive metric.
                let same =
                    naive.iter().find(|n| (n.name, &n.class, &n.group) == (metric.name, &metric.class, &metric.group));
                (
                    metric.corrected.unwrap_or(f64::NAN),
                    metric.ci95.unwrap_or(none),
                    metric.naive.unwrap_or(f64::NAN),
                    same.and_then(|same| same.ci95).unwrap_or(none),
                )
            })
            .collect();
        let first = seeds.data % (draws as u64).max(1) < ALL_LABELS as u64;
        let widths_all_labels = match first {
            false => None,
            true => {
                let all = world.evaluate(&rows, &world.complete(&rows)?, replicates, seeds.resample)?;
                Some(listed(&all).map(|metric| metric.ci95.map_or(f64::NAN, |(low, high)| high - low)).collect())
            }
        };
        Ok(Outcome {
            labels: rows.labels.n_labelled(),
            cautioned: !found.cautions.is_empty(),
            metrics,
            widths_all_labels,
        })
    })?;
    let outcomes = &drawn.values;
    let mean = |values: Vec<f64>| {
        let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    let metrics = truth.iter().enumerate().map(|(j, metric)| {
        let truth = metric.corrected.unwrap_or(f64::NAN);
        let of = |read: &dyn Fn(&Found) -> f64| outcomes.iter().map(|o| read(&o.metrics[j])).collect::<Vec<f64>>();
        let inside = |(low, high): (f64, f64)| low <= truth && truth <= high;
        Covered {
            name: metric.name,
            class: metric.class.clone(),
            group: metric.group.clone(),
            truth,
            covered: Share::of(outcomes.iter().map(|o| inside(o.metrics[j].1))),
            naive_covered: Share::of(outcomes.iter().map(|o| inside(o.metrics[j].3))),
            error: mean(of(&|found| (found.0 - truth).powi(2))).sqrt(),
            naive_error: mean(of(&|found| (found.2 - truth).powi(2))).sqrt(),
            bias: mean(of(&|found| found.0 - truth)),
            width: mean(of(&|found| found.1.1 - found.1.0)),
            width_all_labels: mean(
                outcomes.iter().filter_map(|o| o.widths_all_labels.as_ref()).map(|widths| widths[j]).collect(),
            ),
        }
    });
    let setting = Setting {
        table: table.to_owned(),
        labels_depend_on: mechanism.to_owned(),
        model: model.to_owned(),
        rows: n,
        mean_labels: mean(outcomes.iter().map(|outcome| outcome.labels as f64).collect()),
        draws,
        replicates,
        cautioned: Share::of(outcomes.iter().map(|outcome| outcome.cautioned)),
        metrics: metrics.collect(),
        failed: drawn.failed,
    };
    print(&setting);
    Ok(setting)
}

fn print(setting: &Setting) {
    eprintln!(
        "{} | {} | {}: {:.0} labels, cautioned {:.2}, failed {}",
        setting.table,
        setting.labels_depend_on,
        setting.model,
        setting.mean_labels,
        setting.cautioned.share,
        setting.failed.draws
    );
    for metric in &setting.metrics {
        eprintln!(
            "   {:18} {:20} {:6} truth {:.3} covered {:.3} naive {:.3} bias {:+.4} error {:.4} naive {:.4} width {:.3} all {:.3}",
            metric.name.name(),
            metric.class.as_deref().unwrap_or(""),
            metric.group.as_deref().unwrap_or(""),
            metric.truth,
            metric.covered.share,
            metric.naive_covered.share,
            metric.bias,
            metric.error,
            metric.naive_error,
            metric.width,
            metric.width_all_labels
        );
    }
}
