//! Numbers of Parquet files, straight from their pages into the vectors that are summed.
//!
//! Parquet's own reader clears a new buffer for every page and a vector for every batch, and writes down for every value that it is
//! there: half of the time of a walk over probabilities. Here pages are unpacked into buffers that are used again. Pages of the usual
//! kinds are read: values one after the other, or positions in a dictionary; not packed, or by Snappy.

use crate::batch::BATCH_ROWS;
use crate::parquet_pages::{Content, PageHeader, outside, read_header};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;
use std::io::Read;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// A number that takes the same bytes in every file.
pub(crate) trait Number: Copy + Default + Send + 'static {
    /// Bytes of one.
    const BYTES: usize;
    /// Adds numbers that stand one after the other.
    fn extend(out: &mut Vec<Self>, bytes: &[u8]);

    /// An empty vector with this much room.
    fn vector(room: usize) -> Vec<Self> {
        Vec::with_capacity(room)
    }
}

macro_rules! number {
    ($number:ty $(, $more:item)?) => {
        impl Number for $number {
            const BYTES: usize = size_of::<$number>();

            fn extend(out: &mut Vec<Self>, bytes: &[u8]) {
                let (numbers, _) = bytes.as_chunks();
                out.extend(numbers.iter().map(|bytes| <$number>::from_le_bytes(*bytes)));
            }

            $($more)?
        }
    };
}

number!(f32);
number!(i64);
number!(i32);
number!(
    f64,
    fn vector(room: usize) -> Vec<f64> {
        let spare = SPARE.lock().ok().and_then(|mut spare| spare.pop());
        let mut vector = spare.unwrap_or_default();
        vector.reserve_exact(room);
        vector
    }
);

/// Vectors of batches that were summed, to be filled again: memory that was given back has to be cleared by the system before it
/// is used, which took a tenth of a walk.
static SPARE: Mutex<Vec<Vec<f64>>> = Mutex::new(Vec::new());

/// Hands over vectors that are not needed any more. A few of those of batches are kept, at most 8 MB.
pub(crate) fn spare(vectors: Vec<Vec<f64>>) {
    const MOST: usize = 64;
    let Ok(mut spare) = SPARE.lock() else { return };
    for mut vector in vectors {
        if spare.len() < MOST && vector.capacity() <= BATCH_ROWS {
            vector.clear();
            spare.push(vector);
        }
    }
}

/// Whether the pages of a column can be read here, as far as its codec tells.
pub(crate) fn unpacks(chunk: &ColumnChunkMetaData) -> bool {
    matches!(chunk.compression(), Compression::UNCOMPRESSED | Compression::SNAPPY)
}

/// Where a page is read to before it is unpacked; one serves all columns of a table.
pub(crate) type PackedPage = Arc<Mutex<Vec<u8>>>;

/// The values of a column in one row group after the other. Buffers are kept from page to page.
pub(crate) struct FlatPages<T> {
    /// Whether values may be missing.
    levels: bool,
    packed: bool,
    /// What is left of the column in the file.
    bytes: Range<u64>,
    dictionary: Vec<T>,
    buffer: PackedPage,
    page: Page,
    snappy: snap::raw::Decoder,
    positions: Vec<u32>,
}

/// A page, unpacked.
#[derive(Default)]
struct Page {
    bytes: Vec<u8>,
    /// Values, missing ones among them, that were not read yet.
    left: usize,
    present: Option<Runs>,
    values: Values,
}

enum Values {
    /// From here to the end, one after the other.
    Plain(Range<usize>),
    Positions(Runs),
}

impl Default for Values {
    fn default() -> Self {
        Self::Plain(0..0)
    }
}

impl<T: Number> FlatPages<T> {
    /// `levels` says that values may be missing.
    pub(crate) fn new(levels: bool, buffer: PackedPage) -> Self {
        Self {
            levels,
            packed: false,
            bytes: 0..0,
            dictionary: Vec::new(),
            buffer,
            page: Page::default(),
            snappy: snap::raw::Decoder::new(),
            positions: Vec::new(),
        }
    }

