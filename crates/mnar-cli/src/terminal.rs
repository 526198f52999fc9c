//! Progress on stderr.

use crate::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mnar::progress::{EpochRecord, Progress, Stage};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A progress bar where a person is watching, and Ctrl-C.
pub struct Terminal {
    bar: ProgressBar,
    quiet: bool,
    stop: Arc<AtomicBool>,
}

impl Terminal {
    /// A bar on stderr, hidden if `quiet` or if stderr is not a terminal. `stop` is set from outside to cancel the work.
    pub fn new(quiet: bool, stop: Arc<AtomicBool>) -> Self {
        let bar = ProgressBar::new(0);
        if quiet {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let style = ProgressStyle::with_template("{prefix:>10} [{bar:28}] {pos}/{len} {msg} {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        Self { bar, quiet, stop }
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Terminal {
    fn begin(&self, stage: Stage, steps: u64, done: u64) {
        self.bar.reset();
        self.bar.set_prefix(stage.name());
        self.bar.set_message("");
        self.bar.set_length(steps);
        self.bar.set_position(done);
        self.bar.reset_eta();
    }

    fn step(&self) {
        self.bar.inc(1);
    }

    fn epoch(&self, record: &EpochRecord) {
        if let Some(risk) = record.validation_risk {
            self.bar.set_message(format!("held-out risk {risk:.4}"));
        }
    }

    fn warn(&self, message: &str) {
        if !self.quiet {
            self.bar.suspend(|| output::complain(message));
        }
    }

    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
