//! Features as they are in a file: each column holds numbers or names, and values may be missing.

use crate::error::{ColumnRole, DataError};
use crate::values::{Missing, settle};
use mnar::covariates::{Covariate, CovariateValues};
use mnar::{Covariates, Labels};
use ndarray::ArrayView2;
use std::collections::HashMap;

/// The code of a missing name.
const MISSING: u32 = u32::MAX;

/// Columns of numbers and of names, all of the same rows.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureTable {
    source: String,
    rows: usize,
    columns: Vec<FeatureColumn>,
    /// Further texts that mean missing, so that rows to predict are read like those for training.
    missing: Vec<String>,
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
    levels: Vec<String>,
    codes: Vec<u32>,
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
            columns.push(column.finish(true, source_name)?);
        }
        Ok(Self::new(columns, x.nrows(), &[], source_name))
    }

    pub(crate) fn new(columns: Vec<FeatureColumn>, rows: usize, missing: &[String], source_name: &str) -> Self {
        Self { source: source_name.to_owned(), rows, columns, missing: missing.to_vec() }
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
        let numbers: Vec<Option<f32>> = labels.names().iter().map(|name| name.trim().parse().ok()).collect();
        let repeats = |column: &&FeatureColumn| {
            labels.labelled().all(|(row, class)| match &column.values {
                ColumnValues::Categorical(names) => {
                    names.code(row).is_some_and(|code| names.levels()[code] == labels.name(class))
                }
                ColumnValues::Numeric(values) => numbers[class.index()] == Some(values[row]),
            })
        };
        // With one class only, every constant column would be a copy.
        if labels.counts().iter().filter(|count| **count > 0).count() < 2 {
            return None;
        }
        self.columns.iter().find(repeats).map(|column| column.name.as_str())
    }

    pub(crate) fn missing(&self) -> &[String] {
        &self.missing
    }
}

/// Which texts mean that a feature is missing: what the common tools write, and what the user adds. Unlike a
/// label, a feature called `NA` loses nothing by it: missing is a level of its own.
pub(crate) struct MissingFeature {
    named: Missing,
    numbers: Vec<f64>,
}

impl MissingFeature {
    pub(crate) fn new(values: &[String]) -> Self {
        let numbers = values.iter().filter_map(|value| value.trim().parse().ok()).collect();
        Self { named: Missing::new(values), numbers }
    }

    /// The trimmed value, or `None` where it is missing.
    pub(crate) fn present<'a>(&self, value: &'a str) -> Option<&'a str> {
        const USUAL: [&str; 7] = ["na", "nan", "n/a", "null", "none", "<na>", "#n/a"];
        let value = self.named.present(value)?;
        let usual = value.len() <= 4 && USUAL.iter().any(|usual| usual.eq_ignore_ascii_case(value));
        (!usual).then_some(value)
    }

    /// The number, or NaN where it means missing: `-999` may be named as such in a column of numbers too.
    pub(crate) fn number(&self, value: f64) -> f64 {
        if self.numbers.contains(&value) { f64::NAN } else { value }
    }
}

/// What a column is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Numbers if all values are numbers or all are booleans, else names.
    Inferred,
    Numeric,
    /// Names; `forced` where the user says so, no matter how many there are.
    Names {
        forced: bool,
    },
}

/// Where a value stands.
pub(crate) struct Place<'a> {
    pub(crate) path: &'a str,
    /// From 1.
    pub(crate) row: usize,
}

/// A column in the making.
pub(crate) struct ColumnBuilder {
    name: String,
    wanted: Wanted,
    values: Building,
}

enum Building {
    Numbers(Numbers),
    Texts(Texts),
}

/// Distinct numbers after which a column is numeric for good. Up to there its texts are kept, each once, so that
/// a text further down makes names of all of them; a column of codes has fewer, one of measurements soon more.
const UNDECIDED: usize = 4096;

impl ColumnBuilder {
    pub(crate) fn new(name: String, wanted: Wanted) -> Self {
        let values = match wanted {
            Wanted::Numeric => Building::Numbers(Numbers::default()),
            Wanted::Inferred | Wanted::Names { .. } => Building::Texts(Texts::default()),
        };
        Self { name, wanted, values }
    }

