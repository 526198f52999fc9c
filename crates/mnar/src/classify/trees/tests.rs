//! What the trees promise: exact weights, the same result on any number of threads, sensible answers to odd input.

use super::*;
use crate::labels::Class;
use ndarray::{Array2, Axis, array};
use proptest::prelude::*;

/// A table with two numeric columns, a noisy one, a category of seven levels and one of three, and missing values; the
/// classes depend on the first, the second and the category.
fn table(n: usize, n_classes: usize) -> (Array2<f64>, Vec<Class>) {
    let noise = |i: usize, j: usize| (hash((i * 31 + j) as u64) >> 11) as f64 / (1u64 << 53) as f64;
    let x = Array2::from_shape_fn((n, 5), |(i, j)| match j {
        _ if noise(i, j + 10) < 0.1 => f64::NAN,
        3 => (noise(i, j) * 7.0).floor(),
        4 => (noise(i, j) * 3.0).floor(),
        _ => noise(i, j),
    });
    let class = |i: usize| {
        let at = |j: usize| if x[[i, j]].is_nan() { 0.2 } else { x[[i, j]] };
        let value = 2.0 * at(0) - at(1) * at(0) + (at(3) * 3.0 % 7.0) / 7.0 + 0.5 * noise(i, 20);
        ((value * n_classes as f64 / 3.0) as usize).min(n_classes - 1)
    };
    let classes = (0..n).map(|i| Class::from(if i < n_classes { i } else { class(i) })).collect();
    (x, classes)
}

fn settings() -> BoostedTrees {
    BoostedTrees { rounds: 30, categorical: vec![3, 4], ..BoostedTrees::default() }
}

fn train(
    settings: &BoostedTrees,
    x: &Array2<f64>,
    classes: &[Class],
    weights: Option<&[f64]>,
) -> Result<FittedTrees, Error> {
    let rows: Vec<usize> = (0..classes.len()).collect();
    let n_classes = classes.iter().map(|class| class.index() + 1).max().unwrap_or(0).max(2);
    settings.train(x, &Training { rows: &rows, classes, n_classes, weights }, 7, &())
}

fn predict(model: &FittedTrees, x: &Array2<f64>) -> Array2<f64> {
    model.predict_proba(x, &(0..x.nrows()).collect::<Vec<_>>()).unwrap()
}

fn difference(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn a_weight_of_two_is_a_row_given_twice() {
    for (n, n_classes) in [(300, 2), (400, 3), (2500, 5)] {
        let (x, classes) = table(n, n_classes);
        // Weights of 0.1, 0.3 and 0.7 are not exact in binary, so sums differ in rounding. Some rows are left out.
        let weights: Vec<f64> =
            (0..n).map(|i| [1.0, 2.0, 0.3, 0.1, 0.7, 0.0][if i < n_classes { 0 } else { i % 6 }]).collect();
        let twice: Vec<usize> = (0..n).chain((0..n).filter(|i| i % 2 == 0)).filter(|&i| weights[i] > 0.0).collect();
        let x_twice = x.select(Axis(0), &twice);
        let classes_twice: Vec<Class> = twice.iter().map(|&i| classes[i]).collect();
        let weights_twice: Vec<f64> = twice.iter().map(|&i| weights[i]).collect();
        let doubled: Vec<f64> = (0..n).map(|i| if i % 2 == 0 { 2.0 * weights[i] } else { weights[i] }).collect();
        let settings = BoostedTrees { rounds: 60, max_bins: 40, ..settings() };
        let once = predict(&train(&settings, &x, &classes, Some(&doubled)).unwrap(), &x);
        let twice = predict(&train(&settings, &x_twice, &classes_twice, Some(&weights_twice)).unwrap(), &x);
        assert!(difference(&once, &twice) < 1e-12, "{n} rows: {}", difference(&once, &twice));
        assert!(difference(&once, &predict(&train(&settings, &x, &classes, None).unwrap(), &x)) > 0.01);
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    // 50,000 rows of 5 columns are enough for columns to be shared among threads.
    for (n, n_classes) in [(50_000, 2), (500, 4)] {
        let (x, classes) = table(n, n_classes);
        let settings = BoostedTrees { rounds: 4, ..settings() };
        let fit = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let model = train(&settings, &x, &classes, None).unwrap();
                let p = predict(&model, &x);
                (model, p)
            })
        };
        assert_eq!(fit(1), fit(2));
    }
}

