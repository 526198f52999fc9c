//! Class probabilities of new rows, by the model of a run.

use crate::beside::{Table, TreesBeside};
use crate::error::{FolderState, RunError};
use crate::folder::{BASELINE, MODEL, model_files};
use crate::manifest;
use crate::positive::PositiveModel;
use crate::predictions::Predictions;
use mnar::PosteriorKind;
use mnar_data::{Expected, Inputs, Source, Split, read_for_prediction};
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
    if !model_files(name).any(|file| manifest.lists(&file)) {
        return Err(RunError::folder(run, FolderState::NoModel));
    }
    model_files(name).try_for_each(|file| manifest.verify(run, &file))?;
    if let Some(model) = PositiveModel::load(&folder)? {
        return model.predict(data.into(), options.split, options.id.as_deref());
    }
    device::name(&device::cpu())?;
    let (network, model) = load_model(&folder, &device::cpu().inner())?;
    let trees = TreesBeside::load(&folder, &model)?;
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
    if let (Some(trees), Some(table)) = (trees, Table::new(&model.encoding, &examples)) {
        population = trees.population(&population, &table, &phi)?;
    }
    Predictions::new(population, phi, &model.classes, rows.row_names)
}
