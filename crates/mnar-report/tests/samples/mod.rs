//! Reports made up to try what users' data can hold.

use mnar::analysis::Findings;
use mnar::progress::EpochRecord;
use mnar::{Class, ClassShares, Labels, Phi};
use mnar_report::{Ended, Guess, HeldOut, Model, Provenance, Report, Training, Truth, UncertainRow};
use serde_json::{Map, json};

/// Names that end elements, attributes and strings, or run a script if they are not escaped.
pub(crate) fn hostile() -> Vec<String> {
    [
        "<script>window.__injected=1</script>",
        "</script><img src=x onerror=\"window.__injected=1\">",
        "\"quoted\" & 'quoted' <b>bold</b>",
        "two  spaces and\ta tab",
        "😀 emoji 🇫🇷 مرحبا",
        "sixty-characters-without-a-single-place-to-break-the-line-xx",
        "`ticks` and ${code}",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// As many plain names.
pub(crate) fn plain(classes: usize) -> Vec<String> {
    (0..classes).map(|k| format!("class {k}")).collect()
}

/// A report of these classes with every part filled.
pub(crate) fn full(classes: Vec<String>) -> Report {
    let k = classes.len();
    let phi: Vec<f64> = (0..k).map(|i| 0.9 / (1.0 + i as f64)).collect();
    let prevalence = shares(k);
    let provenance = Provenance::new(&classes[0])
        .with_created("2026-01-01T00:00:00Z")
        .with_command(format!("mnar fit '{}'", classes[0]))
        .with_settings(Map::from_iter([("note".to_owned(), json!(classes[0]))]))
        .with_seconds(12.3);
    let test = json!({
        "test": "permutation",
        "statistic": 123.456,
        "df": k - 1,
        "p_value": 0.0123,
        "p_value_chi_square": 0.0125,
        "draws": 9999,
        "condition": "exact within each fold",
        "level": 0.05,
        "reject": true,
    });
    let training =
        Training::new(Phi::new(phi.clone()).expect("in (0, 1]"), model(&phi, 0.91)).with_baseline(model(&phi, 0.83));
    let truth = Truth::new(
        Phi::new(phi.iter().map(|phi| phi * 0.95).collect()).expect("in (0, 1]"),
        ClassShares::new(prevalence).expect("shares that sum to one"),
        0.0025,
        0.4,
    );
    let guesses = || classes.iter().take(3).map(|class| Guess::new(class, 0.3)).collect();
    let uncertain =
        (1..=12).map(|row| UncertainRow::new(row, Some(classes[row % k].clone()), guesses(), None)).collect();
    Report::new(provenance, findings(&classes, &phi))
        .with_test(serde_json::from_value::<mnar::analysis::TestDecision>(test).expect("a test"))
        .with_training(training)
        .with_uncertain(uncertain)
        .with_truth(truth)
}

/// The least that a report can hold: no label is missing.
pub(crate) fn bare() -> Report {
    let labels = (0..40).map(|row| Some(Class::from(row % 2))).collect();
    let labels = Labels::allow_degenerate(labels, plain(2)).expect("two classes");
    let mut findings = Findings::nothing_missing(&labels, 7);
    findings.warnings.clear();
    Report::new(Provenance::new("complete.csv"), findings)
}

fn shares(classes: usize) -> Vec<f64> {
    let total: f64 = (1..=classes).map(|i| i as f64).sum();
    (1..=classes).map(|i| i as f64 / total).collect()
}

fn findings(classes: &[String], phi: &[f64]) -> Findings {
    let k = classes.len();
    let prevalence = shares(k);
    let around = |values: &[f64]| values.iter().map(|v| (v * 0.8, (v * 1.2).min(1.0))).collect::<Vec<_>>();
    let bin = |confidence: f64, accuracy: f64| json!({ "rows": 40, "confidence": confidence, "accuracy": accuracy });
    let count = |i: usize, j: usize| if i == j { 7 } else { usize::from(j == (i + 1) % k) };
    let confusion: Vec<Vec<usize>> = (0..k).map(|i| (0..k).map(|j| count(i, j)).collect()).collect();
    let sensitivity = [0.1, 0.5, 1.0, 2.0, 10.0].map(|odds_factor| {
        let moved: Vec<f64> = prevalence.iter().map(|p| p * (1.0 + 0.02 * odds_factor)).collect();
        json!({ "odds_factor": odds_factor, "phi": phi, "prevalence": moved })
    });
    let findings = json!({
        "classes": classes,
        "n": 5000,
        "n_labelled": 10 * k,
        "labelled_per_class": vec![10; k],
        "phi": phi,
        "phi_se": null,
        "phi_ci95": around(phi),
        "prevalence": prevalence,
        "prevalence_se": null,
        "prevalence_ci95": around(&prevalence),
        "unlabelled_shares": prevalence,
        "method": "label-shift",
        "posterior": "labelled",
        "converged": true,
        "stop": "converged",
        "iterations": 12,
        "passes": 13,
        "clipped": [],
        "prior_weight": 0.0,
        "interval": {
            "kind": "bootstrap-with-refit",
            "level": 0.95,
            "replicates": 200,
            "failed_replicates": 0,
            "conditional_on_classifier": false,
        },
        "calibration": {
            "inverse_temperature": 0.8,
            "biases": vec![0.1; k],
            "bias_precision": null,
            "ece_before": 0.12,
            "ece_after": 0.04,
            "log_loss_before": 0.6,
            "log_loss_after": 0.5,
            "converged": true,
        },
        "effective_sample_size": 33.3,
        "identifiability": {
            "condition": 30.0,
            "smallest_singular_value": 0.2,
            "largest_logit_se": null,
            "verdict": "poor",
        },
        "in_sample": { "z": 0.5, "p_value": 0.3, "suspicious": false },
        "self_masking": { "statistic": 3.0, "df": 2, "p_value": 0.002, "excess_uncertainty": 0.1 },
        "sensitivity": sensitivity,
        "labels_for_width": null,
        "classifier": {
            "out_of_fold_accuracy": 0.77,
            "reliability_before": [bin(0.35, 0.2), bin(0.75, 0.5), bin(0.95, 0.8)],
            "reliability_after": [bin(0.3, 0.28), bin(0.6, 0.61), bin(0.9, 0.88)],
            "confusion": confusion,
        },
        "renormalised": { "rows": 0, "largest_drift": 0.0 },
        "features": null,
        "seed": 7,
        "warnings": [format!("phi of {} is at its bound 1", classes[0])],
    });
    serde_json::from_value(findings).expect("findings")
}

fn model(phi: &[f64], accuracy: f64) -> Model {
    let k = phi.len();
    let epoch = |epoch: usize| EpochRecord {
        step: 10 * epoch as u64,
        epoch,
        loss: 1.0 / epoch as f64,
        validation_risk: Some(0.5 + 1.0 / epoch as f64),
        validation_accuracy: Some(0.8),
        learning_rate: 1e-3,
        phi: phi.iter().map(|phi| phi * (1.0 - 0.5 / epoch as f64)).collect(),
        seconds: epoch as f64,
    };
    // One class had too few labels to hold any out.
    let by_class = (0..k).map(|i| (i != 1).then_some(accuracy * (1.0 - 0.3 * i as f64 / k as f64))).collect();
    Model::new(Ended::Finished, k)
        .with_history((1..=300).map(epoch).collect(), 40)
        .with_temperature(1.2)
        .with_held_out(HeldOut::new(321, accuracy, 0.41), by_class)
}