    pub(crate) fn push_text(&mut self, text: Option<&str>, place: &Place<'_>) -> Result<(), DataError> {
        match &mut self.values {
            Building::Texts(texts) => {
                texts.push(text);
                if self.wanted == Wanted::Inferred && texts.seen.len() > UNDECIDED && texts.all_numbers() {
                    self.values = Building::Numbers(texts.to_numbers(&self.name, place.path)?);
                }
                Ok(())
            }
            Building::Numbers(numbers) => match text.map(Seen::of) {
                None => numbers.push(f64::NAN, &self.name, place),
                Some(Seen::Number(value)) => numbers.push(value, &self.name, place),
                Some(Seen::Boolean(value)) if self.wanted == Wanted::Numeric => {
                    numbers.push(f64::from(u8::from(value)), &self.name, place)
                }
                Some(_) => Err(self.not_a_number(text.unwrap_or_default(), place)),
            },
        }
    }

    /// A number, NaN where missing.
    pub(crate) fn push_number(&mut self, value: f64, place: &Place<'_>) -> Result<(), DataError> {
        match &mut self.values {
            Building::Numbers(numbers) => numbers.push(value, &self.name, place),
            Building::Texts(texts) => {
                texts.push((!value.is_nan()).then(|| format!("{value:?}")).as_deref());
                Ok(())
            }
        }
    }

    fn not_a_number(&self, text: &str, place: &Place<'_>) -> DataError {
        let (path, column, value) = (place.path.to_owned(), self.name.clone(), text.to_owned());
        match self.wanted {
            Wanted::Numeric => DataError::NotANumber { path, row: place.row, column, value, role: ColumnRole::Learnt },
            _ => DataError::MixedColumn { path, row: place.row, column, value },
        }
    }

    /// The finished column. Columns for `training` are checked: something must be learnable from them.
    pub(crate) fn finish(self, training: bool, path: &str) -> Result<FeatureColumn, DataError> {
        let Self { name, wanted, values } = self;
        let values = match values {
            Building::Texts(texts) if wanted == Wanted::Inferred && (texts.all_numbers() || texts.all_booleans()) => {
                Building::Numbers(texts.to_numbers(&name, path)?)
            }
            other => other,
        };
        let values = match values {
            Building::Numbers(numbers) => {
                if training {
                    numbers.check_precision(&name, path)?;
                }
                ColumnValues::Numeric(numbers.values)
            }
            Building::Texts(texts) => {
                if training && wanted != (Wanted::Names { forced: true }) {
                    texts.check_levels(&name, path)?;
                }
                ColumnValues::Categorical(texts.into_categories())
            }
        };
        Ok(FeatureColumn { name, values })
    }
}

/// Numbers in the precision in which they are kept, and moments of the original values.
#[derive(Default)]
struct Numbers {
    values: Vec<f32>,
    n: f64,
    mean: f64,
    squares: f64,
    largest: f64,
}

impl Numbers {
    fn push(&mut self, value: f64, column: &str, place: &Place<'_>) -> Result<(), DataError> {
        let kept = value as f32;
        if kept.is_infinite() {
            let (path, row, column) = (place.path.to_owned(), place.row, column.to_owned());
            return Err(if value.is_infinite() {
                DataError::Infinite { path, row, column, value }
            } else {
                DataError::TooLarge { path, row, column, value }
            });
        }
        self.values.push(kept);
        if !value.is_nan() {
            self.n += 1.0;
            let step = value - self.mean;
            self.mean += step / self.n;
            self.squares += step * (value - self.mean);
            self.largest = self.largest.max(value.abs());
        }
        Ok(())
    }

