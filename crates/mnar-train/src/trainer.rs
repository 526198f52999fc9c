//! The training loop: Algorithm 2 of the paper for any network, consistency method and mechanism, and Algorithm 1.

use crate::batches::Walk;
use crate::checkpoint::{Checkpoint, State, fingerprint};
use crate::consistency::{Consistency, Views};
use crate::error::TrainError;
use crate::examples::{Draw, Examples, View};
use crate::loss::{Losses, SetShares, Weighting, cross_entropy, logits_given, observed_likelihood, ssl_risk};
use crate::mechanism::{BatchMeans, Mechanism, tensor};
use crate::method::{EpochRule, LossTerms, Method, RowWeights};
use crate::model::NetworkModule;
use crate::optimiser::OptimiserState;
use crate::parameters;
use crate::predict::logits;
use crate::propensity::Propensity;
use crate::refresh::likely_phi;
use crate::settings::{ThresholdRule, TrainSettings};
use crate::validation::{Criterion, ScoredRows, Validation, calibrating_temperature, held_out, weighted_scores};
use burn::tensor::activation::softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};
use mnar::progress::{EpochRecord, Stage};
use mnar::{Class, Labels, Phi, Progress};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What to learn, from what, and how.
#[derive(Clone)]
pub struct Job<'a> {
    /// The stage of the run that this training is reported as.
    pub stage: Stage,
    /// All rows.
    pub examples: &'a Examples,
    /// The labels of these rows.
    pub labels: &'a Labels,
    /// How often each row counts, one entry per row; once if absent. The terms that a labelled row adds to the risk are
    /// multiplied by its weight over the mean weight of the labelled rows in training, and held-out rows are weighted in
    /// the same way. A labelled row of weight 0 is left out. Weights of unlabelled rows are ignored, and so are weights
    /// where the mechanism counts labels.
    pub weights: Option<&'a [f64]>,
    /// Where the weights of labelled rows by class come from.
    pub method: Method,
    /// P(labelled | class, columns) of every row, where labelling depends on columns too. It takes the place of the phi
    /// that the method [brings](Method::given_phi), which remains for what is said by class: the thresholds of
    /// pseudo-labels and the history. Methods that find phi while they train refuse it, and a given phi is not refreshed.
    pub row_phi: Option<&'a [Phi]>,
    /// The unlabelled loss; used only if the method has one.
    pub consistency: &'a dyn Consistency,
    /// Settings.
    pub settings: &'a TrainSettings,
    /// Class probabilities of every row by another model, row by row, for a consistency method that asks for them.
    pub targets: Option<&'a [f32]>,
    /// Further rows to choose the epoch by, in place of held-out labelled ones.
    pub validation: Option<Validation<'a>>,
    /// Where to keep the state, and how often to write it.
    pub checkpoint: Option<CheckpointPlan>,
}

/// Where and how often the state is kept.
#[derive(Clone, Debug)]
pub struct CheckpointPlan {
    /// The file.
    pub path: PathBuf,
    /// The longest time between two writes.
    pub every: Duration,
}

/// Why training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// All epochs are done.
    Finished,
    /// The validation risk had not improved for long enough.
    EarlyStop,
}

impl Ended {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::EarlyStop => "early-stop",
        }
    }
}

/// A trained network.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Trained<M> {
    /// The network, without gradients, with the averaged weights of the chosen epoch.
    pub network: M,
    /// What logits are to be divided by: fitted on the held-out rows, 1 where there are none.
    pub temperature: f64,
    /// The mechanism at the end.
    pub mechanism: Mechanism,
    /// What every epoch showed.
    pub history: Vec<EpochRecord>,
    /// Why it ended.
    pub ended: Ended,
    /// The epoch whose weights were chosen.
    pub chosen_epoch: usize,
    /// The labelled rows that were held out.
    pub held_out: Vec<usize>,
}

/// Trains a network. If the checkpoint of the job exists already, training goes on from it.
///
/// Steps and epochs are reported to `progress`. If it cancels, the checkpoint is written and the result is
/// [`mnar::Error::Cancelled`]; the same call goes on from there.
pub fn train<M: NetworkModule>(network: M, job: &Job<'_>, progress: &dyn Progress) -> Result<Trained<M>, TrainError> {
    // On a thread of rayon's pool: from any other, every small kernel would wake a thread of the pool and wait for it, which
    // took a quarter of a step on a small table.
    rayon::scope(|_| {
        let mut run = Run::start(network, job)?;
        progress.begin(job.stage, run.steps, run.state.step);
        let ended = run.until_end(progress);
        progress.end();
        run.finish(ended?)
    })
}

