//! Wide residual networks, as FixMatch uses them.

use super::{Dense, NetworkModule};
use crate::layers::{Activation, BatchNorm, Conv, Window, mean_pool};
use crate::parameters::Initial;
use burn::module::Module;
use burn::tensor::Tensor;
use mnar_data::ImageShape;

/// Slope of the leaky rectifiers.
const SLOPE: f32 = 0.1;
/// Weight of a batch in the running statistics.
const MOMENTUM: f64 = 0.001;

/// Norm, rectifier and convolution, twice, in parallel with a shortcut.
#[derive(Module, Debug)]
pub struct Block {
    /// Norm before the first convolution.
    pub norm1: BatchNorm,
    /// First convolution, with the block's stride.
    pub conv1: Conv,
    /// Norm before the second convolution.
    pub norm2: BatchNorm,
    /// Second convolution, of the same size.
    pub conv2: Conv,
    /// 1×1 convolution, where the block changes the number of channels.
    pub shortcut: Option<Conv>,
    /// Whether the shortcut starts from the normalised input, as it does in the first block.
    activate_shortcut: bool,
}

impl Block {
    fn new(side: [usize; 2], channels: [usize; 2], stride: usize, first: bool, initial: &mut Initial<'_>) -> Self {
        let window = Window::flat(side[0], side[1], 3, stride, 1);
        let [_, height, width] = window.output();
        Self {
            norm1: BatchNorm::new(channels[0], MOMENTUM, SLOPE, initial),
            conv1: Conv::residual(window, channels[0], channels[1], initial),
            norm2: BatchNorm::new(channels[1], MOMENTUM, SLOPE, initial),
            conv2: Conv::residual(Window::flat(height, width, 3, 1, 1), channels[1], channels[1], initial),
            shortcut: (channels[0] != channels[1]).then(|| {
                Conv::residual(Window::flat(side[0], side[1], 1, stride, 0), channels[0], channels[1], initial)
            }),
            activate_shortcut: first,
        }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        if self.activate_shortcut {
            let x = self.norm1.forward(x);
            return self.residual(self.conv1.forward(x.clone()), x);
        }
        self.residual(self.norm1.forward_into(&self.conv1, x.clone()), x)
    }

    /// The output of the block, from the output of the first convolution and the input of the shortcut.
    fn residual(&self, inner: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
        let shortcut = match &self.shortcut {
            Some(conv) => conv.forward(x),
            None => x,
        };
        self.norm2.forward_into(&self.conv2, inner) + shortcut
    }
}

/// A wide residual network of depth 6 m + 4: three groups of m blocks with 16, 32, 64 times the width channels.
#[derive(Module, Debug)]
pub struct WideResNet {
    /// First convolution, to 16 channels.
    pub stem: Conv,
    /// All blocks, in order.
    pub blocks: Vec<Block>,
    /// Norm after the last block.
    pub norm: BatchNorm,
    /// Fully connected layer from channel means to logits.
    pub head: Dense,
    side: [usize; 2],
}

impl WideResNet {
    /// A network with random weights.
    pub fn new(image: ImageShape, depth: usize, width: usize, classes: usize, initial: &mut Initial<'_>) -> Self {
        let (mut side, mut channels) = ([image.height, image.width], 16);
        let stem = Conv::residual(Window::flat(side[0], side[1], 3, 1, 1), image.channels, channels, initial);
        let mut blocks = Vec::new();
        for (group, out) in [16 * width, 32 * width, 64 * width].into_iter().enumerate() {
            for block in 0..(depth - 4) / 6 {
                let stride = if group > 0 && block == 0 { 2 } else { 1 };
                blocks.push(Block::new(side, [channels, out], stride, group == 0 && block == 0, initial));
                side = side.map(|side| side.div_ceil(stride));
                channels = out;
            }
        }
        let norm = BatchNorm::new(channels, MOMENTUM, SLOPE, initial);
        Self { stem, blocks, norm, head: Dense::new(channels, classes, initial), side }
    }
}

impl NetworkModule for WideResNet {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let x = self.blocks.iter().fold(self.stem.forward(x), |x, block| block.forward(x));
        let means = mean_pool(self.norm.forward(x), [1, self.side[0], self.side[1]]);
        self.head.forward(means, Activation::None)
    }
}
