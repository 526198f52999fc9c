//! Parquet: types, refusals, round trips, and sums in flat memory.
#![allow(clippy::unwrap_used)]

use arrow_array::RecordBatch;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, Float32Array, Float64Array, Int32Array, Int64Array,
    LargeStringArray, ListArray, StringArray, StringViewArray, TimestampMillisecondArray, UInt8Array,
};
use bytes::Bytes;
use mnar::rows::{Block, Rows, Sample, Sums};
use mnar_data::{
    Column, ParquetPredictions, PredictionColumns, Predictions, mask_labels, predictions_from_parquet, read_labels,
    read_predictions, write_table,
};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

fn bytes(columns: Vec<(&str, ArrayRef)>) -> Bytes {
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap().into()
}

fn read(bytes: Bytes) -> Result<Predictions, String> {
    predictions_from_parquet(bytes, &PredictionColumns::new("label"), "f.parquet").map_err(|error| error.to_string())
}

fn refused(bytes: Bytes) -> String {
    let message = read(bytes).unwrap_err();
    message.strip_prefix("f.parquet: ").unwrap_or_else(|| panic!("no file in {message}")).to_owned()
}

fn halves(n: usize) -> ArrayRef {
    Arc::new(Float64Array::from(vec![0.5; n]))
}

fn labels(label: ArrayRef, classes: [&str; 2]) -> Vec<Option<String>> {
    let n = label.len();
    let [a, b] = classes.map(|class| format!("p_{class}"));
    let read = read(bytes(vec![("label", label), (&a, halves(n)), (&b, halves(n))])).unwrap();
    read.labels.as_slice().iter().map(|class| class.map(|class| read.labels.name(class).to_owned())).collect()
}

#[test]
fn labels_of_every_common_type_are_read() {
    let text = vec![Some("a"), None, Some(" b "), Some("")];
    let expected = [Some("a"), None, Some("b"), None].map(|label| label.map(str::to_owned));
    let dictionary: DictionaryArray<Int32Type> = text.iter().copied().collect();
    let arrays: [ArrayRef; 4] = [
        Arc::new(StringArray::from(text.clone())),
        Arc::new(LargeStringArray::from(text.clone())),
        Arc::new(StringViewArray::from(text)),
        Arc::new(dictionary),
    ];
    for array in arrays {
        assert_eq!(labels(array, ["a", "b"]), expected);
    }
    let expected = [Some("1"), None, Some("0")].map(|label| label.map(str::to_owned));
    let arrays: [ArrayRef; 6] = [
        Arc::new(Int64Array::from(vec![Some(1), None, Some(0)])),
        Arc::new(UInt8Array::from(vec![Some(1), None, Some(0)])),
        Arc::new(Float64Array::from(vec![Some(1.0), None, Some(0.0)])),
        Arc::new(Float64Array::from(vec![1.0, f64::NAN, -0.0])),
        Arc::new(Float32Array::from(vec![1.0, f32::NAN, 0.0])),
        Arc::new(Decimal128Array::from(vec![Some(100), None, Some(0)]).with_precision_and_scale(10, 2).unwrap()),
    ];
    for array in arrays {
        let kind = array.data_type().clone();
        assert_eq!(labels(array, ["0", "1"]), expected, "{kind}");
    }
    let booleans = || Arc::new(BooleanArray::from(vec![Some(true), None]));
    assert_eq!(labels(booleans(), ["false", "true"])[0].as_deref(), Some("true"));
    // As pandas names the columns of a boolean class.
    assert_eq!(labels(booleans(), ["False", "True"])[0].as_deref(), Some("True"));
}

