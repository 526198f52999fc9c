//! What stands between a hostile or damaged file and the process: a budget of memory, and a fence around decoders that
//! turns their panics into errors.
//!
//! Panics were found by changing bytes of valid Parquet files (parquet 60.1.0):
//! - a page marked as dictionary-encoded though no dictionary page came before it: an `expect` in
//!   `column/reader/decoder.rs`, "Decoder for dict should have been set";
//! - a footer with a negative offset of a column: an `assert!` in `file/metadata/mod.rs`, "column start and length
//!   should not be negative".
//!
//! A damaged file is for the user to replace, and must not look like a bug of the program.

mod memory;

pub use memory::Memory;
pub(crate) use memory::{OverLimit, SHARE, amount};

use crate::error::DataError;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a step of decoding Parquet; a panic becomes an error.
pub(crate) fn guarded<T>(path: &str, step: impl FnOnce() -> Result<T, DataError>) -> Result<T, DataError> {
    fenced(|cause| DataError::parquet(path, cause), step)
}

/// Runs a step of decoding; a panic becomes the error that `damaged` makes of its message. What the step borrows
/// must not be used after an error: that makes the assertion of unwind safety below good.
pub(crate) fn fenced<T>(
    damaged: impl FnOnce(String) -> DataError,
    step: impl FnOnce() -> Result<T, DataError>,
) -> Result<T, DataError> {
    let outer = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(step));
    GUARDED.set(outer);
    result.unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(damaged(format!("it is damaged ({})", said.unwrap_or("the decoder panicked"))))
    })
}

/// Keeps the message and backtrace of panics that are turned into errors off the screen; all others are shown as before.
///
/// This replaces the panic hook of the process, so it is for programs to call, once, at their start; the library never does.
pub fn quiet_decoder_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                usual(info);
            }
        }));
    });
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::error::Error;

    #[test]
    fn a_panic_becomes_an_error() {
        let error = guarded::<()>("f", || panic!("page {}", 7)).unwrap_err();
        assert_eq!(error.source().unwrap().to_string(), "it is damaged (page 7)");
        assert!(!GUARDED.get());
        assert_eq!(guarded("f", || Ok(3)).unwrap(), 3);
    }
}
