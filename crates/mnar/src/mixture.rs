//! The one sum both likelihoods rest on, Σ_{i∈U} log(v·s_i): with v = w it is the label-shift likelihood, with
//! v = 1 − phi and s = p the unlabelled part of eq:loglikeli. Several rows at a time, on whatever vectors the
//! processor has.

use crate::rows::{Block, Sums};
use nalgebra::DMatrix;
use pulp::{Arch, Simd, WithSimd};
use std::sync::Arc;

/// Rows handled at a time: a tile of K = 10 classes is 10 KB, well inside the first-level cache.
const TILE: usize = 128;
const LANES: usize = 8;

/// Value, gradient and negated Hessian of Σ_{i∈U} log(v·s_i).
#[derive(Clone)]
pub(crate) struct LogMixture {
    v: Arc<[f64]>,
    with_hessian: bool,
    /// Only every `every`-th tile is added: a sample for the first steps.
    every: usize,
    /// The weight of the rows added.
    pub(crate) rows: f64,
    /// Σ log(v·s_i).
    pub(crate) value: f64,
    /// Σ s_ik / (v·s_i).
    pub(crate) gradient: Vec<f64>,
    /// Σ s_ik s_il / (v·s_i)², row-major, lower triangle filled.
    hessian: Vec<f64>,
}

impl LogMixture {
    pub(crate) fn at(v: &[f64], with_hessian: bool) -> Self {
        let k = v.len();
        Self {
            v: v.into(),
            with_hessian,
            every: 1,
            rows: 0.0,
            value: 0.0,
            gradient: vec![0.0; k],
            hessian: vec![0.0; if with_hessian { k * k } else { 0 }],
        }
    }

    /// The same over every `every`-th tile only.
    pub(crate) fn sampled(mut self, every: usize) -> Self {
        self.every = every;
        self
    }

    /// Multiplies all sums, to make those of a sample stand for all rows.
    pub(crate) fn scale(&mut self, factor: f64) {
        self.value *= factor;
        self.gradient.iter_mut().chain(&mut self.hessian).for_each(|sum| *sum *= factor);
    }

    /// The negated Hessian as a symmetric matrix.
    pub(crate) fn hessian(&self) -> DMatrix<f64> {
        let k = self.v.len();
        DMatrix::from_fn(k, k, |a, b| self.hessian[a.max(b) * k + a.min(b)])
    }

    #[inline(always)]
    fn add_tiles<S: Simd>(&mut self, simd: S, block: &Block<'_>) {
        let mut scaled = vec![[0.0; TILE]; self.v.len()];
        let whole = block.len() / TILE * TILE;
        for start in (0..whole).step_by(TILE * self.every) {
            let column =
                |k: usize| -> &[f64; TILE] { block.columns[k][start..start + TILE].try_into().expect("a whole tile") };
            self.add_tile(simd, column, block, start, TILE, &mut scaled);
        }
        let rest = block.len() - whole;
        if rest > 0 && self.every == 1 {
            let padded: Vec<[f64; TILE]> = block
                .columns
                .iter()
                .map(|column| {
                    let mut tile = [0.0; TILE];
                    tile[..rest].copy_from_slice(&column[whole..]);
                    tile
                })
                .collect();
            self.add_tile(simd, |k| &padded[k], block, whole, rest, &mut scaled);
        }
    }

