//! What decides who gets labelled: mechanisms by class, by columns and by both, on real tables, with default settings.

use crate::draws::{Failed, Share, run};
use crate::fit::{FOLDS, REGRESSION, better_of, tuned_trees};
use anyhow::{Context, Result, bail};
use mnar::analysis::{EstimateSettings, Evidence, Features, Findings, Given, IntervalMethod, VerdictKind};
use mnar::classify::BoostedTrees;
use mnar::covariates::{Covariate, Covariates};
use mnar::crossfit::FoldPlan;
use mnar::{Class, Labels};
use mnar_data::{ColumnValues, Inputs, ReadOptions, TableEncoder, read_dataset};
use ndarray::{Array2, Axis};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Results for a table and a mechanism.
#[derive(Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) table: String,
    pub(crate) rows: usize,
    pub(crate) labels_depend_on: String,
    /// The verdict that is right.
    pub(crate) right: String,
    /// Whether the cause is a column of the table, or the class.
    pub(crate) cause_in_table: bool,
    pub(crate) mean_labels: f64,
    /// How often the posteriors were those of boosted trees instead of softmax regression.
    #[serde(default)]
    pub(crate) by_trees: f64,
    pub(crate) draws: usize,
    pub(crate) failed: Failed,
    /// How often the verdict was of each kind.
    pub(crate) verdicts: BTreeMap<String, usize>,
    pub(crate) verdict_right: Share,
    /// How often the class was found not to be enough.
    pub(crate) class_not_enough: Share,
    /// How often the strongest column was the cause, where it is a column.
    pub(crate) cause_first: Share,
    /// How often a class's share lay in its interval, over all classes.
    pub(crate) shares_covered: Share,
    pub(crate) phi_covered: Share,
    /// How often the interval of some class's share missed the truth by itself while the verdict was not `unclear`: the most
    /// frequent class stands for all.
    pub(crate) wrong_without_warning: Share,
    /// Root mean squared error of the shares: as printed, told the truth, with the class alone, and of the labels.
    pub(crate) error: f64,
    pub(crate) error_told: f64,
    pub(crate) error_class_only: f64,
    pub(crate) error_labelled: f64,
    /// Median width of the shares' intervals.
    pub(crate) width: f64,
}

/// A table of which all labels are known.
pub(crate) struct Table {
    name: &'static str,
    x: Array2<f64>,
    columns: Vec<Covariate>,
    y: Vec<Class>,
    classes: Vec<String>,
    /// Standardised numbers of each column, missing ones at the mean.
    scaled: Vec<Vec<f64>>,
    /// Rows of one draw.
    rows: usize,
    /// How often a row of the table is labelled.
    rate: f64,
    most_related: usize,
    least_related: usize,
    /// How unsure a classifier that knows all labels is of each row, standardised.
    ease: Vec<f64>,
}

/// What labels depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cause {
    Chance,
    Class,
    Feature { least: bool, class: f64 },
    Site { class: f64, feature: f64, rates_by_class: bool, absent: bool },
    EasyRows,
}

