//! The methods of the paper and ours, each from a masked data set to a network and a mechanism.

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

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Candidate {
    /// Labelled rows only.
    CompleteCase,
    /// The semi-supervised method as it is.
    Pl,
    /// Debiased as if labels were missing at random.
    DePl,
    /// Weights by class shares.
    Cadr,
    /// The same with the true class shares.
    CadrKnown,
    /// Algorithm 1, then Algorithm 2 with its phi.
    Mle,
    /// Moments with gradient.
    Meg,
    /// Moments.
    Me,
    /// phi by label shift from cross-fitted networks, then Algorithm 2.
    Ours,
    /// The networks of the cross-fit themselves, together, calibrated and divided by that phi: no training beyond.
    OursEnsemble,
    /// The same phi, then no weights but the likelihood of a label given that the row is labelled.
    OursAdjusted,
    /// The same phi, then unknown labels replaced by the cross-fitted p(y | x, r = 0).
    OursImputed,
    /// Algorithm 2 with phi from the true class shares.
    Known,
    /// Algorithm 2 with the true phi.
    Oracle,
}

impl Candidate {
    /// All of them.
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

    /// Its name in files and on the command line.
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

    /// Does it train networks on labelled rows alone?
    pub(crate) fn sees_labelled_only(self) -> bool {
        use Candidate::{CompleteCase, Ours, OursAdjusted, OursEnsemble, OursImputed};
        matches!(self, CompleteCase | Ours | OursEnsemble | OursAdjusted | OursImputed)
    }

    /// Its name in tables.
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

/// What a method says of the test rows, and the mechanism it rests on.
pub(crate) struct Learnt {
    /// Logits of p(y | x), calibrated.
    pub(crate) test_scores: Array2<f64>,
    pub(crate) phi: Vec<f64>,
    pub(crate) phi_ci95: Option<Vec<(f64, f64)>>,
    pub(crate) chosen_epoch: usize,
    /// Of work that was done for another method before.
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
    /// Of the last cross-fit: three methods rest on it.
    pub(crate) cross_fitted: OnceCell<CrossFitted>,
}

/// phi by label shift, what is known of unlabelled rows, and what it took.
pub(crate) struct CrossFitted {
    phi: Vec<f64>,
    phi_ci95: Option<Vec<(f64, f64)>>,
    targets: Vec<f32>,
    test_scores: Array2<f64>,
    seconds: f64,
}

impl Setting<'_> {
    /// `None` if it was stopped.
    pub(crate) fn learn(
        &self,
        candidate: Candidate,
        observer: &mut dyn Observer,
    ) -> Result<Option<Learnt>, ReproduceError> {
        let labels = &self.masked.labels;
        let n = labels.len() as f64;
        let constant = vec![labels.n_labelled() as f64 / n; labels.n_classes()];
        let shares = &self.masked.shares;
        match candidate {
            Candidate::CompleteCase => Ok(self
                .run(Method::CompleteCase, self.folds, observer)?
                .map(|learnt| Learnt { phi: constant, ..learnt })),
            Candidate::Pl => Ok(self
                .run(Method::Classical, self.settings, observer)?
                .map(|learnt| Learnt { phi: constant, ..learnt })),
            Candidate::DePl => self.run(Method::Constant, self.settings, observer),
            Candidate::Cadr | Candidate::CadrKnown => {
                let mut settings = self.settings.clone();
                settings.threshold.rule = ThresholdRule::Shares;
                let shares = (candidate == Candidate::CadrKnown).then(|| shares.clone());
                self.run(Method::ClassShares { shares }, &settings, observer)
            }
            Candidate::Mle => match self.run(Method::Likelihood, self.settings, observer)? {
                Some(first) => self.run(Method::Given(first.phi), self.settings, observer),
                None => Ok(None),
            },
            Candidate::Meg => self.run(Method::MomentsGradient, self.settings, observer),
            Candidate::Me => self.run(Method::Moments, self.settings, observer),
            Candidate::Ours | Candidate::OursEnsemble | Candidate::OursAdjusted | Candidate::OursImputed => {
                let again = self.cross_fitted.get().map_or(0.0, |fitted| fitted.seconds);
                if self.cross_fitted.get().is_none() {
                    let Some(fitted) = self.cross_fit(observer)? else { return Ok(None) };
                    let _ = self.cross_fitted.set(fitted);
                }
                let Some(fitted) = self.cross_fitted.get() else { return Ok(None) };
                let phi = fitted.phi.clone();
                let learnt = match candidate {
                    Candidate::Ours => self.run(Method::Given(phi), self.settings, observer),
                    Candidate::OursEnsemble => {
                        let test_scores = fitted.test_scores.clone();
                        let chosen_epoch = self.folds.epochs;
                        Ok(Some(Learnt { test_scores, phi, phi_ci95: None, chosen_epoch, seconds_before: 0.0 }))
                    }
                    Candidate::OursAdjusted => self.run(Method::Adjusted(phi), self.settings, observer),
                    _ => {
                        let targets = Some(&fitted.targets[..]);
                        let trained =
                            self.train(Method::Imputed(phi), &Imputation, targets, self.settings, observer)?;
                        Ok(trained.map(|trained| self.learnt(&trained)))
                    }
                };
                let phi_ci95 = fitted.phi_ci95.clone();
                Ok(learnt?.map(|learnt| Learnt { seconds_before: again, phi_ci95, ..learnt }))
            }
            Candidate::Known => {
                let phi = labels.counts().iter().zip(shares).map(|(&count, share)| (count as f64 / n / share).min(1.0));
                self.run(Method::Given(phi.collect()), self.settings, observer)
            }
            Candidate::Oracle => self.run(Method::Given(self.masked.phi.clone()), self.settings, observer),
        }
    }

