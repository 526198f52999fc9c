//! Parquet files of any type, for tests: written column by column, as a schema says.

use parquet::basic::Compression;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type,
};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

/// The values of a column; `None` where missing.
pub(crate) enum Values {
    Bool(Vec<Option<bool>>),
    I32(Vec<Option<i32>>),
    I64(Vec<Option<i64>>),
    F32(Vec<Option<f32>>),
    F64(Vec<Option<f64>>),
    Text(Vec<Option<&'static str>>),
    Bytes(Vec<Option<Vec<u8>>>),
    Fixed(Vec<Option<Vec<u8>>>),
    /// In three levels: an optional list of optional elements.
    Lists(Vec<Option<Vec<Option<f32>>>>),
    /// A repeated column, without a list around it.
    Repeated(Vec<Vec<i64>>),
}

use Values::*;

impl Values {
    fn write(&self, writer: &mut SerializedColumnWriter<'_>, rows: std::ops::Range<usize>) {
        fn flat<T: DataType>(writer: &mut SerializedColumnWriter<'_>, values: &[Option<T::T>]) {
            let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
            let values: Vec<T::T> = values.iter().flatten().cloned().collect();
            // Ignored where the column is required.
            writer.typed::<T>().write_batch(&values, Some(&levels), None).unwrap();
        }
        match self {
            Bool(values) => flat::<BoolType>(writer, &values[rows]),
            I32(values) => flat::<Int32Type>(writer, &values[rows]),
            I64(values) => flat::<Int64Type>(writer, &values[rows]),
            F32(values) => flat::<FloatType>(writer, &values[rows]),
            F64(values) => flat::<DoubleType>(writer, &values[rows]),
            Text(values) => {
                let values: Vec<_> = values[rows].iter().map(|text| text.map(ByteArray::from)).collect();
                flat::<ByteArrayType>(writer, &values);
            }
            Bytes(values) => {
                let values: Vec<_> = values[rows].iter().map(|bytes| bytes.clone().map(ByteArray::from)).collect();
                flat::<ByteArrayType>(writer, &values);
            }
            Fixed(values) => {
                let values: Vec<_> =
                    values[rows].iter().map(|bytes| bytes.clone().map(FixedLenByteArray::from)).collect();
                flat::<FixedLenByteArrayType>(writer, &values);
            }
            Lists(lists) => {
                let (mut definition, mut repetition, mut values) = (Vec::new(), Vec::new(), Vec::new());
                for list in &lists[rows] {
                    match list.as_deref() {
                        None | Some([]) => {
                            definition.push(i16::from(list.is_some()));
                            repetition.push(0);
                        }
                        Some(elements) => {
                            for (k, element) in elements.iter().enumerate() {
                                definition.push(2 + i16::from(element.is_some()));
                                repetition.push(i16::from(k > 0));
                                values.extend(*element);
                            }
                        }
                    }
                }
                writer.typed::<FloatType>().write_batch(&values, Some(&definition), Some(&repetition)).unwrap();
            }
            Repeated(lists) => {
                let (mut definition, mut repetition, mut values) = (Vec::new(), Vec::new(), Vec::new());
                for list in &lists[rows] {
                    definition.extend(std::iter::repeat_n(i16::from(!list.is_empty()), list.len().max(1)));
                    repetition.extend((0..list.len().max(1)).map(|k| i16::from(k > 0)));
                    values.extend_from_slice(list);
                }
                writer.typed::<Int64Type>().write_batch(&values, Some(&definition), Some(&repetition)).unwrap();
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Bool(values) => values.len(),
            I32(values) => values.len(),
            I64(values) => values.len(),
            F32(values) => values.len(),
            F64(values) => values.len(),
            Text(values) => values.len(),
            Bytes(values) | Fixed(values) => values.len(),
            Lists(values) => values.len(),
            Repeated(values) => values.len(),
        }
    }
}

/// How a file is written.
#[derive(Clone)]
pub(crate) struct Layout {
    pub(crate) compression: Compression,
    pub(crate) version: WriterVersion,
    pub(crate) dictionary: bool,
    pub(crate) group_rows: usize,
    pub(crate) page_rows: usize,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            compression: Compression::UNCOMPRESSED,
            version: WriterVersion::PARQUET_1_0,
            dictionary: true,
            group_rows: usize::MAX,
            page_rows: 20_000,
        }
    }
}

/// A file with the fields of `schema`, in the notation of Parquet: `optional double x; optional binary y (STRING);`.
pub(crate) fn parquet_laid_out(schema: &str, columns: &[Values], layout: &Layout) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(&format!("message m {{ {schema} }}")).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(layout.compression)
        .set_writer_version(layout.version)
        .set_dictionary_enabled(layout.dictionary)
        .set_data_page_row_count_limit(layout.page_rows)
        .set_write_batch_size(layout.page_rows.min(1024))
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    let rows = columns[0].len();
    let mut start = 0;
    while start < rows {
        let end = rows.min(start.saturating_add(layout.group_rows));
        let mut group = writer.next_row_group().unwrap();
        for values in columns {
            let mut column = group.next_column().unwrap().unwrap();
            values.write(&mut column, start..end);
            column.close().unwrap();
        }
        group.close().unwrap();
        start = end;
    }
    writer.into_inner().unwrap()
}

pub(crate) fn parquet(schema: &str, columns: &[Values]) -> Vec<u8> {
    parquet_laid_out(schema, columns, &Layout::default())
}
