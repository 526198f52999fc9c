//! The interface to burn's CPU backend: tensors as slices, slices as tensors, and the instructions that process them.

use burn::backend::flex::{FlexTensor, Layout};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex};
use burn::tensor::{Bytes, DType, Device, Shape, Tensor};
use mnar_kernels::{ISA_VARIABLE, Isa, UnknownIsa};
use std::sync::OnceLock;

/// The CPU backend with gradients.
pub(super) type Tracked = Autodiff<Flex>;

/// The tensor with its values in the order of its shape.
pub(super) fn contiguous(tensor: FlexTensor) -> FlexTensor {
    if tensor.as_slice::<f32>().is_some() { tensor } else { tensor.to_contiguous() }
}

/// A CPU tensor without gradients, its values in the order of its shape; `None` for any other tensor.
pub(super) fn plain<const D: usize>(tensor: &Tensor<D>) -> Option<FlexTensor> {
    tensor.clone().try_into_primitive::<Flex>().ok().map(contiguous)
}

/// Whether the tensor is on the CPU, with gradients.
pub(super) fn is_tracked<const D: usize>(tensor: &Tensor<D>) -> bool {
    tensor.clone().try_into_primitive::<Tracked>().is_ok()
}

/// A tensor used together with one that [`is_tracked`]. A tensor without a gradient, such as the input of a first
/// layer, may not be lifted yet.
pub(super) fn lifted<const D: usize>(tensor: Tensor<D>) -> FloatTensor<Tracked> {
    let tensor = if tensor.is_autodiff() { tensor } else { Tensor::from_inner(tensor) };
    tensor.try_into_primitive::<Tracked>().expect("one device for the input and the weights")
}

/// The values of a tensor that is [`contiguous`].
pub(super) fn values(tensor: &FlexTensor) -> &[f32] {
    tensor.as_slice::<f32>().expect("made contiguous before")
}

/// A tensor that owns these values.
pub(super) fn tensor(values: Vec<f32>, shape: &[usize]) -> FlexTensor {
    FlexTensor::new(Bytes::from_elems(values), Layout::contiguous(Shape::from(shape.to_vec())), DType::F32)
}

/// The value of [`ISA_VARIABLE`] that selects burn's own operations.
const BURN: &str = "burn";

/// The instruction set of our kernels, or `None` where burn's own operations were requested.
pub(super) fn kernels() -> Option<Isa> {
    static ASKED_FOR_BURN: OnceLock<bool> = OnceLock::new();
    let burn = *ASKED_FOR_BURN.get_or_init(|| std::env::var(ISA_VARIABLE).is_ok_and(|name| name == BURN));
    (!burn).then(Isa::current)
}

/// What computes layers on the CPU: the name of an instruction set of our kernels, or `burn`.
///
/// This is the fastest instruction set of the processor, unless the environment variable `MNAR_KERNELS` is `avx512`,
/// `avx2`, `portable` or `burn`.
///
/// # Errors
/// The variable has another value, or names an instruction set that this processor lacks.
pub fn cpu_kernels() -> Result<String, UnknownIsa> {
    match kernels() {
        Some(_) => Isa::from_environment().map(|isa| isa.to_string()),
        None => Ok(BURN.to_owned()),
    }
}

/// Whether our kernels run on this device.
pub(crate) fn is_cpu(device: &Device) -> bool {
    let probe = Tensor::<1>::zeros([1], device);
    plain(&probe).is_some() || is_tracked(&probe)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this failed, layers would silently be burn's own, and be compared with themselves.
    #[test]
    fn the_cpu_is_known_for_one() {
        assert!(is_cpu(&Device::flex()) && is_cpu(&Device::flex().autodiff()));
        assert!(is_tracked(&Tensor::<2>::zeros([2, 3], &Device::flex().autodiff())));
    }
}
