//! JSON with one object per row: one per line, or a list of them.

use crate::arrow_table::ArrowTable;
use crate::cells::{self, Cell};
use crate::delimited::COLUMN;
use crate::error::DataError;
use crate::guard::Memory;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;

/// An object with its names in the order of the file.
struct Record(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Record;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a value for each column")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Record, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Record(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// Bytes of memory to expect per byte of JSON. `"":1,` is 5 bytes, and 56 as a name and a value; but most files have
/// longer names, and data are given a quarter of the memory only.
pub(crate) const FACTOR: u64 = 4;

/// Whether a text starts like JSON.
pub(crate) fn looks_like_json(start: &[u8]) -> bool {
    let start = start.trim_ascii_start();
    // A header of CSV may be `{a},b`, but a brace is followed by a quote only in JSON.
    let brace = |rest: &[u8]| matches!(rest.trim_ascii_start().first(), Some(b'"' | b'}'));
    match start {
        [b'{', rest @ ..] => brace(rest),
        [b'[', rest @ ..] => matches!(rest.trim_ascii_start(), [b'{', rest @ ..] if brace(rest)),
        _ => false,
    }
}

/// Reads all rows. Names that a row lacks are missing there.
pub(crate) fn read(text: &str, memory: Memory, path: &str) -> Result<ArrowTable, DataError> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let mut rows = Rows { path, memory, ..Rows::default() };
    if text.starts_with('[') {
        let records: Vec<Record> = serde_json::from_str(text).map_err(|error| json(path, None, error))?;
        for record in records {
            rows.add(record)?;
        }
    } else {
        // Objects may span lines, so the parser finds where each ends; what is wrong is told by its row.
        for record in serde_json::Deserializer::from_str(text).into_iter::<Record>() {
            rows.add(record.map_err(|error| json(path, Some(rows.n + 1), error))?)?;
        }
    }
    if rows.columns.is_empty() {
        return Err(DataError::Empty { path: path.to_owned() });
    }
    cells::table(rows.columns, path)
}

fn json(path: &str, row: Option<usize>, error: serde_json::Error) -> DataError {
    let place = row.map_or(String::new(), |row| format!("row {row}: "));
    DataError::Json { path: path.to_owned(), place, source: crate::error::said(error) }
}

#[derive(Default)]
struct Rows<'a> {
    columns: Vec<(String, Vec<Cell>)>,
    positions: HashMap<String, usize>,
    n: usize,
    /// Bytes of texts and lists.
    apart: u64,
    memory: Memory,
    path: &'a str,
}

impl Rows<'_> {
    fn add(&mut self, Record(entries): Record) -> Result<(), DataError> {
        for (name, value) in entries {
            let cell = self.cell(&name, value)?;
            self.apart += match &cell {
                Cell::Text(text) => text.len() as u64,
                Cell::List(values) => (values.len() * size_of::<Option<f64>>()) as u64,
                _ => 0,
            };
            if !self.positions.contains_key(&name) {
                // Every row may have a name of its own: then the table has as many columns as rows.
                self.check(self.columns.len() + 1)?;
            }
            let position = *self.positions.entry(name).or_insert_with_key(|name| {
                self.columns.push((name.trim().to_owned(), Vec::new()));
                self.columns.len() - 1
            });
            let cells = &mut self.columns[position].1;
            // Rows before this one lack the name; of a name that occurs twice the last value counts, as everywhere.
            cells.resize(self.n, Cell::Missing);
            cells.push(cell);
        }
        self.n += 1;
        self.check(self.columns.len())?;
        self.columns.iter_mut().for_each(|(_, cells)| cells.resize(self.n, Cell::Missing));
        Ok(())
    }

    fn check(&self, columns: usize) -> Result<(), DataError> {
        let cells = (self.n as u64 + 1).saturating_mul(size_of::<Cell>() as u64).saturating_add(COLUMN as u64);
        let bytes = cells.saturating_mul(columns as u64).saturating_add(self.apart);
        self.memory.check(bytes, "the values of its rows", self.path)
    }

    fn cell(&self, name: &str, value: Value) -> Result<Cell, DataError> {
        Ok(match value {
            Value::Null => Cell::Missing,
            Value::Bool(value) => Cell::Boolean(value),
            Value::Number(number) => match number.as_i64() {
                Some(value) => Cell::Whole(value),
                None => Cell::Number(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Cell::Text(text),
            Value::Array(values) => {
                let number = |value: &Value| match value {
                    Value::Null => Some(None),
                    other => other.as_f64().map(Some),
                };
                let list: Option<Vec<Option<f64>>> = values.iter().map(number).collect();
                Cell::List(list.ok_or_else(|| self.nested(name, "a list of something else than numbers"))?)
            }
            Value::Object(_) => return Err(self.nested(name, "an object")),
        })
    }

    fn nested(&self, name: &str, what: &'static str) -> DataError {
        let (path, row, column) = (self.path.to_owned(), self.n + 1, name.to_owned());
        DataError::Nested { path, row, column, what }
    }
}
