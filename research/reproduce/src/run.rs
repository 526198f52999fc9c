//! Runs an experiment. Each method and seed has its own result file, and is not run again where that exists.

use crate::data::{Labelling, Masked, Source};
use crate::error::ReproduceError;
use crate::experiment::{Experiment, Protocol};
use crate::method::{Candidate, Learnt, Setting};
use crate::watch::{RunEvent, Watch};
use mnar_data::AtomicFile;
use mnar_train::device::Device;
use mnar_train::{TrainSettings, device, weighted_scores};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::path::Path;
use std::time::Instant;

/// The result of one method with one seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Name of the experiment.
    pub experiment: String,
    /// How the epoch was chosen.
    pub protocol: Protocol,
    /// The method.
    pub method: Candidate,
    /// Seed of the mask and of training.
    pub seed: u64,
    /// Test accuracy.
    pub accuracy: f64,
    /// Test log-loss.
    pub log_loss: f64,
    /// Test accuracy of each class.
    pub accuracy_per_class: Vec<f64>,
    /// The estimated mechanism.
    pub phi: Vec<f64>,
    /// 95% intervals of phi, where the method has them: from the information, or by profile likelihood where phi is at
    /// its bound 1. They take the networks as given.
    #[serde(default, deserialize_with = "mnar::nullable::intervals", skip_serializing_if = "Option::is_none")]
    pub phi_ci95: Option<Vec<(f64, f64)>>,
    /// The mechanism that hid the labels.
    pub true_phi: Vec<f64>,
    /// Normalised squared error of phi, Σ(φ̂−φ)²/Σφ².
    pub phi_error: f64,
    /// Class shares of the training set.
    pub shares: Vec<f64>,
    /// Number of labelled rows of each class.
    pub labelled: Vec<usize>,
    /// Number of rows of each class, labelled or not.
    pub rows: Vec<usize>,
    /// Epoch whose weights were tested.
    pub chosen_epoch: usize,
    /// Training time of all networks of the method.
    pub seconds: f64,
    /// Device and kernels.
    pub computed_on: String,
    /// Version of mnar.
    pub version: String,
    /// Training settings of the network.
    pub settings: TrainSettings,
    /// Training settings of the networks that see labelled rows only, where the method has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folds: Option<TrainSettings>,
}

/// Changes to an experiment.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Methods to run, instead of all of the experiment's.
    pub methods: Option<Vec<Candidate>>,
    /// Number of seeds, instead of the experiment's.
    pub seeds: Option<u64>,
    /// The first seed; others than those that are reported are for choosing rules and settings.
    pub first_seed: u64,
    /// Number of epochs, instead of the experiment's.
    pub epochs: Option<usize>,
    /// Device to compute on, instead of the CPU.
    pub device: Option<Device>,
}

impl Overrides {
    pub(crate) fn device(&self) -> Device {
        self.device.clone().unwrap_or_else(device::cpu)
    }
}

impl Outcome {
    fn line(&self) -> String {
        format!(
            "{:<16} seed {}  accuracy {:.2}%  log-loss {:.3}  phi error {:.4}  {:.0} s",
            self.method.title(),
            self.seed,
            100.0 * self.accuracy,
            self.log_loss,
            self.phi_error,
            self.seconds
        )
    }
}

/// Runs every method with every seed, and keeps the results below `out`.
///
/// # Errors
/// If the caller cancels ([`ReproduceError::is_cancelled`]), the same call continues with the runs that are missing.
pub fn run(
    experiment: &Experiment,
    overrides: &Overrides,
    protocol: Protocol,
    data: &Path,
    out: &Path,
    watch: &Watch<'_>,
) -> Result<Vec<Outcome>, ReproduceError> {
    let mut methods = overrides.methods.clone().unwrap_or_else(|| experiment.methods.clone());
    if overrides.methods.is_none() && protocol == Protocol::Paper {
        methods.retain(|method| !method.is_whole_fit());
    }
    let seeds = overrides.seeds.unwrap_or(experiment.seeds);
    let device = overrides.device();
    let folder = out.join(&experiment.name).join(protocol.name());
    let source = Source::read(experiment, data)?;
    experiment.check_classes(source.n_classes())?;
    std::fs::create_dir_all(&folder).map_err(|source| ReproduceError::Io { path: folder.clone(), source })?;
    let mut outcomes = Vec::new();
    let of = seeds as usize * methods.len();
    for seed in overrides.first_seed..overrides.first_seed + seeds {
        let masked = source.mask(experiment, Labelling::Informative, seed)?;
        let (settings, folds) = experiment.settings(seed, overrides.epochs, masked.train.shape());
        let setting = Setting {
            experiment,
            masked: &masked,
            settings: &settings,
            folds: &folds,
            protocol,
            device: &device,
            progress: watch.progress,
            shifted: OnceCell::new(),
        };
        for &method in &methods {
            let path = folder.join(format!("{}-{seed}.json", method.name()));
            let same = |outcome: &Outcome| {
                outcome.settings == settings && outcome.folds.as_ref().is_none_or(|their| *their == folds)
            };
            let outcome = match read::<Outcome>(&path)?.filter(same) {
                Some(outcome) => outcome,
                None => {
                    (watch.on_run)(RunEvent::Begins { what: method.title(), seed, done: outcomes.len(), of });
                    let start = Instant::now();
                    let learnt = setting.learn(method)?;
                    let outcome =
                        outcome(&setting, method, &learnt, start.elapsed().as_secs_f64() + learnt.seconds_before)?;
                    write(&path, &outcome)?;
                    outcome
                }
            };
            (watch.on_run)(RunEvent::Ended { line: &outcome.line() });
            outcomes.push(outcome);
        }
    }
    Ok(outcomes)
}

