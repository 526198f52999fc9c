//! Parquet files, a batch of rows and the needed columns at a time.
//!
//! Columns are decoded page by page into Arrow arrays, by way of Parquet's own column readers: its Arrow reader would
//! bring in Arrow's compute kernels, which take longer to compile than all else here.

use crate::arrays::{Arrays, Spelling, TypedTable, batches};
use crate::batch::{BATCH_ROWS, Batches, Table};
use crate::columns::{Selection, check_distinct};
use crate::error::DataError;
use crate::guard::{Memory, amount, guarded};
use crate::parquet_flat::{self, FlatPages, Number, PackedPage, Places};
use crate::parquet_pages;
use crate::parquet_types::{Levels, column_type};
use arrow_array::types::{ArrowPrimitiveType, Decimal128Type, Decimal256Type, Float16Type};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array,
    LargeBinaryArray, LargeListArray, LargeStringArray, NullArray, PrimitiveArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt8Array, UInt16Array, UInt32Array,
    UInt64Array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer, i256};
use arrow_schema::{DataType, Field, TimeUnit};
use parquet::basic::{Compression, Type as Physical};
use parquet::column::reader::{ColumnReaderImpl, get_column_reader, get_typed_column_reader};
use parquet::data_type::{
    AsBytes, BoolType, ByteArray, ByteArrayType, DataType as ParquetType, DoubleType, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type, Int96Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use std::sync::Arc;

/// A Parquet file whose footer has been read.
pub(crate) struct ParquetTable<R> {
    input: R,
    footer: Arc<ParquetFooter>,
}

/// The footer apart from the file, to walk over the same file again without parsing it anew.
pub(crate) struct ParquetFooter {
    pub(crate) metadata: ParquetMetaData,
    pub(crate) columns: Vec<RootColumn>,
    header: Vec<String>,
    pub(crate) path: String,
    memory: Memory,
}

/// A column of the table, which may consist of several columns of the file.
pub(crate) struct RootColumn {
    pub(crate) data_type: DataType,
    /// How values are put together; the first column of the file is `leaf`.
    levels: Levels,
    pub(crate) leaf: usize,
}

impl<R: ChunkReader + 'static> ParquetTable<R> {
    pub(crate) fn open(input: R, memory: Memory, path: &str) -> Result<Self, DataError> {
        if input.len() == 0 {
            return Err(DataError::Empty { path: path.to_owned() });
        }
        let footer = guarded(path, || {
            let metadata = ParquetMetaDataReader::new()
                .parse_and_finish(&input)
                .map_err(|error| DataError::parquet(path, error))?;
            ParquetFooter::new(metadata, memory, path)
        })?;
        check_distinct(&footer.header, path)?;
        Ok(Self { input, footer: Arc::new(footer) })
    }

    /// Reads the same file again, opened as `input`.
    pub(crate) fn again(input: R, footer: Arc<ParquetFooter>) -> Self {
        Self { input, footer }
    }

    pub(crate) fn footer(&self) -> &Arc<ParquetFooter> {
        &self.footer
    }

    pub(crate) fn into_parts(self) -> (R, Arc<ParquetFooter>) {
        (self.input, self.footer)
    }
}

impl ParquetFooter {
    fn new(metadata: ParquetMetaData, memory: Memory, path: &str) -> Result<Self, DataError> {
        let schema = metadata.file_metadata().schema_descr();
        let mut columns = Vec::new();
        let mut header = Vec::new();
        let mut leaves = (0..schema.num_columns()).map(|leaf| schema.get_column_root_idx(leaf)).peekable();
        let mut leaf = 0;
        for (root, field) in schema.root_schema().get_fields().iter().enumerate() {
            let (data_type, levels) = column_type(field).map_err(|what| DataError::parquet(path, what))?;
            columns.push(RootColumn { data_type, levels, leaf });
            header.push(field.name().trim().to_owned());
            while leaves.next_if_eq(&root).is_some() {
                leaf += 1;
            }
        }
        Ok(Self { metadata, columns, header, path: path.to_owned(), memory })
    }

    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    /// The number of rows that the footer claims.
    pub(crate) fn claimed_rows(&self) -> i64 {
        self.metadata.file_metadata().num_rows()
    }

