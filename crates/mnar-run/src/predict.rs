//! Class probabilities of new rows, by the model of a run.

use crate::beside::{Beside, Table};
use crate::classifiers::EncodedTable;
use crate::error::{FolderState, RunError};
use crate::folder::{BASELINE, MODEL, REPORT, model_files};
use crate::guides::Guides;
use crate::manifest;
use crate::per_class::PerClass;
use crate::positive::PositiveModel;
use crate::predictions::{PredictionSets, Predictions};
use crate::sets::{SavedSets, SetOptions};
use mnar::{ClassShares, PosteriorKind, Remedy};
use mnar_data::{Expected, Inputs, Source, Split, read_for_prediction};
use mnar_report::Report;
use mnar_train::{Encoding, Propensity, device, load_model, score};
use std::path::Path;

/// What to predict with, and which rows.
#[derive(Clone, Debug, Default)]
pub struct PredictOptions {
    /// The column of the table that names its rows.
    pub id: Option<String>,
    /// Which part of data that come in parts.
    pub split: Split,
    /// Whether the biased baseline predicts, instead of the debiased model.
    pub baseline: bool,
    /// Sets of classes beside the probabilities.
    pub sets: Option<SetOptions>,
    /// The class shares of the population that the rows come from, if they are not those of the run.
    pub shares: Option<PerClass>,
}

/// Predicts the rows of `data` by the model in a run folder.
pub fn predict<'a>(run: &Path, data: impl Into<Source<'a>>, options: &PredictOptions) -> Result<Predictions, RunError> {
    let name = if options.baseline { BASELINE } else { MODEL };
    let folder = run.join(name);
    if !folder.is_dir() {
        let finished = run.join("report.json").exists();
        let state = match (run.is_dir(), options.baseline && finished) {
            (false, _) => FolderState::Missing,
            (true, true) => FolderState::NoBaseline,
            (true, false) => FolderState::NoModel,
        };
        return Err(RunError::folder(run, state));
    }
    let manifest = manifest::of_finished(run)?;
    let lists = |file: &str| manifest.lists(&format!("{name}/{file}"));
    if !lists("model.json") && !lists(PositiveModel::FILE) {
        return Err(RunError::folder(run, FolderState::NoModel));
    }
    model_files(name).try_for_each(|file| manifest.verify(run, &file))?;
    if lists(PositiveModel::FILE) {
        if options.sets.is_some() || options.shares.is_some() {
            return Err(RunError::options(
                "a model of data with a single labelled class predicts neither sets nor another population",
                [Remedy::unset("sets"), Remedy::unset("shares")],
            ));
        }
        return PositiveModel::load(&folder)?.predict(data.into(), options.split, options.id.as_deref());
    }
    let (network, model) = load_model(&folder, &device::cpu().inner())?;
    let (beside, guides) = (Beside::load(&folder, &model)?, Guides::load(&folder, &model)?);
    let expected = match &model.encoding {
        Encoding::Table(encoder) => Expected::Table(encoder),
        Encoding::Images { shape, .. } => Expected::Images { shape: *shape, resize: true },
    };
    let rows = read_for_prediction(data, &expected, options.split, options.id.as_deref())?;
    // The columns of a mechanism are features, so they are among those that were read.
    let row_phi = match (&model.by_columns, &rows.inputs) {
        (Some(by_columns), Inputs::Table(table)) => Some(by_columns.row_phi(&table.covariates()?)?),
        _ => None,
    };
    let examples = model.encoding.examples(rows.inputs)?;
    let mut population = score(&network, &examples, model.temperature, PosteriorKind::Population)?;
    let phi = Propensity::new(&model.phi, row_phi.as_deref());
    if let (Some(beside), Some(table)) = (beside, Table::new(&model.encoding, &examples)) {
        population = beside.population(&population, &table, &phi)?;
    }
    if let Some(guides) = guides {
        population = guides.population(&population, &guides.together(&examples)?, &phi)?;
    }
    let sets = match (options.sets, Table::new(&model.encoding, &examples)) {
        (None, _) => None,
        (Some(asked), Some(table)) => Some(sets(&folder, &model.classes, table.encoded(), &phi, asked)?),
        (Some(_), None) => {
            let what = "prediction sets are available for tables, not yet for images";
            return Err(RunError::options(what, [Remedy::unset("sets")]));
        }
    };
    if let Some(shares) = &options.shares {
        let to = ClassShares::new(shares.resolve("shares", &model.classes)?)?;
        let report = run.join(REPORT);
        let text = std::fs::read_to_string(&report).map_err(RunError::io("read", &report))?;
        population = population.moved(&Report::from_json(&text)?.findings.prevalence, &to)?;
    }
    let predictions = Predictions::new(population, phi, &model.classes, rows.row_names)?;
    Ok(predictions.with_sets(sets).with_notes(rows.notes))
}

/// The sets of all rows.
fn sets(
    folder: &Path,
    classes: &[String],
    table: EncodedTable<'_>,
    phi: &Propensity<'_>,
    options: SetOptions,
) -> Result<PredictionSets, RunError> {
    if !(options.level > 0.0 && options.level < 1.0) {
        let (value, expected) = (options.level.to_string(), "between 0 and 1, such as 0.9".to_owned());
        return Err(RunError::OptionValue { option: "sets", value, expected });
    }
    let Some(saved) = SavedSets::load(folder, table.encoder, classes.len())? else {
        let what =
            "this run has nothing that sets can be made from: all labels were there, or an earlier version wrote it";
        return Err(RunError::options(what, [Remedy::unset("sets")]));
    };
    Ok(PredictionSets { sets: saved.sets(table, phi, options)?, warning: saved.warning(classes, options) })
}
