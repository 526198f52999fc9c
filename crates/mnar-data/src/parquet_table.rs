//! Parquet files, a batch of rows and the needed columns at a time.

use crate::batch::{Batch, Batches, Table, batch_rows};
use crate::columns::{Selection, check_distinct};
use crate::error::{ColumnRole, DataError};
use crate::guard::guarded;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, LargeStringArray};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::file::reader::ChunkReader;

/// A Parquet file whose footer has been read.
pub(crate) struct ParquetTable<R> {
    input: R,
    footer: ParquetFooter,
}

/// The footer apart from the file, to walk over the same file again without parsing it anew.
#[derive(Clone)]
pub(crate) struct ParquetFooter {
    metadata: ArrowReaderMetadata,
    header: Vec<String>,
    path: String,
}

impl<R: ChunkReader + 'static> ParquetTable<R> {
    pub(crate) fn open(input: R, path: &str) -> Result<Self, DataError> {
        if input.len() == 0 {
            return Err(DataError::Empty { path: path.to_owned() });
        }
        // The types of the Parquet schema itself will do: what Arrow adds (dictionaries, views, large offsets)
        // says how a writer held the same values in memory.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = guarded(path, || {
            ArrowReaderMetadata::load(&input, options).map_err(|error| DataError::parquet(path, error))
        })?;
        let header: Vec<String> =
            metadata.schema().fields().iter().map(|field| field.name().trim().to_owned()).collect();
        check_distinct(&header, path)?;
        Ok(Self { input, footer: ParquetFooter { metadata, header, path: path.to_owned() } })
    }

    pub(crate) fn footer(&self) -> &ParquetFooter {
        &self.footer
    }

    /// Starts to read the columns at `wanted`, which ascend, with nulls and in the types of the file.
    pub(crate) fn arrays(self, wanted: &[usize], batch_rows: usize) -> Result<ParquetArrays, DataError> {
        let Self { input, footer } = self;
        let reader = footer.reader(input, wanted, batch_rows)?;
        Ok(ParquetArrays { reader, path: footer.path })
    }
}

impl<R: ChunkReader + Send + 'static> Table for ParquetTable<R> {
    fn header(&self) -> &[String] {
        &self.footer.header
    }

    fn batches(self: Box<Self>, selection: &Selection) -> Result<Batches, DataError> {
        let Self { input, footer } = *self;
        Ok(Box::new(footer.batches(input, selection)?))
    }
}

impl ParquetFooter {
    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    pub(crate) fn data_type(&self, column: usize) -> &DataType {
        self.metadata.schema().field(column).data_type()
    }

    /// The number of rows that the footer claims.
    pub(crate) fn claimed_rows(&self) -> i64 {
        self.metadata.metadata().file_metadata().num_rows()
    }

    pub(crate) fn batches<R: ChunkReader + 'static>(
        &self,
        input: R,
        selection: &Selection,
    ) -> Result<ParquetBatches, DataError> {
        let fields = self.metadata.schema().fields();
        for &column in &selection.numbers {
            self.check_number(column, fields[column].data_type(), selection.role)?;
        }
        for &column in &selection.texts {
            self.check_text(column, fields[column].data_type())?;
        }
        // Projected columns come in the order of the file, each once.
        let mut wanted: Vec<usize> = selection.numbers.iter().chain(&selection.texts).copied().collect();
        wanted.sort_unstable();
        wanted.dedup();
        let reader = self.reader(input, &wanted, batch_rows(selection.numbers.len()))?;
        let position = |column: &usize| wanted.binary_search(column).expect("every selected column is wanted");
        Ok(ParquetBatches {
            reader,
            header: self.header.clone(),
            path: self.path.clone(),
            role: selection.role,
            numbers: selection.numbers.iter().map(|column| (*column, position(column))).collect(),
            texts: selection.texts.iter().map(|column| (*column, position(column))).collect(),
            rows: 0,
            done: false,
        })
    }

    fn reader<R: ChunkReader + 'static>(
        &self,
        input: R,
        wanted: &[usize],
        batch_rows: usize,
    ) -> Result<ParquetRecordBatchReader, DataError> {
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), wanted.iter().copied());
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(input, self.metadata.clone())
            .with_projection(mask)
            .with_batch_size(batch_rows);
        guarded(&self.path, || builder.build().map_err(|error| DataError::parquet(&self.path, error)))
    }

    fn check_number(&self, column: usize, found: &DataType, role: ColumnRole) -> Result<(), DataError> {
        if found.is_numeric() || matches!(found, DataType::Boolean | DataType::Null) {
            return Ok(());
        }
        Err(DataError::ColumnType {
            path: self.path.clone(),
            column: self.header[column].clone(),
            found: type_name(found),
            role,
            expected: "a number",
        })
    }

    pub(crate) fn check_text(&self, column: usize, found: &DataType) -> Result<(), DataError> {
        use DataType::*;
        let is_text = matches!(found, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView);
        if is_text || found.is_numeric() || matches!(found, Boolean | Null) {
            return Ok(());
        }
        Err(DataError::ColumnType {
            path: self.path.clone(),
            column: self.header[column].clone(),
            found: type_name(found),
            role: ColumnRole::Label,
            expected: "text, a whole number or a boolean",
        })
    }
}

