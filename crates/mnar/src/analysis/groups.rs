//! Class shares and phi per group of rows, such as each hospital.

use super::intervals::CONFIDENCE;
use crate::covariates::{Covariate, Grouping, RowCounts};
use crate::error::Error;
use crate::estimate::{logit_interval, normal_quantile};
use crate::labels::Labels;
use crate::mixture::add_to;
use crate::posteriors::Posteriors;
use crate::rows::{Block, Sums};
use crate::test::chi_square_p;
use crate::travel::{bytes, travels};
use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

/// What is said about one group of rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupFindings {
    /// The name of the group, or its range of numbers.
    pub group: String,
    /// The number of rows.
    pub n: usize,
    /// The number of labelled rows.
    pub n_labelled: usize,
    /// P(labelled | class) within the group; null for a class that the group does not seem to have.
    pub phi: Vec<Option<f64>>,
    /// 95% intervals of phi, where there are replicates.
    pub phi_ci95: Option<Vec<(f64, f64)>>,
    /// The class shares of the group.
    pub prevalence: Vec<f64>,
    /// Their 95% intervals, where there are replicates.
    pub prevalence_ci95: Option<Vec<(f64, f64)>>,
    /// The class shares drawn towards those of the other groups, as far as the groups are alike: better for small groups.
    pub prevalence_pooled: Option<Vec<f64>>,
    /// 95% intervals of the pooled shares.
    pub prevalence_pooled_ci95: Option<Vec<(f64, f64)>>,
    /// The expected number of rows of each class; the groups add up to the totals of all rows.
    pub totals: Vec<f64>,
}

/// Whether the groups have the same class shares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Homogeneity {
    /// The Wald statistic of equal shares.
    pub statistic: f64,
    /// Its degrees of freedom.
    pub df: usize,
    /// The p-value.
    pub p_value: f64,
}

/// What is said about all groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ByGroup {
    /// The column.
    pub column: String,
    /// Whether the groups have the same class shares; `None` without replicates.
    pub homogeneity: Option<Homogeneity>,
}

/// The group of every row.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    column: String,
    names: Vec<String>,
    of: Vec<u32>,
}

impl Groups {
    pub(super) fn new(column: &Covariate) -> Result<Self, Error> {
        column.check()?;
        let mut of = vec![0; column.len()];
        let mut names = Vec::new();
        for group in column.groups().into_iter().filter(|group| !group.rows.is_empty()) {
            group.rows.iter().for_each(|&row| of[row] = names.len() as u32);
            names.push(group.name);
        }
        Ok(Self { column: column.name.clone(), names, of })
    }

    /// For every group and class: the weight of its labelled rows, and the expected weight of its unlabelled rows.
    /// `odds` is (1 − phi)/phi of each class, up to a common factor: t ∝ s·odds is the posterior of an unlabelled row.
    pub(super) fn masses(
        &self,
        posteriors: &Posteriors,
        labels: &Labels,
        weights: Option<&[f64]>,
        odds: &[f64],
    ) -> GroupMasses {
        let k = labels.n_classes();
        let mut masses = GroupMasses::zero(k, self.names.len());
        let columns: Vec<&[f64]> = (0..k).map(|j| posteriors.column(j)).collect();
        let block = Block { columns: &columns, labels: labels.as_slice(), weights, given: &[] };
        masses.add(&block, odds, |row| self.of[row] as usize);
        masses
    }

    /// Findings per group, with intervals from the replicates if there are some.
    pub(super) fn findings(
        &self,
        labels: &Labels,
        found: &GroupMasses,
        replicates: &[GroupMasses],
    ) -> (ByGroup, Vec<GroupFindings>) {
        let mut rows = vec![RowCounts::default(); self.names.len()];
        self.of.iter().enumerate().for_each(|(row, &group)| rows[group as usize].add(labels.is_labelled(row), 1));
        Self::described(&self.column, &self.names, &rows, found, replicates)
    }

