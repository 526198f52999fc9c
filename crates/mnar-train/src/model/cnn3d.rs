//! A small network for volumes.

use super::{Mlp, NetworkModule};
use crate::layers::{BatchNorm, Conv, Window, max_pool};
use crate::parameters::Initial;
use burn::module::Module;
use burn::tensor::Tensor;
use mnar_data::ImageShape;

/// Three times a 3×3×3 convolution (16, 32, 64 channels), batch norm, rectifier and pool; then 64, K.
#[derive(Module, Debug)]
pub struct Cnn3d {
    /// The convolutions.
    pub convs: Vec<Conv>,
    /// The batch norm after each convolution.
    pub norms: Vec<BatchNorm>,
    /// Fully connected layers: 64, K.
    pub head: Mlp,
    sides: [[usize; 3]; 3],
}

impl Cnn3d {
    /// A network with random weights.
    pub fn new(image: ImageShape, classes: usize, initial: &mut Initial<'_>) -> Self {
        let (mut side, mut channels) = ([image.depth, image.height, image.width], image.channels);
        let (mut convs, mut norms, mut sides) = (Vec::new(), Vec::new(), [[0; 3]; 3]);
        for (i, out) in [16, 32, 64].into_iter().enumerate() {
            convs.push(Conv::new(Window::cubic(side, 3, 1, 1), channels, out, initial));
            norms.push(BatchNorm::new(out, 0.1, 0.0, initial));
            sides[i] = side;
            (side, channels) = (side.map(|side| side / 2), out);
        }
        let head = Mlp::new(side.iter().product::<usize>() * channels, &[64], classes, initial);
        Self { convs, norms, head, sides }
    }
}

impl NetworkModule for Cnn3d {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let layers = self.convs.iter().zip(&self.norms).zip(self.sides);
        let x = layers.fold(x, |x, ((conv, norm), side)| max_pool(norm.forward(conv.forward(x)), side));
        self.head.forward(x)
    }
}
