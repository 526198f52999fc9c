//! The training loop on the digits sample: each mechanism finds phi during training, and the same seed gives the same
//! weights.
#![allow(clippy::unwrap_used)] // test helpers do not count as tests

use mnar::crossfit::FoldPlan;
use mnar::{Labels, Phi};
use mnar_train::consistency::{Imputation, PseudoLabels};
use mnar_train::crossfit::CrossFit;
use mnar_train::mechanism::Method;
use mnar_train::model::{Architecture, Network};
use mnar_train::{
    Criterion, Encoding, Examples, Job, TrainError, TrainSettings, Trained, Validation, device, logits, parameters,
    train,
};

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
    train(network, &job(examples, labels, method, settings), &mut ()).unwrap()
}

fn job<'a>(examples: &'a Examples, labels: &'a Labels, method: Method, settings: &'a TrainSettings) -> Job<'a> {
    Job {
        examples,
        labels,
        method,
        consistency: &PseudoLabels,
        settings,
        targets: None,
        validation: None,
        checkpoint: None,
        stop: None,
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
    let start = Method::Given(constant.as_slice().to_vec());
    let cases = [
        (Method::Moments, &settings),
        (Method::MomentsGradient, &settings),
        (Method::Likelihood, &settings),
        (start, &refreshed),
    ];
    for (method, settings) in cases {
        let name = method.name();
        let phi = Phi::new(run(&examples, &labels, method, settings).mechanism.phi().to_vec()).unwrap();
        let error = phi.normalised_mse(&truth);
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
    let (biased, adjusted) = (error(Method::CompleteCase), error(Method::Adjusted(truth.as_slice().to_vec())));
    assert!(adjusted < 0.5 * biased, "{adjusted} against {biased}");
}

#[test]
fn unknown_labels_can_be_imputed() {
    let (examples, labels, truth) = digits();
    let y = mnar_data::samples::digits().y;
    let targets: Vec<f32> =
        y.iter().flat_map(|class| (0..10).map(|k| f32::from(u8::from(class.index() == k)))).collect();
    let settings = TrainSettings { epochs: 120, ..Default::default() };
    let method = Method::Imputed(truth.as_slice().to_vec());
    let network = || Architecture::Mlp { hidden: vec![64] }.build(examples.shape(), 10, 0, &device::cpu()).unwrap();
    let with =
        |targets| Job { consistency: &Imputation, targets, ..job(&examples, &labels, method.clone(), &settings) };
    let learnt = train(network(), &with(Some(&targets[..])), &mut ()).unwrap();
    let hidden: Vec<usize> = (0..labels.len()).filter(|&row| !labels.is_labelled(row)).collect();
    let scores = logits(&learnt.network, &examples, &hidden);
    let right = hidden
        .iter()
        .zip(scores.rows())
        .filter(|(row, scores)| scores.iter().all(|score| *score <= scores[y[**row].index()]));
    let share = right.count() as f64 / hidden.len() as f64;
    assert!(share > 0.97, "{share} of the hidden labels, with the truth as targets");
    let refused = train(network(), &with(None), &mut ());
    assert!(matches!(refused, Err(TrainError::NoTargets { .. })));
    let refused = train(network(), &with(Some(&targets[10..])), &mut ());
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
        let trained = train(network, &job, &mut ()).unwrap();
        assert!(trained.held_out.is_empty());
        let score = |record: &mnar_train::EpochRecord| match by {
            Criterion::Accuracy => record.validation_accuracy.unwrap(),
            Criterion::LogLoss => -record.validation_risk.unwrap(),
        };
        let best = trained.history.iter().map(score).fold(f64::NEG_INFINITY, f64::max);
        let chosen = trained.history.iter().find(|record| record.epoch == trained.chosen_epoch).unwrap();
        assert_eq!(score(chosen), best, "{by:?}");
    }
}

/// Labelled rows are scored only by the network of their fold, in the ensemble too: no prediction has seen its own
/// label.
#[test]
fn an_ensemble_helps_unlabelled_rows_only() {
    let (examples, labels, _) = digits();
    let settings = TrainSettings { epochs: 10, ..Default::default() };
    let plan = FoldPlan::for_labels(&labels, 3, 0).unwrap();
    let device = device::cpu();
    let folds = CrossFit {
        architecture: &Architecture::Linear,
        settings: &settings,
        device: &device,
        beyond: None,
        stop: None,
    };
    let fitted = folds.run(&examples, &labels, &plan, &|_| None, &mut ()).unwrap().unwrap();
    let y = mnar_data::samples::digits().y;
    let mut loss = [0.0, 0.0];
    for row in 0..labels.len() {
        let both = [fitted.posteriors.row(row), fitted.ensemble.row(row)];
        if labels.is_labelled(row) {
            assert_eq!(both[0], both[1]);
        } else {
            loss.iter_mut().zip(both).for_each(|(loss, p)| *loss -= p[y[row].index()].ln());
        }
    }
    assert!(loss[1] < loss[0], "log-loss of hidden labels: one network {}, together {}", loss[0], loss[1]);
}
