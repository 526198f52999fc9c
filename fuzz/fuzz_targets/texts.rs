//! Any bytes as text of any encoding, gzipped or not: what is read as dates, numbers and names agrees in length, and the
//! encoding is UTF-8 once it is read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mnar_data::{Memory, ReadOptions, Source, TextTable, read_columns, read_labels, survey};

fuzz_target!(|data: &[u8]| {
    // Two bytes choose the mark of the encoding.
    let Some((choice, bytes)) = data.split_first() else { return };
    let mark: &[u8] = [&b""[..], b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"][usize::from(choice % 4)];
    let text = TextTable::new([mark, bytes].concat(), "fuzz.csv");
    let source = Source::from(&text).with_memory(Memory::bytes(200_000_000));
    if let Ok(found) = survey(source, &Default::default()) {
        let names: Vec<String> = found.columns.iter().map(|column| column.name.clone()).collect();
        if let Ok(columns) = read_columns(source, &names, &[]) {
            assert_eq!(columns.len(), found.rows);
        }
        for name in names.iter().take(3) {
            let options = ReadOptions { label: Some(name.clone()), ..Default::default() };
            if let Ok((labels, _)) = read_labels(source, &options) {
                assert_eq!(labels.len(), found.rows);
            }
        }
    }
});
