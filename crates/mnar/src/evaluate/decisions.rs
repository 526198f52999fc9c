//! Metrics of decisions: everything that follows from a confusion matrix.

use super::expected::Counted;

/// How much the rows of each class count that were taken for each class: `[class][decision]`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Confusion {
    k: usize,
    cells: Vec<f64>,
}

impl Confusion {
    pub(super) fn new(counted: &Counted<'_>, decisions: &[u32], rows: &[u32]) -> Self {
        let k = counted.t.n_classes();
        let mut cells = vec![0.0; k * k];
        for class in 0..k {
            let t = counted.t.column(class);
            let cells = &mut cells[class * k..(class + 1) * k];
            for &row in rows {
                let row = row as usize;
                cells[decisions[row] as usize] += counted.share[row] * t[row];
            }
        }
        for &row in rows {
            let row = row as usize;
            if let Some(class) = counted.labels.get(row) {
                cells[class.index() * k + decisions[row] as usize] += counted.base[row];
            }
        }
        Self { k, cells }
    }

    /// From the cells of all classes, one class after the other.
    pub(super) fn of_cells(k: usize, cells: Vec<f64>) -> Self {
        Self { k, cells }
    }

    pub(super) fn cells(&self) -> &[f64] {
        &self.cells
    }

    pub(super) fn rows(&self) -> Vec<Vec<f64>> {
        self.cells.chunks(self.k).map(<[f64]>::to_vec).collect()
    }

    pub(super) fn total(&self) -> f64 {
        self.cells.iter().sum()
    }

    fn right(&self, k: usize) -> f64 {
        self.cells[k * self.k + k]
    }

    fn of_class(&self, k: usize) -> f64 {
        self.cells[k * self.k..(k + 1) * self.k].iter().sum()
    }

    fn taken_for(&self, d: usize) -> f64 {
        (0..self.k).map(|class| self.cells[class * self.k + d]).sum()
    }

    /// The metric as hits out of a total.
    pub(super) fn ratio(&self, metric: Decided, class: usize) -> (f64, f64) {
        let (right, of, taken) = (self.right(class), self.of_class(class), self.taken_for(class));
        let total = self.total();
        match metric {
            Decided::Prevalence => (of, total),
            Decided::Recall => (right, of),
            Decided::Specificity => (total - of - taken + right, total - of),
            Decided::Precision => (right, taken),
            Decided::NegativePredictiveValue => (total - of - taken + right, total - taken),
            Decided::F1 => (2.0 * right, of + taken),
        }
    }

    pub(super) fn value(&self, metric: Decided, class: usize) -> f64 {
        let (hits, of) = self.ratio(metric, class);
        if of > 0.0 { hits / of } else { f64::NAN }
    }

    pub(super) fn accuracy(&self) -> f64 {
        (0..self.k).map(|k| self.right(k)).sum::<f64>() / self.total()
    }

    /// The mean over the classes for which it is defined.
    pub(super) fn mean(&self, metric: Decided) -> f64 {
        mean_defined((0..self.k).map(|class| self.value(metric, class)))
    }
}

/// Metrics of one class against the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decided {
    Prevalence,
    Recall,
    Specificity,
    Precision,
    NegativePredictiveValue,
    F1,
}

/// The mean of the values that are defined; NaN if none is.
pub(super) fn mean_defined(values: impl Iterator<Item = f64>) -> f64 {
    let defined: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
    defined.iter().sum::<f64>() / defined.len() as f64
}
