//! Labels alone, and copies of tables with labels blanked.
#![allow(clippy::unwrap_used)]

use mnar::Labels;
use mnar_data::{DataError, Note, ReadOptions, mask_labels};
use std::path::{Path, PathBuf};

fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn read_labels(path: &Path, label: &str, missing: &[String]) -> Result<Labels, DataError> {
    let options = ReadOptions { label: Some(label.into()), missing: missing.to_vec(), ..Default::default() };
    Ok(mnar_data::read_labels(path, &options)?.0)
}

#[test]
fn marks_of_missing_labels_are_read_as_in_any_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "l.csv", "label,z\n0,t\n-1,u\n1,v\nNA,w\nNA,x\n");
    let mut options = ReadOptions { label: Some("label".into()), ..Default::default() };
    let (labels, notes) = mnar_data::read_labels(&path, &options).unwrap();
    assert_eq!((labels.names().join(" "), labels.n_unlabelled()), ("0 1".into(), 3));
    assert_eq!(notes, [Note::MissingLabels { marks: vec![("NA".into(), 2), ("-1".into(), 1)] }]);
    options.labels_as_they_are = true;
    assert_eq!(mnar_data::read_labels(&path, &options).unwrap().0.names(), ["-1", "0", "1", "NA"]);
    options.label = None;
    assert!(mnar_data::read_labels(&path, &options).unwrap_err().to_string().contains("label, z"));
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
    assert_eq!(read_labels(&gzipped, "truth", &[]).unwrap().n_labelled(), 3);
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
