//! Passes over rows that lie in several places, such as the partitions of Spark: the place of the rows adds them up, and the
//! driver puts the parts together.

use crate::arrays::word;
use crate::errors::{Kind, exception, of_statistics};
use crate::mechanism::{json, settings};
use mnar::analysis::{About, EstimateSettings, IntervalMethod, StreamedColumns, StreamedGroups, TestSettings};
use mnar::calibrate::ColumnCalibration;
use mnar::covariates::{ColumnSummary, Covariate, CovariateValues, Grouping, Product, RowCounts, TermEncoder};
use mnar::evaluate::{EvaluateSettings, StreamedModel};
use mnar::keys::Buckets;
use mnar::posteriors::{check_rows, softmax_rows};
use mnar::rows::{Block, Sums};
use mnar::travel::{Census, Partitions, Walk, WalkRows};
use mnar::{Class, Covariates, PosteriorKind, Rows};
use mnar_report::{estimate_text, evaluate_text, test_text};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;

/// A column of some rows, as Python hands it over: numbers with NaN where missing, or names and the place of every row's name
/// among them, −1 where missing.
#[derive(FromPyObject)]
pub(crate) enum Values<'py> {
    Numbers(PyReadonlyArray1<'py, f64>),
    Names(Vec<String>, PyReadonlyArray1<'py, i64>),
}

type Column<'py> = (String, Values<'py>);

impl Values<'_> {
    fn covariate(&self, name: &str) -> Covariate {
        let values = match self {
            Self::Numbers(values) => CovariateValues::Numeric(values.as_array().to_vec()),
            Self::Names(levels, codes) => {
                let code = |code: &i64| u32::try_from(*code).ok().filter(|code| (*code as usize) < levels.len());
                CovariateValues::Categorical {
                    levels: levels.clone(),
                    codes: codes.as_array().iter().map(code).collect(),
                }
            }
        };
        Covariate { name: name.to_owned(), values }
    }
}

/// How the rows of a batch are read beside their probabilities and labels.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Reader {
    /// Whether numbers are logits.
    logits: bool,
    /// The terms of columns that labelling depends on.
    terms: Option<TermEncoder>,
    /// The groups of a column; the number of a row's group follows its terms.
    groups: Option<Grouping>,
    /// The same for the folds.
    folds: Option<Grouping>,
    /// How many buckets rows fall into at random, and the seed: the number of a row's bucket comes last.
    buckets: Option<(u32, u64)>,
}

