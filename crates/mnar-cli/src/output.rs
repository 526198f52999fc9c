//! What a result looks like as JSON, and how results reach stdout.

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mnar::analysis::Watch;
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// A result as JSON, headed by the version that made it.
#[derive(Serialize)]
pub(crate) struct Versioned<T> {
    version: &'static str,
    #[serde(flatten)]
    result: T,
}

impl<T> Versioned<T> {
    pub(crate) fn new(result: T) -> Self {
        Self { version: env!("CARGO_PKG_VERSION"), result }
    }
}

/// Writes text to stdout; a closed pipe is an error the caller treats as success.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

pub(crate) fn print_json(value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print(&text)
}

/// A bar of progress on stderr; nothing where `quiet`.
pub(crate) fn progress_bar(template: &str, quiet: bool) -> ProgressBar {
    let bar = ProgressBar::new(0);
    if quiet {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.progress_chars("=> "));
    bar
}

/// A bar with the time left for estimates and tests, on stderr, where a person is watching.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn new(quiet: bool) -> Self {
        if quiet || !std::io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        Self(progress_bar("{msg} {wide_bar} {pos}/{len} ({eta} left)", false))
    }
}

impl Watch for Bar {
    fn begins(&self, what: &'static str, steps: usize) {
        self.0.set_message(what);
        self.0.set_length(steps as u64);
        self.0.enable_steady_tick(Duration::from_millis(200));
    }

    fn step(&self) {
        self.0.inc(1);
    }

    fn ends(&self) {
        self.0.finish_and_clear();
    }
}
