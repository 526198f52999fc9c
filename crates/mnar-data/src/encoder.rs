//! Turns features into the numbers that a model takes.

use crate::columns::find;
use crate::dates::DateFormat;
use crate::error::{ColumnRole, DataError, list};
use crate::feature_table::{Categories, ColumnValues, FeatureColumn, FeatureTable};
use crate::note::Note;
use crate::values::LabelMatcher;
use ndarray::{Array2, ArrayView2};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// How the columns of a table become numbers. It is learnt from all rows, labelled or not, and saved with the model.
///
/// - Numbers: the difference from the mean in standard deviations; 0 where missing, and then 1 in a further
///   feature `name (missing)`, which is there if some number was missing in training.
/// - Names: one feature `name=level` per level, and `name (missing)` if some name was missing in training. A level
///   that came up once in training, or never, is 0 in all of them: nothing can be learnt from one row.
/// - What does not vary is left out, and listed by [`dropped`](Self::dropped).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableEncoder {
    columns: Vec<EncodedColumn>,
    dropped: Vec<String>,
    missing: Vec<String>,
    /// How dates are written in the columns that hold some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dates: Vec<(String, DateFormat)>,
}

/// A column of the table and what becomes of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EncodedColumn {
    /// Its name.
    pub name: String,
    /// What becomes of it.
    pub encoding: ColumnEncoding,
}

/// What becomes of a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnEncoding {
    /// Numbers.
    Numeric {
        /// The mean and standard deviation of the training rows; `None` where all numbers are the same, and only
        /// that some are missing is used.
        scale: Option<Scale>,
        /// Whether there is a feature for missing numbers.
        missing: bool,
    },
    /// Names.
    Categorical {
        /// The levels that have a feature.
        levels: Vec<String>,
        /// Whether there is a feature for missing names.
        missing: bool,
    },
}

/// Location and spread of a column of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    /// The mean.
    pub mean: f64,
    /// The standard deviation (of the rows themselves: divided by n).
    pub sd: f64,
}

impl EncodedColumn {
    fn width(&self) -> usize {
        match &self.encoding {
            ColumnEncoding::Numeric { scale, missing } => usize::from(scale.is_some()) + usize::from(*missing),
            ColumnEncoding::Categorical { levels, missing } => levels.len() + usize::from(*missing),
        }
    }

    fn feature_names(&self) -> Vec<String> {
        let (mut names, missing) = match &self.encoding {
            ColumnEncoding::Numeric { scale, missing } => {
                (scale.iter().map(|_| self.name.clone()).collect::<Vec<_>>(), *missing)
            }
            ColumnEncoding::Categorical { levels, missing } => {
                (levels.iter().map(|level| format!("{}={level}", self.name)).collect(), *missing)
            }
        };
        if missing {
            names.push(format!("{} (missing)", self.name));
        }
        names
    }
}

impl TableEncoder {
    /// Learns from all rows of a table.
    pub fn fit(table: &FeatureTable) -> Result<Self, DataError> {
        let (mut columns, mut dropped) = (Vec::new(), Vec::new());
        for column in table.columns() {
            match encoding_of(column, table.source())? {
                Some(encoding) => columns.push(EncodedColumn { name: column.name.clone(), encoding }),
                None => dropped.push(column.name.clone()),
            }
        }
        if columns.is_empty() {
            let path = table.source().to_owned();
            return Err(if dropped.is_empty() {
                DataError::NoFeatures { path }
            } else {
                DataError::AllConstant { path, dropped: list(&dropped) }
            });
        }
        let dates = table.dates().iter().filter(|(name, _)| columns.iter().any(|column| column.name == *name)).cloned();
        let dates = dates.collect();
        Ok(Self { columns, dropped, missing: table.missing().to_vec(), dates })
    }

    /// The features of a table, one row per row of the table. Columns that the encoder does not know are ignored.
    pub fn encode(&self, table: &FeatureTable) -> Result<Array2<f32>, DataError> {
        let (rows, width) = (table.len(), self.width());
        let mut first = 0;
        let mut steps = Vec::with_capacity(self.columns.len());
        for (column, step) in self.columns.iter().zip(self.steps(table)?) {
            steps.push((first, step));
            first += column.width();
        }
        let mut x = vec![0.0_f32; rows * width];
        // Blocks of rows stay in cache while column after column is filled in.
        const ROWS: usize = 1024;
        x.par_chunks_mut(ROWS * width).enumerate().for_each(|(block, x)| {
            for (first, step) in &steps {
                for (k, row) in x.chunks_exact_mut(width).enumerate() {
                    step.fill(block * ROWS + k, &mut row[*first..]);
                }
            }
        });
        Ok(Array2::from_shape_vec((rows, width), x).expect("one number per row and feature"))
    }

