//! The simulation study: size and power of the tests, coverage of the intervals, accuracy of phi, and the self-masking
//! check. It writes JSON files and a page that presents them.
//!
//! `cargo run --release -p study -- all --data DIR`

mod accuracy;
mod audits;
mod coverage;
mod draws;
mod evaluate;
mod fit;
mod mechanisms;
mod page;
mod questions;
#[cfg(test)]
mod real_data;
mod self_masking;
mod size;
mod trees;
mod worlds;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Parser)]
#[command(name = "study", about = "Measure size, power, coverage and accuracy by simulation")]
struct Args {
    /// Study to run
    #[arg(value_enum, default_value_t = Study::All)]
    study: Study,
    /// Folder with `mnist/` and `optdigits/`; by default, the environment variable MNAR_DATA
    #[arg(long)]
    data: Option<PathBuf>,
    /// Folder for the results
    #[arg(long, default_value = "results")]
    out: PathBuf,
    /// Number of draws per setting, instead of 1,000 (500 for self-masking; at most 200 for the bootstrap tests)
    #[arg(long)]
    draws: Option<usize>,
    /// Tables of the studies of mechanisms, audits and evaluations, separated by commas
    #[arg(long)]
    tables: Option<String>,
    /// Mechanisms of the study of mechanisms by their position from 0, separated by commas; all by default
    #[arg(long)]
    causes: Option<String>,
    /// Number of draws of the settings of the study of questions that refit a classifier 200 times
    #[arg(long)]
    refits: Option<usize>,
    /// Replicates of the bootstraps of the study of mechanisms, instead of the program's own number
    #[arg(long)]
    replicates: Option<usize>,
    /// First seed of the studies of mechanisms and questions. Rules were chosen on seeds that are not reported
    #[arg(long, default_value_t = BASE)]
    base: u64,
    /// Use few draws, to check in about a minute that everything runs
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
    Mechanisms,
    Audits,
    Questions,
    Evaluate,
    Trees,
    /// No study: only make the page again, from the existing files
    Page,
}

/// A file with the results of a study.
#[derive(Serialize, Deserialize)]
struct Results<T> {
    command: String,
    /// Wall-clock time of the whole study.
    seconds: f64,
    /// Parts that were left out.
    skipped: Vec<String>,
    settings: Vec<T>,
}

/// The first seed of the reported draws.
const BASE: u64 = 8_000_000;
/// The command that runs this program; its arguments follow after `--`.
const COMMAND: &str = "cargo run --release -p study";
const SIZE: &str = "size_power.json";
const COVERAGE: &str = "coverage.json";
const ACCURACY: &str = "accuracy.json";
const SELF_MASKING: &str = "self_masking.json";
const QUESTIONS: &str = "questions.json";
const MECHANISMS: &str = "mechanisms.json";
const AUDITS: &str = "audits.json";
const EVALUATE: &str = "evaluate.json";
const TREES: &str = "tree_intervals.json";

fn main() -> Result<()> {
    let args = Args::parse();
    let data = args.data.clone().or_else(|| std::env::var_os("MNAR_DATA").map(PathBuf::from));
    std::fs::create_dir_all(&args.out).with_context(|| format!("{} cannot be created", args.out.display()))?;
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
    if wanted(Study::Questions) {
        write(&args, "questions", QUESTIONS, |skipped| {
            if data.is_none() {
                skip(skipped, "pima: no --data");
            }
            questions::study(data.as_deref(), count(1000, 20), args.refits.unwrap_or(count(1000, 4)), args.base)
        })?;
    }
    if wanted(Study::Mechanisms) {
        write(&args, "mechanisms", MECHANISMS, |skipped| match &data {
            Some(data) => mechanisms::study(
                data,
                mechanisms::Plan {
                    draws: count(200, 4),
                    tables: args.tables.as_deref(),
                    causes: args.causes.as_deref(),
                    replicates: args.replicates,
                    base: args.base,
                },
            ),
            None => {
                skip(skipped, "tables: no --data");
                Ok(Vec::new())
            }
        })?;
    }
    if wanted(Study::Audits) {
        write(&args, "audits", AUDITS, |skipped| match &data {
            Some(data) => audits::study(data, count(200, 4), args.tables.as_deref(), args.base),
            None => {
                skip(skipped, "tables: no --data");
                Ok(Vec::new())
            }
        })?;
    }
    if wanted(Study::Evaluate) {
        let replicates = if args.quick { 20 } else { 100 };
        write(&args, "evaluate", EVALUATE, |skipped| match &data {
            Some(data) => evaluate::study(data, count(300, 4), replicates, args.tables.as_deref(), args.base),
            None => {
                skip(skipped, "tables: no --data");
                Ok(Vec::new())
            }
        })?;
    }
    if wanted(Study::Trees) {
        write(&args, "trees", TREES, |skipped| match &data {
            Some(data) => trees::study(data, count(200, 4), args.tables.as_deref(), args.base),
            None => {
                skip(skipped, "tables: no --data");
                Ok(Vec::new())
            }
        })?;
    }
    let page = page::page(&args.out)?;
    write_file(&args.out.join("README.md"), page.as_bytes())
}

fn skip(skipped: &mut Vec<String>, what: &str) {
    eprintln!("skipped {what}, and MNAR_DATA is not set");
    skipped.push(what.into());
}

/// Runs a study and writes its results.
fn write<T: Serialize>(
    args: &Args,
    study: &str,
    file: &str,
    run: impl FnOnce(&mut Vec<String>) -> Result<Vec<T>>,
) -> Result<()> {
    let start = Instant::now();
    let mut skipped = Vec::new();
    let settings = run(&mut skipped)?;
    let mut command = format!("{COMMAND} -- {study} --data DIR");
    if args.base != BASE {
        command.push_str(&format!(" --base {}", args.base));
    }
    if let Some(draws) = args.draws {
        command.push_str(&format!(" --draws {draws}"));
    }
    if let (Some(refits), "questions") = (args.refits, study) {
        command.push_str(&format!(" --refits {refits}"));
    }
    if let (Some(tables), "mechanisms" | "audits" | "evaluate" | "trees") = (&args.tables, study) {
        command.push_str(&format!(" --tables {tables}"));
    }
    if let (Some(replicates), "mechanisms") = (args.replicates, study) {
        command.push_str(&format!(" --replicates {replicates}"));
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
