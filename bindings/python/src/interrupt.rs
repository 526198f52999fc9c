//! Long work that lets other threads run and listens to Ctrl-C.

use crate::errors::hint;
use mnar::Progress;
use mnar_cli::Terminal;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often signals are checked. Finished work is never kept waiting.
const LISTEN: Duration = Duration::from_millis(50);

/// Runs `work` on a thread of its own, without the interpreter's lock, while this one listens to signals: Python runs
/// their handlers on its main thread only, which may be this one. After Ctrl-C the work is told to stop and waited for, and
/// what the handler raised is raised.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    quiet: bool,
    work: impl FnOnce(&dyn Progress) -> T + Send,
) -> PyResult<T> {
    py.detach(|| {
        let stop = Arc::new(AtomicBool::new(false));
        let terminal = Terminal::new(quiet, stop.clone()).with_spelling(hint);
        std::thread::scope(|scope| {
            let (done, finished) = channel::<()>();
            let terminal = &terminal;
            let worker = scope.spawn(move || {
                let result = work(terminal);
                terminal.clear();
                drop(done);
                result
            });
            let mut raised = None;
            while let Err(RecvTimeoutError::Timeout) = finished.recv_timeout(LISTEN) {
                if raised.is_none()
                    && let Err(signal) = Python::attach(|py| py.check_signals())
                {
                    stop.store(true, Ordering::Relaxed);
                    raised = Some(signal);
                }
            }
            match (raised, worker.join()) {
                (Some(signal), _) => Err(signal),
                (None, Ok(result)) => Ok(result),
                (None, Err(panic)) => std::panic::resume_unwind(panic),
            }
        })
    })
}
