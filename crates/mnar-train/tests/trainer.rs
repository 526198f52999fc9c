//! The training loop on the digits sample: every mechanism in the loop finds phi, and the same seed gives the same weights.
#![allow(clippy::unwrap_used)] // helpers of tests are not seen as tests

use mnar::classify::{Classifier, Training};
use mnar::crossfit::{CrossFit, FoldPlan};
use mnar::progress::Stage;
use mnar::{Class, Labels, Phi, PosteriorKind, Posteriors, Progress};
use mnar_train::augment::Augment;
use mnar_train::consistency::{Consistency, FixMatch, Guided, Imputation, PseudoLabels, Views};
use mnar_train::loss::Stabiliser;
use mnar_train::method::Method;
use mnar_train::model::{Architecture, Network};
use mnar_train::{
    CheckpointPlan, Criterion, Encoding, EpochRecord, Examples, Job, NetworkClassifier, TrainError, TrainSettings,
    Trained, Validation, device, logits, parameters, train,
};
use ndarray::Array2;
use std::sync::Mutex;
use std::time::Duration;

fn digits() -> (Examples, Labels, Phi) {
    let sample = mnar_data::samples::digits();
    let truth = Phi::new((0..10).map(|k| 0.6 * 0.8f64.powi(k)).collect()).unwrap();
    let complete =
        Labels::allow_degenerate(sample.y.iter().copied().map(Some).collect(), sample.names.clone()).unwrap();
    let kept = mnar::simulate::mask(&complete, &truth, 1).unwrap();
    let inputs = sample.to_dataset().inputs;
    let examples = Encoding::learn(&inputs).unwrap().examples(inputs).unwrap();
    (examples, mnar::simulate::apply_mask(&complete, &kept).unwrap(), truth)
}

fn run(examples: &Examples, labels: &Labels, method: Method, settings: &TrainSettings) -> Trained<Network> {
    let mlp = Architecture::Mlp { hidden: vec![64] };
    let network = mlp.build(examples.shape(), labels.n_classes(), settings.seed, &device::cpu()).unwrap();
    train(network, &job(examples, labels, method, settings), &()).unwrap()
}

fn job<'a>(examples: &'a Examples, labels: &'a Labels, method: Method, settings: &'a TrainSettings) -> Job<'a> {
    Job {
        stage: Stage::Debiased,
        examples,
        labels,
        weights: None,
        method,
        row_phi: None,
        consistency: &PseudoLabels,
        settings,
        targets: None,
        validation: None,
        checkpoint: None,
    }
}

#[test]
fn mechanisms_in_the_loop_find_phi() {
    let (examples, labels, truth) = digits();
    let constant = Phi::constant(labels.n_labelled(), labels.len(), 10).unwrap();
    // With these 453 labels likelihood is the least accurate: a third of the constant's error.
    let bar = 0.5 * constant.normalised_mse(&truth);
    let settings = TrainSettings { epochs: 60, ..Default::default() };
    // A given phi that is refreshed must move away from the constant it started from.
    let refreshed = TrainSettings { refresh: Some(20), ..settings.clone() };
    let start = Method::Given(constant.clone());
    let cases = [
        (Method::Moments, &settings),
        (Method::MomentsGradient, &settings),
        (Method::Likelihood, &settings),
        (start, &refreshed),
    ];
    for (method, settings) in cases {
        let name = method.name();
        let error = run(&examples, &labels, method, settings).mechanism.phi().normalised_mse(&truth);
        assert!(error < bar, "{name}: {error} against {bar}");
    }
}

#[test]
fn the_same_seed_gives_the_same_weights_and_another_seed_others() {
    let (examples, labels, _) = digits();
    let weights = |seed: u64| {
        let settings = TrainSettings { epochs: 3, seed, ..Default::default() };
        parameters::export(&run(&examples, &labels, Method::Moments, &settings).network)
    };
    assert_eq!(weights(1), weights(1));
    assert_ne!(weights(1), weights(2));
}

