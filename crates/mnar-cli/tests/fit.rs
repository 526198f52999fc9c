//! `mnar fit` and `mnar predict`, as a user runs them.
#![allow(clippy::unwrap_used)] // helpers of tests are not seen as tests

use assert_cmd::Command;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

fn mnar(folder: &Path) -> Command {
    let mut command = Command::cargo_bin("mnar").unwrap();
    command.current_dir(folder).env("MNAR_CHECKPOINT_SECONDS", "0");
    command
}

/// Two overlapping clouds with a name column, missing cells and a constant; the sick are labelled far more often.
fn clinic(rows: usize, seed: u64) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut text = String::from("age,marker,ward,site,diagnosis\n");
    for _ in 0..rows {
        let sick = rng.random::<f64>() < 0.3;
        let shift = if sick { 1.0 } else { -1.0 };
        let mut noise = || (0..6).map(|_| rng.random::<f64>() - 0.5).sum::<f64>();
        let (age, marker) = (50.0 + 8.0 * (shift + noise()), 1.2 * shift + noise());
        let marker = if rng.random::<f64>() < 0.05 { String::new() } else { format!("{marker:.3}") };
        let ward = ["north", "south", "east"][rng.random_range(0..3)];
        let label = match (sick, rng.random::<f64>()) {
            (true, draw) if draw < 0.6 => "sick",
            (false, draw) if draw < 0.1 => "healthy",
            _ => "",
        };
        writeln!(text, "{age:.2},{marker},{ward},1,{label}").unwrap();
    }
    text
}

/// A class of which every row is labelled is at the bound phi = 1: it has an interval that says so, and its report is read again.
#[test]
fn a_class_that_is_always_labelled() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut text = String::from("a,b,state\n");
    for _ in 0..900 {
        let (name, centre, labelled) =
            [("well", [0.0, 0.0], 0.1), ("ill", [6.0, 0.0], 0.4), ("dead", [0.0, 9.0], 1.0)][rng.random_range(0..3)];
        let [a, b] = centre.map(|centre| centre + rng.random::<f64>());
        let label = if rng.random::<f64>() < labelled { name } else { "" };
        writeln!(text, "{a:.3},{b:.3},{label}").unwrap();
    }
    std::fs::write(folder.path().join("t.csv"), text).unwrap();
    let quick = ["--epochs", "2", "--replicates", "0", "--quiet", "--out", "run"];
    let run = mnar(folder.path()).args(["fit", "t.csv", "--label", "state"]).args(quick).assert().success();
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    assert!(!text.contains("hardly tell apart"), "{text}");
    let report = std::fs::read(folder.path().join("run/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    // The estimate has a weak prior against that bound, but not its interval.
    let phi = report["phi"][0].as_f64().unwrap();
    assert!(report["classes"][0] == "dead" && phi > 0.97 && phi < 1.0, "{phi}");
    assert!(report["phi_se"][0].is_null());
    let [lower, upper] = [0, 1].map(|end| report["phi_ci95"][0][end].as_f64().unwrap());
    assert!(lower > 0.95 && lower < 1.0 && upper == 1.0, "{lower} {upper}");
    mnar(folder.path()).args(["report", "run"]).assert().success();
    // The same from predictions: `estimate` has the interval, too.
    let words = ["estimate", "t.csv", "--label", "state", "--features", "a,b", "--interval", "information"];
    let estimate = mnar(folder.path()).args(words).args(["--format", "json"]).assert().success();
    let estimate: serde_json::Value = serde_json::from_slice(&estimate.get_output().stdout).unwrap();
    assert!(estimate["phi_ci95"][0][0].as_f64().unwrap() > 0.95, "{}", estimate["phi_ci95"]);
}

/// Tables are debiased by the adjusted likelihood, unless a method or something about weights is asked for.
#[test]
fn the_default_method_is_that_of_the_data() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("clinic.csv"), clinic(300, 5)).unwrap();
    for (words, expected) in [
        (&[][..], "adjusted"),
        (&["--method", "me"][..], "me"),
        (&["--clip-weights", "5"][..], "label-shift"),
        (&["--refresh", "1"][..], "label-shift"),
    ] {
        let quick = ["--label", "diagnosis", "--epochs", "2", "--replicates", "0", "--no-baseline", "--quiet"];
        let out = format!("run-{}", words.len() + expected.len());
        mnar(folder.path()).args(["fit", "clinic.csv", "--out", &out]).args(quick).args(words).assert().success();
        let settings = std::fs::read_to_string(folder.path().join(&out).join("settings.toml")).unwrap();
        assert!(settings.contains(&format!("method = \"{expected}\"")), "{words:?}: {settings}");
        std::fs::remove_dir_all(folder.path().join(out)).unwrap();
    }
}

