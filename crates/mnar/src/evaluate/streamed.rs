//! Metrics of rows that stay where they are: those that are functions of sums, in one pass after that of the mechanism.
//!
//! Intervals come from a jackknife that deletes one of 50 random buckets of rows at a time. Without a bucket, the mechanism is
//! one Newton step away from that of all rows, and the sums of the metrics follow it along their slope, so the pass that sums
//! the metrics is enough. The calibration is taken as it is.

use super::catalogue::{Key, Prepped, Sheet};
use super::decisions::Confusion;
use super::expected::{ExpectedLabels, Population};
use super::intervals::{Influences, Scale, interval};
use super::probabilities::{BINS, LossSums};
use super::result::{ConfusionMatrix, Evaluation, Metric};
use super::run::{POPULATIONS, cautions, defined};
use super::{EvaluateSettings, Model, Scores};
use crate::analysis::{Findings, IntervalAbout, IntervalKind, Method};
use crate::calibrate::{Bcts, ColumnCalibration, Through, ThroughColumns};
use crate::covariates::Grouping;
use crate::error::Error;
use crate::estimate::inverse_over;
use crate::labels::Labels;
use crate::mechanism::{ClassAndColumns, Mechanism, Selection};
use crate::mixture::{LogMixture, add_to};
use crate::posteriors::{PosteriorKind, Posteriors};
use crate::rows::{Block, Rows, Sums};
use crate::sums::Tally;
use crate::travel::{Bucketed, Kind, Several, Walk, bytes, travels};
use nalgebra::{DMatrix, DVector};
use ndarray::{Array2, ShapeBuilder};

/// With more classes, a confusion matrix per bucket is too large to travel.
const MOST_CLASSES: usize = 64;
/// The number of probabilities, roughly, on which slopes are measured: plenty for an interval.
const SLOPE_NUMBERS: usize = 2_000_000;

/// Where a pass finds what it needs among the given columns of the rows, and what the model is called.
#[derive(Clone, Copy, Debug)]
pub struct StreamedModel<'a> {
    /// The name of the model.
    pub name: &'a str,
    /// The groups of rows, and the position of the number of a row's group.
    pub groups: Option<(&'a Grouping, usize)>,
    /// The position of the number of a row's bucket, and how many buckets there are. Rows must fall into buckets at random.
    pub buckets: (usize, usize),
}

/// Confusion matrix, losses and calibration gaps of the rows as they are, of all rows and of unlabelled rows, of everything and
/// of each group.
#[derive(Clone)]
pub(crate) struct MetricSums {
    /// (1 − phi)/phi of every class.
    class_odds: Vec<f64>,
    /// The effects of the terms of columns, which come first among the given columns.
    terms: Vec<f64>,
    calibration: Option<(f64, Vec<f64>)>,
    /// The effects of the calibration within columns, by class.
    by_columns: Option<Vec<Vec<f64>>>,
    of_population: bool,
    augmented: bool,
    /// The position of the group among the given columns, and the number of groups.
    groups: Option<(usize, usize)>,
    values: Vec<f64>,
}

bytes!(MetricSums { class_odds, terms, calibration, by_columns, of_population, augmented, groups, values });

/// Rows as they are, all rows, unlabelled rows.
const VIEWS: usize = 3;

impl MetricSums {
    /// The sums of one view: a confusion matrix, the log-loss, the Brier score and the gaps.
    fn width(k: usize) -> usize {
        k * k + 2 + BINS
    }

    fn cells(&self) -> usize {
        1 + self.groups.map_or(0, |(_, groups)| groups)
    }

    /// The same without rows, at other parameters.
    fn at(&self, class_odds: Vec<f64>, terms: Vec<f64>) -> Self {
        Self { class_odds, terms, values: vec![0.0; self.values.len()], ..self.clone() }
    }

