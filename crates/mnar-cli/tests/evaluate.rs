//! `mnar evaluate` as a user meets it.
#![allow(clippy::unwrap_used)]

use assert_cmd::Command;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;
use tempfile::TempDir;

fn mnar(arguments: &[&str]) -> std::process::Output {
    Command::cargo_bin("mnar").unwrap().args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = mnar(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Class b is labelled five times as often as a; every tenth row is scored for the wrong class.
fn table(folder: &TempDir, complete: bool) -> PathBuf {
    let mut text = "y,p_a,p_b,q_b,q_a,doctor,site\n".to_owned();
    for i in 0..600 {
        let b = i % 3 == 0;
        let sure = 0.6 + 0.39 * ((i * 37 % 101) as f64 / 101.0);
        let p_b = if b == (i * 7 % 10 != 0) { sure } else { 1.0 - sure };
        let labelled = complete || (i * 13 % 97) as f64 / 97.0 < if b { 0.5 } else { 0.1 };
        let label = if !labelled {
            ""
        } else if b {
            "b"
        } else {
            "a"
        };
        let doctor = if i % 4 == 0 {
            "a"
        } else if b {
            "b"
        } else {
            "a"
        };
        writeln!(text, "{label},{},{p_b},0.5,0.5,{doctor},{}", 1.0 - p_b, ["n", "s"][i % 2]).unwrap();
    }
    let path = folder.path().join("p.csv");
    std::fs::write(&path, text).unwrap();
    path
}

fn metric<'a>(found: &'a Value, name: &str, class: Option<&str>, model: &str) -> &'a Value {
    let metrics = found["metrics"].as_array().unwrap();
    let is = |m: &&Value| {
        m["name"] == name
            && m["class"].as_str() == class
            && m["model"] == model
            && m["group"].is_null()
            && m["population"] == "all"
    };
    metrics.iter().find(is).unwrap()
}

#[test]
fn metrics_of_models_and_decisions_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(&folder, false);
    let path = path.to_str().unwrap();
    let more = ["--model", "q_", "--decision", "doctor", "--by", "site", "--replicates", "20", "--quiet"];
    let mut words = vec!["evaluate", path, "--label", "y", "--format", "json"];
    words.extend(more);
    let found = json(&words);
    for name in ["accuracy", "balanced_accuracy", "f1", "auc", "average_precision", "log_loss", "brier"] {
        let metric = metric(&found, name, None, "p_");
        let (low, high) = (metric["ci95"][0].as_f64().unwrap(), metric["ci95"][1].as_f64().unwrap());
        let value = metric["corrected"].as_f64().unwrap();
        assert!(low <= value && value <= high, "{metric}");
    }
    assert!(metric(&found, "prevalence", Some("b"), "p_")["corrected"].as_f64().unwrap() < 0.45);
    assert!(metric(&found, "prevalence", Some("b"), "p_")["naive"].as_f64().unwrap() > 0.6);
    assert_eq!(metric(&found, "auc", None, "q_")["corrected"].as_f64().unwrap(), 0.5);
    assert!(found["metrics"].as_array().unwrap().iter().any(|m| m["group"] == "n" && m["population"] == "unlabelled"));
    assert!(found["differences"].as_array().unwrap().iter().any(|d| d["model"] == "doctor" && d["than"] == "p_"));
    assert_eq!(found["phi"].as_array().unwrap().len(), 2);
    let mut words = vec!["evaluate", path, "--label", "y"];
    words.extend(more);
    let text = String::from_utf8(mnar(&words).stdout).unwrap();
    assert!(text.contains("naive") && text.contains("corrected") && text.contains("95% interval"), "{text}");
    assert!(
        text.lines()
            .filter(|line| !line.starts_with("warning") && !line.starts_with("caution"))
            .all(|line| { line.chars().count() <= 80 })
    );
}

#[test]
fn a_known_mechanism_and_complete_labels() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(&folder, false);
    let path = path.to_str().unwrap();
    let words = ["evaluate", path, "--label", "y", "--phi", "a=0.1,b=0.5", "--weighting-alone", "--format", "json"];
    let found = json(&words);
    assert_eq!(found["method"], "known");
    assert_eq!(found["augmented"], false);
    let complete = table(&folder, true);
    let found = json(&["evaluate", complete.to_str().unwrap(), "--label", "y", "--format", "json"]);
    let accuracy = metric(&found, "accuracy", None, "p_");
    assert!((accuracy["corrected"].as_f64().unwrap() - 0.9).abs() < 1e-12, "{accuracy}");
    assert_eq!(accuracy["corrected"], accuracy["naive"]);
}

