//! What can go wrong in training.

use mnar::Remedy;
use std::path::PathBuf;

/// What can go wrong in training. Messages say what is wrong and where; [`TrainError::remedies`] says which option would
/// cure it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// An error of the statistics, or the caller cancelled.
    #[error(transparent)]
    Statistics(mnar::Error),
    /// Data could not be read or encoded.
    #[error(transparent)]
    Data(#[from] mnar_data::DataError),
    /// The kernels asked for are unknown, or this processor lacks their instructions.
    #[error("{problem}; say avx512, avx2, portable or burn (its own operations)")]
    Kernels {
        /// What is wrong with the name.
        problem: &'static str,
    },
    /// Settings of the augmentation make no sense.
    #[error(transparent)]
    Augment(#[from] crate::augment::AugmentError),
    /// A setting is outside its range.
    #[error("{name} is {value}, but must be {range}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its value, as given.
        value: String,
        /// The allowed range in words.
        range: &'static str,
    },
    /// Labels and inputs have different lengths.
    #[error("there are {inputs} inputs and {labels} labels; both must describe the same rows")]
    Lengths {
        /// Number of inputs.
        inputs: usize,
        /// Number of labels.
        labels: usize,
    },
    /// The row weights do not describe the rows.
    #[error("there are {weights} row weights and {labels} labels; give one weight per row")]
    WeightCount {
        /// Number of weights.
        weights: usize,
        /// Number of labels.
        labels: usize,
    },
    /// A mechanism that depends on columns needs a phi of every row.
    #[error("{found} rows have a phi, but there are {labels} labels")]
    RowPhiCount {
        /// Number of rows with a phi.
        found: usize,
        /// Number of labels.
        labels: usize,
    },
    /// The method has no place for a phi of every row.
    #[error("the method `{method}` knows phi by class only and cannot be trained with a phi of every row")]
    NoRowPhi {
        /// The method.
        method: &'static str,
    },
    /// A list that needs one entry per class has another length.
    #[error("{what} has {found} entries, but there are {classes} classes")]
    PerClass {
        /// The list.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The number of classes.
        classes: usize,
    },
    /// The method trains with a known phi, but none is given.
    #[error("training with a known phi needs that phi, one number per class")]
    NoPhi,
    /// The method trains with known class shares, but none are given.
    #[error("training with known class shares needs these shares, one number per class")]
    NoShares,
    /// A consistency method has nothing to imitate.
    #[error("the consistency method `{consistency}` needs class probabilities of every row; give them as targets")]
    NoTargets {
        /// The method.
        consistency: String,
    },
    /// A consistency method looks at a view that it did not ask for.
    #[error("the consistency method looks at {view}, which it must ask for in `Consistency::needs`")]
    NoView {
        /// What it looks at.
        view: &'static str,
    },
    /// The network cannot take these inputs.
    #[error("the network `{network}` takes {takes}, but the inputs are {found}")]
    WrongInput {
        /// The network.
        network: &'static str,
        /// What it takes.
        takes: &'static str,
        /// What there is.
        found: String,
    },
    /// The loss is not a finite number any more.
    #[error(
        "training diverged: the loss became {loss:?} at step {step}; the learning rate of {learning_rate:?} is likely too high, or a few weights are too large"
    )]
    Diverged {
        /// The step.
        step: u64,
        /// The loss.
        loss: f32,
        /// The learning rate of the run.
        learning_rate: f64,
    },
    /// The network ended with scores that are not finite numbers, though its loss was finite at every step.
    #[error(
        "training diverged: the scores of the network are not finite numbers; the learning rate is likely too high"
    )]
    Overflown,
    /// A checkpoint or a model that cannot be used.
    #[error("{}: {what}", path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        what: String,
        /// The error of the parser, where there is one.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried: "read", "write" or "create".
        action: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The device is not built in.
    #[error("this build has no {device}; build it with the cargo feature `{device}`")]
    NoDevice {
        /// The device asked for.
        device: &'static str,
    },
}

impl TrainError {
    /// Options that would cure the error, where there are some.
    pub fn remedies(&self) -> Vec<Remedy> {
        match self {
            Self::Statistics(error) => error.remedies(),
            Self::Data(error) => error.remedies(),
            Self::NoPhi => vec![Remedy::set("phi", "NUMBERS")],
            Self::NoShares => vec![Remedy::set("shares", "NUMBERS")],
            Self::Diverged { learning_rate, .. } => vec![
                // A tenth of a rate beyond all reason is no help.
                Remedy::set(
                    "learning-rate",
                    if *learning_rate > 1.0 { 0.001 } else { learning_rate / 10.0 }.to_string(),
                ),
                Remedy::set("clip-weights", "10"),
            ],
            Self::Overflown => vec![Remedy::set("learning-rate", "0.001")],
            _ => Vec::new(),
        }
    }

    /// Whether the caller cancelled the work.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Statistics(mnar::Error::Cancelled))
    }

    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, action, source }
    }

    pub(crate) fn bad_file(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self::BadFile { path: path.into(), what: what.into(), source: None }
    }

    /// Like [`Self::bad_file`], with the error that says why.
    pub(crate) fn unreadable(
        path: impl Into<PathBuf>,
        what: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self::BadFile { path: path.into(), what: what.into(), source: Some(Box::new(source)) }
    }
}

/// An error that crossed the seam of [`mnar::classify::Classifier`] comes back as it was.
impl From<mnar::Error> for TrainError {
    fn from(error: mnar::Error) -> Self {
        match error {
            mnar::Error::Classifier(boxed) => match boxed.downcast::<Self>() {
                Ok(error) => *error,
                Err(boxed) => Self::Statistics(mnar::Error::Classifier(boxed)),
            },
            other => Self::Statistics(other),
        }
    }
}

/// For the seam of [`mnar::classify::Classifier`]: cancelled work stays [`mnar::Error::Cancelled`].
impl From<TrainError> for mnar::Error {
    fn from(error: TrainError) -> Self {
        match error {
            TrainError::Statistics(error) => error,
            other => Self::Classifier(Box::new(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn errors_cross_the_seam_of_classifiers_unchanged() {
        let error: mnar::Error = TrainError::NoDevice { device: "cuda" }.into();
        assert!(matches!(error, mnar::Error::Classifier(_)));
        assert!(matches!(TrainError::from(error), TrainError::NoDevice { device: "cuda" }));
        let cancelled: mnar::Error = TrainError::Statistics(mnar::Error::Cancelled).into();
        assert!(matches!(cancelled, mnar::Error::Cancelled));
        assert!(TrainError::from(cancelled).is_cancelled());
    }

    #[test]
    fn the_cause_is_the_source_and_not_in_the_message() {
        let cause = std::io::Error::other("the disk is full");
        let error = TrainError::io("write", "model.json")(cause);
        assert_eq!(error.to_string(), "cannot write model.json");
        assert_eq!(error.source().unwrap().to_string(), "the disk is full");
    }
}