/// Columns as Arrow holds them, a batch of rows at a time.
pub(crate) struct ParquetArrays {
    reader: ParquetRecordBatchReader,
    path: String,
}

impl ParquetArrays {
    /// The next rows: one array a column, in the order of the file.
    pub(crate) fn next_arrays(&mut self) -> Result<Option<Vec<ArrayRef>>, DataError> {
        let (reader, path) = (&mut self.reader, &self.path);
        let batch = guarded(path, || reader.next().transpose().map_err(|error| DataError::parquet(path, error)))?;
        Ok(batch.map(|batch| batch.columns().to_vec()))
    }
}

/// Batches of one pass over a file.
pub(crate) struct ParquetBatches {
    reader: ParquetRecordBatchReader,
    header: Vec<String>,
    path: String,
    role: ColumnRole,
    /// Column of the file, column of the batch.
    numbers: Vec<(usize, usize)>,
    texts: Vec<(usize, usize)>,
    rows: usize,
    done: bool,
}

impl Iterator for ParquetBatches {
    type Item = Result<Batch, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let batch = self.read().transpose();
        self.done = !matches!(batch, Some(Ok(_)));
        batch
    }
}

impl ParquetBatches {
    fn read(&mut self) -> Result<Option<Batch>, DataError> {
        let (reader, path) = (&mut self.reader, &self.path);
        let batch = guarded(path, || reader.next().transpose().map_err(|error| DataError::parquet(path, error)))?;
        let Some(batch) = batch else { return Ok(None) };
        let first_row = self.rows;
        let numbers = self
            .numbers
            .iter()
            .map(|&(column, at)| self.numbers_of(batch.column(at), column))
            .collect::<Result<Vec<_>, _>>()?;
        let texts =
            self.texts.iter().map(|&(_, at)| texts_of(batch.column(at), &self.path)).collect::<Result<Vec<_>, _>>()?;
        self.rows += batch.num_rows();
        Ok(Some(Batch { first_row, rows: batch.num_rows(), numbers, texts }))
    }

    fn numbers_of(&self, array: &ArrayRef, column: usize) -> Result<Vec<f64>, DataError> {
        if let Some(row) = first_null(array) {
            return Err(DataError::MissingValue {
                path: self.path.clone(),
                row: self.rows + row + 1,
                column: self.header[column].clone(),
                role: self.role,
            });
        }
        let array = cast(array, &DataType::Float64, &self.path)?;
        Ok(array.as_primitive::<Float64Type>().values().to_vec())
    }
}

/// Any label, fold or level as text; null where it is missing.
pub(crate) fn texts_of(array: &ArrayRef, path: &str) -> Result<LargeStringArray, DataError> {
    if array.data_type().is_floating() {
        let array = cast(array, &DataType::Float64, path)?;
        // `{:?}` writes 1.0, not 1, so that all formats leave it to the same rule to see a whole number.
        let text = |value: f64| (!value.is_nan()).then(|| format!("{value:?}"));
        return Ok(array.as_primitive::<Float64Type>().iter().map(|value| value.and_then(text)).collect());
    }
    Ok(cast(array, &DataType::LargeUtf8, path)?.as_string::<i64>().clone())
}

pub(crate) fn cast(array: &ArrayRef, to: &DataType, path: &str) -> Result<ArrayRef, DataError> {
    // Not `safe`: that would make nulls, and so missing labels, of values that do not convert.
    let options = CastOptions { safe: false, ..CastOptions::default() };
    guarded(path, || cast_with_options(array, to, &options).map_err(|error| DataError::parquet(path, error)))
}

fn first_null(array: &ArrayRef) -> Option<usize> {
    if array.logical_null_count() == 0 {
        return None;
    }
    let nulls = array.logical_nulls()?;
    (0..array.len()).find(|&i| nulls.is_null(i))
}

pub(crate) fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Struct(_) => "struct".into(),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => "list".into(),
        DataType::Map(..) => "map".into(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".into(),
        other => other.to_string(),
    }
}
