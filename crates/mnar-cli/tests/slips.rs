//! Slips of a hurried user: nothing is lost, and nothing odd passes without a word.
#![allow(clippy::unwrap_used)]

use assert_cmd::Command;
use std::fmt::Write as _;
use std::path::PathBuf;
use tempfile::TempDir;

/// Runs in a folder, expects the exit code, and gives back stdout and stderr.
fn mnar(folder: &TempDir, arguments: &[&str], code: i32) -> (String, String) {
    let output = Command::cargo_bin("mnar").unwrap().current_dir(folder.path()).args(arguments).output().unwrap();
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stdout}{stderr}");
    (stdout, stderr)
}

fn write(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// 300 patients, of whom the sick are labelled more often. `extra` is a further column.
fn clinic(extra: &str, of: impl Fn(usize) -> String) -> String {
    let mut text = format!("age;crp;hospital;{extra};diagnosis\n");
    for i in 0..300 {
        let sick = i % 3 == 0;
        let crp = f64::from((i * 37 % 101) as u32) / 20.0 + if sick { 3.0 } else { 0.0 };
        let labelled = (i * 13 % 10) < if sick { 7 } else { 3 };
        let label = match (labelled, sick) {
            (false, _) => "",
            (true, true) => "sick",
            (true, false) => "well",
        };
        writeln!(text, "{};{crp};{};{};{label}", 20 + i * 7 % 60, ["North", "South"][i % 2], of(i)).unwrap();
    }
    text
}

#[test]
fn results_do_not_replace_what_they_are_made_from() {
    let folder = tempfile::tempdir().unwrap();
    let text = clinic("ward", |i| ["a", "b"][i / 7 % 2].to_owned());
    let path = write(&folder, "clinic.csv", &text);
    let says = "clinic.csv: this file is read, and the result would replace it";
    let simulate = ["simulate", "clinic.csv", "--label", "diagnosis", "--phi", "sick=0.5,well=0.5"];
    for output in ["clinic.csv", "./clinic.csv"] {
        let (_, stderr) = mnar(&folder, &[&simulate[..], &["-o", output]].concat(), 2);
        assert!(stderr.contains(says), "{stderr}");
    }
    let estimate = ["estimate", "clinic.csv", "--label", "diagnosis", "--features", "all", "-q"];
    for option in ["--weights", "--report", "--imputed"] {
        let (_, stderr) = mnar(&folder, &[&estimate[..], &[option, "clinic.csv"]].concat(), 2);
        assert!(stderr.contains(says), "{option}: {stderr}");
    }
    let (_, stderr) = mnar(&folder, &[&estimate[..], &["--weights", "w.xlsx"]].concat(), 2);
    assert!(stderr.contains("w.xlsx: a spreadsheet file cannot be written"), "{stderr}");
    assert_eq!(std::fs::read_to_string(path).unwrap(), text);
    assert!(!folder.path().join("w.xlsx").exists());
}

#[test]
fn predict_says_what_it_has_not_learnt() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "clinic.csv", &clinic("ward", |i| ["a", "b"][i / 7 % 2].to_owned()));
    mnar(&folder, &["fit", "clinic.csv", "--label", "diagnosis", "--epochs", "2", "--no-baseline", "--quiet"], 0);
    write(&folder, "new.csv", "age;crp;hospital;ward\n30;1.5;East;a\n40;;North;b\n50;2.5;WEST;a\n");
    let (_, stderr) = mnar(&folder, &["predict", "clinic-run", "new.csv", "-o", "out.csv"], 0);
    let unknown = "note: 2 rows have a value of `hospital` that was met at most once in training, such as `East`";
    assert!(stderr.contains(unknown), "{stderr}");
    assert!(stderr.contains("note: `crp` is missing in 1 row, and never was in training"), "{stderr}");
    mnar(&folder, &["predict", "clinic-run", "clinic.csv", "-o", "out2.csv"], 0);
    let (_, stderr) = mnar(&folder, &["predict", "clinic-run", "clinic.csv", "-o", "clinic.csv"], 2);
    assert!(stderr.contains("would replace it"), "{stderr}");
}

