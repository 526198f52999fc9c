//! Progress as lines of a log, for when stderr is a file or a pipe.

use mnar::progress::Stage;
use std::time::{Duration, Instant};

/// How often a line is written. Work that ends sooner writes none.
const EVERY: Duration = Duration::from_secs(10);

/// Decides when long work has something to say, and what.
pub(crate) struct ProgressLog {
    stage: Stage,
    steps: u64,
    /// Steps that an earlier, interrupted run has done.
    before: u64,
    done: u64,
    began: Instant,
    spoke: Instant,
}

impl ProgressLog {
    pub(crate) fn new(now: Instant) -> Self {
        Self { stage: Stage::Read, steps: 0, before: 0, done: 0, began: now, spoke: now }
    }

    /// A stage starts. The time since the last line runs on, so that many short stages are heard of too.
    pub(crate) fn begin(&mut self, stage: Stage, steps: u64, done: u64, now: Instant) {
        *self = Self { stage, steps, before: done, done, began: now, spoke: self.spoke };
    }

    /// One more step is done; the line to write, if it is time for one.
    pub(crate) fn step(&mut self, now: Instant) -> Option<String> {
        self.done += 1;
        if now.duration_since(self.spoke) < EVERY {
            return None;
        }
        self.spoke = now;
        Some(self.line(now.duration_since(self.began)))
    }

    fn line(&self, elapsed: Duration) -> String {
        let stage = self.stage.name();
        if self.steps == 0 {
            return format!("{stage}: step {}, {}", self.done, seconds(elapsed));
        }
        let left = self.steps.saturating_sub(self.done);
        let ours = self.done.saturating_sub(self.before).max(1);
        let remaining = elapsed.mul_f64(left as f64 / ours as f64);
        format!("{stage}: {} of {}, {}, about {} left", self.done, self.steps, seconds(elapsed), seconds(remaining))
    }
}

fn seconds(time: Duration) -> String {
    humantime::format_duration(Duration::from_secs(time.as_secs_f64().round() as u64)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speaks_every_ten_seconds_and_says_what_is_left() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let mut log = ProgressLog::new(start);
        log.begin(Stage::Bootstrap, 100, 20, at(1));
        assert_eq!(log.step(at(5)), None);
        let line = log.step(at(11));
        assert_eq!(line.as_deref(), Some("bootstrap: 22 of 100, 10s, about 6m 30s left"));
        assert_eq!(log.step(at(12)), None);
        log.begin(Stage::Debiased, 0, 0, at(13));
        assert_eq!(log.step(at(21)).as_deref(), Some("debiased: step 1, 8s"));
    }
}
