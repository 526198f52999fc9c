//! A streamed estimate or test of a Parquet file with the columns `y` and `p_<class>`, for timing without the command line:
//!
//! ```text
//! python bench/stream.py --write p.parquet --rows 10000000
//! cargo build --release -p mnar-data --example stream_speed
//! /usr/bin/time -v target/release/examples/stream_speed estimate p.parquet
//! ```

use mnar::Rows as _;
use mnar::analysis::{About, EstimateSettings, TestSettings};
use mnar_data::{ParquetPredictions, PredictionColumns};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [what, path] = words.as_slice() else { return Err("give estimate, test or open, and a file".into()) };
    let table = ParquetPredictions::open(Path::new(path), &PredictionColumns::new("y"))?;
    let about = About {
        classes: table.names().to_vec(),
        n: table.rows(),
        n_labelled: table.n_labelled(),
        labelled_per_class: table.counts().to_vec(),
    };
    match what.as_str() {
        "estimate" => {
            let found = EstimateSettings::default().run_streamed(&table, about)?;
            println!("{:?}\n{:?}\n{:?}", found.phi, found.phi_se, found.stop);
        }
        "test" => println!("{:?}", TestSettings::default().run_streamed(&table, about, None)?.decision.result),
        _ => println!("{about:?}"),
    }
    Ok(())
}
