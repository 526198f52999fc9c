//! Rows that appear several times in a table.

use super::FoldPlan;
use crate::labels::Labels;
use ndarray::{ArrayView1, ArrayView2};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

/// Which rows are copies of each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Copies {
    /// The group of each row, numbered from 0 by first appearance.
    pub(super) group: Vec<u32>,
    /// The number of groups.
    pub(super) groups: usize,
}

/// Equal rows are copies if chance would give fewer pairs of them than this.
const CHANCE_PAIRS: f64 = 0.01;

/// Rows from which the chance of equal rows is estimated.
const EXAMINED: usize = 2_000;

/// A row that appears more often than this, and makes up more than this share of all rows, is a common one and not a copy.
const MOST_COPIES: usize = 20;
const LARGEST_SHARE: f64 = 0.01;

impl Copies {
    /// Rows that are equal in every column, where that cannot be chance: among a few columns of names many rows are equal, and none
    /// is a copy of another. `None` if there are no copies.
    pub fn among<T: Copy + Into<f64>>(x: ArrayView2<'_, T>) -> Option<Self> {
        let n = x.nrows();
        let mut first_of: HashMap<u64, Vec<(usize, u32)>> = HashMap::with_capacity(n);
        let mut group = Vec::with_capacity(n);
        let mut sizes: Vec<usize> = Vec::new();
        let mut distinct = Vec::new();
        for (i, row) in x.rows().into_iter().enumerate() {
            let alike = first_of.entry(hash(row)).or_default();
            let known = alike.iter().find(|(first, _)| equal(x.row(*first), row)).map(|(_, of)| *of);
            let of = known.unwrap_or_else(|| {
                alike.push((i, sizes.len() as u32));
                distinct.push(i);
                sizes.push(0);
                (sizes.len() - 1) as u32
            });
            sizes[of as usize] += 1;
            group.push(of);
        }
        let groups = sizes.len();
        let largest = sizes.into_iter().max()?;
        let common = largest > MOST_COPIES && largest as f64 > LARGEST_SHARE * n as f64;
        if groups == n || common || by_chance(x, &distinct) * 0.5 * (groups as f64).powi(2) > CHANCE_PAIRS {
            return None;
        }
        Some(Self { group, groups })
    }

    /// Whether every class has labels in two groups, and there is a group for every fold.
    pub(super) fn leave_a_choice(&self, labels: &Labels, n_folds: usize) -> bool {
        let mut first: Vec<Option<u32>> = vec![None; labels.n_classes()];
        let mut several = vec![false; labels.n_classes()];
        for (row, class) in labels.labelled() {
            let of = *first[class.index()].get_or_insert(self.group[row]);
            several[class.index()] |= of != self.group[row];
        }
        self.group.len() == labels.len() && self.groups >= n_folds && several.iter().all(|several| *several)
    }

    /// Folds with nearly equal numbers of groups, by a seeded uniform draw.
    pub(super) fn plan(&self, n_folds: usize, seed: u64) -> FoldPlan {
        let of_groups = FoldPlan::drawn(self.groups, n_folds, seed);
        let fold = self.group.iter().map(|&group| of_groups.fold[group as usize]).collect();
        FoldPlan { fold, ..of_groups }
    }
}

/// The probability that two different rows agree in all columns, if columns have nothing to do with each other.
fn by_chance<T: Copy + Into<f64>>(x: ArrayView2<'_, T>, distinct: &[usize]) -> f64 {
    let step = distinct.len().div_ceil(EXAMINED).max(1);
    let rows: Vec<usize> = distinct.iter().copied().step_by(step).collect();
    let m = rows.len() as f64;
    let agree = |column: ArrayView1<'_, T>| {
        let mut values: Vec<u64> = rows.iter().map(|&row| bits(column[row])).collect();
        values.sort_unstable();
        let pairs: f64 =
            values.chunk_by(|a, b| a == b).map(|equal| equal.len() as f64 * (equal.len() as f64 - 1.0)).sum();
        // A column without equal values has not shown that it never has any.
        pairs.max(1.0) / (m * (m - 1.0)).max(1.0)
    };
    x.columns().into_iter().map(agree).product()
}

