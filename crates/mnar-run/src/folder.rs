//! The folder of a run: who may write into it, what is in it, and whether that can be trusted.
//!
//! A run locks its folder before it reads the data. `manifest.json` is the first file that it writes and `report.json` the last:
//! a folder without the first holds no run yet, one with the last a finished run, and what is between the two is resumed. So
//! a run can be killed at any moment.

use crate::demo::DemoSample;
use crate::error::{FolderState, RunError};
use crate::fingerprint::Fingerprint;
use crate::lock::{FolderLock, LOCK};
use crate::manifest::{MANIFEST, Manifest};
use crate::options::FitOptions;
use clap::ValueEnum as _;
use mnar_data::{AtomicFile, Checksum, is_partial, sweep_partial};
use mnar_report::Report;
use mnar_train::CheckpointPlan;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SETTINGS: &str = "settings.toml";
/// A folder that has this file holds a finished run.
pub(crate) const REPORT: &str = "report.json";
const PAGE: &str = "report.html";
const PREDICTIONS: &str = "predictions.csv";
const CHECKPOINTS: &str = "checkpoints";
/// The folders of the two models, and the files that one holds.
pub(crate) const MODEL: &str = "model";
pub(crate) const BASELINE: &str = "baseline";
const MODEL_FILES: [&str; 6] =
    ["model.json", "weights.safetensors", "guides.safetensors", "beside.json", "sets.json", "positive.json"];

/// Where everything of a run is kept. While this exists, no other process can write there.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// The longest time between two checkpoints.
    checkpoint_every: Duration,
    /// The record of the run that is resumed.
    manifest: Option<Manifest>,
    /// Held until the end.
    lock: FolderLock,
    /// Removed at the end, after the lock, unless something is in them.
    _created: CreatedFolders,
}

impl RunFolder {
    /// Locks the folder for a run that starts or resumes in it, after it has looked at what is there. What killed processes
    /// left is swept. A folder that is created for this is removed again unless something is written into it.
    pub(crate) fn open(path: &Path, resume: bool, checkpoint_every: Duration) -> Result<Self, RunError> {
        let wrong = |state| Err(RunError::folder(path, state));
        if path.exists() && !path.is_dir() {
            return wrong(FolderState::IsAFile);
        }
        if resume && !path.exists() {
            return wrong(FolderState::NothingToResume);
        }
        let created = CreatedFolders::create(path)?;
        let left_behind = path.join(LOCK).exists();
        let lock = FolderLock::take(path)?;
        let content = Content::of(path)?;
        let manifest = match (content, resume) {
            (Content::Finished, _) => {
                // A kill in the last moments of the run may have left them.
                sweep(path)?;
                remove_checkpoints(path)?;
                return wrong(FolderState::Finished);
            }
            (Content::Started, false) => return wrong(FolderState::Unfinished),
            (Content::Started, true) => {
                refuse_links(path)?;
                Manifest::read(path)?
            }
            (Content::Unrecorded, true) => return wrong(FolderState::NoManifest),
            (Content::Unrecorded, false) => return wrong(FolderState::Unfinished),
            (Content::Foreign, false) => return wrong(FolderState::NotEmpty),
            (Content::Foreign, true) => return wrong(FolderState::NothingToResume),
            // A run that was killed before it had done anything has nothing to go on from, and starts.
            (Content::Nothing, true) if !left_behind => return wrong(FolderState::NothingToResume),
            (Content::Nothing, _) => None,
        };
        sweep(path)?;
        Ok(Self { path: path.to_owned(), checkpoint_every, manifest, lock, _created: created })
    }

    /// Whether other processes are kept out. Some file systems have no locks.
    pub(crate) fn is_locked(&self) -> bool {
        self.lock.is_held()
    }

    /// Refuses data that the run in the folder was not started with.
    pub(crate) fn check_data(&self, data: &Fingerprint) -> Result<(), RunError> {
        self.manifest.as_ref().map_or(Ok(()), |manifest| manifest.check_data(&self.path, data))
    }