/// A column that names the rows is no feature, and stands beside every prediction.
#[test]
fn rows_keep_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let clinic = clinic(400, 2);
    let with_id: String = clinic
        .lines()
        .enumerate()
        .map(|(i, line)| format!("{},{line}\n", if i == 0 { "patient".into() } else { format!("{:04}", 9000 - i) }))
        .collect();
    std::fs::write(folder.path().join("clinic.csv"), &with_id).unwrap();
    let fit = ["fit", "clinic.csv", "--label", "diagnosis", "--out", "run"];
    let refused = mnar(folder.path())
        .args(fit)
        .args(["--categorical", "patient", "--ignore", "patient", "--id", "diagnosis"])
        .args(QUICK)
        .assert()
        .code(2);
    let message = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(message.contains("the name of the row"), "{message}");
    std::fs::write(folder.path().join("clash.csv"), with_id.replace("patient", "confidence")).unwrap();
    let clash = ["fit", "clash.csv", "--label", "diagnosis", "--out", "run", "--id", "confidence"];
    let refused = mnar(folder.path()).args(clash).args(QUICK).assert().code(2);
    let message = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(message.contains("collides with a column of the predictions"), "{message}");
    assert!(!folder.path().join("run").exists());
    mnar(folder.path()).args(fit).args(["--id", "patient"]).args(QUICK).assert().success();
    mnar(folder.path()).args(["predict", "run", "clinic.csv", "--id", "patient", "-o", "new.csv"]).assert().success();
    for name in ["run/predictions.csv", "new.csv"] {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        let mut lines = text.lines();
        assert!(lines.next().unwrap().starts_with("patient,"), "{name}");
        let ids: Vec<&str> = lines.map(|line| line.split(',').next().unwrap()).collect();
        assert_eq!((ids.len(), ids[0], ids[399]), (400, "8999", "8600"), "{name}");
    }
}

const QUICK: [&str; 6] = ["--epochs", "30", "--replicates", "20", "--quiet", "--seed=3"];

#[test]
fn from_a_table_to_a_model_and_predictions() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("clinic.csv"), clinic(1500, 1)).unwrap();
    let run = mnar(folder.path()).args(["fit", "clinic.csv", "--label", "diagnosis"]).args(QUICK).assert().success();
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    assert!(text.contains("The class decides who gets labelled"), "{text}");
    let run = folder.path().join("clinic-run");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(run.join("report.json")).unwrap()).unwrap();
    assert_eq!(report["classes"], serde_json::json!(["healthy", "sick"]));
    let prevalence = report["prevalence"][1].as_f64().unwrap();
    // The truth is 0.3; three standard errors of 1,500 rows are 0.04, and the classifier adds its own.
    assert!((prevalence - 0.3).abs() < 0.08, "{prevalence}");
    assert!(report["p_value"].as_f64().unwrap() < 0.001);
    for name in [
        "settings.toml",
        "predictions.csv",
        "model/model.json",
        "baseline/weights.safetensors",
        "metrics-debiased.jsonl",
    ] {
        assert!(run.join(name).exists(), "{name}");
    }
    assert!(!run.join("checkpoints").exists());
    // Predicting the same rows again gives the same table, but for the label column.
    let output = folder.path().join("again.csv");
    mnar(folder.path()).args(["predict", "clinic-run", "clinic.csv", "-o", "again.csv"]).assert().success();
    let rows = |path: &Path, skip: usize| -> Vec<Vec<String>> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| line.split(',').skip(skip).map(str::to_owned).collect()).collect()
    };
    assert_eq!(rows(&run.join("predictions.csv"), 1), rows(&output, 0));
    // A finished run is not overwritten.
    let again = mnar(folder.path()).args(["fit", "clinic.csv", "--label", "diagnosis"]).args(QUICK).assert().code(2);
    let message = String::from_utf8_lossy(&again.get_output().stderr).into_owned();
    assert!(message.contains("holds a finished run"), "{message}");
}

