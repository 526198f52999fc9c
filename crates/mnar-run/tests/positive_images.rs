//! Images of which only one class is ever labelled.
#![allow(clippy::unwrap_used)] // helpers of tests are not seen as tests

use mnar_run::{FitOptions, FitRequest, PerClass, PredictOptions, fit, predict};
use std::fs;
use std::path::{Path, PathBuf};

const ROWS: usize = 900;

/// Noisy images of which 30% are brighter in the middle, as an idx file, and labels of 60% of these.
fn files(folder: &Path, side: usize, rows: usize) -> (PathBuf, PathBuf, Vec<bool>) {
    let mut state = 9u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut bytes = [0x0803u32, rows as u32, side as u32, side as u32].map(u32::to_be_bytes).concat();
    let (mut text, mut truth) = ("state\n".to_owned(), Vec::new());
    for _ in 0..rows {
        let ill = uniform() < 0.3;
        let middle = side / 4..side - side / 4;
        for (y, x) in (0..side).flat_map(|y| (0..side).map(move |x| (y, x))) {
            let shift = if ill && middle.contains(&y) && middle.contains(&x) { 60.0 } else { 0.0 };
            bytes.push((40.0 + shift + 120.0 * uniform()) as u8);
        }
        text += if ill && uniform() < 0.6 { "ill\n" } else { "\"\"\n" };
        truth.push(ill);
    }
    let (images, labels) = (folder.join("train-images-idx3-ubyte"), folder.join("labels.csv"));
    fs::write(&images, bytes).unwrap();
    fs::write(&labels, text).unwrap();
    (images, labels, truth)
}

#[test]
fn images_are_tables_of_their_pixels() {
    let folder = tempfile::tempdir().unwrap();
    let (images, labels, truth) = files(folder.path(), 8, ROWS);
    let mut request = FitRequest::new(images.as_path(), folder.path().join("run"));
    request.options = FitOptions { label: Some("state".into()), labels: Some(labels), ..Default::default() };
    let error = fit(&request, &()).unwrap_err().to_string();
    assert!(error.contains("a model needs the share of `ill`"), "{error}");
    request.options.shares = Some(PerClass::Numbers(vec![0.3]));
    let report = fit(&request, &()).unwrap();
    assert!((report.findings.phi[0] - 0.6).abs() < 0.08, "{:?}", report.findings.phi);
    let predictions = predict(&request.folder, images.as_path(), &PredictOptions::default()).unwrap();
    let p = predictions.population().column(0);
    let right = p.iter().zip(&truth).filter(|(p, ill)| (**p > 0.5) == **ill).count();
    assert!(right as f64 > 0.9 * ROWS as f64, "{right} of {ROWS}");
    // What the run wrote is what the saved model says.
    let written = fs::read_to_string(request.folder.join("predictions.csv")).unwrap();
    let column = written.lines().next().unwrap().split(',').position(|name| name == "p_ill").unwrap();
    for (line, p) in written.lines().skip(1).zip(p) {
        let written: f64 = line.split(',').nth(column).unwrap().parse().unwrap();
        assert!((written - p).abs() < 1e-9);
    }
}

#[test]
fn large_images_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (images, labels, _) = files(folder.path(), 65, 60);
    let mut request = FitRequest::new(images.as_path(), folder.path().join("run"));
    request.options = FitOptions {
        label: Some("state".into()),
        labels: Some(labels),
        shares: Some(PerClass::Numbers(vec![0.3])),
        ..Default::default()
    };
    let error = fit(&request, &()).unwrap_err();
    assert!(error.to_string().contains("up to 4,096 numbers") && !error.remedies().is_empty(), "{error}");
    assert!(!request.folder.exists());
}
