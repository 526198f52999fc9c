//! The sum both likelihoods rest on, Σ_{i∈U} log(v·s_i): with v = w it is the label-shift likelihood, with v = 1 − phi
//! and s = p the unlabelled part of the observed likelihood. Several rows are processed at a time, with whatever vector
//! instructions the processor has.

use crate::rows::{Block, Sums};
use crate::travel::{bytes, travels};
use nalgebra::DMatrix;
use pulp::{Arch, Simd, WithSimd};
use std::sync::Arc;

/// Rows processed at a time: a tile of K = 10 classes is 10 KB, well inside the first-level cache.
const TILE: usize = 128;

/// Vectors processed together; the tile is a multiple of it for any vector of up to 32 numbers.
const UNROLL: usize = 4;

/// Value, gradient and negated Hessian of Σ_{i∈U} log(v·s_i).
#[derive(Clone)]
pub(crate) struct LogMixture {
    v: Arc<[f64]>,
    with_hessian: bool,
    /// Only every `every`-th tile is added: a sample for the first steps of the solver.
    every: usize,
    /// Total weight of the rows added.
    pub(crate) rows: f64,
    /// Σ log(v·s_i).
    pub(crate) value: f64,
    /// Σ s_ik / (v·s_i).
    pub(crate) gradient: Vec<f64>,
    /// Σ s_ik s_il / (v·s_i)², row-major, lower triangle filled.
    hessian: Vec<f64>,
}

