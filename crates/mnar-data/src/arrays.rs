//! How typed columns become numbers and texts, whether they come from a Parquet file or from memory.

use crate::batch::{Batch, Batches, batch_rows};
use crate::columns::Selection;
use crate::dates;
use crate::error::{ColumnRole, DataError};
use crate::number_column::NumberColumn;
use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, Float64Array, LargeStringArray};
use arrow_buffer::{ArrowNativeType, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, TimeUnit};

/// A table whose columns have types.
pub(crate) trait TypedTable {
    /// The names of the columns, distinct.
    fn header(&self) -> &[String];
    fn data_type(&self, column: usize) -> &DataType;
    fn spelling(&self) -> Spelling;
    /// What messages start with.
    fn source_name(&self) -> &str;
    /// Starts to read the columns at `wanted`, which ascend: one array per column, at most `most` rows at a time.
    fn arrays(self: Box<Self>, wanted: &[usize], most: usize) -> Result<Arrays, DataError>;
}

/// Arrays of the same rows, one per wanted column, in the order of the rows.
pub(crate) type Arrays = Box<dyn Iterator<Item = Result<Vec<ArrayRef>, DataError>> + Send>;

/// How values without a text of their own are spelt, and whether texts are what their type says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// As Parquet has it: `true`, and a text is a name even where it looks like a number.
    Parquet,
    /// As pandas writes CSV: `True`, and texts that are all numbers are a column of numbers.
    Csv,
}

/// Whether the column can be read as numbers.
pub(crate) fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_number(values),
        other => other.is_numeric() || matches!(other, DataType::Boolean | DataType::Null),
    }
}

/// Whether the column holds dates, with or without a time.
pub(crate) fn is_date(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..))
}

/// Dates as seconds since 1970 and billionths of a second; the type has been checked by [`is_date`].
fn seconds_of(array: &dyn Array) -> Box<dyn Iterator<Item = Option<(i64, u32)>> + '_> {
    fn split<T: ArrowPrimitiveType<Native = i64>>(
        array: &dyn Array,
        per_second: i64,
    ) -> Box<dyn Iterator<Item = Option<(i64, u32)>> + '_> {
        let part = move |value: i64| {
            let nanos = value.rem_euclid(per_second) * (1_000_000_000 / per_second);
            (value.div_euclid(per_second), u32::try_from(nanos).unwrap_or(0))
        };
        Box::new(array.as_primitive::<T>().iter().map(move |value| value.map(part)))
    }
    match array.data_type() {
        DataType::Date32 => {
            Box::new(array.as_primitive::<Date32Type>().iter().map(|day| day.map(|day| (i64::from(day) * 86_400, 0))))
        }
        DataType::Date64 => split::<Date64Type>(array, 1_000),
        DataType::Timestamp(TimeUnit::Second, _) => split::<TimestampSecondType>(array, 1),
        DataType::Timestamp(TimeUnit::Millisecond, _) => split::<TimestampMillisecondType>(array, 1_000),
        DataType::Timestamp(TimeUnit::Microsecond, _) => split::<TimestampMicrosecondType>(array, 1_000_000),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => split::<TimestampNanosecondType>(array, 1_000_000_000),
        other => unreachable!("types are checked before values are read: {other}"),
    }
}

/// Dates as days since 1970-01-01, with the time as a fraction.
pub(crate) fn days_of(array: &dyn Array) -> impl Iterator<Item = Option<f64>> + '_ {
    seconds_of(array).map(|time| time.map(|(seconds, nanos)| (seconds as f64 + f64::from(nanos) / 1e9) / 86_400.0))
}

/// Whether the column holds text.
pub(crate) fn is_text(data_type: &DataType) -> bool {
    use DataType::*;
    match data_type {
        Dictionary(_, values) => is_text(values),
        other => matches!(other, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView),
    }
}

/// Whether the column holds lists of numbers.
pub(crate) fn is_number_list(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            item.data_type().is_numeric()
        }
        _ => false,
    }
}

/// The name of a type in messages.
pub(crate) fn type_name(data_type: &DataType) -> String {
    use DataType::*;
    match data_type {
        Struct(_) => "struct".into(),
        List(_) | LargeList(_) | FixedSizeList(..) | ListView(_) | LargeListView(_) => "list".into(),
        Map(..) => "map".into(),
        Utf8 | LargeUtf8 | Utf8View => "text".into(),
        Binary | LargeBinary | BinaryView => "binary".into(),
        Dictionary(_, values) => type_name(values),
        other => other.to_string(),
    }
}

