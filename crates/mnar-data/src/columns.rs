//! Finds the columns for each role by name in the header.

use crate::error::{ColumnRole, DataError, list};
use crate::row_names::find_id;
use mnar::PosteriorKind;
use std::collections::BTreeSet;

/// Where a table of predictions keeps its labels, probabilities, folds and names, and what they mean.
///
/// ```
/// let mut columns = mnar_data::PredictionColumns::new("label");
/// columns.missing.push("unknown".into());
/// assert_eq!(columns.proba, "p_");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PredictionColumns {
    /// The column of labels; a blank or null label is a missing one.
    pub label: String,
    /// What the names of the probability columns start with; the class follows. Or the name of a single column, which
    /// holds a list of all probabilities in every row, or the probability of one of two classes.
    pub proba: String,
    /// Whether the numbers are logits: logarithms of probabilities, up to a constant per row. A single number per row
    /// is then the logarithm of the odds.
    pub logits: bool,
    /// The names of the classes, in the order of a list of probabilities, and of labels that are numbers from 0. Empty
    /// where the columns and labels name them.
    pub classes: Vec<String>,
    /// The class of two that a single number per row is the probability of.
    pub positive: Option<String>,
    /// The column of folds, where the predictions are cross-fitted.
    pub fold: Option<String>,
    /// The column that names the rows.
    pub id: Option<String>,
    /// Which posterior the probabilities are.
    pub kind: PosteriorKind,
    /// Further values of the label that mean missing, such as `unknown`.
    pub missing: Vec<String>,
    /// Whether labels such as `NA`, `?` and `-1` are classes. By default they are missing, unless a class is called so.
    pub labels_as_they_are: bool,
    /// Whether a label may differ from the name of its class by case and blanks.
    pub merge_labels: bool,
    /// Whether a table in which no label is missing is taken too.
    pub allow_complete: bool,
}

impl PredictionColumns {
    /// The defaults: probabilities in `p_<class>`, learnt from the labelled rows, no folds.
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            proba: crate::error::DEFAULT_PREFIX.into(),
            logits: false,
            classes: Vec::new(),
            positive: None,
            fold: None,
            id: None,
            kind: PosteriorKind::Labelled,
            missing: Vec::new(),
            labels_as_they_are: false,
            merge_labels: false,
            allow_complete: false,
        }
    }
}

/// The positions of the columns to read: numbers in their order, texts in theirs.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) numbers: Vec<usize>,
    /// Set where the only column of numbers may hold lists, which become one column per place: how long they may be.
    pub(crate) lists: Option<usize>,
    pub(crate) role: ColumnRole,
    pub(crate) texts: Vec<usize>,
}

impl Selection {
    /// Texts alone.
    pub(crate) fn texts(texts: Vec<usize>) -> Self {
        Self { numbers: Vec::new(), lists: None, role: ColumnRole::Number, texts }
    }

    /// The number of columns of numbers that are expected.
    pub(crate) fn width(&self) -> usize {
        self.lists.unwrap_or(self.numbers.len())
    }
}

/// The columns of a table that hold probabilities or logits.
#[derive(Clone, Debug)]
pub(crate) enum ScoreColumns {
    /// One per class, and the names of the classes.
    Each { classes: Vec<String>, positions: Vec<usize> },
    /// One for all classes, or for one of two: its values tell.
    Single { name: String, position: usize },
}

/// The positions of the columns of a table of predictions.
#[derive(Clone, Debug)]
pub(crate) struct PredictionLayout {
    pub(crate) scores: ScoreColumns,
    pub(crate) label: usize,
    pub(crate) fold: Option<usize>,
    pub(crate) id: Option<usize>,
    role: ColumnRole,
}

/// Lists are taken to be as long until the first is seen: long enough for a batch of them to be small.
const LIST: usize = 640;

impl PredictionLayout {
    pub(crate) fn find(header: &[String], columns: &PredictionColumns, path: &str) -> Result<Self, DataError> {
        let label = find(header, &columns.label, path)?;
        let fold = columns.fold.as_deref().map(|fold| find(header, fold, path)).transpose()?;
        if fold == Some(label) {
            return Err(twice(path, &columns.label, "the label", "the fold"));
        }
        let others = [(Some(label), "the label"), (fold, "the fold")];
        let id = columns.id.as_deref().map(|id| find_id(header, id, &others, path)).transpose()?;
        let role = if columns.logits { ColumnRole::Logit } else { ColumnRole::Probability };
        // A label column `p_true` is not a class.
        let free: Vec<usize> = (0..header.len()).filter(|i| ![Some(label), fold, id].contains(&Some(*i))).collect();
        let scores = ScoreColumns::find(header, &free, columns, path)?;
        Ok(Self { scores, label, fold, id, role })
    }

    /// Numbers: the probabilities. Texts: the label, then the fold, then the name of the row.
    pub(crate) fn selection(&self) -> Selection {
        let (numbers, lists) = match &self.scores {
            ScoreColumns::Each { positions, .. } => (positions.clone(), None),
            ScoreColumns::Single { position, .. } => (vec![*position], Some(LIST)),
        };
        let texts = [Some(self.label), self.fold, self.id].into_iter().flatten().collect();
        Selection { numbers, lists, role: self.role, texts }
    }
}

