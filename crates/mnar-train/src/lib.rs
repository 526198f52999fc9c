//! Networks trained on partly labelled data, corrected for label-selection bias: any semi-supervised method, debiased by
//! inverse propensity weighting.
//!
//! The only library crate of the workspace that names burn. It trains; it writes no reports and knows no run folders.

pub mod augment;
mod batches;
mod checkpoint;
mod classifier;
pub mod consistency;
pub mod device;
mod error;
pub mod events;
mod examples;
pub mod layers;
pub mod loss;
pub mod mechanism;
pub mod method;
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

pub use classifier::NetworkClassifier;
pub use error::TrainError;
pub use examples::{Draw, Encoding, Examples, InputShape, View};
pub use mnar::progress::EpochRecord;
pub use predict::{logits, score};
pub use refresh::refreshed_phi;
pub use saved::{ModelDescription, load_model, save_model};
pub use settings::{Schedule, Threshold, ThresholdRule, TrainSettings};
pub use trainer::{CheckpointPlan, Ended, Job, Trained, train};
pub use validation::{Criterion, Validation, weighted_scores};
