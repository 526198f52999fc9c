//! Labels and folds alone.

use crate::arrow_table::Source;
use crate::columns::{Selection, find};
use crate::error::{ColumnRole, DataError};
use crate::values::{Interner, Missing};
use mnar::Labels;

/// Reads the fold of every row, numbered from 0 in the order of the folds' names.
pub fn read_folds<'a>(source: impl Into<Source<'a>>, fold: &str) -> Result<Vec<u32>, DataError> {
    let source = source.into();
    let shown = source.name();
    let memory = source.memory.resolved();
    let table = source.into_table()?;
    let column = find(table.header(), fold, &shown)?;
    let mut folds = Interner::default();
    let selection = Selection { numbers: Vec::new(), role: ColumnRole::Number, texts: vec![column] };
    for batch in table.batches(&selection)? {
        folds.extend(&batch?.texts[0], &Missing::new(&[]));
        memory.check(folds.bytes(), "the folds", &shown)?;
    }
    folds.into_folds(fold, &shown)
}

/// Reads the labels alone. All, some or none may be missing.
pub fn read_labels<'a>(source: impl Into<Source<'a>>, label: &str, missing: &[String]) -> Result<Labels, DataError> {
    let source = source.into();
    let shown = source.name();
    let memory = source.memory.resolved();
    let table = source.into_table()?;
    let column = find(table.header(), label, &shown)?;
    let missing = Missing::new(missing);
    let mut labels = Interner::default();
    let selection = Selection { numbers: Vec::new(), role: ColumnRole::Number, texts: vec![column] };
    for batch in table.batches(&selection)? {
        labels.extend(&batch?.texts[0], &missing);
        memory.check(labels.bytes(), "the labels", &shown)?;
    }
    let labels = labels.into_labels(&shown)?;
    if labels.is_empty() { Err(DataError::NoRows { path: shown }) } else { Ok(labels) }
}
