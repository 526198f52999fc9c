//! A table of text in memory: standard input, or what a program has at hand.

use crate::error::DataError;
use bytes::Bytes;
use std::io::Read;

/// The bytes of a text table (CSV with any of the usual separators and encodings, or JSON lines; gzipped or not), which
/// can be read as often as needed.
///
/// ```
/// use mnar_data::{ReadOptions, TextTable, read_dataset};
/// let text = TextTable::new("size;kind\n1,5;cat\n2,5;\n", "pets");
/// let dataset = read_dataset(&text, &ReadOptions { label: Some("kind".into()), ..Default::default() })?;
/// let notes: Vec<String> = dataset.notes.iter().map(ToString::to_string).collect();
/// assert_eq!(notes, ["read as semicolon-separated", "decimal commas in `size`"]);
/// # Ok::<(), mnar_data::DataError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TextTable {
    bytes: Bytes,
    name: String,
}

impl TextTable {
    /// A table in memory; `source_name` is what messages start with.
    pub fn new(bytes: impl Into<Bytes>, source_name: impl Into<String>) -> Self {
        Self { bytes: bytes.into(), name: source_name.into() }
    }

    /// Reads standard input to its end.
    pub fn stdin() -> Result<Self, DataError> {
        let (name, mut bytes) = (STDIN.to_owned(), Vec::new());
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        read.map_err(|error| DataError::io(&name, "read", error))?;
        Ok(Self { bytes: bytes.into(), name })
    }

    /// What messages start with.
    pub fn source_name(&self) -> &str {
        &self.name
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

/// The name of standard input in messages.
pub(crate) const STDIN: &str = "standard input";