impl Reader {
    /// The given columns of some rows.
    fn given(&self, columns: &[Column<'_>], rows: usize) -> Result<Vec<Vec<f64>>, mnar::Error> {
        let covariates: Vec<Covariate> = columns.iter().map(|(name, values)| values.covariate(name)).collect();
        let covariates = Covariates::new(covariates)?;
        let mut given = match &self.terms {
            Some(encoder) => encoder.terms(&covariates)?,
            None => Vec::new(),
        };
        for grouping in self.groups.iter().chain(&self.folds) {
            given.push(grouping.of(covariates.get(&grouping.column)?)?);
        }
        match given.iter().find(|column| column.len() != rows) {
            None => Ok(given),
            Some(column) => Err(mnar::Error::LengthMismatch {
                what: "a column that labelling may depend on",
                found: column.len(),
                expected: rows,
            }),
        }
    }

    fn terms(&self) -> usize {
        self.terms.as_ref().map_or(0, TermEncoder::n_terms)
    }
}

/// Copies the probabilities, checks them, and returns what was done to rows slightly off the simplex.
fn probabilities(
    columns: &[PyReadonlyArray1<'_, f64>],
    logits: bool,
    first_row: usize,
) -> Result<(Vec<Vec<f64>>, mnar::posteriors::Renormalised), mnar::Error> {
    let mut numbers: Vec<Vec<f64>> = columns.iter().map(|column| column.as_array().to_vec()).collect();
    let mut slices: Vec<&mut [f64]> = numbers.iter_mut().map(Vec::as_mut_slice).collect();
    if logits {
        softmax_rows(&mut slices, first_row)?;
    }
    let drift = check_rows(&mut slices, first_row)?;
    Ok((numbers, drift))
}

/// The first look at the rows of one place.
#[pyclass(module = "mnar._native")]
pub(crate) struct RowCensus {
    census: Census,
    logits: bool,
}

#[pymethods]
impl RowCensus {
    #[new]
    fn new(logits: bool) -> Self {
        Self { census: Census::default(), logits }
    }

    /// Adds rows: their probabilities, whether each is labelled, and the columns that labelling depends on or that group them.
    fn update(
        &mut self,
        py: Python<'_>,
        probabilities: Vec<PyReadonlyArray1<'_, f64>>,
        labelled: PyReadonlyArray1<'_, bool>,
        columns: Vec<Column<'_>>,
    ) -> PyResult<()> {
        let found = self::probabilities(&probabilities, self.logits, self.census.rows);
        let (_, drift) = found.map_err(|error| of_statistics(py, &error))?;
        let labelled = labelled.as_array();
        self.census.rows += labelled.len();
        self.census.renormalised.merge(drift);
        if self.census.columns.is_empty() {
            self.census.columns = columns.iter().map(|(name, values)| values.summary(name)).collect();
        }
        for (summary, (_, values)) in self.census.columns.iter_mut().zip(&columns) {
            match values {
                Values::Numbers(values) => {
                    values.as_array().iter().zip(labelled).for_each(|(&value, &seen)| summary.add(value, seen, 1));
                }
                Values::Names(levels, codes) => {
                    // The last one is for missing names.
                    let mut counts = vec![RowCounts::default(); levels.len() + 1];
                    for (&code, &seen) in codes.as_array().iter().zip(labelled) {
                        let at = usize::try_from(code).map_or(levels.len(), |code| code.min(levels.len()));
                        counts[at].add(seen, 1);
                    }
                    for (at, counts) in counts.into_iter().enumerate() {
                        summary.add_name(levels.get(at).map(String::as_str), counts);
                    }
                }
            }
        }
        Ok(())
    }

    /// What was found, for the driver.
    fn finish<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.census.to_bytes())
    }
}

impl Values<'_> {
    fn summary(&self, name: &str) -> ColumnSummary {
        match self {
            Self::Numbers(_) => ColumnSummary::numeric(name),
            Self::Names(..) => ColumnSummary::categorical(name, Vec::new(), RowCounts::default()),
        }
    }
}

/// The sums of one pass over the rows of one place.
#[pyclass(module = "mnar._native")]
pub(crate) struct Accumulator {
    zero: Walk,
    total: Option<Walk>,
    reader: Reader,
    rows: usize,
}

#[pymethods]
impl Accumulator {
    #[new]
    fn new(py: Python<'_>, job: &[u8], reader: &str) -> PyResult<Self> {
        let zero = Walk::from_bytes(job).map_err(|error| of_statistics(py, &error))?;
        Ok(Self { zero, total: None, reader: settings(py, reader)?, rows: 0 })
    }

    /// Which rows the pass looks at: "all", "labelled" or "unlabelled".
    #[getter]
    fn needs(&self) -> &'static str {
        match self.zero.rows() {
            WalkRows::All => "all",
            WalkRows::Labelled => "labelled",
            WalkRows::Unlabelled => "unlabelled",
        }
    }

    /// Adds rows: their probabilities, the numbers of their classes (negative without a label), and their columns.
    fn update(
        &mut self,
        py: Python<'_>,
        probabilities: Vec<PyReadonlyArray1<'_, f64>>,
        codes: PyReadonlyArray1<'_, i64>,
        columns: Vec<Column<'_>>,
    ) -> PyResult<()> {
        let labels: Vec<Option<Class>> =
            codes.as_array().iter().map(|&code| u32::try_from(code).ok().map(Class)).collect();
        let strange = labels.iter().flatten().any(|class| class.index() >= probabilities.len());
        if strange || probabilities.iter().any(|column| column.as_array().len() != labels.len()) {
            let message = "one number per class and row is needed, and labels among these classes".to_owned();
            return Err(exception(py, Kind::Input, message));
        }
        let added = self.add(&probabilities, &labels, &columns);
        added.map_err(|error| of_statistics(py, &error))
    }

    /// Adds the sums of another accumulator of the same pass, as it finished them.
    fn merge(&mut self, py: Python<'_>, other: &[u8]) -> PyResult<()> {
        let other = self.zero.clone().with_parts(&[other]).map_err(|error| of_statistics(py, &error))?;
        self.put(other);
        Ok(())
    }

    /// The sums, for the driver.
    fn finish<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.total.as_ref().unwrap_or(&self.zero).to_bytes())
    }
}

