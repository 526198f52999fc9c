//! Folders and patterns of Parquet files that are walked over instead of loaded: the same results, and the same refusals.

#![allow(clippy::unwrap_used)] // helpers of tests are not seen as tests

use assert_cmd::Command;
use mnar_data::{Column, write_table};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

fn mnar(arguments: &[&str]) -> Output {
    Command::cargo_bin("mnar").unwrap().args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = mnar(&[arguments, &["--format", "json", "--quiet"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refused(arguments: &[&str]) -> String {
    let output = mnar(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?} {}", String::from_utf8_lossy(&output.stdout));
    assert!(output.stdout.is_empty(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn uniform(i: usize, salt: u64) -> f64 {
    let mut x = (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt.wrapping_mul(0xD1B5_4A32_D192_ED03);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Rows of which the sick and those of the North are labelled more often.
#[derive(Clone, Default)]
struct Rows {
    y: Vec<Option<&'static str>>,
    p: [Vec<f64>; 2],
    site: Vec<Option<&'static str>>,
    id: Vec<Option<String>>,
}

fn rows(range: std::ops::Range<usize>) -> Rows {
    let mut rows = Rows::default();
    for i in range {
        let p = uniform(i, 1);
        let (sick, north) = (uniform(i, 2) < p, uniform(i, 3) < 0.4);
        let phi = if sick { 0.5 } else { 0.15 } * if north { 1.0 } else { 0.5 };
        rows.y.push((uniform(i, 4) < phi).then_some(if sick { "sick" } else { "well" }));
        rows.p[0].push(p);
        rows.p[1].push(1.0 - p);
        rows.site.push(Some(if north { "North" } else { "South" }));
        rows.id.push(Some(format!("P{i}")));
    }
    rows
}

fn write(path: &Path, rows: &Rows) {
    let id = rows.id.iter().map(Option::as_deref).collect();
    let columns = [
        ("y", Column::Texts(rows.y.clone())),
        ("p_sick", Column::Numbers(&rows.p[0])),
        ("p_well", Column::Numbers(&rows.p[1])),
        ("site", Column::Texts(rows.site.clone())),
        ("id", Column::Texts(id)),
    ];
    write_table(path, &columns).unwrap();
}

/// The same rows in one file and in a folder of several, one of which is empty and one of which has no labels.
fn files() -> (TempDir, PathBuf, PathBuf) {
    let folder = TempDir::new().unwrap();
    let parts = folder.path().join("parts");
    std::fs::create_dir(&parts).unwrap();
    std::fs::write(parts.join("_SUCCESS"), "").unwrap();
    let one = folder.path().join("one.parquet");
    let mut all = rows(0..90_000);
    all.y[70_000..75_000].fill(None);
    write(&one, &all);
    for (number, range) in
        [0..20_000, 20_000..20_000, 20_000..70_000, 70_000..75_000, 75_000..90_000].iter().enumerate()
    {
        let part = Rows {
            y: all.y[range.clone()].to_vec(),
            p: all.p.clone().map(|column| column[range.clone()].to_vec()),
            site: all.site[range.clone()].to_vec(),
            id: all.id[range.clone()].to_vec(),
        };
        write(&parts.join(format!("part-{number}.parquet")), &part);
    }
    (folder, one, parts)
}

fn close(a: &Value, b: &Value, tolerance: f64, at: &str) {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{at}");
            a.iter().zip(b).for_each(|(a, b)| close(a, b, tolerance, at));
        }
        (Value::Object(a), Value::Object(b)) => {
            assert_eq!(a.len(), b.len(), "{at}");
            a.iter().for_each(|(key, a)| close(a, &b[key], tolerance, &format!("{at} {key}")));
        }
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert!((a - b).abs() <= tolerance * a.abs().max(1.0), "{at}: {a} {b}");
        }
        _ => assert_eq!(a, b, "{at}"),
    }
}

#[test]
fn a_folder_or_pattern_is_estimated_and_tested_as_one_file_in_memory() {
    let (folder, one, parts) = files();
    let pattern = parts.join("part-*.parquet");
    let one = one.to_str().unwrap();
    for several in [parts.to_str().unwrap(), pattern.to_str().unwrap()] {
        for given in ["none", "site"] {
            let (loaded, streamed) = (folder.path().join("loaded.csv"), folder.path().join("streamed.csv"));
            let words = |path: &'static str| ["--label", "y", "--id", "id", "--interval", path];
            let words = words("information");
            let arguments = |path, weights| {
                let own = ["estimate", path, "--given", given, "--by", "site", "--weights", weights];
                [&own[..], &words[..]].concat()
            };
            let in_memory = json(&arguments(one, loaded.to_str().unwrap()));
            let walked = json(&[&arguments(several, streamed.to_str().unwrap())[..], &["--stream"]].concat());
            for key in ["n", "n_labelled", "phi", "phi_se", "prevalence", "prevalence_se", "calibration"] {
                close(&in_memory[key], &walked[key], 1e-9, &format!("{given} {key}"));
            }
            for (group, same) in
                in_memory["groups"].as_array().unwrap().iter().zip(walked["groups"].as_array().unwrap())
            {
                assert_eq!((&group["group"], &group["n"]), (&same["group"], &same["n"]));
                close(&group["prevalence"], &same["prevalence"], 1e-9, "prevalence of a group");
                close(&group["phi"], &same["phi"], 1e-9, "phi of a group");
            }
            let read = |path: &Path| std::fs::read_to_string(path).unwrap();
            let (loaded, streamed) = (read(&loaded), read(&streamed));
            assert_eq!(loaded.lines().count(), 90_001);
            for (a, b) in loaded.lines().zip(streamed.lines()).skip(1) {
                let (a, b): (Vec<&str>, Vec<&str>) = (a.split(',').collect(), b.split(',').collect());
                assert_eq!(a[..2], b[..2]);
                let number = |text: &str| text.parse::<f64>().unwrap();
                assert!((number(a[2]) - number(b[2])).abs() < 1e-7 * number(a[2]).max(1.0), "{a:?} {b:?}");
            }
        }
        let test = |path| ["test", path, "--label", "y", "--permutations", "1"];
        let (in_memory, walked) = (json(&test(one)), json(&[&test(several)[..], &["--stream"]].concat()));
        close(&in_memory["statistic"], &walked["statistic"], 1e-9, "statistic");
        close(&in_memory["p_value_chi_square"], &walked["p_value"], 1e-9, "p-value");
    }
}

/// The weights of a row follow from its number and its probabilities, so files may be cut anywhere.
#[test]
fn a_bootstrap_of_a_folder_is_that_of_one_file_and_about_that_of_a_table_in_memory() {
    let (_folder, one, parts) = files();
    let (one, parts) = (one.to_str().unwrap(), parts.to_str().unwrap());
    let words = ["--label", "y", "--interval", "bootstrap", "--replicates", "60", "--seed", "3"];
    let estimate = |path| json(&[&["estimate", path, "--stream"], &words[..]].concat());
    let (file, folder) = (estimate(one), estimate(parts));
    assert_eq!((&file["interval"]["kind"], &file["interval"]["replicates"]), (&"bootstrap".into(), &60.into()));
    let in_memory = json(&[&["estimate", one, "--given", "none"], &words[..]].concat());
    for key in ["phi", "phi_se", "prevalence", "prevalence_se", "phi_ci95"] {
        close(&file[key], &folder[key], 1e-9, key);
    }
    close(&file["phi"], &in_memory["phi"], 1e-9, "phi");
    // Other draws: with 60 each, their spreads differ by some 13%.
    for (a, b) in file["phi_se"].as_array().unwrap().iter().zip(in_memory["phi_se"].as_array().unwrap()) {
        let ratio = a.as_f64().unwrap() / b.as_f64().unwrap();
        assert!((0.6..1.6).contains(&ratio), "{ratio}");
    }
    let with_columns = [&["estimate", one, "--stream", "--given", "site"], &words[..]].concat();
    assert!(refused(&with_columns).contains("by class alone"));
    let profile = ["estimate", one, "--stream", "--label", "y", "--interval", "profile"];
    assert!(refused(&profile).contains("observed information or a bootstrap"));
}

#[test]
fn an_evaluation_of_a_stream_is_that_of_a_table_in_memory() {
    let (_folder, one, parts) = files();
    let (one, parts) = (one.to_str().unwrap(), parts.to_str().unwrap());
    for extra in [&[][..], &["--given", "site"], &["--by", "site"], &["--given", "site", "--by", "site"]] {
        let words = ["--label", "y", "--replicates", "20"];
        let in_memory = json(&[&["evaluate", one], &words[..], extra].concat());
        let walked = json(&[&["evaluate", parts, "--stream"], &words[..], extra].concat());
        let metrics = walked["metrics"].as_array().unwrap();
        assert!(metrics.len() > 20, "{}", metrics.len());
        for metric in metrics {
            let same = |other: &&Value| {
                ["name", "class", "group", "population", "model"].iter().all(|key| metric[key] == other[key])
            };
            let other = in_memory["metrics"].as_array().unwrap().iter().find(same).unwrap();
            close(&metric["naive"], &other["naive"], 1e-9, "naive");
            close(&metric["corrected"], &other["corrected"], 1e-8, &metric["name"].to_string());
            if metric["group"].is_null() && metric["name"] == "accuracy" {
                let width = |of: &Value| of["ci95"][1].as_f64().unwrap() - of["ci95"][0].as_f64().unwrap();
                // Twenty replicates and fifty buckets both know a width to some 15%.
                let ratio = width(metric) / width(other);
                assert!((0.5..2.0).contains(&ratio), "{metric} {other}");
            }
        }
        for key in ["phi", "prevalence", "n", "n_labelled"] {
            close(&in_memory[key], &walked[key], 1e-9, key);
        }
        assert!(walked["warnings"].to_string().contains("AUC"));
    }
    // A known mechanism, and no intervals.
    let known = ["--label", "y", "--phi", "sick=0.4,well=0.1", "--replicates", "0"];
    let in_memory = json(&[&["evaluate", one], &known[..]].concat());
    let walked = json(&[&["evaluate", parts, "--stream"], &known[..]].concat());
    let accuracy = |found: &Value| found["metrics"][0].clone();
    close(&accuracy(&in_memory), &accuracy(&walked), 1e-9, "accuracy");
    let text = mnar(&["evaluate", parts, "--label", "y", "--stream"]);
    assert!(text.status.success());
    assert!(String::from_utf8(text.stdout).unwrap().contains("accuracy"));
    for (option, word) in [("--model", "q_"), ("--decision", "site"), ("--report", "page.html"), ("--run", "run")] {
        assert!(refused(&["evaluate", parts, "--label", "y", "--stream", option, word]).contains(option));
    }
}

/// What is wrong with one part is said alike of a stream and of a table in memory, by all commands that stream.
#[test]
fn bad_parts_are_refused_as_they_are_in_memory() {
    let write_other = |path: &Path, columns: &[(&str, Column<'_>)]| write_table(path, columns).unwrap();
    let texts = |label: Option<&'static str>| Column::Texts(vec![label, None]);
    let site = || Column::Texts(vec![Some("North"); 2]);
    let id = || Column::Texts(vec![Some("P1"), Some("P2")]);
    let same = |y: Option<&'static str>, p: &'static [f64], q: &'static [f64]| {
        move |path: &Path| {
            let columns = [
                ("y", texts(y)),
                ("p_sick", Column::Numbers(p)),
                ("p_well", Column::Numbers(q)),
                ("site", site()),
                ("id", id()),
            ];
            write_other(path, &columns);
        }
    };
    type Write<'a> = Box<dyn Fn(&Path) + 'a>;
    let cases: Vec<(&str, Write<'_>, &[&str])> = vec![
        ("a class that no other part has", Box::new(same(Some("dead"), &[0.5, 0.5], &[0.5, 0.5])), &["dead"]),
        (
            "a missing number",
            Box::new(same(Some("sick"), &[0.5, f64::NAN], &[0.5, 0.5])),
            &["row 90002", "`sick`", "NaN"],
        ),
        ("no probability", Box::new(same(None, &[0.5, 1.5], &[0.5, 0.5])), &["row 90002", "1.5"]),
        ("off the simplex", Box::new(same(None, &[0.5, 0.9], &[0.5, 0.5])), &["row 90002", "1.4"]),
        (
            "another type",
            Box::new(move |path: &Path| {
                let words = Column::Texts(vec![Some("high"), Some("low")]);
                let numbers = Column::Numbers(&[0.5, 0.5]);
                write_other(
                    path,
                    &[("y", texts(None)), ("p_sick", words), ("p_well", numbers), ("site", site()), ("id", id())],
                );
            }),
            &["part-9.parquet", "p_sick"],
        ),
        (
            "a column less",
            Box::new(move |path: &Path| {
                write_other(path, &[("y", texts(None)), ("p_sick", Column::Numbers(&[0.5, 0.5]))])
            }),
            &["part-9.parquet", "2 columns, not 5"],
        ),
        ("an empty file", Box::new(|path: &Path| std::fs::write(path, "").unwrap()), &["part-9.parquet"]),
        ("no Parquet", Box::new(|path: &Path| std::fs::write(path, "y,p_sick\na,0.5\n").unwrap()), &["part-9.parquet"]),
    ];
    let (_folder, _, parts) = files();
    for (what, write, words) in cases {
        let bad = parts.join("part-9.parquet");
        write(&bad);
        let path = parts.to_str().unwrap();
        for command in ["estimate", "test", "evaluate"] {
            let in_memory = refused(&[command, path, "--label", "y", "--quiet"]);
            let walked = refused(&[command, path, "--label", "y", "--quiet", "--stream"]);
            assert_eq!(in_memory, walked, "{what} {command}");
            for word in words {
                assert!(walked.contains(word), "{what}: {walked}");
            }
        }
        std::fs::remove_file(bad).unwrap();
    }
    // Nothing to stream.
    let empty = tempfile::tempdir().unwrap();
    let refusal = refused(&["estimate", empty.path().to_str().unwrap(), "--label", "y", "--stream"]);
    assert!(refusal.contains("a folder without Parquet files"), "{refusal}");
    let nothing = parts.join("other-*.parquet");
    assert!(refused(&["evaluate", nothing.to_str().unwrap(), "--label", "y", "--stream"]).contains("no file"));
    let empty = parts.join("empty");
    std::fs::create_dir(&empty).unwrap();
    assert!(refused(&["estimate", empty.to_str().unwrap(), "--label", "y", "--stream"]).contains("empty"));
}
