//! Times the label-shift estimate on a table in memory: `bench_label_shift POSTERIORS.npy LABELS.npy [REPEATS]`.
//! Labels are integers, -1 where missing. Prints JSON; `bench/emq.py` runs it alongside QuaPy.

use mnar::estimate::{Estimator, LabelShift, Stop};
use mnar::rows::Sums;
use mnar::{Class, Error, Labels, PosteriorKind, Posteriors, Rows, Sample};
use ndarray::{Array1, Array2};
use rayon::prelude::*;
use std::hint::black_box;
use std::sync::Mutex;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(posteriors), Some(labels)) = (arguments.next(), arguments.next()) else {
        return Err("usage: bench_label_shift POSTERIORS.npy LABELS.npy [REPEATS]".into());
    };
    let repeats: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let p: Array2<f64> = ndarray_npy::read_npy(posteriors)?;
    let y: Array1<i32> = ndarray_npy::read_npy(labels)?;
    let names = (0..p.ncols()).map(|k| k.to_string()).collect();
    let labels = Labels::new(y.iter().map(|&k| (k >= 0).then_some(Class(k as u32))).collect(), names)?;
    let start = Instant::now();
    let posteriors = Posteriors::new(p, PosteriorKind::Labelled)?;
    let check_seconds = start.elapsed().as_secs_f64();
    let sample = Sample::new(&posteriors, &labels)?;

    let mut estimate_seconds = f64::INFINITY;
    let mut stream_seconds = f64::INFINITY;
    let mut last = None;
    for _ in 0..repeats {
        let start = Instant::now();
        let estimate = LabelShift::default().estimate(&sample)?;
        estimate_seconds = estimate_seconds.min(start.elapsed().as_secs_f64());
        last = Some(estimate);
        let start = Instant::now();
        black_box(stream(&posteriors));
        stream_seconds = stream_seconds.min(start.elapsed().as_secs_f64());
    }
    let estimate = last.ok_or("REPEATS must be at least 1")?;
    let timed = Timed { sample, seconds: Mutex::new(Vec::new()) };
    LabelShift::default().estimate(&timed)?;
    let walks = timed.seconds.into_inner().expect("no walk panics");
    let (iterations, passes) = match estimate.stop {
        Stop::Converged { iterations, passes } => (iterations, passes),
        other => return Err(format!("did not converge: {other:?}").into()),
    };
    let odds = estimate.tally.n_unlabelled / estimate.tally.n_labelled();
    let w: Vec<f64> = estimate.phi.as_slice().iter().map(|phi| (1.0 / phi - 1.0) / odds).collect();
    println!(
        "{}",
        serde_json::json!({
            "seconds_estimate": estimate_seconds,
            "seconds_check": check_seconds,
            "iterations": iterations,
            "passes": passes,
            "stream_seconds": stream_seconds,
            "walk_seconds": walks,
            "threads": rayon::current_num_threads(),
            "phi": estimate.phi,
            "w": w,
        })
    );
    Ok(())
}

/// A table that records how long each pass over it took: the tally, the sampled start, the full passes.
struct Timed<'a> {
    sample: Sample<'a>,
    seconds: Mutex<Vec<f64>>,
}

impl Rows for Timed<'_> {
    fn names(&self) -> &[String] {
        self.sample.names()
    }

    fn kind(&self) -> PosteriorKind {
        self.sample.kind()
    }

    fn in_memory(&self) -> bool {
        true
    }

    fn scan<S: Sums>(&self, zero: &S) -> Result<S, Error> {
        let start = Instant::now();
        let sums = self.sample.scan(zero);
        self.seconds.lock().expect("no walk panics").push(start.elapsed().as_secs_f64());
        sums
    }
}

/// Reads every number once, on all cores: a lower bound for the time of one pass.
fn stream(posteriors: &Posteriors) -> f64 {
    let sum = |part: &[f64]| {
        let mut lanes = [0.0; 16];
        for chunk in part.chunks_exact(16) {
            for l in 0..16 {
                lanes[l] += chunk[l];
            }
        }
        lanes.iter().sum::<f64>()
    };
    (0..posteriors.n_classes())
        .into_par_iter()
        .map(|k| posteriors.column(k).par_chunks(1 << 16).map(sum).sum::<f64>())
        .sum()
}
