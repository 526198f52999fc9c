//! The permutation test from sums, for rows that stay where they are.
//!
//! The statistic needs the moments of the scores within each fold and their sums over the labelled rows: one pass. Its reference
//! is the chi-square limit of the permutations, which tables of more than 200,000 rows have in memory too.

use super::permutation::{LIMIT, directions};
use super::{TestResult, chi_square_p};
use crate::error::Error;
use crate::mixture::add_to;
use crate::rows::{Block, Rows, Sums};
use crate::travel::{bytes, travels};
use nalgebra::DMatrix;

/// Moments of the scores of every fold.
#[derive(Clone, Debug)]
pub(crate) struct FoldScores {
    k: usize,
    /// The position of the fold among the given columns; `None` where all rows are one fold.
    column: Option<usize>,
    /// Rows and labelled rows of every fold.
    n: Vec<f64>,
    labelled: Vec<f64>,
    /// Σ s and Σ_L s of every fold.
    sum: Vec<f64>,
    labelled_sum: Vec<f64>,
    /// Σ s s' of every fold, lower triangle.
    products: Vec<f64>,
}

bytes!(FoldScores { k, column, n, labelled, sum, labelled_sum, products });

impl FoldScores {
    /// One pass over rows in `folds` folds.
    pub(crate) fn of<R: Rows>(rows: &R, column: Option<usize>, folds: usize) -> Result<Self, Error> {
        let (k, folds) = (rows.n_classes(), if column.is_some() { folds.max(1) } else { 1 });
        rows.scan(&Self {
            k,
            column,
            n: vec![0.0; folds],
            labelled: vec![0.0; folds],
            sum: vec![0.0; folds * k],
            labelled_sum: vec![0.0; folds * k],
            products: vec![0.0; folds * k * k],
        })
    }

    /// The test against the chi-square limit of the permutations.
    pub(crate) fn test(&self) -> Result<TestResult, Error> {
        let k = self.k;
        let mut covariance = DMatrix::zeros(k, k);
        let mut off = vec![0.0; k];
        for fold in 0..self.n.len() {
            let (n, n_l) = (self.n[fold], self.labelled[fold]);
            if n == 0.0 {
                continue;
            }
            let mean: Vec<f64> = self.sum[fold * k..(fold + 1) * k].iter().map(|sum| sum / n).collect();
            // Variance of a sum of n_l of n values drawn without replacement.
            let drawn = if n > 1.0 { n_l * (n - n_l) / (n * (n - 1.0)) } else { 0.0 };
            for a in 0..k {
                off[a] += self.labelled_sum[fold * k + a] - n_l * mean[a];
                for b in 0..=a {
                    let centred = self.products[(fold * k + a) * k + b] - n * mean[a] * mean[b];
                    covariance[(a, b)] += drawn * centred;
                }
            }
        }
        let (eigen, kept) = directions(covariance)?;
        let along = |j: usize| eigen.eigenvectors.column(j).iter().zip(&off).map(|(v, off)| v * off).sum::<f64>();
        let statistic = kept.iter().map(|&j| along(j).powi(2) / eigen.eigenvalues[j]).sum();
        let p_value = chi_square_p(statistic, kept.len());
        Ok(TestResult {
            test: "permutation".into(),
            statistic,
            df: Some(kept.len()),
            p_value,
            p_value_chi_square: Some(p_value),
            draws: 0,
            condition: LIMIT.into(),
        })
    }
}

impl Sums for FoldScores {
    fn add(&mut self, block: &Block<'_>) {
        let (k, last) = (self.k, self.n.len() - 1);
        let mut row = vec![0.0; k];
        for i in 0..block.len() {
            let fold = self.column.map_or(0, |column| (block.given[column][i] as usize).min(last));
            let weight = block.weight(i);
            for (value, column) in row.iter_mut().zip(block.columns) {
                *value = column[i];
            }
            self.n[fold] += weight;
            if block.labels[i].is_some() {
                self.labelled[fold] += weight;
                let sums = &mut self.labelled_sum[fold * k..(fold + 1) * k];
                sums.iter_mut().zip(&row).for_each(|(sum, value)| *sum += weight * value);
            }
            self.sum[fold * k..(fold + 1) * k].iter_mut().zip(&row).for_each(|(sum, value)| *sum += weight * value);
            for a in 0..k {
                let scaled = weight * row[a];
                let products = &mut self.products[(fold * k + a) * k..(fold * k + a) * k + a + 1];
                products.iter_mut().zip(&row).for_each(|(sum, value)| *sum += scaled * value);
            }
        }
    }

    fn merge(&mut self, other: Self) {
        add_to(&mut self.n, &other.n);
        add_to(&mut self.labelled, &other.labelled);
        add_to(&mut self.sum, &other.sum);
        add_to(&mut self.labelled_sum, &other.labelled_sum);
        add_to(&mut self.products, &other.products);
    }

    travels!(FoldScores);
}
