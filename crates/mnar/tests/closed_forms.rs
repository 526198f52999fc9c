//! What is known without an optimiser: one-hot posteriors, sums over all masks, invariances.
#![allow(clippy::unwrap_used)]

use mnar::calibrate::{Calibrated, Calibration};
use mnar::crossfit::FoldPlan;
use mnar::diagnose::{Verdict, identifiability, labels_for_power, labels_for_width, sensitivity};
use mnar::estimate::{ConfusionInversion, Estimator, KnownPhi, LabelShift, Likelihood, Moments, Shares};
use mnar::interval::{ProfileOf, information_intervals};
use mnar::risk::{ipw_risk, ssl_risk};
use mnar::test::{PermutationTest, likelihood_ratio};
use mnar::{Class, Labels, Phi, PosteriorKind, Posteriors, Sample, Solver};
use ndarray::Array2;
use proptest::prelude::*;

/// A table whose posteriors are the true classes: `labelled[k]` and `unlabelled[k]` rows of class k.
fn one_hot(labelled: &[usize], unlabelled: &[usize], kind: PosteriorKind) -> (Posteriors, Labels) {
    let k = labelled.len();
    let mut classes = Vec::new();
    for class in 0..k {
        classes.extend(std::iter::repeat_n((class, true), labelled[class]));
        classes.extend(std::iter::repeat_n((class, false), unlabelled[class]));
    }
    let p = Array2::from_shape_fn((classes.len(), k), |(i, j)| if classes[i].0 == j { 1.0 } else { 0.0 });
    let y = classes.iter().map(|(class, labelled)| labelled.then_some(Class::from(*class))).collect();
    let names = (0..k).map(|k| k.to_string()).collect();
    (Posteriors::new(p, kind).unwrap(), Labels::new(y, names).unwrap())
}

/// The G statistic of the 2 × K table.
fn g_statistic(labelled: &[usize], unlabelled: &[usize]) -> f64 {
    let (n_l, n_u): (usize, usize) = (labelled.iter().sum(), unlabelled.iter().sum());
    let term = |observed: usize, expected: f64| {
        if observed == 0 { 0.0 } else { 2.0 * observed as f64 * (observed as f64 / expected).ln() }
    };
    let n = (n_l + n_u) as f64;
    labelled
        .iter()
        .zip(unlabelled)
        .map(|(&l, &u)| {
            let class = (l + u) as f64 / n;
            term(l, class * n_l as f64) + term(u, class * n_u as f64)
        })
        .sum()
}

#[test]
fn one_hot_posteriors_give_the_fractions_and_the_g_test() {
    for (labelled, unlabelled) in [
        (vec![3usize, 40], vec![500usize, 20]),
        (vec![10, 20, 30], vec![100, 50, 1]),
        (vec![1, 1, 1, 200], vec![1000, 3, 77, 1]),
        (vec![5; 12], (1..13).map(|k| k * k).collect()),
    ] {
        let truth: Vec<f64> =
            labelled.iter().zip(&unlabelled).map(|(&l, &u): (&usize, &usize)| l as f64 / (l + u) as f64).collect();
        let near = |what: &str, phi: &Phi| {
            for (a, b) in phi.as_slice().iter().zip(&truth) {
                assert!((a - b).abs() < 1e-10, "{what}: {a} {b}");
            }
        };
        let (p, y) = one_hot(&labelled, &unlabelled, PosteriorKind::Labelled);
        let sample = Sample::new(&p, &y).unwrap();
        let shift = LabelShift::default().estimate(&sample).unwrap();
        near("label shift", &shift.phi);
        near("confusion", &ConfusionInversion.estimate(&sample).unwrap().phi);
        let population = p.clone().with_kind(PosteriorKind::Population);
        let sample = Sample::new(&population, &y).unwrap();
        let likelihood = Likelihood::default().estimate(&sample).unwrap();
        near("likelihood", &likelihood.phi);
        near("moments", &Moments::new(Shares::MeanPosterior).estimate(&sample).unwrap().phi);
        let test = likelihood_ratio(&sample, &Solver::default()).unwrap();
        let g = g_statistic(&labelled, &unlabelled);
        assert!((test.statistic - g).abs() < 1e-10 * g.max(1.0), "{} {g}", test.statistic);
        // Binomial standard errors, for both likelihoods.
        for estimate in [shift, likelihood] {
            for (k, se) in estimate.standard_errors().unwrap().iter().enumerate() {
                let n_k = (labelled[k] + unlabelled[k]) as f64;
                let binomial = (truth[k] * (1.0 - truth[k]) / n_k).sqrt();
                assert!((se - binomial).abs() < 1e-10, "{} {se} {binomial}", estimate.method);
            }
        }
    }
}

