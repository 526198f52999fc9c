//! Columns of a file of labels, for inputs that have none of their own: the hospital of every image.

use crate::arrow_table::Source;
use crate::columns::{Selection, find};
use crate::dataset::{Dataset, ReadOptions, is_npy};
use crate::error::{DataError, show};
use crate::feature_table::{Categories, ColumnValues, FeatureColumn, FeatureTable, MISSING};
use crate::format::AnyTable;
use crate::guard::Memory;
use crate::image_rows::{ImageNames, ImageRows};
use crate::label_file::label_column;
use crate::row_names::FILE;
use crate::table_reader::read_columns;
use std::path::Path;

/// Reads columns of the file that the labels of a data set came from, one value per row of the data. Where the file names the images
/// of a folder, its rows are matched with them as its labels were, and an image that it does not name has no value. `options` are
/// those that the data were read with.
pub fn read_label_columns(
    labels_file: &Path,
    names: &[String],
    options: &ReadOptions,
    dataset: &Dataset,
    memory: Memory,
) -> Result<FeatureTable, DataError> {
    let (shown, memory) = (show(labels_file), memory.resolved());
    if is_npy(labels_file)? {
        // An array has no columns, so none of this name.
        let name = names.first().map_or("", String::as_str);
        return Err(find(&[], name, &shown).err().unwrap_or(DataError::NoRows { path: shown }));
    }
    let source = Source::from(labels_file).with_memory(memory);
    let table = read_columns(source, names, &options.missing)?;
    let rows = dataset.row_names.as_ref().filter(|names| names.column == FILE);
    let rows = rows.map(|names| image_rows(source, &names.names, options, memory, &shown)).transpose()?.flatten();
    let Some(rows) = rows else {
        let (found, expected) = (table.len(), dataset.inputs.len());
        return match found == expected {
            true => Ok(table),
            false => Err(DataError::LabelCount { path: shown, found, expected, inputs: "the data".to_owned() }),
        };
    };
    let columns = table.columns().iter().map(|column| matched(column, &rows)).collect();
    Ok(FeatureTable::new(columns, rows.len(), &options.missing, &shown))
}

/// The row of each image, if a column names the images.
fn image_rows(
    source: Source<'_>,
    images: &[String],
    options: &ReadOptions,
    memory: Memory,
    shown: &str,
) -> Result<Option<Vec<Option<usize>>>, DataError> {
    let table = AnyTable::open(source)?;
    let label = label_column(table.header(), options.label.as_deref(), shown)?;
    let columns = ImageNames::columns_of(&table, Some(label));
    let mut names = ImageNames::new(images);
    names.expect(columns.iter().map(|&column| table.header()[column].clone()));
    for batch in table.into_table().batches(&Selection::texts(columns))? {
        names.extend(&batch?.texts, memory, shown)?;
    }
    match names.decide(shown, "the data")? {
        ImageRows::Named { rows, .. } => Ok(Some(rows)),
        ImageRows::Position { .. } => Ok(None),
    }
}

/// The values of other rows, missing where there is none.
fn matched(column: &FeatureColumn, rows: &[Option<usize>]) -> FeatureColumn {
    let values = match &column.values {
        ColumnValues::Numeric(values) => {
            ColumnValues::Numeric(rows.iter().map(|row| row.map_or(f32::NAN, |row| values[row])).collect())
        }
        ColumnValues::Categorical(names) => ColumnValues::Categorical(Categories {
            levels: names.levels.clone(),
            codes: rows.iter().map(|row| row.map_or(MISSING, |row| names.codes[row])).collect(),
        }),
    };
    FeatureColumn { name: column.name.clone(), values }
}
