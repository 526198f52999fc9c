//! The paper's methods and ours. Each turns a masked data set into test scores and an estimated mechanism.

use crate::data::Masked;
use crate::error::ReproduceError;
use crate::experiment::{Experiment, Protocol};
use crate::whole::whole_fit;
use mnar::analysis::{EstimateSettings, Evidence, IntervalMethod};
use mnar::classify::Fitted;
use mnar::crossfit::{CrossFit, CrossFitted, FoldPlan};
use mnar::progress::Stage;
use mnar::{Phi, PosteriorKind, Posteriors, Progress};
use mnar_train::consistency::{Consistency, Imputation};
use mnar_train::device::Device;
use mnar_train::method::Method;
use mnar_train::model::Network;
use mnar_train::{
    Examples, Job, NetworkClassifier, ThresholdRule, TrainError, TrainSettings, Trained, Validation, logits, train,
};
use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
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
    /// The EM of SimPro: the likelihood of a label given that the row is labelled, with a phi that is constant at first and then
    /// follows from the network as it stands.
    SimPro,
    /// phi by label shift from cross-fitted networks, then Algorithm 2 with that phi.
    Ours,
    /// The same phi, without further training: the cross-fitted networks as a calibrated ensemble, corrected by phi.
    OursEnsemble,
    /// The same phi; instead of weights, the likelihood of a label given that the row is labelled.
    OursAdjusted,
    /// The same phi; missing labels are replaced by the cross-fitted p(y | x, r = 0).
    OursImputed,
    /// The whole of `mnar fit`, with no option but the seed (unless the experiment has some). It chooses settings of its own.
    Default,
    /// Algorithm 2 with the phi that follows from the true class shares.
    Known,
    /// Algorithm 2 with the true phi.
    Oracle,
}

impl Candidate {
    /// All methods.
    pub const ALL: [Self; 16] = [
        Self::CompleteCase,
        Self::Pl,
        Self::DePl,
        Self::Cadr,
        Self::CadrKnown,
        Self::Mle,
        Self::Meg,
        Self::Me,
        Self::SimPro,
        Self::Ours,
        Self::OursEnsemble,
        Self::OursAdjusted,
        Self::OursImputed,
        Self::Default,
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
            Self::SimPro => "sim-pro",
            Self::Ours => "ours",
            Self::OursEnsemble => "ours-ensemble",
            Self::OursAdjusted => "ours-adjusted",
            Self::OursImputed => "ours-imputed",
            Self::Default => "default",
            Self::Known => "known",
            Self::Oracle => "oracle",
        }
    }

    /// Whether the method trains networks on labelled rows only.
    pub(crate) fn sees_labelled_only(self) -> bool {
        use Candidate::{CompleteCase, Ours, OursAdjusted, OursEnsemble, OursImputed};
        matches!(self, CompleteCase | Ours | OursEnsemble | OursAdjusted | OursImputed)
    }

    /// Whether the method is a whole run of a user, who has no validation rows with the true class shares.
    pub(crate) fn is_whole_fit(self) -> bool {
        self == Self::Default
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
            Self::SimPro => "SimPro's EM",
            Self::Ours => "ours, weights",
            Self::OursEnsemble => "ours, ensemble",
            Self::OursAdjusted => "ours, adjusted",
            Self::OursImputed => "ours, imputed",
            Self::Default => "`mnar fit`",
            Self::Known => "p(y) known",
            Self::Oracle => "phi known",
        }
    }
}

/// What a method learnt: scores of the test rows and the mechanism.
pub(crate) struct Learnt {
    /// Calibrated logits of p(y | x).
    pub(crate) test_scores: Array2<f64>,
    pub(crate) phi: Phi,
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
    pub(crate) progress: &'a dyn Progress,
    /// What follows from the cross-fit, which all our methods share.
    pub(crate) shifted: OnceCell<Shifted>,
}

/// phi by label shift, the targets and test scores that follow from it, and the time it took.
pub(crate) struct Shifted {
    phi: Phi,
    phi_ci95: Option<Vec<(f64, f64)>>,
    targets: Vec<f32>,
    test_scores: Array2<f64>,
    seconds: f64,
}

