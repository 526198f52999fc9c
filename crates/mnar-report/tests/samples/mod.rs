//! Reports made up to try what users' data can hold.

use mnar::analysis::{Findings, Labelling, Verdict, VerdictKind};
use mnar::progress::EpochRecord;
use mnar::{Class, ClassShares, Labels, Phi};
use mnar_report::{
    Ended, Guess, HeldOut, Model, MoreLabels, OutOfFold, Provenance, Report, Task, Training, Truth, UncertainRow,
};
use serde_json::{Map, Value, json};

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
        .with_evaluation(evaluation())
        .with_training(training)
        .with_uncertain(uncertain)
        .with_more_labels(more_labels(k))
        .with_truth(truth)
}

/// What more labels would tell, of predictions that leave half of the variance open.
pub(crate) fn more_labels(classes: usize) -> MoreLabels {
    let shares = shares(classes);
    let open: Vec<f64> = shares.iter().map(|share| share * (1.0 - share) / 2.0).collect();
    let around: Vec<(f64, f64)> = shares.iter().map(|share| (share * 0.8, (share * 1.2).min(1.0))).collect();
    MoreLabels::new(&shares, &open, 5000, Some(&around))
}

/// An evaluation with every part filled.
pub(crate) fn evaluation() -> OutOfFold {
    let metric = |name: &str, model: &str, value: f64| {
        json!({
            "name": name, "class": null, "group": null, "model": model, "population": "all",
            "naive": value + 0.04, "corrected": value, "ci95": [value - 0.03, value + 0.03],
        })
    };
    let metrics: Vec<Value> = ["biased", "debiased"]
        .into_iter()
        .flat_map(|model| {
            [("accuracy", 0.81), ("balanced_accuracy", 0.76), ("auc", 0.88), ("log_loss", 0.44)]
                .map(|(name, value)| metric(name, model, value))
        })
        .collect();
    serde_json::from_value(json!({
        "classifier": "softmax regression", "is_final_model": false, "rows": 321, "method": "label-shift",
        "metrics": metrics,
        "differences": [{
            "name": "accuracy", "class": null, "group": null, "population": "all", "model": "debiased", "than": "biased",
            "naive": -0.01, "corrected": 0.0312, "ci95": [0.011, 0.052],
        }],
        "interval": {
            "kind": "bootstrap", "level": 0.95, "replicates": 100, "failed_replicates": 0, "conditional_on_classifier": true,
        },
    }))
    .expect("an evaluation")
}

/// The least that a report can hold: no label is missing.
pub(crate) fn bare() -> Report {
    let labels = (0..40).map(|row| Some(Class::from(row % 2))).collect();
    let labels = Labels::allow_degenerate(labels, plain(2)).expect("two classes");
    let mut findings = Findings::nothing_missing(&labels, 7);
    findings.warnings.clear();
    Report::new(Provenance::new("complete.csv"), findings)
}

/// All kinds of verdicts.
pub(crate) const KINDS: [VerdictKind; 5] = [
    VerdictKind::AtRandom,
    VerdictKind::ByClass,
    VerdictKind::ByColumns,
    VerdictKind::ByClassAndColumns,
    VerdictKind::Unclear,
];

/// The name of a kind in the JSON.
pub(crate) fn kind_name(kind: VerdictKind) -> String {
    serde_json::to_value(kind).expect("JSON").as_str().expect("a name").to_owned()
}

/// Names of columns and groups that reorder text, colour a terminal, never end, or become HTML.
pub(crate) fn hostile_columns() -> [String; 5] {
    [
        "<img src=x onerror=\"window.__injected=1\">".to_owned(),
        "red \u{1b}[31m bell \u{7} line\nbreak".to_owned(),
        "long-".repeat(200),
        "\u{202e}gnp.exe עברית العربية".to_owned(),
        "`tick".to_owned(),
    ]
}