    /// One number per column from encoded features: standardised numbers, the position of a name among its levels, NaN where
    /// missing. It is what trees take, which split columns rather than weigh features.
    pub fn columns_of(&self, encoded: ArrayView2<'_, f32>) -> Array2<f64> {
        let widths = self.columns.iter().map(EncodedColumn::width);
        let starts: Vec<usize> = widths
            .scan(0, |next, width| {
                Some({
                    let start = *next;
                    *next += width;
                    start
                })
            })
            .collect();
        Array2::from_shape_fn((encoded.nrows(), self.columns.len()), |(row, j)| {
            let feature = |position: usize| encoded[(row, starts[j] + position)];
            match &self.columns[j].encoding {
                ColumnEncoding::Numeric { scale, missing }
                    if *missing && feature(usize::from(scale.is_some())) > 0.0 =>
                {
                    f64::NAN
                }
                ColumnEncoding::Numeric { scale: Some(_), .. } => f64::from(feature(0)),
                ColumnEncoding::Numeric { scale: None, .. } => 0.0,
                ColumnEncoding::Categorical { levels, .. } => {
                    (0..levels.len()).find(|&level| feature(level) > 0.0).map_or(f64::NAN, |level| level as f64)
                }
            }
        })
    }

    /// The positions of the columns that hold names.
    pub fn categorical(&self) -> Vec<usize> {
        let named = |j: &usize| matches!(self.columns[*j].encoding, ColumnEncoding::Categorical { .. });
        (0..self.columns.len()).filter(named).collect()
    }

    fn steps<'a>(&self, table: &'a FeatureTable) -> Result<Vec<Step<'a>>, DataError> {
        let names: Vec<String> = table.columns().iter().map(|column| column.name.clone()).collect();
        let step = |column: &EncodedColumn| {
            let found = find(&names, &column.name, table.source())?;
            Step::new(column, &table.columns()[found].values, table.source())
        };
        self.columns.iter().map(step).collect()
    }

    /// What rows to predict hold that the training rows did not show. The table has all columns.
    pub(crate) fn surprises(&self, table: &FeatureTable) -> Vec<Note> {
        let mut notes = Vec::new();
        for EncodedColumn { name, encoding } in &self.columns {
            match (encoding, table.column(name).map(|column| &column.values)) {
                (ColumnEncoding::Numeric { missing: false, .. }, Some(ColumnValues::Numeric(values))) => {
                    let rows = values.iter().filter(|value| value.is_nan()).count();
                    notes.extend((rows > 0).then(|| Note::NewGaps { column: name.clone(), rows }));
                }
                (ColumnEncoding::Categorical { levels, .. }, Some(ColumnValues::Categorical(names))) => {
                    let known = LabelMatcher::new(levels);
                    let new: Vec<bool> = names.levels().iter().map(|level| known.class(level).is_none()).collect();
                    let rows = || (0..names.len()).filter_map(|row| names.code(row)).filter(|&code| new[code]);
                    if let Some(first) = rows().next() {
                        let (column, example) = (name.clone(), names.levels()[first].clone());
                        notes.push(Note::NotLearnt { column, rows: rows().count(), example });
                    }
                }
                _ => {}
            }
        }
        notes
    }

    /// Checks that the table has all columns, each of its kind, and names all that it lacks.
    pub(crate) fn check_columns(&self, table: &FeatureTable) -> Result<(), DataError> {
        let problem = |column: &EncodedColumn| match table.column(&column.name) {
            Some(found) => Step::new(column, &found.values, table.source()).err(),
            None => {
                let names: Vec<String> = table.columns().iter().map(|column| column.name.clone()).collect();
                find(&names, &column.name, table.source()).err()
            }
        };
        let problems: Vec<DataError> = self.columns.iter().filter_map(problem).collect();
        if problems.is_empty() { Ok(()) } else { Err(DataError::all(problems, table.source())) }
    }

    /// Checks what no file of [`fit`](Self::fit) could hold, for an encoder that was read from a file.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.columns.is_empty() {
            return Err("the encoding has no columns");
        }
        let mut names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("a column is encoded twice");
        }
        self.columns.iter().try_for_each(|column| match &column.encoding {
            ColumnEncoding::Numeric { scale: Some(Scale { mean, sd }), .. }
                if !(mean.is_finite() && sd.is_finite() && *sd > 0.0) =>
            {
                Err("the mean of a column is not finite, or its standard deviation not above 0")
            }
            _ if column.width() == 0 => Err("a column has no features"),
            _ => Ok(()),
        })
    }

    /// Number of features.
    pub fn width(&self) -> usize {
        self.columns.iter().map(EncodedColumn::width).sum()
    }

    /// The names of the features.
    pub fn feature_names(&self) -> Vec<String> {
        self.columns.iter().flat_map(EncodedColumn::feature_names).collect()
    }

    /// Columns of the training table that do not vary, and are not used.
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// The columns that are used.
    pub fn columns(&self) -> &[EncodedColumn] {
        &self.columns
    }

    /// How dates are written in this column, if it held some.
    pub(crate) fn date_format(&self, column: &str) -> Option<DateFormat> {
        self.dates.iter().find(|(name, _)| name == column).map(|(_, format)| *format)
    }

    pub(crate) fn missing(&self) -> &[String] {
        &self.missing
    }
}

