//! Reruns an experiment of the paper and prints our results beside the published ones.
//!
//! `cargo run --release -p reproduce -- mnist-s2 --data DIR`

mod args;
mod terminal;

use anyhow::{Result, bail};
use args::{Args, DeviceName, ProtocolName};
use clap::Parser;
use mnar_data::AtomicFile;
use mnar_train::device::{self, Device};
use reproduce::{Candidate, Experiment, Overrides, Protocol, ReproduceError, Summary, Verdict, Watch};
use reproduce::{draw_all, page, results, run_tests, short_table, summarise, test_table, write_figures};
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;
use terminal::{Terminal, print, stop_on_ctrl_c, text_table};

/// Training frees and takes the same large buffers at every step: an allocator that keeps them saves a page fault every
/// 4 KB, up to a quarter of the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        // `reproduce ... | head` closes the pipe early, which is not a failure.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if error.downcast_ref().is_some_and(ReproduceError::is_cancelled) => {
            eprintln!("stopped; finished runs are kept in {}.\nRun the same command to continue.", args.out.display());
            // What a shell reports for a program that Ctrl-C ended.
            ExitCode::from(130)
        }
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

fn run(args: &Args) -> Result<()> {
    if let (Some(name), Some(data)) = (&args.experiment, &args.data) {
        let experiment = Experiment::find(name)?;
        let methods = args.methods.as_ref().map(|names| candidates(names)).transpose()?;
        let device = Some(device(args.device)?);
        let overrides =
            Overrides { methods, seeds: args.seeds, first_seed: args.first_seed, epochs: args.epochs, device };
        let terminal = Terminal::new(args.quiet, stop_on_ctrl_c()?);
        if args.test {
            return tests(args, &experiment, &overrides, data, &terminal);
        }
        methods_table(args, &experiment, &overrides, data, &terminal)?;
    }
    if let Some(path) = &args.page {
        AtomicFile::write_text(path, &page(&args.out)?)?;
        draw_all(&args.out)?;
        print(&format!("wrote {} and the figures in {}\n", path.display(), args.out.display()))?;
    }
    Ok(())
}

/// Trains every method with every seed, and prints the results.
fn methods_table(
    args: &Args,
    experiment: &Experiment,
    overrides: &Overrides,
    data: &Path,
    terminal: &Terminal,
) -> Result<()> {
    let protocol = match args.protocol {
        ProtocolName::Paper => Protocol::Paper,
        ProtocolName::Real => Protocol::Real,
    };
    let watch = Watch { progress: terminal, on_run: &|event| terminal.show(event) };
    let outcomes = reproduce::run(experiment, overrides, protocol, data, &args.out, &watch);
    terminal.clear();
    let outcomes = outcomes?;
    let folder = args.out.join(&experiment.name).join(protocol.name());
    let summaries = summarise(&outcomes);
    let seeds = summaries.iter().map(|summary| summary.seeds).max().unwrap_or(0);
    let mut text = format!("{}, protocol {}, {seeds} seed(s)\n\n", experiment.title, protocol.name());
    text.push_str(&text_table(&short_table(experiment, &summaries)));
    text.push('\n');
    text.push_str(&text_table(&accuracy_by_class(&summaries)));
    for Verdict { goal, found, met } in experiment.goals.iter().filter_map(|goal| goal.judge(&summaries)) {
        let met = if met { "met" } else { "missed" };
        text.push_str(&format!("\ngoal {met}: {goal}\n  found {found}\n"));
    }
    // The figures show every method with results, not only those requested now.
    let figures = write_figures(experiment, &results(experiment, protocol, &args.out)?, &folder)?;
    let names: Vec<String> =
        figures.iter().filter_map(|path| path.file_name()).map(|n| n.to_string_lossy().into_owned()).collect();
    text.push_str(&format!("\nIn {}: one JSON file per method and seed; {}.\n", folder.display(), names.join(", ")));
    Ok(print(&text)?)
}

/// Tests whether labels are informative, and prints how often each test rejects.
fn tests(args: &Args, experiment: &Experiment, overrides: &Overrides, data: &Path, terminal: &Terminal) -> Result<()> {
    let watch = Watch { progress: terminal, on_run: &|event| terminal.show(event) };
    let draws = run_tests(experiment, overrides, data, &args.out, &watch);
    terminal.clear();
    let table = text_table(&test_table(&draws?));
    Ok(print(&format!("{}: are labels informative?\n\n{table}", experiment.title))?)
}

fn device(name: DeviceName) -> Result<Device> {
    let device = match name {
        DeviceName::Cpu => device::cpu(),
        DeviceName::Cuda => device::cuda()?,
        DeviceName::Wgpu => device::wgpu()?,
    };
    // An unusable choice of kernels fails here, not after the data were read.
    if let Some(name) = std::env::var_os("MNAR_KERNELS").filter(|name| !name.is_empty()) {
        mnar_train::layers::select_cpu_kernels(&name.to_string_lossy())?;
    }
    Ok(device)
}

fn candidates(names: &[String]) -> Result<Vec<Candidate>> {
    names
        .iter()
        .map(|name| {
            let known = Candidate::ALL.into_iter().find(|candidate| candidate.name() == name);
            known.map_or_else(
                || {
                    let all: Vec<&str> = Candidate::ALL.iter().map(|candidate| candidate.name()).collect();
                    bail!("there is no method `{name}`; the methods are {}", all.join(", "))
                },
                Ok,
            )
        })
        .collect()
}

/// Test accuracy of each class in percent: a heading, then one line per method.
fn accuracy_by_class(summaries: &[Summary]) -> Vec<Vec<String>> {
    let k = summaries.first().map_or(0, |summary| summary.accuracy_per_class.len());
    let heading = std::iter::once("% of class".to_owned()).chain((0..k).map(|k| k.to_string())).collect();
    let line = |summary: &Summary| {
        let accuracies = summary.accuracy_per_class.iter().map(|accuracy| format!("{:.1}", 100.0 * accuracy));
        std::iter::once(summary.method.title().to_owned()).chain(accuracies).collect()
    };
    std::iter::once(heading).chain(summaries.iter().map(line)).collect()
}
