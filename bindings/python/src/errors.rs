//! Errors of Rust as the exceptions of `mnar._errors`, with remedies in the words of Python.

use mnar::Remedy;
use mnar_run::RunError;
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
    exception(py, kind_of(error), message(error, &error.remedies()))
}

/// An error of a whole run.
pub(crate) fn of_run(py: Python<'_>, error: &RunError) -> PyErr {
    let kind = match error {
        RunError::Statistics(error) => kind_of(error),
        RunError::OptionValue { .. } | RunError::PerClass { .. } | RunError::Options { .. } => Kind::Settings,
        _ => Kind::Run,
    };
    exception(py, kind, message(error, &error.remedies()))
}

fn kind_of(error: &mnar::Error) -> Kind {
    match error {
        mnar::Error::Settings(_) | mnar::Error::OutOfRange { .. } | mnar::Error::WrongPosterior { .. } => {
            Kind::Settings
        }
        mnar::Error::NotIdentified { .. } => Kind::NotIdentified,
        _ => Kind::Input,
    }
}

/// The error with its causes, and one hint per remedy.
fn message(error: &dyn std::error::Error, remedies: &[Remedy]) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    remedies.iter().for_each(|remedy| text.push_str(&format!("\nhint: {}", hint(remedy))));
    text
}

/// A remedy as keywords.
pub(crate) fn hint(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Set { option, value } if value.is_empty() => format!("{}=True", keyword(option)),
        Remedy::Set { option, value } if is_number(option) => format!("{}={value}", keyword(option)),
        Remedy::Set { option, value } => format!("{}={value:?}", keyword(option)),
        Remedy::Unset { option } => format!("leave out `{}`", keyword(option)),
        Remedy::All(remedies) => keywords(remedies),
        _ => String::new(),
    }
}

/// Whether an option takes a number, which Python does not take as text.
fn is_number(option: &str) -> bool {
    option == "skip-rows"
}

/// Several options at once, each with all of its values: `ignore=["a", "b"], missing=["?"]`.
fn keywords(remedies: &[Remedy]) -> String {
    let mut options: Vec<(&str, Vec<&str>)> = Vec::new();
    for remedy in remedies {
        let Remedy::Set { option, value } = remedy else { continue };
        match options.iter_mut().find(|(other, _)| other == option) {
            Some((_, values)) => values.push(value),
            None => options.push((option, vec![value])),
        }
    }
    let said = options.iter().map(|(option, values)| format!("{}={values:?}", keyword(option)));
    said.collect::<Vec<_>>().join(", ")
}

/// The name of an option as a keyword.
pub(crate) fn keyword(option: &str) -> String {
    option.replace('-', "_")
}
