//! Tables of features and of labels alone.
#![allow(clippy::unwrap_used)]

mod common;

use common::chain;
use mnar_data::mask_labels;
use mnar_data::{Column, FeatureColumns, Features, features_from_csv, read_features, read_labels, write_table};
use std::io::Cursor;
use std::path::PathBuf;

fn read(text: &str, features: &FeatureColumns, fold: Option<&str>) -> Result<Features, String> {
    features_from_csv(Cursor::new(text.to_owned()), "label", features, fold, &["NA".into()], "f.csv")
        .map_err(|error| chain(&error))
}

fn all(text: &str) -> Result<Features, String> {
    read(text, &FeatureColumns::AllNumeric, None)
}

fn named(names: &[&str]) -> FeatureColumns {
    FeatureColumns::Named(names.iter().map(|name| (*name).to_owned()).collect())
}

fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

const GOOD: &str = "a,label,b,fold\n1,x,2,k\n-3.5,,1e9,j\n0,y,0,k\n5,NA,6,j\n";

#[test]
fn all_columns_or_the_named_ones_in_their_order() {
    let read_all = read(GOOD, &FeatureColumns::AllNumeric, Some("fold")).unwrap();
    assert_eq!(read_all.names, ["a", "b"]);
    assert_eq!(read_all.x, ndarray::array![[1.0, 2.0], [-3.5, 1e9], [0.0, 0.0], [5.0, 6.0]]);
    assert!(read_all.x.is_standard_layout());
    assert_eq!(read_all.folds, Some(vec![1, 0, 1, 0]));
    assert_eq!(read_all.labels.counts(), [1, 1]);
    let read_named = read(GOOD, &named(&["b", "a"]), None).unwrap();
    assert_eq!(read_named.names, ["b", "a"]);
    assert_eq!(read_named.x.row(0).to_vec(), [2.0, 1.0]);
}

#[test]
fn what_is_no_number_is_named_with_what_to_do() {
    assert_eq!(
        all(GOOD).unwrap_err(),
        "f.csv: row 1, column `fold`: `k` is not a number; choose the numeric columns to use, or write this one as numbers"
    );
    assert_eq!(
        all("a,label\n1,x\n,y\n").unwrap_err(),
        "f.csv: row 2, column `a`: the value is missing; fill it in, drop the row, or choose columns without gaps"
    );
    assert!(all("a,label\n1,x\nnan,y\n").unwrap_err().contains("row 2, column `a`: the value is missing"));
    assert!(all("a,label\n1,x\n-inf,y\n").unwrap_err().contains("row 2, column `a`: the value is -inf"));
    assert!(all("label\nx\ny\n").unwrap_err().contains("there are no feature columns"));
    assert!(all("a,label\n").unwrap_err().contains("there are no rows below the header"));
    assert!(all("a,label\n1,x\n2,y\n").unwrap_err().contains("all 2 rows have a label"));
}

#[test]
fn roles_do_not_overlap() {
    let message = |features: &FeatureColumns| read(GOOD, features, Some("fold")).unwrap_err();
    assert!(message(&named(&["a", "label"])).contains("`label` cannot be the label and a feature at once"));
    assert!(message(&named(&["fold"])).contains("`fold` cannot be the fold and a feature at once"));
    assert!(message(&named(&["a", "a"])).contains("`a` cannot be a feature and another feature at once"));
    assert!(message(&named(&[])).contains("there are no feature columns"));
    assert!(message(&named(&["bb"])).contains("no column `bb`"));
}

