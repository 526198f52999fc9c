//! The seam to burn's CPU backend: tensors as slices, and slices as tensors.

use burn::backend::flex::{FlexTensor, Layout};
use burn::backend::{Autodiff, Flex};
use burn::tensor::{Bytes, DType, Shape};

/// The CPU backend with gradients.
pub(super) type Tracked = Autodiff<Flex>;

/// Values in the order of their shape.
pub(super) fn contiguous(tensor: FlexTensor) -> FlexTensor {
    if tensor.as_slice::<f32>().is_some() { tensor } else { tensor.to_contiguous() }
}

/// The values of a tensor made [`contiguous`].
pub(super) fn values(tensor: &FlexTensor) -> &[f32] {
    tensor.as_slice::<f32>().expect("made contiguous before")
}

/// A tensor that owns these values.
pub(super) fn tensor(values: Vec<f32>, shape: &[usize]) -> FlexTensor {
    FlexTensor::new(Bytes::from_elems(values), Layout::contiguous(Shape::from(shape.to_vec())), DType::F32)
}