#[test]
fn numbers_that_were_written_for_people_are_pointed_out() {
    let folder = tempfile::tempdir().unwrap();
    let inspect = ["inspect", "clinic.csv", "--label", "diagnosis"];
    write(&folder, "clinic.csv", &clinic("cost", |i| format!("{}.{:02} EUR", 10 + i, i % 100)));
    let (text, _) = mnar(&folder, &inspect, 0);
    assert!(text.contains("column `cost` holds numbers with a unit or a sign, such as `"), "{text}");
    let (_, stderr) = mnar(&folder, &["estimate", "clinic.csv", "--label", "diagnosis", "--features", "all"], 2);
    assert!(stderr.contains("write the numbers alone, or leave the column out"), "{stderr}");
    assert!(stderr.contains("hint: --ignore cost"), "{stderr}");
    write(&folder, "clinic.csv", &clinic("sat", |i| format!("{}%", 80 + i % 20)));
    let (text, _) = mnar(&folder, &inspect, 0);
    assert!(text.contains("`sat` was read as names, but holds numbers with a unit or a sign, such as `80%`"), "{text}");
    write(
        &folder,
        "clinic.csv",
        &clinic("steps", |i| if i % 4 == 0 { "987".into() } else { format!("{}.{:03}", 1 + i % 8, i) }),
    );
    let (text, _) = mnar(&folder, &inspect, 0);
    assert!(
        text.contains("the points in `steps` were read as decimal points; if they stand between thousands"),
        "{text}"
    );
    write(&folder, "clinic.csv", &clinic("ratio", |i| format!("{}.{:03}", 1 + i % 8, i)));
    let (text, _) = mnar(&folder, &inspect, 0);
    assert!(!text.contains("thousands"), "{text}");
}

#[test]
fn columns_that_come_with_the_label_are_pointed_out() {
    let folder = tempfile::tempdir().unwrap();
    let filled = |i: usize| (i * 13 % 10) < if i.is_multiple_of(3) { 7 } else { 3 };
    write(
        &folder,
        "clinic.csv",
        &clinic("biopsy", |i| if filled(i) { ["x", "y"][i % 2].into() } else { String::new() }),
    );
    let (text, _) = mnar(&folder, &["inspect", "clinic.csv", "--label", "diagnosis"], 0);
    assert!(text.contains("`biopsy` tells exactly which rows are labelled"), "{text}");
    write(&folder, "clinic.csv", &clinic("ward", |_| "a".into()).replace(";well\n", ";\n"));
    let (text, _) = mnar(&folder, &["inspect", "clinic.csv", "--label", "diagnosis"], 0);
    assert!(text.contains("only `sick` is ever labelled") && !text.contains("problem"), "{text}");
}

#[test]
fn what_is_said_to_be_known_must_fit_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "y,p_a,p_b\n".to_owned();
    for i in 0..400 {
        let p = 0.1 + 0.8 * f64::from((i * 37 % 101) as u32) / 100.0;
        let label = ["a", "b", "", "", ""][i % 5];
        writeln!(text, "{label},{p},{}", 1.0 - p).unwrap();
    }
    write(&folder, "p.csv", &text);
    let estimate = ["estimate", "p.csv", "--label", "y", "-q", "--format", "json", "--method"];
    let (json, _) = mnar(&folder, &[&estimate[..], &["known", "--phi", "a=0.01,b=0.9"]].concat(), 0);
    assert!(json.contains("the given phi contradict the data: with them the labels stand for 8089 rows"), "{json}");
    let (json, _) = mnar(&folder, &[&estimate[..], &["known", "--phi", "a=0.4,b=0.4"]].concat(), 0);
    assert!(!json.contains("contradict"), "{json}");
    let (json, _) = mnar(&folder, &[&estimate[..], &["moments", "--shares", "a=0.05,b=0.95"]].concat(), 0);
    let says = "20.0% of all rows carry the label `a`, whose share is said to be 5.0%";
    assert!(json.contains(says) && !json.contains("no unlabelled row seems to belong there"), "{json}");
}
