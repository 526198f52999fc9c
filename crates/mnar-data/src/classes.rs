//! Which classes a table of predictions has, which label stands for which, and how its numbers become probabilities.

use crate::columns::{PredictionColumns, PredictionLayout, ScoreColumns};
use crate::error::{DataError, LabelAdvice, list};
use crate::note::Note;
use crate::values::{Census, Counted, LabelMatcher, Missing, folded, whole_number};
use arrow_array::{Array as _, LargeStringArray};
use mnar::labels::class_names;
use mnar::posteriors::softmax_rows;
use mnar::{Class, Labels};
use std::collections::HashMap;

/// What the labels and numbers of a table of predictions stand for. All labels of the table were looked at.
pub(crate) struct Classes {
    pub(crate) names: Vec<String>,
    /// The class of every label; `None` where it is a mark of a missing one.
    of_label: HashMap<String, Option<Class>>,
    /// The class that a single number per row is for.
    positive: Option<usize>,
    logits: bool,
    missing: Missing,
    pub(crate) notes: Vec<Note>,
    path: String,
}

impl Classes {
    /// Settles the classes of a table with `width` numbers per row and these labels.
    pub(crate) fn find(
        layout: &PredictionLayout,
        columns: &PredictionColumns,
        width: usize,
        labels: &Census,
        path: &str,
    ) -> Result<Self, DataError> {
        let search = Search { columns, labels, path };
        let mut notes = Vec::new();
        let (names, positive) = match &layout.scores {
            ScoreColumns::Each { classes, .. } => (search.of_columns(classes)?, None),
            ScoreColumns::Single { name, .. } if width > 1 => {
                let (names, inferred) = search.of_list(name, width)?;
                if inferred {
                    notes.push(Note::ListClasses { column: name.clone(), classes: names.clone() });
                }
                (names, None)
            }
            ScoreColumns::Single { name, .. } => {
                let (names, positive) = search.of_two(name)?;
                let (column, other) = (name.clone(), names[1 - positive].clone());
                notes.push(Note::Positive { column, positive: names[positive].clone(), other });
                (names, Some(positive))
            }
        };
        // Two classes of one name, before labels are looked up by it.
        Labels::allow_degenerate(Vec::new(), names.clone()).map_err(|cause| DataError::core(path, cause))?;
        let matcher = LabelMatcher::new(&names);
        let marks = search.marks(Some(&matcher));
        let others = search.without(&marks);
        let of_label = search.match_labels(&others, &names, &matcher, layout, &mut notes)?;
        let missing = marks.iter().map(|(mark, _)| (mark.clone(), None));
        let of_label = of_label.into_iter().map(|(text, class)| (text, Some(class))).chain(missing).collect();
        if !marks.is_empty() {
            notes.push(Note::MissingLabels { marks });
        }
        let (logits, missing) = (columns.logits, Missing::new(&columns.missing));
        Ok(Self { names, of_label, positive, logits, missing, notes, path: path.to_owned() })
    }

    /// The class of a label, `None` where it means missing; an error where the label is new.
    pub(crate) fn class(&self, label: &str, row: usize) -> Result<Option<Class>, DataError> {
        self.of_label.get(label).copied().ok_or_else(|| DataError::UnknownLabel {
            path: self.path.clone(),
            row: row + 1,
            label: label.to_owned(),
            others: Vec::new(),
            classes: list(&self.names),
            advice: Box::new(LabelAdvice::NotNamed),
        })
    }

    /// The classes of the labels of a part of the table, whose first row is `first_row`, from 0.
    pub(crate) fn encode(&self, texts: &LargeStringArray, first_row: usize) -> Result<Vec<Option<Class>>, DataError> {
        // Those seen last, since few texts make up most labels.
        const KNOWN: usize = 16;
        let mut known: Vec<(&str, Option<Class>)> = Vec::with_capacity(KNOWN);
        let mut classes = vec![None; texts.len()];
        let present: Box<dyn Iterator<Item = usize>> = match texts.nulls() {
            Some(nulls) => Box::new(nulls.valid_indices()),
            None => Box::new(0..texts.len()),
        };
        for i in present {
            let text = texts.value(i);
            if let Some((_, class)) = known.iter().find(|(other, _)| *other == text) {
                classes[i] = *class;
                continue;
            }
            classes[i] = match self.missing.present(text) {
                Some(label) => self.class(label, first_row + i)?,
                None => None,
            };
            if known.len() < KNOWN {
                known.push((text, classes[i]));
            }
        }
        Ok(classes)
    }

