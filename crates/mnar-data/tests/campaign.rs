//! Mutated files of every format, read under a limit of memory and time: any answer will do but a panic, an abort, a hang or
//! too much memory.
//!
//! `cargo test -p mnar-data --test campaign` reads a few thousand. For more, and for the record in `results`:
//!
//! ```text
//! MNAR_CAMPAIGN=100000 cargo test -p mnar-data --test campaign -- --nocapture
//! ```
//!
//! The files are read by copies of this program, each with 2 GB of address space, so that a copy that dies is an outcome and
//! not the end. Every mutation follows from its number: `MNAR_CAMPAIGN_ONLY=NUMBER` makes one again, in this process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;

use common::mutate::{Draw, mutated};
use common::seeds::{Seed, seeds};
use mnar_data::{
    Memory, ParquetPredictions, PredictionColumns, ReadOptions, Source, read_dataset, read_labels, read_predictions,
    survey,
};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Mutations of an ordinary test run.
const FEW: u64 = 2600;

/// What the readers are told that they have: half of what the process has.
const MEMORY: Memory = Memory::bytes(1_000_000_000);

/// The address space of a process, in kB.
const ADDRESS_SPACE: u64 = 2_000_000;

/// A reader that takes longer hangs.
const HANG: Duration = Duration::from_secs(20);

const WORKER: &str = "MNAR_CAMPAIGN_WORKER";

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn mutated_files_of_every_format_are_survived() {
    if let Some(first) = number(WORKER) {
        return work(first, number("MNAR_CAMPAIGN_END").unwrap());
    }
    let seeds = seeds();
    if let Some(only) = number("MNAR_CAMPAIGN_ONLY") {
        let folder = tempfile::tempdir().unwrap();
        let seed = &seeds[(only % seeds.len() as u64) as usize];
        println!("{only}: {}: {}", seed.name, read(seed, only, folder.path()));
        return;
    }
    let asked = number("MNAR_CAMPAIGN");
    let start = Instant::now();
    let total = run(asked.unwrap_or(FEW), &seeds);
    println!("{total:?} in {:.0} s", start.elapsed().as_secs_f64());
    if asked.is_some() {
        total.write(&seeds, start.elapsed());
    }
    assert!(total.failures.is_empty(), "{:#?}", total.failures);
}

#[test]
fn the_files_themselves_are_fine() {
    for seed in seeds() {
        let folder = tempfile::tempdir().unwrap();
        place(&seed, (seed.pack)(seed.bytes.clone()), folder.path());
        let options = ReadOptions { label: Some("label".into()), ..options(&seed, folder.path()) };
        let path = target(&seed, folder.path());
        let read = read_dataset(Source::from(&path).with_memory(MEMORY), &options)
            .or_else(|_| read_dataset(Source::from(&path).with_memory(MEMORY), &self::options(&seed, folder.path())));
        assert!(read.is_ok(), "{}: {}", seed.name, read.unwrap_err());
    }
}

/// What happened to all mutations.
#[derive(Debug, Default)]
struct Total {
    /// Mutations, and those that some reader still read, by seed.
    by_seed: BTreeMap<&'static str, (u64, u64)>,
    failures: Vec<String>,
    panics: u64,
    aborts: u64,
    hangs: u64,
    /// Largest resident set of any process, in bytes.
    peak: u64,
    /// The longest time that a mutation took, in milliseconds.
    slowest: u64,
}

impl Total {
    fn write(&self, seeds: &[Seed], took: Duration) {
        let formats: Vec<String> = seeds
            .iter()
            .map(|seed| {
                let (mutations, read) = self.by_seed.get(seed.name).copied().unwrap_or_default();
                format!("    {{ \"format\": \"{}\", \"mutations\": {mutations}, \"still_read\": {read} }}", seed.name)
            })
            .collect();
        let mutations: u64 = self.by_seed.values().map(|(mutations, _)| mutations).sum();
        let text = format!(
            "{{\n  \"mutations\": {mutations},\n  \"panics\": {},\n  \"aborts\": {},\n  \"hangs_over_20_s\": {},\n  \"peak_memory_mb\": {},\n  \"memory_limit_mb\": {},\n  \"address_space_mb\": {},\n  \"slowest_ms\": {},\n  \"seconds\": {:.0},\n  \"formats\": [\n{}\n  ]\n}}\n",
            self.panics,
            self.aborts,
            self.hangs,
            self.peak / 1_000_000,
            MEMORY.total() / 1_000_000,
            ADDRESS_SPACE / 1000,
            self.slowest,
            took.as_secs_f64(),
            formats.join(",\n")
        );
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/reliability-readers.json");
        std::fs::write(path, text).unwrap();
    }
}

/// Hands out mutations to processes, and counts what becomes of them.
fn run(mutations: u64, seeds: &[Seed]) -> Total {
    let mut total = Total::default();
    let mut next = 0;
    while next < mutations {
        let (reached, failure) = watch(next, mutations, seeds, &mut total);
        if let Some(failure) = failure {
            let name = seeds[(reached % seeds.len() as u64) as usize].name;
            total.failures.push(format!("mutation {reached} ({name}): {failure}"));
        }
        next = reached + 1;
    }
    total
}