/// Without weights but with the logits of labelled rows, the model predicts the population: its mean prediction is
/// close to the population's class shares, whereas that of a model of the labelled rows is close to theirs.
#[test]
fn adjusted_logits_are_of_the_population() {
    let (examples, labels, truth) = digits();
    let settings = TrainSettings { epochs: 40, lambda: 0.0, ..Default::default() };
    let rows: Vec<usize> = (0..labels.len()).collect();
    let error = |method: Method| {
        let scores = logits(&run(&examples, &labels, method, &settings).network, &examples, &rows);
        let mut shares = [0.0; 10];
        for row in scores.rows() {
            let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = row.iter().map(|score| (score - top).exp()).sum();
            shares
                .iter_mut()
                .zip(row)
                .for_each(|(share, score)| *share += (score - top).exp() / sum / rows.len() as f64);
        }
        // The sample has about a tenth of each digit.
        shares.iter().map(|share| (share - 0.1).powi(2)).sum::<f64>()
    };
    let (biased, adjusted) = (error(Method::CompleteCase), error(Method::Adjusted(truth)));
    assert!(adjusted < 0.5 * biased, "{adjusted} against {biased}");
}

#[test]
fn unknown_labels_can_be_imputed() {
    let (examples, labels, truth) = digits();
    let y = mnar_data::samples::digits().y;
    let targets: Vec<f32> =
        y.iter().flat_map(|class| (0..10).map(|k| f32::from(u8::from(class.index() == k)))).collect();
    let settings = TrainSettings { epochs: 120, ..Default::default() };
    let method = Method::Imputed(truth);
    let network = || Architecture::Mlp { hidden: vec![64] }.build(examples.shape(), 10, 0, &device::cpu()).unwrap();
    let with =
        |targets| Job { consistency: &Imputation, targets, ..job(&examples, &labels, method.clone(), &settings) };
    let learnt = train(network(), &with(Some(&targets[..])), &()).unwrap();
    let hidden: Vec<usize> = (0..labels.len()).filter(|&row| !labels.is_labelled(row)).collect();
    let scores = logits(&learnt.network, &examples, &hidden);
    let right = hidden
        .iter()
        .zip(scores.rows())
        .filter(|(row, scores)| scores.iter().all(|score| *score <= scores[y[**row].index()]));
    let share = right.count() as f64 / hidden.len() as f64;
    assert!(share > 0.97, "{share} of the hidden labels, given the truth for targets");
    let refused = train(network(), &with(None), &());
    assert!(matches!(refused, Err(TrainError::NoTargets { .. })));
    let refused = train(network(), &with(Some(&targets[10..])), &());
    assert!(matches!(refused, Err(TrainError::Lengths { .. })));
}

/// With separate validation rows no labelled row is held out, and the epoch is the best by the criterion.
#[test]
fn validation_rows_choose_the_epoch() {
    let (examples, labels, _) = digits();
    let classes: Vec<usize> = mnar_data::samples::digits().y.iter().map(|class| class.index()).collect();
    // A high learning rate, so that the last epoch is not simply the best.
    let settings = TrainSettings { epochs: 12, learning_rate: 0.1, averaging: 0.0, ..Default::default() };
    for by in [Criterion::Accuracy, Criterion::LogLoss] {
        let validation = Some(Validation { by, examples: &examples, classes: &classes });
        let job = Job { validation, ..job(&examples, &labels, Method::Classical, &settings) };
        let network = Architecture::Linear.build(examples.shape(), 10, 0, &device::cpu()).unwrap();
        let trained = train(network, &job, &()).unwrap();
        assert!(trained.held_out.is_empty());
        let score = |record: &EpochRecord| match by {
            Criterion::Accuracy => record.validation_accuracy.unwrap(),
            Criterion::LogLoss => -record.validation_risk.unwrap(),
        };
        let best = trained.history.iter().map(score).fold(f64::NEG_INFINITY, f64::max);
        let chosen = trained.history.iter().find(|record| record.epoch == trained.chosen_epoch).unwrap();
        assert_eq!(score(chosen), best, "{by:?}");
    }
}

/// Every row is scored by the network that has not seen it. Together, the networks know the unlabelled rows, which none of
/// them was trained on, better than one alone.
#[test]
fn networks_are_cross_fitted() {
    let (examples, labels, _) = digits();
    let settings = TrainSettings { epochs: 10, ..Default::default() };
    let plan = FoldPlan::for_labels(&labels, 3, 0).unwrap();
    let device = device::cpu();
    let classifier = NetworkClassifier {
        architecture: &Architecture::Linear,
        settings: &settings,
        device: &device,
        checkpoint: None,
    };
    assert_eq!((Classifier::name(&classifier), Classifier::parallel(&classifier)), ("linear", false));
    let cross_fit = CrossFit { classifier: &classifier, x: &examples, seed: settings.seed };
    let fitted = cross_fit.run(&labels, &plan, None, &()).unwrap();
    let hidden: Vec<usize> = (0..labels.len()).filter(|&row| !labels.is_labelled(row)).collect();
    let mut together = Array2::<f64>::zeros((hidden.len(), labels.n_classes()));
    for model in &fitted.models {
        together += &model.logits(&examples, &hidden).unwrap();
    }
    let together = together / fitted.models.len() as f64;
    let together = Posteriors::from_logits(together.view(), PosteriorKind::Labelled).unwrap();
    let y = mnar_data::samples::digits().y;
    let mut loss = [0.0, 0.0];
    for (i, &row) in hidden.iter().enumerate() {
        let both = [fitted.posteriors.row(row), together.row(i)];
        loss.iter_mut().zip(both).for_each(|(loss, p)| *loss -= p[y[row].index()].ln());
    }
    assert!(loss[1] < loss[0], "log-loss of hidden labels: one network {}, together {}", loss[0], loss[1]);
}