    /// One column of probabilities per class, from the numbers of the table or of a part of it, whose first row is
    /// `first_row`, from 0. Whether they are probabilities is left to be checked, unless they are made of logits.
    pub(crate) fn probabilities(&self, numbers: Vec<Vec<f64>>, first_row: usize) -> Result<Vec<Vec<f64>>, DataError> {
        let mut numbers = numbers;
        if let (Some(positive), Some(scores)) = (self.positive, numbers.first()) {
            // Softmax of (0, log odds) gives the odds back.
            let other = scores.iter().map(|score| if self.logits { 0.0 } else { 1.0 - score }).collect();
            self.check_scores(scores, positive, first_row)?;
            numbers.insert(1 - positive, other);
        }
        if self.logits {
            let mut columns: Vec<&mut [f64]> = numbers.iter_mut().map(Vec::as_mut_slice).collect();
            softmax_rows(&mut columns, first_row)
                .map_err(|error| DataError::posterior(&self.path, error, &self.names))?;
        }
        Ok(numbers)
    }

    /// Checks the probabilities of one of two classes: those of the other are made of them.
    fn check_scores(&self, scores: &[f64], positive: usize, first_row: usize) -> Result<(), DataError> {
        let wrong = |score: &f64| if self.logits { !score.is_finite() } else { !(0.0..=1.0).contains(score) };
        let Some(i) = scores.iter().position(wrong) else { return Ok(()) };
        let (path, row, class) = (self.path.clone(), first_row + i + 1, self.names[positive].clone());
        let value = scores[i];
        Err(if self.logits {
            DataError::NotALogit { path, row, class, value }
        } else {
            // With the percentage of the other class, that of this one makes 100.
            let percentages = scores.iter().all(|score| (0.0..=100.0).contains(score));
            DataError::NotAProbability { path, row, class, value, sum: if percentages { 100.0 } else { value } }
        })
    }
}

/// What the classes are looked for in.
struct Search<'a> {
    columns: &'a PredictionColumns,
    labels: &'a Census,
    path: &'a str,
}

impl<'a> Search<'a> {
    /// The marks of missing labels, unless all labels are to be classes.
    fn marks(&self, classes: Option<&LabelMatcher>) -> Vec<(String, usize)> {
        if self.columns.labels_as_they_are { Vec::new() } else { self.labels.marks(classes) }
    }

