//! The risk of the training loop: it is unbiased over all masks and its gradients are right; a renormalised risk is
//! biased.
#![allow(clippy::unwrap_used)] // test helpers do not count as tests

use burn::tensor::activation::softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};
use mnar::Phi;
use mnar::simulate::apply_mask;
use mnar::{Class, Labels};
use mnar_train::Propensity;
use mnar_train::consistency::{Consistency, Entropy, PseudoLabels, Views};
use mnar_train::loss::{
    Losses, SetShares, Stabiliser, Weighting, cross_entropy, logits_given, observed_likelihood, ssl_risk,
};
use mnar_train::mechanism::{BatchMeans, Mechanism};
use mnar_train::method::Method;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const PHI: [f64; 3] = [0.7, 0.2, 0.45];
const Y: [usize; 9] = [0, 1, 2, 0, 1, 1, 2, 0, 1];

fn device() -> Device {
    Device::flex().autodiff()
}

fn random<const D: usize>(shape: [usize; D], seed: u64) -> Tensor<D> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| 4.0 * rng.random::<f32>() - 2.0).collect();
    Tensor::from_data(TensorData::new(values, shape), &device())
}

fn vector(values: &[f64]) -> Tensor<1> {
    let values: Vec<f32> = values.iter().map(|value| *value as f32).collect();
    let length = values.len();
    Tensor::from_data(TensorData::new(values, [length]), &device())
}

fn ints(values: &[usize]) -> Tensor<1, Int> {
    let values: Vec<i64> = values.iter().map(|value| *value as i64).collect();
    let length = values.len();
    Tensor::from_data(TensorData::new(values, [length]), &device())
}

fn number(tensor: Tensor<1>) -> f64 {
    tensor.into_data().iter::<f32>().map(f64::from).sum()
}

/// h of every row, computed as in the training loop.
fn unlabelled_loss(method: &dyn Consistency, logits: &Tensor<2>) -> Tensor<1> {
    method
        .loss(&Views {
            weak: logits.clone(),
            strong: None,
            teacher: None,
            targets: None,
            thresholds: vector(&[0.4, 0.5, 0.45]),
        })
        .unwrap()
}

/// The whole data set under a mask, as one labelled and one unlabelled batch, through the loss of the training loop.
fn masked_risk(logits: &Tensor<2>, mask: u32, lambda: f64, h: Option<&dyn Consistency>, renormalise: bool) -> f64 {
    let rows = |wanted: bool| (0..Y.len()).filter(|i| (mask >> i & 1 == 1) == wanted).collect::<Vec<_>>();
    let (labelled, unlabelled) = (rows(true), rows(false));
    if labelled.is_empty() {
        // No labelled row: only the unlabelled mean is left, with all the weight.
        return h.map_or(0.0, |h| lambda * number(unlabelled_loss(h, logits).mean()));
    }
    let pick = |rows: &[usize]| logits.clone().select(0, ints(rows));
    let y: Vec<usize> = labelled.iter().map(|&i| Y[i]).collect();
    let ell = cross_entropy(pick(&labelled), ints(&y));
    let shares = SetShares { labelled: labelled.len() as f64 / Y.len() as f64 };
    let h = h.map(|h| {
        let on = |rows: &[usize]| {
            if rows.is_empty() { vector(&[0.0]) } else { unlabelled_loss(h, &pick(rows)) }
        };
        (on(&labelled), on(&unlabelled))
    });
    let inverse = vector(&PHI.map(|phi| 1.0 / phi));
    let inverse = if renormalise {
        // What a class-weighted cross-entropy does: it divides by the batch's sum of weights.
        let sum: f64 = y.iter().map(|&k| 1.0 / PHI[k]).sum();
        inverse.mul_scalar(y.len() as f64 / sum / shares.labelled)
    } else {
        inverse
    };
    number(ssl_risk(Losses { ell, y: ints(&y), row_weights: None, h }, &Weighting::Propensity(inverse), lambda, shares))
}

