//! Tables in memory, as Arrow has them.

use crate::arrays::{Arrays, Spelling, TypedTable};
use crate::batch::Table;
use crate::columns::check_distinct;
use crate::error::{DataError, show};
use crate::format::AnyTable;
use crate::guard::Memory;
use crate::text_table::{STDIN, TextTable};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use std::path::{Path, PathBuf};

/// A table in memory: Arrow's record batches, as pandas, polars and DuckDB hand them over.
///
/// It is read like the CSV file that pandas would write of it, so that both give the same data set: booleans are
/// `True` and `False`, NaN is missing, and texts that are all numbers are a column of numbers.
///
/// ```
/// use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
/// use mnar_data::{ArrowTable, ReadOptions, read_dataset};
/// use std::sync::Arc;
/// let legs: ArrayRef = Arc::new(Float64Array::from(vec![4.0, 2.0, 4.0]));
/// let label: ArrayRef = Arc::new(StringArray::from(vec![Some("cat"), None, Some("dog")]));
/// let batch = RecordBatch::try_from_iter([("legs", legs), ("label", label)])?;
/// let table = ArrowTable::new(batch.schema(), vec![batch], "the table")?;
/// let dataset = read_dataset(&table, &ReadOptions { label: Some("label".into()), ..Default::default() })?;
/// assert_eq!(dataset.labels.names(), ["cat", "dog"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ArrowTable {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    header: Vec<String>,
    name: String,
}

impl ArrowTable {
    /// A table of these batches, which all have the columns of `schema`. `source_name` is what messages start with,
    /// such as `the table`.
    pub fn new(
        schema: SchemaRef,
        batches: Vec<RecordBatch>,
        source_name: impl Into<String>,
    ) -> Result<Self, DataError> {
        let name = source_name.into();
        let header: Vec<String> = schema.fields().iter().map(|field| field.name().trim().to_owned()).collect();
        check_distinct(&header, &name)?;
        for batch in &batches {
            let columns = batch.columns();
            let found = columns.iter().map(|column| column.data_type());
            if columns.len() != header.len() || !found.eq(schema.fields().iter().map(|field| field.data_type())) {
                return Err(DataError::Batches { path: name });
            }
        }
        Ok(Self { schema, batches, header, name })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What messages start with.
    pub fn source_name(&self) -> &str {
        &self.name
    }
}

impl TypedTable for ArrowTable {
    fn header(&self) -> &[String] {
        &self.header
    }

    fn data_type(&self, column: usize) -> &DataType {
        self.schema.field(column).data_type()
    }

    fn spelling(&self) -> Spelling {
        Spelling::Csv
    }

    fn source_name(&self) -> &str {
        &self.name
    }

    fn arrays(self: Box<Self>, wanted: &[usize], most: usize) -> Result<Arrays, DataError> {
        let wanted = wanted.to_vec();
        Ok(Box::new(self.batches.into_iter().flat_map(move |batch| {
            let columns: Vec<ArrayRef> = wanted.iter().map(|&column| batch.column(column).clone()).collect();
            let rows = batch.num_rows();
            (0..rows).step_by(most).map(move |start| {
                let part = most.min(rows - start);
                Ok(columns.iter().map(|column| column.slice(start, part)).collect())
            })
        })))
    }
}

/// Where a table is read from, and how much memory that may take.
///
/// ```
/// use mnar_data::{Memory, Source};
/// let path = std::path::Path::new("clinic.csv");
/// let source = Source::from(path).with_memory(Memory::bytes(2_000_000_000));
/// assert_eq!(source.name(), "clinic.csv");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The place.
    pub kind: SourceKind<'a>,
    /// The most memory that what is read may take.
    pub memory: Memory,
    /// The sheet of a spreadsheet; by default the first.
    pub sheet: Option<&'a str>,
    /// How many lines of a text, or rows of a sheet, stand above the header.
    pub skip_rows: usize,
}

/// Where a table is read from: a file, or memory.
#[derive(Clone, Copy, Debug)]
pub enum SourceKind<'a> {
    /// A file or folder; a pattern such as `part-*.parquet`; or `-`, standard input, which can be read once.
    Path(&'a Path),
    /// Text in memory.
    Text(&'a TextTable),
    /// A table in memory.
    Table(&'a ArrowTable),
}

impl<'a> Source<'a> {
    /// The same source with another limit.
    pub fn with_memory(self, memory: Memory) -> Self {
        Self { memory, ..self }
    }

    /// Another sheet of the same spreadsheet.
    pub fn with_sheet(self, sheet: Option<&'a str>) -> Self {
        Self { sheet, ..self }
    }

    /// The same source, whose header stands below this many lines of a text or rows of a sheet.
    pub fn with_skip_rows(self, skip_rows: usize) -> Self {
        Self { skip_rows, ..self }
    }

    /// What messages start with.
    pub fn name(self) -> String {
        match self.kind {
            SourceKind::Path(path) if path == Path::new("-") => STDIN.to_owned(),
            SourceKind::Path(path) => show(path),
            SourceKind::Text(text) => text.source_name().to_owned(),
            SourceKind::Table(table) => table.name.clone(),
        }
    }

    pub(crate) fn into_table(self) -> Result<Box<dyn Table>, DataError> {
        Ok(AnyTable::open(self)?.into_table())
    }
}

impl<'a> From<SourceKind<'a>> for Source<'a> {
    fn from(kind: SourceKind<'a>) -> Self {
        Source { kind, memory: Memory::default(), sheet: None, skip_rows: 0 }
    }
}

impl<'a> From<&'a Path> for Source<'a> {
    fn from(path: &'a Path) -> Self {
        SourceKind::Path(path).into()
    }
}

impl<'a> From<&'a PathBuf> for Source<'a> {
    fn from(path: &'a PathBuf) -> Self {
        SourceKind::Path(path).into()
    }
}

impl<'a> From<&'a TextTable> for Source<'a> {
    fn from(text: &'a TextTable) -> Self {
        SourceKind::Text(text).into()
    }
}

impl<'a> From<&'a ArrowTable> for Source<'a> {
    fn from(table: &'a ArrowTable) -> Self {
        SourceKind::Table(table).into()
    }
}
