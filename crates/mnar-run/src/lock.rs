//! One process per run folder.

use crate::error::{FolderState, RunError};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The file that is locked.
pub(crate) const LOCK: &str = ".mnar-lock";

/// A folder that no other process can lock until this is dropped, or until this process ends in whatever way.
#[derive(Debug)]
pub(crate) struct FolderLock {
    path: PathBuf,
    /// Holds the lock. `None` where the file system has no locks.
    file: Option<File>,
}

impl FolderLock {
    /// Locks a folder that exists.
    pub(crate) fn take(folder: &Path) -> Result<Self, RunError> {
        let path = folder.join(LOCK);
        loop {
            let file = open(&path).map_err(RunError::io("locked", folder))?;
            match file.try_lock() {
                // Another run may have ended, and removed the file, after it was opened here: then that lock is worth nothing.
                Ok(()) if is_still_there(&file, &path) => return Ok(Self { path, file: Some(file) }),
                Ok(()) => continue,
                Err(TryLockError::WouldBlock) => return Err(RunError::folder(folder, FolderState::InUse)),
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(Self { path, file: None });
                }
                Err(TryLockError::Error(error)) => return Err(RunError::io("locked", folder)(error)),
            }
        }
    }

    /// Whether the folder is locked: some file systems have no locks.
    pub(crate) fn is_held(&self) -> bool {
        self.file.is_some()
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // While the lock is still held, so that nobody else's is removed. A file that stays is no harm.
        let _ = fs::remove_file(&self.path);
    }
}

/// Opens the file, but not through a link.
fn open(path: &Path) -> io::Result<File> {
    match File::options().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        opened => return opened,
    }
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{LOCK} in it is not a file; remove it")));
    }
    match File::options().write(true).open(path) {
        // The other run has just ended.
        Err(error) if error.kind() == io::ErrorKind::NotFound => open(path),
        opened => opened,
    }
}

#[cfg(unix)]
fn is_still_there(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(ours), Ok(there)) => identity(ours) == identity(there),
        _ => false,
    }
}

/// Elsewhere an open file cannot be replaced.
#[cfg(not(unix))]
fn is_still_there(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_waits_for_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let lock = FolderLock::take(folder.path()).unwrap();
        let error = FolderLock::take(folder.path()).unwrap_err();
        assert!(error.to_string().contains("is in use by another process"), "{error}");
        drop(lock);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        // What a killed process leaves is not a lock.
        fs::write(folder.path().join(LOCK), "").unwrap();
        drop(FolderLock::take(folder.path()).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("elsewhere", folder.path().join(LOCK)).unwrap();
        assert!(FolderLock::take(folder.path()).is_err());
        assert!(!folder.path().join("elsewhere").exists());
    }
}
