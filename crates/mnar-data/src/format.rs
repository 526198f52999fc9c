//! Finds the format of a table from its name, or else from its first bytes, and opens it.

use crate::arrays::{TypedTable, batches};
use crate::arrow_table::{Source, SourceKind};
use crate::batch::{Batches, Table};
use crate::columns::Selection;
use crate::delimited::DelimitedTable;
use crate::error::{DataError, show};
use crate::guard::Memory;
use crate::json_lines;
use crate::note::Note;
use crate::parquet_folder::{self, ParquetFolder};
use crate::parquet_table::ParquetTable;
use crate::text::TextReader;
use crate::text_table::TextTable;
use bytes::{Buf, Bytes};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

/// A table's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Text; `delimiter` is what the name stands for, and the text may show another.
    Delimited {
        delimiter: u8,
    },
    Parquet,
    Json,
    Excel,
    Arrow,
}

impl Format {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::Delimited { .. } => "CSV",
            Format::Parquet => "Parquet",
            Format::Json => "JSON",
            Format::Excel => "spreadsheet",
            Format::Arrow => "Arrow",
        }
    }

    /// What the extension says, a final `.gz` apart.
    pub(crate) fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        match name.rsplit_once('.')?.1 {
            "csv" | "txt" => Some(Format::Delimited { delimiter: b',' }),
            "tsv" | "tab" => Some(Format::Delimited { delimiter: b'\t' }),
            "parquet" | "pq" => Some(Format::Parquet),
            "jsonl" | "ndjson" | "json" => Some(Format::Json),
            "xlsx" | "xlsm" | "xlsb" | "xls" | "ods" => Some(Format::Excel),
            "arrow" | "feather" | "ipc" => Some(Format::Arrow),
            _ => None,
        }
    }

    fn of_bytes(start: &[u8]) -> Option<Self> {
        if start.starts_with(b"PAR1") {
            Some(Format::Parquet)
        } else if start.starts_with(b"ARROW1") {
            Some(Format::Arrow)
        } else if start.starts_with(b"\xd0\xcf\x11\xe0") {
            Some(Format::Excel)
        } else {
            None
        }
    }
}

/// An open table of any format.
pub(crate) enum AnyTable {
    Text(Box<DelimitedTable<TextReader>>),
    /// With what there is to say about its file.
    Typed(Box<dyn TypedTable>, Vec<Note>),
}

impl AnyTable {
    /// Opens a table.
    pub(crate) fn open(source: Source<'_>) -> Result<Self, DataError> {
        let (memory, sheet) = (source.memory.resolved(), source.sheet);
        let no_lines = |kind| match source.skip_rows {
            0 => Ok(()),
            _ => Err(DataError::NoLines { path: source.name(), kind }),
        };
        match source.kind {
            SourceKind::Table(table) => {
                no_lines("table in memory").map(|()| Self::Typed(Box::new(table.clone()), Vec::new()))
            }
            SourceKind::Path(path) if path != Path::new("-") => match parquet_folder::files_of(path)? {
                Some(files) => {
                    no_lines("folder of Parquet files")?;
                    let notes = vec![Note::Files { count: files.len() }];
                    Ok(Self::Typed(Box::new(ParquetFolder::open(&files, &show(path), memory)?), notes))
                }
                None => Input::of_source(source)?.into_any(sheet),
            },
            SourceKind::Path(_) | SourceKind::Text(_) => Input::of_source(source)?.into_any(sheet),
        }
    }

    /// The names of the columns, distinct.
    pub(crate) fn header(&self) -> &[String] {
        match self {
            Self::Text(table) => table.header(),
            Self::Typed(table, _) => table.header(),
        }
    }

    pub(crate) fn into_table(self) -> Box<dyn Table> {
        match self {
            Self::Text(table) => table,
            Self::Typed(table, _) => Box::new(Typed(table)),
        }
    }
}

/// A table of typed columns, of which numbers without gaps are read.
struct Typed(Box<dyn TypedTable>);

impl Table for Typed {
    fn header(&self) -> &[String] {
        self.0.header()
    }

    fn batches(self: Box<Self>, selection: &Selection) -> Result<Batches, DataError> {
        batches(self.0, selection)
    }
}

