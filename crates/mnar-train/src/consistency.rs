//! Consistency methods: losses that need no label.
//!
//! A method gives one loss per row and never sees which rows are labelled, their labels, or the mechanism. So
//! [`loss::ssl_risk`](crate::loss::ssl_risk) debiases any method: the type guarantees "any semi-supervised method".

use crate::error::TrainError;
use burn::tensor::activation::{log_softmax, softmax};
use burn::tensor::{Int, Tensor};
use serde::{Deserialize, Serialize};

/// The unlabelled loss, by the name that options use.
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
    /// Pseudo-labels where the network is sure, and elsewhere the guess of the cross-fitted networks.
    Guided,
}

impl ConsistencyName {
    /// The method of this name.
    pub fn build(self) -> Box<dyn Consistency> {
        match self {
            Self::PseudoLabels => Box::new(PseudoLabels),
            Self::Entropy => Box::new(Entropy),
            Self::Fixmatch => Box::new(FixMatch),
            Self::Guided => Box::new(Guided),
        }
    }
}

/// Logits of the same rows, seen in different ways. A method finds the views it asked for in [`Consistency::needs`].
#[derive(Clone, Debug)]
pub struct Views {
    /// The weakly augmented rows; plain ones for tables.
    pub weak: Tensor<2>,
    /// The strongly augmented rows, where the method asks for them. Tables have no augmentation: the plain rows.
    pub strong: Option<Tensor<2>>,
    /// Logits of the weak view from the averaged weights, without gradient, where the method asks for them.
    pub teacher: Option<Tensor<2>>,
    /// Probabilities of the rows according to another model, where the method asks for them.
    pub targets: Option<Tensor<2>>,
    /// The confidence at which a class is accepted as a pseudo-label, K numbers.
    pub thresholds: Tensor<1>,
}

impl Views {
    /// The strongly augmented rows; an error for a method that did not ask for them.
    pub fn strong(&self) -> Result<Tensor<2>, TrainError> {
        self.strong.clone().ok_or(TrainError::NoView { view: "the strong view" })
    }

    /// The logits by the averaged weights; an error for a method that did not ask for them.
    pub fn teacher(&self) -> Result<Tensor<2>, TrainError> {
        self.teacher.clone().ok_or(TrainError::NoView { view: "the teacher" })
    }

    /// The probabilities by another model; an error for a method that did not ask for them.
    pub fn targets(&self) -> Result<Tensor<2>, TrainError> {
        self.targets.clone().ok_or(TrainError::NoView { view: "the targets" })
    }
}

/// Which views a method looks at besides the weak one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The strongly augmented view.
    pub strong: bool,
    /// The logits of the averaged weights.
    pub teacher: bool,
    /// Probabilities from another model ([`Job::targets`](crate::Job::targets)).
    pub targets: bool,
}

/// A loss that does not look at labels.
pub trait Consistency: Send + Sync {
    /// The name of the method, for reports.
    fn name(&self) -> &str;

    /// Which views the method uses.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The loss of each row, not reduced.
    fn loss(&self, views: &Views) -> Result<Tensor<1>, TrainError>;
}

/// Entropy of the prediction (Grandvalet and Bengio).
#[derive(Clone, Copy, Debug)]
pub struct Entropy;

impl Consistency for Entropy {
    fn name(&self) -> &str {
        "entropy"
    }

    fn loss(&self, views: &Views) -> Result<Tensor<1>, TrainError> {
        let log_p = log_softmax(views.weak.clone(), 1);
        Ok((log_p.clone().exp() * log_p).sum_dim(1).squeeze_dim::<1>(1).neg())
    }
}

/// Cross-entropy with the most likely class as the label, where it is likely enough.
#[derive(Clone, Copy, Debug)]
pub struct PseudoLabels;

impl Consistency for PseudoLabels {
    fn name(&self) -> &str {
        "pseudo-labels"
    }

    fn loss(&self, views: &Views) -> Result<Tensor<1>, TrainError> {
        Ok(imitate(views.weak.clone().detach(), views.weak.clone(), &views.thresholds))
    }
}

/// Cross-entropy with the probabilities given by another model: an unknown label is replaced by what is known about it.
///
/// The other model must not have seen the label of the row, or the loss depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Imputation;

impl Consistency for Imputation {
    fn name(&self) -> &str {
        "imputation"
    }

    fn needs(&self) -> Needs {
        Needs { targets: true, ..Needs::default() }
    }

    fn loss(&self, views: &Views) -> Result<Tensor<1>, TrainError> {
        let log_p = log_softmax(views.weak.clone(), 1);
        Ok((views.targets()? * log_p).sum_dim(1).squeeze_dim::<1>(1).neg())
    }
}

/// Pseudo-labels where the network is sure of a class, and elsewhere the probabilities given by another model.
///
/// From the first step on, every unlabelled row says something: a network that has learnt little imitates the other model, and
/// goes its own way row by row, as it becomes sure. The other model must not have seen the label of the row.
#[derive(Clone, Copy, Debug)]
pub struct Guided;

impl Consistency for Guided {
    fn name(&self) -> &str {
        "guided"
    }

    fn needs(&self) -> Needs {
        Needs { targets: true, ..Needs::default() }
    }

    fn loss(&self, views: &Views) -> Result<Tensor<1>, TrainError> {
        let (class, sure) = sure_of(views.weak.clone().detach(), &views.thresholds);
        let own = crate::loss::cross_entropy(views.weak.clone(), class);
        let guess = Imputation.loss(views)?;
        Ok(own * sure.clone() + guess * (sure.neg() + 1.0))
    }
}

/// Pseudo-labels from the weak view, learnt on the strong view.
#[derive(Clone, Copy, Debug)]
pub struct FixMatch;

impl Consistency for FixMatch {
    fn name(&self) -> &str {
        "fixmatch"
    }

    fn needs(&self) -> Needs {
        Needs { strong: true, ..Needs::default() }
    }

    fn loss(&self, views: &Views) -> Result<Tensor<1>, TrainError> {
        Ok(imitate(views.weak.clone().detach(), views.strong()?, &views.thresholds))
    }
}

/// −log p(ŷ|x) of `student`, where ŷ is the top class of `teacher`; 0 where the teacher's confidence is below ŷ's
/// threshold.
pub fn imitate(teacher: Tensor<2>, student: Tensor<2>, thresholds: &Tensor<1>) -> Tensor<1> {
    let (class, sure) = sure_of(teacher, thresholds);
    crate::loss::cross_entropy(student, class) * sure
}

/// The top class of every row, and 1 where the confidence in it reaches the threshold of the class, else 0.
fn sure_of(scores: Tensor<2>, thresholds: &Tensor<1>) -> (Tensor<1, Int>, Tensor<1>) {
    let (confidence, class) = softmax(scores.detach(), 1).max_dim_with_indices(1);
    let class: Tensor<1, Int> = class.squeeze_dim(1);
    let needed = thresholds.clone().gather(0, class.clone());
    (class, confidence.squeeze_dim::<1>(1).greater_equal(needed).float())
}
