//! Texts that a spreadsheet would run are neutralised in CSV, and read back as they were.
#![allow(clippy::unwrap_used)]

mod common;

use common::{folder, labelled};
use mnar_data::{
    Column, Formulas, PredictionColumns, ReadOptions, read_dataset, read_predictions, write_table, write_table_with,
};

const IDS: [&str; 6] = ["=cmd|' /C calc'!A1", "+1+1", "@SUM(A1)", "-x", "'=quoted", "plain"];

#[test]
fn names_of_rows_survive_the_round_trip() {
    let folder = folder();
    let texts = || Column::Texts(IDS.iter().copied().map(Some).collect());
    let labels = || Column::Texts(vec![Some("=a"), None, Some("b"), Some("=a"), Some("b"), None]);
    let (p, q) = ([0.5, -0.0, 1.0, 0.25, 0.0, 0.5], [0.5, 1.0, 0.0, 0.75, 1.0, 0.5]);
    let numbers: Vec<f64> = vec![-1.0, 2.0, -3.5, 4.0, 5.0, -6.0];
    let columns = || {
        [
            ("=id", texts()),
            ("label", labels()),
            ("x", Column::Numbers(&numbers)),
            ("p_=a", Column::Numbers(&p)),
            ("p_b", Column::Numbers(&q)),
        ]
    };
    for name in ["t.csv", "t.tsv", "t.csv.gz", "t.parquet"] {
        let path = folder.path().join(name);
        write_table(&path, &columns()).unwrap();
        let options = ReadOptions { id: Some("=id".into()), ..labelled("label") };
        let read = read_dataset(&path, &options).unwrap();
        assert_eq!(read.row_names.unwrap().names, IDS, "{name}");
        assert_eq!(read.labels.names(), ["=a", "b"], "{name}");
        assert_eq!(read_predictions(&path, &PredictionColumns::new("label")).unwrap().labels.counts(), [2, 2]);
    }
    let text = std::fs::read_to_string(folder.path().join("t.csv")).unwrap();
    for cell in text.lines().flat_map(|line| line.split(',')).map(|cell| cell.trim_start_matches('"')) {
        let risky = cell.starts_with(['=', '+', '-', '@']);
        assert!(!risky || cell.parse::<f64>().is_ok(), "{cell}");
    }
    // Numbers are written as numbers.
    assert!(text.contains("-3.5"));
    let path = folder.path().join("kept.csv");
    write_table_with(&path, &columns(), Formulas::Kept).unwrap();
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("=id,label"));
}
