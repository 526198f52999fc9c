//! Which rows a step sees. Everything follows from the seed and the step, so a resumed run sees the same rows.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Endless batches from a set of rows, each pass in a new order. A pass leaves no row out: where it ends inside a
/// batch, the next pass fills the batch up.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    rows: Vec<usize>,
    batch: usize,
    seed: u64,
    /// The pass that `order` belongs to.
    pass: Option<u64>,
    order: Vec<usize>,
}

impl Walk {
    /// Batches of `batch` rows, or of all rows if there are fewer.
    pub(crate) fn new(rows: Vec<usize>, batch: usize, seed: u64) -> Self {
        let batch = batch.clamp(1, rows.len().max(1));
        Self { rows, batch, seed, pass: None, order: Vec::new() }
    }

    /// Number of steps that count as one pass: the whole batches, at least 1.
    pub(crate) fn steps(&self) -> u64 {
        (self.rows.len() / self.batch).max(1) as u64
    }

    /// Whether there are no rows at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows of a step; steps are counted from 0.
    pub(crate) fn rows(&mut self, step: u64) -> Vec<usize> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        let n = self.rows.len() as u64;
        let start = step * self.batch as u64;
        (start..start + self.batch as u64)
            .map(|position| {
                self.shuffle(position / n);
                self.order[(position % n) as usize]
            })
            .collect()
    }

    fn shuffle(&mut self, pass: u64) {
        if self.pass != Some(pass) {
            self.order.clone_from(&self.rows);
            let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
            rng.set_stream(pass);
            self.order.shuffle(&mut rng);
            self.pass = Some(pass);
        }
    }
}
