//! The mechanism by class and columns: against an independent implementation, a closed form and finite differences of its
//! estimate; and the tests of what decides labelling on worlds whose answer is known.

#![allow(clippy::unwrap_used)]

use mnar::analysis::{EstimateSettings, Evidence, Features, Given, IntervalMethod, VerdictKind};
use mnar::classify::SoftmaxRegression;
use mnar::covariates::{Covariate, Covariates, Design};
use mnar::crossfit::FoldPlan;
use mnar::mechanism::ClassAndColumns;
use mnar::{Class, Error, Labels, PosteriorKind, Posteriors, Sample};
use ndarray::Array2;
use rand::{RngExt as _, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde_json::Value;
use std::path::PathBuf;

fn close(what: &str, ours: &[f64], theirs: &Value, tolerance: f64) {
    let theirs: Vec<f64> = theirs.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert!((ours - theirs).abs() < tolerance, "{what}: {ours} against {theirs}");
    }
}

fn slices(design: &Design) -> Vec<&[f64]> {
    design.columns().iter().map(Vec::as_slice).collect()
}

/// `reference/mechanism.py` maximises the same likelihood by a derivative-free method.
#[test]
fn equals_the_reference() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../reference/golden/mechanism.json");
    let cases: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for case in cases.as_array().unwrap() {
        let k = case["classes"].as_u64().unwrap() as usize;
        let p: Vec<f64> = case["posteriors"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|row| row.as_array().unwrap().iter().map(|p| p.as_f64().unwrap()))
            .collect();
        let y: Vec<Option<Class>> =
            case["labels"].as_array().unwrap().iter().map(|y| y.as_u64().map(|y| Class::from(y as usize))).collect();
        let posteriors =
            Posteriors::new(Array2::from_shape_vec((y.len(), k), p).unwrap(), PosteriorKind::Labelled).unwrap();
        let labels = Labels::new(y, (0..k).map(|k| k.to_string()).collect()).unwrap();
        let mut columns = Vec::new();
        if let Some(site) = case["site"].as_array() {
            columns.push(Covariate::categorical("site", site.iter().map(Value::as_str)));
        }
        if let Some(age) = case["age"].as_array() {
            columns.push(Covariate::numeric("age", age.iter().map(|age| age.as_f64().unwrap()).collect()));
        }
        let design = Design::new(&Covariates::new(columns).unwrap()).unwrap();
        let given = slices(&design);
        let sample = Sample::new(&posteriors, &labels).unwrap().given(&given).unwrap();
        let found = ClassAndColumns::default().estimate(&sample, design.len()).unwrap();
        assert!(found.estimate.stop.converged());
        close("a", &found.mechanism.classes, &case["class_effects"], 2e-5);
        close("b", &found.mechanism.terms, &case["term_effects"], 2e-5);
        close("shares", found.estimate.prevalence.as_slice(), &case["prevalence"], 1e-6);
        close("phi", found.estimate.phi.as_slice(), &case["phi"], 1e-5);
    }
}

/// Rows of two classes and two sites with the given numbers of labelled and unlabelled rows per cell, whose classes the
/// posteriors know for certain.
fn cells(counts: [[(usize, usize); 2]; 2]) -> (Posteriors, Labels, Covariates) {
    let (mut p, mut y, mut sites) = (Vec::new(), Vec::new(), Vec::new());
    for (class, by_site) in counts.iter().enumerate() {
        for (site, &(labelled, unlabelled)) in by_site.iter().enumerate() {
            for i in 0..labelled + unlabelled {
                p.extend([f64::from(u8::from(class == 0)), f64::from(u8::from(class == 1))]);
                y.push((i < labelled).then(|| Class::from(class)));
                sites.push(Some(["a", "b"][site]));
            }
        }
    }
    let n = y.len();
    (
        Posteriors::new(Array2::from_shape_vec((n, 2), p).unwrap(), PosteriorKind::Labelled).unwrap(),
        Labels::new(y, vec!["no".into(), "yes".into()]).unwrap(),
        Covariates::new(vec![Covariate::categorical("site", sites)]).unwrap(),
    )
}

