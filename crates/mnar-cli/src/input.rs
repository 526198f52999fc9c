//! Reads the table that `estimate` and `test` work on.

use crate::args::TableArgs;
use crate::hint::quoted;
use crate::output;
use crate::terminal::Terminal;
use anyhow::{Result, bail};
use mnar::analysis::{Audit, Evidence, Given};
use mnar::crossfit::FoldPlan;
use mnar::{Covariates, Labels, Posteriors, Progress, RareClass};
use mnar_data::{
    Dataset, Inputs, Note, ParquetPredictions, PredictionColumns, ReadOptions, RowNames, Source, TableEncoder,
    read_dataset,
};
use mnar_run::{EncodedTable, TableModels};
use ndarray::Array2;
use std::path::Path;
use std::sync::Arc;

/// A table, as far as it is needed in memory.
pub(crate) enum Input {
    Table(Box<Table>),
    Stream(Box<ParquetPredictions>),
}

/// A table in memory.
pub(crate) struct Table {
    pub(crate) labels: Labels,
    /// Classes with too few labels to be cross-fitted.
    rare: Vec<RareClass>,
    folds: Option<Vec<u32>>,
    rows: Rows,
    /// Columns that labelling may depend on.
    covariates: Covariates,
    /// Rows whose label was requested at random, which the labels do not have.
    audit: Option<Audit>,
    pub(crate) row_names: Option<RowNames>,
    /// What the reader decided about the file.
    pub(crate) notes: Vec<Note>,
}

/// What a table says about its rows.
enum Rows {
    Predictions(Posteriors, FoldPlan),
    Features { encoder: TableEncoder, encoded: Array2<f32> },
}

impl Table {
    /// Reads features as `mnar fit` does. Columns that labelling is taken to depend on are features too.
    fn of_features(source: Source<'_>, args: &TableArgs, features: &str, by: Option<&String>) -> Result<Self> {
        let mut options = ReadOptions {
            label: Some(args.label.clone()),
            missing: args.missing.clone(),
            labels_as_they_are: args.labels_as_they_are,
            merge_labels: args.merge_labels,
            id: args.id.clone(),
            categorical: args.categorical.clone(),
            ignore: args.fold.iter().chain(&args.audit).chain(&args.ignore).cloned().collect(),
            ..Default::default()
        };
        if features != "all" {
            let mut names: Vec<String> = features.split(',').map(|name| name.trim().to_owned()).collect();
            // `hospital*age` stands for both columns.
            let asked = asked(args, by);
            for name in asked.iter().flat_map(|name| name.split('*')).map(str::trim) {
                if !names.iter().any(|other| other == name) {
                    names.push(name.to_owned());
                }
            }
            options.features = Some(names);
        }
        let dataset = read_dataset(source, &options)?;
        let notes = dataset.notes.clone();
        let read = Self::of_dataset(source, args, dataset);
        // What was found in the file may be why it cannot be used.
        if read.is_err() && !args.quiet {
            say(&notes, &Terminal::new(false, Arc::default()));
        }
        read
    }

    fn of_dataset(source: Source<'_>, args: &TableArgs, dataset: Dataset) -> Result<Self> {
        let Inputs::Table(table) = &dataset.inputs else {
            bail!("{} holds images, and --features is for tables", args.table.display());
        };
        if let Some(column) = table.copy_of_label(&dataset.labels) {
            bail!(
                "{}: the column `{column}` repeats the label in every labelled row, so it cannot be a feature; leave it out with --ignore {}",
                args.table.display(),
                quoted(column)
            );
        }
        let folds = match &args.fold {
            Some(fold) => Some(mnar_data::read_folds(source, fold)?),
            None => None,
        };
        let encoder = TableEncoder::fit(table)?;
        let encoded = encoder.encode(table)?;
        let rows = Rows::Features { encoder, encoded };
        let (labels, audit, rare) = match one_class(&dataset.labels) {
            true => (dataset.labels.clone(), None, Vec::new()),
            false => {
                let labels = Labels::new(dataset.labels.as_slice().to_vec(), dataset.labels.names().to_vec())?;
                let (labels, audit) = split_audit(source, args, labels)?;
                let (labels, rare) = labels.without_rare(FoldPlan::FEWEST_LABELS)?;
                (labels, audit, rare)
            }
        };
        let covariates = table.covariates()?;
        let (row_names, notes) = (dataset.row_names, dataset.notes);
        Ok(Self { labels, rare, folds, rows, covariates, audit, row_names, notes })
    }

    /// The features, if only one class is ever labelled.
    pub(crate) fn positive_unlabelled(&self) -> Option<EncodedTable<'_>> {
        match &self.rows {
            Rows::Features { encoder, encoded } if one_class(&self.labels) => {
                Some(EncodedTable { encoder, x: encoded.view() })
            }
            _ => None,
        }
    }

    /// The classifiers of a table of features, which [`Table::evidence`] cross-fits.
    pub(crate) fn models(&self, args: &TableArgs, progress: &dyn Progress) -> Result<Option<(TableModels, FoldPlan)>> {
        say(&self.notes, progress);
        let Rows::Features { encoder, encoded } = &self.rows else { return Ok(None) };
        let plan = match &self.folds {
            Some(folds) => FoldPlan::given(folds.clone()),
            None => FoldPlan::for_rows(encoded.view(), &self.labels, args.folds, args.seed)?,
        };
        let (which, softmax) = (args.classifier, args.softmax());
        let table = EncodedTable { encoder, x: encoded.view() };
        let models = TableModels::new(which, softmax, table, &self.labels, &plan, args.seed, progress)?;
        models.note().into_iter().for_each(|note| progress.warn(note));
        Ok(Some((models, plan)))
    }

    /// The evidence in the table. With features, a classifier is cross-fitted first.
    pub(crate) fn evidence<'a>(
        &'a self,
        models: Option<&'a (TableModels, FoldPlan)>,
        args: &TableArgs,
        progress: &dyn Progress,
    ) -> Result<Evidence<'a>> {
        let evidence = match (&self.rows, models) {
            (Rows::Predictions(posteriors, plan), _) => {
                Evidence::predictions(posteriors, &self.labels).with_folds(plan)
            }
            (Rows::Features { .. }, Some((models, plan))) => {
                models.evidence(&self.labels, plan, args.seed, progress)?
            }
            (Rows::Features { .. }, None) => bail!("the classifiers of the features are missing"),
        };
        let evidence = evidence.with_covariates(&self.covariates)?;
        let evidence = evidence.with_set_aside(&self.rare);
        Ok(evidence.with_audit(&self.audit))
    }
}

