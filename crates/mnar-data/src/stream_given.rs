//! Columns that labelling depends on, of predictions that stay in their Parquet file.

use crate::arrays::{
    Arrays, Spelling, TypedTable, days_of, is_date, is_number, is_text, numbers_of, texts_of, type_name,
};
use crate::batch::{Batch, Batches, batch_rows};
use crate::column_builder::MissingFeature;
use crate::columns::{Selection, find, twice};
use crate::dates::{self, DateFormat};
use crate::error::{ColumnRole, DataError};
use crate::stream::{LabelledRows, ParquetPredictions, Total, in_turn};
use crate::values::settle;
use arrow_array::ArrayRef;
use arrow_schema::DataType;
use mnar::covariates::{ColumnSummary, Covariate, CovariateValues, Grouping, Product, RowCounts, TermEncoder};
use mnar::kept::Keep;
use mnar::keys::Buckets;
use mnar::posteriors::Renormalised;
use mnar::rows::{Block, Rows, Sums};
use mnar::{Covariates, PosteriorKind};
use std::collections::HashMap;

/// [`ParquetPredictions`] with further numbers of every row: the terms of some columns of the same files, then the number of the
/// row's group, then that of its bucket. Names and moments of the columns come from one pass; their values are read again in
/// every pass, and never kept.
pub struct GivenPredictions<'a> {
    table: &'a ParquetPredictions,
    columns: Vec<GivenColumn>,
    /// Of the columns that have terms.
    summaries: Vec<ColumnSummary>,
    encoder: TermEncoder,
    groups: Option<Grouping>,
    buckets: Option<Buckets>,
    missing: MissingFeature,
}

/// What the rows have beside their probabilities and labels.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside<'a> {
    /// Columns that labelling depends on, such as `hospital` or `hospital*age`.
    pub given: &'a [String],
    /// A column that groups the rows.
    pub by: Option<&'a str>,
    /// Buckets that rows fall into at random.
    pub buckets: Option<Buckets>,
}

/// A column of the file.
struct GivenColumn {
    name: String,
    position: usize,
    values: Reading,
}

/// How the values of a column become numbers or names, as they do when a table is read into memory.
enum Reading {
    Numbers,
    Days,
    /// Texts that are all dates.
    DateTexts(DateFormat),
    /// The sorted names, and the position among them of every text.
    Names {
        levels: Vec<String>,
        codes: HashMap<String, u32>,
    },
}

/// Different texts that are kept while the names of a column are found. A column of more is one of identifiers.
const MOST_TEXTS: usize = 100_000;

/// What a mark of a missing value looks like among dates.
const MARKS: [&str; 2] = ["?", "."];

/// Numbers are kept with seven digits in memory, so they are here.
fn kept(value: f64, column: &str, path: &str, row: usize) -> Result<f64, DataError> {
    let kept = value as f32;
    if kept.is_infinite() {
        let (path, column) = (path.to_owned(), column.to_owned());
        return Err(match value.is_infinite() {
            true => DataError::Infinite { path, row, column, value },
            false => DataError::TooLarge { path, row, column, value },
        });
    }
    Ok(f64::from(kept))
}

