//! A compact form of sums: numbers as their eight bytes, lists after their length. Nothing is rounded, so sums that have travelled
//! are the same to the last bit.

use std::sync::Arc;

/// A value that can be written as bytes and read back.
pub(crate) trait Bytes: Sized {
    /// Appends the value.
    fn write(&self, out: &mut Vec<u8>);
    /// Takes the value off the front; `None` where the bytes are not those of one.
    fn read(input: &mut &[u8]) -> Option<Self>;
}

/// Implements [`Bytes`] for a struct, field by field.
macro_rules! bytes {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::travel::Bytes for $name {
            fn write(&self, out: &mut Vec<u8>) {
                $($crate::travel::Bytes::write(&self.$field, out);)*
            }

            fn read(input: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: $crate::travel::Bytes::read(input)?),* })
            }
        }
    };
}
pub(crate) use bytes;

fn take<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = input.split_first_chunk::<N>()?;
    *input = rest;
    Some(*head)
}

impl Bytes for f64 {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.to_bits().to_le_bytes());
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        Some(f64::from_bits(u64::from_le_bytes(take(input)?)))
    }
}

impl Bytes for usize {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend((*self as u64).to_le_bytes());
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        usize::try_from(u64::from_le_bytes(take(input)?)).ok()
    }
}

impl Bytes for u64 {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        Some(u64::from_le_bytes(take(input)?))
    }
}

impl Bytes for i64 {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        Some(i64::from_le_bytes(take(input)?))
    }
}

impl Bytes for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        match take::<1>(input)? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

impl Bytes for String {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        out.extend(self.as_bytes());
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        let length = usize::read(input)?;
        let (text, rest) = input.split_at_checked(length)?;
        *input = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

impl<T: Bytes> Bytes for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        self.iter().for_each(|value| value.write(out));
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        let length = usize::read(input)?;
        // Every value takes at least one byte: a length that was made up must not ask for all memory.
        (length <= input.len()).then_some(())?;
        (0..length).map(|_| T::read(input)).collect()
    }
}

impl Bytes for Arc<[f64]> {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        self.iter().for_each(|value| value.write(out));
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        Vec::<f64>::read(input).map(Into::into)
    }
}

impl<const N: usize> Bytes for [f64; N] {
    fn write(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|value| value.write(out));
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        let mut values = [0.0; N];
        for value in &mut values {
            *value = f64::read(input)?;
        }
        Some(values)
    }
}

impl<T: Bytes> Bytes for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_some().write(out);
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        Some(if bool::read(input)? { Some(T::read(input)?) } else { None })
    }
}

impl<A: Bytes, B: Bytes> Bytes for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        Some((A::read(input)?, B::read(input)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back<T: Bytes>(value: &T) -> Option<T> {
        let mut out = Vec::new();
        value.write(&mut out);
        let mut input = out.as_slice();
        T::read(&mut input).filter(|_| input.is_empty())
    }

    #[test]
    fn every_bit_comes_back() {
        let numbers = vec![0.1, -0.0, f64::MIN_POSITIVE / 3.0, f64::NAN, f64::INFINITY];
        let back = there_and_back(&numbers).unwrap();
        assert!(numbers.iter().zip(&back).all(|(a, b)| a.to_bits() == b.to_bits()));
        let nested = vec![("site é".to_owned(), Some(vec![1usize, 2])), (String::new(), None)];
        assert_eq!(there_and_back(&nested).unwrap(), nested);
    }

    #[test]
    fn lengths_that_are_made_up_are_refused() {
        let mut out = Vec::new();
        usize::MAX.write(&mut out);
        assert!(Vec::<f64>::read(&mut out.as_slice()).is_none());
        assert!(String::read(&mut out.as_slice()).is_none());
        assert!(bool::read(&mut [7u8].as_slice()).is_none());
    }
}
