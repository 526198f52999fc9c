//! Predictions as people have them, as a user of the command meets them.
#![allow(clippy::unwrap_used)]

use assert_cmd::Command;
use mnar_data::{Column, write_table};
use serde_json::Value;
use std::path::PathBuf;
use tempfile::TempDir;

const ROWS: usize = 3000;

/// A row: its number, its label, and the probability of `b`. Class b is labelled about five times as often as class a.
fn rows() -> Vec<(u64, &'static str, f64)> {
    let row = |i: usize| {
        let b = i.is_multiple_of(3);
        let confidence = 0.7 + 0.29 * ((i * 37 % 101) as f64 / 101.0);
        // One row in ten is scored for the wrong class.
        let p = if b != (i * 7).is_multiple_of(10) { confidence } else { 1.0 - confidence };
        let labelled = ((i * 13 % 97) as f64 / 97.0) < if b { 0.5 } else { 0.1 };
        (
            i as u64,
            if !labelled {
                ""
            } else if b {
                "b"
            } else {
                "a"
            },
            p,
        )
    };
    (0..ROWS).map(row).collect()
}

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A CSV file of the rows.
    fn csv(&self, name: &str, header: &str, row: impl Fn(u64, &str, f64) -> String) -> String {
        let lines: Vec<String> = rows().into_iter().map(|(i, label, p)| row(i, label, p)).collect();
        std::fs::write(self.path(name), format!("{header}\n{}\n", lines.join("\n"))).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }
}

fn run(arguments: &[&str]) -> std::process::Output {
    Command::cargo_bin("mnar").unwrap().args(arguments).output().unwrap()
}

/// The result and the notes of an estimate.
fn estimate(table: &str, more: &[&str]) -> (Value, String) {
    let base = ["estimate", table, "--label", "y", "--interval", "information", "--format", "json"];
    let output = run(&[&base[..], more].concat());
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{table} {more:?}: {stderr}");
    (serde_json::from_slice(&output.stdout).unwrap(), stderr)
}

/// The message of a refusal.
fn refused(arguments: &[&str]) -> String {
    let output = run(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty() && !stderr.contains("panicked"), "{stderr}");
    stderr
}

fn phi(result: &Value) -> [f64; 2] {
    [0, 1].map(|k| result["phi"][k].as_f64().unwrap())
}

#[test]
fn every_layout_gives_the_same_estimate_and_hints_can_be_pasted() {
    let files = Files::new();
    let plain = files.csv("plain.csv", "y,p_a,p_b", |_, y, p| format!("{y},{},{p}", 1.0 - p));
    let expected = phi(&estimate(&plain, &[]).0);
    assert!((expected[0] - 0.1).abs() < 0.03 && (expected[1] - 0.5).abs() < 0.08, "{expected:?}");
    let same = |table: &str, more: &[&str], note: &str| {
        let (result, stderr) = estimate(table, more);
        let found = phi(&result);
        assert_eq!(result["classes"], serde_json::json!(["a", "b"]), "{table}");
        assert!((found[0] - expected[0]).abs() < 1e-6 && (found[1] - expected[1]).abs() < 1e-6, "{table} {found:?}");
        assert!(stderr.contains(note), "{table}: {stderr}");
    };
    let hinted = |table: &str, more: &[&str], hint: &str| {
        let message = refused(&[&["estimate", table, "--label", "y"], more].concat());
        assert!(message.contains(&format!("hint: {hint}\n")), "{table}: {message}");
    };
    let logit = |p: f64| (p / (1.0 - p)).ln();
    let logits = files.csv("logits.csv", "y,p_a,p_b", |i, y, p| format!("{y},{i},{}", logit(p) + i as f64));
    hinted(&logits, &[], "--logits");
    same(&logits, &["--logits"], "");
    let lists = files.csv("lists.csv", "y,probs", |_, y, p| format!("{y},\"[{}, {p}]\"", 1.0 - p));
    hinted(&lists, &[], "--proba probs");
    hinted(&lists, &["--proba", "probs"], "--classes a,b");
    same(&lists, &["--proba", "probs", "--classes", "a,b"], "");
    let score = files.csv("score.csv", "y,score", |_, y, p| format!("{},{p}", if y.is_empty() { "?" } else { y }));
    hinted(&score, &["--proba", "score"], "--positive a");
    hinted(&score, &["--proba", "score"], "--positive b");
    let read = ["--proba", "score", "--positive", "b"];
    same(&score, &read, "note: `score` is the probability of `b`; the other class is `a`");
    same(&score, &read, "labels `?` were read as missing");
    let one = files.csv("one.csv", "y,p_b", |_, y, p| format!("{y},{p}"));
    hinted(&one, &[], "--proba p_b --positive b");
    same(&one, &["--proba", "p_b", "--positive", "b"], "");
    let odds = files.csv("odds.csv", "y,z", |_, y, p| format!("{y},{}", logit(p)));
    same(&odds, &["--proba", "z", "--positive", "b", "--logits"], "");
    let number = |y: &str| match y {
        "a" => "0",
        "b" => "1",
        _ => "-1",
    };
    let numbers = files.csv("numbers.csv", "y,p_a,p_b", |_, y, p| format!("{},{},{p}", number(y), 1.0 - p));
    hinted(&numbers, &[], "--classes a,b");
    same(&numbers, &["--classes", "a,b"], "note: labels are numbers: 0 to 1 stand for `a`, `b`");
    same(&numbers, &["--classes", "a,b"], "labels `-1` were read as missing");
    // The test reads the same tables.
    let output = run(&["test", &score, "--label", "y", "--proba", "score", "--positive", "b", "--permutations", "99"]);
    assert!(output.status.success());
    let forgotten =
        files.csv("forgotten.csv", "y,p_a,p_b", |i, y, p| format!("{},{},{p}", if i == 9 { "E" } else { y }, 1.0 - p));
    let message = refused(&["estimate", &forgotten, "--label", "y"]);
    assert!(
        message.contains("row 10: label `E`") && message.contains("`p_E`") && !message.contains("hint"),
        "{message}"
    );
}

