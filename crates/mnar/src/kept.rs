//! Rows that a pass over a stream keeps: the labelled ones where they fit, and a sample of the others. With them, a streamed estimate
//! takes a few passes instead of twenty: the calibration needs none, and the likelihood is maximised from the optimum of the
//! sample.

mod gather;

pub(crate) use gather::Gather;

use crate::analysis::About;
use crate::error::Error;
use crate::posteriors::{PosteriorKind, Renormalised};
use crate::rows::{Rows, Sums, scan_block};
use crate::sums::Tally;
use crate::travel::{Kind, WalkRows};
use gather::Part;

/// How much of a stream is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Labelled rows are all kept as long as they have at most this many numbers.
    pub labelled_numbers: usize,
    /// The sample of the unlabelled rows, and of the labelled ones where they are too many, has this many rows each.
    pub sample: usize,
}

impl Keep {
    /// For rows in the same process: at most 96 MB of labelled rows.
    pub const HERE: Self = Self { labelled_numbers: 12_000_000, sample: 64_000 };
    /// For rows of other processes, which send them: at most 16 MB.
    pub const ELSEWHERE: Self = Self { labelled_numbers: 2_000_000, sample: 50_000 };
}

/// What a pass has kept, and its tally.
struct Kept {
    gather: Gather,
    tally: Tally,
    /// Of the labelled rows, where all of them are kept and these are many.
    labelled_sample: Part,
}

impl Kept {
    /// The sums over the sample, in which every row stands for as many as there are to one in the sample.
    fn sampled<S: Sums>(&self, zero: &S) -> S {
        let wanted = zero.pack().map_or(WalkRows::All, |walk| walk.rows());
        let parts = [
            (&self.labelled_sample, self.tally.n_labelled(), WalkRows::Unlabelled),
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
        let gather = Gather::new(k, given, rows.keep()).expecting(n.saturating_sub(n_labelled), n_labelled);
        let (mut gather, tally) = rows.scan(&(gather, Tally::zero(k)))?;
        gather.finish();
        let labelled_sample = gather.labelled.sampled();
        gather.forget_keys();
        Ok(Self { labelled_sample, gather, tally })
    }

    /// Labelled rows that are as good as all of them to find a calibration near the best.
    fn samples_labels(&self) -> bool {
        !self.gather.has_all_labelled() || self.gather.labelled.labels.len() > 2 * self.labelled_sample.labels.len()
    }
}

/// A stream, and what was kept of it.
pub(crate) struct Few<'a, R> {
    rows: &'a R,
    kept: Option<Kept>,
}

impl<'a, R: Rows> Few<'a, R> {
    /// `given` is the number of given columns.
    pub(crate) fn of(rows: &'a R, given: usize, about: &About) -> Result<Self, Error> {
        if rows.in_memory() {
            return Ok(Self { rows, kept: None });
        }
        let kept = Kept::of(rows, given, about.n, about.n_labelled)?;
        Ok(Self { rows, kept: Some(kept).filter(|kept| kept.gather.is_sound()) })
    }
}

impl<R: Rows> Few<'_, R> {
    /// The sums over all labelled rows, where they were kept.
    pub(crate) fn scan_labelled<S: Sums>(&self, zero: &S) -> Option<S> {
        let kept = self.kept.as_ref().filter(|kept| kept.gather.has_all_labelled())?;
        Some(kept.gather.labelled.with(kept.gather.classes, None, |block| scan_block(block, zero)))
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
            Some(walk) if walk.rows() == WalkRows::Labelled => {
                self.scan_labelled(zero).map_or_else(|| self.rows.scan(zero), Ok)
            }
            _ => self.rows.scan(zero),
        }
    }

    fn counted(&self) -> Option<&Tally> {
        self.kept.as_ref().map(|kept| &kept.tally)
    }

    fn samples_labels(&self) -> bool {
        self.kept.as_ref().is_some_and(Kept::samples_labels)
    }

    fn scan_sample<S: Sums>(&self, zero: &S) -> Option<S> {
        self.kept.as_ref().map(|kept| kept.sampled(zero))
    }
}
