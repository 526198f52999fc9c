//! Tables that a model can be trained on, on tiny files, good and bad.
#![allow(clippy::unwrap_used)]

mod common;

use common::parquet::Values::{self, Bool, F64, I32, Lists, Text};
use common::parquet::parquet;
use common::{csv, file, folder, labelled, npy, numbers, refused, table};
use mnar::Remedy;
use mnar_data::{
    ColumnValues, Expected, FeatureTable, ImageShape, Inputs, ReadOptions, Split, TableEncoder, read_dataset,
    read_for_prediction,
};
use std::path::PathBuf;

fn names(table: &FeatureTable, name: &str) -> Vec<Option<String>> {
    match &table.columns().iter().find(|column| column.name == name).unwrap().values {
        ColumnValues::Categorical(names) => {
            (0..names.len()).map(|i| names.code(i).map(|code| names.levels()[code].clone())).collect()
        }
        other => panic!("{name}: {other:?}"),
    }
}

fn some(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|value| (!value.is_empty()).then(|| (*value).to_owned())).collect()
}

#[test]
fn columns_are_typed_by_their_values() {
    let text = "age,yes,city,code,label\n1.5,True,Ulm,01,a\nNA,false,,x,\n-2,,Bern,01,b\n 1e2 ,TRUE,Ulm,7,\n";
    let read = csv(text, &labelled("label")).unwrap();
    let table = table(&read);
    let age = numbers(table, "age");
    assert!(age[1].is_nan());
    assert_eq!([age[0], age[2], age[3]], [1.5, -2.0, 100.0]);
    assert_eq!(numbers(table, "yes")[..2], [1.0, 0.0]);
    assert_eq!(names(table, "city"), some(&["Ulm", "", "Bern", "Ulm"]));
    // A text after numbers makes names of all, as they were written.
    assert_eq!(names(table, "code"), some(&["01", "x", "01", "7"]));
    assert_eq!(read.labels.names(), ["a", "b"]);
    let mut options = labelled("label");
    options.categorical = vec!["yes".into()];
    options.ignore = vec!["age".into(), "city".into()];
    options.missing = vec!["x".into(), "b".into()];
    let read = csv(text, &options).unwrap();
    assert_eq!(names(self::table(&read), "yes"), some(&["True", "false", "", "TRUE"]));
    let code = numbers(self::table(&read), "code");
    assert_eq!((code[0], code[1].is_nan(), code.len()), (1.0, true, 4));
    assert_eq!(read.labels.counts(), [1]);
}

#[test]
fn labels_may_be_numbers_booleans_or_text_and_all_there() {
    for (labels, expected) in
        [(["10", "9", ""], ["9", "10"]), (["1.0", "0.0", ""], ["0", "1"]), (["True", "False", ""], ["False", "True"])]
    {
        let [a, b, c] = labels;
        let read = csv(&format!("x,label\n1,{a}\n2,{b}\n3,{c}\n"), &labelled("label")).unwrap();
        assert_eq!(read.labels.names(), expected);
        assert_eq!(read.labels.counts(), [1, 1]);
    }
    assert_eq!(csv("x,label\n1,a\n2,b\n", &labelled("label")).unwrap().labels.n_unlabelled(), 0);
    // One class alone is read too: whether it will do is for the method to say.
    assert_eq!(csv("x,label\n1,a\n2,\n", &labelled("label")).unwrap().labels.counts(), [1]);
}

