//! The course of a run as JSON lines: one object per line, readable while the run is in progress.

use mnar_data::AtomicFile;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A log of records, each of which holds its `step`. Every record has reached the operating system when
/// [`record`](Self::record) returns: a killed run loses none of them.
#[derive(Debug)]
pub struct MetricsLog {
    file: File,
    path: PathBuf,
    dropped: usize,
}

/// The one field that every record must hold; the others are up to the caller.
#[derive(Deserialize)]
struct Stamp {
    step: u64,
}

impl MetricsLog {
    /// Starts an empty log. An existing log is replaced.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::create(path)?, path: path.to_owned(), dropped: 0 })
    }

    /// Continues the log of a run that resumes after `step`, the step of its checkpoint. Later records are dropped,
    /// since the run will write them again, and so is a last line that was cut short when the run was killed:
    /// [`dropped`](Self::dropped) tells how many. The log is replaced as a whole, so it is never half written. If there
    /// is no log, an empty one is started.
    ///
    /// Fails on a line that is not a record and not the last one: the file is not a log of this program, or is damaged.
    pub fn resume(path: &Path, step: u64) -> io::Result<Self> {
        let content = match fs::read(path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::create(path),
            Err(error) => return Err(error),
        };
        let (kept, dropped) = keep_until(&content, step, path)?;
        if kept != content {
            let mut file = AtomicFile::create(path).map_err(io::Error::other)?;
            file.write_all(&kept)?;
            file.commit().map_err(io::Error::other)?;
        }
        let file = File::options().append(true).open(path)?;
        Ok(Self { file, path: path.to_owned(), dropped })
    }

    /// Appends a record. It must serialise to an object with a field `step`, a non-negative integer; numbers that are
    /// not finite are written as `null`.
    pub fn record<T: Serialize>(&mut self, record: &T) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        // Rejected now, rather than when the run is resumed and its log cannot be read.
        parse(&line).map_err(|error| {
            let text = String::from_utf8_lossy(&line);
            invalid(io::ErrorKind::InvalidInput, &self.path, format!("a record needs a `step` ({error}): {text}"))
        })?;
        line.push(b'\n');
        // A single call that includes the newline: a kill between two calls would leave a partial line.
        self.file.write_all(&line)
    }

    /// How many lines were dropped when the log was resumed.
    pub fn dropped(&self) -> usize {
        self.dropped
    }
}

/// The lines up to a step, and the number of other lines.
fn keep_until(content: &[u8], step: u64, path: &Path) -> io::Result<(Vec<u8>, usize)> {
    let mut kept = Vec::with_capacity(content.len());
    let mut dropped = 0;
    let mut lines = content.split_inclusive(|byte| *byte == b'\n').enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let line = line.trim_ascii_end();
        match parse(line) {
            Ok(stamp) if stamp.step <= step => {
                kept.extend(line);
                kept.push(b'\n');
            }
            Ok(_) => dropped += 1,
            // Only the last line can be cut short. Its end may be missing, or zeros after a power failure.
            Err(_) if lines.peek().is_none() => dropped += 1,
            Err(error) => {
                let what = format!(
                    "line {} is not a record ({error}); remove the line, or move the file away to start a new log",
                    number + 1
                );
                return Err(invalid(io::ErrorKind::InvalidData, path, what));
            }
        }
    }
    Ok((kept, dropped))
}

/// Parses a record. An object ends with its closing brace, so a partial line cannot pass for a record.
fn parse(line: &[u8]) -> serde_json::Result<Stamp> {
    // Serde would also accept an array of one number as the fields in order; only a map is a record.
    if line.first() != Some(&b'{') {
        return Err(serde::de::Error::custom("not an object"));
    }
    serde_json::from_slice(line)
}

