//! The one place where losses are weighted.
//!
//! Every risk is computed from a batch of labelled rows and a batch of unlabelled rows, each drawn from its own set,
//! and its expectation over the batches is the risk of the whole data set: means are multiplied by the sets' *true*
//! shares n_l/n and n_u/n. Nothing is divided by the sum of a batch's weights, which would bias the estimator again.

use crate::propensity::Propensity;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Int, Tensor, TensorData};
use serde::{Deserialize, Serialize};

/// −log p(y|x), one value per row.
pub fn cross_entropy(logits: Tensor<2>, y: Tensor<1, Int>) -> Tensor<1> {
    log_softmax(logits, 1).gather(1, y.unsqueeze_dim(1)).squeeze_dim::<1>(1).neg()
}

/// The losses of a batch, unreduced.
pub struct Losses {
    /// ℓ of the labelled rows.
    pub ell: Tensor<1>,
    /// The labels of these rows.
    pub y: Tensor<1, Int>,
    /// How often each of these rows counts, relative to their mean; once if absent.
    pub row_weights: Option<Tensor<1>>,
    /// The unlabelled loss of the labelled and of the unlabelled rows, where the method has one.
    pub h: Option<(Tensor<1>, Tensor<1>)>,
}

/// The shares of labelled and unlabelled rows in the whole data set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetShares {
    /// n_l/n, the share of labelled rows.
    pub labelled: f64,
}

impl SetShares {
    /// n_u/n, the share of unlabelled rows.
    pub fn unlabelled(self) -> f64 {
        1.0 - self.labelled
    }
}

/// How a labelled row is weighted.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // one per step
pub enum Weighting {
    /// Every labelled row alike, as if labels were missing at random: the classical SSL risk.
    Classical,
    /// By 1/phi of its class: the debiased SSL risk. Where phi depends on theta, so does this tensor.
    Propensity(Tensor<1>),
    /// By a weight of its own, 1/phi of its class and its columns: the same risk, where labelling depends on columns too.
    Rows(Tensor<1>),
}

/// Ways to trade a little bias of the weights for less variance. None is used unless requested, and results name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stabiliser {
    /// The weights as they are.
    #[default]
    Exact,
    /// 1/phi is at most this many times n/n_l.
    Clip(f64),
}

impl Stabiliser {
    /// Applies to 1/phi.
    pub fn apply(self, inverse_phi: Tensor<1>, shares: SetShares) -> Tensor<1> {
        match self {
            Self::Exact => inverse_phi,
            Self::Clip(factor) => inverse_phi.clamp_max(factor / shares.labelled),
        }
    }
}

/// The debiased SSL risk on a batch: with w = 1/phi_y, or 1/phi(y, z) where labelling depends on columns z,
///
/// n_l/n · mean over labelled rows of (w ℓ + λ (1 − w) h) + λ · n_u/n · mean over unlabelled rows of h,
///
/// since −(r − phi)/phi is 1 − w for a labelled row and 1 for an unlabelled one. [`Weighting::Classical`] gives
/// the classical SSL risk, mean ℓ + λ mean h. Row weights multiply everything that a labelled row adds.
pub fn ssl_risk(losses: Losses, weighting: &Weighting, lambda: f64, shares: SetShares) -> Tensor<1> {
    let Losses { ell, y, row_weights, h } = losses;
    let counted = |terms: Tensor<1>| match &row_weights {
        Some(weights) => terms * weights.clone(),
        None => terms,
    };
    let w = match weighting {
        Weighting::Classical => {
            let supervised = counted(ell).mean();
            return match h {
                Some((_, unlabelled)) => supervised + unlabelled.mean().mul_scalar(lambda),
                None => supervised,
            };
        }
        Weighting::Propensity(inverse_phi) => inverse_phi.clone().gather(0, y),
        Weighting::Rows(weights) => weights.clone(),
    };
    match h {
        Some((labelled, unlabelled)) => {
            let labelled = w.clone() * ell + (w.neg() + 1.0) * labelled.mul_scalar(lambda);
            counted(labelled).mean().mul_scalar(shares.labelled)
                + unlabelled.mean().mul_scalar(lambda * shares.unlabelled())
        }
        None => counted(w * ell).mean().mul_scalar(shares.labelled),
    }
}

/// The observed negative log-likelihood on a batch, as a mean over all rows:
/// −log phi_y − log p(y|x) for a labelled row, −log Σ_k (1 − phi_k) p(k|x) for an unlabelled one. `row_weights` says how
/// often each labelled row counts, as in [`Losses`].
pub fn observed_likelihood(
    labelled: Tensor<2>,
    y: Tensor<1, Int>,
    row_weights: Option<Tensor<1>>,
    unlabelled: Tensor<2>,
    phi: Tensor<1>,
    shares: SetShares,
) -> Tensor<1> {
    let log_phi = phi.clone().log().gather(0, y.clone());
    let labelled = cross_entropy(labelled, y) - log_phi;
    let labelled = match row_weights {
        Some(weights) => labelled * weights,
        None => labelled,
    }
    .mean();
    // log Σ exp(log p + log(1 − phi)); a class that is always labelled adds nothing.
    let hidden = phi.neg().add_scalar(1.0).clamp_min(1e-12).log();
    let joint = log_softmax(unlabelled, 1) + hidden.unsqueeze();
    let top = joint.clone().detach().max_dim(1);
    let unlabelled = ((joint - top.clone()).exp().sum_dim(1).log() + top).mean().neg();
    labelled.mul_scalar(shares.labelled) + unlabelled.mul_scalar(shares.unlabelled())
}

/// The smallest 1 − phi that is trusted: rows of a class that is always labelled are never unlabelled, but a phi of 1
/// is only an estimate.
const SMALLEST_SHARE: f64 = 1e-3;

/// Logits of p(y | x, r) from those of p(y | x): p(y | x, r = 1) ∝ phi_y p(y | x) and p(y | x, r = 0) ∝ (1 − phi_y)
/// p(y | x), with the phi of the row where each has its own.
pub fn logits_given<'a>(labelled: bool, scores: Tensor<2>, phi: impl Into<Propensity<'a>>) -> Tensor<2> {
    let share = |phi: &f64| if labelled { *phi } else { (1.0 - phi).max(SMALLEST_SHARE) };
    let phi = phi.into();
    let shift: Vec<f32> = phi.lines().iter().flat_map(|phi| phi.iter()).map(|phi| share(phi).ln() as f32).collect();
    let shape = [phi.lines().len(), scores.dims()[1]];
    let device = scores.device();
    scores + Tensor::<2>::from_data(TensorData::new(shift, shape), &device)
}