/// Runs one process until it ends. Gives the last mutation that it started, and what went wrong with it.
fn watch(first: u64, end: u64, seeds: &[Seed], total: &mut Total) -> (u64, Option<String>) {
    let program = std::env::current_exe().unwrap();
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {ADDRESS_SPACE}; exec \"$0\" \"$@\"")])
        .arg(program)
        .args(["mutated_files", "--nocapture", "--test-threads", "1"])
        .env(WORKER, first.to_string())
        .env("MNAR_CAMPAIGN_END", end.to_string())
        .env("RAYON_NUM_THREADS", "2")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (send, receive) = channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    let (mut at, mut started, mut failure) = (first, Instant::now(), None);
    loop {
        let line = match receive.recv_timeout(HANG) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                total.hangs += 1;
                failure = Some("it hangs".to_owned());
                break;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let mut words = line.splitn(3, ' ');
        match (words.next(), words.next().and_then(|word| word.parse::<u64>().ok()), words.next()) {
            (Some("start"), Some(mutation), _) => (at, started) = (mutation, Instant::now()),
            (Some("done"), Some(mutation), Some(outcome)) => {
                total.slowest = total.slowest.max(started.elapsed().as_millis() as u64);
                let counts = total.by_seed.entry(seeds[(mutation % seeds.len() as u64) as usize].name).or_default();
                counts.0 += 1;
                counts.1 += u64::from(outcome == "read");
                if let Some(said) = outcome.strip_prefix("panic ") {
                    total.panics += 1;
                    total.failures.push(format!("mutation {mutation}: {said}"));
                }
            }
            (Some("peak"), Some(bytes), _) => total.peak = total.peak.max(bytes),
            _ => {}
        }
    }
    let status = child.wait().unwrap();
    if failure.is_none() && !status.success() {
        total.aborts += 1;
        failure = Some(format!("the process ended with {status}"));
    }
    (at, failure)
}

/// Reads mutations and says on stdout which one it is at.
fn work(first: u64, end: u64) {
    std::panic::set_hook(Box::new(|_| {}));
    let (seeds, folder) = (seeds(), tempfile::tempdir().unwrap());
    let mut out = std::io::stdout();
    // The name of the test stands on the line so far.
    writeln!(out).unwrap();
    for mutation in first..end {
        writeln!(out, "start {mutation}").unwrap();
        let seed = &seeds[(mutation % seeds.len() as u64) as usize];
        let outcome = read(seed, mutation, folder.path());
        writeln!(out, "done {mutation} {outcome}\npeak {}", peak()).unwrap();
    }
}

/// The largest resident set of this process so far, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().map_or(0, |kb| kb * 1024)
}

fn place(seed: &Seed, bytes: Vec<u8>, folder: &Path) {
    for (path, bytes) in seed.beside.iter().cloned().chain([(seed.path, bytes)]) {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

/// The file, or the folder around it.
fn target(seed: &Seed, folder: &Path) -> std::path::PathBuf {
    let path = folder.join(seed.path);
    match (seed.folder, seed.path.split_once('/')) {
        (true, Some((top, _))) => folder.join(top),
        (true, None) => folder.to_owned(),
        _ => path,
    }
}

fn options(seed: &Seed, folder: &Path) -> ReadOptions {
    let labels = seed.beside.iter().find(|(path, _)| *path == "labels.csv").map(|(path, _)| folder.join(path));
    ReadOptions { labels_file: labels, ..ReadOptions::default() }
}

/// Makes a mutation and reads it with every reader that takes such a file: `read` if one does, else `refused`.
fn read(seed: &Seed, mutation: u64, folder: &Path) -> String {
    // Arrays and images of a folder are told from others by what else is there.
    let folder = &folder.join(seed.name.replace([' ', ','], "-"));
    std::fs::create_dir_all(folder).unwrap();
    let mut draw = Draw::new(mutation);
    place(seed, (seed.pack)(mutated(seed.bytes.clone(), &mut draw)), folder);
    let path = target(seed, folder);
    let source = Source::from(&path).with_memory(MEMORY);
    let own = options(seed, folder);
    let named = ReadOptions { label: Some("label".into()), ..own.clone() };
    let columns = PredictionColumns::new("label");
    let readers: [&dyn Fn() -> bool; 7] = [
        &|| read_dataset(source, &named).is_ok_and(|read| read.inputs.len() == read.labels.len()),
        &|| read_dataset(source, &own).is_ok(),
        &|| survey(source, &named).is_ok(),
        &|| read_predictions(source, &columns).is_ok_and(|read| read.labels.len() == read.posteriors.len()),
        &|| read_labels(source, &named).is_ok(),
        &|| ParquetPredictions::open(source, &columns).is_ok_and(|file| mnar::sums::Tally::of(&file).is_ok()),
        &|| mnar_data::read_columns(source, &["when".into(), "e".into()], &[]).is_ok(),
    ];
    let mut any = false;
    for (k, reader) in readers.iter().enumerate() {
        match catch_unwind(AssertUnwindSafe(reader)) {
            Ok(read) => any |= read,
            Err(panic) => {
                let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
                return format!("panic in reader {k}: {}", said.unwrap_or_default().replace('\n', " "));
            }
        }
    }
    if any { "read" } else { "refused" }.to_owned()
}
