//! How well scores order the rows: the area under the ROC curve, and average precision.

use rayon::prelude::*;

/// Rows from the highest score to the lowest. Bootstraps count the same order again and again.
#[derive(Clone, Debug)]
pub(super) struct Order {
    rows: Vec<u32>,
    /// Whether a row has the same score as the one before it.
    tied: Vec<bool>,
}

impl Order {
    /// Orders some of the rows by probabilities.
    pub(super) fn new(scores: &[f64], rows: &[u32]) -> Self {
        // Numbers that are not negative are ordered as their bits are. −0 is taken for 0.
        let mut keys: Vec<(u64, u32)> =
            rows.iter().map(|&row| (!(scores[row as usize] + 0.0).to_bits(), row)).collect();
        keys.par_sort_unstable();
        let tied = (0..keys.len()).map(|i| i > 0 && keys[i].0 == keys[i - 1].0).collect();
        Self { rows: keys.into_iter().map(|(_, row)| row).collect(), tied }
    }

    /// Goes through groups of rows with equal scores, from the highest: visits (positives, negatives) of each.
    fn walk(&self, counted: &[[f64; 2]], mut visit: impl FnMut(f64, f64)) {
        let (mut positive, mut mass) = (0.0, 0.0);
        for (i, &row) in self.rows.iter().enumerate() {
            if i > 0 && !self.tied[i] {
                visit(positive, mass - positive);
                (positive, mass) = (0.0, 0.0);
            }
            let [a, all] = counted[row as usize];
            positive += a;
            mass += all;
        }
        visit(positive, mass - positive);
    }

    /// The area under the ROC curve and the average precision; `counted` holds, for every row, how much it counts for the
    /// class and how much it counts at all.
    pub(super) fn areas(&self, counted: &[[f64; 2]]) -> (f64, f64) {
        let (mut above, mut below, mut pairs, mut precision) = (0.0, 0.0, 0.0, 0.0);
        self.walk(counted, |positive, negative| {
            pairs += negative * (above + positive / 2.0);
            above += positive;
            below += negative;
            // The first few rows may be labelled ones, which have weights of both signs and, among the unlabelled, no mass.
            if above + below > 0.0 {
                precision += positive * (above / (above + below)).clamp(0.0, 1.0);
            }
        });
        (pairs / (above * below), precision / above)
    }

    /// What a row adds to the area under the ROC curve if it counts once more as a positive, and as a negative: (pos, neg) by
    /// the position of the row.
    pub(super) fn area_influences(&self, counted: &[[f64; 2]]) -> Vec<[f64; 2]> {
        let groups = self.groups(counted);
        let positives: f64 = groups.iter().map(|group| group.0).sum();
        let negatives: f64 = groups.iter().map(|group| group.1).sum();
        let area = self.areas(counted).0;
        let (mut above, mut passed) = (0.0, 0.0);
        let of_groups = groups.iter().map(|&(positive, negative)| {
            let beaten = (negatives - passed - negative / 2.0) / negatives;
            let beaten_by = (above + positive / 2.0) / positives;
            above += positive;
            passed += negative;
            [(beaten - area) / positives, (beaten_by - area) / negatives]
        });
        self.by_row(&of_groups.collect::<Vec<_>>(), counted.len())
    }

    /// The same for the average precision, Σ_g a_g A_g/M_g / A, where a_g is the mass of positives in a group of equal scores, and
    /// A_g and M_g the masses of positives and of all rows down to it.
    pub(super) fn precision_influences(&self, counted: &[[f64; 2]]) -> Vec<[f64; 2]> {
        let groups = self.groups(counted);
        let positives: f64 = groups.iter().map(|group| group.0).sum();
        let average = self.areas(counted).1;
        let (mut above, mut mass) = (0.0, 0.0);
        let down_to: Vec<(f64, f64, f64)> = groups
            .iter()
            .map(|&(positive, negative)| {
                above += positive;
                mass += positive + negative;
                (positive, above, mass)
            })
            .collect();
        // What one more row does to the precision of all groups from here on.
        let (mut gain, mut loss) = (0.0, 0.0);
        let mut of_groups: Vec<[f64; 2]> = down_to
            .iter()
            .rev()
            .map(|&(positive, above, mass)| {
                let mut precision = 0.0;
                // Where the precision was moved to a bound, one more row does not change it.
                if mass > 0.0 && (0.0..=mass).contains(&above) {
                    precision = above / mass;
                    gain += positive / mass;
                    loss += positive * precision / mass;
                }
                [(precision + gain - loss - average) / positives, -loss / positives]
            })
            .collect();
        of_groups.reverse();
        self.by_row(&of_groups, counted.len())
    }

