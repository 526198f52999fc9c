//! The page of an estimate: what was found, the test that goes with it, and the checks.

use crate::report::{Calibration, IntervalKind, ODDS_FACTORS, Report, SCHEMA, Test};
use crate::uncertain::most_uncertain;
use mnar::analysis::{Findings, Given};
use mnar::diagnose::{confusion, sensitivity};
use mnar::estimate::LabelShift;
use mnar::test::PermutationTest;
use mnar::{Error, PosteriorKind, Sample};

/// Where and when a page was made.
#[derive(Clone, Debug)]
pub struct Occasion {
    /// What the data are called.
    pub title: String,
    /// The command that made it, if it was one.
    pub command: Option<String>,
    /// The time of day, RFC 3339.
    pub created: String,
    /// How long it took until now.
    pub seconds: f64,
}

impl Report {
    /// The report of an estimate; runs the test of informative labels with the estimate's seed.
    pub fn of_estimate(found: &Findings, given: &Given<'_>, occasion: Occasion) -> Result<Self, Error> {
        let raw = Sample::new(given.posteriors, given.labels)?;
        let posteriors = found.calibrated.as_ref().unwrap_or(given.posteriors);
        let calibrated = Sample::new(posteriors, given.labels)?;
        let test = PermutationTest { seed: found.seed, ..Default::default() }.run(&raw, &given.plan)?;
        // Reliability speaks of labelled rows, so of a posterior of labelled rows.
        let labelled = given.posteriors.kind() == PosteriorKind::Labelled;
        Ok(Report {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            title: occasion.title,
            created: occasion.created,
            command: occasion.command,
            classes: found.about.classes.clone(),
            n: found.about.n,
            n_labelled: found.about.n_labelled,
            labelled_per_class: found.about.labelled_per_class.clone(),
            phi: found.phi.clone(),
            phi_se: found.phi_se.clone(),
            phi_ci95: found.phi_ci95.clone(),
            prevalence: found.prevalence.clone(),
            prevalence_ci95: found.prevalence_ci95.clone(),
            interval: IntervalKind::from(found.interval.made),
            method: found.method.clone(),
            converged: found.converged,
            result: Some(Test::from(&test)),
            self_masking: found.self_masking.clone(),
            identifiability: found.identifiability.clone(),
            effective_sample_size: Some(found.effective_sample_size),
            out_of_fold_accuracy: None,
            calibration: found
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
            training_phi: found.phi.clone(),
            debiased: None,
            baseline: None,
            uncertain: most_uncertain(posteriors, given.labels, &found.phi, |_| None, |_| None),
            truth: None,
            settings: serde_json::json!({
                "posterior": found.posterior,
                "method": found.method,
                "calibration": found.calibration,
                "interval": found.interval,
                "prior_weight": found.prior_weight,
                "features": found.features,
                "permutations": test.draws,
            }),
            seed: found.seed,
            computed_on: "cpu".to_owned(),
            seconds: occasion.seconds,
            warnings: found.warnings.clone(),
        })
    }
}
