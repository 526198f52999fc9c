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

/// The words after `hint: ` of the first such line.
fn hint(said: &str) -> Vec<&str> {
    let line = said.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap_or_else(|| panic!("{said}"));
    line.split(' ').collect()
}

#[test]
fn labels_in_several_spellings_are_merged_by_pasting_the_hint() {
    let folder = tempfile::tempdir().unwrap();
    let plain = clinic("ward", |i| ["a", "b"][i / 7 % 2].to_owned());
    let mut spelt = String::new();
    for (i, line) in plain.lines().enumerate() {
        let line = match i / 3 % 3 {
            0 => line.replace(";sick", ";Sick").replace(";well", ";WELL"),
            1 => line.replace(";sick", ";sick ").replace(";well", ";Well"),
            _ => line.to_owned(),
        };
        writeln!(spelt, "{line}").unwrap();
    }
    write(&folder, "clinic.csv", &spelt);
    let estimate = ["estimate", "clinic.csv", "--label", "diagnosis", "--features", "all", "--replicates", "8"];
    let (_, stderr) = mnar(&folder, &estimate, 0);
    assert!(stderr.contains("`WELL`, `Well`, `well` differ only by case, and are kept apart"), "{stderr}");
    assert_eq!(stderr.matches("hint: ").count(), 1, "{stderr}");
    let (json, stderr) = mnar(&folder, &[&estimate[..], &hint(&stderr), &["--format", "json"]].concat(), 0);
    let found: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(found["classes"].as_array().unwrap().len(), 2);
    assert!(stderr.contains("were read as `"), "{stderr}");
    let (text, _) = mnar(&folder, &["inspect", "clinic.csv", "--label", "diagnosis"], 0);
    assert_eq!(hint(&text), ["--merge-labels"]);
    let (text, _) = mnar(&folder, &["inspect", "clinic.csv", "--label", "diagnosis", "--merge-labels"], 0);
    assert!(text.ends_with("--features all --merge-labels\n"), "{text}");
    // From a settings file, and kept with the run.
    write(&folder, "settings.toml", "label = \"diagnosis\"\nmerge-labels = true\nepochs = 1\nreplicates = 8\n");
    mnar(&folder, &["fit", "clinic.csv", "--settings", "settings.toml", "--no-baseline", "-q"], 0);
    let settings = std::fs::read_to_string(folder.path().join("clinic-run/settings.toml")).unwrap();
    assert!(settings.contains("merge-labels = true"), "{settings}");
    // Another run in the same folder is refused with a folder that is free.
    let again = ["fit", "clinic.csv", "--settings", "settings.toml", "--no-baseline", "-q"];
    let (_, stderr) = mnar(&folder, &again, 2);
    assert_eq!(hint(&stderr), ["--out", "clinic-run-2"]);
    mnar(&folder, &[&again[..], &hint(&stderr)].concat(), 0);
    assert!(folder.path().join("clinic-run-2/report.json").exists());
}

#[test]
fn texts_among_numbers_are_cured_by_pasting_the_hint() {
    let folder = tempfile::tempdir().unwrap();
    let dose = |i: usize| if i == 40 { "vieux".to_owned() } else { (i * 11 % 70).to_string() };
    write(&folder, "clinic.csv", &clinic("dose", dose));
    let estimate = ["estimate", "clinic.csv", "--label", "diagnosis", "--features", "all", "--replicates", "8"];
    let (_, stderr) = mnar(&folder, &estimate, 2);
    assert!(stderr.contains("row 41, column `dose`: `vieux` is not a number"), "{stderr}");
    assert_eq!(hint(&stderr), ["--missing", "vieux"]);
    mnar(&folder, &[&estimate[..], &hint(&stderr)].concat(), 0);
    let often = |i: usize| if i.is_multiple_of(12) { "unknown".to_owned() } else { dose(i) };
    write(&folder, "clinic.csv", &clinic("dose", often).replace("vieux", "50"));
    let (_, stderr) = mnar(&folder, &estimate, 0);
    let says = "`dose` was read as names, because 25 of its 300 values are not numbers: `unknown` (25 rows)";
    assert!(stderr.contains(says), "{stderr}");
    let (text, _) = mnar(&folder, &["inspect", "clinic.csv", "--label", "diagnosis"], 0);
    assert!(text.contains(says) && text.contains("\nhint: --missing unknown\nhint: --categorical dose\n"), "{text}");
}

