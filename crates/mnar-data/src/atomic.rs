//! Files that appear whole or not at all.

use crate::error::{DataError, show};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek as _, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file written under a temporary name beside its place, and moved there by [`commit`](Self::commit).
/// Dropped before that, it leaves nothing behind, and what was there stays as it was. The name `-` stands for standard
/// output, which receives everything at the commit (a file of this name is `./-`).
///
/// ```
/// use std::io::Write;
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("report.json");
/// let mut file = mnar_data::AtomicFile::create(&path)?;
/// file.write_all(b"{}")?;
/// assert!(!path.exists());
/// file.commit()?;
/// assert_eq!(std::fs::read(&path)?, b"{}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AtomicFile {
    shown: String,
    to: Destination,
}

enum Destination {
    Renamed {
        temporary: BufWriter<NamedTempFile>,
        target: PathBuf,
    },
    /// A device or pipe, such as /dev/stdout: it must not be replaced by a file.
    Direct(BufWriter<File>),
    /// Standard output, which gets what this nameless file holds.
    Stdout(BufWriter<File>),
}

/// What the names of unfinished files start and end with.
const PARTIAL: (&str, &str) = (".mnar-", ".partial");

/// Removes unfinished files that killed processes left in a folder, and says how many there were. A process that is still
/// writing into the folder would lose its file.
pub fn sweep_partial(folder: &Path) -> io::Result<usize> {
    let mut swept = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if is_partial(&entry.file_name()) && entry.file_type()?.is_file() {
            fs::remove_file(entry.path())?;
            swept += 1;
        }
    }
    Ok(swept)
}

/// Whether this is the name of an unfinished file.
pub fn is_partial(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(PARTIAL.0) && name.ends_with(PARTIAL.1))
}

/// Large enough that a table is not written in a million small calls.
const BUFFER: usize = 1 << 18;

impl AtomicFile {
    /// Starts a file that will be at `path`.
    pub fn create(path: &Path) -> Result<Self, DataError> {
        let shown = if is_stdout(path) { "standard output".to_owned() } else { show(path) };
        let to = Destination::open(path).map_err(|error| DataError::io(&shown, "written", error))?;
        Ok(Self { shown, to })
    }

    /// Writes a text that appears whole or not at all.
    pub fn write_text(path: &Path, text: &str) -> Result<(), DataError> {
        let mut file = Self::create(path)?;
        file.write_all(text.as_bytes()).map_err(|error| DataError::io(&file.shown, "written", error))?;
        file.commit()
    }

    /// Puts the file in its place.
    pub fn commit(self) -> Result<(), DataError> {
        self.to.commit().map_err(|error| DataError::io(&self.shown, "written", error))
    }
}

/// Whether a name to write to stands for standard output.
pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

impl Destination {
    fn open(path: &Path) -> io::Result<Self> {
        if is_stdout(path) {
            return Ok(Self::Stdout(BufWriter::with_capacity(BUFFER, tempfile::tempfile()?)));
        }
        let existing = fs::metadata(path).ok();
        if existing.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
        }
        if existing.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            return Ok(Self::Direct(BufWriter::with_capacity(BUFFER, File::create(path)?)));
        }
        // A link is kept, and what it points to replaced.
        let target = if existing.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            let what = format!("there is no folder `{}`; create it first", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, what));
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(PARTIAL.0).suffix(PARTIAL.1);
        // Temporary files are private (0600); with 0666 the umask decides, as it does for `File::create`.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let temporary = builder.tempfile_in(folder)?;
        if let Some(existing) = existing {
            // Not worth failing for: another user's file may be writable without its mode being ours to set.
            let _ = temporary.as_file().set_permissions(existing.permissions());
        }
        Ok(Self::Renamed { temporary: BufWriter::with_capacity(BUFFER, temporary), target })
    }

    fn commit(self) -> io::Result<()> {
        match self {
            Self::Renamed { temporary, target } => {
                let temporary = temporary.into_inner().map_err(io::IntoInnerError::into_error)?;
                // Renaming before the bytes are down could leave an empty file after a power cut.
                temporary.as_file().sync_data()?;
                temporary.persist(target).map_err(|error| error.error)?;
                Ok(())
            }
            Self::Direct(mut file) => file.flush(),
            Self::Stdout(held) => {
                let mut held = held.into_inner().map_err(io::IntoInnerError::into_error)?;
                held.rewind()?;
                let mut out = io::stdout().lock();
                match io::copy(&mut held, &mut out).and_then(|_| out.flush()) {
                    // The reader has seen enough.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                    written => written,
                }
            }
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            Destination::Renamed { temporary, .. } => temporary.write(buffer),
            Destination::Direct(file) | Destination::Stdout(file) => file.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            Destination::Renamed { temporary, .. } => temporary.flush(),
            Destination::Direct(file) | Destination::Stdout(file) => file.flush(),
        }
    }
}

