//! The file of row weights that `estimate --weights` writes for another trainer.

use anyhow::{Result, bail};
use mnar::Class;
use mnar::analysis::Findings;
use mnar::risk::RiskWeights;
use mnar_data::{Column, ColumnKind, DataError, Formulas, TableWriter};
use std::path::Path;

const LABEL: &str = "label";
const ELL: &str = "weight_labelled_loss";
const H: &str = "weight_unlabelled_loss";

/// Weights of rows, written a part at a time.
pub(crate) struct WeightsFile<'a> {
    writer: TableWriter,
    classes: &'a [String],
    by_class: RiskWeights,
    found: &'a Findings,
    rows: usize,
}

/// Refuses a column of names that is called like a column of weights, before any work is done.
pub(crate) fn check_id(id: Option<&str>) -> Result<()> {
    match id.map(str::trim) {
        Some(id) if [LABEL, ELL, H].contains(&id) => {
            bail!("--id {id}: the weights have a column of this name too; rename it in the table")
        }
        _ => Ok(()),
    }
}

impl<'a> WeightsFile<'a> {
    /// Starts the file. Rows are called by the column `id`, or counted from 1.
    pub(crate) fn create(
        path: &Path,
        id: Option<&str>,
        classes: &'a [String],
        found: &'a Findings,
        formulas: Formulas,
    ) -> Result<Self> {
        let row = id.map_or(("row", ColumnKind::Integers), |id| (id.trim(), ColumnKind::Texts));
        let columns = [row, (LABEL, ColumnKind::Texts), (ELL, ColumnKind::Numbers), (H, ColumnKind::Numbers)];
        let writer = TableWriter::create_with(path, &columns, formulas)?;
        Ok(Self { writer, classes, by_class: RiskWeights::new(&found.phi), found, rows: 0 })
    }

    /// Adds the next rows.
    pub(crate) fn add(&mut self, labels: &[Option<Class>], names: Option<Vec<Option<&str>>>) -> Result<(), DataError> {
        let first = self.rows;
        self.rows += labels.len();
        let (mut ell, mut h) = (Vec::with_capacity(labels.len()), Vec::with_capacity(labels.len()));
        for (row, &label) in (first..).zip(labels) {
            // Where labelling depends on columns, every row has weights of its own.
            let of_row = self.found.row_phi.as_ref().map(|rows| RiskWeights::new(&rows[row]));
            let weights = of_row.as_ref().unwrap_or(&self.by_class);
            ell.push(weights.ell(label));
            h.push(weights.h(label));
        }
        let numbers: Vec<u64> = (first as u64 + 1..=self.rows as u64).collect();
        let row = names.map_or(Column::Integers(&numbers), Column::Texts);
        let label = labels.iter().map(|label| label.map(|class| self.classes[class.index()].as_str()));
        self.writer.write(&[row, Column::Texts(label.collect()), Column::Numbers(&ell), Column::Numbers(&h)])
    }

    /// Puts the file in its place.
    pub(crate) fn commit(self) -> Result<()> {
        Ok(self.writer.commit()?)
    }
}
