//! Runs the program on a small experiment made for the test.
#![allow(clippy::unwrap_used)] // clippy does not see that helpers belong to tests

use assert_cmd::Command;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::path::Path;

fn reproduce(folder: &Path) -> Command {
    let mut command = Command::cargo_bin("reproduce").unwrap();
    command.current_dir(folder);
    command
}

/// Writes pictures of 6 × 6 pixels, bright on the left (class 0) or on the right (class 1), in MNIST's file format.
fn pictures(folder: &Path) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    std::fs::create_dir_all(folder.join("data/sides")).unwrap();
    for (name, rows) in [("train", 400u32), ("t10k", 120)] {
        let (mut images, mut labels) = (Vec::new(), Vec::new());
        images.extend([0u32.to_be_bytes(), rows.to_be_bytes(), 6u32.to_be_bytes(), 6u32.to_be_bytes()].concat());
        images[2..4].copy_from_slice(&[8, 3]);
        labels.extend([0u32.to_be_bytes(), rows.to_be_bytes()].concat());
        labels[2..4].copy_from_slice(&[8, 1]);
        for row in 0..rows {
            let class = (row % 2) as u8;
            labels.push(class);
            for pixel in 0..36 {
                let bright = (pixel % 6 >= 3) == (class == 1);
                images.push(rng.random_range(0..200u8) + if bright { 40 } else { 0 });
            }
        }
        std::fs::write(folder.join(format!("data/sides/{name}-images-idx3-ubyte")), images).unwrap();
        std::fs::write(folder.join(format!("data/sides/{name}-labels-idx1-ubyte")), labels).unwrap();
    }
}

const EXPERIMENT: &str = r#"
title = "Sides"
data = ["sides"]
missing = "make it"
validation = 20
choose_by = "accuracy"
network = { name = "linear" }
consistency = "pseudo-labels"
methods = ["complete-case", "pl", "de-pl", "cadr", "cadr-known", "mle", "meg", "me", "sim-pro", "ours", "ours-ensemble", "ours-adjusted", "ours-imputed", "known", "oracle"]
seeds = 2

[mask]
labelled = [60, 15]
unlabelled = [100, 150]

[folds]
epochs = 5
learning_rate = 0.05
batch_labelled = 25

[train]
epochs = 20
learning_rate = 0.05
batch_labelled = 25
batch_unlabelled = 50

[[goals]]
measure = "accuracy"
methods = ["me", "ours"]
which = "best"
target = { reach = 1.0 }

[paper]
me = { accuracy = [90.0, 1.0], loss = 0.3, phi_error = 0.1 }
"#;

#[test]
fn every_method_runs_once_and_the_table_has_the_papers_numbers() {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path());
    std::fs::write(folder.path().join("sides.toml"), EXPERIMENT).unwrap();
    for protocol in ["paper", "real"] {
        let arguments = ["sides.toml", "--data", "data", "--protocol", protocol, "--quiet"];
        let output = reproduce(folder.path()).args(arguments).output().unwrap();
        let (text, errors) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && errors.is_empty(), "{errors}");
        assert!(text.contains("90.00 ±1.00") && text.contains("ours, imputed"), "{text}");
        assert!(text.contains("goal met: accuracy, the best of ME; ours, weights: at least 1.00%"), "{text}");
        let results = folder.path().join("reproduce/sides").join(protocol);
        let me = std::fs::read_to_string(results.join("me-1.json")).unwrap();
        let me: serde_json::Value = serde_json::from_str(&me).unwrap();
        assert_eq!(me["true_phi"], serde_json::json!([60.0 / 160.0, 15.0 / 165.0]));
        assert_eq!(me["labelled"], serde_json::json!([60, 15]));
        assert!(me["accuracy"].as_f64().unwrap() > 0.6, "{me}");
        for figure in ["phi.svg", "accuracy.svg", "labels.svg"] {
            assert!(std::fs::read_to_string(results.join(figure)).unwrap().contains("</svg>"));
        }
        // Existing results are not computed again; missing ones are.
        std::fs::remove_file(results.join("pl-0.json")).unwrap();
        let before = std::fs::metadata(results.join("me-1.json")).unwrap().modified().unwrap();
        let again = reproduce(folder.path()).args(arguments).output().unwrap();
        assert_eq!(before, std::fs::metadata(results.join("me-1.json")).unwrap().modified().unwrap());
        assert!(results.join("pl-0.json").exists());
        // The rest of each line has the seconds of the repeated run.
        let accuracies = |text: &str| text.lines().map(|line| line.chars().take(40).collect()).collect::<Vec<String>>();
        // Running one method keeps the others in the figures.
        let only = reproduce(folder.path()).args(arguments).args(["--methods", "me"]).output().unwrap();
        assert!(only.status.success());
        assert!(std::fs::read_to_string(results.join("accuracy.svg")).unwrap().contains("CADR"));
        assert_eq!(accuracies(&text), accuracies(&String::from_utf8(again.stdout).unwrap()));
    }
}

/// Random and informative labels, each with all tests; a second call computes nothing again.
#[test]
fn the_tests_tell_informative_labels_from_others() {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path());
    std::fs::write(folder.path().join("sides.toml"), EXPERIMENT).unwrap();
    let arguments = ["sides.toml", "--data", "data", "--test", "--seeds", "3", "--quiet"];
    let output = reproduce(folder.path()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("likelihood ratio") && text.contains("permutation (auto)"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let results = folder.path().join("reproduce/sides/test");
    let draw = |name: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(results.join(name)).unwrap()).unwrap()
    };
    for seed in 0..3 {
        assert_eq!(draw(&format!("mnar-{seed}.json"))["labelled"], serde_json::json!([60, 15]));
        let p = draw(&format!("mnar-{seed}.json"))["permutation"]["p_value"].as_f64().unwrap();
        assert!(p < 0.05, "{p}");
        let at_random = draw(&format!("mcar-{seed}.json"));
        let labelled: u64 = at_random["labelled"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!(labelled, 75);
    }
    let before = std::fs::metadata(results.join("mcar-0.json")).unwrap().modified().unwrap();
    let again = reproduce(folder.path()).args(arguments).output().unwrap();
    assert_eq!(text, String::from_utf8(again.stdout).unwrap());
    assert_eq!(before, std::fs::metadata(results.join("mcar-0.json")).unwrap().modified().unwrap());
}

#[test]
fn mistakes_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.toml"), "title = 3").unwrap();
    let cases: [(&[&str], &str); 5] = [
        (&["mnist-s3", "--data", "."], "there is no experiment `mnist-s3`; the experiments are mnist-s1, mnist-s2"),
        (&["mnist-s2", "--data", "."], "does not exist; put the four idx files of MNIST there"),
        (&["mnist-s2", "--data", ".", "--methods", "mee"], "there is no method `mee`; the methods are complete-case"),
        (&["bad.toml", "--data", "."], "bad.toml: "),
        (&["mnist-s2"], "--data <DIR>"),
    ];
    for (arguments, says) in cases {
        let output = reproduce(folder.path()).args(arguments).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(says), "{message}");
        assert!(!folder.path().join("reproduce").exists(), "nothing is left behind");
    }
}

/// As in `reproduce ... | head`, which closes the pipe early.
#[test]
fn a_closed_pipe_is_not_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_reproduce"))
        .args(["--page", "page.md"])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(folder.path().join("page.md").exists());
}
