//! Copies of a table with some labels blanked.

use crate::arrays::{Spelling, TypedTable as _, check_text, texts_of};
use crate::arrow_table::Source;
use crate::atomic::{AtomicFile, TextFile};
use crate::batch::BATCH_ROWS;
use crate::columns::find;
use crate::error::{DataError, show};
use crate::format::{Format, Input};
use crate::guard::{Memory, guarded};
use crate::parquet_table::{ColumnValues, ParquetFooter, ParquetTable};
use crate::values::Missing;
use csv::ByteRecord;
use parquet::basic::{Compression, Repetition, Type as Physical};
use parquet::column::reader::ColumnReaderImpl;
use parquet::column::writer::{ColumnCloseResult, ColumnWriterImpl};
use parquet::data_type::{
    BoolType, ByteArrayType, DataType as ParquetType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type,
    Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue, RowGroupMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescPtr, Type};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Copies a table, in the same format, with the label blanked wherever `labelled` is false. `keep_truth` adds
/// a last column of that name with the labels as they were. Labels that mean missing by `missing` are blanked
/// too, so that the copy needs no such list; all other values are kept to the byte, though text of another encoding
/// becomes UTF-8. The table is never in
/// memory as a whole, and the copy appears whole or not at all. Where a column is added to a Parquet file, notes of
/// Arrow about its own types (dictionaries, views) are dropped.
pub fn mask_labels<'a>(
    input: impl Into<Source<'a>>,
    output: &Path,
    label: &str,
    missing: &[String],
    keep_truth: Option<&str>,
    labelled: &[bool],
) -> Result<(), DataError> {
    let input = Input::of_source(input.into())?;
    let from = input.format;
    let to = Format::of_name(output).unwrap_or(from);
    let mask = Mask { label, missing: Missing::new(missing), keep_truth, labelled, path: input.path.clone() };
    match (from, to) {
        (Format::Delimited { .. }, Format::Delimited { delimiter: to }) => mask.delimited(input, output, to),
        (Format::Parquet, Format::Parquet) => mask.parquet(input, output),
        (Format::Json | Format::Excel | Format::Arrow, _) => {
            Err(DataError::CopyOf { path: mask.path, kind: from.name() })
        }
        _ => Err(DataError::FormatChange { path: show(output), from: from.name(), to: to.name() }),
    }
}

struct Mask<'a> {
    label: &'a str,
    missing: Missing,
    keep_truth: Option<&'a str>,
    labelled: &'a [bool],
    path: String,
}

