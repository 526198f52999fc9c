//! Which format a file has: its name says so, or else its first bytes.

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

/// An open file and what it holds.
pub(crate) struct Input {
    pub(crate) file: File,
    pub(crate) format: Format,
    gzipped: bool,
    pub(crate) path: String,
}

impl Input {
    pub(crate) fn open(path: &Path) -> Result<Self, DataError> {
        let shown = show(path);
        let (file, magic) = open_with_magic(path, &shown)?;
        // No UTF-8 text starts with these bytes, so compression is seen whatever the name.
        let gzipped = magic.starts_with(GZIP);
        let format = Format::of_name(path).unwrap_or(if magic == *b"PAR1" {
            Format::Parquet
        } else {
            Format::Delimited { delimiter: b',' }
        });
        Ok(Self { file, format, gzipped, path: shown })
    }

    /// The text of a delimited file.
    pub(crate) fn into_text(self) -> Box<dyn Read + Send> {
        maybe_gunzip(self.file, self.gzipped)
    }

    pub(crate) fn into_table(self) -> Result<Box<dyn Table>, DataError> {
        let path = self.path.clone();
        Ok(match self.format {
            Format::Delimited { delimiter } => Box::new(DelimitedTable::open(self.into_text(), delimiter, &path)?),
            Format::Parquet => Box::new(ParquetTable::open(self.file, &path)?),
        })
    }
}

const GZIP: &[u8] = &[0x1f, 0x8b];

fn maybe_gunzip(file: File, gzipped: bool) -> Box<dyn Read + Send> {
    if gzipped { Box::new(MultiGzDecoder::new(io::BufReader::with_capacity(1 << 16, file))) } else { Box::new(file) }
}

fn open_with_magic(path: &Path, shown: &str) -> Result<(File, [u8; 4]), DataError> {
    let mut file = File::open(path).map_err(|error| DataError::io(shown, "opened", error))?;
    let mut magic = [0; 4];
    let mut read = || -> io::Result<()> {
        let mut filled = 0;
        while filled < magic.len() {
            match file.read(&mut magic[filled..])? {
                0 => break,
                n => filled += n,
            }
        }
        file.rewind()
    };
    read().map_err(|error| DataError::io(shown, "read", error))?;
    Ok((file, magic))
}

/// The bytes of a file, decompressed if it is gzipped.
pub(crate) fn open_maybe_gzipped(path: &Path) -> Result<Box<dyn Read + Send>, DataError> {
    let (file, magic) = open_with_magic(path, &show(path))?;
    Ok(maybe_gunzip(file, magic.starts_with(GZIP)))
}
