//! What decided who got labelled: chance, the class, columns, or both. Three questions, three p-values, one verdict.

use super::Evidence;
use super::effects::Effects;
use super::recipe::{GivenColumns, Ran, SCORED_ROWS, uncertainty};
use crate::covariates::{Covariate, Covariates, Design, Product};
use crate::error::Error;
use crate::labels::{Labels, RareClass};
use crate::mechanism::{Direction, Mechanism, MechanismEstimate, Reference, Scores, orthogonal_check, quadratic_form};
use crate::phi::Phi;
use crate::posteriors::Posteriors;
use crate::rows::Sample;
use crate::shares::ClassShares;
use crate::test::{TestResult, hotelling_p};
use nalgebra::{DMatrix, DVector};
use ndarray::Array2;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// The level at which the questions are answered.
pub const LEVEL: f64 = 0.05;

/// The share of the level that the classifier's certainty may use up; the columns use up the rest. It is a question of its
/// own, and the one whose failure does most harm: no column can repair it.
const EASY_ROWS: f64 = 0.4;

/// The labelling rate of some rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LabellingRate {
    /// The name or the range of numbers that the rows share.
    pub group: String,
    /// How many rows there are.
    pub rows: usize,
    /// The share of them that is labelled.
    pub rate: f64,
}

/// Whether r relates to one column beyond what the mechanism explains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ColumnCheck {
    /// The column.
    pub column: String,
    /// The statistic.
    pub statistic: f64,
    /// Its degrees of freedom.
    pub df: usize,
    /// The p-value of this column alone.
    pub p_value: f64,
    /// The p-value corrected for all columns that were looked at (Holm).
    pub p_holm: f64,
    /// The labelling rate along the column.
    pub rates: Vec<LabellingRate>,
}

/// Is the mechanism enough, or does r relate to columns beyond it?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ColumnsCheck {
    /// The columns that the mechanism depends on already.
    pub given: Vec<String>,
    /// What the scores were compared with.
    pub reference: Reference,
    /// The smallest corrected p-value.
    pub p_value: f64,
    /// One entry per column that is not given, the strongest first.
    pub columns: Vec<ColumnCheck>,
    /// Whether r relates to how sure the classifier is, as when easy rows are labelled first.
    pub easy_rows: ColumnCheck,
    /// Columns that tell exactly which rows are labelled, as those do that are filled in with the label. They are not checked.
    #[serde(default)]
    pub separating: Vec<String>,
}

/// The effect of one column on the odds of being labelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ColumnEffect {
    /// The column.
    pub column: String,
    /// What odds ratios compare with: the most common name, or one standard deviation less.
    pub compared_with: String,
    /// The effect of each name, or of the numbers.
    pub terms: Vec<TermEffect>,
    /// The labelling rate along the column.
    pub rates: Vec<LabellingRate>,
}

/// An odds ratio of being labelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TermEffect {
    /// The name, or what the numbers are counted in.
    pub term: String,
    /// By how much the odds of a label are multiplied.
    pub odds_ratio: f64,
    /// Its 95% interval.
    pub ci95: (f64, f64),
}

/// The estimate where the class alone decides, for comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClassOnly {
    /// P(labelled | class).
    pub phi: Phi,
    /// The class shares.
    pub prevalence: ClassShares,
    /// Their 95% intervals.
    #[serde(default, deserialize_with = "crate::nullable::intervals")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<(Option<f64>, Option<f64>)>>"))]
    pub prevalence_ci95: Option<Vec<(f64, f64)>>,
}