    /// Seconds since 1970 are 1.8e9, and as `f32` multiples of 128: fine for years, but the minutes of one day
    /// would be gone. Refused where rounding moves values by more than a hundredth of their spread.
    fn check_precision(&self, column: &str, path: &str) -> Result<(), DataError> {
        let sd = (self.squares / self.n.max(1.0)).sqrt();
        let rounding = self.largest * f64::from(f32::EPSILON) / 2.0;
        // A constant column may show a spread of some 1e-16 of its value here.
        if sd > 1e-12 * self.largest && rounding > 0.01 * sd {
            let (path, column) = (path.to_owned(), column.to_owned());
            return Err(DataError::TooFine { path, column, mean: self.mean, sd });
        }
        Ok(())
    }
}

/// What a text could be.
#[derive(Clone, Copy)]
enum Seen {
    Number(f64),
    Boolean(bool),
    Text,
}

impl Seen {
    fn of(text: &str) -> Self {
        if let Ok(number) = text.parse() {
            Seen::Number(number)
        } else if text.eq_ignore_ascii_case("true") {
            Seen::Boolean(true)
        } else if text.eq_ignore_ascii_case("false") {
            Seen::Boolean(false)
        } else {
            Seen::Text
        }
    }
}

/// Texts, each kept once.
#[derive(Default)]
struct Texts {
    index: HashMap<String, u32>,
    seen: Vec<Seen>,
    /// How many of the distinct texts are numbers, and booleans.
    numbers: usize,
    booleans: usize,
    codes: Vec<u32>,
}

impl Texts {
    fn push(&mut self, text: Option<&str>) {
        let code = match text {
            None => MISSING,
            Some(text) => match self.index.get(text) {
                Some(&code) => code,
                None => {
                    let code = u32::try_from(self.seen.len())
                        .ok()
                        .filter(|&code| code < MISSING)
                        .expect("fewer than 2^32 - 1 distinct values");
                    self.index.insert(text.to_owned(), code);
                    let seen = Seen::of(text);
                    self.numbers += usize::from(matches!(seen, Seen::Number(_)));
                    self.booleans += usize::from(matches!(seen, Seen::Boolean(_)));
                    self.seen.push(seen);
                    code
                }
            },
        };
        self.codes.push(code);
    }

    fn all_numbers(&self) -> bool {
        self.numbers == self.seen.len()
    }

    fn all_booleans(&self) -> bool {
        self.booleans == self.seen.len()
    }

    fn to_numbers(&self, column: &str, path: &str) -> Result<Numbers, DataError> {
        let mut numbers = Numbers { values: Vec::with_capacity(self.codes.len()), ..Numbers::default() };
        for (i, &code) in self.codes.iter().enumerate() {
            let value = match self.seen.get(code as usize) {
                Some(Seen::Number(number)) => *number,
                Some(Seen::Boolean(boolean)) => f64::from(u8::from(*boolean)),
                Some(Seen::Text) | None => f64::NAN,
            };
            numbers.push(value, column, &Place { path, row: i + 1 })?;
        }
        Ok(numbers)
    }

    fn check_levels(&self, column: &str, path: &str) -> Result<(), DataError> {
        let rows = self.codes.iter().filter(|&&code| code != MISSING).count();
        let levels = self.seen.len();
        if levels > 100 && levels > rows / 2 {
            // Numbers except for a few cells are not identifiers: the odd cell is what is wrong.
            let odd = self.seen.iter().position(|seen| matches!(seen, Seen::Text));
            if let Some(code) = odd.filter(|_| 10 * self.numbers >= 9 * levels) {
                let text = self.index.iter().find(|(_, other)| **other as usize == code).map_or("", |(text, _)| text);
                let row = self.codes.iter().position(|&other| other as usize == code).map_or(0, |i| i + 1);
                let (path, column, value) = (path.to_owned(), column.to_owned(), text.to_owned());
                return Err(DataError::MixedColumn { path, row, column, value });
            }
            return Err(DataError::TooManyLevels { path: path.to_owned(), column: column.to_owned(), levels, rows });
        }
        Ok(())
    }

    fn into_categories(self) -> Categories {
        let (levels, order) = settle(&self.index);
        let mut codes = self.codes;
        for code in codes.iter_mut().filter(|code| **code != MISSING) {
            *code = order[*code as usize];
        }
        Categories { levels, codes }
    }
}
