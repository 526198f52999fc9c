//! Predictions in Parquet files that are read in constant memory, as often as an estimator needs.

use crate::arrays::TypedTable as _;
use crate::arrow_table::{Source, SourceKind};
use crate::batch::Batch;
use crate::classes::Classes;
use crate::columns::{PredictionColumns, PredictionLayout, Selection};
use crate::error::DataError;
use crate::format::without_parquet;
use crate::note::Note;
use crate::parquet_flat;
use crate::parquet_folder::{self, ParquetFolder};
use crate::values::{Census, Missing};
use mnar::kept::Keep;
use mnar::posteriors::{Renormalised, check_rows};
use mnar::rows::{Block, Rows, Sums, scan_block};
use mnar::{Class, PosteriorKind};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::sync_channel;

/// Predictions that stay in their Parquet file, or in the files of a folder or pattern: a few batches of rows are in memory at a
/// time.
pub struct ParquetPredictions {
    pub(crate) files: ParquetFolder,
    /// What messages start with.
    pub(crate) shown: String,
    pub(crate) selection: Selection,
    pub(crate) classes: Classes,
    /// Whether the rows have names, in the last column of texts.
    pub(crate) named: bool,
    kind: PosteriorKind,
    rows: usize,
    counts: Vec<usize>,
    /// What the first pass over all rows has found.
    renormalised: OnceLock<Renormalised>,
    /// Values that mean missing.
    pub(crate) missing: Vec<String>,
    /// The labels, where they are remembered.
    remembered: Remembered,
}

/// Labels as a byte per row, so that not every pass reads them: of up to 16 million rows with up to 255 different ones.
struct Remembered {
    /// The number of every row's label, [`Self::NONE`] without one; `None` where there are too many.
    codes: Option<Vec<u8>>,
    /// The class of every number.
    classes: Vec<Option<Class>>,
}

impl Remembered {
    const MOST_ROWS: usize = 16_000_000;
    const NONE: u8 = u8::MAX;

    fn new(claimed_rows: i64) -> Self {
        let rows = usize::try_from(claimed_rows).ok().filter(|rows| *rows <= Self::MOST_ROWS);
        Self { codes: rows.map(Vec::with_capacity), classes: vec![None; 1 + usize::from(Self::NONE)] }
    }

    fn push(&mut self, code: Option<u32>) {
        let Some(codes) = &mut self.codes else { return };
        let code = code.map_or(Some(Self::NONE), |code| u8::try_from(code).ok().filter(|code| *code < Self::NONE));
        match code.filter(|_| codes.len() < codes.capacity()) {
            Some(code) => codes.push(code),
            None => self.codes = None,
        }
    }

    /// The labels of some rows.
    fn labels(&self, first_row: usize, rows: usize) -> Option<Vec<Option<Class>>> {
        let codes = self.codes.as_ref()?.get(first_row..first_row + rows)?;
        Some(codes.iter().map(|code| self.classes[usize::from(*code)]).collect())
    }
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

/// The Parquet files that a source stands for, and what messages about them start with.
fn opened_files(source: Source<'_>) -> Result<(ParquetFolder, String), DataError> {
    let shown = source.name();
    let SourceKind::Path(path) = source.kind else {
        return Err(DataError::NotAFile { path: shown, what: "in memory", needs: "only Parquet files are streamed" });
    };
    let files = match parquet_folder::files_of(path)? {
        Some(files) => files,
        None if path.is_dir() => return Err(DataError::io(&shown, "read", without_parquet())),
        None => vec![path.to_owned()],
    };
    Ok((ParquetFolder::open(&files, &shown, source.memory.resolved())?, shown))
}

/// Distinct labels that are counted. A column of names by mistake has more, and is refused for those that were.
const MOST_LABELS: usize = 100_000;

impl ParquetPredictions {
    /// Opens the files and walks over their labels, which are counted. The probabilities are checked in every pass over them.
    /// Folds are not read.
    pub fn open<'a>(source: impl Into<Source<'a>>, columns: &PredictionColumns) -> Result<Self, DataError> {
        let (files, shown) = opened_files(source.into())?;
        let mut layout = PredictionLayout::find(files.header(), columns, &shown)?;
        layout.fold = None;
        let mut selection = layout.selection();
        // How long lists are is not known before one is seen.
        let width = match selection.lists {
            None => selection.width(),
            Some(_) => files.batches(&selection)?.next().transpose()?.map_or(0, |batch| batch.numbers.len()),
        };
        if width == 0 || files.claimed_rows() == 0 {
            return Err(DataError::NoRows { path: shown });
        }
        selection.lists = selection.lists.map(|_| width);
        let (mut labels, missing) = (Census::default(), Missing::new(&columns.missing));
        let (mut rows, mut remembered) = (0, Remembered::new(files.claimed_rows()));
        in_turn(files.batches(&Selection::texts(vec![layout.label]))?, |batch| {
            rows += batch.rows;
            if labels.len() < MOST_LABELS {
                labels.extend(&batch.texts[0], &missing, |code| remembered.push(code));
            }
            Ok(())
        })?;
        let classes = Classes::find(&layout, columns, width, &labels, &shown)?;
        let mut table = Self {
            counts: vec![0; classes.names.len()],
            named: layout.id.is_some(),
            files,
            shown,
            selection,
            classes,
            kind: columns.kind,
            rows,
            renormalised: OnceLock::new(),
            missing: columns.missing.clone(),
            remembered,
        };
        table.count(&labels)?;
        Ok(table)
    }

