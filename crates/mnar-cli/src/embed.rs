//! `mnar fit` and `mnar predict` for a program that is not a shell: words in, a result or an error out, nothing printed
//! but progress.

use crate::args::{Cli, Command};
use crate::cmd;
use anyhow::{Result, anyhow, bail};
use clap::Parser;
use mnar_report::Report;
use mnar_train::fit::Origin;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// A finished run.
pub struct Fitted {
    /// Its folder.
    pub folder: PathBuf,
    /// What was found.
    pub report: Report,
}

/// Runs `mnar fit` with these words after `fit`. `title` is what the data are called in the report where a name of a
/// file would say nothing. `None` if `stop` was set meanwhile; the same words and `--resume` go on then.
pub fn fit(words: &[String], title: Option<String>, stop: &AtomicBool) -> Result<Option<Fitted>> {
    let Command::Fit(args) = parsed("fit", words)? else { bail!("`fit` is no longer a command") };
    let folder = cmd::fit::folder(&args);
    let origin = match title {
        Some(title) => Origin { title, command: None },
        None => {
            let command: Vec<String> = std::iter::once("fit".to_owned()).chain(words.iter().cloned()).collect();
            cmd::fit::origin(&args.data.data, &command)
        }
    };
    let report = cmd::fit::run_in(&args, &folder, origin, stop)?;
    Ok(report.map(|report| Fitted { folder, report }))
}

/// Runs `mnar predict` with these words after `predict`.
pub fn predict(words: &[String]) -> Result<()> {
    let Command::Predict(args) = parsed("predict", words)? else { bail!("`predict` is no longer a command") };
    cmd::predict::run(args).map(|_| ())
}

/// Words that clap refuses are an error, not the end of the process.
fn parsed(command: &str, words: &[String]) -> Result<Command> {
    let words = ["mnar", command].into_iter().chain(words.iter().map(String::as_str));
    let cli = Cli::try_parse_from(words).map_err(|error| {
        let text = error.to_string();
        // The first paragraph says what is wrong; usage and hints are for a shell.
        let first = text.split("\n\n").next().unwrap_or(&text).trim_start_matches("error: ");
        anyhow!("{}", first.split_whitespace().collect::<Vec<_>>().join(" "))
    })?;
    Ok(cli.command)
}
