//! `report.json`: all that a run found.

use super::Context;
use super::estimate::{Estimation, IntervalKind};
use super::settings::FitSettings;
use crate::device;
use crate::error::TrainError;
use crate::model::Network;
use crate::predict::logits;
use crate::trainer::{Ended, EpochRecord, Trained};
use crate::validation::weighted_scores;
use mnar::diagnose::{Identifiability, effective_sample_size};
use mnar::test::{SelfMaskingCheck, TestResult};
use mnar::{Labels, Phi};
use serde::Serialize;

/// All that a run found.
#[derive(Clone, Debug, Serialize)]
pub struct FitReport {
    /// Of mnar.
    pub version: &'static str,
    /// The classes.
    pub classes: Vec<String>,
    /// Rows.
    pub n: usize,
    /// Labelled rows.
    pub n_labelled: usize,
    /// By class.
    pub labelled_per_class: Vec<usize>,
    /// P(labelled | class), by cross-fitting.
    pub phi: Vec<f64>,
    /// Its standard errors.
    pub phi_se: Option<Vec<f64>>,
    /// Its intervals.
    pub phi_ci95: Option<Vec<(f64, f64)>>,
    /// P(class).
    pub prevalence: Vec<f64>,
    /// Its intervals.
    pub prevalence_ci95: Option<Vec<(f64, f64)>>,
    /// How intervals were made.
    pub interval: IntervalKind,
    /// The estimator of phi.
    pub method: &'static str,
    /// Did it converge?
    pub converged: bool,
    /// MCAR against MNAR; nothing where all labels are there.
    #[serde(flatten)]
    pub result: Option<TestResult>,
    /// Is self-masking believable?
    pub self_masking: Option<SelfMaskingCheck>,
    /// Are the classes told apart?
    pub identifiability: Option<Identifiability>,
    /// Labelled rows are worth so many unweighted ones.
    pub effective_sample_size: Option<f64>,
    /// Of the cross-fitted classifier, on labelled rows.
    pub out_of_fold_accuracy: Option<f64>,
    /// phi that the debiased model's weights ended with.
    pub training_phi: Vec<f64>,
    /// The debiased model.
    pub debiased: ModelReport,
    /// The biased one.
    pub baseline: Option<ModelReport>,
    /// The effective settings.
    pub settings: FitSettings,
    /// Of every draw.
    pub seed: u64,
    /// What computed: the device, and on the CPU the instruction set of the kernels.
    pub computed_on: String,
    /// Wall time of this call.
    pub seconds: f64,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

/// How a model was trained, and how it does.
#[derive(Clone, Debug, Serialize)]
pub struct ModelReport {
    /// Why training ended.
    pub ended: Ended,
    /// The epoch whose weights were chosen.
    pub chosen_epoch: usize,
    /// Logits are divided by this.
    pub temperature: f64,
    /// Steps at which a phi above 1 was set to 1.
    pub clipped_steps: u64,
    /// On held-out labelled rows, weighted by 1/phi to stand for the population.
    pub held_out: Option<HeldOut>,
    /// The same, class by class (unweighted within a class); nothing for a class without held-out rows.
    pub held_out_accuracy_per_class: Vec<Option<f64>>,
    /// Every epoch.
    pub history: Vec<EpochRecord>,
}

/// Weighted scores of held-out rows.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HeldOut {
    /// Rows.
    pub rows: usize,
    /// Estimated accuracy in the population.
    pub accuracy: f64,
    /// Estimated log-loss in the population.
    pub log_loss: f64,
}

