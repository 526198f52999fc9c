//! The sums that the likelihood of r given x rests on.

use super::Mechanism;
use crate::mixture::add_to;
use crate::rows::{Block, Sums};
use crate::travel::{bytes, travels};
use nalgebra::{DMatrix, DVector};
use std::sync::Arc;

/// What the likelihood needs to know about one row.
struct Row {
    /// log P(r=0|x)/P(r=1|x).
    log_odds: f64,
    /// P(r=0|x).
    unlabelled: f64,
    /// 1[r=0] − P(r=0|x).
    residual: f64,
}

/// The mechanism, in the form in which rows use it.
#[derive(Clone)]
struct At {
    /// exp(−a).
    inverse_odds: Arc<[f64]>,
    b: Arc<[f64]>,
    /// The coefficient of the column that follows the terms, if it is not 0.
    tilt: f64,
}

bytes!(At { inverse_odds, b, tilt });

impl At {
    fn new(mechanism: &Mechanism) -> Self {
        Self {
            inverse_odds: mechanism.classes.iter().map(|a| (-a).exp()).collect(),
            b: mechanism.terms.as_slice().into(),
            tilt: 0.0,
        }
    }

    fn classes(&self) -> usize {
        self.inverse_odds.len()
    }

    /// Fills `slope` with (t, z), the negated gradient of the predictor, and returns the rest.
    #[inline]
    fn row(&self, block: &Block<'_>, i: usize, slope: &mut [f64]) -> Row {
        let k = self.classes();
        let mut total = 0.0;
        for ((slope, column), inverse_odds) in slope.iter_mut().zip(block.columns).zip(self.inverse_odds.iter()) {
            *slope = column[i] * inverse_odds;
            total += *slope;
        }
        slope[..k].iter_mut().for_each(|t| *t /= total);
        let mut log_odds = total.ln();
        for ((slope, column), b) in slope[k..].iter_mut().zip(block.given).zip(self.b.iter()) {
            *slope = column[i];
            log_odds -= b * column[i];
        }
        if self.tilt != 0.0 {
            log_odds -= self.tilt * block.given[self.b.len()][i];
        }
        let unlabelled = 1.0 / (1.0 + (-log_odds).exp());
        let r0 = f64::from(u8::from(block.labels[i].is_none()));
        Row { log_odds, unlabelled, residual: r0 - unlabelled }
    }
}

/// Loss, gradient and information of the likelihood of r given x, the expected classes of the unlabelled rows, and the
/// scores of further directions: `given` holds the terms of the mechanism, then the directions.
#[derive(Clone)]
pub(crate) struct Selection {
    at: At,
    /// −log likelihood.
    pub(super) loss: f64,
    /// Σ residual·(t, z): the gradient of the loss is this.
    gradient: Vec<f64>,
    /// Σ P(r=0) P(r=1) (t, z)(t, z)', lower triangle.
    information: Vec<f64>,
    /// Σ residual·t t', lower triangle: with the gradient, what the Hessian has beyond the information.
    curvature: Vec<f64>,
    /// Σ_U t.
    pub(super) unlabelled: Vec<f64>,
    /// Σ residual·g.
    direction_scores: Vec<f64>,
    /// Σ P(r=0) P(r=1) g (t, z)'.
    direction_information: Vec<f64>,
}

bytes!(Selection { at, loss, gradient, information, curvature, unlabelled, direction_scores, direction_information });

impl Selection {
    pub(crate) fn at(mechanism: &Mechanism, directions: usize) -> Self {
        let (k, p) = (mechanism.classes.len(), mechanism.classes.len() + mechanism.terms.len());
        Self {
            at: At::new(mechanism),
            loss: 0.0,
            gradient: vec![0.0; p],
            information: vec![0.0; p * p],
            curvature: vec![0.0; k * k],
            unlabelled: vec![0.0; k],
            direction_scores: vec![0.0; directions],
            direction_information: vec![0.0; directions * p],
        }
    }

    /// The same where the column that follows the terms has this coefficient.
    pub(super) fn tilted(mut self, tilt: f64) -> Self {
        self.at.tilt = tilt;
        self
    }

    /// The gradient of the loss: the predictor falls with the parameters, and the loss falls with the residual.
    pub(crate) fn gradient(&self) -> DVector<f64> {
        DVector::from_column_slice(&self.gradient)
    }

    pub(crate) fn information(&self) -> DMatrix<f64> {
        let p = self.gradient.len();
        DMatrix::from_fn(p, p, |i, j| self.information[i.max(j) * p + i.min(j)])
    }

