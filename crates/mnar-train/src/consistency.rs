//! Consistency methods: losses that need no label.
//!
//! A method gives one loss per row and never sees which rows are labelled, their labels, or the mechanism. So
//! [`loss::ssl_risk`](crate::loss::ssl_risk) debiases any method: the type guarantees "any semi-supervised method".

use burn::tensor::activation::{log_softmax, softmax};
use burn::tensor::{Int, Tensor};

/// Logits of the same rows under different views.
#[derive(Clone, Debug)]
pub struct Views {
    /// The weakly augmented rows; for tables, the plain rows.
    pub weak: Tensor<2>,
    /// The strongly augmented rows, where the method asks for them. Tables have no augmentation: for them, the plain
    /// rows.
    pub strong: Option<Tensor<2>>,
    /// Logits of the weak view from the averaged weights, without gradient, where the method asks for them.
    pub teacher: Option<Tensor<2>>,
    /// Probabilities of the rows according to another model, where the method asks for them.
    pub targets: Option<Tensor<2>>,
    /// The confidence at which a class is accepted as a pseudo-label, K numbers.
    pub thresholds: Tensor<1>,
}

/// Which views a method uses besides the weak one.
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

    /// One loss per row, not reduced.
    fn loss(&self, views: &Views) -> Tensor<1>;
}

/// Entropy of the prediction (Grandvalet and Bengio).
#[derive(Clone, Copy, Debug)]
pub struct Entropy;

impl Consistency for Entropy {
    fn name(&self) -> &str {
        "entropy"
    }

    fn loss(&self, views: &Views) -> Tensor<1> {
        let log_p = log_softmax(views.weak.clone(), 1);
        (log_p.clone().exp() * log_p).sum_dim(1).squeeze_dim::<1>(1).neg()
    }
}

/// Cross-entropy with the most likely class as the label, where it is likely enough.
#[derive(Clone, Copy, Debug)]
pub struct PseudoLabels;

impl Consistency for PseudoLabels {
    fn name(&self) -> &str {
        "pseudo-labels"
    }

    fn loss(&self, views: &Views) -> Tensor<1> {
        imitate(views.weak.clone().detach(), views.weak.clone(), &views.thresholds)
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

    fn loss(&self, views: &Views) -> Tensor<1> {
        let log_p = log_softmax(views.weak.clone(), 1);
        let targets = views.targets.clone().unwrap_or_else(|| log_p.clone().detach().exp());
        (targets * log_p).sum_dim(1).squeeze_dim::<1>(1).neg()
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

    fn loss(&self, views: &Views) -> Tensor<1> {
        let strong = views.strong.clone().unwrap_or_else(|| views.weak.clone());
        imitate(views.weak.clone().detach(), strong, &views.thresholds)
    }
}

/// −log p(ŷ|x) of `student`, where ŷ is the top class of `teacher`; 0 where the teacher's confidence is below ŷ's
/// threshold.
pub fn imitate(teacher: Tensor<2>, student: Tensor<2>, thresholds: &Tensor<1>) -> Tensor<1> {
    let (confidence, class) = softmax(teacher.detach(), 1).max_dim_with_indices(1);
    let class: Tensor<1, Int> = class.squeeze_dim(1);
    let needed = thresholds.clone().gather(0, class.clone());
    let sure = confidence.squeeze_dim::<1>(1).greater_equal(needed).float();
    crate::loss::cross_entropy(student, class) * sure
}