    /// Refuses pages that would take more memory than there is. One page per column is unpacked at a time, and its
    /// dictionary with it. Says of each column whether it is one value per row in pages of the usual kinds.
    fn check_pages<R: ChunkReader>(&self, input: &R, wanted: &[usize]) -> Result<Vec<bool>, DataError> {
        let mut usual = vec![true; wanted.len()];
        for group in self.metadata.row_groups() {
            let mut bytes = 0_u64;
            for (&column, usual) in wanted.iter().zip(&mut usual) {
                let RootColumn { leaf, levels, .. } = self.columns[column];
                let Some(chunk) = group.columns().get(leaf) else {
                    *usual = false;
                    continue;
                };
                let pages = parquet_pages::survey(input, chunk, levels != Levels::Flat)
                    .map_err(|error| DataError::parquet(&self.path, error))?;
                let flat = levels == Levels::Flat && chunk.column_descr().max_def_level() <= 1;
                *usual &= pages.usual && flat && parquet_flat::unpacks(chunk);
                bytes = bytes.saturating_add(pages.largest);
                self.memory.check(bytes, "the pages of its columns", &self.path)?;
            }
        }
        Ok(usual)
    }

    /// Checks that the column can be decompressed.
    pub(crate) fn check_codec(&self, leaf: usize) -> Result<(), DataError> {
        for group in self.metadata.row_groups() {
            let codec = match group.columns().get(leaf).map(|column| column.compression()) {
                Some(Compression::BROTLI(_)) => "brotli",
                Some(Compression::LZO) => "lzo",
                _ => continue,
            };
            return Err(DataError::Codec { path: self.path.clone(), codec: codec.to_owned() });
        }
        Ok(())
    }
}

impl<R: ChunkReader + Send + 'static> TypedTable for ParquetTable<R> {
    fn header(&self) -> &[String] {
        &self.footer.header
    }

    fn data_type(&self, column: usize) -> &DataType {
        &self.footer.columns[column].data_type
    }

    fn spelling(&self) -> Spelling {
        Spelling::Parquet
    }

    fn source_name(&self) -> &str {
        &self.footer.path
    }

    fn arrays(self: Box<Self>, wanted: &[usize], most: usize) -> Result<Arrays, DataError> {
        let Self { input, footer } = *self;
        let input = Arc::new(input);
        let usual = guarded(&footer.path, || footer.check_pages(&*input, wanted))?;
        let packed = PackedPage::default();
        let mut columns = wanted
            .iter()
            .zip(usual)
            .map(|(&column, usual)| column_of(footer.clone(), input.clone(), column, usual.then(|| packed.clone())))
            .collect::<Result<Vec<_>, _>>()?;
        let mut done = false;
        Ok(Box::new(std::iter::from_fn(move || {
            if done {
                return None;
            }
            let arrays = guarded(&footer.path, || {
                let arrays = columns.iter_mut().map(|column| column.next(most)).collect::<Result<Vec<_>, _>>();
                arrays.map_err(|error| DataError::parquet(&footer.path, error))
            });
            let rows = match &arrays {
                Ok(arrays) => arrays.first().map_or(0, |array| array.len()),
                // Nothing sensible follows an error.
                Err(_) => 0,
            };
            done = rows == 0;
            match arrays {
                Ok(arrays) if arrays.iter().any(|array| array.len() != rows) => {
                    done = true;
                    Some(Err(DataError::parquet(&footer.path, "its columns differ in length")))
                }
                Ok(_) if rows == 0 => None,
                other => Some(other),
            }
        })))
    }
}

impl<R: ChunkReader + Send + 'static> Table for ParquetTable<R> {
    fn header(&self) -> &[String] {
        &self.footer.header
    }

    fn batches(self: Box<Self>, selection: &Selection) -> Result<Batches, DataError> {
        batches(self, selection)
    }
}

/// What stands in the place of a missing value.
trait Blank: ParquetType {
    fn blank() -> Self::T {
        Self::T::default()
    }
}

impl Blank for BoolType {}
impl Blank for Int32Type {}
impl Blank for Int64Type {}
impl Blank for Int96Type {}
impl Blank for FloatType {}
impl Blank for DoubleType {}

// The default of these has no bytes at all, and panics when it is looked at.
impl Blank for ByteArrayType {
    fn blank() -> Self::T {
        Vec::new().into()
    }
}

impl Blank for FixedLenByteArrayType {
    fn blank() -> Self::T {
        Vec::new().into()
    }
}

/// A column being read, whatever its type.
trait ColumnArrays: Send {
    /// The next rows, at most `most`; none at the end.
    fn next(&mut self, most: usize) -> Result<ArrayRef, ParquetError>;
}

type BoxedColumn = Box<dyn ColumnArrays>;

