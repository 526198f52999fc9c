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

/// What a column to write holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// See [`Column::Numbers`].
    Numbers,
    /// See [`Column::Integers`].
    Integers,
    /// See [`Column::Texts`].
    Texts,
}

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

impl ColumnKind {
    fn field(self, name: &str) -> Result<Arc<Type>, ParquetError> {
        let (physical, logical, repetition) = match self {
            ColumnKind::Numbers => (Physical::DOUBLE, None, Repetition::REQUIRED),
            ColumnKind::Integers => (Physical::INT64, Some(LogicalType::integer(64, false)), Repetition::REQUIRED),
            ColumnKind::Texts => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::OPTIONAL),
        };
        let field = Type::primitive_type_builder(name, physical).with_logical_type(logical).with_repetition(repetition);
        field.build().map(Arc::new)
    }
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

    /// What it holds.
    pub fn kind(&self) -> ColumnKind {
        match self {
            Column::Numbers(_) => ColumnKind::Numbers,
            Column::Integers(_) => ColumnKind::Integers,
            Column::Texts(_) => ColumnKind::Texts,
        }
    }

    /// Some rows of it.
    fn part(&self, rows: Range<usize>) -> Column<'_> {
        match self {
            Column::Numbers(values) => Column::Numbers(&values[rows]),
            Column::Integers(values) => Column::Integers(&values[rows]),
            Column::Texts(values) => Column::Texts(values[rows].to_vec()),
        }
    }

    /// Writes the column, a part at a time.
    fn write(&self, writer: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        match self {
            Column::Numbers(values) => {
                writer.typed::<DoubleType>().write_batch(values, None, None)?;
            }
            Column::Integers(values) => {
                for part in values.chunks(BATCH_ROWS) {
                    let values: Vec<i64> = part.iter().map(|value| value.cast_signed()).collect();
                    writer.typed::<Int64Type>().write_batch(&values, None, None)?;
                }
            }
            Column::Texts(values) => {
                // Labels repeat, and a text that was met before is shared.
                let mut known: HashMap<&str, ByteArray> = HashMap::new();
                for part in values.chunks(BATCH_ROWS) {
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
    let kinds: Vec<(&str, ColumnKind)> = columns.iter().map(|(name, column)| (*name, column.kind())).collect();
    let mut writer = TableWriter::create_with(path, &kinds, formulas)?;
    let rows = columns.first().map_or(0, |(_, column)| column.len());
    writer.check_lengths(rows, columns.iter().map(|(_, column)| column.len()))?;
    for start in (0..rows).step_by(GROUP_ROWS) {
        let group = start..(start + GROUP_ROWS).min(rows);
        writer.write(&columns.iter().map(|(_, column)| column.part(group.clone())).collect::<Vec<_>>())?;
    }
    writer.commit()
}

/// A table that is written a part at a time, in the format that its name stands for, as [`write_table`] does. It appears
/// once it is committed, and never if it is dropped before that.
///
/// ```
/// use mnar_data::{Column, ColumnKind, TableWriter};
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("squares.csv");
/// let mut writer = TableWriter::create(&path, &[("n", ColumnKind::Integers), ("square", ColumnKind::Numbers)])?;
/// writer.write(&[Column::Integers(&[1, 2]), Column::Numbers(&[1.0, 4.0])])?;
/// writer.write(&[Column::Integers(&[3]), Column::Numbers(&[9.0])])?;
/// writer.commit()?;
/// assert_eq!(std::fs::read_to_string(&path)?, "n,square\n1,1.0\n2,4.0\n3,9.0\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TableWriter {
    columns: Vec<(String, ColumnKind)>,
    shown: String,
    output: Output,
    formulas: Formulas,
}

enum Output {
    Delimited(Box<csv::Writer<TextFile>>),
    Parquet(Box<SerializedFileWriter<AtomicFile>>),
}

impl TableWriter {
    /// Starts a table with these columns. Texts that a spreadsheet would take for formulas are neutralised in CSV.
    pub fn create(path: &Path, columns: &[(&str, ColumnKind)]) -> Result<Self, DataError> {
        Self::create_with(path, columns, Formulas::default())
    }

    /// Starts a table with these columns, with or without formulas.
    pub fn create_with(path: &Path, columns: &[(&str, ColumnKind)], formulas: Formulas) -> Result<Self, DataError> {
        let shown = show(path);
        let header: Vec<String> = columns.iter().map(|(name, _)| name.trim().to_owned()).collect();
        check_distinct(&header, &shown)?;
        let output = match Format::of_name(path) {
            Some(Format::Parquet) => {
                let writer = parquet_writer(path, columns, &shown)?;
                Output::Parquet(Box::new(writer))
            }
            format => {
                let delimiter = if let Some(Format::Delimited { delimiter }) = format { delimiter } else { b',' };
                let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(TextFile::create(path)?);
                let quote = |name: &str| if formulas == Formulas::Neutralised && needs_quote(name) { "'" } else { "" };
                let header = writer.write_record(columns.iter().map(|(name, _)| format!("{}{name}", quote(name))));
                header.map_err(|error| DataError::csv(&shown, "written", error))?;
                Output::Delimited(Box::new(writer))
            }
        };
        Ok(Self {
            columns: columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect(),
            shown,
            output,
            formulas,
        })
    }

    /// Adds rows: one column of the same length for each, of the kinds that the table was started with. They become a row
    /// group of a Parquet file.
    pub fn write(&mut self, columns: &[Column<'_>]) -> Result<(), DataError> {
        let rows = columns.first().map_or(0, Column::len);
        self.check_lengths(rows, columns.iter().map(Column::len))?;
        if !columns.iter().map(Column::kind).eq(self.columns.iter().map(|(_, kind)| *kind)) {
            return Err(DataError::Batches { path: self.shown.clone() });
        }
        match &mut self.output {
            Output::Delimited(writer) => write_rows(writer, columns, rows, self.formulas, &self.shown),
            Output::Parquet(writer) => {
                write_group(writer, columns).map_err(|error| DataError::parquet_written(&self.shown, error))
            }
        }
    }

    /// Puts the table in its place.
    pub fn commit(self) -> Result<(), DataError> {
        match self.output {
            Output::Delimited(writer) => {
                let file = writer.into_inner();
                file.map_err(|error| DataError::io(&self.shown, "written", error.into_error()))?.commit()
            }
            Output::Parquet(writer) => {
                writer.into_inner().map_err(|error| DataError::parquet_written(&self.shown, error))?.commit()
            }
        }
    }

    fn check_lengths(&self, expected: usize, lengths: impl Iterator<Item = usize>) -> Result<(), DataError> {
        match self.columns.iter().zip(lengths).find(|(_, found)| *found != expected) {
            None => Ok(()),
            Some(((column, _), found)) => {
                let (path, column) = (self.shown.clone(), column.clone());
                Err(DataError::ColumnLength { path, column, found, expected })
            }
        }
    }
}

fn write_rows(
    writer: &mut csv::Writer<TextFile>,
    columns: &[Column<'_>],
    rows: usize,
    formulas: Formulas,
    shown: &str,
) -> Result<(), DataError> {
    let failed = |error| DataError::csv(shown, "written", error);
    let quote = |text: &str| if formulas == Formulas::Neutralised && needs_quote(text) { "'" } else { "" };
    let mut cell = Vec::new();
    for i in 0..rows {
        for column in columns {
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
    Ok(())
}

fn parquet_writer(
    path: &Path,
    columns: &[(&str, ColumnKind)],
    shown: &str,
) -> Result<SerializedFileWriter<AtomicFile>, DataError> {
    let failed = |error| DataError::parquet_written(shown, error);
    let fields = columns.iter().map(|(name, kind)| kind.field(name)).collect::<Result<Vec<_>, _>>();
    let schema = Type::group_type_builder("schema").with_fields(fields.map_err(failed)?).build().map_err(failed)?;
    let mut properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
    for (name, kind) in columns {
        if *kind == ColumnKind::Numbers {
            // Hardly any two probabilities are equal: a dictionary of them costs time and saves nothing.
            properties = properties.set_column_dictionary_enabled(ColumnPath::new(vec![(*name).to_owned()]), false);
        }
    }
    let file = AtomicFile::create(path)?;
    SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build())).map_err(failed)
}

fn write_group(writer: &mut SerializedFileWriter<AtomicFile>, columns: &[Column<'_>]) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for column in columns {
        let mut column_writer = group.next_column()?.expect("the schema has one field per column");
        column.write(&mut column_writer)?;
        column_writer.close()?;
    }
    group.close()?;
    Ok(())
}
