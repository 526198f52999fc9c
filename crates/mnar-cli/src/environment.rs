//! Environment variables, checked before anything is done.

use anyhow::{Context as _, Result, ensure};
use std::time::Duration;

/// The number of threads, which rayon reads.
const THREADS: &str = "RAYON_NUM_THREADS";

/// The longest time between two checkpoints.
const CHECKPOINT: &str = "MNAR_CHECKPOINT_SECONDS";

/// More threads than any machine has cores are a slip, and starting them may fail halfway.
const MOST_THREADS: usize = 1024;

/// Refuses values that would fail later, and less clearly.
pub(crate) fn check() -> Result<()> {
    if let Some(text) = read(THREADS)? {
        let threads = text.trim().parse::<usize>().ok().filter(|threads| *threads <= MOST_THREADS);
        threads.with_context(|| {
            format!("{THREADS} is `{text}`, but must be a number of threads up to {MOST_THREADS}, or 0 for all cores")
        })?;
    }
    checkpoint_every().map(drop)
}

/// The longest time between two checkpoints, where it is set; tests that kill a run shorten it.
pub(crate) fn checkpoint_every() -> Result<Option<Duration>> {
    let Some(text) = read(CHECKPOINT)? else { return Ok(None) };
    seconds(&text)
        .with_context(|| format!("{CHECKPOINT} is `{text}`, but must be a number of seconds from 0 to a million"))
        .map(Some)
}

fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.trim().parse().ok()?;
    (0.0..=1e6).contains(&seconds).then(|| Duration::try_from_secs_f64(seconds).ok())?
}

/// The value of a variable; one that is empty counts as not set.
fn read(name: &str) -> Result<Option<String>> {
    let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    let text = value.into_string();
    ensure!(text.is_ok(), "{name} is not text");
    Ok(text.ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_numbers_in_range() {
        assert_eq!(seconds("0"), Some(Duration::ZERO));
        assert_eq!(seconds(" 0.5 "), Some(Duration::from_millis(500)));
        for text in ["-1", "-0.001", "nan", "inf", "1e300", "", "soon"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