/// The settings that a run writes, given back, repeat it bit by bit: the model, the predictions and the findings.
#[test]
fn settings_given_back_repeat_the_run() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("clinic.csv"), clinic(400, 6)).unwrap();
    let cases: [&[&str]; 4] = [
        &["--replicates", "20"],
        &["--method", "oracle", "--phi", "sick=0.6,healthy=0.1", "--replicates", "0", "--optimiser", "sgd"],
        &[
            "--method",
            "label-shift",
            "--clip-weights",
            "5",
            "--refresh",
            "2",
            "--cross-fit",
            "network",
            "--patience",
            "2",
        ],
        &["--network", "linear", "--consistency", "entropy", "--threshold-rule", "phi", "--replicates", "0"],
    ];
    for (i, case) in cases.into_iter().enumerate() {
        let (first, again) = (format!("first-{i}"), format!("again-{i}"));
        let common = ["--label", "diagnosis", "--ignore", "site", "--epochs", "3", "--seed", "4", "--quiet"];
        mnar(folder.path()).args(["fit", "clinic.csv", "--out", &first]).args(common).args(case).assert().success();
        let settings = format!("{first}/settings.toml");
        let repeat = ["fit", "clinic.csv", "--settings", &settings, "--out", &again, "--quiet"];
        mnar(folder.path()).args(repeat).assert().success();
        let read = |run: &str, name: &str| std::fs::read(folder.path().join(run).join(name)).unwrap();
        for name in ["settings.toml", "predictions.csv", "model/weights.safetensors", "baseline/weights.safetensors"] {
            assert!(read(&first, name) == read(&again, name), "{case:?}: {name}");
        }
        let found = |run: &str| {
            let mut report: serde_json::Value = serde_json::from_slice(&read(run, "report.json")).unwrap();
            let report = report.as_object_mut().unwrap();
            for key in ["created", "seconds", "command", "training", "next"] {
                report.remove(key);
            }
            report.clone()
        };
        assert_eq!(found(&first), found(&again), "{case:?}");
    }
}

/// Hints can be pasted even if a name has blanks and quotes in it.
#[test]
fn hints_can_be_pasted() {
    let folder = tempfile::tempdir().unwrap();
    // One person comes twice: a name for every row would be left out without a word from the user.
    let row = |(i, line): (usize, &str)| format!("P{},{line}\n", i.max(1));
    let rows: String = clinic(300, 1).lines().skip(1).enumerate().map(row).collect();
    let table = format!("Individual ID,age,marker,ward,site,diagnosis\n{rows}");
    std::fs::write(folder.path().join("t.csv"), table).unwrap();
    let run = mnar(folder.path()).args(["fit", "t.csv", "--label", "diagnosis"]).args(QUICK).assert().code(2);
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(said.contains("hint: --ignore 'Individual ID'\n"), "{said}");
    assert!(said.contains("hint: --id 'Individual ID'\n"), "{said}");
    let pasted = ["fit", "t.csv", "--label", "diagnosis", "--ignore", "Individual ID"];
    mnar(folder.path()).args(pasted).args(QUICK).assert().success();
    let bad = mnar(folder.path()).args(pasted).env("MNAR_CHECKPOINT_SECONDS", "-1").assert().code(2);
    let said = String::from_utf8(bad.get_output().stderr.clone()).unwrap();
    assert!(said.contains("MNAR_CHECKPOINT_SECONDS is `-1`"), "{said}");
}

