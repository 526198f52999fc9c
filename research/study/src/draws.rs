//! Parallel seeded draws, and shares with binomial intervals.

use anyhow::{Result, bail};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The seeds of one draw. The library uses the same generator as the study, so giving the draw's own number to each
/// call would produce folds that depend on the classes.
pub(crate) struct Seeds {
    pub(crate) data: u64,
    pub(crate) mask: u64,
    pub(crate) folds: u64,
    pub(crate) other_folds: u64,
    pub(crate) resample: u64,
}

impl Seeds {
    fn of(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        Self {
            data: rng.random(),
            mask: rng.random(),
            folds: rng.random(),
            other_folds: rng.random(),
            resample: rng.random(),
        }
    }
}

/// Results of the draws that succeeded, in order, and a count of those that failed.
pub(crate) struct Draws<T> {
    pub(crate) values: Vec<T>,
    pub(crate) failed: Failed,
}

/// Draws that failed, for example because a class had fewer than two labels.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Failed {
    pub(crate) draws: usize,
    pub(crate) first_message: Option<String>,
}

/// Runs `one` for each of `n` draws, with seeds `base` + draw. Values are kept in the order of the draws, so the result
/// does not depend on the number of threads.
pub(crate) fn run<T: Send>(
    name: &str,
    base: u64,
    n: usize,
    one: impl Fn(&Seeds) -> Result<T> + Sync,
) -> Result<Draws<T>> {
    let done = AtomicUsize::new(0);
    let step = n.div_ceil(10).max(1);
    let results: Vec<Result<T>> = (0..n as u64)
        .into_par_iter()
        .map(|draw| {
            let result = one(&Seeds::of(base + draw));
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if done.is_multiple_of(step) || done == n {
                eprintln!("{name}: {done} of {n} draws");
            }
            result
        })
        .collect();
    let mut draws = Draws { values: Vec::with_capacity(n), failed: Failed::default() };
    for result in results {
        match result {
            Ok(value) => draws.values.push(value),
            Err(error) => {
                draws.failed.draws += 1;
                draws.failed.first_message.get_or_insert_with(|| format!("{error:#}"));
            }
        }
    }
    if draws.values.is_empty() {
        bail!("{name}: all {n} draws failed: {}", draws.failed.first_message.unwrap_or_default());
    }
    Ok(draws)
}

/// A share of draws with a 95% interval.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Share {
    pub(crate) count: usize,
    pub(crate) of: usize,
    pub(crate) share: f64,
    pub(crate) lower: f64,
    pub(crate) upper: f64,
}

const Z: f64 = 1.959_963_984_540_054;

impl Share {
    /// The share of true outcomes with Wilson's interval, which stays inside [0, 1] and is not empty at 0 of n.
    pub(crate) fn of(outcomes: impl Iterator<Item = bool>) -> Self {
        let (mut count, mut of) = (0, 0);
        for outcome in outcomes {
            count += usize::from(outcome);
            of += 1;
        }
        let (n, share) = (of as f64, count as f64 / of as f64);
        let centre = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
        let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
        // At 0 of n and n of n the bound equals the share, up to rounding.
        let (lower, upper) = ((centre - half).clamp(0.0, share), (centre + half).clamp(share, 1.0));
        Self { count, of, share, lower, upper }
    }

    /// The share over all outcomes of all draws. The outcomes of one draw depend on each other, so the interval is that
    /// of a mean over draws.
    pub(crate) fn pooled(draws: &[Vec<bool>]) -> Self {
        let plain = Self::of(draws.iter().flatten().copied());
        let means: Vec<f64> = draws.iter().map(|draw| Self::of(draw.iter().copied()).share).collect();
        let (_, sd) = mean_and_sd(&means);
        let half = Z * sd / (means.len() as f64).sqrt();
        Self { lower: (plain.share - half).max(0.0), upper: (plain.share + half).min(1.0), ..plain }
    }

    /// Formats the share with its interval, such as "4.9% (3.7-6.4)".
    pub(crate) fn show(&self) -> String {
        format!("{:.1}% ({:.1}-{:.1})", 100.0 * self.share, 100.0 * self.lower, 100.0 * self.upper)
    }
}

/// Mean and standard deviation; the standard deviation is NaN for a single value.
pub(crate) fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (square / (n - 1.0)).sqrt())
}
