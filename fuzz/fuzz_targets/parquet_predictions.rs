//! Any bytes as a Parquet file of predictions: an error or a table whose rows agree, never a panic.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use mnar_data::{PredictionColumns, predictions_from_parquet};

fuzz_target!(|data: &[u8]| {
    let mut columns = PredictionColumns::new("label");
    columns.fold = Some("fold".into());
    match predictions_from_parquet(Bytes::copy_from_slice(data), &columns, "fuzz.parquet") {
        Ok(read) => {
            assert_eq!(read.labels.len(), read.posteriors.len());
            assert_eq!(read.labels.n_classes(), read.posteriors.n_classes());
            assert!(read.folds.is_some_and(|folds| folds.len() == read.labels.len()));
        }
        Err(error) => assert!(error.to_string().starts_with("fuzz.parquet: ")),
    }
});