/// Eight rows, one split: the leaves are −lr · G/(H + l2), with G and H at the shares of the two classes.
#[test]
fn one_split_is_a_newton_step_on_each_side() {
    let x = array![[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0]];
    let classes = [0, 0, 0, 1, 1, 1, 1, 1].map(Class::from);
    let settings = BoostedTrees {
        rounds: 1,
        learning_rate: 0.5,
        max_depth: 1,
        min_weight: 1.0,
        l2: 2.0,
        columns_per_node: 1.0,
        ..BoostedTrees::default()
    };
    let model = train(&settings, &x, &classes, None).unwrap();
    let logits = model.logits(&x, &[2, 3]).unwrap();
    // p = 5/8 of class 1, smoothed by one in a million.
    let p: f64 = (0.625 + 1e-6) / (1.0 + 2e-6);
    let start = (p / (1.0 - p)).ln();
    let h = p * (1.0 - p);
    let left = start - 0.5 * (3.0 * p) / (3.0 * h + 2.0);
    let right = start - 0.5 * (5.0 * (p - 1.0)) / (5.0 * h + 2.0);
    assert!((logits[[0, 1]] - left).abs() < 1e-12 && (logits[[1, 1]] - right).abs() < 1e-12);
    assert_eq!((logits[[0, 0]], logits[[1, 0]]), (0.0, 0.0));
}

/// The same for three classes, where the curvature counts 3/2.
#[test]
fn three_classes_take_a_newton_step_each() {
    let x = array![[0.0], [0.0], [1.0], [1.0], [2.0], [2.0]];
    let classes = [0, 0, 1, 1, 2, 2].map(Class::from);
    let settings = BoostedTrees {
        rounds: 1,
        learning_rate: 1.0,
        leaves: 2,
        min_weight: 1.0,
        columns_per_node: 1.0,
        ..BoostedTrees::default()
    };
    let logits = train(&settings, &x, &classes, None).unwrap().logits(&x, &[0]).unwrap();
    let start = (1.0_f64 / 3.0).ln();
    let h = 1.5 * 2.0 / 9.0;
    // Class 0 splits off its own two rows, and class 2 does too. For class 1 both cuts are equally good: the first is taken.
    let own = start + 2.0 * (2.0 / 3.0) / (2.0 * h + 1.0);
    let others = [start - 2.0 / 3.0 / (2.0 * h + 1.0), start - 4.0 / 3.0 / (4.0 * h + 1.0)];
    assert!((logits[[0, 0]] - own).abs() < 1e-12);
    assert!((logits[[0, 1]] - others[0]).abs() < 1e-12, "{logits}");
    assert!((logits[[0, 2]] - others[1]).abs() < 1e-12, "{logits}");
}

#[test]
fn missing_values_go_where_they_fit() {
    // The class is known from whether the value is missing, and from nothing else.
    let x = Array2::from_shape_fn((40, 1), |(i, _)| if i % 2 == 0 { f64::NAN } else { (i / 2 % 2) as f64 });
    let classes: Vec<Class> = (0..40).map(|i| Class::from(i % 2)).collect();
    let p = predict(&train(&BoostedTrees::default(), &x, &classes, None).unwrap(), &x);
    assert!(p[[0, 0]] > 0.95 && p[[1, 1]] > 0.95 && p[[3, 1]] > 0.95, "{p}");
    // Missing values that behave like large ones go with them, to the right; and like small ones, to the left.
    for like in [0, 1] {
        let x = Array2::from_shape_fn((60, 1), |(i, _)| if i >= 40 { f64::NAN } else { i as f64 });
        let classes: Vec<Class> =
            (0..60).map(|i| Class::from(if i >= 40 { like } else { usize::from(i >= 20) })).collect();
        let p = predict(&train(&BoostedTrees::default(), &x, &classes, None).unwrap(), &x);
        assert!(p[[50, like]] > 0.9 && p[[0, 0]] > 0.9 && p[[39, 1]] > 0.9, "{p}");
    }
}

