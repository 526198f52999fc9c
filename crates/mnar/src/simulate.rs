//! Hides labels according to a known mechanism.

use crate::error::{Error, list_names};
use crate::labels::Labels;
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
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // A separate stream: folds drawn later with the same seed must not follow the mask.
    rng.set_stream(u64::MAX);
    Ok(labels
        .as_slice()
        .iter()
        .map(|label| {
            // One draw per row, labelled or not: masks of the same seed agree wherever the labels do.
            let draw: f64 = rng.random();
            label.is_some_and(|class| draw < phi[class.index()])
        })
        .collect())
}

/// The labels that remain after masking.
pub fn apply_mask(labels: &Labels, kept: &[bool]) -> Result<Labels, Error> {
    let y = labels.as_slice().iter().zip(kept).map(|(label, kept)| label.filter(|_| *kept)).collect();
    Labels::new(y, labels.names().to_vec())
}
