//! The embedded samples, masked by a known mechanism, from the test to the debiased classifier.

use crate::error::RunError;
use crate::quality::out_of_fold;
use crate::report::{Origin, more_labels, uncertain_rows};
use clap::ValueEnum;
use mnar::analysis::{CONFIDENCE, EstimateSettings, Evidence, Features, TestSettings};
use mnar::classify::{SoftmaxRegression, Standardise};
use mnar::crossfit::FoldPlan;
use mnar::interval::wilson;
use mnar::risk::RiskWeights;
use mnar::{Class, ClassShares, Labels, Phi, PosteriorKind, Posteriors, Progress};
use mnar_data::{FullyLabelled, Inputs, samples};
use mnar_report::{Ended, HeldOut, Model, Report, Training, Truth};
use mnar_train::Propensity;
use ndarray::{Array2, Axis};
use serde::Serialize;
use std::time::Instant;

/// An embedded sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DemoSample {
    /// 1,797 handwritten digits, ten classes
    #[default]
    Digits,
    /// 569 breast tumours, malignant or benign
    BreastCancer,
}

impl DemoSample {
    /// The name of the sample in a title.
    pub fn name(self) -> &'static str {
        match self {
            Self::Digits => "digits",
            Self::BreastCancer => "breast cancer",
        }
    }

    /// The title of its report.
    pub(crate) fn title(self) -> String {
        format!("the {} sample", self.name())
    }

    fn read(self) -> FullyLabelled {
        match self {
            Self::Digits => samples::digits(),
            Self::BreastCancer => samples::breast_cancer(),
        }
    }

    /// The mechanism that hides labels.
    fn phi(self) -> Result<Phi, RunError> {
        Ok(Phi::new(match self {
            // From 0 to 9 a digit is less and less likely to be labelled: 60% to 8%.
            Self::Digits => (0..10).map(|k| 0.6 * 0.8f64.powi(k)).collect(),
            // The sick are noticed: malignant tumours are labelled six times as often.
            Self::BreastCancer => vec![0.6, 0.1],
        })?)
    }
}

#[derive(Serialize)]
struct Settings {
    classifier: &'static str,
    l2: f64,
    folds: usize,
    replicates: usize,
    permutations: usize,
}

const FOLDS: usize = 5;

/// Hides labels of a sample, estimates the mechanism, tests, and trains with and without correction.
pub fn demo(sample: DemoSample, seed: u64, origin: Origin, progress: &dyn Progress) -> Result<Report, RunError> {
    let start = Instant::now();
    let FullyLabelled { x, y, names, .. } = sample.read();
    let truth = sample.phi()?;
    let complete = Labels::allow_degenerate(y.iter().copied().map(Some).collect(), names)?;
    let kept = mnar::simulate::mask(&complete, &truth, seed)?;
    let labels = mnar::simulate::apply_mask(&complete, &kept)?;
    let x = Standardise::learn(x.view())?.apply(x.view());

    let regression = SoftmaxRegression::default();
    let features = Features { x: &x, names: &[], classifier: &regression };
    let plan = FoldPlan::for_labels(&labels, FOLDS, seed)?;
    let evidence = Evidence::cross_fit(features, &labels, plan, seed, progress)?;
    let test = TestSettings { seed, ..Default::default() }.decide(&evidence, progress)?;
    let settings = EstimateSettings { seed, ..Default::default() }.for_report(PosteriorKind::Labelled);
    let findings = settings.run(&evidence, progress)?;
    let evaluation = out_of_fold(&evidence, &findings, settings, None, "softmax regression", progress)?;

    let hidden = Hidden { x: &x, labels: &labels, y: &y };
    let (_, baseline) = hidden.train(&regression, None)?;
    let (population, debiased) = hidden.train(&regression, Some(&findings.phi))?;
    let images = match sample {
        DemoSample::Digits => Some(samples::digits_as_images().inputs),
        DemoSample::BreastCancer => None,
    };
    let png = |row: usize| match &images {
        Some(Inputs::Images(images)) => images.png(row),
        _ => None,
    };
    let uncertain = uncertain_rows(&population, &labels, &Propensity::new(&findings.phi, None), |_| None, png);
    let constant = Phi::constant(labels.n_labelled(), labels.len(), truth.len())?;
    let (error, constant_error) = (findings.phi.normalised_mse(&truth), constant.normalised_mse(&truth));
    let truth = Truth::new(truth, ClassShares::of_counts(complete.counts()), error, constant_error);
    let settings = Settings {
        classifier: "softmax regression",
        l2: regression.l2,
        folds: FOLDS,
        replicates: findings.interval.replicates,
        permutations: test.result.draws,
    };
    let origin = Origin { title: sample.title(), ..origin };
    let more = more_labels(findings.calibrated.as_deref().unwrap_or(&evidence.posteriors), &findings);
    let training = Training::new(findings.phi.clone(), debiased).with_baseline(baseline);
    let report = Report::new(origin.provenance(&settings, "cpu".to_owned(), start)?, findings)
        .with_test(test)
        .with_evaluation(evaluation)
        .with_training(training)
        .with_uncertain(uncertain)
        .with_more_labels(more)
        .with_truth(truth);
    Ok(origin.with_commands(report))
}

