//! How many numbers a network holds, known before it is built. A description from a file can ask for anything.

use super::Architecture;
use crate::examples::InputShape;
use mnar_data::ImageShape;

impl Architecture {
    /// The number of weights and running statistics. As `f64` it is exact for every network that fits into memory, and does
    /// not overflow for the others.
    pub fn size(&self, shape: InputShape, classes: usize) -> f64 {
        let (classes, inputs) = (classes as f64, width(shape));
        let image = match shape {
            InputShape::Image(image) => image,
            InputShape::Row(width) => ImageShape::flat(1, width, 1),
        };
        match self {
            Self::Linear => dense(&[inputs, classes]),
            Self::Mlp { hidden } => {
                let hidden = hidden.iter().map(|&units| units as f64);
                dense(&[inputs].into_iter().chain(hidden).chain([classes]).collect::<Vec<_>>())
            }
            Self::MnistCnn => mnist_cnn(image, classes),
            Self::MedMnistCnn => medmnist_cnn(image, classes),
            Self::WideResNet { depth, width } => wide_resnet(image, *depth as f64, *width as f64, classes),
            Self::Cnn3d => cnn3d(image, classes),
        }
    }
}

fn width(shape: InputShape) -> f64 {
    match shape {
        InputShape::Row(width) => width as f64,
        InputShape::Image(image) => {
            [image.depth, image.height, image.width, image.channels].iter().map(|&size| size as f64).product()
        }
    }
}

/// Fully connected layers between these widths, with biases.
fn dense(widths: &[f64]) -> f64 {
    widths.windows(2).map(|pair| (pair[0] + 1.0) * pair[1]).sum()
}

/// A convolution with bias.
fn conv(kernel: f64, channels_in: f64, channels_out: f64) -> f64 {
    (kernel * channels_in + 1.0) * channels_out
}

/// Scale, shift, running mean and running variance.
fn norm(channels: f64) -> f64 {
    4.0 * channels
}

fn half(side: f64) -> f64 {
    (side / 2.0).floor()
}

fn mnist_cnn(image: ImageShape, classes: f64) -> f64 {
    let side = |side: usize| half(half(side as f64 - 4.0) - 4.0);
    let flat = side(image.height) * side(image.width) * 16.0;
    conv(25.0, image.channels as f64, 6.0) + conv(25.0, 6.0, 16.0) + dense(&[flat, 120.0, 84.0, classes])
}

fn medmnist_cnn(image: ImageShape, classes: f64) -> f64 {
    let side = |side: usize| half(half(side as f64 - 4.0) - 4.0);
    let channels = [image.channels as f64, 16.0, 16.0, 64.0, 64.0, 64.0];
    let layers: f64 = channels.windows(2).map(|pair| conv(9.0, pair[0], pair[1]) + norm(pair[1])).sum();
    layers + dense(&[side(image.height) * side(image.width) * 64.0, 128.0, 128.0, classes])
}

fn wide_resnet(image: ImageShape, depth: f64, width: f64, classes: f64) -> f64 {
    let blocks = ((depth - 4.0) / 6.0).floor();
    let channels = [16.0, 16.0 * width, 32.0 * width, 64.0 * width];
    // Convolutions without bias.
    let mut size = 9.0 * image.channels as f64 * channels[0];
    for pair in channels.windows(2) {
        let (before, out) = (pair[0], pair[1]);
        let shortcut = if before == out { 0.0 } else { before * out };
        size += norm(before) + 9.0 * before * out + norm(out) + 9.0 * out * out + shortcut;
        size += (blocks - 1.0) * (2.0 * norm(out) + 18.0 * out * out);
    }
    size + norm(channels[3]) + dense(&[channels[3], classes])
}

fn cnn3d(image: ImageShape, classes: f64) -> f64 {
    let channels = [image.channels as f64, 16.0, 32.0, 64.0];
    let layers: f64 = channels.windows(2).map(|pair| conv(27.0, pair[0], pair[1]) + norm(pair[1])).sum();
    let side = |side: usize| half(half(half(side as f64)));
    let flat = side(image.depth) * side(image.height) * side(image.width) * 64.0;
    layers + dense(&[flat, 64.0, classes])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::parameters::export;
    use burn::tensor::Device;

    #[test]
    fn sizes_are_those_of_the_networks() {
        let image = |depth, height, width, channels| InputShape::Image(ImageShape { depth, height, width, channels });
        let cases = [
            (Architecture::Linear, InputShape::Row(7), 3),
            (Architecture::Mlp { hidden: vec![5, 4] }, InputShape::Row(7), 2),
            (Architecture::Mlp { hidden: vec![] }, image(1, 3, 4, 3), 2),
            (Architecture::MnistCnn, image(1, 17, 30, 1), 10),
            (Architecture::MnistCnn, image(1, 28, 28, 3), 2),
            (Architecture::MedMnistCnn, image(1, 28, 31, 3), 4),
            (Architecture::MedMnistCnn, image(1, 25, 24, 1), 4),
            (Architecture::WideResNet { depth: 10, width: 1 }, image(1, 9, 8, 3), 3),
            (Architecture::WideResNet { depth: 16, width: 2 }, image(1, 8, 8, 1), 2),
            (Architecture::Cnn3d, image(9, 8, 17, 1), 2),
        ];
        for (architecture, shape, classes) in cases {
            let network = architecture.build(shape, classes, 0, &Device::flex()).unwrap();
            let numbers: usize = export(&network).iter().map(|tensor| tensor.values.len()).sum();
            assert_eq!(architecture.size(shape, classes), numbers as f64, "{architecture:?} of {shape:?}");
        }
        let most = usize::MAX;
        for architecture in [
            Architecture::Mlp { hidden: vec![most, most] },
            Architecture::WideResNet { depth: most, width: most },
            Architecture::Cnn3d,
            Architecture::MnistCnn,
        ] {
            assert!(architecture.size(image(most, most, most, most), most) > 1e18, "{architecture:?}");
        }
    }
}
