//! The interface between statistics and storage: rows are passed over in blocks, several times, and every estimator is
//! a set of sums that can be added to and merged. A table in memory, a Parquet file larger than memory and a calibrated
//! view of either are all [`Rows`].

use crate::error::Error;
use crate::kept::Keep;
use crate::labels::{Class, Labels};
use crate::posteriors::{PosteriorKind, Posteriors, Renormalised};
use crate::sums::Tally;
use crate::travel::{Kind, Walk};
use rayon::prelude::*;

/// Consecutive rows: one slice of probabilities per class, and the labels.
#[derive(Clone, Copy)]
pub struct Block<'a> {
    /// `columns[k][i]` is the probability of class k for row i of the block.
    pub columns: &'a [&'a [f64]],
    /// The label of each row of the block.
    pub labels: &'a [Option<Class>],
    /// How often each row counts; `None` counts every row once. Bootstraps draw these.
    pub weights: Option<&'a [f64]>,
    /// Further numbers of each row: `given[j][i]` is what labelling may depend on besides the class. Often empty.
    pub given: &'a [&'a [f64]],
}

impl<'a> Block<'a> {
    /// The columns that labelling may depend on, for some of the rows.
    pub fn given_part(&self, rows: std::ops::Range<usize>) -> Vec<&'a [f64]> {
        self.given.iter().map(|column| &column[rows.clone()]).collect()
    }
}

impl Block<'_> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// How often row `i` counts.
    pub fn weight(&self, i: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[i])
    }
}

/// Sums over rows. Parts are merged in a fixed order, so the result has the same bits whatever the number of threads.
pub trait Sums: Clone + Send + Sync {
    /// Adds the rows of a block.
    fn add(&mut self, block: &Block<'_>);
    /// Adds the sums of other rows.
    fn merge(&mut self, other: Self);

    /// The same sums in a form that other processes can add to; `None` where they cannot leave this one.
    fn pack(&self) -> Option<Walk> {
        None
    }

    /// Sums in the place of these, from which they were packed; `None` where they are of another kind.
    fn unpack(&self, _: Walk) -> Option<Self> {
        None
    }
}

impl<S: Sums> Sums for Box<S> {
    fn add(&mut self, block: &Block<'_>) {
        (**self).add(block);
    }

    fn merge(&mut self, other: Self) {
        (**self).merge(*other);
    }
}

/// Two sums in one pass.
impl<A: Sums, B: Sums> Sums for (A, B) {
    fn add(&mut self, block: &Block<'_>) {
        self.0.add(block);
        self.1.add(block);
    }

    fn merge(&mut self, other: Self) {
        self.0.merge(other.0);
        self.1.merge(other.1);
    }

    fn pack(&self) -> Option<Walk> {
        Some(Walk(Kind::Both(Box::new((self.0.pack()?, self.1.pack()?)))))
    }

    fn unpack(&self, walk: Walk) -> Option<Self> {
        match walk.0 {
            Kind::Both(both) => Some((self.0.unpack(both.0)?, self.1.unpack(both.1)?)),
            _ => None,
        }
    }
}

/// A table that can be read any number of times.
pub trait Rows: Sync {
    /// The names of the classes, in the order of the columns.
    fn names(&self) -> &[String];

    /// Which posterior the probabilities describe.
    fn kind(&self) -> PosteriorKind;

    /// One pass over all rows. `zero` holds the parameters of the sums and no rows yet.
    fn scan<S: Sums>(&self, zero: &S) -> Result<S, Error>;

    /// Rows that were slightly off the simplex and have been renormalised.
    fn renormalised(&self) -> Renormalised {
        Renormalised::default()
    }

    /// K, the number of classes.
    fn n_classes(&self) -> usize {
        self.names().len()
    }

    /// Whether reading some of the rows is cheaper than reading all of them. Not so for a stream.
    fn in_memory(&self) -> bool {
        false
    }

    /// The sums over a sample that was kept of the rows, scaled up to all of them; sums over unlabelled rows alone are not scaled.
    /// `None` where nothing was kept.
    fn scan_sample<S: Sums>(&self, _: &S) -> Option<S> {
        None
    }

    /// The counts of the rows where a pass has kept them; the summed posteriors are those before any calibration.
    fn counted(&self) -> Option<&Tally> {
        None
    }

    /// Whether the sample has only some of the labelled rows, of which there are many.
    fn samples_labels(&self) -> bool {
        false
    }

