//! A Parquet file of predictions that is read in constant memory, as often as an estimator needs.

use crate::arrow_table::{Source, SourceKind};
use crate::batch::{Batch, Batches, Table as _};
use crate::classes::Classes;
use crate::columns::{PredictionColumns, PredictionLayout, Selection};
use crate::error::{DataError, show};
use crate::format::{FROM_ITS_END, open_regular};
use crate::guard::Memory;
use crate::note::Note;
use crate::parquet_table::{ParquetFooter, ParquetTable};
use crate::values::{Census, Missing};
use mnar::kept::{Keep, Kept};
use mnar::posteriors::{Renormalised, check_rows};
use mnar::rows::{Block, Rows, Sums, scan_block};
use mnar::{Class, PosteriorKind};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::SystemTime;

/// Predictions that stay in their Parquet file: a few batches of rows are in memory at a time.
pub struct ParquetPredictions {
    pub(crate) file: Passes,
    pub(crate) selection: Selection,
    pub(crate) classes: Classes,
    /// Whether the rows have names, in the last column of texts.
    pub(crate) named: bool,
    kind: PosteriorKind,
    rows: usize,
    counts: Vec<usize>,
    renormalised: Renormalised,
    /// Values that mean missing.
    pub(crate) missing: Vec<String>,
    /// What the first pass has kept for the estimate.
    kept: Option<Kept>,
}

/// Some rows, one after the other: their labels, and their names if a column was named for them.
pub struct LabelledRows<'a> {
    /// The labels.
    pub labels: &'a [Option<Class>],
    /// The names, `None` where one is missing.
    pub names: Option<Vec<Option<&'a str>>>,
    /// The terms of columns that labelling depends on, one slice per term; none where there are no such columns.
    pub given: &'a [&'a [f64]],
}

/// A file that is read several times.
pub(crate) struct Passes {
    path: PathBuf,
    pub(crate) shown: String,
    stamp: Stamp,
    pub(crate) footer: Arc<ParquetFooter>,
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

impl Passes {
    fn open(source: Source<'_>) -> Result<Self, DataError> {
        let shown = source.name();
        let SourceKind::Path(path) = source.kind else {
            return Err(DataError::NotAFile {
                path: shown,
                what: "in memory",
                needs: "only a Parquet file is streamed",
            });
        };
        let file = open_regular(path, FROM_ITS_END)?;
        let stamp = Stamp::of(&file, &shown)?;
        let footer = ParquetTable::open(file, source.memory.resolved(), &shown)?.footer().clone();
        Ok(Self { path: path.to_owned(), shown, stamp, footer })
    }

    /// The file, to be read from its start.
    pub(crate) fn again(&self) -> Result<ParquetTable<File>, DataError> {
        // A file of its own for each pass: passes may run side by side, and copies of a handle share its position.
        let file = File::open(&self.path).map_err(|error| DataError::io(&self.shown, "opened", error))?;
        if Stamp::of(&file, &self.shown)? != self.stamp {
            return Err(DataError::Changed { path: self.shown.clone() });
        }
        Ok(ParquetTable::again(file, self.footer.clone()))
    }

    pub(crate) fn batches(&self, selection: &Selection) -> Result<Batches, DataError> {
        Box::new(self.again()?).batches(selection)
    }

    /// One pass over the selected columns.
    fn walk(&self, selection: &Selection, visit: impl FnMut(Batch) -> Result<(), DataError>) -> Result<(), DataError> {
        in_turn(self.batches(selection)?, visit)
    }
}

/// Decodes the next item on another thread while `visit` has the present one.
pub(crate) fn in_turn<T: Send>(
    items: impl Iterator<Item = Result<T, DataError>> + Send,
    mut visit: impl FnMut(T) -> Result<(), DataError>,
) -> Result<(), DataError> {
    std::thread::scope(|scope| {
        let (send, receive) = sync_channel::<Result<T, DataError>>(1);
        scope.spawn(move || {
            for item in items {
                // The receiver is gone once a row was refused.
                if send.send(item).is_err() {
                    break;
                }
            }
        });
        receive.into_iter().try_for_each(|item| visit(item?))
    })
}

/// Distinct labels that are counted. A column of names by mistake has more, and is refused for those that were.
const MOST_LABELS: usize = 100_000;

impl ParquetPredictions {
    /// Opens the file and walks over it once: every row is checked, the labels are counted. Folds are not read.
    pub fn open<'a>(source: impl Into<Source<'a>>, columns: &PredictionColumns) -> Result<Self, DataError> {
        Self::opened(source.into(), columns, None)
    }

