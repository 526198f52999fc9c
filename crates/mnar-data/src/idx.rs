//! MNIST's idx files, gzipped or not: a magic number, the sizes, then one byte per pixel or label.

use crate::error::{DataError, show};
use crate::format::open_maybe_gzipped;
use crate::guard::Memory;
use std::io::Read;
use std::path::Path;

/// Grey images of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdxImages {
    /// Number of images.
    pub n: usize,
    /// Height of an image.
    pub rows: usize,
    /// Width of an image.
    pub cols: usize,
    /// The pixels, image after image, row after row.
    pub pixels: Vec<u8>,
}

/// Unsigned bytes (0x08) in three dimensions, and in one.
const IMAGES: u32 = 0x0803;
const LABELS: u32 = 0x0801;

/// Reads images, such as `train-images-idx3-ubyte.gz`.
pub fn read_images(path: &Path) -> Result<IdxImages, DataError> {
    read_images_within(path, Memory::default())
}

/// Reads images that take no more than so much memory.
pub fn read_images_within(path: &Path, memory: Memory) -> Result<IdxImages, DataError> {
    images(open_maybe_gzipped(path)?, memory, &show(path))
}

/// Reads labels, such as `train-labels-idx1-ubyte.gz`.
pub fn read_labels(path: &Path) -> Result<Vec<u8>, DataError> {
    read_labels_within(path, Memory::default())
}

/// Reads labels that take no more than so much memory.
pub fn read_labels_within(path: &Path, memory: Memory) -> Result<Vec<u8>, DataError> {
    Ok(read::<1>(open_maybe_gzipped(path)?, LABELS, "labels", memory, &show(path))?.1)
}

/// Reads images from bytes that are not gzipped; `source_name` is what messages start with.
pub fn images_from_reader(reader: impl Read, source_name: &str) -> Result<IdxImages, DataError> {
    images(reader, Memory::default(), source_name)
}

fn images(reader: impl Read, memory: Memory, path: &str) -> Result<IdxImages, DataError> {
    let (sizes, pixels) = read::<3>(reader, IMAGES, "images", memory, path)?;
    let [n, rows, cols] = sizes;
    Ok(IdxImages { n, rows, cols, pixels })
}

/// Reads labels from bytes that are not gzipped; `source_name` is what messages start with.
pub fn labels_from_reader(reader: impl Read, source_name: &str) -> Result<Vec<u8>, DataError> {
    Ok(read::<1>(reader, LABELS, "labels", Memory::default(), source_name)?.1)
}

fn read<const D: usize>(
    mut reader: impl Read,
    magic: u32,
    what: &'static str,
    memory: Memory,
    path: &str,
) -> Result<([usize; D], Vec<u8>), DataError> {
    let bad = |what: String| DataError::Idx { path: path.to_owned(), what };
    let mut word = || {
        let mut bytes = [0; 4];
        match reader.read_exact(&mut bytes) {
            Ok(()) => Ok(u32::from_be_bytes(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Err(bad("it ends within its header; download it again".into()))
            }
            Err(error) => Err(DataError::io(path, "read", error)),
        }
    };
    let found = word()?;
    if found != magic {
        return Err(bad(match found {
            IMAGES => format!("it holds images, but {what} were asked for; are the two files swapped?"),
            LABELS => format!("it holds labels, but {what} were asked for; are the two files swapped?"),
            _ => format!("it starts with 0x{found:08x}, where {what} start with 0x{magic:08x}"),
        }));
    }
    let mut sizes = [0; D];
    for size in &mut sizes {
        *size = word()? as usize;
    }
    let expected = sizes
        .iter()
        .try_fold(1_usize, |product, &size| product.checked_mul(size))
        .ok_or_else(|| bad(format!("its header claims {} bytes", list(&sizes))))?;
    memory.check(expected as u64, what, path)?;
    // The header is not trusted with an allocation: the vector grows with the bytes that are there.
    let mut bytes = Vec::new();
    let limit = u64::try_from(expected).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(limit).read_to_end(&mut bytes).map_err(|error| DataError::io(path, "read", error))?;
    if bytes.len() < expected {
        let found = bytes.len();
        return Err(bad(format!(
            "its header claims {} = {expected} bytes but only {found} follow; download it again",
            list(&sizes)
        )));
    }
    if bytes.len() > expected {
        return Err(bad(format!("more bytes follow than the {} = {expected} of its header", list(&sizes))));
    }
    Ok((sizes, bytes))
}

fn list(sizes: &[usize]) -> String {
    sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn idx(magic: u32, sizes: &[u32], bytes: &[u8]) -> Vec<u8> {
        let mut file = magic.to_be_bytes().to_vec();
        sizes.iter().for_each(|size| file.extend(size.to_be_bytes()));
        file.extend(bytes);
        file
    }

    fn images(file: &[u8]) -> Result<IdxImages, String> {
        images_from_reader(file, "f").map_err(|error| error.to_string())
    }

    #[test]
    fn images_and_labels_are_read_gzipped_or_not() {
        let file = idx(IMAGES, &[2, 1, 3], &[1, 2, 3, 4, 5, 6]);
        assert_eq!(images(&file).unwrap(), IdxImages { n: 2, rows: 1, cols: 3, pixels: vec![1, 2, 3, 4, 5, 6] });
        assert_eq!(labels_from_reader(&idx(LABELS, &[2], &[7, 9])[..], "f").unwrap(), [7, 9]);

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("images");
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, &file).unwrap();
        let gzipped = encoder.finish().unwrap();
        std::fs::write(&path, &gzipped).unwrap();
        assert_eq!(read_images(&path).unwrap().n, 2);
        std::fs::write(&path, &gzipped[..gzipped.len() - 9]).unwrap();
        let error = read_images(&path).unwrap_err().to_string();
        assert!(error.starts_with(&path.display().to_string()), "{error}");
        std::fs::write(&path, idx(LABELS, &[1], &[3])).unwrap();
        assert_eq!(read_labels(&path).unwrap(), [3]);
    }

    #[test]
    fn damaged_files_are_refused() {
        let file = idx(IMAGES, &[2, 1, 3], &[1, 2, 3, 4, 5, 6]);
        let error = images(&file[..20]).unwrap_err();
        assert_eq!(
            error,
            "f: not a readable idx file: its header claims 2 x 1 x 3 = 6 bytes but only 4 follow; download it again"
        );
        assert!(images(&file[..10]).unwrap_err().contains("ends within its header"));
        assert!(images(&[]).unwrap_err().contains("ends within its header"));
        assert!(images(&[&file[..], &[0]].concat()).unwrap_err().contains("more bytes follow"));
        assert!(images(&idx(LABELS, &[1], &[3])).unwrap_err().contains("are the two files swapped?"));
        assert!(images(b"label,p_a").unwrap_err().contains("it starts with 0x6c616265"));
        // 2^96 bytes, on no machine.
        assert!(images(&idx(IMAGES, &[u32::MAX; 3], &[])).unwrap_err().contains("its header claims"));
    }
}
