//! Names of rows, by which predictions can be matched with their rows.

use crate::column_builder::FinishedColumn;
use crate::columns::{find, twice};
use crate::error::DataError;
use crate::feature_table::{ColumnValues, FeatureColumn};
use crate::note::Note;
use std::collections::HashSet;

/// The column that names the image of a row.
pub(crate) const FILE: &str = "file";

/// The names of all rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowNames {
    /// The kind of name: `file` for images, the name of the column for a table.
    pub column: String,
    /// One name per row; blank where it is missing.
    pub names: Vec<String>,
}

impl RowNames {
    /// The memory that the names take.
    pub(crate) fn bytes(&self) -> u64 {
        let texts: usize = self.names.iter().map(|name| name.len() + size_of::<String>()).sum();
        texts as u64
    }

    /// The files of a folder, relative to it.
    pub(crate) fn files(names: Vec<String>) -> Self {
        Self { column: FILE.to_owned(), names }
    }

    /// Takes the column `id` out of those that were read.
    pub(crate) fn take(columns: &mut Vec<Result<FinishedColumn, DataError>>, id: &str) -> Option<Self> {
        let is_id = |column: &Result<FinishedColumn, _>| column.as_ref().is_ok_and(|column| column.column.name == id);
        let position = columns.iter().position(is_id)?;
        let FeatureColumn { name, values } = columns.remove(position).ok()?.column;
        let ColumnValues::Categorical(texts) = values else { return None };
        let text = |row| texts.code(row).map_or_else(String::new, |code| texts.levels()[code].clone());
        Some(Self { column: name, names: (0..texts.len()).map(text).collect() })
    }

    /// What should be known about the names: whether rows can be told apart by them.
    pub(crate) fn notes(&self) -> Vec<Note> {
        let mut seen = HashSet::with_capacity(self.names.len());
        let (missing, named): (Vec<&String>, Vec<&String>) = self.names.iter().partition(|name| name.is_empty());
        let repeated: Vec<&String> = named.into_iter().filter(|name| !seen.insert(name.as_str())).collect();
        let mut notes = Vec::new();
        if let Some(example) = repeated.first() {
            let (column, example) = (self.column.clone(), (*example).clone());
            notes.push(Note::RepeatedNames { column, rows: repeated.len(), example });
        }
        if !missing.is_empty() {
            notes.push(Note::MissingNames { column: self.column.clone(), rows: missing.len() });
        }
        notes
    }
}

/// The position of the column of names, which must not have another role.
pub(crate) fn find_id(
    header: &[String],
    id: &str,
    others: &[(Option<usize>, &'static str)],
    path: &str,
) -> Result<usize, DataError> {
    let position = find(header, id, path)?;
    match others.iter().find(|(other, _)| *other == Some(position)) {
        Some((_, role)) => Err(twice(path, &header[position], role, "the name of the row")),
        None => Ok(position),
    }
}