    fn add_block(&mut self, block: &Block<'_>) -> Result<(), Error> {
        let (n, k) = (block.len(), block.columns.len());
        let kind = if self.of_population { PosteriorKind::Population } else { PosteriorKind::Labelled };
        let p = Posteriors::new(Array2::from_shape_fn((n, k).f(), |(i, k)| block.columns[k][i]), kind)?;
        let calibrated = match &self.calibration {
            Some((a, b)) => Some(Bcts::known(*a, b.clone()).apply(&p)?),
            None => None,
        };
        let calibrated = match (calibrated, &self.by_columns) {
            (Some(p), Some(effects)) => {
                Some(ColumnCalibration { effects: effects.clone(), converged: true }.apply(&p, block.given)?)
            }
            (calibrated, _) => calibrated,
        };
        let names = (0..k).map(|k| k.to_string()).collect();
        let labels = Labels::allow_degenerate(block.labels.to_vec(), names)?;
        let effect = |i: usize| self.terms.iter().zip(block.given).map(|(b, z)| b * z[i]).sum::<f64>();
        let factor: Option<Vec<f64>> = (!self.terms.is_empty()).then(|| (0..n).map(|i| (-effect(i)).exp()).collect());
        let expected =
            ExpectedLabels::new(calibrated.as_ref().unwrap_or(&p), &labels, &self.class_odds, factor.as_deref())?;
        let expected = if self.augmented { expected } else { expected.weighting_alone() };
        let model = Model { name: String::new(), scores: Scores::Probabilities(&p) };
        let model = Prepped::new(&model, &labels)?;
        let Some(prepared) = &model.probabilities else { return Ok(()) };

        let mut cells: Vec<Vec<u32>> = vec![Vec::new(); self.cells()];
        cells[0] = (0..n as u32).collect();
        if let Some((column, groups)) = self.groups {
            for (i, group) in block.given[column].iter().enumerate() {
                cells[1 + (*group as usize).min(groups - 1)].push(i as u32);
            }
        }
        let views = [
            expected.naive(),
            expected.of(Population::All, block.weights),
            expected.of(Population::Unlabelled, block.weights),
        ];
        let width = Self::width(k);
        for (cell, rows) in cells.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
            for (view, counted) in views.iter().enumerate() {
                let start = (cell * VIEWS + view) * width;
                let values = &mut self.values[start..start + width];
                add_to(values, Confusion::new(counted, &model.decisions, rows).cells());
                let losses = prepared.loss_sums(counted, &model.decisions, rows);
                add_to(&mut values[k * k..], &[losses.log_loss, losses.brier]);
                add_to(&mut values[k * k + 2..], &losses.gap);
            }
        }
        Ok(())
    }
}

impl Sums for MetricSums {
    fn add(&mut self, block: &Block<'_>) {
        // Rows are checked before they are added; what still goes wrong must not look like a number.
        if self.add_block(block).is_err() {
            self.values.fill(f64::NAN);
        }
    }

    fn merge(&mut self, other: Self) {
        add_to(&mut self.values, &other.values);
    }

    travels!(Metrics);
}

/// The metrics of one view.
fn sheet(keys: &[Key], k: usize, values: &[f64]) -> Sheet {
    let confusion = Confusion::of_cells(k, values[..k * k].to_vec());
    let mut gap = [0.0; BINS];
    gap.copy_from_slice(&values[k * k + 2..]);
    let sums = LossSums { mass: confusion.total(), log_loss: values[k * k], brier: values[k * k + 1], gap };
    let losses = sums.losses();
    let values = keys.iter().map(|key| key.of_sums(&confusion, Some(&losses))).collect();
    Sheet { values, confusion, theta: Vec::new() }
}

/// What moves with the mechanism when rows are left out.
enum Moves {
    /// The mechanism is known.
    No,
    /// The odds of the classes, by the label-shift equations at these ratios.
    Ratios(Vec<f64>),
    /// The effects of classes and columns.
    Effects(Mechanism),
}

/// Sums of a bucket: rows and labels, what the mechanism is estimated from, and the metrics.
type Bucket = ((Tally, Walk), MetricSums);

