//! Sources of rows: simulated Gaussians, optdigits and MNIST.

use anyhow::{Context, Result, bail, ensure};
use mnar::simulate::{apply_mask, mask};
use mnar::{Class, Labels, Phi, PosteriorKind, Posteriors};
use mnar_data::FullyLabelled;
use ndarray::{Array2, ArrayView1};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::borrow::Cow;
use std::path::Path;

/// Class shares of the Gaussians.
pub(crate) const PRIOR: [f64; 3] = [0.5, 0.3, 0.2];
/// Number of rows in a draw of the Gaussians.
pub(crate) const N: usize = 3000;
/// Distance of the class means from the origin.
const RADIUS: f64 = 1.5;

/// A source of fully labelled rows.
pub(crate) enum World {
    /// New rows in each draw: three classes, two features, unit variance, means at 0, 120 and 240 degrees.
    Gaussians,
    /// The same rows in each draw; only r is drawn.
    Fixed(Box<FullyLabelled>),
}

impl World {
    pub(crate) fn draw(&self, seed: u64) -> Cow<'_, FullyLabelled> {
        match self {
            World::Gaussians => Cow::Owned(gaussians(seed)),
            World::Fixed(rows) => Cow::Borrowed(rows),
        }
    }
}

fn mean(k: usize) -> [f64; 2] {
    let angle = k as f64 * std::f64::consts::TAU / 3.0;
    [RADIUS * angle.cos(), RADIUS * angle.sin()]
}

fn gaussians(seed: u64) -> FullyLabelled {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut x = Array2::zeros((N, 2));
    let mut y = Vec::with_capacity(N);
    for mut row in x.rows_mut() {
        let draw: f64 = rng.random();
        let k = if draw < PRIOR[0] {
            0
        } else if draw < PRIOR[0] + PRIOR[1] {
            1
        } else {
            2
        };
        let centre = mean(k);
        for j in 0..2 {
            let noise: f64 = StandardNormal.sample(&mut rng);
            row[j] = centre[j] + noise;
        }
        y.push(Class::from(k));
    }
    FullyLabelled {
        x,
        y,
        names: ["a", "b", "c"].map(String::from).to_vec(),
        feature_names: ["x1", "x2"].map(String::from).to_vec(),
    }
}

/// p(k|x) of the Gaussians with class weights `weights`, given up to scale: the prior gives the population posterior,
/// and the prior times phi gives the labelled one.
pub(crate) fn true_posterior(x: ArrayView1<'_, f64>, weights: &[f64]) -> Vec<f64> {
    let density = |k: usize| {
        let centre = mean(k);
        weights[k] * (-0.5 * ((x[0] - centre[0]).powi(2) + (x[1] - centre[1]).powi(2))).exp()
    };
    let p: Vec<f64> = (0..weights.len()).map(density).collect();
    let sum: f64 = p.iter().sum();
    p.iter().map(|p| p / sum).collect()
}

/// s(k|x) of the Gaussians under the mechanism `phi`, with one row per row of `x`.
pub(crate) fn true_labelled_posteriors(x: &Array2<f64>, phi: &Phi) -> Result<Posteriors> {
    let weights: Vec<f64> = PRIOR.iter().zip(phi.as_slice()).map(|(p, phi)| p * phi).collect();
    let mut table = Array2::zeros((x.nrows(), weights.len()));
    for (row, mut out) in x.rows().into_iter().zip(table.rows_mut()) {
        out.assign(&ArrayView1::from(&true_posterior(row, &weights)));
    }
    Ok(Posteriors::new(table, PosteriorKind::Labelled)?)
}

/// The complete labels.
pub(crate) fn complete(rows: &FullyLabelled) -> Result<Labels> {
    Ok(Labels::allow_degenerate(rows.y.iter().copied().map(Some).collect(), rows.names.clone())?)
}

/// Labels kept with probability phi_k.
pub(crate) fn self_masked(rows: &FullyLabelled, phi: &Phi, seed: u64) -> Result<Labels> {
    let labels = complete(rows)?;
    Ok(apply_mask(&labels, &mask(&labels, phi, seed)?)?)
}

/// Labels kept with the given probability per row.
pub(crate) fn masked_by_row(rows: &FullyLabelled, probability: &[f64], seed: u64) -> Result<Labels> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let kept: Vec<bool> = probability.iter().map(|p| rng.random::<f64>() < *p).collect();
    Ok(apply_mask(&complete(rows)?, &kept)?)
}

/// phi in the proportion 1 : 2 : 4, scaled so that the expected number of labels of the Gaussians is `labels`.
pub(crate) fn skewed_phi(labels: f64) -> Result<Phi> {
    let shape = [0.5, 1.0, 2.0];
    let mean: f64 = PRIOR.iter().zip(&shape).map(|(p, s)| p * s).sum();
    Ok(Phi::new(shape.iter().map(|s| s * labels / (N as f64 * mean)).collect())?)
}

/// phi from 0.05 to 0.11: lower digits are labelled less often.
pub(crate) fn digit_phi() -> Result<Phi> {
    Ok(Phi::new((0..10).map(|k| 0.05 + 0.06 * k as f64 / 9.0).collect())?)
}

/// All 5,620 rows of optdigits, pixels from 0 to 1.
pub(crate) fn optdigits(data: &Path) -> Result<World> {
    let (mut values, mut y) = (Vec::new(), Vec::new());
    for name in ["optdigits.tra", "optdigits.tes"] {
        let path = data.join("optdigits").join(name);
        let shown = path.display().to_string();
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .from_path(&path)
            .with_context(|| format!("{shown} cannot be read"))?;
        for record in reader.records() {
            let record = record.with_context(|| shown.clone())?;
            let numbers: Vec<u32> = record
                .iter()
                .map(|value| value.trim().parse())
                .collect::<Result<_, _>>()
                .with_context(|| shown.clone())?;
            let [pixels @ .., digit] = numbers.as_slice() else { bail!("{shown} has an empty line") };
            ensure!(pixels.len() == 64 && *digit < 10, "{shown}: expected 64 pixels and a digit, found {record:?}");
            values.extend(pixels.iter().map(|pixel| f64::from(*pixel) / 16.0));
            y.push(Class(*digit));
        }
    }
    Ok(World::Fixed(Box::new(FullyLabelled {
        x: Array2::from_shape_vec((y.len(), 64), values)?,
        y,
        names: (0..10).map(|digit| digit.to_string()).collect(),
        feature_names: (0..64).map(|pixel| format!("pixel_{pixel}")).collect(),
    })))
}

/// MNIST's training images, with one byte per pixel.
pub(crate) struct Mnist {
    pub(crate) pixels: Vec<u8>,
    pub(crate) width: usize,
    pub(crate) digits: Vec<u8>,
}

pub(crate) fn mnist(data: &Path) -> Result<Mnist> {
    let folder = data.join("mnist");
    let images = mnar_data::idx::read_images(&folder.join("train-images-idx3-ubyte.gz"))?;
    let digits = mnar_data::idx::read_labels(&folder.join("train-labels-idx1-ubyte.gz"))?;
    ensure!(images.n == digits.len(), "{} images but {} labels", images.n, digits.len());
    Ok(Mnist { width: images.rows * images.cols, pixels: images.pixels, digits })
}
