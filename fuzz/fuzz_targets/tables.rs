//! Any bytes as a table of any format but text: Excel, Arrow, Parquet, JSON, and folders of Parquet files. An error or a
//! table whose rows agree, never a panic. The first byte chooses the format.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mnar_data::{Memory, ReadOptions, Source, read_dataset, survey};
use std::path::PathBuf;

const NAMES: [&str; 9] =
    ["t.xlsx", "t.ods", "t.xls", "t.xlsb", "t.arrow", "t.ipc", "t.parquet", "t.jsonl", "parts/part-1.parquet"];

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let name = NAMES[usize::from(choice) % NAMES.len()];
    let Ok(folder) = tempfile::tempdir() else { return };
    let file = folder.path().join(name);
    let parent = file.parent().map(PathBuf::from).unwrap_or_default();
    if std::fs::create_dir_all(&parent).and_then(|()| std::fs::write(&file, bytes)).is_err() {
        return;
    }
    let path = if name.starts_with("parts/") { parent } else { file };
    let source = Source::from(&path).with_memory(Memory::bytes(200_000_000));
    let options = ReadOptions { label: Some("label".into()), ..Default::default() };
    if let Ok(read) = read_dataset(source, &options) {
        assert_eq!(read.inputs.len(), read.labels.len());
    }
    let _ = survey(source, &options);
});
