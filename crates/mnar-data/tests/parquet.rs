//! Parquet: types, refusals, round trips, and sums in flat memory.
#![allow(clippy::unwrap_used)]

mod common;

use bytes::Bytes;
use common::parquet::Values::{self, Bool, Bytes as Binary, F32, F64, Fixed, I32, I64, Lists, Repeated, Text};
use common::parquet::{Layout, parquet, parquet_laid_out};
use common::{chain, labelled};
use mnar::rows::{Block, Rows, Sample, Sums};
use mnar_data::{
    Column, Inputs, ParquetPredictions, PredictionColumns, Predictions, ReadOptions, mask_labels,
    predictions_from_parquet, read_dataset, read_labels, read_predictions, write_table,
};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::WriterVersion;
use std::fs::File;
use std::path::Path;

fn read(bytes: Vec<u8>) -> Result<Predictions, String> {
    predictions_from_parquet(bytes.into(), &PredictionColumns::new("label"), "f.parquet").map_err(|error| chain(&error))
}

fn refused(bytes: Vec<u8>) -> String {
    let message = read(bytes).unwrap_err();
    message.strip_prefix("f.parquet: ").unwrap_or_else(|| panic!("no file in {message}")).to_owned()
}

fn halves(n: usize) -> Values {
    F64(vec![Some(0.5); n])
}

/// Two probabilities beside a column of another type.
fn beside(field: &str, column: Values, n: usize) -> Vec<u8> {
    parquet(&format!("{field}; optional double p_a; optional double p_b;"), &[column, halves(n), halves(n)])
}

fn labels(field: &str, column: Values, n: usize, classes: [&str; 2]) -> Vec<Option<String>> {
    let [a, b] = classes;
    let schema = format!("{field}; optional double p_{a}; required double p_{b};");
    let read = read(parquet(&schema, &[column, halves(n), halves(n)])).unwrap();
    read.labels.as_slice().iter().map(|class| class.map(|class| read.labels.name(class).to_owned())).collect()
}

#[test]
fn labels_of_every_common_type_are_read() {
    let expected = [Some("a"), None, Some("b"), None].map(|label| label.map(str::to_owned));
    for field in ["optional binary label (STRING)", "optional binary label", "optional binary label (ENUM)"] {
        let text = Text(vec![Some("a"), None, Some(" b "), Some("")]);
        assert_eq!(labels(field, text, 4, ["a", "b"]), expected, "{field}");
    }
    let expected = [Some("1"), None, Some("0")].map(|label| label.map(str::to_owned));
    let whole = || I32(vec![Some(1), None, Some(0)]);
    let long = || I64(vec![Some(1), None, Some(0)]);
    for (field, column) in [
        ("optional int32 label", whole()),
        ("optional int32 label (INTEGER(8,true))", whole()),
        ("optional int32 label (INTEGER(16,true))", whole()),
        ("optional int32 label (INTEGER(8,false))", whole()),
        ("optional int32 label (INTEGER(16,false))", whole()),
        ("optional int32 label (INTEGER(32,false))", whole()),
        ("optional int32 label (UINT_8)", whole()),
        ("optional int64 label", long()),
        ("optional int64 label (INTEGER(64,false))", long()),
        ("optional double label", F64(vec![Some(1.0), None, Some(0.0)])),
        ("required double label", F64(vec![Some(1.0), Some(f64::NAN), Some(-0.0)])),
        ("optional float label", F32(vec![Some(1.0), Some(f32::NAN), Some(0.0)])),
        ("optional int32 label (DECIMAL(9,2))", I32(vec![Some(100), None, Some(0)])),
        ("optional int64 label (DECIMAL(10,2))", I64(vec![Some(100), None, Some(0)])),
        ("optional binary label (DECIMAL(10,2))", Binary(vec![Some(vec![100]), None, Some(vec![0, 0])])),
        (
            "optional fixed_len_byte_array (4) label (DECIMAL(9,2))",
            Fixed(vec![Some(100_i32.to_be_bytes().to_vec()), None, Some(vec![0; 4])]),
        ),
        (
            "optional fixed_len_byte_array (20) label (DECIMAL(45,1))",
            Fixed(vec![Some([vec![0; 19], vec![10]].concat()), None, Some(vec![0; 20])]),
        ),
        // 1.0 in 16 bits.
        (
            "optional fixed_len_byte_array (2) label (FLOAT16)",
            Fixed(vec![Some(vec![0x00, 0x3c]), None, Some(vec![0, 0])]),
        ),
    ] {
        assert_eq!(labels(field, column, 3, ["0", "1"]), expected, "{field}");
    }
    let booleans = || Bool(vec![Some(true), None]);
    assert_eq!(labels("optional boolean label", booleans(), 2, ["false", "true"])[0].as_deref(), Some("true"));
    // As pandas names the columns of a boolean class.
    assert_eq!(labels("optional boolean label", booleans(), 2, ["False", "True"])[0].as_deref(), Some("True"));
    let latin = beside("optional binary label", Binary(vec![Some(vec![0xe9]), None]), 2);
    assert!(refused(latin).contains("is not UTF-8 text"));
}

