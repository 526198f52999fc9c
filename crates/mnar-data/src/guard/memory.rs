//! Memory is a budget. What a file claims is compared with it before anything is allocated, and what has been read is
//! counted while reading: a file of a megabyte may unpack to any size.

use crate::error::DataError;
use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

/// The memory that a program may use, of which a quarter may be data that were read: what is computed with them takes a few
/// times as much.
///
/// ```
/// use mnar_data::Memory;
/// let memory: Memory = "1.5GB".parse()?;
/// assert_eq!(memory, Memory::bytes(1_500_000_000));
/// assert_eq!(memory.to_string(), "1.5 GB");
/// assert!("0".parse::<Memory>().is_err());
/// # Ok::<(), String>(())
/// ```
///
/// By default it is all that the process may have: the machine's memory, or less where a control group or a limit of the
/// address space says so. Where that cannot be found out, it is 8 GB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory(Option<u64>);

/// Where the machine does not say how much it has.
const UNKNOWN: u64 = 8_000_000_000;

/// Below this, not even the buffers of the readers fit.
const LEAST: u64 = 4_000_000;

/// Data may take this part of the memory. A table of features is there as it was read, as numbers for a network and as
/// columns that labelling may depend on; an estimate of 20 million rows took 2.4 times the memory of its probabilities.
pub(crate) const SHARE: u64 = 4;

impl Memory {
    /// So many bytes.
    pub const fn bytes(bytes: u64) -> Self {
        Self(Some(bytes))
    }

    /// All of it, in bytes.
    pub fn total(self) -> u64 {
        self.0.unwrap_or_else(|| machine::memory().unwrap_or(UNKNOWN))
    }

    /// What data may take, in bytes.
    pub fn limit(self) -> u64 {
        self.total() / SHARE
    }

    /// The same limit, which is not looked up again.
    pub(crate) fn resolved(self) -> Self {
        Self(Some(self.total()))
    }

    /// Refuses what would take more; `what` is in the plural.
    pub(crate) fn check(self, needed: u64, what: &'static str, path: &str) -> Result<(), DataError> {
        let limit = self.limit();
        if needed <= limit {
            return Ok(());
        }
        Err(DataError::Memory { path: path.to_owned(), what, needed, limit })
    }

    /// Refuses sizes whose product in bytes does not fit, also where it overflows.
    pub(crate) fn check_product(self, sizes: &[usize], what: &'static str, path: &str) -> Result<(), DataError> {
        let needed =
            sizes.iter().fold(1_u64, |product, &size| product.saturating_mul(u64::try_from(size).unwrap_or(u64::MAX)));
        self.check(needed, what, path)
    }

    /// A reader that fails once more has been read than may be kept, where a byte of the file becomes up to `factor` bytes
    /// of memory.
    pub(crate) fn capped<R: Read>(self, inner: R, factor: u64) -> Capped<R> {
        let limit = self.limit();
        Capped { inner, left: limit / factor.max(1), limit }
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&amount(self.total()))
    }
}

impl FromStr for Memory {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "kb" | "k" => 1e3,
            "mb" | "m" => 1e6,
            "gb" | "g" => 1e9,
            "tb" | "t" => 1e12,
            "kib" => 1024.0,
            "mib" => 1024.0 * 1024.0,
            "gib" => 1024.0 * 1024.0 * 1024.0,
            "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
            _ => f64::NAN,
        };
        let bytes = number.parse::<f64>().unwrap_or(f64::NAN) * unit;
        // Up to 2^60 bytes, so that sums of sizes stay numbers.
        if bytes >= LEAST as f64 && bytes <= (1_u64 << 60) as f64 {
            Ok(Self::bytes(bytes as u64))
        } else {
            Err("expected an amount of memory with its unit, at least 4MB, such as 500MB or 2GB".to_owned())
        }
    }
}

/// Bytes as people say them: `1.5 GB`.
pub(crate) fn amount(bytes: u64) -> String {
    const UNITS: [(&str, u64); 5] =
        [("EB", 10_u64.pow(18)), ("TB", 10_u64.pow(12)), ("GB", 10_u64.pow(9)), ("MB", 10_u64.pow(6)), ("kB", 1000)];
    match UNITS.iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) => format!("{:.1} {unit}", bytes as f64 / *size as f64),
        None => format!("{bytes} bytes"),
    }
}

/// The limit of a [`Capped`] reader was reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OverLimit(pub(crate) u64);

