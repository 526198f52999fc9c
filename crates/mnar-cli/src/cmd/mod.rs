//! One module per command.

pub(crate) mod demo;
pub(crate) mod estimate;
pub(crate) mod evaluate;
pub(crate) mod fit;
pub(crate) mod inspect;
pub(crate) mod predict;
pub(crate) mod report;
pub(crate) mod shell;
pub(crate) mod simulate;
mod spelling;
pub(crate) mod test;

use crate::Typed;
use crate::hint::quoted;

impl Typed {
    /// The command, quoted for a shell. A command that resumes a run is repeated without resuming.
    pub(crate) fn command(&self) -> String {
        let words = self.0.iter().filter(|word| *word != "--resume").map(|word| quoted(word));
        std::iter::once("mnar".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
    }
}
