//! What can go wrong in training.

use std::path::PathBuf;

/// What can go wrong in training. Every message says what, where, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// From the statistics.
    #[error(transparent)]
    Statistics(#[from] mnar::Error),
    /// From reading or encoding data.
    #[error(transparent)]
    Data(#[from] mnar_data::DataError),
    /// From the choice of the CPU's kernels.
    #[error(transparent)]
    Kernels(#[from] mnar_kernels::UnknownIsa),
    /// From the report.
    #[error(transparent)]
    Report(#[from] mnar_report::ReportError),
    /// A setting outside its range.
    #[error("{name} is {value}, but must be {range}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// As given.
        value: String,
        /// What would do.
        range: &'static str,
    },
    /// Labels and inputs of different lengths.
    #[error("there are {inputs} inputs and {labels} labels; both must describe the same rows")]
    Lengths {
        /// Number of inputs.
        inputs: usize,
        /// Number of labels.
        labels: usize,
    },
    /// A consistency method that has nothing to imitate.
    #[error("the consistency method `{consistency}` needs class probabilities of every row; give them as targets")]
    NoTargets {
        /// The method.
        consistency: String,
    },
    /// A network that cannot take these inputs.
    #[error("the network `{network}` takes {takes}, but the inputs are {found}")]
    WrongInput {
        /// The network.
        network: &'static str,
        /// What it takes.
        takes: &'static str,
        /// What there is.
        found: String,
    },
    /// The loss is no number any more.
    #[error(
        "the loss became {loss} at step {step}; a smaller learning rate (--learning-rate) or clipped weights \
         (--clip-weights) keeps it finite"
    )]
    Diverged {
        /// The step.
        step: u64,
        /// The loss.
        loss: f32,
    },
    /// A checkpoint or a model that cannot be read.
    #[error("{}: {what}", path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        what: String,
    },
    /// Reading or writing failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not built in.
    #[error("this build has no {device}; build it with `cargo build --release --features {device}`")]
    NoDevice {
        /// The device asked for.
        device: &'static str,
    },
}

impl TrainError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
