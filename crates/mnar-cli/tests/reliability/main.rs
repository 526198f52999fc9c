//! What happens to runs that are killed, resumed with other data, damaged, started twice or tampered with.
//!
//! The tests take some seconds. `MNAR_CAMPAIGN=1 cargo test -p mnar-cli --test reliability -- --ignored` does the same hundreds of
//! times over and writes `results/reliability.json`; a larger number repeats it with further seeds.
#![cfg(unix)]
#![allow(clippy::unwrap_used)] // helpers of tests are not seen as tests

mod cases;
mod damage;
mod kills;
mod mutations;
mod pairs;
mod resumes;
mod runs;

use serde_json::{Value, json};

/// What one part of the campaign found.
struct Found {
    counts: Value,
    failures: Vec<String>,
}

impl Found {
    fn assert_none(&self) {
        assert!(self.failures.is_empty(), "{}\n{:#}", self.failures.join("\n"), self.counts);
    }
}

#[test]
fn killed_runs_resume_to_the_same_bits_or_start_again() {
    kills::kill(10, 1).assert_none();
}

#[test]
fn other_data_are_refused_by_name() {
    resumes::alter(7, 2).assert_none();
}

#[test]
fn flipped_bits_are_refused() {
    damage::flip(120, 3).assert_none();
}

#[test]
fn of_two_fits_in_one_folder_one_wins() {
    pairs::race(2, 4).assert_none();
}

#[test]
fn mutated_files_neither_crash_nor_mislead() {
    mutations::mutate(120, 5).assert_none();
}

/// The long version.
#[test]
#[ignore = "takes minutes; run it with MNAR_CAMPAIGN=1"]
fn campaign() {
    let rounds: u64 = std::env::var("MNAR_CAMPAIGN").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut rounds_found = Vec::new();
    let mut failures = Vec::new();
    for seed in 0..rounds {
        let mut counts = serde_json::Map::new();
        type Part = fn(usize, u64) -> Found;
        let parts: [(&str, Part, usize); 5] = [
            ("altered_resumes", resumes::alter, 21),
            ("flipped_bits", damage::flip, 1000),
            ("simultaneous_fits", pairs::race, 20),
            ("mutations", mutations::mutate, 300),
            ("kills", kills::kill, 300),
        ];
        for (name, part, times) in parts {
            let found = part(times, 1000 + seed);
            eprintln!("{name}: {}", found.counts);
            failures.extend(found.failures.iter().map(|failure| format!("{name}: {failure}")));
            counts.insert(name.to_owned(), found.counts);
        }
        rounds_found.push(Value::Object(counts));
        let results = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "command": "MNAR_CAMPAIGN=1 cargo test -p mnar-cli --test reliability -- --ignored",
            "failures": failures,
            "rounds": rounds_found,
        });
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../results/reliability.json");
        std::fs::write(path, serde_json::to_string_pretty(&results).unwrap() + "\n").unwrap();
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
