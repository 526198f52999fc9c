//! A column of numbers, or of lists of numbers, which become one column per place in the list.

use crate::error::{ColumnRole, DataError};

/// A column of numbers: one per row, or lists of the same length, in arrays or in text.
pub(crate) struct NumberColumn {
    name: String,
    path: String,
    role: ColumnRole,
    /// The length of the lists, once the first is seen.
    width: Option<usize>,
}

impl NumberColumn {
    pub(crate) fn new(name: &str, role: ColumnRole, path: &str) -> Self {
        Self { name: name.to_owned(), path: path.to_owned(), role, width: None }
    }

    /// The file.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Adds the list of a row, counted from 1, to the columns; they are made for the first row.
    pub(crate) fn push_list(
        &mut self,
        list: &[Option<f64>],
        row: usize,
        columns: &mut Vec<Vec<f64>>,
    ) -> Result<(), DataError> {
        if list.is_empty() {
            return Err(self.refuse("", row));
        }
        let (found, expected) = (list.len(), *self.width.get_or_insert(list.len()));
        if found != expected {
            let (path, column) = (self.path.clone(), self.name.clone());
            return Err(DataError::ListLength { path, row, column, found, expected });
        }
        columns.resize_with(expected, Vec::new);
        for (values, value) in columns.iter_mut().zip(list) {
            values.push(value.ok_or_else(|| self.refuse("", row))?);
        }
        Ok(())
    }

    /// Adds a text such as `[0.1, 0.9]`, as pandas writes lists, `[0.1 0.9]`, as numpy does, or `0.9`. Lists of numpy's own
    /// numbers are written as `[np.float64(0.1), np.float64(0.9)]`.
    pub(crate) fn push_text(
        &mut self,
        text: &str,
        row: usize,
        parse: impl Fn(&str) -> Option<f64>,
        columns: &mut Vec<Vec<f64>>,
    ) -> Result<(), DataError> {
        let number = |part: &str| {
            let typed = part.strip_prefix("np.float").and_then(|typed| typed.split_once('(')?.1.strip_suffix(')'));
            parse(typed.unwrap_or(part)).map(Some).ok_or_else(|| self.refuse(part, row))
        };
        let text = text.trim();
        let list = match inside(text) {
            Some(inner) => {
                let parts = inner.split([',', ';', ' ', '\t', '\n', '\r']).filter(|part| !part.is_empty());
                parts.map(number).collect::<Result<Vec<_>, _>>()?
            }
            None => vec![number(text)?],
        };
        self.push_list(&list, row, columns)
    }

    /// The error of a text that is not a number, in a row counted from 1; blank where there is none.
    pub(crate) fn refuse(&self, text: &str, row: usize) -> DataError {
        let (path, column, role) = (self.path.clone(), self.name.clone(), self.role);
        if text.is_empty() {
            DataError::MissingValue { path, row, column, role }
        } else {
            DataError::NotANumber { path, row, column, value: text.to_owned(), role }
        }
    }
}

/// What is between the brackets of a list, an array or a tuple.
fn inside(text: &str) -> Option<&str> {
    match text.split_once('[') {
        Some(("" | "array(" | "tensor(", rest)) => rest.rsplit_once(']').map(|(inner, _)| inner),
        _ => text.strip_prefix('(')?.strip_suffix(')'),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Result<Vec<Vec<f64>>, String> {
        let mut column = NumberColumn::new("p", ColumnRole::Probability, "f");
        let mut columns = Vec::new();
        for (i, text) in texts.iter().enumerate() {
            let parse = |text: &str| text.parse().ok();
            column.push_text(text, i + 1, parse, &mut columns).map_err(|error| error.to_string())?;
        }
        Ok(columns)
    }

    #[test]
    fn lists_are_read_however_they_are_written() {
        let expected = [[0.1, 0.25], [0.9, 0.75]];
        assert_eq!(read(&["[0.1, 0.9]", "[0.25,0.75]"]).unwrap(), expected);
        assert_eq!(read(&["[0.1  0.9]", " [.25\n 0.75] "]).unwrap(), expected);
        assert_eq!(read(&["(1e-1; 0.9)", "[0.25\t0.75]"]).unwrap(), expected);
        assert_eq!(
            read(&["[np.float64(0.1), np.float32(0.9)]", "array([0.25, 0.75], dtype=float32)"]).unwrap(),
            expected
        );
        assert_eq!(read(&["0.5", " 1 "]).unwrap(), [[0.5, 1.0]]);
    }

    #[test]
    fn lists_that_are_none_are_named() {
        assert!(read(&["[0.1, 0.9]", "[1]"]).unwrap_err().starts_with("f: row 2, column `p`: a list of 1 numbers"));
        assert!(read(&["[0.1, high]"]).unwrap_err().starts_with("f: row 1, column `p`: `high` is not a number"));
        for blank in ["", " ", "[]"] {
            assert!(read(&["0.5", blank]).unwrap_err().starts_with("f: row 2, column `p`: the value is missing"));
        }
        assert!(read(&["map[0.1, 0.9]"]).unwrap_err().contains("`map[0.1, 0.9]` is not a number"));
        assert!(read(&["[0.1, 0.9"]).unwrap_err().contains("`[0.1, 0.9` is not a number"));
    }
}
