//! `mnar estimate --imputed` as a user meets it.
#![allow(clippy::unwrap_used)]

use assert_cmd::Command;
use std::fmt::Write as _;

fn mnar(arguments: &[&str]) -> std::process::Output {
    Command::cargo_bin("mnar").unwrap().args(arguments).output().unwrap()
}

#[test]
fn columns_differ_on_rows_without_a_label_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path().join("p.csv"), folder.path().join("labels.csv"));
    let mut text = "patient,y,p_a,p_b\n".to_owned();
    for i in 0..400 {
        let b = i % 3 == 0;
        let p = if b == (i * 7 % 10 != 0) { 0.8 } else { 0.2 };
        let labelled = (i * 13 % 97) as f64 / 97.0 < if b { 0.5 } else { 0.15 };
        writeln!(text, "id{i},{},{},{p}", if !labelled { "" } else { ["a", "b"][usize::from(b)] }, 1.0 - p).unwrap();
    }
    std::fs::write(&path, &text).unwrap();
    let (path, out) = (path.to_str().unwrap(), out.to_str().unwrap());
    let words =
        ["estimate", path, "--label", "y", "--id", "patient", "--imputed", out, "--imputations", "6", "--quiet"];
    let run = || {
        let output = mnar(&words);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::read_to_string(out).unwrap()
    };
    let written = run();
    assert_eq!(written, run(), "the seed decides");
    let mut lines = written.lines();
    let heading = "patient,label,imputed_1,imputed_2,imputed_3,imputed_4,imputed_5,imputed_6";
    assert_eq!(lines.next(), Some(heading));
    let (mut rows, mut varied, mut of_b) = (0, 0, 0);
    for (line, given) in lines.zip(text.lines().skip(1)) {
        let cells: Vec<&str> = line.split(',').collect();
        let given: Vec<&str> = given.split(',').collect();
        assert_eq!((cells[0], cells[1]), (given[0], given[1]));
        let same = cells[2..].iter().all(|cell| *cell == cells[2]);
        match cells[1] {
            "" => varied += usize::from(!same),
            label => assert!(same && cells[2] == label, "{line}"),
        }
        of_b += cells[2..].iter().filter(|cell| **cell == "b").count();
        rows += 1;
    }
    assert_eq!(rows, 400);
    assert!(varied > 30, "{varied}");
    // The draws have the share of the estimate: the labels have far more of b.
    let output = mnar(&["estimate", path, "--label", "y", "--format", "json", "--quiet"]);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let (share, naive) = (found["prevalence"][1].as_f64().unwrap(), found["labelled_per_class"][1].as_f64().unwrap());
    assert!((of_b as f64 / 2400.0 - share).abs() < 0.05, "{of_b} {share}");
    assert!(naive / found["n_labelled"].as_f64().unwrap() > share + 0.1);
    let alone = mnar(&["estimate", path, "--label", "y", "--imputations", "6"]);
    assert_eq!(alone.status.code(), Some(2));
}
