//! Text in any of the encodings that tables come in, and the separator of its values.

use crate::error::DataError;
use crate::note::Note;
use csv::ByteRecord;
use std::io::{self, Read};

/// How the characters of a text are written as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    /// UTF-8, or ASCII so far.
    Utf8,
    Utf16 {
        big_endian: bool,
    },
    Windows1252,
}

impl Encoding {
    fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "UTF-8",
            Encoding::Utf16 { big_endian: false } => "UTF-16 (little-endian)",
            Encoding::Utf16 { big_endian: true } => "UTF-16 (big-endian)",
            Encoding::Windows1252 => "Windows-1252",
        }
    }

    /// What the first bytes say; `None` where they are not text.
    fn of(start: &[u8]) -> Option<Self> {
        match start {
            [0xff, 0xfe, ..] => return Some(Encoding::Utf16 { big_endian: false }),
            [0xfe, 0xff, ..] => return Some(Encoding::Utf16 { big_endian: true }),
            _ => {}
        }
        let zeros = |odd: usize| start.iter().skip(odd).step_by(2).filter(|byte| **byte == 0).count();
        let (even, odd, pairs) = (zeros(0), zeros(1), start.len() / 2);
        // One byte of two is zero in the ASCII part of UTF-16, and most of a table is digits and separators.
        match (even, odd) {
            (0, 0) => Some(Encoding::Utf8),
            _ if pairs > 0 && 2 * odd > pairs && 20 * even <= pairs => Some(Encoding::Utf16 { big_endian: false }),
            _ if pairs > 0 && 2 * even > pairs && 20 * odd <= pairs => Some(Encoding::Utf16 { big_endian: true }),
            _ => None,
        }
    }
}

/// Bytes that are looked at before the first value is read: the separator shows in far fewer.
const START: usize = 1 << 16;

/// Turns text of any encoding into UTF-8 while it is read, in constant memory.
///
/// Windows-1252 is what is left where the first character beyond ASCII is not UTF-8. After a first character that is, a byte
/// that is not UTF-8 belongs to a damaged file: it is passed on as it is, to be refused with its row and column.
pub(crate) struct TextReader {
    inner: Box<dyn Read + Send>,
    encoding: Encoding,
    /// Whether a character beyond ASCII has settled the encoding.
    settled: bool,
    /// Bytes of a character that is not complete.
    rest: Vec<u8>,
    /// Decoded and not handed out yet, from `at`.
    out: Vec<u8>,
    at: usize,
    ended: bool,
}

impl TextReader {
    /// Reads the first bytes and decides what they are.
    pub(crate) fn open(mut inner: Box<dyn Read + Send>, path: &str) -> Result<Self, DataError> {
        let mut start = Vec::new();
        let read = (&mut inner).take(START as u64).read_to_end(&mut start);
        read.map_err(|error| DataError::io(path, "read", error))?;
        if let Some(what) = other_format(&start) {
            return Err(DataError::NotText { path: path.to_owned(), what });
        }
        let encoding = Encoding::of(&start).ok_or_else(|| DataError::NotText {
            path: path.to_owned(),
            what: "it has zero bytes; save the table as CSV in UTF-8",
        })?;
        let ended = start.len() < START;
        let (rest, out) = (Vec::new(), Vec::with_capacity(start.len()));
        let mut reader = Self { inner, encoding, settled: encoding != Encoding::Utf8, rest, out, at: 0, ended };
        reader.decode(&start);
        if ended {
            reader.finish();
        }
        Ok(reader)
    }

    /// The first characters, as long as none has been read.
    pub(crate) fn start(&self) -> &[u8] {
        let start = &self.out[self.at..];
        start.strip_prefix(BOM).unwrap_or(start)
    }

    /// Says which encoding it is, if that is not the usual one.
    pub(crate) fn notes(&self) -> Vec<Note> {
        match self.encoding {
            Encoding::Utf8 => Vec::new(),
            encoding => vec![Note::Encoding { name: encoding.name() }],
        }
    }