/// Ctrl-C stops the bootstrap of a run, not only its training.
#[cfg(unix)]
#[test]
fn ctrl_c_stops_the_bootstrap() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("clinic.csv"), clinic(2000, 3)).unwrap();
    let words = ["fit", "clinic.csv", "--label", "diagnosis", "--replicates", "1000000", "--out", "run"];
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("mnar"));
    let child = command.current_dir(folder.path()).args(words).stderr(Stdio::piped()).spawn().unwrap();
    while !folder.path().join("run/settings.toml").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(1500));
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("--resume"), "{said}");
}

/// The wish of everyone whose machine was ever restarted: ten kills, and the same weights to the last bit.
#[test]
fn killed_ten_times_and_resumed_is_the_uninterrupted_run() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("clinic.csv"), clinic(600, 2)).unwrap();
    let arguments = [
        "fit",
        "clinic.csv",
        "--label",
        "diagnosis",
        "--cross-fit",
        "network",
        "--method",
        "me",
        "--epochs",
        "150",
        "--quiet",
    ];
    mnar(folder.path()).args(arguments).args(["--out", "whole"]).assert().success();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let program = assert_cmd::cargo::cargo_bin("mnar");
    let mut kills = 0;
    for attempt in 0.. {
        let mut command = std::process::Command::new(&program);
        command
            .current_dir(folder.path())
            .env("MNAR_CHECKPOINT_SECONDS", "0")
            .args(arguments)
            .args(["--out", "killed"]);
        if folder.path().join("killed/manifest.json").exists() {
            command.arg("--resume");
        }
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        if kills < 10 {
            std::thread::sleep(Duration::from_millis(rng.random_range(20..250)));
            if child.try_wait().unwrap().is_none() {
                child.kill().unwrap();
                kills += 1;
            }
            child.wait().unwrap();
        } else {
            assert!(child.wait().unwrap().success());
        }
        if folder.path().join("killed/report.json").exists() {
            break;
        }
        assert!(attempt < 60, "never finished");
    }
    // Ten on two slow cores; a machine that finishes first is killed less often.
    assert!(kills >= 2, "killed {kills} times only");
    for name in ["model/weights.safetensors", "baseline/weights.safetensors", "predictions.csv"] {
        let read = |run: &str| std::fs::read(folder.path().join(run).join(name)).unwrap();
        assert!(read("whole") == read("killed"), "{name} differs after {kills} kills");
    }
    let lines = |run: &str| {
        let text = std::fs::read_to_string(folder.path().join(run).join("metrics-debiased.jsonl")).unwrap();
        let records = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        records.map(|record| (record["step"].clone(), record["loss"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(lines("whole"), lines("killed"));
}

/// What a message must say, for what was wrong with the input.
fn refused(folder: &Path, arguments: &[&str], says: &str) {
    let before = entries(folder);
    let run = mnar(folder).args(arguments).assert().code(2);
    let message = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(message.contains(says), "{arguments:?} says {message}");
    assert_eq!(before, entries(folder), "{arguments:?} left something behind");
}

fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn bad_input_is_refused_with_a_reason_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("clinic.csv"), clinic(300, 1)).unwrap();
    std::fs::write(path.join("one.csv"), "x,y\n1,a\n2,a\n3,b\n4,\n5,a\n").unwrap();
    std::fs::write(path.join("constant.csv"), "x,y\n1,a\n1,b\n1,a\n1,b\n1,\n").unwrap();
    let with_status = |(i, line): (usize, &str)| match i {
        0 => format!("status,year,{line}\n"),
        _ => format!("{},2020,{line}\n", if line.ends_with(',') { "open" } else { "done" }),
    };
    let status: String = clinic(300, 1).lines().enumerate().map(with_status).collect();
    std::fs::write(path.join("status.csv"), status).unwrap();
    std::fs::write(path.join("bad.toml"), "epoch = 3\n").unwrap();
    std::fs::write(path.join("not.npz"), "no archive").unwrap();
    std::fs::create_dir(path.join("images")).unwrap();
    for (class, name) in [("a", "1.png"), ("unlabelled", "2.png")] {
        std::fs::create_dir_all(path.join("images").join(class)).unwrap();
        std::fs::write(path.join("images").join(class).join(name), "no picture").unwrap();
    }
    let fit = |words: &[&'static str]| [&["fit"], words].concat();
    refused(path, &fit(&["missing.csv", "--label", "y"]), "missing.csv");
    refused(path, &fit(&["clinic.csv", "--label", "diagnosys"]), "did you mean `diagnosis`");
    refused(path, &fit(&["one.csv", "--label", "y"]), "b");
    refused(path, &fit(&["constant.csv", "--label", "y"]), "constant.csv");
    refused(path, &fit(&["clinic.csv", "--label", "diagnosis", "--settings", "bad.toml"]), "epoch");
    refused(path, &fit(&["clinic.csv", "--label", "diagnosis", "--consistency", "fixmatch"]), "table has none");
    refused(path, &fit(&["clinic.csv", "--label", "diagnosis", "--network", "mnist-cnn"]), "mnist-cnn");
    refused(path, &fit(&["clinic.csv", "--label", "diagnosis", "--method", "oracle"]), "--phi");
    refused(path, &fit(&["clinic.csv", "--label", "diagnosis", "--learning-rate", "0"]), "`learning-rate` is `0`");
    refused(path, &fit(&["clinic.csv", "--label", "diagnosis", "--resume"]), "holds no run to resume");
    refused(path, &fit(&["clinic.csv", "--label", "diagnosis", "--device", "cuda"]), "this build has no cuda");
    refused(path, &fit(&["clinic.csv", "--label", "diagnosis", "--given", "hospital"]), "`hospital`");
    refused(
        path,
        &fit(&["status.csv", "--label", "diagnosis", "--given", "status"]),
        "exactly which rows are labelled",
    );
    refused(path, &fit(&["status.csv", "--label", "diagnosis", "--by", "year"]), "`year`");
    refused(path, &fit(&["not.npz"]), "not.npz");
    refused(path, &fit(&["images"]), "1.png");
    refused(path, &fit(&["clinic.csv", "--label", "diagnosis", "--out", "one.csv/run"]), "one.csv/run");
    refused(path, &["predict", "nowhere", "clinic.csv", "-o", "p.csv"], "does not exist, so there is no run in it");
}

/// A class with one label does not stop what can be said about the others.
#[test]
fn a_class_with_one_label_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let text = clinic(400, 5) + "51.0,0.1,north,1,unclear\n";
    std::fs::write(path.join("t.csv"), text).unwrap();
    let says = "the class `unclear` is set aside: it has 1 label";
    let features = ["--features", "age,marker,ward", "--label", "diagnosis", "--quiet"];
    for command in ["test", "estimate"] {
        let run = mnar(path).args([command, "t.csv"]).args(features).assert().success();
        let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
        assert!(text.contains(says), "{command}: {text}");
    }
    mnar(path).args(["fit", "t.csv", "--label", "diagnosis", "--out", "run"]).args(QUICK).assert().success();
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(path.join("run/report.json")).unwrap()).unwrap();
    assert_eq!(report["classes"], serde_json::json!(["healthy", "sick"]));
    let warnings = report["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning.as_str().unwrap().starts_with(says)), "{warnings:?}");
    let predictions = std::fs::read_to_string(path.join("run/predictions.csv")).unwrap();
    assert_eq!(predictions.lines().count(), 402);
    let run = mnar(path).args(["inspect", "t.csv", "--label", "diagnosis"]).assert().success();
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    assert!(text.contains(says), "{text}");
}

/// Where only one class is ever labelled, there are bounds; with its share, phi, weights, a model and predictions.
#[test]
fn positive_unlabelled_tables() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("t.csv"), clinic(2000, 8).replace(",healthy\n", ",\n")).unwrap();
    let estimate = ["estimate", "t.csv", "--label", "diagnosis", "--features", "age,marker,ward", "--quiet"];
    let json = |more: &[&str]| -> serde_json::Value {
        let run = mnar(path).args(estimate).args(["--format", "json"]).args(more).assert().success();
        serde_json::from_slice(&run.get_output().stdout).unwrap()
    };
    // The truth: 30% are sick, and 60% of them are labelled.
    let bound = json(&[]);
    let (phi, share) = (bound["phi_at_least"].as_f64().unwrap(), bound["share_at_most"].as_f64().unwrap());
    assert!(phi > 0.4 && phi < 0.6 && share > 0.3 && share < 0.45, "{bound}");
    let found = json(&["--shares", "sick=0.3", "--weights", "w.csv"]);
    assert!((found["phi"][0].as_f64().unwrap() - 0.6).abs() < 0.05, "{found}");
    assert_eq!(found["classes"], serde_json::json!(["sick", "not sick"]));
    let weights = std::fs::read_to_string(path.join("w.csv")).unwrap();
    assert_eq!(weights.lines().count(), 2001);
    let contradicted = json(&["--shares", "sick=0.6"]);
    assert_eq!(contradicted["verdict"]["kind"], "unclear", "{contradicted}");
    refused(path, &[&estimate[..], &["--shares", "sick=0.1"]].concat(), "of all rows carry its label");
    refused(path, &["test", "t.csv", "--label", "diagnosis", "--features", "age,marker"], "there is nothing to test");
    let fit = ["fit", "t.csv", "--label", "diagnosis", "--out", "run", "--quiet"];
    refused(path, &fit, "a model needs the share of `sick`");
    assert!(!path.join("run").exists());
    mnar(path).args(fit).args(["--shares", "sick=0.3"]).assert().success();
    mnar(path).args(["report", "run"]).assert().success();
    std::fs::write(path.join("new.csv"), clinic(500, 9)).unwrap();
    mnar(path).args(["predict", "run", "new.csv", "-o", "p.csv"]).assert().success();
    let predictions = std::fs::read_to_string(path.join("p.csv")).unwrap();
    assert!(predictions.starts_with("predicted,confidence,p_sick,p_not sick,u_sick,u_not sick\n"), "{predictions}");
    // Healthy rows are told from sick ones although none was ever labelled.
    let labels = clinic(500, 9);
    let both = labels.lines().skip(1).zip(predictions.lines().skip(1));
    let known: Vec<bool> = both
        .filter(|(row, _)| !row.ends_with(','))
        .map(|(row, predicted)| predicted.starts_with("sick,") == row.ends_with(",sick"))
        .collect();
    let right = known.iter().filter(|right| **right).count() as f64 / known.len() as f64;
    assert!(right > 0.9, "{right} of {}", known.len());
}

