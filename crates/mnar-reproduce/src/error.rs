//! What can go wrong.

use std::path::PathBuf;

/// What can go wrong in an experiment.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// From the statistics.
    #[error(transparent)]
    Statistics(#[from] mnar::Error),
    /// From reading data.
    #[error(transparent)]
    Data(#[from] mnar_data::DataError),
    /// From training.
    #[error(transparent)]
    Training(#[from] mnar_train::TrainError),
    /// From drawing.
    #[error(transparent)]
    Report(#[from] mnar_report::ReportError),
    /// No experiment of that name.
    #[error("there is no experiment `{name}`; there are {}, or name a TOML file of your own", known.join(", "))]
    Unknown {
        /// As asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// An experiment's file cannot be understood.
    #[error("{}: {what}", path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// Why.
        what: String,
    },
    /// The data are not as the experiment says.
    #[error("{}: {what}", path.display())]
    WrongData {
        /// Where they are.
        path: PathBuf,
        /// What is wrong, and what to do.
        what: String,
    },
    /// A file cannot be written or read.
    #[error("{}: {why}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
}
