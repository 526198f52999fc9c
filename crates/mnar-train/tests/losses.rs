//! Losses, risks, gradients and the mechanism in the loop against `reference/losses.py`, which also checks `mnar.torch`.
#![allow(clippy::unwrap_used)] // test helpers do not count as tests

use burn::tensor::activation::softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};
use mnar::{ClassShares, Phi};
use mnar_train::consistency::{Consistency, Entropy, FixMatch, PseudoLabels, Views};
use mnar_train::loss::{
    Losses, SetShares, Stabiliser, Weighting, cross_entropy, logits_given, observed_likelihood, ssl_risk,
};
use mnar_train::mechanism::{BatchMeans, Mechanism};
use mnar_train::method::{Method, RowWeights};
use serde_json::Value;

/// Tensors are in single precision.
const TOLERANCE: f64 = 1e-6;

const METHODS: [&str; 7] =
    ["classical", "constant", "given", "known-shares", "predicted-shares", "moments", "moments-gradient"];

fn device() -> Device {
    Device::flex().autodiff()
}

fn cases() -> Vec<Value> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reference/golden/losses.json");
    serde_json::from_reader(std::io::BufReader::new(std::fs::File::open(path).unwrap())).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().unwrap()],
    }
}

fn vector(values: &[f64]) -> Tensor<1> {
    let values: Vec<f32> = values.iter().map(|value| *value as f32).collect();
    let length = values.len();
    Tensor::from_data(TensorData::new(values, [length]), &device())
}

fn matrix(value: &Value) -> Tensor<2> {
    let rows = value.as_array().unwrap().len();
    let values = numbers(value);
    let columns = values.len() / rows;
    vector(&values).reshape([rows, columns])
}

fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f32>().map(f64::from).collect()
}

#[track_caller]
fn close(ours: &[f64], expected: &Value, what: &str) {
    let expected = numbers(expected);
    assert_eq!(ours.len(), expected.len(), "{what}");
    for (ours, expected) in ours.iter().zip(&expected) {
        let gap = (ours - expected).abs() / expected.abs().max(1.0);
        assert!(gap <= TOLERANCE, "{what}: {ours} for {expected}, off by {gap:.1e}");
    }
}

/// A batch of a case: its logits, which are differentiated, and the labels of its first rows.
struct Batch {
    weak: Tensor<2>,
    strong: Tensor<2>,
    y: Tensor<1, Int>,
    n_l: usize,
    n_u: usize,
}

impl Batch {
    fn new(value: &Value) -> Self {
        let labels = value["y"].as_array().unwrap();
        let y: Vec<i64> = labels.iter().filter_map(Value::as_i64).collect();
        let n_l = y.len();
        Self {
            weak: matrix(&value["weak"]).require_grad(),
            strong: matrix(&value["strong"]).require_grad(),
            y: Tensor::from_data(TensorData::new(y, [n_l]), &device()),
            n_l,
            n_u: labels.len() - n_l,
        }
    }

    fn labelled(&self) -> Tensor<2> {
        self.weak.clone().narrow(0, 0, self.n_l)
    }

    fn ell(&self) -> Tensor<1> {
        cross_entropy(self.labelled(), self.y.clone())
    }

    fn h(&self, consistency: &dyn Consistency, thresholds: &[f64]) -> Tensor<1> {
        let (weak, strong) = (self.weak.clone(), Some(self.strong.clone()));
        consistency.loss(&Views { weak, strong, teacher: None, targets: None, thresholds: vector(thresholds) }).unwrap()
    }

    /// The losses of the risk, with rows counted as often as `counts` says.
    fn losses(&self, h: Option<Tensor<1>>, counts: Option<&[f64]>) -> Losses {
        Losses {
            ell: self.ell(),
            y: self.y.clone(),
            row_weights: counts.map(|counts| vector(&counts[..self.n_l])),
            h: h.map(|h| (h.clone().narrow(0, 0, self.n_l), h.narrow(0, self.n_l, self.n_u))),
        }
    }