/// A label or fold may be anything that has one obvious spelling.
pub(crate) fn check_text(table: &dyn TypedTable, column: usize) -> Result<(), DataError> {
    let found = table.data_type(column);
    if is_text(found) || is_number(found) {
        return Ok(());
    }
    Err(DataError::ColumnType {
        path: table.source_name().to_owned(),
        column: table.header()[column].clone(),
        found: type_name(found),
        role: ColumnRole::Label,
        expected: "text, a whole number or a boolean",
    })
}

/// The type of a column of numbers; with `lists`, of one that may hold a list in every row, or a text of it.
fn check_number(table: &dyn TypedTable, column: usize, role: ColumnRole, lists: bool) -> Result<(), DataError> {
    let found = table.data_type(column);
    if is_number(found) || (lists && (is_number_list(found) || is_text(found))) {
        return Ok(());
    }
    Err(DataError::ColumnType {
        path: table.source_name().to_owned(),
        column: table.header()[column].clone(),
        found: type_name(found),
        role,
        expected: if lists { "a number or a list of numbers" } else { "a number" },
    })
}

/// Starts to read the selected columns as numbers without gaps and as texts.
pub(crate) fn batches(table: Box<dyn TypedTable>, selection: &Selection) -> Result<Batches, DataError> {
    for &column in &selection.numbers {
        check_number(&*table, column, selection.role, selection.lists.is_some())?;
    }
    for &column in &selection.texts {
        check_text(&*table, column)?;
    }
    // Columns come in the order of the table, each once.
    let mut wanted: Vec<usize> = selection.numbers.iter().chain(&selection.texts).copied().collect();
    wanted.sort_unstable();
    wanted.dedup();
    let position = |column: &usize| wanted.binary_search(column).expect("every selected column is wanted");
    let path = table.source_name().to_owned();
    let column = |at: &usize| NumberColumn::new(&table.header()[*at], selection.role, &path);
    let mut reader = BatchReader {
        columns: selection.numbers.iter().map(|at| (position(at), column(at))).collect(),
        spelling: table.spelling(),
        texts: selection.texts.iter().map(position).collect(),
        path: path.clone(),
    };
    let arrays = table.arrays(&wanted, batch_rows(selection.width()))?;
    let mut rows = 0;
    Ok(Box::new(arrays.map(move |arrays| {
        let batch = reader.batch(arrays?, rows)?;
        rows += batch.rows;
        Ok(batch)
    })))
}

/// Turns arrays into batches.
struct BatchReader {
    /// The position of each column of numbers among the arrays.
    columns: Vec<(usize, NumberColumn)>,
    spelling: Spelling,
    /// The positions of the texts among the arrays.
    texts: Vec<usize>,
    path: String,
}

impl BatchReader {
    fn batch(&mut self, arrays: Vec<ArrayRef>, first_row: usize) -> Result<Batch, DataError> {
        let (mut numbers, mut lists) = (Vec::with_capacity(self.columns.len()), Vec::new());
        for (at, column) in &mut self.columns {
            let array = &arrays[*at];
            if !is_number(array.data_type()) {
                push_lists(array, self.spelling, first_row, column, &mut lists)?;
                continue;
            }
            let values = numbers_of(array);
            if let Some(nulls) = values.nulls().filter(|nulls| nulls.null_count() > 0) {
                let row = (0..nulls.len()).find(|&i| nulls.is_null(i)).unwrap_or(0);
                return Err(column.refuse("", first_row + row + 1));
            }
            numbers.push(values);
        }
        let texts = self.texts.iter().map(|&at| texts_of(&arrays[at], self.spelling, &self.path));
        let texts = texts.collect::<Result<Vec<_>, _>>()?;
        let rows = arrays.first().map_or(0, |array| array.len());
        // With the arrays gone, numbers that are not shared with a table in memory are taken without a copy.
        drop(arrays);
        let vector = |array: Float64Array| {
            let buffer = array.into_parts().1.into_inner();
            buffer.into_vec().unwrap_or_else(|shared| shared.typed_data().to_vec())
        };
        let numbers = numbers.into_iter().map(vector).chain(lists).collect();
        Ok(Batch { first_row, rows, numbers, texts })
    }
}

