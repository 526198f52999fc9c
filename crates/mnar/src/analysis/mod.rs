//! From evidence to findings: the one place that assembles calibration, the estimate, intervals, tests, checks and
//! warnings. The command line, the Python package and whole runs all call it, so the same rows give the same numbers
//! everywhere, to the last bit.
//!
//! [`Evidence`] holds labels and posteriors from anywhere, and where they are known the features and the classifier, so
//! that bootstraps can refit it. [`EstimateSettings::run`] turns evidence into [`Findings`], [`TestSettings::run`] into
//! [`TestFindings`].
//!
//! ```
//! use mnar::analysis::{EstimateSettings, Evidence};
//! use mnar::{Labels, PosteriorKind, Posteriors};
//! use ndarray::Array2;
//!
//! let p = Array2::from_shape_fn((200, 2), |(i, k)| if (i % 2 == 0) == (k == 0) { 0.9 } else { 0.1 });
//! let labels = Labels::from_values((0..200).map(|i| match i % 20 {
//!     0 | 2 | 4 | 6 | 8 => Some("sick"),
//!     1 => Some("well"),
//!     _ => None,
//! }))?;
//! let posteriors = Posteriors::new(p, PosteriorKind::Labelled)?;
//! let findings = EstimateSettings::default().run(&Evidence::predictions(&posteriors, &labels), &())?;
//! assert!(findings.phi[0] > 2.0 * findings.phi[1]);
//! # Ok::<(), mnar::Error>(())
//! ```

mod audit;
mod choice;
mod effects;
mod evidence;
mod findings;
mod groups;
mod imputations;
mod informative;
mod intervals;
mod labelling;
mod positive;
mod ranges;
mod recipe;
mod reestimate;
mod refine;
mod replicate_weights;
mod search;
mod streamed;
mod streamed_bootstrap;
mod tilt;
mod verdict;

pub use audit::{Audit, AuditFindings};
pub use choice::TriedClassifier;
pub use evidence::{Evidence, Features, ScoredBy};
pub use findings::{About, ClassifierFindings, Findings};
pub(crate) use groups::GroupSums;
pub use groups::{ByGroup, GroupFindings, Homogeneity};
pub use imputations::Imputations;
pub use informative::{TestDecision, TestFindings, TestMethod, TestSettings};
pub use intervals::{CONFIDENCE, IntervalAbout, IntervalKind, IntervalMethod};
pub use labelling::{ClassOnly, ColumnCheck, ColumnEffect, ColumnsCheck, LEVEL, Labelling, LabellingRate, TermEffect};
pub use recipe::{Calibrate, EstimateSettings, Given, Method, ODDS_FACTORS, PRIOR_ROWS_PER_CLASS};
pub(crate) use reestimate::Reestimate;
pub use refine::Refinement;
pub use replicate_weights::ReplicateWeights;
pub(crate) use streamed::LabelledWeights;
pub use streamed::{StreamedColumns, StreamedGroups};
pub use verdict::{HARDNESS_LEVEL, Verdict, VerdictKind, contrast};

/// Rows that single precision rounded are off by less than this. They are counted, but nobody needs to be warned.
const SINGLE_PRECISION: f64 = 1e-5;

/// The warning for rows that were slightly off the simplex.
fn renormalised(done: crate::posteriors::Renormalised) -> Option<String> {
    (done.largest_drift > SINGLE_PRECISION).then(|| {
        format!(
            "the probabilities of {} rows did not sum to 1 (off by {:.1e} at most) and were renormalised",
            done.rows, done.largest_drift
        )
    })
}