impl ParquetPredictions {
    /// The same rows with more beside them, after a pass over the columns that this takes.
    pub fn with(&self, beside: Beside<'_>) -> Result<GivenPredictions<'_>, DataError> {
        let names = beside.given;
        let (header, path) = (self.files.header(), &self.shown);
        let (mut columns, mut products): (Vec<String>, Vec<Product>) = (Vec::new(), Vec::new());
        for name in names {
            let known = |name: &str| header.iter().any(|column| column == name.trim());
            match Product::parse(name, known).map_err(|error| DataError::core(path, error))? {
                None => columns.push(header[find(header, name, path)?].clone()),
                // In the order of `Covariates::select`, so that the terms have that of a table in memory.
                Some(product) => {
                    for part in [&product.first, &product.second] {
                        find(header, part, path)?;
                        if !names.contains(part) && !columns.contains(part) {
                            columns.push(part.clone());
                        }
                    }
                    products.push(product);
                }
            }
        }
        if let Some(column) = columns.iter().enumerate().find(|(i, name)| columns[..*i].contains(name)) {
            return Err(twice(path, column.1, "a given column", "another one"));
        }
        let mut given = GivenPredictions {
            table: self,
            columns: Vec::new(),
            summaries: Vec::new(),
            encoder: TermEncoder::default(),
            groups: None,
            buckets: beside.buckets,
            missing: MissingFeature::new(&self.missing),
        };
        let by = beside.by.map(|by| find(header, by, path).map(|by| header[by].clone())).transpose()?;
        let terms = columns.clone();
        columns.extend(by.iter().filter(|by| !terms.contains(by)).cloned());
        given.learn(&columns)?;
        if let Some(by) = &by {
            let column = given.summaries.iter().find(|column| column.name() == by);
            given.groups = Some(column.and_then(ColumnSummary::grouping).ok_or_else(|| {
                let why = "it has too many different numbers to be a column of groups".to_owned();
                DataError::core(path, mnar::Error::UnusableCovariate { name: by.clone(), why })
            })?);
        }
        given.summaries.retain(|column| terms.iter().any(|name| name == column.name()));
        let encoder = ColumnSummary::encoder(&given.summaries, products);
        given.encoder = encoder.map_err(|error| DataError::core(path, error))?;
        Ok(given)
    }
}

/// The values of a column in the first pass.
enum Learning {
    Numbers(ColumnSummary),
    Texts { codes: HashMap<String, u32>, rows: Vec<RowCounts>, missing: RowCounts },
}

impl GivenPredictions<'_> {
    /// The pass that finds the names, means and standard deviations of the columns.
    fn learn(&mut self, names: &[String]) -> Result<(), DataError> {
        if names.is_empty() {
            return Ok(());
        }
        let (table, path) = (self.table, &self.table.shown);
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let position = find(table.files.header(), name, path)?;
            let reading = reading(table.files.data_type(position), name, path)?;
            columns.push(GivenColumn { name: name.clone(), position, values: reading });
        }
        // The file hands its columns over in its own order.
        columns.sort_by_key(|column| column.position);
        let mut learning: Vec<Learning> = columns.iter().map(GivenColumn::learning).collect();
        let labels = Selection::texts(vec![table.selection.texts[0]]);
        in_turn(with_arrays(table, &labels, &columns)?, |(batch, arrays)| {
            let labels = table.classes.encode(&batch.texts[0], batch.first_row)?;
            let labelled = |i: usize| labels.get(i).is_some_and(Option::is_some);
            for ((column, learning), array) in columns.iter().zip(&mut learning).zip(&arrays) {
                column.learn(learning, array, batch.first_row, &labelled, &self.missing, path)?;
            }
            Ok(())
        })?;
        let mut summaries = Vec::with_capacity(columns.len());
        for (column, learning) in columns.iter_mut().zip(learning) {
            summaries.push(column.finish(learning));
        }
        // Terms come in the order in which the columns were asked for.
        summaries.sort_by_key(|summary: &ColumnSummary| names.iter().position(|name| name == summary.name()));
        (self.columns, self.summaries) = (columns, summaries);
        Ok(())
    }

    /// The groups of the rows.
    pub fn groups(&self) -> Option<&Grouping> {
        self.groups.as_ref()
    }

    /// What the pass over each column that has terms told.
    pub fn columns(&self) -> &[ColumnSummary] {
        &self.summaries
    }

    /// The terms of the columns.
    pub fn encoder(&self) -> &TermEncoder {
        &self.encoder
    }

    /// The terms and groups of some rows.
    fn numbers(&self, arrays: &[ArrayRef], first_row: usize) -> Result<Vec<Vec<f64>>, DataError> {
        let path = &self.table.shown;
        let covariates = self.columns.iter().zip(arrays).map(|(column, array)| {
            let values = column.values(array, first_row, &self.missing, path)?;
            Ok(Covariate { name: column.name.clone(), values })
        });
        let covariates = Covariates::new(covariates.collect::<Result<_, DataError>>()?);
        let numbers = covariates.and_then(|covariates| {
            let mut numbers = self.encoder.terms(&covariates)?;
            if let Some(groups) = &self.groups {
                numbers.push(groups.of(covariates.get(&groups.column)?)?);
            }
            Ok(numbers)
        });
        numbers.map_err(|error| DataError::core(path, error))
    }

    /// One pass over the selected columns, the terms and the groups.
    fn walk(
        &self,
        selection: &Selection,
        mut visit: impl FnMut(Batch, &[&[f64]]) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let items = with_arrays(self.table, selection, &self.columns)?.map(|item| {
            let (batch, arrays) = item?;
            let numbers = self.numbers(&arrays, batch.first_row)?;
            Ok((batch, numbers))
        });
        in_turn(items, |(batch, numbers)| {
            let numbers: Vec<&[f64]> = numbers.iter().map(Vec::as_slice).collect();
            visit(batch, &numbers)
        })
    }

    /// One pass over the labels, the names of the rows and the terms, without the probabilities.
    pub fn walk_labels(
        &self,
        mut visit: impl FnMut(LabelledRows<'_>) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let texts = Selection::texts(self.table.selection.texts.clone());
        let terms = self.encoder.n_terms();
        self.walk(&texts, |batch, numbers| self.table.visit_labels(&batch, &numbers[..terms], &mut visit))
    }
}

