//! The methods that are compared. Each turns a data set into a network and an estimated mechanism.

use anyhow::{Result, bail};
use mnar::analysis::{EstimateSettings, Evidence, IntervalMethod};
use mnar::crossfit::{CrossFit, FoldPlan};
use mnar::progress::Stage;
use mnar::{Labels, Phi};
use mnar_train::consistency::Consistency;
use mnar_train::method::Method;
use mnar_train::model::{Architecture, Network};
use mnar_train::{Examples, Job, NetworkClassifier, TrainSettings, device, train};

pub(crate) const ALL: [&str; 4] = ["complete-case", "pl", "ours", "ours-adjusted"];

/// Everything but the method.
pub(crate) struct Setting<'a> {
    pub(crate) examples: &'a Examples,
    pub(crate) labels: &'a Labels,
    pub(crate) architecture: &'a Architecture,
    pub(crate) consistency: &'a dyn Consistency,
    pub(crate) settings: &'a TrainSettings,
    /// Settings of the networks that see labelled rows only: those of the folds, and that of `complete-case`.
    pub(crate) fold_settings: &'a TrainSettings,
}

/// A network, and the mechanism it was trained with.
pub(crate) struct Learnt {
    pub(crate) network: Network,
    pub(crate) temperature: f64,
    pub(crate) phi: Phi,
}

pub(crate) fn learn(name: &str, setting: &Setting<'_>) -> Result<Learnt> {
    let constant = || Phi::constant(setting.labels.n_labelled(), setting.labels.len(), setting.labels.n_classes());
    match name {
        "complete-case" => {
            Ok(Learnt { phi: constant()?, ..run(setting, Method::CompleteCase, setting.fold_settings)? })
        }
        "pl" => Ok(Learnt { phi: constant()?, ..run(setting, Method::Classical, setting.settings)? }),
        "ours" => run(setting, Method::Given(cross_fitted_phi(setting)?), setting.settings),
        // Instead of weights, the likelihood of a label given that the row is labelled.
        "ours-adjusted" => run(setting, Method::Adjusted(cross_fitted_phi(setting)?), setting.settings),
        other => bail!("there is no method `{other}`; the methods are {}", ALL.join(", ")),
    }
}

fn run(setting: &Setting<'_>, method: Method, settings: &TrainSettings) -> Result<Learnt> {
    let classes = setting.labels.n_classes();
    let network = setting.architecture.build(setting.examples.shape(), classes, settings.seed, &device::cpu())?;
    let job = Job {
        stage: Stage::Debiased,
        examples: setting.examples,
        labels: setting.labels,
        weights: None,
        method,
        row_phi: None,
        consistency: setting.consistency,
        settings,
        targets: None,
        validation: None,
        checkpoint: None,
    };
    let trained = train(network, &job, &())?;
    Ok(Learnt { network: trained.network, temperature: trained.temperature, phi: trained.mechanism.phi().clone() })
}

/// phi by label shift from cross-fitted, calibrated posteriors.
fn cross_fitted_phi(setting: &Setting<'_>) -> Result<Phi> {
    let plan = FoldPlan::for_labels(setting.labels, 5, setting.settings.seed)?;
    let classifier = NetworkClassifier {
        architecture: setting.architecture,
        settings: setting.fold_settings,
        device: &device::cpu(),
        checkpoint: None,
    };
    let cross_fit = CrossFit { classifier: &classifier, x: setting.examples, seed: setting.fold_settings.seed };
    let posteriors = cross_fit.run(setting.labels, &plan, None, &())?.posteriors;
    let evidence = Evidence::predictions(&posteriors, setting.labels).cross_fitted(&plan);
    let estimate = EstimateSettings { interval: IntervalMethod::Information, ..Default::default() };
    Ok(estimate.run(&evidence, &())?.phi)
}

/// Accuracy and log-loss of a network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Score {
    pub(crate) accuracy: f64,
    pub(crate) log_loss: f64,
}

pub(crate) fn score(learnt: &Learnt, examples: &Examples, rows: &[usize], y: &[usize]) -> Score {
    let scores = mnar_train::logits(&learnt.network, examples, rows);
    let rows: Vec<(usize, f64)> = y.iter().map(|&class| (class, 1.0)).collect();
    let (log_loss, accuracy) = mnar_train::weighted_scores(&scores, &rows, learnt.temperature);
    Score { accuracy, log_loss }
}
