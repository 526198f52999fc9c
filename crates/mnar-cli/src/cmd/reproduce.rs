//! `mnar reproduce`: an experiment of the paper, ours beside theirs.

use crate::Outcome;
use crate::args::{ProtocolName, ReproduceArgs};
use crate::interrupt::stop_on_ctrl_c;
use crate::output::progress_bar;
use crate::plan;
use anyhow::{Result, bail};
use indicatif::ProgressBar;
use mnar_data::AtomicFile;
use mnar_report::TextTable;
use mnar_reproduce::{Candidate, Experiment, Overrides, Progress, Protocol, draw_all, page, run as reproduce};
use mnar_reproduce::{Summary, results, short_table, summarise, write_figures};
use mnar_reproduce::{run_tests, test_table};
use mnar_train::Observer;
use std::path::Path;
use std::sync::atomic::AtomicBool;

pub(crate) fn run(args: &ReproduceArgs) -> Result<Outcome> {
    if let (Some(name), Some(data)) = (&args.experiment, &args.data) {
        let experiment = Experiment::find(name)?;
        let device = Some(plan::device(args.device)?);
        let methods = args.methods.as_ref().map(|names| candidates(names)).transpose()?;
        let overrides = Overrides { methods, seeds: args.seeds, epochs: args.epochs, device };
        let protocol = match args.protocol {
            ProtocolName::Paper => Protocol::Paper,
            ProtocolName::Real => Protocol::Real,
        };
        let stop = stop_on_ctrl_c()?;
        if args.test {
            return tests(args, &experiment, &overrides, data, &stop);
        }
        let mut terminal = Terminal::new(args.quiet);
        let outcomes = reproduce(&experiment, &overrides, protocol, data, &args.out, &stop, &mut terminal)?;
        terminal.bar.finish_and_clear();
        let Some(outcomes) = outcomes else { return Ok(stopped(args, &experiment)) };
        let folder = args.out.join(&experiment.name).join(protocol.name());
        let summaries = summarise(&outcomes);
        let seeds = summaries.iter().map(|summary| summary.seeds).max().unwrap_or(0);
        println!("{}, protocol {}, {} seed(s)\n", experiment.title, protocol.name(), seeds);
        print_table(&short_table(&experiment, &summaries));
        println!();
        print_table(&classes(&summaries));
        for verdict in experiment.goals.iter().filter_map(|goal| goal.judge(&summaries)) {
            let met = if verdict.met { "met" } else { "missed" };
            println!("\ngoal {met}: {}\n  found {}", verdict.goal, verdict.found);
        }
        // Of all methods that are there, not only of those asked for now.
        let figures = write_figures(&experiment, &results(&experiment, protocol, &args.out)?, &folder)?;
        let names: Vec<String> =
            figures.iter().filter_map(|path| path.file_name()).map(|n| n.to_string_lossy().into_owned()).collect();
        println!("\nIn {}: one JSON file a method and seed; {}.", folder.display(), names.join(", "));
    }
    if let Some(path) = &args.page {
        AtomicFile::write_text(path, &page(&args.out)?)?;
        draw_all(&args.out)?;
        println!("wrote {}, and the figures in {}", path.display(), args.out.display());
    }
    Ok(Outcome::Done)
}

/// The tests of informative labels.
fn tests(
    args: &ReproduceArgs,
    experiment: &Experiment,
    overrides: &Overrides,
    data: &Path,
    stop: &AtomicBool,
) -> Result<Outcome> {
    let mut terminal = Terminal::new(args.quiet);
    let draws = run_tests(experiment, overrides, data, &args.out, stop, &mut terminal)?;
    terminal.bar.finish_and_clear();
    let Some(draws) = draws else { return Ok(stopped(args, experiment)) };
    println!("{}: are labels informative?\n", experiment.title);
    print_table(&test_table(&draws));
    Ok(Outcome::Done)
}

fn stopped(args: &ReproduceArgs, experiment: &Experiment) -> Outcome {
    let folder = args.out.join(&experiment.name);
    eprintln!("stopped; finished runs are in {}.\nGo on with the same command.", folder.display());
    Outcome::Interrupted
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

/// Accuracy of every class, in percent.
fn classes(summaries: &[Summary]) -> Vec<Vec<String>> {
    let k = summaries.first().map_or(0, |summary| summary.accuracy_per_class.len());
    let heading = std::iter::once("% of class".to_owned()).chain((0..k).map(|k| k.to_string())).collect();
    let line = |summary: &Summary| {
        let accuracies = summary.accuracy_per_class.iter().map(|accuracy| format!("{:.1}", 100.0 * accuracy));
        std::iter::once(summary.method.title().to_owned()).chain(accuracies).collect()
    };
    std::iter::once(heading).chain(summaries.iter().map(line)).collect()
}

fn print_table(lines: &[Vec<String>]) {
    let Some((heading, rows)) = lines.split_first() else { return };
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    let mut table = TextTable::new(&heading);
    rows.iter().for_each(|row| table.row(row.clone()));
    print!("{}", table.render());
}

struct Terminal {
    bar: ProgressBar,
    quiet: bool,
}

impl Terminal {
    fn new(quiet: bool) -> Self {
        let bar = progress_bar("{prefix} [{bar:28}] {pos}/{len} steps, {eta} left", quiet);
        Self { bar, quiet }
    }
}

impl Observer for Terminal {
    fn started(&mut self, step: u64, steps: u64) {
        self.bar.reset();
        self.bar.set_length(steps);
        self.bar.set_position(step);
    }

    fn stepped(&mut self, step: u64) {
        self.bar.set_position(step);
    }
}

impl Progress for Terminal {
    fn begins(&mut self, what: &str, seed: u64, done: usize, of: usize) {
        self.bar.set_prefix(format!("{}/{of} {what}, seed {seed}", done + 1));
    }

    fn ended(&mut self, line: &str) {
        if !self.quiet {
            self.bar.suspend(|| eprintln!("{line}"));
        }
    }

    fn observer(&mut self) -> &mut dyn Observer {
        self
    }
}
