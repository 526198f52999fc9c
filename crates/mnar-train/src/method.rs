//! Training methods: where the weights of the labelled rows come from, and everything that follows from it.
//!
//! [`Method`] is the only place that knows how methods differ. The training loop asks it which loss terms there are, how
//! labelled rows are weighted, how the epoch is chosen and when phi is estimated again.

use crate::error::TrainError;
use mnar::{ClassShares, Labels, Phi};
use serde::{Deserialize, Serialize};

/// Where the mechanism in the loop comes from, and what is done with it, by the name that options use.
///
/// [`Method::new`] turns the name into a [`Method`] once the mechanism is known.
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

impl MethodName {
    /// Whether a first training by [`Method::Likelihood`] has to find the phi that [`Method::new`] is then given.
    pub fn needs_likelihood_first(self) -> bool {
        self == Self::Mle
    }

    /// Whether training takes the cross-fitted mechanism as it is, and so its phi of every row where it depends on
    /// columns. The others know phi already, estimate it by class while they train, or use none.
    pub fn takes_cross_fitted(self) -> bool {
        matches!(self, Self::LabelShift | Self::Adjusted | Self::Ipw)
    }

    /// Whether a finished model carries the cross-fitted mechanism: training took it, or used none of its own.
    pub fn carries_cross_fitted(self) -> bool {
        self.takes_cross_fitted() || matches!(self, Self::Pl | Self::DePl | Self::CompleteCase)
    }

    /// The phi that a finished model carries, for the posterior of an unlabelled row: the one its training ended with, or
    /// the cross-fitted estimate where training used no estimate of its own.
    pub fn reported_phi<'a>(self, cross_fitted: &'a Phi, trained: &'a Phi) -> &'a Phi {
        match self {
            Self::Pl | Self::DePl | Self::CompleteCase => cross_fitted,
            Self::LabelShift
            | Self::Adjusted
            | Self::Me
            | Self::Meg
            | Self::Mle
            | Self::Cadr
            | Self::Ipw
            | Self::Oracle
            | Self::KnownShares => trained,
        }
    }
}

/// What is known about the mechanism before training.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The estimated phi: cross-fitted, or found by [`Method::Likelihood`] where the method
    /// [needs that first](MethodName::needs_likelihood_first).
    pub estimate: &'a Phi,
    /// The true phi, if the user knows it.
    pub phi: Option<&'a Phi>,
    /// The true class shares, if the user knows them.
    pub shares: Option<&'a ClassShares>,
    /// The labels that are trained on.
    pub labels: &'a Labels,
}

/// How a network is trained on partly labelled rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Labelled rows only, unweighted.
    CompleteCase,
    /// The classical semi-supervised risk (Pl).
    Classical,
    /// The debiased SSL risk with the constant mechanism n_l/n (DePl).
    Constant,
    /// Labelled rows only, weighted by 1/phi: the inverse propensity weighted risk.
    Weighted(Phi),
    /// The debiased SSL risk with a given phi: a known one, one from known class shares, or one estimated before.
    Given(Phi),
    /// No weights: the likelihood of a label given that the row is labelled, p(y | x, r = 1) ∝ phi_y p(y | x), and the
    /// unlabelled loss on p(y | x, r = 0) ∝ (1 − phi_y) p(y | x), with a given phi. As consistent as 1/phi weights and,
    /// where these range over orders of magnitude, far less variable.
    Adjusted(Phi),
    /// Every row counts once: labelled ones with their label, unlabelled ones with the unlabelled loss, which should be
    /// [`Imputation`](crate::consistency::Imputation) by p(y | x, r = 0). A step of EM on the observed likelihood; phi is
    /// in the targets.
    Imputed(Phi),
    /// Weights by class shares in place of the mechanism (CADR): 1/phi becomes proportional to 1/p(y).
    ClassShares {
        /// Known shares; without them they are the model's own, averaged over the batches.
        shares: Option<ClassShares>,
    },
    /// The moment estimator with a buffer, no gradient through phi (ME).
    Moments,
    /// The moment estimator on the batch, with the gradient through phi (MEg).
    MomentsGradient,
    /// The observed likelihood in theta and phi (Algorithm 1); finds the phi for [`Method::Given`].
    Likelihood,
}

/// Which terms the risk of a batch has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossTerms {
    /// The loss of the labelled rows.
    Labelled,
    /// The loss of the labelled rows, and the consistency loss of all rows.
    LabelledAndConsistency,
    /// The observed likelihood of labelled and unlabelled rows.
    ObservedLikelihood,
}

/// How labelled rows are weighted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowWeights {
    /// All alike, as a mean over the labelled rows.
    Equal,
    /// By 1, as a part of the sum over all rows.
    One,
    /// By 1/phi of their class, and of their columns where it depends on them, as a part of the sum over all rows.
    InversePhi,
}