    /// The separator of the values. A first line `sep=;`, which spreadsheets write, is taken out, and then `skip` lines.
    pub(crate) fn delimiter(&mut self, expected: u8, skip: usize) -> io::Result<u8> {
        let text = &self.out[self.at..];
        let line = text.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
        let line = line.strip_prefix(BOM).unwrap_or(line);
        let told = match line {
            [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', delimiter] => Some(*delimiter),
            _ => None,
        };
        self.skip_lines(skip + usize::from(told.is_some()))?;
        Ok(told.unwrap_or_else(|| sniff(&self.out[self.at..], self.ended, expected)))
    }

    /// Whether all of the text has been read into memory.
    pub(crate) fn is_complete(&self) -> bool {
        self.ended
    }

    fn skip_lines(&mut self, lines: usize) -> io::Result<()> {
        let end_of_line = if self.out[self.at..].contains(&b'\n') { b'\n' } else { b'\r' };
        let mut left = lines;
        let mut byte = [0];
        while left > 0 && self.read(&mut byte)? > 0 {
            left -= usize::from(byte[0] == end_of_line);
        }
        Ok(())
    }

    fn decode(&mut self, bytes: &[u8]) {
        match self.encoding {
            Encoding::Utf8 if self.settled => self.out.extend_from_slice(bytes),
            Encoding::Utf8 => self.decide(bytes),
            Encoding::Windows1252 => bytes.iter().for_each(|&byte| push_windows(byte, &mut self.out)),
            Encoding::Utf16 { big_endian } => {
                self.rest.extend_from_slice(bytes);
                let used = push_utf16(&self.rest, big_endian, &mut self.out);
                self.rest.drain(..used);
            }
        }
    }

    /// Passes ASCII on, and settles the encoding at the first character beyond it.
    fn decide(&mut self, bytes: &[u8]) {
        if self.rest.is_empty() && bytes.is_ascii() {
            return self.out.extend_from_slice(bytes);
        }
        self.rest.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.rest);
        let ascii = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(bytes.len());
        match std::str::from_utf8(&bytes) {
            // The one character beyond ASCII is cut off.
            Err(error) if error.valid_up_to() == ascii && error.error_len().is_none() => {
                self.out.extend_from_slice(&bytes[..ascii]);
                self.rest = bytes[ascii..].to_vec();
            }
            Err(error) if error.valid_up_to() == ascii => {
                (self.encoding, self.settled) = (Encoding::Windows1252, true);
                self.decode(&bytes);
            }
            _ => {
                self.settled = true;
                self.decode(&bytes);
            }
        }
    }

    /// What is left at the end of the file is half a character.
    fn finish(&mut self) {
        let rest = std::mem::take(&mut self.rest);
        if self.encoding == Encoding::Utf8 && !rest.is_empty() {
            (self.encoding, self.settled) = (Encoding::Windows1252, true);
            return self.decode(&rest);
        }
        self.out.extend(rest.iter().map(|_| NOT_TEXT));
    }
}

impl Read for TextReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.out.len() {
            self.out.clear();
            self.at = 0;
            if self.ended {
                return Ok(0);
            }
            if self.settled && self.encoding == Encoding::Utf8 {
                return self.inner.read(buffer);
            }
            let n = self.inner.read(buffer)?;
            if n == 0 {
                self.ended = true;
                self.finish();
            } else {
                self.decode(&buffer[..n]);
            }
        }
        let n = buffer.len().min(self.out.len() - self.at);
        buffer[..n].copy_from_slice(&self.out[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

const BOM: &[u8] = "\u{feff}".as_bytes();

/// A byte that is never part of UTF-8, for what cannot be decoded.
const NOT_TEXT: u8 = 0xff;

/// Files of other programs that may bear the name of a text file.
fn other_format(start: &[u8]) -> Option<&'static str> {
    const FORMATS: [(&[u8], &str); 7] = [
        (b"PAR1", "it is a Parquet file; give it a name that ends in .parquet"),
        (b"PK\x03\x04", "it is a zip archive, or a spreadsheet that should be named .xlsx or .ods"),
        (b"\xd0\xcf\x11\xe0", "it is an old spreadsheet, which should be named .xls"),
        (b"ARROW1", "it is an Arrow file, which should be named .arrow or .feather"),
        (b"%PDF", "it is a PDF document"),
        (b"SQLite format 3", "it is an SQLite database; export the table as CSV"),
        (b"\x89HDF", "it is an HDF5 file; write the table as Parquet or CSV"),
    ];
    FORMATS.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, what)| *what)
}

