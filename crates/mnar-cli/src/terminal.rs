//! Progress on stderr.

use crate::hint::flag;
use crate::output;
use crate::progress_log::ProgressLog;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mnar::Remedy;
use mnar::progress::{EpochRecord, Progress, Stage};
use std::io::{IsTerminal as _, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A progress bar where a person is watching, lines of a log elsewhere, and Ctrl-C.
pub struct Terminal {
    bar: ProgressBar,
    log: Option<Mutex<ProgressLog>>,
    quiet: bool,
    stop: Arc<AtomicBool>,
    spell: fn(&Remedy) -> String,
}

impl Terminal {
    /// A bar on stderr, or, where that is not a terminal, a line every ten seconds; nothing if `quiet`. `stop` is set from
    /// outside to cancel the work.
    pub fn new(quiet: bool, stop: Arc<AtomicBool>) -> Self {
        let bar = ProgressBar::new(0);
        if quiet {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let style = ProgressStyle::with_template("{prefix:>10} [{bar:28}] {pos}/{len} {msg} {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        let log = (!quiet && !stderr().is_terminal()).then(|| Mutex::new(ProgressLog::new(Instant::now())));
        Self { bar, log, quiet, stop, spell: flag }
    }

    /// Words suggestions for another language than that of the command line.
    pub fn with_spelling(self, spell: fn(&Remedy) -> String) -> Self {
        Self { spell, ..self }
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
        if let Some(log) = &self.log {
            log.lock().unwrap_or_else(PoisonError::into_inner).begin(stage, steps, done, Instant::now());
        }
    }

    fn step(&self) {
        self.bar.inc(1);
        if let Some(log) = &self.log {
            let line = log.lock().unwrap_or_else(PoisonError::into_inner).step(Instant::now());
            line.iter().for_each(|line| output::complain(line));
        }
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

    fn suggest(&self, remedy: &Remedy) {
        self.warn(&format!("hint: {}", (self.spell)(remedy)));
    }

    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
