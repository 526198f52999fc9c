//! Weak and strong views of image batches, computed on the CPU in parallel over images.
//!
//! A batch is one slice of `n × shape.len()` values in [0, 1], image after image, each laid out as depth, height,
//! width, channel (channels last; depth 1 is a flat image). A [`Weak`] view shifts and mirrors; a [`Strong`] view is
//! FixMatch's: weak, then RandAugment, then cutout.
//!
//! Every image draws from a generator keyed by (seed, step, position in the batch, weak or strong). A view therefore
//! depends neither on the number of threads nor on the other images, and a resumed run sees the images that an
//! uninterrupted one would have seen.
//!
//! The range [0, 1] is an invariant: values that start within it stay within it.

mod batch;
mod cutout;
mod geometry;
mod intensity;
mod operation;
mod orientation;
mod preset;
mod strong;
mod weak;

pub use operation::Operation;
pub use orientation::Orientation;
pub use preset::Augment;
pub use strong::Strong;
pub use weak::Weak;

/// An invalid setting, found by [`Strong::check`] or [`Augment::check`].
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AugmentError {
    /// A setting is outside its range.
    #[error("augmentation: {name} is {value}, but must be from 0 to 1")]
    OutsideUnitRange {
        /// Name of the setting.
        name: &'static str,
        /// Its value.
        value: f32,
    },
    /// Operations are requested, but the pool is empty.
    #[error(
        "augmentation: {operations} operation(s) per image are requested but the pool is empty; name some operations, or set operations = 0"
    )]
    EmptyPool {
        /// Operations per image.
        operations: usize,
    },
}

#[cfg(test)]
mod tests;
