//! Metrics of probabilities: log-loss, Brier score, calibration error and calibration slope.

use super::expected::Counted;
use crate::posteriors::{Posteriors, softmax_in_place};
use nalgebra::{DMatrix, DVector};
use ndarray::{Array2, ShapeBuilder};

/// Smaller probabilities count as this in logarithms, as in scikit-learn.
const FLOOR: f64 = f64::EPSILON;
/// Bins of the calibration error, of equal width.
pub(super) const BINS: usize = 15;
/// With more classes there is no calibration slope: a bias per class would need large matrices.
pub(super) const MOST_SLOPE_CLASSES: usize = 32;

/// The probabilities of a model, prepared for many passes.
pub(super) struct Prepared<'a> {
    pub(super) p: &'a Posteriors,
    log: Array2<f64>,
    squares: Vec<f64>,
    bin: Vec<u8>,
    confidence: Vec<f64>,
}

/// What one pass over the rows gives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    pub(super) log_loss: f64,
    pub(super) brier: f64,
    pub(super) calibration_error: f64,
}

/// The sums behind [`Losses`].
#[derive(Clone, Copy, Debug)]
pub(super) struct LossSums {
    /// Σ a_ik.
    pub(super) mass: f64,
    pub(super) log_loss: f64,
    pub(super) brier: f64,
    /// Right decisions less confidence, in bins of the confidence.
    pub(super) gap: [f64; BINS],
}

impl LossSums {
    pub(super) fn losses(&self) -> Losses {
        let mass = self.mass;
        let calibration_error = self.gap.iter().map(|gap| gap.abs()).sum::<f64>() / mass;
        Losses { log_loss: self.log_loss / mass, brier: self.brier / mass, calibration_error }
    }
}

impl<'a> Prepared<'a> {
    pub(super) fn new(p: &'a Posteriors, decisions: &[u32]) -> Self {
        let (n, k) = (p.len(), p.n_classes());
        let mut log = Array2::zeros((n, k).f());
        let mut squares = vec![0.0; n];
        for (j, mut log) in log.columns_mut().into_iter().enumerate() {
            for ((log, squares), &p) in log.iter_mut().zip(&mut squares).zip(p.column(j)) {
                *log = p.clamp(FLOOR, 1.0 - FLOOR).ln();
                *squares += p * p;
            }
        }
        let confidence: Vec<f64> = decisions.iter().enumerate().map(|(i, &d)| p.column(d as usize)[i]).collect();
        let bin = confidence.iter().map(|c| ((c * BINS as f64) as usize).min(BINS - 1) as u8).collect();
        Self { p, log, squares, bin, confidence }
    }

    fn log(&self, k: usize) -> &[f64] {
        self.log.column(k).to_slice().unwrap_or(&[])
    }

    /// The log-loss and the Brier score of row `i` for every class.
    pub(super) fn losses_of(&self, i: usize, log_loss: &mut [f64], brier: &mut [f64]) {
        let scale = if self.p.n_classes() == 2 { 0.5 } else { 1.0 };
        for k in 0..self.p.n_classes() {
            log_loss[k] = -self.log(k)[i];
            brier[k] = scale * (1.0 + self.squares[i] - 2.0 * self.p.column(k)[i]);
        }
    }

    pub(super) fn losses(&self, counted: &Counted<'_>, decisions: &[u32], rows: &[u32]) -> Losses {
        self.loss_sums(counted, decisions, rows).losses()
    }

    /// The sums that the losses are made of.
    pub(super) fn loss_sums(&self, counted: &Counted<'_>, decisions: &[u32], rows: &[u32]) -> LossSums {
        let (mut mass, mut log_loss, mut brier) = (0.0, 0.0, 0.0);
        let mut gap = [0.0; BINS];
        for &row in rows {
            let i = row as usize;
            let m = counted.mass(i);
            mass += m;
            brier += m * (1.0 + self.squares[i]);
            gap[usize::from(self.bin[i])] += counted.get(i, decisions[i] as usize) - m * self.confidence[i];
        }
        for k in 0..self.p.n_classes() {
            let (log, p, t) = (self.log(k), self.p.column(k), counted.t.column(k));
            for &row in rows {
                let i = row as usize;
                let a = counted.share[i] * t[i];
                log_loss -= a * log[i];
                brier -= 2.0 * a * p[i];
            }
        }
        for &row in rows {
            let i = row as usize;
            if let Some(class) = counted.labels.get(i) {
                let k = class.index();
                log_loss -= counted.base[i] * self.log(k)[i];
                brier -= 2.0 * counted.base[i] * self.p.column(k)[i];
            }
        }
        // With two classes both terms of the sum are the same, and one of them is the usual definition.
        let scale = if self.p.n_classes() == 2 { 0.5 } else { 1.0 };
        LossSums { mass, log_loss, brier: scale * brier, gap }
    }

