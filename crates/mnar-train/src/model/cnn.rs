//! The paper's two networks for flat images.

use super::{Mlp, NetworkModule};
use crate::layers::{BatchNorm, Conv, Window, max_pool, rectified_max_pool};
use crate::parameters::Initial;
use burn::module::Module;
use burn::tensor::Tensor;
use mnar_data::ImageShape;

/// Conv 5×5 (6), pool, conv 5×5 (16), pool, 120, 84, K: the paper's network for MNIST.
#[derive(Module, Debug)]
pub struct MnistCnn {
    /// Convolution to 6 channels.
    pub conv1: Conv,
    /// Convolution to 16 channels.
    pub conv2: Conv,
    /// Fully connected layers: 120, 84, K.
    pub head: Mlp,
    side1: [usize; 2],
    side2: [usize; 2],
}

impl MnistCnn {
    /// A network with random weights.
    pub fn new(image: ImageShape, classes: usize, initial: &mut Initial<'_>) -> Self {
        let side1 = [image.height - 4, image.width - 4];
        let half = side1.map(|side| side / 2);
        let side2 = half.map(|side| side - 4);
        let window1 = Window::flat(image.height, image.width, 5, 1, 0);
        let window2 = Window::flat(half[0], half[1], 5, 1, 0);
        Self {
            conv1: Conv::new(window1, image.channels, 6, initial),
            conv2: Conv::new(window2, 6, 16, initial),
            head: Mlp::new((side2[0] / 2) * (side2[1] / 2) * 16, &[120, 84], classes, initial),
            side1,
            side2,
        }
    }
}

impl NetworkModule for MnistCnn {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let x = rectified_max_pool(self.conv1.forward(x), [1, self.side1[0], self.side1[1]]);
        let x = rectified_max_pool(self.conv2.forward(x), [1, self.side2[0], self.side2[1]]);
        self.head.forward(x)
    }
}

/// The paper's network for MedMNIST: 3×3 convolutions 16, 16, pool, 64, 64, 64 (padded), pool, each with batch norm and
/// a rectifier; then 128, 128, K.
#[derive(Module, Debug)]
pub struct MedMnistCnn {
    /// The convolutions.
    pub convs: Vec<Conv>,
    /// The batch norm after each convolution.
    pub norms: Vec<BatchNorm>,
    /// Fully connected layers: 128, 128, K.
    pub head: Mlp,
    pools: [[usize; 2]; 2],
}

impl MedMnistCnn {
    /// A network with random weights.
    pub fn new(image: ImageShape, classes: usize, initial: &mut Initial<'_>) -> Self {
        let (mut height, mut width, mut channels) = (image.height, image.width, image.channels);
        let (mut convs, mut norms, mut pools) = (Vec::new(), Vec::new(), Vec::new());
        // (channels, padding, pool after)
        for (out, padding, pool) in [(16, 0, false), (16, 0, true), (64, 0, false), (64, 0, false), (64, 1, true)] {
            convs.push(Conv::new(Window::flat(height, width, 3, 1, padding), channels, out, initial));
            norms.push(BatchNorm::new(out, 0.1, 0.0, initial));
            (height, width, channels) = (height + 2 * padding - 2, width + 2 * padding - 2, out);
            if pool {
                pools.push([height, width]);
                (height, width) = (height / 2, width / 2);
            }
        }
        let head = Mlp::new(height * width * channels, &[128, 128], classes, initial);
        Self { convs, norms, head, pools: [pools[0], pools[1]] }
    }
}

impl NetworkModule for MedMnistCnn {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let x = self.convs.iter().zip(&self.norms).enumerate().fold(x, |x, (i, (conv, norm))| {
            let x = norm.forward(conv.forward(x));
            match i {
                1 => max_pool(x, [1, self.pools[0][0], self.pools[0][1]]),
                4 => max_pool(x, [1, self.pools[1][0], self.pools[1][1]]),
                _ => x,
            }
        });
        self.head.forward(x)
    }
}
