//! Reads the table that `estimate` and `test` work on.

use crate::args::TableArgs;
use anyhow::Result;
use mnar::analysis::{Evidence, Features};
use mnar::classify::{SoftmaxRegression, Standardise};
use mnar::crossfit::FoldPlan;
use mnar::{Labels, Posteriors, Progress, Rows as _};
use mnar_data::{FeatureColumns, ParquetPredictions, PredictionColumns};
use ndarray::Array2;

/// A table, as far as it is needed in memory.
pub(crate) enum Input {
    Table(Box<Table>),
    Stream(Box<ParquetPredictions>),
}

/// A table in memory.
pub(crate) struct Table {
    pub(crate) labels: Labels,
    folds: Option<Vec<u32>>,
    rows: Rows,
}

/// What a table says about its rows.
enum Rows {
    Predictions(Posteriors, FoldPlan),
    Features { x: Array2<f64>, names: Vec<String>, classifier: SoftmaxRegression },
}

impl Table {
    /// The evidence in the table. With features, a classifier is cross-fitted first.
    pub(crate) fn evidence(&self, args: &TableArgs, progress: &dyn Progress) -> Result<Evidence<'_>> {
        Ok(match &self.rows {
            Rows::Predictions(posteriors, plan) => Evidence::predictions(posteriors, &self.labels).with_folds(plan),
            Rows::Features { x, names, classifier } => {
                let plan = match &self.folds {
                    Some(folds) => FoldPlan::given(folds.clone()),
                    None => FoldPlan::for_labels(&self.labels, args.folds, args.seed)?,
                };
                Evidence::cross_fit(Features { x, names, classifier }, &self.labels, plan, args.seed, progress)?
            }
        })
    }
}

/// Probabilities beyond this size are streamed instead of loaded, where they can be.
const LOAD_AT_MOST: u64 = 4 << 30;

/// Whether a table is loaded or left in its file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loading {
    /// Always load it.
    Load,
    /// Stream it if it is too large to load.
    Auto,
    /// Always stream it.
    Stream,
}

impl Input {
    pub(crate) fn read(args: &TableArgs, loading: Loading) -> Result<Self> {
        if let Some(features) = &args.features {
            let columns = match features.as_str() {
                "all" => FeatureColumns::AllNumeric,
                list => FeatureColumns::Named(list.split(',').map(|name| name.trim().to_owned()).collect()),
            };
            let table =
                mnar_data::read_features(&args.table, &args.label, &columns, args.fold.as_deref(), &args.missing)?;
            let x = Standardise::learn(table.x.view())?.apply(table.x.view());
            let rows = Rows::Features { x, names: table.names, classifier: args.classifier() };
            return Ok(Input::Table(Box::new(Table { labels: table.labels, folds: table.folds, rows })));
        }
        let columns = PredictionColumns {
            prefix: args.proba.clone(),
            fold: args.fold.clone(),
            kind: args.posterior,
            missing: args.missing.clone(),
            ..PredictionColumns::new(&args.label)
        };
        if loading == Loading::Stream {
            return Ok(Input::Stream(Box::new(ParquetPredictions::open(&args.table, &columns)?)));
        }
        let large = || std::fs::metadata(&args.table).is_ok_and(|file| file.len() > LOAD_AT_MOST / 4);
        if loading == Loading::Auto && large() {
            // Compressed files may hold several times their size; the footer knows the rows.
            if let Ok(table) = ParquetPredictions::open(&args.table, &columns) {
                let bytes = table.rows() as u64 * table.n_classes() as u64 * 8;
                if bytes > LOAD_AT_MOST {
                    return Ok(Input::Stream(Box::new(table)));
                }
            }
        }
        let table = mnar_data::read_predictions(&args.table, &columns)?;
        let plan = table.folds.map_or_else(|| FoldPlan::single(table.labels.len()), FoldPlan::given);
        let rows = Rows::Predictions(table.posteriors, plan);
        Ok(Input::Table(Box::new(Table { labels: table.labels, folds: None, rows })))
    }
}
