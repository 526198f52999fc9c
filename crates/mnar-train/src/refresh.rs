//! phi again, from a model that has improved.

use crate::error::TrainError;
use crate::examples::Examples;
use crate::model::Classifier;
use crate::predict::logits;
use mnar::calibrate::Calibration;
use mnar::estimate::{Estimator, LabelShift};
use mnar::{Labels, Phi, PosteriorKind, Posteriors, Sample};

/// phi by label shift between the held-out labelled rows, which the model has not learnt from and which calibrate it,
/// and the unlabelled rows.
///
/// The model's scores stand for features here: bias-corrected temperature scaling on the held-out rows turns them
/// into posteriors of a *labelled* row, whatever population the model was trained for.
pub fn refreshed_phi<M: Classifier>(
    network: &M,
    examples: &Examples,
    labels: &Labels,
    held_out: &[usize],
) -> Result<Phi, TrainError> {
    let unlabelled = (0..labels.len()).filter(|&row| !labels.is_labelled(row));
    let rows: Vec<usize> = held_out.iter().copied().chain(unlabelled).collect();
    let y = rows.iter().map(|&row| labels.get(row)).collect();
    let subset = Labels::new(y, labels.names().to_vec())?;
    let raw = Posteriors::from_logits(logits(network, examples, &rows).view(), PosteriorKind::Labelled)?;
    let bcts = Calibration::default().fit(&Sample::new(&raw, &subset)?)?;
    let posteriors = bcts.apply(&raw)?;
    let estimate = LabelShift::default().estimate(&Sample::new(&posteriors, &subset)?)?;
    // The subset has a part of the labels only: phi_k = n_k/(n_k + n_u q_k) with all of them.
    let n_u = labels.n_unlabelled() as f64;
    let shares = labels.counts().iter().zip(&estimate.unlabelled_shares);
    let phi = shares.map(|(&count, q)| count as f64 / (count as f64 + n_u * q)).collect();
    Ok(Phi::new(phi)?)
}
