//! A run on a table that straight lines cannot divide: trees are chosen, saved, and predict as they did in the run.
#![allow(clippy::unwrap_used)] // helpers of tests are not seen as tests

use mnar_run::{FinalClassifier, FitOptions, FitRequest, PredictOptions, RunError, fit, predict};
use std::path::{Path, PathBuf};

const ROWS: usize = 900;

/// Class `in` lies in a square in the middle; a name and gaps go with it. Labels of `in` are rarer.
fn square(folder: &Path) -> (PathBuf, Vec<&'static str>) {
    let mut state = 5u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut text = "a,b,colour,where\n".to_owned();
    let mut truth = Vec::new();
    for row in 0..ROWS {
        let (a, b) = (uniform() * 3.0 - 1.5, uniform() * 3.0 - 1.5);
        let inside = a.abs() < 0.9 && b.abs() < 0.9;
        truth.push(if inside { "in" } else { "out" });
        let labelled = uniform() < if inside { 0.3 } else { 0.6 };
        let b = if row % 20 == 0 { String::new() } else { format!("{b:.4}") };
        let label = if labelled { truth[row] } else { "" };
        text += &format!("{a:.4},{b},{},{label}\n", ["red", "blue", "green"][row % 3]);
    }
    let path = folder.join("square.csv");
    std::fs::write(&path, text).unwrap();
    (path, truth)
}

#[test]
fn trees_count_where_they_help() {
    let folder = tempfile::tempdir().unwrap();
    let (data, truth) = square(folder.path());
    let run = |name: &str, classifier: Option<FinalClassifier>| {
        let mut request = FitRequest::new(data.as_path(), folder.path().join(name));
        request.options = FitOptions {
            label: Some("where".into()),
            classifier,
            // A network that has hardly learnt anything yet.
            epochs: Some(1),
            replicates: Some(0),
            permutations: Some(99),
            no_baseline: Some(true),
            ..Default::default()
        };
        (fit(&request, &()).unwrap(), request.folder)
    };
    let accuracy = |run: &Path| {
        let predictions = predict(run, data.as_path(), &PredictOptions::default()).unwrap();
        let p = predictions.population().column(0).to_vec();
        // The classes are in the order of their names: `in`, `out`.
        let right = p.iter().zip(&truth).filter(|(p, truth)| (**p > 0.5) == (**truth == "in")).count();
        (right as f64 / ROWS as f64, p)
    };

    let (report, mixed) = run("mixed", None);
    assert_eq!(report.findings.tried.iter().find(|tried| tried.chosen).unwrap().name, "boosted trees");
    let beside = &report.training.as_ref().unwrap().beside;
    let trees: f64 = beside.iter().filter(|part| part.classifier.contains("trees")).map(|part| part.weight).sum();
    assert!(trees >= 0.5 && beside.iter().all(|part| part.weight > 0.0), "{beside:?}");
    let (with_trees, p) = accuracy(&mixed);
    assert!(with_trees > 0.9, "{with_trees}");
    // What the run wrote is what the saved model says.
    let written = std::fs::read_to_string(mixed.join("predictions.csv")).unwrap();
    let column = written.lines().next().unwrap().split(',').position(|name| name == "p_in").unwrap();
    for (line, p) in written.lines().skip(1).zip(&p) {
        let written: f64 = line.split(',').nth(column).unwrap().parse().unwrap();
        assert!((written - p).abs() < 1e-9);
    }

    let (report, network) = run("network", Some(FinalClassifier::Network));
    assert!(report.training.unwrap().beside.is_empty());
    assert!(!network.join("model/beside.json").exists());
    assert!(accuracy(&network).0 < with_trees);

    let refused = || predict(&mixed, data.as_path(), &PredictOptions::default()).unwrap_err();
    let trees = mixed.join("model/beside.json");
    let text = std::fs::read_to_string(&trees).unwrap();
    // Changed, and changed by someone who has computed the checksum anew.
    let heavier = text.replacen("\"weight\":", "\"weight\":2", 1);
    std::fs::write(&trees, &heavier).unwrap();
    assert!(matches!(refused(), RunError::ChangedFile { .. }), "{}", refused());
    let manifest = std::fs::read_to_string(mixed.join("manifest.json")).unwrap();
    let sum = |text: &str| mnar_data::Checksum::of(text.as_bytes()).to_string();
    std::fs::write(mixed.join("manifest.json"), manifest.replace(&sum(&text), &sum(&heavier))).unwrap();
    assert!(matches!(refused(), RunError::BrokenModel { .. }), "{}", refused());
}
