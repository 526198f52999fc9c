//! How good models really are.

use crate::arrays::{Probabilities, slice, word};
use crate::errors::of_statistics;
use crate::interrupt::interruptible;
use crate::mechanism::{Table, json, settings};
use mnar::evaluate::{EvaluateSettings, Model, Scores};
use mnar::{Class, PosteriorKind, Posteriors};
use mnar_report::evaluate_text;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

/// What another model says: probabilities, or codes of classes.
#[derive(FromPyObject)]
pub(crate) enum Other<'py> {
    Decisions(PyReadonlyArray1<'py, i64>),
    Probabilities(Probabilities<'py>),
}

/// The same, owned by this side.
enum Said {
    Decisions(Vec<Class>),
    Probabilities(Posteriors),
}

/// Evaluates the probabilities of the table, called `name`, and other models: what `mnar evaluate --format json` prints, and the
/// text for people.
#[pyfunction]
#[pyo3(signature = (table, posterior, options, name, others))]
pub(crate) fn evaluate(
    py: Python<'_>,
    table: Table<'_>,
    posterior: &str,
    options: &str,
    name: String,
    others: Vec<(String, Other<'_>)>,
) -> PyResult<(String, String)> {
    let (settings, kind): (EvaluateSettings, PosteriorKind) =
        (settings(py, options)?, word(py, "posterior", posterior)?);
    let rows = table.rows(py)?;
    let mut said = Vec::with_capacity(others.len());
    for (name, other) in &others {
        said.push((
            name.clone(),
            match other {
                Other::Decisions(codes) => {
                    let codes = slice(py, "the decisions", codes)?;
                    // A decision that is missing belongs to no class, which the evaluation refuses.
                    Said::Decisions(codes.iter().map(|&code| Class(u32::try_from(code).unwrap_or(u32::MAX))).collect())
                }
                Other::Probabilities(p) => {
                    let p = p.view().posteriors(PosteriorKind::Population);
                    Said::Probabilities(p.map_err(|error| of_statistics(py, &error))?)
                }
            },
        ));
    }
    let found = interruptible(py, true, move |progress| {
        let checked = rows.even_complete(kind)?;
        let evidence = checked.evidence()?;
        let mut models = vec![Model { name, scores: Scores::Probabilities(evidence.posteriors.as_ref()) }];
        for (name, said) in &said {
            let scores = match said {
                Said::Decisions(decisions) => Scores::Decisions(decisions),
                Said::Probabilities(p) => Scores::Probabilities(p),
            };
            models.push(Model { name: name.clone(), scores });
        }
        settings.run(&evidence, &models, progress)
    })?;
    let found = found.map_err(|error| of_statistics(py, &error))?;
    Ok((json(py, &found)?, evaluate_text(&found)))
}
