//! Rows as a network sees them: encoded tables, or images scaled and augmented batch by batch.

use crate::augment::{Orientation, Strong, Weak};
use crate::error::TrainError;
use mnar_data::{Checksum, ImageShape, Images, Inputs, Sum, TableEncoder};
use ndarray::{Array2, ArrayView2};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// How raw inputs become numbers near 0: learnt from all rows, saved with the model.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Encoding {
    /// Columns of a table.
    Table(TableEncoder),
    /// Pixels of images.
    Images {
        /// The shape of an image.
        shape: ImageShape,
        /// The mean of each channel: a pixel becomes (pixel/255 − mean)/sd.
        mean: Vec<f32>,
        /// The standard deviation of each channel.
        sd: Vec<f32>,
        /// Mirrors and turns over which the scores of an image are averaged.
        #[serde(default)]
        orientation: Orientation,
    },
}

/// Values of an image beyond which it is not one: 2^28 of them take 1 GB.
const LARGEST_IMAGE: usize = 1 << 28;

impl Encoding {
    /// Checks an encoding that was read from a file.
    pub fn check(&self) -> Result<(), &'static str> {
        match self {
            Self::Table(encoder) => encoder.check(),
            Self::Images { shape, mean, sd, .. } => {
                if shape.checked_len().is_none_or(|len| len > LARGEST_IMAGE) {
                    return Err("the images are empty, or too large");
                }
                let finite = mean.iter().all(|mean| mean.is_finite()) && sd.iter().all(|sd| sd.is_finite());
                if [mean.len(), sd.len()] != [shape.channels; 2] || !finite || sd.iter().any(|sd| *sd <= 0.0) {
                    return Err("the scaling of the channels makes no sense");
                }
                Ok(())
            }
        }
    }

    /// Learns the scaling from these rows, labelled or not.
    pub fn learn(inputs: &Inputs) -> Result<Self, TrainError> {
        Ok(match inputs {
            Inputs::Table(table) => Self::Table(TableEncoder::fit(table)?),
            Inputs::Images(images) => {
                let (mean, sd) = channel_moments(images);
                Self::Images { shape: images.shape(), mean, sd, orientation: Orientation::default() }
            }
        })
    }

    /// The same, with scores averaged over these mirrors and turns of an image.
    pub fn oriented(self, orientation: Orientation) -> Self {
        match self {
            Self::Images { shape, mean, sd, .. } => Self::Images { shape, mean, sd, orientation },
            table @ Self::Table(_) => table,
        }
    }

    /// The encoded rows.
    pub fn examples(&self, inputs: Inputs) -> Result<Examples, TrainError> {
        Ok(match (self, inputs) {
            (Self::Table(encoder), Inputs::Table(table)) => Examples::Table(encoder.encode(&table)?),
            (Self::Images { mean, sd, orientation, .. }, Inputs::Images(images)) => {
                Examples::Images { images, mean: mean.clone(), sd: sd.clone(), orientation: *orientation }
            }
            (Self::Table(_), Inputs::Images(_)) => {
                return Err(TrainError::WrongInput { network: "model", takes: "a table", found: "images".into() });
            }
            (Self::Images { .. }, Inputs::Table(_)) => {
                return Err(TrainError::WrongInput { network: "model", takes: "images", found: "a table".into() });
            }
        })
    }

    /// The shape of the network's input.
    pub fn shape(&self) -> InputShape {
        match self {
            Self::Table(encoder) => InputShape::Row(encoder.width()),
            Self::Images { shape, .. } => InputShape::Image(*shape),
        }
    }
}

/// The shape of one input.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputShape {
    /// A row of this many numbers.
    Row(usize),
    /// An image, channels last.
    Image(ImageShape),
}

impl InputShape {
    /// Number of values in one input.
    pub fn width(self) -> usize {
        match self {
            Self::Row(width) => width,
            Self::Image(shape) => shape.len(),
        }
    }
}

/// Rows to train on or to score.
#[derive(Clone, Debug)]
pub enum Examples {
    /// Encoded rows.
    Table(Array2<f32>),
    /// Images, kept as bytes and scaled when a batch is made.
    Images {
        /// The images.
        images: Images,
        /// The mean of each channel.
        mean: Vec<f32>,
        /// The standard deviation of each channel.
        sd: Vec<f32>,
        /// Mirrors and turns over which the scores of an image are averaged.
        orientation: Orientation,
    },
}