/// With posteriors of 0 and 1 the model is an ordinary logistic regression of r on class and site. Where the odds of the
/// cells multiply exactly, its fit is saturated: the odds of every cell, and the true shares.
#[test]
fn certain_posteriors_give_the_odds_of_the_cells() {
    // Odds 1/4 and 1 in site a, times 3 in site b: 3/4 and 3.
    let (posteriors, labels, covariates) = cells([[(20, 80), (45, 60)], [(50, 50), (90, 30)]]);
    let design = Design::new(&covariates).unwrap();
    let given = slices(&design);
    let sample = Sample::new(&posteriors, &labels).unwrap().given(&given).unwrap();
    let flat = ClassAndColumns { class_spread: 1e4, term_spread: 1e4, ..Default::default() };
    let found = flat.estimate(&sample, design.len()).unwrap();
    let phi = |class: usize, site: usize| {
        found.mechanism.phi(class, [f64::from(u8::from(site == 0)), f64::from(u8::from(site == 1))])
    };
    for (class, site, expected) in [(0, 0, 0.2), (0, 1, 3.0 / 7.0), (1, 0, 0.5), (1, 1, 0.75)] {
        assert!((phi(class, site) - expected).abs() < 1e-6, "{class} {site}: {}", phi(class, site));
    }
    let shares = found.estimate.prevalence.as_slice();
    assert!((shares[0] - 205.0 / 425.0).abs() < 1e-12, "{shares:?}");
    // Known classes leave binomial error only: n_k/n with its usual variance.
    let se = found.estimate.prevalence_standard_errors().unwrap()[0];
    assert!((se - (205.0 * 220.0 / 425f64.powi(3)).sqrt()).abs() < 1e-9, "{se}");
    // Horvitz-Thompson weights 1/phi(y, z) reproduce the number of rows.
    let weights: f64 = labels
        .labelled()
        .map(|(row, class)| 1.0 / found.mechanism.phi(class.index(), given.iter().map(|column| column[row])))
        .sum();
    assert!((weights - 425.0).abs() < 1e-3, "{weights}");
}

/// A small group is drawn towards the others, a large one is not.
#[test]
fn small_groups_are_shrunk() {
    let (posteriors, labels, covariates) = cells([[(300, 700), (3, 0)], [(600, 400), (2, 1)]]);
    let design = Design::new(&covariates).unwrap();
    let given = slices(&design);
    let sample = Sample::new(&posteriors, &labels).unwrap().given(&given).unwrap();
    let with = |term_spread: f64| {
        let settings = ClassAndColumns { term_spread, ..Default::default() };
        let terms = settings.estimate(&sample, design.len()).unwrap().mechanism.terms;
        terms[1] - terms[0]
    };
    assert!(with(0.5) < with(2.0) && with(2.0) < with(50.0));
    assert!(with(0.5) > 0.0);
}

/// Three classes on a circle, a site and an age that depend on x, and labels drawn with these logits.
struct World {
    x: Array2<f64>,
    covariates: Covariates,
    labels: Labels,
    shares: Vec<f64>,
}

fn world(n: usize, seed: u64, logit: impl Fn(usize, usize, f64) -> f64) -> World {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let (mut rows, mut y, mut sites, mut ages) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for i in 0..n {
        let class = usize::from(i % 10 >= 5) + usize::from(i % 10 >= 8);
        let angle = class as f64 * std::f64::consts::TAU / 3.0;
        let x = [1.8 * angle.cos() + normal(), 1.8 * angle.sin() + normal()];
        let at = 0.6 * x[0] + normal();
        let site = usize::from(at > -0.4) + usize::from(at > 0.8);
        let age = 0.6 * x[1] + normal();
        rows.extend([x[0], x[1], age, f64::from(u8::from(site == 0)), f64::from(u8::from(site == 1))]);
        y.push(class);
        sites.push(site);
        ages.push(age);
    }
    let labels = (0..n)
        .map(|i| {
            let p = 1.0 / (1.0 + (-logit(y[i], sites[i], ages[i])).exp());
            (rng.random::<f64>() < p).then(|| Class::from(y[i]))
        })
        .collect();
    let x = Array2::from_shape_vec((n, 5), rows).unwrap();
    let covariates = Covariates::new(vec![
        Covariate::numeric("x1", x.column(0).to_vec()),
        Covariate::numeric("x2", x.column(1).to_vec()),
        Covariate::numeric("age", ages),
        Covariate::categorical("site", sites.iter().map(|&site| Some(["a", "b", "c"][site]))),
    ])
    .unwrap();
    let shares = (0..3).map(|k| y.iter().filter(|y| **y == k).count() as f64 / n as f64).collect();
    World { x, covariates, labels: Labels::new(labels, ["u", "v", "w"].map(String::from).to_vec()).unwrap(), shares }
}

