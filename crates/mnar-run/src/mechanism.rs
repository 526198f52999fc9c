//! The mechanism of a finished run, for other rows.

use crate::error::RunError;
use crate::folder::MODEL;
use crate::manifest;
use crate::report::SavedReport;
use mnar::analysis::{ColumnEffect, TermEffect};
use mnar::covariates::TermEncoder;
use mnar::evaluate::KnownMechanism;
use mnar_train::{LabellingByColumns, load_description};
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
    let Some(LabellingByColumns { mechanism, terms }) = model.by_columns else { return Ok(None) };
    let findings = SavedReport::read(run)?.report.findings;
    let term_se = findings.labelling.map(|labelling| errors(&terms, &labelling.effects));
    Ok(Some((model.classes, KnownMechanism { mechanism, terms, term_se })))
}

/// Errors beyond this say that nothing is known: odds of a label that could be a thousand times larger or smaller.
const LARGEST: f64 = 3.5;

/// The standard error of every term's effect, from the intervals of the odds ratios; 0 for the name that others are compared
/// with.
fn errors(terms: &TermEncoder, effects: &[ColumnEffect]) -> Vec<f64> {
    let error = |(column, level): (String, Option<String>)| {
        let effect = effects.iter().find(|effect| effect.column == column)?;
        let is = |term: &&TermEffect| level.as_ref().map_or(term.term.starts_with("per "), |level| term.term == *level);
        let (low, high) = effect.terms.iter().find(is)?.ci95;
        let error = (high / low).ln() / (2.0 * 1.96);
        Some(if error.is_finite() { error.clamp(0.0, LARGEST) } else { LARGEST })
    };
    terms.term_names().into_iter().map(|term| error(term).unwrap_or(0.0)).collect()
}
