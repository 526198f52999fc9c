//! The mechanism in the loop: what stands for 1/phi at every step of training.

use burn::tensor::{Device, Tensor, TensorData};
use mnar::Phi;
use serde::{Deserialize, Serialize};

/// Where the weights of the labelled rows come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Labelled rows only, unweighted.
    CompleteCase,
    /// The classical semi-supervised risk, eq:estimatorclassical (Pl).
    Classical,
    /// eq:drclassical with the constant mechanism n_l/n (DePl).
    Constant,
    /// Labelled rows only, weighted by 1/phi, eq:IPWestimatorMNAR.
    Weighted(Vec<f64>),
    /// eq:drclassical with a given phi: an oracle's, one from known class shares, or one estimated before.
    Given(Vec<f64>),
    /// No weights: the likelihood of a label given that the row is labelled, p(y | x, r = 1) ∝ phi_y p(y | x), and the
    /// unlabelled loss on p(y | x, r = 0) ∝ (1 − phi_y) p(y | x), with a given phi. As consistent as 1/phi weights and,
    /// where these range over orders of magnitude, far less variable.
    Adjusted(Vec<f64>),
    /// Every row counts once: labelled ones with their label, unlabelled ones with the unlabelled loss, which should be
    /// [`Imputation`](crate::consistency::Imputation) by p(y | x, r = 0). A step of EM on the observed likelihood; phi is
    /// in the targets.
    Imputed(Vec<f64>),
    /// Weights by class shares in place of the mechanism (CADR): 1/phi becomes proportional to 1/p(y).
    ClassShares {
        /// Known shares; without them they are the model's own, averaged over the batches.
        shares: Option<Vec<f64>>,
    },
    /// Moments with a buffer, no gradient through phi (ME), eq:buffer.
    Moments,
    /// Moments of the batch, with the gradient through phi (MEg), eq:estim_moment.
    MomentsGradient,
    /// The observed likelihood in theta and phi (Algorithm 1); trains the model for [`Method::Given`].
    Likelihood,
}

impl Method {
    /// The name in tables.
    pub fn name(&self) -> &'static str {
        match self {
            Self::CompleteCase => "complete case",
            Self::Classical => "classical",
            Self::Constant => "constant",
            Self::Weighted(_) => "weighted",
            Self::Given(_) => "given",
            Self::Adjusted(_) => "adjusted",
            Self::Imputed(_) => "imputed",
            Self::ClassShares { .. } => "class shares",
            Self::Moments => "moments",
            Self::MomentsGradient => "moments with gradient",
            Self::Likelihood => "likelihood",
        }
    }

    /// Does the risk have an unlabelled term?
    pub fn uses_unlabelled(&self) -> bool {
        !matches!(self, Self::CompleteCase | Self::Weighted(_) | Self::Likelihood)
    }
}

/// Weight of the past in the buffer of class shares; the paper's.
const BUFFER: f64 = 0.99;

/// What training knows of the mechanism at a step. Part of the checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mechanism {
    method: Method,
    /// c_k = n_k/n.
    labelled_shares: Vec<f64>,
    /// Running class shares p̂(y).
    buffer: Vec<f64>,
    phi: Vec<f64>,
    /// Steps at which a phi above 1 was set to 1.
    clipped: u64,
    warm_up: WarmUp,
}

/// How far the gradient through phi is followed. The phi-dependent part of the risk is Σ_y p̂(y) D_y, with D_y the mean
/// of ℓ − λh over the labelled rows of class y: its gradient moves predictions towards classes that are learnt already,
/// and away from those with few labels. Followed from the start it empties a class (on MNIST S2 one phi ran to 1 and
/// accuracy fell to 86%); the paper waits a fixed number of epochs, which needs tuning. Here the *value* of phi is that of
/// the buffer from the first step, and the gradient is followed as far as labelled rows are learnt: not at all while
/// their loss, taken before each step, is above a tenth of log K, and fully as it approaches 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct WarmUp {
    running_loss: Option<f64>,
}

impl WarmUp {
    fn observe(&mut self, loss: f64) {
        self.running_loss = Some(self.running_loss.map_or(loss, |running| 0.95 * running + 0.05 * loss));
    }

    /// From 0, no gradient, to 1.
    fn trust(&self, classes: usize) -> f64 {
        let bound = 0.1 * (classes as f64).ln();
        self.running_loss.map_or(0.0, |loss| (1.0 - loss / bound).clamp(0.0, 1.0))
    }
}

