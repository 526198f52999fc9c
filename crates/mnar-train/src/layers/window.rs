//! The arithmetic of sliding windows: which input pixels an output pixel sees.

/// A convolution's geometry: volumes of depth × height × width, channels last. A flat image has depth 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Input depth, height and width.
    pub input: [usize; 3],
    /// Kernel depth, height and width.
    pub kernel: [usize; 3],
    /// Step of the window along each axis.
    pub stride: [usize; 3],
    /// Zeros added on both sides of each axis.
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

    /// Output depth, height and width.
    pub fn output(&self) -> [usize; 3] {
        std::array::from_fn(|axis| {
            (self.input[axis] + 2 * self.padding[axis]).saturating_sub(self.kernel[axis]) / self.stride[axis] + 1
        })
    }

    /// Pixels of one input image.
    pub fn input_pixels(&self) -> usize {
        self.input.iter().product()
    }

    /// Pixels of one output image.
    pub fn output_pixels(&self) -> usize {
        self.output().iter().product()
    }

    /// Pixels under the kernel.
    pub fn kernel_pixels(&self) -> usize {
        self.kernel.iter().product()
    }

    /// Writes the pixels every output pixel sees, one row of `kernel_pixels · channels` each; zeros outside.
    pub(super) fn gather(&self, image: &[f32], channels: usize, columns: &mut [f32]) {
        self.walk(channels, |column, run| match run {
            Run::Inside { from, len } => columns[column..column + len].copy_from_slice(&image[from..from + len]),
            Run::Outside { len } => columns[column..column + len].fill(0.0),
        });
    }

    /// The transpose of [`gather`](Self::gather): adds every window's gradient back onto the pixels it came from.
    pub(super) fn scatter(&self, columns: &[f32], channels: usize, image: &mut [f32]) {
        self.walk(channels, |column, run| {
            if let Run::Inside { from, len } = run {
                for (pixel, value) in image[from..from + len].iter_mut().zip(&columns[column..column + len]) {
                    *pixel += value;
                }
            }
        });
    }

    /// Visits the windows as runs along the width, where the pixels of a row of the kernel are neighbours in memory.
    fn walk(&self, channels: usize, mut visit: impl FnMut(usize, Run)) {
        let ([_, height, width], [kd, kh, kw]) = (self.input, self.kernel);
        let [od, oh, ow] = self.output();
        let mut column = 0;
        let inside = |at: usize, offset: usize, axis: usize| {
            (at * self.stride[axis] + offset).checked_sub(self.padding[axis]).filter(|&x| x < self.input[axis])
        };
        for z in 0..od {
            for y in 0..oh {
                for x in 0..ow {
                    // The columns of the kernel that fall inside the image: first..last.
                    let left = x * self.stride[2];
                    let first = self.padding[2].saturating_sub(left).min(kw);
                    let last = (width + self.padding[2]).saturating_sub(left).min(kw).max(first);
                    for dz in 0..kd {
                        let plane = inside(z, dz, 0);
                        for dy in 0..kh {
                            match (plane, inside(y, dy, 1)) {
                                (Some(plane), Some(row)) if last > first => {
                                    let start = (plane * height + row) * width + left + first - self.padding[2];
                                    visit(column, Run::Outside { len: first * channels });
                                    let len = (last - first) * channels;
                                    visit(column + first * channels, Run::Inside { from: start * channels, len });
                                    visit(column + last * channels, Run::Outside { len: (kw - last) * channels });
                                }
                                _ => visit(column, Run::Outside { len: kw * channels }),
                            }
                            column += kw * channels;
                        }
                    }
                }
            }
        }
    }
}

enum Run {
    Inside { from: usize, len: usize },
    Outside { len: usize },
}
