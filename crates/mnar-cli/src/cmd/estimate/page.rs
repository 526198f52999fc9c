//! The page of `mnar estimate --report`: the estimate, the test that `mnar test` would run, and the checks.

use crate::args::EstimateArgs;
use crate::cmd::fit::origin;
use crate::output::EstimateOutput;
use anyhow::Result;
use mnar::crossfit::FoldPlan;
use mnar::diagnose::{confusion, sensitivity};
use mnar::estimate::LabelShift;
use mnar::test::PermutationTest;
use mnar::{Labels, PosteriorKind, Posteriors, Sample};
use mnar_data::AtomicFile;
use mnar_report::{Calibration, ODDS_FACTORS, Report, SCHEMA, Test, most_uncertain};
use std::path::Path;
use std::time::{Instant, SystemTime};

/// The predictions as they came, and calibrated.
pub(super) struct Scores<'a> {
    pub(super) raw: &'a Posteriors,
    pub(super) calibrated: &'a Posteriors,
    pub(super) plan: &'a FoldPlan,
}

pub(super) fn write_page(
    path: &Path,
    args: &EstimateArgs,
    labels: &Labels,
    scores: &Scores<'_>,
    shown: &EstimateOutput,
    start: Instant,
) -> Result<()> {
    let raw = Sample::new(scores.raw, labels)?;
    let calibrated = Sample::new(scores.calibrated, labels)?;
    let test = PermutationTest { seed: args.table.seed, ..Default::default() }.run(&raw, scores.plan)?;
    let origin = origin(&args.table.table);
    // Reliability speaks of labelled rows, so of a posterior of labelled rows.
    let labelled = scores.raw.kind() == PosteriorKind::Labelled;
    let report = Report {
        schema: SCHEMA,
        version: shown.version.to_owned(),
        title: origin.title,
        created: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        command: origin.command,
        classes: shown.about.classes.clone(),
        n: shown.about.n,
        n_labelled: shown.about.n_labelled,
        labelled_per_class: shown.about.labelled_per_class.clone(),
        phi: shown.phi.clone(),
        phi_se: shown.phi_se.clone(),
        phi_ci95: shown.phi_ci95.clone(),
        prevalence: shown.prevalence.clone(),
        prevalence_ci95: shown.prevalence_ci95.clone(),
        interval: shown.interval.made,
        method: shown.method.clone(),
        converged: shown.converged,
        result: Some(Test::from(&test)),
        self_masking: shown.self_masking.clone(),
        identifiability: shown.identifiability.clone(),
        effective_sample_size: Some(shown.effective_sample_size),
        out_of_fold_accuracy: None,
        calibration: shown
            .calibration
            .as_ref()
            .filter(|_| labelled)
            .map(|bcts| Calibration::of(bcts, &raw, &calibrated)),
        confusion: Some(confusion(&calibrated)),
        sensitivity: if labelled {
            sensitivity(&calibrated, &LabelShift::default(), &ODDS_FACTORS).unwrap_or_default()
        } else {
            Vec::new()
        },
        training_phi: shown.phi.clone(),
        debiased: None,
        baseline: None,
        uncertain: most_uncertain(scores.calibrated, labels, &shown.phi, |_| None, |_| None),
        truth: None,
        settings: serde_json::json!({
            "posterior": shown.posterior,
            "method": shown.method,
            "calibration": shown.calibration,
            "interval": shown.interval,
            "prior_weight": shown.prior_weight,
            "features": shown.features,
            "permutations": test.draws,
        }),
        seed: args.table.seed,
        computed_on: "cpu".to_owned(),
        seconds: start.elapsed().as_secs_f64(),
        warnings: shown.warnings.clone(),
    };
    Ok(AtomicFile::write_text(path, &report.to_html()?)?)
}