impl Mask<'_> {
    /// Text is copied as UTF-8. Semicolons and bars are kept, since decimal commas may be why they are there.
    fn delimited(&self, input: Input, output: &Path, to: u8) -> Result<(), DataError> {
        let mut table = input.into_delimited()?;
        let to = if matches!(table.delimiter(), b';' | b'|') && to == b',' { table.delimiter() } else { to };
        let label = find(table.header(), self.label, &self.path)?;
        self.check_new_column(table.header())?;
        let shown = show(output);
        let failed = |error| DataError::csv(&shown, "written", error);
        let mut writer = csv::WriterBuilder::new().delimiter(to).from_writer(TextFile::create(output)?);
        let truth = self.keep_truth.map(str::as_bytes);
        writer.write_record(table.raw_header().iter().chain(truth)).map_err(failed)?;
        let mut record = ByteRecord::new();
        while table.next(&mut record)? {
            let i = table.rows() - 1;
            // Too many rows are reported with their number once all are counted.
            let keep = self.labelled.get(i).copied().unwrap_or(false)
                && std::str::from_utf8(&record[label]).map_or(true, |text| self.missing.present(text).is_some());
            let cells = record.iter().enumerate().map(|(k, cell)| if k == label && !keep { b"" } else { cell });
            let truth = self.keep_truth.map(|_| &record[label]);
            writer.write_record(cells.chain(truth)).map_err(failed)?;
        }
        self.check_rows(table.rows())?;
        let file = writer.into_inner().map_err(|error| DataError::io(&shown, "written", error.into_error()))?;
        file.commit()
    }

    /// All columns but the label are copied as they are, without decoding them.
    fn parquet(&self, input: Input, output: &Path) -> Result<(), DataError> {
        let table = ParquetTable::open(input.into_file()?, Memory::default().resolved(), &self.path)?;
        let label = find(table.footer().header(), self.label, &self.path)?;
        self.check_new_column(table.footer().header())?;
        check_text(&table, label)?;
        let (file, footer) = table.into_parts();
        let again = file.try_clone().map_err(|error| DataError::io(&self.path, "read", error))?;
        let kept = self.kept(ParquetTable::again(again, footer.clone()), label)?;
        self.check_rows(kept.len())?;
        let copy = Copy { mask: self, file: Arc::new(file), footer, label, kept, shown: show(output) };
        guarded(&self.path, || {
            use Physical::*;
            match copy.physical() {
                BOOLEAN => copy.write::<BoolType>(output),
                INT32 => copy.write::<Int32Type>(output),
                INT64 => copy.write::<Int64Type>(output),
                FLOAT => copy.write::<FloatType>(output),
                DOUBLE => copy.write::<DoubleType>(output),
                BYTE_ARRAY => copy.write::<ByteArrayType>(output),
                FIXED_LEN_BYTE_ARRAY => copy.write::<FixedLenByteArrayType>(output),
                INT96 => unreachable!("times are not labels"),
            }
        })
    }

    /// Which labels stay as they are.
    fn kept(&self, table: ParquetTable<File>, label: usize) -> Result<Vec<bool>, DataError> {
        let mut kept = Vec::with_capacity(self.labelled.len());
        for arrays in Box::new(table).arrays(&[label], BATCH_ROWS)? {
            let texts = texts_of(&arrays?[0], Spelling::Parquet, &self.path)?;
            for text in &texts {
                // Too many rows are reported with their number once all are counted.
                let labelled = self.labelled.get(kept.len()).copied().unwrap_or(false);
                kept.push(labelled && text.is_some_and(|text| self.missing.present(text).is_some()));
            }
        }
        Ok(kept)
    }

    fn check_new_column(&self, header: &[String]) -> Result<(), DataError> {
        match self.keep_truth {
            Some(name) if header.iter().any(|column| column == name.trim()) => {
                Err(DataError::ColumnExists { path: self.path.clone(), column: name.to_owned() })
            }
            _ => Ok(()),
        }
    }

    fn check_rows(&self, found: usize) -> Result<(), DataError> {
        if found == self.labelled.len() {
            return Ok(());
        }
        Err(DataError::RowCount { path: self.path.clone(), found, expected: self.labelled.len() })
    }
}

/// A copy of a Parquet file in the making.
struct Copy<'a> {
    mask: &'a Mask<'a>,
    file: Arc<File>,
    footer: Arc<ParquetFooter>,
    /// The column of the label.
    label: usize,
    /// Which labels stay as they are.
    kept: Vec<bool>,
    /// The name of the copy.
    shown: String,
}

