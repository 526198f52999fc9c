//! Tensors in safetensors files, written completely or not at all. A sealed file ends with a checksum of all that comes before.

use crate::error::TrainError;
use crate::parameters::Named;
use mnar_data::{AtomicFile, Checksum, Sum};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

/// Writes tensors and an accompanying text (JSON, under the key `mnar`).
pub fn write(path: &Path, tensors: &[Named], text: String) -> Result<(), TrainError> {
    put(path, &encode(path, tensors, text)?)
}

/// Reads tensors and the accompanying text.
pub fn read(path: &Path) -> Result<(Vec<Named>, String), TrainError> {
    decode(path, &std::fs::read(path).map_err(TrainError::io("read", path))?)
}

/// Like [`write()`], followed by a checksum. Other programs need not read such a file.
pub(crate) fn write_sealed(path: &Path, tensors: &[Named], text: String) -> Result<(), TrainError> {
    let mut data = encode(path, tensors, text)?;
    data.extend(Checksum::of(&data).to_bytes());
    put(path, &data)
}

/// Reads what [`write_sealed`] wrote, and nothing else.
pub(crate) fn read_sealed(path: &Path) -> Result<(Vec<Named>, String), TrainError> {
    let data = std::fs::read(path).map_err(TrainError::io("read", path))?;
    match data.split_last_chunk::<{ Sum::LEN }>() {
        Some((data, sum)) if Checksum::of(data).to_bytes() == *sum => decode(path, data),
        _ => Err(TrainError::bad_file(path, "is damaged: its checksum is wrong; remove it to do its work again")),
    }
}

fn put(path: &Path, data: &[u8]) -> Result<(), TrainError> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(data).map_err(TrainError::io("write", path))?;
    Ok(file.commit()?)
}

fn encode(path: &Path, tensors: &[Named], text: String) -> Result<Vec<u8>, TrainError> {
    let bytes: Vec<Vec<u8>> =
        tensors.iter().map(|tensor| tensor.values.iter().flat_map(|value| value.to_le_bytes()).collect()).collect();
    let views = tensors.iter().zip(&bytes).map(|(tensor, bytes)| {
        let view = TensorView::new(Dtype::F32, tensor.shape.clone(), bytes);
        (tensor.name.as_str(), view.expect("as many bytes as the shape requires"))
    });
    let metadata = HashMap::from([("mnar".to_owned(), text)]);
    safetensors::serialize(views, Some(metadata))
        .map_err(|error| TrainError::unreadable(path, "cannot hold these tensors", error))
}

fn decode(path: &Path, data: &[u8]) -> Result<(Vec<Named>, String), TrainError> {
    let damaged = |error| TrainError::unreadable(path, "is damaged or not a safetensors file", error);
    let (_, header) = SafeTensors::read_metadata(data).map_err(damaged)?;
    let text = header.metadata().as_ref().and_then(|metadata| metadata.get("mnar")).cloned();
    let text = text.ok_or_else(|| TrainError::bad_file(path, "was not written by mnar"))?;
    let tensors = SafeTensors::deserialize(data).map_err(damaged)?;
    let mut named = Vec::with_capacity(tensors.len());
    for (name, view) in tensors.iter() {
        if view.dtype() != Dtype::F32 {
            return Err(TrainError::bad_file(path, format!("`{name}` is not of type F32")));
        }
        let values: Vec<f32> =
            view.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        if values.iter().any(|value| !value.is_finite()) {
            return Err(TrainError::bad_file(path, format!("`{name}` holds a number that is not finite")));
        }
        named.push(Named { name: name.to_owned(), shape: view.shape().to_vec(), values });
    }
    Ok((named, text))
}