/// What becomes of a column; `None` if it does not vary.
pub(crate) fn encoding_of(column: &FeatureColumn, path: &str) -> Result<Option<ColumnEncoding>, DataError> {
    match &column.values {
        ColumnValues::Numeric(values) => Ok(fit_numeric(values)),
        ColumnValues::Categorical(names) => fit_categorical(names, &column.name, path),
    }
}

fn fit_numeric(values: &[f32]) -> Option<ColumnEncoding> {
    let present = || values.iter().filter(|value| !value.is_nan()).map(|&value| f64::from(value));
    let n = present().count();
    let missing = n < values.len();
    let (least, most) = present().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
    // Compared, not from the variance: 0.1 summed three times and divided by 3 is not 0.1.
    let scale = (least < most).then(|| {
        let mean = present().sum::<f64>() / n as f64;
        let sd = (present().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
        Scale { mean, sd }
    });
    // All missing is as constant as none missing.
    (scale.is_some() || (missing && n > 0)).then_some(ColumnEncoding::Numeric { scale, missing })
}

/// One-hot features of a column beyond which it is refused: with 200,000 rows, 1000 levels take 0.8 GB.
const MOST_LEVELS: usize = 1000;

fn fit_categorical(names: &Categories, column: &str, path: &str) -> Result<Option<ColumnEncoding>, DataError> {
    let mut counts = vec![0_usize; names.levels().len()];
    (0..names.len()).filter_map(|i| names.code(i)).for_each(|code| counts[code] += 1);
    let present: usize = counts.iter().sum();
    let missing = present < names.len() && present > 0;
    let levels: Vec<String> =
        names.levels().iter().zip(&counts).filter(|(_, count)| **count > 1).map(|(level, _)| level.clone()).collect();
    if levels.len() > MOST_LEVELS {
        return Err(DataError::TooManyLevels {
            path: path.to_owned(),
            column: column.to_owned(),
            levels: names.levels().len(),
            rows: present,
        });
    }
    let varies = missing || (!levels.is_empty() && counts.len() > 1);
    Ok(varies.then_some(ColumnEncoding::Categorical { levels, missing }))
}

/// A column of a table and how its rows become features.
enum Step<'a> {
    Numeric {
        values: &'a [f32],
        scale: Option<Scale>,
        missing: bool,
    },
    Categorical {
        names: &'a Categories,
        /// The feature of every level of the table, where it has one.
        features: Vec<Option<usize>>,
        missing: Option<usize>,
    },
}

impl<'a> Step<'a> {
    fn new(column: &EncodedColumn, values: &'a ColumnValues, path: &str) -> Result<Self, DataError> {
        let mismatch = |found: &str, expected: &'static str| DataError::ColumnType {
            path: path.to_owned(),
            column: column.name.clone(),
            found: found.to_owned(),
            role: ColumnRole::Learnt,
            expected,
        };
        match (&column.encoding, values) {
            (ColumnEncoding::Numeric { scale, missing }, ColumnValues::Numeric(values)) => {
                Ok(Step::Numeric { values, scale: *scale, missing: *missing })
            }
            (ColumnEncoding::Categorical { levels, missing }, ColumnValues::Categorical(names)) => {
                // A level written `1.0` by one tool and `1` by another is the same, as it is for labels.
                let known = LabelMatcher::new(levels);
                let features = names.levels().iter().map(|level| known.class(level).map(mnar::Class::index)).collect();
                Ok(Step::Categorical { names, features, missing: missing.then_some(levels.len()) })
            }
            (ColumnEncoding::Numeric { .. }, ColumnValues::Categorical(_)) => Err(mismatch("text", "numbers")),
            (ColumnEncoding::Categorical { .. }, ColumnValues::Numeric(_)) => Err(mismatch("number", "text")),
        }
    }

    /// Writes row `i`; `out` starts at the first feature of the column and holds zeros.
    fn fill(&self, i: usize, out: &mut [f32]) {
        match self {
            Step::Numeric { values, scale, missing } => {
                let value = values[i];
                if let (Some(scale), false) = (scale, value.is_nan()) {
                    out[0] = ((f64::from(value) - scale.mean) / scale.sd) as f32;
                }
                if *missing && value.is_nan() {
                    out[usize::from(scale.is_some())] = 1.0;
                }
            }
            Step::Categorical { names, features, missing } => {
                let feature = match names.code(i) {
                    Some(code) => features[code],
                    None => *missing,
                };
                if let Some(feature) = feature {
                    out[feature] = 1.0;
                }
            }
        }
    }
}
