//! Archives of numpy arrays, as MedMNIST has them: `train_images`, `train_labels`, and so on.

use crate::dataset::{Inputs, Split};
use crate::error::{DataError, list, said, show};
use crate::format::open_regular;
use crate::guard::{Memory, fenced};
use crate::npy::{ArrayInputs, Npy};
use crate::values::Interner;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use zip::ZipArchive;

/// An open archive.
struct Npz {
    archive: ZipArchive<BufReader<File>>,
    keys: Vec<String>,
    path: String,
    memory: Memory,
}

/// Reads the inputs of the requested parts, and their labels from the array that `labels` names.
pub(crate) fn read(
    path: &Path,
    split: Split,
    labels: LabelKey<'_>,
    training: bool,
    memory: Memory,
) -> Result<(Inputs, Option<Interner>), DataError> {
    let shown = show(path);
    let damaged = |cause: String| DataError::Npz { path: shown.clone(), source: cause.into() };
    fenced(damaged, || Npz::open(path, memory)?.read(split, labels, training))
}

/// The name of the array of labels in an archive.
#[derive(Clone, Copy)]
pub(crate) enum LabelKey<'a> {
    /// They are not needed.
    None,
    /// One of the usual names: `labels` or `y`.
    Usual,
    /// This name, alone or after the name of the part.
    Named(&'a str),
}

impl Npz {
    fn open(path: &Path, memory: Memory) -> Result<Self, DataError> {
        let shown = show(path);
        let file = open_regular(path, "an archive is read from its end, which this does not have")?;
        let archive = ZipArchive::new(BufReader::with_capacity(1 << 16, file))
            .map_err(|error| DataError::Npz { path: shown.clone(), source: said(error) })?;
        let mut keys: Vec<String> =
            archive.file_names().filter_map(|name| name.strip_suffix(".npy")).map(str::to_owned).collect();
        keys.sort_unstable();
        if keys.is_empty() {
            return Err(DataError::Npz { path: shown, source: "it holds no numpy arrays".into() });
        }
        Ok(Self { archive, keys, path: shown, memory })
    }

    fn has(&self, wanted: &[String]) -> Option<String> {
        wanted.iter().find(|name| self.keys.contains(name)).cloned()
    }

    /// The array under the first of the names that is there.
    fn key(&self, wanted: &[String]) -> Result<String, DataError> {
        self.has(wanted).ok_or_else(|| {
            let quoted: Vec<String> = wanted.iter().map(|name| format!("`{name}`")).collect();
            DataError::MissingKey { path: self.path.clone(), wanted: quoted.join(" or "), keys: list(&self.keys) }
        })
    }

    fn array(&mut self, key: &str) -> Result<Npy<impl std::io::Read + '_>, DataError> {
        let name = format!("{key}.npy");
        let file = self
            .archive
            .by_name(&name)
            .map_err(|error| DataError::Npz { path: self.path.clone(), source: format!("{name}: {error}").into() })?;
        Npy::open(file, self.memory, &format!("{}, array `{key}`", self.path))
    }

    fn read(
        mut self,
        split: Split,
        labels: LabelKey<'_>,
        training: bool,
    ) -> Result<(Inputs, Option<Interner>), DataError> {
        let mut inputs = ArrayInputs::default();
        let mut interner = Interner::default();
        for part in self.parts(split) {
            let key = self.key(&part.names(&["images", "x", "X"]))?;
            let rows = inputs.extend(self.array(&key)?)?;
            let wanted = match labels {
                LabelKey::None => continue,
                LabelKey::Usual => part.names(&["labels", "y", "Y"]),
                LabelKey::Named(name) => [part.names(&[name]), vec![name.to_owned()]].concat(),
            };
            let key = self.key(&wanted)?;
            let found = self.array(&key)?.read_labels(|label| match label {
                Some(label) => interner.push(Some(&label.to_string())),
                None => interner.push(None),
            })?;
            if found != rows {
                return Err(DataError::LabelCount {
                    path: format!("{}, array `{key}`", self.path),
                    found,
                    expected: rows,
                    inputs: "the images".into(),
                });
            }
        }
        let labels = (!matches!(labels, LabelKey::None)).then_some(interner);
        Ok((inputs.finish(training, &self.path)?, labels))
    }

    /// The parts to read. An archive without parts is a training set.
    fn parts(&self, split: Split) -> Vec<Part> {
        let parts: &[Part] = match split {
            Split::Train => &[Part("train")],
            Split::Validation => &[Part("val")],
            Split::Test => &[Part("test")],
            Split::All => &[Part("train"), Part("val"), Part("test")],
        };
        let there = |part: &Part| self.has(&part.names(&["images", "x", "X"])).is_some();
        if matches!(split, Split::Train | Split::All) && !parts.iter().any(there) {
            // If the plain names are not there either, the message names both.
            return vec![if there(&Part("")) { Part("") } else { parts[0] }];
        }
        if split == Split::All { parts.iter().copied().filter(there).collect() } else { parts.to_vec() }
    }
}

/// The name of a part; empty where there are none.
#[derive(Clone, Copy)]
struct Part(&'static str);

impl Part {
    /// `train_images` as MedMNIST has it, `x_train` as Keras does, or `images` alone.
    fn names(self, stems: &[&str]) -> Vec<String> {
        let Part(part) = self;
        if part.is_empty() {
            return stems.iter().map(|stem| (*stem).to_owned()).collect();
        }
        stems
            .iter()
            .map(|stem| format!("{part}_{stem}"))
            .chain(stems.iter().map(|stem| format!("{stem}_{part}")))
            .collect()
    }
}