    /// The Hessian of the loss. The predictor bends in a: its second derivative is diag(t) − t t'.
    pub(super) fn hessian(&self) -> DMatrix<f64> {
        let k = self.unlabelled.len();
        let mut hessian = self.information();
        for a in 0..k {
            hessian[(a, a)] -= self.gradient[a];
            for b in 0..k {
                hessian[(a, b)] += self.curvature[a.max(b) * k + a.min(b)];
            }
        }
        hessian
    }

    /// The scores of the directions with those of the parameters projected out, which makes them insensitive to small
    /// errors of the parameters.
    pub(super) fn projected_scores(&self) -> Option<Vec<f64>> {
        let (p, m) = (self.gradient.len(), self.direction_scores.len());
        let weak = DMatrix::from_diagonal_element(p, p, 1e-9 * self.information().diagonal().max().max(1e-300));
        let solved = (self.information() + weak).cholesky()?.solve(&self.gradient());
        let cross = DMatrix::from_row_slice(m, p, &self.direction_information);
        let corrected = DVector::from_column_slice(&self.direction_scores) - cross * solved;
        Some(corrected.as_slice().to_vec())
    }
}

impl Sums for Selection {
    fn add(&mut self, block: &Block<'_>) {
        let (k, p, m) = (self.unlabelled.len(), self.gradient.len(), self.direction_scores.len());
        let directions = &block.given[p - k..p - k + m];
        let mut slope = vec![0.0; p];
        for i in 0..block.len() {
            let weight = block.weight(i);
            if weight == 0.0 {
                continue;
            }
            let row = self.at.row(block, i, &mut slope);
            let labelled = block.labels[i].is_some();
            // log(1 + exp(l)) − (1−r) l, without overflow.
            let soft = row.log_odds.max(0.0) + (-row.log_odds.abs()).exp().ln_1p();
            self.loss += weight * (soft - if labelled { 0.0 } else { row.log_odds });
            let scaled = weight * row.residual;
            let information = weight * row.unlabelled * (1.0 - row.unlabelled);
            for a in 0..p {
                // Of the names of a column, all but one are 0.
                if slope[a] == 0.0 {
                    continue;
                }
                self.gradient[a] += scaled * slope[a];
                let inner = information * slope[a];
                let target = &mut self.information[a * p..a * p + a + 1];
                target.iter_mut().zip(&slope).for_each(|(sum, other)| *sum += inner * other);
            }
            for a in 0..k {
                let inner = scaled * slope[a];
                let target = &mut self.curvature[a * k..a * k + a + 1];
                target.iter_mut().zip(&slope).for_each(|(sum, other)| *sum += inner * other);
            }
            if !labelled {
                self.unlabelled.iter_mut().zip(&slope).for_each(|(sum, t)| *sum += weight * t);
            }
            for (j, direction) in directions.iter().enumerate() {
                let g = direction[i];
                if g != 0.0 {
                    self.direction_scores[j] += scaled * g;
                    let inner = information * g;
                    let target = &mut self.direction_information[j * p..(j + 1) * p];
                    target.iter_mut().zip(&slope).for_each(|(sum, slope)| *sum += inner * slope);
                }
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.loss += other.loss;
        add_to(&mut self.gradient, &other.gradient);
        add_to(&mut self.information, &other.information);
        add_to(&mut self.curvature, &other.curvature);
        add_to(&mut self.unlabelled, &other.unlabelled);
        add_to(&mut self.direction_scores, &other.direction_scores);
        add_to(&mut self.direction_information, &other.direction_information);
    }

    travels!(Selection);
}

/// Moments of q = (label, v, score) over the rows, where v is the label of a labelled row and t of an unlabelled one, and
/// score is the gradient of the log-likelihood.
#[derive(Clone)]
pub(crate) struct SecondOrder {
    at: At,
    n: f64,
    first: Vec<f64>,
    second: Vec<f64>,
    /// Σ_U t t'.
    unlabelled: Vec<f64>,
    mass: Vec<f64>,
}

bytes!(SecondOrder { at, n, first, second, unlabelled, mass });

impl SecondOrder {
    pub(super) fn at(mechanism: &Mechanism) -> Self {
        let k = mechanism.classes.len();
        let q = 3 * k + mechanism.terms.len();
        Self {
            at: At::new(mechanism),
            n: 0.0,
            first: vec![0.0; q],
            second: vec![0.0; q * q],
            unlabelled: vec![0.0; k * k],
            mass: vec![0.0; k],
        }
    }

    /// ∂ Σ_U t_k / ∂θ_j: t_k (t_j − δ_kj) summed for a class, 0 for a term of the columns.
    pub(super) fn share_slopes(&self) -> DMatrix<f64> {
        let k = self.mass.len();
        DMatrix::from_fn(k, self.first.len() - 2 * k, |class, j| match j {
            j if j >= k => 0.0,
            j => {
                let product = self.unlabelled[class.max(j) * k + class.min(j)];
                product - if class == j { self.mass[class] } else { 0.0 }
            }
        })
    }

    /// Σ (q − q̄)(q − q̄)'.
    pub(super) fn central_moments(&self) -> DMatrix<f64> {
        let q = self.first.len();
        DMatrix::from_fn(q, q, |i, j| self.second[i.max(j) * q + i.min(j)] - self.first[i] * self.first[j] / self.n)
    }
}

impl Sums for SecondOrder {
    fn add(&mut self, block: &Block<'_>) {
        let (k, q) = (self.mass.len(), self.first.len());
        let mut slope = vec![0.0; q - 2 * k];
        let mut values = vec![0.0; q];
        for i in 0..block.len() {
            let weight = block.weight(i);
            let row = self.at.row(block, i, &mut slope);
            values.fill(0.0);
            match block.labels[i] {
                Some(class) => {
                    values[class.index()] = 1.0;
                    values[k + class.index()] = 1.0;
                }
                None => {
                    values[k..2 * k].copy_from_slice(&slope[..k]);
                    for a in 0..k {
                        self.mass[a] += weight * slope[a];
                        for b in 0..=a {
                            self.unlabelled[a * k + b] += weight * slope[a] * slope[b];
                        }
                    }
                }
            }
            // The log-likelihood falls with the loss: its gradient is −residual·(t, z).
            values[2 * k..].iter_mut().zip(&slope).for_each(|(value, slope)| *value = -row.residual * slope);
            self.n += weight;
            for a in 0..q {
                let scaled = weight * values[a];
                self.first[a] += scaled;
                if scaled != 0.0 {
                    let target = &mut self.second[a * q..a * q + a + 1];
                    target.iter_mut().zip(&values).for_each(|(sum, other)| *sum += scaled * other);
                }
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.n += other.n;
        add_to(&mut self.first, &other.first);
        add_to(&mut self.second, &other.second);
        add_to(&mut self.unlabelled, &other.unlabelled);
        add_to(&mut self.mass, &other.mass);
    }

    travels!(SecondOrder);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Labels, PosteriorKind, Posteriors, Rows, Sample};
    use ndarray::Array2;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// Gradient and Hessian against finite differences, with row weights.
        #[test]
        fn derivatives(n in 20usize..200, k in 2usize..5, seed in 0.0f64..10.0) {
            let logits = Array2::from_shape_fn((n, k), |(i, j)| 2.0 * (seed + 1.3 * i as f64 + 2.7 * j as f64).sin());
            let posteriors = Posteriors::from_logits(logits.view(), PosteriorKind::Labelled).unwrap();
            let y = (0..n).map(|i| (i % 3 == 0).then(|| Class::from(i / 3 % k))).collect();
            let labels = Labels::new(y, (0..k).map(|k| k.to_string()).collect()).unwrap();
            let weights: Vec<f64> = (0..n).map(|i| (i % 5) as f64 / 2.0).collect();
            let terms: Vec<Vec<f64>> = (0..2).map(|j| (0..n).map(|i| (seed * i as f64 + j as f64).cos()).collect()).collect();
            let given: Vec<&[f64]> = terms.iter().map(Vec::as_slice).collect();
            let sample = Sample::new(&posteriors, &labels).unwrap().weighted(&weights).unwrap().given(&given).unwrap();
            let at = |theta: &[f64]| {
                let mechanism = Mechanism { classes: theta[..k].to_vec(), terms: theta[k..].to_vec() };
                sample.scan(&Selection::at(&mechanism, 0)).unwrap()
            };
            let theta: Vec<f64> = (0..k + 2).map(|j| (seed + j as f64).sin()).collect();
            let sums = at(&theta);
            let h = 1e-5;
            for a in 0..theta.len() {
                let (mut up, mut down) = (theta.clone(), theta.clone());
                up[a] += h;
                down[a] -= h;
                let (up, down) = (at(&up), at(&down));
                prop_assert!(((up.loss - down.loss) / (2.0 * h) - sums.gradient()[a]).abs() < 1e-6 * n as f64);
                for b in 0..theta.len() {
                    let slope = (up.gradient()[b] - down.gradient()[b]) / (2.0 * h);
                    prop_assert!((slope - sums.hessian()[(a, b)]).abs() < 1e-6 * n as f64, "{} {}", slope, sums.hessian()[(a, b)]);
                }
            }
        }
    }
}
