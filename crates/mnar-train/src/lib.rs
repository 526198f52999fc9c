//! Networks trained on partly labelled data, corrected for label-selection bias: any semi-supervised method, debiased by
//! inverse propensity weighting.
//!
//! ```
//! use mnar::progress::Stage;
//! use mnar::{Class, Labels, Phi, PosteriorKind};
//! use mnar_train::consistency::PseudoLabels;
//! use mnar_train::method::Method;
//! use mnar_train::model::Architecture;
//! use mnar_train::{Examples, Job, TrainError, TrainSettings, device, score, train};
//! use ndarray::Array2;
//!
//! // One patient in five is sick, but the sick are labelled eight times as often as the healthy.
//! let sick = |i: usize| i % 5 == 0;
//! let x = Array2::from_shape_fn((1000, 1), |(i, _)| (i * 37 % 100) as f64 / 50.0 + if sick(i) { 0.0 } else { -1.0 });
//! let y = (0..1000).map(|i| Some(Class(u32::from(sick(i))))).collect();
//! let complete = Labels::allow_degenerate(y, vec!["healthy".into(), "sick".into()])?;
//! let phi = Phi::new(vec![0.1, 0.8])?;
//! let labels = mnar::simulate::apply_mask(&complete, &mnar::simulate::mask(&complete, &phi, 1)?)?;
//!
//! let examples = Examples::from_rows(x.view());
//! let settings = TrainSettings { epochs: 60, learning_rate: 0.1, ..Default::default() };
//! let predicted_sick = |method: Method| {
//!     let network = Architecture::Linear.build(examples.shape(), 2, settings.seed, &device::cpu())?;
//!     let job = Job {
//!         stage: Stage::Debiased,
//!         examples: &examples,
//!         labels: &labels,
//!         weights: None,
//!         method,
//!         row_phi: None,
//!         consistency: &PseudoLabels,
//!         settings: &settings,
//!         targets: None,
//!         validation: None,
//!         checkpoint: None,
//!     };
//!     let trained = train(network, &job, &())?;
//!     let posteriors = score(&trained.network, &examples, trained.temperature, PosteriorKind::Population)?;
//!     Ok::<f64, TrainError>(posteriors.column(1).iter().sum::<f64>() / 1000.0)
//! };
//! // Trained as if labels were missing at random, the model takes far too many patients for sick.
//! assert!(predicted_sick(Method::Classical)? > 0.4);
//! // The debiased risk with the mechanism phi finds the share of the population.
//! assert!((predicted_sick(Method::Given(phi))? - 0.2).abs() < 0.05);
//! # Ok::<(), TrainError>(())
//! ```
//!
//! [`method`] says what a training method does, [`consistency`] holds the losses that need no label, [`loss`] is the one
//! place where weights meet losses, and [`train`] is the loop. [`NetworkClassifier`] makes a network a
//! [`Classifier`](mnar::classify::Classifier) of the core, for cross-fitting.
//!
//! This is the only library crate of the workspace that names burn. It trains; it writes no reports and knows no run
//! folders.

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
mod propensity;
mod refresh;
mod saved;
mod settings;
pub mod storage;
mod trainer;
mod validation;

pub use classifier::{NetworkClassifier, network_of};
pub use error::TrainError;
pub use examples::{Draw, Encoding, Examples, InputShape, View};
pub use mnar::progress::EpochRecord;
pub use predict::{logits, score};
pub use propensity::Propensity;
pub use refresh::likely_phi;
pub use saved::{
    LabellingByColumns, ModelDescription, check_version, load_description, load_model, load_networks, save_model,
    save_networks,
};
pub use settings::{Schedule, Threshold, ThresholdRule, TrainSettings};
pub use trainer::{CheckpointPlan, Ended, Job, Trained, train};
pub use validation::{Criterion, Validation, weighted_scores};
