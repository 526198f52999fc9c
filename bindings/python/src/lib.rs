//! The native half of the Python package `mnar`: arrays and Arrow tables in, JSON and arrays out. Names and scikit-learn
//! estimators are in the Python half.

mod arrays;
mod errors;
mod interrupt;
mod mechanism;
mod run;
mod tables;

use pyo3::prelude::*;

/// The native half of mnar.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::mechanism::{estimate, page, reweigh, risk_weights, test};
    #[pymodule_export]
    use crate::run::{command_line, fit, fit_options, predict};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        mnar_data::quiet_decoder_panics();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