impl Setting<'_> {
    /// Trains a method.
    pub(crate) fn learn(&self, candidate: Candidate) -> Result<Learnt, ReproduceError> {
        let labels = &self.masked.labels;
        let constant = || Phi::constant(labels.n_labelled(), labels.len(), labels.n_classes());
        let shares = &self.masked.shares;
        match candidate {
            Candidate::CompleteCase => Ok(Learnt { phi: constant()?, ..self.run(Method::CompleteCase, self.folds)? }),
            Candidate::Pl => Ok(Learnt { phi: constant()?, ..self.run(Method::Classical, self.settings)? }),
            Candidate::DePl => self.run(Method::Constant, self.settings),
            Candidate::Cadr | Candidate::CadrKnown => {
                let mut settings = self.settings.clone();
                settings.threshold.rule = ThresholdRule::Shares;
                let shares = (candidate == Candidate::CadrKnown).then(|| shares.clone());
                self.run(Method::ClassShares { shares }, &settings)
            }
            Candidate::Mle => {
                let phi = self.run(Method::Likelihood, self.settings)?.phi;
                self.run(Method::Given(phi), self.settings)
            }
            Candidate::Meg => self.run(Method::MomentsGradient, self.settings),
            Candidate::Me => self.run(Method::Moments, self.settings),
            Candidate::SimPro => self.run(Method::Adjusted(constant()?), &self.refreshing()),
            Candidate::Ours | Candidate::OursEnsemble | Candidate::OursAdjusted | Candidate::OursImputed => {
                self.learn_ours(candidate)
            }
            Candidate::Default => {
                let options = &self.experiment.fit;
                whole_fit(self.masked, options, self.settings.seed, self.progress)
            }
            Candidate::Known => {
                let phi = Phi::from_shares(labels.counts(), labels.len(), shares)?;
                self.run(Method::Given(phi), self.settings)
            }
            Candidate::Oracle => self.run(Method::Given(self.masked.phi.clone()), self.settings),
        }
    }

    /// The settings of the methods, with a phi that is estimated again after about [`REFRESH_STEPS`] steps.
    fn refreshing(&self) -> TrainSettings {
        let per_epoch = (self.masked.labels.n_labelled() / self.settings.batch_labelled).max(1);
        TrainSettings { refresh: Some((REFRESH_STEPS / per_epoch).max(1)), ..self.settings.clone() }
    }

    /// The methods that start from the cross-fitted phi.
    fn learn_ours(&self, candidate: Candidate) -> Result<Learnt, ReproduceError> {
        let (shifted, seconds_before) = match self.shifted.get() {
            Some(shifted) => (shifted, shifted.seconds),
            None => {
                let shifted = self.label_shift()?;
                (self.shifted.get_or_init(|| shifted), 0.0)
            }
        };
        let phi = shifted.phi.clone();
        let learnt = match candidate {
            Candidate::OursEnsemble => Learnt {
                test_scores: shifted.test_scores.clone(),
                phi,
                phi_ci95: None,
                chosen_epoch: self.folds.epochs,
                seconds_before: 0.0,
            },
            Candidate::OursAdjusted => self.run(Method::Adjusted(phi), self.settings)?,
            Candidate::OursImputed => {
                let targets = Some(&shifted.targets[..]);
                self.learnt(&self.train(Method::Imputed(phi), &Imputation, targets, self.settings)?)
            }
            _ => self.run(Method::Given(phi), self.settings)?,
        };
        Ok(Learnt { seconds_before, phi_ci95: shifted.phi_ci95.clone(), ..learnt })
    }

    fn run(&self, method: Method, settings: &TrainSettings) -> Result<Learnt, ReproduceError> {
        let consistency = self.experiment.consistency.build();
        Ok(self.learnt(&self.train(method, &*consistency, None, settings)?))
    }

    fn learnt(&self, trained: &Trained<Network>) -> Learnt {
        let test: Vec<usize> = (0..self.masked.test.len()).collect();
        Learnt {
            test_scores: logits(&trained.network, &self.masked.test, &test) / trained.temperature,
            phi: trained.mechanism.phi().clone(),
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
    ) -> Result<Trained<Network>, ReproduceError> {
        let masked = self.masked;
        let by = self.experiment.choose_by;
        let validation = Validation { by, examples: &masked.validation, classes: &masked.validation_classes };
        let job = Job {
            stage: stage(&method),
            examples: &masked.train,
            labels: &masked.labels,
            weights: None,
            method,
            row_phi: None,
            consistency,
            settings,
            targets,
            validation: (self.protocol == Protocol::Paper).then_some(validation),
            checkpoint: None,
        };
        let shape = masked.train.shape();
        let network = self.experiment.network.build(shape, masked.labels.n_classes(), settings.seed, self.device)?;
        Ok(train(network, &job, self.progress)?)
    }

    /// Trains the network of a method that needs no targets.
    pub(crate) fn plain(&self, method: Method) -> Result<Network, ReproduceError> {
        let consistency = self.experiment.consistency.build();
        Ok(self.train(method, &*consistency, None, self.settings)?.network)
    }

    /// Trains one network per fold on the labelled rows of the other folds.
    pub(crate) fn fit_folds(&self) -> Result<(CrossFitted<Examples>, FoldPlan), ReproduceError> {
        let labels = &self.masked.labels;
        let plan = FoldPlan::for_labels(labels, 5, self.folds.seed)?;
        let classifier = NetworkClassifier {
            architecture: &self.experiment.network,
            settings: self.folds,
            device: self.device,
            checkpoint: None,
        };
        let cross_fit = CrossFit { classifier: &classifier, x: &self.masked.train, seed: self.folds.seed };
        let fitted = cross_fit.run(labels, &plan, None, self.progress).map_err(TrainError::from)?;
        Ok((fitted, plan))
    }

    /// phi by label shift from cross-fitted, calibrated posteriors, and the classes it implies for unlabelled rows:
    /// p(y | x, r = 0) ∝ p(y | x, r = 1) (1 − phi_y)/phi_y.
    fn label_shift(&self) -> Result<Shifted, ReproduceError> {
        let start = Instant::now();
        let labels = &self.masked.labels;
        let (folds, plan) = self.fit_folds()?;
        let evidence = Evidence::predictions(&folds.posteriors, labels).cross_fitted(&plan);
        let settings = EstimateSettings { interval: IntervalMethod::Information, ..Default::default() };
        let found = settings.run(&evidence, self.progress)?;
        let calibration = found.calibration.expect("label shift calibrates");
        let phi = found.phi;
        // No network has seen the label of an unlabelled row, so all of them may score it: a better guess than that of
        // one. A labelled row keeps the score of the one network that has not seen its label.
        let unlabelled: Vec<usize> = (0..labels.len()).filter(|&row| !labels.is_labelled(row)).collect();
        let mut ensemble = folds.posteriors.view().to_owned();
        let together = self.ensemble(&folds.models, &self.masked.train, &unlabelled)?;
        for (&row, p) in unlabelled.iter().zip(together.view().rows()) {
            ensemble.row_mut(row).assign(&p);
        }
        let ensemble = calibration.apply(&Posteriors::new(ensemble, PosteriorKind::Labelled)?)?;
        let believed = Phi::new(phi.iter().map(|phi| phi.min(LARGEST_PHI)).collect())?;
        let guesses = (0..ensemble.len()).filter_map(|row| ensemble.given_unlabelled(row, &believed));
        let targets = guesses.flatten().map(|p| p as f32).collect();
        // p(y | x) ∝ p(y | x, r = 1) / phi_y
        let log_phi: Array1<f64> = phi.iter().map(|phi| phi.ln()).collect();
        let test: Vec<usize> = (0..self.masked.test.len()).collect();
        let test = calibration.apply(&self.ensemble(&folds.models, &self.masked.test, &test)?)?;
        let test_scores = test.view().mapv(|p| p.max(f64::MIN_POSITIVE).ln()) - &log_phi;
        Ok(Shifted { phi, phi_ci95: found.phi_ci95, targets, test_scores, seconds: start.elapsed().as_secs_f64() })
    }

    /// p(y | x, r = 1) of these rows by all networks together, from the means of their logits.
    fn ensemble(
        &self,
        networks: &[Box<dyn Fitted<Examples>>],
        examples: &Examples,
        rows: &[usize],
    ) -> Result<Posteriors, ReproduceError> {
        let mut sum = Array2::zeros((rows.len(), self.masked.labels.n_classes()));
        for network in networks {
            sum += &network.logits(examples, rows)?;
        }
        Ok(Posteriors::from_logits((sum / networks.len() as f64).view(), PosteriorKind::Labelled)?)
    }
}

/// The stage that the training of a method is reported as.
fn stage(method: &Method) -> Stage {
    match method {
        Method::Likelihood => Stage::Likelihood,
        Method::CompleteCase | Method::Classical => Stage::Baseline,
        _ => Stage::Debiased,
    }
}

/// Steps between two estimates of phi by the network in training; each estimate scores all rows.
const REFRESH_STEPS: usize = 50;

/// Upper bound on phi when missing labels are imputed: a phi of 1 is only an estimate, but taken literally it would
/// mean that no unlabelled row is of that class.
const LARGEST_PHI: f64 = 0.98;