/// Reads lists of numbers, or texts of such lists.
fn push_lists(
    array: &dyn Array,
    spelling: Spelling,
    first_row: usize,
    column: &mut NumberColumn,
    columns: &mut Vec<Vec<f64>>,
) -> Result<(), DataError> {
    if is_number_list(array.data_type()) {
        let (values, bounds) = lists_of(array);
        let value = |i: usize| values.is_valid(i).then(|| values.value(i));
        for (i, bounds) in bounds.into_iter().enumerate() {
            let list: Vec<Option<f64>> = bounds.map_or_else(Vec::new, |(from, to)| (from..to).map(value).collect());
            column.push_list(&list, first_row + i + 1, columns)?;
        }
        return Ok(());
    }
    let texts = texts_of(array, spelling, column.path())?;
    for (i, text) in texts.iter().enumerate() {
        column.push_text(text.unwrap_or_default(), first_row + i + 1, |text| text.parse().ok(), columns)?;
    }
    Ok(())
}

/// The values as numbers; null where missing. The type has been checked by [`is_number`].
pub(crate) fn numbers_of(array: &dyn Array) -> Float64Array {
    fn primitive<T: ArrowPrimitiveType>(array: &dyn Array, number: impl Fn(T::Native) -> f64) -> Float64Array {
        array.as_primitive::<T>().unary(number)
    }
    match array.data_type() {
        DataType::Float64 => array.as_primitive::<Float64Type>().clone(),
        DataType::Float32 => primitive::<Float32Type>(array, f64::from),
        DataType::Float16 => primitive::<Float16Type>(array, f64::from),
        DataType::Int8 => primitive::<Int8Type>(array, f64::from),
        DataType::Int16 => primitive::<Int16Type>(array, f64::from),
        DataType::Int32 => primitive::<Int32Type>(array, f64::from),
        DataType::Int64 => primitive::<Int64Type>(array, |value| value as f64),
        DataType::UInt8 => primitive::<UInt8Type>(array, f64::from),
        DataType::UInt16 => primitive::<UInt16Type>(array, f64::from),
        DataType::UInt32 => primitive::<UInt32Type>(array, f64::from),
        DataType::UInt64 => primitive::<UInt64Type>(array, |value| value as f64),
        DataType::Decimal32(_, scale) => primitive::<Decimal32Type>(array, decimal::<Decimal32Type>(*scale)),
        DataType::Decimal64(_, scale) => primitive::<Decimal64Type>(array, decimal::<Decimal64Type>(*scale)),
        DataType::Decimal128(_, scale) => primitive::<Decimal128Type>(array, decimal::<Decimal128Type>(*scale)),
        DataType::Decimal256(_, scale) => primitive::<Decimal256Type>(array, decimal::<Decimal256Type>(*scale)),
        DataType::Boolean => {
            array.as_boolean().iter().map(|value| value.map(|value| f64::from(u8::from(value)))).collect()
        }
        DataType::Null => Float64Array::new_null(array.len()),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = numbers_of(dictionary.values());
            let number = |k: usize| values.is_valid(k).then(|| values.value(k));
            keys(array).into_iter().map(|key| key.and_then(number)).collect()
        }
        other => unreachable!("types are checked before values are read: {other}"),
    }
}

