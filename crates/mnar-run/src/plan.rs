//! From options and data to a plan with every choice made.

use crate::budget::Budget;
use crate::error::RunError;
use crate::options::{AugmentName, CrossFitWith, DeviceName, FinalClassifier, FitOptions, NetworkName, OptimiserName};
use crate::per_class::PerClass;
use mnar::analysis::{EstimateSettings, Given, IntervalMethod, TestSettings};
use mnar::{ClassShares, Covariates, Labels, Phi, PosteriorKind, Remedy};
use mnar_data::{FeatureColumn, FeatureTable, Inputs};
use mnar_train::augment::Augment;
use mnar_train::consistency::ConsistencyName;
use mnar_train::device::{self, Device};
use mnar_train::loss::Stabiliser;
use mnar_train::method::MethodName;
use mnar_train::model::Architecture;
use mnar_train::optimiser::Optimiser;
use mnar_train::{InputShape, Threshold, TrainSettings};

/// A run with every choice made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FitPlan {
    /// How the selection of labels is corrected.
    pub method: MethodName,
    /// The loss of unlabelled rows.
    pub consistency: ConsistencyName,
    /// The classifier that is cross-fitted.
    pub cross_fit_with: CrossFitWith,
    /// The model of a table.
    pub classifier: FinalClassifier,
    /// Folds of the cross-fitting.
    pub folds: usize,
    /// Replicates of the bootstrap; 0 for intervals from the information, `None` for as many as refitting allows.
    pub replicates: Option<usize>,
    /// Permutations of the test.
    pub permutations: usize,
    /// Columns that labelling may depend on besides the class.
    pub given: Given,
    /// Whether the biased baseline is trained too.
    pub baseline: bool,
    /// The known mechanism.
    pub phi: Option<Phi>,
    /// The known class shares.
    pub shares: Option<ClassShares>,
    /// The network.
    pub architecture: Architecture,
    /// Its training.
    pub train: TrainSettings,
    /// The training of the networks of the folds, which see labelled rows only.
    pub fold_train: TrainSettings,
    /// The options that lead to this plan, with every choice spelled out.
    pub options: FitOptions,
}

/// The size of a table, in numbers, up to which every column is checked for whether labelling depends on it.
const CHECKED_NUMBERS: usize = 20_000_000;
/// Steps that training takes by default.
const STEPS: usize = 3000;
/// Training goes over the labels at most this often by default. A table has so few that the epoch cannot always be told from the
/// held-out ones: with 230 labels of the Pima table, 300 epochs had log-losses of up to 0.88 on new rows where 100 had 0.47.
const MOST_EPOCHS: usize = 300;
const MOST_EPOCHS_OF_TABLES: usize = 100;

