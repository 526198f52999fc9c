//! Networks: from linear to residual, chosen by the shape of the data unless one is given.

mod cnn;
mod cnn3d;
mod dense;
mod size;
mod wide_resnet;

use crate::error::TrainError;
use crate::examples::InputShape;
use crate::parameters::Initial;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
pub use cnn::{MedMnistCnn, MnistCnn};
pub use cnn3d::Cnn3d;
pub use dense::{Dense, Mlp};
use mnar_data::ImageShape;
use serde::{Deserialize, Serialize};
pub use wide_resnet::WideResNet;

/// A burn module that scores classes. Implement it for a network of your own to train it here.
pub trait NetworkModule: Module {
    /// The logits, n × K, of n rows; an image is one row, channels last.
    fn forward(&self, x: Tensor<2>) -> Tensor<2>;
}

/// The kind of network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum Architecture {
    /// Softmax regression.
    Linear,
    /// Hidden layers of these widths, with rectifiers.
    Mlp {
        /// Units of each hidden layer.
        hidden: Vec<usize>,
    },
    /// The paper's network for MNIST: conv 5×5 (6), pool, conv 5×5 (16), pool, 120, 84, K.
    MnistCnn,
    /// The paper's network for MedMNIST: five 3×3 convolutions with batch norm, 128, 128, K.
    #[serde(rename = "medmnist-cnn")]
    MedMnistCnn,
    /// A wide residual network.
    #[serde(rename = "wide-resnet")]
    WideResNet {
        /// Number of layers, 6 m + 4.
        depth: usize,
        /// Multiplier of the channels, which are 16, 32 and 64 times this.
        width: usize,
    },
    /// Three 3×3×3 convolutions with batch norm and pooling, for volumes.
    Cnn3d,
}

/// Weights take 4 bytes, and training keeps four further numbers for each: 20 GB.
const LARGEST: f64 = 1e9;

impl Architecture {
    /// The smallest network that suits the shape: one hidden layer for tables, convolutions for images.
    pub fn for_shape(shape: InputShape) -> Self {
        match shape {
            InputShape::Row(_) => Self::Mlp { hidden: vec![128] },
            InputShape::Image(image) if image.depth > 1 => Self::Cnn3d,
            InputShape::Image(image) if image.height < 12 || image.width < 12 => Self::Mlp { hidden: vec![128] },
            InputShape::Image(image) if image.height > 28 && image.channels > 1 => {
                Self::WideResNet { depth: 28, width: 2 }
            }
            InputShape::Image(image) if image.channels > 1 => Self::MedMnistCnn,
            InputShape::Image(_) => Self::MnistCnn,
        }
    }

    /// The name of the network, as used in settings.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Mlp { .. } => "mlp",
            Self::MnistCnn => "mnist-cnn",
            Self::MedMnistCnn => "medmnist-cnn",
            Self::WideResNet { .. } => "wide-resnet",
            Self::Cnn3d => "cnn3d",
        }
    }

    /// Checks that the network can be built for these inputs.
    pub fn check(&self, shape: InputShape, classes: usize) -> Result<(), TrainError> {
        self.check_input(shape)?;
        let size = self.size(shape, classes);
        if size > LARGEST {
            return Err(TrainError::Setting {
                name: "the number of weights of the network",
                value: format!("{size:.0}"),
                range: "at most a billion",
            });
        }
        Ok(())
    }

    /// Refuses inputs that the network does not take.
    fn check_input(&self, shape: InputShape) -> Result<(), TrainError> {
        let flat = |least: usize| match shape {
            InputShape::Image(image) => image.depth == 1 && image.height.min(image.width) >= least,
            InputShape::Row(_) => false,
        };
        let (suits, takes) = match self {
            Self::Linear | Self::Mlp { .. } => (true, "anything"),
            Self::MnistCnn => (flat(16), "flat images of at least 16 × 16 pixels"),
            Self::MedMnistCnn => (flat(24), "flat images of at least 24 × 24 pixels"),
            Self::WideResNet { depth, width } => {
                if *depth < 10 || (depth - 4) % 6 != 0 || *width == 0 {
                    return Err(TrainError::Setting {
                        name: "the depth of a wide residual network",
                        value: depth.to_string(),
                        range: "4 more than a multiple of 6 (10, 16, 22, 28), and its width at least 1",
                    });
                }
                (flat(8), "flat images of at least 8 × 8 pixels")
            }
            Self::Cnn3d => match shape {
                InputShape::Image(image) => {
                    (image.depth.min(image.height).min(image.width) >= 8, "volumes of at least 8 × 8 × 8 voxels")
                }
                InputShape::Row(_) => (false, "volumes of at least 8 × 8 × 8 voxels"),
            },
        };
        let found = match shape {
            InputShape::Row(width) => format!("rows of {width} numbers"),
            InputShape::Image(shape) => format!("images of {shape}"),
        };
        if suits { Ok(()) } else { Err(TrainError::WrongInput { network: self.name(), takes, found }) }
    }

    /// Builds the network with random weights.
    pub fn build(&self, shape: InputShape, classes: usize, seed: u64, device: &Device) -> Result<Network, TrainError> {
        self.check_input(shape)?;
        let mut initial = Initial::new(seed, device);
        let image = match shape {
            InputShape::Image(image) => image,
            InputShape::Row(width) => ImageShape::flat(1, width, 1),
        };
        Ok(match self {
            Self::Linear => Network::Linear(Mlp::new(shape.width(), &[], classes, &mut initial)),
            Self::Mlp { hidden } => Network::Mlp(Mlp::new(shape.width(), hidden, classes, &mut initial)),
            Self::MnistCnn => Network::MnistCnn(MnistCnn::new(image, classes, &mut initial)),
            Self::MedMnistCnn => Network::MedMnistCnn(MedMnistCnn::new(image, classes, &mut initial)),
            Self::WideResNet { depth, width } => {
                Network::WideResNet(WideResNet::new(image, *depth, *width, classes, &mut initial))
            }
            Self::Cnn3d => Network::Cnn3d(Cnn3d::new(image, classes, &mut initial)),
        })
    }
}

/// One of the networks of this crate.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Network {
    /// Softmax regression.
    Linear(Mlp),
    /// A network with hidden layers.
    Mlp(Mlp),
    /// The paper's network for MNIST.
    MnistCnn(MnistCnn),
    /// The paper's network for MedMNIST.
    MedMnistCnn(MedMnistCnn),
    /// A wide residual network.
    WideResNet(WideResNet),
    /// The network for volumes.
    Cnn3d(Cnn3d),
}

impl NetworkModule for Network {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Linear(network) | Self::Mlp(network) => network.forward(x),
            Self::MnistCnn(network) => network.forward(x),
            Self::MedMnistCnn(network) => network.forward(x),
            Self::WideResNet(network) => network.forward(x),
            Self::Cnn3d(network) => network.forward(x),
        }
    }
}
