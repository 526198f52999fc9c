//! The one shape in which rows leave a file, whatever its format: some columns of numbers, some of text.

use crate::columns::Selection;
use crate::error::DataError;
use arrow::array::LargeStringArray;
use ndarray::{Array2, ArrayView1, Axis, ShapeBuilder, Slice};

/// Rows a batch: ten columns of doubles are 5 MB, and a pass over the batch outweighs handing it over.
pub(crate) const BATCH_ROWS: usize = 65_536;

/// Consecutive rows of the selected columns.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The first row, from 0.
    pub(crate) first_row: usize,
    pub(crate) rows: usize,
    /// One vector a selected number column.
    pub(crate) numbers: Vec<Vec<f64>>,
    /// One array a selected text column, trimmed by who reads it; null where blank. Offsets of 64 bits, since a
    /// batch of long texts may pass 2 GB.
    pub(crate) texts: Vec<LargeStringArray>,
}

/// Batches in the order of the rows.
pub(crate) type Batches = Box<dyn Iterator<Item = Result<Batch, DataError>> + Send>;

/// A table with a header.
pub(crate) trait Table {
    /// The names of the columns, distinct.
    fn header(&self) -> &[String];
    /// Starts to read the selected columns.
    fn batches(self: Box<Self>, selection: &Selection) -> Result<Batches, DataError>;
}

/// Number columns of unknown length. A file's own word for its length is not taken: a damaged one claims 2^60
/// rows. The batches are kept apart, and freed one by one while the final array is filled, so that the table
/// is never held twice.
#[derive(Default)]
pub(crate) struct ColumnStack {
    rows: usize,
    parts: Vec<Vec<Vec<f64>>>,
}

impl ColumnStack {
    pub(crate) fn push(&mut self, rows: usize, mut numbers: Vec<Vec<f64>>) {
        self.rows += rows;
        // The last batch is a part of its capacity.
        numbers.iter_mut().for_each(Vec::shrink_to_fit);
        self.parts.push(numbers);
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// All rows, one column after the other.
    pub(crate) fn into_column_major(self, n_columns: usize) -> Array2<f64> {
        let out = Array2::zeros((self.rows, n_columns).f());
        self.fill(out)
    }

    /// All rows, one row after the other.
    pub(crate) fn into_row_major(self, n_columns: usize) -> Array2<f64> {
        let out = Array2::zeros((self.rows, n_columns));
        self.fill(out)
    }

    fn fill(self, mut out: Array2<f64>) -> Array2<f64> {
        // A few rows at a time, so that the lines of a row-major target stay in cache from column to column.
        const BLOCK: usize = 64;
        let mut first = 0;
        for part in self.parts {
            let rows = part.first().map_or(0, Vec::len);
            let mut target = out.slice_axis_mut(Axis(0), Slice::from(first..first + rows));
            for (b, mut block) in target.axis_chunks_iter_mut(Axis(0), BLOCK).enumerate() {
                for (column, mut values) in part.iter().zip(block.columns_mut()) {
                    let rows = b * BLOCK..b * BLOCK + values.len();
                    values.assign(&ArrayView1::from(&column[rows]));
                }
            }
            first += rows;
        }
        out
    }
}
