//! Sums under the weights of a bootstrap that follow from a row's key, so that they are the same in every pass and wherever the row
//! is read. Many replicates are summed in one pass.

use super::{Kind, Walk, bytes};
use crate::keys::draw_weights;
use crate::rows::{Block, Sums};

/// The same rows as several replicates of a bootstrap count them. The key of a row is one of its given columns.
#[derive(Clone)]
pub(crate) struct Drawn<S> {
    pub(crate) column: usize,
    pub(crate) seed: u64,
    /// The numbers of the replicates.
    pub(crate) replicates: Vec<u64>,
    /// The sums of each.
    pub(crate) parts: Vec<S>,
}

type DrawnWalk = Drawn<Walk>;
bytes!(DrawnWalk { column, seed, replicates, parts });

impl<S: Sums> Sums for Drawn<S> {
    fn add(&mut self, block: &Block<'_>) {
        let mut weights = vec![0.0; block.len()];
        for (&replicate, part) in self.replicates.iter().zip(&mut self.parts) {
            draw_weights(block.given[self.column], self.seed, replicate, &mut weights);
            if let Some(others) = block.weights {
                weights.iter_mut().zip(others).for_each(|(weight, other)| *weight *= other);
            }
            part.add(&Block { weights: Some(&weights), ..*block });
        }
    }

    fn merge(&mut self, other: Self) {
        self.parts.iter_mut().zip(other.parts).for_each(|(part, other)| part.merge(other));
    }

    fn pack(&self) -> Option<Walk> {
        let parts = self.parts.iter().map(Sums::pack).collect::<Option<Vec<Walk>>>()?;
        let replicates = self.replicates.clone();
        Some(Walk(Kind::Drawn(Drawn { column: self.column, seed: self.seed, replicates, parts })))
    }

    fn unpack(&self, walk: Walk) -> Option<Self> {
        let Kind::Drawn(walks) = walk.0 else { return None };
        let parts = self.parts.iter().zip(walks.parts).map(|(part, walk)| part.unpack(walk));
        Some(Self { parts: parts.collect::<Option<Vec<S>>>()?, replicates: self.replicates.clone(), ..*self })
    }
}