/// `usual` is there where [`ParquetFooter::check_pages`] says so of it.
fn column_of<R: ChunkReader + Send + 'static>(
    footer: Arc<ParquetFooter>,
    input: Arc<R>,
    column: usize,
    usual: Option<PackedPage>,
) -> Result<BoxedColumn, DataError> {
    fn boxed<T: Blank, R: ChunkReader + Send + 'static>(
        footer: Arc<ParquetFooter>,
        input: Arc<R>,
        column: usize,
        blank: T::T,
        build: impl Fn(Vec<T::T>, Option<NullBuffer>) -> Result<ArrayRef, ParquetError> + Send + 'static,
    ) -> BoxedColumn
    where
        T::T: Send,
    {
        let levels = footer.columns[column].levels;
        let values = ColumnValues::<T, R>::new(footer, input, column);
        Box::new(TypedColumn { values, levels, blank, build: Box::new(build) })
    }
    let leaf = footer.columns[column].leaf;
    footer.check_codec(leaf)?;
    let physical = footer.metadata.file_metadata().schema_descr().column(leaf).physical_type();
    // Lists are made of their numbers.
    let value_type = match &footer.columns[column].data_type {
        DataType::LargeList(item) => item.data_type().clone(),
        other => other.clone(),
    };
    macro_rules! column {
        ($parquet:ty, $build:expr) => {
            boxed::<$parquet, R>(footer, input, column, <$parquet as Blank>::blank(), $build)
        };
    }
    // Numbers as they are in the file.
    macro_rules! numbers {
        ($parquet:ty, $build:expr) => {
            match usual {
                Some(buffer) => {
                    let levels = footer.metadata.file_metadata().schema_descr().column(leaf).max_def_level() > 0;
                    let pages = FlatPages::new(levels, buffer);
                    Box::new(FlatColumn { footer, input, leaf, group: 0, pages, build: Box::new($build) })
                }
                None => column!($parquet, $build),
            }
        };
    }
    // Most labels of a table are missing. A blank without bytes costs nothing to copy, and is never looked at.
    macro_rules! texts {
        ($array:ty) => {
            boxed::<ByteArrayType, R>(footer, input, column, ByteArray::new(), |values, nulls| {
                let present = |i: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(i));
                let bytes = values.iter().enumerate();
                let bytes = bytes.map(|(i, value)| if present(i) { value.as_bytes() } else { &[] });
                let (offsets, bytes) = joined(bytes)?;
                Ok(Arc::new(<$array>::try_new(offsets, bytes.into(), nulls).map_err(general)?))
            })
        };
    }
    macro_rules! integers {
        ($parquet:ty, $array:ty, $native:ty) => {
            column!($parquet, |values, nulls| {
                // Narrower types are kept in the low bits.
                let values: Vec<$native> = values.into_iter().map(|value| value as $native).collect();
                Ok(Arc::new(<$array>::new(values.into(), nulls)))
            })
        };
    }
    macro_rules! decimals {
        ($parquet:ty, $precision:expr, $scale:expr, $value:expr) => {{
            let (precision, scale) = ($precision, $scale);
            column!($parquet, move |values, nulls| {
                let values: Vec<i128> = values.iter().map($value).collect();
                let array = PrimitiveArray::<Decimal128Type>::new(values.into(), nulls);
                Ok(Arc::new(array.with_precision_and_scale(precision, scale).map_err(general)?))
            })
        }};
    }
    macro_rules! wide_decimals {
        ($parquet:ty, $precision:expr, $scale:expr) => {{
            let (precision, scale) = ($precision, $scale);
            column!($parquet, move |values, nulls| {
                let values: Vec<i256> =
                    values.iter().map(|value| i256::from_be_bytes(widened(value.as_bytes()))).collect();
                let array = PrimitiveArray::<Decimal256Type>::new(values.into(), nulls);
                Ok(Arc::new(array.with_precision_and_scale(precision, scale).map_err(general)?))
            })
        }};
    }
    macro_rules! blanks {
        ($parquet:ty) => {
            column!($parquet, |values, _| Ok(Arc::new(NullArray::new(values.len()))))
        };
    }
    Ok(match (physical, value_type) {
        (Physical::BOOLEAN, DataType::Boolean) => {
            column!(BoolType, |values, nulls| Ok(Arc::new(BooleanArray::new(values.into(), nulls))))
        }
        (Physical::INT32, DataType::Int8) => integers!(Int32Type, Int8Array, i8),
        (Physical::INT32, DataType::Int16) => integers!(Int32Type, Int16Array, i16),
        (Physical::INT32, DataType::UInt8) => integers!(Int32Type, UInt8Array, u8),
        (Physical::INT32, DataType::UInt16) => integers!(Int32Type, UInt16Array, u16),
        (Physical::INT32, DataType::UInt32) => integers!(Int32Type, UInt32Array, u32),
        (Physical::INT32, DataType::Int32) => {
            numbers!(Int32Type, |values, nulls| Ok(Arc::new(Int32Array::new(values.into(), nulls))))
        }
        (Physical::INT64, DataType::UInt64) => integers!(Int64Type, UInt64Array, u64),
        (Physical::INT64, DataType::Int64) => {
            numbers!(Int64Type, |values, nulls| Ok(Arc::new(Int64Array::new(values.into(), nulls))))
        }
        (Physical::FLOAT, DataType::Float32) => {
            numbers!(FloatType, |values, nulls| Ok(Arc::new(Float32Array::new(values.into(), nulls))))
        }
        (Physical::DOUBLE, DataType::Float64) => {
            numbers!(DoubleType, |values, nulls| Ok(Arc::new(Float64Array::new(values.into(), nulls))))
        }
        (Physical::FIXED_LEN_BYTE_ARRAY, DataType::Float16) => column!(FixedLenByteArrayType, |values, nulls| {
            type Half = <Float16Type as ArrowPrimitiveType>::Native;
            let value = |bytes: &[u8]| bytes.try_into().map_or(Half::NAN, Half::from_le_bytes);
            let values: Vec<Half> = values.iter().map(|bytes| value(bytes.as_bytes())).collect();
            Ok(Arc::new(PrimitiveArray::<Float16Type>::new(values.into(), nulls)))
        }),
        (Physical::INT32, DataType::Decimal128(precision, scale)) => {
            decimals!(Int32Type, precision, scale, |&value| i128::from(value))
        }
        (Physical::INT64, DataType::Decimal128(precision, scale)) => {
            decimals!(Int64Type, precision, scale, |&value| i128::from(value))
        }
        (Physical::BYTE_ARRAY, DataType::Decimal128(precision, scale)) => {
            decimals!(ByteArrayType, precision, scale, |value| i128::from_be_bytes(widened(value.as_bytes())))
        }
        (Physical::FIXED_LEN_BYTE_ARRAY, DataType::Decimal128(precision, scale)) => {
            decimals!(FixedLenByteArrayType, precision, scale, |value| i128::from_be_bytes(widened(value.as_bytes())))
        }
        (Physical::BYTE_ARRAY, DataType::Decimal256(precision, scale)) => {
            wide_decimals!(ByteArrayType, precision, scale)
        }
        (Physical::FIXED_LEN_BYTE_ARRAY, DataType::Decimal256(precision, scale)) => {
            wide_decimals!(FixedLenByteArrayType, precision, scale)
        }
        (Physical::INT32, DataType::Date32) => {
            column!(Int32Type, |values, nulls| Ok(Arc::new(Date32Array::new(values.into(), nulls))))
        }
        (Physical::INT64, DataType::Timestamp(unit, _)) => column!(Int64Type, move |values, nulls| {
            let values = values.into();
            Ok(match unit {
                TimeUnit::Second => Arc::new(TimestampSecondArray::new(values, nulls)) as ArrayRef,
                TimeUnit::Millisecond => Arc::new(TimestampMillisecondArray::new(values, nulls)),
                TimeUnit::Microsecond => Arc::new(TimestampMicrosecondArray::new(values, nulls)),
                TimeUnit::Nanosecond => Arc::new(TimestampNanosecondArray::new(values, nulls)),
            })
        }),
        // The times of old writers, of which billionths of a second hold the years 1678 to 2262.
        (Physical::INT96, DataType::Timestamp(..)) => column!(Int96Type, |values, nulls| {
            let values: Vec<i64> = values.iter().map(|value| value.to_micros()).collect();
            Ok(Arc::new(TimestampMicrosecondArray::new(values.into(), nulls)))
        }),
        (Physical::BYTE_ARRAY, DataType::LargeUtf8) => texts!(LargeStringArray),
        (Physical::BYTE_ARRAY, DataType::LargeBinary) => texts!(LargeBinaryArray),
        (Physical::BOOLEAN, DataType::Null) => blanks!(BoolType),
        (Physical::INT32, DataType::Null) => blanks!(Int32Type),
        (Physical::INT64, DataType::Null) => blanks!(Int64Type),
        (Physical::FLOAT, DataType::Null) => blanks!(FloatType),
        (Physical::DOUBLE, DataType::Null) => blanks!(DoubleType),
        (Physical::BYTE_ARRAY, DataType::Null) => blanks!(ByteArrayType),
        (Physical::FIXED_LEN_BYTE_ARRAY, DataType::Null) => blanks!(FixedLenByteArrayType),
        (physical, found) => {
            // Types are checked against their role first, so that only a damaged footer comes here.
            let what = format!("a column of {physical} values claims the type {found}");
            return Err(DataError::parquet(&footer.path, what));
        }
    })
}

