//! The state of a training run in one file: weights, optimiser, averages, mechanism and history.

use crate::error::TrainError;
use crate::mechanism::Mechanism;
use crate::optimiser::OptimiserState;
use crate::parameters::Named;
use crate::storage;
use crate::trainer::{Ended, Job};
use crate::validation::Choice;
use mnar::Phi;
use mnar::progress::EpochRecord;
use mnar_data::Checksum;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Everything except the tensors.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) step: u64,
    /// Sum of the risks of the epoch's batches so far.
    pub(crate) epoch_loss: f64,
    pub(crate) mechanism: Mechanism,
    pub(crate) history: Vec<EpochRecord>,
    pub(crate) choice: Choice,
    pub(crate) ended: Option<Ended>,
    pub(crate) seconds: f64,
    pub(crate) fingerprint: String,
    steps_of_optimiser: u64,
}

impl State {
    pub(crate) fn new(mechanism: Mechanism) -> Self {
        Self {
            step: 0,
            epoch_loss: 0.0,
            mechanism,
            history: Vec::new(),
            choice: Choice::default(),
            ended: None,
            seconds: 0.0,
            fingerprint: String::new(),
            steps_of_optimiser: 0,
        }
    }
}

pub(crate) struct Checkpoint {
    pub(crate) network: Vec<Named>,
    pub(crate) optimiser: OptimiserState,
    pub(crate) chosen: Option<Vec<Vec<f32>>>,
    pub(crate) state: State,
}

impl Checkpoint {
    pub(crate) fn write(mut self, path: &Path) -> Result<(), TrainError> {
        self.state.steps_of_optimiser = self.optimiser.steps;
        let text = serde_json::to_string(&self.state)
            .map_err(|error| TrainError::unreadable(path, "cannot hold this state", error))?;
        let mut tensors: Vec<Named> = self.network;
        tensors.iter_mut().for_each(|tensor| tensor.name = format!("network/{}", tensor.name));
        let lists = [
            ("first", &self.optimiser.first),
            ("second", &self.optimiser.second),
            ("average", &self.optimiser.average),
        ];
        let chosen = self.chosen.as_ref().map(|chosen| ("chosen", chosen));
        for (list, vectors) in lists.into_iter().chain(chosen) {
            tensors.extend(vectors.iter().enumerate().map(|(i, values)| Named {
                name: format!("{list}/{i}"),
                shape: vec![values.len()],
                values: values.clone(),
            }));
        }
        storage::write_sealed(path, &tensors, text)
    }

    pub(crate) fn read(path: &Path) -> Result<Self, TrainError> {
        let (tensors, text) = storage::read_sealed(path)?;
        let state: State =
            serde_json::from_str(&text).map_err(|error| TrainError::unreadable(path, "is not a checkpoint", error))?;
        let mut network = Vec::new();
        let mut lists: [Vec<(usize, Vec<f32>)>; 4] = Default::default();
        for tensor in tensors {
            let unknown = || TrainError::bad_file(path, format!("has an unknown tensor `{}`", tensor.name));
            let (list, name) = tensor.name.split_once('/').ok_or_else(unknown)?;
            match ["first", "second", "average", "chosen"].iter().position(|known| *known == list) {
                Some(i) => lists[i].push((name.parse().map_err(|_| unknown())?, tensor.values)),
                None if list == "network" => network.push(Named { name: name.to_owned(), ..tensor }),
                None => return Err(unknown()),
            }
        }
        let [first, second, average, chosen] = lists.map(|mut list| {
            list.sort_by_key(|(i, _)| *i);
            list.into_iter().map(|(_, values)| values).collect::<Vec<_>>()
        });
        let optimiser = OptimiserState { steps: state.steps_of_optimiser, first, second, average };
        Ok(Self { network, optimiser, chosen: (!chosen.is_empty()).then_some(chosen), state })
    }

    /// Checks that the checkpoint belongs to this run.
    pub(crate) fn check(&self, fingerprint: &str, path: &Path) -> Result<(), TrainError> {
        if self.state.fingerprint == fingerprint {
            return Ok(());
        }
        Err(TrainError::bad_file(
            path,
            "belongs to a run with other data or settings; resume it with the same ones, or start in an empty folder",
        ))
    }

    /// Checks that the state is one that training a network with these tensors could have left.
    pub(crate) fn check_state(
        &self,
        lengths: &[usize],
        classes: usize,
        steps: u64,
        path: &Path,
    ) -> Result<(), TrainError> {
        let OptimiserState { first, second, average, .. } = &self.optimiser;
        let all_tensors = |vectors: &[Vec<f32>]| vectors.iter().map(Vec::len).eq(lengths.iter().copied());
        // Running statistics have no moments.
        let mut left = lengths.iter();
        let some_tensors = first.iter().all(|vector| left.any(|length| *length == vector.len()));
        let pairs = first.len() == second.len()
            && first.iter().zip(second).all(|(first, second)| second.is_empty() || second.len() == first.len());
        let averages = (average.is_empty() && self.state.step == 0) || all_tensors(average);
        let chosen = self.chosen.as_deref().is_none_or(all_tensors);
        let ended = self.state.step <= steps && (self.state.ended.is_none() || self.state.step > 0);
        if some_tensors && pairs && averages && chosen && ended && self.state.mechanism.check(classes) {
            return Ok(());
        }
        Err(TrainError::bad_file(path, "is not a checkpoint of this network; remove it to do its work again"))
    }
}

/// What a checkpoint must agree with to belong to a run: data, labels and settings.
pub(crate) fn fingerprint(job: &Job<'_>) -> String {
    let Job { examples, labels, method, consistency, settings, .. } = job;
    let settings = serde_json::to_string(&(settings, method, consistency.name())).unwrap_or_default();
    let sum_of = |numbers: &mut dyn Iterator<Item = f64>| {
        let mut checksum = Checksum::default();
        numbers.for_each(|number| checksum.add(&number.to_le_bytes()));
        checksum.finish()
    };
    let of_labels = sum_of(&mut labels.as_slice().iter().map(|y| y.map_or(-1.0, |class| f64::from(class.0))));
    let weights =
        job.weights.map_or_else(String::new, |weights| format!(", weights {}", sum_of(&mut weights.iter().copied())));
    let row_phi = job.row_phi.map_or_else(String::new, |rows| {
        format!(", phi by row {}", sum_of(&mut rows.iter().flat_map(Phi::iter).copied()))
    });
    let targets = job.targets.map_or_else(String::new, |targets| {
        format!(", targets {}", sum_of(&mut targets.iter().map(|target| f64::from(*target))))
    });
    let inputs = examples.checksum();
    format!(
        "{} rows {inputs}, {:?} labels {of_labels}{weights}{row_phi}{targets}, {settings}",
        labels.len(),
        labels.counts()
    )
}
