//! Writes tables as CSV or Parquet, depending on the name of the file.

use crate::atomic::{AtomicFile, TextFile};
use crate::batch::BATCH_ROWS;
use crate::columns::check_distinct;
use crate::error::{DataError, show};
use crate::format::Format;
use crate::formulas::{Formulas, needs_quote};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};
use std::collections::HashMap;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A column to write.
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

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn field(&self, name: &str) -> Result<Arc<Type>, ParquetError> {
        let (physical, logical, repetition) = match self {
            Column::Numbers(_) => (Physical::DOUBLE, None, Repetition::REQUIRED),
            Column::Integers(_) => (Physical::INT64, Some(LogicalType::integer(64, false)), Repetition::REQUIRED),
            Column::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::OPTIONAL),
        };
        let field = Type::primitive_type_builder(name, physical).with_logical_type(logical).with_repetition(repetition);
        field.build().map(Arc::new)
    }

    /// Writes some rows of the column, a part at a time.
    fn write(&self, rows: Range<usize>, writer: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        match self {
            Column::Numbers(values) => {
                writer.typed::<DoubleType>().write_batch(&values[rows], None, None)?;
            }
            Column::Integers(values) => {
                for part in values[rows].chunks(BATCH_ROWS) {
                    let values: Vec<i64> = part.iter().map(|value| value.cast_signed()).collect();
                    writer.typed::<Int64Type>().write_batch(&values, None, None)?;
                }
            }
            Column::Texts(values) => {
                // Labels repeat, and a text that was met before is shared.
                let mut known: HashMap<&str, ByteArray> = HashMap::new();
                for part in values[rows].chunks(BATCH_ROWS) {
                    let texts = part.iter().flatten();
                    let texts = texts.map(|text| known.entry(text).or_insert_with(|| ByteArray::from(*text)).clone());
                    let texts: Vec<ByteArray> = texts.collect();
                    let levels: Vec<i16> = part.iter().map(|text| i16::from(text.is_some())).collect();
                    writer.typed::<ByteArrayType>().write_batch(&texts, Some(&levels), None)?;
                    known.clear();
                }
            }
        }
        Ok(())
    }
}

/// Rows of a row group, the usual number: readers that work side by side take one each.
const GROUP_ROWS: usize = 1 << 20;

/// Writes a table: Parquet where the name ends in `.parquet` or `.pq`, tabs in `.tsv`, else CSV; gzipped where
/// `.gz` follows. The file appears whole or not at all.
/// Texts that a spreadsheet would take for formulas are neutralised in CSV, in a way that reading undoes.
pub fn write_table(path: &Path, columns: &[(&str, Column<'_>)]) -> Result<(), DataError> {
    write_table_with(path, columns, Formulas::default())
}

/// Writes a table as [`write_table`] does, with or without formulas.
pub fn write_table_with(path: &Path, columns: &[(&str, Column<'_>)], formulas: Formulas) -> Result<(), DataError> {
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
        Some(Format::Delimited { delimiter }) => write_delimited(path, columns, rows, delimiter, formulas, &shown),
        _ => write_delimited(path, columns, rows, b',', formulas, &shown),
    }
}

fn write_delimited(
    path: &Path,
    columns: &[(&str, Column<'_>)],
    rows: usize,
    delimiter: u8,
    formulas: Formulas,
    shown: &str,
) -> Result<(), DataError> {
    let failed = |error| DataError::csv(shown, "written", error);
    let quote = |text: &str| if formulas == Formulas::Neutralised && needs_quote(text) { "'" } else { "" };
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(TextFile::create(path)?);
    writer.write_record(columns.iter().map(|(name, _)| format!("{}{name}", quote(name)))).map_err(failed)?;
    let mut cell = Vec::new();
    for i in 0..rows {
        for (_, column) in columns {
            cell.clear();
            // The shortest digits that read back to the same bits; `{:?}` turns to exponents where `{}` would
            // write 300 zeros. Writing to a vector cannot fail.
            let written = match column {
                Column::Numbers(values) => write!(cell, "{:?}", values[i]),
                Column::Integers(values) => write!(cell, "{}", values[i]),
                Column::Texts(values) => {
                    let text = values[i].unwrap_or_default();
                    write!(cell, "{}{text}", quote(text))
                }
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
    let failed = |error| DataError::parquet_written(shown, error);
    let fields = columns.iter().map(|(name, column)| column.field(name)).collect::<Result<Vec<_>, _>>();
    let schema = Type::group_type_builder("schema").with_fields(fields.map_err(failed)?).build().map_err(failed)?;
    let mut properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
    for (name, column) in columns {
        if matches!(column, Column::Numbers(_)) {
            // Hardly any two probabilities are equal: a dictionary of them costs time and saves nothing.
            properties = properties.set_column_dictionary_enabled(ColumnPath::new(vec![(*name).to_owned()]), false);
        }
    }
    let file = AtomicFile::create(path)?;
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build())).map_err(failed)?;
    for start in (0..rows).step_by(GROUP_ROWS) {
        let group = start..(start + GROUP_ROWS).min(rows);
        let mut writer = writer.next_row_group().map_err(failed)?;
        for (_, column) in columns {
            let mut column_writer = writer.next_column().map_err(failed)?.expect("the schema has one field per column");
            column.write(group.clone(), &mut column_writer).map_err(failed)?;
            column_writer.close().map_err(failed)?;
        }
        writer.close().map_err(failed)?;
    }
    writer.into_inner().map_err(failed)?.commit()
}