    /// The reliability of the most probable class: for every bin, its mass, mean confidence and share of right decisions.
    pub(super) fn reliability(&self, counted: &Counted<'_>, decisions: &[u32], rows: &[u32]) -> Vec<[f64; 3]> {
        let mut bins = vec![[0.0; 3]; BINS];
        for &row in rows {
            let i = row as usize;
            let (m, bin) = (counted.mass(i), &mut bins[usize::from(self.bin[i])]);
            bin[0] += m;
            bin[1] += m * self.confidence[i];
            bin[2] += counted.get(i, decisions[i] as usize);
        }
        bins.iter().map(|&[m, c, a]| [m, c / m, (a / m).clamp(0.0, 1.0)]).collect()
    }

    /// Maximises Σ a_ik log softmax(β log p_ik + b_k) over β, the slope, and b: below 1, the model is too sure. The likelihood
    /// is concave whatever the sign of a_ik. `start` and few steps are for replicates, which start next to their maximum.
    pub(super) fn slope(&self, counted: &Counted<'_>, rows: &[u32], start: Option<&[f64]>, steps: usize) -> Vec<f64> {
        let k = self.p.n_classes();
        // β, then b of all classes but the first.
        let mut theta = start.map_or_else(|| (0..k).map(|j| f64::from(u8::from(j == 0))).collect(), <[f64]>::to_vec);
        let exact = start.is_none();
        let (mut at, mut gradient, mut hessian) = self.slope_terms(counted, rows, &theta);
        for _ in 0..steps {
            let ridge = 1e-12 * hessian.diagonal().max().max(1e-300);
            let damped = hessian.clone() + DMatrix::identity(k, k) * ridge;
            let Some(step) = damped.cholesky().map(|cholesky| cholesky.solve(&gradient)) else { return undefined(k) };
            let mut length = 1.0;
            loop {
                let next: Vec<f64> = theta.iter().zip(step.iter()).map(|(theta, step)| theta + length * step).collect();
                let terms = self.slope_terms(counted, rows, &next);
                if terms.0 >= at - 1e-12 * at.abs() || length < 1e-4 {
                    (at, gradient, hessian) = terms;
                    theta = next;
                    break;
                }
                length /= 2.0;
            }
            // A model that orders all labelled rows rightly has no finite slope.
            if !theta[0].is_finite() || theta[0].abs() > 1e4 {
                return undefined(k);
            }
            if step.amax() * length < 1e-10 {
                return theta;
            }
        }
        if exact { undefined(k) } else { theta }
    }

    /// What a row adds to the slope if it counts once more for each class, by solving with minus the Hessian at the maximum: fills in
    /// the values of row `i`. `None` where there is no slope.
    pub(super) fn slope_influences(&self, counted: &Counted<'_>, rows: &[u32]) -> Option<impl Fn(usize, &mut [f64])> {
        let k = self.p.n_classes();
        let theta = self.slope(counted, rows, None, 50);
        if !theta[0].is_finite() {
            return None;
        }
        let (_, _, hessian) = self.slope_terms(counted, rows, &theta);
        let mut first = DVector::zeros(k);
        first[0] = 1.0;
        let solved = hessian.cholesky()?.solve(&first);
        Some(move |i: usize, influences: &mut [f64]| {
            let logits = (0..k).map(|j| theta[0] * self.log(j)[i] + if j == 0 { 0.0 } else { theta[j] });
            let mut q: Vec<f64> = logits.collect();
            softmax_in_place(&mut q);
            let mean: f64 = (0..k).map(|j| q[j] * self.log(j)[i]).sum();
            let biases: f64 = (1..k).map(|j| solved[j] * q[j]).sum();
            for (class, influence) in influences.iter_mut().enumerate() {
                let bias = if class == 0 { 0.0 } else { solved[class] };
                *influence = solved[0] * (self.log(class)[i] - mean) + bias - biases;
            }
        })
    }

