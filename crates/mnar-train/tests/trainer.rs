//! The training loop on the digits sample: each mechanism in the loop finds phi, and the same seed the same weights.
#![allow(clippy::unwrap_used)] // helpers of tests are not seen as tests

use mnar::{Labels, Phi};
use mnar_train::consistency::PseudoLabels;
use mnar_train::mechanism::Method;
use mnar_train::model::{Architecture, Network};
use mnar_train::{Encoding, Examples, Job, TrainSettings, Trained, device, parameters, train};

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
    let job = Job {
        examples,
        labels,
        method,
        consistency: &PseudoLabels,
        settings,
        validation: None,
        checkpoint: None,
        stop: None,
    };
    train(network, &job, &mut ()).unwrap()
}

#[test]
fn mechanisms_in_the_loop_find_phi() {
    let (examples, labels, truth) = digits();
    let constant = Phi::constant(labels.n_labelled(), labels.len(), 10).unwrap();
    // Likelihood is the least accurate with these 453 labels: a third of the constant's error.
    let bar = 0.5 * constant.normalised_mse(&truth);
    let settings = TrainSettings { epochs: 60, ..Default::default() };
    // A given phi that is refreshed must leave the constant it was given.
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
