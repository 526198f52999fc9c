//! Every estimator and test against `reference/`, an independent implementation in Python.
#![allow(clippy::unwrap_used)]

use mnar::calibrate::{Calibration, Shrinkage};
use mnar::classify::SoftmaxRegression;
use mnar::crossfit::FoldPlan;
use mnar::diagnose::identifiability;
use mnar::estimate::{
    ConfusionInversion, Estimator, LabelShift, Likelihood, Moments, PhiEstimate, SharePrior, Shares, SourceShares,
};
use mnar::interval::{ProfileOf, profile_interval};
use mnar::risk::{ipw_risk, ssl_risk};
use mnar::test::{PermutationTest, likelihood_ratio};
use mnar::{Class, ClassShares, Labels, Phi, PosteriorKind, Posteriors, Sample, Solver};
use ndarray::Array2;
use serde_json::Value;
use std::path::PathBuf;

const TOLERANCE: f64 = 1e-7;

struct Case {
    name: String,
    json: Value,
    posteriors: Posteriors,
    labels: Labels,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../reference/golden")
}

fn read(path: PathBuf) -> Value {
    serde_json::from_reader(std::io::BufReader::new(std::fs::File::open(path).unwrap())).unwrap()
}

fn cases() -> Vec<Case> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.retain(|path| path.file_name().unwrap().to_str().unwrap().starts_with('k'));
    assert!(paths.len() >= 20, "only {} golden files", paths.len());
    paths.into_iter().map(case).collect()
}

fn case(path: PathBuf) -> Case {
    let json = read(path);
    let input = &json["input"];
    let p = matrix(&input["posteriors"]);
    let names = (0..p.ncols()).map(|k| format!("class {k}")).collect();
    let y = input["labels"].as_array().unwrap().iter().map(|v| v.as_u64().map(|k| Class::from(k as usize))).collect();
    Case {
        name: json["name"].as_str().unwrap().to_owned(),
        posteriors: Posteriors::new(p, PosteriorKind::Labelled).unwrap(),
        labels: Labels::new(y, names).unwrap(),
        json,
    }
}

fn vector(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .unwrap_or_else(|| panic!("not a list: {value}"))
        .iter()
        .map(|v| v.as_f64().unwrap_or(f64::NAN))
        .collect()
}

fn matrix(value: &Value) -> Array2<f64> {
    let rows: Vec<Vec<f64>> = value.as_array().unwrap().iter().map(vector).collect();
    Array2::from_shape_fn((rows.len(), rows[0].len()), |(i, j)| rows[i][j])
}

/// |ours − theirs| ≤ TOLERANCE · max(1, |theirs|); a null in the reference means that the value is not defined.
fn close(what: &str, ours: &[f64], theirs: &Value) {
    if theirs.is_null() {
        return;
    }
    let theirs = vector(theirs);
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (k, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        assert!(b.is_nan() || (a - b).abs() <= TOLERANCE * b.abs().max(1.0), "{what}[{k}]: {a}, reference {b}");
    }
}

fn close_number(what: &str, ours: f64, theirs: &Value) {
    close(what, &[ours], &Value::Array(vec![theirs.clone()]));
}

impl Case {
    fn expected(&self, key: &str) -> &Value {
        let value = &self.json["expected"][key];
        assert!(self.json["expected"].get(key).is_some(), "{}: no {key}", self.name);
        value
    }

    fn sample(&self) -> Sample<'_> {
        Sample::new(&self.posteriors, &self.labels).unwrap()
    }

    fn population(&self) -> Posteriors {
        self.posteriors.clone().with_kind(PosteriorKind::Population)
    }

    fn check(&self, key: &str, estimate: &PhiEstimate) {
        let expected = self.expected(key);
        let what = |field: &str| format!("{} {key} {field}", self.name);
        assert!(estimate.stop.converged(), "{}: {:?}", self.name, estimate.stop);
        close(&what("phi"), estimate.phi.as_slice(), &expected["phi"]);
        if let Some(boundary) = expected.get("on_boundary") {
            let ours: Vec<f64> = estimate.clipped.iter().map(|class| class.index() as f64).collect();
            close(&what("boundary"), &ours, boundary);
        }
        if let Some(prevalence) = expected.get("prevalence") {
            close(&what("prevalence"), estimate.prevalence.as_slice(), prevalence);
        }
        if let Some(se) = expected.get("se") {
            close(&what("se"), &estimate.standard_errors().unwrap_or_default(), se);
        }
        if let Some(se) = expected.get("prevalence_se") {
            close(&what("prevalence_se"), &estimate.prevalence_standard_errors().unwrap_or_default(), se);
        }
    }
}

