//! Sums of some of the rows of a pass: by bucket, and at several parameters.

use super::{Kind, Walk, bytes};
use crate::rows::{Block, Sums};

/// Sums of every bucket of rows; the number of a row's bucket is one of its given columns.
#[derive(Clone)]
pub(crate) struct Bucketed<S> {
    pub(crate) column: usize,
    pub(crate) parts: Vec<S>,
}

/// The same rows at several parameters: those of the first buckets, or all.
#[derive(Clone)]
pub(crate) struct Several<S> {
    pub(crate) column: usize,
    /// Rows of this bucket and later ones are left out.
    pub(crate) below: f64,
    pub(crate) parts: Vec<S>,
}

type BucketedWalk = Bucketed<Walk>;
type SeveralWalk = Several<Walk>;
bytes!(BucketedWalk { column, parts });
bytes!(SeveralWalk { column, below, parts });

/// Hands over some rows of a block.
fn gathered(block: &Block<'_>, rows: &[usize], visit: impl FnOnce(&Block<'_>)) {
    if rows.is_empty() {
        return;
    }
    let take = |values: &&[f64]| rows.iter().map(|&i| values[i]).collect::<Vec<f64>>();
    let (columns, given): (Vec<_>, Vec<_>) =
        (block.columns.iter().map(take).collect(), block.given.iter().map(take).collect());
    let weights = block.weights.as_ref().map(take);
    let labels: Vec<_> = rows.iter().map(|&i| block.labels[i]).collect();
    visit(&Block {
        columns: &columns.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        labels: &labels,
        weights: weights.as_deref(),
        given: &given.iter().map(Vec::as_slice).collect::<Vec<_>>(),
    });
}

fn packed<S: Sums>(parts: &[S]) -> Option<Vec<Walk>> {
    parts.iter().map(Sums::pack).collect()
}

fn unpacked<S: Sums>(parts: &[S], walks: Vec<Walk>) -> Option<Vec<S>> {
    parts.iter().zip(walks).map(|(part, walk)| part.unpack(walk)).collect()
}

impl<S: Sums> Sums for Bucketed<S> {
    fn add(&mut self, block: &Block<'_>) {
        let last = self.parts.len().saturating_sub(1);
        let mut rows = vec![Vec::new(); self.parts.len()];
        for (i, bucket) in block.given[self.column].iter().enumerate() {
            if let Some(rows) = rows.get_mut((*bucket as usize).min(last)) {
                rows.push(i);
            }
        }
        for (part, rows) in self.parts.iter_mut().zip(rows) {
            gathered(block, &rows, |block| part.add(block));
        }
    }

    fn merge(&mut self, other: Self) {
        self.parts.iter_mut().zip(other.parts).for_each(|(part, other)| part.merge(other));
    }

    fn pack(&self) -> Option<Walk> {
        Some(Walk(Kind::Buckets(Bucketed { column: self.column, parts: packed(&self.parts)? })))
    }

    fn unpack(&self, walk: Walk) -> Option<Self> {
        match walk.0 {
            Kind::Buckets(walks) => Some(Self { column: self.column, parts: unpacked(&self.parts, walks.parts)? }),
            _ => None,
        }
    }
}

impl<S: Sums> Sums for Several<S> {
    fn add(&mut self, block: &Block<'_>) {
        if self.parts.is_empty() {
            return;
        }
        let buckets = block.given[self.column].iter().enumerate();
        let rows: Vec<usize> = buckets.filter(|(_, bucket)| **bucket < self.below).map(|(i, _)| i).collect();
        gathered(block, &rows, |block| self.parts.iter_mut().for_each(|part| part.add(block)));
    }

    fn merge(&mut self, other: Self) {
        self.parts.iter_mut().zip(other.parts).for_each(|(part, other)| part.merge(other));
    }

    fn pack(&self) -> Option<Walk> {
        Some(Walk(Kind::Several(Several { column: self.column, below: self.below, parts: packed(&self.parts)? })))
    }

    fn unpack(&self, walk: Walk) -> Option<Self> {
        match walk.0 {
            Kind::Several(walks) => Some(Self { parts: unpacked(&self.parts, walks.parts)?, ..*self }),
            _ => None,
        }
    }
}
