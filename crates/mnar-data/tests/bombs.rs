//! Small files that hold, or claim to hold, far more than there is memory for: refused by name, before memory is taken.
#![allow(clippy::unwrap_used)]

mod common;

use common::parquet::Values::{F64, Lists, Text};
use common::parquet::{Layout, parquet_laid_out};
use common::seeds::{gzipped, idx, npz, pixels, rezipped, zipped};
use common::workbook::workbook;
use common::{file, folder, labelled, npy};
use mnar::Remedy;
use mnar_data::{
    DataError, Memory, ParquetPredictions, PredictionColumns, ReadOptions, Source, TextTable, read_dataset,
    read_labels, read_predictions, survey,
};
use std::path::Path;

/// Data may take 4 MB.
const LIMIT: Memory = Memory::bytes(16_000_000);

/// The error of a file that is too large: it says so, and what would help.
fn too_large(path: &Path, options: &ReadOptions) -> String {
    let source = Source::from(path).with_memory(LIMIT);
    let error = read_dataset(source, options).unwrap_err();
    assert!(matches!(error, DataError::Memory { .. }), "{error:?}");
    assert_eq!(error.remedies(), [Remedy::unset("memory")]);
    // Looking at the data takes as much memory as reading them.
    assert!(matches!(survey(source, options), Err(DataError::Memory { .. })));
    let said = error.to_string();
    assert!(
        said.contains("of memory or more, but with 16.0 MB in all data may take 4.0 MB")
            && said.starts_with(&*path.to_string_lossy()),
        "{said}"
    );
    said
}

#[test]
fn arrays_and_images() {
    let folder = folder();
    let none = ReadOptions::default();
    // 9 MB of zeros are 9 kB in an archive.
    let images = npy("|u1", "(90, 400, 250)", &vec![0; 9_000_000]);
    let archive = file(&folder, "t.npz", npz(&images));
    assert!(archive.metadata().unwrap().len() < 100_000);
    assert!(too_large(&archive, &none).contains("the images take 9.0 MB"));
    // What is claimed and not there is refused as well.
    let claimed = file(&folder, "c.npz", npz(&npy("|u1", "(90000000, 400, 250)", &[0; 10])));
    assert!(too_large(&claimed, &none).contains("TB"));
    let features = file(&folder, "f.npz", npz(&npy("<f8", "(4, 900000000)", &[0; 10])));
    assert!(too_large(&features, &none).contains("the features take 230.4 GB"));
    let gz = file(&folder, "train-images-idx3-ubyte.gz", gzipped(idx(0x0803, &[90, 400, 250], &vec![0; 9_000_000])));
    assert!(too_large(&gz, &none).contains("images take 9.0 MB"));
}

#[test]
fn pictures() {
    let folder = folder();
    // 3 MB of pixels each.
    for name in ["a/1.png", "a/2.png", "b/3.png"] {
        file(&folder, &format!("photos/{name}"), pixels(1000, 1000, &[7, 8, 9].repeat(1_000_000)));
    }
    let photos = folder.path().join("photos");
    let read = |memory| read_dataset(Source::from(&photos).with_memory(memory), &ReadOptions::default());
    assert!(matches!(read(LIMIT), Err(DataError::Memory { needed: 12_000_000, .. })));
    // One fits, all three do not.
    let limit = Memory::bytes(56_000_000);
    assert!(matches!(read(limit), Err(DataError::Memory { what: "the images", .. })));
    assert_eq!(read(Memory::default()).unwrap().inputs.len(), 3);
    let small = ReadOptions { resize: Some((10, 10)), ..ReadOptions::default() };
    assert_eq!(read_dataset(Source::from(&photos).with_memory(limit), &small).unwrap().inputs.len(), 3);
    // A hundred of the same picture are known to be too many after the first.
    for k in 0..100 {
        file(&folder, &format!("many/a/{k}.png"), pixels(200, 200, &[7, 8, 9].repeat(40_000)));
    }
    assert!(too_large(&folder.path().join("many"), &ReadOptions::default()).contains("the images take 12.2 MB"));
}