    /// The same from the number of rows of every group.
    fn described(
        column: &str,
        names: &[String],
        rows: &[RowCounts],
        found: &GroupMasses,
        replicates: &[GroupMasses],
    ) -> (ByGroup, Vec<GroupFindings>) {
        let (k, groups) = (found.k, names.len());
        let spread = |value: &dyn Fn(&GroupMasses) -> Option<f64>| -> Option<f64> {
            let logits: Vec<f64> = replicates
                .iter()
                .filter_map(value)
                .filter(|p| *p > 0.0 && *p < 1.0)
                .map(|p| (p / (1.0 - p)).ln())
                .collect();
            if logits.len() < 20 || logits.len() * 2 < replicates.len() {
                return None;
            }
            let mean = logits.iter().sum::<f64>() / logits.len() as f64;
            let squares: f64 = logits.iter().map(|logit| (logit - mean).powi(2)).sum();
            Some((squares / (logits.len() - 1) as f64).sqrt())
        };
        let interval = |centre: f64, sd: Option<f64>| match sd {
            Some(sd) if centre > 0.0 && centre < 1.0 => {
                logit_interval(centre, sd * centre * (1.0 - centre), CONFIDENCE)
            }
            _ => (0.0, 1.0),
        };
        let pooled: Vec<Vec<(f64, (f64, f64))>> = (0..k)
            .map(|class| {
                let centres: Vec<f64> = (0..groups).map(|group| found.share(group, class)).collect();
                let sds: Vec<Option<f64>> =
                    (0..groups).map(|group| spread(&|masses| Some(masses.share(group, class)))).collect();
                pool(&centres, &sds)
            })
            .collect();
        let has_replicates = !replicates.is_empty();
        let groups_found = (0..groups)
            .map(|group| {
                let shares: Vec<f64> = (0..k).map(|class| found.share(group, class)).collect();
                let intervals_of = |value: &dyn Fn(&GroupMasses, usize) -> Option<f64>| {
                    has_replicates.then(|| {
                        (0..k)
                            .map(|class| {
                                interval(value(found, class).unwrap_or(0.0), spread(&|masses| value(masses, class)))
                            })
                            .collect()
                    })
                };
                GroupFindings {
                    group: names[group].clone(),
                    n: rows[group].rows(),
                    n_labelled: rows[group].labelled,
                    phi: (0..k).map(|class| found.phi(group, class)).collect(),
                    phi_ci95: intervals_of(&|masses, class| masses.phi(group, class)),
                    prevalence_ci95: intervals_of(&|masses, class| Some(masses.share(group, class))),
                    prevalence_pooled: has_replicates.then(|| pooled.iter().map(|of| of[group].0).collect()),
                    prevalence_pooled_ci95: has_replicates.then(|| pooled.iter().map(|of| of[group].1).collect()),
                    totals: (0..k).map(|class| found.total(group, class)).collect(),
                    prevalence: shares,
                }
            })
            .collect();
        let homogeneity = has_replicates.then(|| homogeneity(found, replicates, groups)).flatten();
        (ByGroup { column: column.to_owned(), homogeneity }, groups_found)
    }
}

/// Labelled and expected unlabelled rows of every group and class.
#[derive(Clone, Debug)]
pub(super) struct GroupMasses {
    k: usize,
    labelled: Vec<f64>,
    unlabelled: Vec<f64>,
}

bytes!(GroupMasses { k, labelled, unlabelled });

impl GroupMasses {
    fn zero(k: usize, groups: usize) -> Self {
        Self { k, labelled: vec![0.0; groups * k], unlabelled: vec![0.0; groups * k] }
    }

    fn add(&mut self, block: &Block<'_>, odds: &[f64], group: impl Fn(usize) -> usize) {
        let k = self.k;
        let mut t = vec![0.0; k];
        for row in 0..block.len() {
            let (weight, start) = (block.weight(row), group(row) * k);
            match block.labels[row] {
                Some(class) => self.labelled[start + class.index()] += weight,
                None => {
                    t.iter_mut().enumerate().for_each(|(j, t)| *t = block.columns[j][row] * odds[j]);
                    let total: f64 = t.iter().sum();
                    if total > 0.0 {
                        t.iter().enumerate().for_each(|(j, t)| self.unlabelled[start + j] += weight * t / total);
                    }
                }
            }
        }
    }

    fn total(&self, group: usize, class: usize) -> f64 {
        let at = group * self.k + class;
        self.labelled[at] + self.unlabelled[at]
    }

    fn share(&self, group: usize, class: usize) -> f64 {
        let all: f64 = (0..self.k).map(|class| self.total(group, class)).sum();
        if all > 0.0 { self.total(group, class) / all } else { 0.0 }
    }

    fn phi(&self, group: usize, class: usize) -> Option<f64> {
        let total = self.total(group, class);
        (total > 0.0).then(|| self.labelled[group * self.k + class] / total)
    }
}

/// The sums behind the findings per group, over rows whose group is a number among their given columns.
#[derive(Clone)]
pub(crate) struct GroupSums {
    /// (1 − phi)/phi of each class, up to a common factor.
    odds: Vec<f64>,
    /// The position of the group among the given columns.
    column: usize,
    masses: GroupMasses,
    rows: Vec<RowCounts>,
}

bytes!(GroupSums { odds, column, masses, rows });

impl GroupSums {
    pub(super) fn new(odds: Vec<f64>, column: usize, groups: usize) -> Self {
        let masses = GroupMasses::zero(odds.len(), groups);
        Self { odds, column, masses, rows: vec![RowCounts::default(); groups] }
    }

    /// Groups without rows are left out, as they are in memory.
    pub(super) fn findings(&self, groups: &Grouping) -> (ByGroup, Vec<GroupFindings>) {
        let (by, mut found) = Groups::described(&groups.column, &groups.names, &self.rows, &self.masses, &[]);
        found.retain(|group| group.n > 0);
        (by, found)
    }
}

