//! A run on a table whose labels depend on the class and on the hospital: training, scores and predictions all take
//! P(labelled | class, site) of the row.
#![allow(clippy::unwrap_used)] // helpers of tests are not seen as tests

use mnar::Posteriors;
use mnar::analysis::Given;
use mnar_data::Column;
use mnar_report::Report;
use mnar_run::{FitOptions, FitRequest, NetworkName, PredictOptions, Predictions, fit, predict};
use mnar_train::method::MethodName;
use std::path::{Path, PathBuf};

/// logit P(labelled | class, site) = a_y + b_site: the ill and the patients of the second site are labelled more often.
const CLASS_EFFECT: [f64; 2] = [-2.9, -0.8];
const SITE_EFFECT: [f64; 2] = [0.0, 2.9];

const ROWS: usize = 4000;

fn site(row: usize) -> usize {
    row % 2
}

/// One patient in two is ill, at both sites.
fn ill(row: usize) -> usize {
    row / 2 % 2
}

/// A table of patients: a measurement, which is higher for the ill, and the site.
fn patients(folder: &Path) -> PathBuf {
    let mut state = 1u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut text = "measured,site,state\n".to_owned();
    for row in 0..ROWS {
        let noise: f64 = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let logit = CLASS_EFFECT[ill(row)] + SITE_EFFECT[site(row)];
        let label = if uniform() < 1.0 / (1.0 + (-logit).exp()) { ["well", "ill"][ill(row)] } else { "" };
        text += &format!("{:.4},{},{label}\n", noise + 2.0 * ill(row) as f64, ["north", "south"][site(row)]);
    }
    let path = folder.join("patients.csv");
    std::fs::write(&path, text).unwrap();
    path
}

fn run(data: &Path, folder: PathBuf, given: Given, method: MethodName) -> Report {
    let mut request = FitRequest::new(data, folder);
    request.options = FitOptions {
        label: Some("state".into()),
        given: Some(given),
        method: Some(method),
        network: Some(NetworkName::Linear),
        epochs: Some(15),
        replicates: Some(0),
        permutations: Some(99),
        no_baseline: Some(true),
        ..Default::default()
    };
    fit(&request, &()).unwrap()
}

fn numbers(predictions: &Predictions, name: &str) -> Vec<f64> {
    let columns = predictions.columns();
    match columns.iter().find(|(column, _)| column == name) {
        Some((_, Column::Numbers(numbers))) => numbers.to_vec(),
        _ => panic!("no numbers called {name}"),
    }
}

/// How far the share of the ill that a model predicts at a site is from the truth, at the worse of the two.
fn off(population: &Posteriors) -> f64 {
    let share = |wanted: usize| {
        let of_site: Vec<f64> =
            (0..ROWS).filter(|&row| site(row) == wanted).map(|row| population.column(0)[row]).collect();
        of_site.iter().sum::<f64>() / of_site.len() as f64
    };
    (share(0) - 0.5).abs().max((share(1) - 0.5).abs())
}

#[test]
fn a_run_corrects_for_class_and_site() {
    let folder = tempfile::tempdir().unwrap();
    let data = patients(folder.path());
    let site_given = || Given::Columns(vec!["site".into()]);
    for method in [MethodName::LabelShift, MethodName::Adjusted, MethodName::Ipw] {
        let of = |given: Given, name: &str| {
            let folder = folder.path().join(format!("{method:?}-{name}"));
            let report = run(&data, folder.clone(), given, method);
            (report, predict(&folder, &data, &PredictOptions::default()).unwrap(), folder)
        };
        let (report, predictions, run_folder) = of(site_given(), "site");
        let (_, by_class, _) = of(Given::None, "class");
        // The labels are in alphabetical order: ill, well.
        assert_eq!(report.findings.about.classes, ["ill", "well"]);
        let mechanism = report.findings.mechanism.as_ref().expect("a mechanism by class and site");
        let (ours, theirs) = (off(predictions.population()), off(by_class.population()));
        assert!(ours < 0.08, "{method:?}: {ours}");
        assert!(theirs > 0.1, "{method:?}: {theirs}");

        // p(y | x, unlabelled) ∝ p(y | x) (1 − φ(y, site)), with the terms north and south.
        let (p, u) = (numbers(&predictions, "p_ill"), numbers(&predictions, "u_ill"));
        for row in 0..ROWS {
            let z = || [f64::from(u8::from(site(row) == 0)), f64::from(u8::from(site(row) == 1))];
            let odds = [p[row] * (1.0 - mechanism.phi(0, z())), (1.0 - p[row]) * (1.0 - mechanism.phi(1, z()))];
            assert!((u[row] - odds[0] / (odds[0] + odds[1])).abs() < 1e-9, "row {row}");
        }
        // Predicted anew, the rows of training are what the run wrote of them.
        let written = std::fs::read_to_string(run_folder.join("predictions.csv")).unwrap();
        let header: Vec<&str> = written.lines().next().unwrap().split(',').collect();
        let column = header.iter().position(|name| *name == "u_ill").unwrap();
        for (line, u) in written.lines().skip(1).zip(&u) {
            let written: f64 = line.split(',').nth(column).unwrap().parse().unwrap();
            assert!((written - u).abs() < 1e-6);
        }
    }
}

#[test]
fn a_method_with_a_phi_of_its_own_says_that_it_knows_classes_only() {
    let folder = tempfile::tempdir().unwrap();
    let data = patients(folder.path());
    let report = run(&data, folder.path().join("run"), Given::Columns(vec!["site".into()]), MethodName::Me);
    let said = |warning: &String| warning.contains("depends on site besides the class");
    assert!(report.findings.warnings.iter().any(said), "{:?}", report.findings.warnings);
}
