//! Numpy's arrays: `.npy` files, and the members of `.npz` archives.
//!
//! Read here and not by a library, since a damaged header may claim any size: memory grows with the bytes that
//! are there, integers of all widths are one kind, and nothing is held twice.

use crate::column_builder::{ColumnBuilder, Place, Wanted};
use crate::dataset::Inputs;
use crate::error::{DataError, shorten};
use crate::feature_table::FeatureTable;
use crate::guard::Memory;
use crate::images::{ImageShape, Images};
use std::io::Read;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Unsigned(usize),
    Signed(usize),
    Float(usize),
}

impl Element {
    fn bytes(self) -> usize {
        match self {
            Element::Unsigned(bytes) | Element::Signed(bytes) | Element::Float(bytes) => bytes,
        }
    }
}

/// An array of which the header has been read.
pub(crate) struct Npy<R> {
    reader: R,
    path: String,
    /// As numpy writes it, such as `<f4`.
    dtype: String,
    element: Option<Element>,
    big_endian: bool,
    column_major: bool,
    shape: Vec<usize>,
    memory: Memory,
}

impl<R: Read> Npy<R> {
    pub(crate) fn open(mut reader: R, memory: Memory, path: &str) -> Result<Self, DataError> {
        let bad = |what: &str| DataError::Npy { path: path.to_owned(), what: what.to_owned() };
        let mut preamble = [0; 8];
        fill(&mut reader, &mut preamble, path)?;
        if &preamble[..6] != b"\x93NUMPY" {
            return Err(bad("it does not start as one"));
        }
        let length = if preamble[6] == 1 {
            let mut length = [0; 2];
            fill(&mut reader, &mut length, path)?;
            usize::from(u16::from_le_bytes(length))
        } else {
            let mut length = [0; 4];
            fill(&mut reader, &mut length, path)?;
            u32::from_le_bytes(length) as usize
        };
        // Numpy's own are 118 bytes long; a damaged length may be 4 GB.
        if length > 1 << 16 {
            return Err(bad("its header is too long; save it again with numpy.save"));
        }
        let mut header = vec![0; length];
        fill(&mut reader, &mut header, path)?;
        let header = String::from_utf8(header).map_err(|_| bad("its header is not text"))?;
        let (dtype, column_major, shape) =
            parse_header(&header).ok_or_else(|| bad(&format!("its header is `{}`", shorten(header.trim(), 120))))?;
        let (order, kind) = dtype.split_at_checked(1).unwrap_or(("", ""));
        let (kind, bytes) = kind.split_at_checked(1).unwrap_or(("", ""));
        let element = match (kind, bytes.parse::<usize>()) {
            ("u" | "b", Ok(bytes @ (1 | 2 | 4 | 8))) => Some(Element::Unsigned(bytes)),
            ("i", Ok(bytes @ (1 | 2 | 4 | 8))) => Some(Element::Signed(bytes)),
            ("f", Ok(bytes @ (4 | 8))) => Some(Element::Float(bytes)),
            _ => None,
        };
        let big_endian = order == ">";
        Ok(Self { reader, path: path.to_owned(), dtype, element, big_endian, column_major, shape, memory })
    }

    fn unsuitable(&self, expected: &str) -> DataError {
        let shape: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        let order = if self.column_major && self.shape.len() > 1 { ", column-major" } else { "" };
        let found = format!("`{}` of shape ({}){order}", shorten(&self.dtype, 40), shape.join(", "));
        DataError::ArrayKind { path: self.path.clone(), found, expected: expected.to_owned() }
    }

    /// The bytes that the elements take.
    fn expected_bytes(&self, element: Element) -> Result<usize, DataError> {
        self.shape.iter().try_fold(element.bytes(), |product, &size| product.checked_mul(size)).ok_or_else(|| {
            DataError::Npy { path: self.path.clone(), what: "its header claims more than fits any machine".into() }
        })
    }

    /// The shape of the images in an array of bytes.
    fn image_shape(&self) -> Result<ImageShape, DataError> {
        const EXPECTED: &str = "images must be `uint8` of shape (n, height, width), with 1, 3 or 4 channels behind it if coloured, and the depth before it if solid, in row-major order (numpy.ascontiguousarray)";
        if self.element != Some(Element::Unsigned(1)) || self.column_major {
            return Err(self.unsuitable(EXPECTED));
        }
        let shape = match self.shape[..] {
            [_, height, width] => ImageShape::flat(height, width, 1),
            [_, height, width, channels @ (1 | 3 | 4)] => ImageShape::flat(height, width, channels),
            [_, 1 | 3, _, _] => {
                return Err(self.unsuitable("channels must come last: save it after numpy.moveaxis(images, 1, -1)"));
            }
            [_, depth, height, width] => ImageShape { depth, height, width, channels: 1 },
            [_, depth, height, width, channels @ (1 | 3 | 4)] => ImageShape { depth, height, width, channels },
            _ => return Err(self.unsuitable(EXPECTED)),
        };
        shape.checked_len().map(|_| shape).ok_or_else(|| self.unsuitable(EXPECTED))
    }