/// Any label, fold or name as text; null where it is missing.
pub(crate) fn texts_of(array: &dyn Array, spelling: Spelling, path: &str) -> Result<LargeStringArray, DataError> {
    fn whole<T: ArrowPrimitiveType>(array: &dyn Array) -> LargeStringArray
    where
        T::Native: ToString + PartialEq,
    {
        // Labels and folds have few values, and most labels are missing.
        const KNOWN: usize = 16;
        let mut known: Vec<(T::Native, String)> = Vec::new();
        let (values, nulls) =
            (array.as_primitive::<T>().values(), array.nulls().filter(|nulls| nulls.null_count() > 0));
        let (mut bytes, mut lengths) = (String::with_capacity(array.len()), vec![0; array.len()]);
        let mut append = |i: usize| {
            let (start, value) = (bytes.len(), values[i]);
            match known.iter().find(|(other, _)| *other == value) {
                Some((_, text)) => bytes.push_str(text),
                None => {
                    let text = value.to_string();
                    bytes.push_str(&text);
                    if known.len() < KNOWN {
                        known.push((value, text));
                    }
                }
            }
            lengths[i] = bytes.len() - start;
        };
        match nulls {
            Some(nulls) => nulls.valid_indices().for_each(&mut append),
            None => (0..array.len()).for_each(&mut append),
        }
        LargeStringArray::new(OffsetBuffer::from_lengths(lengths), bytes.into_bytes().into(), nulls.cloned())
    }
    fn decimals<T: DecimalType + ArrowPrimitiveType>(array: &dyn Array) -> LargeStringArray {
        let array = array.as_primitive::<T>();
        (0..array.len()).map(|i| array.is_valid(i).then(|| array.value_as_string(i))).collect()
    }
    // `{:?}` writes 1.0, not 1, so that all formats leave it to the same rule to see a whole number.
    fn floats<T: ArrowPrimitiveType, F: std::fmt::Debug>(
        array: &dyn Array,
        spelling: Spelling,
        float: impl Fn(T::Native) -> F,
    ) -> LargeStringArray {
        let text = |value: T::Native| match (format!("{:?}", float(value)), spelling) {
            (text, _) if text == "NaN" => None,
            (text, Spelling::Parquet) => Some(text),
            (text, Spelling::Csv) => Some(with_signed_exponent(text)),
        };
        array.as_primitive::<T>().iter().map(|value| value.and_then(text)).collect()
    }
    Ok(match array.data_type() {
        DataType::LargeUtf8 => array.as_string::<i64>().clone(),
        DataType::Utf8 => array.as_string::<i32>().iter().collect(),
        DataType::Utf8View => array.as_string_view().iter().collect(),
        DataType::Binary => decoded(array.as_binary::<i32>().iter(), path)?,
        DataType::LargeBinary => decoded(array.as_binary::<i64>().iter(), path)?,
        DataType::BinaryView => decoded(array.as_binary_view().iter(), path)?,
        DataType::Float64 => floats::<Float64Type, _>(array, spelling, |value| value),
        DataType::Float32 => floats::<Float32Type, _>(array, spelling, |value| value),
        DataType::Float16 => floats::<Float16Type, _>(array, spelling, f32::from),
        DataType::Int8 => whole::<Int8Type>(array),
        DataType::Int16 => whole::<Int16Type>(array),
        DataType::Int32 => whole::<Int32Type>(array),
        DataType::Int64 => whole::<Int64Type>(array),
        DataType::UInt8 => whole::<UInt8Type>(array),
        DataType::UInt16 => whole::<UInt16Type>(array),
        DataType::UInt32 => whole::<UInt32Type>(array),
        DataType::UInt64 => whole::<UInt64Type>(array),
        DataType::Decimal32(..) => decimals::<Decimal32Type>(array),
        DataType::Decimal64(..) => decimals::<Decimal64Type>(array),
        DataType::Decimal128(..) => decimals::<Decimal128Type>(array),
        DataType::Decimal256(..) => decimals::<Decimal256Type>(array),
        DataType::Boolean => {
            let text = |value: bool| match (spelling, value) {
                (Spelling::Parquet, true) => "true",
                (Spelling::Parquet, false) => "false",
                (Spelling::Csv, true) => "True",
                (Spelling::Csv, false) => "False",
            };
            array.as_boolean().iter().map(|value| value.map(text)).collect()
        }
        DataType::Null => LargeStringArray::new_null(array.len()),
        date if is_date(date) => {
            let time = matches!(date, DataType::Timestamp(..));
            seconds_of(array).map(|at| at.map(|(seconds, nanos)| dates::spell(seconds, nanos, time))).collect()
        }
        DataType::Dictionary(..) => {
            let values = texts_of(array.as_any_dictionary().values(), spelling, path)?;
            let text = |k: usize| values.is_valid(k).then(|| values.value(k));
            keys(array).into_iter().map(|key| key.and_then(text)).collect()
        }
        other => unreachable!("types are checked before values are read: {other}"),
    })
}

/// Python writes 1e-05 and 1e+16 where Rust writes 1e-5 and 1e16; both turn to exponents at the same numbers.
fn with_signed_exponent(text: String) -> String {
    match text.split_once('e') {
        None => text,
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
            format!("{digits}e{sign}{exponent:0>2}")
        }
    }
}

