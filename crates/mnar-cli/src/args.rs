//! The command line as typed. What the words mean together is checked in `plan`.

use clap::{Args, Parser, Subcommand, ValueEnum};
use mnar_train::fit::{ConsistencyName, CrossFitWith, MethodName};
use mnar_train::{Schedule, ThresholdRule};
use serde::Deserialize;
use std::path::PathBuf;

/// Are your labels missing not at random? Test it, and estimate how likely each class was to be labelled.
#[derive(Parser)]
#[command(name = "mnar", version, max_term_width = 100)]
#[command(after_help = "Start with `mnar demo`. Every command has examples: `mnar estimate --help`.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run end to end on an embedded sample whose labels are hidden by a known mechanism
    Demo(DemoArgs),
    /// Estimate P(labelled | class) and the true class shares
    Estimate(EstimateArgs),
    /// Test whether the labels are informative
    Test(TestArgs),
    /// End to end on your data: estimate, test, train a classifier that informative labels do not fool
    Fit(Box<FitArgs>),
    /// Class probabilities of new rows, by a model of `mnar fit`
    Predict(PredictArgs),
    /// Hide labels of a table by a known mechanism
    Simulate(SimulateArgs),
    /// Run an experiment of the paper again: its table, ours beside theirs
    Reproduce(ReproduceArgs),
    /// Draw the report of a run again, and its figures for a paper
    Report(ReportArgs),
    /// Completions for a shell, to standard output
    Completions(CompletionsArgs),
    /// The manual page, to standard output
    Man,
}

#[derive(Args)]
#[command(after_help = "Examples:
  mnar report patients-run
  mnar report patients-run --figures figures --output patients.html")]
pub(crate) struct ReportArgs {
    /// The folder of a run of `mnar fit` or `mnar demo`
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// The page, in place of report.html in the run's folder
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Write every figure as SVG into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) figures: Option<PathBuf>,
}

#[derive(Args)]
#[command(after_help = "Examples:
  mnar completions bash > ~/.local/share/bash-completion/completions/mnar
  mnar completions zsh > ~/.zfunc/_mnar")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// An experiment, and what to change in it.
#[derive(Args)]
#[command(after_help = "Experiments: mnist-s1, mnist-s2, dermamnist, nodulemnist3d, lidc, cifar10-s2.

Examples:
  mnar reproduce mnist-s2 --data DIR
  mnar reproduce mnist-s2 --data DIR --methods pl,me,ours --seeds 1 --epochs 20
  mnar reproduce dermamnist --data DIR --protocol real
  mnar reproduce dermamnist --data DIR --test

Every method and seed writes a file of its own; interrupted, the same command goes on where it stopped.")]
pub(crate) struct ReproduceArgs {
    /// Its name, or a TOML file like those of `experiments/`
    #[arg(value_name = "EXPERIMENT", required_unless_present = "page")]
    pub(crate) experiment: Option<String>,

    /// The folder with the data sets
    #[arg(long, value_name = "DIR", required_unless_present = "page")]
    pub(crate) data: Option<PathBuf>,

    /// Methods, comma-separated, in place of the experiment's
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) methods: Option<Vec<String>>,

    /// Masks to draw, in place of the experiment's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: Option<u64>,

    /// Epochs, in place of the experiment's
    #[arg(long, value_name = "N")]
    pub(crate) epochs: Option<usize>,

    /// Choose the epoch by validation rows with the true class shares, as the paper does, or by held-out labelled rows,
    /// as a user must
    #[arg(long, value_enum, default_value_t = ProtocolName::Paper)]
    pub(crate) protocol: ProtocolName,

    /// Test whether labels are informative, on labels drawn at random and by the experiment's mechanism (10 draws each,
    /// or --seeds), in place of the table
    #[arg(long, conflicts_with_all = ["methods", "protocol"])]
    pub(crate) test: bool,

    /// Where results are kept
    #[arg(long, value_name = "DIR", default_value = "reproduce")]
    pub(crate) out: PathBuf,

    /// Write a page of all results in --out to this file, and draw their figures again
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,

    /// No progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ProtocolName {
    /// Validation rows with the true class shares
    Paper,
    /// A tenth of the labelled rows, weighted by 1/phi
    Real,
}