#[test]
fn unseen_categories_count_as_missing() {
    for levels in [3, 12] {
        // Even levels are class 0, and so is a missing category; a third of the rows is missing.
        let x = Array2::from_shape_fn((360, 1), |(i, _)| if i % 3 == 0 { f64::NAN } else { (i / 3 % levels) as f64 });
        let class = |i: usize| if i.is_multiple_of(3) { 0 } else { i / 3 % levels % 2 };
        let classes: Vec<Class> = (0..360).map(|i| Class::from(class(i))).collect();
        let settings = BoostedTrees { categorical: vec![0], ..BoostedTrees::default() };
        let model = train(&settings, &x, &classes, None).unwrap();
        let p = predict(&model, &x);
        assert!((0..360).all(|i| p[[i, class(i)]] > 0.9), "{levels} levels");
        let odd = array![[f64::NAN], [99.0], [-1.0], [0.5], [f64::INFINITY], [1e300]];
        let p = predict(&model, &odd);
        assert!(p.column(0).iter().all(|value| *value == p[[0, 0]] && *value > 0.9));
    }
}

#[test]
fn training_loss_falls_with_rounds() {
    let (x, classes) = table(400, 3);
    let loss = |rounds| {
        let p = predict(&train(&BoostedTrees { rounds, ..settings() }, &x, &classes, None).unwrap(), &x);
        classes.iter().enumerate().map(|(i, class)| -p[[i, class.index()]].ln()).sum::<f64>() / 400.0
    };
    let losses = [0, 1, 5, 20, 60, 150].map(loss);
    assert!(losses.windows(2).all(|pair| pair[1] < pair[0]), "{losses:?}");
    assert!(losses[5] < 0.5 * losses[0], "{losses:?}");
}

#[test]
fn held_out_loss_by_rounds_is_that_of_separate_fits() {
    let (x, classes) = table(240, 3);
    let weights: Vec<f64> = (0..240).map(|i| 0.5 + (i % 3) as f64).collect();
    let rows: Vec<usize> = (0..240).collect();
    let folds: Vec<u32> = (0..240).map(|i| i % 3 + 4).collect();
    let training = Training { rows: &rows, classes: &classes, n_classes: 3, weights: Some(&weights) };
    let settings = BoostedTrees { rounds: 12, ..settings() };
    let curve = settings.log_loss_by_rounds(&x, &training, &folds, 5, &()).unwrap();
    assert_eq!(curve.len(), 13);
    for rounds in [0, 1, 12] {
        let mut loss = 0.0;
        for fold in 4..7 {
            let (inside, outside): (Vec<usize>, Vec<usize>) = (0..240).partition(|&i| folds[i] == fold);
            let part: Vec<Class> = outside.iter().map(|&i| classes[i]).collect();
            let part_weights: Vec<f64> = outside.iter().map(|&i| weights[i]).collect();
            let training = Training { rows: &outside, classes: &part, n_classes: 3, weights: Some(&part_weights) };
            let settings = BoostedTrees { rounds, ..settings.clone() };
            let p =
                settings.train(&x, &training, 5 + u64::from(fold), &()).unwrap().predict_proba(&x, &inside).unwrap();
            loss -= inside.iter().enumerate().map(|(t, &i)| weights[i] * p[[t, classes[i].index()]].ln()).sum::<f64>();
        }
        assert!((curve[rounds] - loss / weights.iter().sum::<f64>()).abs() < 1e-12);
    }
}

#[test]
fn tuning_stops_early_on_noise_and_late_on_structure() {
    let (x, classes) = table(300, 3);
    let rows: Vec<usize> = (0..300).collect();
    let folds: Vec<u32> = (0..300).map(|i| i % 5).collect();
    let candidates = [settings(), BoostedTrees { rounds: 150, leaves: 4, ..settings() }];
    let tuned = |classes: &[Class]| {
        let training = Training { rows: &rows, classes, n_classes: 3, weights: None };
        BoostedTrees::tuned(&candidates, &x, &training, &folds, 0, &()).unwrap()
    };
    let structure = tuned(&classes);
    assert!(structure.settings.rounds > 25 && structure.curves.len() == 2, "{:?}", structure.settings);
    let least = structure.curves.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(structure.log_loss, least);
    let noise: Vec<Class> = (0..300).map(|i| Class::from((hash(i) % 3) as usize)).collect();
    let noise = tuned(&noise);
    assert!(noise.settings.rounds < 15 && noise.curves[1].len() < 100, "{:?}", noise.settings);
    assert!(noise.log_loss <= noise.curves[0][0]);
}

