//! The command `mnar`.
fn main() {}
