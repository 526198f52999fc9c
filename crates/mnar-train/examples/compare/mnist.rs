//! MNIST, the paper's settings S1 and S2.

use crate::methods::{ALL, Score, Setting, learn, score};
use crate::{Failure, Options, write_results};
use mnar::{Class, Labels, Phi};
use mnar_data::{Dataset, Images, Inputs, ReadOptions, Split, read_dataset};
use mnar_train::consistency::PseudoLabels;
use mnar_train::model::Architecture;
use mnar_train::optimiser::Optimiser;
use mnar_train::{Encoding, Threshold, ThresholdRule, TrainSettings};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::time::Instant;

const LABELLED: [usize; 10] = [400, 310, 240, 186, 144, 111, 86, 67, 52, 40];
const UNLABELLED_S2: [usize; 10] = [400, 517, 667, 862, 1113, 1438, 1857, 2398, 3097, 4000];

#[derive(Serialize)]
struct Row {
    method: String,
    seed: u64,
    #[serde(flatten)]
    score: Score,
    accuracy_per_class: Vec<f64>,
    phi: Vec<f64>,
    phi_normalised_mse: f64,
    seconds: f64,
}

#[derive(Serialize)]
struct Results {
    what: &'static str,
    epochs: usize,
    settings: TrainSettings,
    rows: Vec<Row>,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let folder = options.data()?.join("mnist");
    let balanced = options.number("setting", 2)? == 1;
    let read = |split| read_dataset(&folder, &ReadOptions { split, ..Default::default() });
    let (train, test) = (read(Split::Train)?, read(Split::Test)?);
    let epochs = options.number("epochs", 60)?;
    let methods = options.list("methods").unwrap_or_else(|| ALL.map(String::from).to_vec());
    let mut rows = Vec::new();
    let mut shown = None;
    println!("{:<15} {:>4} {:>9} {:>9} {:>9} {:>8}", "method", "seed", "accuracy", "log-loss", "MSE phi", "seconds");
    for seed in 0..options.number("seeds", 1)? as u64 {
        let (images, labels, truth) = masked(&train, balanced, seed)?;
        let encoding = Encoding::learn(&Inputs::Images(images.clone()))?;
        let examples = encoding.examples(Inputs::Images(images))?;
        let test_examples = encoding.examples(test.inputs.clone())?;
        let y: Vec<usize> = test.labels.as_slice().iter().flatten().map(|class| class.index()).collect();
        let all: Vec<usize> = (0..y.len()).collect();
        let settings = TrainSettings {
            epochs,
            batch_labelled: 72,
            batch_unlabelled: 400,
            learning_rate: 2e-3,
            optimiser: Optimiser::adam(),
            threshold: Threshold { rule: ThresholdRule::Phi, ..Default::default() },
            seed,
            ..Default::default()
        };
        let fold_settings = TrainSettings { epochs: epochs.min(40), ..settings.clone() };
        shown.get_or_insert_with(|| settings.clone());
        for method in &methods {
            let start = Instant::now();
            let setting = Setting {
                examples: &examples,
                labels: &labels,
                architecture: &Architecture::MnistCnn,
                consistency: &PseudoLabels,
                settings: &settings,
                fold_settings: &fold_settings,
                truth: &truth,
            };
            let learnt = learn(method, &setting)?;
            let seconds = start.elapsed().as_secs_f64();
            let total = score(&learnt, &test_examples, &all, &y);
            let per_class = (0..10).map(|k| {
                let rows: Vec<usize> = (0..y.len()).filter(|&i| y[i] == k).collect();
                score(&learnt, &test_examples, &rows, &vec![k; rows.len()]).accuracy
            });
            let row = Row {
                method: method.clone(),
                seed,
                score: total,
                accuracy_per_class: per_class.collect(),
                phi_normalised_mse: Phi::new(learnt.phi.clone())?.normalised_mse(&truth),
                phi: learnt.phi,
                seconds,
            };
            println!(
                "{:<15} {:>4} {:>8.2}% {:>9.4} {:>9.4} {:>8.1}",
                row.method,
                seed,
                100.0 * total.accuracy,
                total.log_loss,
                row.phi_normalised_mse,
                seconds
            );
            rows.push(row);
        }
    }
    let settings = shown.ok_or("no seed was run")?;
    let what = if balanced { "MNIST setting S1" } else { "MNIST setting S2" };
    let name = if balanced { "training_mnist_s1.json" } else { "training_mnist_s2.json" };
    write_results(name, &Results { what, epochs, settings, rows })
}

/// The paper's counts drawn from the training images: which, by the seed.
fn masked(train: &Dataset, balanced: bool, seed: u64) -> Result<(Images, Labels, Phi), Failure> {
    let Inputs::Images(images) = &train.inputs else { return Err("MNIST is made of images".into()) };
    let mut by_class = vec![Vec::new(); 10];
    train.labels.labelled().for_each(|(row, class)| by_class[class.index()].push(row));
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut pixels, mut y, mut phi) = (Vec::new(), Vec::new(), Vec::new());
    for (k, rows) in by_class.iter_mut().enumerate() {
        rows.shuffle(&mut rng);
        let unlabelled = if balanced { rows.len() - LABELLED[k] } else { UNLABELLED_S2[k] };
        phi.push(LABELLED[k] as f64 / (LABELLED[k] + unlabelled) as f64);
        for (i, &row) in rows[..LABELLED[k] + unlabelled].iter().enumerate() {
            pixels.extend_from_slice(images.pixels(row));
            y.push((i < LABELLED[k]).then_some(Class::from(k)));
        }
    }
    let images = Images::new(images.shape(), pixels, "MNIST")?;
    Ok((images, Labels::new(y, train.labels.names().to_vec())?, Phi::new(phi)?))
}
