//! A trained model on disk: weights as safetensors, everything else as JSON, readable from any language.

use crate::error::TrainError;
use crate::examples::{Encoding, InputShape};
use crate::model::{Architecture, Network};
use crate::{parameters, storage};
use burn::tensor::Device;
use mnar::covariates::TermEncoder;
use mnar::mechanism::Mechanism;
use mnar::{Covariates, Phi};
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
    /// The architecture of the network.
    pub architecture: Architecture,
    /// The shape of its input.
    pub input: InputShape,
    /// The classes, in the order of its outputs.
    pub classes: Vec<String>,
    /// P(labelled | class), for the posterior of an unlabelled row.
    pub phi: Phi,
    /// P(labelled | class, columns), where labelling depends on columns too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_columns: Option<LabellingByColumns>,
    /// Logits are divided by this before the softmax.
    pub temperature: f64,
    /// How raw inputs become numbers.
    pub encoding: Encoding,
}

/// A mechanism that depends on columns, and how these become its terms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabellingByColumns {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// How columns become its terms.
    pub terms: TermEncoder,
}

impl LabellingByColumns {
    /// P(labelled | class, columns) of rows with these columns.
    pub fn row_phi(&self, covariates: &Covariates) -> Result<Vec<Phi>, TrainError> {
        Ok(self.mechanism.rows(&self.terms.terms(covariates)?, covariates.len()))
    }
}

/// Writes a model into a folder, which is created if it does not exist.
pub fn save_model(folder: &Path, network: &Network, description: &ModelDescription) -> Result<(), TrainError> {
    std::fs::create_dir_all(folder).map_err(TrainError::io("create", folder))?;
    let text = serde_json::to_string_pretty(description);
    let text = text.map_err(|error| TrainError::unreadable(folder, "cannot hold this description", error))? + "\n";
    storage::write(&folder.join(WEIGHTS), &parameters::export(network), text.clone())?;
    Ok(AtomicFile::write_text(&folder.join(DESCRIPTION), &text)?)
}

/// Reads a model from a folder.
pub fn load_model(folder: &Path, device: &Device) -> Result<(Network, ModelDescription), TrainError> {
    let path = folder.join(DESCRIPTION);
    let text = std::fs::read_to_string(&path).map_err(TrainError::io("read", &path))?;
    let description: ModelDescription = serde_json::from_str(&text)
        .map_err(|error| TrainError::unreadable(path, "is not the description of a model", error))?;
    let weights = folder.join(WEIGHTS);
    let (tensors, _) = storage::read(&weights)?;
    let network = description.architecture.build(description.input, description.classes.len(), 0, device)?;
    Ok((parameters::import(network, &tensors, &weights)?, description))
}
