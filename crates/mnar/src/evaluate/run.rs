//! From evidence and models to an evaluation.

use super::by_columns::OfRows;
use super::catalogue::{Key, MetricName, Prepped, Sheet};
use super::expected::{ExpectedLabels, Population};
use super::intervals::{Influences, Scale, difference, interval};
use super::ranking::Order;
use super::result::{CalibrationBin, ConfusionMatrix, Curves, Difference, Evaluation, Metric};
use super::{EvaluateSettings, Model};
use crate::analysis::{
    About, CONFIDENCE, Calibrate, EstimateSettings, Evidence, Findings, IntervalAbout, IntervalKind, IntervalMethod,
    Method, Reestimate, VerdictKind,
};
use crate::error::Error;
use crate::interval::{Bootstrap, Replicates};
use crate::phi::Phi;
use crate::posteriors::PosteriorKind;
use crate::progress::Progress;
use crate::shares::ClassShares;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Probabilities, over all replicates, that intervals are made from by default: some 20 seconds.
const AFFORDABLE: usize = 400_000_000;
/// Larger tables have no intervals unless they are asked for: every replicate takes several seconds.
const LARGEST: usize = 50_000_000;
const MOST_REPLICATES: usize = 200;
const FEWEST_REPLICATES: usize = 20;
/// With more labelled rows none of them decides an interval by itself.
const MOST_INFLUENCES: usize = 20_000;
/// Points of a ROC curve.
const CURVE_POINTS: usize = 101;

pub(super) const POPULATIONS: [Population; 2] = [Population::All, Population::Unlabelled];

/// Rows that metrics are given for: all of them, or those of a group.
struct Cell {
    group: Option<String>,
    rows: Vec<u32>,
    /// For every model and class.
    orders: Vec<Vec<Order>>,
}

/// What a replicate gives.
struct Draw {
    values: Vec<f64>,
    /// Of the labelled rows.
    weights: Vec<f64>,
    phi: Option<(Phi, ClassShares)>,
}

/// The labels that are expected under the mechanism, as often as they are asked for.
struct Source<'a> {
    evidence: &'a Evidence<'a>,
    /// `None` where no label is missing.
    reestimate: Option<Reestimate<'a>>,
    /// A mechanism by class and columns, where it is known.
    by_columns: Option<OfRows>,
    /// phi that a trained model refined. Replicates estimate again, and show how much phi varies.
    refined: Option<Phi>,
    settings: &'a EvaluateSettings,
}

impl<'a> Source<'a> {
    fn at(
        &self,
        weights: Option<&[f64]>,
        replicate: Option<u64>,
    ) -> Result<(ExpectedLabels<'a>, Option<(Phi, ClassShares)>), Error> {
        let (expected, phi) = match &self.reestimate {
            None => {
                let phi = Phi::all_labelled(self.evidence.labels.n_classes());
                let labels: &'a crate::labels::Labels = self.evidence.labels;
                (ExpectedLabels::by_class(&self.evidence.posteriors, labels, &phi)?, None)
            }
            Some(reestimate) => {
                let known = match replicate {
                    Some(replicate) => self.settings.drawn_phi(replicate),
                    None => self.refined.clone(),
                };
                if let Some(by_columns) = &self.by_columns {
                    let moved = self.settings.estimate.phi.as_ref().zip(known.as_ref());
                    let (expected, phi) = by_columns.at(reestimate, weights, moved, replicate)?;
                    return Ok((if self.settings.augmented { expected } else { expected.weighting_alone() }, phi));
                }
                let found = reestimate.at(weights, known.as_ref())?;
                (found.expected, Some((found.estimate.phi, found.estimate.prevalence)))
            }
        };
        Ok((if self.settings.augmented { expected } else { expected.weighting_alone() }, phi))
    }
}

impl<'a> Source<'a> {
    fn second_opinion(&self) -> Result<Option<ExpectedLabels<'a>>, Error> {
        match &self.reestimate {
            Some(reestimate) if self.settings.augmented && self.by_columns.is_none() => reestimate.second_opinion(),
            _ => Ok(None),
        }
    }
}