struct Run<'a, M> {
    job: &'a Job<'a>,
    /// With gradients; `None` only inside a step.
    network: Option<M>,
    optimiser: OptimiserState,
    state: State,
    /// The averaged weights of the chosen epoch.
    chosen: Option<Vec<Vec<f32>>>,
    labelled: Walk,
    unlabelled: Walk,
    held_out: Vec<usize>,
    /// How often each row counts, relative to the mean of the labelled rows in training.
    row_weights: Option<Vec<f64>>,
    shares: SetShares,
    steps_per_epoch: u64,
    steps: u64,
    device: Device,
    started: Instant,
    seconds_before: f64,
    /// What a checkpoint must agree with to belong to this run.
    fingerprint: String,
}

/// What is drawn at random. Each has its own seed, so that no two draws share a stream.
#[derive(Clone, Copy)]
enum Stream {
    Labelled = 1,
    Unlabelled,
    HeldOut,
    Weak,
    Strong,
}

impl Stream {
    fn seed(self, seed: u64) -> u64 {
        seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ ((self as u64) << 56)
    }
}

/// No loss of a network that learns is so large: at a learning rate of 1e30, it stays finite at 1e31 or so.
const DIVERGED: f32 = 1e15;

impl<'a, M: NetworkModule> Run<'a, M> {
    fn start(network: M, job: &'a Job<'a>) -> Result<Self, TrainError> {
        let (settings, labels) = (job.settings, job.labels);
        settings.check()?;
        if job.examples.len() != labels.len() {
            return Err(TrainError::Lengths { inputs: job.examples.len(), labels: labels.len() });
        }
        let share = if job.validation.is_some() { 0.0 } else { settings.validation };
        let wrong = |targets: &&[f32]| targets.len() != labels.len() * labels.n_classes();
        if let Some(targets) = job.targets.filter(wrong) {
            return Err(TrainError::Lengths { inputs: targets.len() / labels.n_classes(), labels: labels.len() });
        }
        if job.consistency.needs().targets && job.targets.is_none() {
            return Err(TrainError::NoTargets { consistency: job.consistency.name().to_owned() });
        }
        job.method.check(labels)?;
        if let Some(row_phi) = job.row_phi {
            job.method.check_row_phi(row_phi, labels)?;
        }
        if let Some(weights) = job.weights {
            check_weights(weights, labels)?;
        }
        let counts = |row: usize| job.weights.is_none_or(|weights| weights[row] > 0.0);
        let labelled: Vec<_> = labels.labelled().filter(|(row, _)| counts(*row)).collect();
        let held_out = held_out(&labelled, labels.n_classes(), share, Stream::HeldOut.seed(settings.seed));
        let mut is_held_out = vec![false; labels.len()];
        held_out.iter().for_each(|&row| is_held_out[row] = true);
        let rows: Vec<usize> = labelled.into_iter().map(|(row, _)| row).filter(|&row| !is_held_out[row]).collect();
        let row_weights = job.weights.map(|weights| relative(weights, &rows));
        let labelled = Walk::new(rows, settings.batch_labelled, Stream::Labelled.seed(settings.seed));
        let rows = (0..labels.len()).filter(|&row| !labels.is_labelled(row)).collect();
        let unlabelled = Walk::new(rows, settings.batch_unlabelled, Stream::Unlabelled.seed(settings.seed));
        let steps_per_epoch = labelled.steps();
        let device = network.devices().first().cloned().unwrap_or_else(Device::flex);
        let mechanism = Mechanism::new(&job.method, labels.counts(), labels.len())?;
        let mut run = Self {
            job,
            network: Some(network),
            optimiser: OptimiserState::default(),
            state: State::new(mechanism),
            chosen: None,
            labelled,
            unlabelled,
            held_out,
            row_weights,
            shares: SetShares { labelled: labels.n_labelled() as f64 / labels.len() as f64 },
            steps_per_epoch,
            steps: steps_per_epoch * settings.epochs as u64,
            device,
            started: Instant::now(),
            seconds_before: 0.0,
            fingerprint: if job.checkpoint.is_some() { fingerprint(job) } else { String::new() },
        };
        if let Some(plan) = &job.checkpoint
            && plan.path.exists()
        {
            run.resume(Checkpoint::read(&plan.path)?, plan)?;
        }
        Ok(run)
    }

