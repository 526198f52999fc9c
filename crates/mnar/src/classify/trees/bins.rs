//! Columns cut into bins of one byte. Bin 0 holds missing values and categories that were not in training.

use super::BoostedTrees;
use crate::error::Error;
use ndarray::{Array2, ArrayView1};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Bins besides the one for missing values: what is left of a byte.
pub(super) const MAX_BINS: usize = 255;

/// Sums of weights that differ by less than this part are equal: a row of weight 2 and two rows of weight 1 add up to the
/// same weight but for rounding.
const ROUNDING: f64 = 1e-9;

/// How the values of one column become bins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Column {
    /// A value is in bin 1 + the number of cuts below it.
    Numeric {
        /// In ascending order.
        cuts: Vec<f64>,
    },
    /// A category is in bin 1 + its position among the levels.
    Categorical {
        /// In ascending order.
        levels: Vec<u32>,
    },
}

impl Column {
    /// The bin of a value.
    pub(super) fn bin(&self, value: f64) -> u8 {
        let bin = match self {
            _ if value.is_nan() => 0,
            Self::Numeric { cuts } => 1 + cuts.partition_point(|cut| *cut < value),
            Self::Categorical { levels } => {
                let position = code(value).and_then(|code| levels.binary_search(&code).ok());
                position.map_or(0, |position| 1 + position)
            }
        };
        bin as u8 // at most 255, by construction and by `check`
    }

    /// The number of bins, the one for missing values included.
    pub(super) fn n_bins(&self) -> usize {
        match self {
            Self::Numeric { cuts } => cuts.len() + 2,
            Self::Categorical { levels } => levels.len() + 1,
        }
    }

    /// Refuses a column that training could not have made.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let (ascending, finite) = match self {
            Self::Numeric { cuts } => (cuts.is_sorted_by(|a, b| a < b), cuts.iter().all(|cut| cut.is_finite())),
            Self::Categorical { levels } => (levels.is_sorted_by(|a, b| a < b), true),
        };
        match () {
            () if !finite => Err("a cut is not finite"),
            () if !ascending => Err("the cuts or levels of a column are not in ascending order"),
            () if self.n_bins() > MAX_BINS + 1 => Err("a column has too many bins"),
            () => Ok(()),
        }
    }

    /// Learns the bins of one column from the training rows. `weights` are those of the rows, all positive.
    fn learn(
        column: ArrayView1<'_, f64>,
        rows: &[usize],
        weights: &[f64],
        categorical: bool,
        max_bins: usize,
    ) -> Result<Self, Error> {
        let mut values: Vec<(f64, f64)> =
            rows.iter().zip(weights).map(|(&i, &w)| (column[i], w)).filter(|(value, _)| !value.is_nan()).collect();
        if categorical {
            return Self::categories(&values);
        }
        for (value, _) in &mut values {
            *value = value.clamp(f64::MIN, f64::MAX);
        }
        values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut distinct: Vec<(f64, f64)> = Vec::new();
        for (value, weight) in values {
            match distinct.last_mut() {
                Some(last) if last.0 == value => last.1 += weight,
                _ => distinct.push((value, weight)),
            }
        }
        Ok(Self::Numeric { cuts: cuts(&distinct, max_bins) })
    }

    fn categories(values: &[(f64, f64)]) -> Result<Self, Error> {
        let mut weight_of = std::collections::BTreeMap::<u32, f64>::new();
        for &(value, weight) in values {
            let Some(code) = code(value) else {
                return Err(Error::OutOfRange {
                    name: "a category",
                    value: value.to_string(),
                    range: "a whole number of at least 0 and below 2^32, or missing",
                });
            };
            *weight_of.entry(code).or_default() += weight;
        }
        // Only the most frequent levels have a bin of their own. Rounding to a part of the total makes equal weights equal.
        let total: f64 = weight_of.values().sum();
        let mut by_weight: Vec<(u32, f64)> =
            weight_of.into_iter().map(|(code, weight)| (code, (weight / total / ROUNDING).round())).collect();
        by_weight.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        by_weight.truncate(MAX_BINS);
        let mut levels: Vec<u32> = by_weight.into_iter().map(|(code, _)| code).collect();
        levels.sort_unstable();
        Ok(Self::Categorical { levels })
    }
}

/// The code of a category; None if the value is not one.
fn code(value: f64) -> Option<u32> {
    (value >= 0.0 && value <= f64::from(u32::MAX) && value.fract() == 0.0).then_some(value as u32)
}

/// Cuts between distinct values (value, weight) in ascending order: between all of them if they fit into the bins,
/// otherwise such that the bins have about equal weights. A value heavier than a bin's share takes a bin of its own, and
/// the others share what is left.
fn cuts(distinct: &[(f64, f64)], max_bins: usize) -> Vec<f64> {
    let all = distinct.len() <= max_bins;
    let mut cuts = Vec::new();
    let mut left: f64 = distinct.iter().map(|(_, weight)| weight).sum();
    let mut bin = 0.0;
    for pair in distinct.windows(2) {
        bin += pair[0].1;
        let bins_left = max_bins - cuts.len();
        if all || (bins_left > 1 && bin >= left / bins_left as f64 * (1.0 - ROUNDING)) {
            cuts.push(between(pair[0].0, pair[1].0));
            left -= bin;
            bin = 0.0;
        }
    }
    cuts
}

