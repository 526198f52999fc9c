//! Sizes whose product wraps around are refused: a batch of 2^62 images of 4 values would pass for an empty one.

use mnar_kernels::{Convolution, Dense, Isa, Pool, Window};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn refused<T>(work: impl FnOnce() -> T) -> bool {
    catch_unwind(AssertUnwindSafe(work)).is_err()
}

const HALF: usize = 1 << (usize::BITS - 2);

#[test]
fn batches_that_wrap_around_are_refused() {
    let isa = Isa::detect();
    let window = Window::flat(2, 2, 1, 1, 0);
    // 2^62 images of 4 values are 2^64 values, and 2^64 is 0.
    let conv = Convolution { images: HALF, window, channels_in: 1, channels_out: 1 };
    assert!(refused(|| conv.forward(isa, &[], &[1.0], None, 1.0)));
    assert!(refused(|| conv.input_gradient(isa, &[], &[1.0])));
    assert!(refused(|| conv.weight_gradient(isa, &[], &[])));
    let dense = Dense { rows: HALF, inputs: 4, outputs: 1 };
    assert!(refused(|| dense.forward(isa, &[], &[1.0; 4], None, 1.0)));
    assert!(refused(|| dense.weight_gradient(isa, &[], &[])));
    let dense = Dense { rows: 0, inputs: HALF, outputs: 4 };
    assert!(refused(|| dense.input_gradient(isa, &[], &[])));
}

#[test]
fn windows_that_wrap_around_are_not_valid() {
    let isa = Isa::detect();
    let window = Window::flat(1, 1, 1, 1, usize::MAX / 2 + 1);
    assert!(!window.is_valid());
    let conv = Convolution { images: 1, window, channels_in: 1, channels_out: 1 };
    assert!(refused(|| conv.forward(isa, &[1.0], &[1.0], None, 1.0)));
    // 2^32 x 2^32 pixels are 2^64, and so is a padded image of that size.
    let large = Window::flat(1 << 32, 1 << 32, 1, 1, 0);
    assert!(large.is_valid() && refused(|| large.input_pixels()));
    let padded = Window::flat(1, 1, 1, 1 << 33, 1 << 32);
    let conv = Convolution { images: 1, window: padded, channels_in: 1, channels_out: 1 };
    assert!(refused(|| conv.forward(isa, &[1.0], &[1.0], None, 1.0)));
    let channels = Convolution { images: 1, window: Window::flat(2, 2, 1, 1, 0), channels_in: HALF, channels_out: 1 };
    assert!(refused(|| channels.forward(isa, &[], &[], None, 1.0)));
}

#[test]
fn blocks_that_wrap_around_are_refused() {
    let isa = Isa::detect();
    let pool = Pool { input: [1, 1 << 32, 1 << 32], side: [1, 1 << 32, 1 << 32], channels: 1 };
    assert!(refused(|| pool.average(isa, &[])));
    assert!(refused(|| pool.average_gradient(isa, &[1.0])));
    assert!(refused(|| pool.max(isa, &[], 0.0)));
    // Four images of 2^62 values, from four values of the output.
    let pool = Pool { input: [1, 1, HALF / 4], side: [1, 1, HALF / 4], channels: 1 };
    assert!(refused(|| pool.average_gradient(isa, &[1.0; 64])));
}
