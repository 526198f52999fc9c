//! Is the class enough? Whether r relates to directions of x beyond what a mechanism explains.
//!
//! The score of a direction g is Σ_i (1[r_i=0] − P(r_i=0|x_i)) g_i, with the scores of the mechanism's own parameters
//! projected out. Its variance depends on how the classifier was learnt, so the chi-square reference of a logistic
//! regression does not hold: on Pima it rejected 18% of true self-masking at the 5% level. Two references do:
//!
//! - *refit*: the spread of the score over bootstrap replicates that refit the classifier, the same ones that intervals
//!   are made of. Powerful, because the classifier's own shape tells what r should look like.
//! - *orthogonal*: the odds that the classifier expects of a labelled row are replaced by the odds of its actual label.
//!   E[1[r=0] − r exp(−a_y − b'z) | x] = 0 under the mechanism whatever the classifier, so errors of the classifier have
//!   no first-order effect, and nothing need be refitted. It has less power with few labels.

use super::sums::Selection;
use super::{Mechanism, MechanismEstimate};
use crate::error::Error;
use crate::rows::{Rows, Sample};
use crate::test::hotelling_p;
use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

/// What the scores are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// Their spread over replicates that refit the classifier.
    Refit,
    /// Their sampling variance where actual labels stand in for the classifier's expectation.
    Orthogonal,
}

/// Directions that are tested together, such as the names of one column.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// The quadratic form of the scores.
    pub statistic: f64,
    /// Its degrees of freedom.
    pub df: usize,
    /// The p-value.
    pub p_value: f64,
}

/// Scores of directions in the rows as they are, and in the replicates of a bootstrap that refits.
#[derive(Clone, Debug)]
pub struct Scores {
    /// The scores of the rows as they are.
    pub observed: Vec<f64>,
    /// The scores of the replicates.
    pub replicates: Vec<Vec<f64>>,
}

/// Scores of the directions that follow the terms of the mechanism among the given columns; `None` where the information
/// about the mechanism is singular.
pub(crate) fn projected_scores(
    rows: &Sample<'_>,
    fitted: &MechanismEstimate,
    directions: usize,
) -> Result<Option<Vec<f64>>, Error> {
    Ok(rows.scan(&Selection::at(&fitted.mechanism, directions))?.projected_scores())
}

/// Directions whose variance is below this share of the largest of their group hold only rounding error.
const RELATIVE_RANK: f64 = 1e-8;

impl Scores {
    /// One test per group of consecutive directions, whose sizes are given. `labels` is the number of labelled rows that the
    /// classifier learnt from: with few labels for many directions the spread is a little too small, as the residual
    /// variance of a regression is, and is corrected in the same way.
    pub fn check(&self, groups: &[usize], labels: usize) -> Vec<Direction> {
        let draws = self.replicates.len();
        let directions = self.observed.len().min(labels / 3);
        let small_sample = labels as f64 / (labels - directions).max(1) as f64;
        let mut start = 0;
        groups
            .iter()
            .map(|&size| {
                let range = start..start + size;
                start += size;
                let mean: Vec<f64> = range
                    .clone()
                    .map(|j| self.replicates.iter().map(|scores| scores[j]).sum::<f64>() / draws as f64)
                    .collect();
                let mut covariance = DMatrix::zeros(size, size);
                for scores in &self.replicates {
                    let off = DVector::from_fn(size, |j, _| scores[range.start + j] - mean[j]);
                    covariance += &off * off.transpose();
                }
                covariance *= small_sample / (draws.max(2) - 1) as f64;
                let observed = DVector::from_column_slice(&self.observed[range]);
                let (statistic, df) = quadratic_form(&observed, &covariance);
                // The covariance is estimated from the replicates: Hotelling's T².
                Direction { statistic, df, p_value: hotelling_p(statistic, df, draws as f64 - 1.0) }
            })
            .collect()
    }
}

/// The orthogonal moment equations Σ_i (1[r_i=0] − r_i exp(−a_y − b'z)) P(r_i=1|x_i) (t_i, z_i) = 0: the score equations of the
/// likelihood with the actual label in place of the classifier's expectation. Their solution is consistent whatever the
/// classifier, as long as its scores are related to the classes.
struct Orthogonal<'a> {
    sample: Sample<'a>,
    /// Classes and terms.
    k: usize,
    d: usize,
}

