//! Scores of rows, batch by batch.

use crate::error::TrainError;
use crate::examples::{Examples, View};
use crate::model::NetworkModule;
use burn::tensor::{Device, Tensor, TensorData};
use mnar::{PosteriorKind, Posteriors};
use ndarray::Array2;

/// Rows per batch: large enough to be fast, small enough to keep memory flat.
const BATCH: usize = 512;

/// Logits of these rows, one line per row. The network must be without gradients ([`burn::module::Module::valid`]).
pub fn logits<M: NetworkModule>(network: &M, examples: &Examples, rows: &[usize]) -> Array2<f64> {
    let device = network.devices().first().cloned().unwrap_or_else(Device::flex);
    let width = examples.shape().width();
    let mut scores = Vec::new();
    let mut values = Vec::new();
    for rows in rows.chunks(BATCH) {
        values.clear();
        examples.gather(rows, View::Plain, &mut values);
        let x = Tensor::<2>::from_data(TensorData::new(std::mem::take(&mut values), [rows.len(), width]), &device);
        scores.extend(network.forward(x).into_data().iter::<f32>().map(f64::from));
    }
    let classes = if rows.is_empty() { 0 } else { scores.len() / rows.len() };
    Array2::from_shape_vec((rows.len(), classes), scores).expect("K scores per row")
}

/// Posteriors of all rows, from one network whose logits are divided by `temperature`.
pub fn score<M: NetworkModule>(
    network: &M,
    examples: &Examples,
    temperature: f64,
    kind: PosteriorKind,
) -> Result<Posteriors, TrainError> {
    let rows: Vec<usize> = (0..examples.len()).collect();
    let scores = logits(network, examples, &rows) / temperature;
    Posteriors::from_logits(scores.view(), kind).map_err(|error| match error {
        // The data were checked when they were read; what is not finite here comes from the network.
        mnar::Error::NotFinite { .. } => TrainError::Overflown,
        other => other.into(),
    })
}