impl FitPlan {
    /// Makes every choice that the options leave open, and refuses options that do not go together.
    pub fn new(options: &FitOptions, shape: InputShape, labels: &Labels) -> Result<Self, RunError> {
        let method = options.method.unwrap_or_else(|| default_method(options, shape));
        let phi = match &options.phi {
            Some(given) => Some(Phi::new(given.resolve("phi", labels.names())?)?),
            None => None,
        };
        let shares = match &options.shares {
            Some(given) => Some(ClassShares::new(given.resolve("shares", labels.names())?)?),
            None => None,
        };
        check_method(method, phi.is_some(), shares.is_some())?;
        let consistency = options.consistency.unwrap_or_default();
        let image = match shape {
            InputShape::Image(image) => Some(image),
            InputShape::Row(_) => None,
        };
        if consistency == ConsistencyName::Fixmatch && image.is_none() {
            return Err(RunError::options(
                "FixMatch compares two views of an image, and a table has none",
                [Remedy::set("consistency", "pseudo-labels")],
            ));
        }
        let train = train_settings(options, shape, labels)?;
        train.check()?;
        // Small images are tables of pixels.
        let small = image.is_none() || shape.width() <= 256;
        let auto = match image {
            None => CrossFitWith::Auto,
            Some(_) if small => CrossFitWith::Softmax,
            Some(_) => CrossFitWith::Network,
        };
        let cross_fit_with = options.cross_fit.unwrap_or(auto);
        let of_columns = matches!(cross_fit_with, CrossFitWith::Auto | CrossFitWith::Quadratic | CrossFitWith::Trees);
        if image.is_some() && of_columns {
            return Err(RunError::options(
                "boosted trees and quadratic terms are for tables, and these are images",
                [Remedy::set("cross-fit", "network"), Remedy::unset("cross-fit")],
            ));
        }
        let refits = cross_fit_with != CrossFitWith::Network;
        let classifier = final_classifier(options, image.is_some(), cross_fit_with, method)?;
        if options.replicates.is_some_and(|replicates| replicates > 0) && !refits {
            return Err(RunError::options(
                "the bootstrap refits its classifier, and a network takes too long for that",
                [Remedy::set("cross-fit", "softmax"), Remedy::unset("replicates")],
            ));
        }
        let steps_per_epoch = (labels.n_labelled() / train.batch_labelled).max(1);
        // Labelled rows alone are learnt sooner, and then overfitted.
        let fold_epochs = (train.epochs / 2).clamp(1, (1000 / steps_per_epoch).max(5));
        let architecture = architecture(options, shape)?;
        architecture.check(shape, labels.n_classes())?;
        let mut plan = Self {
            method,
            consistency,
            cross_fit_with,
            classifier,
            folds: options.folds.unwrap_or(5),
            replicates: if refits { options.replicates } else { Some(0) },
            permutations: options.permutations.unwrap_or(9999),
            given: options.given.clone().unwrap_or_default(),
            baseline: !options.no_baseline.unwrap_or(false),
            phi,
            shares,
            architecture,
            fold_train: TrainSettings { epochs: fold_epochs, ..train.clone() },
            train,
            options: options.clone(),
        };
        plan.options = plan.spelled_out(options, shape);
        Ok(plan)
    }

    /// The options with every choice of the plan spelled out.
    fn spelled_out(&self, options: &FitOptions, shape: InputShape) -> FitOptions {
        let train = &self.train;
        FitOptions {
            method: Some(self.method),
            consistency: Some(self.consistency),
            network: Some(network_name(&self.architecture)),
            hidden: match &self.architecture {
                Architecture::Mlp { hidden } => Some(hidden.clone()),
                _ => None,
            },
            phi: self.phi.as_ref().map(|phi| PerClass::Numbers(phi.as_slice().to_vec())),
            shares: self.shares.as_ref().map(|shares| PerClass::Numbers(shares.as_slice().to_vec())),
            epochs: Some(train.epochs),
            batch_labelled: Some(train.batch_labelled),
            batch_unlabelled: Some(train.batch_unlabelled),
            learning_rate: Some(train.learning_rate),
            optimiser: Some(options.optimiser.unwrap_or(OptimiserName::Adam)),
            schedule: Some(train.schedule),
            averaging: Some(train.averaging),
            lambda: Some(train.lambda),
            threshold: Some(train.threshold.tau),
            threshold_rule: Some(train.threshold.rule),
            validation: Some(train.validation),
            augment: Some(match (options.augment, shape) {
                (_, InputShape::Row(_)) => AugmentName::None,
                (asked, InputShape::Image(_)) => asked.unwrap_or(AugmentName::Auto),
            }),
            classifier: Some(self.classifier),
            cross_fit: Some(self.cross_fit_with),
            folds: Some(self.folds),
            replicates: self.replicates,
            permutations: Some(self.permutations),
            given: Some(self.given.clone()),
            no_baseline: Some(!self.baseline),
            seed: Some(train.seed),
            device: Some(options.device.unwrap_or(DeviceName::Cpu)),
            ..options.clone()
        }
    }

    /// Seed of every draw.
    pub fn seed(&self) -> u64 {
        self.train.seed
    }

    /// How the mechanism is estimated from the cross-fitted classifier.
    pub fn estimate(&self) -> EstimateSettings {
        let interval = match self.replicates {
            Some(0) => IntervalMethod::Information,
            Some(_) => IntervalMethod::Bootstrap,
            None => IntervalMethod::Auto,
        };
        EstimateSettings {
            interval,
            replicates: self.replicates,
            budget: self.options.budget.map(Budget::seconds),
            given: self.given.clone(),
            by: self.options.by.clone(),
            permutations: self.permutations,
            seed: self.seed(),
            ..Default::default()
        }
        .for_report(PosteriorKind::Labelled)
    }

