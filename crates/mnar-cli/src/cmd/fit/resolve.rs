//! From what was set to every setting: flags, then the TOML file, then what suits the data.

use crate::args::{AugmentArg, FitOptions, NetworkArg, OptimiserArg};
use crate::plan;
use anyhow::{Result, bail};
use mnar::Labels;
use mnar_train::augment::Augment;
use mnar_train::fit::{ConsistencyName, CrossFitWith, FitSettings, MethodName};
use mnar_train::loss::Stabiliser;
use mnar_train::model::Architecture;
use mnar_train::optimiser::Optimiser;
use mnar_train::{InputShape, Threshold, TrainSettings};

impl FitOptions {
    /// These, and where they are silent the others.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            method: self.method.or(other.method),
            consistency: self.consistency.or(other.consistency),
            network: self.network.or(other.network),
            hidden: self.hidden.or(other.hidden),
            phi: self.phi.or(other.phi),
            shares: self.shares.or(other.shares),
            epochs: self.epochs.or(other.epochs),
            batch_labelled: self.batch_labelled.or(other.batch_labelled),
            batch_unlabelled: self.batch_unlabelled.or(other.batch_unlabelled),
            learning_rate: self.learning_rate.or(other.learning_rate),
            optimiser: self.optimiser.or(other.optimiser),
            schedule: self.schedule.or(other.schedule),
            averaging: self.averaging.or(other.averaging),
            lambda: self.lambda.or(other.lambda),
            threshold: self.threshold.or(other.threshold),
            threshold_rule: self.threshold_rule.or(other.threshold_rule),
            validation: self.validation.or(other.validation),
            patience: self.patience.or(other.patience),
            clip_weights: self.clip_weights.or(other.clip_weights),
            augment: self.augment.or(other.augment),
            refresh: self.refresh.or(other.refresh),
            cross_fit: self.cross_fit.or(other.cross_fit),
            folds: self.folds.or(other.folds),
            replicates: self.replicates.or(other.replicates),
            permutations: self.permutations.or(other.permutations),
            no_baseline: self.no_baseline.or(other.no_baseline),
            seed: self.seed.or(other.seed),
        }
    }
}

/// Steps that training takes unless told.
const STEPS: usize = 3000;
/// Numbers of a table up to which the bootstrap refits its classifier unless told.
const BOOTSTRAP_NUMBERS: usize = 2_000_000;

pub(super) fn settings(options: &FitOptions, shape: InputShape, labels: &Labels) -> Result<FitSettings> {
    let method = options.method.unwrap_or_else(|| default_method(options, shape));
    let by_class = |flag: &str, text: &Option<String>| {
        text.as_ref().map(|text| plan::by_class(flag, std::slice::from_ref(text), labels.names())).transpose()
    };
    let phi = by_class("--phi", &options.phi)?;
    let shares = by_class("--shares", &options.shares)?;
    if (method == MethodName::Oracle) != phi.is_some() {
        bail!("--phi and --method oracle go together: the known mechanism, one probability a class");
    }
    if let Some(phi) = &phi {
        mnar::Phi::new(phi.clone())?;
    }
    if shares.is_some() && !matches!(method, MethodName::KnownShares | MethodName::Cadr) {
        bail!("--shares goes with --method known-shares or cadr");
    }
    if method == MethodName::KnownShares && shares.is_none() {
        bail!("--method known-shares needs --shares: the class shares of the whole population");
    }
    if let Some(shares) = &shares
        && (shares.iter().any(|share| share.is_nan() || *share <= 0.0)
            || (shares.iter().sum::<f64>() - 1.0).abs() > 1e-6)
    {
        bail!("--shares must be positive and sum to 1, but sum to {}", shares.iter().sum::<f64>());
    }
    let consistency = options.consistency.unwrap_or_default();
    let image = match shape {
        InputShape::Image(image) => Some(image),
        InputShape::Row(_) => None,
    };
    if consistency == ConsistencyName::Fixmatch && image.is_none() {
        bail!(
            "--consistency fixmatch compares two views of an image, and a table has none; use pseudo-labels or entropy"
        );
    }
    let train = train_settings(options, shape, labels)?;
    // Small pictures are tables of pixels.
    let small = image.is_none() || shape.width() <= 256;
    let auto = if small { CrossFitWith::Softmax } else { CrossFitWith::Network };
    let cross_fit_with = options.cross_fit.unwrap_or(auto);
    let numbers = labels.len().saturating_mul(shape.width());
    let refits = cross_fit_with == CrossFitWith::Softmax;
    if options.replicates.is_some_and(|replicates| replicates > 0) && !refits {
        bail!("--replicates refits a softmax regression; it goes with --cross-fit softmax");
    }
    let auto = if refits && numbers <= BOOTSTRAP_NUMBERS { 200 } else { 0 };
    let steps_an_epoch = (labels.n_labelled() / train.batch_labelled).max(1);
    // Labelled rows alone are learnt sooner, and overlearnt.
    let fold_epochs = (train.epochs / 2).clamp(1, (1000 / steps_an_epoch).max(5));
    Ok(FitSettings {
        method,
        consistency,
        cross_fit_with,
        folds: options.folds.unwrap_or(5),
        replicates: options.replicates.unwrap_or(auto),
        permutations: options.permutations.unwrap_or(9999),
        baseline: !options.no_baseline.unwrap_or(false),
        phi,
        shares,
        architecture: architecture(options, shape)?,
        fold_train: TrainSettings { epochs: fold_epochs, ..train.clone() },
        train,
    })
}

