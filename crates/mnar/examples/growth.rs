//! How the cost of a streamed estimate and test grows with the number of rows, which are generated again in every pass and never
//! stored:
//!
//! ```text
//! cargo build --release -p mnar --example growth
//! for rows in 100000 1000000 10000000 100000000; do target/release/examples/growth $rows; done
//! ```
//!
//! Prints one line of JSON: seconds of CPU and of the clock, passes, and the largest memory of the process (on Linux).

use mnar::analysis::{About, EstimateSettings, TestSettings};
use mnar::rows::{Block, Sums, scan_block};
use mnar::{Class, Error, PosteriorKind, Rows};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

const K: usize = 10;
const BLOCK: usize = 65_536;

fn mixed(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

fn uniform(row: u64, salt: u64) -> f64 {
    (mixed(row.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ mixed(salt)) >> 11) as f64 / (1u64 << 53) as f64
}

/// A row: its class, and its label if it has one.
fn labels(row: u64) -> (usize, Option<Class>) {
    let class = (uniform(row, 1) * K as f64) as usize;
    // From 0.02 to 0.3.
    let phi = 0.02 * 15f64.powf(class as f64 / (K - 1) as f64);
    (class, (uniform(row, 2) < phi).then(|| Class::from(class)))
}

struct Generated {
    rows: usize,
    names: Vec<String>,
    passes: AtomicUsize,
}

impl Rows for Generated {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn kind(&self) -> PosteriorKind {
        PosteriorKind::Labelled
    }

    fn scan<S: Sums>(&self, zero: &S) -> Result<S, Error> {
        self.passes.fetch_add(1, Relaxed);
        let (mut total, mut columns) = (zero.clone(), vec![vec![0.0; BLOCK]; K]);
        for start in (0..self.rows).step_by(BLOCK) {
            let n = BLOCK.min(self.rows - start);
            let rows = || (start as u64..).take(n);
            let (mut sums, mut seen) = (vec![0.0; n], Vec::with_capacity(n));
            let classes: Vec<usize> = rows()
                .map(|row| {
                    let (class, label) = labels(row);
                    seen.push(label);
                    class
                })
                .collect();
            for (k, column) in columns.iter_mut().enumerate() {
                for (i, row) in rows().enumerate() {
                    let signal = if classes[i] == k { 2.5 } else { 0.0 };
                    let value = (signal + 5.0 * uniform(row, 10 + k as u64)).exp();
                    column[i] = value;
                    sums[i] += value;
                }
            }
            for column in &mut columns {
                column.iter_mut().zip(&sums).for_each(|(value, sum)| *value /= sum);
            }
            let columns: Vec<&[f64]> = columns.iter().map(|column| &column[..n]).collect();
            total.merge(scan_block(&Block { columns: &columns, labels: &seen, weights: None, given: &[] }, zero));
        }
        Ok(total)
    }
}

/// CPU seconds of this process and its largest memory in megabytes, as Linux counts them; NaN elsewhere.
fn used() -> (f64, f64) {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let stat = read("/proc/self/stat");
    let fields: Vec<f64> = stat
        .rsplit(')')
        .next()
        .map_or_else(Vec::new, |rest| rest.split_whitespace().map(|word| word.parse().unwrap_or(f64::NAN)).collect());
    // User and system time, in hundredths of a second.
    let cpu = fields.get(11..13).map_or(f64::NAN, |times| times.iter().sum::<f64>() / 100.0);
    let status = read("/proc/self/status");
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse::<f64>().ok());
    (cpu, peak.map_or(f64::NAN, |kilobytes| kilobytes / 1024.0))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows: usize = std::env::args().nth(1).ok_or("give the number of rows")?.parse()?;
    let mut counts = vec![0; K];
    (0..rows as u64).filter_map(|row| labels(row).1).for_each(|class| counts[class.index()] += 1);
    let names: Vec<String> = (0..K).map(|k| k.to_string()).collect();
    let about = || About {
        classes: names.clone(),
        n: rows,
        n_labelled: counts.iter().sum(),
        labelled_per_class: counts.clone(),
    };
    let table = Generated { rows, names: names.clone(), passes: AtomicUsize::new(0) };
    let (before, start) = (used().0, Instant::now());
    let found = EstimateSettings::default().run_streamed(&table, about())?;
    let (estimate, middle) = (start.elapsed().as_secs_f64(), used());
    let passes = table.passes.swap(0, Relaxed);
    let again = Instant::now();
    TestSettings::default().run_streamed(&table, about(), None)?;
    let (test, after) = (again.elapsed().as_secs_f64(), used());
    println!(
        r#"{{"rows": {rows}, "labelled": {}, "estimate": {{"seconds": {estimate:.2}, "cpu_seconds": {:.2}, "passes": {passes}}}, "test": {{"seconds": {test:.2}, "cpu_seconds": {:.2}, "passes": {}}}, "megabytes": {:.0}, "phi": {:?}}}"#,
        about().n_labelled,
        middle.0 - before,
        after.0 - middle.0,
        table.passes.load(Relaxed),
        after.1,
        found.phi.as_slice(),
    );
    Ok(())
}
