//! Changes of bytes that are drawn from a number, so that each can be made again.

/// A generator of numbers (splitmix64): the same on every machine, and a dependency less.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is positive.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// Numbers at which sizes and counts go wrong.
const EDGES: [u64; 10] =
    [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 0x7fff_ffff_ffff_ffff, 0xffff_ffff_ffff_ffff];

/// Bytes that mean something to the reader of one format or another.
const MEANINGFUL: &[u8] = b"\",;|\n\r\t.-+e0{}[]<>='\x00\xff\xef\x80";

/// The bytes with one to five changes.
pub(crate) fn mutated(mut bytes: Vec<u8>, draw: &mut Draw) -> Vec<u8> {
    for _ in 0..1 + draw.below(5) {
        if bytes.is_empty() {
            break;
        }
        let (n, at) = (bytes.len(), draw.below(bytes.len()));
        // Up to 40 bytes, so that something is left to be read.
        let end = (at + 1 + draw.below(40)).min(n);
        match draw.below(8) {
            0 => bytes[at] ^= 1 << draw.below(8),
            1 => bytes[at] = draw.next() as u8,
            2 => bytes[at] = MEANINGFUL[draw.below(MEANINGFUL.len())],
            3 => drop(bytes.drain(at..end)),
            4 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            5 => {
                // A size of one, two, four or eight bytes, in either order.
                let (edge, width) = (EDGES[draw.below(EDGES.len())], 1 << draw.below(4));
                let written = if draw.below(2) == 0 {
                    edge.to_le_bytes()[..width].to_vec()
                } else {
                    edge.to_be_bytes()[8 - width..].to_vec()
                };
                bytes[at..].iter_mut().zip(written).for_each(|(byte, new)| *byte = new);
            }
            6 => {
                let to = draw.below(n);
                let part = bytes[at..end].to_vec();
                bytes[to..].iter_mut().zip(part).for_each(|(byte, new)| *byte = new);
            }
            // Rarely cut off, which is an error at once for most formats.
            _ if draw.below(4) == 0 => bytes.truncate(at),
            _ => bytes[at] = bytes[at].wrapping_add(1),
        }
    }
    bytes
}