#[test]
fn weights_keep_the_names_of_rows_and_can_be_streamed() {
    let files = Files::new();
    let table = files.csv("p.csv", "patient,site,y,p_a,p_b", |i, y, p| format!("P{i},{},{y},{},{p}", i % 7, 1.0 - p));
    let (memory, streamed) = (files.path("memory.csv"), files.path("streamed.csv"));
    let weights = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
    let (_, stderr) = estimate(&table, &["--weights", memory.to_str().unwrap(), "--id", "patient"]);
    assert!(!stderr.contains("unique"), "{stderr}");
    assert!(weights(&memory).starts_with("patient,label,weight_labelled_loss,weight_unlabelled_loss\nP0,"));
    assert_eq!(weights(&memory).lines().count(), ROWS + 1);

    let rows = rows();
    let names: Vec<String> = rows.iter().map(|(i, ..)| format!("P{i}")).collect();
    let (p_a, p_b): (Vec<f64>, Vec<f64>) = rows.iter().map(|(_, _, p)| (1.0 - p, *p)).unzip();
    let parquet = files.path("p.parquet");
    let columns = [
        ("patient", Column::Texts(names.iter().map(|name| Some(name.as_str())).collect())),
        ("y", Column::Texts(rows.iter().map(|(_, y, _)| Some(*y).filter(|y| !y.is_empty())).collect())),
        ("p_a", Column::Numbers(&p_a)),
        ("p_b", Column::Numbers(&p_b)),
    ];
    write_table(&parquet, &columns).unwrap();
    let parquet = parquet.to_str().unwrap();
    estimate(parquet, &["--stream", "--weights", streamed.to_str().unwrap(), "--id", "patient"]);
    for (a, b) in weights(&memory).lines().zip(weights(&streamed).lines()).skip(1) {
        let (a, b): (Vec<&str>, Vec<&str>) = (a.split(',').collect(), b.split(',').collect());
        assert_eq!(a[..2], b[..2]);
        let number = |text: &str| text.parse::<f64>().unwrap();
        assert!(
            (number(a[2]) - number(b[2])).abs() < 1e-6 && (number(a[3]) - number(b[3])).abs() < 1e-6,
            "{a:?} {b:?}"
        );
    }
    // Without names, rows are counted; as Parquet, the table is one that can be read again.
    let counted = files.path("counted.parquet");
    estimate(parquet, &["--stream", "--weights", counted.to_str().unwrap()]);
    let read = mnar_data::read_columns(&counted, &["row".into(), "weight_labelled_loss".into()], &[]).unwrap();
    assert_eq!(read.len(), ROWS);

    // Names that are not unique are said; a name that the weights have is refused before any work.
    let (_, stderr) = estimate(&table, &["--id", "site"]);
    assert!(stderr.contains("the names in `site` are not unique: 2993 rows are called"), "{stderr}");
    let clash = files.csv("clash.csv", "label,y,p_a,p_b", |i, y, p| format!("P{i},{y},{},{p}", 1.0 - p));
    let out = files.path("out.csv");
    let message = refused(&["estimate", &clash, "--label", "y", "--id", "label", "--weights", out.to_str().unwrap()]);
    assert!(message.contains("--id label") && !out.exists(), "{message}");
    let nowhere = files.path("no/such/folder/w.csv");
    refused(&["estimate", parquet, "--label", "y", "--stream", "--weights", nowhere.to_str().unwrap()]);
}

