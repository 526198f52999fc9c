//! The command `mnar`: from partly labelled data to the mechanism of the missing labels and a corrected model.
//!
//! It is a library only so that the Python package can install the same command. `args` holds the arguments as typed, `cmd`
//! has one module per command, `input` reads tables, `inspection` words what was seen in a file, `output` prints, `weights` writes row weights, and `hint` words what would cure an error. Statistics
//! are in `mnar`, whole runs in `mnar-run`.

mod args;
mod cmd;
mod environment;
mod hint;
mod imputed;
mod input;
mod inspection;
mod interrupt;
mod output;
mod progress_log;
mod streamed;
mod terminal;
mod weights;

pub use terminal::Terminal;

use args::{Cli, Command};
use clap::Parser;
use clap::error::ErrorKind as ClapError;
use std::ffi::OsString;
use std::io::ErrorKind;

/// What a command that ran has to say to the shell.
enum Outcome {
    Done,
    /// The test rejects, and `--fail-on-reject` asks to be told.
    Rejected,
    /// Ctrl-C or SIGTERM, as an exit code: everything done so far is kept.
    Interrupted(u8),
}

/// The command as typed, for reports that say how to make them again.
struct Typed(Vec<String>);

/// Runs the command line `words`, the name of the program first, and returns the exit code: 0 if it ran, 1 if the test
/// rejects and `--fail-on-reject` is given, 2 if it could not run, 130 after Ctrl-C, 143 after SIGTERM.
pub fn main(words: impl IntoIterator<Item = OsString>) -> u8 {
    mnar_data::quiet_decoder_panics();
    let words: Vec<OsString> = words.into_iter().collect();
    let typed = Typed(words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect());
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    if let Err(error) = environment::check() {
        output::complain(&format!("error: {error:#}"));
        return 2;
    }
    let (table, result) = match cli.command {
        Command::Demo(args) => (None, cmd::demo::run(args, &typed)),
        Command::Inspect(args) => (None, cmd::inspect::run(&args)),
        Command::Estimate(args) => (Some(args.table.table.clone()), cmd::estimate::run(args, &typed)),
        Command::Evaluate(args) => (Some(args.table.table.clone()), cmd::evaluate::run(*args, &typed)),
        Command::Test(args) => (Some(args.table.table.clone()), cmd::test::run(args, &typed)),
        Command::Fit(args) => (Some(args.data.clone()), cmd::fit::run(*args, &typed)),
        Command::Predict(args) => (Some(args.data.clone()), cmd::predict::run(args)),
        Command::Report(args) => (None, cmd::report::run(&args)),
        Command::Completions(args) => (None, cmd::shell::completions(args.shell)),
        Command::Man => (None, cmd::shell::man()),
        Command::Simulate(args) => (Some(args.table.clone()), cmd::simulate::run(args)),
    };
    let error = match result {
        Ok(Outcome::Done) => return 0,
        Ok(Outcome::Rejected) => return 1,
        Ok(Outcome::Interrupted(code)) => return code,
        Err(error) => error,
    };
    // `mnar ... -o /dev/stdout | head` closes the pipe early, and that is fine.
    if is_broken_pipe(&error) {
        return 0;
    }
    // The statistics know rows and classes but no files; readers name the file themselves.
    let error = match table {
        Some(table) if hint::speaks_of_rows(&error) => error.context(table.display().to_string()),
        _ => error,
    };
    output::complain(&format!("error: {error:#}"));
    for hint in hint::hints(&error) {
        output::complain(&format!("hint: {hint}"));
    }
    2
}

/// Help, the version, or arguments that are not understood.
fn refused(error: &clap::Error) -> u8 {
    if matches!(error.kind(), ClapError::DisplayHelp | ClapError::DisplayVersion) {
        // Our own words, in colours; a reader that leaves early is fine.
        let _ = error.print();
        return 0;
    }
    // What was typed may be the name of a file from anywhere.
    output::complain(error.render().to_string().trim_end());
    2
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == ErrorKind::BrokenPipe)
}
