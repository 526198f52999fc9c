//! The native half of the Python package `mnar`: arrays and Arrow tables in, JSON and arrays out. Names and scikit-learn
//! estimators are in the Python half.

mod arrays;
mod errors;
mod evaluate;
mod interrupt;
mod mechanism;
mod positive;
mod run;
mod tables;
mod travel;
mod weights;

use pyo3::prelude::*;

/// Selects the CPU kernels that the environment variable `MNAR_KERNELS` names, as the command `mnar` does.
fn select_kernels(py: Python<'_>) -> PyResult<()> {
    let Some(name) = std::env::var_os("MNAR_KERNELS").filter(|name| !name.is_empty()) else { return Ok(()) };
    let name = name.to_string_lossy();
    mnar_train::layers::select_cpu_kernels(&name).map_err(|error| {
        errors::exception(py, errors::Kind::Settings, format!("MNAR_KERNELS={name}: {error}, or unset it"))
    })
}

/// The native half of mnar.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::evaluate::evaluate;
    #[pymodule_export]
    use crate::mechanism::{estimate, page, reweigh, risk_weights, test};
    #[pymodule_export]
    use crate::positive::positive;
    #[pymodule_export]
    use crate::run::{command_line, fit, fit_options, predict};
    #[pymodule_export]
    use crate::travel::{Accumulator, Everywhere, RowCensus, factors_of_rows, phi_of_rows};
    #[pymodule_export]
    use crate::weights::{imputations, replicate_weights};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        mnar_data::quiet_decoder_panics();
        crate::select_kernels(module.py())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
