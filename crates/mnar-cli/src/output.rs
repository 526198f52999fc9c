//! What a result looks like as JSON, and how results reach stdout.

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mnar::diagnose::{Identifiability, Needed, SensitivityPoint};
use mnar::estimate::Stop;
use mnar::posteriors::Renormalised;
use mnar::test::{InSampleCheck, SelfMaskingCheck, TestResult};
use mnar_report::IntervalKind;
use serde::Serialize;
use std::io::Write;

/// The rows a result rests on.
#[derive(Serialize)]
pub(crate) struct About {
    pub(crate) classes: Vec<String>,
    pub(crate) n: usize,
    pub(crate) n_labelled: usize,
    pub(crate) labelled_per_class: Vec<usize>,
}

impl About {
    pub(crate) fn labels(labels: &mnar::Labels) -> Self {
        Self {
            classes: labels.names().to_vec(),
            n: labels.len(),
            n_labelled: labels.n_labelled(),
            labelled_per_class: labels.counts().to_vec(),
        }
    }
}

/// The result of `mnar estimate`.
#[derive(Serialize)]
pub(crate) struct EstimateOutput {
    pub(crate) version: &'static str,
    #[serde(flatten)]
    pub(crate) about: About,
    pub(crate) phi: Vec<f64>,
    pub(crate) phi_se: Option<Vec<f64>>,
    pub(crate) phi_ci95: Option<Vec<(f64, f64)>>,
    pub(crate) prevalence: Vec<f64>,
    pub(crate) prevalence_se: Option<Vec<f64>>,
    pub(crate) prevalence_ci95: Option<Vec<(f64, f64)>>,
    pub(crate) unlabelled_shares: Vec<f64>,
    pub(crate) method: String,
    pub(crate) posterior: &'static str,
    pub(crate) converged: bool,
    #[serde(flatten)]
    pub(crate) stop: Stop,
    pub(crate) clipped: Vec<String>,
    pub(crate) prior_weight: f64,
    pub(crate) interval: IntervalOutput,
    pub(crate) calibration: Option<mnar::calibrate::Bcts>,
    pub(crate) effective_sample_size: f64,
    pub(crate) identifiability: Option<Identifiability>,
    pub(crate) in_sample: Option<InSampleCheck>,
    pub(crate) self_masking: Option<SelfMaskingCheck>,
    pub(crate) sensitivity: Option<Vec<SensitivityPoint>>,
    pub(crate) labels_for_width: Option<Vec<Option<Needed>>>,
    pub(crate) renormalised: Renormalised,
    pub(crate) features: Option<Vec<String>>,
    pub(crate) seed: u64,
    pub(crate) warnings: Vec<String>,
}

/// How the intervals were made.
#[derive(Serialize)]
pub(crate) struct IntervalOutput {
    pub(crate) kind: &'static str,
    /// The same as the page has it.
    #[serde(skip)]
    pub(crate) made: IntervalKind,
    pub(crate) level: f64,
    pub(crate) replicates: usize,
    pub(crate) failed_replicates: usize,
    /// Does the interval take the classifier as given?
    pub(crate) conditional_on_classifier: bool,
}

/// The result of `mnar test`.
#[derive(Serialize)]
pub(crate) struct TestOutput {
    pub(crate) version: &'static str,
    #[serde(flatten)]
    pub(crate) result: TestResult,
    pub(crate) level: f64,
    pub(crate) reject: bool,
    #[serde(flatten)]
    pub(crate) about: About,
    pub(crate) folds: usize,
    pub(crate) in_sample: Option<InSampleCheck>,
    pub(crate) self_masking: Option<SelfMaskingCheck>,
    pub(crate) labels_for_power: Option<Needed>,
    pub(crate) seed: u64,
    pub(crate) warnings: Vec<String>,
}

/// Writes text to stdout; a closed pipe is an error the caller treats as success.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

pub(crate) fn print_json(value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print(&text)
}

/// Warnings in the text output, after the result.
pub(crate) fn warning_lines(warnings: &[String]) -> String {
    warnings.iter().map(|warning| format!("\nwarning: {warning}\n")).collect()
}

/// A bar of progress on stderr; nothing where `quiet`.
pub(crate) fn progress_bar(template: &str, quiet: bool) -> ProgressBar {
    let bar = ProgressBar::new(0);
    if quiet {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.progress_chars("=> "));
    bar
}
