//! Names and values in messages: short, and on one line.

use super::{Cause, DataError};
use std::fmt;
use std::path::Path;

/// Characters of a value that a message shows: an unclosed quote can make one value of a whole file.
pub(crate) const SHOWN: usize = 60;

/// Columns that a model does not know, as the end of a message.
pub(super) fn unknown(columns: &str) -> String {
    if columns.is_empty() { String::new() } else { format!("; columns that it does not know: {columns}") }
}

/// Errors of the same file, one per line.
pub(super) fn itemised(problems: &[DataError], path: &str) -> String {
    const MOST: usize = 10;
    let start = format!("{path}: ");
    let mut text = String::new();
    for problem in problems.iter().take(MOST) {
        let said = problem.to_string();
        text.push_str(&format!("\n  - {}", said.strip_prefix(&start).unwrap_or(&said)));
    }
    if problems.len() > MOST {
        text.push_str(&format!("\n  - and {} more", problems.len() - MOST));
    }
    text
}

/// The words of a decoder, which may quote a whole damaged file.
pub(crate) fn said(cause: impl fmt::Display) -> Cause {
    shorten(&cause.to_string(), 300).into()
}

/// The name of a file in messages.
pub(crate) fn show(path: &Path) -> String {
    path.display().to_string()
}

/// The first `most` characters of a value, on one line.
pub(crate) fn shorten(value: &str, most: usize) -> String {
    let (value, rest) = match value.char_indices().nth(most) {
        Some((end, _)) => (&value[..end], "…"),
        None => (value, ""),
    };
    let mut shown = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\n' | '\r' | '\t' => shown.extend(c.escape_default()),
            other => shown.push(other),
        }
    }
    shown + rest
}

/// Names for a message, each in quotes.
pub(crate) fn ticked<S: AsRef<str>>(names: &[S]) -> String {
    list(&names.iter().map(|name| format!("`{}`", shorten(name.as_ref(), SHOWN - 3))).collect::<Vec<_>>())
}

/// Names for a message: all of them when few, the first dozen otherwise.
pub(crate) fn list<S: AsRef<str>>(names: &[S]) -> String {
    const MOST: usize = 12;
    let shown: Vec<String> = names.iter().take(MOST).map(|name| shorten(name.as_ref(), SHOWN)).collect();
    let shown = shown.join(", ");
    if names.len() > MOST { format!("{shown}, and {} more", names.len() - MOST) } else { shown }
}
