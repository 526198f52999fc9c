//! The mechanism in the loop: what stands for 1/phi at every step of training.

use crate::method::{Method, PhiRule};
use burn::tensor::{Device, Tensor, TensorData};
use mnar::Phi;
use serde::{Deserialize, Serialize};

/// Weight of the past in the buffer of class shares; the paper's.
const BUFFER: f64 = 0.99;

/// What training knows about the mechanism at a step. Part of the checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mechanism {
    rule: PhiRule,
    /// c_k = n_k/n = P(labelled, class k).
    joint_shares: Vec<f64>,
    /// Running class shares p̂(y).
    buffer: Vec<f64>,
    phi: Phi,
    /// Steps at which a phi above 1 was set to 1.
    clipped: u64,
    warm_up: WarmUp,
}

/// What a batch says about the mechanism.
#[derive(Clone, Debug)]
pub struct BatchMeans {
    /// p̂(y), weighted to stand for all rows, with gradient.
    pub shares: Tensor<1>,
    /// The mean loss of the labelled rows before the step, one number.
    pub loss: Tensor<1>,
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
    /// The mechanism at the start of training: the buffer at 1/K, phi at n_l/n unless the method brings them.
    pub fn new(method: &Method, label_counts: &[usize], n: usize) -> Result<Self, mnar::Error> {
        let k = label_counts.len();
        let joint_shares: Vec<f64> = label_counts.iter().map(|&count| count as f64 / n as f64).collect();
        let phi = match method.given_phi() {
            Some(phi) => phi.clone(),
            // Where all rows are labelled, rounding can bring the sum above 1.
            None => Phi::new(vec![joint_shares.iter().sum::<f64>().min(1.0); k])?,
        };
        let buffer = method.given_shares().map_or_else(|| vec![1.0 / k as f64; k], |shares| shares.as_slice().to_vec());
        Ok(Self { rule: method.phi_rule(), joint_shares, buffer, phi, clipped: 0, warm_up: WarmUp::default() })
    }

    /// Whether every list has one number per class, for a mechanism that was read from a file.
    pub(crate) fn check(&self, classes: usize) -> bool {
        let numbers = self.joint_shares.iter().chain(&self.buffer).all(|share| share.is_finite());
        numbers && [self.joint_shares.len(), self.buffer.len(), self.phi.len()] == [classes; 3]
    }

    /// phi as it stands.
    pub fn phi(&self) -> &Phi {
        &self.phi
    }

    /// Replaces phi by a new estimate, made when the model has improved.
    pub fn refresh(&mut self, phi: Phi) {
        self.phi = phi;
    }

    /// Class shares p̂(y) = c_k/phi_k as they stand.
    pub fn shares(&self) -> Vec<f64> {
        match self.rule {
            PhiRule::Moments | PhiRule::KnownShares | PhiRule::PredictedShares => self.buffer.clone(),
            PhiRule::Fixed | PhiRule::MomentsGradient => {
                let shares: Vec<f64> = self.joint_shares.iter().zip(self.phi.iter()).map(|(c, phi)| c / phi).collect();
                let sum: f64 = shares.iter().sum();
                shares.iter().map(|share| share / sum).collect()
            }
        }
    }

    /// The number of steps at which a class had its phi set to 1, because the model gave it fewer rows than it has labels.
    pub fn clipped(&self) -> u64 {
        self.clipped
    }

    /// Takes note of a batch: moves the buffer and phi as the method's rule says.
    pub fn update(&mut self, batch: &BatchMeans) -> Result<(), mnar::Error> {
        match self.rule {
            PhiRule::Fixed => return Ok(()),
            PhiRule::KnownShares => {}
            PhiRule::Moments | PhiRule::MomentsGradient | PhiRule::PredictedShares => {
                for (buffer, batch) in self.buffer.iter_mut().zip(host(&batch.shares)) {
                    *buffer = BUFFER * *buffer + (1.0 - BUFFER) * batch;
                }
            }
        }
        let phi: Vec<f64> = if self.rule == PhiRule::MomentsGradient {
            self.warm_up.observe(host(&batch.loss).iter().sum());
            // In single precision, as `inverse_phi` divides.
            let values = self.buffer.iter().zip(&self.joint_shares).map(|(p, c)| f64::from(*p as f32 / *c as f32));
            values.map(|inverse| 1.0 / inverse).collect()
        } else {
            // The moment estimator phi_k = c_k/p̂_k, which is also how the paper reads a mechanism from class shares.
            self.joint_shares.iter().zip(&self.buffer).map(|(c, p)| c / p.max(1e-12)).collect()
        };
        self.clipped += u64::from(phi.iter().any(|phi| *phi > 1.0));
        self.phi = Phi::new(phi.into_iter().map(|phi| phi.min(1.0)).collect())?;
        Ok(())
    }

    /// 1/phi, K numbers, for the risk of the batch that [`Self::update`] has just seen. `shares` is the batch's p̂(y): where
    /// phi depends on theta, so does the result.
    pub fn inverse_phi(&self, shares: &Tensor<1>, device: &Device) -> Tensor<1> {
        match self.rule {
            PhiRule::Fixed | PhiRule::Moments => {
                tensor(&self.phi.iter().map(|phi| 1.0 / phi).collect::<Vec<_>>(), device)
            }
            PhiRule::MomentsGradient => {
                // The value is the buffer's, whose noise is a tenth of a batch's; the gradient is the batch's.
                let trust = self.warm_up.trust(self.phi.len());
                let value = tensor(&self.buffer, device);
                let shares = value + (shares.clone() - shares.clone().detach()).mul_scalar(trust);
                (shares / tensor(&self.joint_shares, device)).clamp_min(1.0)
            }
            PhiRule::KnownShares | PhiRule::PredictedShares => {
                // 1/phi ∝ 1/p(y), scaled so that the weights of the labelled rows still add up to n.
                let weights: Vec<f64> = self.buffer.iter().map(|share| 1.0 / share.max(1e-6)).collect();
                let sum: f64 = weights.iter().zip(&self.joint_shares).map(|(w, c)| w * c).sum();
                tensor(&weights.iter().map(|w| w / sum).collect::<Vec<_>>(), device)
            }
        }
    }
}

/// K numbers on a device.
pub(crate) fn tensor(values: &[f64], device: &Device) -> Tensor<1> {
    let values: Vec<f32> = values.iter().map(|value| *value as f32).collect();
    let length = values.len();
    Tensor::from_data(TensorData::new(values, [length]), device)
}

fn host(tensor: &Tensor<1>) -> Vec<f64> {
    tensor.clone().into_data().iter::<f32>().map(f64::from).collect()
}
