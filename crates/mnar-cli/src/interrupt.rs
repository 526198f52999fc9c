//! Ctrl-C, and what a scheduler sends before it kills.

use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// What a shell reports for a program that Ctrl-C, or SIGTERM, ended.
const INTERRUPTED: u8 = 130;
#[cfg(unix)]
const TERMINATED: u8 = 143;

/// A flag that Ctrl-C and SIGTERM set, so that long work keeps what is done and stops. A second signal ends the process at once;
/// files are written whole or not at all.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    flag: Arc<AtomicBool>,
    code: Arc<AtomicU8>,
}

impl Stop {
    /// Starts to listen. Call it before other threads start: they would let SIGTERM end the process.
    pub(crate) fn on_signals() -> Result<Self> {
        let stop = Self { flag: Arc::default(), code: Arc::new(AtomicU8::new(INTERRUPTED)) };
        #[cfg(unix)]
        stop.clone().listen_for_sigterm()?;
        let handler = stop.clone();
        ctrlc::set_handler(move || handler.stop(INTERRUPTED))?;
        Ok(stop)
    }

    /// The flag.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        self.flag.clone()
    }

    /// The exit code that says what stopped the work.
    pub(crate) fn code(&self) -> u8 {
        self.code.load(Ordering::SeqCst)
    }

    fn stop(&self, code: u8) {
        self.code.store(code, Ordering::SeqCst);
        if self.flag.swap(true, Ordering::SeqCst) {
            std::process::exit(i32::from(code));
        }
    }

    /// SIGTERM is kept from all threads but one, which waits for it. SIGHUP stays as it is: `nohup` must go on working.
    #[cfg(unix)]
    fn listen_for_sigterm(self) -> Result<()> {
        use nix::sys::signal::{SigSet, Signal};
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGTERM);
        signals.thread_block()?;
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            while signals.wait().is_ok() {
                self.stop(TERMINATED);
            }
        })?;
        Ok(())
    }
}
