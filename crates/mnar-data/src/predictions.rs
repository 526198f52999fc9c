//! Tables of predictions, read into memory.

use crate::arrow_table::Source;
use crate::batch::{ColumnStack, Table, column_major};
use crate::classes::Classes;
use crate::columns::{PredictionColumns, PredictionLayout};
use crate::delimited::DelimitedTable;
use crate::error::DataError;
use crate::guard::Memory;
use crate::note::Note;
use crate::parquet_table::ParquetTable;
use crate::row_names::RowNames;
use crate::values::{Interner, Missing};
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
    /// The names of the rows, if a column was named for them.
    pub row_names: Option<RowNames>,
    /// What labels and columns were taken for.
    pub notes: Vec<Note>,
}

/// Reads a table of predictions from memory or from a file of any format that [`read_dataset`](crate::read_dataset) reads
/// tables from; under another name, the first bytes tell what it is.
pub fn read_predictions<'a>(
    source: impl Into<Source<'a>>,
    columns: &PredictionColumns,
) -> Result<Predictions, DataError> {
    let source = source.into();
    collect(source.into_table()?, columns, source.memory, &source.name())
}

/// Reads predictions from CSV text; `source_name` is what messages start with.
pub fn predictions_from_csv(
    reader: impl Read + Send + 'static,
    columns: &PredictionColumns,
    source_name: &str,
) -> Result<Predictions, DataError> {
    let memory = Memory::default().resolved();
    collect(Box::new(DelimitedTable::open(reader, b',', memory, source_name)?), columns, memory, source_name)
}

/// Reads predictions from the bytes of a Parquet file; `source_name` is what messages start with.
pub fn predictions_from_parquet(
    bytes: Bytes,
    columns: &PredictionColumns,
    source_name: &str,
) -> Result<Predictions, DataError> {
    let memory = Memory::default().resolved();
    collect(Box::new(ParquetTable::open(bytes, memory, source_name)?), columns, memory, source_name)
}

/// What takes the memory of a table of predictions.
const PROBABILITIES: &str = "the probabilities";

fn collect(
    table: Box<dyn Table>,
    columns: &PredictionColumns,
    memory: Memory,
    path: &str,
) -> Result<Predictions, DataError> {
    let memory = memory.resolved();
    let layout = PredictionLayout::find(table.header(), columns, path)?;
    let id = layout.id.map(|id| table.header()[id].clone());
    let missing = Missing::new(&columns.missing);
    let (mut numbers, mut labels) = (ColumnStack::default(), Interner::default());
    let mut folds = columns.fold.as_ref().map(|name| (name, Interner::default()));
    let mut row_names = id.map(|column| RowNames { column, names: Vec::new() });
    for batch in table.batches(&layout.selection())? {
        let batch = batch?;
        let mut texts = batch.texts.iter();
        let mut next = || texts.next().ok_or_else(|| DataError::Batches { path: path.to_owned() });
        labels.extend(next()?, &missing);
        if let Some((_, folds)) = &mut folds {
            folds.extend(next()?, &Missing::new(&[]));
        }
        if let Some(row_names) = &mut row_names {
            row_names.names.extend(next()?.iter().map(|name| name.unwrap_or_default().trim().to_owned()));
        }
        numbers.push(batch);
        let folds = folds.as_ref().map_or(0, |(_, folds)| folds.bytes());
        let names = row_names.as_ref().map_or(0, |row_names| row_names.bytes());
        memory.check(numbers.bytes() + labels.bytes() + folds + names, PROBABILITIES, path)?;
    }
    if numbers.rows() == 0 {
        return Err(DataError::NoRows { path: path.to_owned() });
    }
    let folds = folds.map(|(name, folds)| folds.into_folds(name, path)).transpose()?;
    let numbers = numbers.into_columns();
    let classes = Classes::find(&layout, columns, numbers.len(), labels.census(), path)?;
    let y = labels.census().texts();
    let y = y.iter().map(|label| classes.class(label.text, label.first_row)).collect::<Result<Vec<_>, _>>()?;
    let labels = labels.with_values(&y);
    let probabilities = column_major(classes.probabilities(numbers, 0)?);
    let posteriors = Posteriors::new(probabilities, columns.kind)
        .map_err(|error| DataError::posterior(path, error, &classes.names))?;
    let complete = columns.allow_complete && classes.names.len() > 1 && labels.iter().all(Option::is_some);
    let checked = if complete { Labels::allow_degenerate } else { Labels::new };
    let labels = checked(labels, classes.names).map_err(|cause| DataError::core(path, cause))?;
    let mut notes = classes.notes;
    notes.extend(row_names.iter().flat_map(RowNames::notes));
    Ok(Predictions { labels, posteriors, folds, row_names, notes })
}
