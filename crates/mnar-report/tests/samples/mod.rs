//! Reports made up to try what users' data can hold.

use mnar::diagnose::{Identifiability, ReliabilityBin, SensitivityPoint, Verdict};
use mnar::test::SelfMaskingCheck;
use mnar_report::{
    Calibration, EpochRecord, Guess, HeldOut, IntervalKind, Model, Report, SCHEMA, Test, Truth, UncertainRow,
};

/// Names that end elements, attributes and strings, or run a script where they are not escaped.
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
    let value = |i: usize| 0.9 / (1.0 + i as f64);
    let phi: Vec<f64> = (0..k).map(value).collect();
    let around = |values: &[f64]| values.iter().map(|v| (v * 0.8, (v * 1.2).min(1.0))).collect::<Vec<_>>();
    let total: f64 = (1..=k).map(|i| i as f64).sum();
    let prevalence: Vec<f64> = (1..=k).map(|i| i as f64 / total).collect();
    let bin = |confidence: f64, accuracy: f64| ReliabilityBin { rows: 40, confidence, accuracy };
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
    let model = |accuracy: f64| Model {
        ended: "finished".into(),
        chosen_epoch: 40,
        temperature: 1.2,
        clipped_steps: 0,
        held_out: Some(HeldOut { rows: 321, accuracy, log_loss: 0.41 }),
        // One class had too few labels to hold any out.
        held_out_accuracy_per_class: (0..k)
            .map(|i| (i != 1).then_some(accuracy * (1.0 - 0.3 * i as f64 / k as f64)))
            .collect(),
        history: (1..=300).map(epoch).collect(),
    };
    let point = |odds_factor: f64| SensitivityPoint {
        odds_factor,
        phi: phi.clone(),
        prevalence: prevalence.iter().map(|p| p * (1.0 + 0.02 * odds_factor)).collect(),
    };
    let uncertain = |row: usize| UncertainRow {
        row,
        name: Some(classes[row % k].clone()),
        classes: classes.iter().take(3).map(|class| Guess { class: class.clone(), probability: 0.3 }).collect(),
        thumbnail: None,
    };
    Report {
        schema: SCHEMA,
        version: "0.0.0".into(),
        title: classes[0].clone(),
        created: "2026-01-01T00:00:00Z".into(),
        command: Some(format!("mnar fit '{}'", classes[0])),
        n: 5000,
        n_labelled: 10 * k,
        labelled_per_class: vec![10; k],
        phi_se: None,
        phi_ci95: Some(around(&phi)),
        prevalence_ci95: Some(around(&prevalence)),
        interval: IntervalKind::BootstrapWithRefit,
        method: "label-shift".into(),
        converged: true,
        result: Some(Test {
            test: "permutation".into(),
            statistic: 123.456,
            df: Some(k - 1),
            p_value: 0.0123,
            p_value_chi_square: Some(0.0125),
            draws: 9999,
            condition: "exact within each fold".into(),
        }),
        self_masking: Some(SelfMaskingCheck { statistic: 3.0, df: 2, p_value: 0.002, excess_uncertainty: 0.1 }),
        identifiability: Some(Identifiability {
            condition: 30.0,
            smallest_singular_value: 0.2,
            largest_logit_se: f64::NAN,
            verdict: Verdict::Poor,
        }),
        effective_sample_size: Some(33.3),
        out_of_fold_accuracy: Some(0.77),
        calibration: Some(Calibration {
            error_before: 0.12,
            error_after: 0.04,
            before: vec![bin(0.35, 0.2), bin(0.75, 0.5), bin(0.95, 0.8)],
            after: vec![bin(0.3, 0.28), bin(0.6, 0.61), bin(0.9, 0.88)],
        }),
        confusion: Some(
            (0..k).map(|i| (0..k).map(|j| if i == j { 7 } else { usize::from(j == (i + 1) % k) }).collect()).collect(),
        ),
        sensitivity: [0.1, 0.5, 1.0, 2.0, 10.0].map(point).to_vec(),
        training_phi: phi.clone(),
        debiased: Some(model(0.91)),
        baseline: Some(model(0.83)),
        uncertain: (1..=12).map(uncertain).collect(),
        truth: Some(Truth {
            phi: phi.iter().map(|phi| phi * 0.95).collect(),
            prevalence: prevalence.clone(),
            phi_normalised_mse: 0.0025,
            constant_normalised_mse: 0.4,
        }),
        settings: serde_json::json!({ "note": classes[0] }),
        seed: 7,
        computed_on: "cpu".into(),
        seconds: 12.3,
        warnings: vec![format!("phi of {} is at its bound 1", classes[0])],
        phi,
        prevalence,
        classes,
    }
}

/// The least a report can hold: all labels are there.
pub(crate) fn bare() -> Report {
    Report {
        result: None,
        phi_ci95: None,
        prevalence_ci95: None,
        interval: IntervalKind::None,
        self_masking: None,
        identifiability: None,
        effective_sample_size: None,
        calibration: None,
        confusion: None,
        sensitivity: Vec::new(),
        debiased: None,
        baseline: None,
        uncertain: Vec::new(),
        truth: None,
        command: None,
        created: String::new(),
        warnings: Vec::new(),
        ..full(plain(2))
    }
}
