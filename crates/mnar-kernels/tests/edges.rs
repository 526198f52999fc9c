//! No kernel accesses memory outside its arguments, which are placed next to an inaccessible page.
#![cfg(unix)]

mod common;

use common::{available, random};
use mnar_kernels::{Convolution, Dense, Normalised, Pool, Window, moments};

/// Values whose last (or first) one is next to an inaccessible page.
struct Guarded {
    map: *mut libc::c_void,
    map_len: usize,
    values: *mut f32,
    len: usize,
}

impl Guarded {
    fn new(values: &[f32], at_end: bool) -> Self {
        // SAFETY: an anonymous map of whole pages, of which the first and the last are inaccessible; the values fit
        // between.
        unsafe {
            let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
            let bytes = std::mem::size_of_val(values);
            let inner = bytes.next_multiple_of(page).max(page);
            let map_len = inner + 2 * page;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let map = libc::mmap(std::ptr::null_mut(), map_len, protection, libc::MAP_PRIVATE | libc::MAP_ANON, -1, 0);
            assert_ne!(map, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(map, page, libc::PROT_NONE), 0);
            assert_eq!(libc::mprotect(map.byte_add(page + inner), page, libc::PROT_NONE), 0);
            let start = page + if at_end { inner - bytes } else { 0 };
            let to = map.byte_add(start).cast::<f32>();
            std::ptr::copy_nonoverlapping(values.as_ptr(), to, values.len());
            Self { map, map_len, values: to, len: values.len() }
        }
    }
}

impl std::ops::Deref for Guarded {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: written in `new`, and the map lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.values, self.len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the map of `new`.
        unsafe { libc::munmap(self.map, self.map_len) };
    }
}

fn guarded(len: usize, seed: u64, at_end: bool) -> Guarded {
    Guarded::new(&random(len, seed), at_end)
}

#[test]
fn convolutions_stay_inside() {
    for isa in available() {
        for (ci, co) in [(1, 1), (3, 6), (6, 17), (16, 16), (17, 33), (5, 65)] {
            for (side, kernel, stride, padding) in
                [(5, 1, 1, 0), (7, 3, 1, 1), (6, 3, 2, 0), (8, 5, 3, 2), (9, 7, 1, 0)]
            {
                for at_end in [true, false] {
                    let window = Window::flat(side, side, kernel, stride, padding);
                    let conv = Convolution { images: 3, window, channels_in: ci, channels_out: co };
                    let x = guarded(3 * window.input_pixels() * ci, 1, at_end);
                    let weight = guarded(window.kernel_pixels() * ci * co, 2, at_end);
                    let (bias, dy) = (guarded(co, 3, at_end), guarded(3 * window.output_pixels() * co, 4, at_end));
                    let y = conv.forward(isa, &x, &weight, Some(&bias), 0.1);
                    let (dx, dw) = (conv.input_gradient(isa, &dy, &weight), conv.weight_gradient(isa, &x, &dy));
                    assert!(y.iter().chain(&dx).chain(&dw).all(|value| value.is_finite()));
                }
            }
        }
    }
}

#[test]
fn other_layers_stay_inside() {
    for isa in available() {
        for (rows, inputs, outputs) in [(1, 1, 1), (7, 5, 3), (13, 17, 33), (25, 400, 10)] {
            for at_end in [true, false] {
                let layer = Dense { rows, inputs, outputs };
                let (x, weight) = (guarded(rows * inputs, 1, at_end), guarded(inputs * outputs, 2, at_end));
                let (bias, dy) = (guarded(outputs, 3, at_end), guarded(rows * outputs, 4, at_end));
                let y = layer.forward(isa, &x, &weight, Some(&bias), 0.0);
                let (dx, dw) = (layer.input_gradient(isa, &dy, &weight), layer.weight_gradient(isa, &x, &dy));
                assert!(y.iter().chain(&dx).chain(&dw).all(|value| value.is_finite()));
                let (mean, var) = moments(isa, &dy, outputs);
                let norm = Normalised { x: &dy, mean: &mean, inverse_sd: &var, gamma: &bias, beta: &bias, slope: 0.0 };
                assert_eq!(norm.backward(isa, &dy).x.len(), norm.forward(isa).len());
            }
        }
        for at_end in [true, false] {
            let pool = Pool { input: [3, 5, 7], side: [2, 2, 2], channels: 5 };
            let (x, dy) = (guarded(2 * pool.input_len(), 1, at_end), guarded(2 * pool.output_len(), 2, at_end));
            let (_, winners) = pool.max(isa, &x, f32::NEG_INFINITY);
            assert_eq!(pool.max_gradient(isa, &winners, &dy).len(), x.len());
            assert_eq!(pool.average_gradient(isa, &pool.average(isa, &x)).len(), x.len());
        }
    }
}
