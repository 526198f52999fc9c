//! The command as a user meets it: results, bad input, exit codes, and nothing half-written.
#![allow(clippy::unwrap_used)]

use assert_cmd::Command;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn mnar(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("mnar").unwrap();
    command.args(arguments);
    command
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn write(folder: &TempDir, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn json(arguments: &[&str]) -> Value {
    let output = mnar(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs, expects exit code 2, nothing on stdout, no panic, and one message with the given words.
fn refused(arguments: &[&str], words: &[&str]) {
    let output = mnar(arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    for word in words {
        assert!(stderr.contains(word), "{arguments:?}: no `{word}` in: {stderr}");
    }
}

/// A table of predictions: class b is labelled about five times as often as class a. No random numbers are needed.
fn predictions(rows: usize) -> String {
    let mut text = "id,y,p_a,p_b,fold\n".to_owned();
    for i in 0..rows {
        let b = i % 3 == 0;
        let confidence = 0.7 + 0.29 * ((i * 37 % 101) as f64 / 101.0);
        // One row in ten is scored for the wrong class.
        let p_b = if b == (i * 7 % 10 != 0) { confidence } else { 1.0 - confidence };
        let labelled = (i * 13 % 97) as f64 / 97.0 < if b { 0.5 } else { 0.1 };
        let label = match (labelled, b) {
            (false, _) => "",
            (true, true) => "b",
            (true, false) => "a",
        };
        writeln!(text, "{i},{label},{},{p_b},{}", 1.0 - p_b, i * 11 % 5).unwrap();
    }
    text
}

#[test]
fn estimate_has_the_contract_keys_and_finds_the_mechanism() {
    let folder = folder();
    let table = write(&folder, "p.csv", predictions(3000));
    let table = table.to_str().unwrap();
    let result = json(&["estimate", table, "--label", "y", "--fold", "fold", "--format", "json"]);
    for key in [
        "classes",
        "n",
        "n_labelled",
        "labelled_per_class",
        "phi",
        "phi_se",
        "phi_ci95",
        "prevalence",
        "method",
        "converged",
        "seed",
    ] {
        assert!(result.get(key).is_some(), "no {key}");
    }
    assert_eq!(result["n"], 3000);
    assert_eq!(result["converged"], true);
    assert_eq!(result["interval"]["conditional_on_classifier"], true);
    let phi: Vec<f64> = result["phi"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    assert!((phi[0] - 0.1).abs() < 0.03 && (phi[1] - 0.5).abs() < 0.08, "{phi:?}");
    for (k, truth) in [0.1, 0.5].into_iter().enumerate() {
        let ends = &result["phi_ci95"][k];
        assert!(ends[0].as_f64().unwrap() < truth && truth < ends[1].as_f64().unwrap(), "{ends}");
    }
    // The same seed gives the same result, another seed another bootstrap.
    let again = json(&["estimate", table, "--label", "y", "--fold", "fold", "--format", "json"]);
    assert_eq!(result, again);
    let other = json(&["estimate", table, "--label", "y", "--fold", "fold", "--format", "json", "--seed", "1"]);
    assert_ne!(result["phi_se"], other["phi_se"]);
    for method in ["information", "profile"] {
        let result = json(&["estimate", table, "--label", "y", "--interval", method, "--format", "json"]);
        assert!(result["phi_ci95"][0][0].as_f64().unwrap() > 0.0, "{method}");
    }
}

#[test]
fn text_output_has_a_verdict_and_fits_the_terminal() {
    let folder = folder();
    let table = write(&folder, "p.csv", predictions(1500));
    let output =
        mnar(&["estimate", table.to_str().unwrap(), "--label", "y", "--sensitivity", "0.5,1,2", "--width", "0.05"]);
    let output = { output }.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("`b` is ") && text.contains("\nWhat was checked?  "), "{text}");
    assert!(text.contains("\nWho got labelled?  Labels depend on the class, or on something related to it"), "{text}");
    assert!(text.contains("Labels needed") && text.contains("by a factor of"));
    let table_lines = text.lines().filter(|line| line.starts_with("  a ") || line.starts_with("  b "));
    assert!(
        table_lines.clone().count() >= 6 && table_lines.into_iter().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

fn result_of(table: &str) -> Value {
    json(&["test", table, "--label", "y", "--format", "json"])
}

#[test]
fn the_test_rejects_and_says_so_by_its_exit_code() {
    let folder = folder();
    let table = write(&folder, "p.csv", predictions(1500));
    let table = table.to_str().unwrap();
    let result = json(&["test", table, "--label", "y", "--fold", "fold", "--format", "json"]);
    assert_eq!(result["test"], "permutation");
    assert_eq!(result["reject"], true);
    assert_eq!(result["df"], 1);
    assert!(result["p_value"].as_f64().unwrap() < 0.001 && result["statistic"].as_f64().unwrap() > 10.0);
    assert_eq!(mnar(&["test", table, "--label", "y", "--fail-on-reject"]).output().unwrap().status.code(), Some(1));
    assert_eq!(mnar(&["test", table, "--label", "y"]).output().unwrap().status.code(), Some(0));
    for method in ["lrt", "lrt-bootstrap", "moments-bootstrap"] {
        let result =
            json(&["test", table, "--label", "y", "--method", method, "--replicates", "39", "--format", "json"]);
        assert!(result["p_value"].as_f64().unwrap() < 0.05, "{method}: {result}");
    }
    let text = String::from_utf8(mnar(&["test", table, "--label", "y"]).output().unwrap().stdout).unwrap();
    assert!(text.starts_with("Labels depend on the class, or on something related to it (p"), "{text}");
    assert_eq!(result_of(table)["verdict"]["kind"], "by-class");
}

#[test]
fn simulate_then_estimate_from_features() {
    let folder = folder();
    let mut data = "x1,x2,naïve label\n".to_owned();
    for i in 0..3000usize {
        let class = i % 3;
        let noise = |a: usize| ((i * a % 211) as f64 / 211.0 - 0.5) * 3.0;
        let (x, y) = [(0.0, 1.5), (1.5, -0.5), (-1.5, -0.5)][class];
        writeln!(data, "{},{},{}", x + noise(71), y + noise(113), ["“é”", "b c", "🙂"][class]).unwrap();
    }
    let data = write(&folder, "data.csv", data);
    let masked = folder.path().join("masked.csv");
    let masked = masked.to_str().unwrap();
    let summary = json(&[
        "simulate",
        data.to_str().unwrap(),
        "--label",
        "naïve label",
        "--phi",
        "“é”=0.4,b c=0.1,🙂=0.2",
        "--keep-truth",
        "truth",
        "-o",
        masked,
        "--seed",
        "4",
        "--format",
        "json",
    ]);
    assert_eq!(summary["rows_per_class"], serde_json::json!([1000, 1000, 1000]));
    let truth: Vec<f64> = summary["phi"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    let result = json(&["estimate", masked, "--label", "naïve label", "--features", "x1,x2", "--format", "json"]);
    // All columns but one are the others.
    let quick = |features: &str| {
        [
            "estimate",
            masked,
            "--label",
            "naïve label",
            "--features",
            features,
            "--interval",
            "information",
            "--format",
            "json",
        ]
        .map(str::to_owned)
    };
    let (all, named) = (quick("all"), quick("x1,x2"));
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    refused(&all, &["leave it out with --ignore truth"]);
    let ignored = json(&[&all[..], &["--ignore", "truth"]].concat());
    assert_eq!(ignored["phi"], json(&named.iter().map(String::as_str).collect::<Vec<_>>())["phi"]);
    assert_eq!(result["classes"], summary["classes"]);
    assert_eq!(result["labelled_per_class"], summary["labelled_per_class"]);
    assert_eq!(result["interval"]["conditional_on_classifier"], false);
    for k in 0..3 {
        let phi = result["phi"][k].as_f64().unwrap();
        assert!((phi / truth[k] - 1.0).abs() < 0.4, "{phi} {}", truth[k]);
    }
    let test = json(&["test", masked, "--label", "naïve label", "--features", "x1,x2", "--format", "json"]);
    assert_eq!(test["reject"], true);
    // The text column `truth` is not a feature.
    refused(&["estimate", masked, "--label", "naïve label", "--features", "all"], &["truth"]);
}

#[test]
fn weights_are_those_of_the_printed_phi() {
    let folder = folder();
    let table = write(&folder, "p.csv", predictions(600));
    let weights = folder.path().join("w.csv");
    let result = json(&[
        "estimate",
        table.to_str().unwrap(),
        "--label",
        "y",
        "--interval",
        "information",
        "--format",
        "json",
        "--weights",
        weights.to_str().unwrap(),
    ]);
    let text = std::fs::read_to_string(weights).unwrap();
    assert_eq!(text.lines().next(), Some("row,label,weight_labelled_loss,weight_unlabelled_loss"));
    assert_eq!(text.lines().count(), 601);
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let (ell, h): (f64, f64) = (cells[2].parse().unwrap(), cells[3].parse().unwrap());
        match cells[1] {
            "" => assert_eq!((ell, h), (0.0, 1.0)),
            label => {
                let phi = result["phi"][usize::from(label == "b")].as_f64().unwrap();
                assert!((ell - 1.0 / phi).abs() < 1e-12 && (h + (1.0 - phi) / phi).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn replicate_weights_stand_beside_the_weights() {
    let folder = folder();
    let table = write(&folder, "p.csv", predictions(600));
    let weights = folder.path().join("w.csv");
    let (table, path) = (table.to_str().unwrap(), weights.to_str().unwrap());
    let arguments = ["estimate", table, "--label", "y", "--interval", "information", "--weights", path];
    json(&[&arguments[..], &["--replicate-weights", "5", "--format", "json"]].concat());
    let text = std::fs::read_to_string(&weights).unwrap();
    let header = "row,label,weight_labelled_loss,weight_unlabelled_loss,replicate_1,replicate_2,replicate_3,replicate_4,replicate_5";
    assert_eq!(text.lines().next(), Some(header));
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let positive = |cell: &&str| cell.parse::<f64>().unwrap() > 0.0;
        assert!(cells[4..].iter().all(|cell| positive(cell) != cells[1].is_empty()), "{line}");
    }
    refused(&["estimate", table, "--label", "y", "--replicate-weights", "5"], &["--weights"]);
    refused(&[&arguments[..], &["--replicate-weights", "1"]].concat(), &["replicate-weights"]);
}

#[test]
fn a_streamed_parquet_file_gives_the_same_estimate() {
    let folder = folder();
    let (mut y, mut columns, mut fold) = (Vec::new(), [Vec::new(), Vec::new()], Vec::new());
    let text = predictions(3000);
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        y.push(Some(cells[1]).filter(|label| !label.is_empty()));
        columns[0].push(cells[2].parse::<f64>().unwrap());
        columns[1].push(cells[3].parse::<f64>().unwrap());
        fold.push(cells[4].parse::<u64>().unwrap());
    }
    use mnar_data::Column;
    let path = folder.path().join("p.parquet");
    mnar_data::write_table(
        &path,
        &[
            ("y", Column::Texts(y)),
            ("p_a", Column::Numbers(&columns[0])),
            ("p_b", Column::Numbers(&columns[1])),
            ("fold", Column::Integers(&fold)),
        ],
    )
    .unwrap();
    let arguments =
        ["estimate", path.to_str().unwrap(), "--label", "y", "--interval", "information", "--format", "json"];
    let loaded = json(&arguments);
    let streamed = json(&[&arguments[..], &["--stream"]].concat());
    let test = ["test", path.to_str().unwrap(), "--label", "y", "--permutations", "1", "--format", "json"];
    let (in_memory, walked) = (json(&test), json(&[&test[..], &["--stream"]].concat()));
    for (here, there) in [("statistic", "statistic"), ("p_value_chi_square", "p_value")] {
        let (a, b) = (in_memory[here].as_f64().unwrap(), walked[there].as_f64().unwrap());
        assert!((a - b).abs() <= 1e-9 * a.abs(), "{here}: {a} {b}");
    }
    refused(&[&test[..], &["--stream", "--fold", "fold"]].concat(), &["--fold"]);
    for k in 0..2 {
        for key in ["phi", "phi_se", "prevalence"] {
            let (a, b) = (loaded[key][k].as_f64().unwrap(), streamed[key][k].as_f64().unwrap());
            assert!((a - b).abs() < 1e-9, "{key}: {a} {b}");
        }
    }
    // A file cut short, and one that is none.
    let bytes = std::fs::read(&path).unwrap();
    let cut = write(&folder, "cut.parquet", &bytes[..bytes.len() / 2]);
    refused(&["estimate", cut.to_str().unwrap(), "--label", "y"], &["cut.parquet"]);
    refused(&["estimate", cut.to_str().unwrap(), "--label", "y", "--stream"], &["cut.parquet"]);
    let fake = write(&folder, "fake.parquet", "y,p_a,p_b\na,0.5,0.5\n");
    refused(&["estimate", fake.to_str().unwrap(), "--label", "y"], &["fake.parquet"]);
}

#[test]
fn bad_tables_are_refused_with_one_clear_message() {
    let folder = folder();
    let cases: &[(&str, &str, &[&str])] = &[
        ("unknown column", "why,p_a,p_b\na,1,0\n", &["no column `y`", "why"]),
        ("no labels", "y,p_a,p_b\n,1,0\n,0,1\n", &["none of the 2 rows has a label"]),
        ("all labels", "y,p_a,p_b\na,1,0\nb,0,1\n", &["all 2 rows have a label"]),
        ("one class", "y,p_a\na,1\n,1\n", &["only one class, `a`"]),
        (
            "class without label",
            "y,p_a,p_b,p_c\na,1,0,0\nb,0,1,0\n,0,0,1\n,0,0,1\n",
            &["class `c` has no label", "2 unlabelled rows"],
        ),
        ("nan", "y,p_a,p_b\na,1,0\nb,NaN,1\n,0.5,0.5\n", &["row 2", "p"]),
        ("negative", "y,p_a,p_b\na,-0.1,1.1\nb,0,1\n,0.5,0.5\n", &["row 1", "-0.1"]),
        ("above one", "y,p_a,p_b\na,1,0\nb,0,1.5\n,0.5,0.5\n", &["row 2", "1.5"]),
        ("off the simplex", "y,p_a,p_b\na,1,0\nb,0,1\n,0.5,0.6\n", &["row 3", "sum to 1.1"]),
        ("ragged", "y,p_a,p_b\na,1,0\nb,0\n,0.5,0.5\n", &["row 2"]),
        ("empty", "", &["empty"]),
        ("header only", "y,p_a,p_b\n", &["no rows"]),
        ("duplicate columns", "y,p_a,p_a\na,1,0\n", &["p_a"]),
        ("unknown class", "y,p_a,p_b\na,1,0\nzebra,0,1\n,0.5,0.5\n", &["row 2", "zebra"]),
        ("text probability", "y,p_a,p_b\na,1,0\nb,zero,1\n,0.5,0.5\n", &["row 2", "zero"]),
        ("no probability column", "y,q_a,q_b\na,1,0\n,0,1\n", &["p_", "--proba"]),
    ];
    for (name, text, words) in cases {
        let path = write(&folder, &format!("{name}.csv"), text);
        let path = path.to_str().unwrap();
        for command in ["estimate", "test"] {
            refused(&[command, path, "--label", "y"], &[&[path], *words].concat());
        }
    }
    refused(&["estimate", "/nowhere/p.csv", "--label", "y"], &["/nowhere/p.csv"]);
    refused(&["estimate", folder.path().to_str().unwrap(), "--label", "y"], &[]);
    let binary = write(&folder, "binary.csv", [b'y', b',', b'p', 0, 0xff, 0xfe, b'\n', 0x80, b',', b'1', b'\n']);
    refused(&["estimate", binary.to_str().unwrap(), "--label", "y"], &["UTF-8"]);
}

#[test]
fn words_that_do_not_go_together_are_refused() {
    let folder = folder();
    let table = write(&folder, "p.csv", predictions(300));
    let table = table.to_str().unwrap();
    let base = ["estimate", table, "--label", "y"];
    let with = |more: &[&'static str], words: &[&str]| refused(&[&base[..], more].concat(), words);
    with(&["--method", "likelihood"], &["population"]);
    with(&["--method", "moments"], &["give the known shares"]);
    with(&["--method", "moments", "--shares", "a=0.5"], &["class `b`"]);
    with(&["--method", "moments", "--shares", "a=0.9,b=0.5"], &["sum"]);
    with(&["--method", "known"], &["phi and the method known"]);
    with(&["--method", "known", "--phi", "a=0.2,b=1.2"], &["phi is 1.2"]);
    with(&["--posterior", "population", "--method", "label-shift"], &["labelled posteriors"]);
    with(&["--posterior", "population", "--calibrate", "bcts"], &["calibrate"]);
    with(&["--prior-weight", "-1"], &["prior weight is -1"]);
    with(&["--replicates", "1"], &["replicates is 1"]);
    with(&["--method", "nonsense"], &["possible values"]);
    with(&["--sensitivity", "0"], &["odds factor"]);
    with(&["--stream"], &["p.csv", "walks over Parquet files", "leave out --stream"]);
    refused(&["test", table, "--label", "y", "--level", "2"], &["level is 2"]);
    // Nothing is written where the command fails.
    let out = folder.path().join("w.csv");
    refused(&[&base[..], &["--method", "known", "--weights", out.to_str().unwrap()]].concat(), &["phi and the method"]);
    refused(&["simulate", table, "--label", "y", "--phi", "a=0.5", "-o", out.to_str().unwrap()], &["class `b`"]);
    assert!(!out.exists());
    let nowhere = folder.path().join("no/such/folder/w.csv");
    refused(&[&base[..], &["--interval", "information", "--weights", nowhere.to_str().unwrap()]].concat(), &["w.csv"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "something was left behind");
}

#[test]
fn in_sample_predictions_are_noticed() {
    let folder = folder();
    // Labelled rows are scored with certainty, the others with doubt, whatever their class.
    let mut text = "y,p_a,p_b\n".to_owned();
    for i in 0..2000usize {
        let b = i % 2 == 0;
        let labelled = i * 13 % 97 < 20;
        let p = if labelled { 0.99 } else { 0.6 + 0.3 * ((i * 37 % 101) as f64 / 101.0) };
        let right = labelled || !(i * 7).is_multiple_of(10);
        let p_b = if b == right { p } else { 1.0 - p };
        writeln!(text, "{},{},{p_b}", if labelled { if b { "b" } else { "a" } } else { "" }, 1.0 - p_b).unwrap();
    }
    let table = write(&folder, "p.csv", text);
    let result = json(&["test", table.to_str().unwrap(), "--label", "y", "--format", "json"]);
    assert_eq!(result["in_sample"]["suspicious"], true);
    assert!(result["warnings"][0].as_str().unwrap().contains("column of their folds"), "{result}");
}

#[test]
fn the_demo_recovers_its_mechanism() {
    let folder = folder();
    for dataset in ["digits", "breast-cancer"] {
        let out = folder.path().join(dataset);
        let result = json(&["demo", "--dataset", dataset, "--format", "json", "--out", out.to_str().unwrap()]);
        let error = |of: &str| result["truth"][of].as_f64().unwrap();
        let (error, constant) = (error("phi_normalised_mse"), error("constant_normalised_mse"));
        assert!(error < 0.05 && error < constant / 4.0, "{dataset}: {error} {constant}");
        assert!(result["p_value"].as_f64().unwrap() < 0.05, "{dataset}");
        let page = std::fs::read_to_string(out.join("report.html")).unwrap();
        assert!(page.contains("Labels depend on the class"));
    }
}

/// The page is drawn again from report.json alone, with figures for a paper.
#[test]
fn a_report_is_drawn_again() {
    let folder = folder();
    let run = folder.path().join("run");
    let run_name = run.to_str().unwrap();
    mnar(&["demo", "--dataset", "breast-cancer", "-q", "--out", run_name]).assert().success();
    let before = std::fs::read_to_string(run.join("report.html")).unwrap();
    std::fs::remove_file(run.join("report.html")).unwrap();
    let figures = folder.path().join("figures");
    mnar(&["report", run_name, "--figures", figures.to_str().unwrap()]).assert().success();
    assert_eq!(std::fs::read_to_string(run.join("report.html")).unwrap(), before);
    assert!(std::fs::read_to_string(figures.join("phi.svg")).unwrap().contains("malignant"));

    let empty = folder.path().join("empty");
    let output = mnar(&["report", empty.to_str().unwrap()]).assert().code(2).get_output().clone();
    assert!(String::from_utf8_lossy(&output.stderr).contains("holds no finished run"));
}

/// Several runs are compared on a page of their own.
#[test]
fn runs_are_compared() {
    let folder = folder();
    let runs = ["first", "second"].map(|name| folder.path().join(name));
    for (seed, run) in runs.iter().enumerate() {
        let seed = seed.to_string();
        let out = run.to_str().unwrap();
        mnar(&["demo", "--dataset", "breast-cancer", "-q", "--seed", &seed, "--out", out]).assert().success();
    }
    let page = folder.path().join("both.html");
    let [first, second] = [&runs[0], &runs[1]].map(|run| run.to_str().unwrap());
    let output = mnar(&["report", first, second, "-o", page.to_str().unwrap()]).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert!(text.contains("malignant") && text.contains("Settings that differ"), "{text}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("data-path=\"runs.1.report.prevalence.0\""));
    mnar(&["report", first, second, "--figures", "f"]).assert().code(2);
}

/// Predictions of a model of one's own have their page, too, with the numbers of the command.
#[test]
fn estimates_of_predictions_have_a_page() {
    let folder = folder();
    let table = write(&folder, "p.csv", predictions(600));
    let page = folder.path().join("page.html");
    let arguments = ["estimate", table.to_str().unwrap(), "--label", "y", "--format", "json"];
    let plain = json(&arguments);
    let with_page = json(&[&arguments[..], &["--report", page.to_str().unwrap()]].concat());
    assert_eq!(plain, with_page);
    let text = std::fs::read_to_string(&page).unwrap();
    let (_, embedded) = text.split_once("id=\"report-data\">").unwrap();
    let (embedded, _) = embedded.split_once("</script>").unwrap();
    let report: Value = serde_json::from_str(embedded).unwrap();
    assert_eq!((&report["phi"], &report["phi_ci95"]), (&plain["phi"], &plain["phi_ci95"]));
    let test = json(&["test", table.to_str().unwrap(), "--label", "y", "--format", "json"]);
    assert_eq!(report["p_value"], test["p_value"]);
    assert_eq!(report["interval"], plain["interval"]);
    assert_eq!(plain["interval"]["kind"], "bootstrap");
    assert!(plain["sensitivity"].is_null() && report["sensitivity"].as_array().unwrap().len() == 9);
}

#[test]
fn completions_and_manual_name_every_command() {
    for arguments in [&["completions", "bash"][..], &["man"][..]] {
        let output = mnar(arguments).assert().success().get_output().stdout.clone();
        let text = String::from_utf8(output).unwrap().to_lowercase();
        for command in ["demo", "estimate", "test", "fit", "predict", "simulate", "report"] {
            assert!(text.contains(command), "{arguments:?} {command}");
        }
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let folder = folder();
    let table = write(&folder, "p.csv", predictions(300));
    let program = Path::new(env!("CARGO_BIN_EXE_mnar"));
    let line = format!(
        "'{}' estimate '{}' --label y --interval information --format json | true; echo ${{PIPESTATUS[0]}}",
        program.display(),
        table.display()
    );
    let output = std::process::Command::new("bash").args(["-c", &line]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0", "{}", String::from_utf8_lossy(&output.stderr));
    let run = folder.path().join("run");
    mnar(&["demo", "--dataset", "breast-cancer", "-q", "--out", run.to_str().unwrap()]).assert().success();
    let line = format!("'{}' report '{}' | true; echo ${{PIPESTATUS[0]}}", program.display(), run.display());
    let output = std::process::Command::new("bash").args(["-c", &line]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0", "{}", String::from_utf8_lossy(&output.stderr));
}

/// A table of two classes and two sites, where the site alone decides who is labelled.
fn sites(n: usize) -> String {
    let mut text = "x1,x2,site,audit,y\n".to_owned();
    let mut state = 7u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    for _ in 0..n {
        let sick = uniform() < 0.35;
        let x1 = uniform() + uniform() + uniform() + if sick { 1.0 } else { 0.0 };
        let x2 = uniform() + uniform();
        let north = uniform() < 0.2 + 0.15 * x1;
        let labelled = uniform() < if north { 0.8 } else { 0.15 };
        let audit = uniform() < 0.1;
        let y = if labelled || audit { if sick { "sick" } else { "well" } } else { "" };
        let site = if north { "North" } else { "South" };
        text.push_str(&format!("{x1:.4},{x2:.4},{site},{},{y}\n", u8::from(audit)));
    }
    text
}

/// The column that decides is found, named and taken in; asked for, it gives the same; groups, audits and weights follow.
#[test]
fn columns_that_decide_are_found() {
    let folder = folder();
    let table = write(&folder, "clinic.csv", sites(1500));
    let table = table.to_str().unwrap();
    let features = ["--label", "y", "--features", "x1,x2,site", "--replicates", "40", "--format", "json"];
    let found = json(&[&["estimate", table][..], &features].concat());
    assert_eq!(found["labelling"]["given"][0], "site", "{found}");
    let share = found["prevalence"][0].as_f64().unwrap();
    assert!((share - 0.35).abs() < 0.12, "{share}");
    assert_eq!(found["labelling"]["class_enough"]["reference"], "refit");
    let asked = json(&[&["estimate", table][..], &features, &["--given", "site", "--by", "site"]].concat());
    assert_eq!(asked["labelling"]["given"], serde_json::json!(["site"]));
    assert_eq!(asked["labelling"]["found_here"], false);
    assert_eq!(asked["groups"].as_array().unwrap().len(), 2);
    let none = json(&[&["estimate", table][..], &features, &["--given", "none"]].concat());
    assert_eq!(none["verdict"]["kind"], "unclear");
    let test = json(&[&["test", table][..], &features].concat());
    assert_eq!(test["verdict"]["kind"], found["verdict"]["kind"]);
    let audited = json(&[&["estimate", table][..], &features, &["--audit", "audit"]].concat());
    let interval = &audited["prevalence_ci95"][0];
    assert!(interval[0].as_f64().unwrap() < 0.35 && 0.35 < interval[1].as_f64().unwrap(), "{interval}");
    let weights = folder.path().join("w.csv");
    let by_row = ["--given", "site", "--weights", weights.to_str().unwrap()];
    let arguments = [&["estimate", table][..], &features, &by_row].concat();
    json(&arguments);
    let text = std::fs::read_to_string(&weights).unwrap();
    let values: std::collections::BTreeSet<&str> =
        text.lines().skip(1).filter_map(|line| line.split(',').nth(2)).collect();
    // Two classes at two sites, and rows without a label.
    assert_eq!(values.len(), 5, "{values:?}");
}

#[test]
fn given_columns_that_cannot_be_used_are_named() {
    let folder = folder();
    let text = sites(300);
    let mut wide = String::new();
    for (i, line) in text.lines().enumerate() {
        let extra = if i == 0 {
            ",id,year,status".to_owned()
        } else {
            format!(",row{i},2020,{}", if line.ends_with(',') { "open" } else { "done" })
        };
        wide.push_str(&format!("{line}{extra}\n"));
    }
    let table = write(&folder, "wide.csv", wide);
    let table = table.to_str().unwrap();
    let base = ["estimate", table, "--label", "y", "--features", "x1,x2,site", "--interval", "information"];
    for (given, expected) in [
        ("hospital", "hospital"),
        ("id", "id"),
        ("year", "`year`"),
        ("status", "exactly which rows are labelled"),
        ("y", "the label"),
        ("x1,x2,site", ""),
    ] {
        let output = mnar(&[&base[..], &["--given", given]].concat()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        if expected.is_empty() {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(text.contains("nothing in the data identifies the effect of the class"), "{text}{stderr}");
        } else {
            assert_eq!(output.status.code(), Some(2), "{given}");
            assert!(stderr.contains(expected), "{given}: {stderr}");
        }
    }
}

/// A hint of `estimate --features` can be pasted.
#[test]
fn a_column_of_features_can_be_read_as_names() {
    let folder = folder();
    let text: String = sites(400)
        .lines()
        .enumerate()
        .map(|(i, line)| {
            format!(
                "{},{line}\n",
                if i == 0 {
                    "code".to_owned()
                } else if i == 9 {
                    "?x".to_owned()
                } else {
                    i.to_string()
                }
            )
        })
        .collect();
    let table = write(&folder, "codes.csv", text);
    let base =
        ["estimate", table.to_str().unwrap(), "--label", "y", "--features", "x1,x2,code", "--interval", "information"];
    let output = mnar(&base).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("hint: --categorical code"));
    assert!(mnar(&[&base[..], &["--missing", "?x"]].concat()).output().unwrap().status.success());
    let pasted = mnar(&[&base[..], &["--categorical", "code"]].concat()).output().unwrap();
    assert!(!String::from_utf8_lossy(&pasted.stderr).contains("unexpected argument"));
}

#[test]
fn labels_are_hidden_by_columns_too() {
    let folder = folder();
    let text: String = sites(1000)
        .lines()
        .map(|line| {
            let line = line.trim_end_matches(',');
            format!("{line}\n")
        })
        .filter(|line| line.ends_with("sick\n") || line.ends_with("well\n") || line.ends_with("y\n"))
        .collect();
    let table = write(&folder, "full.csv", text);
    let masked = folder.path().join("masked.csv");
    let arguments = [
        "simulate",
        table.to_str().unwrap(),
        "--label",
        "y",
        "--phi",
        "0.3,0.3",
        "--odds",
        "site:North=8",
        "--odds",
        "x2=1.5",
        "-o",
        masked.to_str().unwrap(),
    ];
    mnar(&arguments).assert().success();
    let text = std::fs::read_to_string(&masked).unwrap();
    let rate = |site: &str| {
        let rows: Vec<&str> = text.lines().filter(|line| line.contains(site)).collect();
        rows.iter().filter(|line| !line.ends_with(',')).count() as f64 / rows.len() as f64
    };
    assert!(rate("North") > rate("South") + 0.3, "{} {}", rate("North"), rate("South"));
    let wrong = mnar(&[
        "simulate",
        table.to_str().unwrap(),
        "--label",
        "y",
        "--phi",
        "0.3,0.3",
        "--odds",
        "site=3",
        "-o",
        "x.csv",
    ]);
    let output = { wrong }.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("site:North=3"));
}
