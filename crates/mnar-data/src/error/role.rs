//! What columns are read as, in the words of messages.

use std::fmt;

/// What a column is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnRole {
    /// A label or the fold of a row.
    Label,
    /// The probability of a class.
    Probability,
    /// The logit of a class.
    Logit,
    /// A feature that has to be a number without gaps.
    Number,
    /// A feature of a data set: numbers or names, with gaps.
    Feature,
    /// A feature of a trained model, which has to be what it was in training.
    Learnt,
}

impl ColumnRole {
    /// What makes a value fit for this role.
    pub(super) fn advice(self) -> &'static str {
        match self {
            ColumnRole::Label => "write the column as text",
            ColumnRole::Probability => "every row, labelled or not, needs a probability from 0 to 1 for every class",
            ColumnRole::Logit => "every row, labelled or not, needs a logit for every class",
            ColumnRole::Number => "choose the numeric columns to use, or write this one as numbers",
            ColumnRole::Feature => "write it as one of these, or leave it out",
            ColumnRole::Learnt => "it must be as it was in training",
        }
    }

    /// What to do about a missing value.
    pub(super) fn advice_missing(self) -> &'static str {
        match self {
            ColumnRole::Number => "fill it in, drop the row, or choose columns without gaps",
            other => other.advice(),
        }
    }
}

impl fmt::Display for ColumnRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ColumnRole::Label => "a label or fold",
            ColumnRole::Probability => "a probability",
            ColumnRole::Logit => "a logit",
            ColumnRole::Number | ColumnRole::Feature => "a feature",
            ColumnRole::Learnt => "this feature",
        })
    }
}