impl Sums for GroupSums {
    fn add(&mut self, block: &Block<'_>) {
        let last = self.rows.len() - 1;
        let groups = block.given[self.column];
        let group = |row: usize| (groups[row] as usize).min(last);
        self.masses.add(block, &self.odds, group);
        block.labels.iter().enumerate().for_each(|(row, label)| self.rows[group(row)].add(label.is_some(), 1));
    }

    fn merge(&mut self, other: Self) {
        add_to(&mut self.masses.labelled, &other.masses.labelled);
        add_to(&mut self.masses.unlabelled, &other.masses.unlabelled);
        for (rows, other) in self.rows.iter_mut().zip(other.rows) {
            rows.add(true, other.labelled);
            rows.add(false, other.unlabelled);
        }
    }

    travels!(Groups);
}

/// Random effects on the logit scale (DerSimonian and Laird): every group's share is drawn towards the mean of all, the more so
/// the less is known about it and the more alike the groups are.
fn pool(centres: &[f64], sds: &[Option<f64>]) -> Vec<(f64, (f64, f64))> {
    let logit = |p: f64| (p.clamp(1e-6, 1.0 - 1e-6) / (1.0 - p.clamp(1e-6, 1.0 - 1e-6))).ln();
    let back = |x: f64| 1.0 / (1.0 + (-x).exp());
    let known: Vec<(f64, f64)> = centres
        .iter()
        .zip(sds)
        .filter_map(|(&centre, sd)| {
            sd.filter(|sd| *sd > 0.0 && centre > 0.0 && centre < 1.0).map(|sd| (logit(centre), sd * sd))
        })
        .collect();
    let weights: f64 = known.iter().map(|(_, variance)| 1.0 / variance).sum();
    let fixed = known.iter().map(|(value, variance)| value / variance).sum::<f64>() / weights;
    let q: f64 = known.iter().map(|(value, variance)| (value - fixed).powi(2) / variance).sum();
    let squares: f64 = known.iter().map(|(_, variance)| 1.0 / (variance * variance)).sum();
    let freedom = known.len().saturating_sub(1) as f64;
    let between = ((q - freedom) / (weights - squares / weights)).max(0.0);
    let random: f64 = known.iter().map(|(_, variance)| 1.0 / (variance + between)).sum();
    let mean = known.iter().map(|(value, variance)| value / (variance + between)).sum::<f64>() / random;
    let z = normal_quantile(CONFIDENCE);
    centres
        .iter()
        .zip(sds)
        .map(|(&centre, sd)| match sd {
            Some(sd) if *sd > 0.0 && random.is_finite() && random > 0.0 && centre > 0.0 && centre < 1.0 => {
                let variance = sd * sd;
                let own = between / (between + variance);
                let value = own * logit(centre) + (1.0 - own) * mean;
                // The error of the mean counts as far as the group leans on it.
                let sd = (own * variance + (1.0 - own).powi(2) / random).sqrt();
                (back(value), (back(value - z * sd), back(value + z * sd)))
            }
            _ => (centre, (0.0, 1.0)),
        })
        .collect()
}

/// The Wald test that all groups have the same shares, with the covariance of the replicates.
fn homogeneity(found: &GroupMasses, replicates: &[GroupMasses], groups: usize) -> Option<Homogeneity> {
    let k = found.k;
    let size = (groups - 1) * (k - 1);
    // A covariance of many numbers from few replicates is singular.
    if groups < 2 || size == 0 || 3 * size > replicates.len() {
        return None;
    }
    let differences = |masses: &GroupMasses| {
        DVector::from_fn(size, |at, _| {
            let (group, class) = (1 + at / (k - 1), at % (k - 1));
            masses.share(group, class) - masses.share(0, class)
        })
    };
    let draws: Vec<DVector<f64>> = replicates.iter().map(&differences).collect();
    let mean = draws.iter().fold(DVector::zeros(size), |sum, draw| sum + draw) / draws.len() as f64;
    let mut covariance = DMatrix::zeros(size, size);
    for draw in &draws {
        let off = draw - &mean;
        covariance += &off * off.transpose();
    }
    covariance /= (draws.len() - 1) as f64;
    let observed = differences(found);
    let statistic = observed.dot(&covariance.cholesky()?.solve(&observed));
    Some(Homogeneity { statistic, df: size, p_value: chi_square_p(statistic, size) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alike_groups_are_pooled_and_different_ones_are_not() {
        let logit = |p: f64| (p / (1.0 - p)).ln();
        let sds = [Some(0.4), Some(0.4), Some(0.4)];
        let alike = pool(&[0.28, 0.30, 0.32], &sds);
        assert!(alike.iter().all(|(p, _)| (p - 0.30).abs() < 0.003), "{alike:?}");
        let different = pool(&[0.02, 0.3, 0.9], &[Some(0.05); 3]);
        assert!((logit(different[0].0) - logit(0.02)).abs() < 0.01, "{different:?}");
        // The interval of a pooled share is narrower than its own.
        let (low, high) = alike[1].1;
        let own = logit_interval(0.3, 0.4 * 0.3 * 0.7, 0.95);
        assert!(low > own.0 && high < own.1);
    }
}