impl FitReport {
    pub(super) fn new(
        context: &Context<'_>,
        estimation: &Estimation,
        debiased: &Trained<Network>,
        baseline: Option<&Trained<Network>>,
        training_phi: &[f64],
        seconds: f64,
    ) -> Result<Self, TrainError> {
        let labels = context.labels;
        let phi = estimation.phi().to_vec();
        let n = labels.len() as f64;
        let model = |trained: &Trained<Network>| ModelReport::new(context, trained, &phi);
        let shares = labels.counts().iter().map(|&count| count as f64 / n).collect();
        let counts: Vec<f64> = labels.counts().iter().map(|&count| count as f64).collect();
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            classes: labels.names().to_vec(),
            n: labels.len(),
            n_labelled: labels.n_labelled(),
            labelled_per_class: labels.counts().to_vec(),
            phi_se: estimation.phi_se.clone(),
            phi_ci95: estimation.phi_ci95.clone(),
            prevalence: estimation.estimate.as_ref().map_or(shares, |estimate| estimate.prevalence.clone()),
            prevalence_ci95: estimation.prevalence_ci95.clone(),
            interval: estimation.interval,
            method: estimation.estimate.as_ref().map_or("none", |estimate| estimate.method),
            converged: estimation.estimate.as_ref().is_none_or(|estimate| estimate.stop.converged()),
            result: estimation.test.clone(),
            self_masking: estimation.self_masking.clone(),
            identifiability: estimation.identifiability.clone(),
            effective_sample_size: Phi::new(phi.clone()).ok().map(|phi| effective_sample_size(&counts, &phi)),
            out_of_fold_accuracy: estimation.out_of_fold_accuracy,
            training_phi: training_phi.to_vec(),
            debiased: model(debiased),
            baseline: baseline.map(model),
            settings: context.settings.clone(),
            seed: context.settings.train.seed,
            computed_on: device::name(context.device)?,
            seconds,
            warnings: warnings(labels, estimation, debiased),
            phi,
        })
    }
}

impl ModelReport {
    fn new(context: &Context<'_>, trained: &Trained<Network>, phi: &[f64]) -> Self {
        let (held_out, held_out_accuracy_per_class) = held_out(context, trained, phi);
        Self {
            ended: trained.ended,
            chosen_epoch: trained.chosen_epoch,
            temperature: trained.temperature,
            clipped_steps: trained.mechanism.clipped(),
            held_out,
            held_out_accuracy_per_class,
            history: trained.history.clone(),
        }
    }
}

fn held_out(context: &Context<'_>, trained: &Trained<Network>, phi: &[f64]) -> (Option<HeldOut>, Vec<Option<f64>>) {
    let classes = context.labels.n_classes();
    let rows = &trained.held_out;
    if rows.is_empty() {
        return (None, vec![None; classes]);
    }
    let scores = logits(&trained.network, context.examples, rows);
    let class = |row: usize| context.labels.get(row).map_or(0, |class| class.index());
    let weights: Vec<(usize, f64)> = rows.iter().map(|&row| (class(row), 1.0 / phi[class(row)])).collect();
    let (log_loss, accuracy) = weighted_scores(&scores, &weights, trained.temperature);
    let accuracy_of = |k: usize| {
        let alone: Vec<(usize, f64)> = weights.iter().map(|&(y, _)| (y, f64::from(u8::from(y == k)))).collect();
        alone.iter().any(|(_, weight)| *weight > 0.0).then(|| weighted_scores(&scores, &alone, 1.0).1)
    };
    (Some(HeldOut { rows: rows.len(), accuracy, log_loss }), (0..classes).map(accuracy_of).collect())
}

fn warnings(labels: &Labels, estimation: &Estimation, debiased: &Trained<Network>) -> Vec<String> {
    let mut warnings = Vec::new();
    if labels.n_unlabelled() == 0 {
        warnings.push("all labels are there: nothing is missing, so no mechanism was estimated or tested".to_owned());
    }
    if estimation.interval == IntervalKind::Information {
        warnings.push(
            "the intervals take the classifier as given and are too short where it was learnt from few labels"
                .to_owned(),
        );
    }
    if let Some(estimate) = &estimation.estimate
        && !estimate.clipped.is_empty()
    {
        let names: Vec<&str> = estimate.clipped.iter().take(5).map(|class| labels.name(*class)).collect();
        warnings.push(format!("phi of {} is at its bound 1: more rows look labelled than there are", names.join(", ")));
    }
    if debiased.held_out.is_empty() {
        warnings.push("too few labels to hold any out: the last epoch was taken unchecked".to_owned());
    }
    warnings
}