fn general(error: impl std::fmt::Display) -> ParquetError {
    ParquetError::General(error.to_string())
}

/// A number of the two's complement, highest byte first, with as many bytes as are needed.
fn widened<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let sign = if bytes.first().is_some_and(|byte| *byte >= 0x80) { 0xff } else { 0 };
    let mut wide = [sign; N];
    let kept = bytes.len().min(N);
    wide[N - kept..].copy_from_slice(&bytes[bytes.len() - kept..]);
    wide
}

/// Texts one after the other, and where each starts.
fn joined<'a>(values: impl Iterator<Item = &'a [u8]> + Clone) -> Result<(OffsetBuffer<i64>, Vec<u8>), ParquetError> {
    let mut bytes = Vec::with_capacity(values.clone().map(<[u8]>::len).sum());
    let mut offsets = Vec::with_capacity(values.size_hint().0 + 1);
    offsets.push(0);
    for value in values {
        bytes.extend_from_slice(value);
        offsets.push(i64::try_from(bytes.len()).map_err(general)?);
    }
    Ok((OffsetBuffer::new(offsets.into()), bytes))
}

/// Turns the values of a column, with a place for those that are missing, into an array.
type Build<T> = Box<dyn Fn(Vec<T>, Option<NullBuffer>) -> Result<ArrayRef, ParquetError> + Send>;