impl ScoreColumns {
    /// Finds them among the columns that have no other role.
    fn find(header: &[String], free: &[usize], columns: &PredictionColumns, path: &str) -> Result<Self, DataError> {
        let proba = columns.proba.trim();
        let single = |position: usize| Ok(Self::Single { name: header[position].clone(), position });
        let positions: Vec<usize> = free.iter().copied().filter(|&i| header[i].starts_with(proba)).collect();
        // Beside `p_a`, a column `p_` lacks the name of its class; `score` beside `score_version` is meant.
        let is_name = positions.len() == 1 || proba.ends_with(char::is_alphanumeric);
        if let Some(&position) = positions.iter().find(|&&i| header[i] == proba && is_name) {
            return single(position);
        }
        let mut classes = Vec::with_capacity(positions.len());
        for &i in &positions {
            let class = header[i][proba.len()..].trim();
            if class.is_empty() {
                return Err(DataError::UnnamedClass { path: path.to_owned(), column: header[i].clone() });
            }
            classes.push(class.to_owned());
        }
        match (&columns.positive, &classes[..]) {
            (_, []) => Err(DataError::NoClassColumns {
                path: path.to_owned(),
                prefix: proba.to_owned(),
                columns: list(header),
                likely: likely(free.iter().map(|&i| header[i].as_str())),
            }),
            (None, _) => Ok(Self::Each { classes, positions }),
            (Some(positive), [class]) if positive.trim() == class => single(positions[0]),
            (Some(positive), _) => {
                let (path, positive, classes) = (path.to_owned(), positive.clone(), list(&classes));
                Err(DataError::PositiveUnused { path, positive, found: format!("a column per class ({classes})") })
            }
        }
    }
}

/// Whether a column, or the start of its name, is called like probabilities.
pub(crate) fn is_called_probability(name: &str) -> bool {
    ["prob", "score", "logit"].iter().any(|word| name.to_lowercase().contains(word))
}

/// A column, or what several start with, that is called like probabilities; or what all columns start with.
fn likely<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let all: Vec<&str> = names.collect();
    let names: Vec<&str> = all.iter().copied().filter(|name| is_called_probability(name)).collect();
    let names = if names.is_empty() && all.len() > 1 { all } else { names };
    let [first, rest @ ..] = &names[..] else { return None };
    if rest.is_empty() {
        return Some((*first).to_owned());
    }
    let (end, separator) = first.char_indices().rfind(|&(end, c)| {
        !c.is_alphanumeric() && rest.iter().all(|name| name.starts_with(&first[..end + c.len_utf8()]))
    })?;
    Some(first[..end + separator.len_utf8()].to_owned())
}

pub(crate) fn twice(path: &str, column: &str, first: &'static str, second: &'static str) -> DataError {
    DataError::ColumnTwice { path: path.to_owned(), column: column.to_owned(), first, second }
}

/// The error of a table whose label column was not named: one that is called like it may be meant, or the last one.
pub(crate) fn no_label_column(header: &[String], path: &str) -> DataError {
    const NAMES: [&str; 9] =
        ["label", "labels", "y", "class", "target", "diagnosis", "outcome", "category", "annotation"];
    let called = |name: &&String| NAMES.contains(&name.trim().to_lowercase().as_str());
    let likely = header.iter().find(called).or(header.last()).filter(|name| !name.is_empty()).cloned();
    DataError::NoLabelColumn { path: path.to_owned(), likely, columns: list(header) }
}

/// The position of a column.
pub(crate) fn find(header: &[String], name: &str, path: &str) -> Result<usize, DataError> {
    // The header is trimmed, so the name is too. A line break in a cell of a spreadsheet is typed as a blank.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let exact = header.iter().position(|column| column == name.trim());
    let broken = || header.iter().position(|column| column.contains('\n') && words(column) == words(name));
    exact.or_else(broken).ok_or_else(|| DataError::UnknownColumn {
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
    if repeated.contains("") {
        let unnamed = (1..).zip(header).filter(|(_, name)| name.is_empty()).map(|(position, _)| position).collect();
        return Err(DataError::UnnamedColumns { path: path.to_owned(), positions: unnamed });
    }
    let names: Vec<String> = repeated.into_iter().map(|name| format!("`{name}`")).collect();
    Err(DataError::DuplicateColumns { path: path.to_owned(), names: list(&names) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_are_called_like_probabilities() {
        let likely = |names: &[&'static str]| likely(names.iter().copied());
        assert_eq!(likely(&["id", "probs", "age"]).as_deref(), Some("probs"));
        assert_eq!(likely(&["prob_cat", "prob_car", "age"]).as_deref(), Some("prob_"));
        assert_eq!(likely(&["a_score", "b_score"]), None);
        assert_eq!(likely(&["q_a", "q_b"]).as_deref(), Some("q_"));
        assert_eq!(likely(&["q_a", "q_b", "age"]), None);
        assert_eq!(likely(&["age"]), None);
    }
}
