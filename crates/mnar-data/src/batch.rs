//! The common form of rows read from any format: some columns of numbers, some of text.

use crate::columns::Selection;
use crate::error::DataError;
use arrow_array::LargeStringArray;
use ndarray::{Array2, ArrayView1, ShapeBuilder};

/// Rows of a batch of few columns: a pass over them outweighs handing them over, and a column (128 KB) is reused by the allocator
/// without asking the system for memory.
pub(crate) const BATCH_ROWS: usize = 16_384;

/// Rows of a batch, fewer where there are many columns: about 20 MB of numbers, but enough rows to be summed
/// side by side.
pub(crate) fn batch_rows(n_columns: usize) -> usize {
    const NUMBERS: usize = 160 * BATCH_ROWS;
    (NUMBERS / n_columns.max(1)).clamp(4096, BATCH_ROWS)
}

/// Consecutive rows of the selected columns.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The first row, from 0.
    pub(crate) first_row: usize,
    pub(crate) rows: usize,
    /// One vector per selected number column.
    pub(crate) numbers: Vec<Vec<f64>>,
    /// One array per selected text column, not yet trimmed; null where blank. Offsets have 64 bits, since a batch of
    /// long texts may exceed 2 GB.
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

/// Collects number columns of unknown length. The length that a file claims is not trusted: a damaged file may claim 2^60
/// rows.
#[derive(Default)]
pub(crate) struct ColumnStack {
    rows: usize,
    columns: Vec<Vec<f64>>,
}

impl ColumnStack {
    pub(crate) fn push(&mut self, batch: Batch) {
        self.rows += batch.rows;
        if self.columns.is_empty() {
            self.columns = batch.numbers;
            return;
        }
        for (column, values) in self.columns.iter_mut().zip(&batch.numbers) {
            column.extend_from_slice(values);
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The memory that the values take.
    pub(crate) fn bytes(&self) -> u64 {
        self.columns.iter().map(|column| (column.len() * size_of::<f64>()) as u64).sum()
    }

    /// All rows, column by column.
    pub(crate) fn into_columns(self) -> Vec<Vec<f64>> {
        self.columns
    }
}

/// Columns one after the other in an array. Each is freed once it is copied, and the pages of the array are not there before
/// they are written to, so that one column at most is held twice.
pub(crate) fn column_major(columns: Vec<Vec<f64>>) -> Array2<f64> {
    let rows = columns.first().map_or(0, Vec::len);
    let mut out = Array2::zeros((rows, columns.len()).f());
    for (column, mut target) in columns.into_iter().zip(out.columns_mut()) {
        target.assign(&ArrayView1::from(&column));
    }
    out
}
