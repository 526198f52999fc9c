//! The checkpoints of a run: one file per stage.

use crate::error::TrainError;
use crate::trainer::CheckpointPlan;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folder `checkpoints/` of a run.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoints {
    folder: PathBuf,
}

/// At most this much work is lost when a run is killed.
const EVERY: Duration = Duration::from_secs(20);

impl Checkpoints {
    pub(crate) fn new(run: &Path) -> Result<Self, TrainError> {
        let folder = run.join("checkpoints");
        std::fs::create_dir_all(&folder).map_err(TrainError::io(&folder))?;
        Ok(Self { folder })
    }

    pub(crate) fn plan(&self, stage: &str) -> CheckpointPlan {
        let every = std::env::var("MNAR_CHECKPOINT_SECONDS").ok().and_then(|text| text.parse().ok());
        let path = self.folder.join(format!("{stage}.safetensors"));
        CheckpointPlan { path, every: every.map_or(EVERY, Duration::from_secs_f64) }
    }

    /// Removes the checkpoints of a complete run, which no longer needs them.
    pub(crate) fn remove(&self) -> Result<(), TrainError> {
        std::fs::remove_dir_all(&self.folder).map_err(TrainError::io(&self.folder))
    }
}
