//! Flipped bits in weights and checkpoints.

use crate::Found;
use crate::runs::{fit, said, start, table};
use mnar_run::{FitOptions, FitRequest, PredictOptions, predict};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const WORDS: [&str; 12] = [
    "t.csv",
    "--label",
    "diagnosis",
    "--permutations",
    "9",
    "--quiet",
    "--cross-fit",
    "network",
    "--folds",
    "2",
    "--hidden",
    "4",
];

/// Flips `times` bits, one at a time, half of them in models and half in checkpoints. All must be refused.
pub(crate) fn flip(times: usize, seed: u64) -> Found {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("t.csv");
    fs::write(&data, table(120, seed)).unwrap();
    let output = fit(home.path(), &WORDS, &["--epochs", "2", "--out", "run"]);
    assert!(output.status.success(), "{}", said(&output));
    let run = home.path().join("run");
    let model = |baseline| {
        let options = PredictOptions { baseline, ..Default::default() };
        predict(&run, &data, &options).map(drop).map_err(|error| error.to_string())
    };
    model(false).unwrap();
    model(true).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut failures = Vec::new();
    for i in 0..times / 2 {
        let baseline = i % 2 == 1;
        let file = run.join(if baseline { "baseline" } else { "model" }).join("weights.safetensors");
        flipped(&file, &mut rng, &mut failures, || model(baseline));
    }
    let interrupted = interrupted(home.path());
    let request = FitRequest {
        options: FitOptions::read(&interrupted.join("settings.toml")).unwrap(),
        resume: true,
        checkpoint_every: Duration::ZERO,
        ..FitRequest::new(data.as_path(), &interrupted)
    };
    let checkpoints = checkpoints(&interrupted);
    for i in 0..times - times / 2 {
        let file = &checkpoints[i % checkpoints.len()];
        flipped(file, &mut rng, &mut failures, || {
            mnar_run::fit(&request, &()).map(drop).map_err(|error| error.to_string())
        });
    }
    let refused = times - failures.len();
    let counts = json!({
        "flipped": times, "in_weights": times / 2, "in_checkpoints": times - times / 2, "refused": refused,
        "failures": failures.len(),
    });
    Found { counts, failures }
}

/// A run that was killed while its first network was trained, after others had ended.
fn interrupted(home: &Path) -> PathBuf {
    let run = home.join("killed");
    let mut child = start(home, &WORDS, &["--epochs", "200", "--out", "killed", "--method", "me"]);
    while !run.join("checkpoints/debiased.checkpoint").exists() {
        assert!(child.try_wait().unwrap().is_none(), "the run has ended");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    run
}

fn checkpoints(run: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(run.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "checkpoint")).collect();
    found.sort();
    found
}

/// Flips a bit of a file, looks whether that is refused for the right reason, and puts the file back.
fn flipped(
    file: &Path,
    rng: &mut ChaCha8Rng,
    failures: &mut Vec<String>,
    attempt: impl FnOnce() -> Result<(), String>,
) {
    let whole = fs::read(file).unwrap();
    let mut bytes = whole.clone();
    let (byte, bit) = (rng.random_range(0..bytes.len()), rng.random_range(0..8));
    bytes[byte] ^= 1 << bit;
    fs::write(file, bytes).unwrap();
    match attempt() {
        Err(why) if why.contains("checksum") => {}
        other => failures.push(format!("{} byte {byte} bit {bit}: {other:?}", file.display())),
    }
    fs::write(file, whole).unwrap();
}