type ArraysBeside = Box<dyn Iterator<Item = Result<(Batch, Vec<ArrayRef>), DataError>> + Send>;

/// Batches of the selected columns, with the arrays of the others of the same rows.
fn with_arrays(
    table: &ParquetPredictions,
    selection: &Selection,
    columns: &[GivenColumn],
) -> Result<ArraysBeside, DataError> {
    let positions: Vec<usize> = columns.iter().map(|column| column.position).collect();
    let batches: Batches = table.files.batches(selection)?;
    if positions.is_empty() {
        return Ok(Box::new(batches.map(|batch| Ok((batch?, Vec::new())))) as ArraysBeside);
    }
    // As many rows at a time as the batches have.
    let mut arrays: Arrays = Box::new(table.files.clone()).arrays(&positions, batch_rows(selection.width()))?;
    let path = table.shown.clone();
    Ok(Box::new(batches.map(move |batch| {
        let batch = batch?;
        let differ = || DataError::parquet(&path, "its columns differ in length");
        let arrays = arrays.next().ok_or_else(differ)??;
        match arrays.iter().all(|array| array.len() == batch.rows) {
            true => Ok((batch, arrays)),
            false => Err(differ()),
        }
    })))
}

fn reading(data_type: &DataType, column: &str, path: &str) -> Result<Reading, DataError> {
    match data_type {
        found if is_number(found) => Ok(Reading::Numbers),
        found if is_date(found) => Ok(Reading::Days),
        found if is_text(found) => Ok(Reading::Names { levels: Vec::new(), codes: HashMap::new() }),
        found => Err(DataError::ColumnType {
            path: path.to_owned(),
            column: column.to_owned(),
            found: type_name(found),
            role: ColumnRole::Feature,
            expected: "a number, a boolean, a date or text",
        }),
    }
}

impl GivenColumn {
    fn learning(&self) -> Learning {
        match self.values {
            Reading::Numbers | Reading::Days => Learning::Numbers(ColumnSummary::numeric(&self.name)),
            Reading::DateTexts(_) | Reading::Names { .. } => {
                Learning::Texts { codes: HashMap::new(), rows: Vec::new(), missing: RowCounts::default() }
            }
        }
    }

    fn learn(
        &self,
        learning: &mut Learning,
        array: &ArrayRef,
        first_row: usize,
        labelled: &dyn Fn(usize) -> bool,
        missing: &MissingFeature,
        path: &str,
    ) -> Result<(), DataError> {
        match learning {
            Learning::Numbers(summary) => {
                let values = self.numbers(array, first_row, missing, path)?;
                values.into_iter().enumerate().for_each(|(i, value)| summary.add(value, labelled(i), 1));
            }
            Learning::Texts { codes, rows, missing: without } => {
                for (i, text) in texts_of(array, Spelling::Parquet, path)?.iter().enumerate() {
                    let Some(text) = text.and_then(|text| missing.present(text)) else {
                        without.add(labelled(i), 1);
                        continue;
                    };
                    let code = match codes.get(text) {
                        Some(&code) => code as usize,
                        None => {
                            if codes.len() == MOST_TEXTS {
                                return Err(self.too_many(path));
                            }
                            codes.insert(text.to_owned(), rows.len() as u32);
                            rows.push(RowCounts::default());
                            rows.len() - 1
                        }
                    };
                    rows[code].add(labelled(i), 1);
                }
            }
        }
        Ok(())
    }

    fn too_many(&self, path: &str) -> DataError {
        let why = format!(
            "it has more than {MOST_TEXTS} different values, as an identifier has: there is nothing to learn from it"
        );
        DataError::core(path, mnar::Error::UnusableCovariate { name: self.name.clone(), why })
    }

