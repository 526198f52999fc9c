//! Two processes that fit into the same folder at the same time.

use crate::Found;
use crate::runs::{findings, fit, lasting, said, start, strays, table};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use std::fs;
use std::time::Duration;

const WORDS: [&str; 9] =
    ["t.csv", "--label", "diagnosis", "--permutations", "99", "--quiet", "--epochs", "3", "--replicates=8"];

/// Starts `times` pairs of fits, the second one within 0.2 s of the first.
pub(crate) fn race(times: usize, seed: u64) -> Found {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("t.csv"), table(1500, seed)).unwrap();
    let output = fit(home.path(), &WORDS, &["--out", "alone"]);
    assert!(output.status.success(), "{}", said(&output));
    let alone = home.path().join("alone");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut failures = Vec::new();
    let (mut in_use, mut too_late) = (0, 0);
    for i in 0..times {
        let run = home.path().join("both");
        let first = start(home.path(), &WORDS, &["--out", "both"]);
        std::thread::sleep(Duration::from_millis(if i % 2 == 0 { 0 } else { rng.random_range(0..200) }));
        let resume: &[&str] = if i % 3 == 2 { &["--resume"] } else { &[] };
        let second = start(home.path(), &WORDS, &[&["--out", "both"], resume].concat());
        let outputs = [first, second].map(|child| child.wait_with_output().unwrap());
        let winners = outputs.iter().filter(|output| output.status.success()).count();
        let loser = outputs.iter().find(|output| output.status.code() == Some(2));
        let words = loser.map(said).unwrap_or_default();
        if words.contains("is in use by another process") {
            in_use += 1;
        } else {
            // The other one had ended, or not yet begun.
            too_late += 1;
        }
        let known = ["in use by another", "holds a finished run", "holds no run to resume"];
        let explained = known.iter().any(|reason| words.contains(reason));
        let same = run.join("report.json").exists()
            && lasting(&run) == lasting(&alone)
            && findings(&run) == findings(&alone)
            && strays(&run).is_empty();
        if winners != 1 || !explained || !same {
            failures.push(format!("pair {i}: {winners} won, the same as alone {same}: {words}"));
        }
        fs::remove_dir_all(&run).unwrap();
    }
    let counts =
        json!({ "pairs": times, "refused_in_use": in_use, "refused_otherwise": too_late, "failures": failures.len() });
    Found { counts, failures }
}
