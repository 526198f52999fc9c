//! `mnar fit` and `mnar predict`.

use super::{Format, MemoryArgs};
use clap::{Args, ValueEnum};
use mnar::conformal::SetKind;
use mnar_run::{FitOptions, PerClass};
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Examples:
  mnar fit clinic.csv --label diagnosis
  mnar fit scans/ --consistency fixmatch --augment medical
  mnar fit dermamnist.npz --labels kept.csv --label label --out derma
  mnar fit clinic.csv --settings earlier-run/settings.toml
  mnar fit clinic.csv --label diagnosis --out clinic --resume

DATA is a table (CSV, spreadsheet, Parquet, Arrow or JSON lines), an .npy or MedMNIST-style .npz
file, a folder with the idx files of MNIST or the binary files of CIFAR-10, or an image folder: one
folder per class, and `unlabelled`.")]
pub(crate) struct FitArgs {
    /// The data
    #[arg(value_name = "DATA")]
    pub(crate) data: PathBuf,

    /// The run folder [default: the name of the data with `-run`]
    #[arg(long, short, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,

    /// Resume an interrupted run in that folder
    #[arg(long)]
    pub(crate) resume: bool,

    /// Read options from a TOML file, such as the settings.toml of a run; its names are those of the flags, and flags take precedence
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) options: FitOptions,

    #[command(flatten)]
    pub(crate) memory: MemoryArgs,

    /// Write texts that start with = + - or @ as they are; by default a quote before them keeps spreadsheets from
    /// running them as formulas (in CSV; Parquet has them as they are)
    #[arg(long)]
    pub(crate) keep_formulas: bool,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Show no progress on stderr
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:
  mnar predict clinic-run new.csv -o predictions.csv
  mnar predict derma dermamnist.npz --split test -o predictions.parquet

Columns: `predicted` and `confidence`; p_CLASS, the probability in the whole population; u_CLASS,
the probability for a row that was left unlabelled by the same mechanism; with --sets, `set` and
`set_size`.")]
pub(crate) struct PredictArgs {
    /// A run folder of `mnar fit`
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// Rows like those the model was trained on; labels are not needed
    #[arg(value_name = "DATA")]
    pub(crate) data: PathBuf,

    /// The table to write: CSV, TSV or Parquet by its name; `-` is standard output, as CSV
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// The column of the table that names its rows; it is written beside every prediction
    #[arg(long, value_name = "COLUMN")]
    pub(crate) id: Option<String>,

    /// The sheet of a spreadsheet [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) sheet: Option<String>,

    /// Skip N lines of a text file, or rows of a sheet, above the header
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip_rows: usize,

    /// Which part of the data to predict, if they come in parts
    #[arg(long, value_enum, default_value_t = SplitName::Test)]
    pub(crate) split: SplitName,

    /// Also predict sets of classes that contain the true one with this probability, such as 0.9; for tables
    #[arg(long, value_name = "LEVEL")]
    pub(crate) sets: Option<f64>,

    /// What the sets promise
    #[arg(long, value_enum, default_value_t = SetKind::PerClass, requires = "sets")]
    pub(crate) set_kind: SetKind,

    /// Class shares where the model is used, if they differ from those of the run: a=0.2,b=0.8
    #[arg(long, value_name = "SHARES")]
    pub(crate) shares: Option<PerClass>,

    /// Use the biased baseline instead
    #[arg(long, conflicts_with = "sets")]
    pub(crate) baseline: bool,

    #[command(flatten)]
    pub(crate) memory: MemoryArgs,

    /// Write texts that start with = + - or @ as they are; by default a quote before them keeps spreadsheets from
    /// running them as formulas (in CSV; Parquet has them as they are)
    #[arg(long)]
    pub(crate) keep_formulas: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SplitName {
    Train,
    Validation,
    Test,
    All,
}