/// What was found about who gets labelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Labelling {
    /// The level at which the questions are answered.
    pub level: f64,
    /// Is it chance?
    pub chance: TestResult,
    /// Is the class enough?
    pub class_enough: Option<ColumnsCheck>,
    /// Where the mechanism depends on columns: are class and columns enough?
    pub class_and_columns_enough: Option<ColumnsCheck>,
    /// Where the mechanism depends on columns: does the class matter beyond them?
    pub class_beyond_columns: Option<TestResult>,
    /// The columns that the mechanism depends on.
    pub given: Vec<String>,
    /// Whether those columns were found here, and not asked for.
    pub found_here: bool,
    /// Their effects.
    pub effects: Vec<ColumnEffect>,
    /// The estimate where the class alone decides, if the mechanism depends on columns.
    pub class_only: Option<ClassOnly>,
}

/// The columns whose directions are scored beside a mechanism.
pub(super) struct Candidates<'a> {
    covariates: &'a Covariates,
    /// The position among the covariates, and how many directions it has.
    columns: Vec<(usize, usize)>,
    directions: Vec<Vec<f64>>,
    pub(super) design: Design,
    /// Columns that tell exactly which rows are labelled.
    separating: Vec<String>,
}

impl<'a> Candidates<'a> {
    /// All columns but those that are given and those that cannot be checked (identifiers, columns that never vary).
    pub(super) fn new(covariates: &'a Covariates, given: &[String], labels: &Labels) -> Result<Self, Error> {
        let design = Design::with_products(&covariates.usable(given, labels)?, covariates.products(given)?)?;
        let (mut columns, mut directions, mut separating) = (Vec::new(), Vec::new(), Vec::new());
        for (position, column) in covariates.columns().iter().enumerate() {
            if design.column_names().contains(&column.name) || column.check().is_err() {
                continue;
            }
            if column.separates(labels) {
                separating.push(column.name.clone());
                continue;
            }
            let of = column.directions();
            if !of.is_empty() {
                columns.push((position, of.len()));
                directions.extend(of);
            }
        }
        Ok(Self { covariates, columns, directions, design, separating })
    }

