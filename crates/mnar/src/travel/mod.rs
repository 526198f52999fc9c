//! Sums that travel: a pass over rows that lie in several places, such as the partitions of a cluster.
//!
//! Whoever estimates packs the sums of a pass into a [`Walk`], sends its bytes to wherever the rows are, lets every place add its
//! own rows, and merges what comes back. [`Partitions`] does that behind [`Rows`](crate::Rows), so every estimator runs on a cluster
//! unchanged. The parts are merged in the order of their bytes, not of their arrival: the result has the same bits whichever place
//! was first, and whatever the places are called.
//!
//! ```
//! use mnar::estimate::{Estimator, LabelShift};
//! use mnar::travel::{Partitions, Walk};
//! use mnar::{Labels, PosteriorKind, Posteriors, Rows, Sample};
//! use ndarray::Array2;
//!
//! let names = || vec!["a".to_owned(), "b".to_owned()];
//! let part = |from: usize| {
//!     let p = Array2::from_shape_fn((100, 2), |(i, k)| if (from + i) % 3 == k { 0.9 } else { 0.1 });
//!     let y = (0..100).map(|i| ((from + i) % 7 < 2).then_some(if (from + i) % 3 == 0 { "a" } else { "b" }));
//!     (Posteriors::from_logits(p.view(), PosteriorKind::Labelled), Labels::with_names(y, names()))
//! };
//! let places = [part(0), part(100)];
//! let rows = Partitions::new(names(), PosteriorKind::Labelled, |job: &[u8]| {
//!     let add = |(posteriors, labels): &(Result<Posteriors, _>, Result<Labels, _>)| {
//!         let (Ok(posteriors), Ok(labels)) = (posteriors, labels) else { return Err(mnar::Error::NoRows) };
//!         Ok(Sample::new(posteriors, labels)?.scan(&Walk::from_bytes(job)?)?.to_bytes())
//!     };
//!     places.iter().map(add).collect()
//! });
//! assert!(LabelShift::default().estimate(&rows)?.stop.converged());
//! # Ok::<(), mnar::Error>(())
//! ```

mod bytes;
mod census;
mod drawn;
mod partitions;
mod parts;

pub(crate) use bytes::{Bytes, bytes};
pub use census::Census;
pub(crate) use drawn::Drawn;
pub use partitions::Partitions;
pub(crate) use parts::{Bucketed, Several};

use crate::analysis::{GroupSums, LabelledWeights};
use crate::calibrate::{CalibrationSums, ColumnSums, Through, ThroughColumns};
use crate::error::Error;
use crate::evaluate::MetricSums;
use crate::kept::Gather;
use crate::mechanism::{SecondOrder, Selection};
use crate::mixture::LogMixture;
use crate::rows::{Block, Sums};
use crate::sums::{MostProbable, SecondMoments, Tally};
use crate::test::FoldScores;

/// The first bytes of sums, the last of them the version of their form. It goes up whenever the fields of any sums change.
const HEADER: &[u8] = b"mnar\x03";

/// The sums of one pass, of a kind that other processes can add to.
#[derive(Clone)]
pub struct Walk(pub(crate) Kind);

/// Which rows a pass looks at: the others need not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkRows {
    /// All of them.
    All,
    /// The labelled ones.
    Labelled,
    /// The unlabelled ones.
    Unlabelled,
}

/// Declares the kinds of sums, each with the letter that stands for it in bytes.
macro_rules! kinds {
    ($($letter:literal $kind:ident($sums:ty)),* $(,)?) => {
        #[derive(Clone)]
        pub(crate) enum Kind {
            $($kind($sums),)*
        }

        impl Bytes for Kind {
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$kind(sums) => {
                        out.push($letter);
                        sums.write(out);
                    })*
                }
            }

            fn read(input: &mut &[u8]) -> Option<Self> {
                let (letter, rest) = input.split_first()?;
                *input = rest;
                match *letter {
                    $($letter => Some(Self::$kind(Bytes::read(input)?)),)*
                    _ => None,
                }
            }
        }

        impl Sums for Walk {
            fn add(&mut self, block: &Block<'_>) {
                match &mut self.0 {
                    $(Kind::$kind(sums) => sums.add(block),)*
                }
            }

            fn merge(&mut self, other: Self) {
                match (&mut self.0, other.0) {
                    $((Kind::$kind(sums), Kind::$kind(other)) => sums.merge(other),)*
                    // Parts of another kind are refused when they are read.
                    _ => {}
                }
            }

            fn pack(&self) -> Option<Walk> {
                Some(self.clone())
            }

            fn unpack(&self, walk: Walk) -> Option<Self> {
                Some(walk)
            }
        }
    };
}