    /// Goes on with a row group.
    pub(crate) fn open(&mut self, chunk: &ColumnChunkMetaData) {
        let (start, length) = chunk.byte_range();
        self.bytes = start..start.saturating_add(length);
        self.packed = chunk.compression() != Compression::UNCOMPRESSED;
        self.dictionary.clear();
        self.page.left = 0;
    }

    /// Adds at most `most` values of the row group, and returns their number: none at its end.
    pub(crate) fn read(
        &mut self,
        input: &impl ChunkReader,
        most: usize,
        out: &mut Places<T>,
    ) -> Result<usize, ParquetError> {
        let mut read = 0;
        while read < most {
            if self.page.left == 0 {
                if self.bytes.is_empty() {
                    break;
                }
                self.next_page(input)?;
                continue;
            }
            let count = self.page.left.min(most - read);
            self.read_values(count, out)?;
            self.page.left -= count;
            read += count;
        }
        Ok(read)
    }

    fn next_page(&mut self, input: &impl ChunkReader) -> Result<(), ParquetError> {
        let mut reader = input.get_read(self.bytes.start)?;
        let header = read_header(&mut reader)?;
        self.bytes.start = self.bytes.start.saturating_add(header.length).saturating_add(header.packed);
        if self.bytes.start > self.bytes.end {
            return Err(outside("a page"));
        }
        let content = header.content(self.levels).ok_or_else(|| damaged("a page of another kind"))?;
        self.unpack(&mut reader, &header)?;
        let (values, end) = (size(header.values)?, size(header.unpacked)?);
        if content == Content::Dictionary {
            let bytes = values.checked_mul(T::BYTES).and_then(|bytes| self.page.bytes.get(..bytes.min(end)));
            let bytes = bytes.filter(|bytes| bytes.len() == values * T::BYTES);
            let bytes = bytes.ok_or_else(|| damaged("a dictionary that is cut off"))?;
            self.dictionary.clear();
            self.dictionary.reserve_exact(values);
            T::extend(&mut self.dictionary, bytes);
            return Ok(());
        }
        let page = &mut self.page;
        let mut at = 0;
        page.present = None;
        if self.levels {
            let length = page.bytes[..end].first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
            let length = length.and_then(|length| usize::try_from(length).ok()).filter(|length| *length <= end - 4);
            at = 4 + length.ok_or_else(|| damaged("levels that are cut off"))?;
            page.present = Some(Runs::new(4..at, 1));
        }
        page.values = match content {
            Content::Positions => {
                let width = page.bytes[..end].get(at).copied().filter(|width| *width <= 32);
                let width = width.ok_or_else(|| damaged("positions that are cut off"))?;
                Values::Positions(Runs::new(at + 1..end, width.into()))
            }
            _ => Values::Plain(at..end),
        };
        page.left = values;
        Ok(())
    }

    /// Reads a page of the file.
    fn unpack(&mut self, reader: &mut impl Read, header: &PageHeader) -> Result<(), ParquetError> {
        let (packed, unpacked) = (size(header.packed)?, size(header.unpacked)?);
        if !self.packed || unpacked == 0 {
            if packed != unpacked && !self.packed {
                return Err(damaged("a page whose length is wrong"));
            }
            return Ok(reader.read_exact(room(&mut self.page.bytes, unpacked))?);
        }
        let mut buffer = self.buffer.lock().map_err(|_| damaged("a page that could not be read"))?;
        let buffer = room(&mut buffer, packed);
        reader.read_exact(buffer)?;
        // Snappy says how much there is before it is unpacked, which must be what the header says.
        let page = room(&mut self.page.bytes, unpacked);
        let found = self.snappy.decompress(buffer, page).map_err(|error| ParquetError::External(Box::new(error)))?;
        if found == unpacked { Ok(()) } else { Err(damaged("a page whose length is wrong")) }
    }