    /// Adds rows `start..start + m` of the block, whose columns are given as tiles padded with zeros.
    #[inline(always)]
    fn add_tile<'t, S: Simd>(
        &mut self,
        simd: S,
        column: impl Fn(usize) -> &'t [f64; TILE],
        block: &Block<'_>,
        start: usize,
        m: usize,
        scaled: &mut [[f64; TILE]],
    ) {
        let k = self.v.len();
        let mut mixture = [0.0; TILE];
        for (j, &v) in self.v.iter().enumerate() {
            let column = column(j);
            for i in 0..TILE {
                mixture[i] += v * column[i];
            }
        }
        // Labelled rows and the padding count zero times.
        let mut weight = [0.0; TILE];
        for (weight, label) in weight.iter_mut().zip(&block.labels[start..start + m]) {
            *weight = if label.is_none() { 1.0 } else { 0.0 };
        }
        if let Some(weights) = block.weights {
            for (weight, row) in weight.iter_mut().zip(&weights[start..start + m]) {
                *weight *= row;
            }
        }
        self.rows += weight.iter().sum::<f64>();
        let mut factor = [0.0; TILE];
        for i in 0..TILE {
            // A mixture of 1 keeps the logarithm of a row that does not count at zero.
            mixture[i] = if weight[i] == 0.0 { 1.0 } else { mixture[i] };
            factor[i] = 1.0 / mixture[i];
        }
        self.value += if block.weights.is_none() {
            sum_of_logs(&mixture)
        } else {
            weight.iter().zip(&mixture).map(|(weight, mixture)| weight * mixture.ln()).sum()
        };
        if block.weights.is_some() {
            // The Hessian needs √weight twice, the gradient the weight once.
            weight.iter_mut().for_each(|weight| *weight = weight.sqrt());
        }
        for i in 0..TILE {
            factor[i] *= weight[i];
        }
        for j in 0..k {
            let (column, scaled) = (column(j), &mut scaled[j]);
            for i in 0..TILE {
                scaled[i] = column[i] * factor[i];
            }
            self.gradient[j] += dot(simd, scaled, &weight);
        }
        if self.with_hessian {
            for a in (0..k).step_by(2) {
                for b in (0..=a).step_by(2) {
                    // Two by two, so that every load serves two products. Entries above the diagonal are not read.
                    let (a1, b1) = ((a + 1).min(k - 1), (b + 1).min(k - 1));
                    let products = dots(simd, &scaled[a], &scaled[a1], &scaled[b], &scaled[b1]);
                    self.hessian[a * k + b] += products[0];
                    if a1 > a {
                        self.hessian[a1 * k + b] += products[2];
                    }
                    if b1 > b && b1 <= a {
                        self.hessian[a * k + b1] += products[1];
                    }
                    if a1 > a && b1 > b {
                        self.hessian[a1 * k + b1] += products[3];
                    }
                }
            }
        }
    }
}

/// One block to add, compiled once for each instruction set and chosen at run time.
struct AddBlock<'a, 'b> {
    sums: &'a mut LogMixture,
    block: &'a Block<'b>,
}

impl WithSimd for AddBlock<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.sums.add_tiles(simd, self.block);
    }
}

impl Sums for LogMixture {
    fn add(&mut self, block: &Block<'_>) {
        Arch::new().dispatch(AddBlock { sums: self, block });
    }

    fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        self.value += other.value;
        add_to(&mut self.gradient, &other.gradient);
        add_to(&mut self.hessian, &other.hessian);
    }
}

/// `total += part`, entry by entry.
pub(crate) fn add_to(total: &mut [f64], part: &[f64]) {
    total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
}

#[inline(always)]
fn dot<S: Simd>(simd: S, a: &[f64; TILE], b: &[f64; TILE]) -> f64 {
    let (a, b) = (S::as_simd_f64s(a).0, S::as_simd_f64s(b).0);
    let mut even = simd.splat_f64s(0.0);
    let mut odd = even;
    for (a, b) in a.chunks_exact(2).zip(b.chunks_exact(2)) {
        even = simd.mul_add_e_f64s(a[0], b[0], even);
        odd = simd.mul_add_e_f64s(a[1], b[1], odd);
    }
    simd.reduce_sum_f64s(simd.add_f64s(even, odd))
}

/// a·b, a·b1, a1·b, a1·b1.
#[inline(always)]
fn dots<S: Simd>(simd: S, a: &[f64; TILE], a1: &[f64; TILE], b: &[f64; TILE], b1: &[f64; TILE]) -> [f64; 4] {
    let (a, a1) = (S::as_simd_f64s(a).0, S::as_simd_f64s(a1).0);
    let (b, b1) = (S::as_simd_f64s(b).0, S::as_simd_f64s(b1).0);
    let zero = simd.splat_f64s(0.0);
    let (mut ab, mut ab1, mut a1b, mut a1b1) = (zero, zero, zero, zero);
    for (((&a, &a1), &b), &b1) in a.iter().zip(a1).zip(b).zip(b1) {
        ab = simd.mul_add_e_f64s(a, b, ab);
        ab1 = simd.mul_add_e_f64s(a, b1, ab1);
        a1b = simd.mul_add_e_f64s(a1, b, a1b);
        a1b1 = simd.mul_add_e_f64s(a1, b1, a1b1);
    }
    [ab, ab1, a1b, a1b1].map(|sum| simd.reduce_sum_f64s(sum))
}