fn invalid(kind: io::ErrorKind, path: &Path, what: String) -> io::Error {
    io::Error::new(kind, format!("{}: {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Row {
        step: u64,
        epoch: f64,
        seconds: f64,
        loss: f32,
    }

    fn row(step: u64) -> Row {
        Row { step, epoch: step as f64 / 4.0, seconds: 1.5, loss: 0.25 }
    }

    /// A log of steps 1 to 4, and the folder that holds it.
    fn log_of_four() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("metrics.jsonl");
        let mut log = MetricsLog::create(&path).expect("a new log");
        for step in 1..=4 {
            log.record(&row(step)).expect("written");
        }
        (folder, path)
    }

    fn steps(path: &Path) -> Vec<u64> {
        let text = fs::read_to_string(path).expect("a log");
        assert!(text.is_empty() || text.ends_with('\n'));
        text.lines().map(|line| serde_json::from_str::<Stamp>(line).expect("a record").step).collect()
    }

    #[test]
    fn a_record_is_a_line_that_is_there_at_once() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("metrics.jsonl");
        let mut log = MetricsLog::create(&path).expect("a new log");
        log.record(&Row { loss: f32::NAN, ..row(2) }).expect("written");
        let text = fs::read_to_string(&path).expect("a log");
        assert_eq!(text, "{\"step\":2,\"epoch\":0.5,\"seconds\":1.5,\"loss\":null}\n");
    }

    #[test]
    fn creating_replaces_an_old_log() {
        let (_folder, path) = log_of_four();
        MetricsLog::create(&path).expect("a new log");
        assert!(steps(&path).is_empty());
    }

    #[test]
    fn resuming_drops_what_will_be_written_again() {
        let (_folder, path) = log_of_four();
        let mut log = MetricsLog::resume(&path, 2).expect("resumed");
        assert_eq!((steps(&path), log.dropped()), (vec![1, 2], 2));
        log.record(&row(3)).expect("written");
        assert_eq!(steps(&path), [1, 2, 3]);
    }

    #[test]
    fn a_run_killed_anywhere_in_its_last_line_resumes_with_the_lines_before() {
        let (_folder, path) = log_of_four();
        let whole = fs::read(&path).expect("a log");
        let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').expect("four lines") + 1;
        for end in last..=whole.len() {
            fs::write(&path, &whole[..end]).expect("torn");
            let mut log = MetricsLog::resume(&path, 100).expect("resumed");
            // A line that lacks only its newline is kept and completed.
            let complete = end + 1 >= whole.len();
            assert_eq!(log.dropped(), usize::from(!complete && end > last));
            log.record(&row(9)).expect("written");
            assert_eq!(steps(&path), if complete { vec![1, 2, 3, 4, 9] } else { vec![1, 2, 3, 9] });
        }
    }

    #[test]
    fn zeros_after_a_power_cut_are_a_torn_line() {
        let (_folder, path) = log_of_four();
        let mut bytes = fs::read(&path).expect("a log");
        bytes.extend([0; 64]);
        fs::write(&path, bytes).expect("torn");
        assert_eq!(MetricsLog::resume(&path, 4).expect("resumed").dropped(), 1);
        assert_eq!(steps(&path), [1, 2, 3, 4]);
    }

    #[test]
    fn damage_before_the_last_line_is_an_error_and_leaves_the_file_alone() {
        let (_folder, path) = log_of_four();
        let text = fs::read_to_string(&path).expect("a log").replacen("{\"step\":2,", "{\"step\":", 1);
        fs::write(&path, &text).expect("damaged");
        let error = MetricsLog::resume(&path, 1).expect_err("line 2 is not a record");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().contains("line 2 is not a record"), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("still there"), text);
    }

    #[test]
    fn a_missing_log_is_started() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("metrics.jsonl");
        MetricsLog::resume(&path, 7).expect("a new log").record(&row(8)).expect("written");
        assert_eq!(steps(&path), [8]);
    }

    #[test]
    fn a_record_without_a_step_is_refused() {
        let (_folder, path) = log_of_four();
        let mut log = MetricsLog::resume(&path, 4).expect("resumed");
        for record in [serde_json::json!({"epoch": 1}), serde_json::json!([5]), serde_json::json!({"step": -1})] {
            let error = log.record(&record).expect_err("no step");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
        assert_eq!(steps(&path), [1, 2, 3, 4]);
    }
}
