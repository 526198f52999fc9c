//! The training loop: Algorithm 2 of the paper for any network, consistency method and mechanism, and Algorithm 1.

use crate::batches::Walk;
use crate::checkpoint::{Checkpoint, Progress};
use crate::consistency::{Consistency, Views};
use crate::error::TrainError;
use crate::examples::{Draw, Examples, View};
use crate::loss::{Losses, SetShares, Weighting, cross_entropy, logits_given, observed_likelihood, ssl_risk};
use crate::mechanism::{Mechanism, Method, tensor};
use crate::model::Classifier;
use crate::optimiser::OptimiserState;
use crate::parameters;
use crate::predict::logits;
use crate::refresh::refreshed_phi;
use crate::settings::{ThresholdRule, TrainSettings};
use crate::validation::{Criterion, ScoredRows, Validation, calibrating_temperature, held_out, weighted_scores};
use burn::tensor::activation::softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};
use mnar::{Labels, Phi};
use mnar_report::EpochRecord;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What is to be learnt, from what, and how.
pub struct Job<'a> {
    /// All rows.
    pub examples: &'a Examples,
    /// Their labels.
    pub labels: &'a Labels,
    /// Where the weights of labelled rows come from.
    pub method: Method,
    /// The unlabelled loss; looked at only if the method has one.
    pub consistency: &'a dyn Consistency,
    /// Settings.
    pub settings: &'a TrainSettings,
    /// Class probabilities of every row by another model, row by row, for a consistency method that asks for them.
    pub targets: Option<&'a [f32]>,
    /// Further rows to choose the epoch by, in place of held-out labelled ones.
    pub validation: Option<Validation<'a>>,
    /// Where to keep the state, and how often to write it.
    pub checkpoint: Option<CheckpointPlan>,
    /// Set from outside to stop after the current step.
    pub stop: Option<&'a AtomicBool>,
}

/// Where and how often the state is kept.
#[derive(Clone, Debug)]
pub struct CheckpointPlan {
    /// The file.
    pub path: PathBuf,
    /// At most so long between two writes.
    pub every: Duration,
}

/// Hears of every epoch.
pub trait Observer {
    /// Training starts, or goes on, at a step of so many.
    fn started(&mut self, _step: u64, _steps: u64) {}
    /// A step is done.
    fn stepped(&mut self, _step: u64) {}
    /// An epoch is done.
    fn epoch(&mut self, _record: &EpochRecord) {}
}

/// Hears nothing.
impl Observer for () {}

/// Why training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// All epochs are done.
    Finished,
    /// The validation risk had not improved for long enough.
    EarlyStop,
    /// It was told to stop; a checkpoint was written, if there is a place for it.
    Interrupted,
}

/// A trained network.
#[derive(Clone, Debug)]
pub struct Trained<M> {
    /// The network, without gradients, with the averaged weights of the chosen epoch.
    pub network: M,
    /// Logits are to be divided by this: fitted on the held-out rows, 1 where there are none.
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

/// Trains. With a checkpoint that is there already, goes on from it.
pub fn train<M: Classifier>(network: M, job: &Job<'_>, observer: &mut dyn Observer) -> Result<Trained<M>, TrainError> {
    let mut run = Run::start(network, job)?;
    observer.started(run.progress.step, run.steps);
    let mut written = Instant::now();
    while run.progress.ended.is_none() {
        if job.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            run.save()?;
            return run.finish(Ended::Interrupted);
        }
        run.step()?;
        observer.stepped(run.progress.step);
        if run.progress.step.is_multiple_of(run.steps_an_epoch)
            && let Some(record) = run.end_epoch()?
        {
            observer.epoch(&record);
        }
        if job.checkpoint.as_ref().is_some_and(|plan| written.elapsed() >= plan.every) {
            run.save()?;
            written = Instant::now();
        }
    }
    run.save()?;
    let ended = run.progress.ended.unwrap_or(Ended::Finished);
    run.finish(ended)
}

struct Run<'a, M> {
    job: &'a Job<'a>,
    /// With gradients; `None` only inside a step.
    network: Option<M>,
    optimiser: OptimiserState,
    progress: Progress,
    /// The averaged weights of the chosen epoch.
    chosen: Option<Vec<Vec<f32>>>,
    labelled: Walk,
    unlabelled: Walk,
    held_out: Vec<usize>,
    shares: SetShares,
    steps_an_epoch: u64,
    steps: u64,
    device: Device,
    started: Instant,
    seconds_before: f64,
}

/// Seeds of what is drawn, so that no two draws share a stream.
#[derive(Clone, Copy)]
enum Purpose {
    Labelled = 1,
    Unlabelled,
    HeldOut,
    Weak,
    Strong,
}

