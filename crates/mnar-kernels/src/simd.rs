//! Vectors of `f32`, one type per instruction set, and the dispatch from a run-time choice to code compiled for it.
//!
//! Kernels are written once, generic over [`Lanes`], as the `run` of a [`Kernel`]. [`dispatch`] enters them through a
//! function that has the instruction set enabled; everything below is `#[inline(always)]`, so that it is compiled for
//! that set. There is no other way in, which is what makes the intrinsics sound: the [`Lanes`] of a set are only
//! reached after [`Isa::is_available`](crate::Isa::is_available) has confirmed that the processor has it.

use crate::Isa;

/// A register of `f32`.
///
/// # Safety
/// Every function may be called only on a processor with the instruction set of the type. Code ensures this by being
/// generic over the `Lanes` that [`dispatch`] chose.
pub(crate) trait Lanes: Copy {
    /// Number of values in a register.
    const WIDTH: usize;
    /// Number of registers of the processor: how many sums a tile may hold.
    const REGISTERS: usize;

    unsafe fn splat(value: f32) -> Self;
    /// # Safety
    /// `from` is valid for reading `WIDTH` values.
    unsafe fn load(from: *const f32) -> Self;
    /// # Safety
    /// `to` is valid for writing `WIDTH` values.
    unsafe fn store(self, to: *mut f32);
    /// `a · b + self`, rounded only once where the processor supports it.
    unsafe fn fused(self, a: Self, b: Self) -> Self;
    /// `self` where it is positive, `self · slope` elsewhere.
    unsafe fn leaky(self, slope: Self) -> Self;
}

/// A computation that can be compiled for any instruction set: through its [`Lanes`], or as plain loops that the
/// compiler vectorises.
pub(crate) trait Kernel {
    /// Must be `#[inline(always)]`, and so must everything it calls that should use the instruction set. Closures may
    /// not be inlined, so loops are not placed inside them.
    fn run<L: Lanes>(self);
}

/// Runs a kernel with an instruction set, or with the portable one if the processor lacks it.
pub(crate) fn dispatch(isa: Isa, kernel: impl Kernel) {
    match isa.or_portable() {
        // SAFETY: the processor has the features that the called function enables.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { x86::avx512(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { x86::avx2(kernel) },
        _ => kernel.run::<Portable>(),
    }
}

/// The registers of the instruction set that [`dispatch`] uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers {
    /// Number of values in each register.
    pub(crate) width: usize,
    /// Number of registers.
    pub(crate) count: usize,
}

impl Registers {
    pub(crate) fn of(isa: Isa) -> Self {
        fn of<L: Lanes>() -> Registers {
            Registers { width: L::WIDTH, count: L::REGISTERS }
        }
        match isa.or_portable() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => of::<x86::Avx512>(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => of::<x86::Avx2>(),
            _ => of::<Portable>(),
        }
    }
}

/// Four values that the compiler maps to whatever the target has; multiplication and addition are rounded separately.
#[derive(Clone, Copy)]
pub(crate) struct Portable([f32; 4]);

impl Lanes for Portable {
    const WIDTH: usize = 4;
    const REGISTERS: usize = 16;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        Self([value; 4])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: guaranteed by the caller; arrays of f32 are read unaligned.
        Self(unsafe { from.cast::<[f32; 4]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: guaranteed by the caller.
        unsafe { to.cast::<[f32; 4]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    unsafe fn fused(self, a: Self, b: Self) -> Self {
        Self(std::array::from_fn(|i| a.0[i] * b.0[i] + self.0[i]))
    }

    #[inline(always)]
    unsafe fn leaky(self, slope: Self) -> Self {
        Self(std::array::from_fn(|i| if self.0[i] > 0.0 { self.0[i] } else { self.0[i] * slope.0[i] }))
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(clippy::undocumented_unsafe_blocks)] // one reason for all of them, stated above each `impl`
mod x86 {
    use super::{Kernel, Lanes};
    use std::arch::x86_64::*;

    /// # Safety
    /// The processor has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn avx2(kernel: impl Kernel) {
        kernel.run::<Avx2>();
    }

    /// # Safety
    /// The processor has AVX-512F (and AVX2 and FMA, which every such processor has).
    #[target_feature(enable = "avx512f,avx2,fma")]
    pub(super) unsafe fn avx512(kernel: impl Kernel) {
        kernel.run::<Avx512>();
    }

    #[derive(Clone, Copy)]
    pub(super) struct Avx2(__m256);

    // SAFETY of all blocks: the trait's contract guarantees the instruction set, and the caller guarantees each
    // pointer.
    impl Lanes for Avx2 {
        const WIDTH: usize = 8;
        const REGISTERS: usize = 16;

        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            Self(unsafe { _mm256_set1_ps(value) })
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            Self(unsafe { _mm256_loadu_ps(from) })
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            unsafe { _mm256_storeu_ps(to, self.0) }
        }

        #[inline(always)]
        unsafe fn fused(self, a: Self, b: Self) -> Self {
            Self(unsafe { _mm256_fmadd_ps(a.0, b.0, self.0) })
        }

        #[inline(always)]
        unsafe fn leaky(self, slope: Self) -> Self {
            unsafe {
                let positive = _mm256_cmp_ps::<_CMP_GT_OQ>(self.0, _mm256_setzero_ps());
                Self(_mm256_blendv_ps(_mm256_mul_ps(self.0, slope.0), self.0, positive))
            }
        }
    }

    #[derive(Clone, Copy)]
    pub(super) struct Avx512(__m512);

    // SAFETY: as for AVX2.
    impl Lanes for Avx512 {
        const WIDTH: usize = 16;
        const REGISTERS: usize = 32;

        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            Self(unsafe { _mm512_set1_ps(value) })
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            Self(unsafe { _mm512_loadu_ps(from) })
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            unsafe { _mm512_storeu_ps(to, self.0) }
        }

        #[inline(always)]
        unsafe fn fused(self, a: Self, b: Self) -> Self {
            Self(unsafe { _mm512_fmadd_ps(a.0, b.0, self.0) })
        }

        #[inline(always)]
        unsafe fn leaky(self, slope: Self) -> Self {
            unsafe {
                let positive = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(self.0, _mm512_setzero_ps());
                Self(_mm512_mask_blend_ps(positive, _mm512_mul_ps(self.0, slope.0), self.0))
            }
        }
    }
}
