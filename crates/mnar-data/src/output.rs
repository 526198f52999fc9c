//! Where a result may be written.

use crate::atomic::is_stdout;
use crate::error::{DataError, show};
use crate::format::Format;
use std::path::Path;

/// Refuses a file for a table that is also read, and so would be lost, and one whose name stands for a format that cannot be
/// written. To be called before work begins.
pub fn check_output(output: &Path, inputs: &[&Path]) -> Result<(), DataError> {
    check_not_read(output, inputs)?;
    match Format::of_name(output).filter(|_| !is_stdout(output)) {
        Some(format @ (Format::Excel | Format::Arrow | Format::Json)) => {
            Err(DataError::OutputFormat { path: show(output), format: format.name() })
        }
        _ => Ok(()),
    }
}

/// Refuses a file for a result, of whatever kind, that is also read.
pub fn check_not_read(output: &Path, inputs: &[&Path]) -> Result<(), DataError> {
    // A file that does not exist yet cannot be an input.
    let Ok(place) = output.canonicalize() else { return Ok(()) };
    let is_read = |input: &&Path| input.canonicalize().is_ok_and(|input| input == place);
    match inputs.iter().any(is_read) {
        true => Err(DataError::OutputIsInput { path: show(output) }),
        false => Ok(()),
    }
}
