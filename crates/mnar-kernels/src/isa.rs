//! The instruction sets the kernels use.

use std::fmt;
use std::str::FromStr;

/// An instruction set the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// 16 values per register, 32 registers.
    Avx512,
    /// 8 values per register, 16 registers, with fused multiply-add.
    Avx2,
    /// The instructions that every processor of the target has.
    Portable,
}

impl Isa {
    /// All instruction sets, the fastest first.
    pub const ALL: [Self; 3] = [Self::Avx512, Self::Avx2, Self::Portable];

    /// Whether this processor can run it.
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => is_x86_feature_detected!("avx512f") && Self::Avx2.is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512 | Self::Avx2 => false,
            Self::Portable => true,
        }
    }

    /// This instruction set if the processor has it, otherwise the portable one: what runs must be available, whatever
    /// a caller asks for.
    pub(crate) fn or_portable(self) -> Self {
        if self.is_available() { self } else { Self::Portable }
    }

    /// The fastest instruction set of this processor.
    pub fn detect() -> Self {
        Self::ALL.into_iter().find(|isa| isa.is_available()).unwrap_or(Self::Portable)
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
        })
    }
}

impl FromStr for Isa {
    type Err = UnknownIsa;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|isa| isa.to_string() == name).ok_or(UnknownIsa)
    }
}

/// The name is not that of an instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownIsa;

impl fmt::Display for UnknownIsa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no such instruction set")
    }
}

impl std::error::Error for UnknownIsa {}
