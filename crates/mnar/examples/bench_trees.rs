//! Trains boosted trees on one table and predicts another: `bench_trees TRAIN.csv TEST.csv OUT.csv [fixed|tuned] [SETTINGS]`.
//! Tables are numeric CSV without a header, the class (from 0) in the last column, nothing or `nan` where a value is missing.
//! OUT.csv receives one probability per class for each test row. SETTINGS is JSON and replaces the settings chosen by the
//! number of rows. Prints JSON with the time on one thread; `bench/trees.py` runs it alongside LightGBM.

use mnar::Class;
use mnar::classify::{BoostedTrees, Fitted, Training};
use mnar::crossfit::FoldPlan;
use ndarray::Array2;
use std::error::Error;
use std::fmt::Write as _;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [train, test, out, options @ ..] = arguments.as_slice() else {
        return Err("usage: bench_trees TRAIN.csv TEST.csv OUT.csv [fixed|tuned] [SETTINGS]".into());
    };
    let (x, classes) = read(train)?;
    let (x_test, _) = read(test)?;
    let n_classes = classes.iter().map(|class| class.index() + 1).max().ok_or("the table is empty")?;
    let rows: Vec<usize> = (0..x.nrows()).collect();
    let training = Training { rows: &rows, classes: &classes, n_classes, weights: None };
    let mut candidates = BoostedTrees::candidates(rows.len());
    let mut settings = BoostedTrees::for_rows(rows.len());
    if let Some(json) = options.get(1) {
        settings = serde_json::from_str(json)?;
        candidates = vec![settings.clone()];
    }
    // All work happens on the thread of the pool whose time is read.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads()?).build()?;
    let result = pool.install(|| -> Result<_, mnar::Error> {
        let start = Clock::start();
        if options.first().is_some_and(|mode| mode == "tuned") {
            let plan = FoldPlan::uniform(rows.len(), 5, 1)?;
            settings = BoostedTrees::tuned(&candidates, &x, &training, plan.folds(), 0, &())?.settings;
        }
        let tuned = start.seconds();
        let model = settings.train(&x, &training, 0, &())?;
        let fitted = start.seconds();
        let test_rows: Vec<usize> = (0..x_test.nrows()).collect();
        let p = model.predict_proba(&x_test, &test_rows)?;
        Ok((p, tuned, fitted - tuned, start.seconds() - fitted))
    });
    let (p, tune_seconds, fit_seconds, predict_seconds) = result?;
    write(out, &p)?;
    println!(
        "{}",
        serde_json::json!({
            "tune_seconds": tune_seconds,
            "fit_seconds": fit_seconds,
            "predict_seconds": predict_seconds,
            "settings": settings,
        })
    );
    Ok(())
}

/// One thread, or what `RAYON_NUM_THREADS` says.
fn threads() -> Result<usize, std::num::ParseIntError> {
    std::env::var("RAYON_NUM_THREADS").map_or(Ok(1), |text| text.parse())
}

/// The processor time of this thread, where Linux tells it and there is only one thread; otherwise the time of day.
struct Clock(Instant, Option<u64>);

impl Clock {
    fn start() -> Self {
        Self(Instant::now(), Self::nanoseconds())
    }

    fn nanoseconds() -> Option<u64> {
        if rayon::current_num_threads() > 1 {
            return None;
        }
        std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
    }

    fn seconds(&self) -> f64 {
        match (self.1, Self::nanoseconds()) {
            (Some(start), Some(end)) => (end - start) as f64 / 1e9,
            _ => self.0.elapsed().as_secs_f64(),
        }
    }
}

fn read(path: &str) -> Result<(Array2<f64>, Vec<Class>), Box<dyn Error + Send + Sync>> {
    let text = std::fs::read_to_string(path)?;
    let (mut values, mut classes) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let (features, class) = line.rsplit_once(',').ok_or("a line has a single value")?;
        for value in features.split(',') {
            values.push(if value.is_empty() { f64::NAN } else { value.parse()? });
        }
        classes.push(Class(class.parse()?));
    }
    let columns = values.len() / classes.len().max(1);
    Ok((Array2::from_shape_vec((classes.len(), columns), values)?, classes))
}

fn write(path: &str, p: &Array2<f64>) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut text = String::new();
    for row in p.rows() {
        for (k, value) in row.iter().enumerate() {
            write!(text, "{}{value:e}", if k > 0 { "," } else { "" })?;
        }
        text.push('\n');
    }
    Ok(std::fs::write(path, text)?)
}
