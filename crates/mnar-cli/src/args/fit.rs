//! `mnar fit` and `mnar predict`.

use super::Format;
use clap::{Args, ValueEnum};
use mnar_train::fit::{ConsistencyName, CrossFitWith, MethodName};
use mnar_train::{Schedule, ThresholdRule};
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Examples:
  mnar fit clinic.csv --label diagnosis
  mnar fit scans/ --consistency fixmatch --augment medical
  mnar fit dermamnist.npz --labels kept.csv --label label --out derma
  mnar fit clinic.csv --label diagnosis --settings fit.toml
  mnar fit clinic.csv --label diagnosis --out clinic --resume

DATA is a CSV or Parquet table, an .npy or MedMNIST-style .npz file, a folder with MNIST's idx or CIFAR-10's binary files,
or an image folder: one folder a class, and `unlabelled`.")]
pub(crate) struct FitArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,

    /// The run folder; by default the name of the data with `-run`
    #[arg(long, short, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,

    /// Go on with an interrupted run in that folder
    #[arg(long)]
    pub(crate) resume: bool,

    /// Settings from a TOML file; its names are those of the flags, and flags win
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) options: FitOptions,

    /// Where to compute
    #[arg(long, value_enum, default_value_t = DeviceName::Cpu)]
    pub(crate) device: DeviceName,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// No progress on stderr
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// What to read.
#[derive(Args)]
pub(crate) struct DataArgs {
    /// The data
    #[arg(value_name = "DATA")]
    pub(crate) data: PathBuf,

    /// The label column of a table or of --labels; a blank or null label is a missing one
    #[arg(long, value_name = "COLUMN")]
    pub(crate) label: Option<String>,

    /// A file of labels, one row a row of the data, in place of those that come with it
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<PathBuf>,

    /// The column of the table that names its rows: no feature, but written beside every prediction
    #[arg(long, value_name = "COLUMN")]
    pub(crate) id: Option<String>,

    /// A column of the table that is no feature; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub(crate) ignore: Vec<String>,

    /// A column that holds names though it looks like numbers; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub(crate) categorical: Vec<String>,

    /// Another value that means missing; may be repeated
    #[arg(long, value_name = "VALUE")]
    pub(crate) missing: Vec<String>,

    /// Bring the images of a folder to this size
    #[arg(long, value_name = "HEIGHTxWIDTH")]
    pub(crate) resize: Option<String>,
}

