//! Any bytes as a text table (CSV of any separator and encoding, or JSON lines): an error or features, one row per label,
//! never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mnar_data::{ColumnValues, Inputs, ReadOptions, TextTable, read_dataset};

fuzz_target!(|data: &[u8]| {
    let text = TextTable::new(data.to_vec(), "fuzz.csv");
    for features in [None, Some(vec!["a".to_owned(), "b".to_owned()])] {
        let options = ReadOptions { label: Some("label".into()), features, ..Default::default() };
        match read_dataset(&text, &options) {
            Ok(read) => {
                assert_eq!(read.inputs.len(), read.labels.len());
                let Inputs::Table(table) = &read.inputs else { panic!("a text is a table") };
                for column in table.columns() {
                    if let ColumnValues::Numeric(values) = &column.values {
                        assert!(values.iter().all(|value| !value.is_infinite()));
                    }
                }
                read.notes.iter().for_each(|note| assert!(!note.to_string().is_empty()));
            }
            Err(error) => assert!(error.to_string().starts_with("fuzz.csv: ")),
        }
    }
});
