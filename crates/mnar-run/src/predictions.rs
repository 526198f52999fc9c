//! Predictions as a table: for a file, or for a program.

use crate::error::RunError;
use mnar::{Labels, Posteriors};
use mnar_data::{Column, Formulas, Note, RowNames, write_table_with};
use mnar_train::Propensity;
use std::path::Path;

/// Between the classes of a set.
const SEPARATOR: &str = " | ";

/// Class probabilities of every row, in the whole population and for a row that was left unlabelled.
#[derive(Clone, Debug)]
pub struct Predictions {
    classes: Vec<String>,
    population: Posteriors,
    /// One column per class.
    unlabelled: Vec<Vec<f64>>,
    /// The position of the most probable class.
    predicted: Vec<usize>,
    confidence: Vec<f64>,
    row_names: Option<RowNames>,
    labels: Option<Labels>,
    /// The classes in the set of every row.
    sets: Option<Vec<String>>,
    set_sizes: Vec<u64>,
    warnings: Vec<String>,
    notes: Vec<Note>,
}

/// Sets of classes: for every row and class, whether it belongs to the set.
pub(crate) struct PredictionSets {
    pub(crate) sets: Vec<Vec<bool>>,
    /// What a reader should know about them.
    pub(crate) warning: Option<String>,
}

impl Predictions {
    /// From p(y | x) and the mechanism, by class or by row.
    pub fn new<'a>(
        population: Posteriors,
        phi: impl Into<Propensity<'a>>,
        classes: &[String],
        row_names: Option<RowNames>,
    ) -> Result<Self, RunError> {
        check_row_names(row_names.as_ref(), classes)?;
        let phi = phi.into();
        let n = population.len();
        let mut unlabelled = vec![vec![f64::NAN; n]; classes.len()];
        let (mut predicted, mut confidence) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for i in 0..n {
            let p = population.row(i);
            // Nothing can be said if such a row is never left unlabelled.
            for (k, p) in population.given_unlabelled(i, phi.of(i)).into_iter().flatten().enumerate() {
                unlabelled[k][i] = p;
            }
            let best = (0..classes.len()).max_by(|&a, &b| p[a].total_cmp(&p[b])).unwrap_or(0);
            predicted.push(best);
            confidence.push(p[best]);
        }
        let classes = classes.to_vec();
        Ok(Self {
            classes,
            population,
            unlabelled,
            predicted,
            confidence,
            row_names,
            labels: None,
            sets: None,
            set_sizes: Vec::new(),
            warnings: Vec::new(),
            notes: Vec::new(),
        })
    }

    /// The same with what was noticed in the rows.
    pub(crate) fn with_notes(self, notes: Vec<Note>) -> Self {
        Self { notes, ..self }
    }

    /// What was noticed in the rows, such as names that the model has not learnt.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The same with the labels of the rows, where they have one.
    pub fn with_labels(self, labels: Labels) -> Self {
        Self { labels: Some(labels), ..self }
    }

    /// The same with sets of classes.
    pub(crate) fn with_sets(self, sets: Option<PredictionSets>) -> Self {
        let Some(PredictionSets { sets, warning }) = sets else { return self };
        let size = |set: &Vec<bool>| set.iter().filter(|inside| **inside).count() as u64;
        let names = |set: &Vec<bool>| {
            let inside = self.classes.iter().zip(set).filter(|(_, inside)| **inside);
            inside.map(|(class, _)| class.as_str()).collect::<Vec<_>>().join(SEPARATOR)
        };
        let (set_sizes, sets) = (sets.iter().map(size).collect(), sets.iter().map(names).collect());
        Self { sets: Some(sets), set_sizes, warnings: warning.into_iter().collect(), ..self }
    }

    /// What a reader should know.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// p(y | x) of every row.
    pub fn population(&self) -> &Posteriors {
        &self.population
    }

    /// The columns of the table: the names of the rows and their labels where they are known, `predicted`,
    /// `confidence`, `set` and `set_size` where sets were asked for, `p_CLASS` and `u_CLASS`.
    pub fn columns(&self) -> Vec<(String, Column<'_>)> {
        let mut columns = Vec::new();
        if let Some(RowNames { column, names }) = &self.row_names {
            columns.push((column.clone(), Column::Texts(names.iter().map(|name| Some(name.as_str())).collect())));
        }
        if let Some(labels) = &self.labels {
            let names = labels.as_slice().iter().map(|y| y.map(|class| labels.name(class))).collect();
            columns.push(("label".to_owned(), Column::Texts(names)));
        }
        let predicted = self.predicted.iter().map(|&k| Some(self.classes[k].as_str())).collect();
        columns.push(("predicted".to_owned(), Column::Texts(predicted)));
        columns.push(("confidence".to_owned(), Column::Numbers(&self.confidence)));
        if let Some(sets) = &self.sets {
            columns.push(("set".to_owned(), Column::Texts(sets.iter().map(|set| Some(set.as_str())).collect())));
            columns.push(("set_size".to_owned(), Column::Integers(&self.set_sizes)));
        }
        for (k, class) in self.classes.iter().enumerate() {
            columns.push((format!("p_{class}"), Column::Numbers(self.population.column(k))));
        }
        for (class, unlabelled) in self.classes.iter().zip(&self.unlabelled) {
            columns.push((format!("u_{class}"), Column::Numbers(unlabelled)));
        }
        columns
    }

    /// Writes the table in the format that the name of the file stands for. In CSV, texts that a spreadsheet would take for
    /// formulas are neutralised.
    pub fn write(&self, path: &Path) -> Result<(), RunError> {
        self.write_with(path, Formulas::default())
    }

    /// The same, with or without formulas.
    pub fn write_with(&self, path: &Path, formulas: Formulas) -> Result<(), RunError> {
        let columns = self.columns();
        let columns: Vec<(&str, Column<'_>)> =
            columns.iter().map(|(name, column)| (name.as_str(), column.clone())).collect();
        Ok(write_table_with(path, &columns, formulas)?)
    }
}

/// A column that names the rows must not be called like a column of the predictions.
pub(crate) fn check_row_names(row_names: Option<&RowNames>, classes: &[String]) -> Result<(), RunError> {
    let Some(RowNames { column, .. }) = row_names else { return Ok(()) };
    let of_class =
        |prefix: &str| column.strip_prefix(prefix).is_some_and(|rest| classes.iter().any(|class| class == rest));
    if ["label", "predicted", "confidence", "set", "set_size"].contains(&column.as_str())
        || of_class("p_")
        || of_class("u_")
    {
        return Err(RunError::IdCollides { column: column.clone() });
    }
    Ok(())
}
