//! The arithmetic of sliding windows: which input pixels an output pixel sees.

use crate::buffer::len_of;

/// The geometry of a convolution: volumes of depth × height × width, channels last. A flat image has depth 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Input depth, height and width.
    pub input: [usize; 3],
    /// Kernel depth, height and width.
    pub kernel: [usize; 3],
    /// Stride of the window along each axis.
    pub stride: [usize; 3],
    /// Number of zeros added on both sides of each axis.
    pub padding: [usize; 3],
}

impl Window {
    /// A square window over flat images.
    pub fn flat(height: usize, width: usize, kernel: usize, stride: usize, padding: usize) -> Self {
        Self {
            input: [1, height, width],
            kernel: [1, kernel, kernel],
            stride: [1, stride, stride],
            padding: [0, padding, padding],
        }
    }

    /// A cubic window over volumes.
    pub fn cubic(input: [usize; 3], kernel: usize, stride: usize, padding: usize) -> Self {
        Self { input, kernel: [kernel; 3], stride: [stride; 3], padding: [padding; 3] }
    }

    /// Whether the kernel fits into the padded input, and the stride is positive.
    pub fn is_valid(&self) -> bool {
        (0..3).all(|axis| {
            let padded = self.padding[axis].checked_mul(2).and_then(|zeros| zeros.checked_add(self.input[axis]));
            padded.is_some_and(|padded| (1..=padded).contains(&self.kernel[axis])) && self.stride[axis] > 0
        })
    }

    /// Output depth, height and width, of a valid window.
    pub fn output(&self) -> [usize; 3] {
        std::array::from_fn(|axis| {
            let padded = self.padding[axis].saturating_mul(2).saturating_add(self.input[axis]);
            (padded.saturating_sub(self.kernel[axis]) / self.stride[axis]).saturating_add(1)
        })
    }

    /// Number of pixels in an input image. Panics where it does not fit into memory.
    pub fn input_pixels(&self) -> usize {
        len_of(&self.input)
    }

    /// Number of pixels in an output image. Panics where it does not fit into memory.
    pub fn output_pixels(&self) -> usize {
        len_of(&self.output())
    }

    /// Number of pixels under the kernel. Panics where it does not fit into memory.
    pub fn kernel_pixels(&self) -> usize {
        len_of(&self.kernel)
    }
}