#[test]
fn probabilities_of_every_number_type_are_read() {
    let label = || Arc::new(StringArray::from(vec![Some("a"), None])) as ArrayRef;
    let pairs: [(ArrayRef, ArrayRef); 3] = [
        (Arc::new(Float32Array::from(vec![0.25, 1.0])), Arc::new(Float32Array::from(vec![0.75, 0.0]))),
        (Arc::new(Int32Array::from(vec![0, 1])), Arc::new(UInt8Array::from(vec![1, 0]))),
        (
            Arc::new(Decimal128Array::from(vec![25, 100]).with_precision_and_scale(5, 2).unwrap()),
            Arc::new(Decimal128Array::from(vec![75, 0]).with_precision_and_scale(5, 2).unwrap()),
        ),
    ];
    for (a, b) in pairs {
        let read = read(bytes(vec![("p_a", a), ("label", label()), ("p_b", b)])).unwrap();
        assert_eq!(read.posteriors.row(1).to_vec(), [1.0, 0.0]);
        assert_eq!(read.posteriors.row(0).sum(), 1.0);
    }
}

#[test]
fn unsuitable_columns_are_refused() {
    let label = || Arc::new(StringArray::from(vec![Some("a"), None])) as ArrayRef;
    let gap = Arc::new(Float64Array::from(vec![Some(0.5), None]));
    assert!(
        refused(bytes(vec![("label", label()), ("p_a", halves(2)), ("p_b", gap)]))
            .starts_with("row 2, column `p_b`: the value is missing; every row")
    );
    let text = Arc::new(StringArray::from(vec!["0.5", "0.5"]));
    assert!(
        refused(bytes(vec![("label", label()), ("p_a", halves(2)), ("p_b", text)]))
            .starts_with("column `p_b` has type text, but a probability must be a number")
    );
    let list = || {
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(vec![Some(vec![Some(1)]), Some(vec![])])) as ArrayRef
    };
    assert!(
        refused(bytes(vec![("label", label()), ("p_a", halves(2)), ("p_b", list())]))
            .starts_with("column `p_b` has type list")
    );
    assert!(
        refused(bytes(vec![("label", list()), ("p_a", halves(2)), ("p_b", halves(2))]))
            .starts_with("column `label` has type list, but a label or fold must be text")
    );
    let times = Arc::new(TimestampMillisecondArray::from(vec![1, 2]));
    assert!(
        refused(bytes(vec![("label", times), ("p_a", halves(2)), ("p_b", halves(2))]))
            .starts_with("column `label` has type Timestamp")
    );
    // Columns that are not asked for may be anything.
    let unused = bytes(vec![("x", list()), ("label", label()), ("p_a", halves(2)), ("p_b", halves(2))]);
    assert_eq!(read(unused).unwrap().labels.len(), 2);
}

#[test]
fn rules_of_the_header_are_those_of_csv() {
    let label = || Arc::new(StringArray::from(vec![Some("a"), None])) as ArrayRef;
    assert!(
        refused(bytes(vec![("lable", label()), ("p_a", halves(2))]))
            .starts_with("there is no column `label`, did you mean `lable`?")
    );
    assert!(refused(bytes(vec![("label", label())])).starts_with("no column starts with `p_`"));
    let other = Arc::new(StringArray::from(vec![Some("a"), Some("z")]));
    assert!(
        refused(bytes(vec![("label", other), ("p_a", halves(2)), ("p_b", halves(2))])).starts_with("row 2: label `z`")
    );
    let none = Arc::new(StringArray::from(Vec::<&str>::new()));
    assert_eq!(
        refused(bytes(vec![("label", none), ("p_a", halves(0)), ("p_b", halves(0))])),
        "there are no rows below the header"
    );
}