impl EvaluateSettings {
    /// Evaluates models on the rows of the evidence, whose posteriors identify the mechanism. The first model is the one that
    /// others are compared with. Where the evidence has an audit, the metrics rest on the audited rows.
    pub fn run(
        &self,
        evidence: &Evidence<'_>,
        models: &[Model<'_>],
        progress: &dyn Progress,
    ) -> Result<Evaluation, Error> {
        if let Some(audit) = evidence.audit {
            return self.audited(audit, evidence, models, progress);
        }
        let labels = evidence.labels;
        let findings = match labels.n_unlabelled() {
            0 => Findings::nothing_missing(labels, self.estimate.seed),
            _ => self.mechanism(evidence.posteriors.kind())?.run(evidence, progress)?,
        };
        self.run_with(findings, evidence, models, progress)
    }

    /// The same with what is known about the mechanism already: findings on the same evidence, estimated in the same way.
    pub fn run_with(
        &self,
        mut findings: Findings,
        evidence: &Evidence<'_>,
        models: &[Model<'_>],
        progress: &dyn Progress,
    ) -> Result<Evaluation, Error> {
        if let Some(audit) = evidence.audit {
            return self.audited(audit, evidence, models, progress);
        }
        let labels = evidence.labels;
        let complete = labels.n_unlabelled() == 0;
        let models = models.iter().map(|model| Prepped::new(model, labels)).collect::<Result<Vec<_>, _>>()?;
        let settings = self.mechanism(evidence.posteriors.kind())?;
        let mut given = findings.labelling.as_ref().map_or_else(Vec::new, |labelling| labelling.given.clone());
        let reestimate = match complete {
            true => None,
            false => Some(Reestimate::new(&settings, evidence, &given)?),
        };
        let by_columns = if complete { None } else { OfRows::new(self, evidence)? };
        let refined = findings.refinement.as_ref().filter(|refinement| refinement.agrees);
        let refined = refined.map(|_| findings.phi.clone());
        let source = Source { evidence, reestimate, by_columns, refined, settings: self };
        let (expected, marginal) = source.at(None, None)?;
        if let (Some(by_columns), Some((phi, prevalence))) = (&source.by_columns, marginal) {
            given = by_columns.names();
            by_columns.describe(&mut findings, phi, prevalence);
        }
        let cells = self.cells(evidence, &models)?;
        let populations = if complete { &POPULATIONS[..1] } else { &POPULATIONS[..] };
        let table = Layout { models: &models, cells: &cells, populations, classes: labels.n_classes() };
        let naive = table.sheets(&|_| expected.naive(), None);
        let corrected = table.sheets(&|population| expected.of(population, None), None);

        let count = self.replicates(labels.len(), labels.n_classes());
        let mut draws = None;
        if count > 0 {
            let bootstrap = Bootstrap { replicates: count, seed: settings.seed, until: None };
            draws = Some(bootstrap.draw(evidence.plan.n_different(), progress, |weights, replicate| {
                let weights: &[f64] = &evidence.plan.weights_of_rows(weights);
                let (expected, phi) = source.at(Some(weights), Some(replicate))?;
                let sheets = table.sheets(&|population| expected.of(population, Some(weights)), Some(&corrected));
                let values = sheets.into_iter().flat_map(|sheet| sheet.values).collect();
                let weights = labels.labelled().take(MOST_INFLUENCES).map(|(row, _)| weights[row]).collect();
                Ok(Draw { values, weights, phi })
            })?);
        }
        let failed = draws.as_ref().map_or(0, |draws| draws.failed);
        let draws: Vec<Draw> = draws.map_or_else(Vec::new, |draws| draws.values);
        let replicates = |at: usize| draws.iter().map(|draw| draw.values[at]).collect::<Vec<f64>>();
        let numbers = draws.first().map_or(0, |draw| draw.values.len());
        let known = labels.n_labelled() <= MOST_INFLUENCES;
        let influences = Influences::new(draws.iter().filter(|_| known).map(|draw| draw.weights.as_slice()), numbers);

        let mut unseen = if draws.is_empty() { Vec::new() } else { table.unseen(&expected) };
        if let (false, Some(second)) = (draws.is_empty(), source.second_opinion()?) {
            let other = table.sheets(&|population| second.of(population, None), Some(&corrected));
            let pairs = corrected.iter().zip(&other).flat_map(|(one, two)| one.values.iter().zip(&two.values));
            for (unseen, (one, two)) in unseen.iter_mut().zip(pairs) {
                // What follows if the probabilities are off. Undefined metrics say nothing.
                let off = (one.clamp(-1e3, 1e3) - two.clamp(-1e3, 1e3)).powi(2);
                *unseen += if off.is_finite() { off } else { 0.0 };
            }
        }
        let mut warnings = findings.warnings.clone();
        let (metrics, outside) = table.metrics(labels.names(), &naive, &corrected, &unseen, &replicates, &influences);
        warnings.extend(outside);
        if count == 0 {
            warnings.push("there are no intervals; ask for replicates to have some".to_owned());
        }
        if failed > 0 {
            warnings.push(format!("{failed} of {count} replicates failed and were left out"));
        }
        let by_draw: Option<Vec<(Phi, ClassShares)>> = draws.iter().map(|draw| draw.phi.clone()).collect();
        let phi_ci95 = by_draw.filter(|draws| draws.len() > 1).map(|draws| {
            let (phi, prevalence) = draws.into_iter().unzip();
            Replicates { phi, prevalence, failed }.phi_intervals(&findings.phi, CONFIDENCE)
        });
        let kind = if draws.is_empty() { IntervalKind::None } else { IntervalKind::Bootstrap };
        let interval = IntervalAbout { replicates: count, failed_replicates: failed, ..IntervalAbout::new(kind) };
        Ok(Evaluation {
            about: About::from(labels),
            cautions: cautions(&findings)
                .into_iter()
                .chain(evidence.too_cautious(findings.calibration.as_ref()))
                .collect(),
            models: models.iter().map(|model| model.name.to_owned()).collect(),
            metrics,
            differences: table.differences(labels.names(), &naive, &corrected, &replicates, &influences),
            confusion: table.confusion(&naive, &corrected),
            curves: if self.curves { table.curves(&expected) } else { Vec::new() },
            by: settings.by.clone(),
            phi_ci95,
            effective_sample_size: findings.effective_sample_size,
            phi: findings.phi,
            prevalence: findings.prevalence,
            method: findings.method,
            given,
            augmented: self.augmented,
            interval,
            verdict: findings.verdict,
            seed: settings.seed,
            warnings,
        })
    }

    /// The settings of the estimate behind the evaluation.
    pub fn mechanism(&self, kind: PosteriorKind) -> Result<EstimateSettings, Error> {
        let mut settings = self.estimate.clone();
        // The replicates of the evaluation have the mechanism's.
        settings.interval = IntervalMethod::Information;
        settings.replicates = None;
        // A known mechanism is right whatever the probabilities, but calibrated ones leave less to correct.
        if settings.method == Method::Known && settings.calibrate == Calibrate::Auto && kind == PosteriorKind::Labelled
        {
            settings.calibrate = Calibrate::Bcts;
        }
        settings.check(kind)?;
        match (&self.phi_se, &settings.phi) {
            (Some(se), Some(phi)) if se.len() == phi.len() => Ok(settings),
            (None, _) if self.mechanism.is_none() || settings.phi.is_some() => Ok(settings),
            _ => Err(Error::Settings("standard errors of phi, and a known mechanism by columns, go with a known phi")),
        }
    }

    fn replicates(&self, rows: usize, classes: usize) -> usize {
        let numbers = rows.saturating_mul(classes);
        self.estimate.replicates.unwrap_or(match numbers {
            large if large > LARGEST => 0,
            numbers => (AFFORDABLE / numbers.max(1)).clamp(FEWEST_REPLICATES, MOST_REPLICATES),
        })
    }

    /// A known phi with an error of its own.
    fn drawn_phi(&self, replicate: u64) -> Option<Phi> {
        let (phi, se) = (self.estimate.phi.as_ref()?, self.phi_se.as_ref()?);
        let mut rng = ChaCha8Rng::seed_from_u64(self.estimate.seed ^ 0x70_68_69);
        rng.set_stream(replicate + 1);
        let drawn = phi.iter().zip(se).map(|(&phi, &se)| {
            let z: f64 = StandardNormal.sample(&mut rng);
            let logit = (phi / (1.0 - phi)).ln() + z * se / (phi * (1.0 - phi));
            // A phi of 1 has no standard error, and stays where it is.
            if logit.is_finite() { 1.0 / (1.0 + (-logit).exp()) } else { phi }
        });
        Phi::new(drawn.collect()).ok()
    }

    fn cells(&self, evidence: &Evidence<'_>, models: &[Prepped<'_>]) -> Result<Vec<Cell>, Error> {
        let rows = u32::try_from(evidence.labels.len()).map_err(|_| Error::OutOfRange {
            name: "the number of rows",
            value: evidence.labels.len().to_string(),
            range: "below 2^32 for an evaluation",
        })?;
        let mut sets: Vec<(Option<String>, Vec<u32>)> = vec![(None, (0..rows).collect())];
        if let Some(by) = &self.estimate.by {
            let covariates =
                evidence.covariates.ok_or_else(|| Error::UnknownCovariate { name: by.clone(), known: Vec::new() })?;
            let groups = covariates.get(by)?.groups().into_iter().filter(|group| !group.rows.is_empty());
            sets.extend(groups.map(|group| (Some(group.name), group.rows.into_iter().map(|row| row as u32).collect())));
        }
        Ok(sets
            .into_iter()
            .map(|(group, rows)| {
                let orders = models.iter().map(|model| model.orders(&rows)).collect();
                Cell { group, rows, orders }
            })
            .collect())
    }
}

/// Models, groups and populations: a sheet of metrics for each of their combinations.
struct Layout<'a> {
    models: &'a [Prepped<'a>],
    cells: &'a [Cell],
    populations: &'a [Population],
    classes: usize,
}

