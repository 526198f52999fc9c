//! MNIST as it is distributed: images and labels in idx files side by side.

use crate::dataset::Split;
use crate::error::{DataError, show};
use crate::guard::Memory;
use crate::idx;
use crate::images::{ImageShape, Images};
use crate::values::Interner;
use std::path::{Path, PathBuf};

/// Whether this is the name of a file of images.
pub(crate) fn names_images(name: &str) -> bool {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    name.ends_with("images-idx3-ubyte") || name.ends_with("images.idx3-ubyte")
}

/// Reads a folder of idx files, or one file of images with its labels beside it.
pub(crate) fn read(
    path: &Path,
    split: Split,
    with_labels: bool,
    memory: Memory,
) -> Result<(Images, Option<Interner>), DataError> {
    let files = if path.is_dir() { files_of(path, split)? } else { vec![path.to_owned()] };
    let mut known: Option<(ImageShape, Vec<u8>)> = None;
    let mut interner = Interner::default();
    for file in files {
        let read = idx::read_images_within(&file, memory)?;
        let shape = ImageShape::flat(read.rows, read.cols, 1);
        if with_labels {
            let beside = labels_beside(&file).ok_or_else(|| DataError::NoLabelsInside {
                path: show(&file),
                what: "there is no file of labels, such as train-labels-idx1-ubyte, beside it".into(),
            })?;
            let labels = idx::read_labels_within(&beside, memory)?;
            if labels.len() != read.n {
                let (found, expected) = (labels.len(), read.n);
                return Err(DataError::LabelCount { path: show(&beside), found, expected, inputs: show(&file) });
            }
            labels.iter().for_each(|label| interner.push(Some(&label.to_string())));
        }
        known = Some(match known {
            None => (shape, read.pixels),
            Some((first, mut pixels)) if first == shape => {
                memory.check((pixels.len() + read.pixels.len()) as u64, "images", &show(path))?;
                pixels.extend_from_slice(&read.pixels);
                (first, pixels)
            }
            Some((first, _)) => {
                let (found, expected) = (shape.to_string(), first.to_string());
                return Err(DataError::ImageShape { path: show(&file), found, expected });
            }
        });
    }
    let shown = show(path);
    let images = match known {
        Some((shape, pixels)) => Images::new(shape, pixels, &shown)?,
        None => return Err(DataError::NoRows { path: shown }),
    };
    if images.is_empty() {
        return Err(DataError::NoRows { path: shown });
    }
    Ok((images, with_labels.then_some(interner)))
}

/// The image files of the requested parts.
fn files_of(folder: &Path, split: Split) -> Result<Vec<PathBuf>, DataError> {
    let shown = show(folder);
    let entries = std::fs::read_dir(folder).map_err(|error| DataError::io(&shown, "read", error))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| names_images(name))
        .collect();
    // The unpacked file comes before its own archive.
    names.sort_unstable();
    let find = |starts: &[&str]| names.iter().find(|name| starts.iter().any(|start| name.starts_with(start)));
    let (train, test) = (find(&["train-", "train."]), find(&["t10k-", "test-"]));
    let wanted: Vec<&String> = match split {
        Split::Train => train.into_iter().collect(),
        Split::Test => test.into_iter().collect(),
        Split::Validation => Vec::new(),
        Split::All => train.into_iter().chain(test).collect(),
    };
    if wanted.is_empty() {
        return Err(DataError::NoSplit {
            path: shown,
            split: split.name(),
            has: format!("it holds {}", names.join(", ")),
        });
    }
    Ok(wanted.into_iter().map(|name| folder.join(name)).collect())
}

fn labels_beside(images: &Path) -> Option<PathBuf> {
    let name = images.file_name()?.to_str()?;
    let plain = name.strip_suffix(".gz").unwrap_or(name);
    let plain = plain.replace("images-idx3", "labels-idx1").replace("images.idx3", "labels.idx1");
    // Under a name that says nothing, the file would be its own labels.
    if plain == name.strip_suffix(".gz").unwrap_or(name) {
        return None;
    }
    [plain.clone(), format!("{plain}.gz")].iter().map(|name| images.with_file_name(name)).find(|path| path.is_file())
}
