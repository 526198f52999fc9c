//! Networks of images are guided by the cross-fitted ones: what a run leaves, and that it resumes to the same bits.
#![allow(clippy::unwrap_used)] // helpers of tests are not seen as tests

use mnar::progress::{Progress, Stage};
use mnar_run::{FitOptions, FitRequest, NetworkName, PredictOptions, fit, predict};
use mnar_train::consistency::ConsistencyName;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ROWS: usize = 300;
/// Images of more than 256 numbers are scored by networks.
const SIDE: usize = 17;

/// Noisy images that are brighter in one half, which depends on the class, and labels of which one class has twice as many.
fn images(folder: &Path) -> (PathBuf, PathBuf) {
    drawn(folder, 15.0, [0.25, 0.5])
}

/// The same, with halves that differ by so much and classes that are labelled at these rates.
fn drawn(folder: &Path, difference: f64, rates: [f64; 2]) -> (PathBuf, PathBuf) {
    let mut state = 5u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut bytes = [0x0803u32, ROWS as u32, SIDE as u32, SIDE as u32].map(u32::to_be_bytes).concat();
    let mut text = "state\n".to_owned();
    for row in 0..ROWS {
        let ill = row % 2;
        bytes.extend((0..SIDE * SIDE).map(|at| {
            let bright = usize::from(at % SIDE < SIDE / 2) == ill;
            (40.0 + 160.0 * uniform() + if bright { difference } else { 0.0 }) as u8
        }));
        text += if uniform() < rates[ill] { ["well\n", "ill\n"][ill] } else { "\"\"\n" };
    }
    let (images, labels) = (folder.join("train-images-idx3-ubyte"), folder.join("labels.csv"));
    fs::write(&images, bytes).unwrap();
    fs::write(&labels, text).unwrap();
    (images, labels)
}

fn request<'a>(images: &'a Path, labels: &Path, folder: PathBuf) -> FitRequest<'a> {
    let mut request = FitRequest::new(images, folder);
    request.options = FitOptions {
        label: Some("state".into()),
        labels: Some(labels.to_owned()),
        network: Some(NetworkName::Linear),
        folds: Some(2),
        epochs: Some(12),
        permutations: Some(99),
        ..Default::default()
    };
    request.checkpoint_every = Duration::ZERO;
    request
}

/// Cancels at a step of a stage.
struct CancelsIn {
    stage: Stage,
    step: usize,
    now: Mutex<(Option<Stage>, usize)>,
    cancelled: AtomicBool,
}

impl Progress for CancelsIn {
    fn begin(&self, stage: Stage, _steps: u64, _done: u64) {
        *self.now.lock().unwrap() = (Some(stage), 0);
    }