    fn run(
        &self,
        method: Method,
        settings: &TrainSettings,
        observer: &mut dyn Observer,
    ) -> Result<Option<Learnt>, ReproduceError> {
        let consistency = self.experiment.consistency.method();
        Ok(self.train(method, consistency, None, settings, observer)?.map(|trained| self.learnt(&trained)))
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

    /// `None` if it was stopped.
    fn train(
        &self,
        method: Method,
        consistency: &dyn Consistency,
        targets: Option<&[f32]>,
        settings: &TrainSettings,
        observer: &mut dyn Observer,
    ) -> Result<Option<Trained<Network>>, ReproduceError> {
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
        Ok((trained.ended != Ended::Interrupted).then_some(trained))
    }

    /// A network of a method that needs no targets; `None` if it was stopped.
    pub(crate) fn plain(&self, method: Method, observer: &mut dyn Observer) -> Result<Option<Network>, ReproduceError> {
        let consistency = self.experiment.consistency.method();
        let trained = self.train(method, consistency, None, self.settings, observer)?;
        Ok(trained.map(|trained| trained.network))
    }

    /// What the networks of the folds say, and the folds; `None` if it was stopped.
    pub(crate) fn fold_posteriors(
        &self,
        observer: &mut dyn Observer,
    ) -> Result<Option<(FoldScores, FoldPlan)>, ReproduceError> {
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
        Ok(raw.map(|raw| (raw, plan)))
    }

    /// phi by label shift from cross-fitted, calibrated posteriors, and what they say of unlabelled rows:
    /// p(y | x, r = 0) ∝ p(y | x, r = 1) (1 − phi_y)/phi_y. `None` if it was stopped.
    fn cross_fit(&self, observer: &mut dyn Observer) -> Result<Option<CrossFitted>, ReproduceError> {
        let start = Instant::now();
        let Some((raw, _)) = self.fold_posteriors(observer)? else { return Ok(None) };
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
        Ok(Some(CrossFitted { phi, phi_ci95, targets, test_scores, seconds: start.elapsed().as_secs_f64() }))
    }
}

/// The largest phi that is believed when unknown labels are guessed: a phi of 1 is an estimate, and would say that no
/// unlabelled row is of that class.
const LARGEST_PHI: f64 = 0.98;
