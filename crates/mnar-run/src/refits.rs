//! The bootstrap's refitted classifiers in the run folder, so that a run that was killed does not refit them again.
//!
//! What is kept are their predictions, in files that are written at most once per checkpoint interval: a bootstrap that takes
//! less time than that writes nothing unless it is cancelled.

use crate::error::RunError;
use crate::folder::RunFolder;
use mnar::analysis::Evidence;
use mnar::progress::{EpochRecord, Progress, Stage};
use mnar::{Posteriors, Remedy};
use mnar_data::{AtomicFile, Checksum, Sum};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Up to this many bytes are kept in files. A million rows of two classes have 16 MB per replicate.
const MOST: usize = 1 << 30;
/// Parts that wait to be written take at most about this much memory.
const MOST_WAITING: usize = 64 << 20;

/// Passes everything on, and keeps parts of the work in the run folder.
pub(crate) struct KeptRefits<'a> {
    inner: &'a dyn Progress,
    folder: &'a RunFolder,
    fingerprint: Sum,
    state: Mutex<State>,
}

struct State {
    /// Where to find what was written.
    written: HashMap<String, Place>,
    /// What is to be written.
    waiting: Vec<(String, Vec<u8>)>,
    files: usize,
    bytes: usize,
    last: Instant,
    /// Whether more is kept: not after a file could not be written.
    open: bool,
}

/// A part in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    file: usize,
    offset: usize,
    length: usize,
}

impl<'a> KeptRefits<'a> {
    /// Reads what an interrupted run with the same evidence left. A file that is damaged or of another run is refused.
    pub(crate) fn open(
        folder: &'a RunFolder,
        evidence: &Evidence<'_>,
        seed: u64,
        inner: &'a dyn Progress,
    ) -> Result<Self, RunError> {
        let fingerprint = fingerprint(evidence, seed);
        let (mut written, mut files, mut bytes) = (HashMap::new(), 0, 0);
        loop {
            let path = path(folder, files);
            if !path.exists() {
                break;
            }
            let content = std::fs::read(&path).map_err(RunError::io("read", &path))?;
            bytes += content.len();
            for (name, offset, length) in parts(&content, fingerprint, &path)? {
                written.insert(name, Place { file: files, offset, length });
            }
            files += 1;
        }
        let state = State { written, waiting: Vec::new(), files, bytes, last: Instant::now(), open: true };
        Ok(Self { inner, folder, fingerprint, state: Mutex::new(state) })
    }

    /// Writes what waits. The caller does so when the work was cancelled.
    pub(crate) fn flush(&self) {
        self.write(&mut self.state());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, state: &mut State) {
        let waiting = std::mem::take(&mut state.waiting);
        state.last = Instant::now();
        if waiting.is_empty() {
            return;
        }
        let (content, places) = packed(&waiting, self.fingerprint, state.files);
        match write_file(&path(self.folder, state.files), &content) {
            Ok(()) => {
                state.written.extend(places);
                state.bytes += content.len();
                state.files += 1;
            }
            // Without them a run that is killed takes longer to resume, which is no reason to end it.
            Err(error) => {
                self.inner.warn(&format!("refitted classifiers are not kept: {error}"));
                state.open = false;
            }
        }
    }
}

fn path(folder: &RunFolder, file: usize) -> PathBuf {
    folder.checkpoint(&format!("{}-{file}", Stage::Bootstrap.name())).path
}

fn write_file(path: &Path, content: &[u8]) -> Result<(), RunError> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(content).map_err(RunError::io("written", path))?;
    Ok(file.commit()?)
}

/// What the parts depend on besides the data and the options, which the manifest checks: who made the predictions.
fn fingerprint(evidence: &Evidence<'_>, seed: u64) -> Sum {
    let posteriors: &Posteriors = &evidence.posteriors;
    let mut checksum = Checksum::default();
    checksum.add_text(env!("CARGO_PKG_VERSION"));
    checksum.add_text(evidence.features.map_or("", |features| features.classifier.name()));
    checksum.add(&seed.to_le_bytes());
    checksum.add_count(evidence.plan.n_folds());
    checksum.add_count(posteriors.n_classes());
    for class in evidence.labels.as_slice() {
        checksum.add(&class.map_or(-1, |class| i64::from(class.0)).to_le_bytes());
    }
    for k in 0..posteriors.n_classes() {
        posteriors.column(k).iter().for_each(|p| checksum.add(&p.to_le_bytes()));
    }
    checksum.finish()
}

