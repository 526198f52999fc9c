//! A run that is cancelled in its bootstrap goes on with the classifiers that it had refitted, and ends with the same bits.
#![allow(clippy::unwrap_used)] // helpers of tests are not seen as tests

use mnar::progress::{Progress, Stage};
use mnar_run::{FitOptions, FitRequest, fit};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

const REPLICATES: usize = 12;

fn table(folder: &Path) -> PathBuf {
    let mut text = "a,b,ward,y\n".to_owned();
    for i in 0..240_u64 {
        let noise = |salt: u64| ((i * 7919 + salt * 104_729) % 1009) as f64 / 1009.0;
        let sick = i % 3 == 0;
        let ward = if noise(3) < 0.5 { "north" } else { "south" };
        // The ward decides as well, so that the search goes through several steps.
        let phi = if sick { 0.6 } else { 0.3 } * if ward == "north" { 1.4 } else { 0.5 };
        let label = if noise(4) < phi { if sick { "sick" } else { "well" } } else { "" };
        let shift = if sick { 0.5 } else { 0.0 };
        text += &format!("{:.4},{:.4},{ward},{label}\n", noise(1) + shift, noise(2) - shift);
    }
    let path = folder.join("wards.csv");
    fs::write(&path, text).unwrap();
    path
}

/// Cancels after a number of steps of the bootstrap.
struct Cancelling {
    stage: Mutex<Option<Stage>>,
    left: Mutex<usize>,
}

impl Progress for Cancelling {
    fn begin(&self, stage: Stage, _steps: u64, _done: u64) {
        *self.stage.lock().unwrap() = Some(stage);
    }

    fn step(&self) {
        if *self.stage.lock().unwrap() == Some(Stage::Bootstrap) {
            let mut left = self.left.lock().unwrap();
            *left = left.saturating_sub(1);
        }
    }

    fn cancelled(&self) -> bool {
        *self.left.lock().unwrap() == 0
    }
}

fn request<'a>(data: &'a Path, folder: &Path, every: Duration) -> FitRequest<'a> {
    let mut request = FitRequest::new(data, folder);
    request.options = FitOptions {
        label: Some("y".into()),
        given: Some(mnar::analysis::Given::Columns(vec!["ward".into()])),
        epochs: Some(1),
        replicates: Some(REPLICATES),
        permutations: Some(99),
        no_baseline: Some(true),
        ..Default::default()
    };
    request.checkpoint_every = every;
    request
}

fn findings(run: &Path) -> serde_json::Value {
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(run.join("report.json")).unwrap()).unwrap();
    report["findings"].clone()
}

#[test]
fn a_cancelled_bootstrap_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let data = table(home.path());
    let whole = home.path().join("whole");
    fit(&request(&data, &whole, Duration::ZERO), &()).unwrap();
    // Half-way through the first step, and in the second one, whose refits are those of the first; with files that are written
    // at once, and with one that is written when the run is cancelled.
    for (steps, every) in [(5, Duration::ZERO), (5, Duration::from_secs(3600)), (REPLICATES + 3, Duration::ZERO)] {
        let run = home.path().join("run");
        let watch = Cancelling { stage: Mutex::default(), left: Mutex::new(steps) };
        assert!(fit(&request(&data, &run, every), &watch).unwrap_err().is_cancelled());
        let files = || -> Vec<PathBuf> {
            let entries = fs::read_dir(run.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path());
            entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("bootstrap-")).collect()
        };
        let refits = steps.min(REPLICATES);
        let bytes: u64 = files().iter().map(|path| fs::metadata(path).unwrap().len()).sum();
        assert!(bytes >= (refits * 240 * 2 * 8) as u64, "{bytes} bytes in {} files", files().len());
        if every.is_zero() {
            assert!(files().len() >= refits);
        } else {
            assert_eq!(files().len(), 1);
        }

        let mut resumed = request(&data, &run, every);
        resumed.resume = true;
        // A flipped bit is noticed.
        let (file, content) = (files()[0].clone(), fs::read(&files()[0]).unwrap());
        let mut flipped = content.clone();
        flipped[content.len() / 2] ^= 4;
        fs::write(&file, flipped).unwrap();
        let error = fit(&resumed, &()).unwrap_err().to_string();
        assert!(error.contains("bootstrap-") && error.contains("damaged"), "{error}");
        fs::write(&file, content).unwrap();

        fit(&resumed, &()).unwrap();
        assert_eq!(findings(&run), findings(&whole));
        assert_eq!(fs::read(run.join("predictions.csv")).unwrap(), fs::read(whole.join("predictions.csv")).unwrap());
        assert!(!run.join("checkpoints").exists());
        fs::remove_dir_all(&run).unwrap();
    }
}