/// Where a sheet belongs.
struct Place<'a> {
    model: usize,
    cell: &'a Cell,
    cell_at: usize,
    population: Population,
}

impl<'a> Layout<'a> {
    /// In the order of the sheets.
    fn places(&self) -> Vec<Place<'a>> {
        let mut places = Vec::new();
        for model in 0..self.models.len() {
            for &population in self.populations {
                for (cell_at, cell) in self.cells.iter().enumerate() {
                    places.push(Place { model, cell, cell_at, population });
                }
            }
        }
        places
    }

    fn keys(&self, model: usize) -> Vec<Key> {
        self.models[model].keys(self.classes)
    }

    /// All metrics of all places. `near` holds those of the same rows with other weights.
    fn sheets<'b>(&self, counted: &dyn Fn(Population) -> super::Counted<'b>, near: Option<&[Sheet]>) -> Vec<Sheet> {
        let counted: Vec<super::Counted<'b>> = self.populations.iter().map(|&of| counted(of)).collect();
        let places = self.places().into_iter().enumerate();
        places
            .map(|(at, place)| {
                let population = self.populations.iter().position(|of| *of == place.population).unwrap_or(0);
                let start = near.map(|sheets| sheets[at].theta.as_slice());
                let (model, cell) = (&self.models[place.model], place.cell);
                let orders = &cell.orders[place.model];
                model.sheet(&self.keys(place.model), &counted[population], &cell.rows, orders, start)
            })
            .collect()
    }

    /// The variance of every metric that the labelled rows at hand are too few to show.
    fn unseen(&self, expected: &ExpectedLabels<'_>) -> Vec<f64> {
        let places = self.places();
        let all = places.iter().flat_map(|place| {
            let counted = expected.of(place.population, None);
            let (model, cell) = (&self.models[place.model], place.cell);
            model.unseen_variances(&self.keys(place.model), expected, &counted, &cell.rows, &cell.orders[place.model])
        });
        all.collect()
    }

    /// The metrics, and a warning where estimates had to be moved into 0..1.
    fn metrics(
        &self,
        classes: &[String],
        naive: &[Sheet],
        corrected: &[Sheet],
        unseen: &[f64],
        replicates: &dyn Fn(usize) -> Vec<f64>,
        influences: &Influences<'_>,
    ) -> (Vec<Metric>, Option<String>) {
        let (mut metrics, mut outside, mut at) = (Vec::new(), 0, 0);
        for (sheet, place) in self.places().into_iter().enumerate() {
            for (j, key) in self.keys(place.model).into_iter().enumerate() {
                let scale = key.name.scale();
                let raw = corrected[sheet].values[j];
                let inside = if scale == Scale::Share { raw.clamp(0.0, 1.0) } else { raw };
                // Rounding is not worth a warning.
                outside += usize::from((raw - inside).abs() > 1e-9);
                let support = naive[sheet].support(key, self.classes);
                let unseen = unseen.get(at).copied().unwrap_or(0.0);
                metrics.push(Metric {
                    name: key.name,
                    class: key.class.map(|class| classes[class].clone()),
                    group: place.cell.group.clone(),
                    model: self.models[place.model].name.to_owned(),
                    population: place.population,
                    naive: defined(naive[sheet].values[j]),
                    corrected: defined(inside),
                    ci95: interval(inside, &replicates(at), scale, support, unseen, influences),
                });
                at += 1;
            }
        }
        let warning = (outside > 0).then(|| {
            format!(
                "{outside} corrected metrics rest on so few labels that they fell outside 0 to 1; they are given as the nearest bound"
            )
        });
        (metrics, warning)
    }

    fn differences(
        &self,
        classes: &[String],
        naive: &[Sheet],
        corrected: &[Sheet],
        replicates: &dyn Fn(usize) -> Vec<f64>,
        influences: &Influences<'_>,
    ) -> Vec<Difference> {
        let places = self.places();
        let starts: Vec<usize> = corrected
            .iter()
            .scan(0, |next, sheet| {
                let start = *next;
                *next += sheet.values.len();
                Some(start)
            })
            .collect();
        let first_keys = self.keys(0);
        let mut differences = Vec::new();
        for (sheet, place) in places.iter().enumerate().filter(|(_, place)| place.model > 0) {
            let Some(first) = places.iter().position(|other| {
                other.model == 0 && other.population == place.population && other.cell_at == place.cell_at
            }) else {
                continue;
            };
            for (j, key) in self.keys(place.model).into_iter().enumerate() {
                let Some(l) = first_keys.iter().position(|other| *other == key) else { continue };
                if key.name == MetricName::Prevalence {
                    continue;
                }
                let minus = |sheets: &[Sheet]| sheets[sheet].values[j] - sheets[first].values[l];
                let draws: Vec<f64> = replicates(starts[sheet] + j)
                    .into_iter()
                    .zip(replicates(starts[first] + l))
                    .map(|(own, other)| own - other)
                    .collect();
                let bounded = matches!(key.name.scale(), Scale::Share | Scale::Between0And1);
                differences.push(Difference {
                    name: key.name,
                    class: key.class.map(|class| classes[class].clone()),
                    group: place.cell.group.clone(),
                    population: place.population,
                    model: self.models[place.model].name.to_owned(),
                    than: self.models[0].name.to_owned(),
                    naive: defined(minus(naive)),
                    corrected: defined(minus(corrected)),
                    ci95: difference(minus(corrected), &draws, bounded, influences),
                });
            }
        }
        differences
    }

    fn confusion(&self, naive: &[Sheet], corrected: &[Sheet]) -> Vec<ConfusionMatrix> {
        let places = self.places().into_iter().enumerate();
        places
            .map(|(sheet, place)| ConfusionMatrix {
                model: self.models[place.model].name.to_owned(),
                group: place.cell.group.clone(),
                population: place.population,
                naive: naive[sheet].confusion.rows(),
                corrected: corrected[sheet].confusion.rows(),
            })
            .collect()
    }

    fn curves(&self, expected: &ExpectedLabels<'_>) -> Vec<Curves> {
        let counted = expected.of(Population::All, None);
        let cell = &self.cells[0];
        let models = self.models.iter().zip(&cell.orders);
        models
            .filter_map(|(model, orders)| {
                let prepared = model.probabilities.as_ref()?;
                let bins = prepared.reliability(&counted, &model.decisions, &cell.rows);
                let bin = |&[rows, confidence, accuracy]: &[f64; 3]| CalibrationBin { rows, confidence, accuracy };
                Some(Curves {
                    model: model.name.to_owned(),
                    roc: orders.iter().enumerate().map(|(k, o)| o.roc(&counted.column(k), CURVE_POINTS)).collect(),
                    calibration: bins.iter().filter(|bin| bin[0] > 0.0).map(bin).collect(),
                })
            })
            .collect()
    }
}

pub(super) fn defined(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// What speaks against the mechanism that everything here rests on.
pub(super) fn cautions(findings: &Findings) -> Vec<String> {
    let mut cautions = Vec::new();
    if let Some(verdict) = findings.verdict.as_ref().filter(|verdict| verdict.kind == VerdictKind::Unclear) {
        cautions.push(verdict.headline.clone());
    }
    if findings.in_sample.is_some_and(|check| check.suspicious) {
        cautions.push(
            "the model scores labelled rows with more confidence than unlabelled ones, as if it had been trained on them; its true performance is worse than the corrected numbers then"
                .to_owned(),
        );
    }
    cautions
}
