//! `mnar evaluate`.

use super::TableArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
#[command(
    after_help = "Metrics over labelled rows describe the labelled rows. Here every row counts with the label that is expected of it, so \
that the metrics are those of all rows, or of the unlabelled ones. The model must not have been trained on the rows that it \
scores: give out-of-fold predictions (and --fold), or those of a model trained on other data.

Examples:
  mnar evaluate predictions.csv --label diagnosis --fold fold
  mnar evaluate predictions.csv --label y --given hospital --by hospital
  mnar evaluate predictions.csv --label y --model new_ --decision doctor
  mnar evaluate predictions.csv --label y --phi sick=0.5,healthy=0.1 --format json
  mnar evaluate predictions.csv --label y --audit random_sample --report page.html
  mnar evaluate predictions/ --label y --given hospital --stream
  mnar evaluate clinic.csv --label y --features all --report page.html"
)]
pub(crate) struct EvaluateArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,

    /// Another model: the prefix of its probability columns; may be repeated. It is compared with the first
    #[arg(long, value_name = "PREFIX")]
    pub(crate) model: Vec<String>,

    /// A model that gives only decisions: the column of the classes it chose; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub(crate) decision: Vec<String>,

    /// Report metrics for each group of this column too, such as each hospital
    #[arg(long, value_name = "COLUMN")]
    pub(crate) by: Option<String>,

    /// The mechanism, if it is known: P(labelled | class) as a=0.2,b=0.8
    #[arg(long, value_name = "PHI", conflicts_with = "run")]
    pub(crate) phi: Vec<String>,

    /// Take the mechanism, with its error, from a run of `mnar fit`
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<PathBuf>,

    /// Write the metrics, ROC and calibration curves as one HTML page that opens offline
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Weight labelled rows by 1/phi and leave unlabelled rows out: less precise, but easy to compute by hand
    #[arg(long)]
    pub(crate) weighting_alone: bool,

    /// Bootstrap replicates of the intervals, 0 for none [default: 200, or fewer where the table is large]
    #[arg(long, value_name = "N")]
    pub(crate) replicates: Option<usize>,

    /// Walk over a Parquet file, or all files of a folder or pattern, in flat memory instead of loading them: metrics of one model
    /// that are functions of sums, with jackknife intervals, and without AUC, average precision and curves
    #[arg(long, conflicts_with_all = ["features", "audit", "model", "decision", "run", "report"])]
    pub(crate) stream: bool,
}
