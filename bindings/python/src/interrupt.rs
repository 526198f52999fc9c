//! Long work that lets other threads run and listens to Ctrl-C.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often signals are looked at. The work itself is never waited for longer than it takes.
const LISTEN: Duration = Duration::from_millis(50);

/// Set by Ctrl-C.
pub(crate) struct Stop(pub(crate) AtomicBool);

impl mnar::analysis::Watch for Stop {
    fn stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs `work` on a thread of its own, without the interpreter's lock, while this one listens to signals: Python runs
/// their handlers on its main thread only, which may be this one. After Ctrl-C the work is told to stop, waited for, and
/// what the handler raised is raised.
pub(crate) fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(&Stop) -> T + Send) -> PyResult<T> {
    py.detach(|| {
        let stop = Stop(AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (done, finished) = channel::<()>();
            let stop = &stop;
            let worker = scope.spawn(move || {
                let result = work(stop);
                drop(done);
                result
            });
            let mut raised = None;
            while let Err(RecvTimeoutError::Timeout) = finished.recv_timeout(LISTEN) {
                if raised.is_none()
                    && let Err(signal) = Python::attach(|py| py.check_signals())
                {
                    stop.0.store(true, Ordering::Relaxed);
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