    /// Settles how the column is read from now on.
    fn finish(&mut self, learning: Learning) -> ColumnSummary {
        let (codes, rows, missing) = match learning {
            Learning::Numbers(summary) => return summary,
            Learning::Texts { codes, rows, missing } => (codes, rows, missing),
        };
        let texts = codes.keys().map(String::as_str).filter(|text| !MARKS.contains(text));
        if let Some((format, _)) = dates::format_of(texts) {
            let mut summary = ColumnSummary::numeric(&self.name);
            let mut values: Vec<(f64, RowCounts)> =
                codes.iter().map(|(text, &code)| (date(text, format), rows[code as usize])).collect();
            // In a fixed order: that of a hash map differs from run to run, and so would the last digit of the mean.
            values.sort_by(|a, b| a.0.total_cmp(&b.0));
            values.push((f64::NAN, missing));
            for (value, rows) in values {
                summary.add(value, true, rows.labelled);
                summary.add(value, false, rows.unlabelled);
            }
            self.values = Reading::DateTexts(format);
            return summary;
        }
        let (levels, order) = settle(&codes);
        let mut counts = vec![RowCounts::default(); levels.len()];
        for (code, rows) in rows.iter().enumerate() {
            counts[order[code] as usize].add(true, rows.labelled);
            counts[order[code] as usize].add(false, rows.unlabelled);
        }
        let codes = codes.into_iter().map(|(text, code)| (text, order[code as usize])).collect();
        self.values = Reading::Names { levels: levels.clone(), codes };
        ColumnSummary::categorical(&self.name, levels.into_iter().zip(counts).collect(), missing)
    }

    /// The values of some rows.
    fn values(
        &self,
        array: &ArrayRef,
        first_row: usize,
        missing: &MissingFeature,
        path: &str,
    ) -> Result<CovariateValues, DataError> {
        let Reading::Names { levels, codes } = &self.values else {
            return Ok(CovariateValues::Numeric(self.numbers(array, first_row, missing, path)?));
        };
        let texts = texts_of(array, Spelling::Parquet, path)?;
        let code = |text: Option<&str>| codes.get(text.and_then(|text| missing.present(text))?).copied();
        let codes = texts.iter().map(code).collect();
        Ok(CovariateValues::Categorical { levels: levels.clone(), codes })
    }

    /// The numbers of some rows, NaN where missing.
    fn numbers(
        &self,
        array: &ArrayRef,
        first_row: usize,
        missing: &MissingFeature,
        path: &str,
    ) -> Result<Vec<f64>, DataError> {
        let keep = |(i, value): (usize, f64)| kept(value, &self.name, path, first_row + i + 1);
        match self.values {
            Reading::Numbers => {
                let number = |value: Option<f64>| value.map_or(f64::NAN, |value| missing.number(value));
                numbers_of(array).iter().map(number).enumerate().map(keep).collect()
            }
            Reading::Days => days_of(array).map(|day| day.unwrap_or(f64::NAN)).enumerate().map(keep).collect(),
            Reading::DateTexts(format) => {
                let texts = texts_of(array, Spelling::Parquet, path)?;
                let day = |text: Option<&str>| {
                    text.and_then(|text| missing.present(text)).map_or(f64::NAN, |text| date(text, format))
                };
                Ok(texts.iter().map(day).collect())
            }
            Reading::Names { .. } => Ok(Vec::new()),
        }
    }
}

/// A date as a number, with as many digits as other numbers; NaN for a mark of a missing value.
fn date(text: &str, format: DateFormat) -> f64 {
    dates::parse(text, format).map_or(f64::NAN, |day| f64::from(day as f32))
}

impl Rows for GivenPredictions<'_> {
    fn names(&self) -> &[String] {
        self.table.names()
    }

    fn kind(&self) -> PosteriorKind {
        self.table.kind()
    }

    fn renormalised(&self) -> Renormalised {
        self.table.renormalised()
    }

    fn keep(&self) -> Keep {
        self.table.keep()
    }

    fn scan<S: Sums>(&self, zero: &S) -> Result<S, mnar::Error> {
        let (mut total, mut renormalised) = (Total::new(zero), Renormalised::default());
        let scanned = self.walk(&self.table.scanned(), |batch, numbers| {
            let first_row = batch.first_row;
            let found = self.table.visit(batch, |columns, labels| {
                let buckets = self.buckets.map(|buckets| buckets.of_rows(columns, first_row));
                let given: Vec<&[f64]> = numbers.iter().copied().chain(buckets.as_deref()).collect();
                total.add(&Block { columns, labels, weights: None, given: &given });
            })?;
            renormalised.merge(found);
            Ok(())
        });
        scanned.map_err(|error| mnar::Error::Source(Box::new(error)))?;
        self.table.has_checked(renormalised);
        Ok(total.sums)
    }
}