    /// Adds the next `count` values of the page.
    fn read_values(&mut self, count: usize, out: &mut Places<T>) -> Result<(), ParquetError> {
        let Page { bytes, present, values, .. } = &mut self.page;
        let present: Option<Vec<bool>> = match present {
            Some(runs) => match runs.skip_ones(bytes, count)? {
                true => None,
                false => Some(runs.read(bytes, count, &mut self.positions)?.iter().map(|level| *level == 1).collect()),
            },
            None => None,
        };
        let there = present.as_ref().map_or(count, |present| present.iter().filter(|present| **present).count());
        let start = out.values.len();
        match values {
            Values::Plain(range) => {
                let end = there.checked_mul(T::BYTES).and_then(|length| range.start.checked_add(length));
                let end = end.filter(|end| *end <= range.end).ok_or_else(|| damaged("a page that is cut off"))?;
                T::extend(&mut out.values, &bytes[range.start..end]);
                range.start = end;
            }
            Values::Positions(runs) => {
                let positions = runs.read(bytes, there, &mut self.positions)?;
                let dictionary = &self.dictionary;
                let highest = positions.iter().copied().max().unwrap_or(0) as usize;
                if there > 0 && highest >= dictionary.len() {
                    return Err(damaged("a position beyond the dictionary"));
                }
                out.values.extend(positions.iter().map(|position| dictionary[*position as usize]));
            }
        }
        out.place(start, present);
        Ok(())
    }
}

/// Values, with a default in the place of those that are missing.
pub(crate) struct Places<T> {
    values: Vec<T>,
    /// Which are there; `None` as long as all are.
    present: Option<BooleanBufferBuilder>,
}

impl<T: Number> Places<T> {
    /// Reserves room.
    pub(crate) fn new(room: usize) -> Self {
        Self { values: T::vector(room), present: None }
    }

    /// Puts the values from `start` on in their places, and marks these.
    fn place(&mut self, start: usize, present: Option<Vec<bool>>) {
        let Some(present) = present else {
            let added = self.values.len() - start;
            if let Some(marks) = &mut self.present {
                marks.append_n(added, true);
            }
            return;
        };
        let marks = self.present.get_or_insert_with(|| {
            let mut marks = BooleanBufferBuilder::new(self.values.capacity());
            marks.append_n(start, true);
            marks
        });
        marks.append_slice(&present);
        // From the last place on, so that no value is overwritten before it was moved.
        let mut from = self.values.len();
        self.values.resize(start + present.len(), T::default());
        for (place, present) in present.iter().enumerate().rev() {
            from -= usize::from(*present);
            self.values[start + place] = if *present { self.values[from] } else { T::default() };
        }
    }

    /// The values, and which of them are there unless all are.
    pub(crate) fn finish(self) -> (Vec<T>, Option<NullBuffer>) {
        (self.values, self.present.map(|mut marks| NullBuffer::new(marks.finish())))
    }
}

/// Whole numbers of a few bits, in runs of one number and in runs of packed ones.
struct Runs {
    /// What is left of them in the page.
    bytes: Range<usize>,
    width: usize,
    /// Numbers of the present run that were not read yet.
    left: usize,
    run: Run,
}

enum Run {
    Same(u32),
    /// The next number starts at this bit of the page.
    Packed(usize),
}

impl Runs {
    fn new(bytes: Range<usize>, width: usize) -> Self {
        Self { bytes, width, left: 0, run: Run::Same(0) }
    }

