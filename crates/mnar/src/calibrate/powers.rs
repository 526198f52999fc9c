//! s(k|x)^a exp(b_k), normalised, of many rows at a time. Half of the time of a pass over calibrated rows went into the
//! logarithms and exponentials of the C library, one number at a time; these are accurate to 2 units in the last place, and the
//! compiler turns them into vector instructions. Every product that is added to is fused with its sum, by the processor or, where it
//! cannot, slowly by the C library, so the bits are the same on every processor.

use super::FLOOR;
use pulp::{Arch, Simd, WithSimd};

/// Rows at a time: with ten classes, what is worked on stays in the first-level cache.
const TILE: usize = 256;

const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Adding and subtracting it rounds a number below 2^51 to a whole one, which its lowest bits then hold.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// The polynomials, highest power first, as `chebyfit` of mpmath finds them with 40 digits: 2 (artanh(√q)/√q − 1)/q for q up to
/// 0.0295, and exp(r) for |r| up to 0.347.
const LN: [f64; 7] = [
    1.461_658_542_488_862_2e-1,
    1.533_171_061_821_077_2e-1,
    1.818_288_945_567_494_6e-1,
    2.222_221_113_025_987_7e-1,
    2.857_142_862_600_327e-1,
    3.999_999_999_989_944_3e-1,
    6.666_666_666_666_67e-1,
];
const EXP: [f64; 12] = [
    2.511_004_920_481_866e-8,
    2.763_265_472_252_779e-7,
    2.755_724_088_722_987e-6,
    2.480_148_544_156_131_3e-5,
    1.984_126_989_007_640_3e-4,
    1.388_888_895_235_286_3e-3,
    8.333_333_333_319_59e-3,
    4.166_666_666_648_795e-2,
    1.666_666_666_666_668e-1,
    5.000_000_000_000_018e-1,
    1.0,
    1.0,
];

/// The logarithm of a positive number that is not subnormal.
#[inline(always)]
fn ln(x: f64) -> f64 {
    // x = 2^e z with z from √½ to √2. The exponent is kept positive by 1100 while it is an integer.
    const SQRT_HALF: u64 = 0x3FE6_A09E_667F_3BCD;
    let shifted = x.to_bits().wrapping_sub(SQRT_HALF).wrapping_add(1100 << 52);
    let biased = shifted >> 52;
    let z = f64::from_bits(x.to_bits().wrapping_sub(biased << 52).wrapping_add(1100 << 52));
    let e = f64::from_bits(ROUNDER.to_bits().wrapping_add(biased)) - ROUNDER - 1100.0;
    // ln z = 2 artanh(s) = 2s + s q P(q), with s at most 0.172; the polynomial of least error is off by 2e-18.
    let s = (z - 1.0) / (z + 1.0);
    let q = s * s;
    let mut series = LN[0];
    for coefficient in &LN[1..] {
        series = series.mul_add(q, *coefficient);
    }
    e.mul_add(LN2_HIGH, 2.0f64.mul_add(s, s.mul_add(q * series, e * LN2_LOW)))
}

/// The exponential of a number that is not above 0. Below −708 it is that of −708, which is 3e-308.
#[inline(always)]
fn exp(x: f64) -> f64 {
    let x = if x < -708.0 { -708.0 } else { x };
    let rounded = x.mul_add(std::f64::consts::LOG2_E, ROUNDER);
    let n = rounded - ROUNDER;
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x));
    // |r| is at most 0.347; the polynomial of least error is off by 4e-18.
    let mut series = EXP[0];
    for coefficient in &EXP[1..] {
        series = series.mul_add(r, *coefficient);
    }
    let power = rounded.to_bits().wrapping_sub(ROUNDER.to_bits()).wrapping_add(1023) << 52;
    series * f64::from_bits(power)
}

/// Calibrates the rows of `columns` into `out`. The logarithms of the probabilities go to `logs`, one slice per class, or nowhere.
pub(super) fn transform(a: f64, b: &[f64], columns: &[&[f64]], out: &mut [&mut [f64]], logs: &mut [&mut [f64]]) {
    Arch::new().dispatch(Transform { a, b, columns, out, logs });
}

/// Takes the logarithm of positive numbers that are not subnormal.
pub(crate) fn logarithms(values: &mut [f64]) {
    Arch::new().dispatch(Logarithms(values));
}

