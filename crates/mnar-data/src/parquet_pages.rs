//! The headers of Parquet pages, read before a page is: its decoder reserves as many bytes as the header claims, up to 2 GB.
//!
//! A header is a Thrift struct in the compact protocol. Of all its fields, a few numbers matter here; the rest is skipped.

use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;
use std::io::{self, Read};

/// What a header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageHeader {
    kind: u64,
    /// Bytes of the page before and after it was packed.
    pub(crate) unpacked: u64,
    pub(crate) packed: u64,
    pub(crate) values: u64,
    encoding: u64,
    /// The encoding of the levels that say which values are there.
    levels: u64,
    /// Bytes of the header itself.
    pub(crate) length: u64,
}

/// What a page holds, where its values have a fixed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Values that others refer to.
    Dictionary,
    /// One value after the other.
    Values,
    /// Positions in the dictionary.
    Positions,
}

impl PageHeader {
    /// What the page holds; `None` where it is not one of the usual kinds. `levels` says that values may be missing.
    pub(crate) fn content(&self, levels: bool) -> Option<Content> {
        const PLAIN: u64 = 0;
        const OLD_DICTIONARY: u64 = 2;
        const RUNS: u64 = 3;
        const DICTIONARY: u64 = 8;
        match (self.kind, self.encoding) {
            (2, PLAIN | OLD_DICTIONARY) => Some(Content::Dictionary),
            (0, _) if levels && self.levels != RUNS => None,
            (0, PLAIN) => Some(Content::Values),
            (0, OLD_DICTIONARY | DICTIONARY) => Some(Content::Positions),
            _ => None,
        }
    }
}

/// The pages of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pages {
    /// The memory that the dictionary and the largest page take.
    pub(crate) largest: u64,
    /// Whether all are of the usual kinds.
    pub(crate) usual: bool,
}

/// Bytes that a value of a list takes at most, of which a few bytes of a page may claim any number.
const LIST_VALUE: u64 = 20;

/// Reads the headers of a column. `lists` says that all values of a page may belong to one row, so that they are unpacked
/// together.
pub(crate) fn survey(
    input: &impl ChunkReader,
    chunk: &ColumnChunkMetaData,
    lists: bool,
) -> Result<Pages, ParquetError> {
    let (start, length) = chunk.byte_range();
    let end = start.checked_add(length).filter(|end| *end <= input.len()).ok_or_else(|| outside("a column"))?;
    let levels = chunk.column_descr().max_def_level() > 0;
    let (mut at, mut dictionary, mut largest, mut usual) = (start, 0, 0, true);
    while at < end {
        let mut reader = input.get_read(at)?;
        let header = read_header(&mut reader)?;
        at = at.saturating_add(header.length).saturating_add(header.packed);
        if at > end {
            return Err(outside("a page"));
        }
        let values = if lists { header.values.saturating_mul(LIST_VALUE) } else { 0 };
        let bytes = header.unpacked.saturating_add(header.packed).saturating_add(values);
        usual &= header.content(levels).is_some();
        if header.kind == 2 {
            dictionary = bytes;
        } else {
            largest = largest.max(bytes);
        }
    }
    Ok(Pages { largest: dictionary + largest, usual })
}

pub(crate) fn outside(what: &str) -> ParquetError {
    ParquetError::General(format!("{what} lies outside of the file"))
}

/// Reads the header at which a page starts.
pub(crate) fn read_header(reader: &mut impl Read) -> Result<PageHeader, ParquetError> {
    header(reader).map_err(|error| ParquetError::General(error.to_string()))
}

fn header(reader: &mut impl Read) -> io::Result<PageHeader> {
    let mut compact = Compact { reader, read: 0 };
    let mut header = PageHeader::default();
    let mut last = 0;
    while let Some((id, kind)) = compact.field(&mut last)? {
        match (id, kind) {
            // 0 is a page of values, 2 a dictionary.
            (1, INTEGER) => header.kind = compact.size()?,
            (2, INTEGER) => header.unpacked = compact.size()?,
            (3, INTEGER) => header.packed = compact.size()?,
            // Headers of old data pages, dictionaries and new data pages start with the number of values.
            (5 | 7 | 8, STRUCT) => [header.values, header.encoding, header.levels] = compact.first_numbers()?,
            _ => compact.skip(kind, 0)?,
        }
    }
    header.length = compact.read;
    Ok(header)
}