    /// The same, keeping labelled rows and a sample of the others, so that an estimate takes fewer passes.
    pub fn open_keeping<'a>(
        source: impl Into<Source<'a>>,
        columns: &PredictionColumns,
        keep: Keep,
    ) -> Result<Self, DataError> {
        Self::opened(source.into(), columns, Some(keep))
    }

    fn opened(source: Source<'_>, columns: &PredictionColumns, keep: Option<Keep>) -> Result<Self, DataError> {
        let file = Passes::open(source)?;
        let shown = &file.shown;
        let mut layout = PredictionLayout::find(file.footer.header(), columns, shown)?;
        layout.fold = None;
        let mut selection = layout.selection();
        // How long lists are is not known before one is seen.
        let width = match selection.lists {
            None => selection.width(),
            Some(_) => file.batches(&selection)?.next().transpose()?.map_or(0, |batch| batch.numbers.len()),
        };
        if width == 0 || file.footer.claimed_rows() == 0 {
            return Err(DataError::NoRows { path: shown.clone() });
        }
        selection.lists = selection.lists.map(|_| width);
        let (mut labels, missing) = (Census::default(), Missing::new(&columns.missing));
        file.walk(&Selection::texts(vec![layout.label]), |batch| {
            if labels.len() < MOST_LABELS {
                labels.extend(&batch.texts[0], &missing);
            }
            Ok(())
        })?;
        let classes = Classes::find(&layout, columns, width, &labels, shown)?;
        let mut table = Self {
            counts: vec![0; classes.names.len()],
            named: layout.id.is_some(),
            file,
            selection,
            classes,
            kind: columns.kind,
            rows: 0,
            renormalised: Renormalised::default(),
            missing: columns.missing.clone(),
            kept: None,
        };
        table.count(keep)?;
        Ok(table)
    }

    /// The memory that the probabilities of a Parquet file would take, by the rows that its footer claims; `None` where it
    /// is not a Parquet file of predictions. A list counts as one number.
    pub fn claimed_bytes(path: &Path, columns: &PredictionColumns) -> Option<u64> {
        if !path.is_file() {
            return None;
        }
        let shown = show(path);
        let footer = ParquetTable::open(File::open(path).ok()?, Memory::default(), &shown).ok()?.footer().clone();
        let layout = PredictionLayout::find(footer.header(), columns, &shown).ok()?;
        let rows = u64::try_from(footer.claimed_rows()).ok()?;
        Some(rows.saturating_mul(layout.selection().width() as u64).saturating_mul(size_of::<f64>() as u64))
    }

    fn count(&mut self, keep: Option<Keep>) -> Result<(), DataError> {
        let (mut rows, mut renormalised) = (0, Renormalised::default());
        let mut counts = vec![0; self.classes.names.len()];
        let mut kept = keep.map(|keep| Kept::new(counts.len(), keep));
        self.walk(|columns, labels, drift| {
            if let Some(kept) = &mut kept {
                kept.add(&Block { columns, labels, weights: None, given: &[] });
            }
            rows += labels.len();
            labels.iter().flatten().for_each(|class| counts[class.index()] += 1);
            renormalised.merge(drift);
        })?;
        if i64::try_from(rows) != Ok(self.file.footer.claimed_rows()) {
            let cause = format!("its footer claims {} rows but it holds {rows}", self.file.footer.claimed_rows());
            return Err(DataError::parquet(&self.file.shown, cause));
        }
        self.check_estimable(rows, &counts)?;
        (self.rows, self.counts, self.renormalised) = (rows, counts, renormalised);
        self.kept = kept.map(Kept::finished);
        Ok(())
    }

    /// The refusals of [`mnar::Labels::new`], in its order, from the counts alone: the labels are not kept.
    fn check_estimable(&self, rows: usize, counts: &[usize]) -> Result<(), DataError> {
        let labelled: usize = counts.iter().sum();
        let cause = if labelled == 0 {
            mnar::Error::NoLabels { n: rows }
        } else if let [class] = self.classes.names.as_slice() {
            mnar::Error::OneClass { class: class.clone() }
        } else if labelled == rows {
            mnar::Error::NoUnlabelled { n: rows }
        } else {
            return Ok(());
        };
        Err(DataError::core(&self.file.shown, cause))
    }

    /// One pass over probabilities and labels.
    fn walk(&self, mut visit: impl FnMut(&[&[f64]], &[Option<Class>], Renormalised)) -> Result<(), DataError> {
        self.file.walk(&self.selection, |batch| self.visit(batch, &mut visit))
    }

    /// Checks a batch and hands over its probabilities and labels.
    pub(crate) fn visit(
        &self,
        Batch { first_row, numbers, texts, .. }: Batch,
        mut visit: impl FnMut(&[&[f64]], &[Option<Class>], Renormalised),
    ) -> Result<(), DataError> {
        let labels = self.classes.encode(&texts[0], first_row)?;
        let mut numbers = self.classes.probabilities(numbers, first_row)?;
        let mut columns: Vec<&mut [f64]> = numbers.iter_mut().map(Vec::as_mut_slice).collect();
        let drift = check_rows(&mut columns, first_row)
            .map_err(|error| DataError::posterior(&self.file.shown, error, &self.classes.names))?;
        let columns: Vec<&[f64]> = numbers.iter().map(Vec::as_slice).collect();
        visit(&columns, &labels, drift);
        Ok(())
    }

    /// One pass over the labels, and over the names of the rows, without the probabilities.
    pub fn walk_labels(
        &self,
        mut visit: impl FnMut(LabelledRows<'_>) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        self.file
            .walk(&Selection::texts(self.selection.texts.clone()), |batch| self.visit_labels(&batch, &[], &mut visit))
    }

    /// Hands over the labels and names of a batch.
    pub(crate) fn visit_labels(
        &self,
        batch: &Batch,
        given: &[&[f64]],
        mut visit: impl FnMut(LabelledRows<'_>) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let labels = self.classes.encode(&batch.texts[0], batch.first_row)?;
        let names = batch.texts.last().filter(|_| self.named);
        let names = names.map(|names| names.iter().map(|name| name.map(str::trim)).collect());
        visit(LabelledRows { labels: &labels, names, given })
    }

    /// What labels and columns were taken for.
    pub fn notes(&self) -> &[Note] {
        &self.classes.notes
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
        &self.classes.names
    }

    fn kind(&self) -> PosteriorKind {
        self.kind
    }

    fn renormalised(&self) -> Renormalised {
        self.renormalised
    }

    fn kept(&self) -> Option<&Kept> {
        self.kept.as_ref()
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