/// A Parquet file of a few kilobytes with two million rows.
fn many_rows() -> Vec<u8> {
    let rows = 2_000_000;
    let label = Text((0..rows).map(|i| [None, None, Some("a"), Some("b")][i % 4]).collect());
    let columns = [label, F64(vec![Some(0.5); rows]), F64(vec![Some(0.5); rows])];
    let schema = "optional binary label (STRING); optional double p_a; optional double p_b;";
    parquet_laid_out(schema, &columns, &Layout { page_rows: 1 << 20, ..Layout::default() })
}

#[test]
fn parquet_counts_rows_and_not_bytes() {
    let folder = folder();
    let path = file(&folder, "t.parquet", many_rows());
    assert!(path.metadata().unwrap().len() < 1_500_000);
    let columns = PredictionColumns::new("label");
    assert_eq!(ParquetPredictions::claimed_bytes(&path, &columns), Some(32_000_000));
    let source = Source::from(&path).with_memory(LIMIT);
    let error = read_predictions(source, &columns).unwrap_err();
    assert!(matches!(error, DataError::Memory { what: "the probabilities", .. }), "{error}");
    assert!(too_large(&path, &labelled("label")).contains("the columns of the table"));
    assert!(matches!(read_labels(source, &labelled("label")), Err(DataError::Memory { .. })));
    // Streamed, it fits.
    assert_eq!(ParquetPredictions::open(source, &columns).unwrap().rows(), 2_000_000);
}

#[test]
fn parquet_pages_are_measured_before_they_are_unpacked() {
    let folder = folder();
    // One page of 10 MB, of which compression leaves 10 kB.
    let long: &'static str = Box::leak("x".repeat(10_000_000).into_boxed_str());
    let compression = parquet::basic::Compression::ZSTD(Default::default());
    let layout = Layout { compression, dictionary: false, ..Layout::default() };
    let columns = [Text(vec![Some("a"), None]), Text(vec![Some(long), None])];
    let schema = "optional binary label (STRING); optional binary x (STRING);";
    let path = file(&folder, "t.parquet", parquet_laid_out(schema, &columns, &layout));
    assert!(path.metadata().unwrap().len() < 100_000);
    assert!(too_large(&path, &labelled("label")).contains("the pages of its columns"));
    // One row with a list of a million numbers.
    let columns = [Text(vec![Some("a"), None]), Lists(vec![Some(vec![Some(1.0); 1_000_000]), None])];
    let schema =
        "optional binary label (STRING); optional group e (LIST) { repeated group list { optional float element; } }";
    let path = file(&folder, "l.parquet", parquet_laid_out(schema, &columns, &Layout::default()));
    let error = read_dataset(Source::from(&path).with_memory(LIMIT), &labelled("label")).unwrap_err();
    assert!(common::chain(&error).contains("memory"), "{}", common::chain(&error));
}

#[test]
fn texts() {
    let folder = folder();
    let rows = |row: &str, count| format!("a,b,label\n{}", row.repeat(count)).into_bytes();
    let path = file(&folder, "t.csv.gz", gzipped(rows("1,2,x\n", 2_000_000)));
    assert!(path.metadata().unwrap().len() < 200_000);
    assert!(too_large(&path, &labelled("label")).contains("the columns of the table"));
    let path = file(&folder, "line.csv.gz", gzipped([&b"a,label\n"[..], &vec![b'x'; 20_000_000]].concat()));
    too_large(&path, &labelled("label"));
    let path =
        file(&folder, "wide.csv", ["label".to_owned(), (0..50_000).map(|k| format!(",c{k}")).collect()].concat());
    assert!(too_large(&path, &labelled("label")).contains("the columns of the header"));
    // As many names as rows: a table of 40000 x 40000 cells from 700 kB.
    let names: String = (0..40_000).map(|k| format!("{{\"c{k}\":1}}\n")).collect();
    too_large(&file(&folder, "t.jsonl", names), &labelled("label"));
    let many = "{\"label\":\"a\",\"x\":[1,1,1,1,1,1,1,1,1,1]}\n".repeat(100_000);
    too_large(&file(&folder, "list.jsonl.gz", gzipped(many.into_bytes())), &labelled("label"));
}