    fn resume(&mut self, checkpoint: Checkpoint, plan: &CheckpointPlan) -> Result<(), TrainError> {
        checkpoint.check(&self.fingerprint, &plan.path)?;
        let network = self.network.take().expect("a network outside of steps");
        let lengths: Vec<usize> = parameters::export(&network).iter().map(|tensor| tensor.values.len()).collect();
        checkpoint.check_state(&lengths, self.job.labels.n_classes(), self.steps, &plan.path)?;
        self.network = Some(parameters::import(network, &checkpoint.network, &plan.path)?);
        self.seconds_before = checkpoint.state.seconds;
        (self.optimiser, self.chosen, self.state) = (checkpoint.optimiser, checkpoint.chosen, checkpoint.state);
        Ok(())
    }

    /// Takes steps until training ends, and returns why it did.
    fn until_end(&mut self, progress: &dyn Progress) -> Result<Ended, TrainError> {
        let mut written = Instant::now();
        let ended = loop {
            if let Some(ended) = self.state.ended {
                break ended;
            }
            if progress.cancelled() {
                self.save()?;
                return Err(mnar::Error::Cancelled.into());
            }
            self.step()?;
            progress.step();
            if self.state.step.is_multiple_of(self.steps_per_epoch) {
                progress.epoch(&self.end_epoch()?);
            }
            if self.job.checkpoint.as_ref().is_some_and(|plan| written.elapsed() >= plan.every) {
                self.save()?;
                written = Instant::now();
            }
        };
        self.save()?;
        Ok(ended)
    }

    fn save(&mut self) -> Result<(), TrainError> {
        let Some(plan) = &self.job.checkpoint else { return Ok(()) };
        self.state.seconds = self.seconds();
        self.state.fingerprint.clone_from(&self.fingerprint);
        let network = parameters::export(self.network.as_ref().expect("a network outside of steps"));
        Checkpoint {
            network,
            optimiser: self.optimiser.clone(),
            chosen: self.chosen.clone(),
            state: self.state.clone(),
        }
        .write(&plan.path)
    }

    fn seconds(&self) -> f64 {
        self.seconds_before + self.started.elapsed().as_secs_f64()
    }

    /// The network with the averaged weights, without gradients.
    fn averaged(&self) -> M {
        self.averaged_of(self.network.as_ref().expect("a network outside of steps"))
    }

    /// The same in the middle of a step, when the network is held by the step.
    fn averaged_of(&self, network: &M) -> M {
        let network = network.valid();
        if self.optimiser.average.is_empty() {
            network
        } else {
            parameters::with_values(network, &self.optimiser.average)
        }
    }

    fn step(&mut self) -> Result<(), TrainError> {
        let step = self.state.step;
        let settings = self.job.settings;
        let network = self.network.take().expect("a network outside of steps");
        let risk = self.risk(&network, step)?;
        let loss: f32 = risk.clone().into_data().iter::<f32>().sum();
        if !loss.is_finite() || loss.abs() > DIVERGED {
            return Err(TrainError::Diverged { step, loss, learning_rate: settings.learning_rate });
        }
        let rate = settings.learning_rate * settings.schedule.factor(step, self.steps);
        let gradients = risk.backward();
        drop(risk);
        self.network = Some(self.optimiser.step(network, gradients, settings.optimiser, rate, settings.averaging));
        self.state.step += 1;
        self.state.epoch_loss += f64::from(loss);
        Ok(())
    }