#[test]
fn what_cannot_be_evaluated_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(&folder, false);
    let path = path.to_str().unwrap();
    let nowhere = folder.path().join("nowhere");
    let nowhere = nowhere.to_str().unwrap();
    for (more, said) in [
        (["--model", "z_"], "z_"),
        (["--decision", "site"], "is not one of the classes"),
        (["--by", "hospital"], "hospital"),
        (["--run", nowhere], "no finished run"),
        (["--phi", "a=0.1"], "phi"),
    ] {
        let output = mnar(&["evaluate", path, "--label", "y", more[0], more[1]]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {stderr}");
        assert!(stderr.contains(said), "{more:?}: {stderr}");
    }
}

#[test]
fn a_page_shows_metrics_and_curves() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(&folder, false);
    let page = folder.path().join("page.html");
    let words =
        ["evaluate", path.to_str().unwrap(), "--label", "y", "--model", "q_", "--by", "site", "--replicates", "20"];
    let output = mnar(&[&words[..], &["--report", page.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // What is printed does not depend on the page.
    assert_eq!(output.stdout, mnar(&words).stdout);
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-"));
    for part in ["id=\"figure-roc\"", "id=\"figure-calibration\"", "id=\"groups\"", "q_ less p_", "naive", "corrected"]
    {
        assert!(html.contains(part), "{part}");
    }
    // Every number on the page is in the JSON of the page.
    let json = html.split_once("id=\"report-data\">").unwrap().1.split_once("</script>").unwrap().0;
    let found: Value = serde_json::from_str(json).unwrap();
    let mut paths = 0;
    for part in html.split("data-path=\"").skip(1) {
        let (path, rest) = part.split_once("\" data-value=\"").unwrap();
        let value: f64 = rest.split_once('"').unwrap().0.parse().unwrap();
        assert_eq!(found.pointer(&format!("/{}", path.replace('.', "/"))).unwrap().as_f64(), Some(value), "{path}");
        paths += 1;
    }
    assert!(paths > 50, "{paths}");
}

#[test]
fn an_audit_replaces_the_mechanism() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(&folder, true);
    // Every eighth row was drawn at random; of the others, class b has its labels and a loses most.
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines = text.lines();
    let mut with = format!("{},audit\n", lines.next().unwrap());
    for (i, line) in lines.enumerate() {
        let audited = i * 5 % 8 == 0;
        let (label, rest) = line.split_once(',').unwrap();
        let kept = audited || label == "b" || i % 7 == 0;
        writeln!(with, "{},{rest},{}", if kept { label } else { "" }, if audited { "yes" } else { "" }).unwrap();
    }
    std::fs::write(&path, with).unwrap();
    let path = path.to_str().unwrap();
    let found = json(&["evaluate", path, "--label", "y", "--audit", "audit", "--replicates", "30", "--format", "json"]);
    assert_eq!((found["method"].as_str(), found["n_labelled"].as_u64()), (Some("audit"), Some(75)));
    let share = metric(&found, "prevalence", Some("b"), "p_");
    assert!((share["corrected"].as_f64().unwrap() - 1.0 / 3.0).abs() < 0.06, "{share}");
    assert!(share["naive"].as_f64().unwrap() > 0.7, "{share}");
    let output = mnar(&["evaluate", path, "--label", "y", "--audit", "audit", "--phi", "a=0.1,b=0.9"]);
    assert_eq!(output.status.code(), Some(2));
}

/// A table without probabilities is one of features, and a second model that is missing is not.
#[test]
fn hints_follow_what_the_table_holds() {
    let folder = tempfile::tempdir().unwrap();
    let features = folder.path().join("f.csv");
    std::fs::write(&features, "y,age,bmi\na,1,2\nb,2,3\n,3,4\n").unwrap();
    let stderr = |words: &[&str]| String::from_utf8(mnar(words).stderr).unwrap();
    let said = stderr(&["evaluate", features.to_str().unwrap(), "--label", "y"]);
    assert!(said.contains("hint: --features all"), "{said}");
    let path = table(&folder, false);
    let said = stderr(&["evaluate", path.to_str().unwrap(), "--label", "y", "--proba", "zz_"]);
    assert!(!said.contains("--features"), "{said}");
    let said = stderr(&["evaluate", path.to_str().unwrap(), "--label", "y", "--model", "zz_"]);
    assert!(said.contains("zz_") && !said.contains("hint"), "{said}");
}