/// All m rows of a class are labelled: its profile likelihood is phi^m, so the interval ends at exp(−χ²/2m). The other
/// classes keep their normal intervals, and perfect posteriors are not reported as confused.
#[test]
fn a_class_at_its_bound_has_an_interval() {
    for (m, others) in [(20usize, [40usize, 100]), (162, [90, 60])] {
        let (labelled, unlabelled) = (vec![others[0], m, others[1]], vec![900, 0, 300]);
        for (kind, of) in
            [(PosteriorKind::Labelled, ProfileOf::LabelShift), (PosteriorKind::Population, ProfileOf::Population)]
        {
            let (p, y) = one_hot(&labelled, &unlabelled, kind);
            let sample = Sample::new(&p, &y).unwrap();
            let estimate = match of {
                ProfileOf::LabelShift => LabelShift::default().estimate(&sample).unwrap(),
                ProfileOf::Population => Likelihood::default().estimate(&sample).unwrap(),
            };
            assert_eq!((estimate.phi[1], &estimate.clipped[..]), (1.0, &[Class::from(1)][..]), "{of:?}");
            let normal = estimate.conf_int(0.95).unwrap();
            assert!(normal[1].0.is_nan() && normal[1].1.is_nan(), "{of:?}: no normal limit");
            let intervals = information_intervals(&sample, of, &estimate, 0.95).unwrap();
            let lower = (-3.841_458_820_694_124 / (2.0 * m as f64)).exp();
            assert!((intervals[1].0 - lower).abs() < 1e-6, "{of:?}: {} {lower}", intervals[1].0);
            assert_eq!(intervals[1].1, 1.0, "{of:?}");
            assert_eq!((intervals[0], intervals[2]), (normal[0], normal[2]), "{of:?}");
            if kind == PosteriorKind::Labelled {
                let found = identifiability(&sample, &estimate).unwrap();
                assert!(found.largest_logit_se.is_finite() && found.verdict == Verdict::Good, "{found:?}");
            }
        }
    }
}

/// Where phi may be as low as its interval says, the share is as high as that: the two intervals never contradict each other.
#[test]
fn shares_agree_with_phi_at_its_bound() {
    let (p, y) = one_hot(&[40, 20, 100], &[900, 0, 300], PosteriorKind::Labelled);
    let settings = mnar::analysis::EstimateSettings {
        interval: mnar::analysis::IntervalMethod::Information,
        calibrate: mnar::analysis::Calibrate::None,
        permutations: 1,
        ..Default::default()
    };
    let found = settings.run(&mnar::analysis::Evidence::predictions(&p, &y), &()).unwrap();
    let (phi, share) = (found.phi_ci95.unwrap()[1], found.prevalence_ci95.unwrap()[1]);
    assert_eq!((found.phi[1], phi.1), (1.0, 1.0));
    let labelled = 20.0 / 1360.0;
    assert!(share.1 >= labelled / phi.0 && share.0 <= labelled, "{phi:?} {share:?}");
}

/// The expectation of the IPW risk and of the debiased SSL risk over all 2^n masks is the complete-data risk.
#[test]
fn both_risks_are_unbiased_over_all_masks() {
    let y: Vec<usize> = vec![0, 1, 2, 0, 1, 2, 2, 0, 1, 2];
    let n = y.len();
    let phi = Phi::new(vec![0.2, 0.55, 0.9]).unwrap();
    let ell: Vec<f64> = (0..n).map(|i| 0.3 + (i as f64 * 1.7).sin().abs()).collect();
    let h: Vec<f64> = (0..n).map(|i| (i as f64 * 0.9).cos() + 1.1).collect();
    let complete = ell.iter().sum::<f64>() / n as f64;
    let (mut ipw, mut ssl, mut renormalised) = (0.0, 0.0, 0.0);
    for mask in 0..1u32 << n {
        let labels: Vec<Option<Class>> = (0..n).map(|i| (mask >> i & 1 == 1).then(|| Class::from(y[i]))).collect();
        let probability: f64 = (0..n).map(|i| if labels[i].is_some() { phi[y[i]] } else { 1.0 - phi[y[i]] }).product();
        let value = ipw_risk(&ell, &labels, &phi).unwrap();
        ipw += probability * value;
        ssl += probability * ssl_risk(&ell, &h, &labels, &phi, 0.8).unwrap();
        let total: f64 = labels.iter().flatten().map(|class| 1.0 / phi[class.index()]).sum();
        if total > 0.0 {
            renormalised += probability * value * n as f64 / total;
        }
    }
    assert!((ipw - complete).abs() < 1e-12, "{ipw} {complete}");
    assert!((ssl - complete).abs() < 1e-12, "{ssl} {complete}");
    // Dividing by the sum of the weights of the batch, as deep-learning libraries do, is biased.
    assert!((renormalised - complete).abs() > 1e-3, "{renormalised} {complete}");
}

