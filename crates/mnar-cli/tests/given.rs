//! Labelling that depends on columns, from the command line.

#![allow(clippy::unwrap_used)] // helpers of tests are not seen as tests

use assert_cmd::Command;
use mnar_data::{Column, write_table};
use serde_json::Value;
use std::path::Path;
use std::process::Output;
use tempfile::TempDir;

fn mnar(arguments: &[&str]) -> Output {
    Command::cargo_bin("mnar").unwrap().args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = mnar(&[arguments, &["--format", "json", "--quiet"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refused(arguments: &[&str]) -> String {
    let output = mnar(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Numbers from 0 to 1, the same in every run.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> f64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

const SITES: [Option<&str>; 5] = [Some("North"), Some("South"), Some(" West "), Some("NA"), None];

struct Predictions {
    y: Vec<Option<&'static str>>,
    p: [Vec<f64>; 2],
    site: Vec<Option<&'static str>>,
    age: Vec<f64>,
    seen: Vec<String>,
    urgent: Vec<f64>,
    id: Vec<String>,
}

/// Labels depend on the class, the site and the age, and on the age more in the North.
fn predictions(rows: usize) -> Predictions {
    let mut draw = Draw(1);
    let mut all = Predictions {
        y: Vec::new(),
        p: [Vec::new(), Vec::new()],
        site: Vec::new(),
        age: Vec::new(),
        seen: Vec::new(),
        urgent: Vec::new(),
        id: Vec::new(),
    };
    for row in 0..rows {
        let p = draw.next();
        let sick = draw.next() < p;
        let site = SITES[(draw.next() * 5.0) as usize];
        let age = 20.0 + 60.0 * draw.next();
        let slope = if site == Some("North") { 1.5 } else { 0.3 };
        let north = if site == Some("North") { 1.0 } else { -0.5 };
        let urgent = draw.next() < 0.9;
        let logit = if sick { 0.8 } else { -0.4 } + north + slope * (age - 50.0) / 17.0 + f64::from(urgent);
        let labelled = draw.next() < 1.0 / (1.0 + (-logit).exp());
        all.y.push(labelled.then_some(if sick { "sick" } else { "well" }));
        all.p[0].push(p);
        all.p[1].push(1.0 - p);
        all.site.push(site);
        all.age.push(if draw.next() < 0.05 { f64::NAN } else { age });
        all.seen.push(format!(
            "2024-{:02}-{:02}",
            1 + (draw.next() * 12.0) as usize,
            1 + (draw.next() * 28.0) as usize
        ));
        all.urgent.push(f64::from(urgent));
        all.id.push(format!("P{row}"));
    }
    all
}

impl Predictions {
    fn write(&self, path: &Path) {
        let texts = |values: &'_ [String]| -> Vec<Option<String>> { values.iter().cloned().map(Some).collect() };
        let (seen, id) = (texts(&self.seen), texts(&self.id));
        let columns = [
            ("y", Column::Texts(self.y.clone())),
            ("p_sick", Column::Numbers(&self.p[0])),
            ("p_well", Column::Numbers(&self.p[1])),
            ("site", Column::Texts(self.site.clone())),
            ("age", Column::Numbers(&self.age)),
            ("seen", Column::Texts(seen.iter().map(Option::as_deref).collect())),
            ("urgent", Column::Numbers(&self.urgent)),
            ("id", Column::Texts(id.iter().map(Option::as_deref).collect())),
        ];
        write_table(path, &columns).unwrap();
    }
}

fn close(a: &Value, b: &Value, tolerance: f64, at: &str) {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{at}");
            a.iter().zip(b).for_each(|(a, b)| close(a, b, tolerance, at));
        }
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert!((a - b).abs() <= tolerance * a.abs().max(1.0), "{at}: {a} {b}");
        }
        _ => assert_eq!(a, b, "{at}"),
    }
}

#[test]
fn a_streamed_file_gives_the_same_mechanism_by_columns() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("p.parquet");
    // More rows than a batch has.
    predictions(70_000).write(&path);
    let path = path.to_str().unwrap();
    for given in ["site", "age", "seen,urgent,site", "site*age,urgent"] {
        let (loaded, streamed) = (folder.path().join("loaded.csv"), folder.path().join("streamed.csv"));
        let arguments = ["estimate", path, "--label", "y", "--given", given, "--interval", "information", "--weights"];
        let in_memory = json(&[&arguments[..], &[loaded.to_str().unwrap()]].concat());
        let from_file = json(&[&arguments[..], &[streamed.to_str().unwrap(), "--stream"]].concat());
        for key in
            ["phi", "phi_se", "phi_ci95", "prevalence", "prevalence_se", "prevalence_ci95", "effective_sample_size"]
        {
            close(&in_memory[key], &from_file[key], 1e-9, &format!("{given} {key}"));
        }
        for key in ["classes", "terms"] {
            // Only the priors tell a shift of all classes from one of all sites, so that these are known to fewer digits.
            close(&in_memory["mechanism"][key], &from_file["mechanism"][key], 1e-8, &format!("{given} {key}"));
        }
        let (effects, same) = (&in_memory["labelling"]["effects"], &from_file["effects"]);
        for (effect, same) in effects.as_array().unwrap().iter().zip(same.as_array().unwrap()) {
            assert_eq!((&effect["column"], &effect["compared_with"]), (&same["column"], &same["compared_with"]));
            for (term, same) in effect["terms"].as_array().unwrap().iter().zip(same["terms"].as_array().unwrap()) {
                assert_eq!(term["term"], same["term"]);
                close(&term["odds_ratio"], &same["odds_ratio"], 1e-8, given);
                close(&term["ci95"], &same["ci95"], 1e-8, given);
            }
            // Ages are measurements with too many different values to count in a stream.
            if effect["column"] != "age" {
                assert_eq!(effect["rates"], same["rates"], "{given} {}", effect["column"]);
            }
        }
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        for (a, b) in read(&loaded).lines().zip(read(&streamed).lines()).skip(1) {
            let (a, b): (Vec<&str>, Vec<&str>) = (a.split(',').collect(), b.split(',').collect());
            assert_eq!(a[..2], b[..2]);
            let number = |text: &str| text.parse::<f64>().unwrap();
            assert!((number(a[2]) - number(b[2])).abs() < 1e-7 * number(a[2]).max(1.0), "{a:?} {b:?}");
            assert!((number(a[3]) - number(b[3])).abs() < 1e-7 * number(a[3]).abs().max(1.0), "{a:?} {b:?}");
        }
    }
}

#[test]
fn streamed_columns_are_refused_as_those_in_memory_are() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("p.parquet");
    let mut all = predictions(2_000);
    // A column that comes with the label, and one that never varies.
    all.urgent = all.y.iter().map(|y| f64::from(u8::from(y.is_some()))).collect();
    all.age = vec![50.0; 2_000];
    all.write(&path);
    let path = path.to_str().unwrap();
    for (given, why) in [
        ("urgent", "tells exactly which rows are labelled"),
        ("age", "the same value in every row"),
        ("id", "2000 different values in 2000 rows"),
        ("y", "tells exactly which rows are labelled"),
        ("ages", "did you mean `age`?"),
        ("site*ages", "did you mean `age`?"),
        ("site*age*id", "a product is of two columns"),
        ("site,site", "more than one role"),
    ] {
        let arguments = ["estimate", path, "--label", "y", "--given", given, "--quiet"];
        let (loaded, streamed) = (refused(&arguments), refused(&[&arguments[..], &["--stream"]].concat()));
        if given != "site,site" {
            assert!(loaded.contains(why) && streamed.contains(why), "{given}: {loaded} {streamed}");
        }
    }
    let with_method = ["estimate", path, "--label", "y", "--given", "site", "--stream", "--method", "confusion"];
    assert!(refused(&with_method).contains("label-shift"));
}

#[test]
fn a_rare_value_of_a_number_is_a_column_that_varies() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("p.parquet");
    predictions(4_000).write(&path);
    let found =
        json(&["estimate", path.to_str().unwrap(), "--label", "y", "--given", "urgent", "--interval", "information"]);
    let rates = found["labelling"]["effects"][0]["rates"].as_array().unwrap();
    assert_eq!(rates.iter().map(|rate| rate["group"].as_str().unwrap()).collect::<Vec<_>>(), ["0", "1"]);
}