/// Which epoch's weights are kept, judged by held-out labelled rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochRule {
    /// The epoch of least risk. For methods whose probabilities are the goal: those of cross-fitted networks lead to phi,
    /// and the phi of Algorithm 1 goes astray when its model overfits.
    LeastRisk,
    /// The last epoch that is not clearly worse than the best one.
    LaterUnlessWorse,
}

/// How phi moves from step to step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhiRule {
    /// It does not; only a refresh at the end of an epoch changes it.
    Fixed,
    /// The moment estimator on a running mean of the predictions.
    Moments,
    /// The same value, with the gradient of the batch.
    MomentsGradient,
    /// The weights follow known class shares.
    KnownShares,
    /// The weights follow a running mean of the predictions.
    PredictedShares,
}

impl Method {
    /// The method of this name, given what is known about the mechanism.
    pub fn new(name: MethodName, known: &Known<'_>) -> Result<Self, TrainError> {
        let estimate = || known.estimate.clone();
        Ok(match name {
            MethodName::LabelShift | MethodName::Mle => Self::Given(estimate()),
            MethodName::Adjusted => Self::Adjusted(estimate()),
            MethodName::Ipw => Self::Weighted(estimate()),
            MethodName::Me => Self::Moments,
            MethodName::Meg => Self::MomentsGradient,
            MethodName::Cadr => Self::ClassShares { shares: known.shares.cloned() },
            MethodName::DePl => Self::Constant,
            MethodName::Pl => Self::Classical,
            MethodName::CompleteCase => Self::CompleteCase,
            MethodName::Oracle => Self::Given(known.phi.cloned().ok_or(TrainError::NoPhi)?),
            MethodName::KnownShares => {
                let shares = known.shares.ok_or(TrainError::NoShares)?;
                Self::Given(Phi::from_shares(known.labels.counts(), known.labels.len(), shares)?)
            }
        })
    }

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

    /// Checks that the method can be used with these labels: one phi and one share per class, and a label of every class
    /// where phi is learnt from the label counts.
    pub fn check(&self, labels: &Labels) -> Result<(), TrainError> {
        if labels.n_labelled() == 0 {
            return Err(mnar::Error::NoLabels { n: labels.len() }.into());
        }
        let given = self.given_phi().map(|phi| ("phi", phi.len()));
        let shares = self.given_shares().map(|shares| ("the class shares", shares.len()));
        if let Some((what, found)) = given.or(shares).filter(|(_, found)| *found != labels.n_classes()) {
            return Err(TrainError::PerClass { what, found, classes: labels.n_classes() });
        }
        let without = labels.counts().iter().position(|count| *count == 0);
        if let (true, Some(k)) = (self.phi_rule() != PhiRule::Fixed, without) {
            return Err(mnar::Error::TooFewLabels {
                class: labels.names()[k].clone(),
                found: 0,
                needed: 1,
                purpose: "estimating phi during training",
            }
            .into());
        }
        Ok(())
    }

    /// Checks that the method can be used with a phi of every row: one that brings a phi, and one phi per row and class.
    pub fn check_row_phi(&self, row_phi: &[Phi], labels: &Labels) -> Result<(), TrainError> {
        if self.given_phi().is_none() {
            return Err(TrainError::NoRowPhi { method: self.name() });
        }
        if row_phi.len() != labels.len() {
            return Err(TrainError::RowPhiCount { found: row_phi.len(), labels: labels.len() });
        }
        match row_phi.iter().map(Phi::len).find(|found| *found != labels.n_classes()) {
            Some(found) => Err(TrainError::PerClass { what: "the phi of a row", found, classes: labels.n_classes() }),
            None => Ok(()),
        }
    }

    /// Which terms the risk has.
    pub fn loss_terms(&self) -> LossTerms {
        match self {
            Self::CompleteCase | Self::Weighted(_) => LossTerms::Labelled,
            Self::Likelihood => LossTerms::ObservedLikelihood,
            Self::Classical
            | Self::Constant
            | Self::Given(_)
            | Self::Adjusted(_)
            | Self::Imputed(_)
            | Self::ClassShares { .. }
            | Self::Moments
            | Self::MomentsGradient => LossTerms::LabelledAndConsistency,
        }
    }

    /// How labelled rows are weighted.
    pub fn weights(&self) -> RowWeights {
        match self {
            Self::CompleteCase | Self::Classical | Self::Adjusted(_) | Self::Likelihood => RowWeights::Equal,
            Self::Imputed(_) => RowWeights::One,
            Self::Constant
            | Self::Weighted(_)
            | Self::Given(_)
            | Self::ClassShares { .. }
            | Self::Moments
            | Self::MomentsGradient => RowWeights::InversePhi,
        }
    }

    /// Whether losses are of p(y | x, r), the network's p(y | x) adjusted by phi, instead of p(y | x) itself.
    pub fn adjusts_logits(&self) -> bool {
        matches!(self, Self::Adjusted(_))
    }

