//! Typed suggestions that come with an error.
//!
//! A library does not know how its options are spelt where they are given: as flags of a command, as keywords in
//! Python, as keys of a settings file. Its errors therefore offer remedies as data, and the edges word them.

use serde::Serialize;

/// What could be done about an error: a change of one option.
///
/// ```
/// use mnar::Remedy;
/// let remedy = Remedy::set("ignore", "patient id");
/// assert_eq!(remedy, Remedy::Set { option: "ignore", value: "patient id".into() });
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Remedy {
    /// Give an option this value.
    Set {
        /// The name of the option in kebab-case, such as `ignore`, `missing` or `learning-rate`.
        option: &'static str,
        /// The value as it is, not quoted; in upper case (`COLUMN`, `FILE`) where the user has to choose one.
        value: String,
    },
    /// Do all of these at once.
    All(Vec<Remedy>),
    /// Leave an option out.
    Unset {
        /// The name of the option in kebab-case.
        option: &'static str,
    },
}

impl Remedy {
    /// Suggests giving `option` this value.
    pub fn set(option: &'static str, value: impl Into<String>) -> Self {
        Self::Set { option, value: value.into() }
    }

    /// Suggests leaving `option` out.
    pub fn unset(option: &'static str) -> Self {
        Self::Unset { option }
    }
}