/// A sample with hidden labels, and the truth.
struct Hidden<'a> {
    x: &'a Array2<f64>,
    labels: &'a Labels,
    y: &'a [Class],
}

impl Hidden<'_> {
    /// Trains on the labelled rows, weighted by 1/phi if phi is given: p(y | x) of all rows, and how it does on the
    /// unlabelled ones.
    ///
    /// The weights are scaled to sum to the number of labels, so that the ridge penalty is the same for both.
    fn train(&self, regression: &SoftmaxRegression, phi: Option<&Phi>) -> Result<(Posteriors, Model), RunError> {
        let (labels, y) = (self.labels, self.y);
        let (rows, classes): (Vec<usize>, Vec<Class>) = labels.labelled().unzip();
        let weights: Option<Vec<f64>> = phi.map(|phi| {
            let risk = RiskWeights::new(phi);
            let raw: Vec<f64> = classes.iter().map(|class| risk.ell(Some(*class))).collect();
            let scale = rows.len() as f64 / raw.iter().sum::<f64>();
            raw.iter().map(|weight| scale * weight).collect()
        });
        let x = self.x.select(Axis(0), &rows);
        let fitted = regression.fit(x.view(), &classes, labels.n_classes(), weights.as_deref())?;
        let p = Posteriors::from_logits(fitted.logits(self.x.view()).view(), PosteriorKind::Population)?;
        let hidden: Vec<usize> = (0..labels.len()).filter(|&i| !labels.is_labelled(i)).collect();
        let is_right = |i: usize| {
            let row = p.row(i);
            row.iter().all(|other| *other <= row[y[i].index()])
        };
        let share = |rows: &[usize]| rows.iter().filter(|&&i| is_right(i)).count() as f64 / rows.len() as f64;
        let losses = hidden.iter().map(|&i| -p.row(i)[y[i].index()].max(1e-15).ln());
        let log_loss = losses.sum::<f64>() / hidden.len() as f64;
        let by_class = (0..labels.n_classes()).map(|k| {
            let of: Vec<usize> = hidden.iter().copied().filter(|&i| y[i].index() == k).collect();
            (!of.is_empty()).then(|| share(&of))
        });
        let accuracy = share(&hidden);
        let interval = wilson(accuracy, hidden.len() as f64, CONFIDENCE);
        let held_out = HeldOut::new(hidden.len(), accuracy, interval, log_loss);
        let model = Model::new(Ended::Finished, labels.n_classes()).with_held_out(held_out, by_class.collect());
        Ok((p, model))
    }
}