    fn step(&self) {
        let mut now = self.now.lock().unwrap();
        now.1 += 1;
        if *now == (Some(self.stage), self.step) {
            self.cancelled.store(true, Ordering::Relaxed);
        }
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

#[test]
fn a_guided_run_learns_from_all_labels_and_resumes_to_the_same_bits() {
    let home = tempfile::tempdir().unwrap();
    let (images, labels) = images(home.path());
    let whole = home.path().join("whole");
    let report = fit(&request(&images, &labels, whole.clone()), &()).unwrap();
    let settings = fs::read_to_string(whole.join("settings.toml")).unwrap();
    assert!(settings.contains("consistency = \"guided\"") && settings.contains("validation = 0.0"), "{settings}");
    // The phi that is printed is the one that the model carries. It comes from the trained network, and so without a prior.
    assert_eq!(report.findings.prior_weight, 0.0);
    assert!(report.findings.verdict.is_some());
    assert_eq!(report.findings.calibration.as_ref().unwrap().bias_precision, 1.0);
    let model: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(whole.join("model/model.json")).unwrap()).unwrap();
    let phi: Vec<f64> = serde_json::from_value(model["phi"].clone()).unwrap();
    assert_eq!(phi, report.findings.phi.as_slice());
    // The network has learnt from all labels, and refines the phi that it learnt with.
    let refinement = report.findings.refinement.as_ref().unwrap();
    assert!(refinement.agrees && refinement.trained != refinement.cross_fitted, "{refinement:?}");
    assert_eq!(report.findings.phi, refinement.trained);
    assert_eq!(report.evaluation.as_ref().unwrap().classifier, "linear");
    assert!(phi[0] > 1.3 * phi[1], "{phi:?}");
    let training = report.training.as_ref().unwrap();
    assert_eq!(training.debiased.chosen_epoch, 12);
    // No label is held out; what is known of the accuracy comes from the cross-fitted networks, with an interval.
    assert!(training.debiased.held_out.is_none());
    let metrics = &report.evaluation.as_ref().unwrap().metrics;
    let accuracy = metrics.iter().find(|metric| metric.name == mnar::evaluate::MetricName::Accuracy).unwrap();
    assert!(accuracy.ci95.is_some());
    let page = fs::read_to_string(whole.join("report.html")).unwrap();
    assert!(page.contains("follow from the trained model, whose estimate agrees"));
    assert!(page.contains("none was held out to judge it by") && !page.contains("held-out rows is its own"));

    // The networks of the folds count beside it, in the run and wherever it predicts.
    assert_eq!(training.beside[0].classifier, "networks of the folds");
    let again = predict(&whole, images.as_path(), &PredictOptions::default()).unwrap();
    again.write(&home.path().join("again.csv")).unwrap();
    let without_label = |path: PathBuf| -> Vec<Vec<String>> {
        let text = fs::read_to_string(path).unwrap();
        let label = text.lines().next().unwrap().split(',').position(|name| name == "label");
        let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
        let kept = |cells: Vec<String>| {
            cells.into_iter().enumerate().filter(|(i, _)| Some(*i) != label).map(|(_, cell)| cell).collect()
        };
        text.lines().map(|line| kept(cells(line))).collect()
    };
    assert_eq!(without_label(home.path().join("again.csv")), without_label(whole.join("predictions.csv")));

    let bits = |run: &Path, file: &str| fs::read(run.join(file)).unwrap();
    for stage in [Stage::CrossFit, Stage::Debiased, Stage::Baseline] {
        let run = home.path().join("run");
        let watch = CancelsIn { stage, step: 3, now: Mutex::default(), cancelled: AtomicBool::new(false) };
        let mut again = request(&images, &labels, run.clone());
        assert!(fit(&again, &watch).unwrap_err().is_cancelled());
        again.resume = true;
        fit(&again, &()).unwrap();
        for file in [
            "predictions.csv",
            "model/weights.safetensors",
            "model/guides.safetensors",
            "model/model.json",
            "baseline/weights.safetensors",
        ] {
            assert_eq!(bits(&run, file), bits(&whole, file), "{file}, cancelled in {stage:?}");
        }
        fs::remove_dir_all(&run).unwrap();
    }
}

/// What a table has no networks for is refused, and another consistency method is trained as before.
#[test]
fn other_consistency_methods_hold_labels_out() {
    let home = tempfile::tempdir().unwrap();
    let (images, labels) = images(home.path());
    let mut plain = request(&images, &labels, home.path().join("plain"));
    plain.options.consistency = Some(ConsistencyName::PseudoLabels);
    fit(&plain, &()).unwrap();
    let settings = fs::read_to_string(plain.folder.join("settings.toml")).unwrap();
    assert!(settings.contains("validation = 0.1"), "{settings}");
    let mut softmax = request(&images, &labels, home.path().join("softmax"));
    softmax.options.cross_fit = Some(mnar_run::CrossFitWith::Softmax);
    softmax.options.consistency = Some(ConsistencyName::Guided);
    let error = fit(&softmax, &()).unwrap_err().to_string();
    assert!(error.contains("none are cross-fitted here"), "{error}");
}

/// A handful of labels of classes that look alike say nothing of what the networks confuse: their guess is not followed, and they do
/// not count.
#[test]
fn a_guess_that_says_nothing_is_not_followed() {
    let home = tempfile::tempdir().unwrap();
    let (images, labels) = drawn(home.path(), 0.0, [0.03, 0.06]);
    let report = fit(&request(&images, &labels, home.path().join("run")), &()).unwrap();
    let findings = &report.findings;
    assert_eq!(findings.identifiability.as_ref().unwrap().doubt, Some(1.0));
    assert!(
        findings.warnings.iter().any(|warning| warning.contains("training was not guided")),
        "{:?}",
        findings.warnings
    );
    assert!(findings.refinement.is_none() && report.training.as_ref().unwrap().beside.is_empty());
    assert!(!home.path().join("run/model/guides.safetensors").exists());
    // As many rows as that would be a prior of three rows per class among as many rows as there are labels.
    let per_label = (ROWS - findings.about.n_labelled) as f64 / findings.about.n_labelled as f64;
    assert!((findings.prior_weight - 6.0 * per_label).abs() < 1e-9);
}
