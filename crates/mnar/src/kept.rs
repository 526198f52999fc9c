//! Rows that a pass over a stream keeps: the labelled ones where they fit, and a sample of the others. With them, a streamed estimate
//! takes a few passes instead of twenty: the calibration needs none, and the likelihood is maximised from the optimum of the
//! sample.

mod gather;

pub(crate) use gather::Gather;

use crate::error::Error;
use crate::posteriors::{PosteriorKind, Renormalised};
use crate::rows::{Block, Rows, Sums, scan_block};
use crate::sums::Tally;
use crate::travel::{Kind, WalkRows};
use gather::Part;
use std::borrow::Cow;

/// How much of a stream is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Labelled rows are all kept as long as they have at most this many numbers.
    pub labelled_numbers: usize,
    /// The sample of the unlabelled rows, and of the labelled ones where they are too many, has this many rows each.
    pub sample: usize,
}

impl Keep {
    /// For rows in the same process: at most 32 MB.
    pub const HERE: Self = Self { labelled_numbers: 4_000_000, sample: 50_000 };
    /// For rows of other processes, which send them: at most 16 MB.
    pub const ELSEWHERE: Self = Self { labelled_numbers: 2_000_000, sample: 50_000 };
}

/// What a pass has kept, and its tally.
#[derive(Clone)]
pub struct Kept {
    gather: Gather,
    tally: Tally,
    /// Of the labelled rows, where all of them are kept and these are many.
    labelled_sample: Option<Part>,
}

impl Kept {
    /// Nothing yet, of rows with this many classes and no given columns.
    pub fn new(classes: usize, keep: Keep) -> Self {
        Self { gather: Gather::new(classes, 0, keep), tally: Tally::zero(classes), labelled_sample: None }
    }

    /// Adds the rows of a block that follows the others.
    pub fn add(&mut self, block: &Block<'_>) {
        self.gather.add(block);
        self.tally.merge(scan_block(block, &Tally::zero(self.tally.counts.len())));
    }

    /// Leaves out what is too much; after the last row.
    #[must_use]
    pub fn finished(mut self) -> Self {
        self.gather.finish();
        self.labelled_sample = Some(self.gather.labelled.sampled());
        self
    }

    /// The sums over the sample, in which every row stands for as many as there are to one in the sample.
    fn sampled<S: Sums>(&self, zero: &S) -> S {
        let wanted = zero.pack().map_or(WalkRows::All, |walk| walk.rows());
        let labelled = self.labelled_sample.as_ref().unwrap_or(&self.gather.labelled);
        let parts = [
            (labelled, self.tally.n_labelled(), WalkRows::Unlabelled),
            (&self.gather.unlabelled, self.tally.n_unlabelled, WalkRows::Labelled),
        ];
        let mut total: Option<S> = None;
        for (part, rows, _) in parts.into_iter().filter(|(_, _, unless)| *unless != wanted) {
            let weight = rows / part.labels.len().max(1) as f64;
            // A weight of 1 is left out: without weights, logarithms are taken of products.
            let weight = Some(weight).filter(|_| wanted != WalkRows::Unlabelled);
            let sums = part.with(self.gather.classes, weight, |block| scan_block(block, zero));
            match &mut total {
                Some(total) => total.merge(sums),
                None => total = Some(sums),
            }
        }
        total.unwrap_or_else(|| zero.clone())
    }

    /// One pass over the rows. `n` and `n_labelled` are known from before, so that places far away send no more than is kept.
    fn of<R: Rows>(rows: &R, given: usize, n: usize, n_labelled: usize) -> Result<Self, Error> {
        let k = rows.n_classes();
        let gather = Gather::new(k, given, Keep::ELSEWHERE).expecting(n.saturating_sub(n_labelled), n_labelled);
        let (gather, tally) = rows.scan(&(gather, Tally::zero(k)))?;
        Ok(Self { gather, tally, labelled_sample: None }.finished())
    }
}

/// A stream, and what was kept of it.
pub(crate) struct Few<'a, R> {
    rows: &'a R,
    kept: Option<Cow<'a, Kept>>,
}

impl<'a, R: Rows> Few<'a, R> {
    /// `given` is the number of given columns; rows that have kept something themselves do so without any.
    pub(crate) fn of(rows: &'a R, given: usize, n: usize, n_labelled: usize) -> Result<Self, Error> {
        let kept = match rows.kept() {
            _ if rows.in_memory() => None,
            Some(kept) if given == 0 => Some(Cow::Borrowed(kept)),
            _ => Some(Cow::Owned(Kept::of(rows, given, n, n_labelled)?)),
        };
        Ok(Self { rows, kept: kept.filter(|kept| kept.gather.is_sound()) })
    }
}

impl<R: Rows> Rows for Few<'_, R> {
    fn names(&self) -> &[String] {
        self.rows.names()
    }

    fn kind(&self) -> PosteriorKind {
        self.rows.kind()
    }

    fn renormalised(&self) -> Renormalised {
        self.rows.renormalised()
    }

    fn in_memory(&self) -> bool {
        self.rows.in_memory()
    }

    fn scan<S: Sums>(&self, zero: &S) -> Result<S, Error> {
        let Some(kept) = &self.kept else { return self.rows.scan(zero) };
        match zero.pack() {
            Some(walk) if matches!(walk.0, Kind::Tally(_)) => {
                let tally = kept.tally.pack().and_then(|tally| zero.unpack(tally));
                tally.map_or_else(|| self.rows.scan(zero), Ok)
            }
            Some(walk) if walk.rows() == WalkRows::Labelled && kept.gather.has_all_labelled() => {
                Ok(kept.gather.labelled.with(kept.gather.classes, None, |block| scan_block(block, zero)))
            }
            _ => self.rows.scan(zero),
        }
    }

    fn counted(&self) -> Option<&Tally> {
        self.kept.as_ref().map(|kept| &kept.tally)
    }

    fn samples_labels(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| !kept.gather.has_all_labelled())
    }

    fn scan_sample<S: Sums>(&self, zero: &S) -> Option<S> {
        self.kept.as_ref().map(|kept| kept.sampled(zero))
    }
}
