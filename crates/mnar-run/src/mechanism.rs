//! The mechanism of a finished run, for other rows.

use crate::error::RunError;
use crate::folder::MODEL;
use crate::manifest;
use mnar::evaluate::KnownMechanism;
use mnar_train::load_description;
use std::path::Path;

/// P(labelled | class, columns) as a finished run estimated it, with its classes in the order of its effects; `None` where
/// labelling depends on the class alone, or where the method of training has a phi of its own.
pub fn mechanism_by_columns(run: &Path) -> Result<Option<(Vec<String>, KnownMechanism)>, RunError> {
    let manifest = manifest::of_finished(run)?;
    let file = format!("{MODEL}/model.json");
    if !manifest.lists(&file) {
        return Ok(None);
    }
    manifest.verify(run, &file)?;
    let model = load_description(&run.join(MODEL))?;
    let known = |of: mnar_train::LabellingByColumns| KnownMechanism { mechanism: of.mechanism, terms: of.terms };
    Ok(model.by_columns.map(|of| (model.classes, known(of))))
}
