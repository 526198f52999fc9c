//! How results reach stdout.

use anyhow::Result;
use serde::Serialize;
use std::io::Write;

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

/// Writes text to stdout. A closed pipe is an error that `main` treats as success.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

pub(crate) fn print_json(value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print(&text)
}
