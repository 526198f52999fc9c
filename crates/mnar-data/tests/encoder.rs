//! Features as a model takes them.
#![allow(clippy::unwrap_used)]

use mnar_data::{FeatureTable, Inputs, ReadOptions, TableEncoder, read_dataset};
use ndarray::Array2;
use proptest::prelude::*;

fn table(text: &str) -> FeatureTable {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, text).unwrap();
    let read = read_dataset(&path, &ReadOptions { label: Some("label".into()), ..Default::default() }).unwrap();
    match read.inputs {
        Inputs::Table(table) => table,
        Inputs::Images(images) => panic!("{images:?}"),
    }
}

#[test]
fn what_does_not_vary_is_dropped_and_what_is_missing_is_marked() {
    let text = "a,same,gone,half,one,few,label\n1,0.1,,7,u,p,x\n2,0.1,,,u,q,\n3,0.1,,7,u,p,x\n6,0.1,,,u,r,y\n";
    let table = table(text);
    let encoder = TableEncoder::fit(&table).unwrap();
    assert_eq!(encoder.dropped(), ["same", "gone", "one"]);
    assert_eq!(encoder.feature_names(), ["a", "half (missing)", "few=p"]);
    assert_eq!(encoder.width(), 3);
    let x = encoder.encode(&table).unwrap();
    assert_eq!(x.column(1).to_vec(), [0.0, 1.0, 0.0, 1.0]);
    assert_eq!(x.column(2).to_vec(), [1.0, 0.0, 1.0, 0.0]);
    let json = serde_json::to_string(&encoder).unwrap();
    let again: TableEncoder = serde_json::from_str(&json).unwrap();
    assert_eq!(again, encoder);
    assert_eq!(again.encode(&table).unwrap(), x);
}

#[test]
fn nothing_to_learn_from_is_an_error() {
    let error = TableEncoder::fit(&table("a,b,label\n1,u,x\n1,u,y\n")).unwrap_err().to_string();
    assert!(error.ends_with("no feature varies (a, b), so there is nothing to learn from"), "{error}");
    let other = table("b,label\n1,x\n2,y\n");
    let encoder = TableEncoder::fit(&table("a,label\n1,x\n2,y\n")).unwrap();
    assert!(encoder.encode(&other).unwrap_err().to_string().contains("no column `a`"));
    let encoder = TableEncoder::fit(&table("b,label\nu,x\nu,y\nv,x\nv,\n")).unwrap();
    let error = encoder.encode(&other).unwrap_err().to_string();
    assert!(error.contains("column `b` has type number, but this feature must be text"), "{error}");
}

proptest! {
    #[test]
    fn numbers_are_standardised(
        values in prop::collection::vec((-1e3..1e3_f64, -1.0..1.0_f64, 0..100_i32), 3..60),
        shift in -1e3..1e3_f64,
    ) {
        let x = Array2::from_shape_fn((values.len(), 3), |(i, j)| match j {
            0 => values[i].0,
            1 => values[i].1 * 1e-6 + 1e-9 * i as f64,
            _ => f64::from(values[i].2) + shift,
        });
        let names = ["a", "b", "c"].map(String::from).to_vec();
        let table = FeatureTable::from_numbers(names, x.view(), "t").unwrap();
        let encoder = TableEncoder::fit(&table).unwrap();
        let z = encoder.encode(&table).unwrap();
        for column in z.columns() {
            let n = column.len() as f64;
            let mean = column.iter().map(|&z| f64::from(z)).sum::<f64>() / n;
            let sd = (column.iter().map(|&z| (f64::from(z) - mean).powi(2)).sum::<f64>() / n).sqrt();
            prop_assert!(mean.abs() < 1e-5, "{}", mean);
            prop_assert!((sd - 1.0).abs() < 1e-5, "{}", sd);
        }
        let json = serde_json::to_string(&encoder).unwrap();
        prop_assert_eq!(serde_json::from_str::<TableEncoder>(&json).unwrap().encode(&table).unwrap(), z);
    }
}
