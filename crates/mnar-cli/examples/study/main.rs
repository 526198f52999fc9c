//! The simulation study: size and power of the tests, coverage of the intervals, accuracy of phi, and the check of
//! self-masking. Writes JSON and a page that shows it.
//!
//! `cargo run --release -p mnar-cli --example study -- all --data DIR`

mod accuracy;
mod coverage;
mod draws;
mod page;
mod self_masking;
mod size;
mod worlds;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Parser)]
#[command(about = "Measures size, power, coverage and accuracy by simulation")]
struct Args {
    /// Which study.
    #[arg(value_enum, default_value_t = Study::All)]
    study: Study,
    /// Folder with `mnist/` and `optdigits/`; else the environment variable MNAR_DATA.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Folder for the results.
    #[arg(long, default_value = "results")]
    out: PathBuf,
    /// Draws of each setting, instead of 1,000 (500 for self-masking; the bootstrap tests have at most 200).
    #[arg(long)]
    draws: Option<usize>,
    /// A minute's worth, to see that it runs.
    #[arg(long)]
    quick: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Study {
    All,
    Size,
    Coverage,
    Accuracy,
    SelfMasking,
    /// None: only the page is made again, from the files that are there.
    Page,
}

/// A file of results.
#[derive(Serialize, Deserialize)]
struct Results<T> {
    command: String,
    /// Wall-clock time of the whole study, on the machine and under the load it had.
    seconds: f64,
    /// Parts that were left out.
    skipped: Vec<String>,
    settings: Vec<T>,
}

const SIZE: &str = "size_power.json";
const COVERAGE: &str = "coverage.json";
const ACCURACY: &str = "accuracy.json";
const SELF_MASKING: &str = "self_masking.json";

fn main() -> Result<()> {
    let args = Args::parse();
    let data = args.data.clone().or_else(|| std::env::var_os("MNAR_DATA").map(PathBuf::from));
    std::fs::create_dir_all(&args.out).with_context(|| format!("{} cannot be made", args.out.display()))?;
    let wanted = |study: Study| args.study == Study::All || args.study == study;
    let count = |full: usize, quick: usize| args.draws.unwrap_or(if args.quick { quick } else { full });
    let optdigits = |skipped: &mut Vec<String>| match &data {
        Some(data) => worlds::optdigits(data).map(Some),
        None => {
            skip(skipped, "optdigits: no --data");
            Ok(None)
        }
    };

    if wanted(Study::Coverage) {
        let replicates = if args.quick { 50 } else { 200 };
        write(&args, "coverage", COVERAGE, |_| coverage::study(count(1000, 20), replicates))?;
    }
    if wanted(Study::Size) {
        write(&args, "size", SIZE, |skipped| {
            let counts = |bootstrap: usize| size::Counts {
                draws: count(1000, 20),
                bootstrap: count(bootstrap, 4).min(bootstrap),
            };
            let mut settings = size::gaussians(counts(200))?;
            if let Some(world) = optdigits(skipped)? {
                settings.extend(size::optdigits(&world, counts(100))?);
            }
            Ok(settings)
        })?;
    }
    if wanted(Study::SelfMasking) {
        write(&args, "self-masking", SELF_MASKING, |skipped| {
            let mut settings = self_masking::gaussians(count(500, 20))?;
            if let Some(world) = optdigits(skipped)? {
                settings.extend(self_masking::optdigits(&world, count(500, 20))?);
            }
            Ok(settings)
        })?;
    }
    if wanted(Study::Accuracy) {
        write(&args, "accuracy", ACCURACY, |skipped| match &data {
            Some(data) => accuracy::study(&worlds::mnist(data)?, if args.quick { 1 } else { 5 }),
            None => {
                skip(skipped, "MNIST: no --data");
                Ok(Vec::new())
            }
        })?;
    }
    let page = page::page(&args.out)?;
    write_file(&args.out.join("README.md"), page.as_bytes())
}

fn skip(skipped: &mut Vec<String>, what: &str) {
    eprintln!("skipped {what} and no MNAR_DATA names the folder");
    skipped.push(what.into());
}

/// Runs a study and writes what it gave.
fn write<T: Serialize>(
    args: &Args,
    study: &str,
    file: &str,
    run: impl FnOnce(&mut Vec<String>) -> Result<Vec<T>>,
) -> Result<()> {
    let start = Instant::now();
    let mut skipped = Vec::new();
    let settings = run(&mut skipped)?;
    let mut command = format!("cargo run --release -p mnar-cli --example study -- {study} --data DIR");
    if let Some(draws) = args.draws {
        command.push_str(&format!(" --draws {draws}"));
    }
    if args.quick {
        command.push_str(" --quick");
    }
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("{study}: {seconds:.0} s");
    let mut text = serde_json::to_vec_pretty(&Results { command, seconds, skipped, settings })?;
    text.push(b'\n');
    write_file(&args.out.join(file), &text)
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = mnar_data::AtomicFile::create(path)?;
    file.write_all(bytes)?;
    file.commit()?;
    Ok(())
}
