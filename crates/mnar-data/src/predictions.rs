//! Tables of predictions, read into memory.

use crate::arrow_table::Source;
use crate::batch::{ColumnStack, Table};
use crate::columns::{PredictionColumns, PredictionLayout};
use crate::delimited::DelimitedTable;
use crate::error::DataError;
use crate::parquet_table::ParquetTable;
use crate::values::{Interner, LabelMatcher, Missing};
use bytes::Bytes;
use mnar::{Labels, Posteriors};
use std::io::Read;

/// Labels and class probabilities of the same rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Predictions {
    /// The labels; their classes are those of the probability columns, in that order.
    pub labels: Labels,
    /// The probabilities.
    pub posteriors: Posteriors,
    /// The fold of every row, numbered from 0 in the order of the folds' names.
    pub folds: Option<Vec<u32>>,
}

/// Reads a table of predictions from memory or from a file of any format that [`read_dataset`](crate::read_dataset) reads
/// tables from; under another name, the first bytes tell what it is.
pub fn read_predictions<'a>(
    source: impl Into<Source<'a>>,
    columns: &PredictionColumns,
) -> Result<Predictions, DataError> {
    let source = source.into();
    collect(source.into_table()?, columns, &source.name())
}

/// Reads predictions from CSV text; `source_name` is what messages start with.
pub fn predictions_from_csv(
    reader: impl Read + Send + 'static,
    columns: &PredictionColumns,
    source_name: &str,
) -> Result<Predictions, DataError> {
    collect(Box::new(DelimitedTable::open(reader, b',', source_name)?), columns, source_name)
}

/// Reads predictions from the bytes of a Parquet file; `source_name` is what messages start with.
pub fn predictions_from_parquet(
    bytes: Bytes,
    columns: &PredictionColumns,
    source_name: &str,
) -> Result<Predictions, DataError> {
    collect(Box::new(ParquetTable::open(bytes, source_name)?), columns, source_name)
}

fn collect(table: Box<dyn Table>, columns: &PredictionColumns, path: &str) -> Result<Predictions, DataError> {
    let layout = PredictionLayout::find(table.header(), columns, path)?;
    let matcher = LabelMatcher::new(&layout.classes, &columns.missing, path);
    let mut probabilities = ColumnStack::new(layout.classes.len());
    let mut y = Vec::new();
    let mut folds = columns.fold.as_ref().map(|name| (name, Interner::default()));
    for batch in table.batches(&layout.selection())? {
        let batch = batch?;
        matcher.encode(&batch.texts[0], batch.first_row, &mut y)?;
        if let Some((_, folds)) = &mut folds {
            folds.extend(&batch.texts[1], &Missing::new(&[]));
        }
        probabilities.push(&batch);
    }
    if probabilities.rows() == 0 {
        return Err(DataError::NoRows { path: path.to_owned() });
    }
    let folds = folds.map(|(name, folds)| folds.into_folds(name, path)).transpose()?;
    let posteriors = Posteriors::new(probabilities.into_array(), columns.kind)
        .map_err(|error| DataError::posterior(path, error, &layout.classes))?;
    let complete = columns.allow_complete && layout.classes.len() > 1 && y.iter().all(Option::is_some);
    let labels = if complete { Labels::allow_degenerate } else { Labels::new };
    let labels = labels(y, layout.classes).map_err(|cause| DataError::core(path, cause))?;
    Ok(Predictions { labels, posteriors, folds })
}