    /// The risk of the batch of a step, with gradients.
    fn risk(&mut self, network: &M, step: u64) -> Result<Tensor<1>, TrainError> {
        let method = &self.job.method;
        let terms = method.loss_terms();
        let labelled = self.labelled.rows(step);
        let with_unlabelled = terms != LossTerms::Labelled && !self.unlabelled.is_empty();
        let unlabelled = if with_unlabelled { self.unlabelled.rows(step) } else { Vec::new() };
        let consistency = terms == LossTerms::LabelledAndConsistency && with_unlabelled;
        let needs = if consistency { self.job.consistency.needs() } else { Default::default() };
        let rows: Vec<usize> = labelled.iter().chain(&unlabelled).copied().collect();
        let augment = self.job.settings.augment.as_ref();
        let draw = |stream: Stream| Draw { seed: stream.seed(self.job.settings.seed), step };
        let view = |strong: bool| match augment {
            None => View::Plain,
            Some(augment) if strong => View::Strong(&augment.strong, draw(Stream::Strong)),
            Some(augment) => View::Weak(&augment.weak, draw(Stream::Weak)),
        };
        let weak = self.batch(&rows, view(false));
        let strong = needs.strong.then(|| self.batch(&rows, view(true)));
        // One pass through the network for all views, so that batch norm sees one batch.
        let both = strong.map_or(weak.clone(), |strong| Tensor::cat(vec![weak.clone(), strong], 0));
        let scores = network.forward(Tensor::from_inner(both));
        let (n_l, n) = (labelled.len(), rows.len());
        let weak_scores = scores.clone().narrow(0, 0, n);
        let classes: Vec<Class> = labelled.iter().map(|&row| self.class(row)).collect();
        let y: Vec<i64> = classes.iter().map(|class| i64::from(class.0)).collect();
        let y: Tensor<1, Int> = Tensor::from_data(TensorData::new(y, [n_l]), &self.device);
        let row_weights = self.row_weights.as_ref().map(|weights| {
            let weights: Vec<f64> = labelled.iter().map(|&row| weights[row]).collect();
            tensor(&weights, &self.device)
        });
        let labelled_scores = weak_scores.clone().narrow(0, 0, n_l);
        if terms == LossTerms::ObservedLikelihood && with_unlabelled {
            let phi = tensor(self.state.mechanism.phi().as_slice(), &self.device);
            let unlabelled_scores = weak_scores.narrow(0, n_l, n - n_l);
            return Ok(observed_likelihood(labelled_scores, y, row_weights, unlabelled_scores, phi, self.shares));
        }
        // Without weights, the logits are those of p(y | x, r) instead of p(y | x).
        let by_class = self.state.mechanism.phi().clone();
        let row_phi = self.job.row_phi;
        let phi = |rows: &[usize]| Propensity::of_rows(&by_class, row_phi, rows);
        let adjusted = |scores: Tensor<2>, labelled: bool, rows: &[usize]| match method.adjusts_logits() {
            true => logits_given(labelled, scores, phi(rows)),
            false => scores,
        };
        let ell = cross_entropy(adjusted(labelled_scores, true, &labelled), y.clone());
        let weighting = match method.weights() {
            RowWeights::Equal => Weighting::Classical,
            RowWeights::One => Weighting::Propensity(Tensor::ones([self.job.labels.n_classes()], &self.device)),
            RowWeights::InversePhi if row_phi.is_some() => {
                let phi = phi(&labelled);
                let inverse: Vec<f64> = classes.iter().enumerate().map(|(i, &y)| phi.inverse(i, y)).collect();
                Weighting::Rows(self.job.settings.stabiliser.apply(tensor(&inverse, &self.device), self.shares))
            }
            RowWeights::InversePhi => {
                let means = self.batch_means(&weak_scores, n_l, &ell);
                self.state.mechanism.update(&means)?;
                let inverse = self.state.mechanism.inverse_phi(&means.shares, &self.device);
                Weighting::Propensity(self.job.settings.stabiliser.apply(inverse, self.shares))
            }
        };
        let h = if consistency {
            let teacher = needs.teacher.then(|| Tensor::from_inner(self.averaged_of(network).forward(weak)));
            let views = Views {
                weak: adjusted(weak_scores, false, &rows),
                strong: needs.strong.then(|| adjusted(scores.narrow(0, n, n), false, &rows)),
                teacher: teacher.map(|teacher| adjusted(teacher, false, &rows)),
                targets: self.job.targets.filter(|_| needs.targets).map(|targets| self.targets(targets, &rows)),
                thresholds: tensor(&self.thresholds(), &self.device),
            };
            let h = self.job.consistency.loss(&views)?;
            Some((h.clone().narrow(0, 0, n_l), h.narrow(0, n_l, n - n_l)))
        } else {
            None
        };
        Ok(ssl_risk(Losses { ell, y, row_weights, h }, &weighting, self.job.settings.lambda, self.shares))
    }