/// The position of every value of a dictionary array, where there is one.
fn keys(array: &dyn Array) -> Vec<Option<usize>> {
    let dictionary = array.as_any_dictionary();
    if dictionary.values().is_empty() {
        return vec![None; array.len()];
    }
    let nulls = dictionary.keys().logical_nulls();
    let present = |i: usize| nulls.as_ref().is_none_or(|nulls: &NullBuffer| nulls.is_valid(i));
    dictionary.normalized_keys().into_iter().enumerate().map(|(i, key)| present(i).then_some(key)).collect()
}

fn decoded<'a>(values: impl Iterator<Item = Option<&'a [u8]>>, path: &str) -> Result<LargeStringArray, DataError> {
    let mut texts = LargeStringBuilder::new();
    for value in values {
        let text = value.map(std::str::from_utf8).transpose();
        texts.append_option(
            text.map_err(|_| DataError::NotUtf8 { path: path.to_owned(), place: "a label or name".into() })?,
        );
    }
    Ok(texts.finish())
}

/// A decimal number, rounded once: by an exact division where both sides are exact, else by way of its digits.
fn decimal<T: DecimalType>(scale: i8) -> impl Fn(T::Native) -> f64 {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let power = 10_f64.powi(i32::from(scale.unsigned_abs()));
    let exact = (-22..=22).contains(&scale);
    move |value: T::Native| {
        let digits = || T::format_decimal(value, u8::MAX, scale).parse::<f64>().unwrap_or(f64::NAN);
        match value.to_i64().map(|value| value as f64) {
            Some(unscaled) if exact && unscaled.abs() < EXACT && scale >= 0 => unscaled / power,
            Some(unscaled) if exact && unscaled.abs() < EXACT => unscaled * power,
            _ => digits(),
        }
    }
}

/// Lists of numbers: all of them one after the other, and where each list starts and ends, null where there is none.
pub(crate) fn lists_of(array: &dyn Array) -> (Float64Array, Vec<Option<(usize, usize)>>) {
    fn bounds<O: ArrowNativeType>(offsets: &[O]) -> Vec<(usize, usize)> {
        offsets.windows(2).map(|pair| (pair[0].as_usize(), pair[1].as_usize())).collect()
    }
    let (values, bounds) = match array.data_type() {
        DataType::List(_) => (array.as_list::<i32>().values(), bounds(array.as_list::<i32>().value_offsets())),
        DataType::LargeList(_) => (array.as_list::<i64>().values(), bounds(array.as_list::<i64>().value_offsets())),
        DataType::FixedSizeList(_, width) => {
            let list = array.as_fixed_size_list();
            let width = width.as_usize();
            let first = |i: usize| list.value_offset_at(i);
            (list.values(), (0..list.len()).map(|i| (first(i), first(i) + width)).collect())
        }
        other => unreachable!("types are checked before values are read: {other}"),
    };
    // A slice of a longer column holds the numbers of all its rows: only those of the slice are converted.
    let (start, end) = match (bounds.first(), bounds.last()) {
        (Some(first), Some(last)) => (first.0, last.1),
        _ => (0, 0),
    };
    let numbers = numbers_of(&values.slice(start, end - start));
    let bound = |(i, (from, to)): (usize, (usize, usize))| array.is_valid(i).then_some((from - start, to - start));
    (numbers, bounds.into_iter().enumerate().map(bound).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    // python: [repr(x) for x in (1e-5, -2.5e-7, 1e16, 1e22, 1e300, 0.0001, 123456789012345.0)]
    #[test]
    fn numbers_in_memory_are_spelt_as_python_does() {
        let array = Float64Array::from(vec![1e-5, -2.5e-7, 1e16, 1e22, 1e300, 0.0001, 123_456_789_012_345.0]);
        let texts = texts_of(&array, Spelling::Csv, "t").expect("numbers have a text");
        let texts: Vec<&str> = texts.iter().flatten().collect();
        assert_eq!(texts, ["1e-05", "-2.5e-07", "1e+16", "1e+22", "1e+300", "0.0001", "123456789012345.0"]);
    }

    #[test]
    fn decimals_are_rounded_once() {
        let array = arrow_array::Decimal128Array::from(vec![Some(1), Some(-12_345), None, Some(10_i128.pow(30) + 1)]);
        let numbers = numbers_of(&array.with_precision_and_scale(38, 3).expect("38 digits are enough"));
        assert_eq!(numbers.iter().collect::<Vec<_>>(), [Some(0.001), Some(-12.345), None, Some(1e27)]);
    }
}
