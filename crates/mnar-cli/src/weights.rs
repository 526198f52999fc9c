//! The file of row weights that `estimate --weights` writes for another trainer.

use anyhow::{Result, bail};
use mnar::analysis::{Findings, ReplicateWeights};
use mnar::risk::RiskWeights;
use mnar::{Class, Phi};
use mnar_data::{Column, ColumnKind, DataError, Formulas, TableWriter};
use std::ops::Range;
use std::path::Path;

const LABEL: &str = "label";
const ELL: &str = "weight_labelled_loss";
const H: &str = "weight_unlabelled_loss";

/// Weights of rows, written a part at a time.
pub(crate) struct WeightsFile<'a> {
    writer: TableWriter,
    classes: &'a [String],
    by_class: RiskWeights,
    replicates: Option<&'a ReplicateWeights>,
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
        found: &Findings,
        replicates: Option<&'a ReplicateWeights>,
        formulas: Formulas,
    ) -> Result<Self> {
        let row = id.map_or(("row", ColumnKind::Integers), |id| (id.trim(), ColumnKind::Texts));
        let mut columns = vec![row, (LABEL, ColumnKind::Texts), (ELL, ColumnKind::Numbers), (H, ColumnKind::Numbers)];
        let names: Vec<String> = (1..=replicates.map_or(0, |drawn| drawn.weights.len()))
            .map(|number| format!("replicate_{number}"))
            .collect();
        columns.extend(names.iter().map(|name| (name.as_str(), ColumnKind::Numbers)));
        let writer = TableWriter::create_with(path, &columns, formulas)?;
        Ok(Self { writer, classes, by_class: RiskWeights::new(&found.phi), replicates, rows: 0 })
    }

    /// Adds the next rows. Where labelling depends on columns, `phi` has the probabilities of each of them.
    pub(crate) fn add(
        &mut self,
        labels: &[Option<Class>],
        names: Option<Vec<Option<&str>>>,
        phi: Option<&[Phi]>,
    ) -> Result<(), DataError> {
        let first = self.rows;
        self.rows += labels.len();
        let (mut ell, mut h) = (Vec::with_capacity(labels.len()), Vec::with_capacity(labels.len()));
        for (i, &label) in labels.iter().enumerate() {
            let of_row = phi.map(|rows| RiskWeights::new(&rows[i]));
            let weights = of_row.as_ref().unwrap_or(&self.by_class);
            ell.push(weights.ell(label));
            h.push(weights.h(label));
        }
        let numbers: Vec<u64> = (first as u64 + 1..=self.rows as u64).collect();
        let row = names.map_or(Column::Integers(&numbers), Column::Texts);
        let label = labels.iter().map(|label| label.map(|class| self.classes[class.index()].as_str()));
        let mut columns = vec![row, Column::Texts(label.collect()), Column::Numbers(&ell), Column::Numbers(&h)];
        let replicates = self.replicates.map_or_else(Vec::new, |drawn| parts(drawn, first..self.rows));
        columns.extend(replicates.iter().map(|weights| Column::Numbers(weights)));
        self.writer.write(&columns)
    }

    /// Puts the file in its place.
    pub(crate) fn commit(self) -> Result<()> {
        Ok(self.writer.commit()?)
    }
}

/// The replicate weights of some rows, unlabelled ones included, which have none.
fn parts(drawn: &ReplicateWeights, rows: Range<usize>) -> Vec<Vec<f64>> {
    let start = drawn.rows.partition_point(|&row| row < rows.start);
    let end = drawn.rows.partition_point(|&row| row < rows.end);
    let part = |weights: &Vec<f64>| {
        let mut part = vec![0.0; rows.len()];
        for (&row, &weight) in drawn.rows[start..end].iter().zip(&weights[start..end]) {
            part[row - rows.start] = weight;
        }
        part
    };
    drawn.weights.iter().map(part).collect()
}
