//! Tables whose cells are typed one by one, as in spreadsheets and JSON, become tables of typed columns.

use crate::arrow_table::ArrowTable;
use crate::dates;
use crate::error::DataError;
use arrow_array::builder::{Float64Builder, LargeListBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, LargeStringArray, NullArray, RecordBatch, RecordBatchOptions,
    TimestampMicrosecondArray,
};
use arrow_schema::{Field, Schema};
use std::sync::Arc;

/// A value with a type of its own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Missing,
    Boolean(bool),
    Whole(i64),
    Number(f64),
    /// Microseconds since 1970; JSON has no times.
    #[cfg_attr(not(feature = "excel"), allow(dead_code))]
    Time(i64),
    Text(String),
    List(Vec<Option<f64>>),
}

impl Cell {
    /// The text that a column of several types has in its place, spelt as in CSV.
    fn text(&self) -> Option<String> {
        match self {
            Cell::Missing => None,
            Cell::Boolean(value) => Some(if *value { "True" } else { "False" }.to_owned()),
            Cell::Whole(value) => Some(value.to_string()),
            Cell::Number(value) => Some(format!("{value:?}")),
            Cell::Time(micros) => Some(spelt(*micros)),
            Cell::Text(text) => Some(text.clone()),
            Cell::List(values) => Some(format!("a list of {}", values.len())),
        }
    }
}

fn spelt(micros: i64) -> String {
    let (seconds, rest) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let time = rest != 0 || seconds.rem_euclid(86_400) != 0;
    dates::spell(seconds, u32::try_from(rest * 1000).unwrap_or(0), time)
}

/// A table of these columns, all of the same length.
pub(crate) fn table(columns: Vec<(String, Vec<Cell>)>, path: &str) -> Result<ArrowTable, DataError> {
    let rows = columns.first().map_or(0, |(_, cells)| cells.len());
    let arrays: Vec<(String, ArrayRef)> = columns.into_iter().map(|(name, cells)| (name, array(&cells))).collect();
    let fields: Vec<Field> =
        arrays.iter().map(|(name, array)| Field::new(name, array.data_type().clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays = arrays.into_iter().map(|(_, array)| array).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &options)
        .map_err(|_| DataError::Batches { path: path.to_owned() })?;
    ArrowTable::new(schema, vec![batch], path)
}

fn array(cells: &[Cell]) -> ArrayRef {
    let present = || cells.iter().filter(|cell| **cell != Cell::Missing);
    let all = |is: fn(&Cell) -> bool| present().all(is);
    if present().next().is_none() {
        Arc::new(NullArray::new(cells.len()))
    } else if all(|cell| matches!(cell, Cell::Boolean(_))) {
        let value = |cell: &Cell| if let Cell::Boolean(value) = cell { Some(*value) } else { None };
        Arc::new(cells.iter().map(value).collect::<BooleanArray>())
    } else if all(|cell| matches!(cell, Cell::Whole(_))) {
        let value = |cell: &Cell| if let Cell::Whole(value) = cell { Some(*value) } else { None };
        Arc::new(cells.iter().map(value).collect::<Int64Array>())
    } else if all(|cell| matches!(cell, Cell::Whole(_) | Cell::Number(_))) {
        let value = |cell: &Cell| match cell {
            Cell::Whole(value) => Some(*value as f64),
            Cell::Number(value) => Some(*value),
            _ => None,
        };
        Arc::new(cells.iter().map(value).collect::<Float64Array>())
    } else if all(|cell| matches!(cell, Cell::Time(_))) {
        let value = |cell: &Cell| if let Cell::Time(value) = cell { Some(*value) } else { None };
        Arc::new(cells.iter().map(value).collect::<TimestampMicrosecondArray>())
    } else if all(|cell| matches!(cell, Cell::List(_))) {
        lists(cells)
    } else {
        Arc::new(cells.iter().map(Cell::text).collect::<LargeStringArray>())
    }
}

fn lists(cells: &[Cell]) -> ArrayRef {
    let mut builder = LargeListBuilder::new(Float64Builder::new());
    for cell in cells {
        if let Cell::List(values) = cell {
            values.iter().for_each(|value| builder.values().append_option(*value));
            builder.append(true);
        } else {
            builder.append(false);
        }
    }
    Arc::new(builder.finish())
}
