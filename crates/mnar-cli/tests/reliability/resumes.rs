//! Runs that are resumed with other data.

use crate::Found;
use crate::runs::{copy, files, fit, interrupt, said, table};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;

/// Every method of training.
const METHODS: [&[&str]; 12] = [
    &["--method", "label-shift"],
    &["--method", "adjusted"],
    &["--method", "me"],
    &["--method", "meg"],
    &["--method", "mle"],
    &["--method", "cadr"],
    &["--method", "de-pl"],
    &["--method", "pl"],
    &["--method", "complete-case"],
    &["--method", "ipw"],
    &["--method", "oracle", "--phi", "sick=0.7,healthy=0.3"],
    &["--method", "known-shares", "--shares", "sick=0.4,healthy=0.6"],
];

/// An alteration of a table, and what the message must name.
type Alteration = (&'static str, fn(&str) -> String, &'static str);

const ALTERATIONS: [Alteration; 7] = [
    ("a number changed", |text| with_line(text, 3, |line| line.replacen(',', "1,", 1)), "the features"),
    ("a name changed", |text| text.replacen(",north,", ",south,", 1), "the features"),
    ("two labels swapped", swap_labels, "the labels"),
    ("a label removed", |text| text.replacen(",sick\n", ",\n", 1), "the labels"),
    ("a class renamed", |text| text.replace(",sick\n", ",ill\n"), "the class names"),
    ("a row removed", |text| with_line(text, 5, |_| String::new()), "the number of rows"),
    ("a column renamed", |text| text.replacen("marker", "market", 1), "the features"),
];

fn with_line(text: &str, number: usize, change: impl Fn(&str) -> String) -> String {
    let line = |(i, line): (usize, &str)| if i == number { change(line) } else { line.to_owned() };
    text.split_inclusive('\n').enumerate().map(line).collect()
}

/// The first sick and the first healthy row exchange their labels: the numbers of labels stay the same.
fn swap_labels(text: &str) -> String {
    text.replacen(",sick\n", ",?\n", 1).replacen(",healthy\n", ",sick\n", 1).replacen(",?\n", ",healthy\n", 1)
}

/// Resumes `times` interrupted runs with altered data.
pub(crate) fn alter(times: usize, seed: u64) -> Found {
    let home = tempfile::tempdir().unwrap();
    let text = table(200, seed);
    let mut failures = Vec::new();
    let mut refused = BTreeMap::<&str, usize>::new();
    for i in 0..times {
        let method = METHODS[i % METHODS.len()];
        let (name, change, says) = ALTERATIONS[i % ALTERATIONS.len()];
        fs::write(home.path().join("t.csv"), &text).unwrap();
        let common = ["t.csv", "--label", "diagnosis", "--epochs", "5000", "--replicates", "0", "--permutations", "9"];
        let words = [&common[..], method, &["--quiet"]].concat();
        let out = format!("run-{}", method[1]);
        let run = home.path().join(&out);
        if !run.exists() {
            interrupt(home.path(), &words, &out);
            // The next process would sweep what a kill leaves.
            for folder in [&run, &run.join("checkpoints")] {
                mnar_data::sweep_partial(folder).unwrap();
            }
            let _ = fs::remove_file(run.join(".mnar-lock"));
        }
        let tried = copy(&run, &home.path().join("tried"));
        fs::write(home.path().join("t.csv"), change(&text)).unwrap();
        let output = fit(home.path(), &words, &["--out", "tried", "--resume"]);
        if output.status.code() == Some(2) && said(&output).contains(says) {
            *refused.entry(name).or_default() += 1;
        } else {
            failures.push(format!("{method:?}, {name}: {:?} {}", output.status, said(&output)));
        }
        let untouched = files(&run).iter().all(|name| fs::read(run.join(name)).ok() == fs::read(tried.join(name)).ok());
        if !untouched {
            failures.push(format!("{method:?}, {name}: the folder was changed"));
        }
        fs::remove_dir_all(tried).unwrap();
    }
    let counts =
        json!({ "tried": times, "methods": times.min(METHODS.len()), "refused": refused, "failures": failures.len() });
    Found { counts, failures }
}