/// A number from `low` to below `high`: their middle, unless it is rounded to `high`.
fn between(low: f64, high: f64) -> f64 {
    let middle = 0.5 * low + 0.5 * high;
    if low <= middle && middle < high { middle } else { low }
}

/// The bins of the training rows, column by column. Columns with a single bin are left out: they cannot split anything, and
/// would only take the place of others when columns are drawn.
pub(super) struct BinnedTable {
    /// The number of rows.
    pub(super) n_rows: usize,
    /// The columns that are kept.
    pub(super) columns: Vec<BinnedColumn>,
}

/// One column of a [`BinnedTable`].
pub(super) struct BinnedColumn {
    /// The position of the column in the table it was made from.
    pub(super) position: usize,
    /// Whether it holds categories.
    pub(super) categorical: bool,
    /// The bin of each row.
    pub(super) bins: Vec<u8>,
    /// The number of bins.
    pub(super) n_bins: usize,
}

/// Learns the bins of all columns from the training rows, and bins these rows.
pub(super) fn learn(
    settings: &BoostedTrees,
    x: &Array2<f64>,
    rows: &[usize],
    weights: &[f64],
) -> Result<(Vec<Column>, BinnedTable), Error> {
    let learnt: Vec<(Column, Option<BinnedColumn>)> = (0..x.ncols())
        .into_par_iter()
        .map(|position| {
            let categorical = settings.categorical.contains(&position);
            let values = x.column(position);
            let column = Column::learn(values, rows, weights, categorical, settings.max_bins)?;
            let bins: Vec<u8> = rows.iter().map(|&i| column.bin(values[i])).collect();
            let varies = bins.iter().any(|bin| *bin != bins[0]);
            let n_bins = column.n_bins();
            Ok((column, varies.then_some(BinnedColumn { position, categorical, bins, n_bins })))
        })
        .collect::<Result<_, Error>>()?;
    let (columns, binned): (Vec<Column>, Vec<Option<BinnedColumn>>) = learnt.into_iter().unzip();
    let table = BinnedTable { n_rows: rows.len(), columns: binned.into_iter().flatten().collect() };
    Ok((columns, table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_the_bin_between_their_cuts() {
        let column = Column::Numeric { cuts: vec![1.0, 2.0] };
        assert_eq!([f64::NAN, -1e300, 1.0, 1.5, 2.0, f64::INFINITY].map(|value| column.bin(value)), [0, 1, 1, 2, 2, 3]);
        let column = Column::Categorical { levels: vec![0, 7] };
        assert_eq!([0.0, -0.0, 7.0, 3.0, 0.5, -1.0, 1e300].map(|value| column.bin(value)), [1, 1, 2, 0, 0, 0, 0]);
    }

    #[test]
    fn few_values_have_a_bin_each_and_many_share_bins_of_equal_weight() {
        assert_eq!(cuts(&[(0.0, 1.0), (1.0, 9.0), (4.0, 1.0)], 3), [0.5, 2.5]);
        let values: Vec<(f64, f64)> = (0..100).map(|i| (f64::from(i), 1.0)).collect();
        assert_eq!(cuts(&values, 4), [24.5, 49.5, 74.5]);
        // The heavy value takes a bin, and the 99 others share the remaining three.
        let heavy: Vec<(f64, f64)> = (0..100).map(|i| (f64::from(i), if i == 0 { 1000.0 } else { 1.0 })).collect();
        assert_eq!(cuts(&heavy, 4), [0.5, 33.5, 66.5]);
    }

    #[test]
    fn neighbouring_and_extreme_numbers_are_told_apart() {
        let next = f64::from_bits(1.0_f64.to_bits() + 1);
        for (low, high) in [(1.0, next), (f64::MIN, f64::MAX), (f64::MAX / 2.0, f64::MAX), (0.0, 5e-324)] {
            let cut = between(low, high);
            assert!(low <= cut && cut < high && cut.is_finite(), "{low} {high}: {cut}");
        }
    }

    #[test]
    fn only_the_most_frequent_categories_have_a_bin() {
        let values: Vec<(f64, f64)> = (0..300).map(|i| (f64::from(i), if i < 45 { 1.0 } else { 2.0 })).collect();
        let Ok(Column::Categorical { levels }) = Column::categories(&values) else { panic!("categories") };
        assert_eq!(levels, (45..300).collect::<Vec<u32>>());
        assert!(Column::categories(&[(0.5, 1.0)]).is_err() && Column::categories(&[(-1.0, 1.0)]).is_err());
    }
}
