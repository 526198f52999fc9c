//! The bootstrap of an estimate from rows that stay where they are. A row's weights follow from its key, and one pass serves all
//! replicates: some four passes for any number of them.

use super::findings::Parts;
use super::intervals::{FEWEST_REPLICATES, Intervals, REPLICATES};
use super::recipe::{Chosen, EstimateSettings, Recipe};
use super::{About, Findings};
use crate::calibrate::Calibrated;
use crate::error::Error;
use crate::estimate::PhiEstimate;
use crate::interval::Replicates;
use crate::kept::Few;
use crate::lockstep::Lockstep;
use crate::posteriors::PosteriorKind;
use crate::rows::{Rows, Sums};
use crate::sums::Tally;
use crate::travel::{Drawn, Kind, Walk, WalkRows};

/// The rows as one replicate counts them.
struct OneReplicate<'a, R> {
    rows: &'a Few<'a, R>,
    lockstep: &'a Lockstep,
    number: usize,
    column: usize,
    seed: u64,
    tally: &'a Tally,
}

impl<R: Rows> OneReplicate<'_, R> {
    fn drawn<S: Sums>(&self, zero: &S) -> Drawn<S> {
        drawn(self.column, self.seed, [(self.number, zero.clone())])
    }
}

fn drawn<S>(column: usize, seed: u64, parts: impl IntoIterator<Item = (usize, S)>) -> Drawn<S> {
    let (replicates, parts) = parts.into_iter().map(|(number, part)| (number as u64, part)).unzip();
    Drawn { column, seed, replicates, parts }
}

impl<R: Rows> Rows for OneReplicate<'_, R> {
    fn names(&self) -> &[String] {
        self.rows.names()
    }

    fn kind(&self) -> PosteriorKind {
        self.rows.kind()
    }

    fn counted(&self) -> Option<&Tally> {
        Some(self.tally)
    }

    fn samples_labels(&self) -> bool {
        self.rows.samples_labels()
    }

    fn scan_sample<S: Sums>(&self, zero: &S) -> Option<S> {
        self.rows.scan_sample(&self.drawn(zero))?.parts.pop()
    }

    fn scan<S: Sums>(&self, zero: &S) -> Result<S, Error> {
        let walk = zero.pack().ok_or(Error::Travel("these sums cannot be drawn"))?;
        if matches!(walk.0, Kind::Tally(_)) {
            return self.tally.pack().and_then(|tally| zero.unpack(tally)).ok_or(Error::Cancelled);
        }
        if walk.rows() == WalkRows::Labelled
            && let Some(mut kept) = self.rows.scan_labelled(&self.drawn(zero))
        {
            return kept.parts.pop().ok_or(Error::Cancelled);
        }
        // What failed is said once, by the pass itself.
        let found = self.lockstep.ask(self.number, walk).ok_or(Error::Cancelled)?;
        zero.unpack(found).ok_or(Error::Travel("they are not of the pass that was asked for"))
    }
}

impl Recipe {
    /// Calibrates and estimates.
    fn replicate<R: Rows>(&self, rows: &R) -> Result<PhiEstimate, Error> {
        match self.calibration() {
            Some(calibration) => {
                // A class without labels is reported as such, before a calibration fails to converge on it.
                Tally::of(rows)?;
                let bcts = &calibration.fit(rows)?;
                self.estimate(&Calibrated { rows, bcts })
            }
            None => self.estimate(rows),
        }
    }
}

/// Estimates of all replicates, and how many failed.
fn replicates<R: Rows>(
    rows: &Few<'_, R>,
    recipe: &Recipe,
    (column, seed): (usize, u64),
    count: usize,
) -> Result<Replicates, Error> {
    let zero = Tally::zero(rows.n_classes());
    let tallies = rows.scan(&drawn(column, seed, (0..count).map(|number| (number, zero.clone()))))?.parts;
    let pass = |asked: Vec<(usize, Walk)>| Ok(rows.scan(&drawn(column, seed, asked))?.parts);
    let estimates = Lockstep::run(count, pass, |number, lockstep| {
        recipe.replicate(&OneReplicate { rows, lockstep, number, column, seed, tally: &tallies[number] })
    })?;
    let mut found = Replicates { phi: Vec::new(), prevalence: Vec::new(), failed: 0 };
    let mut first = None;
    for estimate in estimates {
        match estimate {
            Ok(estimate) => {
                found.phi.push(estimate.phi);
                found.prevalence.push(estimate.prevalence);
            }
            Err(error) => {
                found.failed += 1;
                first.get_or_insert(error);
            }
        }
    }
    match first {
        Some(error) if found.phi.len() * 2 < count => Err(error),
        _ => Ok(found),
    }
}

impl EstimateSettings {
    /// [`run_streamed`](Self::run_streamed) with intervals from a bootstrap that calibrates and estimates again. The key of a row
    /// ([`crate::keys::Buckets::of_bootstrap`]) is the given column at position `keys`.
    pub fn run_streamed_bootstrap<R: Rows>(&self, rows: &R, keys: usize, about: About) -> Result<Findings, Error> {
        let recipe = self.recipe_of_stream(rows.kind())?;
        if *recipe.chosen() != Chosen::LabelShift {
            return Err(Error::Settings("the bootstrap of streamed rows goes with the method label-shift"));
        }
        let count = self.replicates.unwrap_or(REPLICATES);
        if count < FEWEST_REPLICATES {
            return Err(Error::OutOfRange {
                name: "the number of replicates",
                value: count.to_string(),
                range: "at least 8 for intervals",
            });
        }
        let few = &Few::of(rows, keys + 1, &about)?;
        let (estimate, parts) = self.streamed_parts(&recipe, few, about)?;
        let found = replicates(few, &recipe, (keys, self.seed), count)?;
        let intervals = Intervals::of_replicates(&estimate, found);
        self.assemble(&recipe, estimate, Parts { intervals, ..parts })
    }

    /// phi of every replicate of the bootstrap of [`run_streamed_bootstrap`](Self::run_streamed_bootstrap).
    pub fn streamed_replicates<R: Rows>(&self, rows: &R, keys: usize, about: &About) -> Result<Replicates, Error> {
        let recipe = self.recipe_of_stream(rows.kind())?;
        let few = &Few::of(rows, keys + 1, about)?;
        replicates(few, &recipe, (keys, self.seed), self.replicates.unwrap_or(REPLICATES))
    }
}
