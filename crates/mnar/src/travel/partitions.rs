//! Rows that lie in several places.

use super::Walk;
use crate::error::Error;
use crate::posteriors::{PosteriorKind, Renormalised};
use crate::rows::{Rows, Sums};

/// Rows in several places, which a function passes over: it gets the bytes of a [`Walk`], lets every place add its rows, and
/// returns the bytes of each part, in any order.
pub struct Partitions<W> {
    names: Vec<String>,
    kind: PosteriorKind,
    renormalised: Renormalised,
    walk: W,
}

impl<W: Fn(&[u8]) -> Result<Vec<Vec<u8>>, Error> + Sync> Partitions<W> {
    /// Rows with these classes, and posteriors of this kind.
    pub fn new(names: Vec<String>, kind: PosteriorKind, walk: W) -> Self {
        Self { names, kind, renormalised: Renormalised::default(), walk }
    }

    /// The same with what was done to rows slightly off the simplex.
    pub fn with_renormalised(mut self, renormalised: Renormalised) -> Self {
        self.renormalised = renormalised;
        self
    }
}

impl<W: Fn(&[u8]) -> Result<Vec<Vec<u8>>, Error> + Sync> Rows for Partitions<W> {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn kind(&self) -> PosteriorKind {
        self.kind
    }

    fn renormalised(&self) -> Renormalised {
        self.renormalised
    }

    fn scan<S: Sums>(&self, zero: &S) -> Result<S, Error> {
        let walk: Walk = zero.pack().ok_or(Error::Travel("sums of this kind stay where they are"))?;
        let parts = (self.walk)(&walk.to_bytes())?;
        let total = walk.with_parts(&parts)?;
        zero.unpack(total).ok_or(Error::Travel("they are of another kind"))
    }
}
