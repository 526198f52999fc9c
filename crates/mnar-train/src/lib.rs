//! Training that informative labels do not fool: any semi-supervised method, debiased by inverse propensity weighting.
//!
//! The only library crate of the workspace that names burn.

pub mod augment;
mod batches;
mod checkpoint;
mod checkpoint_folder;
pub mod consistency;
pub mod crossfit;
pub mod device;
mod error;
pub mod events;
mod examples;
pub mod fit;
pub mod layers;
pub mod loss;
pub mod mechanism;
pub mod metrics;
pub mod model;
pub mod optimiser;
pub mod parameters;
mod predict;
mod refresh;
mod saved;
mod settings;
pub mod storage;
mod trainer;
mod validation;

pub use error::TrainError;
pub use examples::{Draw, Encoding, Examples, InputShape, View};
pub use mnar_report::EpochRecord;
pub use predict::logits;
pub use refresh::refreshed_phi;
pub use saved::{ModelDescription, load_model, save_model};
pub use settings::{Schedule, Threshold, ThresholdRule, TrainSettings};
pub use trainer::{CheckpointPlan, Ended, Job, Observer, Trained, train};
pub use validation::{Criterion, Validation, weighted_scores};