fn outcome(setting: &Setting<'_>, method: Candidate, learnt: &Learnt, seconds: f64) -> Result<Outcome, ReproduceError> {
    let masked: &Masked = setting.masked;
    let (accuracy, log_loss, accuracy_per_class) = test(learnt, masked);
    let counts = masked.labels.counts().to_vec();
    let n = masked.labels.len() as f64;
    Ok(Outcome {
        experiment: setting.experiment.name.clone(),
        protocol: setting.protocol,
        method,
        seed: setting.settings.seed,
        accuracy,
        log_loss,
        accuracy_per_class,
        phi_error: learnt.phi.normalised_mse(&masked.phi),
        phi: learnt.phi.as_slice().to_vec(),
        phi_ci95: learnt.phi_ci95.clone(),
        true_phi: masked.phi.as_slice().to_vec(),
        rows: masked.shares.iter().map(|share| (share * n).round() as usize).collect(),
        shares: masked.shares.as_slice().to_vec(),
        labelled: counts,
        chosen_epoch: learnt.chosen_epoch,
        seconds,
        computed_on: device::name(setting.device),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        settings: setting.settings.clone(),
        folds: method.sees_labelled_only().then(|| setting.folds.clone()),
    })
}

/// Accuracy, log-loss and accuracy of each class on the test rows.
fn test(learnt: &Learnt, masked: &Masked) -> (f64, f64, Vec<f64>) {
    let of = |counts: &dyn Fn(usize) -> bool| {
        let rows = masked.test_classes.iter().map(|&class| (class, f64::from(u8::from(counts(class)))));
        weighted_scores(&learnt.test_scores, &rows.collect::<Vec<_>>(), 1.0)
    };
    let (log_loss, accuracy) = of(&|_| true);
    let per_class = (0..masked.labels.n_classes()).map(|k| of(&|class| class == k).1).collect();
    (accuracy, log_loss, per_class)
}

/// All results of an experiment below `out`, ordered by method as in the experiment, then by seed.
pub fn results(experiment: &Experiment, protocol: Protocol, out: &Path) -> Result<Vec<Outcome>, ReproduceError> {
    let folder = out.join(&experiment.name).join(protocol.name());
    let mut outcomes: Vec<Outcome> = read_all(&folder)?;
    let place = |outcome: &Outcome| experiment.methods.iter().position(|method| *method == outcome.method);
    outcomes.retain(|outcome| place(outcome).is_some());
    outcomes.sort_by_key(|outcome| (place(outcome), outcome.seed));
    Ok(outcomes)
}

/// All results in a folder; none if it does not exist.
pub(crate) fn read_all<T: DeserializeOwned>(folder: &Path) -> Result<Vec<T>, ReproduceError> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "json") {
            all.extend(read::<T>(&entry.path())?);
        }
    }
    Ok(all)
}

pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ReproduceError> {
    match std::fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| {
            ReproduceError::unreadable(path, "is not a result of this program; remove it to run it again", error)
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ReproduceError::Io { path: path.to_owned(), source }),
    }
}

pub(crate) fn write<T: Serialize>(path: &Path, outcome: &T) -> Result<(), ReproduceError> {
    let text = serde_json::to_string_pretty(outcome)
        .map_err(|error| ReproduceError::unreadable(path, "cannot hold this result", error))?;
    Ok(AtomicFile::write_text(path, &format!("{text}\n"))?)
}