#[test]
fn rows_above_the_header_are_skipped_by_pasting_the_hint() {
    let folder = tempfile::tempdir().unwrap();
    let plain = clinic("ward", |i| ["a", "b"][i / 7 % 2].to_owned());
    write(&folder, "plain.csv", &plain);
    write(&folder, "clinic.csv", &format!("Clinic export, 2024\n\n{plain}"));
    let commands: [&[&str]; 4] = [
        &["inspect", "clinic.csv", "--label", "diagnosis"],
        &["estimate", "clinic.csv", "--label", "diagnosis", "--features", "all", "--replicates", "8", "-q"],
        &["fit", "clinic.csv", "--label", "diagnosis", "--epochs", "1", "--replicates", "8", "--no-baseline", "-q"],
        &["predict", "clinic-run", "clinic.csv", "-o", "predicted.csv"],
    ];
    for command in commands {
        let (_, stderr) = mnar(&folder, command, 2);
        assert!(stderr.contains("row 3 seems to (age, crp, hospital, ward, diagnosis)"), "{command:?}: {stderr}");
        assert_eq!(hint(&stderr), ["--skip-rows", "2"], "{command:?}");
        mnar(&folder, &[command, &hint(&stderr)].concat(), 0);
    }
    let simulate = ["--label", "diagnosis", "--phi", "0.5,0.5", "-o"];
    mnar(&folder, &[&["simulate", "plain.csv"], &simulate[..], &["a.csv"]].concat(), 0);
    mnar(&folder, &[&["simulate", "clinic.csv"], &simulate[..], &["b.csv", "--skip-rows", "2"]].concat(), 0);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("a.csv"), read("b.csv"));
    let (text, _) = mnar(&folder, &["inspect", "clinic.csv", "--label", "diagnosis", "--skip-rows", "2"], 0);
    assert!(text.ends_with("--features all --skip-rows 2\n"), "{text}");
}

#[test]
fn a_demo_replaces_nothing_but_a_demo() {
    let folder = tempfile::tempdir().unwrap();
    let demo = ["demo", "--dataset", "breast-cancer"];
    std::fs::create_dir(folder.path().join("mnar-demo")).unwrap();
    let mine = write(&folder, "mnar-demo/report.html", "mine");
    let (_, stderr) = mnar(&folder, &demo, 2);
    assert!(stderr.contains("mnar-demo is not empty"), "{stderr}");
    assert_eq!(hint(&stderr), ["--out", "mnar-demo-2"]);
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine");
    let second = [&demo[..], &hint(&stderr)].concat();
    let (_, stderr) = mnar(&folder, &second, 0);
    assert!(!stderr.contains("replaced"), "{stderr}");
    let (_, stderr) = mnar(&folder, &second, 0);
    assert!(stderr.contains("note: the report of the last demo in mnar-demo-2 is replaced"), "{stderr}");
    write(&folder, "mnar-demo-2/settings.toml", "");
    let (_, stderr) = mnar(&folder, &second, 2);
    assert!(stderr.contains("mnar-demo-2 holds a run that is not a demo"), "{stderr}");
    assert_eq!(hint(&stderr), ["--out", "mnar-demo-3"]);
}

#[test]
fn what_was_typed_stays_on_one_line() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "clinic.csv", &clinic("ward", |i| ["a", "b"][i / 7 % 2].to_owned()));
    let base = ["estimate", "clinic.csv", "--label", "diagnosis", "-q", "--features"];
    let long = "x".repeat(4000);
    let many = (0..3000).map(|i| format!("c{i}")).collect::<Vec<_>>().join(",");
    for (features, given) in [("age\nfoo", "none"), ("all", "a\nb"), (&long, "none"), (&many, "none"), ("all", &many)] {
        let (_, stderr) = mnar(&folder, &[&base[..], &[features, "--given", given]].concat(), 2);
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.len() < 300, "{stderr}");
    }
}