impl fmt::Display for OverLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {} would be read", amount(self.0))
    }
}

impl std::error::Error for OverLimit {}

impl OverLimit {
    pub(crate) fn error(limit: u64) -> io::Error {
        io::Error::other(Self(limit))
    }

    /// The limit, if that is what the error is about.
    pub(crate) fn of(error: &io::Error) -> Option<u64> {
        error.get_ref()?.downcast_ref::<Self>().map(|over| over.0)
    }
}

/// See [`Memory::capped`].
pub(crate) struct Capped<R> {
    inner: R,
    left: u64,
    limit: u64,
}

impl<R: Read> Read for Capped<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(n as u64).ok_or_else(|| OverLimit::error(self.limit))?;
        Ok(n)
    }
}

/// How much memory there is, in the words of Linux.
mod machine {
    use std::fs;
    use std::path::Path;

    /// The least of what the machine, the control group and the limits of the process allow.
    pub(super) fn memory() -> Option<u64> {
        [of_machine(), of_group(), of_process()].into_iter().flatten().min()
    }

    fn of_machine() -> Option<u64> {
        total(&fs::read_to_string("/proc/meminfo").ok()?)
    }

    pub(super) fn total(meminfo: &str) -> Option<u64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    }

    /// The limit of the control group and of those above it, in the second version of control groups or the first.
    fn of_group() -> Option<u64> {
        let read = |path: &Path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
        let root = Path::new("/sys/fs/cgroup");
        let own = root.join(own);
        let second = own.ancestors().take_while(|group| group.starts_with(root));
        let second = second.filter_map(|group| read(&group.join("memory.max")));
        second.chain(read(&root.join("memory/memory.limit_in_bytes"))).min()
    }

    fn of_process() -> Option<u64> {
        address_space(&fs::read_to_string("/proc/self/limits").ok()?)
    }

    pub(super) fn address_space(limits: &str) -> Option<u64> {
        let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
        line.split_whitespace().next()?.parse().ok()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_and_written() {
        for (text, bytes) in [
            ("2GB", 2_000_000_000),
            ("2 gb", 2_000_000_000),
            ("1.5GiB", 1_610_612_736),
            ("4000000", 4_000_000),
            ("500M", 500_000_000),
        ] {
            assert_eq!(text.parse::<Memory>().unwrap(), Memory::bytes(bytes), "{text}");
        }
        for text in ["", "GB", "0", "-1GB", "1e9", "3999999", "2XB", "1..5GB", "99999999999TB", "nan", "inf"] {
            assert!(text.parse::<Memory>().is_err(), "{text}");
        }
        assert_eq!(amount(999), "999 bytes");
        assert_eq!(amount(1_500_000), "1.5 MB");
        assert_eq!(amount(u64::MAX), "18.4 EB");
    }

    #[test]
    fn the_machine_says_what_it_has() {
        assert_eq!(machine::total("MemFree: 1 kB\nMemTotal:       24 kB\n"), Some(24 * 1024));
        assert_eq!(machine::total("MemTotal: 99999999999999999999 kB"), None);
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax address space  2048000  unlimited  bytes\n";
        assert_eq!(machine::address_space(limits), Some(2_048_000));
        assert_eq!(machine::address_space("Max address space  unlimited  unlimited  bytes"), None);
        assert!(Memory::default().limit() > LEAST);
    }

    #[test]
    fn what_is_too_large_is_refused_by_name() {
        let error = Memory::bytes(2_000_000_000).check(9_000_000_000, "the images", "bomb.npz").unwrap_err();
        let said = "bomb.npz: the images take 9.0 GB of memory or more, but with 2.0 GB in all data may take 500.0 MB";
        assert_eq!(error.to_string(), said);
        assert!(Memory::bytes(40).check_product(&[usize::MAX; 3], "the images", "f").is_err());
        assert!(Memory::bytes(96).check_product(&[2, 3, 4], "the images", "f").is_ok());
        let mut out = Vec::new();
        let error = Memory::bytes(40).capped(&[0; 11][..], 1).read_to_end(&mut out).unwrap_err();
        assert_eq!(OverLimit::of(&error), Some(10));
        assert!(Memory::bytes(84).capped(&[0; 11][..], 2).read_to_end(&mut out).is_err());
        assert_eq!(Memory::bytes(44).capped(&[0; 11][..], 1).read_to_end(&mut out).unwrap(), 11);
    }
}
