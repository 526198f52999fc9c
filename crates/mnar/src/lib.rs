//! Statistics of informative labels: is a label more likely to be there for some classes than for others?
//!
//! From the posteriors of any classifier and partly missing labels it computes phi_k = P(labelled | class k), the true class
//! shares, and a test of MCAR. No deep learning and no file formats live here.
//!
//! ```
//! use mnar::crossfit::FoldPlan;
//! use mnar::estimate::{Estimator, LabelShift};
//! use mnar::test::PermutationTest;
//! use mnar::{Labels, PosteriorKind, Posteriors, Sample};
//! use ndarray::Array2;
//!
//! // 90 sick and 210 healthy rows, told apart with 90% confidence; the sick are labelled four times as often.
//! let sick = |i: usize| i % 10 < 3;
//! let p = Array2::from_shape_fn((300, 2), |(i, k)| if sick(i) == (k == 1) { 0.9 } else { 0.1 });
//! let label = |i: usize| match (sick(i), i % 7) {
//!     (true, 0..4) => Some("sick"),
//!     (false, 0) => Some("healthy"),
//!     _ => None,
//! };
//! let labels = Labels::with_names((0..300).map(label), vec!["healthy".into(), "sick".into()])?;
//! let posteriors = Posteriors::new(p, PosteriorKind::Labelled)?;
//! let sample = Sample::new(&posteriors, &labels)?;
//!
//! let estimate = LabelShift::default().estimate(&sample)?;
//! assert!(estimate.phi[1] > 3.0 * estimate.phi[0]);
//! let test = PermutationTest::default().run(&sample, &FoldPlan::single(300))?;
//! assert!(test.p_value < 0.001);
//! # Ok::<(), mnar::Error>(())
//! ```
//!
//! The nouns are [`Labels`], [`Posteriors`], [`Phi`] and [`ClassShares`]. [`rows`] is the seam between statistics and
//! storage, [`classify`] the seam between statistics and models. [`mod@estimate`], [`mod@test`] and [`interval`] do the
//! work, and [`analysis`] assembles it: from evidence (predictions, or features and a classifier) to everything that can be
//! said about the mechanism.

pub mod analysis;
pub mod calibrate;
pub mod classify;
pub mod conformal;
pub mod covariates;
pub mod crossfit;
pub mod diagnose;
pub mod error;
pub mod estimate;
pub mod evaluate;
mod few_passes;
pub mod interval;
pub mod kept;
pub mod keys;
pub mod labels;
mod lockstep;
pub mod mechanism;
mod mixture;
pub mod nullable;
pub mod phi;
pub mod positive;
pub mod posteriors;
pub mod progress;
pub mod remedy;
pub mod risk;
pub mod rows;
pub mod shares;
pub mod simulate;
mod solver;
pub mod sums;
pub mod test;
pub mod threshold;
pub mod travel;

pub use covariates::Covariates;
pub use error::Error;
pub use estimate::{Estimator, PhiEstimate};
pub use labels::{Class, Labels, RareClass};
pub use phi::Phi;
pub use posteriors::{PosteriorKind, Posteriors};
pub use progress::Progress;
pub use remedy::Remedy;
pub use rows::{Rows, Sample};
pub use shares::ClassShares;
pub use solver::Solver;
// Types of these crates appear in public signatures.
pub use {nalgebra, ndarray};