bytes!(LogMixture { v, with_hessian, every, rows, value, gradient, hessian });

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

    /// Multiplies all sums, so that those of a sample stand for all rows.
    pub(crate) fn scale(&mut self, factor: f64) {
        self.value *= factor;
        self.gradient.iter_mut().chain(&mut self.hessian).for_each(|sum| *sum *= factor);
    }

    /// The negated Hessian as a symmetric matrix.
    pub(crate) fn hessian(&self) -> DMatrix<f64> {
        let k = self.v.len();
        DMatrix::from_fn(k, k, |a, b| self.hessian[a.max(b) * k + a.min(b)])
    }

    /// Adds a symmetric matrix to the negated Hessian.
    pub(crate) fn bend(&mut self, by: &DMatrix<f64>) {
        let k = self.v.len();
        for a in 0..k {
            (0..=a).for_each(|b| self.hessian[a * k + b] += by[(a, b)]);
        }
    }

    #[inline(always)]
    fn add_tiles<S: Simd>(&mut self, simd: S, block: &Block<'_>) {
        let k = self.v.len();
        let mut work = Work {
            v: self.v.iter().map(|v| simd.splat_f64s(*v)).collect(),
            gradient: vec![simd.splat_f64s(0.0); k],
            scaled: vec![[0.0; TILE]; k],
        };
        let mut columns: Vec<&[f64; TILE]> = Vec::with_capacity(k);
        let whole = block.len() / TILE * TILE;
        for start in (0..whole).step_by(TILE * self.every) {
            columns.clear();
            for column in block.columns {
                columns.push(column[start..start + TILE].try_into().expect("a whole tile"));
            }
            self.add_tile(simd, &columns, block, start, TILE, &mut work);
        }
        let rest = block.len() - whole;
        if rest > 0 && self.every == 1 {
            let mut padded = vec![[0.0; TILE]; k];
            for (tile, column) in padded.iter_mut().zip(block.columns) {
                tile[..rest].copy_from_slice(&column[whole..]);
            }
            let columns: Vec<&[f64; TILE]> = padded.iter().collect();
            self.add_tile(simd, &columns, block, whole, rest, &mut work);
        }
        for (total, part) in self.gradient.iter_mut().zip(work.gradient) {
            *total += simd.reduce_sum_f64s(part);
        }
    }

    /// Adds rows `start..start + m` of the block, whose columns are given as tiles padded with zeros.
    #[inline(always)]
    fn add_tile<S: Simd>(
        &mut self,
        simd: S,
        columns: &[&[f64; TILE]],
        block: &Block<'_>,
        start: usize,
        m: usize,
        work: &mut Work<S>,
    ) {
        let k = columns.len();
        // 1 for rows that count, 0 for labelled rows and for padding; and the square root of their weight, which enters
        // the Hessian twice and the gradient as its square.
        let mut counts = [0.0; TILE];
        for (counts, label) in counts.iter_mut().zip(&block.labels[start..start + m]) {
            *counts = f64::from(u8::from(label.is_none()));
        }
        let mut root_weight = counts;
        if let Some(weights) = block.weights {
            for ((counts, root), weight) in counts.iter_mut().zip(&mut root_weight).zip(&weights[start..start + m]) {
                *root *= weight.sqrt();
                *counts = if *root > 0.0 { 1.0 } else { 0.0 };
            }
        }
        let mut mixtures = [0.0; TILE];
        let one = simd.splat_f64s(1.0);
        let (mut low, mut high, mut product) = (simd.splat_f64s(f64::MAX), simd.splat_f64s(0.0), one);
        let (counts_v, root_v) = (S::as_simd_f64s(&counts).0, S::as_simd_f64s(&root_weight).0);
        let mixtures_v = S::as_mut_simd_f64s(&mut mixtures).0;
        // Four vectors at a time, so that the additions of one hide the latency of the others.
        for i in (0..counts_v.len()).step_by(UNROLL) {
            let mut mixture = [simd.splat_f64s(0.0); UNROLL];
            for (column, v) in columns.iter().zip(&work.v) {
                let column = &S::as_simd_f64s(*column).0[i..i + UNROLL];
                for u in 0..UNROLL {
                    mixture[u] = simd.mul_add_e_f64s(*v, column[u], mixture[u]);
                }
            }
            let (counts, root) = (&counts_v[i..i + UNROLL], &root_v[i..i + UNROLL]);
            let mut factor = mixture;
            for u in 0..UNROLL {
                // Rows that do not count get a mixture of 1, whose logarithm is zero.
                mixture[u] = simd.mul_add_e_f64s(mixture[u], counts[u], simd.sub_f64s(one, counts[u]));
                low = simd.min_f64s(low, mixture[u]);
                high = simd.max_f64s(high, mixture[u]);
                product = simd.mul_f64s(product, mixture[u]);
                factor[u] = simd.div_f64s(root[u], mixture[u]);
            }
            mixtures_v[i..i + UNROLL].copy_from_slice(&mixture);
            for ((column, scaled), gradient) in columns.iter().zip(&mut work.scaled).zip(&mut work.gradient) {
                let column = &S::as_simd_f64s(*column).0[i..i + UNROLL];
                let scaled = &mut S::as_mut_simd_f64s(scaled).0[i..i + UNROLL];
                let mut sum = simd.splat_f64s(0.0);
                for u in 0..UNROLL {
                    scaled[u] = simd.mul_f64s(column[u], factor[u]);
                    sum = simd.mul_add_e_f64s(scaled[u], root[u], sum);
                }
                *gradient = simd.add_f64s(*gradient, sum);
            }
        }
        self.value += match block.weights {
            None => {
                self.rows += counts.iter().sum::<f64>();
                sum_of_logs(simd, &mixtures, product, simd.reduce_min_f64s(low), simd.reduce_max_f64s(high))
            }
            Some(_) => {
                let mut value = 0.0;
                for (root, mixture) in root_weight.iter().zip(&mixtures) {
                    self.rows += root * root;
                    value += root * root * mixture.ln();
                }
                value
            }
        };
        if self.with_hessian {
            let scaled = &work.scaled;
            for a in (0..k).step_by(2) {
                for b in (0..=a).step_by(2) {
                    // Two by two, so that every load serves two products. Entries above the diagonal are never read.
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

/// Working memory of a pass over the tiles of a block.
struct Work<S: Simd> {
    v: Vec<S::f64s>,
    gradient: Vec<S::f64s>,
    /// √weight · s / (v·s), one tile per class.
    scaled: Vec<[f64; TILE]>,
}

/// Adds one block, compiled once per instruction set and dispatched at run time.
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

    travels!(LogMixture);
}

/// `total += part`, entry by entry.
pub(crate) fn add_to(total: &mut [f64], part: &[f64]) {
    total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
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

/// Σ log x over a tile: the logarithm of the lane-wise products as long as those cannot leave the range of f64 (with
/// four lanes, 32 factors above 1.8e-9), one logarithm per value otherwise.
#[inline(always)]
fn sum_of_logs<S: Simd>(_: S, x: &[f64; TILE], products: S::f64s, low: f64, high: f64) -> f64 {
    let lanes = size_of::<S::f64s>() / size_of::<f64>();
    let reach = 280.0 / (TILE / lanes) as f64;
    if low > 10f64.powf(-reach) && high < 10f64.powf(reach) {
        let mut lane = [1.0; TILE];
        S::as_mut_simd_f64s(&mut lane).0[0] = products;
        lane[..lanes].iter().map(|product| product.ln()).sum()
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

    /// 1e-40 to the power of 32 is not representable as f64; the logarithms are then summed one by one.
    #[test]
    fn products_that_would_underflow_are_summed_one_by_one() {
        let (p, y) = table(1000, 3, 0.1);
        let sample = Sample::new(&p, &y).unwrap();
        let value = |scale: f64| sample.scan(&LogMixture::at(&[0.5 * scale, scale, 2.0 * scale], false)).unwrap().value;
        let n_u = y.n_unlabelled() as f64;
        assert!((value(1e-40) - value(1.0) - n_u * 1e-40f64.ln()).abs() < 1e-6);
        assert!((value(1e40) - value(1.0) - n_u * 1e40f64.ln()).abs() < 1e-6);
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
