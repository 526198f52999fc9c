//! Several computations side by side, each of which passes over the same rows now and then: all wait until each of them waits or
//! has ended, and one pass serves them all.

use crate::error::Error;
use crate::travel::Walk;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Where computations ask for passes.
pub(crate) struct Lockstep {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Computations that neither wait nor have ended.
    running: usize,
    asked: Vec<(usize, Walk)>,
    answers: Vec<Option<Option<Walk>>>,
}

/// Counts a computation out, even where it panics.
struct Ends<'a>(&'a Lockstep);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.lock().running -= 1;
        self.0.changed.notify_all();
    }
}

impl Lockstep {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sums of one computation after a pass; `None` where the pass failed.
    pub(crate) fn ask(&self, computation: usize, walk: Walk) -> Option<Walk> {
        let mut state = self.lock();
        state.asked.push((computation, walk));
        state.running -= 1;
        self.changed.notify_all();
        loop {
            if let Some(answer) = state.answers[computation].take() {
                return answer;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Runs `compute` for 0 to `count`, and `pass` on this thread for all that are asked at a time. `pass` answers in the order of
    /// what it is asked.
    pub(crate) fn run<T: Send>(
        count: usize,
        mut pass: impl FnMut(Vec<(usize, Walk)>) -> Result<Vec<Walk>, Error>,
        compute: impl Fn(usize, &Self) -> T + Sync,
    ) -> Result<Vec<T>, Error> {
        let state = State { running: count, asked: Vec::new(), answers: (0..count).map(|_| None).collect() };
        let lockstep = Self { state: Mutex::new(state), changed: Condvar::new() };
        std::thread::scope(|scope| {
            let (lockstep, compute) = (&lockstep, &compute);
            let started = (0..count).map(|computation| {
                scope.spawn(move || {
                    let _ends = Ends(lockstep);
                    compute(computation, lockstep)
                })
            });
            let threads: Vec<_> = started.collect();
            let mut failed = None;
            loop {
                let mut state = lockstep.lock();
                while state.running > 0 {
                    state = lockstep.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                let mut asked = std::mem::take(&mut state.asked);
                drop(state);
                if asked.is_empty() {
                    break;
                }
                // In the order of the computations, so that a pass has the same bytes whichever of them was first.
                asked.sort_by_key(|(computation, _)| *computation);
                let who: Vec<usize> = asked.iter().map(|(computation, _)| *computation).collect();
                let found = if failed.is_some() {
                    Vec::new()
                } else {
                    pass(asked).unwrap_or_else(|error| {
                        failed = Some(error);
                        Vec::new()
                    })
                };
                let mut found = found.into_iter();
                let mut state = lockstep.lock();
                state.running = who.len();
                for computation in who {
                    state.answers[computation] = Some(found.next());
                }
                lockstep.changed.notify_all();
            }
            let found = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            let found: Vec<T> = found.collect();
            failed.map_or(Ok(found), Err)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sums::Tally;
    use crate::travel::Kind;

    fn tally(rows: f64) -> Walk {
        Walk(Kind::Tally(Tally { n_unlabelled: rows, ..Tally::zero(2) }))
    }

    fn rows(walk: &Walk) -> f64 {
        match &walk.0 {
            Kind::Tally(tally) => tally.n_unlabelled,
            _ => f64::NAN,
        }
    }

    /// Computation i asks i times; a pass adds one.
    #[test]
    fn one_pass_serves_all() {
        let mut passes = Vec::new();
        let add = |asked: Vec<(usize, Walk)>| {
            passes.push(asked.len());
            Ok(asked.iter().map(|(_, walk)| tally(rows(walk) + 1.0)).collect())
        };
        let found = Lockstep::run(5, add, |i, lockstep| {
            (0..i).fold(0.0, |total, _| rows(&lockstep.ask(i, tally(total)).expect("no pass fails")))
        });
        assert_eq!(found.expect("no pass fails"), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(passes, [4, 3, 2, 1]);
    }

    #[test]
    fn a_pass_that_fails_ends_all() {
        let found = Lockstep::run(3, |_| Err(Error::NoRows), |i, lockstep| lockstep.ask(i, tally(0.0)).is_none());
        assert!(matches!(found, Err(Error::NoRows)));
    }
}
