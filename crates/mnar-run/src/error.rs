//! What can go wrong in a run.

use crate::fingerprint::Difference;
use mnar::Remedy;
use mnar::positive::PositiveBound;
use std::path::{Path, PathBuf};

/// What can go wrong in a run. Messages say what is wrong and where; [`RunError::remedies`] says which option would cure
/// it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// From the statistics.
    #[error(transparent)]
    Statistics(mnar::Error),
    /// From reading or writing data.
    #[error(transparent)]
    Data(#[from] mnar_data::DataError),
    /// From training.
    #[error(transparent)]
    Train(mnar_train::TrainError),
    /// From a report.
    #[error(transparent)]
    Report(#[from] mnar_report::ReportError),
    /// The report of a run cannot be read back.
    #[error("{}", path.display())]
    SavedReport {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: mnar_report::ReportError,
    },
    /// A file could not be read or written.
    #[error("{} cannot be {action}", path.display())]
    Io {
        /// What was tried: "read", "written", "created".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A part of a model that cannot be used.
    #[error("{} is not a part of a model: {why}", path.display())]
    BrokenModel {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file of settings that is not one.
    #[error("{} does not hold settings of a run", path.display())]
    SettingsFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<toml::de::Error>,
    },
    /// Options that cannot be written as TOML.
    #[error("the options cannot be written as settings")]
    Spelling {
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An option with a value that is not allowed.
    #[error("`{option}` is `{value}`, but must be {expected}")]
    OptionValue {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        expected: String,
    },
    /// An option that should hold one number per class, and does not.
    #[error("`{option}` {what}")]
    PerClass {
        /// The option.
        option: &'static str,
        /// What is wrong.
        what: String,
        /// How it could look.
        example: String,
    },
    /// Only one class is ever labelled, and its share is not known.
    #[error("a model needs the share of `{}` among all rows. {}", bound.class, bound.sentence())]
    ShareNeeded {
        /// What the data say without it.
        bound: Box<PositiveBound>,
    },
    /// Options that do not go together, or not with the data.
    #[error("{what}")]
    Options {
        /// What does not go together.
        what: &'static str,
        /// What would help.
        remedies: Vec<Remedy>,
    },
    /// A feature that repeats the label.
    #[error("{source_name}: column `{column}` duplicates the label and would leak it into the features")]
    LeakedLabel {
        /// The data.
        source_name: String,
        /// The column.
        column: String,
    },
    /// A column that names the rows and would be written twice.
    #[error("the column `{column}`, which names the rows, collides with a column of the predictions; rename it")]
    IdCollides {
        /// The column.
        column: String,
    },
    /// A run folder that cannot be used as asked.
    #[error("{} {state}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is there.
        state: FolderState,
    },
    /// A run folder that cannot be resumed with these data, options or program.
    #[error("{} holds a run that was started with something else: {} differ; resume it with what it was started with", path.display(), list(differences))]
    OtherRun {
        /// The folder.
        path: PathBuf,
        /// What is not as it was.
        differences: Vec<Difference>,
    },
    /// A file of a run that is not as the run wrote it.
    #[error("{} cannot be trusted: {why}", path.display())]
    ChangedFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A record of a run that cannot be read.
    #[error("{} is not the record of a run: {why}", path.display())]
    BrokenManifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A link where a run would write.
    #[error("{} is a link, and files of a run are not written through links; remove it", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
}

fn list(differences: &[Difference]) -> String {
    differences.iter().map(Difference::to_string).collect::<Vec<_>>().join(", ")
}

/// What is found where a run folder should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FolderState {
    /// A file.
    IsAFile,
    /// A finished run.
    Finished,
    /// An interrupted run, and a new one was asked for.
    Unfinished,
    /// No run, and resuming one was asked for.
    NothingToResume,
    /// A run, finished or not, where something else would be written.
    HoldsRun,
    /// Other files.
    NotEmpty,
    /// No folder, and a run was asked for.
    Missing,
    /// A run without a trained model.
    NoModel,
    /// A run without a baseline.
    NoBaseline,
    /// No report.
    NoReport,
    /// A run of which another process holds the lock.
    InUse,
    /// A run without a record of its data and files.
    NoManifest,
}

impl std::fmt::Display for FolderState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::IsAFile => "is a file, but a run needs a folder",
            Self::Finished => "holds a finished run",
            Self::Unfinished => "holds an unfinished run",
            Self::NothingToResume => "holds no run to resume",
            Self::HoldsRun => "holds a run that is not a demo",
            Self::NotEmpty => "is not empty",
            Self::Missing => "does not exist, so there is no run in it",
            Self::NoModel => "holds no trained model; the run may not be finished",
            Self::NoBaseline => "holds no baseline; the run was fitted without one",
            Self::NoReport => "holds no finished run: there is no report.json in it",
            Self::InUse => "is in use by another process; wait until it has ended, or choose another folder",
            Self::NoManifest => {
                "has no manifest.json, so what is in it cannot be checked: it is of an earlier version, or not complete; fit it again in another folder"
            }
        })
    }
}