    fn without(&self, marks: &[(String, usize)]) -> Vec<Counted<'a>> {
        let is_mark = |text: &str| marks.iter().any(|(mark, _)| mark == text);
        self.labels.texts().into_iter().filter(|label| !is_mark(label.text)).collect()
    }

    /// The names of the labels, sorted, each once however it is written.
    fn label_names(&self) -> Result<Vec<String>, DataError> {
        let labels = self.without(&self.marks(None));
        if labels.is_empty() {
            let cause = mnar::Error::NoLabels { n: self.labels.rows() };
            return Err(DataError::core(self.path, cause));
        }
        let whole = labels.iter().all(|label| whole_number(label.text).is_some());
        let name = |label: &Counted<'_>| match whole_number(label.text) {
            Some(number) if whole => number.to_string(),
            _ => label.text.to_owned(),
        };
        let mut names: Vec<String> = labels.iter().map(name).collect();
        if self.columns.merge_labels {
            // Of names that are alike, the one that most rows have.
            let mut common: HashMap<String, &Counted<'_>> = HashMap::new();
            for label in &labels {
                let most = common.entry(folded(label.text)).or_insert(label);
                if label.count > most.count {
                    *most = label;
                }
            }
            names = common.into_values().map(name).collect();
        }
        Ok(class_names(names.iter().map(String::as_str)))
    }

    fn wrong_names(&self, found: String) -> DataError {
        DataError::NamedClasses { path: self.path.to_owned(), named: list(&self.columns.classes), found }
    }

    /// The classes of columns that have their names; those that were named must be the same.
    fn of_columns(&self, classes: &[String]) -> Result<Vec<String>, DataError> {
        let named = &self.columns.classes;
        let same = named.len() == classes.len() && named.iter().all(|name| classes.contains(name));
        if !named.is_empty() && !same {
            return Err(self.wrong_names(format!("those of the columns are {}", list(classes))));
        }
        Ok(classes.to_vec())
    }

    /// The classes of a column of lists, and whether they follow from the labels.
    fn of_list(&self, column: &str, width: usize) -> Result<(Vec<String>, bool), DataError> {
        if let Some(positive) = &self.columns.positive {
            let (path, positive) = (self.path.to_owned(), positive.clone());
            return Err(DataError::PositiveUnused { path, positive, found: format!("a list of {width} per row") });
        }
        let named = &self.columns.classes;
        if named.len() == width {
            return Ok((named.clone(), false));
        } else if !named.is_empty() {
            return Err(self.wrong_names(format!("the lists in `{column}` have {width} numbers")));
        }
        let labels = self.label_names()?;
        match numbered(&labels, width) {
            Some(names) => Ok((names, true)),
            None => {
                let (path, column) = (self.path.to_owned(), column.to_owned());
                Err(DataError::ListClasses { path, column, width, labels })
            }
        }
    }

    /// The two classes of a single column, and which of them it is for.
    fn of_two(&self, column: &str) -> Result<(Vec<String>, usize), DataError> {
        let (path, column) = (self.path.to_owned(), column.to_owned());
        let classes = match &self.columns.classes {
            named if named.is_empty() => self.label_names()?,
            named if named.len() == 2 => named.clone(),
            _ => return Err(self.wrong_names(format!("`{column}` has one number per row, which is enough for two"))),
        };
        if classes.len() != 2 {
            return Err(DataError::NotTwoClasses { path, column, labels: classes });
        }
        let positive = self.columns.positive.as_ref().map(|name| name.trim());
        match positive.and_then(|name| LabelMatcher::new(&classes).class(name)) {
            Some(positive) => Ok((classes, positive.index())),
            None => {
                let positive = positive.map(str::to_owned);
                Err(DataError::PositiveUnknown { path, column, classes, positive })
            }
        }
    }

    /// The class of every label: by its name, or by its number where the classes were named in an order.
    fn match_labels(
        &self,
        labels: &[Counted<'_>],
        names: &[String],
        matcher: &LabelMatcher,
        layout: &PredictionLayout,
        notes: &mut Vec<Note>,
    ) -> Result<Vec<(String, Class)>, DataError> {
        let order = if self.columns.classes.is_empty() { names } else { &self.columns.classes };
        let by_name = |label: &Counted<'_>| match self.columns.merge_labels {
            true => matcher.class_alike(label.text),
            false => matcher.class(label.text),
        };
        let by_number = |label: &Counted<'_>| {
            let number = usize::try_from(whole_number(label.text)?).ok()?;
            order.get(number).and_then(|name| matcher.class(name))
        };
        let all = |of: &dyn Fn(&Counted<'_>) -> Option<Class>| -> Option<Vec<(String, Class)>> {
            labels.iter().map(|label| Some((label.text.to_owned(), of(label)?))).collect()
        };
        match (all(&by_name), all(&by_number)) {
            (Some(named), Some(numbered)) if !self.columns.classes.is_empty() && named != numbered => {
                Err(DataError::AmbiguousLabels { path: self.path.to_owned(), classes: list(names) })
            }
            (Some(named), _) => {
                notes.extend(merged(labels, &named, names, matcher));
                Ok(named)
            }
            (None, Some(numbered)) if !self.columns.classes.is_empty() => {
                notes.push(Note::NumberedLabels { classes: order.to_vec() });
                Ok(numbered)
            }
            (None, Some(_)) if labels.iter().all(|label| by_name(label).is_none()) => {
                Err(DataError::NumberedLabels { path: self.path.to_owned(), classes: names.to_vec() })
            }
            _ => {
                let unknown: Vec<&Counted<'_>> = labels.iter().filter(|label| by_name(label).is_none()).collect();
                Err(self.unknown(&unknown, names, matcher, layout))
            }
        }
    }

    fn unknown(
        &self,
        labels: &[&Counted<'_>],
        names: &[String],
        matcher: &LabelMatcher,
        layout: &PredictionLayout,
    ) -> DataError {
        let (label, row) = labels.first().map_or(("", 0), |label| (label.text, label.first_row));
        let proba = self.columns.proba.trim();
        let alike = matcher.class_alike(label).map(|class| names[class.index()].clone());
        let advice = match (&layout.scores, names) {
            _ if alike.is_some() => LabelAdvice::Alike(alike.unwrap_or_default()),
            _ if looks_missing(label) => LabelAdvice::Missing,
            (ScoreColumns::Each { .. }, [class]) => {
                LabelAdvice::OneColumn { column: format!("{proba}{class}"), class: class.clone() }
            }
            (ScoreColumns::Each { .. }, _) => LabelAdvice::NoColumn(format!("{proba}{label}")),
            (ScoreColumns::Single { .. }, _) => LabelAdvice::NotNamed,
        };
        DataError::UnknownLabel {
            path: self.path.to_owned(),
            row: row + 1,
            label: label.to_owned(),
            others: labels.iter().skip(1).map(|label| label.text.to_owned()).collect(),
            classes: list(names),
            advice: Box::new(advice),
        }
    }
}

