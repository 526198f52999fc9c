//! A trained model on disk: weights as safetensors, everything else as JSON, readable from any language.

use crate::error::TrainError;
use crate::examples::{Encoding, InputShape};
use crate::model::{Architecture, Network};
use crate::{parameters, storage};
use burn::tensor::Device;
use mnar_data::AtomicFile;
use serde::{Deserialize, Serialize};
use std::path::Path;

const WEIGHTS: &str = "weights.safetensors";
const DESCRIPTION: &str = "model.json";

/// The description of a model: everything but its weights.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ModelDescription {
    /// The version of mnar that wrote it.
    pub version: String,
    /// The network.
    pub architecture: Architecture,
    /// The shape of its input.
    pub input: InputShape,
    /// The classes, in the order of its outputs.
    pub classes: Vec<String>,
    /// P(labelled | class), for the posterior of an unlabelled row.
    pub phi: Vec<f64>,
    /// The temperature by which logits are divided before the softmax.
    pub temperature: f64,
    /// How raw inputs become numbers.
    pub encoding: Encoding,
}

/// Writes a model into a folder, which is created if it does not exist.
pub fn save_model(folder: &Path, network: &Network, description: &ModelDescription) -> Result<(), TrainError> {
    std::fs::create_dir_all(folder).map_err(TrainError::io(folder))?;
    let text = to_json(description, folder)?;
    storage::write(&folder.join(WEIGHTS), &parameters::export(network), text.clone())?;
    write_text(&folder.join(DESCRIPTION), &text)
}

/// Reads a model from a folder.
pub fn load_model(folder: &Path, device: &Device) -> Result<(Network, ModelDescription), TrainError> {
    let path = folder.join(DESCRIPTION);
    let text = std::fs::read_to_string(&path).map_err(TrainError::io(&path))?;
    let description: ModelDescription = serde_json::from_str(&text)
        .map_err(|error| TrainError::BadFile { path, what: format!("is not a model's description: {error}") })?;
    let weights = folder.join(WEIGHTS);
    let (tensors, _) = storage::read(&weights)?;
    let network = description.architecture.build(description.input, description.classes.len(), 0, device)?;
    Ok((parameters::import(network, &tensors, &weights)?, description))
}

/// Writes a text file completely or not at all.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), TrainError> {
    Ok(AtomicFile::write_text(path, text)?)
}

pub(crate) fn to_json(value: &impl Serialize, path: &Path) -> Result<String, TrainError> {
    let text = serde_json::to_string_pretty(value);
    Ok(text.map_err(|error| TrainError::BadFile { path: path.to_owned(), what: error.to_string() })? + "\n")
}
