//! Tables in memory give the data set of the CSV file that pandas would write of them, to the bit.
#![allow(clippy::unwrap_used)]

mod common;

use arrow_array::types::{Float64Type, Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, Float32Array, Float64Array, Int8Array,
    Int64Array, LargeStringArray, ListArray, NullArray, RecordBatch, StringArray, StringViewArray, Time32SecondArray,
    UInt16Array,
};
use common::{chain, file, folder, labelled, numbers, table};
use mnar_data::{
    ArrowTable, Dataset, Expected, Inputs, PredictionColumns, ReadOptions, Source, Split, TableEncoder, read_dataset,
    read_for_prediction, read_labels, read_predictions,
};
use std::sync::Arc;

fn memory(columns: Vec<(&str, ArrayRef)>) -> ArrowTable {
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap();
    // In parts, as a table of several chunks is.
    let first = batch.num_rows() / 2;
    let parts = vec![batch.slice(0, first), batch.slice(first, batch.num_rows() - first)];
    ArrowTable::new(batch.schema(), parts, "t").unwrap()
}

fn assert_same(memory: &Dataset, csv: &Dataset) {
    assert_eq!(memory.labels, csv.labels);
    assert_eq!(memory.row_names, csv.row_names);
    let (memory, csv) = (table(memory), table(csv));
    assert_eq!(memory.columns().len(), csv.columns().len());
    for (ours, theirs) in memory.columns().iter().zip(csv.columns()) {
        // NaN is not equal to itself, and its text is.
        assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
    }
    let bits = |name: &str, table| numbers(table, name).iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    for column in memory.columns() {
        if matches!(column.values, mnar_data::ColumnValues::Numeric(_)) {
            let nan =
                |bits: Vec<u32>| bits.into_iter().map(|bits| if f32::from_bits(bits).is_nan() { 0 } else { bits });
            let (ours, theirs) = (bits(&column.name, memory), bits(&column.name, csv));
            assert!(nan(ours).eq(nan(theirs)), "{}", column.name);
        }
    }
}

/// pandas.DataFrame(...).to_csv(index=False)
const CSV: &str = "\
x,n,flag,city,kind,code,gone,id,small,y
0.1,1,True,Ulm,b,1,,7,0.25,1.0
,-4611686018427387904,,,a,2,,8,0.1,
-1e-05,3,False,Bern,b,,,9,,0.0
7.25,4,True, Ulm ,,10,,10,3.4e+38,10.0
";

fn columns() -> Vec<(&'static str, ArrayRef)> {
    let kind: DictionaryArray<Int8Type> = [Some("b"), Some("a"), Some("b"), None].into_iter().collect();
    vec![
        ("x", Arc::new(Float64Array::from(vec![Some(0.1), Some(f64::NAN), Some(-1e-5), Some(7.25)]))),
        ("n", Arc::new(Int64Array::from(vec![1, -4_611_686_018_427_387_904, 3, 4]))),
        ("flag", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)]))),
        ("city", Arc::new(StringArray::from(vec![Some("Ulm"), None, Some("Bern"), Some(" Ulm ")]))),
        ("kind", Arc::new(kind)),
        // Texts that are all numbers, as they come from a table that was read as text.
        ("code", Arc::new(LargeStringArray::from(vec![Some("1"), Some("2"), Some(""), Some("10")]))),
        ("gone", Arc::new(NullArray::new(4))),
        ("id", Arc::new(UInt16Array::from(vec![7, 8, 9, 10]))),
        ("small", Arc::new(Float32Array::from(vec![Some(0.25), Some(0.1), None, Some(3.4e38)]))),
        ("y", Arc::new(Float64Array::from(vec![Some(1.0), None, Some(0.0), Some(10.0)]))),
    ]
}

#[test]
fn a_table_in_memory_is_that_of_its_csv() {
    let folder = folder();
    let path = file(&folder, "t.csv", CSV);
    let memory = memory(columns());
    for options in [
        labelled("y"),
        ReadOptions { id: Some("id".into()), ..labelled("y") },
        ReadOptions { categorical: vec!["n".into(), "flag".into(), "x".into()], ..labelled("y") },
        ReadOptions { missing: vec!["3".into(), "Bern".into()], ignore: vec!["x".into()], ..labelled("y") },
    ] {
        assert_same(&read_dataset(&memory, &options).unwrap(), &read_dataset(&path, &options).unwrap());
    }
    let read = read_dataset(&memory, &labelled("y")).unwrap();
    assert_eq!(read.labels.names(), ["0", "1", "10"]);
    assert_eq!(numbers(table(&read), "code")[3], 10.0);
    // Rows to predict are read alike.
    let read = read_dataset(&memory, &ReadOptions { id: Some("id".into()), ..labelled("y") }).unwrap();
    let encoder = TableEncoder::fit(table(&read)).unwrap();
    let expected = Expected::Table(&encoder);
    let encode = |rows: mnar_data::RowsToPredict| match rows.inputs {
        Inputs::Table(table) => encoder.encode(&table).unwrap(),
        Inputs::Images(images) => panic!("{images:?}"),
    };
    let ours = read_for_prediction(&memory, &expected, Split::Train, Some("id")).unwrap();
    let theirs = read_for_prediction(&path, &expected, Split::Train, Some("id")).unwrap();
    assert_eq!(ours.row_names, theirs.row_names);
    assert_eq!(encode(ours), encode(theirs));
}