impl Orthogonal<'_> {
    /// P(r=1|x) of a row; fills `slope` with (t, z).
    fn row(&self, theta: &DVector<f64>, i: usize, slope: &mut DVector<f64>) -> f64 {
        let (k, given) = (self.k, self.sample.given_columns());
        let probabilities = self.sample.posteriors().row(i);
        let mut total = 0.0;
        for a in 0..k {
            slope[a] = probabilities[a] * (-theta[a]).exp();
            total += slope[a];
        }
        let mut log_odds = total.ln();
        for a in 0..k {
            slope[a] /= total;
        }
        for j in 0..self.d {
            slope[k + j] = given[j][i];
            log_odds -= theta[k + j] * given[j][i];
        }
        1.0 / (1.0 + log_odds.exp())
    }

    /// exp(−a_y − b'z) of a labelled row.
    fn odds(&self, theta: &DVector<f64>, i: usize, class: usize) -> f64 {
        let given = self.sample.given_columns();
        let by_columns: f64 = (0..self.d).map(|j| theta[self.k + j] * given[j][i]).sum();
        (-theta[class] - by_columns).clamp(-15.0, 15.0).exp()
    }

    /// The moments and their derivatives.
    fn equations(&self, theta: &DVector<f64>) -> (DVector<f64>, DMatrix<f64>) {
        let (k, p, given) = (self.k, self.k + self.d, self.sample.given_columns());
        let labels = self.sample.labels();
        let mut slope = DVector::zeros(p);
        let mut moment = DVector::zeros(p);
        let mut jacobian = DMatrix::zeros(p, p);
        for i in 0..labels.len() {
            let labelled = self.row(theta, i, &mut slope);
            match labels.get(i) {
                None => moment.axpy(labelled, &slope, 1.0),
                Some(class) => {
                    let odds = self.odds(theta, i, class.index());
                    moment.axpy(-labelled * odds, &slope, 1.0);
                    for a in 0..p {
                        let inner = labelled * odds * slope[a];
                        jacobian[(a, class.index())] += inner;
                        for j in 0..self.d {
                            jacobian[(a, k + j)] += inner * given[j][i];
                        }
                    }
                }
            }
        }
        (moment, jacobian)
    }

    /// Newton with step halving. Where the equations have no root (a class at phi = 1) it stops at the nearest point it finds.
    fn solve(&self, start: &Mechanism) -> (DVector<f64>, DMatrix<f64>) {
        let mut theta = start.parameters();
        let (mut moment, mut jacobian) = self.equations(&theta);
        for _ in 0..50 {
            let Some(mut step) = jacobian.clone().lu().solve(&moment) else { break };
            step.neg_mut();
            let longest = step.amax();
            if longest > 2.0 {
                step *= 2.0 / longest;
            }
            let mut factor = 1.0;
            let mut improved = false;
            while factor > 1e-3 {
                let next = (&theta + &step * factor).map(|value| value.clamp(-15.0, 15.0));
                let (next_moment, next_jacobian) = self.equations(&next);
                if next_moment.norm() < moment.norm() {
                    (theta, moment, jacobian) = (next, next_moment, next_jacobian);
                    improved = true;
                    break;
                }
                factor /= 2.0;
            }
            if !improved || (&step * factor).amax() < 1e-8 {
                break;
            }
        }
        (theta, jacobian)
    }

    /// The residual of a row times P(r=1|x), with (t, z) in `slope`.
    fn residual(&self, theta: &DVector<f64>, i: usize, slope: &mut DVector<f64>) -> f64 {
        let labelled = self.row(theta, i, slope);
        match self.sample.labels().get(i) {
            None => labelled,
            Some(class) => -labelled * self.odds(theta, i, class.index()),
        }
    }
}

/// The mechanism that solves the orthogonal equations, from a start near it. The columns of the sample are its terms.
pub(crate) fn orthogonal_mechanism(sample: &Sample<'_>, start: &Mechanism) -> Mechanism {
    let (k, d) = (start.classes.len(), start.terms.len());
    let (theta, _) = Orthogonal { sample: *sample, k, d }.solve(start);
    Mechanism::from_parameters(&theta, k)
}

/// Marginal phi and class shares by the orthogonal equations, with standard errors that hold whatever the classifier.
#[derive(Clone, Debug)]
pub(crate) struct OrthogonalEstimate {
    /// P(labelled | class).
    pub(crate) phi: Vec<f64>,
    /// Standard errors of logit(phi).
    pub(crate) logit_phi_se: Vec<f64>,
    /// The class shares.
    pub(crate) prevalence: Vec<f64>,
    /// Their standard errors.
    pub(crate) prevalence_se: Vec<f64>,
}

