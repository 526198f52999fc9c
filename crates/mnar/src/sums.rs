//! The simple sums: label counts, mean posteriors, and the second moments that covariances need.

use crate::error::Error;
use crate::mixture::add_to;
use crate::rows::{Block, Rows, Sums};
use crate::travel::{bytes, travels};
use nalgebra::DMatrix;
use pulp::{Arch, Simd, WithSimd};

/// Label counts and summed posteriors of the labelled and the unlabelled rows, weighted where the rows carry weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    /// n_k, the number of rows labelled k.
    pub counts: Vec<f64>,
    /// n_u, the number of unlabelled rows.
    pub n_unlabelled: f64,
    /// Σ_{i∈L} s_ik.
    pub labelled_mass: Vec<f64>,
    /// Σ_{i∈U} s_ik.
    pub unlabelled_mass: Vec<f64>,
}

bytes!(Tally { counts, n_unlabelled, labelled_mass, unlabelled_mass });

impl Tally {
    pub(crate) fn zero(k: usize) -> Self {
        Self { counts: vec![0.0; k], n_unlabelled: 0.0, labelled_mass: vec![0.0; k], unlabelled_mass: vec![0.0; k] }
    }

    /// Sums in one pass over the rows. Fails if a class has no label or no row is unlabelled.
    pub fn of<R: Rows>(rows: &R) -> Result<Self, Error> {
        let tally = rows.scan(&Self::zero(rows.n_classes()))?;
        if tally.n_labelled() == 0.0 {
            return Err(Error::NoLabels { n: tally.n_unlabelled as usize });
        }
        if let Some(k) = tally.counts.iter().position(|&count| count == 0.0) {
            return Err(Error::ClassWithoutLabel {
                class: rows.names()[k].clone(),
                rows: rows.scan(&MostProbable { class: k, rows: 0 })?.rows,
                expected: tally.unlabelled_mass[k],
            });
        }
        if tally.n_unlabelled == 0.0 {
            return Err(Error::NoUnlabelled { n: tally.n_labelled() as usize });
        }
        Ok(tally)
    }

    /// Whether a class has no label, or no row is unlabelled.
    pub(crate) fn lacks_rows(&self) -> bool {
        self.n_unlabelled == 0.0 || self.counts.contains(&0.0)
    }

    /// n_l, the number of labelled rows.
    pub fn n_labelled(&self) -> f64 {
        self.counts.iter().sum()
    }

    /// n, the number of rows.
    pub fn n(&self) -> f64 {
        self.n_labelled() + self.n_unlabelled
    }

    /// π_l: shares of the classes among the labelled rows.
    pub fn labelled_shares(&self) -> Vec<f64> {
        let n_l = self.n_labelled();
        self.counts.iter().map(|count| count / n_l).collect()
    }
}

impl Tally {
    #[inline(always)]
    fn add_rows(&mut self, block: &Block<'_>) {
        // In parts that stay in the cache.
        const PART: usize = 1024;
        let mut weight = [[0.0; PART]; 2];
        for start in (0..block.len()).step_by(PART) {
            let m = PART.min(block.len() - start);
            let labels = &block.labels[start..start + m];
            for (i, label) in labels.iter().enumerate() {
                let labelled = f64::from(u8::from(label.is_some()));
                weight[0][i] = labelled;
                weight[1][i] = 1.0 - labelled;
            }
            if let Some(weights) = block.weights {
                for (i, row) in weights[start..start + m].iter().enumerate() {
                    weight[0][i] *= row;
                    weight[1][i] *= row;
                }
            }
            for (k, column) in block.columns.iter().enumerate() {
                let column = &column[start..start + m];
                self.labelled_mass[k] += weighted_sum(column, &weight[0]);
                self.unlabelled_mass[k] += weighted_sum(column, &weight[1]);
            }
            for (i, class) in labels.iter().enumerate().filter_map(|(i, label)| label.map(|class| (i, class))) {
                self.counts[class.index()] += weight[0][i];
            }
            self.n_unlabelled += weighted_sum(&weight[1][..m], &[1.0; PART]);
        }
    }
}

/// Adds one block, compiled once per instruction set and dispatched at run time.
struct AddBlock<'a, 'b> {
    sums: &'a mut Tally,
    block: &'a Block<'b>,
}

impl WithSimd for AddBlock<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        self.sums.add_rows(self.block);
    }
}

impl Sums for Tally {
    fn add(&mut self, block: &Block<'_>) {
        Arch::new().dispatch(AddBlock { sums: self, block });
    }

    fn merge(&mut self, other: Self) {
        add_to(&mut self.counts, &other.counts);
        add_to(&mut self.labelled_mass, &other.labelled_mass);
        add_to(&mut self.unlabelled_mass, &other.unlabelled_mass);
        self.n_unlabelled += other.n_unlabelled;
    }

    travels!(Tally);
}