#[cfg(feature = "excel")]
#[test]
fn spreadsheets() {
    let folder = folder();
    let book = workbook(&[("Data", "a|label\n1|x\n2|")]);
    let spaces = vec![b' '; 30_000_000];
    let path = file(&folder, "t.xlsx", rezipped(&book, "xl/worksheets/s0.xml", &spaces));
    assert!(path.metadata().unwrap().len() < 200_000);
    assert!(too_large(&path, &labelled("label")).contains("the parts of the spreadsheet"));
    let path = file(&folder, "t.ods", zipped(&[("content.xml", &spaces)]));
    too_large(&path, &labelled("label"));
    // A thousand cells in a corner far out: 100 million cells in between.
    let far: String = (0..1000).map(|k| format!("\n@ZZ{}", 100_000 + k)).collect();
    let path = file(&folder, "far.xlsx", workbook(&[("Data", &format!("a|label\n1|x{far}"))]));
    assert!(read_dataset(Source::from(&path).with_memory(LIMIT), &labelled("label")).is_err());
}

#[cfg(feature = "arrow-ipc")]
#[test]
fn arrow_buffers_are_measured_before_they_are_unpacked() {
    use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
    use std::sync::Arc;
    let folder = folder();
    let n = 1_000_000;
    let a: ArrayRef = Arc::new(Float64Array::from(vec![1.0; n]));
    let label: ArrayRef = Arc::new(Int64Array::from_iter_values((0..n as i64).map(|i| i % 2)));
    let batch = RecordBatch::try_from_iter([("a", a), ("label", label)]).unwrap();
    let bytes = common::seeds::arrow_file(&batch, Some(arrow_ipc::CompressionType::ZSTD));
    assert!(bytes.len() < 200_000);
    assert!(too_large(&file(&folder, "t.arrow", bytes.clone()), &labelled("label")).contains("its columns"));
    // A buffer that claims 2^62 bytes.
    let at = bytes.windows(8).position(|window| window == 8_000_000_i64.to_le_bytes()).unwrap();
    let mut claims = bytes;
    claims[at..at + 8].copy_from_slice(&(1_i64 << 62).to_le_bytes());
    assert!(too_large(&file(&folder, "c.arrow", claims), &labelled("label")).contains("EB"));
}

#[cfg(unix)]
#[test]
fn pipes_and_devices() {
    use std::io::Write;
    use std::process::Command;
    // Without an end.
    let source = Source::from(Path::new("/dev/zero")).with_memory(LIMIT);
    assert!(read_dataset(source, &labelled("label")).is_err());
    let error = TextTable::hold(Path::new("/dev/zero"), LIMIT).unwrap_err();
    assert!(matches!(error, DataError::Memory { .. }), "{error}");

    let folder = folder();
    let pipe = |name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    };
    // Formats that are read from their end say so, and do not wait for someone to write.
    for name in ["t.parquet", "t.npz", "t.png"] {
        let path = pipe(name);
        assert!(TextTable::hold(&path, LIMIT).unwrap().is_none());
        assert!(read_dataset(&path, &ReadOptions::default()).is_err(), "{name}");
        assert!(ParquetPredictions::open(&path, &PredictionColumns::new("label")).is_err(), "{name}");
    }
    assert!(read_predictions(&folder.path().join("t.parquet"), &PredictionColumns::new("label")).is_err());
    // Nor does a walk through a folder.
    file(&folder, "photos/a/1.png", pixels(1, 1, &[1, 2, 3]));
    file(&folder, "photos/b/1.png", pixels(1, 1, &[3, 2, 1]));
    pipe("photos/b/2.png");
    let read = read_dataset(&folder.path().join("photos"), &ReadOptions::default()).unwrap();
    assert_eq!(read.skipped, ["b/2.png (a pipe or a device)"]);
    pipe("parts/part-0.parquet");
    let error = read_dataset(&folder.path().join("parts"), &labelled("label")).unwrap_err();
    assert!(error.to_string().contains("it is a pipe or a device, and Parquet is read from its end"), "{error}");

    // A table in a pipe is held, and can then be read as often as needed.
    let path = pipe("t.csv");
    let writer = std::thread::spawn({
        let path = path.clone();
        move || std::fs::File::create(path).unwrap().write_all(b"a,label\n1,x\n2,\n3,y\n").unwrap()
    });
    let held = TextTable::hold(&path, LIMIT).unwrap().unwrap();
    writer.join().unwrap();
    for _ in 0..2 {
        assert_eq!(read_dataset(&held, &labelled("label")).unwrap().labels.counts(), [1, 1]);
    }
}
