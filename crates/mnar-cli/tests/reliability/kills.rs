//! Runs that are killed at random instants.

use crate::Found;
use crate::runs::{files, findings, fit, images, lasting, said, start, strays, table};
use nix::sys::signal::{Signal, kill as send};
use nix::unistd::Pid;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

const TABLE: [&str; 6] = ["t.csv", "--label", "diagnosis", "--quiet", "--permutations", "99"];
const IMAGES: [&str; 9] = [
    "train-images-idx3-ubyte",
    "--labels",
    "labels.csv",
    "--quiet",
    "--permutations",
    "99",
    "--epochs",
    "2",
    "--seed=1",
];

/// Every stage that there is: bootstrap, trees, cross-fitted networks, the likelihood stage, networks of tables and of images.
fn kinds() -> Vec<(&'static str, Vec<&'static str>)> {
    let with = |base: &[&'static str], more: &[&'static str]| [base, more].concat();
    vec![
        ("table, bootstrap", with(&TABLE, &["--epochs", "40", "--replicates", "50"])),
        ("table, network cross-fitted", with(&TABLE, &["--epochs", "40", "--cross-fit", "network", "--method", "me"])),
        ("table, likelihood", with(&TABLE, &["--epochs", "40", "--method", "mle", "--replicates", "0"])),
        ("images", with(&IMAGES, &["--replicates", "0"])),
        ("images, network cross-fitted", with(&IMAGES, &["--cross-fit", "network", "--folds", "2"])),
    ]
}

/// When and how runs were killed.
#[derive(Default, Serialize)]
struct Counts {
    /// Kills of runs that had not ended.
    kills: usize,
    of_these_by_sigterm: usize,
    of_these_before_the_manifest: usize,
    /// SIGTERM came in time to keep the state, and the exit code was 143.
    stopped_in_order: usize,
    /// Kills between the report and the end of the process, which are not counted above.
    after_the_report: usize,
    /// Runs that were killed, most of them several times, and then ended.
    runs: usize,
    /// The same bits as without kills, and no stray files.
    the_same: usize,
}

/// Kills runs `times` times in all, and lets each of them end after one to four kills.
pub(crate) fn kill(times: usize, seed: u64) -> Found {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("t.csv"), table(160, seed)).unwrap();
    images(home.path(), 90, seed);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut counts, mut failures) = (Counts::default(), Vec::new());
    let kinds = kinds();
    let whole: Vec<(PathBuf, Duration)> = (kinds.iter().enumerate())
        .map(|(i, (name, words))| {
            let (out, began) = (format!("whole-{i}"), Instant::now());
            let output = fit(home.path(), words, &["--out", &out]);
            assert!(output.status.success(), "{name}: {}", said(&output));
            (home.path().join(out), began.elapsed())
        })
        .collect();
    let run = home.path().join("killed");
    for series in 0.. {
        if counts.kills >= times {
            break;
        }
        let ((name, words), (reference, takes)) = (&kinds[series % kinds.len()], &whole[series % kinds.len()]);
        let mut killed = false;
        for _ in 0..rng.random_range(1..=4) {
            // One in four in the first moments, when the folder is made and the data are read.
            let latest = if rng.random_range(0..4) == 0 { 0.1 } else { 0.9 };
            let delay = takes.mul_f64(rng.random::<f64>() * latest);
            let signal = if rng.random() { Signal::SIGTERM } else { Signal::SIGKILL };
            if run.join("report.json").exists()
                || !kill_once(home.path(), words, delay, signal, &mut counts, &mut failures)
            {
                break;
            }
            killed = true;
        }
        let ended = end(home.path(), words);
        counts.runs += usize::from(killed);
        match ended.and_then(|()| the_same(&run, reference)) {
            Ok(()) => counts.the_same += usize::from(killed),
            Err(what) => failures.push(format!("{name}, series {series}: {what}")),
        }
        fs::remove_dir_all(&run).unwrap();
    }
    Found { counts: serde_json::to_value(counts).unwrap(), failures }
}

/// Starts or resumes a run and kills it after a time. Returns whether it was killed.
fn kill_once(
    home: &Path,
    words: &[&str],
    delay: Duration,
    signal: Signal,
    counts: &mut Counts,
    failures: &mut Vec<String>,
) -> bool {
    let run = home.join("killed");
    let mut child = start(home, words, &arguments(&run));
    std::thread::sleep(delay);
    if child.try_wait().unwrap().is_some() {
        return false;
    }
    send(Pid::from_raw(child.id() as i32), signal).unwrap();
    let output = child.wait_with_output().unwrap();
    if signal == Signal::SIGTERM && !stopped_well(&output, &run) {
        failures.push(format!("SIGTERM: {:?} {}", output.status, said(&output)));
    }
    if run.join("report.json").exists() {
        counts.after_the_report += 1;
        return true;
    }
    counts.kills += 1;
    counts.of_these_by_sigterm += usize::from(signal == Signal::SIGTERM);
    counts.of_these_before_the_manifest += usize::from(!run.join("manifest.json").exists());
    counts.stopped_in_order += usize::from(output.status.code() == Some(143));
    true
}

/// SIGTERM leaves no partial files. Before there is a handler it ends the process, and after the last stage it comes too late.
fn stopped_well(output: &Output, run: &Path) -> bool {
    let partial = || run.is_dir() && files(run).iter().any(|name| name.ends_with(".partial"));
    match output.status.code() {
        Some(143) => !partial(),
        code => code == Some(0) || output.status.signal() == Some(15),
    }
}

/// What goes on with a run, as a script would that looks no further than whether there is a folder.
fn arguments(run: &Path) -> Vec<&'static str> {
    let resume = run.exists().then_some("--resume");
    ["--out", "killed"].into_iter().chain(resume).collect()
}

/// Lets a run end.
fn end(home: &Path, words: &[&str]) -> Result<(), String> {
    let run = home.join("killed");
    let finished = run.join("report.json").exists();
    let mut output = fit(home, words, &arguments(&run));
    if said(&output).contains("holds no run to resume") {
        output = fit(home, words, &["--out", "killed"]);
    }
    // A finished run is refused, and what is left of its work swept.
    let refused = finished && said(&output).contains("holds a finished run");
    if output.status.success() || refused { Ok(()) } else { Err(format!("not ended: {}", said(&output))) }
}

fn the_same(run: &Path, reference: &Path) -> Result<(), String> {
    if lasting(run) != lasting(reference) || findings(run) != findings(reference) {
        return Err("not the same bits".to_owned());
    }
    match strays(run) {
        strays if strays.is_empty() => Ok(()),
        strays => Err(format!("left {strays:?}")),
    }
}