    /// Begins the next run.
    fn open(&mut self, page: &[u8]) -> Result<(), ParquetError> {
        let cut_off = || damaged("runs that are cut off");
        let (mut header, mut shift) = (0_u64, 0);
        loop {
            let byte = page[self.bytes.clone()].first().copied().filter(|_| shift < 35).ok_or_else(cut_off)?;
            self.bytes.start += 1;
            header |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
        }
        let count = size(header >> 1)?;
        if header & 1 == 1 {
            // Groups of eight; the last one may be cut off where its numbers are not needed.
            let length = count.saturating_mul(self.width);
            self.run = Run::Packed(8 * self.bytes.start);
            self.bytes.start = self.bytes.start.saturating_add(length).min(self.bytes.end);
            self.left = count.saturating_mul(8);
        } else {
            let length = self.width.div_ceil(8);
            let mut number = [0; 4];
            let bytes = page[self.bytes.clone()].get(..length).ok_or_else(cut_off)?;
            number[..length].copy_from_slice(bytes);
            self.bytes.start += length;
            self.run = Run::Same(u32::from_le_bytes(number));
            self.left = count;
        }
        Ok(())
    }

    /// Passes over `count` numbers if all are 1 as one run says.
    fn skip_ones(&mut self, page: &[u8], count: usize) -> Result<bool, ParquetError> {
        if self.left == 0 {
            self.open(page)?;
        }
        let ones = self.left >= count && matches!(self.run, Run::Same(1));
        if ones {
            self.left -= count;
        }
        Ok(ones)
    }

    /// The next `count` numbers.
    fn read<'a>(&mut self, page: &[u8], count: usize, out: &'a mut Vec<u32>) -> Result<&'a [u32], ParquetError> {
        out.clear();
        while out.len() < count {
            if self.left == 0 {
                self.open(page)?;
                continue;
            }
            let numbers = self.left.min(count - out.len());
            match &mut self.run {
                Run::Same(number) => out.resize(out.len() + numbers, *number),
                Run::Packed(bit) => {
                    let end = *bit + numbers * self.width;
                    if end > 8 * self.bytes.start {
                        return Err(damaged("runs that are cut off"));
                    }
                    unpack(page, *bit, self.width, numbers, out);
                    *bit = end;
                }
            }
            self.left -= numbers;
        }
        Ok(out)
    }
}

/// Adds `count` numbers of `width` bits from this bit of the page on.
fn unpack(page: &[u8], bit: usize, width: usize, count: usize, out: &mut Vec<u32>) {
    let mask = (1_u64 << width) - 1;
    let number = |bytes: u64, bit: usize| ((bytes >> (bit % 8)) & mask) as u32;
    let start = bit / 8;
    let bit = bit % 8;
    // Those that end eight bytes before the page does need not be looked at closely.
    let safe = (8 * (page.len() - start)).saturating_sub(64 + bit) / width.max(1);
    let safe = safe.min(count);
    let rest = &page[start..];
    out.extend((0..safe).map(|i| {
        let at = bit + i * width;
        let bytes = rest[at / 8..at / 8 + 8].try_into().map_or(0, u64::from_le_bytes);
        number(bytes, at)
    }));
    out.extend((safe..count).map(|i| (eight_bytes(rest, bit + i * width) & mask) as u32));
}

/// The bits from this one on, at least 57 of them; 0 beyond the end.
fn eight_bytes(page: &[u8], bit: usize) -> u64 {
    let rest = &page[bit / 8..];
    let bytes = rest.first_chunk().copied().unwrap_or_else(|| {
        let mut bytes = [0; 8];
        bytes[..rest.len()].copy_from_slice(rest);
        bytes
    });
    u64::from_le_bytes(bytes) >> (bit % 8)
}

/// Room for this many bytes in a buffer that only grows: what was written before is not cleared.
fn room(buffer: &mut Vec<u8>, bytes: usize) -> &mut [u8] {
    if buffer.len() < bytes {
        // Exactly: a vector that grows by itself takes twice as much.
        buffer.reserve_exact(bytes - buffer.len());
        buffer.resize(bytes, 0);
    }
    &mut buffer[..bytes]
}

fn size(number: u64) -> Result<usize, ParquetError> {
    usize::try_from(number).map_err(|_| damaged("a number that is too large"))
}

fn damaged(what: &str) -> ParquetError {
    ParquetError::General(format!("a column has {what}"))
}