/// Σ over all 2^9 masks of P(mask) · risk.
fn expected_risk(logits: &Tensor<2>, lambda: f64, h: Option<&dyn Consistency>, renormalise: bool) -> f64 {
    (0..1u32 << Y.len())
        .map(|mask| {
            let p: f64 = (0..Y.len()).map(|i| if mask >> i & 1 == 1 { PHI[Y[i]] } else { 1.0 - PHI[Y[i]] }).product();
            p * masked_risk(logits, mask, lambda, h, renormalise)
        })
        .sum()
}

#[test]
fn expectation_over_all_masks_is_the_complete_risk() {
    let logits = random([Y.len(), 3], 1);
    let complete = number(cross_entropy(logits.clone(), ints(&Y)).mean());
    assert!((expected_risk(&logits, 0.0, None, false) - complete).abs() < 1e-5);
    // With h for every row the unlabelled term has expectation 0: −(r − phi)/phi has mean 0.
    for (lambda, h) in [(1.0, &Entropy as &dyn Consistency), (0.5, &PseudoLabels)] {
        let expected = expected_risk(&logits, lambda, Some(h), false);
        assert!((expected - complete).abs() < 1e-5, "{}: {expected} against {complete}", h.name());
    }
}

#[test]
fn a_loss_renormalised_by_batch_is_biased() {
    let logits = random([Y.len(), 3], 1);
    let complete = number(cross_entropy(logits.clone(), ints(&Y)).mean());
    let renormalised = expected_risk(&logits, 0.0, None, true);
    assert!((renormalised - complete).abs() > 1e-2, "{renormalised} against {complete}");
}

/// Two sets of rows and a linear model: the risk with everything that the loop passes to it.
fn loop_risk(theta: &Tensor<2>, method: Method) -> Tensor<1> {
    let (x_l, x_u) = (random([6, 4], 2), random([10, 4], 3));
    let y = [0usize, 1, 2, 0, 1, 1];
    let shares = SetShares { labelled: 6.0 / 16.0 };
    let logits = Tensor::cat(vec![x_l, x_u], 0).matmul(theta.clone());
    let p = burn::tensor::activation::softmax(logits.clone(), 1);
    let batch_shares = p.mean_dim(0).squeeze_dim::<1>(0);
    let ell = cross_entropy(logits.clone().narrow(0, 0, 6), ints(&y));
    let mut mechanism = Mechanism::new(&method, &[2, 3, 1], 16).unwrap();
    let means = BatchMeans { shares: batch_shares, loss: vector(&[0.0]) };
    for _ in 0..4 {
        mechanism.update(&means).unwrap();
    }
    let inverse = mechanism.inverse_phi(&means.shares, &device());
    let h = unlabelled_loss(&Entropy, &logits);
    let h = Some((h.clone().narrow(0, 0, 6), h.narrow(0, 6, 10)));
    ssl_risk(Losses { ell, y: ints(&y), row_weights: None, h }, &Weighting::Propensity(inverse), 0.7, shares)
}

fn largest_gap(risk: impl Fn(&Tensor<2>) -> Tensor<1>) -> (f64, f64) {
    let theta = random([4, 3], 4).require_grad();
    let mut gradients = risk(&theta).backward();
    let gradient: Vec<f32> = theta.grad_remove(&mut gradients).unwrap().into_data().iter().collect();
    let values: Vec<f32> = theta.clone().into_data().iter().collect();
    let step = 1e-2f32;
    let (mut gap, mut size) = (0.0f64, 0.0f64);
    for i in 0..values.len() {
        let at = |shift: f32| {
            let mut moved = values.clone();
            moved[i] += shift;
            number(risk(&Tensor::from_data(TensorData::new(moved, [4, 3]), &device())))
        };
        // Fourth-order difference: f32 leaves an error of about 1e-5.
        let slope = (8.0 * (at(step) - at(-step)) - (at(2.0 * step) - at(-2.0 * step))) / (12.0 * f64::from(step));
        gap = gap.max((slope - f64::from(gradient[i])).abs());
        size = size.max(slope.abs());
    }
    (gap, size)
}

