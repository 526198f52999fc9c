//! From a run to its [`Report`].

use super::estimate::Estimation;
use super::{Context, Origin};
use crate::device;
use crate::error::TrainError;
use crate::examples::Examples;
use crate::model::Network;
use crate::predict::logits;
use crate::trainer::{Ended, Trained};
use crate::validation::weighted_scores;
use mnar::diagnose::{Verdict, effective_sample_size};
use mnar::{Labels, Phi, Posteriors};
use mnar_data::RowNames;
use mnar_report::{HeldOut, IntervalKind, Model, Report, SCHEMA, Test, UncertainRow, most_uncertain};
use std::time::SystemTime;

/// Below this many held-out rows, an accuracy of 90% is known to ± 8% at best.
const FEW_HELD_OUT: usize = 50;

/// What was trained, and what it says of every row.
pub(super) struct Models<'a> {
    pub(super) debiased: &'a Trained<Network>,
    pub(super) baseline: Option<&'a Trained<Network>>,
    /// phi that the weights ended with.
    pub(super) training_phi: &'a [f64],
    /// p(y | x) of the debiased model.
    pub(super) population: &'a Posteriors,
    /// The files of the rows.
    pub(super) row_names: Option<&'a RowNames>,
}

pub(super) fn report(
    context: &Context<'_>,
    origin: &Origin,
    estimation: &Estimation,
    models: &Models<'_>,
    seconds: f64,
) -> Result<Report, TrainError> {
    let labels = context.labels;
    let phi = estimation.phi().to_vec();
    let n = labels.len() as f64;
    let shares = labels.counts().iter().map(|&count| count as f64 / n).collect();
    let counts: Vec<f64> = labels.counts().iter().map(|&count| count as f64).collect();
    let settings = serde_json::to_value(context.settings).unwrap_or_default();
    Ok(Report {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        title: origin.title.clone(),
        created: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        command: origin.command.clone(),
        classes: labels.names().to_vec(),
        n: labels.len(),
        n_labelled: labels.n_labelled(),
        labelled_per_class: labels.counts().to_vec(),
        phi_se: estimation.phi_se.clone(),
        phi_ci95: estimation.phi_ci95.clone(),
        prevalence: estimation.estimate.as_ref().map_or(shares, |estimate| estimate.prevalence.clone()),
        prevalence_ci95: estimation.prevalence_ci95.clone(),
        interval: estimation.interval,
        method: estimation.estimate.as_ref().map_or("none", |estimate| estimate.method).to_owned(),
        converged: estimation.estimate.as_ref().is_none_or(|estimate| estimate.stop.converged()),
        result: estimation.test.as_ref().map(Test::from),
        self_masking: estimation.self_masking.clone(),
        identifiability: estimation.identifiability.clone(),
        effective_sample_size: Phi::new(phi.clone()).ok().map(|phi| effective_sample_size(&counts, &phi)),
        out_of_fold_accuracy: estimation.out_of_fold_accuracy,
        calibration: estimation.calibration.clone(),
        confusion: estimation.confusion.clone(),
        sensitivity: estimation.sensitivity.clone(),
        training_phi: models.training_phi.to_vec(),
        debiased: Some(model(context, models.debiased, &phi)),
        baseline: models.baseline.map(|trained| model(context, trained, &phi)),
        uncertain: uncertain(context.examples, labels, models),
        truth: None,
        settings,
        seed: context.settings.train.seed,
        computed_on: device::name(context.device)?,
        seconds,
        warnings: warnings(labels, estimation, models.debiased),
        phi,
    })
}

fn model(context: &Context<'_>, trained: &Trained<Network>, phi: &[f64]) -> Model {
    let (held_out, held_out_accuracy_per_class) = held_out(context, trained, phi);
    Model {
        ended: match trained.ended {
            Ended::Finished => "finished",
            Ended::EarlyStop => "early-stop",
            Ended::Interrupted => "interrupted",
        }
        .to_owned(),
        chosen_epoch: trained.chosen_epoch,
        temperature: trained.temperature,
        clipped_steps: trained.mechanism.clipped(),
        held_out,
        held_out_accuracy_per_class,
        history: trained.history.clone(),
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

fn uncertain(examples: &Examples, labels: &Labels, models: &Models<'_>) -> Vec<UncertainRow> {
    let name = |row: usize| models.row_names.and_then(|names| names.names.get(row)).cloned();
    let png = |row: usize| match examples {
        Examples::Images { images, .. } => images.png(row),
        Examples::Table(_) => None,
    };
    most_uncertain(models.population, labels, models.training_phi, name, png)
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
        let names: Vec<String> =
            estimate.clipped.iter().take(5).map(|class| format!("`{}`", labels.name(*class))).collect();
        warnings.push(format!(
            "phi of {} is at its bound 1: no unlabelled row seems to belong there; with few labels that is often chance",
            names.join(", ")
        ));
    }
    warnings.extend(mnar::diagnose::few_labels(labels.names(), labels.counts()));
    if let Some(verdict) = estimation.identifiability.as_ref().map(|found| found.verdict)
        && verdict != Verdict::Good
    {
        warnings.push(verdict.sentence().to_owned());
    }
    let held_out = debiased.held_out.len();
    if held_out == 0 {
        warnings.push("no labels were held out: the last epoch was taken unchecked".to_owned());
    } else if held_out < FEW_HELD_OUT {
        warnings.push(format!(
            "only {held_out} labelled rows were held out: their accuracy is a rough guess, and the models may well rank the other way round on new rows"
        ));
    }
    warnings
}
