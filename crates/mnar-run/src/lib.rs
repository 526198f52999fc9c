//! A run of mnar: options, a plan, its stages, and a run folder. The command line and the Python package both call this
//! crate.
//!
//! [`FitOptions`] is everything that can be chosen. [`FitPlan`] makes the choices that the options leave open, given the
//! data. [`fit`] runs the stages (cross-fit, estimate and test, train debiased, train the biased baseline, write) and leaves
//! a run folder behind; [`predict`] uses its model. Options are written into the folder as `settings.toml`, and the same
//! options and data give the same run, bit by bit.
//!
//! ```
//! use mnar_run::{FitOptions, FitRequest, PredictOptions, fit, predict};
//!
//! let folder = tempfile::tempdir()?;
//! let data = folder.path().join("pets.csv");
//! let rows: String = (0..120)
//!     .map(|i| format!("{},{}\n", i % 12, match i % 12 { 0..2 => "small", 11 => "large", _ => "" }))
//!     .collect();
//! std::fs::write(&data, format!("weight,size\n{rows}"))?;
//!
//! let mut request = FitRequest::new(&data, folder.path().join("run"));
//! request.options = FitOptions {
//!     label: Some("size".into()),
//!     epochs: Some(2),
//!     replicates: Some(0),
//!     ..Default::default()
//! };
//! let report = fit(&request, &())?;
//! assert_eq!(report.findings.about.labelled_per_class, [10, 20]);
//!
//! let predictions = predict(&request.folder, &data, &PredictOptions::default())?;
//! assert_eq!(predictions.population().len(), 120);
//! let again = FitOptions::read(&request.folder.join("settings.toml"))?;
//! assert_eq!(again.epochs, Some(2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod beside;
mod budget;
mod classifiers;
mod demo;
mod error;
mod fingerprint;
mod fit;
mod folder;
mod guess;
mod guides;
mod image_columns;
mod inspect;
mod lock;
mod manifest;
mod mechanism;
mod options;
mod per_class;
mod plan;
mod positive;
mod predict;
mod predictions;
mod quality;
mod ranges;
mod recorder;
mod refits;
mod report;
mod sets;

pub use budget::Budget;
pub use classifiers::{EncodedTable, TableClassifier, TableModels};
pub use demo::{DemoSample, demo};
pub use error::{FolderState, RunError};
pub use fingerprint::Difference;
pub use fit::{FitRequest, fit, say_notes};
pub use folder::{RunFolder, check_demo_folder, write_page, write_report};
pub use guess::Guess;
pub use inspect::{
    ClassCount, ColumnDifference, ColumnInspection, ColumnKind, Inspection, NameCount, NoteHint, Problem, Summary,
    inspect,
};
pub use manifest::is_changed;
pub use mechanism::mechanism_by_columns;
pub use options::{AugmentName, CrossFitWith, DeviceName, FinalClassifier, FitOptions, NetworkName, OptimiserName};
pub use per_class::PerClass;
pub use plan::FitPlan;
pub use positive::{PositiveAnalysis, PositiveOptions};
pub use predict::{PredictOptions, predict};
pub use predictions::Predictions;
pub use report::{Origin, SavedReport, Spelling, estimate_report, evaluation_page};
pub use sets::SetOptions;
