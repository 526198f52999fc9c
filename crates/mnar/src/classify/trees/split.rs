//! The best split of a node, found by scanning the sums of the bins of its columns.

use super::BoostedTrees;
use super::bins::{BinnedColumn, BinnedTable};
use super::histogram::{NodeRows, Sums, fill};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Gains that differ by less than this part are equal, and the first one is taken. Without it, rounding would decide between
/// equally good splits, and a row of weight 2 could give another tree than two equal rows (probabilities off by up to 0.28).
pub(super) const TIE: f64 = 1e-7;
/// A split must lower the loss by at least this much (in units of the loss of one row).
const MIN_GAIN: f64 = 1e-7;
/// Weights that differ by less than this part are equal but for rounding.
const ROUNDING: f64 = 1e-9;
/// Up to this many categories, each is tried against the rest.
const ONE_AGAINST_REST: usize = 4;

/// Which bins go to the left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Rule {
    /// Bins from 1 to `bin`, and bin 0 where `missing` says so.
    UpTo {
        /// The last bin.
        bin: u8,
        /// Whether missing values go to the left.
        missing: bool,
    },
    /// A set of bins.
    Among(Box<BinSet>),
}

impl Rule {
    #[inline]
    pub(super) fn left(&self, bin: u8) -> bool {
        match self {
            Self::UpTo { missing, .. } if bin == 0 => *missing,
            Self::UpTo { bin: last, .. } => bin <= *last,
            Self::Among(set) => set.contains(bin),
        }
    }
}

/// A set of bins; in a file, the list of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<u8>", into = "Vec<u8>")]
pub(super) struct BinSet([u64; 4]);

impl BinSet {
    #[inline]
    fn contains(&self, bin: u8) -> bool {
        self.0[usize::from(bin >> 6)] >> (bin & 63) & 1 == 1
    }

    fn insert(&mut self, bin: u8) {
        self.0[usize::from(bin >> 6)] |= 1 << (bin & 63);
    }
}

impl FromIterator<u8> for BinSet {
    fn from_iter<I: IntoIterator<Item = u8>>(bins: I) -> Self {
        let mut set = Self::default();
        bins.into_iter().for_each(|bin| set.insert(bin));
        set
    }
}

impl From<Vec<u8>> for BinSet {
    fn from(bins: Vec<u8>) -> Self {
        bins.into_iter().collect()
    }
}

impl From<BinSet> for Vec<u8> {
    fn from(set: BinSet) -> Self {
        (0..=u8::MAX).filter(|&bin| set.contains(bin)).collect()
    }
}

/// A split of a node.
#[derive(Clone, Debug)]
pub(super) struct Split {
    /// Twice the fall of the penalised loss.
    pub(super) gain: f64,
    /// The position of the column in the binned table.
    pub(super) column: usize,
    /// What goes to the left.
    pub(super) rule: Rule,
    /// The sums of the left side.
    pub(super) left: Sums,
}

/// With fewer values than this, sharing the columns among threads costs more than it saves.
const PARALLEL: usize = 200_000;

/// Searches the given columns (positions in the table) for the best split of a node. `histogram` is memory to work in, and
/// `parallel` allows to share the columns among threads.
pub(super) fn best(
    settings: &BoostedTrees,
    table: &BinnedTable,
    node: NodeRows<'_>,
    total: Sums,
    columns: &[usize],
    histogram: &mut Vec<Sums>,
    parallel: bool,
) -> Option<Split> {
    let of_column = |histogram: &mut Vec<Sums>, &position: &usize| {
        let column: &BinnedColumn = &table.columns[position];
        fill(histogram, column, node);
        let mut search = Search { settings, total, column: position, best: None };
        if column.categorical {
            search.categories(histogram);
        } else {
            search.thresholds(histogram);
        }
        search.best
    };
    let better = |best: Option<Split>, other: Option<Split>| match (&best, &other) {
        (Some(first), Some(second)) if second.gain <= first.gain * (1.0 + TIE) => best,
        (Some(_), None) => best,
        _ => other,
    };
    if parallel && node.rows.len() * columns.len() > PARALLEL {
        let found: Vec<_> = columns.par_iter().map_init(Vec::new, of_column).collect();
        return found.into_iter().fold(None, better);
    }
    columns.iter().map(|position| of_column(histogram, position)).fold(None, better)
}

/// Whether a node or side of this weight is heavy enough.
pub(super) fn heavy_enough(weight: f64, min_weight: f64) -> bool {
    weight >= min_weight * (1.0 - ROUNDING)
}

struct Search<'a> {
    settings: &'a BoostedTrees,
    total: Sums,
    column: usize,
    best: Option<Split>,
}