impl Mechanism {
    /// At the start: the buffer at 1/K, phi at n_l/n unless given.
    pub fn new(method: Method, label_counts: &[usize], n: usize) -> Self {
        let k = label_counts.len();
        let labelled_shares: Vec<f64> = label_counts.iter().map(|&count| count as f64 / n as f64).collect();
        let phi = match &method {
            Method::Given(phi) | Method::Weighted(phi) | Method::Adjusted(phi) | Method::Imputed(phi) => phi.clone(),
            _ => vec![labelled_shares.iter().sum(); k],
        };
        let buffer = match &method {
            Method::ClassShares { shares: Some(shares) } => shares.clone(),
            _ => vec![1.0 / k as f64; k],
        };
        Self { method, labelled_shares, buffer, phi, clipped: 0, warm_up: WarmUp::default() }
    }

    /// The method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// phi as it stands.
    pub fn phi(&self) -> &[f64] {
        &self.phi
    }

    /// Puts an estimate in the place of a given phi: the model has improved.
    pub fn refresh(&mut self, phi: &Phi) {
        self.phi = phi.as_slice().to_vec();
    }

    /// Class shares p̂(y) = c_k/phi_k as they stand.
    pub fn shares(&self) -> Vec<f64> {
        match self.method {
            Method::Moments | Method::ClassShares { .. } => self.buffer.clone(),
            _ => {
                let shares: Vec<f64> = self.labelled_shares.iter().zip(&self.phi).map(|(c, phi)| c / phi).collect();
                let sum: f64 = shares.iter().sum();
                shares.iter().map(|share| share / sum).collect()
            }
        }
    }

    /// Steps at which a class had its phi set to 1, because the model gave it fewer rows than it has labels.
    pub fn clipped(&self) -> u64 {
        self.clipped
    }

    /// Takes note of a batch and returns 1/phi, K numbers, for its risk. `shares` is p̂(y) of the batch, weighted to
    /// stand for all rows, with gradient; `loss` the mean loss of its labelled rows before the step.
    pub fn inverse(&mut self, shares: Tensor<1>, loss: f64, device: &Device) -> Tensor<1> {
        let classes = self.phi.len();
        match &self.method {
            Method::Moments | Method::MomentsGradient | Method::ClassShares { shares: None } => {
                for (buffer, batch) in self.buffer.iter_mut().zip(host(shares.clone())) {
                    *buffer = BUFFER * *buffer + (1.0 - BUFFER) * batch;
                }
            }
            _ => {}
        }
        match &self.method {
            Method::Moments => {
                self.phi = self.moments(&self.buffer.clone());
                self.constant_inverse(device)
            }
            Method::MomentsGradient => {
                self.warm_up.observe(loss);
                let trust = self.warm_up.trust(classes);
                // The value is the buffer's, whose noise is a tenth of a batch's; the gradient is the batch's.
                let value = tensor(&self.buffer, device);
                let shares = value + (shares.clone() - shares.detach()).mul_scalar(trust);
                let inverse = shares / tensor(&self.labelled_shares, device);
                let values = host(inverse.clone());
                self.clipped += u64::from(values.iter().any(|inverse| *inverse < 1.0));
                self.phi = values.iter().map(|inverse| 1.0 / inverse.max(1.0)).collect();
                inverse.clamp_min(1.0)
            }
            Method::ClassShares { .. } => {
                // 1/phi ∝ 1/p(y), scaled so that the weights of the labelled rows still add up to n.
                let weights: Vec<f64> = self.buffer.iter().map(|share| 1.0 / share.max(1e-6)).collect();
                let sum: f64 = weights.iter().zip(&self.labelled_shares).map(|(w, c)| w * c).sum();
                // Its mechanism, as the paper reads it from the class shares: eq:estim_moment.
                self.phi = self.moments(&self.buffer.clone());
                tensor(&weights.iter().map(|w| w / sum).collect::<Vec<_>>(), device)
            }
            _ => self.constant_inverse(device),
        }
    }

    fn constant_inverse(&self, device: &Device) -> Tensor<1> {
        tensor(&self.phi.iter().map(|phi| 1.0 / phi).collect::<Vec<_>>(), device)
    }

    /// phi_k = c_k/p̂_k (eq:estim_moment), at most 1.
    fn moments(&mut self, shares: &[f64]) -> Vec<f64> {
        let phi: Vec<f64> = self.labelled_shares.iter().zip(shares).map(|(c, p)| c / p.max(1e-12)).collect();
        self.clipped += u64::from(phi.iter().any(|phi| *phi > 1.0));
        phi.iter().map(|phi| phi.min(1.0)).collect()
    }
}

/// K numbers on a device.
pub(crate) fn tensor(values: &[f64], device: &Device) -> Tensor<1> {
    let values: Vec<f32> = values.iter().map(|value| *value as f32).collect();
    let length = values.len();
    Tensor::from_data(TensorData::new(values, [length]), device)
}

fn host(tensor: Tensor<1>) -> Vec<f64> {
    tensor.into_data().iter::<f32>().map(f64::from).collect()
}
