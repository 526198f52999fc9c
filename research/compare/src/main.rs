//! Compares debiased training with its baselines, on real data masked by known mechanisms.
//!
//! `cargo run --release -p compare -- tables --data DIR`
//!
//! `cargo run --release -p compare -- page`
//!
//! Run from the root of the repository: `tables` writes `results/training_tables.json`, and `page` makes
//! `results/training.md` from the JSON there.

mod methods;
mod page;
mod tables;

use anyhow::Result;
use clap::{Args, Parser};
use mnar_data::AtomicFile;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The folder of all results, below the root of the repository.
const RESULTS: &str = "results";

/// Compare debiased training with its baselines
#[derive(Parser)]
#[command(name = "compare")]
enum Command {
    /// Train every method on every table, print the scores and write them as JSON
    Tables(TablesArgs),
    /// Make results/training.md again from the JSON in results
    Page,
}

#[derive(Args)]
struct TablesArgs {
    /// Folder with `optdigits/` and `pneumoniamnist/`
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    /// Number of masks to draw
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// Comma-separated methods, instead of all
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    methods: Option<Vec<String>>,

    /// Comma-separated data sets, instead of all: optdigits, breast cancer, pneumonia
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    sets: Option<Vec<String>>,
}

fn main() -> ExitCode {
    let result = match Command::parse() {
        Command::Tables(args) => tables::run(&args),
        Command::Page => page::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // `compare ... | head` closes the pipe early, which is not a failure.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    causes.any(|cause| cause.kind() == ErrorKind::BrokenPipe)
}

/// Writes a line to stdout. `println!` would panic on a closed pipe; here it is an error, which `main` treats as
/// success.
fn print(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Writes a file into [`RESULTS`].
fn write_results(name: &str, text: &str) -> Result<()> {
    Ok(AtomicFile::write_text(&Path::new(RESULTS).join(name), text)?)
}