    /// Starts the run: from here on it can be resumed. A run that resumes must have the same options.
    pub(crate) fn start(&mut self, data: Fingerprint, options: &FitOptions) -> Result<(), RunError> {
        let text = format!("# The settings of this run, every choice spelled out.\n{}", options.to_toml()?);
        match &self.manifest {
            Some(manifest) => {
                manifest.check_options(&self.path, options)?;
                // The settings may be missing: they are written just after the manifest.
                if self.path.join(SETTINGS).exists() {
                    manifest.verify(&self.path, SETTINGS)?;
                }
            }
            None => {
                let mut manifest = Manifest::new(data, options.clone());
                manifest.record(SETTINGS, Checksum::of(text.as_bytes()));
                manifest.write(&self.path)?;
                self.manifest = Some(manifest);
            }
        }
        self.subfolder(CHECKPOINTS)?;
        Ok(AtomicFile::write_text(&self.place(SETTINGS)?, &text)?)
    }

    /// Ends the run: writes its page, records what it wrote, and writes the report, which makes it a finished one.
    pub(crate) fn finish(&self, report: &Report) -> Result<(), RunError> {
        AtomicFile::write_text(&self.place(PAGE)?, &report.to_html()?)?;
        let text = report.to_json()?;
        if let Some(mut manifest) = self.manifest.clone() {
            let of_models = [MODEL, BASELINE].into_iter().flat_map(model_files);
            let names: Vec<String> = [SETTINGS, PREDICTIONS].map(str::to_owned).into_iter().chain(of_models).collect();
            manifest.record_files(&self.path, &names.iter().map(String::as_str).collect::<Vec<_>>())?;
            manifest.record(REPORT, Checksum::of(text.as_bytes()));
            manifest.write(&self.path)?;
        }
        AtomicFile::write_text(&self.place(REPORT)?, &text)?;
        remove_checkpoints(&self.path)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of a model, [`MODEL`] or [`BASELINE`], ready to be written into.
    pub(crate) fn model(&self, name: &str) -> Result<PathBuf, RunError> {
        let folder = self.subfolder(name)?;
        MODEL_FILES.iter().try_for_each(|file| unlink(&folder.join(file)))?;
        Ok(folder)
    }

    /// The predictions for all rows of the data.
    pub(crate) fn predictions(&self) -> Result<PathBuf, RunError> {
        self.place(PREDICTIONS)
    }

    /// The checkpoint of a stage.
    pub(crate) fn checkpoint(&self, name: &str) -> CheckpointPlan {
        let path = self.path.join(CHECKPOINTS).join(format!("{name}.checkpoint"));
        CheckpointPlan { path, every: self.checkpoint_every }
    }

    /// The longest time between two checkpoints.
    pub(crate) fn checkpoint_every(&self) -> Duration {
        self.checkpoint_every
    }

    /// The place of a file, at which there is no link: what a link points to is not ours to overwrite.
    pub(crate) fn place(&self, name: &str) -> Result<PathBuf, RunError> {
        let path = self.path.join(name);
        unlink(&path)?;
        Ok(path)
    }

    /// A folder in the folder, created if it is not there; it must not be a link.
    pub(crate) fn subfolder(&self, name: &str) -> Result<PathBuf, RunError> {
        let path = self.path.join(name);
        unlink(&path)?;
        fs::create_dir_all(&path).map_err(RunError::io("created", &path))?;
        Ok(path)
    }
}

/// The files of a model, by their paths in the run folder.
pub(crate) fn model_files(model: &str) -> impl Iterator<Item = String> {
    MODEL_FILES.map(|file| format!("{model}/{file}")).into_iter()
}

/// Writes a file of a run folder that can be made again at any time, such as its page, but not through a link.
pub fn write_page(folder: &Path, html: &str) -> Result<PathBuf, RunError> {
    let path = folder.join(PAGE);
    refuse_link(&path)?;
    AtomicFile::write_text(&path, html)?;
    Ok(path)
}

/// Writes a report, as JSON and as a page, into a folder that holds nothing else of a run. Returns the place of the page.
pub fn write_report(folder: &Path, report: &Report) -> Result<PathBuf, RunError> {
    let path = folder.join(REPORT);
    refuse_link(&path)?;
    let page = write_page(folder, &report.to_html()?)?;
    AtomicFile::write_text(&path, &report.to_json()?)?;
    Ok(page)
}

/// Refuses a folder that holds anything but the report of a demo, and says whether there is one that would be replaced.
pub fn check_demo_folder(folder: &Path) -> Result<bool, RunError> {
    let wrong = |state| Err(RunError::folder(folder, state));
    if folder.exists() && !folder.is_dir() {
        return wrong(FolderState::IsAFile);
    }
    // A link is refused as such when the report is written.
    if !folder.exists() || folder.join(REPORT).is_symlink() || Content::of(folder)? == Content::Nothing {
        return Ok(false);
    }
    if folder.join(MANIFEST).exists() || folder.join(SETTINGS).exists() {
        return wrong(FolderState::HoldsRun);
    }
    let report = fs::read_to_string(folder.join(REPORT)).ok().and_then(|text| Report::from_json(&text).ok());
    let titles = DemoSample::value_variants().iter().map(|sample| sample.title());
    match report.is_some_and(|report| titles.into_iter().any(|title| title == report.provenance.title)) {
        true => Ok(true),
        false => wrong(FolderState::NotEmpty),
    }
}

/// What a folder holds, as far as runs go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// Nothing, or what a run leaves that was killed before it started.
    Nothing,
    /// A run that can be resumed.
    Started,
    /// A run that did not record its data: one of an earlier version.
    Unrecorded,
    Finished,
    /// Files that are not of a run.
    Foreign,
}

