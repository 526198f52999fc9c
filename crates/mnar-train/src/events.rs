//! Scalars for TensorBoard: event files in its own format, written without its code.
//!
//! An event file is a sequence of TFRecords (length, checksum of the length, data, checksum of the data), each holding
//! one protobuf message `Event`. Only the few fields that scalars need are written here.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Writes one event file. When dropped, it writes what is left in its buffer but cannot report whether that failed:
/// call [`flush`](Self::flush) at the end, and whenever a viewer should be up to date.
#[derive(Debug)]
pub struct EventWriter {
    file: BufWriter<File>,
}

impl EventWriter {
    /// Starts a new event file in a folder, which is created if necessary.
    pub fn create(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut writer = Self { file: BufWriter::new(create_file(folder)?) };
        writer.record(&version(wall_time()))?;
        Ok(writer)
    }

    /// Starts another event file in the folder of an interrupted run; TensorBoard merges the files of a folder. From
    /// the earlier files, TensorBoard then discards every scalar of step `from_step` or later: pass the first step that
    /// will be written again, one after that of the checkpoint.
    pub fn append(folder: &Path, from_step: u64) -> io::Result<Self> {
        let mut writer = Self::create(folder)?;
        writer.record(&session_start(wall_time(), from_step))?;
        Ok(writer)
    }

    /// Writes the value of a curve at a step. Tags with the same prefix up to a `/` are drawn in one group.
    pub fn scalar(&mut self, tag: &str, step: u64, value: f32) -> io::Result<()> {
        self.record(&scalar(wall_time(), step, tag, value))
    }

    /// Passes everything written so far to the operating system.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    fn record(&mut self, data: &[u8]) -> io::Result<()> {
        self.file.write_all(&framed(data))
    }
}

/// Creates a file named after the time, by which TensorBoard orders the files of a folder. If that second or a later
/// one is taken (a run resumed at once, or after the clock was set back), the name uses the second after it.
fn create_file(folder: &Path) -> io::Result<File> {
    const PREFIX: &str = "events.out.tfevents.";
    let mut seconds = wall_time() as u64;
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let taken = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('.').next()?.parse::<u64>().ok());
        // 32 bits of seconds last until 2106; a larger number is not a time and must not push later names forward.
        if let Some(taken) = taken.filter(|taken| *taken < 1 << 32) {
            seconds = seconds.max(taken + 1);
        }
    }
    File::options().write(true).create_new(true).open(folder.join(format!("{PREFIX}{seconds}.mnar")))
}

/// Seconds since 1970; 0 on a machine whose clock is set to an earlier date.
fn wall_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |elapsed| elapsed.as_secs_f64())
}

/// A TFRecord.
fn framed(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut record = Vec::with_capacity(data.len() + 16);
    record.extend(length);
    record.extend(masked_checksum(&length).to_le_bytes());
    record.extend(data);
    record.extend(masked_checksum(data).to_le_bytes());
    record
}