/// Whether only one class is ever labelled.
fn one_class(labels: &Labels) -> bool {
    labels.n_classes() == 1 && labels.n_unlabelled() > 0
}

/// Says what the reader decided about the file.
pub(crate) fn say(notes: &[Note], progress: &dyn Progress) {
    mnar_run::say_notes(notes.iter(), progress);
}

/// The columns that were asked for by name, each once.
fn asked(args: &TableArgs, by: Option<&String>) -> Vec<String> {
    let mut names = match &args.given {
        Given::Columns(names) => names.clone(),
        Given::Auto | Given::None => Vec::new(),
    };
    names.extend(by.filter(|by| !names.contains(by)).cloned());
    names
}

/// Takes the audited rows out of the labels.
fn split_audit(source: Source<'_>, args: &TableArgs, labels: Labels) -> Result<(Labels, Option<Audit>)> {
    let Some(column) = &args.audit else { return Ok((labels, None)) };
    let marks = mnar_data::read_marks(source, column, &args.missing)?;
    let (labels, audit) = Audit::split(&labels, &marks)?;
    Ok((labels, Some(audit)))
}

/// Probabilities beyond this size are streamed instead of loaded, where they can be.
const LOAD_AT_MOST: u64 = 4 << 30;

/// Whether a table is loaded or left in its file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loading {
    /// Always load it.
    Load,
    /// Load it, and take it even if no label is missing.
    Complete,
    /// Stream it if it is too large to load.
    Auto,
    /// Always stream it.
    Stream,
}

impl Input {
    /// `by` is a column that groups the rows.
    pub(crate) fn read(args: &TableArgs, by: Option<&String>, loading: Loading) -> Result<Self> {
        if mnar_run::is_changed(&args.table) && !args.quiet {
            output::complain(&format!("note: {} is not as the run wrote it", args.table.display()));
        }
        let source = args.source();
        if let Some(features) = &args.features {
            return Ok(Input::Table(Box::new(Table::of_features(source, args, features, by)?)));
        }
        let columns = PredictionColumns { allow_complete: loading == Loading::Complete, ..args.columns() };
        let streamed = loading == Loading::Stream;
        if streamed && args.table == Path::new("-") {
            bail!("--stream walks over Parquet files several times, which standard input does not allow");
        }
        if streamed && !starts_as_parquet(&args.table) {
            bail!(
                "{}: --stream walks over Parquet files, and this is none; leave out --stream, or save the table as Parquet",
                args.table.display()
            );
        }
        if streamed {
            return Self::stream(source, &columns);
        }
        if loading == Loading::Auto {
            // A small file may hold many rows: what counts is rows times columns, which the footer knows.
            let load_at_most = LOAD_AT_MOST.min(args.memory.most().limit());
            if ParquetPredictions::claimed_bytes(&args.table, &columns).is_some_and(|bytes| bytes > load_at_most) {
                return Self::stream(source, &columns);
            }
        }
        let table = mnar_data::read_predictions(source, &columns)?;
        let plan = table.folds.map_or_else(|| FoldPlan::single(table.labels.len()), FoldPlan::given);
        let rows = Rows::Predictions(table.posteriors, plan);
        let covariates = match asked(args, by) {
            names if names.is_empty() => Covariates::default(),
            names => mnar_data::read_columns(source, &names, &args.missing)?.covariates()?,
        };
        let (labels, audit) = split_audit(source, args, table.labels)?;
        let (row_names, notes) = (table.row_names, table.notes);
        Ok(Input::Table(Box::new(Table {
            labels,
            rare: Vec::new(),
            folds: None,
            rows,
            covariates,
            audit,
            row_names,
            notes,
        })))
    }

    /// Leaves the table in its files. The allocator asks for pages of 2 MB, of which a stream fills only a part: on 10^7 rows of 10
    /// classes it took 218 MB with them and 188 MB with pages of 4 KB, in the same time. Training does better with large pages.
    fn stream(source: Source<'_>, columns: &PredictionColumns) -> Result<Self> {
        // Where the system does not know this, streams take some more memory.
        #[cfg(target_os = "linux")]
        let _ = nix::sys::prctl::set_thp_disable(true);
        Ok(Self::Stream(Box::new(ParquetPredictions::open(source, columns)?)))
    }
}

/// Whether a file begins as Parquet does. What is no file, or cannot be read, is left to the reader, which says why.
fn starts_as_parquet(path: &Path) -> bool {
    if !path.is_file() {
        return true;
    }
    let mut magic = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut magic));
    read.is_err() || magic == *b"PAR1"
}
