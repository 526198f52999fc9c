//! What the user could do about an error, as data.

use super::words::SHOWN;
use super::{ColumnRole, DataError, LabelAdvice};
use crate::column_builder::ODD;
use crate::columns::is_called_probability;
use crate::guard::Memory;
use crate::values::folded;
use mnar::Remedy;
use mnar::posteriors::are_percentages;
use std::collections::HashSet;

/// What the names of probability columns start with unless another prefix is named.
pub(crate) const DEFAULT_PREFIX: &str = "p_";

/// A name for a file of labels, where one is needed and only the user knows it.
const LABELS: &str = "labels.csv";

/// Sheets that are suggested.
const MOST_SHEETS: usize = 4;

impl DataError {
    /// What the user could do about the error, as options and their values.
    ///
    /// ```
    /// use mnar::Remedy;
    /// use mnar_data::{PredictionColumns, predictions_from_csv};
    /// let csv = "label,p_cat,p_dog\ncat,0.9,0.1\nunknown,0.3,0.7\ndog,0.2,0.8\n";
    /// let error = predictions_from_csv(csv.as_bytes(), &PredictionColumns::new("label"), "pets.csv").unwrap_err();
    /// assert_eq!(error.remedies(), [Remedy::set("missing", "unknown")]);
    /// ```
    pub fn remedies(&self) -> Vec<Remedy> {
        // What a message has to shorten is free text or a damaged file, not a value to be named.
        let named = |option, value: &String| (value.chars().count() <= SHOWN).then(|| Remedy::set(option, value));
        match self {
            DataError::NoClassColumns { likely, prefix, .. } => {
                // Nobody named probabilities, and nothing is called like them: the columns may be features.
                let called = likely.as_ref().is_some_and(|likely| is_called_probability(likely));
                let features = (prefix == DEFAULT_PREFIX && !called).then(|| Remedy::set("features", "all"));
                likely.iter().map(|likely| Remedy::set("proba", likely)).chain(features).collect()
            }
            DataError::UnknownLabel { label, advice, .. } => match &**advice {
                LabelAdvice::Missing => named("missing", label).into_iter().collect(),
                LabelAdvice::Alike(_) => vec![Remedy::set("merge-labels", "")],
                LabelAdvice::OneColumn { column, class } => {
                    vec![Remedy::All(vec![Remedy::set("proba", column), Remedy::set("positive", class)])]
                }
                LabelAdvice::NoColumn(_) | LabelAdvice::NotNamed => Vec::new(),
            },
            DataError::NumberedLabels { classes, .. } => vec![in_order(classes)],
            DataError::ListClasses { labels, width, .. } if labels.len() == *width => vec![in_order(labels)],
            DataError::ListClasses { .. } => vec![Remedy::set("classes", "NAMES")],
            DataError::PositiveUnknown { classes, .. } => {
                classes.iter().map(|class| Remedy::set("positive", class)).collect()
            }
            DataError::NotTwoClasses { labels, .. } => match &labels[..] {
                [only] => vec![in_order(&["OTHER".to_owned(), only.clone()])],
                several => {
                    let different: HashSet<String> = several.iter().map(|label| folded(label)).collect();
                    (different.len() == 2).then(|| Remedy::set("merge-labels", "")).into_iter().collect()
                }
            },
            DataError::PositiveUnused { .. } => vec![Remedy::unset("positive")],
            DataError::NotAProbability { value, sum, .. } if value.is_finite() && !are_percentages(*sum) => {
                vec![Remedy::set("logits", "")]
            }
            DataError::ColumnType { role: ColumnRole::Feature, column, .. }
            | DataError::Infinite { column, .. }
            | DataError::ListLength { column, .. }
            | DataError::Disguised { column, .. }
            | DataError::TooLarge { column, .. }
            | DataError::TooFine { column, .. } => vec![Remedy::set("ignore", column)],
            DataError::TooManyLevels { column, .. } => vec![Remedy::set("ignore", column), Remedy::set("id", column)],
            DataError::MixedColumn { column, value, others, .. } => {
                let values: Vec<&str> = std::iter::once(value).chain(others).map(String::as_str).collect();
                read_as_missing(&values).into_iter().chain([Remedy::set("categorical", column)]).collect()
            }
            DataError::NoLabelColumn { likely: Some(likely), .. } => vec![Remedy::set("label", likely)],
            DataError::NoLabelsInside { .. } => vec![Remedy::set("labels", LABELS)],
            DataError::NoClassFolders { .. } => {
                vec![Remedy::All(vec![Remedy::set("labels", LABELS), Remedy::set("label", "COLUMN")])]
            }
            DataError::LabelNotAColumn { .. } => vec![Remedy::unset("label"), Remedy::set("labels", LABELS)],
            DataError::IdNotAColumn { .. } => vec![Remedy::unset("id")],
            DataError::NoSheets { .. } => vec![Remedy::unset("sheet")],
            DataError::NoLines { .. } | DataError::AllSkipped { .. } => vec![Remedy::unset("skip-rows")],
            DataError::TitleRows { row, skippable: true, .. } => {
                vec![Remedy::set("skip-rows", row.saturating_sub(1).to_string())]
            }
            DataError::UnknownSheet { sheets, .. } => {
                sheets.iter().take(MOST_SHEETS).map(|sheet| Remedy::set("sheet", sheet)).collect()
            }
            // The sheet may be the right one, or another.
            DataError::OneSheet { lack, others, .. } => {
                let others = others.iter().take(MOST_SHEETS).map(|sheet| Remedy::set("sheet", sheet));
                lack.remedies().into_iter().chain(others).collect()
            }
            DataError::ImageSizes { first_size, .. } => vec![Remedy::set("resize", first_size)],
            // More than the machine has would be no remedy.
            DataError::Memory { limit, .. } if *limit < Memory::default().resolved().limit() => {
                vec![Remedy::unset("memory")]
            }
            // One hint for all columns: the first remedy of each.
            DataError::Columns { problems, .. } => {
                let mut together = Vec::new();
                for remedy in problems.iter().filter_map(|problem| problem.remedies().into_iter().next()) {
                    let remedies = if let Remedy::All(remedies) = remedy { remedies } else { vec![remedy] };
                    for remedy in remedies {
                        if !together.contains(&remedy) {
                            together.push(remedy);
                        }
                    }
                }
                if together.is_empty() { together } else { vec![Remedy::All(together)] }
            }
            _ => Vec::new(),
        }
    }