    /// The terms of the mechanism, then the directions.
    pub(super) fn given(&self) -> GivenColumns<'_> {
        let columns = self.design.columns().iter().chain(&self.directions).map(Vec::as_slice).collect();
        GivenColumns { columns, terms: self.design.len(), scored: true, by: None }
    }

    /// The terms of the mechanism, and no direction beside them.
    pub(super) fn terms_alone(&self) -> GivenColumns<'_> {
        let columns = self.design.columns().iter().map(Vec::as_slice).collect();
        GivenColumns { columns, terms: self.design.len(), scored: true, by: None }
    }

    /// One group per column, and the classifier's uncertainty as the last.
    fn groups(&self) -> Vec<usize> {
        self.columns.iter().map(|(_, size)| *size).chain([1]).collect()
    }

    /// The share of the level that each group may use up.
    fn shares_of_level(&self) -> Vec<f64> {
        match self.columns.len() {
            0 => vec![1.0],
            columns => vec![(1.0 - EASY_ROWS) / columns as f64; columns].into_iter().chain([EASY_ROWS]).collect(),
        }
    }

    /// Checks every column against the mechanism, by replicates that refit if there are some.
    pub(super) fn check(
        &self,
        ran: &Ran,
        replicates: Vec<Vec<f64>>,
        posteriors: &Posteriors,
        labels: &Labels,
        scored: bool,
    ) -> Result<Option<ColumnsCheck>, Error> {
        if !scored {
            return Ok(None);
        }
        let (tests, reference) = match &ran.scores {
            Some(observed) if !replicates.is_empty() => {
                let scores = Scores { observed: observed.clone(), replicates };
                (scores.check(&self.groups(), labels.n_labelled()), Reference::Refit)
            }
            _ => (self.orthogonal(ran, posteriors, labels)?, Reference::Orthogonal),
        };
        let holm = weighted_holm(&tests.iter().map(|test| test.p_value).collect::<Vec<_>>(), &self.shares_of_level());
        let entry = |position: usize, column: String, rates: Vec<LabellingRate>| {
            let Direction { statistic, df, p_value } = tests[position];
            ColumnCheck { column, statistic, df, p_value, p_holm: holm[position], rates }
        };
        let mut columns: Vec<ColumnCheck> = self
            .columns
            .iter()
            .enumerate()
            .map(|(position, (column, _))| {
                let covariate = &self.covariates.columns()[*column];
                entry(position, covariate.name.clone(), rates(covariate, labels))
            })
            .collect();
        columns.sort_by(|a, b| a.p_value.total_cmp(&b.p_value).then(per_df(b).total_cmp(&per_df(a))));
        let easy_rows = entry(self.columns.len(), "how sure the classifier is".to_owned(), Vec::new());
        let p_value = holm.iter().copied().fold(1.0, f64::min);
        let given = self.design.column_names().to_vec();
        let separating = self.separating.clone();
        Ok(Some(ColumnsCheck { given, reference, p_value, columns, easy_rows, separating }))
    }

    /// The orthogonal check, of large tables on a sample of the rows.
    fn orthogonal(&self, ran: &Ran, posteriors: &Posteriors, labels: &Labels) -> Result<Vec<Direction>, Error> {
        let start = match &ran.mechanism {
            Some(fitted) => fitted.mechanism.clone(),
            None => Mechanism::of_classes(&ran.estimate.phi),
        };
        let columns = self.given().columns;
        if labels.len() <= SCORED_ROWS {
            let uncertainty = uncertainty(posteriors);
            let columns: Vec<&[f64]> = columns.into_iter().chain([uncertainty.as_slice()]).collect();
            let sample = Sample::new(posteriors, labels)?.given(&columns)?;
            return orthogonal_check(&sample, &start, &self.groups());
        }
        let mut rng = ChaCha8Rng::seed_from_u64(labels.len() as u64);
        let mut rows = rand::seq::index::sample(&mut rng, labels.len(), SCORED_ROWS).into_vec();
        rows.sort_unstable();
        let few = Array2::from_shape_fn((rows.len(), posteriors.n_classes()), |(i, k)| posteriors.column(k)[rows[i]]);
        let posteriors = Posteriors::new(few, posteriors.kind())?;
        let labels = Labels::new(rows.iter().map(|&row| labels.get(row)).collect(), labels.names().to_vec())?;
        let mut picked: Vec<Vec<f64>> =
            columns.iter().map(|column| rows.iter().map(|&row| column[row]).collect()).collect();
        picked.push(uncertainty(&posteriors));
        let columns: Vec<&[f64]> = picked.iter().map(Vec::as_slice).collect();
        orthogonal_check(&Sample::new(&posteriors, &labels)?.given(&columns)?, &start, &self.groups())
    }

    /// The effects of the given columns, with intervals from the replicates of their coefficients or from the information.
    pub(super) fn effects(
        &self,
        fitted: &MechanismEstimate,
        replicates: &[Vec<f64>],
        labels: &Labels,
    ) -> Result<Vec<ColumnEffect>, Error> {
        let nonzero = |column: &Vec<f64>| column.iter().filter(|value| **value != 0.0).count();
        let rows: Vec<usize> = self.design.columns().iter().map(nonzero).collect();
        let effects = Effects { encoder: &self.design.encoder, fitted, replicates, rows: &rows };
        Ok(effects.all(|name| self.covariates.get(name).map_or_else(|_| Vec::new(), |column| rates(column, labels))))
    }
}