struct Logarithms<'a>(&'a mut [f64]);

impl WithSimd for Logarithms<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        self.0.iter_mut().for_each(|value| *value = ln(*value));
    }
}

struct Transform<'a, 'b, 'c, 'd> {
    a: f64,
    b: &'a [f64],
    columns: &'a [&'b [f64]],
    out: &'a mut [&'c mut [f64]],
    logs: &'a mut [&'d mut [f64]],
}

impl WithSimd for Transform<'_, '_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { a, b, columns, out, logs } = self;
        let n = columns.first().map_or(0, |column| column.len());
        let top = b.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let lowest = b.iter().fold(0.0_f64, |lowest, b| lowest.min(b - top)) + a * FLOOR.ln();
        // Then exponentials of all logits, less the highest bias, are neither above 1 nor 0.
        let bounded = a >= 0.0 && lowest > -600.0;
        for start in (0..n).step_by(TILE) {
            let rows = start..(start + TILE).min(n);
            let (mut highest, mut sums) = ([f64::NEG_INFINITY; TILE], [0.0; TILE]);
            let (highest, sums) = (&mut highest[..rows.len()], &mut sums[..rows.len()]);
            for (k, (column, b)) in columns.iter().zip(b).enumerate() {
                let (column, out, shift) = (&column[rows.clone()], &mut out[k][rows.clone()], b - top);
                match logs.get_mut(k) {
                    Some(logs) => {
                        let logs = &mut logs[rows.clone()];
                        for ((log, out), p) in logs.iter_mut().zip(out.iter_mut()).zip(column) {
                            *log = ln(if *p > FLOOR { *p } else { FLOOR });
                            *out = a.mul_add(*log, shift);
                        }
                    }
                    None => {
                        for (out, p) in out.iter_mut().zip(column) {
                            *out = a.mul_add(ln(if *p > FLOOR { *p } else { FLOOR }), shift);
                        }
                    }
                }
                if bounded {
                    for (out, sum) in out.iter_mut().zip(sums.iter_mut()) {
                        *out = exp(*out);
                        *sum += *out;
                    }
                } else {
                    for (highest, logit) in highest.iter_mut().zip(out) {
                        *highest = if *logit > *highest { *logit } else { *highest };
                    }
                }
            }
            if !bounded {
                for out in out.iter_mut() {
                    for ((out, highest), sum) in out[rows.clone()].iter_mut().zip(highest.iter()).zip(sums.iter_mut()) {
                        *out = exp(*out - highest);
                        *sum += *out;
                    }
                }
            }
            sums.iter_mut().for_each(|sum| *sum = 1.0 / *sum);
            for out in out.iter_mut() {
                out[rows.clone()].iter_mut().zip(sums.iter()).for_each(|(out, inverse)| *out *= inverse);
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
        // The last two may reach beyond what an exponential holds.
        for (a, b) in [(1.3, [0.2, -0.4, 0.0]), (0.0, [0.0, 0.1, 0.2]), (40.0, [0.2, -0.4, 0.0]), (-0.5, [0.0; 3])] {
            rows_are_those_of_a_plain_softmax_with(a, b);
        }
    }

    fn rows_are_those_of_a_plain_softmax_with(a: f64, b: [f64; 3]) {
        let n = 601;
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
        let (mut out, mut logs) = (vec![vec![0.0; table.len()]; 3], vec![vec![0.0; table.len()]; 3]);
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        fn slices(columns: &mut [Vec<f64>]) -> Vec<&mut [f64]> {
            columns.iter_mut().map(Vec::as_mut_slice).collect()
        }
        transform(a, &b, &columns, &mut slices(&mut out), &mut slices(&mut logs));
        for (i, row) in table.iter().enumerate() {
            let mut expected: Vec<f64> = row.iter().zip(b).map(|(p, b)| a * p.max(FLOOR).ln() + b).collect();
            crate::posteriors::softmax_in_place(&mut expected);
            for k in 0..3 {
                assert!((out[k][i] - expected[k]).abs() < 1e-13, "a = {a}, row {i}: {} {}", out[k][i], expected[k]);
                assert!((logs[k][i] - row[k].max(FLOOR).ln()).abs() < 1e-14 * logs[k][i].abs().max(1.0));
            }
        }
    }
}
