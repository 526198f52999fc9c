//! The experiments of Sportisse et al. (ICML 2023) on real data, with our results beside the published ones.
//!
//! An [`Experiment`] is a file in `experiments/`: the data, how labels are hidden, the network, its training, the
//! methods, and the numbers in the paper. [`run`] draws a mask for each seed, trains every method on it, and writes one
//! JSON file per method and seed; results that already exist are not computed again.

mod data;
mod error;
mod experiment;
mod figures;
mod goals;
mod informative;
mod method;
mod page;
mod run;
mod summary;
mod watch;
mod whole;

pub use data::Labelling;
pub use error::ReproduceError;
pub use experiment::{Experiment, Mask, PaperRow, Protocol};
pub use figures::write_figures;
pub use goals::{Goal, Measure, Target, Verdict, Which};
pub use informative::{TestDraw, TestValue, run_tests, test_draws, test_table};
pub use method::Candidate;
pub use page::{draw_all, page};
pub use run::{Outcome, Overrides, results, run};
pub use summary::{Spread, Summary, short_table, summarise, table};
pub use watch::{RunEvent, Watch};