/// How a batch is altered on its way to the network.
#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
    /// The rows as they are.
    Plain,
    /// Mirrored and turned in one of the ways of an orientation.
    Shown(Orientation, usize),
    /// Flips and shifts.
    Weak(&'a Weak, Draw),
    /// RandAugment and cutout.
    Strong(&'a Strong, Draw),
}

impl Examples {
    /// A table that is already encoded.
    pub fn from_rows(rows: ArrayView2<'_, f64>) -> Self {
        Self::Table(rows.mapv(|value| value as f32))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Table(rows) => rows.nrows(),
            Self::Images { images, .. } => images.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shape of one input.
    pub fn shape(&self) -> InputShape {
        match self {
            Self::Table(rows) => InputShape::Row(rows.ncols()),
            Self::Images { images, .. } => InputShape::Image(images.shape()),
        }
    }

    /// The views whose scores are averaged, the rows as they are first.
    pub(crate) fn views(&self) -> impl Iterator<Item = View<'static>> {
        let orientation = match self {
            Self::Table(_) => Orientation::default(),
            Self::Images { orientation, .. } => *orientation,
        };
        (0..orientation.views()).map(move |view| View::Shown(orientation, view))
    }

    /// A checksum of all values.
    pub(crate) fn checksum(&self) -> Sum {
        let mut checksum = Checksum::default();
        let bytes = |values: &mut dyn Iterator<Item = f32>| values.flat_map(f32::to_le_bytes).collect::<Vec<u8>>();
        match self {
            Self::Table(rows) => {
                rows.rows().into_iter().for_each(|row| checksum.add(&bytes(&mut row.iter().copied())));
            }
            Self::Images { images, mean, sd, .. } => {
                checksum.add(&bytes(&mut mean.iter().chain(sd).copied()));
                checksum.add(images.all());
            }
        }
        checksum.finish()
    }

    /// All rows as they are, one line per row, for a classifier of the core such as softmax regression.
    pub fn features(&self) -> Array2<f64> {
        let rows: Vec<usize> = (0..self.len()).collect();
        let width = self.shape().width();
        let mut features = Array2::zeros((rows.len(), width));
        let mut values = Vec::new();
        for chunk in rows.chunks(4096) {
            values.clear();
            self.gather(chunk, View::Plain, &mut values);
            for (&row, values) in chunk.iter().zip(values.chunks_exact(width)) {
                features.row_mut(row).iter_mut().zip(values).for_each(|(to, value)| *to = f64::from(*value));
            }
        }
        features
    }

    /// Appends these rows to `batch`, one after the other. Tables have no views: their rows stay as they are.
    pub fn gather(&self, rows: &[usize], view: View<'_>, batch: &mut Vec<f32>) {
        let start = batch.len();
        match self {
            Self::Table(table) => {
                for &row in rows {
                    batch.extend(table.row(row));
                }
            }
            Self::Images { images, mean, sd, .. } => {
                let shape = images.shape();
                batch.resize(start + rows.len() * shape.len(), 0.0);
                let batch = &mut batch[start..];
                batch.par_chunks_mut(shape.len()).zip(rows).for_each(|(to, &row)| {
                    to.iter_mut().zip(images.pixels(row)).for_each(|(to, &pixel)| *to = f32::from(pixel) / 255.0);
                });
                match view {
                    View::Plain | View::Shown(_, 0) => {}
                    View::Shown(orientation, view) => batch.par_chunks_mut(shape.len()).for_each_init(
                        || vec![0.0; shape.len()],
                        |scratch, image| orientation.show(view, image, scratch, shape),
                    ),
                    View::Weak(weak, draw) => weak.apply(batch, shape, draw.seed, draw.step),
                    View::Strong(strong, draw) => strong.apply(batch, shape, draw.seed, draw.step),
                }
                batch.par_chunks_mut(shape.len()).for_each(|image| {
                    for pixel in image.chunks_exact_mut(mean.len()) {
                        for channel in 0..mean.len() {
                            pixel[channel] = (pixel[channel] - mean[channel]) / sd[channel];
                        }
                    }
                });
            }
        }
    }
}

/// Identifies a draw of augmentations: the same draw gives the same images, whatever was drawn before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// Seed of the run and the view.
    pub seed: u64,
    /// Step of the batch.
    pub step: u64,
}

fn channel_moments(images: &Images) -> (Vec<f32>, Vec<f32>) {
    let channels = images.shape().channels;
    // Integers, so the sums are exact in any order: 255² · 10^13 pixels fit.
    let (sum, squares) = (0..images.len())
        .into_par_iter()
        .fold(
            || (vec![0u64; channels], vec![0u64; channels]),
            |(mut sum, mut squares), i| {
                for pixel in images.pixels(i).chunks_exact(channels) {
                    for (channel, &value) in pixel.iter().enumerate() {
                        sum[channel] += u64::from(value);
                        squares[channel] += u64::from(value) * u64::from(value);
                    }
                }
                (sum, squares)
            },
        )
        .reduce(
            || (vec![0; channels], vec![0; channels]),
            |(mut a, mut b), (c, d)| {
                a.iter_mut().zip(c).for_each(|(a, c)| *a += c);
                b.iter_mut().zip(d).for_each(|(b, d)| *b += d);
                (a, b)
            },
        );
    let count = (images.len() * images.shape().len() / channels).max(1) as f64;
    let mean: Vec<f64> = sum.iter().map(|&sum| sum as f64 / count).collect();
    // At least one grey level: a channel with a single value stays 0 instead of becoming infinite.
    let sd = squares.iter().zip(&mean).map(|(&squares, mean)| (squares as f64 / count - mean * mean).max(1.0).sqrt());
    let sd = sd.map(|sd| (sd / 255.0) as f32).collect();
    (mean.into_iter().map(|mean| (mean / 255.0) as f32).collect(), sd)
}
