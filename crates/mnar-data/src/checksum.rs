//! Checksums that notice damage. They are no protection against someone who wants to deceive.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

/// A checksum in the making: XXH3 with 64 bits, the same on every machine. Damage goes unnoticed about once in 2^64.
///
/// ```
/// use mnar_data::Checksum;
/// assert_eq!(Checksum::of(b"mnar"), Checksum::of(b"mnar"));
/// assert_ne!(Checksum::of(b"mnar"), Checksum::of(b"mnas"));
/// assert_eq!(Checksum::of(b"").to_string(), "2d06800538d394c2");
/// ```
#[derive(Clone, Default)]
pub struct Checksum(Xxh3);

impl Checksum {
    /// The checksum of some bytes.
    pub fn of(bytes: &[u8]) -> Sum {
        let mut checksum = Self::default();
        checksum.add(bytes);
        checksum.finish()
    }

    /// The checksum of a file.
    pub fn of_file(path: &Path) -> io::Result<Sum> {
        let (mut file, mut checksum) = (File::open(path)?, Self::default());
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(checksum.finish()),
                n => checksum.add(&buffer[..n]),
            }
        }
    }

    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds a text and its length, so that `ab`, `c` differs from `a`, `bc`.
    pub fn add_text(&mut self, text: &str) {
        self.add_count(text.len());
        self.add(text.as_bytes());
    }

    /// Adds a number of things.
    pub fn add_count(&mut self, count: usize) {
        self.add(&(count as u64).to_le_bytes());
    }

    /// The checksum of everything added so far.
    pub fn finish(&self) -> Sum {
        Sum(self.0.digest())
    }
}

/// A finished checksum. It is shown, and saved, as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sum(u64);

impl Sum {
    /// Number of bytes.
    pub const LEN: usize = 8;

    /// As bytes, the least significant first.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        self.0.to_le_bytes()
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl From<Sum> for String {
    fn from(sum: Sum) -> Self {
        sum.to_string()
    }
}

impl TryFrom<String> for Sum {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let sum = u64::from_str_radix(&text, 16).map(Self).ok();
        // Only as it is written: no signs, no capitals.
        sum.filter(|sum| sum.to_string() == text).ok_or("a checksum has 16 hexadecimal digits")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_single_bit_counts() {
        let bytes: Vec<u8> = (0..300_u32).map(|i| (i * 7 % 251) as u8).collect();
        let before = Checksum::of(&bytes);
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(Checksum::of(&flipped), before, "bit {bit}");
        }
    }

    #[test]
    fn a_file_in_parts_and_a_saved_checksum() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        let bytes = vec![7; 200_000];
        std::fs::write(&path, &bytes).unwrap();
        let sum = Checksum::of_file(&path).unwrap();
        assert_eq!(sum, Checksum::of(&bytes));
        let text = serde_json::to_string(&sum).unwrap();
        assert_eq!(serde_json::from_str::<Sum>(&text).unwrap(), sum);
        for bad in ["\"\"", "\"+000000000000001\"", "\"2D06800538D394C2\"", "3"] {
            assert!(serde_json::from_str::<Sum>(bad).is_err(), "{bad}");
        }
    }
}
