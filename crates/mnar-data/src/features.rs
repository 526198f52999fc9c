//! Tables of features, and of labels alone.

use crate::arrow_table::Source;
use crate::batch::{RowStack, Table};
use crate::columns::{Selection, find, twice};
use crate::delimited::DelimitedTable;
use crate::error::{ColumnRole, DataError};
use crate::values::{Interner, Missing};
use mnar::Labels;
use ndarray::Array2;
use std::io::Read;

/// Which columns are features.
#[derive(Clone, Debug, PartialEq)]
pub enum FeatureColumns {
    /// Every column but the label and the fold; all must be numeric.
    AllNumeric,
    /// These, in this order.
    Named(Vec<String>),
}

/// Labels and features of the same rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    /// The labels; the classes are their distinct values.
    pub labels: Labels,
    /// The features, one row after the other; all finite.
    pub x: Array2<f64>,
    /// The names of the features.
    pub names: Vec<String>,
    /// The fold of every row, numbered from 0 in the order of the folds' names.
    pub folds: Option<Vec<u32>>,
}

/// Reads a table of features with partly missing labels.
pub fn read_features<'a>(
    source: impl Into<Source<'a>>,
    label: &str,
    features: &FeatureColumns,
    fold: Option<&str>,
    missing: &[String],
) -> Result<Features, DataError> {
    let source = source.into();
    collect(source.into_table()?, label, features, fold, missing, &source.name())
}

/// Reads features from CSV text; `source_name` is what messages start with.
pub fn features_from_csv(
    reader: impl Read + Send + 'static,
    label: &str,
    features: &FeatureColumns,
    fold: Option<&str>,
    missing: &[String],
    source_name: &str,
) -> Result<Features, DataError> {
    let table = Box::new(DelimitedTable::open(reader, b',', source_name)?);
    collect(table, label, features, fold, missing, source_name)
}

/// Reads the fold of every row, numbered from 0 in the order of the folds' names.
pub fn read_folds<'a>(source: impl Into<Source<'a>>, fold: &str) -> Result<Vec<u32>, DataError> {
    let source = source.into();
    let shown = source.name();
    let table = source.into_table()?;
    let column = find(table.header(), fold, &shown)?;
    let mut folds = Interner::default();
    let selection = Selection { numbers: Vec::new(), role: ColumnRole::Number, texts: vec![column] };
    for batch in table.batches(&selection)? {
        folds.extend(&batch?.texts[0], &Missing::new(&[]));
    }
    folds.into_folds(fold, &shown)
}

/// Reads the labels alone. All, some or none may be missing.
pub fn read_labels<'a>(source: impl Into<Source<'a>>, label: &str, missing: &[String]) -> Result<Labels, DataError> {
    let source = source.into();
    let shown = source.name();
    let table = source.into_table()?;
    let column = find(table.header(), label, &shown)?;
    let missing = Missing::new(missing);
    let mut labels = Interner::default();
    let selection = Selection { numbers: Vec::new(), role: ColumnRole::Number, texts: vec![column] };
    for batch in table.batches(&selection)? {
        labels.extend(&batch?.texts[0], &missing);
    }
    let labels = labels.into_labels(&shown)?;
    if labels.is_empty() { Err(DataError::NoRows { path: shown }) } else { Ok(labels) }
}

fn collect(
    table: Box<dyn Table>,
    label: &str,
    features: &FeatureColumns,
    fold: Option<&str>,
    missing: &[String],
    path: &str,
) -> Result<Features, DataError> {
    let header = table.header();
    let mut taken = vec![(find(header, label, path)?, "the label")];
    if let Some(fold) = fold {
        let column = find(header, fold, path)?;
        if column == taken[0].0 {
            return Err(twice(path, label, "the label", "the fold"));
        }
        taken.push((column, "the fold"));
    }
    let numbers = choose(header, features, &taken, path)?;
    let names: Vec<String> = numbers.iter().map(|&column| header[column].clone()).collect();
    let texts = taken.iter().map(|(column, _)| *column).collect();

    let missing = Missing::new(missing);
    let mut labels = Interner::default();
    let mut folds = fold.map(|name| (name, Interner::default()));
    let mut x = RowStack::new(names.len());
    for batch in table.batches(&Selection { numbers, role: ColumnRole::Number, texts })? {
        let batch = batch?;
        labels.extend(&batch.texts[0], &missing);
        if let Some((_, folds)) = &mut folds {
            folds.extend(&batch.texts[1], &Missing::new(&[]));
        }
        check_finite(&batch.numbers, batch.first_row, &names, path)?;
        x.push(&batch);
    }
    if x.rows() == 0 {
        return Err(DataError::NoRows { path: path.to_owned() });
    }
    let folds = folds.map(|(name, folds)| folds.into_folds(name, path)).transpose()?;
    let labels = labels.into_labels(path)?;
    let classes = labels.names().to_vec();
    let labels = Labels::new(labels.as_slice().to_vec(), classes).map_err(|cause| DataError::core(path, cause))?;
    Ok(Features { labels, x: x.into_array(), names, folds })
}

/// The positions of the features; `taken` are columns that serve as something else.
fn choose(
    header: &[String],
    features: &FeatureColumns,
    taken: &[(usize, &'static str)],
    path: &str,
) -> Result<Vec<usize>, DataError> {
    let role = |column: usize| taken.iter().find(|(other, _)| *other == column).map(|(_, role)| *role);
    let chosen: Vec<usize> = match features {
        FeatureColumns::AllNumeric => (0..header.len()).filter(|&column| role(column).is_none()).collect(),
        FeatureColumns::Named(names) => {
            let mut chosen = Vec::with_capacity(names.len());
            for name in names {
                let column = find(header, name, path)?;
                // A label among the features would make every test below it worthless.
                if let Some(role) = role(column) {
                    return Err(twice(path, name, role, "a feature"));
                }
                if chosen.contains(&column) {
                    return Err(twice(path, name, "a feature", "another feature"));
                }
                chosen.push(column);
            }
            chosen
        }
    };
    if chosen.is_empty() { Err(DataError::NoFeatures { path: path.to_owned() }) } else { Ok(chosen) }
}

fn check_finite(numbers: &[Vec<f64>], first_row: usize, names: &[String], path: &str) -> Result<(), DataError> {
    for (values, name) in numbers.iter().zip(names) {
        if let Some(i) = values.iter().position(|value| !value.is_finite()) {
            let (path, row, column) = (path.to_owned(), first_row + i + 1, name.clone());
            return Err(if values[i].is_nan() {
                DataError::MissingValue { path, row, column, role: ColumnRole::Number }
            } else {
                DataError::Infinite { path, row, column, value: values[i] }
            });
        }
    }
    Ok(())
}