#[test]
fn bad_tables_are_refused_with_what_to_do() {
    let message = |text: &str| csv(text, &labelled("label")).unwrap_err();
    assert_eq!(
        message("a,label\n1,x\n-inf,y\n"),
        "t.csv: row 2, column `a`: the value is -inf; features must be finite numbers"
    );
    assert!(message("a,label\n1,x\n1e39,y\n").contains("row 2, column `a`: the value is 1e39"));
    assert!(message("a,label\n1,\n2, \n").contains("none of the 2 rows"));
    assert!(message("label\nx\ny\n").contains("there are no feature columns"));
    assert!(message("a,label\n").contains("no rows below the header"));
    assert!(message("a,Label\n1,x\n").contains("no column `label`, did you mean `Label`?"));
    assert!(csv("a,b\n1,x\n", &ReadOptions::default()).unwrap_err().contains("which column holds the labels?"));
    let mut options = labelled("label");
    options.ignore = vec!["b".into()];
    assert!(csv("a,label\n1,x\n", &options).unwrap_err().contains("no column `b`"));
    options.ignore = vec!["label".into()];
    assert!(csv("a,label\n1,x\n", &options).unwrap_err().contains("cannot be the label and ignored"));

    let mut text = String::from("id,label\n");
    (0..150).for_each(|i| text.push_str(&format!("n{i},{}\n", i % 2)));
    assert_eq!(
        message(&text),
        "t.csv: column `id` has 150 different values in 150 rows, like identifiers or free text, so nothing can be learnt from it; leave it out, or let it name the rows"
    );
    let folder = folder();
    let error = read_dataset(&file(&folder, "id.csv", &text), &labelled("label")).unwrap_err();
    assert_eq!(error.remedies(), [Remedy::set("ignore", "id"), Remedy::set("id", "id")]);
    let mut text = String::from("x,label\n");
    (0..5000).for_each(|i| text.push_str(&format!("{i}.5,{}\n", i % 2)));
    assert_eq!(numbers(table(&csv(&text, &labelled("label")).unwrap()), "x")[4999], 4999.5);
    text.push_str("many,1\n");
    let refusal = message(&text);
    assert!(refusal.contains("row 5001, column `x`: `many` is not a number"), "{refusal}");
    let error = read_dataset(&file(&folder, "x.csv", &text), &labelled("label")).unwrap_err();
    assert_eq!(error.remedies(), [Remedy::set("missing", "many"), Remedy::set("categorical", "x")]);
    let mut text = String::from("time,label\n");
    (0..500).for_each(|i| text.push_str(&format!("{},{}\n", 1_700_000_000 + i, i % 2)));
    assert!(message(&text).contains("column `time` varies by 1.443e2 around 1.700000"), "{}", message(&text));
}

#[test]
fn labels_from_elsewhere_replace_those_inside() {
    let folder = folder();
    let data = file(&folder, "t.csv", "x,label\n1,a\n2,b\n3,a\n");
    let options = |file: PathBuf, label: Option<&str>| ReadOptions {
        labels_file: Some(file),
        label: label.map(str::to_owned),
        ..ReadOptions::default()
    };
    let csv = file(&folder, "labels.csv", "id,label\n7,u\n8,\n9,v\n");
    let read = read_dataset(&data, &options(csv.clone(), Some("label"))).unwrap();
    assert_eq!(read.labels.names(), ["u", "v"]);
    // The label of the table is no feature for all that.
    assert_eq!(table(&read).columns().len(), 1);
    let array = file(&folder, "labels.npy", npy("<i4", "(3,)", &[-1_i32, 1, 0].map(i32::to_le_bytes).concat()));
    let read = read_dataset(&data, &options(array, None)).unwrap();
    assert_eq!(read.labels.names(), ["0", "1"]);
    assert!(!read.labels.is_labelled(0));
    let few = file(&folder, "few.csv", "label\na\nb\n");
    assert!(
        refused(&data, &options(few.clone(), None)).contains("few.csv: there are 2 labels for the 3 rows of t.csv")
    );
    assert!(refused(&data, &options(few, Some("lebel"))).contains("did you mean `label`?"));
    let none = file(&folder, "none.npy", npy("|i1", "(3,)", &[255; 3]));
    assert!(refused(&data, &options(none, None)).contains("none.npy: cannot be used: none of the 3 rows"));
    let floats =
        file(&folder, "floats.npy", npy("<f8", "(3, 1)", &[1.0, f64::NAN, 0.5].map(f64::to_le_bytes).concat()));
    assert!(refused(&data, &options(floats, None)).contains("row 3: label 0.5 is not a whole number"));
}