    /// As the training loop computes them.
    fn means(&self, shares: SetShares) -> BatchMeans {
        let p = softmax(self.weak.clone(), 1);
        let mean = |from, count| p.clone().narrow(0, from, count).mean_dim(0).squeeze_dim::<1>(0);
        let labelled = mean(0, self.n_l).mul_scalar(shares.labelled);
        let unlabelled = mean(self.n_l, self.n_u).mul_scalar(shares.unlabelled());
        BatchMeans { shares: labelled + unlabelled, loss: self.ell().detach().mean() }
    }

    #[track_caller]
    fn check(&self, risk: Tensor<1>, expected: &Value, what: &str) {
        close(&host(risk.clone()), &expected["value"], what);
        let mut gradients = risk.backward();
        for (name, leaf) in [("weak", &self.weak), ("strong", &self.strong)] {
            let Some(expected) = expected["gradient"].get(name) else { continue };
            let ours = leaf.grad_remove(&mut gradients).map_or_else(|| vec![0.0; numbers(expected).len()], host);
            close(&ours, expected, &format!("{what}: gradient of {name}"));
        }
    }
}

fn consistency(name: &str) -> Box<dyn Consistency> {
    match name {
        "entropy" => Box::new(Entropy),
        "pseudo-labels" => Box::new(PseudoLabels),
        "fixmatch" => Box::new(FixMatch),
        other => panic!("{other}"),
    }
}

fn method(name: &str, given: &Value) -> Method {
    match name {
        "classical" => Method::Classical,
        "constant" => Method::Constant,
        "given" => Method::Given(Phi::new(numbers(&given["phi"])).unwrap()),
        "known-shares" => {
            Method::ClassShares { shares: Some(ClassShares::new(numbers(&given["known_shares"])).unwrap()) }
        }
        "predicted-shares" => Method::ClassShares { shares: None },
        "moments" => Method::Moments,
        "moments-gradient" => Method::MomentsGradient,
        other => panic!("{other}"),
    }
}

fn set_shares(given: &Value) -> SetShares {
    SetShares { labelled: numbers(&given["label_counts"]).iter().sum::<f64>() / given["n"].as_f64().unwrap() }
}

fn thresholds(given: &Value, phi: &[f64]) -> Vec<f64> {
    mnar::threshold::adaptive(given["tau"].as_f64().unwrap(), phi, given["beta"].as_f64().unwrap())
}

#[test]
fn losses_are_the_golden_ones() {
    for case in cases() {
        let (given, expected) = (&case["input"], &case["expected"]);
        let batch = Batch::new(&given["batches"][0]);
        let phi = numbers(&given["phi"]);
        let golden = numbers(&expected["cross_entropy"]);
        close(&host(batch.ell()), &golden[..batch.n_l].into(), "cross-entropy");
        for name in ["entropy", "pseudo-labels", "fixmatch"] {
            close(&host(batch.h(&*consistency(name), &thresholds(given, &phi))), &expected[name], name);
        }
        let checked = Phi::new(phi.clone()).unwrap();
        for (labelled, key) in [(true, "logits_given_labelled"), (false, "logits_given_unlabelled")] {
            close(&host(logits_given(labelled, batch.weak.clone(), &checked)), &expected[key], key);
        }
        let counts = numbers(&given["row_weights"]);
        for (key, counts) in [("observed_likelihood", None), ("observed_likelihood_weighted", Some(&counts))] {
            let (batch, phi) = (Batch::new(&given["batches"][0]), vector(&phi).require_grad());
            let unlabelled = batch.weak.clone().narrow(0, batch.n_l, batch.n_u);
            let counts = counts.map(|counts| vector(&counts[..batch.n_l]));
            let y = batch.y.clone();
            let risk = observed_likelihood(batch.labelled(), y, counts, unlabelled, phi.clone(), set_shares(given));
            close(&host(risk.clone()), &expected[key]["value"], key);
            let mut gradients = risk.backward();
            let golden = &expected[key]["gradient"];
            close(&host(batch.weak.grad_remove(&mut gradients).unwrap()), &golden["logits"], key);
            close(&host(phi.grad_remove(&mut gradients).unwrap()), &golden["phi"], key);
        }
    }
}