/// Solves the orthogonal equations from a start near their solution. The columns of the sample are the terms of the mechanism.
pub(crate) fn orthogonal_estimate(sample: &Sample<'_>, start: &Mechanism) -> Result<OrthogonalEstimate, Error> {
    let (k, d) = (start.classes.len(), start.terms.len());
    let (labels, given) = (sample.labels(), sample.given_columns());
    let n = labels.len() as f64;
    let equations = Orthogonal { sample: *sample, k, d };
    let (theta, jacobian) = equations.solve(start);
    let svd = jacobian.svd(true, true);
    let negligible = 1e-10 * svd.singular_values.max();
    let inverse = svd.pseudo_inverse(negligible).map_err(|_| super::not_identified())?;
    // The unlabelled rows that the labels of a class stand for, M_k = Σ exp(−a_k − b'z), and its derivatives.
    let mut unlabelled = DVector::<f64>::zeros(k);
    let mut slopes = DMatrix::<f64>::zeros(k, k + d);
    for (i, class) in labels.labelled() {
        let (class, odds) = (class.index(), equations.odds(&theta, i, class.index()));
        unlabelled[class] += odds;
        slopes[(class, class)] -= odds;
        (0..d).for_each(|j| slopes[(class, k + j)] -= odds * given[j][i]);
    }
    let counts: Vec<f64> = labels.counts().iter().map(|&count| count as f64).collect();
    let raw: Vec<f64> = (0..k).map(|k| (counts[k] + unlabelled[k]) / n).collect();
    let total: f64 = raw.iter().sum();
    let pull = slopes * inverse;
    let (mut phi_variance, mut share_variance) = (DVector::<f64>::zeros(k), DVector::<f64>::zeros(k));
    let mut slope = DVector::zeros(k + d);
    for i in 0..labels.len() {
        let residual = equations.residual(&theta, i, &mut slope);
        // Influence of a row on (a, b): −J⁻¹ times its moment. On M_k: through (a, b), and by its own label.
        let mut on_unlabelled = &pull * &slope * -residual;
        let mut own = None;
        if let Some(class) = labels.get(i) {
            on_unlabelled[class.index()] += equations.odds(&theta, i, class.index());
            own = Some(class.index());
        }
        for class in 0..k {
            let label = f64::from(u8::from(own == Some(class)));
            // logit(phi_k) = log(n_k / M_k), and n p_k = n_k + M_k.
            phi_variance[class] += (label / counts[class] - on_unlabelled[class] / unlabelled[class]).powi(2);
            share_variance[class] += (label + on_unlabelled[class] - raw[class]).powi(2);
        }
    }
    Ok(OrthogonalEstimate {
        phi: (0..k).map(|k| counts[k] / (counts[k] + unlabelled[k])).collect(),
        logit_phi_se: phi_variance.iter().map(|variance| variance.sqrt()).collect(),
        prevalence: raw.iter().map(|share| share / total).collect(),
        prevalence_se: share_variance.iter().map(|variance| variance.sqrt() / n).collect(),
    })
}

/// Tests the directions by their orthogonal scores, which need no refit.
pub fn orthogonal_check(sample: &Sample<'_>, start: &Mechanism, groups: &[usize]) -> Result<Vec<Direction>, Error> {
    let (k, d) = (start.classes.len(), start.terms.len());
    let (p, m) = (k + d, groups.iter().sum::<usize>());
    let (labels, given) = (sample.labels(), sample.given_columns());
    let n = labels.len();
    let equations = Orthogonal { sample: *sample, k, d };
    // The projection below makes the scores insensitive to small errors of theta.
    let (theta, jacobian) = equations.solve(start);
    let directions = &given[d..d + m];
    let means: Vec<f64> = directions.iter().map(|column| column.iter().sum::<f64>() / n as f64).collect();
    let mut slope = DVector::zeros(p);
    let mut cross = DMatrix::zeros(m, p);
    for (i, class) in labels.labelled() {
        let inner = equations.row(&theta, i, &mut slope) * equations.odds(&theta, i, class.index());
        for g in 0..m {
            let scaled = inner * (directions[g][i] - means[g]);
            cross[(g, class.index())] += scaled;
            for j in 0..d {
                cross[(g, k + j)] += scaled * given[j][i];
            }
        }
    }
    // A class that seems to be labelled always (phi = 1) leaves no trace in the equations: pseudo-inverse.
    let svd = jacobian.transpose().svd(true, true);
    let negligible = 1e-10 * svd.singular_values.max();
    let pull = svd.solve(&cross.transpose(), negligible).map_err(|_| super::not_identified())?.transpose();
    let mut total = DVector::zeros(m);
    let mut squares = DMatrix::zeros(m, m);
    let mut contribution = DVector::zeros(m);
    for i in 0..n {
        let residual = equations.residual(&theta, i, &mut slope);
        for g in 0..m {
            contribution[g] = directions[g][i] - means[g];
        }
        contribution.gemv(-1.0, &pull, &slope, 1.0);
        contribution *= residual;
        total += &contribution;
        squares.ger(1.0, &contribution, &contribution, 1.0);
    }
    let covariance = squares - &total * total.transpose() / n as f64;
    let mut first = 0;
    Ok(groups
        .iter()
        .map(|&size| {
            let scores = total.rows(first, size).into_owned();
            let block = covariance.view((first, first), (size, size)).into_owned();
            first += size;
            let (statistic, df) = quadratic_form(&scores, &block);
            Direction { statistic, df, p_value: hotelling_p(statistic, df, labels.n_labelled() as f64 - p as f64) }
        })
        .collect())
}

