//! Images surrounded by zeros.

use crate::buffer::len_of;

/// A volume inside a larger one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Padded {
    /// Depth, height and width of the image.
    pub(crate) inner: [usize; 3],
    /// Number of zeros before the image, along each axis.
    pub(crate) before: [usize; 3],
    /// Number of zeros after it.
    pub(crate) after: [usize; 3],
    pub(crate) channels: usize,
}

impl Padded {
    /// Depth, height and width including the zeros.
    pub(crate) fn outer(&self) -> [usize; 3] {
        let sum = |axis: usize| self.before[axis].checked_add(self.inner[axis])?.checked_add(self.after[axis]);
        std::array::from_fn(|axis| sum(axis).expect("a padded image fits into memory"))
    }

    /// Number of values in the padded image.
    pub(crate) fn len(&self) -> usize {
        let [depth, height, width] = self.outer();
        len_of(&[depth, height, width, self.channels])
    }

    /// The offset of a pixel in the padded image.
    pub(crate) fn offset(&self, [z, y, x]: [usize; 3]) -> usize {
        let [_, height, width] = self.outer();
        ((z * height + y) * width + x) * self.channels
    }

    /// Length of the scratch buffer that [`pad`](Self::pad) needs.
    pub(crate) fn scratch(&self) -> usize {
        if self.is_plain() { 0 } else { self.len() }
    }

    fn is_plain(&self) -> bool {
        self.before == [0; 3] && self.after == [0; 3]
    }

    /// The image with its zeros, in `scratch`; the image itself if no zeros are needed.
    pub(crate) fn pad<'a>(&self, image: &'a [f32], scratch: &'a mut [f32]) -> &'a [f32] {
        if self.is_plain() {
            return image;
        }
        let row = self.inner[2] * self.channels;
        let (left, right) = (self.before[2] * self.channels, self.after[2] * self.channels);
        let mut rows = image.chunks_exact(row);
        let [depth, height, _] = self.outer();
        let inside = |at: usize, axis: usize| (self.before[axis]..self.before[axis] + self.inner[axis]).contains(&at);
        for (i, out) in scratch[..self.len()].chunks_exact_mut(left + row + right).enumerate() {
            debug_assert!(i < depth * height);
            if inside(i / height, 0) && inside(i % height, 1) {
                out[..left].fill(0.0);
                out[left..left + row].copy_from_slice(rows.next().expect("as many rows as the image has"));
                out[left + row..].fill(0.0);
            } else {
                out.fill(0.0);
            }
        }
        scratch
    }
}