/// An open file and its format.
pub(crate) struct Input {
    opened: Opened,
    pub(crate) format: Format,
    /// Whether the name says what the format is.
    named: bool,
    pub(crate) path: String,
    memory: Memory,
    /// Lines or rows above the header.
    skip_rows: usize,
}

impl Input {
    /// A file, standard input, or text in memory.
    pub(crate) fn of_source(source: Source<'_>) -> Result<Self, DataError> {
        let memory = source.memory.resolved();
        let input = match source.kind {
            SourceKind::Path(path) if path == Path::new("-") => {
                Self::of_text(&TextTable::stdin_within(memory)?, memory)
            }
            SourceKind::Path(path) => Self::open(path, memory)?,
            SourceKind::Text(text) => Self::of_text(text, memory),
            SourceKind::Table(table) => {
                return Err(DataError::CopyOf { path: table.source_name().to_owned(), kind: Format::Arrow.name() });
            }
        };
        Ok(Self { skip_rows: source.skip_rows, ..input })
    }

    fn open(path: &Path, memory: Memory) -> Result<Self, DataError> {
        let shown = show(path);
        if Format::of_name(path) == Some(Format::Parquet) {
            open_regular(path, FROM_ITS_END)?;
        }
        let opened = Opened::new(path).map_err(|(action, error)| DataError::io(&shown, action, error))?;
        let by_name = Format::of_name(path);
        let format = by_name.or_else(|| Format::of_bytes(&opened.magic));
        let format = format.unwrap_or(Format::Delimited { delimiter: b',' });
        Ok(Self { opened, format, named: by_name.is_some(), path: shown, memory, skip_rows: 0 })
    }

    fn of_text(text: &TextTable, memory: Memory) -> Self {
        let bytes = text.bytes().clone();
        let magic = bytes[..bytes.len().min(MAGIC)].to_vec();
        let opened = Opened { content: Content::Memory(bytes), magic };
        let format = Format::Delimited { delimiter: b',' };
        Self { opened, format, named: false, path: text.source_name().to_owned(), memory, skip_rows: 0 }
    }

    /// The table in a text file.
    pub(crate) fn into_delimited(self) -> Result<DelimitedTable<TextReader>, DataError> {
        let (expected, skip_rows, memory) = (self.expected(), self.skip_rows, self.memory);
        let text = TextReader::open(self.opened.into_bytes(), &self.path)?;
        DelimitedTable::detect(text, expected, skip_rows, memory, &self.path)
    }

    fn expected(&self) -> u8 {
        match self.format {
            Format::Delimited { delimiter } => delimiter,
            _ => b',',
        }
    }

    /// The file of a Parquet table, which is read from its end.
    pub(crate) fn into_file(self) -> Result<File, DataError> {
        match self.opened.content {
            Content::File { file, is_pipe: false } => Ok(file),
            _ => Err(DataError::NotAFile { path: self.path, what: "a pipe", needs: FROM_ITS_END }),
        }
    }

    fn into_any(self, sheet: Option<&str>) -> Result<AnyTable, DataError> {
        let (path, memory) = (self.path.clone(), self.memory);
        if let (Some(sheet), true) = (sheet, self.format != Format::Excel) {
            let (kind, sheet) = (self.format.name(), sheet.to_owned());
            return Err(DataError::NoSheets { path, kind, sheet });
        }
        let skip_rows = self.skip_rows;
        if skip_rows > 0 && matches!(self.format, Format::Parquet | Format::Json | Format::Arrow) {
            return Err(DataError::NoLines { path, kind: self.format.name() });
        }
        match self.format {
            Format::Delimited { .. } => {
                let (expected, named) = (self.expected(), self.named);
                let text = TextReader::open(self.opened.into_bytes(), &path)?;
                if !named && json_lines::looks_like_json(text.start()) {
                    return read_json(text, memory, &path);
                }
                Ok(AnyTable::Text(Box::new(DelimitedTable::detect(text, expected, skip_rows, memory, &path)?)))
            }
            Format::Parquet => {
                let table = ParquetTable::open(self.into_file()?, memory, &path)?;
                Ok(AnyTable::Typed(Box::new(table), Vec::new()))
            }
            Format::Json => read_json(TextReader::open(self.opened.into_bytes(), &path)?, memory, &path),
            Format::Excel => {
                let (table, notes) = crate::excel::read(self.read_all()?, sheet, skip_rows, memory, &path)?;
                Ok(AnyTable::Typed(Box::new(table), notes))
            }
            Format::Arrow => {
                let table = crate::ipc::read(self.read_all()?, memory, &path)?;
                Ok(AnyTable::Typed(Box::new(table), Vec::new()))
            }
        }
    }