/// With one fold the permutation p-value is exact: over all equally likely masks it is uniform up to its grid.
#[test]
fn permutation_p_values_are_uniform_over_all_masks() {
    let n = 8;
    let p = Array2::from_shape_fn((n, 2), |(i, k)| {
        let q = [0.03, 0.11, 0.23, 0.31, 0.48, 0.62, 0.77, 0.94][i];
        if k == 0 { q } else { 1.0 - q }
    });
    let p = Posteriors::new(p, PosteriorKind::Labelled).unwrap();
    let mut p_values = Vec::new();
    for mask in 0..1u32 << n {
        if mask.count_ones() != 3 {
            continue;
        }
        // The class of a labelled row does not enter the statistic.
        let mut first = true;
        let y = (0..n)
            .map(|i| {
                (mask >> i & 1 == 1).then(|| {
                    let class = Class::from(usize::from(first));
                    first = false;
                    class
                })
            })
            .collect();
        let labels = Labels::new(y, vec!["a".into(), "b".into()]).unwrap();
        let sample = Sample::new(&p, &labels).unwrap();
        let test = PermutationTest { permutations: 4000, seed: u64::from(mask) };
        p_values.push(test.run(&sample, &FoldPlan::single(n)).unwrap().p_value);
    }
    assert_eq!(p_values.len(), 56);
    for level in [0.1, 0.25, 0.5, 0.9] {
        let share = p_values.iter().filter(|p| **p <= level).count() as f64 / 56.0;
        // The grid of 1/56 and the noise of 4,000 draws (0.8% at most) leave this much room.
        assert!(share <= level + 0.03 && share >= level - 0.06, "{share} at {level}");
    }
}

fn random_case() -> impl Strategy<Value = (Posteriors, Labels)> {
    (2usize..5, 40usize..120)
        .prop_flat_map(|(k, n)| {
            (
                Just(k),
                proptest::collection::vec(proptest::collection::vec(-2.0f64..2.0, k), n),
                proptest::collection::vec((0usize..k, 0.0f64..1.0), n),
            )
        })
        .prop_map(|(k, noise, rows)| {
            let n = rows.len();
            let logits = Array2::from_shape_fn((n, k), |(i, j)| noise[i][j] + if rows[i].0 == j { 1.5 } else { 0.0 });
            let y = (0..n)
                .map(|i| {
                    // The first rows hold one label per class and one unlabelled row.
                    let (class, u) = if i < k { (i, 0.0) } else { (rows[i].0, if i == k { 1.0 } else { rows[i].1 }) };
                    (u < 0.15 + 0.5 * class as f64 / k as f64).then_some(Class::from(class))
                })
                .collect();
            let names = (0..k).map(|k| k.to_string()).collect();
            (Posteriors::from_logits(logits.view(), PosteriorKind::Labelled).unwrap(), Labels::new(y, names).unwrap())
        })
}

