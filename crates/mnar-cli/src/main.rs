//! The command `mnar`. What it does is in the library beside it.

use std::io::Write as _;
use std::process::ExitCode;

/// Training frees and allocates the same large buffers at every step. An allocator that keeps them saves a page fault per
/// 4 KB, up to a quarter of the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The environment variable that selects what computes the layers of networks on the CPU.
const KERNELS: &str = "MNAR_KERNELS";

fn main() -> ExitCode {
    if let Some(name) = std::env::var_os(KERNELS).filter(|name| !name.is_empty()) {
        let name = name.to_string_lossy();
        if let Err(error) = mnar_train::layers::select_cpu_kernels(&name) {
            // Escaped, and without failing where stderr cannot be written.
            let _ = writeln!(std::io::stderr(), "error: {KERNELS}={}: {error}, or unset it", name.escape_debug());
            return ExitCode::from(2);
        }
    }
    ExitCode::from(mnar_cli::main(std::env::args_os()))
}