/// CRC-32C, rotated and shifted by a constant as TFRecord requires, so that checksums of data that contain checksums
/// remain good ones.
fn masked_checksum(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// `Event { wall_time, file_version }`: the first record of every file.
fn version(wall_time: f64) -> Vec<u8> {
    let mut event = Message::default();
    event.double(1, wall_time);
    event.bytes(3, b"brain.Event:2");
    event.0
}

/// `Event { wall_time, step, session_log: { status: START } }`: what follows replaces earlier events from `step` on.
fn session_start(wall_time: f64, step: u64) -> Vec<u8> {
    let mut session_log = Message::default();
    session_log.integer(1, 1);
    let mut event = Message::default();
    event.double(1, wall_time);
    event.integer(2, step);
    event.bytes(7, &session_log.0);
    event.0
}

/// `Event { wall_time, step, summary: { value: [{ tag, simple_value }] } }`.
fn scalar(wall_time: f64, step: u64, tag: &str, value: f32) -> Vec<u8> {
    let mut entry = Message::default();
    entry.bytes(1, tag.as_bytes());
    entry.float(2, value);
    let mut summary = Message::default();
    summary.bytes(1, &entry.0);
    let mut event = Message::default();
    event.double(1, wall_time);
    event.integer(2, step);
    event.bytes(5, &summary.0);
    event.0
}

/// A protobuf message under construction; fields must be added in the order of their numbers.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    /// Field number and wire type: 0 variable-length integer, 1 eight bytes, 2 length and bytes, 5 four bytes.
    fn key(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Zero is the default and is left out, as other writers do.
    fn integer(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.key(field, 0);
            self.varint(value);
        }
    }

    fn double(&mut self, field: u64, value: f64) {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
    }

    /// Written even if zero: it is one of several kinds of value, and its presence selects the kind.
    fn float(&mut self, field: u64, value: f32) {
        self.key(field, 5);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.key(field, 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// The data of every record in a file, after verifying lengths and checksums.
    fn read_records(path: &Path) -> Vec<Vec<u8>> {
        let bytes = fs::read(path).expect("the file just written");
        let mut rest = &bytes[..];
        let mut take = |n: usize| {
            let (taken, left) = rest.split_at(n);
            rest = left;
            (taken.to_vec(), left.is_empty())
        };
        let checksum = |bytes: Vec<u8>| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        let mut records = vec![];
        loop {
            let (length, _) = take(8);
            assert_eq!(checksum(take(4).0), masked_checksum(&length));
            let (data, _) = take(u64::from_le_bytes(length.try_into().expect("eight bytes")) as usize);
            let (found, at_end) = take(4);
            assert_eq!(checksum(found), masked_checksum(&data));
            records.push(data);
            if at_end {
                return records;
            }
        }
    }

    fn event_files(folder: &Path) -> Vec<PathBuf> {
        let mut files: Vec<_> =
            fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
        files.sort();
        files
    }

    /// The record without the nine bytes of field 1, the time of writing.
    fn after_time(record: &[u8]) -> &[u8] {
        assert_eq!(record[0], 1 << 3 | 1);
        &record[9..]
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    // From tensorboard 2.21 (python):
    //   e = event_pb2.Event(wall_time=1700000000.25, step=300)
    //   v = e.summary.value.add(); v.tag = "loss/train"; v.simple_value = 0.75
    //   d = e.SerializeToString(); n = struct.pack("<Q", len(d))
    //   n + struct.pack("<I", masked_crc32c(n)) + d + struct.pack("<I", masked_crc32c(d))
    // and e.session_log.status = 1 in place of the summary.
    #[test]
    fn bytes_are_those_of_tensorboard() {
        assert_eq!(
            hex(&framed(&scalar(1_700_000_000.25, 300, "loss/train", 0.75))),
            "2100000000000000017becf60900001040fc54d94110ac022a130a110a0a6c6f73732f747261696e150000403f5a8410e0"
        );
        assert_eq!(hex(&session_start(1_700_000_000.25, 300)), "0900001040fc54d94110ac023a020801");
    }

    #[test]
    fn writes_a_version_and_the_scalars() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let folder = folder.path().join("made/on/the/way");
        let mut writer = EventWriter::create(&folder).expect("a new file");
        writer.scalar("loss/train", 300, 0.75).expect("written");
        writer.flush().expect("flushed");
        let [file] = &event_files(&folder)[..] else { panic!("one file") };
        let records = read_records(file);
        assert_eq!(records.len(), 2);
        assert_eq!(after_time(&records[0]), b"\x1a\x0dbrain.Event:2");
        assert_eq!(after_time(&records[1]), after_time(&scalar(0.0, 300, "loss/train", 0.75)));
    }

    #[test]
    fn a_resumed_run_writes_a_file_that_sorts_after_the_first() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        EventWriter::create(folder.path()).expect("a new file").scalar("loss", 7, 0.5).expect("written");
        for _ in 0..3 {
            EventWriter::append(folder.path(), 5).expect("another file").scalar("loss", 5, 0.25).expect("written");
        }
        let files = event_files(folder.path());
        assert_eq!(files.len(), 4);
        assert_eq!(after_time(&read_records(&files[0])[1]), after_time(&scalar(0.0, 7, "loss", 0.5)));
        for file in &files[1..] {
            let records = read_records(file);
            // Step 5; session_log of two bytes, status START.
            assert_eq!(after_time(&records[1]), b"\x10\x05\x3a\x02\x08\x01");
            assert_eq!(after_time(&records[2]), after_time(&scalar(0.0, 5, "loss", 0.25)));
        }
    }
}
