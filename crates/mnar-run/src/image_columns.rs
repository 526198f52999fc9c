//! Columns beside images: what a classifier of images must know of them for labelling to depend on them.
//!
//! P(unlabelled | x, z) is a sum over s(y | x, z), what a classifier learns from the labelled rows if it sees the image and the
//! columns. A network sees the image alone. Where the classes are spread unevenly over the hospitals beyond what an image shows, s(y|x)
//! in its place would take that for an effect of the hospital on labelling.

use crate::error::RunError;
use crate::options::FitOptions;
use mnar::analysis::Given;
use mnar::classify::{SoftmaxRegression, Standardise};
use mnar::covariates::TermEncoder;
use mnar::crossfit::{CrossFit, FoldPlan};
use mnar::{Covariates, Labels, Posteriors, Remedy};
use mnar_data::{Dataset, FeatureTable, Inputs, Memory, read_label_columns};
use ndarray::Array2;

/// The columns that were asked for, from the file of labels; `None` for tables, and where none was asked for.
pub(crate) fn columns_beside(
    dataset: &Dataset,
    options: &FitOptions,
    memory: Memory,
) -> Result<Option<FeatureTable>, RunError> {
    let mut names = match &options.given {
        Some(Given::Columns(names)) => names.clone(),
        Some(Given::Auto | Given::None) | None => Vec::new(),
    };
    let given = !names.is_empty();
    names.extend(options.by.iter().filter(|by| !names.contains(by)).cloned().collect::<Vec<_>>());
    if names.is_empty() || matches!(dataset.inputs, Inputs::Table(_)) {
        return Ok(None);
    }
    let Some(file) = &options.labels else {
        let (what, option) = match given {
            true => ("images have no columns that labelling could depend on; they can be in a file of labels", "given"),
            false => ("images have no columns to group by; they can be in a file of labels", "by"),
        };
        return Err(RunError::options(what, [Remedy::set("labels", "labels.csv"), Remedy::unset(option)]));
    };
    Ok(Some(read_label_columns(file, &names, &options.read_options()?, dataset, memory)?))
}

/// Features with the terms of the columns appended.
pub(crate) fn appended(x: Array2<f64>, beside: &Covariates) -> Result<Array2<f64>, mnar::Error> {
    let terms = TermEncoder::learn(beside).terms(beside)?;
    let (rows, width) = x.dim();
    Ok(Array2::from_shape_fn(
        (rows, width + terms.len()),
        |(i, j)| if j < width { x[[i, j]] } else { terms[j - width][i] },
    ))
}

/// s(y | x, z) from s(y|x): a softmax regression on the logits and the terms of the columns, cross-fitted in the same folds.
pub(crate) fn given_columns(
    posteriors: &Posteriors,
    beside: &Covariates,
    labels: &Labels,
    folds: &FoldPlan,
    seed: u64,
) -> Result<Posteriors, mnar::Error> {
    /// Probabilities below this count as this, so that one sure prediction has no logit without bound.
    const FLOOR: f64 = 1e-6;
    let mut logits = posteriors.view().mapv(|p| p.max(FLOOR).ln());
    for mut row in logits.rows_mut() {
        let mean = row.mean().unwrap_or(0.0);
        row.mapv_inplace(|value| value - mean);
    }
    let x = appended(logits, beside)?;
    let x = Standardise::learn(x.view())?.apply(x.view());
    let regression = SoftmaxRegression::default();
    Ok(CrossFit { classifier: &regression, x: &x, seed }.run(labels, folds, None, &())?.posteriors)
}
