//! Statistics of informative labels.
pub mod calibrate;
pub mod crossfit;
pub mod diagnose;
pub mod error;
pub mod estimate;
pub mod interval;
pub mod labels;
pub mod linear;
mod mixture;
pub mod phi;
pub mod pipeline;
pub mod posteriors;
pub mod risk;
pub mod rows;
pub mod simulate;
pub mod sums;
pub mod test;
pub mod threshold;

pub use error::Error;
pub use estimate::{Estimator, PhiEstimate};
pub use labels::{Class, Labels};
pub use mixture::Solver;
pub use phi::Phi;
pub use posteriors::{PosteriorKind, Posteriors};
pub use rows::{Rows, Sample};
