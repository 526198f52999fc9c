//! Flags of all commands that read data or write tables.

use clap::Args;
use mnar_data::{Formulas, Memory, Source, TextTable};
use std::path::Path;

/// How much memory there is.
#[derive(Args, Clone, Copy)]
pub(crate) struct MemoryArgs {
    /// Available memory, such as 2GB; data may take a quarter of it, and files that hold more, or claim to, are refused
    /// [default: all of the machine's]
    #[arg(long, value_name = "SIZE")]
    memory: Option<Memory>,
}

impl MemoryArgs {
    /// The memory that there is.
    pub(crate) fn most(self) -> Memory {
        self.memory.unwrap_or_default()
    }
}

/// The data at `path`, or what was held of them because they can be read only once.
pub(crate) fn source<'a>(path: &'a Path, held: Option<&'a TextTable>, memory: Memory) -> Source<'a> {
    held.map_or_else(|| Source::from(path), Source::from).with_memory(memory)
}

/// What becomes of texts that a spreadsheet would take for formulas.
pub(crate) fn formulas(keep: bool) -> Formulas {
    if keep { Formulas::Kept } else { Formulas::Neutralised }
}