#[test]
fn gradients_are_finite_differences() {
    let given = Method::Given(Phi::new(vec![0.5, 0.25, 0.4]).unwrap());
    let (gap, size) = largest_gap(|theta| loop_risk(theta, given.clone()));
    assert!(gap < 2e-4 * size.max(1.0), "gap {gap} of {size}");
    let y = [0usize, 1, 2, 0];
    let (gap, size) = largest_gap(|theta| {
        let (l, u) = (random([4, 4], 5).matmul(theta.clone()), random([5, 4], 6).matmul(theta.clone()));
        observed_likelihood(l, ints(&y), None, u, vector(&[0.6, 0.1, 0.3]), SetShares { labelled: 4.0 / 9.0 })
    });
    assert!(gap < 2e-4 * size.max(1.0), "gap {gap} of {size}");
}

/// Moments with gradient: the value of 1/phi comes from the buffer, its derivative from the batch. If the buffer holds
/// exactly the batch's shares, both are those of the moment estimator, which finite differences can verify.
#[test]
fn the_path_through_phi_is_differentiated() {
    let risk = |theta: &Tensor<2>, through: bool| {
        let (x_l, x_u) = (random([6, 4], 2), random([10, 4], 3));
        let y = [0usize, 1, 2, 0, 1, 1];
        let logits = Tensor::cat(vec![x_l, x_u], 0).matmul(theta.clone());
        let shares = burn::tensor::activation::softmax(logits.clone(), 1).mean_dim(0).squeeze_dim::<1>(0);
        let shares = if through { shares } else { shares.detach() };
        let mut mechanism = Mechanism::new(&Method::MomentsGradient, &[1, 1, 1], 16).unwrap();
        let means = BatchMeans { shares, loss: vector(&[0.0]) };
        // 3,000 looks at the same batch bring the buffer within 0.99^3000 = 8e-14 of it; a loss of 0 is full trust.
        for _ in 0..3000 {
            mechanism.update(&means).unwrap();
        }
        let inverse = mechanism.inverse_phi(&means.shares, &device());
        let ell = cross_entropy(logits.narrow(0, 0, 6), ints(&y));
        ssl_risk(
            Losses { ell, y: ints(&y), row_weights: None, h: None },
            &Weighting::Propensity(inverse),
            1.0,
            SetShares { labelled: 0.375 },
        )
    };
    let (gap, size) = largest_gap(|theta| risk(theta, true));
    assert!(gap < 1e-3 * size.max(1.0), "gap {gap} of {size}");
    // Without the path through phi the gradient differs, so this test can fail.
    let (gap, size) = largest_gap(|theta| risk(theta, false));
    assert!(gap > 1e-2 * size, "gap {gap} of {size}");
}

#[test]
fn stabilisers_do_what_they_say() {
    let shares = SetShares { labelled: 0.25 };
    let inverse = vector(&[2.0, 10.0, 50.0]);
    let values = |tensor: Tensor<1>| tensor.into_data().iter::<f32>().collect::<Vec<_>>();
    assert_eq!(values(Stabiliser::Exact.apply(inverse.clone(), shares)), [2.0, 10.0, 50.0]);
    assert_eq!(values(Stabiliser::Clip(3.0).apply(inverse, shares)), [2.0, 10.0, 12.0]);
}

