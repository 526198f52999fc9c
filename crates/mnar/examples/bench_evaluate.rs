//! Times an evaluation of a table in memory: `bench_evaluate POSTERIORS.npy LABELS.npy [REPLICATES]`. Labels are integers, -1
//! where missing. Prints JSON; `bench/evaluate.py` runs it alongside scikit-learn.

use mnar::analysis::{EstimateSettings, Evidence};
use mnar::evaluate::{EvaluateSettings, Model, Scores};
use mnar::{Class, Labels, PosteriorKind, Posteriors};
use ndarray::{Array1, Array2};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(posteriors), Some(labels)) = (arguments.next(), arguments.next()) else {
        return Err("usage: bench_evaluate POSTERIORS.npy LABELS.npy [REPLICATES]".into());
    };
    let replicates: usize = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let p: Array2<f64> = ndarray_npy::read_npy(posteriors)?;
    let y: Array1<i32> = ndarray_npy::read_npy(labels)?;
    let names = (0..p.ncols()).map(|k| k.to_string()).collect();
    let y = y.iter().map(|&k| (k >= 0).then_some(Class(k as u32))).collect();
    let labels = Labels::allow_degenerate(y, names)?;
    let posteriors = Posteriors::new(p, PosteriorKind::Labelled)?;
    let estimate = EstimateSettings { replicates: Some(replicates), ..Default::default() };
    let evidence = Evidence::predictions(&posteriors, &labels);
    let start = Instant::now();
    if labels.n_unlabelled() > 0 {
        let settings = EstimateSettings { interval: mnar::analysis::IntervalMethod::Information, ..estimate.clone() };
        settings.run(&evidence, &())?;
    }
    let seconds_mechanism = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let model = Model { name: "model".into(), scores: Scores::Probabilities(&posteriors) };
    let found = EvaluateSettings { estimate, ..Default::default() }.run(&evidence, &[model], &())?;
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{}",
        serde_json::json!({
            "seconds": seconds,
            "seconds_of_the_mechanism_alone": seconds_mechanism,
            "replicates": replicates,
            "metrics": found.metrics.len(),
            "threads": rayon::current_num_threads(),
            "accuracy": found.metrics[0].corrected,
        })
    );
    Ok(())
}