#[test]
fn probabilities_of_every_number_type_are_read() {
    for (kind, a, b) in [
        ("float", F32(vec![Some(0.25), Some(1.0)]), F32(vec![Some(0.75), Some(0.0)])),
        ("int32", I32(vec![Some(0), Some(1)]), I32(vec![Some(1), Some(0)])),
        ("boolean", Bool(vec![Some(false), Some(true)]), Bool(vec![Some(true), Some(false)])),
    ] {
        let schema = format!("optional {kind} p_a; optional binary label (STRING); required {kind} p_b;");
        let read = read(parquet(&schema, &[a, Text(vec![Some("a"), None]), b])).unwrap();
        assert_eq!(read.posteriors.row(1).to_vec(), [1.0, 0.0], "{kind}");
        assert_eq!(read.posteriors.row(0).sum(), 1.0, "{kind}");
    }
    let schema =
        "optional int64 p_a (DECIMAL(5,2)); optional binary label (STRING); optional int64 p_b (DECIMAL(5,2));";
    let columns = [I64(vec![Some(25), Some(100)]), Text(vec![Some("a"), None]), I64(vec![Some(75), Some(0)])];
    assert_eq!(read(parquet(schema, &columns)).unwrap().posteriors.column(0), [0.25, 1.0]);
}

#[test]
fn unsuitable_columns_are_refused() {
    let label = || Text(vec![Some("a"), None]);
    let with = |field: &str, column: Values| {
        let schema = format!("optional binary label (STRING); optional double p_a; {field};");
        refused(parquet(&schema, &[label(), halves(2), column]))
    };
    assert!(
        with("optional double p_b", F64(vec![Some(0.5), None]))
            .starts_with("row 2, column `p_b`: the value is missing; every row")
    );
    assert!(
        with("optional binary p_b (STRING)", Text(vec![Some("0.5"), Some("0.5")]))
            .starts_with("column `p_b` has type text, but a probability must be a number")
    );
    let list = || Lists(vec![Some(vec![Some(1.0)]), Some(vec![])]);
    const LIST: &str = "(LIST) { repeated group list { optional float element; } }";
    let message = refused(parquet(
        &format!("optional binary label (STRING); optional double p_a; optional group p_b {LIST}"),
        &[label(), halves(2), list()],
    ));
    assert!(message.starts_with("column `p_b` has type list"), "{message}");
    let two = "optional double p_a; optional double p_b;";
    let message = refused(parquet(&format!("optional group label {LIST} {two}"), &[list(), halves(2), halves(2)]));
    assert!(message.starts_with("column `label` has type list, but a label or fold must be text"), "{message}");
    let times = || I64(vec![Some(1), Some(2)]);
    for (field, column, name) in [
        ("optional int64 label (TIMESTAMP(MILLIS,true))", times(), "Timestamp(ms, \"UTC\")"),
        ("optional int64 label (TIMESTAMP_MICROS)", times(), "Timestamp(µs, \"UTC\")"),
        ("optional int32 label (DATE)", I32(vec![Some(1), Some(2)]), "Date32"),
        ("optional int64 label (TIME(MICROS,true))", times(), "Time64"),
        ("optional fixed_len_byte_array (3) label", Fixed(vec![Some(vec![1, 2, 3]), None]), "FixedSizeBinary(3)"),
    ] {
        let message = refused(beside(field, column, 2));
        assert!(message.starts_with(&format!("column `label` has type {name}")), "{message}");
    }
    // Columns that are not asked for may be anything.
    let schema = format!("optional group x {LIST} optional binary label (STRING); {two}");
    let unused = parquet(&schema, &[list(), label(), halves(2), halves(2)]);
    assert_eq!(read(unused).unwrap().labels.len(), 2);
}

