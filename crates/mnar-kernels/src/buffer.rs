//! Memory: outputs that are written once, and scratch buffers kept per thread.

use std::cell::RefCell;
use std::mem::MaybeUninit;

/// The number of values of these sizes. Sizes whose product wraps around would pass for a small buffer, so the product
/// must fit into memory.
///
/// # Panics
/// Where it does not.
pub(crate) fn len_of(sizes: &[usize]) -> usize {
    const MOST: usize = isize::MAX as usize / size_of::<f32>();
    let len = sizes.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
    len.filter(|len| *len <= MOST).unwrap_or_else(|| panic!("sizes must fit into memory: {sizes:?}"))
}

/// A vector whose elements are all set by `write`; it is not cleared first.
///
/// # Safety
/// `write` must initialise the whole slice.
pub(crate) unsafe fn written(len: usize, write: impl FnOnce(&mut [MaybeUninit<f32>])) -> Vec<f32> {
    let mut values = Vec::with_capacity(len);
    write(&mut values.spare_capacity_mut()[..len]);
    // SAFETY: the capacity suffices, and `write` has initialised all of it.
    unsafe { values.set_len(len) };
    values
}

thread_local! {
    static SCRATCH: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Lends a buffer of this length with arbitrary contents. Each thread keeps its longest.
pub(crate) fn with_scratch<R>(len: usize, work: impl FnOnce(&mut [f32]) -> R) -> R {
    let mut scratch = SCRATCH.take();
    if scratch.len() < len {
        scratch.resize(len, 0.0);
    }
    let result = work(&mut scratch[..len]);
    SCRATCH.replace(scratch);
    result
}