/// The loss gives the same number as the core's risk of a whole table.
#[test]
fn the_loop_and_the_core_agree() {
    let logits = random([Y.len(), 3], 9);
    let mask = 0b1_0110_1011u32;
    let kept: Vec<bool> = (0..Y.len()).map(|i| mask >> i & 1 == 1).collect();
    let complete = Labels::allow_degenerate(
        Y.iter().map(|&k| Some(Class::from(k))).collect(),
        ["a", "b", "c"].map(String::from).to_vec(),
    )
    .unwrap();
    let labels = apply_mask(&complete, &kept).unwrap();
    let host = |tensor: Tensor<1>| tensor.into_data().iter::<f32>().map(f64::from).collect::<Vec<_>>();
    let ell = host(cross_entropy(logits.clone(), ints(&Y)));
    let h = host(unlabelled_loss(&Entropy, &logits));
    let phi = Phi::new(PHI.to_vec()).unwrap();
    let core = mnar::risk::ssl_risk(&ell, &h, labels.as_slice(), &phi, 0.8).unwrap();
    let ours = masked_risk(&logits, mask, 0.8, Some(&Entropy), false);
    assert!((core - ours).abs() < 1e-6, "{core} against {ours}");
}

/// Bayes' rule: p(y | x, r = 1) ∝ phi_y p(y | x), p(y | x, r = 0) ∝ (1 − phi_y) p(y | x).
#[test]
fn logits_given_the_label_indicator_are_bayes_rule() {
    let scores = random([5, 3], 9);
    let phi = Phi::new(PHI.to_vec()).unwrap();
    let population: Vec<f32> = softmax(scores.clone(), 1).into_data().iter().collect();
    for labelled in [true, false] {
        let ours: Vec<f32> = softmax(logits_given(labelled, scores.clone(), &phi), 1).into_data().iter().collect();
        for (p, ours) in population.chunks(3).zip(ours.chunks(3)) {
            let joint: Vec<f64> =
                (0..3).map(|k| f64::from(p[k]) * if labelled { PHI[k] } else { 1.0 - PHI[k] }).collect();
            for k in 0..3 {
                let expected = joint[k] / joint.iter().sum::<f64>();
                assert!((f64::from(ours[k]) - expected).abs() < 1e-5, "{} for {expected}", ours[k]);
            }
        }
    }
}

/// The site of each of the rows of [`Y`], and P(labelled | class, site).
const SITE: [usize; 9] = [0, 0, 1, 1, 1, 0, 0, 0, 1];
const PHI_BY_SITE: [[f64; 3]; 2] = [[0.7, 0.2, 0.45], [0.3, 0.9, 0.6]];

fn row_phi() -> Vec<Phi> {
    SITE.iter().map(|&site| Phi::new(PHI_BY_SITE[site].to_vec()).unwrap()).collect()
}

/// The risk of the rows that a mask leaves labelled, with the weights w = 1/phi of each of them.
fn risk_of_rows(logits: &Tensor<2>, mask: u32, lambda: f64, w: impl Fn(usize) -> f64) -> f64 {
    let rows = |wanted: bool| (0..Y.len()).filter(|i| (mask >> i & 1 == 1) == wanted).collect::<Vec<_>>();
    let (labelled, unlabelled) = (rows(true), rows(false));
    let h = |rows: &[usize]| match rows {
        [] => vector(&[0.0]),
        rows => unlabelled_loss(&Entropy, &logits.clone().select(0, ints(rows))),
    };
    if labelled.is_empty() {
        return lambda * number(h(&unlabelled).mean());
    }
    let y: Vec<usize> = labelled.iter().map(|&i| Y[i]).collect();
    let ell = cross_entropy(logits.clone().select(0, ints(&labelled)), ints(&y));
    let losses = Losses { ell, y: ints(&y), row_weights: None, h: Some((h(&labelled), h(&unlabelled))) };
    let weights = vector(&labelled.iter().map(|&i| w(i)).collect::<Vec<_>>());
    let shares = SetShares { labelled: labelled.len() as f64 / Y.len() as f64 };
    number(ssl_risk(losses, &Weighting::Rows(weights), lambda, shares))
}