/// The p-value of whether r goes with a column by itself, whatever the class: the score test of a logistic regression of r on the
/// terms that the column would bring into a mechanism.
pub(super) fn goes_with(column: &str, covariates: &Covariates, labels: &Labels) -> Result<f64, Error> {
    let design = Design::new(&covariates.usable(&[column.to_owned()], labels)?)?;
    let (n, terms) = (labels.len() as f64, design.columns());
    let rate = labels.n_labelled() as f64 / n;
    let means: Vec<f64> = terms.iter().map(|term| term.iter().sum::<f64>() / n).collect();
    let mut scores = DVector::zeros(terms.len());
    let mut covariance = DMatrix::zeros(terms.len(), terms.len());
    for row in 0..labels.len() {
        let off = DVector::from_iterator(terms.len(), terms.iter().zip(&means).map(|(term, mean)| term[row] - mean));
        scores.axpy(f64::from(u8::from(labels.is_labelled(row))) - rate, &off, 1.0);
        covariance.ger(rate * (1.0 - rate), &off, &off, 1.0);
    }
    let (statistic, df) = quadratic_form(&scores, &covariance);
    Ok(hotelling_p(statistic, df, n - 1.0))
}

/// Rows of one column that are labelled far more or less often than the mechanism says.
pub(super) struct Unexplained {
    pub(super) column: String,
    pub(super) group: String,
    pub(super) rate: f64,
    pub(super) expected: f64,
}

/// Rows of one column that labelling depends on, none of which has a label.
pub(super) struct NoLabels {
    pub(super) column: String,
    pub(super) group: String,
    pub(super) rows: usize,
}

/// A group without labels would have had at least this many at the labelling rate of all rows. By chance that happens once in 20,000
/// groups.
const MISSED_LABELS: f64 = 10.0;

/// The largest group of rows, along the columns that the mechanism depends on, that has no label at all. The effect of such a group has no
/// finite value, and what the classifier says of its rows was learnt elsewhere: where one of three hospitals had no label, the most common
/// class was missed by its interval in 10 of 12 draws.
pub(super) fn no_labels(covariates: &Covariates, labels: &Labels, given: &[String]) -> Option<NoLabels> {
    let rate = labels.n_labelled() as f64 / labels.len() as f64;
    let depends =
        |name: &str| given.iter().any(|given| given.split('*').any(|part| part.trim() == name) || given == name);
    let columns = covariates.columns().iter().filter(|column| depends(&column.name) && column.check().is_ok());
    let groups = columns.flat_map(|column| column.groups().into_iter().map(move |group| (&column.name, group)));
    groups
        .filter(|(_, group)| rate * group.rows.len() as f64 >= MISSED_LABELS)
        .filter(|(_, group)| !group.rows.iter().any(|&row| labels.is_labelled(row)))
        .max_by_key(|(_, group)| group.rows.len())
        .map(|(column, group)| NoLabels { column: column.clone(), group: group.name, rows: group.rows.len() })
}

/// The class that was set aside for want of labels and may have the largest share, if that can be more than [`LOST_SHARE`]: what its labels
/// allow (the 95% limit of Poisson's distribution) at the labelling rate of the class that is labelled least. It may be labelled less
/// often still.
pub(super) fn lost_class<'a>(set_aside: &'a [RareClass], phi: &Phi, n: usize) -> Option<&'a RareClass> {
    let lowest = phi.iter().copied().fold(1.0, f64::min);
    let share = |rare: &RareClass| {
        let limit =
            ChiSquared::new(2.0 * (rare.labels + 1) as f64).map_or(f64::INFINITY, |chi| chi.inverse_cdf(0.95) / 2.0);
        limit / (n as f64 * lowest)
    };
    let largest = set_aside.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
    largest.filter(|rare| share(rare) > LOST_SHARE)
}

/// A class that was set aside is not mentioned in the verdict if its share can hardly be larger than this.
const LOST_SHARE: f64 = 0.01;

/// Standard errors, share of rows, and rows, by which a labelling rate must be off to contradict the mechanism. The scores of
/// the other checks follow the straight lines that a classifier knows; this one is for all that bends, and so gross that no
/// misfit of the classifier explains it.
const OFF_BY: (f64, f64, usize) = (5.0, 0.1, 30);

