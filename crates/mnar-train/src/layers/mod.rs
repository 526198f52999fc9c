//! Fully connected layers, convolution, pooling and batch normalisation, channels last.
//!
//! The only module of the crate that knows how these are computed. On the CPU they are custom operations under burn's
//! autodiff, using the kernels of `mnar-kernels` (burn 0.22's are several times slower there); on any other device
//! burn's own are used. [`select_cpu_kernels`] selects the instructions of the CPU kernels, and [`cpu_kernels`] names them.

mod conv;
mod cpu;
mod dense;
mod norm;
mod pool;

pub use conv::{Conv, conv};
pub(crate) use cpu::is_cpu;
pub use cpu::{cpu_kernels, select_cpu_kernels};
pub use dense::{Activation, dense};
pub use mnar_kernels::Window;
pub use norm::BatchNorm;
pub use pool::{max_pool, mean_pool, rectified_max_pool};
