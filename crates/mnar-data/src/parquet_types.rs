//! The types of Parquet columns in the words of Arrow.

use arrow_schema::{DataType, Field, Fields, IntervalUnit, TimeUnit};
use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit as ParquetUnit, Type as Physical};
use parquet::schema::types::Type;
use std::sync::Arc;

/// How the values of a column are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Levels {
    /// One value per row, which may be missing.
    Flat,
    /// A list of values per row.
    List {
        /// The definition level from which on there is a list, be it empty.
        present: i16,
        /// The definition level from which on there is an element, be it missing.
        element: i16,
    },
    /// Anything else.
    Nested,
}

/// The type of a column of a table. What has no such type, and is not a number or text either, is an error.
pub(crate) fn column_type(column: &Type) -> Result<(DataType, Levels), String> {
    let list = |item: DataType, present: i16, element: i16| {
        (DataType::LargeList(Arc::new(Field::new("item", item, true))), Levels::List { present, element })
    };
    if column.is_primitive() {
        let data_type = value_type(column)?;
        return Ok(match repetition(column) {
            Repetition::REPEATED => list(data_type, 0, 1),
            _ => (data_type, Levels::Flat),
        });
    }
    if is_annotated(column, &LogicalType::Map, &[ConvertedType::MAP, ConvertedType::MAP_KEY_VALUE]) {
        let entries = Field::new("entries", DataType::Struct(Fields::empty()), false);
        return Ok((DataType::Map(Arc::new(entries), false), Levels::Nested));
    }
    let nested = || (DataType::Struct(Fields::empty()), Levels::Nested);
    if !is_list(column) || repetition(column) == Repetition::REPEATED {
        return Ok(nested());
    }
    let nested_list = || (list(DataType::Struct(Fields::empty()), 0, 0).0, Levels::Nested);
    let [repeated] = column.get_fields() else { return Ok(nested_list()) };
    if repetition(repeated) != Repetition::REPEATED {
        return Ok(nested_list());
    }
    let present = i16::from(repetition(column) == Repetition::OPTIONAL);
    if repeated.is_primitive() {
        // The layout of old writers: `optional group my_list (LIST) { repeated int32 element; }`.
        return Ok(list(value_type(repeated)?, present, present + 1));
    }
    match repeated.get_fields() {
        // A group with these names is itself the element, of one field.
        [item] if is_element(column, repeated, item) => Ok(nested_list()),
        [item] if item.is_primitive() && repetition(item) != Repetition::REPEATED => {
            Ok(list(value_type(item)?, present, present + 1))
        }
        _ => Ok(nested_list()),
    }
}

fn repetition(field: &Type) -> Repetition {
    let info = field.get_basic_info();
    if info.has_repetition() { info.repetition() } else { Repetition::REQUIRED }
}

fn is_annotated(field: &Type, logical: &LogicalType, converted: &[ConvertedType]) -> bool {
    let info = field.get_basic_info();
    info.logical_type_ref() == Some(logical) || converted.contains(&info.converted_type())
}

fn is_list(field: &Type) -> bool {
    is_annotated(field, &LogicalType::List, &[ConvertedType::LIST])
}

/// The rule by which the format tells a list of groups of one field from a list in three levels.
fn is_element(list: &Type, repeated: &Type, item: &Type) -> bool {
    let named = repeated.name() == "array" || repeated.name() == format!("{}_tuple", list.name());
    named && !is_list(repeated) && repetition(item) != Repetition::REPEATED
}