#[test]
fn a_class_with_one_label_does_not_stop_the_tuning() {
    let (x, mut classes) = table(100, 3);
    classes.iter_mut().skip(3).filter(|class| class.index() == 2).for_each(|class| *class = Class(1));
    let rows: Vec<usize> = (0..100).collect();
    let folds: Vec<u32> = (0..100).map(|i| i % 5).collect();
    let training = Training { rows: &rows, classes: &classes, n_classes: 3, weights: None };
    let curve = settings().log_loss_by_rounds(&x, &training, &folds, 0, &()).unwrap();
    assert!(curve.iter().all(|loss| loss.is_finite()));
    for folds in [vec![0; 100], vec![0; 99]] {
        assert!(settings().log_loss_by_rounds(&x, &training, &folds, 0, &()).is_err());
    }
}

#[test]
fn saved_trees_are_the_same_trees() {
    for n_classes in [2, 4] {
        let (x, classes) = table(300, n_classes);
        let model = train(&settings(), &x, &classes, None).unwrap();
        let text = serde_json::to_string(&model).unwrap();
        assert!(text.contains("among"), "the categories are used");
        let read: FittedTrees = serde_json::from_str(&text).unwrap();
        assert_eq!(read, model);
    }
    let text = serde_json::to_string(&settings()).unwrap();
    assert_eq!(serde_json::from_str::<BoostedTrees>(&text).unwrap(), settings());
    assert!(serde_json::from_str::<BoostedTrees>(r#"{"round": 3}"#).is_err());
}

#[test]
fn damaged_files_are_refused() {
    let good = r#"{"n_classes": 2, "columns": [{"numeric": {"cuts": [1.0, 2.0]}}, {"categorical": {"levels": [0, 3]}}],
        "start": [0.5], "rounds": [[[{"split": {"column": 1, "rule": {"among": [1]}, "left": 1, "right": 2}}, {"leaf": 1.5},
        {"split": {"column": 0, "rule": {"up-to": {"bin": 1, "missing": true}}, "left": 3, "right": 4}}, {"leaf": -1.0},
        {"leaf": 0.0}]]]}"#;
    let read = |text: &str| serde_json::from_str::<FittedTrees>(text);
    let logits = read(good).unwrap().logits(&array![[0.0, 0.0], [f64::NAN, 3.0], [9.0, 7.0]], &[0, 1, 2]).unwrap();
    assert_eq!(logits.column(1).to_vec(), [2.0, -0.5, 0.5]);
    for (from, to) in [
        (r#""n_classes": 2"#, r#""n_classes": 1"#),
        (r#""n_classes": 2"#, r#""n_classes": 3"#),
        (r#""n_classes": 2"#, r#""n_classes": 2, "more": 1"#),
        ("[1.0, 2.0]", "[2.0, 1.0]"),
        ("[1.0, 2.0]", "[1.0, null]"),
        ("[0, 3]", "[3, 3]"),
        ("[0, 3]", "[-1, 3]"),
        (r#""start": [0.5]"#, r#""start": []"#),
        (r#""start": [0.5]"#, r#""start": [1e999]"#),
        (r#""column": 1"#, r#""column": 2"#),
        (r#""left": 1"#, r#""left": 0"#),
        (r#""left": 3"#, r#""left": 2"#),
        (r#""right": 4"#, r#""right": 5"#),
        (r#""bin": 1"#, r#""bin": 256"#),
        (r#"{"leaf": 1.5}"#, r#"{"leaf": null}"#),
        (r#""rounds": [["#, r#""rounds": [[[], "#),
        (r#""rounds": [["#, r#""rounds": [[], ["#),
    ] {
        assert!(good.contains(from) && read(&good.replacen(from, to, 1)).is_err(), "{from} -> {to}");
    }
    let levels = (0..256).map(|level| level.to_string()).collect::<Vec<_>>().join(",");
    let error = read(&good.replacen("[0, 3]", &format!("[{levels}]"), 1)).unwrap_err().to_string();
    assert!(error.contains("too many bins"), "{error}");
    let empty = good.split(r#""rounds""#).next().unwrap().to_owned() + r#""rounds": [[[]]]}"#;
    assert!(read(&empty).unwrap_err().to_string().contains("no nodes"));
}

#[test]
fn input_that_does_not_fit_is_refused() {
    let (x, classes) = table(50, 3);
    let rows: Vec<usize> = (0..50).collect();
    let ones = vec![1.0; 50];
    let good = Training { rows: &rows, classes: &classes, n_classes: 3, weights: Some(&ones) };
    let fit = |training: Training<'_>| settings().train(&x, &training, 0, &());
    let model = fit(good).unwrap();
    assert!(matches!(fit(Training { rows: &[], classes: &[], weights: None, ..good }), Err(Error::NoRows)));
    assert!(matches!(fit(Training { rows: &rows[1..], ..good }), Err(Error::LengthMismatch { .. })));
    assert!(matches!(fit(Training { weights: Some(&ones[1..]), ..good }), Err(Error::LengthMismatch { .. })));
    assert!(matches!(fit(Training { n_classes: 4, ..good }), Err(Error::ClassNotTrained { class: Class(3) })));
    assert!(matches!(fit(Training { n_classes: 2, ..good }), Err(Error::OutOfRange { .. })));
    for weight in [0.0, -1.0, f64::NAN, f64::MAX] {
        assert!(fit(Training { weights: Some(&[weight; 50]), ..good }).is_err(), "{weight}");
    }
    let far: Vec<usize> = (1..51).collect();
    assert!(fit(Training { rows: &far, ..good }).is_err());
    assert!(matches!(model.logits(&x, &[50]), Err(Error::OutOfRange { .. })));
    let narrow = Array2::zeros((50, 4));
    assert!(matches!(model.logits(&narrow, &[0]), Err(Error::ColumnCountMismatch { found: 4, expected: 5 })));
    for broken in [
        BoostedTrees { learning_rate: 0.0, ..settings() },
        BoostedTrees { columns_per_node: f64::NAN, ..settings() },
        BoostedTrees { leaves: 1, ..settings() },
        BoostedTrees { max_depth: 0, ..settings() },
        BoostedTrees { max_bins: 256, ..settings() },
        BoostedTrees { l2: -1.0, ..settings() },
        BoostedTrees { categorical: vec![5], ..settings() },
        BoostedTrees { categorical: vec![0], ..settings() }, // not whole numbers
    ] {
        assert!(broken.train(&x, &good, 0, &()).is_err(), "{broken:?}");
    }
}

/// One odd value of a column of the given kind.
fn odd(kind: u8, draw: u64) -> f64 {
    match (kind, draw % 8) {
        (0, _) => f64::NAN,
        (1, _) => 3.5,
        (2, 0) => f64::INFINITY,
        (2, 1) => f64::NEG_INFINITY,
        (2, 2) => f64::MAX,
        (2, 3) => f64::MIN,
        (2, 4) => 5e-324,
        (2, 5) => -0.0,
        (3, draw) => draw as f64, // a category
        (_, 7) => f64::NAN,
        (_, _) => (draw >> 8) as f64 / 1e15,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn probabilities_are_probabilities(
        n in 4usize..60,
        n_classes in 2usize..5,
        kinds in proptest::collection::vec(0u8..5, 0..5),
        scale in prop_oneof![Just(1.0), Just(1e-300), Just(1e-12), Just(1e12), Just(1e250)],
        draw in any::<u64>(),
        l2 in prop_oneof![Just(0.0), Just(1.0)],
        min_weight in prop_oneof![Just(0.0), Just(2.0)],
        min_hessian in prop_oneof![Just(0.0), Just(1e-3)],
        learning_rate in prop_oneof![Just(0.05), Just(1.0)],
    ) {
        let random = |i: usize, j: usize| hash(draw ^ hash((i * 64 + j) as u64));
        let x = Array2::from_shape_fn((n, kinds.len()), |(i, j)| odd(kinds[j], random(i, j)));
        // The last class has a single label; every fourth weight is zero and every fifth tiny.
        let class = |i: usize| if i < n_classes { i } else { random(i, 50) as usize % (n_classes - 1) };
        let classes: Vec<Class> = (0..n).map(|i| Class::from(class(i))).collect();
        let weight = |i: usize| match random(i, 51) % 20 {
            _ if i < n_classes => scale,
            0..5 => 0.0,
            5..9 => scale * 1e-9,
            _ => scale,
        };
        let weights: Vec<f64> = (0..n).map(weight).collect();
        let categorical = (0..kinds.len()).filter(|&j| kinds[j] == 3).collect();
        let settings = BoostedTrees { l2, min_weight, min_hessian, learning_rate, categorical, ..BoostedTrees::default() };
        let p = predict(&train(&settings, &x, &classes, Some(&weights)).unwrap(), &x);
        for row in p.rows() {
            prop_assert!(row.iter().all(|value| value.is_finite() && *value > 0.0), "{row}");
            prop_assert!((row.sum() - 1.0).abs() < 1e-12);
        }
    }
}
