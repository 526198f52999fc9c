//! How long a CSV table of features takes to read and to encode, and how much memory at most:
//! `cargo run --release -p mnar-data --example table_speed [ROWS] [COLUMNS]`.

use mnar_data::{Inputs, ReadOptions, TableEncoder, read_dataset};
use std::error::Error;
use std::fmt::Write;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let rows = arguments.next().unwrap_or(Ok(200_000))?;
    let columns = arguments.next().unwrap_or(Ok(50))?;
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("features.csv");
    {
        let mut file = std::io::BufWriter::new(std::fs::File::create(&path)?);
        let mut line = (0..columns).map(|k| format!("x{k},")).collect::<String>();
        for i in 0..=rows {
            use std::io::Write as _;
            writeln!(file, "{line}{}", if i == 0 { "label" } else { ["a", "", "b"][i % 3] })?;
            line.clear();
            for k in 0..columns {
                // Measurements, with a column of codes and one of names in every ten.
                match k % 10 {
                    8 => write!(line, "{},", (next() * 7.0) as u8)?,
                    9 => write!(line, "n{},", (next() * 7.0) as u8)?,
                    _ => write!(line, "{},", next())?,
                }
            }
        }
    }
    println!("{rows} x {columns}, {} MB of CSV", std::fs::metadata(&path)?.len() >> 20);
    let before = peak();
    let start = Instant::now();
    let dataset = read_dataset(&path, &ReadOptions { label: Some("label".into()), ..Default::default() })?;
    println!("read:   {:.2} s, peak {} MB more", start.elapsed().as_secs_f64(), peak() - before);
    let Inputs::Table(table) = &dataset.inputs else { unreachable!("CSV is a table") };
    let start = Instant::now();
    let encoder = TableEncoder::fit(table)?;
    let x = encoder.encode(table)?;
    println!("encode: {:.2} s to {:?}, peak {} MB more", start.elapsed().as_secs_f64(), x.dim(), peak() - before);
    Ok(())
}

/// The most memory held so far, in MB; 0 where the system does not say.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok()).unwrap_or(0) >> 10
}
