//! Metrics against scikit-learn, Horvitz and Thompson, and Begg and Greenes; and what must not change them.
#![allow(clippy::unwrap_used)]

use mnar::analysis::{EstimateSettings, Evidence, Method};
use mnar::covariates::Covariate;
use mnar::evaluate::{EvaluateSettings, Evaluation, ExpectedLabels, MetricName, Model, Population, Scores};
use mnar::mechanism::Mechanism;
use mnar::{Class, Covariates, Labels, Phi, PosteriorKind, Posteriors};
use ndarray::Array2;
use proptest::prelude::*;
use serde_json::Value;

const TOLERANCE: f64 = 1e-12;

struct Case {
    name: String,
    json: Value,
    p: Posteriors,
    y: Vec<Class>,
    labelled: Vec<bool>,
    phi: Phi,
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn cases() -> Vec<Case> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reference/golden/evaluate.json");
    let all: Value = serde_json::from_reader(std::io::BufReader::new(std::fs::File::open(path).unwrap())).unwrap();
    let case = |json: &Value| {
        let input = &json["input"];
        let rows: Vec<Vec<f64>> = input["p"].as_array().unwrap().iter().map(numbers).collect();
        let p = Array2::from_shape_fn((rows.len(), rows[0].len()), |(i, k)| rows[i][k]);
        Case {
            name: json["name"].as_str().unwrap().to_owned(),
            p: Posteriors::new(p, PosteriorKind::Labelled).unwrap(),
            y: numbers(&input["y"]).into_iter().map(|y| Class::from(y as usize)).collect(),
            labelled: input["labelled"].as_array().unwrap().iter().map(|r| r.as_bool().unwrap()).collect(),
            phi: Phi::new(numbers(&input["phi"])).unwrap(),
            json: json.clone(),
        }
    };
    all.as_array().unwrap().iter().map(case).collect()
}

impl Case {
    fn labels(&self, complete: bool) -> Labels {
        let y = self.y.iter().zip(&self.labelled).map(|(y, r)| (complete || *r).then_some(*y)).collect();
        Labels::allow_degenerate(y, (0..self.p.n_classes()).map(|k| k.to_string()).collect()).unwrap()
    }

    /// With the true phi, uncalibrated, without intervals.
    fn evaluate(&self, labels: &Labels, augmented: bool) -> Evaluation {
        let settings = EvaluateSettings { augmented, ..known(&self.phi) };
        let settings = if labels.n_unlabelled() == 0 {
            EvaluateSettings { estimate: without_intervals(), ..Default::default() }
        } else {
            settings
        };
        let model = Model { name: "model".into(), scores: Scores::Probabilities(&self.p) };
        settings.run(&Evidence::predictions(&self.p, labels), &[model], &()).unwrap()
    }
}

fn without_intervals() -> EstimateSettings {
    EstimateSettings { replicates: Some(0), ..Default::default() }
}

fn known(phi: &Phi) -> EvaluateSettings {
    let estimate = EstimateSettings {
        method: Method::Known,
        phi: Some(phi.clone()),
        calibrate: mnar::analysis::Calibrate::None,
        ..without_intervals()
    };
    EvaluateSettings { estimate, ..Default::default() }
}

/// Which of its two values a metric is compared by.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Naive,
    Corrected,
}

/// Compares every metric of a reference with what was found.
fn compare(case: &str, expected: &Value, found: &Evaluation, population: Population, of: Of) {
    let mut compared = 0;
    for metric in found.metrics.iter().filter(|metric| metric.population == population) {
        let reference = match &metric.class {
            None => &expected["overall"][metric.name.name()],
            Some(class) => &expected["classes"][class.parse::<usize>().unwrap()][metric.name.name()],
        };
        let value = if of == Of::Naive { metric.naive } else { metric.corrected };
        let about = format!("{case}: {:?} of {:?}", metric.name, metric.class);
        match (reference.as_f64(), value) {
            (Some(reference), Some(ours)) => {
                let tolerance = if metric.name == MetricName::CalibrationSlope { 1e-8 } else { TOLERANCE };
                assert!(
                    (reference - ours).abs() <= tolerance * reference.abs().max(1.0),
                    "{about}: {reference} {ours}"
                );
            }
            (None, None) => {}
            (reference, ours) => panic!("{about}: {reference:?} {ours:?}"),
        }
        compared += 1;
    }
    assert!(compared >= 9 + 8 * 2, "{case}: {compared} metrics");
    let matrix = found.confusion.iter().find(|matrix| matrix.population == population).unwrap();
    let matrix = if of == Of::Naive { &matrix.naive } else { &matrix.corrected };
    for (k, row) in expected["confusion"].as_array().unwrap().iter().enumerate() {
        for (d, cell) in numbers(row).into_iter().enumerate() {
            let ours = matrix[k][d];
            assert!((ours - cell).abs() <= TOLERANCE * cell.abs().max(1.0), "{case}: {k} {d}: {cell} {ours}");
        }
    }
}

