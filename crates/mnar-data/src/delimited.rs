//! Tables of text whose values are separated by commas, tabs, semicolons or bars.

use crate::batch::{Batch, Batches, Table, batch_rows};
use crate::column_builder::decimal_comma;
use crate::columns::{Selection, check_distinct};
use crate::error::DataError;
use crate::formulas::unquoted;
use crate::guard::{Memory, OverLimit};
use crate::note::Note;
use crate::number_column::NumberColumn;
use crate::text::TextReader;
use crate::title_rows;
use arrow_array::LargeStringArray;
use arrow_array::builder::LargeStringBuilder;
use csv::ByteRecord;
use std::io::{self, Read};

/// Counts the quotes that pass. The csv crate takes the end of the file for a closing quote, and with it any
/// number of rows for one value; an odd count after a last value of several lines reveals this.
///
/// It also counts the bytes of the row that is being read: a row without an end, such as that of `/dev/zero`, would
/// otherwise be read until memory runs out.
struct QuoteCounter<R> {
    inner: R,
    quotes: usize,
    /// Bytes since the last complete row.
    row: u64,
    /// What data may take.
    limit: u64,
}

impl<R: Read> Read for QuoteCounter<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        // Summed as bytes in runs shorter than 256, which the compiler turns into wide additions.
        self.quotes += buffer[..n]
            .chunks(128)
            .map(|run| usize::from(run.iter().map(|&byte| u8::from(byte == b'"')).sum::<u8>()))
            .sum::<usize>();
        self.row += n as u64;
        if self.row > self.limit / ROW_SHARE { Err(OverLimit::error(self.limit)) } else { Ok(n) }
    }
}

/// Bytes that a column takes before it has values: its name in several places, and its builder.
pub(crate) const COLUMN: usize = 512;

/// The bytes of one row may take this part of the memory: they are there several times, as read, as a row and as texts.
const ROW_SHARE: u64 = 8;

/// A CSV or TSV table whose header has been read.
pub(crate) struct DelimitedTable<R> {
    reader: csv::Reader<QuoteCounter<R>>,
    /// The header as it stands in the file, for copies.
    raw_header: ByteRecord,
    header: Vec<String>,
    path: String,
    /// Rows read so far.
    rows: usize,
    /// Whether the row read last spans several lines.
    spans_lines: bool,
    delimiter: u8,
    /// The separator that the name of the file stands for.
    expected: u8,
}

impl DelimitedTable<TextReader> {
    /// Opens a text of any encoding; the separator is `expected` unless the text shows another.
    /// The first `skip_rows` lines are left out.
    pub(crate) fn detect(
        mut text: TextReader,
        expected: u8,
        skip_rows: usize,
        memory: Memory,
        path: &str,
    ) -> Result<Self, DataError> {
        let delimiter = text.delimiter(expected, skip_rows).map_err(|error| DataError::io(path, "read", error))?;
        title_rows::check_text(text.start(), text.is_complete(), delimiter, skip_rows, path)?;
        let mut table = Self::open(text, delimiter, memory, path).map_err(|error| match error {
            DataError::Empty { path } if skip_rows > 0 => DataError::AllSkipped { path, skipped: skip_rows },
            other => other,
        })?;
        table.expected = expected;
        Ok(table)
    }

    /// What was detected; complete once the table has been read.
    pub(crate) fn notes(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        if self.delimiter != self.expected {
            let name = match self.delimiter {
                b';' => "semicolon",
                b'\t' => "tab",
                b'|' => "bar",
                b',' => "comma",
                _ => "otherwise",
            };
            notes.push(Note::Delimiter { name });
        }
        notes.extend(self.reader.get_ref().inner.notes());
        notes
    }
}