#[test]
fn labels_of_every_type_are_those_of_csv() {
    let folder = folder();
    let dictionary: DictionaryArray<Int32Type> = [Some("b"), None, Some("a")].into_iter().collect();
    let categories = Int8Array::from(vec![Some(1), None, Some(0)]);
    let numbered = DictionaryArray::<Int8Type>::try_new(categories, Arc::new(Int64Array::from(vec![3, 20]))).unwrap();
    let labels: Vec<(ArrayRef, [&str; 3])> = vec![
        (Arc::new(Int64Array::from(vec![10, 9, 10])), ["10", "9", "10"]),
        (Arc::new(Float64Array::from(vec![1.0, f64::NAN, 0.0])), ["1.0", "", "0.0"]),
        (Arc::new(Float64Array::from(vec![1.5, f64::NAN, 2.0])), ["1.5", "", "2.0"]),
        (Arc::new(Float32Array::from(vec![Some(0.1), None, Some(2.0)])), ["0.1", "", "2.0"]),
        (Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])), ["True", "", "False"]),
        (Arc::new(StringArray::from(vec![Some("z"), None, Some("a b")])), ["z", "", "a b"]),
        (Arc::new(StringViewArray::from(vec![Some("z"), None, Some("é")])), ["z", "", "é"]),
        (Arc::new(dictionary), ["b", "", "a"]),
        (Arc::new(numbered), ["20", "", "3"]),
    ];
    for (array, texts) in labels {
        let kind = array.data_type().clone();
        let x = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0]));
        let memory = memory(vec![("x", x), ("y", array)]);
        let rows: String = texts.iter().zip(1..).map(|(text, x)| format!("{x}.0,{text}\n")).collect();
        let path = file(&folder, "y.csv", format!("x,y\n{rows}"));
        assert_same(&read_dataset(&memory, &labelled("y")).unwrap(), &read_dataset(&path, &labelled("y")).unwrap());
        let labels = |source: Source<'_>| read_labels(source, &labelled("y")).unwrap();
        assert_eq!(labels((&memory).into()), labels((&path).into()), "{kind}");
    }
}

#[test]
fn lists_are_spread() {
    let values =
        vec![Some(vec![Some(1.0), Some(2.0)]), None, Some(vec![Some(3.0), None]), Some(vec![Some(4.0), Some(5.0)])];
    let lists: [ArrayRef; 2] = [
        Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(values.clone())),
        Arc::new(FixedSizeListArray::from_iter_primitive::<Float64Type, _, _>(values, 2)),
    ];
    for list in lists {
        let y = Arc::new(Int64Array::from(vec![0, 1, 0, 1]));
        let read = read_dataset(&memory(vec![("e", list), ("y", y)]), &labelled("y")).unwrap();
        let (first, second) = (numbers(table(&read), "e_0"), numbers(table(&read), "e_1"));
        assert!(first[1].is_nan() && second[1].is_nan() && second[2].is_nan());
        assert_eq!([first[0], first[2], first[3]], [1.0, 3.0, 4.0]);
        assert_eq!([second[0], second[3]], [2.0, 5.0]);
    }
}

#[test]
fn predictions_are_those_of_csv() {
    let folder = folder();
    let label = Arc::new(StringArray::from(vec![Some("a"), None, Some("b")]));
    let p = Arc::new(Float64Array::from(vec![0.9, 0.5, 0.2]));
    let q = Arc::new(Float64Array::from(vec![0.1, 0.5, 0.8]));
    let fold = Arc::new(Int64Array::from(vec![1, 0, 1]));
    let memory = memory(vec![("label", label), ("p_a", p), ("p_b", q), ("fold", fold)]);
    let path = file(&folder, "p.csv", "label,p_a,p_b,fold\na,0.9,0.1,1\n,0.5,0.5,0\nb,0.2,0.8,1\n");
    let mut columns = PredictionColumns::new("label");
    columns.fold = Some("fold".into());
    assert_eq!(read_predictions(&memory, &columns).unwrap(), read_predictions(&path, &columns).unwrap());
    columns.label = "lable".into();
    assert!(read_predictions(&memory, &columns).unwrap_err().to_string().starts_with("t: there is no column `lable`"));
}

#[test]
fn what_cannot_be_read_is_refused_by_name() {
    let y = || Arc::new(Int64Array::from(vec![0, 1])) as ArrayRef;
    let refused = |columns| chain(&read_dataset(&memory(columns), &labelled("y")).unwrap_err());
    let times = Arc::new(Time32SecondArray::from(vec![1, 2]));
    assert!(
        refused(vec![("d", times), ("y", y())]).starts_with("t: column `d` has type Time32(s), but a feature must be")
    );
    assert!(refused(vec![("x", y()), ("z", y())]).starts_with("t: there is no column `y`"));
    let wide = Arc::new(Float64Array::from(vec![1.0, f64::INFINITY]));
    assert_eq!(
        refused(vec![("x", wide), ("y", y())]),
        "t: row 2, column `x`: the value is inf; features must be finite numbers"
    );
    let none: ArrayRef = Arc::new(Float64Array::from(Vec::<f64>::new()));
    assert_eq!(refused(vec![("x", none.clone()), ("y", none)]), "t: there are no rows below the header");
    let shape = mnar_data::ImageShape::flat(2, 2, 1);
    let error = read_for_prediction(&memory(columns()), &Expected::Images { shape, resize: false }, Split::Train, None);
    assert!(error.unwrap_err().to_string().contains("it holds a table"));
    let twice = RecordBatch::try_from_iter([("a", y()), ("a ", y())]).unwrap();
    let error = ArrowTable::new(twice.schema(), vec![twice], "t").unwrap_err().to_string();
    assert_eq!(error, "t: more than one column is called `a`; column names must differ");
}