fn bits<T: Into<f64>>(value: T) -> u64 {
    // Zeros are equal whatever their sign, and so are gaps.
    let value: f64 = value.into();
    if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() }
}

fn hash<T: Copy + Into<f64>>(row: ArrayView1<'_, T>) -> u64 {
    let mut hasher = DefaultHasher::new();
    row.iter().for_each(|value| hasher.write_u64(bits(*value)));
    hasher.finish()
}

fn equal<T: Copy + Into<f64>>(a: ArrayView1<'_, T>, b: ArrayView1<'_, T>) -> bool {
    a.iter().zip(b).all(|(a, b)| bits(*a) == bits(*b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    /// 60 different rows, of which the first 20 appear twice.
    fn repeated() -> Array2<f64> {
        Array2::from_shape_fn((80, 3), |(i, j)| {
            let row = if i < 60 { i } else { i - 60 };
            ((row * (2 * j + 3)) % 61) as f64 / 7.0
        })
    }

    #[test]
    fn copies_share_a_fold() {
        let x = repeated();
        let labels = Labels::from_values((0..80).map(|i| (i % 2 == 0).then_some(if i % 4 == 0 { "a" } else { "b" })));
        let labels = labels.expect("labels");
        let mut different = false;
        for seed in 0..20 {
            let plan = FoldPlan::for_rows(x.view(), &labels, 5, seed).expect("folds");
            assert_eq!(plan.copies(), 20);
            assert!((0..20).all(|i| plan.folds()[i] == plan.folds()[60 + i]));
            assert_eq!(plan.members().iter().filter(|members| members.len() >= 12).count(), 5);
            different |= plan != FoldPlan::for_rows(x.view(), &labels, 5, seed + 1).expect("folds");
            let again = plan.drawn_again(&labels, seed + 100).expect("folds");
            assert!((0..20).all(|i| again.folds()[i] == again.folds()[60 + i]));
        }
        assert!(different);
    }

    #[test]
    fn without_copies_folds_are_those_of_the_labels() {
        let x = repeated().select(ndarray::Axis(0), &(0..60).collect::<Vec<_>>());
        let labels = Labels::from_values((0..60).map(|i| (i % 3 > 0).then_some(if i % 3 == 1 { "a" } else { "b" })));
        let labels = labels.expect("labels");
        let plan = FoldPlan::for_rows(x.view(), &labels, 5, 3).expect("folds");
        assert_eq!(plan, FoldPlan::for_labels(&labels, 5, 3).expect("folds"));
    }

    #[test]
    fn equal_rows_of_few_names_are_not_copies() {
        // Three columns of two and three names: every row has dozens of equals.
        let x = Array2::from_shape_fn((600, 3), |(i, j)| [(i * 7 % 2), (i / 2 % 3), (i / 6 % 2)][j] as f64);
        assert_eq!(Copies::among(x.view()), None);
        // One row that is common among many different ones, such as that of patients without any measurement.
        let common =
            Array2::from_shape_fn((600, 3), |(i, j)| if i % 3 == 0 { 0.0 } else { (i * (j + 1)) as f64 / 3.0 });
        assert_eq!(Copies::among(common.view()), None);
    }

    #[test]
    fn a_class_whose_labels_are_copies_of_one_row_is_still_spread_over_folds() {
        let x = repeated();
        let labels = Labels::from_values((0..80).map(|i| match i {
            0 | 60 => Some("a"),
            _ if i % 2 == 0 => Some("b"),
            _ => None,
        }));
        let plan = FoldPlan::for_rows(x.view(), &labels.expect("labels"), 5, 1).expect("folds");
        assert_eq!(plan.copies(), 0);
        assert_ne!(plan.folds()[0], plan.folds()[60]);
    }
}
