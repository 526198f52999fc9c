//! The devices to compute on.

use crate::error::TrainError;
use crate::layers::{cpu_kernels, is_cpu};
pub use burn::tensor::Device;

/// The CPU, with gradients.
pub fn cpu() -> Device {
    Device::flex().autodiff()
}

/// The first CUDA device, with gradients, if support is built in.
pub fn cuda() -> Result<Device, TrainError> {
    #[cfg(feature = "cuda")]
    return Ok(Device::cuda(0usize).autodiff());
    #[cfg(not(feature = "cuda"))]
    Err(TrainError::NoDevice { device: "cuda" })
}

/// The default WebGPU device, with gradients, if support is built in.
pub fn wgpu() -> Result<Device, TrainError> {
    #[cfg(feature = "wgpu")]
    return Ok(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice).autodiff());
    #[cfg(not(feature = "wgpu"))]
    Err(TrainError::NoDevice { device: "wgpu" })
}

/// The name of what computes, for a report: `cpu, avx2 kernels`, or the device's own name.
pub fn name(device: &Device) -> String {
    if is_cpu(device) {
        return format!("cpu, {} kernels", cpu_kernels());
    }
    let debug = format!("{device:?}");
    let known = ["Wgpu", "Cuda"].into_iter().find(|name| debug.contains(name));
    known.map_or(debug, str::to_lowercase)
}
