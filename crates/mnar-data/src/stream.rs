//! A Parquet file of predictions that is read in constant memory, as often as an estimator needs.

use crate::arrow_table::{Source, SourceKind};
use crate::batch::{Batch, Table as _};
use crate::columns::{PredictionColumns, PredictionLayout};
use crate::error::{DataError, show};
use crate::format::{FROM_ITS_END, open_regular};
use crate::guard::Memory;
use crate::parquet_table::{ParquetFooter, ParquetTable};
use crate::values::LabelMatcher;
use mnar::posteriors::{Renormalised, check_rows};
use mnar::rows::{Block, Rows, Sums, scan_block};
use mnar::{Class, Labels, PosteriorKind};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::SystemTime;

/// Predictions that stay in their Parquet file: a few batches of rows are in memory at a time.
pub struct ParquetPredictions {
    path: PathBuf,
    shown: String,
    stamp: Stamp,
    footer: Arc<ParquetFooter>,
    layout: PredictionLayout,
    matcher: LabelMatcher,
    kind: PosteriorKind,
    rows: usize,
    counts: Vec<usize>,
    renormalised: Renormalised,
}

/// Recognises a file that was replaced between two passes.
#[derive(Clone, Copy, PartialEq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(file: &File, shown: &str) -> Result<Self, DataError> {
        let metadata = file.metadata().map_err(|error| DataError::io(shown, "read", error))?;
        Ok(Self { bytes: metadata.len(), modified: metadata.modified().ok() })
    }
}