/// What became of labels that differ from the names of their classes by case or blanks.
fn merged(labels: &[Counted<'_>], found: &[(String, Class)], names: &[String], matcher: &LabelMatcher) -> Vec<Note> {
    let mut others: Vec<Vec<(String, usize)>> = vec![Vec::new(); names.len()];
    for (label, (text, class)) in labels.iter().zip(found) {
        if matcher.class(text).is_none() {
            others[class.index()].push((text.clone(), label.count));
        }
    }
    let merged = names.iter().zip(others).filter(|(_, others)| !others.is_empty());
    merged.map(|(into, others)| Note::MergedLabels { into: into.clone(), others }).collect()
}

/// The classes of lists of `width` numbers whose labels are whole numbers from 0, or from 1, or booleans. Where neither the
/// lowest nor the highest number occurs, it could be either.
fn numbered(labels: &[String], width: usize) -> Option<Vec<String>> {
    if width == 2 && labels.iter().map(|label| label.to_lowercase()).eq(["false", "true"]) {
        return Some(labels.to_vec());
    }
    let numbers: Vec<usize> = labels.iter().map(|label| label.parse().ok()).collect::<Option<_>>()?;
    let from = match (numbers.contains(&0), numbers.contains(&width)) {
        (true, false) => 0,
        (false, true) => 1,
        _ => return None,
    };
    let range = from..from + width;
    numbers.iter().all(|number| range.contains(number)).then(|| range.map(|number| number.to_string()).collect())
}

/// Words for a label that is not there.
const MISSING_WORDS: [&str; 19] = [
    "missing",
    "unknown",
    "unlabelled",
    "unlabeled",
    "undefined",
    "undetermined",
    "empty",
    "blank",
    "tbd",
    "nil",
    "na",
    "nan",
    "unk",
    "not known",
    "not available",
    "not labelled",
    "not labeled",
    "no label",
    "pending",
];

/// Classes that may stand for missing labels: words for it, and a sign that is alone among names.
pub(crate) fn missing_classes(labels: &Labels) -> Vec<Note> {
    let is_sign = |name: &&String| !name.contains(char::is_alphanumeric);
    let one_sign = labels.names().iter().filter(is_sign).count() == 1;
    let is_dash = |name: &&String| name.chars().all(|c| matches!(c, '-' | '–' | '—' | '?' | '*'));
    // `Na` is sodium; `NA` and `na` have been taken out before.
    let is_word = |name: &str| name.len() > 3 && MISSING_WORDS.contains(&name.to_lowercase().as_str());
    let named = labels.names().iter().zip(labels.counts());
    named
        .filter(|(name, _)| is_word(name) || (one_sign && is_dash(name)))
        .map(|(name, &rows)| Note::MissingClass { label: name.clone(), rows })
        .collect()
}

/// Whether a text that is not a class may stand for a missing label: no letter or digit, a negative number, or a word for it.
fn looks_missing(text: &str) -> bool {
    let lower = text.to_lowercase();
    MISSING_WORDS.contains(&lower.as_str())
        || lower.starts_with("not ")
        || lower.starts_with("no ")
        || !text.contains(char::is_alphanumeric)
        || text.parse::<f64>().is_ok_and(|number| number < 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_say_which_place_they_are() {
        let of = |labels: &[&str], width| {
            let labels: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
            numbered(&labels, width).map(|names| names.join(" "))
        };
        assert_eq!(of(&["0", "2"], 3).as_deref(), Some("0 1 2"));
        assert_eq!(of(&["1", "3"], 3).as_deref(), Some("1 2 3"));
        assert_eq!(of(&["False", "True"], 2).as_deref(), Some("False True"));
        // From 0 or from 1; beyond the list; names; negative.
        assert_eq!(of(&["1", "2"], 3), None);
        assert_eq!(of(&["0", "3"], 3), None);
        assert_eq!(of(&["a", "b"], 2), None);
        assert_eq!(of(&["-1", "1"], 2), None);
    }

    #[test]
    fn words_for_a_missing_label() {
        for text in ["Unknown", "-", "??", "not labelled", "-9", "Missing"] {
            assert!(looks_missing(text), "{text}");
        }
        for text in ["E", "zebra", "normal", "3", "nothing found"] {
            assert!(!looks_missing(text), "{text}");
        }
    }
}