impl Accumulator {
    fn add(
        &mut self,
        columns: &[PyReadonlyArray1<'_, f64>],
        labels: &[Option<Class>],
        given: &[Column<'_>],
    ) -> Result<(), mnar::Error> {
        let (numbers, _) = probabilities(columns, self.reader.logits, self.rows)?;
        let mut given = self.reader.given(given, labels.len())?;
        let numbers: Vec<&[f64]> = numbers.iter().map(Vec::as_slice).collect();
        if let Some((count, seed)) = self.reader.buckets {
            given.push(Buckets { count, seed }.of_rows(&numbers, self.rows));
        }
        self.rows += labels.len();
        let mut sums = self.zero.clone();
        sums.add(&Block {
            columns: &numbers,
            labels,
            weights: None,
            given: &given.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        });
        self.put(sums);
        Ok(())
    }

    fn put(&mut self, sums: Walk) {
        match &mut self.total {
            Some(total) => total.merge(sums),
            None => self.total = Some(sums),
        }
    }
}

/// What the driver knows about the rows after the first look at them.
#[pyclass(module = "mnar._native", frozen)]
pub(crate) struct Everywhere {
    census: Census,
    about: About,
    reader: Reader,
    kind: PosteriorKind,
    /// Gets the bytes of a pass and the reader, and returns the bytes of all parts.
    walk: Py<PyAny>,
}

/// What was raised while rows were passed over.
type Raised = Mutex<Option<PyErr>>;

#[pymethods]
impl Everywhere {
    /// From the parts of a census. `counts` are the labels of each class; `given` are columns and products of columns.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "Python passes them by name")]
    #[pyo3(signature = (parts, classes, counts, posterior, logits, given, by, fold, walk))]
    fn new(
        py: Python<'_>,
        parts: Vec<Vec<u8>>,
        classes: Vec<String>,
        counts: Vec<usize>,
        posterior: &str,
        logits: bool,
        given: Vec<String>,
        by: Option<&str>,
        fold: Option<&str>,
        walk: Py<PyAny>,
    ) -> PyResult<Self> {
        let wrong = |error: mnar::Error| of_statistics(py, &error);
        let census = Census::of_parts(&parts).map_err(wrong)?;
        let n_labelled = counts.iter().sum();
        let about = About { classes, n: census.rows, n_labelled, labelled_per_class: counts };
        let mut reader = Reader { logits, ..Reader::default() };
        if !given.is_empty() {
            reader.terms = Some(terms(&census.columns, &given).map_err(wrong)?);
        }
        let grouping = |name: &str, what: &str| {
            let column = summary(&census.columns, name).map_err(wrong)?;
            column.grouping().ok_or_else(|| {
                let message = format!("{what} `{name}` has thousands of different numbers; give a column of groups");
                exception(py, Kind::Input, message)
            })
        };
        reader.groups = by.map(|name| grouping(name, "by")).transpose()?;
        reader.folds = fold.map(|name| grouping(name, "fold")).transpose()?;
        Ok(Self { census, about, reader, kind: word(py, "posterior", posterior)?, walk })
    }

    /// How places read their rows, for [`Accumulator`].
    fn reader(&self, py: Python<'_>) -> PyResult<String> {
        json(py, &self.reader)
    }

    /// The estimate as JSON and as text.
    fn estimate(&self, py: Python<'_>, options: &str) -> PyResult<(String, String)> {
        let settings: EstimateSettings = settings(py, options)?;
        // Rows that a bootstrap draws need keys.
        let drawn = settings.interval == IntervalMethod::Bootstrap && self.reader.terms.is_none();
        let Buckets { count, seed } = Buckets::of_bootstrap(settings.seed);
        let reader = Reader { buckets: drawn.then_some((count, seed)), ..self.reader.clone() };
        self.pass(py, &reader, |rows| {
            let plain = match drawn {
                true => settings.run_streamed_bootstrap(rows, self.last(), self.about.clone())?,
                false => self.estimated(&settings, rows)?,
            };
            let found = match &self.reader.groups {
                Some(groups) => {
                    plain.by_streamed_groups(rows, StreamedGroups { groups, column: self.reader.terms() })?
                }
                None => plain,
            };
            let text = estimate_text(&found, &settings, |_| None);
            Ok((found, text))
        })
        .and_then(|(found, text)| Ok((json(py, &found)?, text)))
    }

    /// The evaluation of the model behind the probabilities, as JSON and as text.
    fn evaluate(&self, py: Python<'_>, options: &str, name: &str) -> PyResult<(String, String)> {
        let settings: EvaluateSettings = settings(py, options)?;
        let estimate = settings.mechanism(self.kind).map_err(|error| of_statistics(py, &error))?;
        let Buckets { count, seed } = Buckets::of_jackknife(settings.estimate.seed);
        let reader = Reader { buckets: Some((count, seed)), ..self.reader.clone() };
        self.pass(py, &reader, |rows| {
            let found = self.estimated(&estimate, rows)?;
            let groups = self.reader.groups.as_ref().map(|groups| (groups, self.reader.terms()));
            let model = StreamedModel { name, groups, buckets: (self.last(), count as usize) };
            settings.run_streamed(found, rows, model)
        })
        .and_then(|found| Ok((json(py, &found)?, evaluate_text(&found))))
    }

    /// The test as JSON and as text.
    fn test(&self, py: Python<'_>, options: &str) -> PyResult<(String, String)> {
        let settings: TestSettings = settings(py, options)?;
        let folds = self.reader.folds.as_ref().map(|folds| {
            let before = self.reader.terms() + usize::from(self.reader.groups.is_some());
            (before, folds.names.len())
        });
        self.pass(py, &self.reader, |rows| {
            let found = settings.run_streamed(rows, self.about.clone(), folds)?;
            let text = test_text(&found, &settings, false, |_| None);
            Ok((found, text))
        })
        .and_then(|(found, text)| Ok((json(py, &found)?, text)))
    }
}

impl Everywhere {
    /// The position of what comes after the terms, the group and the fold of a row.
    fn last(&self) -> usize {
        let reader = &self.reader;
        reader.terms() + usize::from(reader.groups.is_some()) + usize::from(reader.folds.is_some())
    }

    fn estimated<R: Rows>(
        &self,
        settings: &EstimateSettings,
        rows: &R,
    ) -> Result<mnar::analysis::Findings, mnar::Error> {
        match &self.reader.terms {
            Some(encoder) => {
                let columns: Vec<ColumnSummary> = encoder
                    .names()
                    .map(|name| summary(&self.census.columns, name).cloned())
                    .collect::<Result<_, _>>()?;
                let columns = StreamedColumns { columns: &columns, encoder };
                settings.run_streamed_given(rows, rows, columns, self.about.clone())
            }
            None => settings.run_streamed(rows, self.about.clone()),
        }
    }

    /// Runs `work` on the rows, and raises what Python raised while they were passed over.
    fn pass<T>(
        &self,
        py: Python<'_>,
        reader: &Reader,
        work: impl FnOnce(
            &Partitions<Box<dyn Fn(&[u8]) -> Result<Vec<Vec<u8>>, mnar::Error> + Sync + '_>>,
        ) -> Result<T, mnar::Error>,
    ) -> PyResult<T> {
        self.check(py)?;
        let raised = Raised::default();
        let reader = json(py, reader)?;
        let walk = |job: &[u8]| {
            let parts = Python::attach(|py| {
                let parts = self.walk.bind(py).call1((PyBytes::new(py, job), reader.as_str()));
                parts.and_then(|parts| parts.extract::<Vec<Vec<u8>>>())
            });
            parts.map_err(|error| {
                let message = error.to_string();
                if let Ok(mut raised) = raised.lock() {
                    *raised = Some(error);
                }
                mnar::Error::Source(message.into())
            })
        };
        let rows =
            Partitions::new(self.about.classes.clone(), self.kind, Box::new(walk) as Box<dyn Fn(&[u8]) -> _ + Sync>);
        let rows = rows.with_renormalised(self.census.renormalised);
        let done = work(&rows);
        let raised = raised.lock().ok().and_then(|mut raised| raised.take());
        match (done, raised) {
            (Err(_), Some(error)) => Err(error),
            (done, _) => done.map_err(|error| of_statistics(py, &error)),
        }
    }

    /// The refusals of labels in memory, from the counts alone.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let (n, about) = (self.about.n, &self.about);
        let error = match about.classes.as_slice() {
            _ if n == 0 => mnar::Error::NoRows,
            _ if about.n_labelled == 0 => mnar::Error::NoLabels { n },
            [class] => mnar::Error::OneClass { class: class.clone() },
            _ if about.n_labelled == n => mnar::Error::NoUnlabelled { n },
            _ => return Ok(()),
        };
        Err(of_statistics(py, &error))
    }
}

fn summary<'a>(columns: &'a [ColumnSummary], name: &str) -> Result<&'a ColumnSummary, mnar::Error> {
    columns.iter().find(|column| column.name() == name).ok_or_else(|| mnar::Error::UnknownCovariate {
        name: name.to_owned(),
        known: columns.iter().map(|column| column.name().to_owned()).collect(),
    })
}

