//! Does the class matter beyond the columns? Under "no", r and the classifier's scores are independent given z.
//!
//! Where z is made of names only, r is permuted within folds and strata of z, which is exact within each fold. Where it holds
//! numbers, P(r | z) is a logistic regression on z with smooth terms, r is drawn from it again and again, and the scores
//! are compared with the part of them that z explains taken out.

use super::{PermutationTest, TestResult, chi_square_p, sequential_p};
use crate::covariates::{CovariateValues, Covariates, Product, TermEncoder, ranks};
use crate::crossfit::FoldPlan;
use crate::error::Error;
use crate::posteriors::Posteriors;
use crate::rows::{Rows, Sample};
use nalgebra::{DMatrix, DVector};
use rand::{RngExt as _, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;

/// Settings of the test of whether the class matters beyond the columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BeyondColumns {
    /// The largest number of permutations, or of draws; with 0 the p-value is that of the chi-square limit.
    pub permutations: usize,
    /// Seed of the draws.
    pub seed: u64,
}

/// Name of the test in results.
const NAME: &str = "class beyond columns";

impl BeyondColumns {
    /// Tests whether r depends on the scores given the columns, within the folds of `plan`.
    pub fn run(&self, sample: &Sample<'_>, plan: &FoldPlan, columns: &Covariates) -> Result<TestResult, Error> {
        self.run_with(sample, plan, columns, &[])
    }

    /// The same given products of the columns too. Strata of names hold all of their products already.
    pub fn run_with(
        &self,
        sample: &Sample<'_>,
        plan: &FoldPlan,
        columns: &Covariates,
        products: &[Product],
    ) -> Result<TestResult, Error> {
        match columns.columns().iter().any(|column| column.n_levels().is_none()) {
            true => self.conditional(sample, &null_design(plan, columns, products)?),
            false => self.stratified(sample, plan, columns),
        }
    }

    fn stratified(&self, sample: &Sample<'_>, plan: &FoldPlan, columns: &Covariates) -> Result<TestResult, Error> {
        let mut cells: HashMap<Vec<u32>, u32> = HashMap::new();
        let strata = (0..columns.len())
            .map(|row| {
                let mut key = vec![plan.folds()[row]];
                key.extend(columns.columns().iter().map(|column| match &column.values {
                    CovariateValues::Categorical { codes, .. } => codes[row].map_or(u32::MAX, |code| code),
                    CovariateValues::Numeric(_) => 0,
                }));
                let next = cells.len() as u32;
                *cells.entry(key).or_insert(next)
            })
            .collect();
        let test = PermutationTest { permutations: self.permutations, seed: self.seed };
        let result = test.run(sample, &FoldPlan::given(strata))?;
        Ok(TestResult {
            test: NAME.into(),
            condition: "r is permuted within folds and strata of the columns".into(),
            ..result
        })
    }

    fn conditional(&self, sample: &Sample<'_>, null: &DMatrix<f64>) -> Result<TestResult, Error> {
        let (posteriors, labels) = (sample.posteriors(), sample.labels());
        let (n, k) = (labels.len(), sample.n_classes());
        let r = DVector::from_fn(n, |i, _| f64::from(u8::from(labels.is_labelled(i))));
        let p = logistic(null, &r)?;
        let weights = p.map(|p| p * (1.0 - p));

        // The scores with what the null design explains taken out, in the metric of the variance of r.
        let scores = DMatrix::from_fn(n, k, |i, j| posteriors.column(j)[i]);
        let weighted = DMatrix::from_fn(n, null.ncols(), |i, j| weights[i] * null[(i, j)]);
        let gram = null.tr_mul(&weighted);
        let explained = ridge_solve(&gram, &weighted.tr_mul(&scores)).ok_or_else(singular)?;
        let rest = scores - null * explained;
        let variance = rest.tr_mul(&DMatrix::from_fn(n, k, |i, j| weights[i] * rest[(i, j)]));
        let eigen = variance.symmetric_eigen();
        let largest = eigen.eigenvalues.max();
        let kept: Vec<usize> = (0..k).filter(|&j| largest > 0.0 && eigen.eigenvalues[j] > 1e-8 * largest).collect();
        if kept.is_empty() {
            return Err(singular());
        }
        // One row of numbers per data row, so that the statistic is a squared length.
        let rank = kept.len();
        let mut z = vec![0.0; n * rank];
        for i in 0..n {
            for (a, &j) in kept.iter().enumerate() {
                let along: f64 = (0..k).map(|c| rest[(i, c)] * eigen.eigenvectors[(c, j)]).sum();
                z[i * rank + a] = along / eigen.eigenvalues[j].sqrt();
            }
        }
        let statistic = |labelled: &mut dyn FnMut(usize) -> bool| {
            let mut total = vec![0.0; rank];
            for i in 0..n {
                let residual = f64::from(u8::from(labelled(i))) - p[i];
                total.iter_mut().zip(&z[i * rank..]).for_each(|(sum, z)| *sum += residual * z);
            }
            total.iter().map(|sum| sum * sum).sum::<f64>()
        };
        let observed = statistic(&mut |i| labels.is_labelled(i));
        let chi_square = chi_square_p(observed, rank);
        let (p_value, draws) = match self.permutations {
            0 => (chi_square, 0),
            most => sequential_p(observed, most, |draw| {
                let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
                rng.set_stream(draw + 1);
                statistic(&mut |i| rng.random::<f64>() < p[i])
            }),
        };
        Ok(TestResult {
            test: NAME.into(),
            statistic: observed,
            df: Some(rank),
            p_value,
            p_value_chi_square: Some(chi_square),
            draws,
            condition: "r is drawn from P(labelled | columns), a logistic regression with smooth terms".into(),
        })
    }
}