impl EvaluateSettings {
    /// The metrics of a model whose probabilities identified the mechanism `found`, from one pass over the same rows. Metrics that
    /// order the rows (AUC, average precision) or need passes of their own (the calibration slope) are left out.
    pub fn run_streamed<R: Rows>(
        &self,
        found: Findings,
        rows: &R,
        model: StreamedModel<'_>,
    ) -> Result<Evaluation, Error> {
        let k = rows.n_classes();
        let buckets = match self.estimate.replicates {
            Some(0) => 0,
            _ if k > MOST_CLASSES => 0,
            _ => model.buckets.1,
        };
        let moves = self.moves(&found, rows.kind())?;
        let (class_odds, terms) = match (&moves, &found.mechanism) {
            (_, Some(mechanism)) => (odds(&mechanism.classes), mechanism.terms.clone()),
            (_, None) => (found.phi.iter().map(|phi| (1.0 - phi) / phi).collect(), Vec::new()),
        };
        let groups = model.groups.map(|(groups, column)| (column, groups.names.len()));
        let cells = 1 + groups.map_or(0, |(_, groups)| groups);
        let zero = MetricSums {
            class_odds,
            terms,
            calibration: found.calibration.as_ref().map(|bcts| (bcts.inverse_temperature, bcts.biases.clone())),
            by_columns: found.column_calibration.as_ref().map(|calibration| calibration.effects.clone()),
            of_population: rows.kind() == PosteriorKind::Population,
            augmented: self.augmented,
            groups,
            values: vec![0.0; cells * VIEWS * MetricSums::width(k)],
        };
        let (values, replicates) = match buckets {
            0 => (rows.scan(&zero)?.values, Vec::new()),
            buckets => jackknife(rows, &zero, &found, &moves, (model.buckets.0, buckets))?,
        };
        if values.iter().any(|value| value.is_nan()) {
            return Err(Error::NotIdentified {
                method: "the evaluation",
                why: "some rows have no probabilities under the mechanism".to_owned(),
            });
        }
        Ok(self.describe(found, model, k, &values, &replicates))
    }

    fn moves(&self, found: &Findings, kind: PosteriorKind) -> Result<Moves, Error> {
        if let Some(mechanism) = &found.mechanism {
            return Ok(Moves::Effects(mechanism.clone()));
        }
        match (found.method.as_str(), kind) {
            _ if self.estimate.method == Method::Known => Ok(Moves::No),
            ("label-shift", PosteriorKind::Labelled) => {
                let odds = (found.about.n - found.about.n_labelled) as f64 / found.about.n_labelled as f64;
                Ok(Moves::Ratios(found.phi.iter().map(|phi| (1.0 / phi - 1.0) / odds).collect()))
            }
            _ => Err(Error::Settings(
                "an evaluation of streamed rows needs labelled posteriors and the method label-shift, or a known phi",
            )),
        }
    }

    fn describe(
        &self,
        found: Findings,
        model: StreamedModel<'_>,
        k: usize,
        values: &[f64],
        replicates: &[Vec<f64>],
    ) -> Evaluation {
        let (keys, width) = (Key::of_streams(k), MetricSums::width(k));
        let classes = &found.about.classes;
        let view = |values: &[f64], cell: usize, view: usize| {
            let start = (cell * VIEWS + view) * width;
            sheet(&keys, k, &values[start..start + width])
        };
        let names = model.groups.map_or_else(Vec::new, |(groups, _)| groups.names.clone());
        let cells: Vec<Option<String>> = std::iter::once(None).chain(names.into_iter().map(Some)).collect();
        let (mut metrics, mut confusion, mut outside) = (Vec::new(), Vec::new(), 0);
        let influences = Influences::new(std::iter::empty(), 0);
        for (at, &population) in POPULATIONS.iter().enumerate() {
            for (cell, group) in cells.iter().enumerate() {
                let (naive, corrected) = (view(values, cell, 0), view(values, cell, 1 + at));
                if naive.confusion.total() == 0.0 && corrected.confusion.total() == 0.0 {
                    continue;
                }
                let draws: Vec<Sheet> = replicates.iter().map(|values| view(values, cell, 1 + at)).collect();
                for (j, &key) in keys.iter().enumerate() {
                    let (raw, scale) = (corrected.values[j], key.name.scale());
                    let inside = if scale == Scale::Share { raw.clamp(0.0, 1.0) } else { raw };
                    outside += usize::from((raw - inside).abs() > 1e-9);
                    let spread = spread(raw, &draws.iter().map(|draw| draw.values[j]).collect::<Vec<_>>());
                    metrics.push(Metric {
                        name: key.name,
                        class: key.class.map(|class| classes[class].clone()),
                        group: group.clone(),
                        model: model.name.to_owned(),
                        population,
                        naive: defined(naive.values[j]),
                        corrected: defined(inside),
                        ci95: interval(inside, &spread, scale, naive.support(key, k), 0.0, &influences),
                    });
                }
                confusion.push(ConfusionMatrix {
                    model: model.name.to_owned(),
                    group: group.clone(),
                    population,
                    naive: naive.confusion.rows(),
                    corrected: corrected.confusion.rows(),
                });
            }
        }
        let mut warnings = found.warnings.clone();
        warnings.push(
            "the rows were streamed: metrics that order them (AUC, average precision) and the calibration slope are left out"
                .to_owned(),
        );
        if outside > 0 {
            warnings.push(format!(
                "{outside} corrected metrics rest on so few labels that they fell outside 0 to 1; they are given as the nearest bound"
            ));
        }
        if replicates.is_empty() {
            warnings.push("there are no intervals; ask for replicates to have some".to_owned());
        }
        let kind = if replicates.is_empty() { IntervalKind::None } else { IntervalKind::Jackknife };
        let given = found.effects.iter().map(|effect| effect.column.clone()).collect();
        Evaluation {
            cautions: cautions(&found),
            models: vec![model.name.to_owned()],
            metrics,
            differences: Vec::new(),
            confusion,
            curves: Vec::new(),
            by: model.groups.map(|(groups, _)| groups.column.clone()),
            phi_ci95: found.phi_ci95.filter(|_| !replicates.is_empty()),
            effective_sample_size: found.effective_sample_size,
            phi: found.phi,
            prevalence: found.prevalence,
            method: found.method,
            given,
            augmented: self.augmented,
            interval: IntervalAbout { replicates: replicates.len(), ..IntervalAbout::new(kind) },
            verdict: None,
            seed: self.estimate.seed,
            warnings,
            about: found.about,
        }
    }
}