impl ParquetPredictions {
    /// Opens the file and walks over it once: every row is checked, the labels are counted. Folds are not read.
    pub fn open<'a>(source: impl Into<Source<'a>>, columns: &PredictionColumns) -> Result<Self, DataError> {
        let source = source.into();
        let (shown, memory) = (source.name(), source.memory);
        let SourceKind::Path(path) = source.kind else {
            return Err(DataError::NotAFile {
                path: shown,
                what: "in memory",
                needs: "only a Parquet file is streamed",
            });
        };
        let file = open_regular(path, FROM_ITS_END)?;
        let stamp = Stamp::of(&file, &shown)?;
        let footer = ParquetTable::open(file, memory.resolved(), &shown)?.footer().clone();
        let mut layout = PredictionLayout::find(footer.header(), columns, &shown)?;
        layout.fold = None;
        let mut table = Self {
            path: path.to_owned(),
            matcher: LabelMatcher::new(&layout.classes, &columns.missing, &shown),
            counts: vec![0; layout.classes.len()],
            shown,
            stamp,
            footer,
            layout,
            kind: columns.kind,
            rows: 0,
            renormalised: Renormalised::default(),
        };
        table.count()?;
        Ok(table)
    }

    /// The memory that the probabilities of a Parquet file would take, by the rows that its footer claims; `None` where it
    /// is not a Parquet file of predictions.
    pub fn claimed_bytes(path: &Path, columns: &PredictionColumns) -> Option<u64> {
        if !path.is_file() {
            return None;
        }
        let shown = show(path);
        let footer = ParquetTable::open(File::open(path).ok()?, Memory::default(), &shown).ok()?.footer().clone();
        let layout = PredictionLayout::find(footer.header(), columns, &shown).ok()?;
        let rows = u64::try_from(footer.claimed_rows()).ok()?;
        Some(rows.saturating_mul(layout.classes.len() as u64).saturating_mul(size_of::<f64>() as u64))
    }

    fn count(&mut self) -> Result<(), DataError> {
        let (mut rows, mut renormalised) = (0, Renormalised::default());
        let mut counts = vec![0; self.layout.classes.len()];
        self.walk(|_, labels, drift| {
            rows += labels.len();
            labels.iter().flatten().for_each(|class| counts[class.index()] += 1);
            renormalised.merge(drift);
        })?;
        if rows == 0 {
            return Err(DataError::NoRows { path: self.shown.clone() });
        }
        if i64::try_from(rows) != Ok(self.footer.claimed_rows()) {
            let cause = format!("its footer claims {} rows but it holds {rows}", self.footer.claimed_rows());
            return Err(DataError::parquet(&self.shown, cause));
        }
        self.check_estimable(rows, &counts)?;
        (self.rows, self.counts, self.renormalised) = (rows, counts, renormalised);
        Ok(())
    }

    /// The refusals of [`Labels::new`], in its order, from the counts alone: the labels are not kept.
    fn check_estimable(&self, rows: usize, counts: &[usize]) -> Result<(), DataError> {
        let labelled: usize = counts.iter().sum();
        let names = &self.layout.classes;
        // Duplicate class names are the one thing that counts do not show.
        let cause = if let Err(cause) = Labels::allow_degenerate(Vec::new(), names.clone()) {
            cause
        } else if labelled == 0 {
            mnar::Error::NoLabels { n: rows }
        } else if let [class] = names.as_slice() {
            mnar::Error::OneClass { class: class.clone() }
        } else if labelled == rows {
            mnar::Error::NoUnlabelled { n: rows }
        } else {
            return Ok(());
        };
        Err(DataError::core(&self.shown, cause))
    }

    /// One pass: the next batch is decoded on another thread while `visit` has the present one.
    fn walk(&self, mut visit: impl FnMut(&[&[f64]], &[Option<Class>], Renormalised)) -> Result<(), DataError> {
        // A file of its own for each pass: passes may run side by side, and copies of a handle share its position.
        let file = File::open(&self.path).map_err(|error| DataError::io(&self.shown, "opened", error))?;
        if Stamp::of(&file, &self.shown)? != self.stamp {
            return Err(DataError::Changed { path: self.shown.clone() });
        }
        let table = Box::new(ParquetTable::again(file, self.footer.clone()));
        let batches = table.batches(&self.layout.selection())?;
        std::thread::scope(|scope| {
            let (send, receive) = sync_channel::<Result<Batch, DataError>>(1);
            scope.spawn(move || {
                for batch in batches {
                    // The receiver is gone once a row was refused.
                    if send.send(batch).is_err() {
                        break;
                    }
                }
            });
            let mut labels = Vec::new();
            for batch in receive {
                let mut batch = batch?;
                labels.clear();
                self.matcher.encode(&batch.texts[0], batch.first_row, &mut labels)?;
                let mut columns: Vec<&mut [f64]> = batch.numbers.iter_mut().map(Vec::as_mut_slice).collect();
                let drift = check_rows(&mut columns, batch.first_row)
                    .map_err(|error| DataError::posterior(&self.shown, error, &self.layout.classes))?;
                let columns: Vec<&[f64]> = batch.numbers.iter().map(Vec::as_slice).collect();
                visit(&columns, &labels, drift);
            }
            Ok(())
        })
    }

    /// n, the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// n_k: how many rows carry each label.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// n_l, the number of labelled rows.
    pub fn n_labelled(&self) -> usize {
        self.counts.iter().sum()
    }
}

impl Rows for ParquetPredictions {
    fn names(&self) -> &[String] {
        &self.layout.classes
    }

    fn kind(&self) -> PosteriorKind {
        self.kind
    }

    fn renormalised(&self) -> Renormalised {
        self.renormalised
    }

    fn scan<S: Sums>(&self, zero: &S) -> Result<S, mnar::Error> {
        let mut total: Option<S> = None;
        self.walk(|columns, labels, _| {
            let sums = scan_block(&Block { columns, labels, weights: None, given: &[] }, zero);
            match &mut total {
                Some(total) => total.merge(sums),
                None => total = Some(sums),
            }
        })
        .map_err(|error| mnar::Error::Source(Box::new(error)))?;
        Ok(total.unwrap_or_else(|| zero.clone()))
    }
}
