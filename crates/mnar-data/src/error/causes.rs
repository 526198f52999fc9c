//! Errors made of other errors.

use super::DataError;
use super::words::said;
use crate::guard::OverLimit;
use parquet::errors::ParquetError;
use std::fmt;
use std::io;

impl DataError {
    /// One error for all that is wrong.
    pub(crate) fn all(mut problems: Vec<DataError>, path: &str) -> Self {
        match problems.pop() {
            Some(only) if problems.is_empty() => only,
            last => {
                problems.extend(last);
                DataError::Columns { path: path.to_owned(), problems }
            }
        }
    }

    pub(crate) fn io(path: &str, action: &'static str, source: io::Error) -> Self {
        match OverLimit::of(&source) {
            Some(limit) => DataError::Memory { path: path.to_owned(), what: "its contents", needed: limit, limit },
            None => DataError::Io { path: path.to_owned(), action, source },
        }
    }

    pub(crate) fn core(path: &str, source: mnar::Error) -> Self {
        DataError::Core { path: path.to_owned(), source }
    }

    /// An error of the checks of probabilities, which know classes by their number from 1, with the name of the class.
    pub(crate) fn posterior(path: &str, source: mnar::Error, classes: &[String]) -> Self {
        match source {
            mnar::Error::NotAProbability { row, class, value, sum } => {
                let class = classes[class.index()].clone();
                DataError::NotAProbability { path: path.to_owned(), row, class, value, sum }
            }
            mnar::Error::NotFinite { row, column, value, .. } => {
                let class = classes[column - 1].clone();
                DataError::NotALogit { path: path.to_owned(), row, class, value }
            }
            other => Self::core(path, other),
        }
    }

    pub(crate) fn parquet(path: &str, cause: impl fmt::Display) -> Self {
        DataError::Parquet { path: path.to_owned(), source: said(cause) }
    }

    /// An error in writing Parquet; the error of the operating system is unwrapped, so that a closed pipe is recognised.
    pub(crate) fn parquet_written(path: &str, error: ParquetError) -> Self {
        let source = match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(source) => *source,
                Err(other) => io::Error::other(other),
            },
            other => io::Error::other(other),
        };
        Self::io(path, "written", source)
    }

    /// An error in writing CSV; the error of the operating system is unwrapped, so that a closed pipe is recognised.
    pub(crate) fn csv(path: &str, action: &'static str, error: csv::Error) -> Self {
        let source = match error.into_kind() {
            csv::ErrorKind::Io(source) => source,
            other => io::Error::other(format!("{other:?}")),
        };
        Self::io(path, action, source)
    }
}
