//! Scores of rows, batch by batch.

use crate::error::TrainError;
use crate::examples::Examples;
use crate::model::NetworkModule;
use burn::tensor::{Device, Tensor, TensorData};
use mnar::{PosteriorKind, Posteriors};
use ndarray::Array2;

/// Rows per batch: large enough to be fast, small enough to keep memory flat.
const BATCH: usize = 512;

/// Logits of these rows, one line per row; of images the mean over the mirrors and turns that their orientation allows. The network
/// must be without gradients ([`burn::module::Module::valid`]).
pub fn logits<M: NetworkModule>(network: &M, examples: &Examples, rows: &[usize]) -> Array2<f64> {
    let device = network.devices().first().cloned().unwrap_or_else(Device::flex);
    let width = examples.shape().width();
    let mut scores = Vec::new();
    let mut values = Vec::new();
    for rows in rows.chunks(BATCH) {
        let (start, views) = (scores.len(), examples.views());
        for (view, count) in views.zip(1..) {
            values.clear();
            examples.gather(rows, view, &mut values);
            let x = Tensor::<2>::from_data(TensorData::new(std::mem::take(&mut values), [rows.len(), width]), &device);
            let found = network.forward(x).into_data();
            let found = found.iter::<f32>().map(f64::from);
            match count {
                1 => scores.extend(found),
                // The running mean.
                _ => scores[start..]
                    .iter_mut()
                    .zip(found)
                    .for_each(|(mean, score)| *mean += (score - *mean) / f64::from(count)),
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::augment::Orientation;
    use crate::examples::{Encoding, InputShape};
    use crate::model::Architecture;
    use mnar_data::{ImageShape, Images, Inputs};

    /// The score of an image is the mean of those of its views, and therefore the same for all of them.
    #[test]
    fn scores_are_means_over_the_views() {
        let shape = ImageShape::flat(2, 2, 1);
        let (plain, mirrored) = ([10, 200, 30, 90], [200, 10, 90, 30]);
        let scored = |orientation| {
            let encoding = Encoding::Images { shape, mean: vec![0.3], sd: vec![0.2], orientation };
            let images = Images::new(shape, [plain, mirrored].concat(), "two images").unwrap();
            let examples = encoding.examples(Inputs::Images(images)).unwrap();
            let device = Device::flex().inner();
            let network = Architecture::Mlp { hidden: vec![3] }.build(InputShape::Image(shape), 2, 1, &device).unwrap();
            logits(&network, &examples, &[0, 1])
        };
        let alone = scored(Orientation::default());
        let both = scored(Orientation { horizontal: true, ..Default::default() });
        assert!((alone[(0, 0)] - alone[(1, 0)]).abs() > 1e-3);
        for class in 0..2 {
            let mean = (alone[(0, class)] + alone[(1, class)]) / 2.0;
            assert!((both[(0, class)] - mean).abs() < 1e-6 && (both[(1, class)] - mean).abs() < 1e-6);
        }
    }
}