    /// The column whose values cannot be used, where the error is about one.
    pub fn column(&self) -> Option<&str> {
        match self {
            DataError::NotANumber { column, .. }
            | DataError::Infinite { column, .. }
            | DataError::ColumnType { column, .. }
            | DataError::MixedColumn { column, .. }
            | DataError::TooManyLevels { column, .. }
            | DataError::Disguised { column, .. }
            | DataError::TooLarge { column, .. }
            | DataError::TooFine { column, .. }
            | DataError::ListLength { column, .. } => Some(column),
            _ => None,
        }
    }
}

/// Reads these values as missing, unless they are too many or too long to be named.
pub(crate) fn read_as_missing(values: &[&str]) -> Option<Remedy> {
    let short = values.iter().all(|value| value.chars().count() <= SHOWN);
    let mut each: Vec<Remedy> = values.iter().map(|value| Remedy::set("missing", *value)).collect();
    match each.len() {
        1 if short => each.pop(),
        2..=ODD if short => Some(Remedy::All(each)),
        _ => None,
    }
}

/// Names the classes in this order, unless a comma in a name would make two of it.
fn in_order(classes: &[String]) -> Remedy {
    let plain = classes.iter().all(|class| !class.contains(',') && class.chars().count() <= SHOWN);
    Remedy::set("classes", if plain { classes.join(",") } else { "NAMES".to_owned() })
}
