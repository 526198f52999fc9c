//! The seam to burn's CPU backend: tensors as slices, slices as tensors, and which instructions work on them.

use burn::backend::flex::{FlexTensor, Layout};
use burn::backend::{Autodiff, Flex};
use burn::tensor::{Bytes, DType, Device, Shape, Tensor};
use mnar_kernels::{ISA_VARIABLE, Isa, UnknownIsa};
use std::sync::OnceLock;

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

/// What [`ISA_VARIABLE`] says for burn's own operations.
const BURN: &str = "burn";

/// The instruction set of our kernels, or none where burn's own operations were asked for.
pub(super) fn kernels() -> Option<Isa> {
    static ASKED_FOR_BURN: OnceLock<bool> = OnceLock::new();
    let burn = *ASKED_FOR_BURN.get_or_init(|| std::env::var(ISA_VARIABLE).is_ok_and(|name| name == BURN));
    (!burn).then(Isa::current)
}

/// What computes layers on the CPU: the name of an instruction set of our kernels, or `burn`.
///
/// The fastest the processor has, unless the environment variable `MNAR_KERNELS` says `avx512`, `avx2`, `portable` or
/// `burn`.
///
/// # Errors
/// The variable says something else, or what this processor lacks.
pub fn cpu_kernels() -> Result<String, UnknownIsa> {
    match kernels() {
        Some(_) => Isa::from_environment().map(|isa| isa.to_string()),
        None => Ok(BURN.to_owned()),
    }
}

/// Is this the device our kernels work on?
pub(crate) fn is_cpu(device: &Device) -> bool {
    let probe = Tensor::<1>::zeros([1], device);
    probe.clone().try_into_primitive::<Flex>().is_ok() || probe.try_into_primitive::<Tracked>().is_ok()
}