#[test]
fn simulate_reads_marks_of_missing_labels() {
    let files = Files::new();
    let table = files.path("data.csv");
    let lines: String = (0..400).map(|i| format!("{},{}\n", ["cat", "dog", "NA", "?"][i % 4], i)).collect();
    std::fs::write(&table, format!("kind,x\n{lines}")).unwrap();
    let (table, output) = (table.to_str().unwrap(), files.path("masked.csv"));
    let base = ["simulate", table, "--label", "kind", "-o", output.to_str().unwrap(), "--format", "json"];
    let found = run(&[&base[..], &["--phi", "cat=0.5,dog=1"]].concat());
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(found["classes"], serde_json::json!(["cat", "dog"]));
    assert_eq!(found["notes"][0], "100 labels `?` and 100 labels `NA` were read as missing");
    let masked = std::fs::read_to_string(&output).unwrap();
    assert!(!masked.contains("NA") && !masked.contains('?') && masked.contains("dog,1\n,2\n,3\n"), "{masked}");
    let kept = run(&[&base[..], &["--labels-as-they-are", "--phi", "0.5,0.5,0.5,0.5"]].concat());
    let kept: Value = serde_json::from_slice(&kept.stdout).unwrap();
    assert_eq!(kept["classes"].as_array().unwrap().len(), 4);
}

#[test]
fn standard_input_is_read_once_for_every_use() {
    let files = Files::new();
    let table = files.csv("p.csv", "site,y,p_a,p_b,fold", |i, y, p| {
        format!("{},{y},{},{p},{}", if i % 2 == 0 { "N" } else { "S" }, 1.0 - p, i % 5)
    });
    let text = std::fs::read(&table).unwrap();
    let piped = |arguments: &[&str]| {
        let mut command = Command::cargo_bin("mnar").unwrap();
        command.args(arguments).write_stdin(text.clone()).output().unwrap()
    };
    let arguments = ["--label", "y", "--by", "site", "--fold", "fold", "--interval", "information", "--format", "json"];
    let output = piped(&[&["estimate", "-"][..], &arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stdout, run(&[&["estimate", &table][..], &arguments].concat()).stdout);
    let masked = files.path("masked.csv");
    let masked = masked.to_str().unwrap();
    let output = piped(&["simulate", "-", "--label", "y", "--phi", "0.5,0.5", "--odds", "site:N=2", "-o", masked]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let message = String::from_utf8(piped(&["estimate", "-", "--label", "y", "--stream"]).stderr).unwrap();
    assert!(message.contains("standard input"), "{message}");
    let out = files.path("run");
    let output = piped(&["fit", "-", "--label", "y", "--labels", "-", "--out", out.to_str().unwrap()]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && message.contains("for both the data and the labels"), "{message}");
}

#[test]
fn a_dash_writes_to_standard_output_and_the_summary_moves_to_stderr() {
    let files = Files::new();
    let table = files.csv("p.csv", "y,p_a,p_b", |_, label, p| format!("{label},{},{p}", 1.0 - p));
    let to_file = files.path("w.csv");
    let arguments = ["estimate", &table, "--label", "y", "--interval", "information", "--weights"];
    let expected = run(&[&arguments[..], &[to_file.to_str().unwrap()]].concat());
    let piped = run(&[&arguments[..], &["-"]].concat());
    assert!(piped.status.success());
    assert_eq!(piped.stdout, std::fs::read(&to_file).unwrap());
    let (summary, errors) = (String::from_utf8(expected.stdout).unwrap(), String::from_utf8(piped.stderr).unwrap());
    // The commands of the next steps name what was asked for.
    let summary = summary.replace(to_file.to_str().unwrap(), "-");
    assert!(errors.contains(summary.trim_end()), "{errors}");

    let masked = files.path("masked.csv");
    let arguments = ["simulate", &table, "--label", "y", "--phi", "0.5,0.5", "-o"];
    run(&[&arguments[..], &[masked.to_str().unwrap()]].concat());
    let piped = run(&[&arguments[..], &["-"]].concat());
    assert_eq!(piped.stdout, std::fs::read(&masked).unwrap());
    assert!(!std::path::Path::new("-").exists());
}
