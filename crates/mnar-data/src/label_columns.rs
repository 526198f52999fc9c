//! Columns of a file of labels, for inputs that have none of their own: the hospital of every image.

use crate::arrow_table::Source;
use crate::columns::{Selection, find};
use crate::dataset::{Dataset, is_npy};
use crate::error::{DataError, show};
use crate::feature_table::{Categories, ColumnValues, FeatureColumn, FeatureTable, MISSING};
use crate::guard::Memory;
use crate::row_names::FILE;
use crate::table_reader::read_columns;
use std::collections::HashMap;
use std::path::Path;

/// Reads columns of the file that the labels of a data set came from, one value per row of the data. Where the file names the images
/// of a folder in its column `file`, its rows are matched with them, and an image that it does not name has no value.
pub fn read_label_columns(
    labels_file: &Path,
    names: &[String],
    missing: &[String],
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
    let table = read_columns(source, names, missing)?;
    let images = dataset.row_names.as_ref().filter(|names| names.column == FILE).map(|names| &names.names[..]);
    let Some(files) = images.map(|_| files(source)).transpose()?.flatten() else {
        let (found, expected) = (table.len(), dataset.inputs.len());
        return match found == expected {
            true => Ok(table),
            false => Err(DataError::LabelCount { path: shown, found, expected, inputs: "the data".to_owned() }),
        };
    };
    let position: HashMap<&str, usize> = files.iter().enumerate().map(|(row, file)| (file.as_str(), row)).collect();
    let rows: Vec<Option<usize>> =
        images.unwrap_or_default().iter().map(|image| position.get(image.as_str()).copied()).collect();
    let columns = table.columns().iter().map(|column| matched(column, &rows)).collect();
    Ok(FeatureTable::new(columns, rows.len(), missing, &shown))
}

/// The files that the rows are about, if there is a column of them.
fn files(source: Source<'_>) -> Result<Option<Vec<String>>, DataError> {
    let table = source.into_table()?;
    let Some(column) = table.header().iter().position(|name| name == FILE) else { return Ok(None) };
    let mut files = Vec::new();
    for batch in table.batches(&Selection::texts(vec![column]))? {
        // Written as `label_file` takes them.
        let name = |name: Option<&str>| {
            let name = name.unwrap_or_default().trim().replace('\\', "/");
            name.strip_prefix("./").map_or(name.clone(), str::to_owned)
        };
        files.extend(batch?.texts[0].iter().map(name));
    }
    Ok(Some(files))
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