/// A report with a verdict of this kind about two classes. Columns are named `site`, `age`, `year`, `nurse` and `ward`
/// unless other names are given.
pub(crate) fn judged(kind: VerdictKind, columns: Option<[String; 5]>) -> Report {
    let columns = columns.unwrap_or_else(|| ["site", "age", "year", "nurse", "ward"].map(str::to_owned));
    let [site, age, ..] = &columns;
    let takes_columns = matches!(kind, VerdictKind::ByColumns | VerdictKind::ByClassAndColumns);
    let doubtful = kind == VerdictKind::Unclear;
    let class_matters = matches!(kind, VerdictKind::ByClass | VerdictKind::ByClassAndColumns);
    let columns_matter = takes_columns || doubtful;
    let test = |p_value: f64| {
        json!({
            "test": "permutation", "statistic": 25.5, "df": 1, "p_value": p_value, "p_value_chi_square": null,
            "draws": 9999, "condition": "exact within each fold",
        })
    };
    let rates = |groups: usize, name: &str| -> Vec<Value> {
        let of =
            |i: usize| json!({ "group": format!("{name} {i}"), "rows": 900 - 60 * i, "rate": 0.85 / (1.0 + i as f64) });
        (0..groups).map(of).collect()
    };
    let column = |name: &str, p_holm: f64, groups: usize| {
        json!({
            "column": name, "statistic": 31.0, "df": groups.max(2) - 1, "p_value": p_holm / 6.0, "p_holm": p_holm,
            "rates": rates(groups, name),
        })
    };
    let check = |given: &[&String], strongest: f64| {
        let others: Vec<Value> = columns
            .iter()
            .filter(|name| !given.contains(name))
            .enumerate()
            .map(|(i, name)| column(name, if i < 2 { strongest } else { 0.8 }, if i == 0 { 12 } else { 5 }))
            .collect();
        let easy = column("how sure the classifier is", 0.8, 0);
        json!({ "given": given, "reference": "refit", "p_value": strongest, "columns": others, "easy_rows": easy })
    };
    let effect = |name: &str, compared_with: &str, terms: Vec<Value>, groups: usize| json!({ "column": name, "compared_with": compared_with, "terms": terms, "rates": rates(groups, name) });
    let ratio = |term: String, odds: f64| json!({ "term": term, "odds_ratio": odds, "ci95": [odds * 0.7, odds * 1.4] });
    let effects = vec![
        effect(
            site,
            &format!("{site} 0"),
            (1..12).map(|i| ratio(format!("{site} {i}"), 0.9 / f64::from(i))).collect(),
            12,
        ),
        effect(age, "one standard deviation less", vec![ratio("per 12.3 (one standard deviation)".into(), 1.31)], 5),
    ];
    let alone =
        json!({ "phi": [0.5, 0.25], "prevalence": [0.42, 0.58], "prevalence_ci95": [[0.36, 0.48], [0.52, 0.64]] });
    let labelling = json!({
        "level": 0.05,
        "chance": test(if kind == VerdictKind::AtRandom { 0.41 } else { 0.0001 }),
        "class_enough": check(&[], if columns_matter { 0.00004 } else { 0.62 }),
        "class_and_columns_enough": takes_columns.then(|| check(&[site, age], 0.44)),
        "class_beyond_columns": takes_columns.then(|| test(if class_matters { 0.0002 } else { 0.35 })),
        "given": if takes_columns { vec![site, age] } else { vec![] },
        "found_here": takes_columns,
        "effects": if takes_columns { effects } else { vec![] },
        "class_only": takes_columns.then_some(alone),
    });
    let headline = match kind {
        VerdictKind::AtRandom => "No sign that anything decides who gets labelled but chance (p = 0.410).".to_owned(),
        VerdictKind::ByClass => {
            "The class decides who gets labelled: `sick` is about 2.0 times as likely to be labelled as `well` (p < 0.001)."
                .to_owned()
        }
        VerdictKind::ByColumns => format!(
            "Columns decide who gets labelled: `{site}` (85% labelled where it is {site} 0, 7% where it is {site} 11). Beyond them the class shows no effect (p = 0.350)."
        ),
        VerdictKind::ByClassAndColumns => format!(
            "Both the class and columns decide who gets labelled: `sick` is about 2.0 times as likely to be labelled as `well` (p < 0.001 beyond the columns); `{site}` (85% labelled where it is {site} 0, 7% where it is {site} 11)."
        ),
        VerdictKind::Unclear => format!(
            "It is unclear what decides who gets labelled: labels also depend on `{site}` (p < 0.001). The estimate below rests on a mechanism that the data contradict or cannot identify; do not rely on it."
        ),
    };
    let verdict = json!({
        "kind": kind,
        "headline": headline,
        "checked": [
            format!("Is it chance? {}", if kind == VerdictKind::AtRandom { "Not rejected at the 5% level (p = 0.410)." } else { "Rejected at the 5% level (p < 0.001)." }),
            format!("Is the class enough? {}", if columns_matter { format!("No: labels also depend on {site} (p < 0.001).") } else { "Nothing else was found, in 5 columns or in how sure the classifier is (smallest corrected p = 0.620).".to_owned() }),
        ],
        "cannot_know": "Columns that are not in the data may decide as well; nothing here can show that.",
    });
    let classes = ["sick", "well"].map(str::to_owned);
    let mut found = findings(&classes, &[0.5, 0.25]);
    found.about.n_labelled = 1500;
    found.about.labelled_per_class = vec![850, 650];
    found.warnings.clear();
    found.effective_sample_size = 1310.0;
    found.self_masking.as_mut().expect("a check").p_value = 0.3;
    found.identifiability = serde_json::from_value(json!({
        "condition": 2.0, "smallest_singular_value": 0.6, "largest_logit_se": 0.1, "verdict": "good",
    }))
    .expect("identifiability");
    found.verdict = Some(serde_json::from_value::<Verdict>(verdict).expect("a verdict"));
    found.labelling = Some(serde_json::from_value::<Labelling>(labelling).expect("a labelling"));
    Report::new(Provenance::new("patients.csv").with_created("2026-01-01T00:00:00Z").with_seconds(3.2), found)
        .with_more_labels(more_labels(2))
        .with_commands(|task| match task {
            Task::Give(columns) => Some(format!("mnar fit patients.csv --label y --given '{}'", columns.join(","))),
            Task::Audit => Some("mnar fit patients.csv --label y --audit COLUMN".to_owned()),
            _ => None,
        })
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
        .with_held_out(HeldOut::new(321, accuracy, (accuracy - 0.04, accuracy + 0.03), 0.41), by_class)
}