    /// How much of the rows a pass over them may keep.
    fn keep(&self) -> Keep {
        Keep::ELSEWHERE
    }
}

/// Maximum number of parts summed in parallel; fixed, so that the result does not depend on the number of cores.
const MAX_PARTS: usize = 64;
const MIN_PART: usize = 2048;

/// Sums over the rows of one block. Its parts are summed in parallel and merged in order.
pub fn scan_block<S: Sums>(block: &Block<'_>, zero: &S) -> S {
    let n = block.len();
    let part = n.div_ceil(MAX_PARTS).max(MIN_PART);
    let sum_part = |start: usize| {
        let end = (start + part).min(n);
        let columns: Vec<&[f64]> = block.columns.iter().map(|column| &column[start..end]).collect();
        let given = block.given_part(start..end);
        let mut sums = zero.clone();
        sums.add(&Block {
            columns: &columns,
            labels: &block.labels[start..end],
            weights: block.weights.map(|weights| &weights[start..end]),
            given: &given,
        });
        sums
    };
    if n <= part {
        return sum_part(0);
    }
    let starts: Vec<usize> = (0..n).step_by(part).collect();
    let parts: Vec<S> = starts.into_par_iter().map(sum_part).collect();
    let mut parts = parts.into_iter();
    let mut total = parts.next().expect("at least one part");
    parts.for_each(|part| total.merge(part));
    total
}

/// Posteriors and labels of the same rows, in memory.
#[derive(Clone, Copy)]
pub struct Sample<'a> {
    posteriors: &'a Posteriors,
    labels: &'a Labels,
    weights: Option<&'a [f64]>,
    given: &'a [&'a [f64]],
}

impl<'a> Sample<'a> {
    /// Checks that both describe the same number of rows and of classes.
    pub fn new(posteriors: &'a Posteriors, labels: &'a Labels) -> Result<Self, Error> {
        if posteriors.len() != labels.len() {
            return Err(Error::LengthMismatch {
                what: "the table of posteriors",
                found: posteriors.len(),
                expected: labels.len(),
            });
        }
        if posteriors.n_classes() != labels.n_classes() {
            return Err(Error::ClassCountMismatch {
                found: posteriors.n_classes(),
                expected: labels.n_classes(),
                classes: crate::error::list_names(labels.names()),
            });
        }
        Ok(Self { posteriors, labels, weights: None, given: &[] })
    }

    /// The same rows, weighted if there are weights.
    pub(crate) fn with_weights(self, weights: Option<&'a [f64]>) -> Result<Self, Error> {
        match weights {
            Some(weights) => self.weighted(weights),
            None => Ok(self),
        }
    }

    /// How often row `i` counts.
    pub(crate) fn weight(&self, i: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[i])
    }

    /// The same rows, each counted `weights[i]` times (zero leaves a row out).
    pub fn weighted(mut self, weights: &'a [f64]) -> Result<Self, Error> {
        if weights.len() != self.labels.len() {
            return Err(Error::LengthMismatch {
                what: "the table of weights",
                found: weights.len(),
                expected: self.labels.len(),
            });
        }
        if let Some(value) = weights.iter().find(|value| !(value.is_finite() && **value >= 0.0)) {
            return Err(Error::OutOfRange {
                name: "a row's weight",
                value: value.to_string(),
                range: "finite and at least 0",
            });
        }
        self.weights = Some(weights);
        Ok(self)
    }

    /// The same rows with further numbers, on which labelling may depend besides the class.
    pub fn given(mut self, columns: &'a [&'a [f64]]) -> Result<Self, Error> {
        if let Some(column) = columns.iter().find(|column| column.len() != self.labels.len()) {
            return Err(Error::LengthMismatch {
                what: "a column that labelling may depend on",
                found: column.len(),
                expected: self.labels.len(),
            });
        }
        self.given = columns;
        Ok(self)
    }

    /// The further numbers of the rows.
    pub(crate) fn given_columns(&self) -> &'a [&'a [f64]] {
        self.given
    }

    /// The posteriors.
    pub fn posteriors(&self) -> &'a Posteriors {
        self.posteriors
    }

    /// The labels.
    pub fn labels(&self) -> &'a Labels {
        self.labels
    }
}

impl Rows for Sample<'_> {
    fn names(&self) -> &[String] {
        self.labels.names()
    }

    fn kind(&self) -> PosteriorKind {
        self.posteriors.kind()
    }

    fn renormalised(&self) -> Renormalised {
        self.posteriors.renormalised()
    }

    fn in_memory(&self) -> bool {
        true
    }

    fn scan<S: Sums>(&self, zero: &S) -> Result<S, Error> {
        let columns: Vec<&[f64]> = (0..self.posteriors.n_classes()).map(|k| self.posteriors.column(k)).collect();
        let labels = self.labels.as_slice();
        Ok(scan_block(&Block { columns: &columns, labels, weights: self.weights, given: self.given }, zero))
    }
}
