//! Metrics as JSON lines and TensorBoard events, written while models are trained.

use crate::folder::RunFolder;
use mnar::Remedy;
use mnar::progress::{EpochRecord, Progress, Stage};
use mnar_train::events::EventWriter;
use mnar_train::metrics::MetricsLog;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Classes whose phi is written as an event.
const SHOWN_CLASSES: usize = 100;

/// Writes the course of training into the run folder and passes everything on.
pub(crate) struct Recorder<'a> {
    inner: &'a dyn Progress,
    folder: &'a RunFolder,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    files: Option<(MetricsLog, EventWriter)>,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(folder: &'a RunFolder, inner: &'a dyn Progress) -> Self {
        Self { inner, folder, state: Mutex::default() }
    }

    fn open(&self, stage: Stage, step: u64) -> io::Result<(MetricsLog, EventWriter)> {
        let metrics = self.folder.place(&format!("metrics-{}.jsonl", stage.name())).map_err(io::Error::other)?;
        self.folder.subfolder("events").map_err(io::Error::other)?;
        let events = self.folder.subfolder(&format!("events/{}", stage.name())).map_err(io::Error::other)?;
        Ok(if step == 0 {
            (MetricsLog::create(&metrics)?, EventWriter::create(&events)?)
        } else {
            (MetricsLog::resume(&metrics, step)?, EventWriter::append(&events, step + 1)?)
        })
    }
}

impl Progress for Recorder<'_> {
    fn begin(&self, stage: Stage, steps: u64, done: u64) {
        self.inner.begin(stage, steps, done);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.files = match stage {
            Stage::Likelihood | Stage::Debiased | Stage::Baseline => match self.open(stage, done) {
                Ok(files) => Some(files),
                // Files that cannot be opened are no reason to lose a training run.
                Err(error) => {
                    self.inner.warn(&format!("no metrics are written: {error}"));
                    None
                }
            },
            // Nobody reads the course of a single fold.
            _ => None,
        };
    }

    fn step(&self) {
        self.inner.step();
    }

    fn epoch(&self, record: &EpochRecord) {
        self.inner.epoch(record);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((metrics, events)) = &mut state.files else { return };
        if let Err(error) = write(metrics, events, record) {
            self.inner.warn(&format!("metrics could not be written: {error}"));
            state.files = None;
        }
    }

    fn end(&self) {
        self.inner.end();
    }

    fn warn(&self, message: &str) {
        self.inner.warn(message);
    }

    fn suggest(&self, remedy: &Remedy) {
        self.inner.suggest(remedy);
    }

    fn cancelled(&self) -> bool {
        self.inner.cancelled()
    }
}

fn write(metrics: &mut MetricsLog, events: &mut EventWriter, record: &EpochRecord) -> io::Result<()> {
    metrics.record(record)?;
    events.scalar("loss", record.step, record.loss as f32)?;
    events.scalar("learning_rate", record.step, record.learning_rate as f32)?;
    if let (Some(risk), Some(accuracy)) = (record.validation_risk, record.validation_accuracy) {
        events.scalar("held_out/risk", record.step, risk as f32)?;
        events.scalar("held_out/accuracy", record.step, accuracy as f32)?;
    }
    for (k, phi) in record.phi.iter().enumerate().take(SHOWN_CLASSES) {
        events.scalar(&format!("phi/{k}"), record.step, *phi as f32)?;
    }
    events.flush()
}