impl Purpose {
    fn seed(self, seed: u64) -> u64 {
        seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ ((self as u64) << 56)
    }
}

impl<'a, M: Classifier> Run<'a, M> {
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
        let held_out = held_out(labels, share, Purpose::HeldOut.seed(settings.seed));
        let mut is_held_out = vec![false; labels.len()];
        held_out.iter().for_each(|&row| is_held_out[row] = true);
        let rows = labels.labelled().map(|(row, _)| row).filter(|&row| !is_held_out[row]).collect();
        let labelled = Walk::new(rows, settings.batch_labelled, Purpose::Labelled.seed(settings.seed));
        let rows = (0..labels.len()).filter(|&row| !labels.is_labelled(row)).collect();
        let unlabelled = Walk::new(rows, settings.batch_unlabelled, Purpose::Unlabelled.seed(settings.seed));
        let steps_an_epoch = labelled.steps();
        let device = network.devices().first().cloned().unwrap_or_else(Device::flex);
        let mechanism = Mechanism::new(job.method.clone(), labels.counts(), labels.len());
        let mut run = Self {
            job,
            network: Some(network),
            optimiser: OptimiserState::default(),
            progress: Progress::new(mechanism),
            chosen: None,
            labelled,
            unlabelled,
            held_out,
            shares: SetShares { labelled: labels.n_labelled() as f64 / labels.len() as f64 },
            steps_an_epoch,
            steps: steps_an_epoch * settings.epochs as u64,
            device,
            started: Instant::now(),
            seconds_before: 0.0,
        };
        if let Some(plan) = &job.checkpoint
            && plan.path.exists()
        {
            run.resume(Checkpoint::read(&plan.path)?, plan)?;
        }
        Ok(run)
    }

    fn resume(&mut self, checkpoint: Checkpoint, plan: &CheckpointPlan) -> Result<(), TrainError> {
        checkpoint.check(self.fingerprint(), &plan.path)?;
        let network = self.network.take().expect("a network outside of steps");
        self.network = Some(parameters::import(network, &checkpoint.network, &plan.path)?);
        self.seconds_before = checkpoint.progress.seconds;
        (self.optimiser, self.chosen, self.progress) = (checkpoint.optimiser, checkpoint.chosen, checkpoint.progress);
        Ok(())
    }

    /// What a checkpoint must agree with to be this run's.
    fn fingerprint(&self) -> String {
        let settings = serde_json::to_string(&(self.job.settings, &self.job.method, self.job.consistency.name()));
        format!(
            "{} rows, {:?} labels, {}",
            self.job.labels.len(),
            self.job.labels.counts(),
            settings.unwrap_or_default()
        )
    }

    fn save(&mut self) -> Result<(), TrainError> {
        let Some(plan) = &self.job.checkpoint else { return Ok(()) };
        self.progress.seconds = self.seconds();
        self.progress.fingerprint = self.fingerprint();
        let network = parameters::export(self.network.as_ref().expect("a network outside of steps"));
        Checkpoint {
            network,
            optimiser: self.optimiser.clone(),
            chosen: self.chosen.clone(),
            progress: self.progress.clone(),
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
        let step = self.progress.step;
        let settings = self.job.settings;
        let network = self.network.take().expect("a network outside of steps");
        let risk = self.risk(&network, step)?;
        let loss: f32 = risk.clone().into_data().iter::<f32>().sum();
        if !loss.is_finite() {
            return Err(TrainError::Diverged { step, loss });
        }
        let rate = settings.learning_rate * settings.schedule.factor(step, self.steps);
        let gradients = risk.backward();
        drop(risk);
        self.network = Some(self.optimiser.step(network, gradients, settings.optimiser, rate, settings.averaging));
        self.progress.step += 1;
        self.progress.epoch_loss += f64::from(loss);
        Ok(())
    }

    /// The batch's risk, with gradients.
    fn risk(&mut self, network: &M, step: u64) -> Result<Tensor<1>, TrainError> {
        let method = &self.job.method;
        let labelled = self.labelled.rows(step);
        let with_unlabelled =
            (method.uses_unlabelled() || *method == Method::Likelihood) && !self.unlabelled.is_empty();
        let unlabelled = if with_unlabelled { self.unlabelled.rows(step) } else { Vec::new() };
        let consistency = method.uses_unlabelled() && with_unlabelled;
        let needs = if consistency { self.job.consistency.needs() } else { Default::default() };
        let rows: Vec<usize> = labelled.iter().chain(&unlabelled).copied().collect();
        let weak = self.batch(&rows, View::Weak, Purpose::Weak, step);
        let strong = needs.strong.then(|| self.batch(&rows, View::Strong, Purpose::Strong, step));
        // One pass through the network for all views, so that batch norm sees one batch.
        let both = strong.map_or(weak.clone(), |strong| Tensor::cat(vec![weak.clone(), strong], 0));
        let scores = network.forward(Tensor::from_inner(both));
        let (n_l, n) = (labelled.len(), rows.len());
        let weak_scores = scores.clone().narrow(0, 0, n);
        let y: Vec<i64> =
            labelled.iter().map(|&row| self.job.labels.get(row).map_or(0, |class| i64::from(class.0))).collect();
        let y: Tensor<1, Int> = Tensor::from_data(TensorData::new(y, [n_l]), &self.device);
        let labelled_scores = weak_scores.clone().narrow(0, 0, n_l);
        if *method == Method::Likelihood {
            let phi = tensor(self.progress.mechanism.phi(), &self.device);
            return Ok(if with_unlabelled {
                let unlabelled_scores = weak_scores.narrow(0, n_l, n - n_l);
                observed_likelihood(labelled_scores, y, unlabelled_scores, phi, self.shares)
            } else {
                cross_entropy(labelled_scores, y).mean()
            });
        }
        // Without weights, the logits are those of p(y | x, r) instead of p(y | x).
        let phi = match method {
            Method::Adjusted(_) => Some(self.progress.mechanism.phi().to_vec()),
            _ => None,
        };
        let given = |scores: Tensor<2>, labelled| match &phi {
            Some(phi) => logits_given(labelled, scores, phi),
            None => scores,
        };
        let ell = cross_entropy(given(labelled_scores, true), y.clone());
        let weighting = match method {
            Method::CompleteCase | Method::Classical | Method::Adjusted(_) => Weighting::Classical,
            Method::Imputed(_) => Weighting::Propensity(Tensor::ones([self.job.labels.n_classes()], &self.device)),
            _ => {
                let inverse = self.inverse_phi(&weak_scores, n_l, &ell);
                let labelled_shares: Vec<f64> = self.job.labels.counts().iter().map(|&count| count as f64).collect();
                let n_labelled = self.job.labels.n_labelled() as f64;
                let labelled_shares =
                    tensor(&labelled_shares.iter().map(|c| c / n_labelled).collect::<Vec<_>>(), &self.device);
                Weighting::Propensity(self.job.settings.stabiliser.apply(inverse, labelled_shares, self.shares))
            }
        };
        let h = consistency.then(|| {
            let teacher = needs.teacher.then(|| Tensor::from_inner(self.averaged_of(network).forward(weak)));
            let views = Views {
                weak: given(weak_scores, false),
                strong: needs.strong.then(|| given(scores.narrow(0, n, n), false)),
                teacher: teacher.map(|teacher| given(teacher, false)),
                targets: self.job.targets.filter(|_| needs.targets).map(|targets| self.targets(targets, &rows)),
                thresholds: tensor(&self.thresholds(), &self.device),
            };
            let h = self.job.consistency.loss(&views);
            (h.clone().narrow(0, 0, n_l), h.narrow(0, n_l, n - n_l))
        });
        Ok(ssl_risk(Losses { ell, y, h }, &weighting, self.job.settings.lambda, self.shares))
    }

    fn targets(&self, targets: &[f32], rows: &[usize]) -> Tensor<2> {
        let k = self.job.labels.n_classes();
        let values: Vec<f32> = rows.iter().flat_map(|&row| &targets[row * k..(row + 1) * k]).copied().collect();
        Tensor::from_data(TensorData::new(values, [rows.len(), k]), &self.device)
    }

    fn batch(&self, rows: &[usize], view: View, purpose: Purpose, step: u64) -> Tensor<2> {
        let width = self.job.examples.shape().width();
        let mut values = Vec::with_capacity(rows.len() * width);
        let draw = Draw { seed: purpose.seed(self.job.settings.seed), step };
        self.job.examples.gather(rows, view, self.job.settings.augment.as_ref(), draw, &mut values);
        Tensor::from_data(TensorData::new(values, [rows.len(), width]), &self.device.clone().inner())
    }

    /// 1/phi for this batch; the mechanism takes note of it.
    fn inverse_phi(&mut self, scores: &Tensor<2>, n_l: usize, ell: &Tensor<1>) -> Tensor<1> {
        let n = scores.dims()[0];
        let p = softmax(scores.clone(), 1);
        // eq:py for all rows, from a batch of each set.
        let mean = |from: usize, count: usize| p.clone().narrow(0, from, count).mean_dim(0).squeeze_dim::<1>(0);
        let shares = if n > n_l {
            mean(0, n_l).mul_scalar(self.shares.labelled) + mean(n_l, n - n_l).mul_scalar(self.shares.unlabelled())
        } else {
            mean(0, n_l)
        };
        let loss = ell.clone().detach().mean().into_data().iter::<f32>().map(f64::from).sum();
        self.progress.mechanism.inverse(shares, loss, &self.device)
    }

    fn thresholds(&self) -> Vec<f64> {
        let threshold = self.job.settings.threshold;
        let mechanism = &self.progress.mechanism;
        match threshold.rule {
            ThresholdRule::Fixed => vec![threshold.tau; mechanism.phi().len()],
            ThresholdRule::Phi => mnar::threshold::adaptive(threshold.tau, mechanism.phi(), threshold.beta),
            ThresholdRule::Shares => mnar::threshold::adaptive(threshold.tau, &mechanism.shares(), threshold.beta),
        }
    }

    fn end_epoch(&mut self) -> Result<Option<EpochRecord>, TrainError> {
        let epoch = (self.progress.step / self.steps_an_epoch) as usize;
        let settings = self.job.settings;
        let refresh = match (&self.job.method, settings.refresh) {
            // Algorithm 1's other half: phi given theta, solved exactly in place of a step.
            (Method::Likelihood, _) => true,
            (Method::Given(_), Some(every)) => epoch.is_multiple_of(every),
            _ => false,
        };
        if refresh && self.job.labels.n_unlabelled() > 0 {
            let phi = refreshed_phi(&self.averaged(), self.job.examples, self.job.labels)?;
            self.progress.mechanism.refresh(&phi);
        }
        let scored = self.validation_scores(&self.averaged());
        // Weighted by 1/phi where they are held-out labelled rows, so that they are means over the population.
        let validation = scored.as_ref().map(|(scores, rows)| weighted_scores(scores, rows, 1.0));
        let record = EpochRecord {
            step: self.progress.step,
            epoch,
            loss: self.progress.epoch_loss / self.steps_an_epoch as f64,
            validation_risk: validation.map(|(risk, _)| risk),
            validation_accuracy: validation.map(|(_, accuracy)| accuracy),
            learning_rate: settings.learning_rate * settings.schedule.factor(self.progress.step - 1, self.steps),
            phi: self.progress.mechanism.phi().to_vec(),
            seconds: self.seconds(),
        };
        self.progress.epoch_loss = 0.0;
        if self.keeps(epoch, scored, validation) {
            self.chosen = Some(self.optimiser.average.clone());
        }
        self.progress.history.push(record.clone());
        if self.progress.step >= self.steps {
            self.progress.ended = Some(Ended::Finished);
        } else if settings.patience.is_some_and(|patience| epoch - self.progress.choice.best_epoch() >= patience) {
            self.progress.ended = Some(Ended::EarlyStop);
        }
        Ok(Some(record))
    }

    /// Are the weights of this epoch to be kept, by the rows that it is chosen by?
    fn keeps(&mut self, epoch: usize, scored: Option<ScoredRows>, risk_and_accuracy: Option<(f64, f64)>) -> bool {
        let choice = &mut self.progress.choice;
        let (Some((scores, rows)), Some((risk, accuracy))) = (scored, risk_and_accuracy) else {
            choice.take(epoch);
            return true;
        };
        match (self.job.validation, &self.job.method) {
            (Some(Validation { by: Criterion::Accuracy, .. }), _) => choice.offer_best(epoch, -accuracy),
            // Where probabilities are the goal: those of the folds lead to phi, and Algorithm 1's phi goes astray when
            // its model overlearns.
            (Some(Validation { by: Criterion::LogLoss, .. }), _)
            | (None, Method::CompleteCase | Method::Likelihood) => choice.offer_best(epoch, risk),
            (None, _) => choice.offer_later(epoch, &scores, &rows),
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

    /// Class and weight of every held-out row: 1/phi, or 1 where the method knows no mechanism.
    fn held_out_weights(&self) -> Vec<(usize, f64)> {
        let phi = self.progress.mechanism.phi();
        let weighted = !matches!(self.job.method, Method::CompleteCase | Method::Classical);
        let class = |row: usize| self.job.labels.get(row).map_or(0, |class| class.index());
        let weight = |y: usize| if weighted { 1.0 / phi[y] } else { 1.0 };
        self.held_out.iter().map(|&row| (class(row), weight(class(row)))).collect()
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
        // Algorithm 1 goes on after its model has begun to overlearn the labels, and phi goes astray with it: take the
        // phi that belongs to the chosen weights.
        let chosen = self.progress.history.iter().find(|record| record.epoch == self.progress.choice.epoch);
        if let (Method::Likelihood, Some(phi)) = (&self.job.method, chosen.map(|record| record.phi.clone())) {
            self.progress.mechanism.refresh(&Phi::new(phi)?);
        }
        let temperature = self.temperature(&network);
        Ok(Trained {
            network,
            temperature,
            mechanism: self.progress.mechanism,
            history: self.progress.history,
            ended,
            chosen_epoch: self.progress.choice.epoch,
            held_out: self.held_out,
        })
    }
}