/// Sets of classes hold for every class, and the probabilities move to another population.
#[test]
fn sets_and_another_population() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("t.csv"), clinic(1500, 8)).unwrap();
    let fit = ["fit", "t.csv", "--label", "diagnosis", "--out", "run"];
    mnar(path).args(fit).args(QUICK).assert().success();
    std::fs::write(path.join("new.csv"), clinic(1500, 9)).unwrap();
    let predict = |more: &[&str]| -> Vec<Vec<String>> {
        let words = ["predict", "run", "new.csv", "-o", "p.csv"];
        mnar(path).args(words).args(more).assert().success();
        let text = std::fs::read_to_string(path.join("p.csv")).unwrap();
        text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
    };
    let plain = predict(&[]);
    let sets = predict(&["--sets", "0.9"]);
    assert_eq!(sets[0][..6], ["predicted", "confidence", "set", "set_size", "p_healthy", "p_sick"]);
    let truth = clinic(1500, 9);
    let labels: Vec<&str> = truth.lines().skip(1).map(|line| line.rsplit(',').next().unwrap()).collect();
    for class in ["healthy", "sick"] {
        let rows = || sets[1..].iter().zip(&labels).filter(|(_, label)| **label == class);
        let inside = rows().filter(|(row, _)| row[2].split(" | ").any(|name| name == class)).count();
        let share = inside as f64 / rows().count() as f64;
        assert!(share > 0.8, "{class}: {share}");
    }
    let moved = predict(&["--shares", "healthy=0.99,sick=0.01"]);
    for (moved, plain) in moved[1..].iter().zip(&plain[1..]) {
        let p = |row: &[String]| row[3].parse::<f64>().unwrap();
        assert!(p(moved) <= p(plain), "{moved:?} {plain:?}");
    }
    refused(path, &["predict", "run", "new.csv", "-o", "q.csv", "--sets", "1.5"], "must be between 0 and 1");
    refused(path, &["predict", "run", "new.csv", "-o", "q.csv", "--shares", "sick=0.5"], "no value for the class");
}

