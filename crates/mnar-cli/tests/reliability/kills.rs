//! Runs that are killed at random instants.

use crate::Found;
use crate::runs::{files, findings, fit, images, lasting, said, start, strays, table};
use nix::sys::signal::{Signal, kill as send};
use nix::unistd::Pid;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
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
        ("table, bootstrap", with(&TABLE, &["--epochs", "10", "--replicates", "20"])),
        ("table, network cross-fitted", with(&TABLE, &["--epochs", "20", "--cross-fit", "network", "--method", "me"])),
        ("table, likelihood", with(&TABLE, &["--epochs", "20", "--method", "mle", "--replicates", "0"])),
        ("images", with(&IMAGES, &["--replicates", "0"])),
        ("images, network cross-fitted", with(&IMAGES, &["--cross-fit", "network", "--folds", "2"])),
    ]
}

#[derive(Default)]
struct Counts {
    kills: usize,
    sigterm: usize,
    after_the_end: usize,
    resumed: usize,
    started_again: usize,
    runs: usize,
}

/// Kills runs `times` times in all, and ends each of them after one to four kills.
pub(crate) fn kill(times: usize, seed: u64) -> Found {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("t.csv"), table(160, seed)).unwrap();
    images(home.path(), 90, seed);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut counts, mut failures) = (Counts::default(), Vec::new());
    let kinds = kinds();
    let whole: Vec<(String, Duration)> = (kinds.iter().enumerate())
        .map(|(i, (name, words))| {
            let (out, began) = (format!("whole-{i}"), Instant::now());
            let output = fit(home.path(), words, &["--out", &out]);
            assert!(output.status.success(), "{name}: {}", said(&output));
            (out, began.elapsed())
        })
        .collect();
    for series in 0.. {
        if counts.kills >= times {
            break;
        }
        let kind = series % kinds.len();
        let (name, words) = &kinds[kind];
        let run = home.path().join("killed");
        for _ in 0..rng.random_range(1..=4) {
            let delay = whole[kind].1.mul_f64(rng.random::<f64>() * 1.05);
            if !kill_once(home.path(), words, delay, rng.random(), &mut counts, &mut failures) {
                break;
            }
        }
        let output = end(home.path(), words, &mut counts);
        let finished = run.join("report.json").exists();
        if !(finished && (output.is_none() || output.as_ref().is_some_and(|output| output.status.success()))) {
            failures.push(format!("{name} {series}: not ended: {}", output.as_ref().map(said).unwrap_or_default()));
        } else {
            let reference = home.path().join(&whole[kind].0);
            if lasting(&run) != lasting(&reference) || findings(&run) != findings(&reference) {
                failures.push(format!("{name} {series}: not the same bits"));
            }
            let strays = strays(&run);
            if !strays.is_empty() {
                failures.push(format!("{name} {series}: left {strays:?}"));
            }
        }
        counts.runs += 1;
        fs::remove_dir_all(&run).unwrap();
    }
    let Counts { kills, sigterm, after_the_end, resumed, started_again, runs } = counts;
    let counts = json!({
        "kills": kills, "of_these_sigterm": sigterm, "runs": runs, "resumed": resumed, "started_again": started_again,
        "killed_after_the_report": after_the_end, "failures": failures.len(),
    });
    Found { counts, failures }
}

/// Starts or resumes a run and kills it after a time. Returns whether there is anything left to kill.
fn kill_once(
    home: &Path,
    words: &[&str],
    delay: Duration,
    politely: bool,
    counts: &mut Counts,
    failures: &mut Vec<String>,
) -> bool {
    let mut child = start(home, words, &arguments(&home.join("killed")));
    std::thread::sleep(delay);
    if child.try_wait().unwrap().is_some() {
        return false;
    }
    let signal = if politely { Signal::SIGTERM } else { Signal::SIGKILL };
    send(Pid::from_raw(child.id() as i32), signal).unwrap();
    let output = child.wait_with_output().unwrap();
    counts.kills += 1;
    let run = home.join("killed");
    if politely {
        counts.sigterm += 1;
        // Before the handler is there, the signal ends the process; after the last stage it comes too late.
        let code = output.status.code();
        let ended = [Some(143), Some(0)].contains(&code) || output.status.signal() == Some(15);
        let partial = run.is_dir() && files(&run).iter().any(|name| name.ends_with(".partial"));
        if !ended || (code == Some(143) && partial) {
            failures.push(format!("SIGTERM: {:?}, partial files {partial}: {}", output.status, said(&output)));
        }
    }
    let finished = run.join("report.json").exists();
    counts.after_the_end += usize::from(finished);
    !finished
}

/// What goes on with a run: as a script would do it that does not look into the folder.
fn arguments(run: &Path) -> Vec<&'static str> {
    let resume = run.exists().then_some("--resume");
    ["--out", "killed"].into_iter().chain(resume).collect()
}

/// Lets a run end.
fn end(home: &Path, words: &[&str], counts: &mut Counts) -> Option<std::process::Output> {
    let run = home.join("killed");
    let finished = run.join("report.json").exists();
    let started = run.join("manifest.json").exists();
    let mut output = fit(home, words, &arguments(&run));
    if finished {
        // Refused, and swept.
        return said(&output).contains("holds a finished run").then_some(None).unwrap_or(Some(output));
    }
    if said(&output).contains("holds no run to resume") {
        output = fit(home, words, &["--out", "killed"]);
    }
    *(if started { &mut counts.resumed } else { &mut counts.started_again }) += 1;
    Some(output)
}