/// Settings that may come from flags or from a TOML file. What is not set follows from the data.
#[derive(Args, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FitOptions {
    /// How labels are debiased [default: adjusted for tables, label-shift for images]
    #[arg(long, value_enum)]
    pub(crate) method: Option<MethodName>,
    /// The loss of unlabelled rows [default: pseudo-labels]
    #[arg(long, value_enum)]
    pub(crate) consistency: Option<ConsistencyName>,
    /// linear, mlp, mnist-cnn, medmnist-cnn, wide-resnet or cnn3d [default: by the shape of the data]
    #[arg(long, value_enum)]
    pub(crate) network: Option<NetworkArg>,
    /// Units of the hidden layers of an mlp, comma-separated [default: 128]
    #[arg(long, value_name = "UNITS", value_delimiter = ',')]
    pub(crate) hidden: Option<Vec<usize>>,
    /// Known mechanism for --method oracle: a=0.2,b=0.8
    #[arg(long, value_name = "PHI")]
    pub(crate) phi: Option<String>,
    /// Known class shares for --method known-shares or cadr: a=0.2,b=0.8
    #[arg(long, value_name = "SHARES")]
    pub(crate) shares: Option<String>,
    /// Passes over the labelled rows [default: enough for 3000 steps]
    #[arg(long, value_name = "N")]
    pub(crate) epochs: Option<usize>,
    /// Labelled rows a step [default: 64]
    #[arg(long, value_name = "N")]
    pub(crate) batch_labelled: Option<usize>,
    /// Unlabelled rows a step [default: 256]
    #[arg(long, value_name = "N")]
    pub(crate) batch_unlabelled: Option<usize>,
    /// Learning rate at the start [default: 0.001, for sgd 0.03]
    #[arg(long, value_name = "RATE")]
    pub(crate) learning_rate: Option<f64>,
    /// adam or sgd [default: adam]
    #[arg(long, value_enum)]
    pub(crate) optimiser: Option<OptimiserArg>,
    /// cosine or constant learning rate [default: cosine]
    #[arg(long, value_enum)]
    pub(crate) schedule: Option<Schedule>,
    /// Weight of the past in the averaged weights [default: 0.99]
    #[arg(long, value_name = "DECAY")]
    pub(crate) averaging: Option<f64>,
    /// Weight of the unlabelled loss [default: 1]
    #[arg(long, value_name = "WEIGHT")]
    pub(crate) lambda: Option<f64>,
    /// Confidence a pseudo-label needs [default: 0.95]
    #[arg(long, value_name = "TAU")]
    pub(crate) threshold: Option<f64>,
    /// What the threshold of a class adapts to [default: fixed]
    #[arg(long, value_enum)]
    pub(crate) threshold_rule: Option<ThresholdRule>,
    /// Share of the labelled rows held out to choose the epoch [default: 0.1]
    #[arg(long, value_name = "SHARE")]
    pub(crate) validation: Option<f64>,
    /// Stop when the held-out risk has not improved for so many epochs
    #[arg(long, value_name = "EPOCHS")]
    pub(crate) patience: Option<usize>,
    /// Clip 1/phi at so many times n/n_labelled
    #[arg(long, value_name = "FACTOR")]
    pub(crate) clip_weights: Option<f64>,
    /// Views of images: none, auto by their shape, or medical (no up, no left) [default: auto]
    #[arg(long, value_enum)]
    pub(crate) augment: Option<AugmentArg>,
    /// Estimate phi again from the model every so many epochs, with --method label-shift
    #[arg(long, value_name = "EPOCHS")]
    pub(crate) refresh: Option<usize>,
    /// Cross-fit softmax regression or the network itself [default: softmax for tables]
    #[arg(long, value_enum)]
    pub(crate) cross_fit: Option<CrossFitWith>,
    /// Folds of the cross-fitting [default: 5]
    #[arg(long, value_name = "N")]
    pub(crate) folds: Option<usize>,
    /// Replicates of the bootstrap [default: 200 for tables of up to 2 million numbers]
    #[arg(long, value_name = "N")]
    pub(crate) replicates: Option<usize>,
    /// Permutations of the test [default: 9999]
    #[arg(long, value_name = "N")]
    pub(crate) permutations: Option<usize>,
    /// Do not train the biased baseline
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub(crate) no_baseline: Option<bool>,
    /// Seed of every draw [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// Words that flags and the TOML file share; those of the library are there.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $word:ident),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub(crate) enum $name { $($(#[$doc])* $word),+ }
    };
}

words!(NetworkArg {
    Linear,
    Mlp,
    MnistCnn,
    #[value(name = "medmnist-cnn")]
    #[serde(rename = "medmnist-cnn")]
    MedMnistCnn,
    #[value(name = "wide-resnet")]
    #[serde(rename = "wide-resnet")]
    WideResNet,
    Cnn3d,
});
words!(OptimiserArg { Adam, Sgd });
words!(AugmentArg { None, Auto, Medical });

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceName {
    Cpu,
    Cuda,
    Wgpu,
}

#[derive(Args)]
#[command(after_help = "Examples:
  mnar predict clinic-run new.csv -o predictions.csv
  mnar predict derma dermamnist.npz --split test -o predictions.parquet

Columns: `predicted` and `confidence`; p_CLASS, the probability in the whole population; u_CLASS, the probability for a
row that was left unlabelled by the same mechanism.")]
pub(crate) struct PredictArgs {
    /// A run folder of `mnar fit`
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// Rows like those the model was trained on; labels are not needed
    #[arg(value_name = "DATA")]
    pub(crate) data: PathBuf,

    /// The table to write: CSV, TSV or Parquet by its name
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// The column of the table that names its rows, to be written beside every prediction
    #[arg(long, value_name = "COLUMN")]
    pub(crate) id: Option<String>,

    /// Which part of data that come in parts
    #[arg(long, value_enum, default_value_t = SplitName::Test)]
    pub(crate) split: SplitName,

    /// Use the biased baseline instead
    #[arg(long)]
    pub(crate) baseline: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SplitName {
    Train,
    Validation,
    Test,
    All,
}