impl<R: Read> DelimitedTable<R> {
    pub(crate) fn open(inner: R, delimiter: u8, memory: Memory, path: &str) -> Result<Self, DataError> {
        // The first row is read as a row like the others, so that its bytes are kept; a byte order mark is
        // skipped by the csv crate. Rows of any length pass, to be refused with their number below, and bytes are not
        // decoded, so that reading fails only where the file does.
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .buffer_capacity(1 << 16)
            .from_reader(QuoteCounter { inner, quotes: 0, row: 0, limit: memory.limit() });
        let mut raw_header = ByteRecord::new();
        if !reader.read_byte_record(&mut raw_header).map_err(|error| DataError::csv(path, "read", error))? {
            return Err(DataError::Empty { path: path.to_owned() });
        }
        memory.check_product(&[raw_header.len(), COLUMN], "the columns of the header", path)?;
        let header = raw_header
            .iter()
            .map(|name| std::str::from_utf8(name).map(|name| unquoted(name).trim().to_owned()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| DataError::NotUtf8 { path: path.to_owned(), place: "the header".into() })?;
        let path = path.to_owned();
        let (rows, spans_lines, expected) = (0, false, delimiter);
        let table = Self { reader, raw_header, header, path, rows, spans_lines, delimiter, expected };
        check_distinct(&table.header, &table.path)?;
        Ok(table)
    }

    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    /// Whether a comma can be a decimal mark.
    pub(crate) fn may_have_commas(&self) -> bool {
        self.delimiter != b','
    }

    pub(crate) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    pub(crate) fn raw_header(&self) -> &ByteRecord {
        &self.raw_header
    }

    /// Rows read so far; after a successful [`next`](Self::next), the number of that row from 1.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Reads a row; false at the end.
    pub(crate) fn next(&mut self, record: &mut ByteRecord) -> Result<bool, DataError> {
        self.reader.get_mut().row = 0;
        let more = self.reader.read_byte_record(record).map_err(|error| DataError::csv(&self.path, "read", error))?;
        if !more {
            if self.spans_lines && self.reader.get_ref().quotes % 2 == 1 {
                return Err(DataError::UnclosedQuote { path: self.path.clone(), row: self.rows });
            }
            return Ok(false);
        }
        self.rows += 1;
        let lines = self.reader.position().line() - record.position().map_or(0, csv::Position::line);
        // Blank lines before a row count as lines of it, so the values have the last word.
        self.spans_lines = lines > 1 && record.as_slice().contains(&b'\n');
        if record.len() != self.header.len() {
            // A swallowed rest of the file is ragged too; then the quote is the thing to look for.
            let (found, ends) = (record.len(), matches!(self.reader.read_byte_record(record), Ok(false)));
            if self.spans_lines && ends && self.reader.get_ref().quotes % 2 == 1 {
                return Err(DataError::UnclosedQuote { path: self.path.clone(), row: self.rows });
            }
            return Err(DataError::Ragged {
                path: self.path.clone(),
                row: self.rows,
                found,
                expected: self.header.len(),
            });
        }
        Ok(true)
    }

    pub(crate) fn text<'a>(&self, bytes: &'a [u8], column: usize) -> Result<&'a str, DataError> {
        std::str::from_utf8(bytes).map(unquoted).map_err(|_| DataError::NotUtf8 {
            path: self.path.clone(),
            place: format!("row {}, column `{}`", self.rows, self.header[column]),
        })
    }

    fn number(&self, text: &str) -> Option<f64> {
        text.parse().ok().or_else(|| decimal_comma(text).filter(|_| self.may_have_commas()))
    }

    fn read_batch(
        &mut self,
        selection: &Selection,
        columns: &mut [NumberColumn],
        record: &mut ByteRecord,
    ) -> Result<Option<Batch>, DataError> {
        let first_row = self.rows;
        let most = batch_rows(selection.width());
        // Most tables with a second batch fill it; most tables have none.
        let capacity = if first_row == 0 || selection.lists.is_some() { 0 } else { most };
        let mut numbers: Vec<Vec<f64>> = selection.numbers.iter().map(|_| Vec::with_capacity(capacity)).collect();
        let mut texts: Vec<LargeStringBuilder> = selection.texts.iter().map(|_| LargeStringBuilder::new()).collect();
        while self.rows - first_row < most && self.next(record)? {
            for (k, (&at, column)) in selection.numbers.iter().zip(&mut *columns).enumerate() {
                let text = self.text(&record[at], at)?.trim();
                if selection.lists.is_some() {
                    column.push_text(text, self.rows, |text| self.number(text), &mut numbers)?;
                } else {
                    numbers[k].push(self.number(text).ok_or_else(|| column.refuse(text, self.rows))?);
                }
            }
            for (values, &column) in texts.iter_mut().zip(&selection.texts) {
                values.append_value(self.text(&record[column], column)?);
            }
        }
        let rows = self.rows - first_row;
        let texts: Vec<LargeStringArray> = texts.iter_mut().map(LargeStringBuilder::finish).collect();
        Ok((rows > 0).then_some(Batch { first_row, rows, numbers, texts }))
    }
}

impl<R: Read + Send + 'static> Table for DelimitedTable<R> {
    fn header(&self) -> &[String] {
        &self.header
    }

    fn batches(mut self: Box<Self>, selection: &Selection) -> Result<Batches, DataError> {
        let selection = selection.clone();
        let column = |&at: &usize| NumberColumn::new(&self.header[at], selection.role, &self.path);
        let mut columns: Vec<NumberColumn> = selection.numbers.iter().map(column).collect();
        let mut record = ByteRecord::new();
        let mut done = false;
        Ok(Box::new(std::iter::from_fn(move || {
            if done {
                return None;
            }
            let batch = self.read_batch(&selection, &mut columns, &mut record).transpose();
            // Nothing sensible follows an error.
            done = !matches!(batch, Some(Ok(_)));
            batch
        })))
    }
}