#[test]
fn damaged_files_are_refused() {
    let label = Arc::new(StringArray::from(vec![Some("a"), None, Some("b")]));
    let whole = bytes(vec![("label", label), ("p_a", halves(3)), ("p_b", halves(3))]);
    assert!(refused(Bytes::new()).starts_with("the file is empty"));
    assert!(refused(Bytes::from_static(b"label,p_a,p_b\na,1,0\n")).starts_with("not a readable Parquet file"));
    for end in 1..whole.len() {
        assert!(refused(whole.slice(..end)).starts_with("not a readable Parquet file"), "{end}");
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
        write_table(&path, &[("v", Column::Numbers(&numbers)), ("label", Column::Texts(label.clone()))]).unwrap();
        let read = mnar_data::read_features(&path, "label", &mnar_data::FeatureColumns::AllNumeric, None, &[]).unwrap();
        let bits: Vec<u64> = read.x.iter().map(|value| value.to_bits()).collect();
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
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("label", Arc::new(StringArray::from(label))),
        ("p_a", Arc::new(Float64Array::from(p[0].clone()))),
        // Off by 1e-4 in every row: renormalised, and counted.
        ("p_b", Arc::new(Float64Array::from_iter_values(p[1].iter().map(|p| p + 1e-4)))),
        ("p_c", Arc::new(Float64Array::from(p[2].clone()))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(7001)).build();
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    assert!(writer.close().unwrap().num_row_groups() > 20);

    let columns = PredictionColumns::new("label");
    let memory = read_predictions(&path, &columns).unwrap();
    let file = ParquetPredictions::open(&path, &columns).unwrap();
    assert_eq!(file.rows(), n);
    assert_eq!(file.names(), memory.labels.names());
    assert_eq!(file.counts(), memory.labels.counts());
    assert_eq!(file.n_labelled(), memory.labels.n_labelled());
    assert_eq!(file.renormalised(), memory.posteriors.renormalised());
    assert_eq!(file.renormalised().rows, n);

    let zero = Moments { n: 0, sums: vec![0.0; 3], squares: vec![0.0; 3] };
    let ours = file.scan(&zero).unwrap();
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
fn a_file_is_refused_when_opened_as_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.parquet");
    let opened = |label: Vec<Option<&str>>, p: [f64; 2]| {
        let n = label.len();
        let (a, b) = (vec![p[0]; n], vec![p[1]; n]);
        let columns = [("label", Column::Texts(label)), ("p_a", Column::Numbers(&a)), ("p_b", Column::Numbers(&b))];
        write_table(&path, &columns).unwrap();
        let columns = PredictionColumns::new("label");
        let message = ParquetPredictions::open(&path, &columns).map(|_| ()).unwrap_err().to_string();
        assert_eq!(message, read_predictions(&path, &columns).unwrap_err().to_string());
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
    assert!(error.to_string().contains("only one class, `a`"), "{error}");
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
    let dictionary: DictionaryArray<Int32Type> = ["x", "y", "NA", "x"].into_iter().collect();
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>((0..4).map(|i| Some(vec![Some(i), None])));
    let batch = RecordBatch::try_from_iter(vec![
        ("label", Arc::new(dictionary) as ArrayRef),
        ("list", Arc::new(list)),
        ("view", Arc::new(StringViewArray::from(vec!["a", "b", "c", "d"]))),
    ])
    .unwrap();
    let mut writer = ArrowWriter::try_new(File::create(&input).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    mask_labels(&input, &output, "label", &["NA".into()], Some("truth"), &[false, true, true, true]).unwrap();

    let open = |path: &Path| {
        let file = File::open(path).unwrap();
        let mut reader = parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(file, 100).unwrap();
        reader.next().unwrap().unwrap()
    };
    let (before, after) = (open(&input), open(&output));
    assert_eq!(before.columns()[1..], after.columns()[1..3]);
    assert_eq!(before.column(0), after.column(3));
    assert_eq!(before.schema().field(0).data_type(), after.schema().field(0).data_type());
    let labels = read_labels(&output, "label", &[]).unwrap();
    assert_eq!(
        (0..4).map(|i| labels.get(i).map(|class| labels.name(class))).collect::<Vec<_>>(),
        [None, Some("y"), None, Some("x")]
    );
    assert_eq!(read_labels(&output, "truth", &[]).unwrap().n_labelled(), 4);
    let error = mask_labels(&input, &output, "label", &[], None, &[true]).unwrap_err().to_string();
    assert!(error.contains("the table has 4 rows, but 1 were expected"), "{error}");
}