    /// The memory that the probabilities of Parquet files would take, by the rows that their footers claim; `None` where they
    /// are not Parquet files of predictions. A list counts as one number.
    pub fn claimed_bytes(path: &Path, columns: &PredictionColumns) -> Option<u64> {
        let (files, shown) = opened_files(path.into()).ok()?;
        let layout = PredictionLayout::find(files.header(), columns, &shown).ok()?;
        let rows = u64::try_from(files.claimed_rows()).ok()?;
        Some(rows.saturating_mul(layout.selection().width() as u64).saturating_mul(size_of::<f64>() as u64))
    }

    fn count(&mut self, labels: &Census) -> Result<(), DataError> {
        if i64::try_from(self.rows) != Ok(self.files.claimed_rows()) {
            let (claimed, rows) = (self.files.claimed_rows(), self.rows);
            return Err(DataError::parquet(
                &self.shown,
                format!("its footer claims {claimed} rows but it holds {rows}"),
            ));
        }
        if labels.rows() < self.rows {
            let what = format!("its column of labels has more than {MOST_LABELS} different ones");
            return Err(DataError::parquet(&self.shown, what));
        }
        for (code, label) in labels.texts().into_iter().enumerate() {
            let class = self.classes.class(label.text, label.first_row)?;
            if let Some(class) = class {
                self.counts[class.index()] += label.count;
            }
            if code < usize::from(Remembered::NONE) {
                self.remembered.classes[code] = class;
            }
        }
        self.check_estimable()
    }

    /// The refusals of [`mnar::Labels::new`], in its order, from the counts alone: the labels are not kept.
    fn check_estimable(&self) -> Result<(), DataError> {
        let (rows, labelled) = (self.rows, self.n_labelled());
        let cause = if labelled == 0 {
            mnar::Error::NoLabels { n: rows }
        } else if let [class] = self.classes.names.as_slice() {
            mnar::Error::OneClass { class: class.clone() }
        } else if labelled == rows {
            mnar::Error::NoUnlabelled { n: rows }
        } else {
            return Ok(());
        };
        Err(DataError::core(&self.shown, cause))
    }

    /// The columns that a pass over the probabilities reads.
    pub(crate) fn scanned(&self) -> Selection {
        let texts = if self.remembered.codes.is_some() { Vec::new() } else { self.selection.texts.clone() };
        Selection { texts, ..self.selection.clone() }
    }

    /// Checks a batch that [`Self::scanned`] selects, hands over its probabilities and labels, and returns what was renormalised.
    pub(crate) fn visit(
        &self,
        Batch { first_row, rows, numbers, texts }: Batch,
        visit: impl FnOnce(&[&[f64]], &[Option<Class>]),
    ) -> Result<Renormalised, DataError> {
        let labels = match self.remembered.labels(first_row, rows) {
            Some(labels) => labels,
            None => self.classes.encode(&texts[0], first_row)?,
        };
        let mut numbers = self.classes.probabilities(numbers, first_row)?;
        // What an earlier pass found to be in order still is: a file that has changed is refused.
        let in_order = self.renormalised.get().is_some_and(|found| found.rows == 0);
        let drift = if in_order {
            Renormalised::default()
        } else {
            let mut columns: Vec<&mut [f64]> = numbers.iter_mut().map(Vec::as_mut_slice).collect();
            check_rows(&mut columns, first_row)
                .map_err(|error| DataError::posterior(&self.shown, error, &self.classes.names))?
        };
        let columns: Vec<&[f64]> = numbers.iter().map(Vec::as_slice).collect();
        visit(&columns, &labels);
        parquet_flat::spare(numbers);
        Ok(drift)
    }

    /// Remembers what a pass over all rows has found.
    pub(crate) fn has_checked(&self, found: Renormalised) {
        self.renormalised.get_or_init(|| found);
    }

    /// One pass over the labels, and over the names of the rows, without the probabilities.
    pub fn walk_labels(
        &self,
        mut visit: impl FnMut(LabelledRows<'_>) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let texts = Selection::texts(self.selection.texts.clone());
        in_turn(self.files.batches(&texts)?, |batch| self.visit_labels(&batch, &[], &mut visit))
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
        self.renormalised.get().copied().unwrap_or_default()
    }

    fn keep(&self) -> Keep {
        Keep::HERE
    }

    fn scan<S: Sums>(&self, zero: &S) -> Result<S, mnar::Error> {
        let (mut total, mut renormalised) = (Total::new(zero), Renormalised::default());
        let batches = self.files.batches(&self.scanned());
        let scanned = batches.and_then(|batches| {
            in_turn(batches, |batch| {
                let add = |columns: &[&[f64]], labels: &[Option<Class>]| {
                    total.add(&Block { columns, labels, weights: None, given: &[] });
                };
                renormalised.merge(self.visit(batch, add)?);
                Ok(())
            })
        });
        scanned.map_err(|error| mnar::Error::Source(Box::new(error)))?;
        self.has_checked(renormalised);
        Ok(total.sums)
    }
}

/// Sums of one block after the other.
pub(crate) struct Total<'a, S> {
    zero: &'a S,
    pub(crate) sums: S,
}

impl<'a, S: Sums> Total<'a, S> {
    pub(crate) fn new(zero: &'a S) -> Self {
        Self { zero, sums: zero.clone() }
    }

    pub(crate) fn add(&mut self, block: &Block<'_>) {
        self.sums.merge(scan_block(block, self.zero));
    }
}