/// Σ log x over a tile: the logarithm of products of sixteen, as long as those cannot leave the range of f64
/// (1e-18^16 = 1e-288), one by one otherwise.
#[inline(always)]
fn sum_of_logs(x: &[f64; TILE]) -> f64 {
    let mut low = [f64::INFINITY; LANES];
    let mut high = [0.0f64; LANES];
    let mut product = [1.0; LANES];
    for x in x.chunks_exact(LANES) {
        for l in 0..LANES {
            low[l] = low[l].min(x[l]);
            high[l] = high[l].max(x[l]);
            product[l] *= x[l];
        }
    }
    if low.iter().all(|&low| low > 1e-18) && high.iter().all(|&high| high < 1e18) {
        product.iter().map(|p| p.ln()).sum()
    } else {
        x.iter().map(|x| x.ln()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Labels, PosteriorKind, Posteriors, Rows, Sample};
    use ndarray::Array2;
    use proptest::prelude::*;

    fn table(n: usize, k: usize, seed: f64) -> (Posteriors, Labels) {
        let logits = Array2::from_shape_fn((n, k), |(i, j)| 2.0 * (seed + 1.3 * i as f64 + 2.7 * j as f64).sin());
        let y = (0..n).map(|i| (i % 4 == 0).then(|| Class::from(i / 4 % k))).collect();
        (
            Posteriors::from_logits(logits.view(), PosteriorKind::Labelled).unwrap(),
            Labels::new(y, (0..k).map(|k| k.to_string()).collect()).unwrap(),
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Odd sizes exercise the padding of the last tile; the value is compared with a plain sum.
        #[test]
        fn sums_gradient_and_hessian(n in 9usize..700, k in 2usize..7, seed in 0.0f64..10.0, weighted: bool) {
            let (p, y) = table(n, k, seed);
            let weights: Vec<f64> = (0..n).map(|i| (i % 5) as f64 / 2.0).collect();
            let sample = Sample::new(&p, &y).unwrap();
            let sample = if weighted { sample.weighted(&weights).unwrap() } else { sample };
            let v: Vec<f64> = (0..k).map(|j| 0.2 + j as f64 / 3.0).collect();
            let at = |v: &[f64]| sample.scan(&LogMixture::at(v, true)).unwrap();
            let sums = at(&v);
            let plain: f64 = (0..n)
                .filter(|&i| !y.is_labelled(i))
                .map(|i| if weighted { weights[i] } else { 1.0 } * p.row(i).iter().zip(&v).map(|(p, v)| p * v).sum::<f64>().ln())
                .sum();
            prop_assert!((sums.value - plain).abs() < 1e-10 * (1.0 + plain.abs()));
            let h = 1e-5;
            for a in 0..k {
                let (mut up, mut down) = (v.clone(), v.clone());
                up[a] += h;
                down[a] -= h;
                let (up, down) = (at(&up), at(&down));
                let slope = (up.value - down.value) / (2.0 * h);
                prop_assert!((slope - sums.gradient[a]).abs() < 1e-6 * n as f64);
                for b in 0..k {
                    let curve = -(up.gradient[b] - down.gradient[b]) / (2.0 * h);
                    prop_assert!((curve - sums.hessian()[(a, b)]).abs() < 1e-5 * n as f64);
                }
            }
        }
    }

    #[test]
    fn products_that_would_underflow_are_summed_one_by_one() {
        assert!((sum_of_logs(&[1e-40; TILE]) - TILE as f64 * 1e-40f64.ln()).abs() < 1e-9);
        assert_eq!(sum_of_logs(&[1.0; TILE]), 0.0);
    }

    /// The number of threads must not change a bit.
    #[test]
    fn sums_do_not_depend_on_threads() {
        let (p, y) = table(30_000, 4, 0.3);
        let sample = Sample::new(&p, &y).unwrap();
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| sample.scan(&LogMixture::at(&[0.4, 0.9, 1.1, 2.0], true)).unwrap())
        };
        let (one, three) = (with(1), with(3));
        assert_eq!(one.value.to_bits(), three.value.to_bits());
        assert_eq!(one.hessian, three.hessian);
    }
}