const INTEGER: u8 = 5;
const STRUCT: u8 = 12;

/// Deeper structs are not part of any header.
const DEEPEST: usize = 8;

/// The compact protocol, as far as headers need it.
struct Compact<'a, R> {
    reader: &'a mut R,
    read: u64,
}

impl<R: Read> Compact<'_, R> {
    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.reader.read_exact(&mut byte)?;
        self.read += 1;
        Ok(byte[0])
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(damaged())
    }

    fn integer(&mut self) -> io::Result<i64> {
        let zigzag = self.varint()?;
        Ok((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    fn size(&mut self) -> io::Result<u64> {
        u64::try_from(self.integer()?).map_err(|_| damaged())
    }

    /// The number and type of the next field of a struct; `None` at its end.
    fn field(&mut self, last: &mut i64) -> io::Result<Option<(i64, u8)>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        let step = i64::from(byte >> 4);
        *last = if step == 0 { self.integer()? } else { last.checked_add(step).ok_or_else(damaged)? };
        Ok(Some((*last, byte & 0x0f)))
    }

    /// The first three fields of a struct, the rest of which is skipped.
    fn first_numbers(&mut self) -> io::Result<[u64; 3]> {
        let (mut last, mut first) = (0, [0; 3]);
        while let Some((id, kind)) = self.field(&mut last)? {
            match (id, kind) {
                (1..=3, INTEGER) => first[id as usize - 1] = self.size()?,
                _ => self.skip(kind, 1)?,
            }
        }
        Ok(first)
    }

    fn skip(&mut self, kind: u8, depth: usize) -> io::Result<()> {
        if depth > DEEPEST {
            return Err(damaged());
        }
        match kind {
            // Booleans are their type.
            1 | 2 => Ok(()),
            3 => self.bytes(1),
            4..=6 => self.varint().map(drop),
            7 => self.bytes(8),
            8 => {
                let length = self.varint()?;
                self.bytes(length)
            }
            9 | 10 => {
                let byte = self.byte()?;
                let length = if byte >> 4 == 15 { self.varint()? } else { u64::from(byte >> 4) };
                // An element takes a byte at least, so that a claim beyond the file ends with it.
                (0..length).try_for_each(|_| match byte & 0x0f {
                    1 | 2 => self.bytes(1),
                    other => self.skip(other, depth + 1),
                })
            }
            STRUCT => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip(kind, depth + 1)?;
                }
                Ok(())
            }
            _ => Err(damaged()),
        }
    }

    fn bytes(&mut self, count: u64) -> io::Result<()> {
        let read = io::copy(&mut (&mut *self.reader).take(count), &mut io::sink())?;
        self.read += read;
        if read == count { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the header of a page is damaged")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A data page: type 0, 1000 bytes unpacked, 300 packed, a checksum, and a data header with 77 values, three more numbers
    /// and statistics of two texts.
    const HEADER: [u8; 29] = [
        0x15, 0x00, 0x15, 0xd0, 0x0f, 0x15, 0xd8, 0x04, 0x15, 0x09, 0x1c, 0x15, 0x9a, 0x01, 0x15, 0x00, 0x15, 0x06,
        0x15, 0x06, 0x1c, 0x18, 0x02, b'a', b'b', 0x18, 0x00, 0x00, 0x00,
    ];

    #[test]
    fn headers_are_read_to_their_end() {
        let file = [&HEADER[..], &[0, 9, 9]].concat();
        let header = read_header(&mut &file[..]).unwrap();
        let expected =
            PageHeader { kind: 0, unpacked: 1000, packed: 300, values: 77, encoding: 0, levels: 3, length: 30 };
        assert_eq!(header, expected);
        for end in 0..30 {
            assert!(read_header(&mut &file[..end]).is_err(), "cut off at {end}");
        }
    }

    #[test]
    fn hostile_headers_end() {
        // Structs in structs without end, a list that claims 2^60 booleans, a number without end, a negative size.
        for hostile in [
            vec![0x1c; 1000],
            [&[0x19, 0xf1][..], &[0xff; 8], &[0x0f]].concat(),
            [&[0x15][..], &[0xff; 20]].concat(),
            vec![0x25, 0x01, 0x00],
        ] {
            assert!(read_header(&mut &hostile[..]).is_err());
        }
    }
}