    fn read_all(self) -> Result<Bytes, DataError> {
        let mut bytes = Vec::new();
        let read = self.memory.capped(self.opened.into_bytes(), FILE_FACTOR).read_to_end(&mut bytes);
        read.map_err(|error| DataError::io(&self.path, "read", error))?;
        if bytes.is_empty() { Err(DataError::Empty { path: self.path }) } else { Ok(bytes.into()) }
    }
}

fn read_json(mut text: TextReader, memory: Memory, path: &str) -> Result<AnyTable, DataError> {
    let mut bytes = Vec::new();
    memory
        .capped(&mut text, json_lines::FACTOR)
        .read_to_end(&mut bytes)
        .map_err(|error| DataError::io(path, "read", error))?;
    let not_utf8 = |_| DataError::NotUtf8 { path: path.to_owned(), place: "its text".into() };
    let table = json_lines::read(&String::from_utf8(bytes).map_err(not_utf8)?, memory, path)?;
    Ok(AnyTable::Typed(Box::new(table), text.notes()))
}

/// The bytes of a file, decompressed if it is gzipped.
pub(crate) fn open_maybe_gzipped(path: &Path) -> Result<Box<dyn Read + Send>, DataError> {
    let opened = Opened::new(path).map_err(|(action, error)| DataError::io(&show(path), action, error))?;
    Ok(opened.into_bytes())
}

/// A file that is held whole is there twice: as it is, and as a table.
const FILE_FACTOR: u64 = 2;

/// Why Parquet cannot come through a pipe.
pub(crate) const FROM_ITS_END: &str = "Parquet is read from its end";

/// Opens a file that is not a pipe or a device: opening a pipe that nobody writes to would wait for ever.
pub(crate) fn open_regular(path: &Path, needs: &'static str) -> Result<File, DataError> {
    let shown = show(path);
    let metadata = std::fs::metadata(path).map_err(|error| DataError::io(&shown, "opened", error))?;
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "a folder" } else { "a pipe or a device" };
        return Err(DataError::NotAFile { path: shown, what, needs });
    }
    File::open(path).map_err(|error| DataError::io(&shown, "opened", error))
}

/// Why a folder is not a table.
pub(crate) fn without_parquet() -> io::Error {
    let what = "it is a folder without Parquet files, and a table is a file or a folder of Parquet files";
    io::Error::new(io::ErrorKind::IsADirectory, what)
}

/// Bytes that tell a format.
const MAGIC: usize = 6;

/// An open file whose first bytes have been looked at.
struct Opened {
    content: Content,
    magic: Vec<u8>,
}

enum Content {
    /// A pipe cannot be rewound, so its first bytes are put in front of the rest again.
    File {
        file: File,
        is_pipe: bool,
    },
    Memory(Bytes),
}

impl Opened {
    fn new(path: &Path) -> Result<Self, (&'static str, io::Error)> {
        if path.is_dir() {
            return Err(("read", without_parquet()));
        }
        let mut file = File::open(path).map_err(|error| ("opened", error))?;
        let mut magic = Vec::new();
        (&mut file).take(MAGIC as u64).read_to_end(&mut magic).map_err(|error| ("read", error))?;
        let is_pipe = file.rewind().is_err();
        Ok(Self { content: Content::File { file, is_pipe }, magic })
    }

    fn into_bytes(self) -> Box<dyn Read + Send> {
        // No UTF-8 text starts with these bytes, so compression is recognised under any name.
        let gzipped = self.magic.starts_with(&[0x1f, 0x8b]);
        let bytes: Box<dyn Read + Send> = match self.content {
            Content::File { file, is_pipe: true } => Box::new(Read::chain(io::Cursor::new(self.magic), file)),
            Content::File { file, is_pipe: false } => Box::new(file),
            Content::Memory(bytes) => Box::new(bytes.reader()),
        };
        if gzipped { Box::new(MultiGzDecoder::new(io::BufReader::with_capacity(1 << 16, bytes))) } else { bytes }
    }
}