    /// Positives and negatives of every group of equal scores, from the highest.
    fn groups(&self, counted: &[[f64; 2]]) -> Vec<(f64, f64)> {
        let mut groups = Vec::new();
        self.walk(counted, |positive, negative| groups.push((positive, negative)));
        groups
    }

    /// The values of groups, for each of their rows.
    fn by_row(&self, of_groups: &[[f64; 2]], n: usize) -> Vec<[f64; 2]> {
        let (mut values, mut group) = (vec![[0.0; 2]; n], 0);
        for (i, &row) in self.rows.iter().enumerate() {
            group += usize::from(i > 0 && !self.tied[i]);
            values[row as usize] = of_groups[group];
        }
        values
    }

    /// Points of the ROC curve, (false positive rate, true positive rate), at most `most` of them.
    pub(super) fn roc(&self, counted: &[[f64; 2]], most: usize) -> Vec<(f64, f64)> {
        let mut all = vec![(0.0, 0.0)];
        let (mut above, mut below) = (0.0, 0.0);
        self.walk(counted, |positive, negative| {
            above += positive;
            below += negative;
            all.push((below, above));
        });
        let step = all.len().div_ceil(most).max(1);
        let last = all.len() - 1;
        let kept = (0..all.len()).filter(|i| i % step == 0 || *i == last);
        kept.map(|i| ((all[i].0 / below).clamp(0.0, 1.0), (all[i].1 / above).clamp(0.0, 1.0))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_count_half() {
        let counted = [[1.0, 1.0], [0.0, 1.0], [1.0, 1.0], [0.0, 1.0]];
        let order = Order::new(&[0.9, 0.5, 0.5, 0.1], &[0, 1, 2, 3]);
        let (auc, ap) = order.areas(&counted);
        // Pairs: (0,1) (0,3) (2,3) won, (2,1) tied.
        assert_eq!(auc, 3.5 / 4.0);
        assert_eq!(ap, 0.5 * 1.0 + 0.5 * (2.0 / 3.0));
        assert_eq!(Order::new(&[0.3; 4], &[0, 1, 2, 3]).areas(&counted).0, 0.5);
        // A row that counts a little more.
        let counted_evenly = [[0.9, 1.0], [0.2, 1.0], [0.7, 1.0], [0.4, 1.0]];
        for counted in [counted, counted_evenly] {
            let (auc, ap) = order.areas(&counted);
            let influences = order.area_influences(&counted).into_iter().zip(order.precision_influences(&counted));
            for (row, (area, precision)) in influences.enumerate() {
                for (class, k) in [(1.0, 0), (0.0, 1)] {
                    let mut more = counted;
                    more[row] = [counted[row][0] + 1e-6 * class, counted[row][1] + 1e-6];
                    let (more_auc, more_ap) = order.areas(&more);
                    let slopes = ((more_auc - auc) / 1e-6, (more_ap - ap) / 1e-6);
                    assert!((slopes.0 - area[k]).abs() < 1e-5, "{row} {class}: {slopes:?} {area:?}");
                    assert!((slopes.1 - precision[k]).abs() < 1e-5, "{row} {class}: {slopes:?} {precision:?}");
                }
            }
        }
        assert_eq!(order.roc(&counted, 100), [(0.0, 0.0), (0.0, 0.5), (0.5, 1.0), (1.0, 1.0)]);
    }
}