#[test]
fn rules_of_the_header_are_those_of_csv() {
    let label = || Text(vec![Some("a"), None]);
    assert!(
        refused(parquet("optional binary lable (STRING); optional double p_a;", &[label(), halves(2)]))
            .starts_with("there is no column `label`, did you mean `lable`?")
    );
    assert!(refused(parquet("optional binary label (STRING);", &[label()])).starts_with("no column starts with `p_`"));
    let text = "optional binary label (STRING)";
    assert!(refused(beside(text, Text(vec![Some("a"), Some("z")]), 2)).starts_with("row 2: label `z`"));
    assert_eq!(refused(beside(text, Text(vec![]), 0)), "there are no rows below the header");
}

#[test]
fn damaged_files_are_refused() {
    let whole = beside("optional binary label (STRING)", Text(vec![Some("a"), None, Some("b")]), 3);
    assert!(refused(Vec::new()).starts_with("the file is empty"));
    assert!(refused(b"label,p_a,p_b\na,1,0\n".to_vec()).starts_with("not a readable Parquet file: "));
    for end in 1..whole.len() {
        assert!(refused(whole[..end].to_vec()).starts_with("not a readable Parquet file: "), "{end}");
    }
}

#[test]
fn every_layout_gives_the_same_values() {
    let n = 5000;
    let label = || (0..n).map(|i| [Some("a"), None, Some("b"), Some("a")][i * 7 % 4]).collect();
    let p: Vec<f64> = (0..n).map(|i| (i % 89) as f64 / 89.0).collect();
    let columns = || {
        let q = F64(p.iter().map(|p| Some(1.0 - p)).collect());
        [Text(label()), F64(p.iter().copied().map(Some).collect()), q]
    };
    let schema = "optional binary label (STRING); required double p_a; optional double p_b;";
    let expected = read(parquet(schema, &columns())).unwrap();
    assert_eq!(expected.posteriors.column(0), p);
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
    ] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for dictionary in [true, false] {
                let layout = Layout { compression, version, dictionary, group_rows: 1999, page_rows: 317 };
                let found = read(parquet_laid_out(schema, &columns(), &layout)).unwrap();
                assert_eq!(found, expected, "{compression:?} {version:?} {dictionary}");
            }
        }
    }
}