fn found(world: &World, given: Given) -> Result<mnar::analysis::Findings, Error> {
    let names: Vec<String> = ["x1", "x2", "age", "site=a", "site=b"].map(String::from).to_vec();
    let classifier = SoftmaxRegression::default();
    let plan = FoldPlan::for_labels(&world.labels, 5, 7).unwrap();
    let features = Features { x: &world.x, names: &names, classifier: &classifier };
    let evidence =
        Evidence::cross_fit(features, &world.labels, plan, 7, &()).unwrap().with_covariates(&world.covariates).unwrap();
    EstimateSettings { given, replicates: Some(60), permutations: 499, seed: 3, ..Default::default() }
        .run(&evidence, &())
}

#[test]
fn the_verdict_is_of_the_right_kind() {
    let site = |site: usize| [1.6, 0.0, -1.2][site];
    let class = |class: usize| [-0.9, 0.0, 0.9][class];
    let kind = |world: &World| {
        let found = found(world, Given::Auto).unwrap();
        let verdict = found.verdict.clone().unwrap();
        println!("{}", verdict.headline);
        (verdict.kind, found)
    };
    let (by_chance, _) = kind(&world(1500, 1, |_, _, _| -0.8));
    assert_eq!(by_chance, VerdictKind::AtRandom);
    let (by_class, _) = kind(&world(1500, 2, |y, _, _| class(y) - 0.8));
    assert_eq!(by_class, VerdictKind::ByClass);
    let (by_columns, columns) = kind(&world(1500, 3, |_, s, _| site(s) - 0.8));
    assert_eq!(by_columns, VerdictKind::ByColumns);
    assert_eq!(columns.labelling.unwrap().given, ["site"]);
    let (by_age, age) = kind(&world(1500, 14, |_, _, age| 1.2 * age - 0.8));
    assert_eq!(by_age, VerdictKind::ByColumns);
    assert_eq!(age.labelling.unwrap().given, ["age"]);
    let both = world(2000, 5, |y, s, _| class(y) + site(s) - 0.8);
    let (by_both, found) = kind(&both);
    assert_eq!(by_both, VerdictKind::ByClassAndColumns);
    for (k, (low, high)) in found.prevalence_ci95.as_ref().unwrap().iter().enumerate() {
        assert!(*low <= both.shares[k] && both.shares[k] <= *high, "{k}: {low} to {high}, {}", both.shares[k]);
    }
    // Every row has its own phi, and odds ratios are those that were drawn with: e^1.6 and e^1.2 against the middle.
    assert_eq!(found.row_phi.as_ref().unwrap().len(), 2000);
    let labelling = found.labelling.unwrap();
    let effect = &labelling.effects[0];
    assert!(labelling.class_only.is_some() && effect.terms.len() == 2);
    for term in &effect.terms {
        assert!(term.ci95.0 < term.odds_ratio && term.odds_ratio < term.ci95.1);
    }
}

/// A table in which every row stands twice, label included, knows no more than the table itself.
#[test]
fn copies_of_rows_add_no_certainty() {
    let once = world(500, 11, |y, _, _| [-0.9, 0.0, 0.9][y] - 0.8);
    let twice = |i: usize| i % 500;
    let x = Array2::from_shape_fn((1000, 5), |(i, j)| once.x[(twice(i), j)]);
    let labels = (0..1000).map(|i| once.labels.get(twice(i))).collect();
    let labels = Labels::new(labels, once.labels.names().to_vec()).unwrap();
    let widths = |x: &Array2<f64>, labels: &Labels| -> (Vec<f64>, bool) {
        let classifier = SoftmaxRegression::default();
        let plan = FoldPlan::for_rows(x.view(), labels, 5, 7).unwrap();
        let features = Features { x, names: &[], classifier: &classifier };
        let evidence = Evidence::cross_fit(features, labels, plan, 7, &()).unwrap();
        let settings = EstimateSettings { replicates: Some(60), permutations: 99, seed: 3, ..Default::default() };
        let found = settings.run(&evidence, &()).unwrap();
        assert_eq!(found.verdict.unwrap().kind, VerdictKind::ByClass);
        let warned = found.warnings.iter().any(|warning| warning.contains("copies of other rows"));
        (found.prevalence_ci95.unwrap().iter().map(|(low, high)| high - low).collect(), warned)
    };
    let ((once, warned_once), (twice, warned_twice)) = (widths(&once.x, &once.labels), widths(&x, &labels));
    assert!(warned_twice && !warned_once);
    for (once, twice) in once.iter().zip(&twice) {
        assert!((twice / once - 1.0).abs() < 0.15, "{once} {twice}");
    }
}

