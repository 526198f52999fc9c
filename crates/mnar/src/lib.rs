//! Statistics of informative labels.
pub mod error;
pub mod labels;
pub mod phi;
pub mod posteriors;
pub mod rows;

pub use error::Error;
pub use labels::{Class, Labels};
pub use phi::Phi;
pub use posteriors::{PosteriorKind, Posteriors};
pub use rows::{Rows, Sample};