/// Pages of the usual kinds are unpacked by a reader of our own, all others by that of Parquet.
#[test]
fn numbers_with_gaps_are_the_same_from_pages_of_every_kind() {
    let n = 4_000_usize;
    // Long runs of labels, long runs without, and a mixture.
    let label = |i: usize| match i / 1_000 {
        0 => Some((i % 2) as i64),
        1 => None,
        _ => (i * 7 % 11 < 4).then_some(i64::from(i.is_multiple_of(3))),
    };
    let p: Vec<f64> = (0..n).map(|i| ((i * 31) % 97) as f64 / 97.0).collect();
    let columns = || {
        let (a, b) = (p.iter().map(|p| Some(*p)).collect(), p.iter().map(|p| Some((1.0 - p) as f32)).collect());
        [I64((0..n).map(label).collect()), F64(a), F32(b)]
    };
    let schema = "optional int64 label; optional double p_0; optional float p_1;";
    let expected = read(parquet(schema, &columns())).unwrap();
    for (i, class) in expected.labels.as_slice().iter().enumerate() {
        assert_eq!(class.map(|class| class.index() as i64), label(i), "row {i}");
    }
    for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(ZstdLevel::default())] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for (dictionary, page_rows) in [(true, 317), (false, 317), (true, 1), (false, 4_000)] {
                let layout = Layout { compression, version, dictionary, group_rows: 1_999, page_rows };
                let found = read(parquet_laid_out(schema, &columns(), &layout)).unwrap();
                assert_eq!(found, expected, "{compression:?} {version:?} {dictionary} {page_rows}");
            }
        }
    }
}

#[test]
fn a_codec_that_is_not_there_is_named() {
    let mut bytes = beside("optional binary label (STRING)", Text(vec![Some("a"), None, Some("b")]), 3);
    // The footer says of every column how it is compressed: field 4 of its metadata, here 0, is to be 4 for brotli.
    let metadata = |bytes: &[u8]| -> ParquetMetaData {
        ParquetMetaDataReader::new().parse_and_finish(&Bytes::copy_from_slice(bytes)).unwrap()
    };
    let whole = bytes.clone();
    let changed = (0..bytes.len()).rev().find(|&at| {
        bytes.copy_from_slice(&whole);
        bytes[at] = 8;
        let read = std::panic::catch_unwind(|| {
            ParquetMetaDataReader::new().parse_and_finish(&Bytes::copy_from_slice(&bytes)).ok()
        });
        read.ok().flatten().is_some_and(|read| {
            read.num_row_groups() == 1
                && read.row_group(0).columns().len() == 3
                && matches!(read.row_group(0).column(0).compression(), Compression::BROTLI(_))
        })
    });
    assert!(changed.is_some() && metadata(&whole).num_row_groups() == 1);
    assert!(refused(bytes).starts_with("the file is compressed with brotli, which cannot be read; write it again"));
}

#[test]
fn lists_of_old_writers_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let options = ReadOptions { label: Some("y".into()), ..Default::default() };
    let y = || Text(vec![Some("u"), None, Some("v")]);
    let lists = || Repeated(vec![vec![1, 10], vec![2, 20], vec![3, 30]]);
    for field in ["repeated int64 e;", "required group e (LIST) { repeated int64 element; }"] {
        let schema = format!("optional binary y (STRING); {field}");
        // Small pages and row groups, so that lists end where these do.
        let layout = Layout { group_rows: 2, page_rows: 1, ..Layout::default() };
        std::fs::write(&path, parquet_laid_out(&schema, &[y(), lists()], &layout)).unwrap();
        let read = read_dataset(&path, &options).unwrap();
        let Inputs::Table(table) = &read.inputs else { panic!("{read:?}") };
        assert_eq!(common::numbers(table, "e_0"), [1.0, 2.0, 3.0], "{field}");
        assert_eq!(common::numbers(table, "e_1"), [10.0, 20.0, 30.0], "{field}");
    }
}

/// Predictions whose sums are no round numbers.
fn table(n: usize) -> (Vec<Option<&'static str>>, [Vec<f64>; 3]) {
    let label = (0..n).map(|i| [Some("a"), None, Some("b"), None, Some("c")][i * 7 % 5]).collect();
    let raw = |i: usize, k: usize| ((i * 31 + k * 17) % 97) as f64 + 0.5;
    let total = |i: usize| raw(i, 0) + raw(i, 1) + raw(i, 2);
    let p = [0, 1, 2].map(|k| (0..n).map(|i| raw(i, k) / total(i)).collect());
    (label, p)
}