/// Of tables the adjusted likelihood makes more: on three of them, ten masks each, it was ahead of weights in accuracy every
/// time (`results/training.md`). On images it is not (`docs/RESULTS.md`), and what is said of weights asks for them.
fn default_method(options: &FitOptions, shape: InputShape) -> MethodName {
    let speaks_of_weights = options.refresh.is_some() || options.clip_weights.is_some();
    match shape {
        InputShape::Row(_) if !speaks_of_weights => MethodName::Adjusted,
        InputShape::Row(_) | InputShape::Image(_) => MethodName::LabelShift,
    }
}

fn architecture(options: &FitOptions, shape: InputShape) -> Result<Architecture> {
    let hidden = options.hidden.clone().unwrap_or_else(|| vec![128]);
    if hidden.contains(&0) {
        bail!("--hidden has a layer of 0 units; every layer needs at least 1");
    }
    let architecture = match options.network {
        Some(NetworkArg::Linear) => Architecture::Linear,
        Some(NetworkArg::Mlp) => Architecture::Mlp { hidden },
        Some(NetworkArg::MnistCnn) => Architecture::MnistCnn,
        Some(NetworkArg::MedMnistCnn) => Architecture::MedMnistCnn,
        Some(NetworkArg::WideResNet) => Architecture::WideResNet { depth: 28, width: 2 },
        Some(NetworkArg::Cnn3d) => Architecture::Cnn3d,
        None => match Architecture::for_shape(shape) {
            Architecture::Mlp { .. } => Architecture::Mlp { hidden },
            other => other,
        },
    };
    if options.hidden.is_some() && !matches!(architecture, Architecture::Mlp { .. }) {
        bail!("--hidden goes with --network mlp");
    }
    Ok(architecture)
}

fn train_settings(options: &FitOptions, shape: InputShape, labels: &Labels) -> Result<TrainSettings> {
    let default = TrainSettings::default();
    let batch_labelled = options.batch_labelled.unwrap_or(default.batch_labelled);
    let steps_an_epoch = (labels.n_labelled() / batch_labelled.max(1)).max(1);
    let sgd = options.optimiser == Some(OptimiserArg::Sgd);
    let augment = match (options.augment, shape) {
        (Some(AugmentArg::None), _) => None,
        (Some(AugmentArg::Medical), InputShape::Image(image)) => Some(Augment::medical(image)),
        (Some(AugmentArg::Medical), InputShape::Row(_)) => {
            bail!("--augment medical is for images, and this is a table")
        }
        (_, InputShape::Image(image)) => Some(Augment::for_shape(image)),
        (_, InputShape::Row(_)) => None,
    };
    Ok(TrainSettings {
        epochs: options.epochs.unwrap_or_else(|| STEPS.div_ceil(steps_an_epoch).clamp(5, 300)),
        batch_labelled,
        batch_unlabelled: options.batch_unlabelled.unwrap_or(default.batch_unlabelled),
        learning_rate: options.learning_rate.unwrap_or(if sgd { 0.03 } else { default.learning_rate }),
        schedule: options.schedule.unwrap_or(default.schedule),
        optimiser: if sgd { Optimiser::sgd() } else { Optimiser::adam() },
        averaging: options.averaging.unwrap_or(default.averaging),
        lambda: options.lambda.unwrap_or(default.lambda),
        threshold: Threshold {
            rule: options.threshold_rule.unwrap_or(default.threshold.rule),
            tau: options.threshold.unwrap_or(default.threshold.tau),
            ..default.threshold
        },
        validation: options.validation.unwrap_or(default.validation),
        patience: options.patience,
        stabiliser: options.clip_weights.map_or(Stabiliser::Exact, Stabiliser::Clip),
        augment,
        refresh: options.refresh,
        seed: options.seed.unwrap_or(0),
    })
}
