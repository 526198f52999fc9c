//! Finds the columns for each role by name in the header.

use crate::error::{ColumnRole, DataError, list};
use mnar::PosteriorKind;
use std::collections::BTreeSet;

/// Where a table of predictions keeps its labels, probabilities and folds.
///
/// ```
/// let mut columns = mnar_data::PredictionColumns::new("label");
/// columns.missing.push("NA".into());
/// assert_eq!(columns.prefix, "p_");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PredictionColumns {
    /// The column of labels; a blank or null label is a missing one.
    pub label: String,
    /// What the names of the probability columns start with; the class follows.
    pub prefix: String,
    /// The column of folds, where the predictions are cross-fitted.
    pub fold: Option<String>,
    /// Which posterior the probabilities are.
    pub kind: PosteriorKind,
    /// Further values of the label that mean missing, such as `NA`.
    pub missing: Vec<String>,
    /// Whether a table in which no label is missing is taken too.
    pub allow_complete: bool,
}

impl PredictionColumns {
    /// The defaults: probabilities in `p_<class>`, learnt from the labelled rows, no folds.
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            prefix: "p_".into(),
            fold: None,
            kind: PosteriorKind::Labelled,
            missing: Vec::new(),
            allow_complete: false,
        }
    }
}

/// The positions of the columns to read: numbers in their order, texts in theirs.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) numbers: Vec<usize>,
    pub(crate) role: ColumnRole,
    pub(crate) texts: Vec<usize>,
}

/// The positions of the columns of a table of predictions.
#[derive(Clone, Debug)]
pub(crate) struct PredictionLayout {
    pub(crate) classes: Vec<String>,
    pub(crate) probabilities: Vec<usize>,
    pub(crate) label: usize,
    pub(crate) fold: Option<usize>,
}

impl PredictionLayout {
    pub(crate) fn find(header: &[String], columns: &PredictionColumns, path: &str) -> Result<Self, DataError> {
        let label = find(header, &columns.label, path)?;
        let fold = columns.fold.as_deref().map(|fold| find(header, fold, path)).transpose()?;
        if fold == Some(label) {
            return Err(twice(path, &columns.label, "the label", "the fold"));
        }
        let mut classes = Vec::new();
        let mut probabilities = Vec::new();
        for (i, name) in header.iter().enumerate() {
            // A label column `p_true` is not a class.
            if i == label || Some(i) == fold {
                continue;
            }
            let Some(class) = name.strip_prefix(columns.prefix.as_str()) else { continue };
            if class.trim().is_empty() {
                return Err(DataError::UnnamedClass { path: path.to_owned(), column: name.clone() });
            }
            classes.push(class.trim().to_owned());
            probabilities.push(i);
        }
        if classes.is_empty() {
            return Err(DataError::NoClassColumns {
                path: path.to_owned(),
                prefix: columns.prefix.clone(),
                columns: list(header),
            });
        }
        Ok(Self { classes, probabilities, label, fold })
    }

    /// Numbers: the probabilities. Texts: the label, then the fold.
    pub(crate) fn selection(&self) -> Selection {
        let mut texts = vec![self.label];
        texts.extend(self.fold);
        Selection { numbers: self.probabilities.clone(), role: ColumnRole::Probability, texts }
    }
}

pub(crate) fn twice(path: &str, column: &str, first: &'static str, second: &'static str) -> DataError {
    DataError::ColumnTwice { path: path.to_owned(), column: column.to_owned(), first, second }
}

/// The position of a column.
pub(crate) fn find(header: &[String], name: &str, path: &str) -> Result<usize, DataError> {
    // The header is trimmed, so the name is too.
    header.iter().position(|column| column == name.trim()).ok_or_else(|| DataError::UnknownColumn {
        path: path.to_owned(),
        name: name.to_owned(),
        hint: hint(header, name),
        columns: list(header),
    })
}

fn hint(header: &[String], name: &str) -> String {
    if let [only] = header {
        for (separator, said) in [(';', "semicolons"), ('\t', "tabs"), ('|', "bars")] {
            if only.contains(separator) {
                return format!(
                    " (the whole header is one column with {said} in it: separate the values by commas, or by tabs in a `.tsv` file)"
                );
            }
        }
    }
    let lower = name.to_lowercase();
    let nearest = header
        .iter()
        .map(|column| (strsim::jaro_winkler(&column.to_lowercase(), &lower), column))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        // `lable` and `label` are 0.95 apart, `y` and `label` 0.
        Some((similarity, column)) if similarity > 0.75 => format!(", did you mean `{column}`?"),
        _ => String::new(),
    }
}

/// Names that occur more than once would make every lookup by name a guess.
pub(crate) fn check_distinct(header: &[String], path: &str) -> Result<(), DataError> {
    let mut seen = BTreeSet::new();
    let repeated: BTreeSet<&str> = header.iter().map(String::as_str).filter(|name| !seen.insert(*name)).collect();
    if repeated.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = repeated.into_iter().map(|name| format!("`{name}`")).collect();
    Err(DataError::DuplicateColumns { path: path.to_owned(), names: list(&names) })
}