    fn class(&self, row: usize) -> Class {
        self.job.labels.get(row).unwrap_or(Class(0))
    }

    fn targets(&self, targets: &[f32], rows: &[usize]) -> Tensor<2> {
        let k = self.job.labels.n_classes();
        let values: Vec<f32> = rows.iter().flat_map(|&row| &targets[row * k..(row + 1) * k]).copied().collect();
        Tensor::from_data(TensorData::new(values, [rows.len(), k]), &self.device)
    }

    fn batch(&self, rows: &[usize], view: View<'_>) -> Tensor<2> {
        let width = self.job.examples.shape().width();
        let mut values = Vec::with_capacity(rows.len() * width);
        self.job.examples.gather(rows, view, &mut values);
        Tensor::from_data(TensorData::new(values, [rows.len(), width]), &self.device.clone().inner())
    }

    /// What the batch says about the mechanism.
    fn batch_means(&self, scores: &Tensor<2>, n_l: usize, ell: &Tensor<1>) -> BatchMeans {
        let n = scores.dims()[0];
        let p = softmax(scores.clone(), 1);
        // p(y) of all rows, from a batch of each set.
        let mean = |from: usize, count: usize| p.clone().narrow(0, from, count).mean_dim(0).squeeze_dim::<1>(0);
        let shares = if n > n_l {
            mean(0, n_l).mul_scalar(self.shares.labelled) + mean(n_l, n - n_l).mul_scalar(self.shares.unlabelled())
        } else {
            mean(0, n_l)
        };
        BatchMeans { shares, loss: ell.clone().detach().mean() }
    }

    fn thresholds(&self) -> Vec<f64> {
        let threshold = self.job.settings.threshold;
        let mechanism = &self.state.mechanism;
        match threshold.rule {
            ThresholdRule::Fixed => vec![threshold.tau; mechanism.phi().len()],
            ThresholdRule::Phi => mnar::threshold::adaptive(threshold.tau, mechanism.phi().as_slice(), threshold.beta),
            ThresholdRule::Shares => mnar::threshold::adaptive(threshold.tau, &mechanism.shares(), threshold.beta),
        }
    }

    fn end_epoch(&mut self) -> Result<EpochRecord, TrainError> {
        let epoch = (self.state.step / self.steps_per_epoch) as usize;
        let settings = self.job.settings;
        let refreshes = self.job.row_phi.is_none() && self.job.method.refreshes(epoch, settings.refresh);
        if refreshes && self.job.labels.n_unlabelled() > 0 {
            let estimate = likely_phi(&self.averaged(), self.job.examples, self.job.labels)?;
            self.state.mechanism.refresh(estimate.phi);
        }
        let scored = self.validation_scores(&self.averaged());
        // Weighted by 1/phi where they are held-out labelled rows, so that they are means over the population.
        let validation = scored.as_ref().map(|(scores, rows)| weighted_scores(scores, rows, 1.0));
        let record = EpochRecord {
            step: self.state.step,
            epoch,
            loss: self.state.epoch_loss / self.steps_per_epoch as f64,
            validation_risk: validation.map(|(risk, _)| risk),
            validation_accuracy: validation.map(|(_, accuracy)| accuracy),
            learning_rate: settings.learning_rate * settings.schedule.factor(self.state.step - 1, self.steps),
            phi: self.state.mechanism.phi().as_slice().to_vec(),
            seconds: self.seconds(),
        };
        self.state.epoch_loss = 0.0;
        if self.keeps(epoch, scored, validation) {
            self.chosen = Some(self.optimiser.average.clone());
        }
        self.state.history.push(record.clone());
        if self.state.step >= self.steps {
            self.state.ended = Some(Ended::Finished);
        } else if settings.patience.is_some_and(|patience| epoch - self.state.choice.best_epoch() >= patience) {
            self.state.ended = Some(Ended::EarlyStop);
        }
        Ok(record)
    }

