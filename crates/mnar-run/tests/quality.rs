//! A run says how good its classifier is in all rows, and other rows can be evaluated with its mechanism by columns.
#![allow(clippy::unwrap_used)] // helpers of tests are not seen as tests

use mnar::analysis::{EstimateSettings, Evidence, Given, Method};
use mnar::covariates::Covariate;
use mnar::evaluate::{EvaluateSettings, Metric, MetricName, Model, Population, Scores};
use mnar::{Class, Covariates, Labels};
use mnar_run::{FitOptions, FitRequest, NetworkName, PredictOptions, fit, mechanism_by_columns, predict};
use std::path::{Path, PathBuf};

const ROWS: usize = 4000;
/// Of the best classifier there can be: the measurement of the ill is two standard deviations higher, and half of the rows are
/// ill.
const BEST: f64 = 0.8413;

/// A measurement, the site and the state: the ill and the patients of the second site are labelled more often.
fn patients(folder: &Path) -> (PathBuf, Labels, Covariates) {
    let mut state = 3u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let (mut text, mut labels, mut sites) = ("measured,site,state\n".to_owned(), Vec::new(), Vec::new());
    for row in 0..ROWS {
        let (site, ill) = (row % 2, row / 2 % 2);
        let noise: f64 = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let logit = [-2.9, -0.8][ill] + [0.0, 2.9][site];
        let labelled = uniform() < 1.0 / (1.0 + f64::exp(-logit));
        let (state, site) = (["well", "ill"][ill], ["north", "south"][site]);
        text += &format!("{:.4},{site},{}\n", noise + 2.0 * ill as f64, if labelled { state } else { "" });
        labels.push(labelled.then_some(Class::from(1 - ill)));
        sites.push(Some(site));
    }
    let path = folder.join("patients.csv");
    std::fs::write(&path, text).unwrap();
    let labels = Labels::new(labels, vec!["ill".into(), "well".into()]).unwrap();
    (path, labels, Covariates::new(vec![Covariate::categorical("site", sites)]).unwrap())
}

#[test]
fn a_run_evaluates_itself_and_lends_its_mechanism() {
    let folder = tempfile::tempdir().unwrap();
    let (data, labels, covariates) = patients(folder.path());
    let mut request = FitRequest::new(data.as_path(), folder.path().join("run"));
    request.options = FitOptions {
        label: Some("state".into()),
        given: Some(Given::Columns(vec!["site".into()])),
        network: Some(NetworkName::Linear),
        epochs: Some(2),
        replicates: Some(40),
        permutations: Some(99),
        no_baseline: Some(true),
        ..Default::default()
    };
    let report = fit(&request, &()).unwrap();
    let found = report.evaluation.as_ref().expect("an evaluation");
    assert_eq!((found.rows, found.interval.replicates), (labels.n_labelled(), 40));
    assert_eq!(found.is_final_model, report.training.as_ref().unwrap().is_alone(&found.classifier));
    let get = |name: MetricName, model: &str| -> &Metric {
        let is = |m: &&Metric| m.name == name && m.model == model && m.population == Population::All;
        found.metrics.iter().find(is).unwrap()
    };
    let accuracy = get(MetricName::Accuracy, "debiased");
    let (low, high) = accuracy.ci95.unwrap();
    assert!(low < BEST && BEST < high && high - low < 0.12, "{accuracy:?}");
    for name in [MetricName::BalancedAccuracy, MetricName::Auc, MetricName::LogLoss] {
        assert!(get(name, "debiased").ci95.is_some() && get(name, "biased").naive.is_some(), "{name:?}");
    }
    // Half of the rows are ill, and four in five labels.
    let gain =
        found.differences.iter().find(|d| d.name == MetricName::LogLoss && d.population == Population::All).unwrap();
    assert!(gain.ci95.unwrap().1 < 0.0, "debiasing lowers the log-loss: {gain:?}");
    // Every number has an owner.
    let text = report.to_text();
    assert!(text.contains("How good?  ") && text.contains("accuracy 8"), "{text}");

    let (classes, known) = mechanism_by_columns(&request.folder).unwrap().expect("a mechanism by site");
    assert_eq!(classes, labels.names());
    // North is compared with south, or south with north.
    let se = known.term_se.as_ref().unwrap();
    assert!(
        se.len() == 2 && se.iter().filter(|se| **se == 0.0).count() == 1 && se.iter().all(|se| *se < 0.5),
        "{se:?}"
    );
    let p = predict(&request.folder, data.as_path(), &PredictOptions::default()).unwrap();
    let p = p.population();
    let evaluate = |mechanism: bool, given: Given| {
        let estimate = EstimateSettings {
            method: Method::Known,
            phi: Some(report.findings.phi.clone()),
            given,
            by: Some("site".into()),
            replicates: Some(20),
            ..Default::default()
        };
        let mechanism = mechanism.then(|| known.clone());
        // By weighting alone, so that the model's good probabilities cannot make up for a wrong mechanism.
        let settings = EvaluateSettings { estimate, mechanism, augmented: false, ..Default::default() };
        let evidence = Evidence::predictions(p, &labels).with_covariates(&covariates).unwrap();
        let model = Model { name: "p_".into(), scores: Scores::Probabilities(p) };
        settings.run(&evidence, &[model], &()).unwrap()
    };
    let by_site = evaluate(true, Given::None);
    let share = |found: &mnar::evaluate::Evaluation, group: &str| {
        let is = |m: &&Metric| m.name == MetricName::Prevalence && m.group.as_deref() == Some(group);
        found.metrics.iter().filter(is).find(|m| m.class.as_deref() == Some("ill")).unwrap().corrected.unwrap()
    };
    assert_eq!(by_site.given, ["site"]);
    assert!(by_site.warnings.iter().any(|warning| warning.contains("effects of site")));
    for site in ["north", "south"] {
        assert!((share(&by_site, site) - 0.5).abs() < 0.12, "{site}: {}", share(&by_site, site));
    }
    let by_class = evaluate(false, Given::None);
    // In the north, 6 times as many of the ill are labelled as of the well, and 2 times as many of all.
    assert!(share(&by_class, "north") > 0.65, "{}", share(&by_class, "north"));
}