    /// Appends the bytes of images to `pixels`; they must be of `shape` where that is known.
    fn read_images(mut self, known: Option<ImageShape>, pixels: &mut Vec<u8>) -> Result<ImageShape, DataError> {
        let shape = self.image_shape()?;
        if let Some(known) = known.filter(|known| *known != shape) {
            let (found, expected) = (shape.to_string(), known.to_string());
            return Err(DataError::ImageShape { path: self.path, found, expected });
        }
        let expected = self.expected_bytes(Element::Unsigned(1))?;
        let limit = u64::try_from(expected).unwrap_or(u64::MAX);
        let before = pixels.len();
        self.memory.check(limit.saturating_add(before as u64), "the images", &self.path)?;
        // Reserving room for everything avoids copies while growing, within what a header can be trusted with.
        pixels.reserve(expected.min(1 << 28));
        let result = (&mut self.reader).take(limit).read_to_end(pixels);
        result.map_err(|error| read_error(error, &self.path))?;
        if pixels.len() - before < expected {
            return Err(truncated(&self.path));
        }
        self.finish()?;
        Ok(shape)
    }

    /// Appends numbers in rows to the features `x_0` and so on; there are `before` rows already.
    fn read_features(self, columns: &mut Vec<ColumnBuilder>, before: usize) -> Result<usize, DataError> {
        let (rows, width) = match (self.element, &self.shape[..]) {
            (Some(_), &[rows, width]) if width > 0 => (rows, width),
            _ => return Err(self.unsuitable("features must be numbers of shape (n, features)")),
        };
        if before > 0 && width != columns.len() {
            return Err(self.unsuitable(&format!("the part before it has {} features", columns.len())));
        }
        let (column_major, path) = (self.column_major, self.path.clone());
        // A column without rows takes memory too.
        let sizes = [before.saturating_add(rows).max(64), width, size_of::<f32>()];
        self.memory.check_product(&sizes, "the features", &path)?;
        let mut at = 0;
        self.for_each(|value| {
            let (row, column) = if column_major { (at % rows, at / rows) } else { (at / width, at % width) };
            at += 1;
            // Columns are made as they come up: the header is not trusted with their number.
            if columns.len() <= column {
                columns.push(ColumnBuilder::new(format!("x_{column}"), Wanted::Numeric));
            }
            columns[column].push_number(value, &Place { path: &path, row: before + row + 1 })
        })?;
        Ok(rows)
    }

    /// Labels: whole numbers, negative or NaN where missing, `None` then.
    pub(crate) fn read_labels(self, mut label: impl FnMut(Option<i64>)) -> Result<usize, DataError> {
        let fits = matches!(self.shape[..], [_] | [_, 1]) && self.element.is_some();
        if !fits {
            return Err(self.unsuitable("labels must be whole numbers of shape (n,) or (n, 1), negative where missing"));
        }
        self.memory.check_product(&[self.shape[0], 2 * size_of::<Option<u32>>()], "the labels", &self.path)?;
        let mut row = 0;
        let path = self.path.clone();
        self.for_each(|value| {
            row += 1;
            if value.is_nan() {
                label(None);
                return Ok(());
            }
            if value.fract() != 0.0 || value.abs() > 9e15 {
                return Err(DataError::LabelNotWhole { path: path.clone(), row, value });
            }
            label((value >= 0.0).then_some(value as i64));
            Ok(())
        })?;
        Ok(row)
    }

    /// Every element as a number, in the order of the file.
    fn for_each(mut self, mut visit: impl FnMut(f64) -> Result<(), DataError>) -> Result<(), DataError> {
        let element = self.element.ok_or_else(|| self.unsuitable("numbers are needed"))?;
        let (size, mut left) = (element.bytes(), self.expected_bytes(element)?);
        let mut buffer = vec![0; 1 << 16];
        while left > 0 {
            let part = left.min(buffer.len());
            fill(&mut self.reader, &mut buffer[..part], &self.path)?;
            for bytes in buffer[..part].chunks_exact(size) {
                visit(number(bytes, element, self.big_endian))?;
            }
            left -= part;
        }
        self.finish()
    }

    /// Nothing may follow the array. An archive checks its checksum only at the end.
    fn finish(mut self) -> Result<(), DataError> {
        let mut more = [0; 1];
        match self.reader.read(&mut more) {
            Ok(0) => Ok(()),
            Ok(_) => Err(DataError::Npy { path: self.path, what: "more bytes follow than its header claims".into() }),
            Err(error) => Err(read_error(error, &self.path)),
        }
    }
}

fn number(bytes: &[u8], element: Element, big_endian: bool) -> f64 {
    let mut little = [0_u8; 8];
    for (k, &byte) in bytes.iter().enumerate() {
        little[if big_endian { bytes.len() - 1 - k } else { k }] = byte;
    }
    let bits = u64::from_le_bytes(little);
    match element {
        Element::Unsigned(_) => bits as f64,
        Element::Signed(size) => {
            // The sign bit is brought to the top, and back with its copies.
            let shift = 64 - 8 * size as u32;
            ((bits << shift).cast_signed() >> shift) as f64
        }
        Element::Float(4) => f64::from(f32::from_bits(bits as u32)),
        Element::Float(_) => f64::from_bits(bits),
    }
}