/// How the table is laid out.
#[derive(Args)]
pub(crate) struct TableArgs {
    /// CSV or Parquet: the label column and one probability column a class (or features, with --features)
    #[arg(value_name = "PRED")]
    pub(crate) table: PathBuf,

    /// The label column; a blank or null label is a missing one
    #[arg(long, value_name = "COLUMN")]
    pub(crate) label: String,

    /// What the names of the probability columns start with; the rest is the class
    #[arg(long, value_name = "PREFIX", default_value = "p_")]
    pub(crate) proba: String,

    /// Which posterior the probabilities are: `labelled` is what a classifier trained on the labelled rows alone
    /// learns, `population` one trained with 1/phi weights or on fully labelled data
    #[arg(long, value_enum, default_value_t = Posterior::Labelled)]
    pub(crate) posterior: Posterior,

    /// The column that says in which fold each row was held out, where the predictions are cross-fitted
    #[arg(long, value_name = "COLUMN")]
    pub(crate) fold: Option<String>,

    /// The table holds features, not probabilities: cross-fit a softmax regression on these columns
    /// (comma-separated, or `all` for every column but the label)
    #[arg(long, value_name = "COLUMNS", conflicts_with_all = ["proba", "posterior"])]
    pub(crate) features: Option<String>,

    /// Another label value that means missing, such as NA; may be repeated
    #[arg(long, value_name = "VALUE")]
    pub(crate) missing: Vec<String>,

    /// Folds of the cross-fitting, with --features
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) folds: usize,

    /// Ridge penalty of the softmax regression on standardised features, with --features
    #[arg(long, value_name = "L2", default_value_t = 1.0, allow_negative_numbers = true)]
    pub(crate) l2: f64,

    /// Seed of every draw
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// No progress on stderr
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:
  mnar estimate predictions.csv --label diagnosis
  mnar estimate predictions.parquet --label y --fold fold --format json
  mnar estimate clinic.csv --label diagnosis --features age,bmi,glucose
  mnar estimate predictions.csv --label y --method moments --shares sick=0.1,healthy=0.9
  mnar estimate predictions.csv --label y --weights weights.csv")]
pub(crate) struct EstimateArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,

    /// The estimator; auto takes label-shift for labelled posteriors and likelihood for population posteriors
    #[arg(long, value_enum, default_value_t = Method::Auto)]
    pub(crate) method: Method,

    /// Known class shares of the whole population, for --method moments: `balanced` or a=0.2,b=0.8
    #[arg(long, value_name = "SHARES")]
    pub(crate) shares: Vec<String>,

    /// The known mechanism, for --method known: a=0.2,b=0.8
    #[arg(long, value_name = "PHI")]
    pub(crate) phi: Vec<String>,

    /// Calibrate labelled posteriors on the labelled rows; auto does so for the label-shift estimator
    #[arg(long, value_enum, default_value_t = Calibrate::Auto)]
    pub(crate) calibrate: Calibrate,

    /// Pull the shares of the unlabelled rows towards those of the labelled rows with the weight of so many rows
    #[arg(long, value_name = "ROWS", default_value_t = 0.0, allow_negative_numbers = true)]
    pub(crate) prior_weight: f64,

    /// How intervals are made; auto takes the bootstrap where it is affordable
    #[arg(long, value_enum, default_value_t = Interval::Auto)]
    pub(crate) interval: Interval,

    /// Bootstrap replicates
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) replicates: usize,

    /// Write per-row weights for another trainer: 1/phi of the label, and the factor of an unlabelled loss
    #[arg(long, value_name = "FILE")]
    pub(crate) weights: Option<PathBuf>,

    /// Write a page of the estimate, the test and the checks: one HTML file that opens offline
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// How phi and the shares move if easy rows are labelled more readily by these odds factors, such as 0.5,1,2
    #[arg(long, value_name = "FACTORS", allow_negative_numbers = true, value_delimiter = ',')]
    pub(crate) sensitivity: Vec<f64>,

    /// How many labels would give intervals of phi this wide
    #[arg(long, value_name = "WIDTH", allow_negative_numbers = true)]
    pub(crate) width: Option<f64>,

    /// Walk over a Parquet file in flat memory instead of loading it (automatic above 4 GB of probabilities)
    #[arg(long, conflicts_with_all = ["features", "sensitivity", "weights"])]
    pub(crate) stream: bool,
}