fn reorder(p: &Posteriors, y: &Labels, order: &[usize]) -> (Posteriors, Labels) {
    let q = Array2::from_shape_fn((order.len(), p.n_classes()), |(i, k)| p.row(order[i])[k]);
    let labels = order.iter().map(|&i| y.get(i)).collect();
    (Posteriors::new(q, p.kind()).unwrap(), Labels::new(labels, y.names().to_vec()).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn estimates_do_not_depend_on_the_order_of_rows((p, y) in random_case(), seed in 0usize..1000) {
        let n = y.len();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|i| (i * 7919 + seed * 104_729) % 1009);
        let (q, z) = reorder(&p, &y, &order);
        let a = LabelShift::default().estimate(&Sample::new(&p, &y).unwrap()).unwrap();
        let b = LabelShift::default().estimate(&Sample::new(&q, &z).unwrap()).unwrap();
        prop_assert!(a.phi.normalised_mse(&b.phi) < 1e-16);
    }

    #[test]
    fn a_weight_of_two_is_a_row_twice((p, y) in random_case()) {
        let n = y.len();
        let weights: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { 2.0 } else { 1.0 }).collect();
        let order: Vec<usize> = (0..n).chain((0..n).filter(|i| i % 3 == 0)).collect();
        let (q, z) = reorder(&p, &y, &order);
        let twice = Sample::new(&q, &z).unwrap();
        let weighted = Sample::new(&p, &y).unwrap().weighted(&weights).unwrap();
        for (a, b) in [
            (LabelShift::default().estimate(&weighted).unwrap(), LabelShift::default().estimate(&twice).unwrap()),
            (Likelihood::default().estimate(&weighted).unwrap(), Likelihood::default().estimate(&twice).unwrap()),
            (ConfusionInversion.estimate(&weighted).unwrap(), ConfusionInversion.estimate(&twice).unwrap()),
        ] {
            prop_assert!(a.phi.normalised_mse(&b.phi) < 1e-14, "{}", a.method);
            let (a, b) = (a.covariance.unwrap().phi, b.covariance.unwrap().phi);
            prop_assert!(a.iter().zip(b.iter()).all(|(a, b)| a.is_nan() == b.is_nan() && (a.is_nan() || (a - b).abs() < 1e-7 * b.abs().max(1e-6))));
        }
    }

    #[test]
    fn shares_sum_to_one_and_agree_with_phi((p, y) in random_case()) {
        let sample = Sample::new(&p, &y).unwrap();
        let n = y.len() as f64;
        for estimate in [LabelShift::default().estimate(&sample).unwrap(), Likelihood::default().estimate(&sample).unwrap()] {
            prop_assert!((estimate.prevalence.iter().sum::<f64>() - 1.0).abs() < 1e-8, "{}", estimate.method);
            prop_assert!((estimate.unlabelled_shares.iter().sum::<f64>() - 1.0).abs() < 1e-8);
            for k in 0..y.n_classes() {
                // The moment identity: phi_k p_k = c_k.
                let product = estimate.phi[k] * estimate.prevalence[k];
                prop_assert!((product - y.counts()[k] as f64 / n).abs() < 1e-8, "{}", estimate.method);
            }
        }
    }

    #[test]
    fn calibrating_on_the_fly_is_calibrating_before((p, y) in random_case()) {
        let sample = Sample::new(&p, &y).unwrap();
        let bcts = Calibration::default().fit(&sample).unwrap();
        prop_assert!(bcts.log_loss_after <= bcts.log_loss_before + 1e-9);
        let before = bcts.apply(&p).unwrap();
        let a = LabelShift::default().estimate(&Sample::new(&before, &y).unwrap()).unwrap();
        let b = LabelShift::default().estimate(&Calibrated { rows: &sample, bcts: &bcts }).unwrap();
        prop_assert!(a.phi.normalised_mse(&b.phi) < 1e-16);
    }

    #[test]
    fn sensitivity_at_one_is_the_estimate((p, y) in random_case()) {
        let sample = Sample::new(&p, &y).unwrap();
        let estimate = LabelShift::default().estimate(&sample).unwrap();
        let curve = sensitivity(&sample, &LabelShift::default(), &[0.5, 1.0, 2.0]).unwrap();
        for k in 0..y.n_classes() {
            prop_assert!((curve[1].phi[k] - estimate.phi[k]).abs() < 1e-8);
            prop_assert!((curve[1].prevalence[k] - estimate.prevalence[k]).abs() < 1e-8);
        }
        for point in curve {
            prop_assert!((point.prevalence.iter().sum::<f64>() - 1.0).abs() < 1e-7);
        }
    }
}

