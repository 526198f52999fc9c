//! The command `mnar`: from partly labelled data to the mechanism of the missing labels and a debiased model.
//!
//! `args` is what was typed, `plan` what it means once checked, `cmd` the work, `output` what is shown.

mod args;
mod cmd;
mod input;
mod interrupt;
mod output;
mod plan;

use args::{Cli, Command};
use clap::Parser;
use std::io::ErrorKind;
use std::process::ExitCode;

/// Training frees and takes the same large buffers at every step: an allocator that keeps them spares a page fault every
/// 4 KB, up to a quarter of the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What a command that ran has to say to the shell.
enum Outcome {
    Done,
    /// The test rejects, and `--fail-on-reject` asks to be told.
    Rejected,
    /// Ctrl-C: everything done so far is kept.
    Interrupted,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let (table, result) = match cli.command {
        Command::Demo(args) => (None, cmd::demo::run(args)),
        Command::Estimate(args) => (Some(args.table.table.clone()), cmd::estimate::run(args)),
        Command::Test(args) => (Some(args.table.table.clone()), cmd::test::run(args)),
        Command::Fit(args) => (Some(args.data.data.clone()), cmd::fit::run(*args)),
        Command::Predict(args) => (Some(args.data.clone()), cmd::predict::run(args)),
        Command::Report(args) => (None, cmd::report::run(&args)),
        Command::Completions(args) => (None, cmd::shell::completions(args.shell)),
        Command::Man => (None, cmd::shell::man()),
        Command::Reproduce(args) => (None, cmd::reproduce::run(&args)),
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
