//! Features as they are in a file: each column holds numbers or names, and values may be missing.

use crate::column_builder::{ColumnBuilder, Place, Wanted};
use crate::dates::DateFormat;
use crate::error::DataError;
use mnar::covariates::{Covariate, CovariateValues};
use mnar::{Covariates, Labels};
use ndarray::ArrayView2;

/// The code of a missing name.
pub(crate) const MISSING: u32 = u32::MAX;

/// Columns of numbers and of names, all of the same rows.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureTable {
    source: String,
    rows: usize,
    columns: Vec<FeatureColumn>,
    /// Further texts that mean missing, so that rows to predict are read like those for training.
    missing: Vec<String>,
    /// The columns that are dates, for the same reason.
    dates: Vec<(String, DateFormat)>,
}

/// A column of a [`FeatureTable`].
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureColumn {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: ColumnValues,
}

impl FeatureColumn {
    /// Whether each row is marked: by a number other than 0, or by `yes`, `true`, `y`, `t`, `x` in either case. What is missing is
    /// not marked; anything but `no`, `false`, `n` and `f` besides is refused.
    pub fn marks(&self, path: &str) -> Result<Vec<bool>, DataError> {
        match &self.values {
            ColumnValues::Numeric(values) => Ok(values.iter().map(|value| !value.is_nan() && *value != 0.0).collect()),
            ColumnValues::Categorical(names) => {
                let mark = |level: &String| match level.to_ascii_lowercase().as_str() {
                    "yes" | "true" | "y" | "t" | "x" => Ok(true),
                    "no" | "false" | "n" | "f" => Ok(false),
                    _ => Err(DataError::NotAMark {
                        path: path.to_owned(),
                        column: self.name.clone(),
                        value: level.clone(),
                    }),
                };
                let marks = names.levels.iter().map(mark).collect::<Result<Vec<bool>, _>>()?;
                Ok((0..names.len()).map(|row| names.code(row).is_some_and(|code| marks[code])).collect())
            }
        }
    }

    /// Whether the column duplicates the label in every labelled row, and would leak it.
    pub fn repeats(&self, labels: &Labels) -> bool {
        // With one class only, every constant column would be a copy.
        if labels.counts().iter().filter(|count| **count > 0).count() < 2 {
            return false;
        }
        let numbers: Vec<Option<f32>> = labels.names().iter().map(|name| name.trim().parse().ok()).collect();
        labels.labelled().all(|(row, class)| match &self.values {
            ColumnValues::Categorical(names) => {
                names.code(row).is_some_and(|code| names.levels()[code] == labels.name(class))
            }
            ColumnValues::Numeric(values) => numbers[class.index()] == Some(values[row]),
        })
    }

    /// The column, as what labelling may depend on.
    pub fn covariate(&self) -> Covariate {
        let values = match &self.values {
            ColumnValues::Numeric(values) => CovariateValues::Numeric(values.iter().map(|&v| f64::from(v)).collect()),
            ColumnValues::Categorical(names) => CovariateValues::Categorical {
                levels: names.levels.clone(),
                codes: names.codes.iter().map(|&code| (code != MISSING).then_some(code)).collect(),
            },
        };
        Covariate { name: self.name.clone(), values }
    }
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnValues {
    /// Finite numbers; NaN where missing.
    Numeric(Vec<f32>),
    /// Names.
    Categorical(Categories),
}

/// The values of a column of names.
#[derive(Clone, Debug, PartialEq)]
pub struct Categories {
    pub(crate) levels: Vec<String>,
    pub(crate) codes: Vec<u32>,
}

impl Categories {
    /// The distinct names: in numeric order if all are numbers, else alphabetical.
    pub fn levels(&self) -> &[String] {
        &self.levels
    }

    /// The position among the levels of the name in row `i` (from 0), or `None` where it is missing.
    pub fn code(&self, i: usize) -> Option<usize> {
        let code = self.codes[i];
        (code != MISSING).then_some(code as usize)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }
}

impl FeatureTable {
    /// Numeric features, one row per example; NaN where missing. `source_name` is what messages start with.
    pub fn from_numbers(names: Vec<String>, x: ArrayView2<'_, f64>, source_name: &str) -> Result<Self, DataError> {
        let mut columns = Vec::with_capacity(names.len());
        for (name, values) in names.into_iter().zip(x.columns()) {
            let mut column = ColumnBuilder::new(name, Wanted::Numeric);
            for (i, &value) in values.iter().enumerate() {
                column.push_number(value, &Place { path: source_name, row: i + 1 })?;
            }
            columns.push(column.finish(true, source_name)?.column);
        }
        Ok(Self::new(columns, x.nrows(), &[], source_name))
    }

    pub(crate) fn new(columns: Vec<FeatureColumn>, rows: usize, missing: &[String], source_name: &str) -> Self {
        Self { source: source_name.to_owned(), rows, columns, missing: missing.to_vec(), dates: Vec::new() }
    }

    /// Notes which columns are dates.
    pub(crate) fn with_dates(mut self, dates: Vec<(String, DateFormat)>) -> Self {
        self.dates = dates;
        self
    }

    pub(crate) fn dates(&self) -> &[(String, DateFormat)] {
        &self.dates
    }

    /// Where the table comes from, for messages.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The columns, in the order of the file.
    pub fn columns(&self) -> &[FeatureColumn] {
        &self.columns
    }

    /// The columns, as what labelling may depend on.
    pub fn covariates(&self) -> Result<Covariates, mnar::Error> {
        Covariates::new(self.columns.iter().map(FeatureColumn::covariate).collect())
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&FeatureColumn> {
        self.columns.iter().find(|column| column.name == name.trim())
    }

    /// A column that duplicates the label in every labelled row, and would leak it.
    pub fn copy_of_label(&self, labels: &Labels) -> Option<&str> {
        self.columns.iter().find(|column| column.repeats(labels)).map(|column| column.name.as_str())
    }

    pub(crate) fn missing(&self) -> &[String] {
        &self.missing
    }
}
