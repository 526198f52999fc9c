//! Helpers shared by the tests of all kernels.
#![allow(dead_code)] // each test program uses only some of them

use mnar_kernels::Isa;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The instruction sets this processor has. `portable` is always among them.
pub(crate) fn available() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_available())
}

/// Values uniform on ±1.
pub(crate) fn random(len: usize, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len).map(|_| 2.0 * rng.random::<f32>() - 1.0).collect()
}

/// Equal to 1e-4 of the largest value.
pub(crate) fn close(ours: &[f32], exact: &[f64], what: &str) {
    near(ours, exact, 1e-3, what);
}

/// Equal to 1e-4 of the largest value, or of `scale` where that is larger.
pub(crate) fn near(ours: &[f32], exact: &[f64], scale: f64, what: &str) {
    assert_eq!(ours.len(), exact.len(), "{what}");
    let scale = exact.iter().fold(scale, |max, value| max.max(value.abs()));
    for (i, (ours, exact)) in ours.iter().zip(exact).enumerate() {
        assert!((f64::from(*ours) - exact).abs() <= 1e-4 * scale, "{what} {i}: {ours} for {exact} (scale {scale})");
    }
}
