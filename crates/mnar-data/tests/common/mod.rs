//! What tests of reading share; each test file is a program of its own and uses some of it.
#![allow(clippy::unwrap_used, dead_code)]

pub(crate) mod mutate;
pub(crate) mod parquet;
pub(crate) mod seeds;
pub(crate) mod workbook;

use mnar_data::{ColumnValues, Dataset, FeatureTable, Inputs, ReadOptions, read_dataset};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

pub(crate) fn file(folder: &TempDir, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}

pub(crate) fn labelled(label: &str) -> ReadOptions {
    ReadOptions { label: Some(label.into()), ..ReadOptions::default() }
}

/// An error and its causes, as a command prints them.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |message, cause| format!("{message}: {cause}"))
}

/// A file or folder of public data below the folder that `MNAR_DATA` names. A test whose data are asked for and not
/// there fails; without `MNAR_DATA` it is skipped, and says so past the capture of the test harness.
pub(crate) fn data(name: &str) -> Option<PathBuf> {
    use std::io::Write;
    match std::env::var_os("MNAR_DATA") {
        Some(root) => {
            let path = PathBuf::from(root).join(name);
            assert!(path.exists(), "MNAR_DATA is set, but there is no {}", path.display());
            Some(path)
        }
        None => {
            // `eprintln!` would be captured, and seen by no one while the test passes.
            let _ = writeln!(std::io::stderr(), "skipped: set MNAR_DATA to test with {name}");
            None
        }
    }
}

/// The message without the folder, which differs from run to run.
pub(crate) fn refused(path: &Path, options: &ReadOptions) -> String {
    let message = chain(&read_dataset(path, options).unwrap_err());
    let shown = path.display().to_string();
    message.replace(&format!("{shown}/"), "").replace(&format!("{}/", path.parent().unwrap().display()), "")
}

pub(crate) fn table(dataset: &Dataset) -> &FeatureTable {
    match &dataset.inputs {
        Inputs::Table(table) => table,
        Inputs::Images(images) => panic!("{images:?}"),
    }
}

/// A version 1.0 file.
pub(crate) fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    npy_ordered(descr, shape, data, "False")
}

pub(crate) fn npy_ordered(descr: &str, shape: &str, data: &[u8], column_major: &str) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': {column_major}, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

pub(crate) fn csv(text: &str, options: &ReadOptions) -> Result<Dataset, String> {
    let folder = folder();
    read_dataset(&file(&folder, "t.csv", text), options)
        .map_err(|error| chain(&error).replace(&format!("{}/", folder.path().display()), ""))
}

pub(crate) fn numbers(table: &FeatureTable, name: &str) -> Vec<f32> {
    match &table.columns().iter().find(|column| column.name == name).unwrap().values {
        ColumnValues::Numeric(values) => values.clone(),
        other => panic!("{name}: {other:?}"),
    }
}
