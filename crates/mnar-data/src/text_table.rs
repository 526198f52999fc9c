//! A table of text in memory: standard input, or what a program has at hand.

use crate::dataset::names_arrays;
use crate::error::{DataError, show};
use crate::format::Format;
use crate::guard::Memory;
use bytes::Bytes;
use std::fs::File;
use std::io::Read;
use std::path::Path;

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
        Self::stdin_within(Memory::default())
    }

    pub(crate) fn stdin_within(memory: Memory) -> Result<Self, DataError> {
        Self::read(std::io::stdin().lock(), memory, STDIN)
    }

    /// The text of a source that can be read only once: standard input (`-`), a pipe or a device. `None` where the path is
    /// a file or a folder, or does not exist. Whoever reads a table more than once holds it first.
    pub fn hold(path: &Path, memory: Memory) -> Result<Option<Self>, DataError> {
        if path == Path::new("-") {
            return Self::stdin_within(memory).map(Some);
        }
        let once = std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        // Readers of other formats take a stream as it is, or say why they cannot.
        let text = matches!(Format::of_name(path), None | Some(Format::Delimited { .. } | Format::Json));
        if !once || !text || names_arrays(path) {
            return Ok(None);
        }
        let shown = show(path);
        let file = File::open(path).map_err(|error| DataError::io(&shown, "opened", error))?;
        Self::read(file, memory, &shown).map(Some)
    }

    fn read(reader: impl Read, memory: Memory, name: &str) -> Result<Self, DataError> {
        let mut bytes = Vec::new();
        let read = memory.capped(reader, 2).read_to_end(&mut bytes);
        read.map_err(|error| DataError::io(name, "read", error))?;
        Ok(Self { bytes: bytes.into(), name: name.to_owned() })
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
