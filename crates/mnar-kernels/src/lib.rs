//! Neural network layers on the CPU: convolution, fully connected layers, batch normalisation and pooling, forward and
//! backward, on plain slices of `f32`.
//!
//! Images are channels last: n × depth × height × width × channels, and a flat image has depth 1. Weights of a
//! convolution are (kernel pixels · channels in) × channels out. Every function takes the instruction set to use
//! ([`Isa::detect`] for the fastest), processes the images of a batch in parallel with rayon, and gives the same bits
//! whatever the number of threads.
//!
//! ```
//! use mnar_kernels::{Convolution, Isa, Window};
//!
//! // One image of 3 × 3 pixels, a kernel of ones, zeros around: every pixel becomes the sum of its neighbourhood.
//! let convolution =
//!     Convolution { images: 1, window: Window::flat(3, 3, 3, 1, 1), channels_in: 1, channels_out: 1 };
//! let y = convolution.forward(Isa::detect(), &[1.0; 9], &[1.0; 9], None, 1.0);
//! assert_eq!(y, [4.0, 6.0, 4.0, 6.0, 9.0, 6.0, 4.0, 6.0, 4.0]);
//! ```
//!
//! # Where `unsafe` is, and why it is sound
//!
//! This is the only crate of the project that uses `unsafe`, in three modules:
//!
//! - `simd`: intrinsics are reached only through `dispatch`, which queries the processor first.
//! - `tile`: the inner loops read and write through pointers. `product` and `outer_products` are safe functions: before
//!   they start they check, with assertions that stay in release builds, that the furthest pixel plus the furthest read
//!   lies inside the source, that the furthest write lies inside the output, and that the weights have a row for every
//!   value read. The source is read one value at a time, and whole registers are read or written only where the columns
//!   fill them or in buffers padded to whole registers, so by design nothing is read past an edge.
//! - `buffer`: outputs are not cleared before they are written. The callers are in `conv`, `dense`, `channels`, `norm`
//!   and `pool`, and each states why every element is written. Their lengths are products of sizes that come from the
//!   caller; `len_of` refuses products that wrap around, so that a batch of 2^62 images cannot pass for an empty one.

mod buffer;
mod channels;
mod conv;
mod dense;
mod isa;
mod norm;
mod padded;
mod pool;
mod simd;
mod tile;
mod window;

pub use channels::{channel_sums, rectifier_gradient, scale_shift};
pub use conv::Convolution;
pub use dense::Dense;
pub use isa::{Isa, UnknownIsa};
pub use norm::{NormGradients, Normalised, moments};
pub use pool::Pool;
pub use window::Window;