/// A column of numbers in pages of the usual kinds.
struct FlatColumn<T, R> {
    footer: Arc<ParquetFooter>,
    input: Arc<R>,
    leaf: usize,
    /// The row group to open next.
    group: usize,
    pages: FlatPages<T>,
    build: Build<T>,
}

impl<T: Number, R: ChunkReader + Send + 'static> ColumnArrays for FlatColumn<T, R> {
    fn next(&mut self, most: usize) -> Result<ArrayRef, ParquetError> {
        // As below, whatever the row groups the rows are in.
        let mut out = Places::new(most.min(BATCH_ROWS));
        let mut rows = 0;
        loop {
            rows += self.pages.read(&*self.input, most - rows, &mut out)?;
            if rows == most || self.group == self.footer.metadata.num_row_groups() {
                break;
            }
            let chunk = self.footer.metadata.row_group(self.group).columns().get(self.leaf);
            self.pages.open(chunk.ok_or_else(|| general("a row group lacks a column"))?);
            self.group += 1;
        }
        let (values, nulls) = out.finish();
        (self.build)(values, nulls)
    }
}

struct TypedColumn<T: Blank, R: ChunkReader> {
    values: ColumnValues<T, R>,
    levels: Levels,
    /// What stands in the place of a missing value.
    blank: T::T,
    build: Build<T::T>,
}

impl<T: Blank, R: ChunkReader + Send + 'static> ColumnArrays for TypedColumn<T, R> {
    fn next(&mut self, most: usize) -> Result<ArrayRef, ParquetError> {
        let rows = self.values.next(most)?;
        match self.levels {
            Levels::Flat => {
                let (values, nulls) = spread(rows.values, &rows.definition, self.values.most_defined, &self.blank);
                (self.build)(values, nulls)
            }
            Levels::List { present, element } => {
                let mut offsets: Vec<i64> = Vec::with_capacity(most.min(rows.definition.len()) + 1);
                let mut valid = Vec::with_capacity(offsets.capacity());
                let mut elements = Vec::with_capacity(rows.definition.len());
                for (&defined, &repeated) in rows.definition.iter().zip(&rows.repetition) {
                    if repeated == 0 {
                        offsets.push(i64::try_from(elements.len()).map_err(general)?);
                        valid.push(defined >= present);
                    }
                    if defined >= element {
                        elements.push(defined);
                    }
                }
                offsets.push(i64::try_from(elements.len()).map_err(general)?);
                let (values, nulls) = spread(rows.values, &elements, self.values.most_defined, &self.blank);
                let values = (self.build)(values, nulls)?;
                let field = Arc::new(Field::new("item", values.data_type().clone(), true));
                let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
                let nulls = NullBuffer::from(valid);
                Ok(Arc::new(LargeListArray::try_new(field, offsets, values, Some(nulls)).map_err(general)?))
            }
            Levels::Nested => Err(general("a nested column cannot be read")),
        }
    }
}

