//! Any bytes as MNIST idx images and labels: an error or the size that the header claims, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mnar_data::idx;

fuzz_target!(|data: &[u8]| {
    if let Ok(images) = idx::images_from_reader(data, "fuzz.idx") {
        assert_eq!(images.pixels.len(), images.n * images.rows * images.cols);
    }
    if let Ok(labels) = idx::labels_from_reader(data, "fuzz.idx") {
        assert_eq!(labels.len() + 8, data.len());
    }
});