/// Counts the unlabelled rows whose most probable class is the given one. Only an error message needs this, so it is
/// not part of [`Tally`].
#[derive(Clone)]
pub(crate) struct MostProbable {
    class: usize,
    rows: usize,
}

bytes!(MostProbable { class, rows });

impl Sums for MostProbable {
    fn add(&mut self, block: &Block<'_>) {
        let here = block.columns[self.class];
        self.rows += (0..block.len())
            .filter(|&i| block.labels[i].is_none() && block.columns.iter().all(|column| column[i] <= here[i]))
            .count();
    }

    fn merge(&mut self, other: Self) {
        self.rows += other.rows;
    }

    travels!(MostProbable);
}

/// Σ column · weight.
#[inline(always)]
pub(crate) fn weighted_sum(column: &[f64], weight: &[f64]) -> f64 {
    // Sixteen independent sums: a single one would wait for every addition.
    let mut lanes = [0.0; 16];
    let weight = &weight[..column.len()];
    for (column, weight) in column.chunks_exact(16).zip(weight.chunks_exact(16)) {
        for l in 0..16 {
            lanes[l] += column[l] * weight[l];
        }
    }
    let whole = column.len() / 16 * 16;
    let rest: f64 = column[whole..].iter().zip(&weight[whole..]).map(|(column, weight)| column * weight).sum();
    lanes.iter().sum::<f64>() + rest
}

/// Second moments of the posteriors of the labelled and the unlabelled rows. K × K, so used only where a matrix may be
/// formed.
#[derive(Clone, Debug)]
pub(crate) struct SecondMoments {
    k: usize,
    with_unlabelled: bool,
    /// Σ_{i∈L} 1[y_i = k] s_ij at (j, k): the soft confusion matrix, not yet divided by n_l.
    confusion: Vec<f64>,
    /// Σ_{i∈L} a_{y_i} s_ij s_il.
    labelled: Vec<f64>,
    /// The factor a_y of the labelled rows (1 unless a class-weighted moment is needed); empty where their moments are not.
    factor: Vec<f64>,
    /// Σ_{i∈U} s_ij s_il.
    unlabelled: Vec<f64>,
}

bytes!(SecondMoments { k, with_unlabelled, confusion, labelled, factor, unlabelled });

impl SecondMoments {
    /// Whether unlabelled rows count.
    pub(crate) fn with_unlabelled(&self) -> bool {
        self.with_unlabelled
    }

    pub(crate) fn of<R: Rows>(rows: &R, factor: Vec<f64>, with_unlabelled: bool) -> Result<Self, Error> {
        rows.scan(&Self::zero(rows.n_classes(), factor, with_unlabelled))
    }

    /// The soft confusion matrix alone.
    pub(crate) fn of_labels(k: usize) -> Self {
        Self::zero(k, Vec::new(), false)
    }

    pub(crate) fn zero(k: usize, factor: Vec<f64>, with_unlabelled: bool) -> Self {
        let zero = vec![0.0; k * k];
        Self { k, with_unlabelled, confusion: zero.clone(), labelled: zero.clone(), factor, unlabelled: zero }
    }

    pub(crate) fn confusion(&self) -> DMatrix<f64> {
        DMatrix::from_row_slice(self.k, self.k, &self.confusion)
    }

    pub(crate) fn labelled(&self) -> DMatrix<f64> {
        DMatrix::from_row_slice(self.k, self.k, &self.labelled)
    }

    pub(crate) fn unlabelled(&self) -> DMatrix<f64> {
        DMatrix::from_row_slice(self.k, self.k, &self.unlabelled)
    }
}

impl Sums for SecondMoments {
    fn add(&mut self, block: &Block<'_>) {
        let k = self.k;
        let mut row = vec![0.0; k];
        for i in 0..block.len() {
            let weight = block.weight(i);
            let (target, scale) = match block.labels[i] {
                Some(class) if self.factor.is_empty() => {
                    let cells = self.confusion.iter_mut().skip(class.index()).step_by(k);
                    cells.zip(block.columns).for_each(|(cell, column)| *cell += weight * column[i]);
                    continue;
                }
                Some(class) => (&mut self.labelled, weight * self.factor[class.index()]),
                None if self.with_unlabelled => (&mut self.unlabelled, weight),
                None => continue,
            };
            for (value, column) in row.iter_mut().zip(block.columns) {
                *value = column[i];
            }
            for j in 0..k {
                let scaled = scale * row[j];
                for l in 0..k {
                    target[j * k + l] += scaled * row[l];
                }
            }
            if let Some(class) = block.labels[i] {
                for j in 0..k {
                    self.confusion[j * k + class.index()] += weight * row[j];
                }
            }
        }
    }

    fn merge(&mut self, other: Self) {
        add_to(&mut self.confusion, &other.confusion);
        add_to(&mut self.labelled, &other.labelled);
        add_to(&mut self.unlabelled, &other.unlabelled);
    }

    travels!(SecondMoments);
}
