//! Reads the table a command names.

use crate::args::TableArgs;
use crate::plan::regression;
use anyhow::Result;
use mnar::analysis::{Features, Given};
use mnar::crossfit::{FoldPlan, cross_fit};
use mnar::linear::{SoftmaxRegression, Standardise};
use mnar::{Labels, Posteriors};
use mnar_data::{FeatureColumns, ParquetPredictions, PredictionColumns};
use ndarray::Array2;

/// A table, as far as it is needed in memory.
pub(crate) enum Input {
    Table(Box<Table>),
    Stream(Box<ParquetPredictions>),
}

/// Predictions in memory: those of the file, or cross-fitted on its features.
pub(crate) struct Table {
    pub(crate) labels: Labels,
    pub(crate) posteriors: Posteriors,
    pub(crate) plan: FoldPlan,
    pub(crate) features: Option<Learnt>,
}

/// The features that predictions were learnt from.
pub(crate) struct Learnt {
    x: Array2<f64>,
    names: Vec<String>,
    regression: SoftmaxRegression,
}

impl Table {
    pub(crate) fn given(&self) -> Given<'_> {
        let given = Given::predictions(&self.posteriors, &self.labels).with_folds(&self.plan);
        match &self.features {
            None => given,
            Some(Learnt { x, names, regression }) => {
                given.with_features(Features { x: x.view(), names, regression: *regression })
            }
        }
    }
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
            let regression = regression(args);
            let posteriors = cross_fit(x.view(), &table.labels, &plan, &regression, None)?;
            let features = Some(Learnt { x, names: table.names, regression });
            return Ok(Input::Table(Box::new(Table { labels: table.labels, posteriors, plan, features })));
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
        let (labels, posteriors) = (table.labels, table.posteriors);
        Ok(Input::Table(Box::new(Table { labels, posteriors, plan, features: None })))
    }
}