/// The terms of columns and of products of them, in the order of a table in memory.
fn terms(columns: &[ColumnSummary], given: &[String]) -> Result<TermEncoder, mnar::Error> {
    let (mut used, mut products): (Vec<ColumnSummary>, Vec<Product>) = (Vec::new(), Vec::new());
    for name in given {
        match Product::parse(name, |name| summary(columns, name).is_ok())? {
            None => used.push(summary(columns, name)?.clone()),
            Some(product) => {
                for part in [&product.first, &product.second] {
                    if !given.contains(part) && !used.iter().any(|column| column.name() == part) {
                        used.push(summary(columns, part)?.clone());
                    }
                }
                products.push(product);
            }
        }
    }
    ColumnSummary::encoder(&used, products)
}

/// P(labelled | class, columns) of some rows: one array per class.
#[pyfunction]
#[pyo3(signature = (reader, mechanism, columns, rows))]
pub(crate) fn phi_of_rows<'py>(
    py: Python<'py>,
    reader: &str,
    mechanism: &str,
    columns: Vec<Column<'_>>,
    rows: usize,
) -> PyResult<Vec<Bound<'py, PyArray1<f64>>>> {
    let (reader, mechanism): (Reader, mnar::mechanism::Mechanism) = (settings(py, reader)?, settings(py, mechanism)?);
    let reader = Reader { groups: None, folds: None, ..reader };
    let given = reader.given(&columns, rows).map_err(|error| of_statistics(py, &error))?;
    let given: Vec<&[f64]> = given.iter().map(Vec::as_slice).collect();
    let of_class = |class: usize| {
        let phi = (0..rows).map(|row| mechanism.phi(class, given.iter().map(|column| column[row])));
        PyArray1::from_iter(py, phi)
    };
    Ok((0..mechanism.classes.len()).map(of_class).collect())
}

/// What the calibration within columns multiplies the probabilities of some rows by: one array per class.
#[pyfunction]
#[pyo3(signature = (reader, calibration, columns, rows))]
pub(crate) fn factors_of_rows<'py>(
    py: Python<'py>,
    reader: &str,
    calibration: &str,
    columns: Vec<Column<'_>>,
    rows: usize,
) -> PyResult<Vec<Bound<'py, PyArray1<f64>>>> {
    let (reader, calibration): (Reader, ColumnCalibration) = (settings(py, reader)?, settings(py, calibration)?);
    let reader = Reader { groups: None, folds: None, ..reader };
    let given = reader.given(&columns, rows).map_err(|error| of_statistics(py, &error))?;
    let of_class = |class: usize| {
        let factor = |row: usize| calibration.log_factor(class, given.iter().map(|column| column[row])).exp();
        PyArray1::from_iter(py, (0..rows).map(factor))
    };
    Ok((0..calibration.effects.len()).map(of_class).collect())
}