fn write(path: &Path, n: usize) {
    let (label, p) = table(n);
    let folds: Vec<u64> = (0..n as u64).map(|i| i % 3).collect();
    write_table(
        path,
        &[
            ("label", Column::Texts(label)),
            ("p_a", Column::Numbers(&p[0])),
            ("p_b", Column::Numbers(&p[1])),
            ("fold", Column::Integers(&folds)),
            ("p_c", Column::Numbers(&p[2])),
        ],
    )
    .unwrap();
}

#[test]
fn tables_come_back_to_the_bit_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let mut columns = PredictionColumns::new("label");
    columns.fold = Some("fold".into());
    let (_, p) = table(1000);
    let mut first: Option<Predictions> = None;
    for name in ["t.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.out"] {
        let path = folder.path().join(name);
        write(&path, 1000);
        let read = read_predictions(&path, &columns).unwrap();
        assert_eq!(read.posteriors.renormalised().rows, 0);
        for k in 0..3 {
            assert_eq!(read.posteriors.column(k), p[k], "{name}");
        }
        assert_eq!(read.folds.as_ref().unwrap()[..4], [0, 1, 2, 0]);
        assert_eq!(*first.get_or_insert_with(|| read.clone()), read, "{name}");
    }
    // Parquet under another name is known by its first bytes.
    let renamed = folder.path().join("renamed");
    std::fs::copy(folder.path().join("t.parquet"), &renamed).unwrap();
    assert_eq!(read_predictions(&renamed, &columns).unwrap(), first.unwrap());
}

#[test]
fn extreme_numbers_come_back_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = [0.1, -0.0, 1e300, 5e-324, f64::MAX, 1.0 / 3.0, 123_456_789.123_456_79, 1e16];
    let label: Vec<Option<&str>> = (0..numbers.len()).map(|i| (i % 2 == 0).then_some(["x", "y"][i / 2 % 2])).collect();
    for name in ["x.csv", "x.parquet"] {
        let path = folder.path().join(name);
        let ones = vec![1.0; numbers.len()];
        let columns = [
            ("v", Column::Numbers(&numbers)),
            ("one", Column::Numbers(&ones)),
            ("label", Column::Texts(label.clone())),
        ];
        write_table(&path, &columns).unwrap();
        // As text or as numbers, 64 bits come back; features are kept in 32.
        let options = ReadOptions { label: Some("label".into()), id: Some("v".into()), ..Default::default() };
        let read = read_dataset(&path, &options).unwrap();
        let names = read.row_names.unwrap().names;
        let bits: Vec<u64> = names.iter().map(|text| text.parse::<f64>().unwrap().to_bits()).collect();
        assert_eq!(bits, numbers.map(f64::to_bits), "{name}");
    }
    let path = folder.path().join("bad.csv");
    let error = write_table(&path, &[("a", Column::Integers(&[1, 2])), ("b", Column::Numbers(&[1.0]))]).unwrap_err();
    assert!(error.to_string().ends_with("column `b` has 1 values but the first column has 2"), "{error}");
    let error = write_table(&path, &[("a", Column::Integers(&[1])), ("a", Column::Numbers(&[1.0]))]).unwrap_err();
    assert!(error.to_string().contains("more than one column is called `a`"), "{error}");
    assert!(!path.exists());
}