#[test]
fn a_classifier_needs_a_row_of_every_class() {
    let (examples, _, _) = digits();
    let (settings, device) = (TrainSettings { epochs: 1, ..Default::default() }, device::cpu());
    let classifier = NetworkClassifier {
        architecture: &Architecture::Linear,
        settings: &settings,
        device: &device,
        checkpoint: None,
    };
    let training = Training { rows: &[0, 1], classes: &[Class(0), Class(1)], n_classes: 2, weights: Some(&[1.0, 0.0]) };
    let refused = classifier.fit(&examples, &training, 0, &());
    assert!(matches!(refused.err(), Some(mnar::Error::ClassNotTrained { class: Class(1) })));
}

/// What a run gives, to the bit.
fn bits(trained: &Trained<Network>) -> (Vec<parameters::Named>, f64, usize, Vec<f64>) {
    let risks = trained.history.iter().filter_map(|record| record.validation_risk).collect();
    (parameters::export(&trained.network), trained.temperature, trained.chosen_epoch, risks)
}

#[test]
fn row_weights_are_relative() {
    let (examples, labels, truth) = digits();
    let settings = TrainSettings { epochs: 3, ..Default::default() };
    let network = || Architecture::Mlp { hidden: vec![16] }.build(examples.shape(), 10, 0, &device::cpu()).unwrap();
    let (ones, twos) = (vec![1.0; labels.len()], vec![2.0; labels.len()]);
    let uneven: Vec<f64> = (0..labels.len()).map(|row| 1.0 + (row % 3) as f64).collect();
    for method in [Method::CompleteCase, Method::Given(truth), Method::Likelihood, Method::Moments] {
        let with = |weights| {
            let job = Job { weights, ..job(&examples, &labels, method.clone(), &settings) };
            bits(&train(network(), &job, &()).unwrap())
        };
        let plain = with(None);
        assert!(plain == with(Some(&ones)) && plain == with(Some(&twos)), "{}", method.name());
        assert!(plain != with(Some(&uneven)), "{}", method.name());
    }
}

#[test]
fn a_row_of_weight_zero_has_no_influence() {
    let (examples, labels, _) = digits();
    let Examples::Table(table) = &examples else { panic!("a table") };
    // Half of the labelled rows, so that some of them would be held out.
    let dropped: Vec<usize> = labels.labelled().map(|(row, _)| row).step_by(2).collect();
    let mut weights = vec![1.0; labels.len()];
    let mut moved = table.clone();
    for &row in &dropped {
        weights[row] = 0.0;
        moved.row_mut(row).fill(1e6);
    }
    let settings = TrainSettings { epochs: 3, ..Default::default() };
    let with = |examples: &Examples| {
        let network = Architecture::Mlp { hidden: vec![16] }.build(examples.shape(), 10, 0, &device::cpu()).unwrap();
        let job = Job { weights: Some(&weights), ..job(examples, &labels, Method::Moments, &settings) };
        let trained = train(network, &job, &()).unwrap();
        assert!(trained.held_out.iter().all(|row| !dropped.contains(row)));
        bits(&trained)
    };
    assert!(with(&examples) == with(&Examples::Table(moved)));
}

#[test]
fn bad_row_weights_are_refused() {
    let (examples, labels, _) = digits();
    let settings = TrainSettings { epochs: 1, ..Default::default() };
    let refused = |weights: &[f64]| {
        let network = Architecture::Linear.build(examples.shape(), 10, 0, &device::cpu()).unwrap();
        let job = Job { weights: Some(weights), ..job(&examples, &labels, Method::Classical, &settings) };
        train(network, &job, &()).unwrap_err()
    };
    assert!(matches!(refused(&[1.0]), TrainError::WeightCount { weights: 1, .. }));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(refused(&vec![bad; labels.len()]), TrainError::Setting { .. }), "{bad}");
    }
}