fn push_windows(byte: u8, out: &mut Vec<u8>) {
    // 0x80 to 0x9f, where Windows-1252 differs from Latin-1; five bytes mean nothing.
    const HIGH: [char; 32] = [
        '€', '\0', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\0', 'Ž', '\0', '\0', '‘', '’', '“', '”',
        '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\0', 'ž', 'Ÿ',
    ];
    let char = match byte {
        0x80..=0x9f => HIGH[usize::from(byte - 0x80)],
        other => char::from(other),
    };
    if byte >= 0x80 && char == '\0' {
        out.push(NOT_TEXT);
    } else {
        out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// Decodes whole characters, and returns how many bytes they were.
fn push_utf16(bytes: &[u8], big_endian: bool, out: &mut Vec<u8>) -> usize {
    let unit = |pair: &[u8]| {
        let pair = [pair[0], pair[1]];
        if big_endian { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
    };
    let mut units: Vec<u16> = bytes.chunks_exact(2).map(unit).collect();
    // Half of a pair of surrogates waits for the other half.
    if units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) {
        units.pop();
    }
    for char in char::decode_utf16(units.iter().copied()) {
        match char {
            Ok(char) => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(_) => out.push(NOT_TEXT),
        }
    }
    2 * units.len()
}

/// The separator in the start of a text: the `expected` one where the rows are as long as the header with it, else the one
/// of the usual four with which they are.
fn sniff(text: &[u8], complete: bool, expected: u8) -> u8 {
    let looked = |delimiter: u8| (delimiter, fields(text, complete, delimiter));
    let first = looked(expected);
    if first.1.columns > 1 && first.1.even {
        return expected;
    }
    let mut found = [b';', b'\t', b'|', b','].map(looked);
    // The most columns first; sorting is stable, so that ties are in the order above.
    found.sort_by_key(|(_, fields)| std::cmp::Reverse(fields.columns));
    let several = |(_, fields): &&(u8, Fields)| fields.columns > 1;
    let even = found.iter().filter(several).find(|(_, fields)| fields.even);
    // Rows of different lengths are refused either way; with the expected separator if there is a choice.
    let best = even.or(Some(&first).filter(several)).or_else(|| found.iter().find(several));
    best.map_or(expected, |(delimiter, _)| *delimiter)
}

/// The columns of the header, and whether the rows below have as many.
struct Fields {
    columns: usize,
    even: bool,
}

fn fields(text: &[u8], complete: bool, delimiter: u8) -> Fields {
    const ROWS: usize = 100;
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(text);
    let mut lengths = Vec::new();
    let mut record = ByteRecord::new();
    while lengths.len() <= ROWS && matches!(reader.read_byte_record(&mut record), Ok(true)) {
        lengths.push(record.len());
    }
    // The last row may be cut off.
    if !complete && lengths.len() <= ROWS {
        lengths.pop();
    }
    let columns = lengths.first().copied().unwrap_or(0);
    Fields { columns, even: lengths.iter().all(|length| *length == columns) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Hands out a few bytes at a time, as a slow pipe does.
    struct Drip(Vec<u8>, usize);

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = buffer.len().min(self.0.len()).min(self.1);
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0.drain(..n);
            Ok(n)
        }
    }

    fn decoded(bytes: &[u8], drip: usize) -> (Vec<u8>, Encoding) {
        let mut reader = TextReader::open(Box::new(Drip(bytes.to_vec(), drip)), "f").unwrap();
        let mut out = Vec::new();
        reader.read_to_end(&mut out).unwrap();
        (out, reader.encoding)
    }

    #[test]
    fn encodings_beyond_the_start_and_across_buffers() {
        let text = format!("{}größer €🙂\n", "a,b\n".repeat(40_000));
        let wide = |big: bool| -> Vec<u8> {
            let unit = |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
            text.encode_utf16().flat_map(unit).collect()
        };
        for drip in [1000, 1001, 100_000] {
            assert_eq!(decoded(text.as_bytes(), drip), (text.clone().into_bytes(), Encoding::Utf8));
            for big_endian in [false, true] {
                let expected = (text.clone().into_bytes(), Encoding::Utf16 { big_endian });
                assert_eq!(decoded(&wide(big_endian), drip), expected);
            }
            let windows = [text.split("größer").next().unwrap().as_bytes(), b"gr\xf6\xdfer \x80"].concat();
            let (out, encoding) = decoded(&windows, drip);
            assert!(out.ends_with("größer €".as_bytes()));
            assert_eq!(encoding, Encoding::Windows1252);
        }
        // One byte at a time, so that every character is cut.
        let tail = format!("{}ü🙂€", "a".repeat(START));
        assert_eq!(decoded(tail.as_bytes(), 1), (tail.clone().into_bytes(), Encoding::Utf8));
        // The last byte of a file could be the first of a character.
        assert_eq!(decoded(b"caf\xe9", 9), ("café".into(), Encoding::Windows1252));
        // Damaged UTF-8 stays damaged.
        assert_eq!(decoded(b"\xc3\xa9 \xff", 9), (b"\xc3\xa9 \xff".to_vec(), Encoding::Utf8));
    }

    #[test]
    fn separators_are_those_that_make_rows_of_one_length() {
        for (text, expected) in [
            ("a,b\n1,2\n", b','),
            ("a;b\n1,5;2\n", b';'),
            ("a, b;c\n1;2\n", b';'),
            ("a|b\n1|2\n", b'|'),
            ("a\tb\n1\t2\n", b'\t'),
            ("a\n1\n", b','),
            ("a,b\n1;2,3;4\n1,2\n", b','),
            ("a,b\n1\n", b','),
            ("\"a;b\",c\n1,2\n", b','),
            ("a;b,c;d\n1;2;3\n", b';'),
        ] {
            assert_eq!(sniff(text.as_bytes(), true, b','), expected, "{text:?}");
        }
    }
}
