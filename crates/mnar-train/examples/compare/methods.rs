//! The methods that are compared, each from a data set to a network and a mechanism.

use crate::Failure;
use burn::tensor::Device;
use mnar::crossfit::FoldPlan;
use mnar::{Labels, Phi};
use mnar_train::consistency::Consistency;
use mnar_train::crossfit::CrossFit;
use mnar_train::mechanism::Method;
use mnar_train::model::{Architecture, Network};
use mnar_train::{Examples, Job, TrainSettings, train};

pub(crate) const ALL: [&str; 4] = ["complete-case", "pl", "ours", "ours-adjusted"];

/// Everything but the method.
pub(crate) struct Setting<'a> {
    pub(crate) examples: &'a Examples,
    pub(crate) labels: &'a Labels,
    pub(crate) architecture: &'a Architecture,
    pub(crate) consistency: &'a dyn Consistency,
    pub(crate) settings: &'a TrainSettings,
    /// Of the networks of the folds, which see labelled rows only.
    pub(crate) fold_settings: &'a TrainSettings,
}

/// A network, and the mechanism it rests on.
pub(crate) struct Learnt {
    pub(crate) network: Network,
    pub(crate) temperature: f64,
    pub(crate) phi: Vec<f64>,
}

pub(crate) fn learn(name: &str, setting: &Setting<'_>) -> Result<Learnt, Failure> {
    let constant = vec![setting.labels.n_labelled() as f64 / setting.labels.len() as f64; setting.labels.n_classes()];
    match name {
        "complete-case" => Ok(Learnt { phi: constant, ..run(setting, Method::CompleteCase, setting.fold_settings)? }),
        "pl" => Ok(Learnt { phi: constant, ..run(setting, Method::Classical, setting.settings)? }),
        "ours" => {
            let phi = cross_fitted_phi(setting)?;
            run(setting, Method::Given(phi.as_slice().to_vec()), setting.settings)
        }
        // No weights, but the likelihood of a label given that the row is labelled.
        "ours-adjusted" => {
            let phi = cross_fitted_phi(setting)?;
            run(setting, Method::Adjusted(phi.as_slice().to_vec()), setting.settings)
        }
        other => Err(format!("there is no method `{other}`; the methods are {}", ALL.join(", ")).into()),
    }
}

fn run(setting: &Setting<'_>, method: Method, settings: &TrainSettings) -> Result<Learnt, Failure> {
    let device = Device::flex().autodiff();
    let classes = setting.labels.n_classes();
    let network = setting.architecture.build(setting.examples.shape(), classes, settings.seed, &device)?;
    let job = Job {
        examples: setting.examples,
        labels: setting.labels,
        method,
        consistency: setting.consistency,
        settings,
        targets: None,
        validation: None,
        checkpoint: None,
        stop: None,
    };
    let trained = train(network, &job, &mut ())?;
    Ok(Learnt { network: trained.network, temperature: trained.temperature, phi: trained.mechanism.phi().to_vec() })
}

/// phi by label shift from cross-fitted, calibrated posteriors.
fn cross_fitted_phi(setting: &Setting<'_>) -> Result<Phi, Failure> {
    let device = Device::flex().autodiff();
    let plan = FoldPlan::for_labels(setting.labels, 5, setting.settings.seed)?;
    let folds = CrossFit {
        architecture: setting.architecture,
        settings: setting.fold_settings,
        device: &device,
        beyond: None,
        stop: None,
    };
    let fitted = folds.run(setting.examples, setting.labels, &plan, &|_| None, &mut ())?.ok_or("stopped")?;
    Ok(fitted.label_shift(setting.labels)?.estimate.phi)
}

/// Accuracy and log-loss of a network.
#[derive(Clone, Copy, Debug, serde::Serialize)]
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