#[test]
fn with_all_labels_it_is_scikit_learn() {
    for case in cases() {
        let found = case.evaluate(&case.labels(true), true);
        compare(&case.name, &case.json["complete"], &found, Population::All, Of::Corrected);
        compare(&case.name, &case.json["complete"], &found, Population::All, Of::Naive);
        assert!(found.metrics.iter().all(|metric| metric.population == Population::All));
    }
}

#[test]
fn weighting_alone_is_horvitz_and_thompson() {
    for case in cases() {
        let found = case.evaluate(&case.labels(false), false);
        compare(&case.name, &case.json["weighted"], &found, Population::All, Of::Corrected);
        compare(&case.name, &case.json["naive"], &found, Population::All, Of::Naive);
    }
}

#[test]
fn the_augmented_estimate_is_its_definition() {
    for case in cases() {
        let found = case.evaluate(&case.labels(false), true);
        // Estimates outside 0 to 1 would have been moved.
        assert!(!found.warnings.iter().any(|warning| warning.contains("outside")), "{:?}", found.warnings);
        compare(&case.name, &case.json["augmented"], &found, Population::All, Of::Corrected);
        compare(&case.name, &case.json["unlabelled"], &found, Population::Unlabelled, Of::Corrected);
    }
}

#[test]
fn verification_by_the_test_alone_is_begg_and_greenes() {
    // A test on 400 patients; 80% of the positive and 10% of the negative ones are verified.
    let positive = |i: usize| i % 5 < 2;
    let verified = |i: usize| if positive(i) { !i.is_multiple_of(10) } else { i % 12 == 2 || i % 24 == 4 };
    let sick = |i: usize| if positive(i) { !i.is_multiple_of(3) } else { i % 7 == 4 };
    let n = 400;
    let y = (0..n).map(|i| verified(i).then(|| Class::from(usize::from(sick(i))))).collect();
    let labels = Labels::new(y, vec!["well".into(), "sick".into()]).unwrap();
    // Their mechanism: the rate of verification of each result of the test, and no effect of the disease.
    let count = |of: &dyn Fn(usize) -> bool| (0..n).filter(|&i| of(i)).count() as f64;
    let logit = |result: bool| {
        let labelled = count(&|i| positive(i) == result && verified(i));
        (labelled / (count(&|i| positive(i) == result) - labelled)).ln()
    };
    let mechanism = Mechanism { classes: vec![logit(false); 2], terms: vec![logit(true) - logit(false)] };
    let terms = vec![(0..n).map(|i| f64::from(u8::from(positive(i)))).collect::<Vec<f64>>()];
    // P(sick | result) among the verified, times the number of patients with this result.
    let sick_with = |result: bool| {
        let of = |i: usize| positive(i) == result && verified(i);
        count(&|i| of(i) && sick(i)) / count(&of) * count(&|i| positive(i) == result)
    };
    let sensitivity = sick_with(true) / (sick_with(true) + sick_with(false));
    // Any probabilities will do.
    for sure in [0.6, 0.95] {
        let p = Array2::from_shape_fn((n, 2), |(i, k)| if positive(i) == (k == 1) { sure } else { 1.0 - sure });
        let p = Posteriors::new(p, PosteriorKind::Labelled).unwrap();
        let expected = ExpectedLabels::by_columns(&p, &labels, &mechanism, &terms).unwrap();
        let counted = expected.of(Population::All, None);
        let sick_and = |of: &dyn Fn(usize) -> bool| (0..n).filter(|&i| of(i)).map(|i| counted.get(i, 1)).sum::<f64>();
        let ours = sick_and(&positive) / sick_and(&|_| true);
        assert!((ours - sensitivity).abs() < TOLERANCE, "{ours} {sensitivity}");
    }
}

