//! The file of imputed labels that `estimate --imputed` writes.

use anyhow::{Result, bail};
use mnar::Labels;
use mnar::analysis::Imputations;
use mnar_data::{Column, ColumnKind, Formulas, RowNames, TableWriter};
use std::path::Path;

const LABEL: &str = "label";
/// What the names of the drawn columns start with.
const DRAWN: &str = "imputed_";
/// Rows that are written at a time.
const PART: usize = 65_536;

/// Refuses a column of names that is called like a column of labels, before any work is done.
pub(crate) fn check_id(id: Option<&str>) -> Result<()> {
    match id.map(str::trim) {
        Some(id) if id == LABEL || id.starts_with(DRAWN) => {
            bail!("--id {id}: the imputed labels have a column of this name too; rename it in the table")
        }
        _ => Ok(()),
    }
}

/// Writes one line per row: its name or number, its label, and the label in every draw.
pub(crate) fn write(
    path: &Path,
    labels: &Labels,
    row_names: Option<&RowNames>,
    found: &Imputations,
    formulas: Formulas,
) -> Result<()> {
    let row = row_names.map_or(("row", ColumnKind::Integers), |names| (names.column.trim(), ColumnKind::Texts));
    let names: Vec<String> = (1..=found.draws.len()).map(|number| format!("{DRAWN}{number}")).collect();
    let mut columns = vec![row, (LABEL, ColumnKind::Texts)];
    columns.extend(names.iter().map(|name| (name.as_str(), ColumnKind::Texts)));
    let mut writer = TableWriter::create_with(path, &columns, formulas)?;
    for first in (0..labels.len()).step_by(PART) {
        let rows = first..labels.len().min(first + PART);
        let numbers: Vec<u64> = rows.clone().map(|row| row as u64 + 1).collect();
        let named = row_names.map(|of| {
            let names = of.names[rows.clone()].iter().map(String::as_str);
            names.map(|name| Some(name).filter(|name| !name.is_empty())).collect()
        });
        let known = |row: usize| labels.get(row).map(|class| labels.name(class));
        let kept: Vec<Option<&str>> = rows.clone().map(known).collect();
        let start = found.rows.partition_point(|&row| row < rows.start);
        let end = found.rows.partition_point(|&row| row < rows.end);
        let part = |draw: &Vec<mnar::Class>| {
            let mut part = kept.clone();
            for (&row, &class) in found.rows[start..end].iter().zip(&draw[start..end]) {
                part[row - rows.start] = Some(labels.name(class));
            }
            Column::Texts(part)
        };
        let row = named.map_or(Column::Integers(&numbers), Column::Texts);
        let mut columns = vec![row, Column::Texts(kept.clone())];
        columns.extend(found.draws.iter().map(part));
        writer.write(&columns)?;
    }
    Ok(writer.commit()?)
}
