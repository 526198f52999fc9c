//! The command `mnar`; what it does is in the library beside it.

use std::process::ExitCode;

/// Training frees and takes the same large buffers at every step: an allocator that keeps them spares a page fault every
/// 4 KB, up to a quarter of the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    mnar_cli::main(std::env::args_os())
}
