//! CIFAR-10 in its binary layout: a byte for the class, then 32 × 32 bytes each of red, green and blue.

use crate::dataset::Split;
use crate::error::{DataError, show};
use crate::format::open_maybe_gzipped;
use crate::guard::Memory;
use crate::images::{ImageShape, Images};
use mnar::{Class, Labels};
use std::io::Read;
use std::path::{Path, PathBuf};

const PLANE: usize = 32 * 32;
const RECORD: usize = 1 + 3 * PLANE;

/// Whether this is the name of one of the files.
pub(crate) fn names_batch(name: &str) -> bool {
    name == "test_batch.bin" || (name.starts_with("data_batch_") && name.ends_with(".bin"))
}

/// Reads the batches of a folder, in the order of their numbers.
pub(crate) fn read(folder: &Path, split: Split, memory: Memory) -> Result<(Images, Labels), DataError> {
    let shown = show(folder);
    let train = || (1..=5).map(|k| format!("data_batch_{k}.bin"));
    let test = || std::iter::once("test_batch.bin".to_owned());
    let names: Vec<String> = match split {
        Split::Train => train().collect(),
        Split::Test => test().collect(),
        Split::All => train().chain(test()).collect(),
        Split::Validation => {
            let has = "CIFAR-10 has a training and a test part".into();
            return Err(DataError::NoSplit { path: shown, split: split.name(), has });
        }
    };
    let files: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
    let (mut pixels, mut y) = (Vec::new(), Vec::new());
    for file in &files {
        read_batch(file, memory, &mut pixels, &mut y)?;
    }
    if y.is_empty() {
        return Err(DataError::NoRows { path: shown });
    }
    let images = Images::new(ImageShape::flat(32, 32, 3), pixels, &shown)?;
    let labels = Labels::allow_degenerate(y, class_names(folder)).map_err(|cause| DataError::core(&shown, cause))?;
    Ok((images, labels))
}

fn read_batch(file: &Path, memory: Memory, pixels: &mut Vec<u8>, y: &mut Vec<Option<Class>>) -> Result<(), DataError> {
    let shown = show(file);
    let bad = |what: String| DataError::Cifar { path: shown.clone(), what };
    let mut reader = std::io::BufReader::with_capacity(1 << 18, open_maybe_gzipped(file)?);
    let mut record = Vec::with_capacity(RECORD);
    for row in 1.. {
        record.clear();
        let limit = RECORD as u64;
        (&mut reader).take(limit).read_to_end(&mut record).map_err(|error| DataError::io(&shown, "read", error))?;
        if record.is_empty() {
            break;
        }
        if record.len() < RECORD {
            return Err(bad(format!("it ends within image {row}, of {RECORD} bytes each; download it again")));
        }
        if record[0] > 9 {
            return Err(bad(format!("image {row} is of class {}, but there are 10 classes", record[0])));
        }
        memory.check((pixels.len() + RECORD) as u64, "the images", &shown)?;
        y.push(Some(Class(u32::from(record[0]))));
        pixels.extend((0..PLANE).flat_map(|k| [record[1 + k], record[1 + PLANE + k], record[1 + 2 * PLANE + k]]));
    }
    Ok(())
}

/// The names that come with the files, or the numbers where ten names are not there.
fn class_names(folder: &Path) -> Vec<String> {
    let file = folder.join("batches.meta.txt");
    let text = if file.is_file() { std::fs::read_to_string(file).unwrap_or_default() } else { String::new() };
    let names: Vec<String> = text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect();
    if names.len() == 10 { names } else { (0..10).map(|class: u32| class.to_string()).collect() }
}