/// A file: the fingerprint, the parts, each with its name, and a checksum of all that.
fn packed(parts: &[(String, Vec<u8>)], fingerprint: Sum, file: usize) -> (Vec<u8>, Vec<(String, Place)>) {
    let mut content = fingerprint.to_bytes().to_vec();
    let mut places = Vec::with_capacity(parts.len());
    for (name, bytes) in parts {
        content.extend((name.len() as u64).to_le_bytes());
        content.extend((bytes.len() as u64).to_le_bytes());
        content.extend(name.as_bytes());
        places.push((name.clone(), Place { file, offset: content.len(), length: bytes.len() }));
        content.extend(bytes);
    }
    content.extend(Checksum::of(&content).to_bytes());
    (content, places)
}

/// The name, the offset and the length of every part of a file.
fn parts(content: &[u8], fingerprint: Sum, path: &Path) -> Result<Vec<(String, usize, usize)>, RunError> {
    let refused = |why| RunError::ChangedFile { path: path.to_owned(), why };
    let damaged = || refused("it is damaged: its checksum is wrong; remove it to do its work again");
    let (body, sum) = content.split_last_chunk::<{ Sum::LEN }>().ok_or_else(damaged)?;
    if Checksum::of(body).to_bytes() != *sum {
        return Err(damaged());
    }
    let (of, mut rest) = body.split_first_chunk::<{ Sum::LEN }>().ok_or_else(damaged)?;
    if *of != fingerprint.to_bytes() {
        return Err(refused("it belongs to a run with other data or settings; remove it to do its work again"));
    }
    let mut found = Vec::new();
    while !rest.is_empty() {
        let part = |input: &mut &[u8]| {
            let (name, bytes) = (length(input)?, length(input)?);
            let (name, after) = input.split_at_checked(name)?;
            let offset = body.len() - after.len();
            *input = after.get(bytes..)?;
            Some((std::str::from_utf8(name).ok()?.to_owned(), offset, bytes))
        };
        found.push(part(&mut rest).ok_or_else(|| refused("it is not a checkpoint; remove it to do its work again"))?);
    }
    Ok(found)
}

fn length(input: &mut &[u8]) -> Option<usize> {
    let (length, rest) = input.split_first_chunk()?;
    *input = rest;
    usize::try_from(u64::from_le_bytes(*length)).ok()
}

impl Progress for KeptRefits<'_> {
    fn keep(&self, name: &str, bytes: &dyn Fn() -> Vec<u8>) {
        let mut state = self.state();
        let waiting: usize = state.waiting.iter().map(|(_, bytes)| bytes.len()).sum();
        if !state.open || state.bytes + waiting >= MOST {
            return;
        }
        let bytes = bytes();
        let full = waiting + bytes.len() >= MOST_WAITING;
        state.waiting.push((name.to_owned(), bytes));
        if full || state.last.elapsed() >= self.folder.checkpoint_every() {
            self.write(&mut state);
        }
    }

    fn kept(&self, name: &str) -> Option<Vec<u8>> {
        let Place { file, offset, length } = *self.state().written.get(name)?;
        let mut bytes = vec![0; length];
        let mut file = File::open(path(self.folder, file)).ok()?;
        file.seek(SeekFrom::Start(offset as u64)).ok()?;
        file.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }

    fn begin(&self, stage: Stage, steps: u64, done: u64) {
        self.inner.begin(stage, steps, done);
    }

    fn step(&self) {
        self.inner.step();
    }

    fn epoch(&self, record: &EpochRecord) {
        self.inner.epoch(record);
    }

    fn end(&self) {
        self.inner.end();
    }

    fn warn(&self, message: &str) {
        self.inner.warn(message);
    }

    fn suggest(&self, remedy: &Remedy) {
        self.inner.suggest(remedy);
    }

    fn cancelled(&self) -> bool {
        self.inner.cancelled()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_and_damage_does_not() {
        let of = Checksum::of(b"this run");
        let given = [("refit 0".to_owned(), vec![1, 2, 3]), ("refit 7".to_owned(), Vec::new())];
        let (content, places) = packed(&given, of, 4);
        let path = Path::new("bootstrap-4.checkpoint");
        let found = parts(&content, of, path).unwrap();
        for (((name, bytes), (found, offset, length)), (placed, place)) in given.iter().zip(&found).zip(&places) {
            assert_eq!((name, name), (found, placed));
            assert_eq!(&content[*offset..offset + length], bytes);
            assert_eq!(*place, Place { file: 4, offset: *offset, length: *length });
        }
        let why = |content: &[u8], of| parts(content, of, path).unwrap_err().to_string();
        assert!(why(&content, Checksum::of(b"another")).contains("other data or settings"));
        for bit in 0..8 * content.len() {
            let mut flipped = content.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(why(&flipped, of).contains("damaged"), "bit {bit}");
        }
        assert!(why(&[], of).contains("damaged"));
        // Lengths that were made up, with a checksum to match.
        let mut made_up = of.to_bytes().to_vec();
        made_up.extend([u8::MAX; 20]);
        made_up.extend(Checksum::of(&made_up).to_bytes());
        assert!(why(&made_up, of).contains("not a checkpoint"));
    }
}