fn odds(classes: &[f64]) -> Vec<f64> {
    classes.iter().map(|a| (-a).exp()).collect()
}

/// Values with the jackknife's standard deviation: those without a bucket differ too little by the factor (B − 1)/√B.
fn spread(estimate: f64, without: &[f64]) -> Vec<f64> {
    let count = without.len() as f64;
    let mean = without.iter().sum::<f64>() / count;
    without.iter().map(|value| estimate + (value - mean) * (count - 1.0) / count.sqrt()).collect()
}

/// The sums of the metrics, and those without each bucket.
fn jackknife<R: Rows>(
    rows: &R,
    zero: &MetricSums,
    found: &Findings,
    moves: &Moves,
    (column, buckets): (usize, usize),
) -> Result<(Vec<f64>, Vec<Vec<f64>>), Error> {
    let k = zero.class_odds.len();
    let travelling = || Error::Travel("sums of this kind stay where they are");
    let scores = match moves {
        Moves::No => LogMixture::at(&vec![1.0; k], false).pack(),
        Moves::Ratios(w) => LogMixture::at(w, true).pack(),
        Moves::Effects(mechanism) => Selection::at(mechanism, 0).pack(),
    };
    let scores = scores.ok_or_else(travelling)?;
    let scores = match &found.column_calibration {
        Some(calibration) => ThroughColumns::new(calibration, scores).pack().ok_or_else(travelling)?,
        None => scores,
    };
    let scores = match &found.calibration {
        Some(bcts) => Through::new(bcts, scores).pack().ok_or_else(travelling)?,
        None => scores,
    };
    // Parameters that are a little up and down, one after the other.
    let parameters = Parameters::new(moves, zero);
    let shifted: Vec<MetricSums> = (0..parameters.free.len())
        .flat_map(|j| parameters.beside(j))
        .map(|(odds, terms)| zero.at(odds, terms))
        .collect();
    let numbers = found.about.n.saturating_mul(k).max(1);
    let sampled = (buckets * SLOPE_NUMBERS / numbers).clamp(1, buckets);
    let bucket: Bucket = ((Tally::zero(k), scores), zero.clone());
    let zero =
        (Bucketed { column, parts: vec![bucket; buckets] }, Several { column, below: sampled as f64, parts: shifted });
    let (parts, slopes) = rows.scan(&zero)?;
    let mut total = parts.parts[0].clone();
    parts.parts[1..].iter().for_each(|part| total.merge(part.clone()));

    let scale = buckets as f64 / sampled as f64;
    let slope = |j: usize| {
        let (up, down) = (&slopes.parts[2 * j].values, &slopes.parts[2 * j + 1].values);
        up.iter().zip(down).map(|(up, down)| scale * (up - down) / (2.0 * parameters.step(j))).collect::<Vec<f64>>()
    };
    let slopes: Vec<Vec<f64>> = (0..parameters.free.len()).map(slope).collect();
    let left = 1.0 - 1.0 / buckets as f64;
    let mut replicates = Vec::with_capacity(buckets);
    for part in &parts.parts {
        let moved = parameters.without(&total.0, &part.0)?;
        let mut values: Vec<f64> = total.1.values.iter().zip(&part.1.values).map(|(all, part)| all - part).collect();
        for (slope, moved) in slopes.iter().zip(moved) {
            values.iter_mut().zip(slope).for_each(|(value, slope)| *value += left * slope * moved);
        }
        replicates.push(values);
    }
    Ok((total.1.values, replicates))
}

