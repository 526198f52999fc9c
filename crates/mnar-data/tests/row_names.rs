//! The column that names the rows of a table: no feature, kept in its order, for training and for prediction.
#![allow(clippy::unwrap_used)] // helpers of tests are not seen as tests

mod common;

use common::parquet::Values::{F64, I64, Text};
use common::parquet::parquet;
use mnar::Remedy;
use mnar_data::{
    Dataset, Expected, Inputs, ReadOptions, RowNames, Split, TableEncoder, read_dataset, read_for_prediction,
};
use std::path::{Path, PathBuf};

fn write(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn options(id: &str) -> ReadOptions {
    ReadOptions { label: Some("y".into()), id: Some(id.into()), ..Default::default() }
}

fn encoder(read: &Dataset) -> TableEncoder {
    let Inputs::Table(table) = &read.inputs else { panic!("{read:?}") };
    TableEncoder::fit(table).unwrap()
}

fn named(path: &Path, encoder: &TableEncoder, id: &str) -> Result<RowNames, String> {
    let rows = read_for_prediction(path, &Expected::Table(encoder), Split::Test, Some(id));
    rows.map(|rows| rows.row_names.unwrap()).map_err(|error| error.to_string())
}

#[test]
fn names_of_rows_are_kept_and_are_no_feature() {
    let folder = tempfile::tempdir().unwrap();
    // Distinct in every row, with leading zeros, a gap and a repetition: nothing of it is for a feature.
    let path = write(&folder, "t.csv", "a,patient,y\n1,007,u\n2,,\n4,b 9,v\n3,007,\n");
    let read = read_dataset(&path, &options(" patient ")).unwrap();
    let expected = ["007", "", "b 9", "007"].map(str::to_owned).to_vec();
    assert_eq!(read.row_names, Some(RowNames { column: "patient".into(), names: expected.clone() }));
    let encoder = encoder(&read);
    assert_eq!(encoder.feature_names(), ["a"]);
    assert_eq!(named(&path, &encoder, "patient").unwrap().names, expected);
    // Another order of columns, and more than a thousand rows.
    let ids: Vec<String> = (0..1500).map(|i| format!("p{}", 1499 - i)).collect();
    let text: String = ids.iter().map(|id| format!("{id},1,x\n")).collect();
    let long = write(&folder, "long.csv", &format!("patient,a,z\n{text}"));
    assert_eq!(named(&long, &encoder, "patient").unwrap().names, ids);
}

#[test]
fn numbers_of_parquet_name_rows_as_they_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let columns = [
        I64([9_007_199_254_740_993, 2, 3].map(Some).to_vec()),
        F64([1.0, 2.0, 3.0].map(Some).to_vec()),
        Text(vec![Some("u"), None, Some("v")]),
    ];
    let schema = "required int64 id; required double a; optional binary y (STRING);";
    std::fs::write(&path, parquet(schema, &columns)).unwrap();
    let read = read_dataset(&path, &options("id")).unwrap();
    assert_eq!(read.row_names.as_ref().unwrap().names, ["9007199254740993", "2", "3"]);
    assert_eq!(named(&path, &encoder(&read), "id").unwrap().names, ["9007199254740993", "2", "3"]);
}

#[test]
fn a_column_cannot_be_a_name_and_something_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder, "t.csv", "a,id,y\n1,p,u\n2,q,\n4,r,v\n");
    let refused = |id: &str| read_dataset(&path, &options(id)).unwrap_err().to_string();
    assert!(refused("y").contains("`y`") && refused("y").contains("the name of the row"), "{}", refused("y"));
    assert!(refused("ID").contains("did you mean `id`?"), "{}", refused("ID"));
    let encoder = encoder(&read_dataset(&path, &options("id")).unwrap());
    let error = named(&path, &encoder, "a").unwrap_err();
    assert!(error.contains("a feature of the model"), "{error}");
    // Ignored and named: it is no feature either way.
    let both = ReadOptions { ignore: vec!["id".into()], ..options("id") };
    assert_eq!(read_dataset(&path, &both).unwrap().row_names.unwrap().names, ["p", "q", "r"]);
    let only = write(&folder, "only.csv", "id,y\np,u\nq,\n");
    assert!(read_dataset(&only, &options("id")).unwrap_err().to_string().contains("only.csv"));
    let array = folder.path().join("x.npy");
    std::fs::write(&array, b"\x93NUMPY").unwrap();
    let error = read_dataset(&array, &options("id")).unwrap_err();
    assert!(error.to_string().contains("only the rows of a table"), "{error}");
    assert_eq!(error.remedies(), [Remedy::unset("id")]);
}