impl Cause {
    pub(crate) const ALL: [(&'static str, Cause); 12] = [
        ("chance", Cause::Chance),
        ("the class", Cause::Class),
        ("the feature most related to the class", Cause::Feature { least: false, class: 0.0 }),
        ("the feature least related to the class", Cause::Feature { least: true, class: 0.0 }),
        ("that feature and the class", Cause::Feature { least: true, class: 1.6 }),
        ("site", Cause::Site { class: 0.0, feature: 0.0, rates_by_class: false, absent: false }),
        ("site and class", Cause::Site { class: 0.0, feature: 0.0, rates_by_class: true, absent: false }),
        ("site, tied to the class", Cause::Site { class: 1.5, feature: 0.0, rates_by_class: false, absent: false }),
        (
            "site, tied to class and feature",
            Cause::Site { class: 1.0, feature: 1.0, rates_by_class: false, absent: false },
        ),
        ("site, tied to the feature", Cause::Site { class: 0.0, feature: 1.5, rates_by_class: false, absent: false }),
        (
            "site, tied to the class, column absent",
            Cause::Site { class: 1.5, feature: 0.0, rates_by_class: false, absent: true },
        ),
        ("how easy a row is", Cause::EasyRows),
    ];

    fn right(self) -> VerdictKind {
        match self {
            Cause::Chance => VerdictKind::AtRandom,
            // Without its column, a site that is tied to the class alone works through the class.
            Cause::Class | Cause::Site { absent: true, .. } => VerdictKind::ByClass,
            Cause::Feature { class, .. } if class != 0.0 => VerdictKind::ByClassAndColumns,
            Cause::Site { rates_by_class: true, .. } => VerdictKind::ByClassAndColumns,
            Cause::Feature { .. } | Cause::Site { .. } => VerdictKind::ByColumns,
            Cause::EasyRows => VerdictKind::Unclear,
        }
    }
}

/// One draw of rows and labels.
pub(crate) struct Drawn {
    pub(crate) x: Array2<f64>,
    pub(crate) covariates: Covariates,
    pub(crate) y: Vec<Class>,
    pub(crate) labels: Labels,
    /// P(labelled) of every row.
    pub(crate) probability: Vec<f64>,
    pub(crate) cause: Option<String>,
}

/// What is drawn, and how often.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub(crate) draws: usize,
    /// Names of tables, separated by commas; all by default.
    pub(crate) tables: Option<&'a str>,
    /// Positions in [`Cause::ALL`], separated by commas; all by default.
    pub(crate) causes: Option<&'a str>,
    /// Replicates of a bootstrap, instead of the program's own number.
    pub(crate) replicates: Option<usize>,
    /// The first seed. Seeds of the reported draws start at 8,000,000; rules were chosen on others.
    pub(crate) base: u64,
}

/// The tables that are there.
pub(crate) fn study(data: &Path, plan: Plan<'_>) -> Result<Vec<Setting>> {
    let wanted = |list: Option<&str>, item: &str| list.is_none_or(|list| list.split(',').any(|listed| listed == item));
    let mut settings = Vec::new();
    for (name, rows, rate) in TABLES {
        if !wanted(plan.tables, name) {
            continue;
        }
        let table = Table::read(data, name, rows, rate)?;
        for (position, (words, cause)) in Cause::ALL.into_iter().enumerate() {
            if wanted(plan.causes, &position.to_string()) {
                let base = plan.base + 100_000 * position as u64;
                settings.push(setting(&table, words, cause, Plan { base, ..plan })?);
            }
        }
    }
    Ok(settings)
}

/// Name, rows of a draw, share of labelled rows.
pub(crate) const TABLES: [(&str, usize, f64); 5] = [
    ("pima", 700, 0.25),
    ("breast-cancer", 520, 0.35),
    ("spam", 1500, 0.25),
    ("satellite", 1500, 0.3),
    // The four bands of one pixel: classes that can hardly be told apart.
    ("satellite-4", 1500, 0.3),
];

impl Table {
    pub(crate) fn read(data: &Path, name: &'static str, rows: usize, rate: f64) -> Result<Self> {
        let dataset = if name == "breast-cancer" {
            mnar_data::samples::breast_cancer().to_dataset()
        } else {
            let mut options = ReadOptions { label: Some("y".to_owned()), ..Default::default() };
            let (file, few) = name.strip_suffix("-4").map_or((name, false), |file| (file, true));
            let path = data.join(format!("tables/{file}.csv.gz"));
            if few {
                options.features = Some(["x.17", "x.18", "x.19", "x.20"].map(String::from).to_vec());
            }
            read_dataset(path.as_path(), &options)?
        };
        let Inputs::Table(features) = &dataset.inputs else { bail!("{name} is not a table") };
        let x = TableEncoder::fit(features)?.encode(features)?.mapv(f64::from);
        let mut columns = Vec::new();
        let mut scaled = Vec::new();
        for column in features.columns() {
            let ColumnValues::Numeric(values) = &column.values else {
                bail!("{name}: `{}` is not numeric", column.name)
            };
            let values: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
            scaled.push(standardised(&values));
            columns.push(Covariate::numeric(&column.name, values));
        }
        let y: Vec<Class> =
            dataset.labels.as_slice().iter().map(|y| y.context("a missing label")).collect::<Result<_>>()?;
        let classes = dataset.labels.names().to_vec();
        let related: Vec<f64> = scaled.iter().map(|values| explained(values, &y, classes.len())).collect();
        let order = |a: &usize, b: &usize| related[*a].total_cmp(&related[*b]);
        let most_related = (0..related.len()).max_by(order).context("no column")?;
        let least_related = (0..related.len()).min_by(order).context("no column")?;
        let plan = FoldPlan::uniform(y.len(), FOLDS, 1)?;
        let evidence = Evidence::cross_fit(
            Features { x: &x, names: &[], classifier: &REGRESSION },
            &dataset.labels,
            plan,
            1,
            &(),
        )?;
        let sure: Vec<f64> =
            (0..y.len()).map(|i| evidence.posteriors.row(i).iter().copied().fold(0.0, f64::max)).collect();
        Ok(Self {
            name,
            x,
            columns,
            y,
            classes,
            ease: standardised(&sure),
            scaled,
            rows,
            rate,
            most_related,
            least_related,
        })
    }

