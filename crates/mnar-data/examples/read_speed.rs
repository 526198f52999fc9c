//! How long a table of a million rows and ten classes takes to write and to read:
//! `cargo run --release -p mnar-data --example read_speed [ROWS]`.

use mnar::rows::{Block, Rows, Sums};
use mnar_data::{Column, ParquetPredictions, PredictionColumns, read_predictions, write_table};
use std::error::Error;
use std::time::Instant;

#[derive(Clone)]
struct Total(f64);

impl Sums for Total {
    fn add(&mut self, block: &Block<'_>) {
        self.0 += block.columns.iter().map(|column| column.iter().sum::<f64>()).sum::<f64>();
    }

    fn merge(&mut self, other: Self) {
        self.0 += other.0;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    const CLASSES: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    let n = std::env::args().nth(1).map_or(Ok(1_000_000), |rows| rows.parse())?;
    // Numbers of full length: a multiplicative generator is random enough for that.
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut p = vec![vec![0.0; n]; CLASSES.len()];
    for i in 0..n {
        p.iter_mut().for_each(|column| column[i] = next());
        let sum: f64 = p.iter().map(|column| column[i]).sum();
        p.iter_mut().for_each(|column| column[i] /= sum);
    }
    let labels = (0..n).map(|i| (i % 3 == 0).then_some(CLASSES[i / 3 % 10])).collect();
    let names = CLASSES.map(|class| format!("p_{class}"));
    let mut table = vec![("label", Column::Texts(labels))];
    table.extend(names.iter().map(String::as_str).zip(p.iter().map(|column| Column::Numbers(column))));

    let folder = tempfile::tempdir()?;
    let columns = PredictionColumns::new("label");
    for name in ["p.csv", "p.parquet"] {
        let path = folder.path().join(name);
        let start = Instant::now();
        write_table(&path, &table)?;
        let written = start.elapsed();
        let megabytes = std::fs::metadata(&path)?.len() as f64 / 1e6;
        let start = Instant::now();
        let read = read_predictions(&path, &columns)?;
        println!("{name}: {megabytes:.0} MB, written in {written:.2?}, read in {:.2?}", start.elapsed());
        assert_eq!(read.posteriors.column(9), p[9]);
    }
    let start = Instant::now();
    let file = ParquetPredictions::open(&folder.path().join("p.parquet"), &columns)?;
    let opened = start.elapsed();
    let start = Instant::now();
    let total = file.scan(&Total(0.0))?;
    println!("p.parquet streamed: opened in {opened:.2?}, one pass in {:.2?}, total {:.3}", start.elapsed(), total.0);
    Ok(())
}