#[test]
fn labels_alone_may_all_be_there_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let labels = |text: &str| {
        read_labels(&file(&folder, "l.csv", text), "label", &["NA".into()]).map_err(|error| error.to_string())
    };
    assert_eq!(labels("label,z\n10,t\n9,u\n10,v\n").unwrap().names(), ["9", "10"]);
    assert_eq!(labels("label,z\n,t\nNA,u\n").unwrap().n_unlabelled(), 2);
    assert!(labels("label,z\n").unwrap_err().contains("no rows"));
    assert!(labels("labels,z\n1,2\n").unwrap_err().contains("no column `label`, did you mean `labels`?"));
    // Integers that pandas wrote as floats because some were missing; but not where a fraction is among them.
    assert_eq!(labels("label,z\n1.0,t\n0.0,u\n,v\n").unwrap().names(), ["0", "1"]);
    assert_eq!(labels("label,z\n1.0,t\n1,u\n,v\n").unwrap().counts(), [2]);
    assert_eq!(labels("label,z\n1.0,t\n2.5,u\n,v\n").unwrap().names(), ["1.0", "2.5"]);
}

#[test]
fn parquet_features_are_read_and_typed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let a = [1.5, -2.5, f64::MIN_POSITIVE];
    write_table(
        &path,
        &[
            ("a", Column::Numbers(&a)),
            ("n", Column::Integers(&[1, 2, 3])),
            ("label", Column::Texts(vec![Some("x"), None, Some("y")])),
        ],
    )
    .unwrap();
    let read = read_features(&path, "label", &FeatureColumns::AllNumeric, None, &[]).unwrap();
    assert_eq!(read.x.column(0).to_vec(), a);
    assert_eq!(read.x.column(1).to_vec(), [1.0, 2.0, 3.0]);
    assert_eq!(read_labels(&path, "label", &[]).unwrap(), read.labels);
    let error = read_features(&path, "n", &named(&["label"]), None, &[]).unwrap_err().to_string();
    assert!(
        error.contains("column `label` has type text, but a feature must be a number; choose the numeric"),
        "{error}"
    );
}

#[test]
fn masking_keeps_every_other_value() {
    let folder = tempfile::tempdir().unwrap();
    let text = "id,label,note\n007,x,\"a, \"\"b\"\"\nc\"\n1e3, y ,  spaced \n2,NA,é🙂\n3,x,\n";
    let input = file(&folder, "in.csv", text);
    let output = folder.path().join("out.csv");
    mask_labels(&input, &output, "label", &["NA".into()], Some("truth"), &[false, true, true, true]).unwrap();
    assert_eq!(
        std::fs::read_to_string(&output).unwrap(),
        "id,label,note,truth\n007,,\"a, \"\"b\"\"\nc\",x\n1e3, y ,  spaced , y \n2,,é🙂,NA\n3,x,,x\n"
    );
    // In place, and through gzip.
    mask_labels(&input, &input, "label", &[], None, &[false; 4]).unwrap();
    assert_eq!(read_labels(&input, "label", &[]).unwrap().n_labelled(), 0);
    let gzipped = folder.path().join("out.csv.gz");
    mask_labels(&output, &gzipped, "label", &[], None, &[true; 4]).unwrap();
    assert_eq!(read_labels(&gzipped, "truth", &[]).unwrap().n_labelled(), 4);
}

#[test]
fn masking_refuses_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let input = file(&folder, "in.csv", "id,label\n1,x\n2,y\n");
    let output = folder.path().join("out.csv");
    let refused = |output: &PathBuf, label: &str, truth: Option<&str>, labelled: &[bool]| {
        mask_labels(&input, output, label, &[], truth, labelled).unwrap_err().to_string()
    };
    assert!(refused(&output, "label", None, &[true]).contains("the table has 2 rows, but 1 were expected"));
    assert!(refused(&output, "label", None, &[true; 3]).contains("the table has 2 rows, but 3 were expected"));
    assert!(refused(&output, "label", Some("id"), &[true; 2]).contains("there already is a column `id`"));
    assert!(refused(&output, "lebal", None, &[true; 2]).contains("did you mean `label`?"));
    let parquet = folder.path().join("out.parquet");
    let message = refused(&parquet, "label", None, &[true; 2]);
    assert!(message.contains("the copy of a CSV file must be CSV too, but this name means Parquet"), "{message}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