/// Two sites that label differently: the risk is the Horvitz-Thompson sum of ℓ plus the augmentation of h, by hand.
#[test]
fn weights_by_row_are_those_of_horvitz_and_thompson() {
    let (logits, phi, mask, lambda) = (random([Y.len(), 3], 11), row_phi(), 0b0_1101_0111u32, 0.6);
    let host = |tensor: Tensor<1>| tensor.into_data().iter::<f32>().map(f64::from).collect::<Vec<_>>();
    let ell = host(cross_entropy(logits.clone(), ints(&Y)));
    let h = host(unlabelled_loss(&Entropy, &logits));
    let by_hand: f64 = (0..Y.len())
        .map(|i| match mask >> i & 1 == 1 {
            true => ell[i] / PHI_BY_SITE[SITE[i]][Y[i]] + lambda * (1.0 - 1.0 / PHI_BY_SITE[SITE[i]][Y[i]]) * h[i],
            false => lambda * h[i],
        })
        .sum();
    let phi = Propensity::from(&phi[..]);
    let ours = risk_of_rows(&logits, mask, lambda, |i| phi.inverse(i, Class::from(Y[i])));
    assert!((ours - by_hand / Y.len() as f64).abs() < 1e-5, "{ours} against {}", by_hand / Y.len() as f64);
}

/// Over all masks that the sites may draw, the risk with 1/phi(y, z) is the complete one; with 1/phi(y), phi(y) being the
/// share of the class that is labelled, it is not.
#[test]
fn a_phi_by_row_is_unbiased_where_labelling_depends_on_the_site() {
    let logits = random([Y.len(), 3], 1);
    let complete = number(cross_entropy(logits.clone(), ints(&Y)).mean());
    let phi = |i: usize| PHI_BY_SITE[SITE[i]][Y[i]];
    let by_class = |i: usize| {
        let of_class: Vec<f64> = (0..Y.len()).filter(|&j| Y[j] == Y[i]).map(phi).collect();
        of_class.iter().sum::<f64>() / of_class.len() as f64
    };
    let expected = |weight: &dyn Fn(usize) -> f64| -> f64 {
        let p =
            |mask: u32| (0..Y.len()).map(|i| if mask >> i & 1 == 1 { phi(i) } else { 1.0 - phi(i) }).product::<f64>();
        (0..1u32 << Y.len()).map(|mask| p(mask) * risk_of_rows(&logits, mask, 0.8, weight)).sum()
    };
    let (by_row, by_class) = (expected(&|i| 1.0 / phi(i)), expected(&|i| 1.0 / by_class(i)));
    assert!((by_row - complete).abs() < 1e-5, "{by_row} against {complete}");
    assert!((by_class - complete).abs() > 1e-2, "{by_class} against {complete}");
}

/// Bayes' rule with the phi of each row; a phi that all rows share gives the same bits as that phi by class.
#[test]
fn logits_given_the_label_indicator_take_the_phi_of_the_row() {
    let scores = random([Y.len(), 3], 9);
    let phi = row_phi();
    let host = |scores: Tensor<2>| scores.into_data().iter::<f32>().collect::<Vec<_>>();
    let plain = host(scores.clone());
    let shared = Phi::new(PHI.to_vec()).unwrap();
    let repeated = vec![shared.clone(); Y.len()];
    for labelled in [true, false] {
        let ours = host(logits_given(labelled, scores.clone(), &phi[..]));
        for (i, (plain, ours)) in plain.chunks(3).zip(ours.chunks(3)).enumerate() {
            for k in 0..3 {
                let phi = PHI_BY_SITE[SITE[i]][k];
                let shift = if labelled { phi } else { 1.0 - phi }.ln();
                assert!((f64::from(ours[k] - plain[k]) - shift).abs() < 1e-6);
            }
        }
        let by_class = host(logits_given(labelled, scores.clone(), &shared));
        assert_eq!(host(logits_given(labelled, scores.clone(), &repeated[..])), by_class);
    }
}
