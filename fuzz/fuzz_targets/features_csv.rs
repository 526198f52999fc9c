//! Any bytes as a CSV of features: an error or finite features, one row per label, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mnar_data::{FeatureColumns, features_from_csv};
use std::io::Cursor;

fuzz_target!(|data: &[u8]| {
    for (features, fold) in
        [(FeatureColumns::AllNumeric, None), (FeatureColumns::Named(vec!["a".into(), "b".into()]), Some("fold"))]
    {
        let read = features_from_csv(Cursor::new(data.to_vec()), "label", &features, fold, &["NA".into()], "fuzz.csv");
        match read {
            Ok(read) => {
                assert_eq!(read.x.dim(), (read.labels.len(), read.names.len()));
                assert!(read.x.iter().all(|value| value.is_finite()));
            }
            Err(error) => assert!(error.to_string().starts_with("fuzz.csv: ")),
        }
    }
});