#[test]
fn parquet_is_typed_by_its_schema_and_lists_are_spread() {
    let folder = folder();
    let columns = |embedding: Vec<Option<Vec<Option<f32>>>>| -> Vec<u8> {
        let schema =
            "optional boolean flag; optional group e (LIST) { repeated group list { optional float element; } }
            optional binary text (STRING); optional double f; optional boolean label;";
        let label = || Bool(vec![Some(true), None, Some(false)]);
        let text = Text(vec![Some("1"), Some("2"), None]);
        let f = F64(vec![Some(1.0), Some(-999.0), Some(f64::NAN)]);
        parquet(schema, &[label(), Lists(embedding), text, f, label()])
    };
    let embedding = vec![None, Some(vec![Some(1.0), Some(2.0)]), Some(vec![None, Some(4.0)])];
    let path = file(&folder, "t.parquet", columns(embedding));
    let mut options = labelled("label");
    options.missing = vec!["-999".into()];
    let read = read_dataset(&path, &options).unwrap();
    let all = table(&read);
    let header: Vec<&str> = all.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!(header, ["flag", "e_0", "e_1", "text", "f"]);
    assert!(numbers(all, "e_0")[0].is_nan() && numbers(all, "e_0")[2].is_nan() && numbers(all, "f")[1].is_nan());
    assert_eq!(numbers(all, "e_1")[1..], [2.0, 4.0]);
    assert_eq!(names(all, "text"), some(&["1", "2", ""]));
    assert_eq!(read.labels.names(), ["false", "true"]);
    // The parts of a list are found again for prediction, and what is not known is passed over.
    let encoder = TableEncoder::fit(all).unwrap();
    let again = read_for_prediction(&path, &Expected::Table(&encoder), Split::Train, None).unwrap();
    let Inputs::Table(again) = again.inputs else { panic!() };
    assert_eq!(encoder.encode(&again).unwrap(), encoder.encode(all).unwrap());

    file(&folder, "t.parquet", columns(vec![Some(vec![Some(1.0)]), Some(vec![Some(1.0), Some(2.0)]), None]));
    assert!(refused(&path, &options).contains("row 2, column `e`: a list of 2 numbers, where the others have 1"));
    let times =
        |columns: &[Values]| parquet("optional int32 d (TIME_MILLIS); optional binary label (STRING);", columns);
    file(&folder, "t.parquet", times(&[I32(vec![Some(1), Some(2)]), Text(vec![Some("a"), Some("b")])]));
    let refusal = refused(&path, &options);
    assert!(refusal.contains("column `d` has type Time32(ms), but a feature must be a number"), "{refusal}");
    assert_eq!(read_dataset(&path, &options).unwrap_err().remedies(), [Remedy::set("ignore", "d")]);
    let schema = "optional double x; optional group label (LIST) { repeated group list { optional float element; } }";
    let lists = Lists(vec![Some(vec![Some(1.0)]), None]);
    file(&folder, "t.parquet", parquet(schema, &[F64(vec![Some(1.0), Some(2.0)]), lists]));
    assert!(refused(&path, &options).contains("a label or fold must be text"));
}

#[test]
fn rows_to_be_predicted_are_read_as_those_learnt_from() {
    let folder = folder();
    let text = "n,c,k,label\n1,u,5,a\n2,u,5,b\n,v,5,\n4,v,5,a\n5,w,5,\n";
    let learnt = read_dataset(&file(&folder, "t.csv", text), &labelled("label")).unwrap();
    let encoder = TableEncoder::fit(table(&learnt)).unwrap();
    assert_eq!(encoder.feature_names(), ["n", "n (missing)", "c=u", "c=v"]);
    assert_eq!(encoder.dropped(), ["k"]);
    let read = |text: &str| {
        let path = file(&folder, "new.csv", text);
        let rows = read_for_prediction(&path, &Expected::Table(&encoder), Split::Train, None);
        rows.map(|rows| rows.inputs).map_err(|error| error.to_string())
    };
    // Other columns, another order, a level seen once, one never seen, a missing one; one row is enough.
    let Inputs::Table(new) = read("z,c,n\nq,w,3\nq,new,\nq,,true\nq,v,2\n").unwrap() else { panic!() };
    let x = encoder.encode(&new).unwrap();
    assert_eq!(x.row(0).to_vec(), [0.0, 0.0, 0.0, 0.0]);
    assert_eq!(x.row(1).to_vec(), [0.0, 1.0, 0.0, 0.0]);
    // One number per column, for trees: what is missing or not known is NaN.
    let columns = encoder.columns_of(x.view());
    assert_eq!((columns.dim(), encoder.categorical()), ((4, 2), vec![1]));
    assert_eq!((columns[(0, 0)], columns[(3, 1)]), (0.0, 1.0));
    assert!(columns[(1, 0)].is_nan() && columns[(0, 1)].is_nan() && columns[(2, 1)].is_nan());
    assert_eq!(x.row(2).to_vec()[2..], [0.0, 0.0]);
    assert_eq!(x.row(3).to_vec()[1..], [0.0, 0.0, 1.0]);
    let other = read("c,m\nu,1\n").unwrap_err();
    assert!(other.ends_with("columns that the table does not have: n; columns that it does not know: m"), "{other}");
    let neither = read("k,label\n5,a\n").unwrap_err();
    assert!(neither.ends_with("does not have: n, c; columns that it does not know: label"), "{neither}");
    let refusal = read("c,n\nu,one\n").unwrap_err();
    assert!(
        refusal.contains("row 1, column `n`: `one` is not a number; it must be as it was in training"),
        "{refusal}"
    );
    let pixels = Expected::Images { shape: ImageShape::flat(2, 2, 1), resize: false };
    let error = read_for_prediction(&folder.path().join("t.csv"), &pixels, Split::Train, None).unwrap_err().to_string();
    assert!(error.contains("it holds a table, but the model was trained on images"), "{error}");
}
