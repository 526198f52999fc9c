//! The mechanism, its intervals and the test, from cross-fitted posteriors.

use super::settings::CrossFitWith;
use super::{Context, Reporter};
use crate::crossfit::CrossFit;
use crate::error::TrainError;
use crate::examples::{Draw, Examples, View};
use mnar::calibrate::Calibration;
use mnar::crossfit::{FoldPlan, cross_fit};
use mnar::diagnose::{Identifiability, SensitivityPoint, confusion, identifiability, sensitivity};
use mnar::estimate::{Estimator, LabelShift, PhiEstimate};
use mnar::interval::{Bootstrap, ProfileOf, information_intervals};
use mnar::pipeline::Pipeline;
use mnar::test::{PermutationTest, SelfMaskingCheck, TestResult, self_masking_check};
use mnar::{Posteriors, Sample};
use mnar_report::{Calibration as Calibrated, IntervalKind, ODDS_FACTORS};
use ndarray::Array2;

/// What cross-fitting says of the mechanism.
#[derive(Clone, Debug)]
pub struct Estimation {
    /// The estimate; `None` where all labels are there.
    pub estimate: Option<PhiEstimate>,
    phi: Vec<f64>,
    /// Intervals of phi.
    pub phi_ci95: Option<Vec<(f64, f64)>>,
    /// Standard errors of phi.
    pub phi_se: Option<Vec<f64>>,
    /// Intervals of the class shares.
    pub prevalence_ci95: Option<Vec<(f64, f64)>>,
    /// How they were made.
    pub interval: IntervalKind,
    /// MCAR against self-masked MNAR.
    pub test: Option<TestResult>,
    /// Is self-masking believable?
    pub self_masking: Option<SelfMaskingCheck>,
    /// Are the classes told apart?
    pub identifiability: Option<Identifiability>,
    /// Does the classifier mean what it says?
    pub calibration: Option<Calibrated>,
    /// Of labelled rows out of fold: how many of class k are taken for class j.
    pub confusion: Option<Vec<Vec<usize>>>,
    /// How phi and the shares move when labels also depend on how easy a row is.
    pub sensitivity: Vec<SensitivityPoint>,
    /// Share of the labelled rows that are right out of fold.
    pub out_of_fold_accuracy: Option<f64>,
}

impl Estimation {
    /// phi; 1 where all labels are there.
    pub fn phi(&self) -> &[f64] {
        &self.phi
    }
}

