//! Tables out: CSV or Parquet by the name of the file.

use crate::atomic::{AtomicFile, TextFile};
use crate::batch::batch_rows;
use crate::columns::check_distinct;
use crate::error::{DataError, show};
use crate::format::Format;
use arrow_array::RecordBatch;
use arrow_array::{ArrayRef, Float64Array, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// One column to be written.
#[derive(Clone, Debug)]
pub enum Column<'a> {
    /// Numbers, written so that they read back to the same bits.
    Numbers(&'a [f64]),
    /// Counts, folds, row numbers.
    Integers(&'a [u64]),
    /// Texts; `None` is blank in CSV and null in Parquet.
    Texts(Vec<Option<&'a str>>),
}

impl Column<'_> {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Column::Numbers(values) => values.len(),
            Column::Integers(values) => values.len(),
            Column::Texts(values) => values.len(),
        }
    }

    /// Are there no values?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn data_type(&self) -> DataType {
        match self {
            Column::Numbers(_) => DataType::Float64,
            Column::Integers(_) => DataType::UInt64,
            Column::Texts(_) => DataType::Utf8,
        }
    }

    fn array(&self, rows: std::ops::Range<usize>) -> ArrayRef {
        match self {
            Column::Numbers(values) => Arc::new(Float64Array::from(values[rows].to_vec())),
            Column::Integers(values) => Arc::new(UInt64Array::from(values[rows].to_vec())),
            Column::Texts(values) => Arc::new(values[rows].iter().copied().collect::<StringArray>()),
        }
    }
}

/// Writes a table: Parquet where the name ends in `.parquet` or `.pq`, tabs in `.tsv`, else CSV; gzipped where
/// `.gz` follows. The file appears whole or not at all.
pub fn write_table(path: &Path, columns: &[(&str, Column<'_>)]) -> Result<(), DataError> {
    let shown = show(path);
    let rows = columns.first().map_or(0, |(_, column)| column.len());
    if let Some((name, column)) = columns.iter().find(|(_, column)| column.len() != rows) {
        return Err(DataError::ColumnLength {
            path: shown,
            column: (*name).to_owned(),
            found: column.len(),
            expected: rows,
        });
    }
    let header: Vec<String> = columns.iter().map(|(name, _)| name.trim().to_owned()).collect();
    check_distinct(&header, &shown)?;
    match Format::of_name(path) {
        Some(Format::Parquet) => write_parquet(path, columns, rows, &shown),
        Some(Format::Delimited { delimiter }) => write_delimited(path, columns, rows, delimiter, &shown),
        None => write_delimited(path, columns, rows, b',', &shown),
    }
}

fn write_delimited(
    path: &Path,
    columns: &[(&str, Column<'_>)],
    rows: usize,
    delimiter: u8,
    shown: &str,
) -> Result<(), DataError> {
    let failed = |error| DataError::csv(shown, "written", error);
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(TextFile::create(path)?);
    writer.write_record(columns.iter().map(|(name, _)| *name)).map_err(failed)?;
    let mut cell = Vec::new();
    for i in 0..rows {
        for (_, column) in columns {
            cell.clear();
            // The shortest digits that read back to the same bits; `{:?}` turns to exponents where `{}` would
            // write 300 zeros. Writing to a vector cannot fail.
            let written = match column {
                Column::Numbers(values) => write!(cell, "{:?}", values[i]),
                Column::Integers(values) => write!(cell, "{}", values[i]),
                Column::Texts(values) => write!(cell, "{}", values[i].unwrap_or_default()),
            };
            written.map_err(|error| DataError::io(shown, "written", error))?;
            writer.write_field(&cell).map_err(failed)?;
        }
        writer.write_record(None::<&[u8]>).map_err(failed)?;
    }
    let file = writer.into_inner().map_err(|error| DataError::io(shown, "written", error.into_error()))?;
    file.commit()
}

fn write_parquet(path: &Path, columns: &[(&str, Column<'_>)], rows: usize, shown: &str) -> Result<(), DataError> {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type(), matches!(column, Column::Texts(_))))
        .collect();
    let schema = Arc::new(Schema::new(fields));
    let mut properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
    for (name, column) in columns {
        if matches!(column, Column::Numbers(_)) {
            // Hardly any two probabilities are equal: a dictionary of them costs time and saves nothing.
            properties = properties.set_column_dictionary_enabled(ColumnPath::new(vec![(*name).to_owned()]), false);
        }
    }
    let failed =
        |error: &dyn std::fmt::Display| DataError::io(shown, "written", std::io::Error::other(error.to_string()));
    let mut writer = ArrowWriter::try_new(AtomicFile::create(path)?, schema.clone(), Some(properties.build()))
        .map_err(|error| failed(&error))?;
    let most = batch_rows(columns.len());
    for start in (0..rows).step_by(most) {
        let end = (start + most).min(rows);
        let arrays = columns.iter().map(|(_, column)| column.array(start..end)).collect();
        let batch = RecordBatch::try_new(schema.clone(), arrays).map_err(|error| failed(&error))?;
        writer.write(&batch).map_err(|error| failed(&error))?;
    }
    writer.into_inner().map_err(|error| failed(&error))?.commit()
}
