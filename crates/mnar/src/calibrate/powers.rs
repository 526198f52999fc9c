//! s(k|x)^a exp(b_k), normalised, of many rows at a time. Half of the time of a pass over calibrated rows went into the
//! logarithms and exponentials of the C library, one number at a time; these are accurate to 2 units in the last place, and the
//! compiler turns them into vector instructions. No step is fused, so the bits are the same on every processor.

use super::FLOOR;
use pulp::{Arch, Simd, WithSimd};

/// Rows at a time: with ten classes, what is worked on stays in the first-level cache.
const TILE: usize = 256;

const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Adding and subtracting it rounds a number below 2^51 to a whole one, which its lowest bits then hold.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// The logarithm of a positive number that is not subnormal.
#[inline(always)]
fn ln(x: f64) -> f64 {
    // x = 2^e z with z from √½ to √2. The exponent is kept positive by 1100 while it is an integer.
    const SQRT_HALF: u64 = 0x3FE6_A09E_667F_3BCD;
    let shifted = x.to_bits().wrapping_sub(SQRT_HALF).wrapping_add(1100 << 52);
    let biased = shifted >> 52;
    let z = f64::from_bits(x.to_bits().wrapping_sub(biased << 52).wrapping_add(1100 << 52));
    let e = f64::from_bits(ROUNDER.to_bits().wrapping_add(biased)) - ROUNDER - 1100.0;
    // ln z = 2 artanh(s), with s at most 0.172: the series is cut off at 1e-18.
    let s = (z - 1.0) / (z + 1.0);
    let q = s * s;
    let mut series = 1.0 / 21.0;
    for odd in [19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        series = series * q + 1.0 / odd;
    }
    let twice = 2.0 * s;
    e * LN2_HIGH + (twice + (twice * (q * series) + e * LN2_LOW))
}

/// The exponential of a number that is not above 0. Below −708 it is that of −708, which is 3e-308.
#[inline(always)]
fn exp(x: f64) -> f64 {
    let x = if x < -708.0 { -708.0 } else { x };
    let rounded = x * std::f64::consts::LOG2_E + ROUNDER;
    let n = rounded - ROUNDER;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    // |r| is at most 0.347: the series is cut off at 4e-18.
    let mut series = 1.0;
    for divisor in [13.0, 12.0, 11.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0] {
        series = 1.0 + series * (r * (1.0 / divisor));
    }
    let power = rounded.to_bits().wrapping_sub(ROUNDER.to_bits()).wrapping_add(1023) << 52;
    series * f64::from_bits(power)
}

/// Calibrates the rows of `columns` into `out`.
pub(super) fn transform(a: f64, b: &[f64], columns: &[&[f64]], out: &mut [&mut [f64]]) {
    Arch::new().dispatch(Transform { a, b, columns, out });
}

struct Transform<'a, 'b, 'c> {
    a: f64,
    b: &'a [f64],
    columns: &'a [&'b [f64]],
    out: &'a mut [&'c mut [f64]],
}

impl WithSimd for Transform<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let n = self.columns.first().map_or(0, |column| column.len());
        for start in (0..n).step_by(TILE) {
            let rows = start..(start + TILE).min(n);
            let (mut highest, mut sums) = ([f64::NEG_INFINITY; TILE], [0.0; TILE]);
            let (highest, sums) = (&mut highest[..rows.len()], &mut sums[..rows.len()]);
            for ((column, out), b) in self.columns.iter().zip(self.out.iter_mut()).zip(self.b) {
                let (column, out) = (&column[rows.clone()], &mut out[rows.clone()]);
                for ((out, p), highest) in out.iter_mut().zip(column).zip(highest.iter_mut()) {
                    let p = if *p > FLOOR { *p } else { FLOOR };
                    let logit = self.a * ln(p) + b;
                    *out = logit;
                    *highest = if logit > *highest { logit } else { *highest };
                }
            }
            for out in self.out.iter_mut() {
                let out = &mut out[rows.clone()];
                for ((out, highest), sum) in out.iter_mut().zip(highest.iter()).zip(sums.iter_mut()) {
                    *out = exp(*out - highest);
                    *sum += *out;
                }
            }
            for out in self.out.iter_mut() {
                out[rows.clone()].iter_mut().zip(sums.iter()).for_each(|(out, sum)| *out /= sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(found: f64, expected: f64) -> f64 {
        (found - expected).abs() / (f64::EPSILON * expected.abs().max(f64::MIN_POSITIVE))
    }

    #[test]
    fn logarithms_and_exponentials_are_accurate() {
        for i in 0..200_000 {
            let p = (-27.7 * f64::from(i) / 200_000.0).exp();
            assert!(units(ln(p), p.ln()) <= 2.0 || (ln(p) - p.ln()).abs() < 1e-16, "ln {p:e}: {} {}", ln(p), p.ln());
            let x = -700.0 * (f64::from(i) / 200_000.0).powi(3);
            assert!(units(exp(x), x.exp()) <= 3.0, "exp {x}: {} {}", exp(x), x.exp());
        }
        assert_eq!((ln(1.0), exp(0.0)), (0.0, 1.0));
        assert!(exp(-1e9) < 1e-300);
        assert!(units(ln(FLOOR), FLOOR.ln()) <= 2.0);
    }

    /// Odd numbers of rows, and probabilities of 0 and 1.
    #[test]
    fn rows_are_those_of_a_plain_softmax() {
        let (a, b, n) = (1.3, [0.2, -0.4, 0.0], 601);
        let table: Vec<[f64; 3]> = (0..n)
            .map(|i| match i % 50 {
                0 => [0.0, 1.0, 0.0],
                _ => {
                    let p = [0, 1, 2].map(|k| 1.1 + (1.7 * f64::from(i) + 2.9 * f64::from(k)).sin());
                    p.map(|value| value / p.iter().sum::<f64>())
                }
            })
            .collect();
        let columns: Vec<Vec<f64>> = (0..3).map(|k| table.iter().map(|row| row[k]).collect()).collect();
        let mut out = vec![vec![0.0; table.len()]; 3];
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        transform(a, &b, &columns, &mut out.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>());
        for (i, row) in table.iter().enumerate() {
            let mut expected: Vec<f64> = row.iter().zip(b).map(|(p, b)| a * p.max(FLOOR).ln() + b).collect();
            crate::posteriors::softmax_in_place(&mut expected);
            for k in 0..3 {
                assert!((out[k][i] - expected[k]).abs() < 1e-14, "row {i}: {} {}", out[k][i], expected[k]);
            }
        }
    }
}
