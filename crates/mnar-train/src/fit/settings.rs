//! Settings of a whole run, with every choice made.

use crate::consistency::{Consistency, Entropy, FixMatch, PseudoLabels};
use crate::model::Architecture;
use crate::settings::TrainSettings;
use serde::{Deserialize, Serialize};

/// Where the mechanism in the loop comes from, and what is done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum MethodName {
    /// Label shift from cross-fitted, calibrated posteriors first; then the debiased risk with it.
    LabelShift,
    /// The same phi; then no weights but the likelihood of a label given that the row is labelled.
    Adjusted,
    /// Moments with a buffer (the paper's ME).
    Me,
    /// Moments with the gradient through phi (MEg).
    Meg,
    /// Maximum likelihood (Algorithm 1), then the debiased risk.
    Mle,
    /// Weights by class shares (CADR).
    Cadr,
    /// The constant mechanism (DePl).
    DePl,
    /// The classical risk (Pl).
    Pl,
    /// Labelled rows only.
    CompleteCase,
    /// Labelled rows only, weighted by 1/phi.
    Ipw,
    /// A known phi.
    Oracle,
    /// Known class shares.
    KnownShares,
}

/// The unlabelled loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum ConsistencyName {
    /// The most likely class as label, where it is likely enough.
    #[default]
    PseudoLabels,
    /// Entropy of the prediction.
    Entropy,
    /// Pseudo-labels of a weak view learnt on a strong one.
    Fixmatch,
}

impl ConsistencyName {
    pub(crate) fn build(self) -> Box<dyn Consistency> {
        match self {
            Self::PseudoLabels => Box::new(PseudoLabels),
            Self::Entropy => Box::new(Entropy),
            Self::Fixmatch => Box::new(FixMatch),
        }
    }
}

/// What is cross-fitted to estimate the mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum CrossFitWith {
    /// Softmax regression, refitted in every replicate of the bootstrap.
    Softmax,
    /// The network itself.
    Network,
}

/// Settings of a whole run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FitSettings {
    /// Where the mechanism in the loop comes from.
    pub method: MethodName,
    /// The unlabelled loss.
    pub consistency: ConsistencyName,
    /// What is cross-fitted.
    pub cross_fit_with: CrossFitWith,
    /// Folds of the cross-fitting.
    pub folds: usize,
    /// Replicates of the bootstrap; 0 for intervals from the information.
    pub replicates: usize,
    /// Permutations of the test.
    pub permutations: usize,
    /// Train the biased baseline too?
    pub baseline: bool,
    /// Known phi, one a class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phi: Option<Vec<f64>>,
    /// Known class shares, one a class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<Vec<f64>>,
    /// The network.
    pub architecture: Architecture,
    /// Its training.
    pub train: TrainSettings,
    /// Training of the networks of the folds, which see labelled rows only.
    pub fold_train: TrainSettings,
}