/// Σ p_k over all rows, and Σ p_k² over the labelled ones of class k.
#[derive(Clone, Debug)]
struct Moments {
    n: usize,
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Sums for Moments {
    fn add(&mut self, block: &Block<'_>) {
        self.n += block.len();
        for (k, column) in block.columns.iter().enumerate() {
            self.sums[k] += column.iter().sum::<f64>();
        }
        for (i, class) in block.labels.iter().enumerate() {
            if let Some(class) = class {
                self.squares[class.index()] += block.columns[class.index()][i].powi(2);
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.n += other.n;
        self.sums.iter_mut().zip(other.sums).for_each(|(a, b)| *a += b);
        self.squares.iter_mut().zip(other.squares).for_each(|(a, b)| *a += b);
    }
}

#[test]
fn sums_over_a_file_are_those_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.parquet");
    let n = 200_001;
    // Row groups that end within a batch of the reader.
    let (label, p) = table(n);
    let some = |values: &[f64], shift: f64| F64(values.iter().map(|value| Some(value + shift)).collect());
    // The second is off by 1e-4 in every row: renormalised, and counted.
    let columns = [Text(label), some(&p[0], 0.0), some(&p[1], 1e-4), some(&p[2], 0.0)];
    let schema = "optional binary label (STRING); required double p_a; required double p_b; required double p_c;";
    let layout = Layout { group_rows: 7001, ..Layout::default() };
    std::fs::write(&path, parquet_laid_out(schema, &columns, &layout)).unwrap();

    let columns = PredictionColumns::new("label");
    let memory = read_predictions(&path, &columns).unwrap();
    let file = ParquetPredictions::open(&path, &columns).unwrap();
    assert_eq!(file.rows(), n);
    assert_eq!(file.names(), memory.labels.names());
    assert_eq!(file.counts(), memory.labels.counts());
    assert_eq!(file.n_labelled(), memory.labels.n_labelled());

    let zero = Moments { n: 0, sums: vec![0.0; 3], squares: vec![0.0; 3] };
    let ours = file.scan(&zero).unwrap();
    assert_eq!(file.renormalised(), memory.posteriors.renormalised());
    assert_eq!(file.renormalised().rows, n);
    let theirs = Sample::new(&memory.posteriors, &memory.labels).unwrap().scan(&zero).unwrap();
    assert_eq!(ours.n, theirs.n);
    for (a, b) in ours.sums.iter().chain(&ours.squares).zip(theirs.sums.iter().chain(&theirs.squares)) {
        assert!(((a - b) / b).abs() < 1e-12, "{a} {b}");
    }
    // The same walk again, from several threads at once, gives the same bits.
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(file.scan(&zero).unwrap().sums, ours.sums));
        }
    });
}

#[test]
fn a_file_is_refused_as_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.parquet");
    let opened = |label: Vec<Option<&str>>, p: [f64; 2]| {
        let n = label.len();
        let (a, b) = (vec![p[0]; n], vec![p[1]; n]);
        let columns = [("label", Column::Texts(label)), ("p_a", Column::Numbers(&a)), ("p_b", Column::Numbers(&b))];
        write_table(&path, &columns).unwrap();
        let columns = PredictionColumns::new("label");
        // Labels are counted when the file is opened; probabilities are checked by a pass over them.
        let zero = Moments { n: 0, sums: vec![0.0; 2], squares: vec![0.0; 2] };
        let message = match ParquetPredictions::open(&path, &columns) {
            Err(error) => chain(&error),
            Ok(file) => chain(&file.scan(&zero).map(|_| ()).unwrap_err()),
        };
        assert_eq!(message, chain(&read_predictions(&path, &columns).unwrap_err()));
        let message = message.replace(": cannot be used: ", ": ");
        message.strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned()
    };
    assert!(opened(vec![None, None], [0.5, 0.5]).starts_with("none of the 2 rows has a label"));
    assert!(opened(vec![Some("a"), Some("b")], [0.5, 0.5]).starts_with("all 2 rows have a label"));
    assert!(opened(vec![], [0.5, 0.5]).starts_with("there are no rows"));
    assert!(opened(vec![Some("z")], [0.5, 0.5]).starts_with("row 1: label `z`"));
    assert!(opened(vec![Some("a"), None], [0.5, 0.7]).starts_with("row 1: the probabilities sum to 1.2"));
    assert!(opened(vec![Some("a"), None], [0.5, -0.7]).starts_with("row 1: the probability of class `b` is -0.7"));
    write_table(&path, &[("label", Column::Texts(vec![Some("a"), None])), ("p_a", Column::Numbers(&[1.0, 1.0]))])
        .unwrap();
    let error = ParquetPredictions::open(&path, &PredictionColumns::new("label")).map(|_| ()).unwrap_err();
    assert!(chain(&error).contains("only one class, `a`"), "{error}");
}

