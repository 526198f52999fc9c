//! Valid files with some bytes changed, cut or doubled: any answer will do but a panic.
#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use mnar_data::{
    Column, PredictionColumns, ReadOptions, TextTable, predictions_from_csv, predictions_from_parquet, read_dataset,
    write_table,
};
use proptest::prelude::*;
use proptest::sample::Index;
use std::io::Cursor;

#[derive(Clone, Debug)]
enum Mutation {
    Set(Index, u8),
    Flip(Index, u8),
    Cut(Index, Index),
    Double(Index, Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    // Bytes that mean something to a CSV reader come up more often than chance would have them.
    let byte = prop_oneof![any::<u8>(), prop::sample::select(b"\",\n\r.e-0 \xef\xff\x00".to_vec())];
    prop_oneof![
        (any::<Index>(), byte).prop_map(|(at, byte)| Mutation::Set(at, byte)),
        (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Mutation::Flip(at, bit)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Mutation::Cut(from, to)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Mutation::Double(from, to)),
    ]
}

fn mutated(mut bytes: Vec<u8>, mutations: &[Mutation]) -> Vec<u8> {
    for mutation in mutations {
        if bytes.is_empty() {
            break;
        }
        let n = bytes.len();
        // At most 40 bytes, so that something is left to be read.
        let range = |from: &Index, to: &Index| {
            let from = from.index(n);
            from..(from + to.index(40) + 1).min(n)
        };
        match mutation {
            Mutation::Set(at, byte) => bytes[at.index(n)] = *byte,
            Mutation::Flip(at, bit) => bytes[at.index(n)] ^= 1 << bit,
            Mutation::Cut(from, to) => drop(bytes.drain(range(from, to))),
            Mutation::Double(from, to) => {
                let range = range(from, to);
                let (at, part) = (range.end, bytes[range].to_vec());
                bytes.splice(at..at, part);
            }
        }
    }
    bytes
}

const CSV: &str =
    "\u{feff}id,fold,label,p_a,p_b c,note\r\n1,0,a,0.9,1e-1,\"x, \"\"y\"\"\"\r\n2,1,,0.5,.5,\n3,0,\"b c\",0,1,ü🙂\n";
const FEATURES: &str = "a,fold,label,b\n1,0,x,2\n-1e5,1,,0.25\n3,0,1.0,1\n";

const SEMICOLONS: &str = "a;when;label;b\n1,5;2024-02-29T10:00Z;x;?\n-1e5;2023-01-01;-1;0,25\n3;2020-12-31;1.0;1\n";
const JSON: &str = "{\"a\":1,\"e\":[1,2.5],\"label\":\"x\"}\n{\"a\":null,\"e\":[0,null],\"label\":null,\"b\":true}\n";

fn options() -> ReadOptions {
    ReadOptions { label: Some("label".into()), ..Default::default() }
}

fn parquet() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let p: Vec<f64> = (0..50).map(|i| f64::from(i) / 50.0).collect();
    let q: Vec<f64> = p.iter().map(|p| 1.0 - p).collect();
    let folds: Vec<u64> = (0..50).map(|i| i % 4).collect();
    let labels = (0..50).map(|i| [Some("a"), None, Some("b")][i % 3]).collect();
    let columns = [
        ("label", Column::Texts(labels)),
        ("fold", Column::Integers(&folds)),
        ("p_a", Column::Numbers(&p)),
        ("p_b", Column::Numbers(&q)),
    ];
    write_table(&path, &columns).unwrap();
    std::fs::read(&path).unwrap()
}

fn columns() -> PredictionColumns {
    let mut columns = PredictionColumns::new("label");
    columns.fold = Some("fold".into());
    columns
}

#[test]
fn the_files_themselves_are_fine() {
    predictions_from_csv(Cursor::new(CSV), &columns(), "f").unwrap();
    predictions_from_parquet(parquet().into(), &columns(), "f").unwrap();
    for text in [FEATURES, SEMICOLONS, JSON] {
        read_dataset(&TextTable::new(text, "f"), &options()).unwrap();
    }
}

#[test]
fn every_flipped_bit_of_a_parquet_file_is_survived() {
    let whole = parquet();
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            if let Err(error) = predictions_from_parquet(Bytes::from(bytes), &columns(), "f") {
                assert!(error.to_string().starts_with("f: "), "byte {at}, bit {bit}: {error}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn csv_never_panics(mutations in prop::collection::vec(mutation(), 1..6)) {
        let bytes = mutated(CSV.as_bytes().to_vec(), &mutations);
        match predictions_from_csv(Cursor::new(bytes), &columns(), "f") {
            Ok(read) => prop_assert_eq!(read.labels.len(), read.posteriors.len()),
            Err(error) => prop_assert!(error.to_string().starts_with("f: ")),
        }
        for text in [FEATURES, SEMICOLONS, JSON] {
            let bytes = mutated(text.as_bytes().to_vec(), &mutations);
            match read_dataset(&TextTable::new(bytes, "f"), &options()) {
                Ok(read) => prop_assert_eq!(read.inputs.len(), read.labels.len()),
                Err(error) => prop_assert!(error.to_string().starts_with("f: ")),
            }
        }
    }

    #[test]
    fn parquet_never_panics(mutations in prop::collection::vec(mutation(), 1..4)) {
        thread_local!(static FILE: Vec<u8> = parquet());
        let bytes = mutated(FILE.with(Clone::clone), &mutations);
        match predictions_from_parquet(Bytes::from(bytes), &columns(), "f") {
            Ok(read) => prop_assert_eq!(read.labels.len(), read.posteriors.len()),
            Err(error) => prop_assert!(error.to_string().starts_with("f: ")),
        }
    }
}
