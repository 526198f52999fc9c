//! Output, progress and Ctrl-C.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mnar::Progress;
use mnar::progress::Stage;
use mnar_report::TextTable;
use reproduce::RunEvent;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Writes text to stdout. `println!` would panic on a closed pipe; here it is an error, which `main` treats as success.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Aligns lines of cells, the first of which is the heading.
pub(crate) fn text_table(lines: &[Vec<String>]) -> String {
    let Some((heading, rows)) = lines.split_first() else { return String::new() };
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    let mut table = TextTable::new(&heading);
    rows.iter().for_each(|row| table.row(row.clone()));
    table.render()
}

/// A flag that Ctrl-C sets: the current step is finished and completed runs are kept. A second Ctrl-C ends the program
/// at once, which is safe because files are written completely or not at all.
pub(crate) fn stop_on_ctrl_c() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let handler = stop.clone();
    ctrlc::set_handler(move || {
        if handler.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    })?;
    Ok(stop)
}

/// Progress on stderr, a bar for the run in progress and one line per finished run; cancels on Ctrl-C.
pub(crate) struct Terminal {
    bar: ProgressBar,
    quiet: bool,
    stop: Arc<AtomicBool>,
}

impl Terminal {
    pub(crate) fn new(quiet: bool, stop: Arc<AtomicBool>) -> Self {
        let bar = ProgressBar::new(0);
        if quiet {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let style = ProgressStyle::with_template("{prefix} [{bar:28}] {pos}/{len} steps, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        Self { bar, quiet, stop }
    }

    /// Shows that a run begins or ends.
    pub(crate) fn show(&self, event: RunEvent<'_>) {
        match event {
            RunEvent::Begins { what, seed, done, of } => {
                self.bar.set_prefix(format!("{}/{of} {what}, seed {seed}", done + 1));
            }
            RunEvent::Ended { line } if !self.quiet => self.bar.suspend(|| eprintln!("{line}")),
            _ => {}
        }
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Terminal {
    fn begin(&self, _stage: Stage, steps: u64, done: u64) {
        self.bar.reset();
        self.bar.set_length(steps);
        self.bar.set_position(done);
    }

    fn step(&self) {
        self.bar.inc(1);
    }

    fn warn(&self, message: &str) {
        self.bar.suspend(|| eprintln!("warning: {message}"));
    }

    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}
