//! The paper's methods and ours. Each turns a masked data set into test scores and an estimated mechanism.

use crate::data::Masked;
use crate::error::ReproduceError;
use crate::experiment::{Experiment, Protocol};
use mnar::Labels;
use mnar::crossfit::FoldPlan;
use mnar_train::consistency::{Consistency, Imputation};
use mnar_train::crossfit::{CrossFit, CrossFitted as FoldScores};
use mnar_train::device::Device;
use mnar_train::mechanism::Method;
use mnar_train::model::Network;
use mnar_train::{Ended, Job, Observer, ThresholdRule, TrainSettings, Trained, Validation, logits, train};
use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// A method: a row of the results table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Candidate {
    /// Training on the labelled rows only.
    CompleteCase,
    /// The semi-supervised method without a correction.
    Pl,
    /// The debiased method with a constant phi, as if labels were missing completely at random.
    DePl,
    /// CADR: weights from the class shares.
    Cadr,
    /// CADR with the true class shares.
    CadrKnown,
    /// Algorithm 1, then Algorithm 2 with its phi.
    Mle,
    /// The moment estimator with its gradient.
    Meg,
    /// The moment estimator.
    Me,
    /// phi by label shift from cross-fitted networks, then Algorithm 2 with that phi.
    Ours,
    /// The same phi, without further training: the cross-fitted networks as a calibrated ensemble, corrected by phi.
    OursEnsemble,
    /// The same phi; instead of weights, the likelihood of a label given that the row is labelled.
    OursAdjusted,
    /// The same phi; missing labels are replaced by the cross-fitted p(y | x, r = 0).
    OursImputed,
    /// Algorithm 2 with the phi that follows from the true class shares.
    Known,
    /// Algorithm 2 with the true phi.
    Oracle,
}

impl Candidate {
    /// All methods.
    pub const ALL: [Self; 14] = [
        Self::CompleteCase,
        Self::Pl,
        Self::DePl,
        Self::Cadr,
        Self::CadrKnown,
        Self::Mle,
        Self::Meg,
        Self::Me,
        Self::Ours,
        Self::OursEnsemble,
        Self::OursAdjusted,
        Self::OursImputed,
        Self::Known,
        Self::Oracle,
    ];

    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::CompleteCase => "complete-case",
            Self::Pl => "pl",
            Self::DePl => "de-pl",
            Self::Cadr => "cadr",
            Self::CadrKnown => "cadr-known",
            Self::Mle => "mle",
            Self::Meg => "meg",
            Self::Me => "me",
            Self::Ours => "ours",
            Self::OursEnsemble => "ours-ensemble",
            Self::OursAdjusted => "ours-adjusted",
            Self::OursImputed => "ours-imputed",
            Self::Known => "known",
            Self::Oracle => "oracle",
        }
    }

    /// Whether the method trains networks on labelled rows only.
    pub(crate) fn sees_labelled_only(self) -> bool {
        use Candidate::{CompleteCase, Ours, OursAdjusted, OursEnsemble, OursImputed};
        matches!(self, CompleteCase | Ours | OursEnsemble | OursAdjusted | OursImputed)
    }

    /// The name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::CompleteCase => "labelled only",
            Self::Pl => "Pl",
            Self::DePl => "DePl",
            Self::Cadr => "CADR",
            Self::CadrKnown => "CADR, p(y) known",
            Self::Mle => "MLE",
            Self::Meg => "MEg",
            Self::Me => "ME",
            Self::Ours => "ours, weights",
            Self::OursEnsemble => "ours, ensemble",
            Self::OursAdjusted => "ours, adjusted",
            Self::OursImputed => "ours, imputed",
            Self::Known => "p(y) known",
            Self::Oracle => "phi known",
        }
    }
}

/// What a method learnt: scores of the test rows and the mechanism.
pub(crate) struct Learnt {
    /// Calibrated logits of p(y | x).
    pub(crate) test_scores: Array2<f64>,
    pub(crate) phi: Vec<f64>,
    pub(crate) phi_ci95: Option<Vec<(f64, f64)>>,
    pub(crate) chosen_epoch: usize,
    /// Seconds of shared work that an earlier method had already done.
    pub(crate) seconds_before: f64,
}

