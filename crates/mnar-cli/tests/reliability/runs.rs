//! Small data, and runs of them.

use mnar_data::Checksum;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Two overlapping clouds and a name; the sick are labelled far more often.
pub(crate) fn table(rows: usize, seed: u64) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut text = String::from("age,marker,ward,diagnosis\n");
    for _ in 0..rows {
        let sick = rng.random::<f64>() < 0.4;
        let shift = if sick { 1.0 } else { -1.0 };
        let mut noise = || (0..6).map(|_| rng.random::<f64>() - 0.5).sum::<f64>();
        let (age, marker) = (50.0 + 8.0 * (shift + noise()), 1.2 * shift + noise());
        let ward = ["north", "south", "east"][rng.random_range(0..3)];
        let label = match (sick, rng.random::<f64>()) {
            (true, draw) if draw < 0.7 => "sick",
            (false, draw) if draw < 0.3 => "healthy",
            _ => "",
        };
        writeln!(text, "{age:.2},{marker:.3},{ward},{label}").unwrap();
    }
    text
}

/// 16 × 16 pixels, a bright left or right half; the labels are in a file of their own.
pub(crate) fn images(folder: &Path, n: u32, seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut pixels: Vec<u8> = [0x0803, n, 16, 16].iter().flat_map(|word: &u32| word.to_be_bytes()).collect();
    let mut labels = String::from("y\n");
    for _ in 0..n {
        let right = rng.random::<f64>() < 0.5;
        pixels.extend((0..256).map(|i| rng.random_range(0..120) + if (i % 16 >= 8) == right { 100 } else { 0 }));
        let labelled = rng.random::<f64>() < if right { 0.7 } else { 0.4 };
        writeln!(labels, "{}", if labelled { if right { "right" } else { "left" } } else { "" }).unwrap();
    }
    fs::write(folder.join("train-images-idx3-ubyte"), pixels).unwrap();
    fs::write(folder.join("labels.csv"), labels).unwrap();
}

/// A command in a folder of data. Checkpoints are written at every step.
pub(crate) fn mnar(folder: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("mnar"));
    command.current_dir(folder).env("MNAR_CHECKPOINT_SECONDS", "0");
    command
}

pub(crate) fn start(folder: &Path, words: &[&str], more: &[&str]) -> Child {
    let mut command = mnar(folder);
    command.arg("fit").args(words).args(more).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

pub(crate) fn fit(folder: &Path, words: &[&str], more: &[&str]) -> Output {
    start(folder, words, more).wait_with_output().unwrap()
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// All files below a folder, by their paths in it.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    fn walk(folder: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => walk(&path, root, found),
                false => found.push(path.strip_prefix(root).unwrap().to_string_lossy().into_owned()),
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, folder, &mut found);
    found.sort();
    found
}

/// The files of a run that do not depend on when it ran, with their content.
pub(crate) fn lasting(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = ["settings.toml", "predictions.csv"];
    let lasts =
        |name: &String| names.contains(&name.as_str()) || name.starts_with("model/") || name.starts_with("base");
    files(run).into_iter().filter(lasts).map(|name| (name.clone(), fs::read(run.join(name)).unwrap())).collect()
}

/// What was found, without times.
pub(crate) fn findings(run: &Path) -> serde_json::Value {
    let mut report: serde_json::Value = serde_json::from_slice(&fs::read(run.join("report.json")).unwrap()).unwrap();
    let fields = report.as_object_mut().unwrap();
    for name in ["created", "seconds", "command", "training"] {
        fields.remove(name);
    }
    // Commands that come next name the folder.
    for step in fields.get_mut("next").and_then(serde_json::Value::as_array_mut).into_iter().flatten() {
        step.as_object_mut().unwrap().remove("command");
    }
    report
}

/// Files that a finished run should not hold.
pub(crate) fn strays(run: &Path) -> Vec<String> {
    let expected = |name: &String| {
        let known = ["manifest.json", "settings.toml", "predictions.csv", "report.html", "report.json"];
        let prefixes = ["model/", "baseline/", "metrics-", "events/"];
        let hidden = name.rsplit('/').next().is_some_and(|name| name.starts_with('.'));
        !hidden && (known.contains(&name.as_str()) || prefixes.iter().any(|prefix| name.starts_with(prefix)))
    };
    let empty = run.join("checkpoints").exists().then(|| "checkpoints/".to_owned());
    files(run).into_iter().filter(|name| !expected(name)).chain(empty).collect()
}

/// Copies a folder.
pub(crate) fn copy(from: &Path, to: &Path) -> PathBuf {
    for name in files(from) {
        let path = to.join(&name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(from.join(&name), path).unwrap();
    }
    to.to_owned()
}

/// Records the checksums of a run's files anew, as someone who tampers with them would.
pub(crate) fn reseal(run: &Path) {
    let path = run.join("manifest.json");
    let mut manifest: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for (name, sum) in manifest["files"].as_object_mut().unwrap() {
        *sum = Checksum::of_file(&run.join(name)).unwrap().to_string().into();
    }
    fs::write(path, manifest.to_string()).unwrap();
}

/// Whether a run has written a checkpoint.
pub(crate) fn has_checkpoint(run: &Path) -> bool {
    let hidden = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with('.');
    fs::read_dir(run.join("checkpoints")).is_ok_and(|entries| entries.flatten().any(|entry| !hidden(&entry)))
}

/// Starts a run and kills it when it has written its first checkpoint.
pub(crate) fn interrupt(home: &Path, words: &[&str], out: &str) -> PathBuf {
    let run = home.join(out);
    let mut child = start(home, words, &["--out", out]);
    while !has_checkpoint(&run) {
        assert!(child.try_wait().unwrap().is_none(), "{out} has ended");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    run
}