/// 600 rows in three groups, of which phi labels some; and the truth.
fn world(seed: u64) -> (Posteriors, Vec<Class>, Labels, Vec<&'static str>) {
    use rand::{RngExt, SeedableRng};
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let n = 600;
    let mut p = Array2::zeros((n, 2));
    let (mut truth, mut y, mut group) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..n {
        let b: f64 = rng.random::<f64>().powf(1.5);
        p[(i, 1)] = b;
        p[(i, 0)] = 1.0 - b;
        let class = Class::from(usize::from(rng.random::<f64>() < b));
        truth.push(class);
        y.push((rng.random::<f64>() < [0.2, 0.6][class.index()]).then_some(class));
        group.push(["x", "y", "z"][i % 3]);
    }
    let labels = Labels::new(y, vec!["a".into(), "b".into()]).unwrap();
    (Posteriors::new(p, PosteriorKind::Population).unwrap(), truth, labels, group)
}

fn few(replicates: usize) -> EvaluateSettings {
    EvaluateSettings {
        estimate: EstimateSettings { replicates: Some(replicates), permutations: 99, ..Default::default() },
        ..Default::default()
    }
}

#[test]
fn intervals_contain_their_estimate_and_the_truth() {
    let (p, truth, labels, _) = world(1);
    let complete =
        Labels::allow_degenerate(truth.iter().copied().map(Some).collect(), labels.names().to_vec()).unwrap();
    let model = || Model { name: "m".into(), scores: Scores::Probabilities(&p) };
    let found = few(100).run(&Evidence::predictions(&p, &labels), &[model()], &()).unwrap();
    let all = few(0).run(&Evidence::predictions(&p, &complete), &[model()], &()).unwrap();
    let mut outside = 0;
    for metric in &found.metrics {
        let (low, high) = metric.ci95.unwrap();
        let value = metric.corrected.unwrap();
        assert!(low <= value && value <= high, "{metric:?}");
        if metric.population == Population::All && metric.name != MetricName::CalibrationError {
            let truth = all.get(metric.name, metric.class.as_deref(), Population::All).unwrap().corrected.unwrap();
            outside += usize::from(truth < low || truth > high);
        }
    }
    assert!(outside <= 2, "{outside}");
    let accuracy = found.get(MetricName::Accuracy, None, Population::All).unwrap();
    assert!(accuracy.naive < accuracy.corrected, "{accuracy:?}");
}

#[test]
fn a_model_compared_with_itself_does_not_differ() {
    let (p, _, labels, _) = world(2);
    let decisions: Vec<Class> = (0..p.len()).map(|i| Class::from(usize::from(p.row(i)[1] > p.row(i)[0]))).collect();
    let models = [
        Model { name: "one".into(), scores: Scores::Probabilities(&p) },
        Model { name: "two".into(), scores: Scores::Decisions(&decisions) },
    ];
    let found = few(20).run(&Evidence::predictions(&p, &labels), &models, &()).unwrap();
    assert!(!found.differences.is_empty());
    for difference in &found.differences {
        assert_eq!(difference.corrected, Some(0.0), "{difference:?}");
        assert_eq!(difference.ci95, Some((0.0, 0.0)));
    }
    // Decisions have no ranks and no probabilities.
    assert!(!found.metrics.iter().any(|metric| metric.model == "two" && metric.name == MetricName::Auc));
}

