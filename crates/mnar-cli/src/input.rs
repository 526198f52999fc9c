//! Reads the table that `estimate` and `test` work on.

use crate::args::TableArgs;
use anyhow::{Result, bail};
use mnar::analysis::{Audit, Evidence, Given};
use mnar::crossfit::FoldPlan;
use mnar::{Covariates, Labels, Posteriors, Progress, RareClass, Rows as _};
use mnar_data::{Inputs, Note, ParquetPredictions, PredictionColumns, ReadOptions, TableEncoder, read_dataset};
use mnar_run::{EncodedTable, TableModels};
use ndarray::Array2;

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
    /// What the reader decided about the file.
    notes: Vec<Note>,
}

/// What a table says about its rows.
enum Rows {
    Predictions(Posteriors, FoldPlan),
    Features { encoder: TableEncoder, encoded: Array2<f32> },
}

impl Table {
    /// Reads features as `mnar fit` does. Columns that labelling is taken to depend on are features too.
    fn of_features(args: &TableArgs, features: &str, by: Option<&String>) -> Result<Self> {
        let mut options = ReadOptions {
            label: Some(args.label.clone()),
            missing: args.missing.clone(),
            labels_as_they_are: args.labels_as_they_are,
            sheet: args.sheet.clone(),
            categorical: args.categorical.clone(),
            ignore: args.fold.iter().chain(&args.audit).cloned().collect(),
            ..Default::default()
        };
        if features != "all" {
            let mut names: Vec<String> = features.split(',').map(|name| name.trim().to_owned()).collect();
            for name in asked(args, by) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            options.features = Some(names);
        }
        let dataset = read_dataset(&args.table, &options)?;
        let Inputs::Table(table) = &dataset.inputs else {
            bail!("{} holds images, and --features is for tables", args.table.display());
        };
        if let Some(column) = table.copy_of_label(&dataset.labels) {
            bail!(
                "{}: the column `{column}` repeats the label in every labelled row, so it cannot be a feature; name the features with --features",
                args.table.display()
            );
        }
        let folds = match &args.fold {
            Some(fold) => Some(mnar_data::read_folds(&args.table, fold)?),
            None => None,
        };
        let encoder = TableEncoder::fit(table)?;
        let encoded = encoder.encode(table)?;
        let rows = Rows::Features { encoder, encoded };
        let (labels, audit, rare) = match one_class(&dataset.labels) {
            true => (dataset.labels.clone(), None, Vec::new()),
            false => {
                let labels = Labels::new(dataset.labels.as_slice().to_vec(), dataset.labels.names().to_vec())?;
                let (labels, audit) = split_audit(args, labels)?;
                let (labels, rare) = labels.without_rare(FoldPlan::FEWEST_LABELS)?;
                (labels, audit, rare)
            }
        };
        Ok(Self { labels, rare, folds, rows, covariates: table.covariates()?, audit, notes: dataset.notes.clone() })
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

    /// Tells what the reader decided about the file.
    pub(crate) fn tell_notes(&self, progress: &dyn Progress) {
        self.notes.iter().for_each(|note| progress.warn(&format!("note: {note}")));
    }

    /// The classifiers of a table of features, which [`Table::evidence`] cross-fits.
    pub(crate) fn models(&self, args: &TableArgs, progress: &dyn Progress) -> Result<Option<(TableModels, FoldPlan)>> {
        let Rows::Features { encoder, encoded } = &self.rows else { return Ok(None) };
        self.tell_notes(progress);
        let plan = match &self.folds {
            Some(folds) => FoldPlan::given(folds.clone()),
            None => FoldPlan::for_labels(&self.labels, args.folds, args.seed)?,
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
        let evidence = evidence.with_notes(self.rare.iter().map(RareClass::to_string));
        Ok(evidence.with_audit(&self.audit))
    }
}

/// Whether only one class is ever labelled.
fn one_class(labels: &Labels) -> bool {
    labels.n_classes() == 1 && labels.n_unlabelled() > 0
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
fn split_audit(args: &TableArgs, labels: Labels) -> Result<(Labels, Option<Audit>)> {
    let Some(column) = &args.audit else { return Ok((labels, None)) };
    let marks = mnar_data::read_marks(&args.table, column, &args.missing)?;
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
            eprintln!("note: {} is not as the run wrote it", args.table.display());
        }
        if let Some(features) = &args.features {
            return Ok(Input::Table(Box::new(Table::of_features(args, features, by)?)));
        }
        let columns = PredictionColumns {
            prefix: args.proba.clone(),
            fold: args.fold.clone(),
            kind: args.posterior,
            missing: args.missing.clone(),
            allow_complete: loading == Loading::Complete,
            ..PredictionColumns::new(&args.label)
        };
        if loading == Loading::Stream {
            return Ok(Input::Stream(Box::new(ParquetPredictions::open(&args.table, &columns)?)));
        }
        let large = || std::fs::metadata(&args.table).is_ok_and(|file| file.len() > LOAD_AT_MOST / 4);
        if loading == Loading::Auto && large() {
            // Compressed files may hold several times their size; the footer knows the rows.
            if let Ok(table) = ParquetPredictions::open(&args.table, &columns) {
                let bytes = table.rows() as u64 * table.n_classes() as u64 * 8;
                if bytes > LOAD_AT_MOST {
                    return Ok(Input::Stream(Box::new(table)));
                }
            }
        }
        let table = mnar_data::read_predictions(&args.table, &columns)?;
        let plan = table.folds.map_or_else(|| FoldPlan::single(table.labels.len()), FoldPlan::given);
        let rows = Rows::Predictions(table.posteriors, plan);
        let covariates = match asked(args, by) {
            names if names.is_empty() => Covariates::default(),
            names => mnar_data::read_columns(&args.table, &names, &args.missing)?.covariates()?,
        };
        let (labels, audit) = split_audit(args, table.labels)?;
        let (rare, folds, notes) = (Vec::new(), None, Vec::new());
        Ok(Input::Table(Box::new(Table { labels, rare, folds, rows, covariates, audit, notes })))
    }
}