    /// Whether the weights of this epoch are kept, judged by the rows that the epoch is chosen by.
    fn keeps(&mut self, epoch: usize, scored: Option<ScoredRows>, risk_and_accuracy: Option<(f64, f64)>) -> bool {
        let choice = &mut self.state.choice;
        let (Some((scores, rows)), Some((risk, accuracy))) = (scored, risk_and_accuracy) else {
            choice.take(epoch);
            return true;
        };
        match (self.job.validation.map(|validation| validation.by), self.job.method.epoch_rule()) {
            (Some(Criterion::Accuracy), _) => choice.offer_best(epoch, -accuracy),
            (Some(Criterion::LogLoss), _) | (None, EpochRule::LeastRisk) => choice.offer_best(epoch, risk),
            (None, EpochRule::LaterUnlessWorse) => choice.offer_later(epoch, &scores, &rows),
        }
    }

    /// The rows that the epoch is chosen by, as the network scores them.
    fn validation_scores(&self, network: &M) -> Option<ScoredRows> {
        if let Some(validation) = self.job.validation {
            let rows: Vec<usize> = (0..validation.examples.len()).collect();
            let weights = validation.classes.iter().map(|&class| (class, 1.0)).collect();
            return Some((logits(network, validation.examples, &rows), weights));
        }
        if self.held_out.is_empty() {
            return None;
        }
        Some((logits(network, self.job.examples, &self.held_out), self.held_out_weights()))
    }

    /// Class and weight of every held-out row: 1/phi where the method knows a mechanism, times how often the row counts.
    fn held_out_weights(&self) -> Vec<(usize, f64)> {
        let phi = Propensity::of_rows(self.state.mechanism.phi(), self.job.row_phi, &self.held_out);
        let weighted = self.job.method.weights_held_out();
        let weight = |i: usize, y: Class| if weighted { phi.inverse(i, y) } else { 1.0 };
        let count = |row: usize| self.row_weights.as_ref().map_or(1.0, |weights| weights[row]);
        let classes = self.held_out.iter().map(|&row| (row, self.class(row)));
        classes.enumerate().map(|(i, (row, y))| (y.index(), weight(i, y) * count(row))).collect()
    }

    /// The temperature of least risk on the same rows.
    fn temperature(&self, network: &M) -> f64 {
        let Some((scores, weights)) = self.validation_scores(network) else { return 1.0 };
        calibrating_temperature(&scores, &weights)
    }

    fn finish(mut self, ended: Ended) -> Result<Trained<M>, TrainError> {
        let network = self.network.as_ref().expect("a network outside of steps").valid();
        let weights = self.chosen.as_ref().unwrap_or(&self.optimiser.average);
        let network = if weights.is_empty() { network } else { parameters::with_values(network, weights) };
        let chosen = self.state.history.iter().find(|record| record.epoch == self.state.choice.epoch);
        if let (true, Some(record)) = (self.job.method.takes_phi_of_chosen_epoch(), chosen) {
            self.state.mechanism.refresh(Phi::new(record.phi.clone())?);
        }
        let temperature = self.temperature(&network);
        Ok(Trained {
            network,
            temperature,
            mechanism: self.state.mechanism,
            history: self.state.history,
            ended,
            chosen_epoch: self.state.choice.epoch,
            held_out: self.held_out,
        })
    }
}

fn check_weights(weights: &[f64], labels: &Labels) -> Result<(), TrainError> {
    if weights.len() != labels.len() {
        return Err(TrainError::WeightCount { weights: weights.len(), labels: labels.len() });
    }
    let fail = |value: f64, range| Err(TrainError::Setting { name: "a row weight", value: value.to_string(), range });
    if let Some(&weight) = weights.iter().find(|weight| !(**weight >= 0.0 && weight.is_finite())) {
        return fail(weight, "a finite number, at least 0");
    }
    if labels.labelled().all(|(row, _)| weights[row] == 0.0) {
        return fail(0.0, "positive for at least one labelled row");
    }
    Ok(())
}

/// Weights over the mean weight of some rows.
fn relative(weights: &[f64], rows: &[usize]) -> Vec<f64> {
    let mean = rows.iter().map(|&row| weights[row]).sum::<f64>() / rows.len() as f64;
    weights.iter().map(|weight| weight / mean).collect()
}