/// `None` if stopped.
pub(super) fn run(
    context: &Context<'_>,
    reporter: &mut (dyn Reporter + Sync),
) -> Result<Option<Estimation>, TrainError> {
    let labels = context.labels;
    if labels.n_unlabelled() == 0 {
        return Ok(Some(Estimation {
            estimate: None,
            phi: vec![1.0; labels.n_classes()],
            phi_ci95: None,
            phi_se: None,
            prevalence_ci95: None,
            interval: IntervalKind::None,
            test: None,
            self_masking: None,
            identifiability: None,
            calibration: None,
            confusion: None,
            sensitivity: Vec::new(),
            out_of_fold_accuracy: None,
        }));
    }
    let seed = context.settings.train.seed;
    let plan = FoldPlan::for_labels(labels, context.settings.folds, seed)?;
    let features = (context.settings.cross_fit_with == CrossFitWith::Softmax).then(|| as_features(context.examples));
    let pipeline = Pipeline { folds: context.settings.folds, seed, ..Default::default() };
    let raw = match &features {
        Some(x) => {
            reporter.stage("cross-fit");
            cross_fit(x.view(), labels, &plan, &pipeline.regression, None)?
        }
        None => match cross_fit_network(context, &plan, reporter)? {
            Some(raw) => raw,
            None => return Ok(None),
        },
    };
    reporter.stage("estimate");
    let bcts = Calibration::default().fit(&Sample::new(&raw, labels)?)?;
    let posteriors = bcts.apply(&raw)?;
    let sample = Sample::new(&posteriors, labels)?;
    let estimate = LabelShift::default().estimate(&sample)?;
    let test = PermutationTest { permutations: context.settings.permutations, seed }
        .run(&Sample::new(&raw, labels)?, &plan)?;
    let mut estimation = Estimation {
        phi: estimate.phi.as_slice().to_vec(),
        phi_ci95: information_intervals(&sample, ProfileOf::LabelShift, &estimate, 0.95),
        phi_se: estimate.standard_errors(),
        prevalence_ci95: estimate.prevalence_conf_int(0.95),
        interval: IntervalKind::Information,
        test: Some(test),
        // On the scores as they are, as `mnar estimate` does: calibration on the same labels would hide part of a misfit.
        self_masking: self_masking_check(&Sample::new(&raw, labels)?).ok(),
        identifiability: identifiability(&sample, &estimate).ok(),
        calibration: Some(Calibrated::of(&bcts, &Sample::new(&raw, labels)?, &sample)),
        confusion: Some(confusion(&sample)),
        // A curve that cannot be had is no reason to lose the run.
        sensitivity: sensitivity(&sample, &LabelShift::default(), &ODDS_FACTORS).unwrap_or_default(),
        out_of_fold_accuracy: Some(out_of_fold_accuracy(&raw, &sample)),
        estimate: Some(estimate),
    };
    let replicates = context.settings.replicates;
    if let (Some(x), Some(estimate), true) = (&features, &estimation.estimate, replicates > 0) {
        reporter.stage("bootstrap");
        let reporter: &(dyn Reporter + Sync) = reporter;
        let bootstrap = Bootstrap { replicates, seed }.run(labels.len(), |weights, replicate| {
            let plan = FoldPlan::for_labels(labels, pipeline.folds, seed.wrapping_add((replicate + 1) << 20))?;
            let estimate = pipeline.run_on(x.view(), labels, plan, Some(weights))?.estimate;
            reporter.replicate(replicates);
            Ok(estimate)
        })?;
        estimation.phi_ci95 = Some(bootstrap.phi_intervals(estimate.phi.as_slice(), 0.95));
        estimation.phi_se = Some(bootstrap.phi_standard_errors());
        estimation.prevalence_ci95 = Some(bootstrap.prevalence_intervals(&estimate.prevalence, 0.95));
        estimation.interval = IntervalKind::BootstrapWithRefit;
    }
    Ok(Some(estimation))
}

fn cross_fit_network(
    context: &Context<'_>,
    plan: &FoldPlan,
    reporter: &mut (dyn Reporter + Sync),
) -> Result<Option<Posteriors>, TrainError> {
    reporter.stage("cross-fit");
    let folds = CrossFit {
        architecture: &context.settings.architecture,
        settings: &context.settings.fold_train,
        device: context.device,
        beyond: None,
        stop: context.stop,
    };
    let checkpoint = |fold: usize| Some(context.checkpoints.plan(&format!("fold-{fold}")));
    let mut observer = reporter.observer("cross-fit")?;
    let fitted = folds.run(context.examples, context.labels, plan, &checkpoint, observer.as_mut())?;
    Ok(fitted.map(|fitted| fitted.posteriors))
}

fn as_features(examples: &Examples) -> Array2<f64> {
    let rows: Vec<usize> = (0..examples.len()).collect();
    let width = examples.shape().width();
    let mut x = Array2::zeros((rows.len(), width));
    let mut values = Vec::new();
    for chunk in rows.chunks(4096) {
        values.clear();
        examples.gather(chunk, View::Plain, None, Draw { seed: 0, step: 0 }, &mut values);
        for (&row, values) in chunk.iter().zip(values.chunks_exact(width)) {
            x.row_mut(row).iter_mut().zip(values).for_each(|(to, value)| *to = f64::from(*value));
        }
    }
    x
}

fn out_of_fold_accuracy(raw: &Posteriors, sample: &Sample<'_>) -> f64 {
    let right = sample.labels().labelled().filter(|(row, class)| {
        let p = raw.row(*row);
        p.iter().all(|other| *other <= p[class.index()])
    });
    right.count() as f64 / sample.labels().n_labelled() as f64
}