#[test]
fn groups_add_up_and_the_seed_decides() {
    let (p, _, labels, group) = world(3);
    let columns = Covariates::new(vec![Covariate::categorical("g", group.iter().map(|g| Some(*g)))]).unwrap();
    let evidence = Evidence::predictions(&p, &labels).with_covariates(&columns).unwrap();
    let mut settings = few(10);
    settings.estimate.by = Some("g".to_owned());
    settings.curves = true;
    let model = || [Model { name: "m".into(), scores: Scores::Probabilities(&p) }];
    let found = settings.run(&evidence, &model(), &()).unwrap();
    for population in [Population::All, Population::Unlabelled] {
        let matrices = || found.confusion.iter().filter(|matrix| matrix.population == population);
        for (k, d) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let whole = matrices().find(|matrix| matrix.group.is_none()).unwrap().corrected[k][d];
            let parts: f64 = matrices().filter(|matrix| matrix.group.is_some()).map(|m| m.corrected[k][d]).sum();
            assert!((whole - parts).abs() < 1e-9);
        }
    }
    let again = settings.run(&evidence, &model(), &()).unwrap();
    assert_eq!(found.metrics, again.metrics);
    let curves = &found.curves[0];
    assert!(curves.roc[0].len() <= 103 && curves.roc[0].windows(2).all(|pair| pair[0].0 <= pair[1].0 + 0.02));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..Default::default() })]

    #[test]
    fn the_order_of_the_rows_does_not_matter(seed in 0u64..1000, shift in 1usize..599) {
        let (p, _, labels, _) = world(seed);
        let settings = EvaluateSettings { estimate: without_intervals(), ..Default::default() };
        let run = |p: &Posteriors, labels: &Labels| {
            let model = Model { name: "m".into(), scores: Scores::Probabilities(p) };
            settings.run(&Evidence::predictions(p, labels), &[model], &()).unwrap()
        };
        let n = p.len();
        let moved = |i: usize| (i * 7 + shift) % n;
        let p2 = Array2::from_shape_fn((n, 2), |(i, k)| p.row(moved(i))[k]);
        let p2 = Posteriors::new(p2, PosteriorKind::Population).unwrap();
        let y2 = (0..n).map(|i| labels.get(moved(i))).collect();
        let labels2 = Labels::new(y2, labels.names().to_vec()).unwrap();
        for (one, two) in run(&p, &labels).metrics.iter().zip(&run(&p2, &labels2).metrics) {
            let (a, b) = (one.corrected.unwrap(), two.corrected.unwrap());
            prop_assert!((a - b).abs() < 1e-8, "{one:?} {two:?}");
        }
    }
}

/// Labels that follow a cause in no column mislead every correction by class; 300 rows that were drawn at random do not.
#[test]
fn an_audit_is_right_whatever_decided_the_other_labels() {
    use rand::{RngExt as _, SeedableRng as _};
    let (mut covered, mut naive_covered, draws) = (0, 0, 40);
    for seed in 0..draws {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let n = 3000;
        let (mut p, mut y, mut audited, mut right) = (Array2::zeros((n, 2)), Vec::new(), vec![false; n], 0);
        for i in 0..n {
            let truth = usize::from(rng.random_bool(0.4));
            let correct = rng.random_bool(0.75);
            right += usize::from(correct);
            let said = if correct { truth } else { 1 - truth };
            (p[[i, said]], p[[i, 1 - said]]) = (0.75, 0.25);
            audited[i] = i < 300;
            // Rows that the model gets right are labelled five times as often.
            let labelled = audited[i] || rng.random_bool(if correct { 0.25 } else { 0.05 });
            y.push(labelled.then_some(Class::from(truth)));
        }
        let labels = Labels::new(y, vec!["a".into(), "b".into()]).unwrap();
        let (labels, audit) = mnar::analysis::Audit::split(&labels, &audited).unwrap();
        let p = Posteriors::new(p, PosteriorKind::Labelled).unwrap();
        let evidence = Evidence::predictions(&p, &labels).with_audit(&audit);
        // As a run sets it, with a sensitivity analysis that an audit has no use for.
        let of_run = EstimateSettings::default().for_report(PosteriorKind::Labelled);
        let estimate = EstimateSettings { replicates: Some(60), ..of_run };
        let settings = EvaluateSettings { estimate, ..Default::default() };
        let model = Model { name: "model".into(), scores: Scores::Probabilities(&p) };
        let found = settings.run(&evidence, &[model], &()).unwrap();
        assert_eq!((found.method.as_str(), found.about.n_labelled), ("audit", 300));
        assert!(found.metrics.iter().all(|metric| metric.population == Population::All));
        let accuracy = found.get(MetricName::Accuracy, None, Population::All).unwrap();
        let (truth, (low, high)) = (right as f64 / n as f64, accuracy.ci95.unwrap());
        covered += u64::from(low <= truth && truth <= high);
        naive_covered += u64::from((low..=high).contains(&accuracy.naive.unwrap()));
        assert!(accuracy.naive.unwrap() > 0.88, "the labelled rows are the easy ones: {accuracy:?}");
    }
    assert!(covered >= 36, "{covered} of {draws}");
    assert_eq!(naive_covered, 0);
}