impl Copy<'_> {
    fn leaf(&self) -> usize {
        self.footer.columns[self.label].leaf
    }

    fn physical(&self) -> Physical {
        self.footer.metadata.file_metadata().schema_descr().column(self.leaf()).physical_type()
    }

    /// The schema of the copy: the label may be missing, and the truth stands last.
    fn schema(&self) -> Result<Arc<Type>, ParquetError> {
        let root = self.footer.metadata.file_metadata().schema_descr().root_schema_ptr();
        let mut fields = root.get_fields().to_vec();
        let label = fields[self.label].clone();
        fields[self.label] = renamed(&label, label.name(), Repetition::OPTIONAL)?;
        if let Some(name) = self.mask.keep_truth {
            fields.push(renamed(&label, name, label.get_basic_info().repetition())?);
        }
        Type::group_type_builder(root.name()).with_fields(fields).build().map(Arc::new)
    }

    fn write<T: ParquetType>(&self, output: &Path) -> Result<(), DataError> {
        let failed = |error| DataError::parquet_written(&self.shown, error);
        let metadata = &self.footer.metadata;
        // One row group's compression stands for all: writers choose one for the file.
        let compression = metadata
            .row_groups()
            .first()
            .and_then(|group| group.columns().get(self.leaf()))
            .map_or(Compression::SNAPPY, |column| column.compression());
        // What Arrow notes about its own types names every column, and would not fit one more. The types of Parquet
        // itself are kept either way.
        let notes = metadata.file_metadata().key_value_metadata().cloned().unwrap_or_default();
        let fits = |note: &KeyValue| self.mask.keep_truth.is_none() || note.key != "ARROW:schema";
        let notes: Vec<KeyValue> = notes.into_iter().filter(fits).collect();
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_key_value_metadata((!notes.is_empty()).then_some(notes))
            .build();
        let schema = self.schema().map_err(failed)?;
        let file = AtomicFile::create(output)?;
        let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).map_err(failed)?;
        let values = ColumnValues::<T, File>::new(self.footer.clone(), self.file.clone(), self.label);
        let mut rows = 0;
        for (k, group) in metadata.row_groups().iter().enumerate() {
            let truth = writer.schema_descr().columns().last().cloned();
            let mut group_writer = writer.next_row_group().map_err(failed)?;
            for (leaf, chunk) in group.columns().iter().enumerate() {
                if leaf != self.leaf() {
                    group_writer.append_column(&*self.file, as_it_is(group, chunk.clone())).map_err(failed)?;
                    continue;
                }
                let mut column = group_writer.next_column().map_err(failed)?.expect("the copy has all columns");
                let reader = values.open(k).map_err(|error| DataError::parquet(&self.footer.path, error))?;
                rows += self.write_labels(reader, rows, column.typed::<T>())?;
                column.close().map_err(failed)?;
            }
            if let (Some(_), Some(truth)) = (self.mask.keep_truth, truth) {
                let chunk = described_by(truth, group.column(self.leaf())).map_err(failed)?;
                group_writer.append_column(&*self.file, as_it_is(group, chunk)).map_err(failed)?;
            }
            group_writer.close().map_err(failed)?;
        }
        self.mask.check_rows(rows)?;
        writer.into_inner().map_err(failed)?.commit()
    }

    /// Writes the labels of a row group, the first of which is in row `first_row`, and gives their number.
    fn write_labels<T: ParquetType>(
        &self,
        mut reader: ColumnReaderImpl<T>,
        first_row: usize,
        writer: &mut ColumnWriterImpl<'_, T>,
    ) -> Result<usize, DataError> {
        let unreadable = |error: ParquetError| DataError::parquet(&self.footer.path, error);
        let all_there = self.footer.metadata.file_metadata().schema_descr().column(self.leaf()).max_def_level() == 0;
        let mut rows = 0;
        loop {
            let (mut values, mut definition) = (Vec::new(), Vec::new());
            let read = reader.read_records(BATCH_ROWS, Some(&mut definition), None, &mut values);
            let (read, ..) = read.map_err(unreadable)?;
            if read == 0 {
                return Ok(rows);
            }
            let mut values = values.into_iter();
            let (mut labels, mut levels) = (Vec::new(), Vec::with_capacity(read));
            for i in 0..read {
                let label = if all_there || definition[i] > 0 { values.next() } else { None };
                let kept = self.kept.get(first_row + rows + i).copied().unwrap_or(false);
                let label = label.filter(|_| kept);
                levels.push(i16::from(label.is_some()));
                labels.extend(label);
            }
            let written = writer.write_batch(&labels, Some(&levels), None);
            written.map_err(|error| DataError::parquet_written(&self.shown, error))?;
            rows += read;
        }
    }
}

/// The same type under another name, or where values may be missing.
fn renamed(field: &Type, name: &str, repetition: Repetition) -> Result<Arc<Type>, ParquetError> {
    let Type::PrimitiveType { basic_info, physical_type, type_length, scale, precision } = field else {
        return Err(ParquetError::General("a label is not nested".into()));
    };
    let field = Type::primitive_type_builder(name, *physical_type)
        .with_repetition(repetition)
        .with_converted_type(basic_info.converted_type())
        .with_logical_type(basic_info.logical_type_ref().cloned())
        .with_length(*type_length)
        .with_scale(*scale)
        .with_precision(*precision)
        .with_id(None);
    field.build().map(Arc::new)
}

/// Describes a column of a row group of the source for copying it as it is.
fn as_it_is(group: &RowGroupMetaData, chunk: ColumnChunkMetaData) -> ColumnCloseResult {
    ColumnCloseResult {
        bytes_written: u64::try_from(chunk.compressed_size()).unwrap_or(0),
        rows_written: u64::try_from(group.num_rows()).unwrap_or(0),
        metadata: chunk,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    }
}

/// The same values as another column of the schema.
fn described_by(column: ColumnDescPtr, chunk: &ColumnChunkMetaData) -> Result<ColumnChunkMetaData, ParquetError> {
    let mut builder = ColumnChunkMetaData::builder(column)
        .set_compression_codec(chunk.compression_codec())
        .set_encodings_mask(*chunk.encodings_mask())
        .set_total_compressed_size(chunk.compressed_size())
        .set_total_uncompressed_size(chunk.uncompressed_size())
        .set_num_values(chunk.num_values())
        .set_data_page_offset(chunk.data_page_offset())
        .set_dictionary_page_offset(chunk.dictionary_page_offset());
    if let Some(statistics) = chunk.statistics() {
        builder = builder.set_statistics(statistics.clone());
    }
    builder.build()
}
