//! Sums of gradients per bin.

use super::bins::BinnedTable;
use rayon::prelude::*;

/// Sums over rows, or the terms of one row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    /// First derivative of the log-loss by the score.
    pub(super) gradient: f64,
    /// Second derivative.
    pub(super) hessian: f64,
    /// Weight.
    pub(super) weight: f64,
}

impl Sums {
    #[inline]
    pub(super) fn add(&mut self, other: Sums) {
        self.gradient += other.gradient;
        self.hessian += other.hessian;
        self.weight += other.weight;
    }

    #[inline]
    pub(super) fn minus(self, other: Sums) -> Sums {
        Sums {
            gradient: self.gradient - other.gradient,
            hessian: self.hessian - other.hessian,
            weight: self.weight - other.weight,
        }
    }

    /// Twice what the best single value lowers the loss by: g²/(h + l2).
    #[inline]
    pub(super) fn score(self, l2: f64) -> f64 {
        self.gradient * self.gradient / (self.hessian + l2)
    }
}

/// The sums of each bin of each column, the columns one after another.
pub(super) type Histogram = Vec<Sums>;

/// With fewer values than this, sharing the columns among threads costs more than it saves.
const PARALLEL: usize = 200_000;

/// Sums `terms` (one entry per entry of `rows`) by bin. `parallel` allows to share the columns among threads.
pub(super) fn fill(histogram: &mut Histogram, table: &BinnedTable, rows: &[u32], terms: &[Sums], parallel: bool) {
    histogram.clear();
    histogram.resize(table.n_bins, Sums::default());
    let mut parts = Vec::with_capacity(table.columns.len());
    let mut rest = histogram.as_mut_slice();
    for column in &table.columns {
        let (part, others) = rest.split_at_mut(column.n_bins);
        parts.push((part, column.bins.as_slice()));
        rest = others;
    }
    let fill = |(part, bins): (&mut [Sums], &[u8])| {
        if rows.len() == bins.len() {
            // All rows, in order: no need to look them up.
            bins.iter().zip(terms).for_each(|(&bin, &term)| part[bin as usize].add(term));
        } else {
            rows.iter().zip(terms).for_each(|(&i, &term)| part[bins[i as usize] as usize].add(term));
        }
    };
    if parallel && rows.len() * table.columns.len() > PARALLEL {
        parts.into_par_iter().for_each(fill);
    } else {
        parts.into_iter().for_each(fill);
    }
}

/// Bins lighter than this part of their node are empty but for the rounding of a subtraction.
const EMPTY: f64 = 1e-10;

/// Turns the histogram of a node into that of one child by taking away that of the other. `weight` is the child's weight.
pub(super) fn subtract(node: &mut [Sums], child: &[Sums], weight: f64) {
    for (bin, other) in node.iter_mut().zip(child) {
        *bin = bin.minus(*other);
        if bin.weight <= EMPTY * weight {
            *bin = Sums::default();
        }
    }
}
