//! Labels and folds alone.

use crate::arrow_table::Source;
use crate::columns::{Selection, find, no_label_column};
use crate::dataset::ReadOptions;
use crate::error::DataError;
use crate::label_file;
use crate::note::Note;
use crate::values::{Interner, Missing};
use mnar::Labels;

/// Reads the fold of every row, numbered from 0 in the order of the folds' names.
pub fn read_folds<'a>(source: impl Into<Source<'a>>, fold: &str) -> Result<Vec<u32>, DataError> {
    let source = source.into();
    read_texts(source, fold, &[])?.into_folds(fold, &source.name())
}

/// Reads the labels alone, as [`read_dataset`](crate::read_dataset) would read them, and what should be known about them.
/// All, some or none may be missing.
pub fn read_labels<'a>(source: impl Into<Source<'a>>, options: &ReadOptions) -> Result<(Labels, Vec<Note>), DataError> {
    let source = source.into();
    let path = source.name();
    let Some(label) = &options.label else {
        return Err(no_label_column(source.into_table()?.header(), &path));
    };
    let (labels, notes) = label_file::finish(read_texts(source, label, &options.missing)?, options, &path)?;
    if labels.is_empty() { Err(DataError::NoRows { path }) } else { Ok((labels, notes)) }
}

fn read_texts(source: Source<'_>, column: &str, missing: &[String]) -> Result<Interner, DataError> {
    let (shown, memory) = (source.name(), source.memory.resolved());
    let table = source.into_table()?;
    let column = find(table.header(), column, &shown)?;
    let (mut texts, missing) = (Interner::default(), Missing::new(missing));
    for batch in table.batches(&Selection::texts(vec![column]))? {
        texts.extend(&batch?.texts[0], &missing);
        memory.check(texts.bytes(), "the labels", &shown)?;
    }
    Ok(texts)
}