/// Counts what it is told, and cancels after some steps.
#[derive(Default)]
struct Told {
    began: Mutex<Vec<(Stage, u64, u64)>>,
    steps: Mutex<u64>,
    epochs: Mutex<u64>,
    cancel_at: Option<u64>,
}

impl Progress for Told {
    fn begin(&self, stage: Stage, steps: u64, done: u64) {
        self.began.lock().unwrap().push((stage, steps, done));
    }

    fn step(&self) {
        *self.steps.lock().unwrap() += 1;
    }

    fn epoch(&self, _: &EpochRecord) {
        *self.epochs.lock().unwrap() += 1;
    }

    fn cancelled(&self) -> bool {
        self.cancel_at.is_some_and(|step| *self.steps.lock().unwrap() >= step)
    }
}

#[test]
fn cancelled_training_goes_on_from_its_checkpoint() {
    let (examples, labels, _) = digits();
    let settings = TrainSettings { epochs: 4, ..Default::default() };
    let folder = tempfile::tempdir().unwrap();
    let plan = CheckpointPlan { path: folder.path().join("state.safetensors"), every: Duration::from_secs(3600) };
    let network = || Architecture::Linear.build(examples.shape(), 10, 0, &device::cpu()).unwrap();
    let plain = train(network(), &job(&examples, &labels, Method::Moments, &settings), &()).unwrap();
    let job = Job { checkpoint: Some(plan), ..job(&examples, &labels, Method::Moments, &settings) };
    let told = Told { cancel_at: Some(10), ..Default::default() };
    assert!(train(network(), &job, &told).unwrap_err().is_cancelled());
    let again = Told::default();
    let resumed = train(network(), &job, &again).unwrap();
    assert!(bits(&plain) == bits(&resumed));
    let [(stage, steps, 10)] = again.began.lock().unwrap()[..] else { panic!("one start, at step 10") };
    assert_eq!((stage, *again.steps.lock().unwrap()), (Stage::Debiased, steps - 10));
    assert_eq!(*told.epochs.lock().unwrap() + *again.epochs.lock().unwrap(), 4);
    // The checkpoint of other weights, labels or inputs is another run's.
    let refused = |job: &Job<'_>, says: &str| {
        let error = train(network(), job, &()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    let weights = vec![1.0; labels.len()];
    refused(&Job { weights: Some(&weights), ..job.clone() }, "other data or settings");
    let mut swapped = labels.as_slice().to_vec();
    let labelled: Vec<usize> = labels.labelled().map(|(row, _)| row).collect();
    let other = labelled.iter().find(|&&row| labels.get(row) != labels.get(labelled[0])).unwrap();
    swapped.swap(labelled[0], *other);
    let swapped = Labels::allow_degenerate(swapped, labels.names().to_vec()).unwrap();
    refused(&Job { labels: &swapped, ..job.clone() }, "other data or settings");
    let mut x = examples.features();
    x[(5, 5)] += 0.25;
    refused(&Job { examples: &Examples::from_rows(x.view()), ..job.clone() }, "other data or settings");
    // No bit of it can change unnoticed.
    let path = &job.checkpoint.as_ref().unwrap().path;
    let whole = std::fs::read(path).unwrap();
    for bit in (0..8 * whole.len()).step_by(whole.len() / 5) {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(path, flipped).unwrap();
        refused(&job, "checksum is wrong");
    }
}

#[test]
fn settings_and_views_are_checked_before_the_first_step() {
    let (examples, labels, _) = digits();
    let network = || Architecture::Linear.build(examples.shape(), 10, 0, &device::cpu()).unwrap();
    let mut augment = Augment::for_shape(mnar_data::ImageShape::flat(8, 8, 1));
    augment.strong.magnitude = 2.0;
    let settings = TrainSettings { augment: Some(augment), ..Default::default() };
    let refused = train(network(), &job(&examples, &labels, Method::Classical, &settings), &());
    assert!(matches!(refused, Err(TrainError::Augment(_))));
    let views = Views {
        weak: burn::tensor::Tensor::zeros([1, 2], &device::cpu()),
        strong: None,
        teacher: None,
        targets: None,
        thresholds: burn::tensor::Tensor::zeros([2], &device::cpu()),
    };
    assert!(matches!(FixMatch.loss(&views), Err(TrainError::NoView { .. })));
    assert!(matches!(Imputation.loss(&views), Err(TrainError::NoView { .. })));
    assert!(matches!(Guided.loss(&views), Err(TrainError::NoView { .. })));
}

/// Where the network is sure, its own label counts; elsewhere the guess of the other model.
#[test]
fn a_guided_network_goes_its_own_way_once_it_is_sure() {
    let device = device::cpu();
    // p = (0.9, 0.1) is sure at 0.7; p = (0.6, 0.4) is not.
    let weak = [0.9f32.ln(), 0.1f32.ln(), 0.6f32.ln(), 0.4f32.ln()];
    let tensor = |values: [f32; 4]| {
        burn::tensor::Tensor::<2>::from_data(burn::tensor::TensorData::new(values.to_vec(), [2, 2]), &device)
    };
    let views = Views {
        weak: tensor(weak),
        strong: None,
        teacher: None,
        targets: Some(tensor([0.0, 1.0, 0.25, 0.75])),
        thresholds: burn::tensor::Tensor::ones([2], &device).mul_scalar(0.7),
    };
    let loss: Vec<f32> = Guided.loss(&views).unwrap().into_data().iter::<f32>().collect();
    let expected = [-0.9f32.ln(), -0.25 * 0.6f32.ln() - 0.75 * 0.4f32.ln()];
    assert!(loss.iter().zip(expected).all(|(loss, expected)| (loss - expected).abs() < 1e-6), "{loss:?} {expected:?}");
}

/// A checkpoint of a run that was guided by something else is not gone on from.
#[test]
fn other_targets_are_another_run() {
    let (examples, labels, truth) = digits();
    let folder = tempfile::tempdir().unwrap();
    let settings = TrainSettings { epochs: 1, ..Default::default() };
    let with = |target: f32| {
        let network = Architecture::Linear.build(examples.shape(), 10, 0, &device::cpu()).unwrap();
        let targets = vec![target; labels.len() * 10];
        let plan = CheckpointPlan { path: folder.path().join("state"), every: std::time::Duration::from_secs(60) };
        let job = Job {
            consistency: &Guided,
            targets: Some(&targets),
            checkpoint: Some(plan),
            ..job(&examples, &labels, Method::Adjusted(truth.clone()), &settings)
        };
        train(network, &job, &()).map(|trained| bits(&trained))
    };
    assert!(with(0.1).unwrap() == with(0.1).unwrap());
    assert!(with(0.2).is_err());
}

/// A phi of every row that is the same for all of them trains to the same bits as that phi by class.
#[test]
fn rows_that_share_a_phi_train_as_by_class() {
    let (examples, labels, truth) = digits();
    let rows = vec![truth.clone(); labels.len()];
    let targets = vec![0.1f32; labels.len() * 10];
    let settings = TrainSettings { epochs: 3, stabiliser: Stabiliser::Clip(3.0), ..Default::default() };
    let methods = [Method::Given, Method::Adjusted, Method::Weighted, Method::Imputed].map(|of| of(truth.clone()));
    for method in methods {
        let with = |row_phi| {
            let network =
                Architecture::Mlp { hidden: vec![16] }.build(examples.shape(), 10, 0, &device::cpu()).unwrap();
            let mut job = Job { row_phi, ..job(&examples, &labels, method.clone(), &settings) };
            if matches!(method, Method::Imputed(_)) {
                (job.consistency, job.targets) = (&Imputation, Some(&targets[..]));
            }
            bits(&train(network, &job, &()).unwrap())
        };
        assert!(with(None) == with(Some(&rows)), "{}", method.name());
    }
}

/// Labels of two sites, the second of which labels nearly everything: P(labelled | class, site), and half of the rows of
/// either site are of either class.
fn two_sites() -> (Examples, Labels, Vec<Phi>) {
    let n = 4000;
    let (site, y) = (|i: usize| i % 2, |i: usize| i / 2 % 2);
    let by_site = [[0.05, 0.3], [0.5, 0.9]];
    // One feature tells the sites apart, the other the classes, though not well.
    let x = Array2::from_shape_fn((n, 2), |(i, column)| match column {
        0 => site(i) as f64,
        _ => (i * 37 % 101) as f64 / 50.0 - 1.0 + 0.5 * y(i) as f64,
    });
    let phi: Vec<Phi> = (0..n).map(|i| Phi::new(by_site[site(i)].to_vec()).unwrap()).collect();
    // The fractional parts of multiples of the golden ratio are spread evenly.
    let kept = |i: usize| (i as f64 * 0.618_033_988_749_895).fract() < phi[i][y(i)];
    let labels = (0..n).map(|i| kept(i).then(|| Class::from(y(i)))).collect();
    (Examples::from_rows(x.view()), Labels::new(labels, ["well", "ill"].map(String::from).to_vec()).unwrap(), phi)
}

/// How many of the rows of each site the network takes for ill.
fn ill_by_site(trained: &Trained<Network>, examples: &Examples) -> [f64; 2] {
    let posteriors = mnar_train::score(&trained.network, examples, 1.0, PosteriorKind::Population).unwrap();
    [0, 1].map(|site| {
        let of_site: Vec<f64> = posteriors.column(1).iter().skip(site).step_by(2).copied().collect();
        of_site.iter().sum::<f64>() / of_site.len() as f64
    })
}

/// With weights by class a site keeps the part of its bias that is its own; with those of the row none is left.
#[test]
fn a_phi_by_row_removes_the_bias_of_every_site() {
    let (examples, labels, rows) = two_sites();
    // P(labelled | class) over both sites.
    let by_class = Phi::new(vec![0.275, 0.6]).unwrap();
    let settings = TrainSettings { epochs: 40, learning_rate: 0.02, ..Default::default() };
    for method in [Method::Given, Method::Adjusted, Method::Weighted].map(|of| of(by_class.clone())) {
        let ill = |row_phi| {
            let network = Architecture::Linear.build(examples.shape(), 2, 0, &device::cpu()).unwrap();
            let job = Job { row_phi, ..job(&examples, &labels, method.clone(), &settings) };
            ill_by_site(&train(network, &job, &()).unwrap(), &examples)
        };
        let (by_row, by_class) = (ill(Some(&rows[..])), ill(None));
        let off = |ill: [f64; 2]| (ill[0] - 0.5).abs().max((ill[1] - 0.5).abs());
        assert!(off(by_row) < 0.06, "{}: {by_row:?}", method.name());
        assert!(off(by_class) > 0.1, "{}: {by_class:?}", method.name());
    }
}

/// Held-out rows that choose the epoch are weighted by 1/phi of their class and site.
#[test]
fn held_out_rows_are_weighted_by_their_own_phi() {
    let (examples, labels, rows) = two_sites();
    let settings = TrainSettings { epochs: 1, averaging: 0.0, ..Default::default() };
    let network = Architecture::Linear.build(examples.shape(), 2, 0, &device::cpu()).unwrap();
    let method = Method::Weighted(Phi::new(vec![0.275, 0.6]).unwrap());
    let trained =
        train(network, &Job { row_phi: Some(&rows), ..job(&examples, &labels, method, &settings) }, &()).unwrap();
    let class = |row: usize| labels.get(row).unwrap().index();
    let weights: Vec<(usize, f64)> =
        trained.held_out.iter().map(|&row| (class(row), 1.0 / rows[row][class(row)])).collect();
    let scores = logits(&trained.network, &examples, &trained.held_out);
    let (risk, _) = mnar_train::weighted_scores(&scores, &weights, 1.0);
    let reported = trained.history[0].validation_risk.unwrap();
    assert!(!weights.is_empty() && (reported - risk).abs() < 1e-12, "{reported} against {risk}");
}

#[test]
fn a_phi_by_row_must_fit_the_method_and_the_rows() {
    let (examples, labels, truth) = digits();
    let settings = TrainSettings { epochs: 1, ..Default::default() };
    let refused = |method: Method, rows: &[Phi]| {
        let network = Architecture::Linear.build(examples.shape(), 10, 0, &device::cpu()).unwrap();
        let job = Job { row_phi: Some(rows), ..job(&examples, &labels, method, &settings) };
        train(network, &job, &()).unwrap_err()
    };
    let rows = vec![truth.clone(); labels.len()];
    for method in [Method::Moments, Method::Likelihood, Method::Classical, Method::ClassShares { shares: None }] {
        assert!(matches!(refused(method, &rows), TrainError::NoRowPhi { .. }));
    }
    let given = Method::Given(truth);
    assert!(matches!(refused(given.clone(), &rows[1..]), TrainError::RowPhiCount { .. }));
    let narrow = vec![Phi::all_labelled(2); labels.len()];
    assert!(matches!(refused(given, &narrow), TrainError::PerClass { found: 2, .. }));
}