#[test]
fn moments() {
    for case in cases() {
        let population = case.population();
        let sample = Sample::new(&population, &case.labels).unwrap();
        let mean = Moments::new(Shares::MeanPosterior).estimate(&sample).unwrap();
        let known = Moments::new(Shares::Known(ClassShares::new(vector(&case.json["input"]["known_shares"])).unwrap()))
            .estimate(&sample)
            .unwrap();
        for (key, estimate) in [("moments_mean", mean), ("moments_known", known)] {
            let expected = case.expected(key);
            close(&format!("{} {key}", case.name), estimate.phi.as_slice(), &expected["phi"]);
            let clipped: Vec<f64> = estimate.clipped.iter().map(|class| class.index() as f64).collect();
            close(&format!("{} {key} clipped", case.name), &clipped, &expected["clipped"]);
            // The reference gives the standard error before clipping; ours is withheld for clipped classes.
            let mut se = vector(&expected["se"]);
            estimate.clipped.iter().for_each(|class| se[class.index()] = f64::NAN);
            for (ours, theirs) in estimate.standard_errors().unwrap().iter().zip(se) {
                assert!(ours.is_nan() == theirs.is_nan(), "{} {key}", case.name);
                assert!(theirs.is_nan() || (ours - theirs).abs() < TOLERANCE, "{} {key}: {ours} {theirs}", case.name);
            }
        }
    }
}

#[test]
fn likelihood_and_its_ratio() {
    for case in cases() {
        let population = case.population();
        let sample = Sample::new(&population, &case.labels).unwrap();
        let estimate = Likelihood::default().estimate(&sample).unwrap();
        case.check("likelihood", &estimate);
        let expected = case.expected("likelihood");
        close_number(&case.name, -estimate.log_likelihood.unwrap(), &expected["nll"]);
        let test = likelihood_ratio(&sample, &Solver::default()).unwrap();
        close_number(&case.name, test.statistic, &expected["lrt"]["statistic"]);
        close_number(&case.name, test.p_value, &expected["lrt"]["p_value"]);
        assert_eq!(test.df.unwrap() as u64, expected["lrt"]["df"].as_u64().unwrap());
    }
}

#[test]
fn label_shift() {
    for case in cases() {
        let estimate = LabelShift::default().estimate(&case.sample()).unwrap();
        case.check("label_shift", &estimate);
        let mean = LabelShift { source: SourceShares::MeanPosterior, ..Default::default() };
        case.check("label_shift_mean", &mean.estimate(&case.sample()).unwrap());
        let prior = LabelShift { prior: SharePrior::Labelled { weight: 20.0 }, ..Default::default() };
        case.check("label_shift_prior", &prior.estimate(&case.sample()).unwrap());
    }
}

/// The same optimum is reached without a K × K matrix, as for thousands of classes.
#[test]
fn label_shift_without_a_matrix() {
    let solver = Solver { full_matrix_classes: 0, max_iterations: 200_000, tolerance: 1e-12 };
    for case in cases() {
        // Expectation-maximisation approaches a boundary only slowly.
        if !case.expected("label_shift")["on_boundary"].as_array().unwrap().is_empty() {
            continue;
        }
        let estimate = LabelShift { solver, ..Default::default() }.estimate(&case.sample()).unwrap();
        assert!(estimate.covariance.is_none());
        close(&case.name, estimate.phi.as_slice(), &case.expected("label_shift")["phi"]);
    }
}

#[test]
fn confusion_inversion() {
    for case in cases() {
        let expected = case.expected("bbse");
        let estimate = ConfusionInversion.estimate(&case.sample()).unwrap();
        close(&case.name, estimate.phi.as_slice(), &expected["phi"]);
        close(&format!("{} se", case.name), &estimate.standard_errors().unwrap(), &expected["se"]);
        let label_shift = LabelShift::default().estimate(&case.sample()).unwrap();
        let found = identifiability(&case.sample(), &label_shift).unwrap();
        close_number(&case.name, found.smallest_singular_value, &expected["smallest_singular_value"]);
    }
}

