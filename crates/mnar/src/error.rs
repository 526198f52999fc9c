//! What can be wrong with the input. Every message says what is wrong and where; [`Error::remedies`] says which option
//! would cure it.
//!
//! Rows are counted from 1, as in the data file below its header.

use crate::labels::Class;
use crate::posteriors::are_percentages;
use crate::remedy::Remedy;

/// The error type of this crate. Failing to converge is not an error: see
/// [`Stop`](crate::estimate::Stop).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two inputs that describe the same rows differ in length.
    #[error("{what} has {found} rows but there are {expected} labels; give one entry per row, blank labels included")]
    LengthMismatch {
        /// The input with the wrong length.
        what: &'static str,
        /// Its number of rows.
        found: usize,
        /// The number of labels.
        expected: usize,
    },
    /// The posteriors have another number of classes than the labels.
    #[error(
        "the posteriors have {found} columns but there are {expected} classes ({classes}); give one probability column per class"
    )]
    ClassCountMismatch {
        /// Columns of the posteriors.
        found: usize,
        /// Classes of the labels.
        expected: usize,
        /// The names of the classes.
        classes: String,
    },
    /// There are no rows.
    #[error("there are no rows; the table is empty")]
    NoRows,
    /// No row carries a label.
    #[error(
        "none of the {n} rows has a label; at least one label per class is needed to learn how classes are labelled"
    )]
    NoLabels {
        /// Number of rows.
        n: usize,
    },
    /// No label is missing, so there is no mechanism to learn.
    #[error(
        "all {n} rows have a label, so phi = 1 for every class and there is nothing to estimate; unlabelled rows have a blank label, or a value that is named as missing"
    )]
    NoUnlabelled {
        /// Number of rows.
        n: usize,
    },
    /// Fewer than two classes.
    #[error("there is only one class, `{class}`; the mechanism compares classes, so at least two are needed")]
    OneClass {
        /// The name of the single class.
        class: String,
    },
    /// A class has a probability column but no label.
    #[error(
        "class `{class}` has no label, so P(labelled | {class}) cannot be learnt; it is the most probable class of {rows} unlabelled rows (their expected number is {expected:.1}); label some of them, or merge the class into another one, or drop its column"
    )]
    ClassWithoutLabel {
        /// The name of the class.
        class: String,
        /// Unlabelled rows whose most probable class it is.
        rows: usize,
        /// Sum over the unlabelled rows of its probability.
        expected: f64,
    },
    /// A class has too few labels for what was asked.
    #[error(
        "class `{class}` has {found} label(s) but {purpose} needs at least {needed}; label more rows of it, or merge it into another class"
    )]
    TooFewLabels {
        /// The name of the class.
        class: String,
        /// Its number of labels.
        found: usize,
        /// How many are needed.
        needed: usize,
        /// What needs them.
        purpose: &'static str,
    },
    /// A classifier was given no row of a class.
    #[error("class number {} has no training row with a positive weight", class.0 + 1)]
    ClassNotTrained {
        /// The class.
        class: Class,
    },
    /// A label is not among the classes.
    #[error("row {row}: label `{label}` is not among the classes ({classes})")]
    UnknownClass {
        /// The row, from 1.
        row: usize,
        /// The label found.
        label: String,
        /// The known classes.
        classes: String,
    },
    /// A known share of a class is below the share of its labels.
    #[error("the class `{class}` is {share} of all rows, but {labelled:.4} of all rows carry its label")]
    ShareTooSmall {
        /// The class.
        class: String,
        /// Its share, as given.
        share: f64,
        /// The share of rows with its label.
        labelled: f64,
    },
    /// Two classes carry the same name.
    #[error("two classes are both called `{name}`; class names must differ")]
    DuplicateClass {
        /// The repeated name.
        name: String,
    },
    /// A posterior is not a number in [0, 1].
    #[error(
        "row {row}: the probability of class number {} is {value}; probabilities must be numbers from 0 to 1{}",
        class.0 + 1,
        if are_percentages(*sum) { ", so divide percentages by 100" } else { "" }
    )]
    NotAProbability {
        /// The row, from 1.
        row: usize,
        /// The class.
        class: Class,
        /// The offending value.
        value: f64,
        /// The sum of the row.
        sum: f64,
    },
    /// The posteriors of a row do not sum to one.
    #[error(
        "row {row}: the probabilities sum to {sum}, which is off 1 by more than {tolerance}; check that every class has its column and that the scores are probabilities, not logits"
    )]
    OffSimplex {
        /// The row, from 1.
        row: usize,
        /// The sum found.
        sum: f64,
        /// The largest drift that is renormalised.
        tolerance: f64,
    },
    /// A feature or a logit is not a finite number.
    #[error("row {row}: {what} {column} is {value}, but must be a finite number; fill in or drop missing values first")]
    NotFinite {
        /// What the numbers are: "feature" or "logit".
        what: &'static str,
        /// The row, from 1.
        row: usize,
        /// The column, from 1.
        column: usize,
        /// The offending value.
        value: f64,
    },
    /// A parameter is outside its range.
    #[error("{name} is {value}, but must be {range}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// Its value, as given.
        value: String,
        /// The allowed range in words.
        range: &'static str,
    },
    /// A table has another number of columns than the one a classifier was trained on.
    #[error(
        "the table has {found} columns but the classifier was trained on {expected}; give the same columns in the same order"
    )]
    ColumnCountMismatch {
        /// Columns of the table.
        found: usize,
        /// Columns in training.
        expected: usize,
    },
    /// A saved model cannot be what training gave.
    #[error("the saved {what} are damaged: {why}; save the model again")]
    BrokenModel {
        /// What kind of model it is.
        what: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The estimator needs posteriors of the other kind.
    #[error("{method} needs {needed} posteriors but was given {given} ones: {hint}")]
    WrongPosterior {
        /// The estimator or test.
        method: &'static str,
        /// The kind it needs.
        needed: &'static str,
        /// The kind it was given.
        given: &'static str,
        /// What to use instead.
        hint: &'static str,
    },
    /// The classifier cannot tell the classes apart, so the equations have no unique solution.
    #[error("{method} cannot tell the classes apart: {why}; a better classifier or fewer classes are needed")]
    NotIdentified {
        /// The estimator.
        method: &'static str,
        /// What was singular.
        why: String,
    },
    /// A row that is said to be audited has no label.
    #[error(
        "row {row} is marked as audited but has no label; audited rows are those whose label was requested at random, so each must have one"
    )]
    AuditWithoutLabel {
        /// The row, from 1.
        row: usize,
    },
    /// There is no column of this name that labelling may depend on.
    #[error("there is no column `{}` that labelling could depend on; there are {}", shorten(name), list_names(known))]
    UnknownCovariate {
        /// The name asked for.
        name: String,
        /// The columns that there are.
        known: Vec<String>,
    },
    /// A column that labelling cannot be taken to depend on.
    #[error("labelling cannot be taken to depend on the column `{name}`: {why}")]
    UnusableCovariate {
        /// The name of the column.
        name: String,
        /// The reason.
        why: String,
    },
    /// Settings that do not go together.
    #[error("{0}")]
    Settings(&'static str),
    /// The caller cancelled.
    #[error("the work was cancelled before it was done")]
    Cancelled,
    /// The rows come from a file or stream that failed while being read.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
    /// Sums from another process cannot be used.
    #[error("sums from another process cannot be used: {0}")]
    Travel(&'static str),
    /// A classifier from outside this crate failed.
    #[error(transparent)]
    Classifier(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Options that would cure the error, where there are some.
    pub fn remedies(&self) -> Vec<Remedy> {
        match self {
            Self::NotAProbability { value, sum, .. } if value.is_finite() && !are_percentages(*sum) => {
                vec![Remedy::set("logits", "")]
            }
            _ => Vec::new(),
        }
    }
}

/// Class names for a message: all of them when few, the first ones otherwise.
pub(crate) fn list_names(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let shown = names.iter().take(SHOWN).map(|name| shorten(name)).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{shown}, and {} more", names.len() - SHOWN) } else { shown }
}

/// The start of a name, on one line: what was typed may be anything.
fn shorten(name: &str) -> String {
    const SHOWN: usize = 60;
    let start: String = name.chars().take(SHOWN).collect();
    let rest = if start.len() < name.len() { "…" } else { "" };
    start.replace('\n', "\\n").replace('\r', "\\r") + rest
}
