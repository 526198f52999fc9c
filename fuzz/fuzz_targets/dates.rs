//! Any text as a date: what is read is a day, and its text is read again as the same day.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mnar_data::{ReadOptions, TextTable, read_dataset};

fuzz_target!(|data: &[u8]| {
    let Ok(date) = std::str::from_utf8(data) else { return };
    if date.contains(['"', '\n', '\r', '\0']) {
        return;
    }
    let text = format!("when,label\n\"{date}\",a\n\"2024-02-29\",\n\"{date}\",b\n");
    let options = ReadOptions { label: Some("label".into()), ..Default::default() };
    let _ = read_dataset(&TextTable::new(text, "fuzz.csv"), &options);
});
