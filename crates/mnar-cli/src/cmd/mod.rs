//! One module a command.

pub(crate) mod demo;
pub(crate) mod estimate;
pub(crate) mod fit;
pub(crate) mod predict;
pub(crate) mod report;
pub(crate) mod shell;
pub(crate) mod simulate;
pub(crate) mod test;
