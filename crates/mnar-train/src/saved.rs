//! A trained model on disk: weights as safetensors, everything else as JSON, readable from any language.

use crate::error::TrainError;
use crate::examples::{Encoding, InputShape};
use crate::model::{Architecture, Network};
use crate::parameters::Named;
use crate::{parameters, storage};
use burn::tensor::Device;
use mnar::covariates::TermEncoder;
use mnar::mechanism::Mechanism;
use mnar::{Covariates, Phi};
use mnar_data::AtomicFile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

const WEIGHTS: &str = "weights.safetensors";
const DESCRIPTION: &str = "model.json";

/// The description of a model: everything but its weights.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

impl ModelDescription {
    /// Checks that the parts go together and that every number is in its range, before any of them is believed.
    fn check(&self) -> Result<(), &'static str> {
        let mut classes: Vec<&str> = self.classes.iter().map(String::as_str).collect();
        classes.sort_unstable();
        if classes.is_empty() || classes.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("it has no classes, or a class twice");
        }
        if self.phi.len() != classes.len() {
            return Err("phi is not one number per class");
        }
        if !(self.temperature > 0.0 && self.temperature.is_finite()) {
            return Err("the temperature is not a positive number");
        }
        if self.encoding.shape() != self.input {
            return Err("the input of the network is not what the encoding makes");
        }
        self.encoding.check()?;
        match &self.by_columns {
            Some(by_columns) => {
                by_columns.terms.check()?;
                by_columns.mechanism.check(classes.len(), by_columns.terms.n_terms())
            }
            None => Ok(()),
        }
    }
}

/// Refuses a version such as `99.0.0` that is later than this one, and what is not a version.
pub fn check_version(version: &str) -> Result<(), String> {
    let parts = |text: &str| -> Option<Vec<u64>> {
        let numbers = text.split(['-', '+']).next()?.split('.').map(|part| part.parse().ok());
        numbers.collect::<Option<Vec<u64>>>().filter(|numbers| numbers.len() == 3)
    };
    match parts(version) {
        None => Err(format!("`{version}` is not a version of mnar")),
        written if written > parts(env!("CARGO_PKG_VERSION")) => {
            Err(format!("it was written by mnar {version}; use that version or a later one"))
        }
        Some(_) => Ok(()),
    }
}

/// A mechanism that depends on columns, and how these become its terms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

/// Reads the description of the model in a folder, without its weights.
pub fn load_description(folder: &Path) -> Result<ModelDescription, TrainError> {
    let path = folder.join(DESCRIPTION);
    let text = std::fs::read_to_string(&path).map_err(TrainError::io("read", &path))?;
    read_description(&path, &text)
}

/// Reads a model from a folder. Nothing in it is believed unseen: numbers out of range, parts that do not go together, and
/// weights of another network are refused, before memory is asked for.
pub fn load_model(folder: &Path, device: &Device) -> Result<(Network, ModelDescription), TrainError> {
    let description = load_description(folder)?;
    let weights = folder.join(WEIGHTS);
    let (tensors, _) = storage::read(&weights)?;
    Ok((build(&description, &tensors, &weights, device)?, description))
}

/// The network of this description with these weights, which were read from `source`.
fn build(
    description: &ModelDescription,
    tensors: &[Named],
    source: &Path,
    device: &Device,
) -> Result<Network, TrainError> {
    let (input, classes) = (description.input, description.classes.len());
    let expected = description.architecture.size(input, classes);
    let found: usize = tensors.iter().map(|tensor| tensor.values.len()).sum();
    if found as f64 != expected {
        let what = format!("holds {found} numbers, but the network in {DESCRIPTION} has {expected:.0}");
        return Err(TrainError::bad_file(source, what));
    }
    parameters::import(description.architecture.build(input, classes, 0, device)?, tensors, source)
}

/// Writes several networks of one architecture into one file, with an accompanying text. The names of the weights of the first
/// begin with `0.`.
pub fn save_networks(path: &Path, networks: &[Network], text: String) -> Result<(), TrainError> {
    let of_network = |(i, network): (usize, &Network)| {
        parameters::export(network).into_iter().map(move |named| Named { name: format!("{i}.{}", named.name), ..named })
    };
    storage::write(path, &networks.iter().enumerate().flat_map(of_network).collect::<Vec<_>>(), text)
}

/// Reads what [`save_networks`] wrote, at least one network of this description and the text. As with [`load_model`], nothing is
/// believed unseen.
pub fn load_networks(
    path: &Path,
    description: &ModelDescription,
    device: &Device,
) -> Result<(Vec<Network>, String), TrainError> {
    let (tensors, text) = storage::read(path)?;
    let mut networks: BTreeMap<usize, Vec<Named>> = BTreeMap::new();
    for tensor in tensors {
        let place = tensor.name.split_once('.').and_then(|(i, name)| Some((i.parse().ok()?, name.to_owned())));
        let (i, name) =
            place.ok_or_else(|| TrainError::bad_file(path, format!("`{}` is of no network", tensor.name)))?;
        networks.entry(i).or_default().push(Named { name, ..tensor });
    }
    if networks.is_empty() {
        return Err(TrainError::bad_file(path, "holds no network"));
    }
    let networks = networks.values().map(|tensors| build(description, tensors, path, device));
    Ok((networks.collect::<Result<_, _>>()?, text))
}