/// An [`AtomicFile`] of text, gzipped where its name ends in `.gz`.
pub(crate) enum TextFile {
    Plain(AtomicFile),
    Gzipped(Box<GzEncoder<AtomicFile>>),
}

impl TextFile {
    pub(crate) fn create(path: &Path) -> Result<Self, DataError> {
        let file = AtomicFile::create(path)?;
        let gzipped = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
        Ok(if gzipped {
            Self::Gzipped(Box::new(GzEncoder::new(file, Compression::default())))
        } else {
            Self::Plain(file)
        })
    }

    pub(crate) fn commit(self) -> Result<(), DataError> {
        match self {
            Self::Plain(file) => file.commit(),
            Self::Gzipped(encoder) => {
                let shown = encoder.get_ref().shown.clone();
                encoder.finish().map_err(|error| DataError::io(&shown, "written", error))?.commit()
            }
        }
    }
}

impl Write for TextFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(buffer),
            Self::Gzipped(encoder) => encoder.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzipped(encoder) => encoder.flush(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::error::Error;

    #[test]
    fn a_dropped_file_leaves_nothing_and_a_committed_one_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        fs::write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_kill_leaves_is_swept_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = AtomicFile::create(&folder.path().join("out.csv")).unwrap();
        file.write_all(b"half").unwrap();
        // As if the process had been killed.
        std::mem::forget(file);
        for other in ["out.csv", ".mnar-notes", "x.partial"] {
            fs::write(folder.path().join(other), "kept").unwrap();
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
        assert_eq!(sweep_partial(folder.path()).unwrap(), 1);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
        assert_eq!(sweep_partial(folder.path()).unwrap(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none").join("out.csv");
        let error = AtomicFile::create(&path).err().unwrap();
        assert_eq!(error.to_string(), format!("{}: cannot be written", path.display()));
        assert!(error.source().unwrap().to_string().starts_with("there is no folder"), "{error}");
        let error = AtomicFile::create(folder.path()).err().unwrap();
        assert_eq!(error.source().unwrap().to_string(), "it is a folder");
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_those_of_an_ordinary_file() {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = tempfile::tempdir().unwrap();
        let (ours, plain) = (folder.path().join("ours"), folder.path().join("plain"));
        AtomicFile::create(&ours).unwrap().commit().unwrap();
        File::create(&plain).unwrap();
        assert_eq!(mode(&ours), mode(&plain));
        // A file that was there keeps its own.
        fs::set_permissions(&ours, fs::Permissions::from_mode(0o640)).unwrap();
        AtomicFile::create(&ours).unwrap().commit().unwrap();
        assert_eq!(mode(&ours), 0o640);
        // A link stays a link.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&plain, &link).unwrap();
        let mut file = AtomicFile::create(&link).unwrap();
        file.write_all(b"through").unwrap();
        file.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&plain).unwrap(), b"through");
        // A device is written to.
        let mut file = AtomicFile::create(Path::new("/dev/null")).unwrap();
        file.write_all(b"gone").unwrap();
        file.commit().unwrap();
    }
}
