//! Errors of an experiment.

use std::path::PathBuf;

/// Why an experiment failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReproduceError {
    /// An error of the statistics.
    #[error(transparent)]
    Statistics(#[from] mnar::Error),
    /// An error while reading data.
    #[error(transparent)]
    Data(#[from] mnar_data::DataError),
    /// An error while training.
    #[error(transparent)]
    Training(#[from] mnar_train::TrainError),
    /// An error of a whole run.
    #[error(transparent)]
    Run(#[from] mnar_run::RunError),
    /// An error while drawing a figure.
    #[error(transparent)]
    Report(#[from] mnar_report::ReportError),
    /// There is no experiment of that name.
    #[error("there is no experiment `{name}`; the experiments are {}, or name your own TOML file", known.join(", "))]
    Unknown {
        /// The requested name.
        name: String,
        /// The names of all experiments.
        known: Vec<String>,
    },
    /// A file of an experiment or of a result is not valid.
    #[error("{}: {what}", path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// The error of the parser, where there is one.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The data do not match the experiment.
    #[error("{}: {what}", path.display())]
    WrongData {
        /// The data's file or folder.
        path: PathBuf,
        /// What is wrong, and what to do about it.
        what: String,
    },
    /// A file cannot be read or written.
    #[error("{} cannot be read or written", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl ReproduceError {
    /// Whether the caller cancelled. Finished runs are kept.
    pub fn is_cancelled(&self) -> bool {
        match self {
            Self::Statistics(error) => matches!(error, mnar::Error::Cancelled),
            Self::Training(error) => error.is_cancelled(),
            Self::Run(error) => error.is_cancelled(),
            _ => false,
        }
    }

    pub(crate) fn bad_file(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self::BadFile { path: path.into(), what: what.into(), source: None }
    }

    /// Like [`Self::bad_file`], with the error of the parser.
    pub(crate) fn unreadable(
        path: impl Into<PathBuf>,
        what: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self::BadFile { path: path.into(), what: what.into(), source: Some(Box::new(source)) }
    }
}
