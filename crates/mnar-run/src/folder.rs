//! The folder of a run.

use crate::error::{FolderState, RunError};
use crate::options::FitOptions;
use mnar_data::AtomicFile;
use mnar_report::Report;
use mnar_train::CheckpointPlan;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SETTINGS: &str = "settings.toml";
const REPORT: &str = "report.json";

/// Where everything of a run is kept.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// The longest time between two checkpoints.
    checkpoint_every: Duration,
}

impl RunFolder {
    /// Checks that a run can start, or resume, in this folder. Nothing is created yet.
    pub(crate) fn check(path: &Path, resume: bool, checkpoint_every: Duration) -> Result<Self, RunError> {
        let folder = Self { path: path.to_owned(), checkpoint_every };
        let wrong = |state| Err(RunError::folder(path, state));
        if path.exists() && !path.is_dir() {
            return wrong(FolderState::IsAFile);
        }
        if path.join(REPORT).exists() {
            return wrong(FolderState::Finished);
        }
        match (path.join(SETTINGS).exists(), resume) {
            (true, false) => return wrong(FolderState::Unfinished),
            (false, true) => return wrong(FolderState::NothingToResume),
            _ => {}
        }
        let not_empty = || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if !resume && path.is_dir() && not_empty() {
            return wrong(FolderState::NotEmpty);
        }
        Ok(folder)
    }

    /// Creates the folder with the settings of the run. A run that resumes must have the same settings.
    pub(crate) fn create(&self, options: &FitOptions, resume: bool) -> Result<(), RunError> {
        let checkpoints = self.checkpoints();
        std::fs::create_dir_all(&checkpoints).map_err(RunError::io("created", &checkpoints))?;
        let settings = self.path.join(SETTINGS);
        if resume {
            return match FitOptions::read(&settings)? == *options {
                true => Ok(()),
                false => Err(RunError::OtherSettings { path: settings }),
            };
        }
        let text = format!("# The settings of this run, every choice spelled out.\n{}", options.to_toml()?);
        Ok(AtomicFile::write_text(&settings, &text)?)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The debiased model.
    pub fn model(&self) -> PathBuf {
        self.path.join("model")
    }

    /// The biased baseline.
    pub fn baseline(&self) -> PathBuf {
        self.path.join("baseline")
    }

    /// The predictions for all rows of the data.
    pub fn predictions(&self) -> PathBuf {
        self.path.join("predictions.csv")
    }

    /// The report as a page.
    pub fn page(&self) -> PathBuf {
        self.path.join("report.html")
    }

    /// The report as JSON. A folder that has one holds a finished run.
    pub fn report(&self) -> PathBuf {
        self.path.join(REPORT)
    }

    fn checkpoints(&self) -> PathBuf {
        self.path.join("checkpoints")
    }

    /// The checkpoint of a stage.
    pub(crate) fn checkpoint(&self, name: &str) -> CheckpointPlan {
        CheckpointPlan { path: self.checkpoints().join(format!("{name}.safetensors")), every: self.checkpoint_every }
    }

    /// Writes the report and removes the checkpoints.
    pub(crate) fn finish(&self, report: &Report) -> Result<(), RunError> {
        AtomicFile::write_text(&self.page(), &report.to_html()?)?;
        // Last: a folder with a report.json holds a finished run.
        AtomicFile::write_text(&self.report(), &report.to_json()?)?;
        self.remove_checkpoints()
    }

    fn remove_checkpoints(&self) -> Result<(), RunError> {
        let path = self.checkpoints();
        std::fs::remove_dir_all(&path).map_err(RunError::io("removed", path))
    }
}