fn fill(reader: &mut impl Read, buffer: &mut [u8], path: &str) -> Result<(), DataError> {
    reader.read_exact(buffer).map_err(|error| read_error(error, path))
}

fn read_error(error: std::io::Error, path: &str) -> DataError {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => truncated(path),
        // What the archive's decoder says of damage.
        std::io::ErrorKind::InvalidData | std::io::ErrorKind::InvalidInput | std::io::ErrorKind::Other => {
            DataError::Npy { path: path.to_owned(), what: format!("it is damaged ({error}); download it again") }
        }
        _ => DataError::io(path, "read", error),
    }
}

fn truncated(path: &str) -> DataError {
    DataError::Npy { path: path.to_owned(), what: "it ends before its last element; download it again".into() }
}

/// The type, whether columns come one after the other, and the shape, of a header such as
/// `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
fn parse_header(header: &str) -> Option<(String, bool, Vec<usize>)> {
    let after = |key: &str| {
        let at = header.find(&format!("'{key}'"))? + key.len() + 2;
        Some(header[at..].trim_start().strip_prefix(':')?.trim_start())
    };
    let column_major = after("fortran_order")?.starts_with("True");
    let shape = after("shape")?.strip_prefix('(')?.split_once(')')?.0;
    let shape = shape
        .split(',')
        .map(str::trim)
        .filter(|size| !size.is_empty())
        .map(|size| size.parse().ok())
        .collect::<Option<Vec<usize>>>()?;
    // A list here means named fields, which are not supported.
    let descr = after("descr")?;
    let dtype = match descr.strip_prefix('\'') {
        Some(rest) => rest.split_once('\'')?.0,
        None => descr.split_once(']')?.0,
    };
    Some((dtype.to_owned(), column_major, shape))
}

/// Images or features from the arrays of one or several parts.
#[derive(Default)]
pub(crate) struct ArrayInputs {
    images: Option<(ImageShape, Vec<u8>)>,
    columns: Vec<ColumnBuilder>,
    rows: usize,
}

impl ArrayInputs {
    /// Appends an array, and gives the number of its rows: features where it has two dimensions, else images.
    pub(crate) fn extend<R: Read>(&mut self, npy: Npy<R>) -> Result<usize, DataError> {
        if npy.shape.len() == 2 && self.images.is_none() {
            let rows = npy.read_features(&mut self.columns, self.rows)?;
            self.rows += rows;
            return Ok(rows);
        }
        if self.rows > 0 {
            return Err(npy.unsuitable("the part before it holds features of shape (n, features)"));
        }
        let (known, mut pixels) = match self.images.take() {
            Some((shape, pixels)) => (Some(shape), pixels),
            None => (None, Vec::new()),
        };
        let before = pixels.len();
        let shape = npy.read_images(known, &mut pixels)?;
        let rows = (pixels.len() - before) / shape.len();
        self.images = Some((shape, pixels));
        Ok(rows)
    }

    /// All rows. Features for `training` are checked.
    pub(crate) fn finish(self, training: bool, path: &str) -> Result<Inputs, DataError> {
        let inputs = match self.images {
            Some((shape, pixels)) => Inputs::Images(Images::new(shape, pixels, path)?),
            None => {
                let columns = self.columns.into_iter().map(|column| Ok(column.finish(training, path)?.column));
                let columns = columns.collect::<Result<Vec<_>, _>>()?;
                Inputs::Table(FeatureTable::new(columns, self.rows, &[], path))
            }
        };
        if inputs.is_empty() { Err(DataError::NoRows { path: path.to_owned() }) } else { Ok(inputs) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_parsed() {
        let good = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n";
        assert_eq!(parse_header(good), Some(("<f4".into(), false, vec![3, 4])));
        let flat = "{'descr':'|u1','fortran_order':True,'shape':(7,)}";
        assert_eq!(parse_header(flat), Some(("|u1".into(), true, vec![7])));
        assert_eq!(parse_header("{'descr': '<f4', 'shape': (3, -4)}"), None);
        assert_eq!(parse_header("{'shape'"), None);
        assert_eq!(parse_header(""), None);
    }

    #[test]
    fn numbers_of_all_kinds() {
        let read = |bytes: &[u8], element, big| number(bytes, element, big);
        assert_eq!(read(&[0xff], Element::Signed(1), false), -1.0);
        assert_eq!(read(&[0xff], Element::Unsigned(1), false), 255.0);
        assert_eq!(read(&[0xff, 0xfe], Element::Signed(2), true), -2.0);
        assert_eq!(read(&(-3_i64).to_le_bytes(), Element::Signed(8), false), -3.0);
        assert_eq!(read(&7_i32.to_be_bytes(), Element::Signed(4), true), 7.0);
        assert_eq!(read(&1.5_f32.to_le_bytes(), Element::Float(4), false), 1.5);
        assert_eq!(read(&(-2.5_f64).to_be_bytes(), Element::Float(8), true), -2.5);
    }
}