/// Labels that are all there, or are numbers, or truth values, are labels like others.
#[test]
fn labels_of_any_kind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (name, sick, healthy) in [("numbers", "1", "0"), ("truth", "true", "false")] {
        let text =
            clinic(400, 5).replace(",sick\n", &format!(",{sick}\n")).replace(",healthy\n", &format!(",{healthy}\n"));
        std::fs::write(path.join(format!("{name}.csv")), text).unwrap();
        let file = format!("{name}.csv");
        mnar(path).args(["fit", &file, "--label", "diagnosis"]).args(QUICK).assert().success();
    }
    let complete: String = clinic(400, 5)
        .lines()
        .map(|line| if line.ends_with(',') { format!("{line}sick\n") } else { format!("{line}\n") })
        .collect();
    std::fs::write(path.join("complete.csv"), complete).unwrap();
    let run = mnar(path).args(["fit", "complete.csv", "--label", "diagnosis"]).args(QUICK).assert().success();
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    assert!(text.contains("all labels are there"), "{text}");
}

#[test]
fn kernels_can_be_forced_and_the_report_names_them() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("clinic.csv"), clinic(300, 1)).unwrap();
    let arguments = ["fit", "clinic.csv", "--label", "diagnosis", "--epochs", "2", "--replicates", "0", "--quiet"];
    for kernels in ["portable", "burn"] {
        let mut command = mnar(folder.path());
        command.args(arguments).args(["--out", kernels]).env("MNAR_KERNELS", kernels).assert().success();
        let report = std::fs::read_to_string(folder.path().join(kernels).join("report.json")).unwrap();
        assert!(report.contains(&format!("\"computed_on\": \"cpu, {kernels} kernels\"")), "{report}");
    }
    let output = mnar(folder.path()).args(arguments).env("MNAR_KERNELS", "fast").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("MNAR_KERNELS=fast: there is no such instruction set; say avx512, avx2"), "{message}");
    assert!(!folder.path().join("clinic-run").exists());
}