/// Puts values in their places, with blanks where some are missing.
fn spread<T: Clone>(values: Vec<T>, definition: &[i16], most_defined: i16, blank: &T) -> (Vec<T>, Option<NullBuffer>) {
    if most_defined == 0 || values.len() == definition.len() {
        return (values, None);
    }
    let present = BooleanBuffer::collect_bool(definition.len(), |i| definition[i] == most_defined);
    let mut places = vec![blank.clone(); definition.len()];
    for (i, value) in present.set_indices().zip(values) {
        places[i] = value;
    }
    (places, Some(NullBuffer::new(present)))
}

/// The next values of a column of a file, with their levels. Where no value can be missing there are none.
struct LevelledValues<T> {
    values: Vec<T>,
    definition: Vec<i16>,
    repetition: Vec<i16>,
}

/// Lists that are read at a time.
const LISTS: usize = 64;

/// Bytes of a value in a list: two levels, the value, and its copy in an array.
const LIST_VALUE: u64 = 20;

/// The values of a column of a file, row group after row group.
pub(crate) struct ColumnValues<T: ParquetType, R: ChunkReader> {
    footer: Arc<ParquetFooter>,
    input: Arc<R>,
    leaf: usize,
    most_defined: i16,
    most_repeated: i16,
    /// The most bytes that the values of a batch may take.
    limit: u64,
    /// The row group to open next.
    group: usize,
    reader: Option<ColumnReaderImpl<T>>,
}

impl<T: ParquetType, R: ChunkReader + 'static> ColumnValues<T, R> {
    pub(crate) fn new(footer: Arc<ParquetFooter>, input: Arc<R>, column: usize) -> Self {
        let leaf = footer.columns[column].leaf;
        let leaf_type = footer.metadata.file_metadata().schema_descr().column(leaf);
        let (most_defined, most_repeated) = (leaf_type.max_def_level(), leaf_type.max_rep_level());
        let limit = footer.memory.limit();
        Self { footer, input, leaf, most_defined, most_repeated, limit, group: 0, reader: None }
    }

    /// The values of the next rows, at most `most` and none at the end, whatever the row groups they are in: sums over
    /// a file are taken batch by batch, and must not depend on how it was written.
    fn next(&mut self, most: usize) -> Result<LevelledValues<T::T>, ParquetError> {
        // The file's own word for its length is not taken: a damaged one claims any number of rows.
        let most_here = most.min(BATCH_ROWS);
        let levels = if self.most_defined > 0 { most_here } else { 0 };
        let mut out = LevelledValues {
            values: Vec::with_capacity(most_here),
            definition: Vec::with_capacity(levels),
            repetition: Vec::new(),
        };
        let mut rows = 0;
        while rows < most {
            let Some(reader) = &mut self.reader else {
                if self.group == self.footer.metadata.num_row_groups() {
                    break;
                }
                self.reader = Some(self.open(self.group)?);
                self.group += 1;
                continue;
            };
            let (definition, repetition) = (Some(&mut out.definition), Some(&mut out.repetition));
            // Lists may be of any length, so that a few are read at a time.
            let part = if self.most_repeated > 0 { (most - rows).min(LISTS) } else { most - rows };
            let (read, ..) = reader.read_records(part, definition, repetition, &mut out.values)?;
            if (out.definition.len() as u64).saturating_mul(LIST_VALUE) > self.limit {
                return Err(general(format!("its lists take more than {} of memory", amount(self.limit))));
            }
            rows += read;
            if read == 0 {
                self.reader = None;
            }
        }
        Ok(out)
    }

    /// The values of one row group alone.
    pub(crate) fn open(&self, group: usize) -> Result<ColumnReaderImpl<T>, ParquetError> {
        let group = self.footer.metadata.row_group(group);
        let rows = usize::try_from(group.num_rows()).map_err(general)?;
        let chunk = group.columns().get(self.leaf).ok_or_else(|| general("a row group lacks a column"))?;
        let pages = SerializedPageReader::new(self.input.clone(), chunk, rows, None)?;
        Ok(get_typed_column_reader(get_column_reader(chunk.column_descr_ptr(), Box::new(pages))))
    }
}