/// The parameters of a mechanism that move when rows are left out.
struct Parameters<'a> {
    moves: &'a Moves,
    class_odds: Vec<f64>,
    /// The positions of those that are not at a bound.
    free: Vec<usize>,
}

impl<'a> Parameters<'a> {
    fn new(moves: &'a Moves, at: &MetricSums) -> Self {
        let free = match moves {
            Moves::No => Vec::new(),
            Moves::Ratios(w) => (0..w.len()).filter(|&j| w[j] > 0.0).collect(),
            Moves::Effects(mechanism) => (0..mechanism.classes.len() + mechanism.terms.len()).collect(),
        };
        Self { moves, class_odds: at.class_odds.clone(), free }
    }

    fn step(&self, j: usize) -> f64 {
        match self.moves {
            Moves::Effects(_) => 1e-4,
            _ => 1e-4 * self.class_odds[self.free[j]],
        }
    }

    /// Odds and effects with one parameter a step up, and a step down.
    fn beside(&self, j: usize) -> [(Vec<f64>, Vec<f64>); 2] {
        [1.0, -1.0].map(|sign| {
            let (step, at) = (sign * self.step(j), self.free[j]);
            match self.moves {
                Moves::Effects(mechanism) => {
                    let (mut classes, mut terms) = (mechanism.classes.clone(), mechanism.terms.clone());
                    match classes.get_mut(at) {
                        Some(class) => *class += step,
                        None => terms[at - mechanism.classes.len()] += step,
                    }
                    (odds(&classes), terms)
                }
                _ => {
                    let mut odds = self.class_odds.clone();
                    odds[at] += step;
                    (odds, Vec::new())
                }
            }
        })
    }

    /// By how much the parameters move, in one Newton step, when a part of the rows is left out.
    fn without(&self, all: &(Tally, Walk), part: &(Tally, Walk)) -> Result<Vec<f64>, Error> {
        match (self.moves, inner(&all.1), inner(&part.1)) {
            (Moves::Ratios(w), Kind::LogMixture(mixture), Kind::LogMixture(of_part)) => {
                let k = w.len();
                let pull = |tally: &Tally, gradient: &[f64]| -> Vec<f64> {
                    let pi = tally.labelled_shares();
                    (0..k).map(|j| gradient[j] - tally.n_unlabelled * pi[j]).collect()
                };
                let mut rest = all.0.clone();
                rest.counts.iter_mut().zip(&part.0.counts).for_each(|(count, of_part)| *count -= of_part);
                rest.n_unlabelled -= part.0.n_unlabelled;
                let gradient: Vec<f64> =
                    mixture.gradient.iter().zip(&of_part.gradient).map(|(all, part)| all - part).collect();
                // At the optimum of all rows the second is 0, up to a prior.
                let pulled = pull(&rest, &gradient).into_iter().zip(pull(&all.0, &mixture.gradient));
                let pulled = DVector::from_iterator(k, pulled.map(|(rest, all)| rest - all));
                let hessian = mixture.hessian() - of_part.hessian();
                let inverse = inverse_over(&hessian, &self.free).ok_or_else(singular)?;
                let step = inverse * pulled;
                let odds = rest.n_unlabelled / rest.n_labelled();
                Ok(self.free.iter().map(|&j| odds * (w[j] + step[j]) - self.class_odds[j]).collect())
            }
            (Moves::Effects(mechanism), Kind::Selection(all), Kind::Selection(part)) => {
                let penalty = ClassAndColumns::default().penalty(mechanism.classes.len(), mechanism.terms.len());
                let information: DMatrix<f64> = all.information() - part.information() + penalty;
                let solved = information.cholesky().ok_or_else(singular)?.solve(&part.gradient());
                Ok(solved.as_slice().to_vec())
            }
            _ => Ok(Vec::new()),
        }
    }
}

fn inner(walk: &Walk) -> &Kind {
    match &walk.0 {
        Kind::Calibrated(through) => inner(&through.sums),
        Kind::CalibratedByColumns(through) => inner(&through.sums),
        kind => kind,
    }
}

fn singular() -> Error {
    Error::NotIdentified {
        method: "the intervals of the evaluation",
        why: "the information about the mechanism is singular without some of the rows".to_owned(),
    }
}
