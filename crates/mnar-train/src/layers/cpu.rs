//! The interface to burn's CPU backend: tensors as slices, slices as tensors, and the instructions that process them.

use crate::error::TrainError;
use burn::backend::flex::{FlexTensor, Layout};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex};
use burn::tensor::{Bytes, DType, Device, Shape, Tensor};
use mnar_kernels::Isa;
use std::sync::{PoisonError, RwLock};

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

/// What computes layers on the CPU.
#[derive(Clone, Copy)]
enum Kernels {
    /// Ours, with the fastest instruction set of the processor.
    Fastest,
    /// Ours, with this instruction set.
    Ours(Isa),
    /// burn's own operations.
    Burn,
}

static SELECTED: RwLock<Kernels> = RwLock::new(Kernels::Fastest);

/// The name that selects burn's own operations.
const BURN: &str = "burn";

/// Selects what computes the layers on the CPU, in the whole process: `avx512`, `avx2` or `portable` for our kernels with
/// this instruction set, or `burn` for burn's own operations. Without a selection, our kernels use the fastest instruction
/// set of the processor.
///
/// This is for programs to call, once, at their start: sums have other bits with another instruction set.
///
/// # Errors
/// The name is unknown, or names an instruction set that this processor lacks.
pub fn select_cpu_kernels(name: &str) -> Result<(), TrainError> {
    let selected = match name {
        BURN => Kernels::Burn,
        _ => match name.parse::<Isa>() {
            Ok(isa) if isa.is_available() => Kernels::Ours(isa),
            Ok(_) => return Err(TrainError::Kernels { problem: "this processor does not have it" }),
            Err(_) => return Err(TrainError::Kernels { problem: "there is no such instruction set" }),
        },
    };
    *SELECTED.write().unwrap_or_else(PoisonError::into_inner) = selected;
    Ok(())
}

/// The instruction set of our kernels, or `None` where burn's own operations were selected.
pub(super) fn kernels() -> Option<Isa> {
    match *SELECTED.read().unwrap_or_else(PoisonError::into_inner) {
        Kernels::Fastest => Some(Isa::detect()),
        Kernels::Ours(isa) => Some(isa),
        Kernels::Burn => None,
    }
}

/// What computes layers on the CPU: the name of an instruction set of our kernels, or `burn`. See
/// [`select_cpu_kernels`].
pub fn cpu_kernels() -> String {
    kernels().map_or(BURN.to_owned(), |isa| isa.to_string())
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

    #[test]
    fn unknown_kernels_are_refused() {
        let error = select_cpu_kernels("fast").unwrap_err().to_string();
        assert!(error.starts_with("there is no such instruction set; say avx512, avx2, portable or burn"), "{error}");
        assert_eq!(cpu_kernels(), Isa::detect().to_string());
    }
}
