//! Progress in the terminal, metrics as JSON lines, and TensorBoard events.

use crate::output::progress_bar;
use indicatif::ProgressBar;
use mnar_train::events::EventWriter;
use mnar_train::fit::Reporter;
use mnar_train::metrics::MetricsLog;
use mnar_train::{EpochRecord, Observer, TrainError};
use std::path::{Path, PathBuf};

/// Shows what `fit` is doing.
pub(super) struct Terminal {
    folder: PathBuf,
    bar: ProgressBar,
    stage: String,
}

impl Terminal {
    pub(super) fn new(folder: &Path, quiet: bool) -> Self {
        let bar = progress_bar("{prefix:>10} [{bar:28}] {pos}/{len} {msg} {eta} left", quiet);
        Self { folder: folder.to_owned(), bar, stage: String::new() }
    }

    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Reporter for Terminal {
    fn stage(&mut self, name: &str) {
        name.clone_into(&mut self.stage);
        self.bar.reset();
        self.bar.set_length(0);
        self.bar.set_prefix(name.to_owned());
        self.bar.set_message("");
    }

    fn observer(&mut self, stage: &str) -> Result<Box<dyn Observer + '_>, TrainError> {
        Ok(Box::new(Watch { bar: self.bar.clone(), folder: self.folder.clone(), stage: stage.to_owned(), files: None }))
    }

    fn replicate(&self, of: usize) {
        self.bar.set_length(of as u64);
        self.bar.inc(1);
    }
}

struct Watch {
    bar: ProgressBar,
    folder: PathBuf,
    stage: String,
    /// `None` for the folds, whose course nobody reads.
    files: Option<(MetricsLog, EventWriter)>,
}

impl Observer for Watch {
    fn started(&mut self, step: u64, steps: u64) {
        self.bar.set_length(steps);
        self.bar.set_position(step);
        self.bar.reset_eta();
        if self.stage == "cross-fit" {
            return;
        }
        // Files that cannot be opened are no reason to lose a training run; the terminal says so.
        let metrics = self.folder.join(format!("metrics-{}.jsonl", self.stage));
        let events = self.folder.join("events").join(&self.stage);
        let open = || -> std::io::Result<(MetricsLog, EventWriter)> {
            std::fs::create_dir_all(&events)?;
            Ok(if step == 0 {
                (MetricsLog::create(&metrics)?, EventWriter::create(&events)?)
            } else {
                (MetricsLog::resume(&metrics, step)?, EventWriter::append(&events, step + 1)?)
            })
        };
        match open() {
            Ok(files) => self.files = Some(files),
            Err(error) => self.bar.println(format!("warning: no metrics are written: {error}")),
        }
    }

    fn stepped(&mut self, step: u64) {
        self.bar.set_position(step);
    }

    fn epoch(&mut self, record: &EpochRecord) {
        if let Some(risk) = record.validation_risk {
            self.bar.set_message(format!("held-out risk {risk:.4}"));
        }
        let Some((metrics, events)) = &mut self.files else { return };
        let mut write = || -> std::io::Result<()> {
            metrics.record(record)?;
            events.scalar("loss", record.step, record.loss as f32)?;
            events.scalar("learning_rate", record.step, record.learning_rate as f32)?;
            if let (Some(risk), Some(accuracy)) = (record.validation_risk, record.validation_accuracy) {
                events.scalar("held_out/risk", record.step, risk as f32)?;
                events.scalar("held_out/accuracy", record.step, accuracy as f32)?;
            }
            for (k, phi) in record.phi.iter().enumerate().take(100) {
                events.scalar(&format!("phi/{k}"), record.step, *phi as f32)?;
            }
            events.flush()
        };
        if let Err(error) = write() {
            self.bar.println(format!("warning: metrics could not be written: {error}"));
            self.files = None;
        }
    }
}
