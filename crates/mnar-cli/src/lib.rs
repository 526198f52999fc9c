//! The command `mnar`: from partly labelled data to the mechanism of the missing labels and a debiased model.
//!
//! A library only so that the Python package can be the same command and run the same `fit`; statistics are in `mnar`,
//! training in `mnar-train`. `args` is what was typed, `plan` what it means once checked, `cmd` the work, `output` what is shown.

mod args;
mod cmd;
mod embed;
mod input;
mod interrupt;
mod output;
mod plan;

pub use embed::{Fitted, fit, predict};

use args::{Cli, Command};
use clap::Parser;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::ExitCode;
use std::sync::OnceLock;

/// The command as typed, for reports that say how to make them again.
static TYPED: OnceLock<Vec<String>> = OnceLock::new();

/// What a command that ran has to say to the shell.
enum Outcome {
    Done,
    /// The test rejects, and `--fail-on-reject` asks to be told.
    Rejected,
    /// Ctrl-C: everything done so far is kept.
    Interrupted,
}

/// Runs the command line `words`, the name of the program first. Help and wrong words end the process, as clap does.
pub fn main(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.into_iter().collect();
    TYPED.get_or_init(|| words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect());
    let cli = Cli::parse_from(words);
    let (table, result) = match cli.command {
        Command::Demo(args) => (None, cmd::demo::run(args)),
        Command::Estimate(args) => (Some(args.table.table.clone()), cmd::estimate::run(args)),
        Command::Test(args) => (Some(args.table.table.clone()), cmd::test::run(args)),
        Command::Fit(args) => (Some(args.data.data.clone()), cmd::fit::run(*args)),
        Command::Predict(args) => (Some(args.data.clone()), cmd::predict::run(args)),
        Command::Report(args) => (None, cmd::report::run(&args)),
        Command::Completions(args) => (None, cmd::shell::completions(args.shell)),
        Command::Man => (None, cmd::shell::man()),
        Command::Simulate(args) => (Some(args.table.clone()), cmd::simulate::run(args)),
    };
    // The statistics know rows and classes but no files; readers name the file themselves.
    let result = match (table, result) {
        (Some(table), Err(error)) if speaks_of_rows(&error) => Err(error.context(table.display().to_string())),
        (_, result) => result,
    };
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Rejected) => ExitCode::from(1),
        // What a shell reports for a program that Ctrl-C ended.
        Ok(Outcome::Interrupted) => ExitCode::from(130),
        // `mnar ... | head` closes the pipe early, and that is fine.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn speaks_of_rows(error: &anyhow::Error) -> bool {
    error.is::<mnar::Error>()
        || matches!(
            error.downcast_ref(),
            Some(mnar_train::TrainError::Statistics(_) | mnar_train::TrainError::WrongInput { .. })
        )
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == ErrorKind::BrokenPipe)
}
