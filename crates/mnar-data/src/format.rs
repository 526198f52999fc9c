//! Finds the format of a file from its name, or else from its first bytes.

use crate::batch::Table;
use crate::delimited::DelimitedTable;
use crate::error::{DataError, show};
use crate::parquet_table::ParquetTable;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

/// A table's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Delimited { delimiter: u8 },
    Parquet,
}

impl Format {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::Delimited { .. } => "CSV",
            Format::Parquet => "Parquet",
        }
    }

    /// What the extension says, a final `.gz` apart.
    pub(crate) fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        match name.rsplit_once('.')?.1 {
            "csv" => Some(Format::Delimited { delimiter: b',' }),
            "tsv" | "tab" => Some(Format::Delimited { delimiter: b'\t' }),
            "parquet" | "pq" => Some(Format::Parquet),
            _ => None,
        }
    }
}

/// An open file and its format.
pub(crate) struct Input {
    opened: Opened,
    pub(crate) format: Format,
    pub(crate) path: String,
}

impl Input {
    pub(crate) fn open(path: &Path) -> Result<Self, DataError> {
        let shown = show(path);
        let opened = Opened::new(path).map_err(|(action, error)| DataError::io(&shown, action, error))?;
        let format = Format::of_name(path).unwrap_or(if opened.magic == b"PAR1" {
            Format::Parquet
        } else {
            Format::Delimited { delimiter: b',' }
        });
        Ok(Self { opened, format, path: shown })
    }

    /// The text of a delimited file.
    pub(crate) fn into_text(self) -> Box<dyn Read + Send> {
        self.opened.into_bytes()
    }

    /// The file of a Parquet table, which is read from its end.
    pub(crate) fn into_file(self) -> Result<File, DataError> {
        if self.opened.is_pipe {
            let cause = io::Error::other(
                "Parquet is read from its end, which a pipe does not have yet; save it to a file first",
            );
            return Err(DataError::io(&self.path, "read", cause));
        }
        Ok(self.opened.file)
    }

    pub(crate) fn into_table(self) -> Result<Box<dyn Table>, DataError> {
        let path = self.path.clone();
        Ok(match self.format {
            Format::Delimited { delimiter } => Box::new(DelimitedTable::open(self.into_text(), delimiter, &path)?),
            Format::Parquet => Box::new(ParquetTable::open(self.into_file()?, &path)?),
        })
    }
}

/// The bytes of a file, decompressed if it is gzipped.
pub(crate) fn open_maybe_gzipped(path: &Path) -> Result<Box<dyn Read + Send>, DataError> {
    let opened = Opened::new(path).map_err(|(action, error)| DataError::io(&show(path), action, error))?;
    Ok(opened.into_bytes())
}

/// An open file whose first bytes have been looked at.
struct Opened {
    file: File,
    magic: Vec<u8>,
    /// A pipe cannot be rewound, so its first bytes are put in front of the rest again.
    is_pipe: bool,
}

impl Opened {
    fn new(path: &Path) -> Result<Self, (&'static str, io::Error)> {
        if path.is_dir() {
            let what = "it is a folder, and a table is one CSV or Parquet file";
            return Err(("read", io::Error::new(io::ErrorKind::IsADirectory, what)));
        }
        let mut file = File::open(path).map_err(|error| ("opened", error))?;
        let mut magic = Vec::new();
        (&mut file).take(4).read_to_end(&mut magic).map_err(|error| ("read", error))?;
        let is_pipe = file.rewind().is_err();
        Ok(Self { file, magic, is_pipe })
    }

    fn into_bytes(self) -> Box<dyn Read + Send> {
        // No UTF-8 text starts with these bytes, so compression is recognised under any name.
        let gzipped = self.magic.starts_with(&[0x1f, 0x8b]);
        let again = if self.is_pipe { self.magic } else { Vec::new() };
        let bytes = io::Cursor::new(again).chain(self.file);
        if gzipped {
            Box::new(MultiGzDecoder::new(io::BufReader::with_capacity(1 << 16, bytes)))
        } else {
            Box::new(bytes)
        }
    }
}
