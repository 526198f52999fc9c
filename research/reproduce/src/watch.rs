//! What a caller sees of the runs of an experiment.

use mnar::Progress;

/// Watches the runs of an experiment, and cancels them.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Progress within a run. Once it cancels, the run in progress is given up; complete ones are kept.
    pub progress: &'a dyn Progress,
    /// Called when a run begins, and when its result is there.
    pub on_run: &'a dyn Fn(RunEvent<'_>),
}

/// The beginning or the end of a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RunEvent<'a> {
    /// A run begins.
    Begins {
        /// The method, or the way of labelling.
        what: &'a str,
        /// Seed of the run.
        seed: u64,
        /// The number of runs that are complete.
        done: usize,
        /// The number of all runs.
        of: usize,
    },
    /// A run is complete, whether now or in an earlier call.
    Ended {
        /// A summary of its result.
        line: &'a str,
    },
}
