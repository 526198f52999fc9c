//! On real data, where `MNAR_DATA` names a folder with them.
#![allow(clippy::unwrap_used)]

use mnar::linear::SoftmaxRegression;
use mnar::pipeline::Pipeline;
use mnar::test::PermutationTest;
use mnar::{Class, Labels, Phi, Sample};
use ndarray::Array2;
use std::path::PathBuf;

fn data(folder: &str) -> Option<PathBuf> {
    let path = std::env::var_os("MNAR_DATA").map(|root| PathBuf::from(root).join(folder)).filter(|path| path.is_dir());
    if path.is_none() {
        eprintln!("skipped: MNAR_DATA names no folder with {folder}/");
    }
    path
}

/// 5,620 digits with 5% to 23% labelled: phi is found, and the test sees it.
#[test]
fn optdigits_mechanism_is_found() {
    let Some(folder) = data("optdigits") else { return };
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for file in ["optdigits.tra", "optdigits.tes"] {
        for line in std::fs::read_to_string(folder.join(file)).unwrap().lines() {
            let numbers: Vec<f64> = line.split(',').map(|number| number.trim().parse().unwrap()).collect();
            x.extend(numbers[..64].iter().map(|pixel| pixel / 16.0));
            y.push(Some(Class::from(numbers[64] as usize)));
        }
    }
    let x = Array2::from_shape_vec((y.len(), 64), x).unwrap();
    let complete = Labels::allow_degenerate(y, (0..10).map(|k| k.to_string()).collect()).unwrap();
    let truth = Phi::new((0..10).map(|k| 0.05 + 0.02 * k as f64).collect()).unwrap();
    let kept = mnar::simulate::mask(&complete, &truth, 5).unwrap();
    let labels = mnar::simulate::apply_mask(&complete, &kept).unwrap();
    let pipeline =
        Pipeline { regression: SoftmaxRegression { tolerance: 1e-5, ..Default::default() }, ..Default::default() };
    let fit = pipeline.run(x.view(), &labels).unwrap();
    // Against the share of each class that was really drawn; the classifier adds little to that.
    let drawn = (0..10).map(|k| labels.counts()[k] as f64 / complete.counts()[k] as f64).collect();
    let error = fit.estimate.phi.normalised_mse(&Phi::new(drawn).unwrap());
    assert!(error < 0.01, "{error}");
    let test = PermutationTest { permutations: 999, seed: 1 };
    let result = test.run(&Sample::new(&fit.raw, &labels).unwrap(), &fit.plan).unwrap();
    assert!(result.p_value <= 0.01, "{}", result.p_value);
}
