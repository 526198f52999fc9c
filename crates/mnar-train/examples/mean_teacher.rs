//! A custom consistency method, defined outside the crate: mean teacher (Tarvainen and Valpola 2017), debiased.
//!
//! cargo run --release -p mnar-train --example mean_teacher
//!
//! The method below sees logits and nothing else; the risk around it is debiased without its knowledge.

use burn::tensor::Tensor;
use burn::tensor::activation::softmax;
use mnar::progress::Stage;
use mnar::{Labels, Phi};
use mnar_data::samples::digits;
use mnar_train::consistency::{Consistency, Needs, Views};
use mnar_train::method::Method;
use mnar_train::model::Architecture;
use mnar_train::{Encoding, Job, TrainError, TrainSettings, device, logits, train};

/// The squared distance between the student's probabilities and those of its own averaged weights.
struct MeanTeacher;

impl Consistency for MeanTeacher {
    fn name(&self) -> &str {
        "mean-teacher"
    }

    fn needs(&self) -> Needs {
        Needs { teacher: true, ..Needs::default() }
    }

    fn loss(&self, views: &Views) -> Result<Tensor<1>, TrainError> {
        let gap = softmax(views.weak.clone(), 1) - softmax(views.teacher()?.detach(), 1);
        Ok(gap.square().sum_dim(1).squeeze_dim(1))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The digits 0 to 9 are less and less likely to be labelled.
    let sample = digits();
    let truth = Phi::new((0..10).map(|k| 0.3 * 0.8f64.powi(k)).collect())?;
    let complete = Labels::allow_degenerate(sample.y.iter().copied().map(Some).collect(), sample.names.clone())?;
    let labels = mnar::simulate::apply_mask(&complete, &mnar::simulate::mask(&complete, &truth, 1)?)?;

    let inputs = sample.to_dataset().inputs;
    let encoding = Encoding::learn(&inputs)?;
    let examples = encoding.examples(inputs)?;
    let settings = TrainSettings { epochs: 100, ..Default::default() };
    for method in [Method::Classical, Method::Moments, Method::Given(truth)] {
        let name = method.name();
        let network = Architecture::Mlp { hidden: vec![128] }.build(examples.shape(), 10, 0, &device::cpu())?;
        let job = Job {
            stage: Stage::Debiased,
            examples: &examples,
            labels: &labels,
            weights: None,
            method,
            row_phi: None,
            consistency: &MeanTeacher,
            settings: &settings,
            targets: None,
            validation: None,
            checkpoint: None,
        };
        let trained = train(network, &job, &())?;
        let hidden: Vec<usize> = (0..labels.len()).filter(|&row| !labels.is_labelled(row)).collect();
        let scores = logits(&trained.network, &examples, &hidden);
        let right = hidden.iter().zip(scores.rows()).filter(|(row, scores)| {
            let y = sample.y[**row].index();
            scores.iter().all(|score| *score <= scores[y])
        });
        println!("{name:<12} {:.2}% of the hidden labels correct", 100.0 * right.count() as f64 / hidden.len() as f64);
    }
    Ok(())
}