impl Search<'_> {
    fn thresholds(&mut self, bins: &[Sums]) {
        let (missing, last) = (bins[0], bins.len() - 1);
        let some_missing = missing.weight > 0.0;
        let parent = self.total.score(self.settings.l2);
        let mut left = Sums::default();
        for (bin, sums) in bins.iter().enumerate().skip(1) {
            // An empty bin adds nothing, but the last one stands for "all values against the missing ones".
            if sums.weight == 0.0 && bin < last {
                continue;
            }
            left.add(*sums);
            if bin < last || some_missing {
                // Where none is missing in training, missing values go with the heavier side.
                let heavier = !some_missing && self.left_is_heavier(left);
                self.offer(left, parent, 0.0, || Rule::UpTo { bin: bin as u8, missing: heavier });
            }
            if bin < last && some_missing {
                let mut with_missing = left;
                with_missing.add(missing);
                self.offer(with_missing, parent, 0.0, || Rule::UpTo { bin: bin as u8, missing: true });
            }
        }
    }

    fn categories(&mut self, bins: &[Sums]) {
        let mut present: Vec<u8> = (0..bins.len()).filter(|&bin| bins[bin].weight > 0.0).map(|bin| bin as u8).collect();
        if present.len() <= ONE_AGAINST_REST {
            let parent = self.total.score(self.settings.l2);
            for position in 0..present.len() {
                present.swap(0, position);
                self.offer_set(bins[usize::from(present[0])], parent, 0.0, &present, 1);
                present.swap(0, position);
            }
            return;
        }
        // The best set of categories is a run of them when they are sorted by their best value. Rounding makes ties exact.
        let order = |bin: u8| {
            let sums = bins[usize::from(bin)];
            (sums.gradient / (sums.hessian + self.settings.category_smoothing) / ROUNDING).round()
        };
        present.sort_by(|&a, &b| order(a).total_cmp(&order(b)).then(a.cmp(&b)));
        let l2 = self.settings.category_l2;
        let parent = self.total.score(self.settings.l2 + l2);
        let mut left = Sums::default();
        for n_left in 1..present.len() {
            left.add(bins[usize::from(present[n_left - 1])]);
            self.offer_set(left, parent, l2, &present, n_left);
        }
    }

    /// Offers the first `n_left` of the categories that are present against the others. Absent ones go with the heavier side.
    fn offer_set(&mut self, left: Sums, parent: f64, l2: f64, present: &[u8], n_left: usize) {
        let heavier = self.left_is_heavier(left);
        self.offer(left, parent, l2, || {
            let set = if heavier {
                let right: BinSet = present[n_left..].iter().copied().collect();
                BinSet(right.0.map(|bits| !bits))
            } else {
                present[..n_left].iter().copied().collect()
            };
            Rule::Among(Box::new(set))
        });
    }

    fn left_is_heavier(&self, left: Sums) -> bool {
        left.weight >= (self.total.weight - left.weight) * (1.0 - ROUNDING)
    }

    /// Takes a split if both sides are large enough and it is better than the best one so far.
    #[inline]
    fn offer(&mut self, left: Sums, parent: f64, extra_l2: f64, rule: impl FnOnce() -> Rule) {
        let right = self.total.minus(left);
        let BoostedTrees { min_weight, min_hessian, l2, .. } = *self.settings;
        let large = |side: Sums| heavy_enough(side.weight, min_weight) && side.hessian >= min_hessian;
        if !(large(left) && large(right)) {
            return;
        }
        let gain = left.score(l2 + extra_l2) + right.score(l2 + extra_l2) - parent;
        if gain > MIN_GAIN && self.best.as_ref().is_none_or(|best| gain > best.gain * (1.0 + TIE)) {
            self.best = Some(Split { gain, column: self.column, rule: rule(), left });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_bins_survives_as_a_list() {
        let bins = vec![0, 1, 63, 64, 200, 255];
        let set = BinSet::from(bins.clone());
        assert!(set.contains(64) && !set.contains(65));
        assert_eq!(Vec::<u8>::from(set), bins);
    }

    #[test]
    fn the_first_of_equal_splits_is_taken() {
        let settings = BoostedTrees { min_weight: 1.0, ..BoostedTrees::default() };
        let sums = |gradient: f64| Sums { gradient, hessian: 1.0, weight: 1.0 };
        let total = Sums { gradient: 0.0, hessian: 3.0, weight: 3.0 };
        // Splitting after the first or the second value is equally good; rounding favours the second by a hair.
        let bins = [Sums::default(), sums(-1.0), sums(0.0), sums(1.0 + 1e-15)];
        let mut search = Search { settings: &settings, total, column: 0, best: None };
        search.thresholds(&bins);
        assert_eq!(search.best.unwrap().rule, Rule::UpTo { bin: 1, missing: false });
    }
}
