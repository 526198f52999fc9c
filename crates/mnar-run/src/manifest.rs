//! `manifest.json`: what a run was started with, and checksums of what it wrote.

use crate::error::{FolderState, RunError};
use crate::fingerprint::{Difference, Fingerprint, other_options};
use crate::options::FitOptions;
use mnar_data::{AtomicFile, Checksum, Sum};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

/// The file in a run folder.
pub(crate) const MANIFEST: &str = "manifest.json";

/// The layout of the file.
const SCHEMA: u32 = 1;

/// The record of a run. It is the first file that a run writes, and says that the run has started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    schema: u32,
    /// The version of mnar that started the run.
    version: String,
    data: Fingerprint,
    /// The options, every choice spelled out.
    options: FitOptions,
    /// The checksum of each file, by its path in the folder with `/` between the parts.
    files: BTreeMap<String, Sum>,
}

impl Manifest {
    pub(crate) fn new(data: Fingerprint, options: FitOptions) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { schema: SCHEMA, version, data, options, files: BTreeMap::new() }
    }

    /// Reads the manifest of a run folder; `None` if it has none.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>, RunError> {
        /// First the number alone: a later layout need not have today's fields.
        #[derive(Deserialize)]
        struct Layout {
            schema: u32,
        }
        let path = folder.join(MANIFEST);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(RunError::io("read", path)(error)),
        };
        let broken = |why: String| RunError::BrokenManifest { path: path.clone(), why };
        let Layout { schema } = serde_json::from_str(&text).map_err(|error| broken(error.to_string()))?;
        if schema != SCHEMA {
            return Err(broken(format!("it has layout {schema}, and this version of mnar knows {SCHEMA}")));
        }
        serde_json::from_str(&text).map(Some).map_err(|error| broken(error.to_string()))
    }

    /// Writes the manifest into its folder.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), RunError> {
        let text = serde_json::to_string_pretty(self).map_err(RunError::spelling)?;
        Ok(AtomicFile::write_text(&folder.join(MANIFEST), &(text + "\n"))?)
    }

    /// Records the checksum of a file that is, or will be, in the folder.
    pub(crate) fn record(&mut self, name: &str, sum: Sum) {
        self.files.insert(name.to_owned(), sum);
    }

    /// Records those of these files that are in the folder, and forgets all others.
    pub(crate) fn record_files(&mut self, folder: &Path, names: &[&str]) -> Result<(), RunError> {
        self.files.clear();
        for name in names {
            let path = folder.join(name);
            if path.exists() {
                self.record(name, Checksum::of_file(&path).map_err(RunError::io("read", path))?);
            }
        }
        Ok(())
    }

    /// The recorded files that are in the folder but not as the run wrote them.
    pub(crate) fn changed(&self, folder: &Path) -> Vec<String> {
        let changed = |name: &&String| folder.join(name).exists() && self.verify(folder, name).is_err();
        self.files.keys().filter(changed).cloned().collect()
    }

    /// Whether a file is recorded.
    pub(crate) fn lists(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// Refuses a file that is not as the run wrote it: changed, missing, or not of this run.
    pub(crate) fn verify(&self, folder: &Path, name: &str) -> Result<(), RunError> {
        let path = folder.join(name);
        let changed = |why| Err(RunError::ChangedFile { path: path.clone(), why });
        match (self.files.get(name), path.exists()) {
            (None, false) => Ok(()),
            (None, true) => changed("it is not among the files of the run"),
            (Some(_), false) => changed("it is missing"),
            (Some(sum), true) => match Checksum::of_file(&path).map_err(RunError::io("read", &path))? == *sum {
                true => Ok(()),
                false => changed("its checksum is not that in manifest.json"),
            },
        }
    }

    /// Refuses to go on with other data, or by another version.
    pub(crate) fn check_data(&self, folder: &Path, data: &Fingerprint) -> Result<(), RunError> {
        let mut differences = data.differences(&self.data);
        if self.version != env!("CARGO_PKG_VERSION") {
            differences.push(Difference::Version { started: self.version.clone() });
        }
        refuse(folder, differences)
    }

    /// Refuses to go on with other options.
    pub(crate) fn check_options(&self, folder: &Path, options: &FitOptions) -> Result<(), RunError> {
        match other_options(options, &self.options) {
            names if names.is_empty() => Ok(()),
            names => refuse(folder, vec![Difference::Options(names)]),
        }
    }
}

fn refuse(folder: &Path, differences: Vec<Difference>) -> Result<(), RunError> {
    match differences.is_empty() {
        true => Ok(()),
        false => Err(RunError::OtherRun { path: folder.to_owned(), differences }),
    }
}

/// The manifest of a finished run.
pub(crate) fn of_finished(folder: &Path) -> Result<Manifest, RunError> {
    Manifest::read(folder)?.ok_or_else(|| RunError::folder(folder, FolderState::NoManifest))
}

/// Whether a file is one that a run wrote and is no longer as the run wrote it.
pub fn is_changed(file: &Path) -> bool {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name().and_then(OsStr::to_str)) else { return false };
    match Manifest::read(folder) {
        Ok(Some(manifest)) => manifest.lists(name) && manifest.verify(folder, name).is_err(),
        _ => false,
    }
}
