//! Convolution, pooling and batch normalisation, channels last.
//!
//! The one place of the crate that knows how these are computed. On the CPU they are operations of our own under
//! burn's autodiff (burn 0.22's are several times slower there); on any other device burn's own are used. A faster
//! kernel replaces the inside of this module and nothing else.

mod conv;
mod cpu;
mod norm;
mod pool;
mod window;

pub use conv::{Conv, conv};
pub use norm::BatchNorm;
pub use pool::max_pool;
pub use window::Window;
