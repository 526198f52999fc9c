//! Any bytes as arrays and pictures: numpy arrays and archives, idx, and images in a folder. The first byte chooses.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mnar_data::{Memory, ReadOptions, Source, read_dataset};
use std::path::PathBuf;

const NAMES: [&str; 6] = ["t.npz", "t.npy", "train-images-idx3-ubyte.gz", "p/a/1.png", "p/a/1.jpg", "p/a/1.bmp"];

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let name = NAMES[usize::from(choice) % NAMES.len()];
    let Ok(folder) = tempfile::tempdir() else { return };
    let file = folder.path().join(name);
    let parent = file.parent().map(PathBuf::from).unwrap_or_default();
    if std::fs::create_dir_all(&parent).and_then(|()| std::fs::write(&file, bytes)).is_err() {
        return;
    }
    let path = if name.starts_with("p/") { folder.path().join("p") } else { file };
    let source = Source::from(&path).with_memory(Memory::bytes(200_000_000));
    if let Ok(read) = read_dataset(source, &ReadOptions::default()) {
        assert_eq!(read.inputs.len(), read.labels.len());
    }
});