fn value_type(field: &Type) -> Result<DataType, String> {
    use ConvertedType as Converted;
    let Type::PrimitiveType { basic_info, physical_type, type_length, scale, precision } = field else {
        return Ok(DataType::Struct(Fields::empty()));
    };
    let (logical, converted) = (basic_info.logical_type_ref(), basic_info.converted_type());
    let unknown = || {
        let annotation = logical.map_or_else(|| converted.to_string(), |logical| format!("{logical:?}"));
        Err(format!("column `{}` has the type {physical_type} ({annotation}), which is not known", field.name()))
    };
    let decimal = |wide: bool| {
        let (scale, precision) = match logical {
            Some(LogicalType::Decimal(decimal)) => (decimal.scale, decimal.precision),
            _ => (*scale, *precision),
        };
        match (u8::try_from(precision), i8::try_from(scale)) {
            (Ok(precision), Ok(scale)) if wide => Ok(DataType::Decimal256(precision, scale)),
            (Ok(precision), Ok(scale)) => Ok(DataType::Decimal128(precision, scale)),
            _ => unknown(),
        }
    };
    let is_decimal = matches!(logical, Some(LogicalType::Decimal(_))) || converted == Converted::DECIMAL;
    let utc = || Some("UTC".into());
    if logical == Some(&LogicalType::Unknown) {
        return Ok(DataType::Null);
    }
    Ok(match physical_type {
        Physical::BOOLEAN => DataType::Boolean,
        Physical::FLOAT => DataType::Float32,
        Physical::DOUBLE => DataType::Float64,
        Physical::INT96 => DataType::Timestamp(TimeUnit::Nanosecond, None),
        Physical::INT32 if is_decimal => decimal(false)?,
        Physical::INT32 => match (logical, converted) {
            (Some(LogicalType::Integer(int)), _) => match (int.bit_width, int.is_signed) {
                (8, true) => DataType::Int8,
                (16, true) => DataType::Int16,
                (32, true) => DataType::Int32,
                (8, false) => DataType::UInt8,
                (16, false) => DataType::UInt16,
                (32, false) => DataType::UInt32,
                _ => return unknown(),
            },
            (Some(LogicalType::Date), _) | (None, Converted::DATE) => DataType::Date32,
            (Some(LogicalType::Time(_)), _) | (None, Converted::TIME_MILLIS) => DataType::Time32(TimeUnit::Millisecond),
            (None, Converted::NONE | Converted::INT_32) => DataType::Int32,
            (None, Converted::INT_8) => DataType::Int8,
            (None, Converted::INT_16) => DataType::Int16,
            (None, Converted::UINT_8) => DataType::UInt8,
            (None, Converted::UINT_16) => DataType::UInt16,
            (None, Converted::UINT_32) => DataType::UInt32,
            _ => return unknown(),
        },
        Physical::INT64 if is_decimal => decimal(false)?,
        Physical::INT64 => match (logical, converted) {
            (Some(LogicalType::Integer(int)), _) if int.bit_width == 64 => {
                if int.is_signed {
                    DataType::Int64
                } else {
                    DataType::UInt64
                }
            }
            (Some(LogicalType::Time(time)), _) => DataType::Time64(unit(&time.unit)),
            (Some(LogicalType::Timestamp(time)), _) => {
                DataType::Timestamp(unit(&time.unit), if time.is_adjusted_to_u_t_c { utc() } else { None })
            }
            (None, Converted::NONE | Converted::INT_64) => DataType::Int64,
            (None, Converted::UINT_64) => DataType::UInt64,
            (None, Converted::TIME_MICROS) => DataType::Time64(TimeUnit::Microsecond),
            (None, Converted::TIMESTAMP_MILLIS) => DataType::Timestamp(TimeUnit::Millisecond, utc()),
            (None, Converted::TIMESTAMP_MICROS) => DataType::Timestamp(TimeUnit::Microsecond, utc()),
            _ => return unknown(),
        },
        // 38 digits are what 128 bits hold.
        Physical::BYTE_ARRAY if is_decimal => match decimal(false)? {
            DataType::Decimal128(precision, _) if precision > 38 => decimal(true)?,
            narrow => narrow,
        },
        Physical::BYTE_ARRAY => match (logical, converted) {
            (Some(LogicalType::String | LogicalType::Json), _) | (None, Converted::UTF8 | Converted::JSON) => {
                DataType::LargeUtf8
            }
            _ => DataType::LargeBinary,
        },
        Physical::FIXED_LEN_BYTE_ARRAY if is_decimal => decimal(*type_length > 16)?,
        Physical::FIXED_LEN_BYTE_ARRAY => match (logical, converted) {
            (Some(LogicalType::Float16), _) if *type_length == 2 => DataType::Float16,
            (None, Converted::INTERVAL) => DataType::Interval(IntervalUnit::DayTime),
            _ => DataType::FixedSizeBinary(*type_length),
        },
    })
}

fn unit(unit: &ParquetUnit) -> TimeUnit {
    match unit {
        ParquetUnit::MILLIS => TimeUnit::Millisecond,
        ParquetUnit::MICROS => TimeUnit::Microsecond,
        ParquetUnit::NANOS => TimeUnit::Nanosecond,
    }
}
