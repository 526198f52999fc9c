//! Random numbers of rows that follow from the rows themselves, so that they are the same in every pass and wherever a row is read.

use crate::calibrate::logarithms;

/// The finaliser of SplitMix64: every bit of the result depends on all bits.
pub(crate) fn mixed(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// How many buckets rows fall into at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buckets {
    /// Their number.
    pub count: u32,
    /// The seed of the draw.
    pub seed: u64,
}

impl Buckets {
    /// Buckets of the jackknife: with 50, the 95% quantile of Student's t is 2.01 in place of 1.96.
    pub const fn of_jackknife(seed: u64) -> Self {
        Self { count: 50, seed }
    }

    /// So many that a bucket is the key of a row, from which the weights of a bootstrap are drawn.
    pub const fn of_bootstrap(seed: u64) -> Self {
        Self { count: u32::MAX, seed }
    }

    /// The bucket of every row of a block that begins with row `first_row` of its file or partition: from this place, which tells
    /// rows with equal numbers apart, and the probabilities. The number of the partition is left out, so that the same partitions
    /// in another order give the same bits.
    pub fn of_rows(self, columns: &[&[f64]], first_row: usize) -> Vec<f64> {
        let of_row = |i: usize| {
            let place = mixed(self.seed ^ (first_row + i) as u64);
            let key = columns.iter().fold(place, |hash, column| mixed(hash ^ column[i].to_bits()));
            (key % u64::from(self.count.max(1))) as f64
        };
        (0..columns.first().map_or(0, |column| column.len())).map(of_row).collect()
    }
}

/// How often a replicate of the Bayesian bootstrap counts each row: standard exponentials that follow from the rows' keys.
pub fn draw_weights(keys: &[f64], seed: u64, replicate: u64, weights: &mut [f64]) {
    const SCALE: f64 = 1.0 / (1u64 << 53) as f64;
    let stream = mixed(seed ^ mixed(replicate));
    for (weight, key) in weights.iter_mut().zip(keys) {
        // Above 0 and below 1.
        *weight = ((mixed(stream ^ key.to_bits()) >> 11) as f64 + 0.5) * SCALE;
    }
    logarithms(weights);
    weights.iter_mut().for_each(|weight| *weight = -*weight);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fall_into_all_buckets_alike() {
        let column: Vec<f64> = (0..50_000).map(|i| f64::from(i % 3)).collect();
        let buckets = Buckets { count: 50, seed: 7 }.of_rows(&[&column], 11);
        let mut rows = [0_u32; 50];
        buckets.iter().for_each(|bucket| rows[*bucket as usize] += 1);
        // 1000 are expected, with a standard deviation of 31.
        assert!(rows.iter().all(|rows| (850..1150).contains(rows)), "{rows:?}");
        // A block that begins later gives its rows the same buckets.
        assert_eq!(Buckets { count: 50, seed: 7 }.of_rows(&[&column[100..]], 111), buckets[100..]);
        assert_ne!(Buckets { count: 50, seed: 8 }.of_rows(&[&column], 11), buckets);
    }

    /// Mean and variance 1, other replicates independent.
    #[test]
    fn weights_are_exponentials() {
        let column: Vec<f64> = (0..200_000).map(|i| f64::from(i % 3)).collect();
        let keys = Buckets::of_bootstrap(3).of_rows(&[&column], 0);
        let (mut first, mut second) = (vec![0.0; keys.len()], vec![0.0; keys.len()]);
        draw_weights(&keys, 3, 0, &mut first);
        draw_weights(&keys, 3, 1, &mut second);
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / keys.len() as f64;
        assert!(first.iter().all(|weight| *weight > 0.0 && weight.is_finite()));
        assert!((mean(&mut first.iter().copied()) - 1.0).abs() < 0.01);
        assert!((mean(&mut first.iter().map(|weight| weight * weight)) - 2.0).abs() < 0.05);
        assert!((mean(&mut first.iter().zip(&second).map(|(a, b)| a * b)) - 1.0).abs() < 0.02);
        let above = mean(&mut first.iter().map(|weight| f64::from(u8::from(*weight > 1.0))));
        assert!((above - (-1.0f64).exp()).abs() < 0.01);
    }
}
