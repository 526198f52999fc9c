//! Hides labels according to a known mechanism.

use crate::error::{Error, list_names};
use crate::labels::{Class, Labels};
use crate::phi::Phi;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Keeps the label of a row of class k with probability phi_k, in a seeded draw; labels that are already missing stay
/// missing. Returns which rows keep their label.
pub fn mask(labels: &Labels, phi: &Phi, seed: u64) -> Result<Vec<bool>, Error> {
    if phi.len() != labels.n_classes() {
        return Err(Error::ClassCountMismatch {
            found: phi.len(),
            expected: labels.n_classes(),
            classes: list_names(labels.names()),
        });
    }
    let by_class = |label: Option<Class>| label.map_or(0.0, |class| phi[class.index()]);
    Ok(draw(labels, |row| by_class(labels.get(row)), seed))
}

/// Like [`mask`], with a mechanism that depends on columns too: the odds of a label of class k are those of phi_k, times the
/// factor of the row.
pub fn mask_by_columns(labels: &Labels, phi: &Phi, log_odds: &[f64], seed: u64) -> Result<Vec<bool>, Error> {
    if log_odds.len() != labels.len() {
        return Err(Error::LengthMismatch {
            what: "the odds of the rows",
            found: log_odds.len(),
            expected: labels.len(),
        });
    }
    mask(labels, phi, seed)?;
    let of_row = |row: usize| match labels.get(row) {
        None => 0.0,
        Some(class) if phi[class.index()] >= 1.0 => 1.0,
        Some(class) => {
            let phi = phi[class.index()];
            1.0 / (1.0 + (1.0 - phi) / phi * (-log_odds[row]).exp())
        }
    };
    Ok(draw(labels, of_row, seed))
}

/// Which rows keep their label, each with its own probability.
fn draw(labels: &Labels, probability: impl Fn(usize) -> f64, seed: u64) -> Vec<bool> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // A separate stream: folds drawn later with the same seed must not follow the mask.
    rng.set_stream(u64::MAX);
    (0..labels.len())
        .map(|row| {
            // One draw per row, labelled or not: masks of the same seed agree wherever the labels do.
            let draw: f64 = rng.random();
            labels.is_labelled(row) && draw < probability(row)
        })
        .collect()
}

/// The labels that remain after masking.
pub fn apply_mask(labels: &Labels, kept: &[bool]) -> Result<Labels, Error> {
    let y = labels.as_slice().iter().zip(kept).map(|(label, kept)| label.filter(|_| *kept)).collect();
    Labels::new(y, labels.names().to_vec())
}