#[test]
fn loops_are_the_golden_ones() {
    for case in cases() {
        let given = &case["input"];
        let h = consistency(given["consistency"].as_str().unwrap());
        let counts: Vec<usize> = numbers(&given["label_counts"]).iter().map(|count| *count as usize).collect();
        let (n, shares) = (given["n"].as_u64().unwrap() as usize, set_shares(given));
        for name in METHODS {
            let method = method(name, given);
            let mut mechanism = Mechanism::new(&method, &counts, n).unwrap();
            let steps = case["expected"]["loop"][name].as_array().unwrap();
            for (i, (batch, expected)) in given["batches"].as_array().unwrap().iter().zip(steps).enumerate() {
                let what = |part: &str| format!("{}, {name}, step {i}: {part}", case["name"]);
                let batch = Batch::new(batch);
                let means = batch.means(shares);
                mechanism.update(&means).unwrap();
                let inverse_phi = mechanism.inverse_phi(&means.shares, &device());
                close(mechanism.phi().as_slice(), &expected["phi"], &what("phi"));
                close(&mechanism.shares(), &expected["shares"], &what("shares"));
                close(&host(inverse_phi.clone()), &expected["inverse_phi"], &what("1/phi"));
                assert_eq!(mechanism.clipped(), expected["clipped"].as_u64().unwrap(), "{}", what("clipped"));
                let thresholds = thresholds(given, mechanism.phi().as_slice());
                close(&thresholds, &expected["thresholds"], &what("thresholds"));
                let weighting = match method.weights() {
                    RowWeights::Equal => Weighting::Classical,
                    _ => Weighting::Propensity(inverse_phi),
                };
                let losses = batch.losses(Some(batch.h(&*h, &thresholds)), None);
                let risk = ssl_risk(losses, &weighting, given["lambda"].as_f64().unwrap(), shares);
                batch.check(risk, &expected["risk"], &what("risk"));
            }
        }
    }
}

#[test]
fn other_weightings_are_the_golden_ones() {
    for case in cases() {
        let (given, expected) = (&case["input"], &case["expected"]["variants"]);
        let phi = numbers(&given["phi"]);
        let (shares, lambda) = (set_shares(given), given["lambda"].as_f64().unwrap());
        let inverse_phi = vector(&phi.iter().map(|phi| 1.0 / phi).collect::<Vec<_>>());
        let clipped = Stabiliser::Clip(given["clip"].as_f64().unwrap()).apply(inverse_phi.clone(), shares);
        let counts = numbers(&given["row_weights"]);
        let h = consistency(given["consistency"].as_str().unwrap());
        let by_row = |n_l: usize| Weighting::Rows(vector(&numbers(&given["row_inverse_phi"])[..n_l]));
        let by_class = || Weighting::Propensity(inverse_phi.clone());
        let check = |name: &str, with_h: bool, counts: Option<&[f64]>, weighting: &dyn Fn(usize) -> Weighting| {
            let batch = Batch::new(&given["batches"][0]);
            let h = with_h.then(|| batch.h(&*h, &thresholds(given, &phi)));
            let risk = ssl_risk(batch.losses(h, counts), &weighting(batch.n_l), lambda, shares);
            batch.check(risk, &expected[name], name);
        };
        check("labelled only", false, None, &|_| by_class());
        check("row weights", true, Some(&counts), &|_| by_class());
        check("by row", true, None, &by_row);
        check("clipped", true, None, &|_| Weighting::Propensity(clipped.clone()));
        check("classical, row weights", true, Some(&counts), &|_| Weighting::Classical);
    }
}