/// u'V⁺u over the directions that have variance, and their number.
pub(crate) fn quadratic_form(scores: &DVector<f64>, covariance: &DMatrix<f64>) -> (f64, usize) {
    // In units of each direction, so that the rank does not depend on their scales.
    let scale = covariance.diagonal().map(|variance| if variance > 0.0 { variance.sqrt() } else { 1.0 });
    let unit = DMatrix::from_fn(scores.len(), scores.len(), |i, j| covariance[(i, j)] / (scale[i] * scale[j]));
    let scores = scores.component_div(&scale);
    let eigen = unit.symmetric_eigen();
    let largest = eigen.eigenvalues.max();
    let (mut statistic, mut df) = (0.0, 0);
    for j in 0..scores.len() {
        if largest > 0.0 && eigen.eigenvalues[j] > RELATIVE_RANK * largest {
            statistic += eigen.eigenvectors.column(j).dot(&scores).powi(2) / eigen.eigenvalues[j];
            df += 1;
        }
    }
    (statistic, df)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Labels;
    use crate::posteriors::{PosteriorKind, Posteriors};
    use ndarray::Array2;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    struct Drawn {
        p: Vec<f64>,
        labels: Vec<Option<&'static str>>,
        site: Vec<f64>,
    }

    /// Two classes that the probabilities tell apart somewhat, and labels that depend on the class and on a site.
    fn drawn(n: usize) -> Drawn {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let (mut p, mut labels, mut site) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..n {
            let score: f64 = 4.0 * rng.random::<f64>() - 2.0;
            let sick = rng.random::<f64>() < 1.0 / (1.0 + (-1.5 * score).exp());
            let here = f64::from(u8::from(rng.random::<f64>() < 0.4));
            let logit = if sick { 0.5 } else { -0.8 } + 1.2 * here;
            let seen = rng.random::<f64>() < 1.0 / (1.0 + f64::exp(-logit));
            p.push(1.0 / (1.0 + (-1.5 * score - 0.9).exp()));
            labels.push(seen.then_some(if sick { "sick" } else { "well" }));
            site.push(here);
        }
        Drawn { p, labels, site }
    }

    impl Drawn {
        /// The estimate without one of the rows.
        fn without(&self, left_out: Option<usize>) -> OrthogonalEstimate {
            let rows: Vec<usize> = (0..self.p.len()).filter(|row| Some(*row) != left_out).collect();
            let p =
                Array2::from_shape_fn(
                    (rows.len(), 2),
                    |(i, k)| {
                        if k == 0 { self.p[rows[i]] } else { 1.0 - self.p[rows[i]] }
                    },
                );
            let posteriors = Posteriors::new(p, PosteriorKind::Labelled).expect("probabilities");
            let names = ["sick".to_owned(), "well".to_owned()].to_vec();
            let class = |row: usize| self.labels[row].map(|name| crate::Class::from(usize::from(name == "well")));
            let labels = Labels::new(rows.iter().map(|&row| class(row)).collect(), names).expect("labels");
            let site: Vec<f64> = rows.iter().map(|&row| self.site[row]).collect();
            let columns = [site.as_slice()];
            let sample = Sample::new(&posteriors, &labels).and_then(|sample| sample.given(&columns)).expect("sample");
            let start = Mechanism { classes: vec![0.0, 0.0], terms: vec![0.0] };
            orthogonal_estimate(&sample, &start).expect("an estimate")
        }
    }

    /// Up to terms whose mean is zero: the weights of the equations also move with the mechanism.
    #[test]
    fn standard_errors_with_columns_are_those_of_a_jackknife() {
        let n = 400;
        let rows = drawn(n);
        let all = rows.without(None);
        let logit = |p: f64| (p / (1.0 - p)).ln();
        let left_out: Vec<OrthogonalEstimate> = (0..n).map(|row| rows.without(Some(row))).collect();
        let jackknife = |value: &dyn Fn(&OrthogonalEstimate) -> f64| {
            let mean = left_out.iter().map(value).sum::<f64>() / n as f64;
            (left_out.iter().map(|one| (value(one) - mean).powi(2)).sum::<f64>() * (n - 1) as f64 / n as f64).sqrt()
        };
        for k in 0..2 {
            let phi = jackknife(&|one| logit(one.phi[k]));
            assert!((all.logit_phi_se[k] / phi - 1.0).abs() < 0.06, "{} {phi}", all.logit_phi_se[k]);
            // The shares are made to add up to one, which only takes away from their spread.
            let share = jackknife(&|one| one.prevalence[k]);
            assert!(all.prevalence_se[k] / share > 0.95, "{} {share}", all.prevalence_se[k]);
        }
    }
}