fn read_description(path: &Path, text: &str) -> Result<ModelDescription, TrainError> {
    /// First the version alone: a later one need not have today's fields.
    #[derive(Deserialize)]
    struct Written {
        version: String,
    }
    let not_one = |error| TrainError::unreadable(path, "is not the description of a model", error);
    let Written { version } = serde_json::from_str(text).map_err(not_one)?;
    check_version(&version).map_err(|why| TrainError::bad_file(path, why))?;
    let description: ModelDescription = serde_json::from_str(text).map_err(not_one)?;
    description
        .check()
        .map_err(|why| TrainError::bad_file(path, format!("is not the description of a model: {why}")))?;
    Ok(description)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn description() -> Value {
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "architecture": { "name": "mlp", "hidden": [3] },
            "input": { "row": 2 },
            "classes": ["a", "b"],
            "phi": [0.5, 1.0],
            "by_columns": {
                "mechanism": { "classes": [0.1, -0.2], "terms": [0.5] },
                "terms": { "columns": [{ "name": "x", "kind": "numeric", "mean": 1.0, "sd": 2.0, "missing": false }] },
            },
            "temperature": 1.5,
            "encoding": {
                "kind": "table",
                "columns": [
                    { "name": "x", "encoding": { "numeric": { "scale": { "mean": 1.0, "sd": 2.0 }, "missing": false } } },
                    { "name": "c", "encoding": { "categorical": { "levels": ["u"], "missing": false } } },
                ],
                "dropped": [],
                "missing": [],
            },
        })
    }

    fn read(value: &Value) -> Result<ModelDescription, TrainError> {
        read_description(Path::new("model.json"), &value.to_string())
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        read(&description()).unwrap();
        let cases = [
            ("/phi", json!([]), "one number per class"),
            ("/phi", json!([1.5, -3.0]), "not the description"),
            ("/temperature", json!(-1.0), "temperature"),
            ("/temperature", json!(0.0), "temperature"),
            ("/classes", json!(["a", "a"]), "a class twice"),
            ("/input/row", json!(9_000_000_000_u64), "the input of the network"),
            ("/version", json!("99.0.0"), "written by mnar 99.0.0"),
            ("/version", json!("new"), "not a version"),
            ("/by_columns/mechanism/classes", json!([1.0]), "one per class"),
            ("/by_columns/mechanism/terms", json!([1e300]), "makes sense"),
            ("/by_columns/terms/columns/0/sd", json!(-1.0), "standard deviation"),
            ("/encoding/columns/0/encoding/numeric/scale/sd", json!(0.0), "standard deviation"),
            ("/encoding/columns/1/name", json!("x"), "encoded twice"),
            ("/temperature", json!(null), "not the description"),
        ];
        for (pointer, value, says) in cases {
            let mut changed = description();
            *changed.pointer_mut(pointer).unwrap() = value;
            let error = read(&changed).unwrap_err().to_string();
            assert!(error.contains(says), "{pointer}: {error}");
        }
        let mut images = description();
        images["encoding"] = json!({ "kind": "images", "shape": { "depth": 1, "height": 2, "width": 3, "channels": 1 },
            "mean": [0.5], "sd": [0.1] });
        images["input"] = json!({ "image": images["encoding"]["shape"] });
        images["by_columns"] = Value::Null;
        read(&images).unwrap();
        for (pointer, value) in [("sd", json!([0.0])), ("mean", json!([0.5, 0.5]))] {
            let mut changed = images.clone();
            changed["encoding"][pointer] = value;
            assert!(read(&changed).unwrap_err().to_string().contains("scaling of the channels"), "{pointer}");
        }
        for pointer in ["/encoding/shape/height", "/input/image/height"] {
            *images.pointer_mut(pointer).unwrap() = json!(u64::MAX);
        }
        assert!(read(&images).unwrap_err().to_string().contains("too large"));
    }

    /// Layers of a size that the file does not hold are refused before they are built: these would take 8 TB.
    #[test]
    fn a_network_larger_than_its_file_is_not_built() {
        let folder = tempfile::tempdir().unwrap();
        let small: ModelDescription = serde_json::from_value(description()).unwrap();
        let device = Device::flex();
        let network = small.architecture.build(small.input, 2, 0, &device).unwrap();
        save_model(folder.path(), &network, &small).unwrap();
        load_model(folder.path(), &device).unwrap();
        let large = ModelDescription { architecture: Architecture::Mlp { hidden: vec![1 << 40] }, ..small };
        std::fs::write(folder.path().join(DESCRIPTION), serde_json::to_string(&large).unwrap()).unwrap();
        let error = load_model(folder.path(), &device).unwrap_err().to_string();
        assert!(error.contains("holds 17 numbers, but the network in model.json has"), "{error}");
    }
}
