//! The command line as typed. What the arguments mean together is checked by the settings they become.

mod evaluate;
mod fit;
mod inspect;
mod reading;
mod table;

pub(crate) use evaluate::EvaluateArgs;
pub(crate) use fit::{FitArgs, PredictArgs, SplitName};
pub(crate) use inspect::InspectArgs;
pub(crate) use reading::{MemoryArgs, formulas, source};
pub(crate) use table::{EstimateArgs, TableArgs, TestArgs};

use clap::{Args, Parser, Subcommand, ValueEnum};
use mnar_run::DemoSample;
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
#[expect(clippy::large_enum_variant, reason = "there is one per run of the program")]
pub(crate) enum Command {
    /// Run end to end on an embedded sample whose labels are hidden by a known mechanism
    Demo(DemoArgs),
    /// Show how a file is read, what is left out, and how often rows are labelled along each column; changes nothing
    Inspect(InspectArgs),
    /// Estimate P(labelled | class) and the true class shares
    Estimate(EstimateArgs),
    /// Test whether the labels are informative
    Test(TestArgs),
    /// Estimate a model's true accuracy, recall, AUC and more from labels that are a biased selection
    Evaluate(Box<EvaluateArgs>),
    /// End to end on your data: estimate, test, and train a classifier corrected for label-selection bias
    Fit(Box<FitArgs>),
    /// Predict class probabilities of new rows with a model of `mnar fit`
    Predict(PredictArgs),
    /// Hide labels of a table by a known mechanism
    Simulate(SimulateArgs),
    /// Draw the report of a run again, and its figures for a paper; or compare several runs
    Report(ReportArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the manual page
    Man,
}

#[derive(Args)]
#[command(after_help = "Examples:
  mnar report patients-run
  mnar report patients-run --figures figures --output patients.html
  mnar report patients-run patients-run-given --output comparison.html")]
pub(crate) struct ReportArgs {
    /// The folder of a run of `mnar fit` or `mnar demo`; several are compared on one page
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<PathBuf>,

    /// Where to write the page [default: report.html in the run folder, or comparison.html here for several runs]
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

#[derive(Args)]
#[command(after_help = "Examples:
  mnar simulate data.csv --label y --phi sick=0.5,healthy=0.1 -o masked.csv
  mnar simulate data.csv --label y --phi 0.3,0.3 --odds hospital:North=8 --odds age=2 -o masked.csv
  mnar simulate data.parquet --label y --phi 0.3,0.1,0.2 --keep-truth y_true -o masked.parquet")]
pub(crate) struct SimulateArgs {
    /// CSV or Parquet; `-` is standard input
    #[arg(value_name = "DATA")]
    pub(crate) table: PathBuf,

    /// The label column
    #[arg(long, value_name = "COLUMN")]
    pub(crate) label: String,

    /// P(labelled | class): a=0.2,b=0.8, or the numbers alone in the order of the classes; may be repeated
    #[arg(long, value_name = "PHI", required = true)]
    pub(crate) phi: Vec<String>,

    /// A column that labelling depends on besides the class: `hospital:North=8` multiplies the odds of a label where the
    /// hospital is North by 8, `age=2` multiplies them by 2 per standard deviation of age; may be repeated
    #[arg(long, value_name = "COLUMN[:VALUE]=FACTOR")]
    pub(crate) odds: Vec<String>,

    /// Where to write the masked table, in the format of the input; `-` is standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Keep the original labels in a new column of this name
    #[arg(long, value_name = "COLUMN")]
    pub(crate) keep_truth: Option<String>,

    /// Another label value that means missing; may be repeated
    #[arg(long, value_name = "VALUE")]
    pub(crate) missing: Vec<String>,

    /// Treat labels such as NA, ? or -1 as classes, not as missing
    #[arg(long)]
    pub(crate) labels_as_they_are: bool,

    /// Make one class of labels that differ only by case or blanks, such as `Sick` and `sick`
    #[arg(long)]
    pub(crate) merge_labels: bool,

    /// Skip N lines of a text file above the header
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip_rows: usize,

    #[command(flatten)]
    pub(crate) memory: MemoryArgs,

    /// Seed of the random draw
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
    #[arg(long, value_enum, default_value_t = DemoSample::Digits)]
    pub(crate) dataset: DemoSample,

    /// Folder for the report
    #[arg(long, value_name = "DIR", default_value = "mnar-demo")]
    pub(crate) out: PathBuf,

    /// Seed of all random draws
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Show no progress on stderr
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}
