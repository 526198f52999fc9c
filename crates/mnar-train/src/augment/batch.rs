//! Processes a batch image by image, in parallel, with one keyed generator per image.

use mnar_data::ImageShape;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// The random generator of one image.
pub(super) type Draws = ChaCha8Rng;

/// Which view is drawn. It is part of the key, so that the weak and the strong view of an image are independent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Weak = 1,
    Strong = 2,
}

/// The part of the key that all images of one call share.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchKey {
    pub(super) seed: u64,
    pub(super) step: u64,
    pub(super) kind: Kind,
}

impl BatchKey {
    /// The generator of the image at `position`. The four numbers fill the 256 bits of ChaCha's key as they are: unlike
    /// with a hash to 64 bits, no two images of a run can collide.
    pub(super) fn draws(self, position: usize) -> Draws {
        let mut key = [0; 32];
        for (bytes, part) in key.chunks_exact_mut(8).zip([self.seed, self.step, position as u64, self.kind as u64]) {
            bytes.copy_from_slice(&part.to_le_bytes());
        }
        Draws::from_seed(key)
    }
}

/// Minimum number of values in a job of the thread pool: some 20 µs of work, well above the cost of stealing it.
const VALUES_A_JOB: usize = 16 * 1024;

/// Calls `alter(image, scratch, draws)` on every image of the batch. `scratch` has the image's length and holds
/// whatever the previous image left in it.
///
/// # Panics
/// If the slice does not hold a whole number of images.
pub(super) fn for_each_image<F>(images: &mut [f32], shape: ImageShape, key: BatchKey, alter: F)
where
    F: Fn(&mut [f32], &mut [f32], &mut Draws) + Sync + Send,
{
    if images.is_empty() {
        return;
    }
    let len = shape.len();
    assert!(
        len > 0 && images.len().is_multiple_of(len),
        "{} values are not a whole number of images of {len} values ({shape:?})",
        images.len()
    );
    images
        .par_chunks_exact_mut(len)
        .enumerate()
        .with_min_len(VALUES_A_JOB.div_ceil(len))
        .for_each_init(|| vec![0.0; len], |scratch, (position, image)| alter(image, scratch, &mut key.draws(position)));
}