    /// The columns that labelling may depend on: all features of a table or, where that would be too many numbers to check, those
    /// asked for. Columns that were asked for and cannot be used are refused here.
    ///
    /// Images have no columns; those that were asked for are `beside` them, in the file of labels.
    pub fn covariates(
        &self,
        inputs: &Inputs,
        beside: Option<&FeatureTable>,
        labels: &Labels,
    ) -> Result<Covariates, RunError> {
        let given: &[String] = match &self.given {
            Given::Columns(names) => names,
            Given::Auto | Given::None => &[],
        };
        let by = self.options.by.as_ref();
        let table = match (inputs, beside) {
            (Inputs::Table(table), _) | (Inputs::Images(_), Some(table)) => table,
            (Inputs::Images(_), None) => return Ok(Covariates::default()),
        };
        let few = table.len().saturating_mul(table.columns().len()) <= CHECKED_NUMBERS;
        let wanted = |column: &&FeatureColumn| few || is_given(given, &column.name) || by == Some(&column.name);
        let columns = table.columns().iter().filter(wanted).map(FeatureColumn::covariate).collect();
        let covariates = Covariates::new(columns)?;
        covariates.usable(given, labels)?;
        if let Some(by) = by {
            covariates.get(by)?.check()?;
        }
        Ok(covariates)
    }

    /// How it is tested whether the labels are informative.
    pub fn test(&self) -> TestSettings {
        TestSettings { permutations: self.permutations, seed: self.seed(), ..Default::default() }
    }

    /// Where to compute, if that is built in.
    pub fn device(options: &FitOptions) -> Result<Device, RunError> {
        Ok(match options.device.unwrap_or(DeviceName::Cpu) {
            DeviceName::Cpu => device::cpu(),
            DeviceName::Cuda => device::cuda()?,
            DeviceName::Wgpu => device::wgpu()?,
        })
    }
}

/// Whether a column is given, by itself or in a product such as `hospital*age`.
fn is_given(given: &[String], column: &str) -> bool {
    given.iter().any(|name| name == column || name.split('*').any(|part| part.trim() == column))
}

/// Trees learn from the labelled rows and are corrected by the cross-fitted phi, so they go with methods that rest on it.
fn final_classifier(
    options: &FitOptions,
    images: bool,
    cross_fit: CrossFitWith,
    method: MethodName,
) -> Result<FinalClassifier, RunError> {
    let with_trees = matches!(cross_fit, CrossFitWith::Auto | CrossFitWith::Trees) && method.carries_cross_fitted();
    match options.classifier {
        Some(FinalClassifier::Trees) if images => {
            Err(RunError::options("boosted trees are for tables, and these are images", [Remedy::unset("classifier")]))
        }
        Some(FinalClassifier::Trees) if !with_trees => Err(RunError::options(
            "boosted trees need to be cross-fitted, and a method that corrects by the cross-fitted phi",
            [Remedy::unset("cross-fit"), Remedy::unset("method")],
        )),
        Some(asked) => Ok(asked),
        // A network that was asked for is what the user gets.
        None if options.network.is_some() || options.hidden.is_some() || !with_trees => Ok(FinalClassifier::Network),
        None => Ok(FinalClassifier::Auto),
    }
}

fn check_method(method: MethodName, has_phi: bool, has_shares: bool) -> Result<(), RunError> {
    match method {
        MethodName::Oracle if !has_phi => Err(RunError::options(
            "the method `oracle` needs the known mechanism, one probability per class",
            [Remedy::set("phi", "PHI")],
        )),
        MethodName::Oracle => Ok(()),
        _ if has_phi => Err(RunError::options(
            "a known mechanism goes with the method `oracle` only",
            [Remedy::set("method", "oracle"), Remedy::unset("phi")],
        )),
        MethodName::KnownShares if !has_shares => Err(RunError::options(
            "the method `known-shares` needs the class shares of the whole population",
            [Remedy::set("shares", "SHARES")],
        )),
        MethodName::KnownShares | MethodName::Cadr => Ok(()),
        _ if has_shares => Err(RunError::options(
            "known class shares go with the methods `known-shares` and `cadr` only",
            [Remedy::set("method", "known-shares"), Remedy::unset("shares")],
        )),
        _ => Ok(()),
    }
}