impl Content {
    fn of(folder: &Path) -> Result<Self, RunError> {
        let has = |name: &str| folder.join(name).exists();
        if has(REPORT) {
            return Ok(Self::Finished);
        }
        if has(MANIFEST) {
            return Ok(Self::Started);
        }
        if has(SETTINGS) {
            return Ok(Self::Unrecorded);
        }
        let entries = fs::read_dir(folder).map_err(RunError::io("read", folder))?;
        let mut names = entries.flatten().map(|entry| entry.file_name());
        let foreign = names.any(|name| name != LOCK && !is_partial(&name));
        Ok(if foreign { Self::Foreign } else { Self::Nothing })
    }
}

/// Folders that were made for a run. Those that are empty at the end, because nothing came of it, are removed.
#[derive(Debug, Default)]
struct CreatedFolders(Vec<PathBuf>);

impl CreatedFolders {
    fn create(path: &Path) -> Result<Self, RunError> {
        let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let created = Self(path.ancestors().take_while(missing).map(Path::to_owned).collect());
        fs::create_dir_all(path).map_err(RunError::io("created", path))?;
        Ok(created)
    }
}

impl Drop for CreatedFolders {
    fn drop(&mut self) {
        // The innermost comes first. A folder that is not empty stays.
        self.0.iter().take_while(|folder| fs::remove_dir(folder).is_ok()).for_each(drop);
    }
}

/// Removes unfinished files.
fn sweep(folder: &Path) -> Result<(), RunError> {
    for name in ["", CHECKPOINTS, MODEL, BASELINE] {
        let folder = folder.join(name);
        if is_folder(&folder) {
            sweep_partial(&folder).map_err(RunError::io("read", &folder))?;
        }
    }
    Ok(())
}

/// Removes the checkpoints of a finished run.
fn remove_checkpoints(folder: &Path) -> Result<(), RunError> {
    let path = folder.join(CHECKPOINTS);
    match is_folder(&path) {
        true => fs::remove_dir_all(&path).map_err(RunError::io("removed", path)),
        false => Ok(()),
    }
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

/// Removes a link, and leaves what it points to alone.
fn unlink(path: &Path) -> Result<(), RunError> {
    match is_link(path) {
        true => fs::remove_file(path).map_err(RunError::io("removed", path)),
        false => Ok(()),
    }
}

fn refuse_link(path: &Path) -> Result<(), RunError> {
    match is_link(path) {
        true => Err(RunError::Link { path: path.to_owned() }),
        false => Ok(()),
    }
}

/// Refuses a folder with links in it, two levels deep: a run makes none.
fn refuse_links(folder: &Path) -> Result<(), RunError> {
    let entries = |folder: &Path| -> Result<Vec<PathBuf>, RunError> {
        let entries = fs::read_dir(folder).map_err(RunError::io("read", folder))?;
        Ok(entries.flatten().map(|entry| entry.path()).collect())
    };
    for path in entries(folder)? {
        refuse_link(&path)?;
        if path.is_dir() {
            entries(&path)?.iter().try_for_each(|path| refuse_link(path))?;
        }
    }
    Ok(())
}