kinds! {
    b'T' Tally(Tally),
    b'P' MostProbable(MostProbable),
    b'S' SecondMoments(SecondMoments),
    b'M' LogMixture(LogMixture),
    b'C' Calibration(CalibrationSums),
    b'R' Selection(Selection),
    b'O' SecondOrder(SecondOrder),
    b'W' LabelledWeights(LabelledWeights),
    b'G' Groups(GroupSums),
    b'F' FoldScores(FoldScores),
    b'E' Metrics(MetricSums),
    b'B' Buckets(Bucketed<Walk>),
    b'V' Several(Several<Walk>),
    b'N' Drawn(Drawn<Walk>),
    b'K' Calibrated(Box<Through<Walk>>),
    b'D' ColumnCalibration(ColumnSums),
    b'L' CalibratedByColumns(Box<ThroughColumns<Walk>>),
    b'A' Gather(Gather),
    b'2' Both(Box<(Walk, Walk)>),
}

/// The two methods of [`Sums`] that let sums of this kind travel.
macro_rules! travels {
    ($kind:ident) => {
        fn pack(&self) -> Option<$crate::travel::Walk> {
            Some($crate::travel::Walk($crate::travel::Kind::$kind(self.clone())))
        }

        fn unpack(&self, walk: $crate::travel::Walk) -> Option<Self> {
            match walk.0 {
                $crate::travel::Kind::$kind(sums) => Some(sums),
                _ => None,
            }
        }
    };
}
pub(crate) use travels;

impl<T: Bytes> Bytes for Box<T> {
    fn write(&self, out: &mut Vec<u8>) {
        (**self).write(out);
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        T::read(input).map(Box::new)
    }
}

impl Bytes for Walk {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        Kind::read(input).map(Self)
    }
}

/// Writes a header, and the value after it.
fn sealed(value: &impl Bytes) -> Vec<u8> {
    let mut out = HEADER.to_vec();
    value.write(&mut out);
    out
}

/// Reads what [`sealed`] has written.
fn opened<T: Bytes>(bytes: &[u8]) -> Result<T, Error> {
    let (magic, version) = HEADER.split_at(HEADER.len() - 1);
    let Some(rest) = bytes.strip_prefix(magic) else {
        return Err(Error::Travel("they do not begin as sums do"));
    };
    let Some(mut rest) = rest.strip_prefix(version) else {
        return Err(Error::Travel("they were made by another version; install the same one everywhere"));
    };
    T::read(&mut rest).filter(|_| rest.is_empty()).ok_or(Error::Travel("they are damaged"))
}

impl Walk {
    /// Sums of rows, with the parameters that they are taken at.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        opened(bytes)
    }

    /// The same sums for another process.
    pub fn to_bytes(&self) -> Vec<u8> {
        sealed(self)
    }

    /// Which rows the pass looks at.
    pub fn rows(&self) -> WalkRows {
        match &self.0 {
            Kind::Calibration(_) | Kind::ColumnCalibration(_) => WalkRows::Labelled,
            Kind::LogMixture(_) | Kind::MostProbable(_) => WalkRows::Unlabelled,
            Kind::SecondMoments(sums) if !sums.with_unlabelled() => WalkRows::Labelled,
            Kind::Calibrated(through) => through.sums.rows(),
            Kind::CalibratedByColumns(through) => through.sums.rows(),
            Kind::Both(both) if both.0.rows() == both.1.rows() => both.0.rows(),
            _ => WalkRows::All,
        }
    }

    /// Whether rows are kept, so that parts differ in length.
    fn keeps_rows(&self) -> bool {
        match &self.0 {
            Kind::Gather(_) => true,
            Kind::Both(both) => both.0.keeps_rows() || both.1.keeps_rows(),
            _ => false,
        }
    }

    /// Whether a part is of the same pass as this one: its fields are as long, or are rows of the same width.
    fn fits(&self, part: &Self) -> bool {
        match (&self.0, &part.0) {
            (Kind::Gather(zero), Kind::Gather(part)) => zero.fits(part),
            (Kind::Both(zero), Kind::Both(part)) => zero.0.fits(&part.0) && zero.1.fits(&part.1),
            _ => {
                let (zero, part) = (self.to_bytes(), part.to_bytes());
                zero.len() == part.len() && zero.get(..=HEADER.len()) == part.get(..=HEADER.len())
            }
        }
    }

    /// Adds the sums of all parts to these, which have none yet, in the order of the parts' bytes.
    pub fn with_parts<B: AsRef<[u8]>>(self, parts: &[B]) -> Result<Self, Error> {
        let empty = self.to_bytes();
        let mut parts: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
        parts.sort_unstable();
        let mut total: Option<Self> = None;
        for part in parts {
            const OTHER: Error = Error::Travel("they are not of the pass that was asked for");
            // Of the same kind and with as many numbers: then the fields are as long as those of the others.
            let same_kind = part.get(..=HEADER.len()) == empty.get(..=HEADER.len());
            if !same_kind || (part.len() != empty.len() && !self.keeps_rows()) {
                return Err(OTHER);
            }
            let part = Self::from_bytes(part)?;
            if self.keeps_rows() && !self.fits(&part) {
                return Err(OTHER);
            }
            match &mut total {
                Some(total) => total.merge(part),
                None => total = Some(part),
            }
        }
        Ok(total.unwrap_or(self))
    }
}