/// A column that repeats the label would make the model look perfect and be worthless.
#[test]
fn a_copy_of_the_label_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let table = clinic(300, 5);
    let copied = |line: &str| {
        let label = line.rsplit(',').next().unwrap().to_owned();
        let truth = if label.is_empty() { "healthy".to_owned() } else { label };
        format!("{truth},{line}")
    };
    let mut lines = table.lines();
    let text: Vec<String> =
        std::iter::once(format!("truth,{}", lines.next().unwrap())).chain(lines.map(copied)).collect();
    std::fs::write(folder.path().join("leak.csv"), text.join("\n")).unwrap();
    let run = mnar(folder.path()).args(["fit", "leak.csv", "--label", "diagnosis"]).args(QUICK).assert().code(2);
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(said.contains("column `truth` duplicates the label") && said.contains("hint: --ignore truth\n"), "{said}");
    assert!(!folder.path().join("leak-run").exists());
    let ignoring = ["fit", "leak.csv", "--label", "diagnosis", "--ignore", "truth"];
    mnar(folder.path()).args(ignoring).args(QUICK).assert().success();
    // The run's page is there, and is drawn again from report.json.
    let page = folder.path().join("leak-run/report.html");
    let before = std::fs::read_to_string(&page).unwrap();
    mnar(folder.path()).args(["report", "leak-run"]).assert().success();
    assert_eq!(std::fs::read_to_string(&page).unwrap(), before);
}