    /// The name of the column most related to the class.
    pub(crate) fn most_related_name(&self) -> String {
        self.columns[self.most_related].name.clone()
    }

    pub(crate) fn draw(&self, cause: Cause, seed: u64) -> Result<Drawn> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut order: Vec<usize> = (0..self.y.len()).collect();
        order.shuffle(&mut rng);
        order.truncate(self.rows);
        let y: Vec<Class> = order.iter().map(|&i| self.y[i]).collect();
        let k = self.classes.len();
        let pick = |values: &[f64]| order.iter().map(|&i| values[i]).collect::<Vec<f64>>();
        let feature = |least: bool| if least { self.least_related } else { self.most_related };
        // From the first class to the last, evenly on the logit scale.
        let by_class =
            |spread: f64| y.iter().map(|y| spread * (y.index() as f64 / (k - 1) as f64 - 0.5)).collect::<Vec<f64>>();
        let mut x = self.x.select(Axis(0), &order);
        let mut columns: Vec<Covariate> = Vec::new();
        for column in &self.columns {
            let mnar::covariates::CovariateValues::Numeric(values) = &column.values else { bail!("not numeric") };
            columns.push(Covariate::numeric(&column.name, pick(values)));
        }
        let mut cause_name = None;
        let probability = match cause {
            Cause::Chance => vec![self.rate; y.len()],
            Cause::Class => scaled_to(by_class(1.6), self.rate),
            Cause::Feature { least, class } => {
                cause_name = Some(self.columns[feature(least)].name.clone());
                let z = pick(&self.scaled[feature(least)]);
                let logits = z.iter().zip(by_class(class)).map(|(z, class)| 1.2 * z + class).collect();
                scaled_to(logits, self.rate)
            }
            Cause::EasyRows => scaled_to(pick(&self.ease).iter().map(|ease| 1.5 * ease).collect(), self.rate),
            Cause::Site { class, feature: tied, rates_by_class, absent } => {
                let z = pick(&self.scaled[feature(false)]);
                let mut sites = Vec::with_capacity(y.len());
                for i in 0..y.len() {
                    let tie = class * y[i].index() as f64 / (k - 1) as f64 + tied * z[i];
                    let weights = [tie.exp(), 1.0, (-0.5 * tie).exp()];
                    let mut draw = rng.random::<f64>() * weights.iter().sum::<f64>();
                    let mut site = 0;
                    while site < 2 && draw >= weights[site] {
                        draw -= weights[site];
                        site += 1;
                    }
                    sites.push(site);
                }
                let by_class = by_class(if rates_by_class { 1.6 } else { 0.0 });
                let logits = sites.iter().zip(by_class).map(|(&site, class)| [2.5, -0.9, -1.4][site] + class).collect();
                if !absent {
                    cause_name = Some("site".to_owned());
                    columns.push(Covariate::categorical("site", sites.iter().map(|&site| Some(["a", "b", "c"][site]))));
                    for level in 0..3 {
                        let indicator: Vec<f64> =
                            sites.iter().map(|&site| f64::from(u8::from(site == level))).collect();
                        x.push_column(ndarray::ArrayView1::from(&standardised(&indicator)))?;
                    }
                }
                scaled_to(logits, self.rate)
            }
        };
        let labels = probability.iter().zip(&y).map(|(p, y)| (rng.random::<f64>() < *p).then_some(*y)).collect();
        let labels = Labels::new(labels, self.classes.clone())?;
        // push_column makes the array column by column; the classifier reads it row by row.
        let x = x.as_standard_layout().into_owned();
        Ok(Drawn { x, covariates: Covariates::new(columns)?, y, labels, probability, cause: cause_name })
    }
}