#[test]
fn profile_intervals() {
    for case in cases() {
        let population = case.population();
        let population = Sample::new(&population, &case.labels).unwrap();
        let labelled = case.sample();
        for (key, of, sample) in
            [("profile", ProfileOf::Population, &population), ("label_shift_profile", ProfileOf::LabelShift, &labelled)]
        {
            let Some(expected) = case.expected(key).as_array() else { continue };
            for entry in expected {
                let class = Class::from(entry["class"].as_u64().unwrap() as usize);
                let (lower, upper) = profile_interval(sample, of, class, 0.95, &Solver::default()).unwrap();
                close_number(&format!("{} {key} lower", case.name), lower, &entry["lower"]);
                close_number(&format!("{} {key} upper", case.name), upper, &entry["upper"]);
            }
        }
    }
}

#[test]
fn bias_corrected_temperature_scaling() {
    for case in cases() {
        for entry in case.expected("bcts").as_array().unwrap() {
            if entry["a"].is_null() {
                continue;
            }
            let shrinkage = Shrinkage::Fixed {
                bias: entry["lambda"].as_f64().unwrap(),
                temperature: entry["kappa"].as_f64().unwrap(),
            };
            let bcts = Calibration { shrinkage, ..Default::default() }.fit(&case.sample()).unwrap();
            close_number(&format!("{} a", case.name), bcts.inverse_temperature, &entry["a"]);
            close(&format!("{} b", case.name), &bcts.biases, &entry["b"]);
        }
    }
}

#[test]
fn permutation_statistic() {
    for case in cases() {
        let expected = case.expected("permutation_statistic");
        let folds = vector(&case.json["input"]["folds"]).iter().map(|fold| *fold as u32).collect();
        let test = PermutationTest { permutations: 9, seed: 1 }.run(&case.sample(), &FoldPlan::given(folds)).unwrap();
        close_number(&case.name, test.statistic, &expected["statistic"]);
        close_number(&case.name, test.p_value_chi_square.unwrap(), &expected["p_value"]);
        assert_eq!(test.df.unwrap() as u64, expected["rank"].as_u64().unwrap(), "{}", case.name);
    }
}

#[test]
fn risks() {
    for case in cases() {
        let input = &case.json["input"];
        let expected = case.expected("ipw");
        let phi = Phi::new(vector(&input["true_phi"])).unwrap();
        let (ell, h) = (vector(&input["labelled_losses"]), vector(&input["unlabelled_losses"]));
        let labels = case.labels.as_slice();
        let ipw = ipw_risk(&ell, labels, &phi).unwrap();
        let ssl = ssl_risk(&ell, &h, labels, &phi, input["lambda"].as_f64().unwrap()).unwrap();
        close_number(&case.name, ipw, &expected["ipw_risk"]);
        close_number(&case.name, ssl, &expected["debiased_ssl_risk"]);
    }
}

#[test]
fn softmax_regression() {
    let json = read(folder().join("softmax_regression.json"));
    for case in json["cases"].as_array().unwrap() {
        let x = matrix(&case["input"]["features"]);
        let y: Vec<Class> = vector(&case["input"]["labels"]).iter().map(|k| Class::from(*k as usize)).collect();
        let weights = case["input"]["weights"].as_array().map(|_| vector(&case["input"]["weights"]));
        let regression = SoftmaxRegression {
            l2: case["l2"].as_f64().unwrap(),
            tolerance: 1e-12,
            max_iterations: 200,
            ..Default::default()
        };
        let fit = regression.fit(x.view(), &y, case["k"].as_u64().unwrap() as usize, weights.as_deref()).unwrap();
        close_number("objective", fit.objective, &case["expected"]["objective"]);
        let p = Posteriors::from_logits(fit.logits(x.view()).view(), PosteriorKind::Labelled).unwrap();
        let expected = matrix(&case["expected"]["probabilities"]);
        let worst = (&p.view() - &expected).iter().fold(0.0f64, |max, d| max.max(d.abs()));
        assert!(worst < TOLERANCE, "{worst} in case with seed {}", case["seed"]);
    }
}
