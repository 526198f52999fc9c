//! Reads the table a command names.

use crate::args::TableArgs;
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use mnar::crossfit::FoldPlan;
use mnar::linear::{SoftmaxRegression, Standardise};
use mnar::pipeline::Pipeline;
use mnar::{Labels, Posteriors};
use mnar_data::{FeatureColumns, ParquetPredictions, PredictionColumns};
use ndarray::Array2;
use std::io::IsTerminal;
use std::time::Duration;

/// A table, as far as it is needed in memory.
pub(crate) enum Input {
    Predictions { labels: Labels, posteriors: Posteriors, plan: FoldPlan },
    Stream(Box<ParquetPredictions>),
    Features { labels: Labels, x: Array2<f64>, names: Vec<String>, plan: FoldPlan },
}

/// More than this in probabilities is not loaded, where it can be streamed.
const LOAD_AT_MOST: u64 = 4 << 30;

impl Input {
    pub(crate) fn read(args: &TableArgs, stream: bool, may_stream: bool) -> Result<Self> {
        if let Some(features) = &args.features {
            let columns = match features.as_str() {
                "all" => FeatureColumns::AllNumeric,
                list => FeatureColumns::Named(list.split(',').map(|name| name.trim().to_owned()).collect()),
            };
            let table =
                mnar_data::read_features(&args.table, &args.label, &columns, args.fold.as_deref(), &args.missing)?;
            let plan = match table.folds {
                Some(folds) => FoldPlan::given(folds),
                None => FoldPlan::for_labels(&table.labels, args.folds, args.seed)?,
            };
            let x = Standardise::learn(table.x.view())?.apply(table.x.view());
            return Ok(Input::Features { labels: table.labels, x, names: table.names, plan });
        }
        let columns = PredictionColumns {
            prefix: args.proba.clone(),
            fold: args.fold.clone(),
            kind: args.posterior.into(),
            missing: args.missing.clone(),
            ..PredictionColumns::new(&args.label)
        };
        if stream {
            return Ok(Input::Stream(Box::new(ParquetPredictions::open(&args.table, &columns)?)));
        }
        if may_stream && std::fs::metadata(&args.table).is_ok_and(|file| file.len() > LOAD_AT_MOST / 4) {
            // Compressed files may hold several times their size; the footer knows the rows.
            if let Ok(table) = ParquetPredictions::open(&args.table, &columns) {
                let bytes = table.rows() as u64 * mnar::Rows::n_classes(&table) as u64 * 8;
                if bytes > LOAD_AT_MOST {
                    return Ok(Input::Stream(Box::new(table)));
                }
            }
        }
        let table = mnar_data::read_predictions(&args.table, &columns)?;
        let plan = table.folds.map_or_else(|| FoldPlan::single(table.labels.len()), FoldPlan::given);
        Ok(Input::Predictions { labels: table.labels, posteriors: table.posteriors, plan })
    }
}

/// The pipeline of `--features`.
pub(crate) fn pipeline(args: &TableArgs) -> Pipeline {
    Pipeline {
        folds: args.folds,
        regression: SoftmaxRegression { l2: args.l2, ..Default::default() },
        seed: args.seed,
        ..Default::default()
    }
}

/// A progress bar with the time left, on stderr, where a person is watching.
pub(crate) fn progress(quiet: bool, what: &'static str, length: usize) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} ({eta} left)").expect("a valid template");
    let bar = ProgressBar::new(length as u64).with_style(style).with_message(what);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
