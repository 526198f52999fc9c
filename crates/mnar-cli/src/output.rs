//! The one exit for text: everything that is printed, on stdout or stderr, goes through here.
//!
//! Labels, column names and file names are data, and data may hold escape sequences that change a terminal's title or
//! colours, or marks that reorder the text around them. They are made visible here, in one place. Whoever reads stdout may
//! leave early (`| head`), which changes neither what is computed nor the exit code; and that nobody can read stderr is no
//! reason to fail.

use anyhow::{Context as _, Result};
use mnar_data::is_stdout;
use mnar_report::{is_unsettling, printable_lines};
use serde::Serialize;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// A result as JSON, headed by the version that made it.
#[derive(Serialize)]
pub(crate) struct Versioned<T> {
    version: &'static str,
    #[serde(flatten)]
    result: T,
}

impl<T> Versioned<T> {
    pub(crate) fn new(result: T) -> Self {
        Self { version: env!("CARGO_PKG_VERSION"), result }
    }
}

/// Writes a result to stdout. A closed pipe is not an error, but a full disk is.
pub(crate) fn print(text: &str) -> Result<()> {
    write_out(&printable_lines(text))
}

/// Writes a result to stdout as JSON. What would upset a terminal is escaped, so that programs read it as it was.
pub(crate) fn print_json(value: &impl Serialize) -> Result<()> {
    write_out(&(escaped(&serde_json::to_string_pretty(value)?) + "\n"))
}

/// Writes a result as [`print`] does, or to stderr where standard output is taken by the file that was asked for as well.
pub(crate) fn print_beside(file: Option<&Path>, text: &str) -> Result<()> {
    if !file.is_some_and(is_stdout) {
        return print(text);
    }
    complain(text.trim_end());
    Ok(())
}

/// Writes a result as [`print_json`] does, or to stderr where standard output is taken by the file that was asked for as
/// well.
pub(crate) fn print_json_beside(file: Option<&Path>, value: &impl Serialize) -> Result<()> {
    if !file.is_some_and(is_stdout) {
        return print_json(value);
    }
    complain(&escaped(&serde_json::to_string_pretty(value)?));
    Ok(())
}

/// Writes a line to stderr, if that is possible.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable_lines(line));
}

fn write_out(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("the result cannot be written"),
        _ => Ok(()),
    }
}

/// JSON in which characters that would upset a terminal are escaped. They can only stand in strings.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unsettling(c) && c != '\n' {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_what_a_terminal_must_not_see() {
        let label = "a\u{202e}b\u{1b}[31m\u{9b}c\u{7f}\n\u{feff}";
        let json = escaped(&serde_json::to_string_pretty(&[label]).unwrap());
        assert!(json.is_ascii() || !json.chars().any(|c| is_unsettling(c) && c != '\n'), "{json}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), [label]);
    }
}