/// For tables the adjusted likelihood does better: on three of them, with ten masks each, it was ahead of weights in accuracy
/// every time (`results/training.md`). On images it is not (`docs/RESULTS.md`), and options about weights ask for weights.
fn default_method(options: &FitOptions, shape: InputShape) -> MethodName {
    let about_weights = options.refresh.is_some() || options.clip_weights.is_some();
    match shape {
        InputShape::Row(_) if !about_weights => MethodName::Adjusted,
        InputShape::Row(_) | InputShape::Image(_) => MethodName::LabelShift,
    }
}

fn architecture(options: &FitOptions, shape: InputShape) -> Result<Architecture, RunError> {
    let hidden = options.hidden.clone().unwrap_or_else(|| vec![128]);
    if hidden.contains(&0) {
        return Err(RunError::OptionValue {
            option: "hidden",
            value: hidden.iter().map(usize::to_string).collect::<Vec<_>>().join(","),
            expected: "at least 1 unit in every layer".to_owned(),
        });
    }
    let architecture = match options.network {
        Some(NetworkName::Linear) => Architecture::Linear,
        Some(NetworkName::Mlp) => Architecture::Mlp { hidden },
        Some(NetworkName::MnistCnn) => Architecture::MnistCnn,
        Some(NetworkName::MedMnistCnn) => Architecture::MedMnistCnn,
        Some(NetworkName::WideResNet) => Architecture::WideResNet { depth: 28, width: 2 },
        Some(NetworkName::Cnn3d) => Architecture::Cnn3d,
        None => match Architecture::for_shape(shape) {
            Architecture::Mlp { .. } => Architecture::Mlp { hidden },
            other => other,
        },
    };
    if options.hidden.is_some() && !matches!(architecture, Architecture::Mlp { .. }) {
        return Err(RunError::options(
            "hidden layers go with the network `mlp`",
            [Remedy::set("network", "mlp"), Remedy::unset("hidden")],
        ));
    }
    Ok(architecture)
}

fn network_name(architecture: &Architecture) -> NetworkName {
    match architecture {
        Architecture::Linear => NetworkName::Linear,
        Architecture::Mlp { .. } => NetworkName::Mlp,
        Architecture::MnistCnn => NetworkName::MnistCnn,
        Architecture::MedMnistCnn => NetworkName::MedMnistCnn,
        Architecture::WideResNet { .. } => NetworkName::WideResNet,
        Architecture::Cnn3d => NetworkName::Cnn3d,
    }
}

fn train_settings(options: &FitOptions, shape: InputShape, labels: &Labels) -> Result<TrainSettings, RunError> {
    let default = TrainSettings::default();
    let batch_labelled = options.batch_labelled.unwrap_or(default.batch_labelled);
    let steps_per_epoch = (labels.n_labelled() / batch_labelled.max(1)).max(1);
    let sgd = options.optimiser == Some(OptimiserName::Sgd);
    let augment = match (options.augment, shape) {
        (Some(AugmentName::None), _) => None,
        (Some(AugmentName::Medical), InputShape::Image(image)) => Some(Augment::medical(image)),
        (Some(AugmentName::Medical), InputShape::Row(_)) => {
            return Err(RunError::options(
                "the augmentation `medical` is for images, and this is a table",
                [Remedy::unset("augment")],
            ));
        }
        (_, InputShape::Image(image)) => Some(Augment::for_shape(image)),
        (_, InputShape::Row(_)) => None,
    };
    let most_epochs = match shape {
        InputShape::Image(_) => MOST_EPOCHS,
        InputShape::Row(_) => MOST_EPOCHS_OF_TABLES,
    };
    Ok(TrainSettings {
        epochs: options.epochs.unwrap_or_else(|| STEPS.div_ceil(steps_per_epoch).clamp(5, most_epochs)),
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