impl RunError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn spelling(source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Spelling { source: Box::new(source) }
    }

    pub(crate) fn folder(path: &Path, state: FolderState) -> Self {
        Self::Folder { path: path.to_owned(), state }
    }

    pub(crate) fn options(what: &'static str, remedies: impl IntoIterator<Item = Remedy>) -> Self {
        Self::Options { what, remedies: remedies.into_iter().collect() }
    }

    /// Whether the caller cancelled the work.
    pub fn is_cancelled(&self) -> bool {
        match self {
            Self::Statistics(error) => matches!(error, mnar::Error::Cancelled),
            Self::Train(error) => matches!(error, mnar_train::TrainError::Statistics(mnar::Error::Cancelled)),
            _ => false,
        }
    }

    /// Options that would cure the error, where there are some.
    pub fn remedies(&self) -> Vec<Remedy> {
        match self {
            Self::Statistics(error) => error.remedies(),
            Self::Data(error) => error.remedies(),
            Self::Train(error) => error.remedies(),
            Self::PerClass { option, example, .. } => vec![Remedy::set(option, example.clone())],
            Self::ShareNeeded { bound } => vec![Remedy::set("shares", format!("{}=SHARE", bound.class))],
            Self::Options { remedies, .. } => remedies.clone(),
            Self::LeakedLabel { column, .. } => vec![Remedy::set("ignore", column.clone())],
            Self::Folder { path, state } => match state {
                FolderState::IsAFile
                | FolderState::Finished
                | FolderState::HoldsRun
                | FolderState::NotEmpty
                | FolderState::InUse => {
                    vec![another_folder(path)]
                }
                FolderState::Unfinished => vec![Remedy::set("resume", ""), another_folder(path)],
                // A new run may start in a folder that is not there, or empty.
                FolderState::NothingToResume if is_free(path) => vec![Remedy::unset("resume")],
                FolderState::NothingToResume => vec![another_folder(path)],
                FolderState::NoBaseline => vec![Remedy::unset("baseline")],
                FolderState::Missing | FolderState::NoModel | FolderState::NoReport | FolderState::NoManifest => {
                    Vec::new()
                }
            },
            Self::OtherRun { path, .. } => vec![another_folder(path)],
            _ => Vec::new(),
        }
    }
}

/// Suggests a folder beside this one that is free: `clinic-run-2`.
fn another_folder(path: &Path) -> Remedy {
    let name = path.file_name().map_or_else(|| "run".to_owned(), |name| name.to_string_lossy().into_owned());
    // `clinic-run-2` is followed by `clinic-run-3`.
    let (stem, number) = match name.rsplit_once('-').map(|(stem, number)| (stem, number.parse::<u32>())) {
        Some((stem, Ok(number))) if (2..1000).contains(&number) => (stem.to_owned(), number),
        _ => (name, 1),
    };
    let numbered = (number + 1..).map(|number| path.with_file_name(format!("{stem}-{number}")));
    let free = numbered.take(10_000).find(|folder| folder.symlink_metadata().is_err());
    Remedy::set("out", free.unwrap_or_else(|| path.join("run")).to_string_lossy())
}

/// Whether a run may start here.
fn is_free(path: &Path) -> bool {
    std::fs::read_dir(path).map_or_else(|_| path.symlink_metadata().is_err(), |mut files| files.next().is_none())
}

/// An error of a classifier that came through the statistics is an error of training again.
impl From<mnar::Error> for RunError {
    fn from(error: mnar::Error) -> Self {
        match error {
            mnar::Error::Classifier(source) => match source.downcast::<mnar_train::TrainError>() {
                Ok(error) => Self::from(*error),
                Err(source) => Self::Statistics(mnar::Error::Classifier(source)),
            },
            other => Self::Statistics(other),
        }
    }
}

impl From<mnar_train::TrainError> for RunError {
    fn from(error: mnar_train::TrainError) -> Self {
        match error {
            mnar_train::TrainError::Statistics(error) => Self::Statistics(error),
            mnar_train::TrainError::Data(error) => Self::Data(error),
            other => Self::Train(other),
        }
    }
}