    /// The likelihood, its gradient, and minus its Hessian.
    fn slope_terms(&self, counted: &Counted<'_>, rows: &[u32], theta: &[f64]) -> (f64, DVector<f64>, DMatrix<f64>) {
        let k = self.p.n_classes();
        let logs: Vec<&[f64]> = (0..k).map(|j| self.log(j)).collect();
        let t: Vec<&[f64]> = (0..k).map(|j| counted.t.column(j)).collect();
        let bias = |j: usize| if j == 0 { 0.0 } else { theta[j] };
        let (mut value, mut gradient, mut hessian) = (0.0, DVector::zeros(k), DMatrix::zeros(k, k));
        let (mut q, mut a) = (vec![0.0; k], vec![0.0; k]);
        for &row in rows {
            let i = row as usize;
            let (base, share, label) = (counted.base[i], counted.share[i], counted.labels.get(i));
            let m = base + share;
            if base == 0.0 && share == 0.0 {
                continue;
            }
            let mut largest = f64::MIN;
            for j in 0..k {
                q[j] = theta[0] * logs[j][i] + bias(j);
                largest = largest.max(q[j]);
                a[j] = share * t[j][i];
            }
            if let Some(class) = label {
                a[class.index()] += base;
            }
            let linear: f64 = (0..k).map(|j| a[j] * q[j]).sum();
            q.iter_mut().for_each(|q| *q = (*q - largest).exp());
            let sum: f64 = q.iter().sum();
            value += linear - m * (largest + sum.ln());
            let (mut mean, mut square) = (0.0, 0.0);
            for j in 0..k {
                q[j] /= sum;
                mean += q[j] * logs[j][i];
                square += q[j] * logs[j][i] * logs[j][i];
                gradient[0] += a[j] * logs[j][i];
            }
            gradient[0] -= m * mean;
            hessian[(0, 0)] += m * (square - mean * mean);
            for j in 1..k {
                gradient[j] += a[j] - m * q[j];
                hessian[(j, 0)] += m * q[j] * (logs[j][i] - mean);
                hessian[(j, j)] += m * q[j];
                for l in 1..=j {
                    hessian[(j, l)] -= m * q[j] * q[l];
                }
            }
        }
        hessian.fill_upper_triangle_with_lower_triangle();
        (value, gradient, hessian)
    }
}

fn undefined(k: usize) -> Vec<f64> {
    vec![f64::NAN; k]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::{Class, Labels};
    use crate::posteriors::PosteriorKind;

    #[test]
    fn the_influence_on_the_slope_is_its_derivative() {
        let p = Array2::from_shape_fn((30, 3), |(i, k)| ((i * 7 + k * 11) % 13) as f64 / 6.0);
        let p = Posteriors::from_logits(p.view(), PosteriorKind::Labelled).unwrap();
        let y = (0..30).map(|i| Some(Class::from((i * 5 + i / 7) % 3))).collect();
        let labels = Labels::allow_degenerate(y, ["a", "b", "c"].map(String::from).to_vec()).unwrap();
        let counted = Counted { labels: &labels, t: &p, base: vec![1.0; 30], share: vec![0.1; 30] };
        let (rows, prepared): (Vec<u32>, _) = ((0..30).collect(), Prepared::new(&p, &[0; 30]));
        let slope = prepared.slope(&counted, &rows, None, 50)[0];
        let influences = prepared.slope_influences(&counted, &rows).unwrap();
        for i in 0..30 {
            let mut more = counted.clone();
            more.base[i] += 1e-5;
            let derivative = (prepared.slope(&more, &rows, None, 50)[0] - slope) / 1e-5;
            let mut values = [0.0; 3];
            influences(i, &mut values);
            let influence = values[labels.get(i).unwrap().index()];
            assert!((derivative - influence).abs() < 1e-4 * (1.0 + influence.abs()), "{i}: {derivative} {influence}");
        }
    }
}
