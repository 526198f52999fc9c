//! Columns that labelling depends on, of predictions that stay in their Parquet file.

use crate::arrays::{
    Arrays, Spelling, TypedTable, days_of, is_date, is_number, is_text, numbers_of, texts_of, type_name,
};
use crate::batch::{Batch, Batches, batch_rows};
use crate::column_builder::MissingFeature;
use crate::columns::{Selection, find, twice};
use crate::dates::{self, DateFormat};
use crate::error::{ColumnRole, DataError};
use crate::stream::{LabelledRows, ParquetPredictions, in_turn};
use crate::values::settle;
use arrow_array::ArrayRef;
use arrow_schema::DataType;
use mnar::covariates::{ColumnSummary, Covariate, CovariateValues, Product, RowCounts, TermEncoder};
use mnar::posteriors::Renormalised;
use mnar::rows::{Block, Rows, Sums, scan_block};
use mnar::{Covariates, PosteriorKind};
use std::collections::HashMap;

/// [`ParquetPredictions`] with the terms of some columns of the same file. Names and moments of the columns come from one pass;
/// their values are read again in every pass, and never kept.
pub struct GivenPredictions<'a> {
    table: &'a ParquetPredictions,
    columns: Vec<GivenColumn>,
    summaries: Vec<ColumnSummary>,
    encoder: TermEncoder,
    missing: MissingFeature,
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
    /// The same rows with columns that labelling depends on, such as `hospital` or `hospital*age`, after a pass over these.
    pub fn given(&self, names: &[String]) -> Result<GivenPredictions<'_>, DataError> {
        let (header, path) = (self.file.footer.header(), &self.file.shown);
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
            missing: MissingFeature::new(&self.missing),
        };
        given.learn(&columns)?;
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
        let (table, path) = (self.table, &self.table.file.shown);
        let types = table.file.again()?;
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let position = find(table.file.footer.header(), name, path)?;
            let reading = reading(types.data_type(position), name, path)?;
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

    /// What the pass over each column told.
    pub fn columns(&self) -> &[ColumnSummary] {
        &self.summaries
    }

    /// The terms of the columns.
    pub fn encoder(&self) -> &TermEncoder {
        &self.encoder
    }

    /// The terms of some rows.
    fn terms(&self, arrays: &[ArrayRef], first_row: usize) -> Result<Vec<Vec<f64>>, DataError> {
        let path = &self.table.file.shown;
        let covariates = self.columns.iter().zip(arrays).map(|(column, array)| {
            let values = column.values(array, first_row, &self.missing, path)?;
            Ok(Covariate { name: column.name.clone(), values })
        });
        let covariates = Covariates::new(covariates.collect::<Result<_, DataError>>()?);
        let terms = covariates.and_then(|covariates| self.encoder.terms(&covariates));
        terms.map_err(|error| DataError::core(path, error))
    }

    /// One pass over the selected columns and the terms.
    fn walk(
        &self,
        selection: &Selection,
        mut visit: impl FnMut(Batch, &[&[f64]]) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let items = with_arrays(self.table, selection, &self.columns)?.map(|item| {
            let (batch, arrays) = item?;
            let terms = self.terms(&arrays, batch.first_row)?;
            Ok((batch, terms))
        });
        in_turn(items, |(batch, terms)| {
            let terms: Vec<&[f64]> = terms.iter().map(Vec::as_slice).collect();
            visit(batch, &terms)
        })
    }

    /// One pass over the labels, the names of the rows and the terms, without the probabilities.
    pub fn walk_labels(
        &self,
        mut visit: impl FnMut(LabelledRows<'_>) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let texts = Selection::texts(self.table.selection.texts.clone());
        self.walk(&texts, |batch, terms| self.table.visit_labels(&batch, terms, &mut visit))
    }
}

/// Batches of the selected columns, with the arrays of the others of the same rows.
fn with_arrays(
    table: &ParquetPredictions,
    selection: &Selection,
    columns: &[GivenColumn],
) -> Result<impl Iterator<Item = Result<(Batch, Vec<ArrayRef>), DataError>> + Send + use<>, DataError> {
    let positions: Vec<usize> = columns.iter().map(|column| column.position).collect();
    let batches: Batches = table.file.batches(selection)?;
    // As many rows at a time as the batches have.
    let mut arrays: Arrays = Box::new(table.file.again()?).arrays(&positions, batch_rows(selection.width()))?;
    let path = table.file.shown.clone();
    Ok(batches.map(move |batch| {
        let batch = batch?;
        let differ = || DataError::parquet(&path, "its columns differ in length");
        let arrays = arrays.next().ok_or_else(differ)??;
        match arrays.iter().all(|array| array.len() == batch.rows) {
            true => Ok((batch, arrays)),
            false => Err(differ()),
        }
    }))
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

    fn scan<S: Sums>(&self, zero: &S) -> Result<S, mnar::Error> {
        let mut total: Option<S> = None;
        let scanned = self.walk(&self.table.selection, |batch, given| {
            self.table.visit(batch, |columns, labels, _| {
                let sums = scan_block(&Block { columns, labels, weights: None, given }, zero);
                match &mut total {
                    Some(total) => total.merge(sums),
                    None => total = Some(sums),
                }
            })
        });
        scanned.map_err(|error| mnar::Error::Source(Box::new(error)))?;
        Ok(total.unwrap_or_else(|| zero.clone()))
    }
}
