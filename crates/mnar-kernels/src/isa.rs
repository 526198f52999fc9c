//! The instruction sets the kernels use.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

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

/// The environment variable that forces an instruction set: `avx512`, `avx2` or `portable`.
pub const ISA_VARIABLE: &str = "MNAR_KERNELS";

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

    /// The instruction set named by [`ISA_VARIABLE`], or the fastest if the variable is not set.
    ///
    /// # Errors
    /// The variable does not name an instruction set, or names one that this processor lacks.
    pub fn from_environment() -> Result<Self, UnknownIsa> {
        match std::env::var(ISA_VARIABLE) {
            Ok(name) if !name.is_empty() => {
                let isa = name.parse::<Self>()?;
                if isa.is_available() { Ok(isa) } else { Err(UnknownIsa { name, lacking: true }) }
            }
            _ => Ok(Self::detect()),
        }
    }

    /// [`from_environment`](Self::from_environment), evaluated once per process; the fastest where the variable is
    /// invalid, which programs report when they start.
    pub fn current() -> Self {
        static CURRENT: OnceLock<Isa> = OnceLock::new();
        *CURRENT.get_or_init(|| Self::from_environment().unwrap_or_else(|_| Self::detect()))
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
        Self::ALL
            .into_iter()
            .find(|isa| isa.to_string() == name)
            .ok_or_else(|| UnknownIsa { name: name.to_owned(), lacking: false })
    }
}

/// The instruction set named by [`ISA_VARIABLE`] is unknown or unavailable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownIsa {
    name: String,
    lacking: bool,
}

impl fmt::Display for UnknownIsa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.lacking { "this processor does not have it" } else { "there is no such instruction set" };
        write!(
            f,
            "{ISA_VARIABLE}={}: {what}; say avx512, avx2, portable or burn (its own operations), or unset it",
            self.name
        )
    }
}

impl std::error::Error for UnknownIsa {}