/// Intercepts of the folds, indicators of names, ρ, ρ², ρ³ of the ranks of numbers beside the numbers themselves, and products.
fn null_design(plan: &FoldPlan, columns: &Covariates, products: &[Product]) -> Result<DMatrix<f64>, Error> {
    let n = columns.len();
    let mut design: Vec<Vec<f64>> = (0..plan.n_folds())
        .map(|fold| plan.folds().iter().map(|&of| f64::from(u8::from(of as usize == fold))).collect())
        .collect();
    for column in columns.columns() {
        design.extend(column.terms().into_iter().map(|term| term.values));
        if let CovariateValues::Numeric(values) = &column.values {
            let ranks = ranks(values);
            design.extend((1..=3).map(|power| ranks.iter().map(|rank| rank.powi(power)).collect()));
        }
    }
    let alone = TermEncoder::learn(columns);
    let main_effects = alone.n_terms();
    design.extend(alone.with_products(products.to_vec())?.terms(columns)?.into_iter().skip(main_effects));
    Ok(DMatrix::from_fn(n, design.len(), |i, j| design[j][i]))
}

/// P(r | design) by iteratively reweighted least squares.
fn logistic(design: &DMatrix<f64>, r: &DVector<f64>) -> Result<DVector<f64>, Error> {
    let mut beta = DVector::zeros(design.ncols());
    let mut p: DVector<f64> = DVector::from_element(r.len(), 0.5);
    for _ in 0..100 {
        let weighted =
            DMatrix::from_fn(design.nrows(), design.ncols(), |i, j| (p[i] * (1.0 - p[i])).max(1e-10) * design[(i, j)]);
        let gram = design.tr_mul(&weighted);
        let gradient = design.tr_mul(&(r - &p)) - &beta * RIDGE;
        let step = ridge_solve(&gram, &DMatrix::from_column_slice(gradient.len(), 1, gradient.as_slice()))
            .ok_or_else(singular)?
            .column(0)
            .into_owned();
        let longest = step.amax();
        beta += if longest > 5.0 { &step * (5.0 / longest) } else { step };
        p = (design * &beta).map(|l| 1.0 / (1.0 + (-l.clamp(-30.0, 30.0)).exp()));
        if longest < 1e-8 {
            break;
        }
    }
    Ok(p)
}

/// Folds and names overlap, so the design is not of full rank: a little ridge picks one of the equal solutions.
const RIDGE: f64 = 1e-4;

fn ridge_solve(gram: &DMatrix<f64>, right: &DMatrix<f64>) -> Option<DMatrix<f64>> {
    let ridge = DMatrix::from_diagonal_element(gram.nrows(), gram.ncols(), RIDGE);
    (gram + ridge).cholesky().map(|cholesky| cholesky.solve(right))
}

fn singular() -> Error {
    Error::NotIdentified {
        method: "the test of the class beyond the columns",
        why: "the columns explain the classifier's scores completely".to_owned(),
    }
}

/// The share of the scores' variation that smooth functions of the columns do not explain.
pub(crate) fn unexplained(
    posteriors: &Posteriors,
    plan: &FoldPlan,
    columns: &Covariates,
    products: &[Product],
) -> Result<f64, Error> {
    let (n, k) = (posteriors.len(), posteriors.n_classes());
    let null = null_design(plan, columns, products)?;
    let scores = DMatrix::from_fn(n, k, |i, j| posteriors.column(j)[i]);
    let explained = ridge_solve(&null.tr_mul(&null), &null.tr_mul(&scores)).ok_or_else(singular)?;
    let rest = &scores - &null * explained;
    let means = scores.row_mean();
    let total: f64 = (0..n).map(|i| (scores.row(i) - &means).norm_squared()).sum();
    Ok(if total > 0.0 { rest.norm_squared() / total } else { 0.0 })
}
