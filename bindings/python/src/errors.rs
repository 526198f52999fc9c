//! Errors of Rust as the exceptions of `mnar._errors`.

use pyo3::prelude::*;

/// Which exception an error becomes.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Input,
    Settings,
    NotIdentified,
    Run,
}

/// The exception of this kind with this message.
pub(crate) fn exception(py: Python<'_>, kind: Kind, message: String) -> PyErr {
    let name = match kind {
        Kind::Input => "InputError",
        Kind::Settings => "SettingsError",
        Kind::NotIdentified => "NotIdentifiedError",
        Kind::Run => "RunError",
    };
    let made = || py.import("mnar._errors")?.getattr(name)?.call1((message,));
    match made() {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// An error of the statistics.
pub(crate) fn of_statistics(py: Python<'_>, error: &mnar::Error) -> PyErr {
    let kind = match error {
        mnar::Error::Settings(_) | mnar::Error::OutOfRange { .. } | mnar::Error::WrongPosterior { .. } => {
            Kind::Settings
        }
        mnar::Error::NotIdentified { .. } => Kind::NotIdentified,
        _ => Kind::Input,
    };
    exception(py, kind, error.to_string())
}

/// An error of a whole run.
pub(crate) fn of_run(py: Python<'_>, error: &anyhow::Error) -> PyErr {
    match error.downcast_ref::<mnar::Error>() {
        Some(statistics) => of_statistics(py, statistics),
        None => exception(py, Kind::Run, format!("{error:#}")),
    }
}