/// Two of three sites label next to nothing, so that a share rests on a few labels: its interval is wider than that of Student's t
/// with 59 degrees of freedom, which 60 replicates have.
#[test]
fn intervals_know_how_few_labels_they_rest_on() {
    let width = |rare: f64| -> f64 {
        let world = world(600, 21, |_, site, _| if site == 2 { 2.0 } else { rare });
        let found = found(&world, Given::Columns(vec!["site".to_owned()])).unwrap();
        assert_eq!(found.interval.replicates, 60);
        let logit = |p: f64| (p / (1.0 - p)).ln();
        let ((low, high), se) = (found.prevalence_ci95.unwrap()[0], found.prevalence_se.unwrap()[0]);
        let share = found.prevalence.as_slice()[0];
        0.5 * (logit(high) - logit(low)) / (se / (share * (1.0 - share)))
    };
    let (few, many) = (width(-3.2), width(0.5));
    assert!(few > 1.03 * many && many < 2.1, "{few} {many}");
}

/// Every hospital favours another class. Columns that predict the class would make the checks pass, and the shares wrong.
#[test]
fn a_mechanism_of_another_kind_is_unclear() {
    for seed in 0..4 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut x, mut labels, mut hospitals) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..1500 {
            let (sick, hospital) = (rng.random::<f64>() < 0.3, rng.random_range(0..3));
            let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
            let shift = f64::from(u8::from(sick));
            x.extend([normal() + 1.5 * shift, normal() - shift, normal()]);
            x.extend([0, 1].map(|other| f64::from(u8::from(hospital == other))));
            let phi = [[0.1, 0.6], [0.4, 0.4], [0.6, 0.1]][hospital][usize::from(sick)];
            labels.push((rng.random::<f64>() < phi).then(|| Class::from(usize::from(sick))));
            hospitals.push(hospital);
        }
        let x = Array2::from_shape_vec((1500, 5), x).unwrap();
        let number = |name: &str, j: usize| Covariate::numeric(name, x.column(j).to_vec());
        let hospital = Covariate::categorical("hospital", hospitals.iter().map(|&at| Some(["N", "S", "W"][at])));
        let covariates = Covariates::new(vec![number("a", 0), number("b", 1), number("c", 2), hospital]).unwrap();
        let shares = Vec::new();
        let labels = Labels::new(labels, ["well", "sick"].map(String::from).to_vec()).unwrap();
        let found = found(&World { x, covariates, labels, shares }, Given::Auto).unwrap();
        let (verdict, given) = (found.verdict.unwrap(), found.labelling.unwrap().given);
        assert_eq!(verdict.kind, VerdictKind::Unclear, "{given:?}: {}", verdict.headline);
        assert_eq!(given, ["hospital"]);
    }
}

/// The young and the old are labelled, and no straight line shows it.
#[test]
fn rates_that_bend_are_seen() {
    let world = world(1500, 34, |_, _, age| 2.0 * age * age - 2.5);
    let verdict = found(&world, Given::Auto).unwrap().verdict.unwrap();
    assert_eq!(verdict.kind, VerdictKind::Unclear);
    assert!(verdict.headline.contains("where `age` is "), "{}", verdict.headline);
}

#[test]
fn with_every_feature_given_nothing_identifies_the_class() {
    let world = world(800, 6, |y, s, _| [-0.9, 0.0, 0.9][y] + [1.0, 0.0, -1.0][s] - 0.8);
    let all = ["x1", "x2", "age", "site"].map(String::from).to_vec();
    let verdict = found(&world, Given::Columns(all)).unwrap().verdict.unwrap();
    assert_eq!(verdict.kind, VerdictKind::Unclear);
    assert!(
        verdict.headline.contains("nothing in the data identifies the effect of the class"),
        "{}",
        verdict.headline
    );
}

#[test]
fn unknown_columns_are_named() {
    let world = world(400, 7, |_, _, _| -0.5);
    let message = found(&world, Given::Columns(vec!["hospital".into()])).unwrap_err().to_string();
    assert!(message.contains("`hospital`") && message.contains("site"), "{message}");
}