#[derive(Args)]
#[command(after_help = "The classifier must not have seen the rows it scores: predictions for labelled rows must be \
out-of-fold (give --fold) or come from a classifier trained on other data.

Examples:
  mnar test predictions.csv --label diagnosis --fold fold
  mnar test clinic.csv --label diagnosis --features all
  mnar test predictions.csv --label y --fail-on-reject && train.sh")]
pub(crate) struct TestArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,

    /// The test; auto takes the one whose size holds for the table at hand, the permutation test
    #[arg(long, value_enum, default_value_t = TestMethod::Auto)]
    pub(crate) method: TestMethod,

    /// Level below which the test rejects
    #[arg(long, value_name = "P", default_value_t = 0.05, allow_negative_numbers = true)]
    pub(crate) level: f64,

    /// Permutations of the permutation test
    #[arg(long, value_name = "N", default_value_t = 9999)]
    pub(crate) permutations: usize,

    /// Replicates of the bootstrap tests
    #[arg(long, value_name = "N", default_value_t = 199)]
    pub(crate) replicates: usize,

    /// How many labels would give the permutation test this power
    #[arg(long, value_name = "POWER", allow_negative_numbers = true)]
    pub(crate) power: Option<f64>,

    /// Exit with 1 where the test rejects
    #[arg(long)]
    pub(crate) fail_on_reject: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:
  mnar simulate data.csv --label y --phi sick=0.5,healthy=0.1 -o masked.csv
  mnar simulate data.parquet --label y --phi 0.3,0.1,0.2 --keep-truth y_true -o masked.parquet")]
pub(crate) struct SimulateArgs {
    /// CSV or Parquet
    #[arg(value_name = "DATA")]
    pub(crate) table: PathBuf,

    /// The label column
    #[arg(long, value_name = "COLUMN")]
    pub(crate) label: String,

    /// P(labelled | class): a=0.2,b=0.8, or the numbers alone in the order of the classes; may be repeated
    #[arg(long, value_name = "PHI", required = true)]
    pub(crate) phi: Vec<String>,

    /// Where to write the masked table, in the format of the input
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Keep the labels as they were in a new column of this name
    #[arg(long, value_name = "COLUMN")]
    pub(crate) keep_truth: Option<String>,

    /// Another label value that means missing; may be repeated
    #[arg(long, value_name = "VALUE")]
    pub(crate) missing: Vec<String>,

    /// Seed of the draw
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// How to print the summary
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Args)]
#[command(after_help = "Examples:
  mnar demo
  mnar demo --dataset breast-cancer --out breast-demo
  mnar demo --seed 1 --format json --quiet")]
pub(crate) struct DemoArgs {
    /// The sample
    #[arg(long, value_enum, default_value_t = Dataset::Digits)]
    pub(crate) dataset: Dataset,

    /// The folder of the report
    #[arg(long, value_name = "DIR", default_value = "mnar-demo")]
    pub(crate) out: PathBuf,

    /// Seed of every draw
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// No progress on stderr
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Posterior {
    Labelled,
    Population,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum Method {
    Auto,
    LabelShift,
    Likelihood,
    Moments,
    Confusion,
    Known,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum Calibrate {
    Auto,
    Bcts,
    None,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum Interval {
    Auto,
    /// From the observed information: instant, conditional on the classifier and its calibration
    Information,
    /// Resample labelled and unlabelled rows together, calibrate again, and with --features refit the classifier
    Bootstrap,
    /// Profile likelihood, class by class: conditional on the classifier, keeps its shape at phi = 1
    Profile,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum TestMethod {
    Auto,
    /// Permute which rows are labelled, within folds
    Permutation,
    /// The paper's likelihood ratio: on raw data (--features) with the classifier profiled, a bootstrap reference and
    /// chi-square beside it; on predictions with chi-square alone
    Lrt,
    /// The likelihood ratio with a bootstrap reference that refits
    LrtBootstrap,
    /// The moment estimator's distance from a constant mechanism, with a bootstrap reference that refits
    MomentsBootstrap,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum Dataset {
    /// 1,797 handwritten digits, ten classes
    Digits,
    /// 569 breast tumours, malignant or benign
    BreastCancer,
}

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
    /// Where the weights come from [default: label-shift]
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