#[test]
fn products_of_columns_are_estimated_tested_and_evaluated() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("p.parquet");
    predictions(6_000).write(&path);
    let path = path.to_str().unwrap();
    let quick = ["--interval", "information"];
    let estimate = ["estimate", path, "--label", "y", "--given", "site*age"];
    let found = json(&[&estimate[..], &quick, &["--sensitivity", "0.5,1,2"]].concat());
    let effects = found["labelling"]["effects"].as_array().unwrap();
    let columns: Vec<&str> = effects.iter().map(|effect| effect["column"].as_str().unwrap()).collect();
    assert_eq!(columns, ["site", "age", "site x age"]);
    // The age matters more in the North, whichever site it is compared with.
    let north = |effect: &Value| effect["term"] == "site=North x age";
    let terms = effects[2]["terms"].as_array().unwrap();
    match terms.iter().find(|term| north(term)) {
        Some(term) => assert!(term["ci95"][0].as_f64().unwrap() > 1.0, "{term}"),
        None => assert!(terms.iter().all(|term| term["ci95"][1].as_f64().unwrap() < 1.0), "{terms:?}"),
    }
    // At a factor of 1, the sensitivity curve is the estimate.
    close(&found["sensitivity"][1]["phi"], &found["phi"], 1e-7, "phi");
    close(&found["sensitivity"][1]["prevalence"], &found["prevalence"], 1e-7, "prevalence");
    assert_ne!(found["sensitivity"][0]["phi"], found["sensitivity"][2]["phi"]);

    // As text, and on the page with the groups.
    let page = folder.path().join("page.html");
    let with_page = ["--by", "site", "--report", page.to_str().unwrap(), "--quiet", "--replicates", "30"];
    let output = mnar(&[&estimate[..], &with_page].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains(" x age"), "{text}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains("site x age") && page.contains("By site") && page.contains("Same class shares in every group")
    );

    let tested = json(&["test", path, "--label", "y", "--given", "site*age", "--permutations", "99"]);
    assert_eq!(tested["labelling"]["given"][0], "site*age");
    assert_eq!(tested["labelling"]["effects"].as_array().unwrap().len(), 3);
    let evaluated = json(&["evaluate", path, "--label", "y", "--given", "site*age", "--replicates", "0"]);
    assert!(evaluated["metrics"].as_array().unwrap().len() > 3);
    // With features, both columns are features too.
    let features = ["estimate", path, "--label", "y", "--features", "p_sick", "--given", "site*age"];
    let found = json(&[&features[..], &quick, &["--classifier", "softmax"]].concat());
    assert_eq!(found["labelling"]["effects"].as_array().unwrap().len(), 3);
    let named = found["features"].as_array().unwrap();
    assert!(named.iter().any(|name| name == "age") && named.len() > 4, "{named:?}");

    assert!(refused(&["estimate", path, "--label", "y", "--given", "site*weight"]).contains("weight"));
    assert!(refused(&["estimate", path, "--label", "y", "--given", "class*site"]).contains("`class`"));
}
