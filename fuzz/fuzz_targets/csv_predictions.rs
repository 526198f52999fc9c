//! Any bytes as a CSV of predictions: an error or a table whose rows agree, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mnar_data::{PredictionColumns, predictions_from_csv};
use std::io::Cursor;

fuzz_target!(|data: &[u8]| {
    let mut columns = PredictionColumns::new("label");
    columns.missing.push("NA".into());
    for fold in [None, Some("fold".to_owned())] {
        columns.fold = fold;
        match predictions_from_csv(Cursor::new(data.to_vec()), &columns, "fuzz.csv") {
            Ok(read) => {
                assert_eq!(read.labels.len(), read.posteriors.len());
                assert_eq!(read.labels.n_classes(), read.posteriors.n_classes());
                assert!(read.folds.is_none_or(|folds| folds.len() == read.labels.len()));
            }
            Err(error) => assert!(error.to_string().starts_with("fuzz.csv: ")),
        }
    }
});