    /// How phi moves from step to step.
    pub fn phi_rule(&self) -> PhiRule {
        match self {
            Self::Moments => PhiRule::Moments,
            Self::MomentsGradient => PhiRule::MomentsGradient,
            Self::ClassShares { shares: Some(_) } => PhiRule::KnownShares,
            Self::ClassShares { shares: None } => PhiRule::PredictedShares,
            Self::CompleteCase
            | Self::Classical
            | Self::Constant
            | Self::Weighted(_)
            | Self::Given(_)
            | Self::Adjusted(_)
            | Self::Imputed(_)
            | Self::Likelihood => PhiRule::Fixed,
        }
    }

    /// Whether phi is estimated again at the end of an epoch (counted from 1) from the model as it stands. `every` is the
    /// number of epochs between two refreshes of a given phi, if the user asked for any.
    pub fn refreshes(&self, epoch: usize, every: Option<usize>) -> bool {
        match self {
            // The other half of Algorithm 1: phi given theta, solved exactly in place of a gradient step.
            Self::Likelihood => true,
            Self::Given(_) | Self::Adjusted(_) => every.is_some_and(|every| epoch.is_multiple_of(every)),
            _ => false,
        }
    }

    /// Which epoch's weights are kept.
    pub fn epoch_rule(&self) -> EpochRule {
        match self {
            Self::CompleteCase | Self::Likelihood => EpochRule::LeastRisk,
            _ => EpochRule::LaterUnlessWorse,
        }
    }

    /// Whether held-out rows are weighted by 1/phi, so that their mean loss is one over the population. Methods that know
    /// no mechanism count them alike.
    pub fn weights_held_out(&self) -> bool {
        !matches!(self, Self::CompleteCase | Self::Classical)
    }

    /// Whether training ends with the phi of the chosen epoch instead of that of the last step. Algorithm 1 goes on after
    /// its model has begun to overfit the labels, and phi goes astray with it.
    pub fn takes_phi_of_chosen_epoch(&self) -> bool {
        matches!(self, Self::Likelihood)
    }

    /// The phi that training starts with, where the method brings one.
    pub fn given_phi(&self) -> Option<&Phi> {
        match self {
            Self::Given(phi) | Self::Weighted(phi) | Self::Adjusted(phi) | Self::Imputed(phi) => Some(phi),
            _ => None,
        }
    }

    /// The class shares that training starts with, where the method brings them.
    pub fn given_shares(&self) -> Option<&ClassShares> {
        match self {
            Self::ClassShares { shares } => shares.as_ref(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[&str]) -> Labels {
        let names = ["a", "b"].map(String::from).to_vec();
        Labels::with_names(values.iter().map(|value| (!value.is_empty()).then_some(*value)), names).unwrap()
    }

    #[test]
    fn a_method_must_fit_the_classes() {
        let labels = labels(&["a", "b", ""]);
        let three = Phi::all_labelled(3);
        let error = Method::Given(three.clone()).check(&labels).unwrap_err();
        assert!(error.to_string().contains("3 entries, but there are 2 classes"), "{error}");
        assert!(Method::Given(Phi::all_labelled(2)).check(&labels).is_ok());
        let shares = ClassShares::new(vec![0.2, 0.3, 0.5]).unwrap();
        assert!(Method::ClassShares { shares: Some(shares) }.check(&labels).is_err());
    }

    #[test]
    fn a_class_without_a_label_has_no_phi_to_learn() {
        let labels = labels(&["a", "a", ""]);
        assert!(Method::Classical.check(&labels).is_ok());
        for method in [Method::Moments, Method::MomentsGradient, Method::ClassShares { shares: None }] {
            let error = method.check(&labels).unwrap_err();
            assert!(error.to_string().contains("class `b` has 0 label(s)"), "{error}");
        }
    }

    #[test]
    fn known_values_are_asked_for_by_name() {
        let labels = labels(&["a", "b", "", ""]);
        let estimate = Phi::new(vec![0.5, 0.5]).unwrap();
        let known = Known { estimate: &estimate, phi: None, shares: None, labels: &labels };
        for (name, option) in [(MethodName::Oracle, "phi"), (MethodName::KnownShares, "shares")] {
            let error = Method::new(name, &known).unwrap_err();
            assert_eq!(error.remedies(), [mnar::Remedy::set(option, "NUMBERS")]);
        }
        let shares = ClassShares::new(vec![0.25, 0.75]).unwrap();
        let known = Known { shares: Some(&shares), ..known };
        let method = Method::new(MethodName::KnownShares, &known).unwrap();
        assert_eq!(method, Method::Given(Phi::new(vec![1.0, 0.25 / 0.75]).unwrap()));
        assert!(MethodName::Mle.needs_likelihood_first());
        assert_eq!(Method::new(MethodName::Mle, &known).unwrap(), Method::Given(estimate.clone()));
        let trained = Phi::all_labelled(2);
        assert_eq!(MethodName::Pl.reported_phi(&estimate, &trained), &estimate);
        assert_eq!(MethodName::Me.reported_phi(&estimate, &trained), &trained);
    }
}