/// A masked data set and how to train on it.
pub(crate) struct Setting<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) masked: &'a Masked,
    pub(crate) settings: &'a TrainSettings,
    pub(crate) folds: &'a TrainSettings,
    pub(crate) protocol: Protocol,
    pub(crate) device: &'a Device,
    pub(crate) stop: &'a AtomicBool,
    /// The cross-fit, which all our methods share.
    pub(crate) cross_fitted: OnceCell<CrossFitted>,
}

/// phi by label shift, the targets and test scores that follow from it, and the time it took.
pub(crate) struct CrossFitted {
    phi: Vec<f64>,
    phi_ci95: Option<Vec<(f64, f64)>>,
    targets: Vec<f32>,
    test_scores: Array2<f64>,
    seconds: f64,
}

impl Setting<'_> {
    /// Trains a method.
    pub(crate) fn learn(&self, candidate: Candidate, observer: &mut dyn Observer) -> Result<Learnt, ReproduceError> {
        let labels = &self.masked.labels;
        let n = labels.len() as f64;
        let constant = vec![labels.n_labelled() as f64 / n; labels.n_classes()];
        let shares = &self.masked.shares;
        match candidate {
            Candidate::CompleteCase => {
                Ok(Learnt { phi: constant, ..self.run(Method::CompleteCase, self.folds, observer)? })
            }
            Candidate::Pl => Ok(Learnt { phi: constant, ..self.run(Method::Classical, self.settings, observer)? }),
            Candidate::DePl => self.run(Method::Constant, self.settings, observer),
            Candidate::Cadr | Candidate::CadrKnown => {
                let mut settings = self.settings.clone();
                settings.threshold.rule = ThresholdRule::Shares;
                let shares = (candidate == Candidate::CadrKnown).then(|| shares.clone());
                self.run(Method::ClassShares { shares }, &settings, observer)
            }
            Candidate::Mle => {
                let phi = self.run(Method::Likelihood, self.settings, observer)?.phi;
                self.run(Method::Given(phi), self.settings, observer)
            }
            Candidate::Meg => self.run(Method::MomentsGradient, self.settings, observer),
            Candidate::Me => self.run(Method::Moments, self.settings, observer),
            Candidate::Ours | Candidate::OursEnsemble | Candidate::OursAdjusted | Candidate::OursImputed => {
                self.learn_ours(candidate, observer)
            }
            Candidate::Known => {
                let phi = labels.counts().iter().zip(shares).map(|(&count, share)| (count as f64 / n / share).min(1.0));
                self.run(Method::Given(phi.collect()), self.settings, observer)
            }
            Candidate::Oracle => self.run(Method::Given(self.masked.phi.clone()), self.settings, observer),
        }
    }

    /// The methods that start from the cross-fitted phi.
    fn learn_ours(&self, candidate: Candidate, observer: &mut dyn Observer) -> Result<Learnt, ReproduceError> {
        let (fitted, seconds_before) = match self.cross_fitted.get() {
            Some(fitted) => (fitted, fitted.seconds),
            None => {
                let fitted = self.cross_fit(observer)?;
                (self.cross_fitted.get_or_init(|| fitted), 0.0)
            }
        };
        let phi = fitted.phi.clone();
        let learnt = match candidate {
            Candidate::OursEnsemble => Learnt {
                test_scores: fitted.test_scores.clone(),
                phi,
                phi_ci95: None,
                chosen_epoch: self.folds.epochs,
                seconds_before: 0.0,
            },
            Candidate::OursAdjusted => self.run(Method::Adjusted(phi), self.settings, observer)?,
            Candidate::OursImputed => {
                let targets = Some(&fitted.targets[..]);
                self.learnt(&self.train(Method::Imputed(phi), &Imputation, targets, self.settings, observer)?)
            }
            _ => self.run(Method::Given(phi), self.settings, observer)?,
        };
        Ok(Learnt { seconds_before, phi_ci95: fitted.phi_ci95.clone(), ..learnt })
    }

    fn run(
        &self,
        method: Method,
        settings: &TrainSettings,
        observer: &mut dyn Observer,
    ) -> Result<Learnt, ReproduceError> {
        let consistency = self.experiment.consistency.method();
        Ok(self.learnt(&self.train(method, consistency, None, settings, observer)?))
    }

    fn learnt(&self, trained: &Trained<Network>) -> Learnt {
        let test: Vec<usize> = (0..self.masked.test.len()).collect();
        Learnt {
            test_scores: logits(&trained.network, &self.masked.test, &test) / trained.temperature,
            phi: trained.mechanism.phi().to_vec(),
            phi_ci95: None,
            chosen_epoch: trained.chosen_epoch,
            seconds_before: 0.0,
        }
    }

    fn train(
        &self,
        method: Method,
        consistency: &dyn Consistency,
        targets: Option<&[f32]>,
        settings: &TrainSettings,
        observer: &mut dyn Observer,
    ) -> Result<Trained<Network>, ReproduceError> {
        let masked = self.masked;
        let by = self.experiment.choose_by;
        let validation = Validation { by, examples: &masked.validation, classes: &masked.validation_classes };
        let job = Job {
            examples: &masked.train,
            labels: &masked.labels,
            method,
            consistency,
            settings,
            targets,
            validation: (self.protocol == Protocol::Paper).then_some(validation),
            checkpoint: None,
            stop: Some(self.stop),
        };
        let shape = masked.train.shape();
        let network = self.experiment.network.build(shape, masked.labels.n_classes(), settings.seed, self.device)?;
        let trained = train(network, &job, observer)?;
        if trained.ended == Ended::Interrupted { Err(ReproduceError::Cancelled) } else { Ok(trained) }
    }

    /// Trains the network of a method that needs no targets.
    pub(crate) fn plain(&self, method: Method, observer: &mut dyn Observer) -> Result<Network, ReproduceError> {
        let consistency = self.experiment.consistency.method();
        Ok(self.train(method, consistency, None, self.settings, observer)?.network)
    }

    /// Scores of the cross-fitted networks, and the fold plan.
    pub(crate) fn fold_posteriors(
        &self,
        observer: &mut dyn Observer,
    ) -> Result<(FoldScores, FoldPlan), ReproduceError> {
        let labels: &Labels = &self.masked.labels;
        let plan = FoldPlan::for_labels(labels, 5, self.folds.seed)?;
        let folds = CrossFit {
            architecture: &self.experiment.network,
            settings: self.folds,
            device: self.device,
            beyond: Some(&self.masked.test),
            stop: Some(self.stop),
        };
        let raw = folds.run(&self.masked.train, labels, &plan, &|_| None, observer)?;
        Ok((raw.ok_or(ReproduceError::Cancelled)?, plan))
    }

    /// phi by label shift from cross-fitted, calibrated posteriors, and the classes it implies for unlabelled rows:
    /// p(y | x, r = 0) ∝ p(y | x, r = 1) (1 − phi_y)/phi_y.
    fn cross_fit(&self, observer: &mut dyn Observer) -> Result<CrossFitted, ReproduceError> {
        let start = Instant::now();
        let (raw, _) = self.fold_posteriors(observer)?;
        let shifted = raw.label_shift(&self.masked.labels)?;
        let phi = shifted.estimate.phi.as_slice().to_vec();
        let believed: Vec<f64> = phi.iter().map(|phi| phi.min(LARGEST_PHI)).collect();
        let ensemble = &shifted.ensemble;
        let guesses = (0..ensemble.len()).filter_map(|row| ensemble.given_unlabelled(row, &believed));
        let targets = guesses.flatten().map(|p| p as f32).collect();
        // p(y | x) ∝ p(y | x, r = 1) / phi_y
        let log_phi: Array1<f64> = phi.iter().map(|phi| phi.ln()).collect();
        let test = shifted.beyond.expect("test rows were scored");
        let test_scores = test.view().mapv(|p| p.max(f64::MIN_POSITIVE).ln()) - &log_phi;
        let phi_ci95 = shifted.phi_ci95;
        Ok(CrossFitted { phi, phi_ci95, targets, test_scores, seconds: start.elapsed().as_secs_f64() })
    }
}

/// Upper bound on phi when missing labels are imputed: a phi of 1 is only an estimate, but taken literally it would
/// mean that no unlabelled row is of that class.
const LARGEST_PHI: f64 = 0.98;