#[test]
fn a_file_that_changes_between_passes_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.parquet");
    write(&path, 100);
    let file = ParquetPredictions::open(&path, &PredictionColumns::new("label")).unwrap();
    write(&path, 200);
    let zero = Moments { n: 0, sums: vec![0.0; 3], squares: vec![0.0; 3] };
    let error = file.scan(&zero).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}: the file changed", path.display())), "{error}");
    std::fs::remove_file(&path).unwrap();
    assert!(file.scan(&zero).unwrap_err().to_string().contains("cannot be opened"));
}

#[test]
fn masking_keeps_types_and_other_columns() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.parquet"), folder.path().join("out.parquet"));
    let schema =
        "required binary label (STRING); optional group list (LIST) { repeated group list { optional float element; } }
        optional int64 time (TIMESTAMP(MILLIS,true));";
    let list = || Lists((0..4).map(|i| Some(vec![Some(i as f32), None])).collect());
    let columns = [Text(["x", "y", "NA", "x"].map(Some).to_vec()), list(), I64(vec![Some(1), None, Some(3), Some(4)])];
    let layout = Layout { group_rows: 3, compression: Compression::ZSTD(ZstdLevel::default()), ..Layout::default() };
    std::fs::write(&input, parquet_laid_out(schema, &columns, &layout)).unwrap();
    let missing = ["NA".to_owned()];
    mask_labels(&input, &output, "label", &missing, Some("truth"), &[false, true, true, true]).unwrap();

    let open = |path: &Path| ParquetMetaDataReader::new().parse_and_finish(&File::open(path).unwrap()).unwrap();
    let (before, after) = (open(&input), open(&output));
    let columns = |file: &ParquetMetaData| file.file_metadata().schema_descr().columns().to_vec();
    assert_eq!(columns(&before)[1..], columns(&after)[1..3]);
    assert_eq!((after.num_row_groups(), after.file_metadata().num_rows()), (2, 4));
    // The other columns are the same bytes, and still compressed.
    let chunk = |path: &Path, file: &ParquetMetaData, group: usize, column: usize| {
        let (start, len) = file.row_group(group).column(column).byte_range();
        std::fs::read(path).unwrap()[start as usize..(start + len) as usize].to_vec()
    };
    for group in 0..2 {
        for column in 1..3 {
            assert_eq!(chunk(&input, &before, group, column), chunk(&output, &after, group, column));
        }
        assert_eq!(chunk(&input, &before, group, 0), chunk(&output, &after, group, 3));
    }
    let labels = read_labels(&output, &labelled("label")).unwrap().0;
    assert_eq!(
        (0..4).map(|i| labels.get(i).map(|class| labels.name(class))).collect::<Vec<_>>(),
        [None, Some("y"), None, Some("x")]
    );
    assert_eq!(read_labels(&output, &labelled("truth")).unwrap().0.n_labelled(), 3);
    // The copy can be masked again, its label now being one that may be missing.
    mask_labels(&output, &output, "label", &[], None, &[true, false, true, true]).unwrap();
    assert_eq!(read_labels(&output, &labelled("label")).unwrap().0.n_labelled(), 1);
    let error = mask_labels(&input, &output, "label", &[], None, &[true]).unwrap_err().to_string();
    assert!(error.contains("the table has 4 rows, but 1 were expected"), "{error}");
}