/// P(labelled) from logits, shifted so that its mean is `rate`.
pub(crate) fn scaled_to(logits: Vec<f64>, rate: f64) -> Vec<f64> {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let (mut low, mut high) = (-20.0, 20.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        let mean = logits.iter().map(|logit| sigmoid(logit + middle)).sum::<f64>() / logits.len() as f64;
        if mean < rate { low = middle } else { high = middle }
    }
    logits.iter().map(|logit| sigmoid(logit + low)).collect()
}

fn standardised(values: &[f64]) -> Vec<f64> {
    let present = || values.iter().copied().filter(|value| !value.is_nan());
    let n = present().count() as f64;
    let mean = present().sum::<f64>() / n;
    let sd = (present().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt().max(1e-12);
    values.iter().map(|value| if value.is_nan() { 0.0 } else { ((value - mean) / sd).clamp(-4.0, 4.0) }).collect()
}

/// The share of the variance of a column that the classes explain.
fn explained(values: &[f64], y: &[Class], k: usize) -> f64 {
    let mut sums = vec![(0.0, 0.0); k];
    values.iter().zip(y).for_each(|(value, y)| {
        sums[y.index()].0 += value;
        sums[y.index()].1 += 1.0;
    });
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let between: f64 = sums.iter().filter(|(_, n)| *n > 0.0).map(|(sum, n)| n * (sum / n - mean).powi(2)).sum();
    between / values.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
}

struct Outcome {
    labels: usize,
    by_trees: bool,
    kind: VerdictKind,
    class_not_enough: bool,
    cause_first: bool,
    shares_covered: Vec<bool>,
    phi_covered: Vec<bool>,
    missed: bool,
    squared: [f64; 4],
    widths: Vec<f64>,
}

fn setting(table: &Table, words: &str, cause: Cause, plan: Plan<'_>) -> Result<Setting> {
    let Plan { draws, replicates, base, .. } = plan;
    let drawn = run(&format!("{}, {words}", table.name), base, draws, |seeds| {
        let rows = table.draw(cause, seeds.data)?;
        let k = rows.labels.n_classes();
        let n = rows.y.len() as f64;
        let plan = FoldPlan::for_rows(rows.x.view(), &rows.labels, FOLDS, seeds.folds)?;
        let trees = tuned_trees(&rows.x, &rows.labels, &plan, seeds.folds)?;
        let evidence =
            better_of(&rows.x, &rows.labels, &trees, &plan, seeds.folds)?.with_covariates(&rows.covariates)?;
        let settings = EstimateSettings { seed: seeds.resample, permutations: 999, replicates, ..Default::default() };
        let found = settings.run(&evidence, &())?;
        let told = match &rows.cause {
            Some(cause) => Given::Columns(vec![cause.clone()]),
            None => Given::None,
        };
        let told = EstimateSettings {
            given: told,
            interval: IntervalMethod::Information,
            permutations: 1,
            ..settings.clone()
        };
        let told = told.run(&evidence, &())?;

        let truth: Vec<f64> = (0..k).map(|c| rows.y.iter().filter(|y| y.index() == c).count() as f64 / n).collect();
        let phi: Vec<f64> = (0..k)
            .map(|c| {
                let of = rows.y.iter().zip(&rows.probability).filter(|(y, _)| y.index() == c).map(|(_, p)| p);
                of.sum::<f64>() / (truth[c] * n)
            })
            .collect();
        let covered = |intervals: &Option<Vec<(f64, f64)>>, truth: &[f64]| -> Result<Vec<bool>> {
            let intervals = intervals.as_ref().context("no intervals")?;
            Ok(intervals.iter().zip(truth).map(|((low, high), truth)| low <= truth && truth <= high).collect())
        };
        let labelling = found.labelling.as_ref().context("no labelling")?;
        let verdict = found.verdict.as_ref().context("no verdict")?;
        let class_only = labelling.class_only.as_ref().map_or(&found.prevalence, |only| &only.prevalence);
        let labelled: Vec<f64> =
            rows.labels.counts().iter().map(|&count| count as f64 / rows.labels.n_labelled() as f64).collect();
        let squared = |shares: &[f64]| shares.iter().zip(&truth).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / k as f64;
        let shares_covered = covered(&found.prevalence_ci95, &truth)?;
        let largest = (0..k).max_by(|&a, &b| truth[a].total_cmp(&truth[b])).context("no class")?;
        let check = labelling.class_enough.as_ref();
        Ok(Outcome {
            labels: rows.labels.n_labelled(),
            by_trees: evidence.tried.iter().any(|tried| tried.chosen && tried.name == BoostedTrees::NAME),
            kind: verdict.kind,
            class_not_enough: check.is_some_and(|check| check.p_value <= labelling.level),
            cause_first: rows.cause.is_some()
                && check.and_then(|check| check.columns.first()).map(|c| &c.column) == rows.cause.as_ref(),
            missed: !shares_covered[largest],
            shares_covered,
            phi_covered: covered(&found.phi_ci95, &phi)?,
            squared: [
                squared(found.prevalence.as_slice()),
                squared(told.prevalence.as_slice()),
                squared(class_only.as_slice()),
                squared(&labelled),
            ],
            widths: widths(&found),
        })
    })?;
    let outcomes = &drawn.values;
    let mean = |of: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(of).sum::<f64>() / outcomes.len() as f64;
    let error = |j: usize| mean(&|outcome| outcome.squared[j]).sqrt();
    let right = cause.right();
    let mut verdicts = BTreeMap::new();
    for outcome in outcomes {
        *verdicts.entry(name_of(outcome.kind)).or_insert(0) += 1;
    }
    let mut widths: Vec<f64> = outcomes.iter().flat_map(|outcome| outcome.widths.iter().copied()).collect();
    widths.sort_by(f64::total_cmp);
    let setting = Setting {
        table: table.name.to_owned(),
        rows: table.rows,
        labels_depend_on: words.to_owned(),
        right: name_of(right),
        cause_in_table: !matches!(cause, Cause::EasyRows),
        mean_labels: mean(&|outcome| outcome.labels as f64),
        by_trees: mean(&|outcome| f64::from(u8::from(outcome.by_trees))),
        draws,
        verdicts,
        verdict_right: Share::of(outcomes.iter().map(|outcome| outcome.kind == right)),
        class_not_enough: Share::of(outcomes.iter().map(|outcome| outcome.class_not_enough)),
        cause_first: Share::of(outcomes.iter().map(|outcome| outcome.cause_first)),
        shares_covered: Share::pooled(
            &outcomes.iter().map(|outcome| outcome.shares_covered.clone()).collect::<Vec<_>>(),
        ),
        phi_covered: Share::pooled(&outcomes.iter().map(|outcome| outcome.phi_covered.clone()).collect::<Vec<_>>()),
        wrong_without_warning: Share::of(
            outcomes.iter().map(|outcome| outcome.missed && outcome.kind != VerdictKind::Unclear),
        ),
        error: error(0),
        error_told: error(1),
        error_class_only: error(2),
        error_labelled: error(3),
        width: widths[widths.len() / 2],
        failed: drawn.failed,
    };
    eprintln!(
        "{:12} {:42} right {:.2} {:?} not-enough {:.2} first {:.2} cover {:.2} phi {:.2} silent-wrong {:.2} err {:.3} told {:.3} class {:.3} lab {:.3} width {:.2} trees {:.2} failed {}",
        setting.table,
        words,
        setting.verdict_right.share,
        setting.verdicts,
        setting.class_not_enough.share,
        setting.cause_first.share,
        setting.shares_covered.share,
        setting.phi_covered.share,
        setting.wrong_without_warning.share,
        setting.error,
        setting.error_told,
        setting.error_class_only,
        setting.error_labelled,
        setting.width,
        setting.by_trees,
        setting.failed.draws
    );
    Ok(setting)
}

fn widths(found: &Findings) -> Vec<f64> {
    found.prevalence_ci95.iter().flatten().map(|(low, high)| high - low).collect()
}

fn name_of(kind: VerdictKind) -> String {
    serde_json::to_value(kind).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