/// Without a refit the orthogonal scores are the reference; they find the site too.
#[test]
fn predictions_are_checked_without_a_refit() {
    let world = world(3000, 8, |_, s, _| [1.6, 0.0, -1.2][s] - 0.8);
    let classifier = SoftmaxRegression::default();
    let plan = FoldPlan::for_labels(&world.labels, 5, 7).unwrap();
    let names: Vec<String> = Vec::new();
    let features = Features { x: &world.x, names: &names, classifier: &classifier };
    let cross_fit = Evidence::cross_fit(features, &world.labels, plan.clone(), 7, &()).unwrap();
    let evidence = Evidence::predictions(&cross_fit.posteriors, &world.labels)
        .with_folds(&plan)
        .with_covariates(&world.covariates)
        .unwrap();
    let settings = EstimateSettings { interval: IntervalMethod::Information, permutations: 199, ..Default::default() };
    let found = settings.run(&evidence, &()).unwrap();
    let check = found.labelling.unwrap().class_enough.unwrap();
    assert_eq!(check.columns[0].column, "site");
    assert!(check.columns[0].p_holm < 0.01, "{}", check.columns[0].p_holm);
    assert_eq!(found.verdict.unwrap().kind, VerdictKind::Unclear);
}

/// Two classes at ±`spread` with the posteriors of a classifier that knows them, among labels drawn with these phi.
fn pair(spread: f64, share: f64, phi: [f64; 2]) -> (Posteriors, Labels) {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let odds = (share * phi[0] / ((1.0 - share) * phi[1])).ln();
    let (mut rows, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..2000 {
        let class = usize::from(rng.random::<f64>() >= share);
        let noise: f64 = StandardNormal.sample(&mut rng);
        let x = if class == 0 { spread } else { -spread } + noise;
        let p = 1.0 / (1.0 + (-2.0 * spread * x - odds).exp());
        rows.extend([p, 1.0 - p]);
        labels.push((rng.random::<f64>() < phi[class]).then(|| Class::from(class)));
    }
    let p = Posteriors::new(Array2::from_shape_vec((2000, 2), rows).unwrap(), PosteriorKind::Labelled).unwrap();
    (p, Labels::new(labels, ["u", "v"].map(String::from).to_vec()).unwrap())
}

fn of_pair((posteriors, labels): &(Posteriors, Labels), sensitivity: Vec<f64>) -> mnar::analysis::Findings {
    let settings =
        EstimateSettings { interval: IntervalMethod::Information, permutations: 19, sensitivity, ..Default::default() };
    settings.run(&Evidence::predictions(posteriors, labels), &()).unwrap()
}

/// At the breakdown point the sensitivity curve says that the classes are labelled alike.
#[test]
fn at_the_breakdown_point_nothing_is_left_of_the_effect() {
    let rows = pair(0.8, 0.2, [0.36, 0.3]);
    let found = of_pair(&rows, vec![2.0]);
    let (factor, first) = (found.breakdown.unwrap(), usize::from(found.phi[1] > found.phi[0]));
    let ratio = |factor: f64| {
        let phi = of_pair(&rows, vec![factor]).sensitivity.unwrap()[0].phi.clone();
        phi[first] / phi[1 - first]
    };
    assert!((ratio(factor) - 1.0).abs() < 0.02, "{factor}: {}", ratio(factor));
    assert!(ratio(factor.sqrt()) > 1.02, "{factor}: {}", ratio(factor.sqrt()));
    // Classes that are told apart with certainty are labelled as the counts say, whatever the factor.
    assert_eq!(of_pair(&pair(6.0, 0.5, [0.6, 0.3]), vec![2.0]).breakdown, None);
}

/// Classes that look alike: the intervals also cover what the labels say without the classifier's probabilities.
#[test]
fn intervals_are_widened_where_classes_look_alike() {
    let widened = |spread: f64| {
        let found = of_pair(&pair(spread, 0.5, [0.6, 0.3]), Vec::new());
        let (low, high) = found.prevalence_ci95.as_ref().unwrap()[0];
        (found.warnings.iter().any(|warning| warning.contains("widened")), low..high)
    };
    let (alike, interval) = widened(0.15);
    assert!(alike && interval.contains(&0.5), "{interval:?}");
    let (apart, interval) = widened(1.5);
    assert!(!apart && interval.contains(&0.5) && interval.end - interval.start < 0.1, "{interval:?}");
}

/// The shares of two classes add up to one, and so their intervals say the same.
#[test]
fn widened_intervals_of_two_classes_are_complements() {
    let rows = pair(0.15, 0.5, [0.6, 0.3]);
    for interval in [IntervalMethod::Information, IntervalMethod::Bootstrap] {
        let settings = EstimateSettings { interval, replicates: Some(20), permutations: 19, ..Default::default() };
        let found = settings.run(&Evidence::predictions(&rows.0, &rows.1), &()).unwrap();
        let shares = found.prevalence_ci95.unwrap();
        let (one, two) = (shares[0], shares[1]);
        assert!((one.0 + two.1 - 1.0).abs() < 1e-12 && (one.1 + two.0 - 1.0).abs() < 1e-12, "{interval:?} {shares:?}");
    }
}
