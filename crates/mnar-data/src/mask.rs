//! Copies of a table with some labels blanked.

use crate::atomic::{AtomicFile, TextFile};
use crate::batch::batch_rows;
use crate::columns::find;
use crate::delimited::DelimitedTable;
use crate::error::{DataError, show};
use crate::format::{Format, Input};
use crate::guard::guarded;
use crate::values::Missing;
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema};
use arrow_select::nullif::nullif;
use csv::ByteRecord;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::path::Path;
use std::sync::Arc;

/// Copies a table, in the same format, with the label blanked wherever `labelled` is false. `keep_truth` adds
/// a last column of that name with the labels as they were. Labels that mean missing by `missing` are blanked
/// too, so that the copy needs no such list; all other values are kept to the byte. The table is never in
/// memory as a whole, and the copy appears whole or not at all.
pub fn mask_labels(
    input: &Path,
    output: &Path,
    label: &str,
    missing: &[String],
    keep_truth: Option<&str>,
    labelled: &[bool],
) -> Result<(), DataError> {
    let input = Input::open(input)?;
    let from = input.format;
    let to = Format::of_name(output).unwrap_or(from);
    let mask = Mask { label, missing: Missing::new(missing), keep_truth, labelled, path: input.path.clone() };
    match (from, to) {
        (Format::Delimited { delimiter }, Format::Delimited { delimiter: to }) => {
            mask.delimited(input, output, delimiter, to)
        }
        (Format::Parquet, Format::Parquet) => mask.parquet(input, output),
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
    fn delimited(&self, input: Input, output: &Path, from: u8, to: u8) -> Result<(), DataError> {
        let mut table = DelimitedTable::open(input.into_text(), from, &self.path)?;
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

    fn parquet(&self, input: Input, output: &Path) -> Result<(), DataError> {
        let unreadable = |error: &dyn std::fmt::Display| DataError::parquet(&self.path, error);
        // With the Arrow types this time: the copy is to have those of the source.
        let file = input.into_file()?;
        let builder =
            guarded(&self.path, || ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| unreadable(&error)))?;
        let schema = builder.schema().clone();
        let header: Vec<String> = schema.fields().iter().map(|field| field.name().trim().to_owned()).collect();
        crate::columns::check_distinct(&header, &self.path)?;
        let label = find(&header, self.label, &self.path)?;
        self.check_new_column(&header)?;

        let mut fields: Vec<Field> = schema.fields().iter().map(|field| field.as_ref().clone()).collect();
        if let Some(name) = self.keep_truth {
            fields.push(fields[label].clone().with_name(name));
        }
        fields[label].set_nullable(true);
        let out_schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));

        // One row group's compression stands for all: writers choose one for the file.
        let compression = builder
            .metadata()
            .row_groups()
            .first()
            .and_then(|group| group.columns().first())
            .map_or(Compression::SNAPPY, |column| column.compression_codec().into());
        let mut reader = guarded(&self.path, || {
            builder.with_batch_size(batch_rows(header.len())).build().map_err(|error| unreadable(&error))
        })?;
        let mut next = || guarded(&self.path, || reader.next().transpose().map_err(|error| unreadable(&error)));

        let shown = show(output);
        let failed =
            |error: &dyn std::fmt::Display| DataError::io(&shown, "written", std::io::Error::other(error.to_string()));
        let properties = WriterProperties::builder().set_compression(compression).build();
        let mut writer = ArrowWriter::try_new(AtomicFile::create(output)?, out_schema.clone(), Some(properties))
            .map_err(|error| failed(&error))?;
        let mut rows = 0;
        while let Some(batch) = next()? {
            let mut columns = batch.columns().to_vec();
            let truth = columns[label].clone();
            let blank = self.blanks(&truth, rows)?;
            columns[label] = nullif(&truth, &blank).map_err(|error| failed(&error))?;
            if self.keep_truth.is_some() {
                columns.push(truth);
            }
            rows += batch.num_rows();
            let batch = RecordBatch::try_new(out_schema.clone(), columns).map_err(|error| failed(&error))?;
            writer.write(&batch).map_err(|error| failed(&error))?;
        }
        self.check_rows(rows)?;
        writer.into_inner().map_err(|error| failed(&error))?.commit()
    }

    /// Which labels of a batch are to be blanked.
    fn blanks(&self, labels: &ArrayRef, first_row: usize) -> Result<BooleanArray, DataError> {
        let unsupported = |error: &dyn std::fmt::Display| DataError::parquet(&self.path, error);
        let texts = cast(labels, &DataType::LargeUtf8).map_err(|error| unsupported(&error))?;
        let texts = texts.as_string::<i64>();
        let missing = |i: usize| texts.is_valid(i) && self.missing.present(texts.value(i)).is_none();
        let blank = |i: usize| !self.labelled.get(first_row + i).copied().unwrap_or(false) || missing(i);
        Ok((0..labels.len()).map(|i| Some(blank(i))).collect())
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