/// Away from 1, the tilted class ratios must solve their own moment equation, mean over U of s_k/(w·s) = π_k(Γ), with
/// the ranks and the tilt computed here a second time. If easy rows are labelled more readily, the unlabelled rows are
/// harder.
#[test]
fn sensitivity_solves_the_tilted_moment_equation() {
    let n = 400;
    let logits = Array2::from_shape_fn((n, 3), |(i, k)| {
        (0.37 * i as f64 + 2.1 * k as f64).sin() * 2.0 + if i % 3 == k { 1.5 } else { 0.0 }
    });
    let p = Posteriors::from_logits(logits.view(), PosteriorKind::Labelled).unwrap();
    let y = (0..n).map(|i| (i * 7 % 10 < 2 + i % 3).then(|| Class::from(i % 3))).collect();
    let labels = Labels::new(y, ["a", "b", "c"].map(String::from).to_vec()).unwrap();
    let confidence: Vec<f64> = (0..n).map(|i| p.row(i).iter().copied().fold(0.0, f64::max)).collect();
    let rank = |i: usize| confidence.iter().filter(|c| **c < confidence[i]).count() as f64 / (n - 1) as f64 - 0.5;
    let (n_l, n_u) = (labels.n_labelled() as f64, labels.n_unlabelled() as f64);
    let curve = sensitivity(&Sample::new(&p, &labels).unwrap(), &LabelShift::default(), &[0.4, 3.0]).unwrap();
    for point in curve {
        let mut tilted = [0.0; 3];
        labels.labelled().for_each(|(i, class)| tilted[class.index()] += point.odds_factor.powf(-rank(i)) / n_l);
        let share = |k: usize| labels.counts()[k] as f64 / n_l;
        // 1/phi_k = 1 + (n_u/n_l) w_k π_k(Γ)/π_k, solved for w_k.
        let w: Vec<f64> = (0..3).map(|k| (1.0 / point.phi[k] - 1.0) * n_l / n_u * share(k) / tilted[k]).collect();
        for k in 0..3 {
            let mean: f64 = (0..n)
                .filter(|&i| !labels.is_labelled(i))
                .map(|i| p.row(i)[k] / p.row(i).iter().zip(&w).map(|(s, w)| s * w).sum::<f64>())
                .sum::<f64>()
                / n_u;
            assert!((mean - tilted[k]).abs() < 1e-8, "{} {k}: {mean} {}", point.odds_factor, tilted[k]);
            // phi_k p_k = c_k still holds.
            let c = labels.counts()[k] as f64 / n as f64;
            assert!((point.phi[k] * point.prevalence[k] - c).abs() < 1e-8);
        }
    }
}

#[test]
fn planning_scales_with_the_square_of_the_width() {
    let (p, y) = one_hot(&[40, 60], &[360, 140], PosteriorKind::Labelled);
    let estimate = LabelShift::default().estimate(&Sample::new(&p, &y).unwrap()).unwrap();
    let se = estimate.standard_errors().unwrap()[0];
    let now = 2.0 * 1.959963984540054 * se;
    assert_eq!(labels_for_width(&estimate, se, now, 0.95).unwrap().labels, 100);
    assert_eq!(labels_for_width(&estimate, se, now / 2.0, 0.95).unwrap().labels, 400);
    assert!(labels_for_power(&estimate.tally, 0.5, 1, 0.05, 0.8).unwrap().is_none());
    // Noncentrality 7.849 gives power 0.8 at 5% with one degree of freedom.
    let needed = labels_for_power(&estimate.tally, 1.0 + 7.8488, 1, 0.05, 0.8).unwrap().unwrap();
    assert!((99..=101).contains(&needed.labels), "{needed:?}");
}

#[test]
fn a_class_without_a_label_is_named_with_its_rows() {
    let (p, _) = one_hot(&[2, 1, 1], &[3, 4, 6], PosteriorKind::Labelled);
    let mut y = vec![None; p.len()];
    (y[0], y[5]) = (Some(Class(0)), Some(Class(1)));
    let labels = Labels::new(y, vec!["a".into(), "b".into(), "rare".into()]).unwrap();
    let error = LabelShift::default().estimate(&Sample::new(&p, &labels).unwrap()).unwrap_err().to_string();
    assert!(error.contains("class `rare` has no label") && error.contains("of 7 unlabelled rows"), "{error}");
}

#[test]
fn estimators_refuse_the_other_posterior_and_known_phi_is_kept() {
    let (p, y) = one_hot(&[4, 6], &[36, 14], PosteriorKind::Population);
    let sample = Sample::new(&p, &y).unwrap();
    assert!(LabelShift::default().estimate(&sample).unwrap_err().to_string().contains("needs labelled posteriors"));
    let known = KnownPhi(Phi::new(vec![0.1, 0.3]).unwrap()).estimate(&sample).unwrap();
    assert_eq!(known.phi.as_slice(), [0.1, 0.3]);
    assert!((known.prevalence[0] - 40.0 / 60.0).abs() < 1e-12);
    let labelled = p.with_kind(PosteriorKind::Labelled);
    let sample = Sample::new(&labelled, &y).unwrap();
    let error = Moments::new(Shares::MeanPosterior).estimate(&sample).unwrap_err();
    assert!(error.to_string().contains("needs population posteriors"), "{error}");
}