/// The group of rows, along any column, whose labelling rate is furthest from what the mechanism expects, if that is far.
/// `expected` is P(r=1|x) of every row.
pub(super) fn unexplained(covariates: &Covariates, labels: &Labels, expected: &[f64]) -> Option<Unexplained> {
    let (errors, share, fewest) = OFF_BY;
    let mut worst: Option<(f64, Unexplained)> = None;
    for column in covariates.columns().iter().filter(|column| column.check().is_ok() && !column.separates(labels)) {
        for group in column.groups().into_iter().filter(|group| group.rows.len() >= fewest) {
            let rows = group.rows.len() as f64;
            let labelled = group.rows.iter().filter(|&&row| labels.is_labelled(row)).count() as f64;
            let sum: f64 = group.rows.iter().map(|&row| expected[row]).sum();
            let variance: f64 = group.rows.iter().map(|&row| expected[row] * (1.0 - expected[row])).sum();
            let off = (labelled - sum).abs();
            let z = off / variance.sqrt().max(1.0);
            if off >= share * rows && z >= errors && worst.as_ref().is_none_or(|(worst, _)| z > *worst) {
                let (column, rate, expected) = (column.name.clone(), labelled / rows, sum / rows);
                worst = Some((z, Unexplained { column, group: group.name, rate, expected }));
            }
        }
    }
    worst.map(|(_, found)| found)
}

fn per_df(check: &ColumnCheck) -> f64 {
    check.statistic / check.df.max(1) as f64
}

/// The labelling rate along a column.
pub(super) fn rates(column: &Covariate, labels: &Labels) -> Vec<LabellingRate> {
    let groups = column.groups().into_iter().filter(|group| !group.rows.is_empty());
    groups
        .map(|group| {
            let labelled = group.rows.iter().filter(|&&row| labels.is_labelled(row)).count();
            let rows = group.rows.len();
            LabellingRate { group: group.name, rows, rate: labelled as f64 / rows as f64 }
        })
        .collect()
}

/// Holm's correction: every p-value times the number of hypotheses not rejected before it.
pub(super) fn holm(p: &[f64]) -> Vec<f64> {
    weighted_holm(p, &vec![1.0; p.len()])
}

/// Holm's correction with hypotheses that may use up different shares of the level.
fn weighted_holm(p: &[f64], shares: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| (p[a] / shares[a]).total_cmp(&(p[b] / shares[b])));
    let mut corrected = vec![1.0; p.len()];
    let mut left: f64 = shares.iter().sum();
    let mut largest: f64 = 0.0;
    for i in order {
        largest = largest.max((p[i] * left / shares[i]).min(1.0));
        corrected[i] = largest;
        left -= shares[i];
    }
    corrected
}

/// How much of the scores' variation the given columns leave, at least, for the effect of the class to be told from theirs.
const SHADOW: f64 = 0.01;

/// Whether anything is left in the features that tells the classes apart once the columns are given: the share of the
/// variation of the scores that smooth functions of the columns do not explain.
pub(super) fn shadow(
    evidence: &Evidence<'_>,
    posteriors: &Posteriors,
    given: &Covariates,
    products: &[Product],
) -> Result<bool, Error> {
    if let (Some(features), Some(all)) = (&evidence.features, evidence.covariates) {
        let every = !features.names.is_empty() && all.columns().iter().all(|column| given.get(&column.name).is_ok());
        if every {
            return Ok(false);
        }
    }
    let left = crate::test::beyond_columns::unexplained(posteriors, &evidence.plan, given, products)?;
    Ok(left > SHADOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_corrects_as_in_the_textbook() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn a_larger_share_of_the_level_is_corrected_less() {
        // By hand: 0.02/0.4, then 0.02/0.3 · 0.6 of what is left, which is less, so the first one stays.
        let corrected = weighted_holm(&[0.02, 0.02, 0.5], &[0.4, 0.3, 0.3]);
        for (found, expected) in corrected.iter().zip([0.05, 0.05, 0.5]) {
            assert!((found - expected).abs() < 1e-12, "{corrected:?}");
        }
    }
}
