//! What may be the matter with a label.

use std::fmt;

/// What may be the matter with a label that is not among the classes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelAdvice {
    /// It looks like a mark of a missing label.
    Missing,
    /// It differs from this class only by case or blanks.
    Alike(String),
    /// There is no column for its class, which would have this name.
    NoColumn(String),
    /// There is one column alone, for another class.
    OneColumn {
        /// The column.
        column: String,
        /// Its class.
        class: String,
    },
    /// It was not named with the classes.
    NotNamed,
}

impl fmt::Display for LabelAdvice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabelAdvice::Missing => f.write_str("does it stand for a missing label?"),
            LabelAdvice::Alike(class) => write!(f, "it differs from `{class}` only by case or blanks"),
            LabelAdvice::NoColumn(column) => write!(f, "its probabilities would be in a column `{column}`"),
            LabelAdvice::OneColumn { column, .. } => {
                write!(f, "one column is enough for two classes, if `{column}` is named as the only one")
            }
            LabelAdvice::NotNamed => f.write_str("name all classes, or number the labels from 0"),
        }
    }
}
