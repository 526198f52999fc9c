//! What can go wrong with a report.

/// A report that cannot be read, written or drawn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// Fewer than two reports, or reports of other classes.
    #[error("there is nothing to compare: it takes at least two runs that have a class in common")]
    NothingToCompare,

    /// The text is not the JSON of a report.
    #[error("this is not the report of a run")]
    NotAReport {
        /// What is wrong with the JSON.
        #[source]
        source: serde_json::Error,
    },
    /// The report was written by a later version.
    #[error("the report has layout {found}, and this version of mnar knows layouts up to {known}; use a newer mnar")]
    TooNew {
        /// The layout of the report.
        found: u32,
        /// The newest layout that this version knows.
        known: u32,
    },
    /// A list does not have one value per class.
    #[error("the report has {classes} classes, but `{field}` has {found} values")]
    Uneven {
        /// The number of classes.
        classes: usize,
        /// The path of the list in the JSON.
        field: &'static str,
        /// The length of the list.
        found: usize,
    },
    /// A number that no run could have found.
    #[error("the report cannot be right: {field} is {value}")]
    OutOfRange {
        /// Where the number is.
        field: &'static str,
        /// The number.
        value: f64,
    },
    /// The image of a row is not an image of its own.
    #[error("the image of row {row} is not a PNG image within the report")]
    Thumbnail {
        /// The row.
        row: usize,
    },
    /// The report cannot be written as JSON.
    #[error("the report cannot be written as JSON")]
    Unwritable {
        /// Why not.
        #[source]
        source: serde_json::Error,
    },
    /// A figure cannot be drawn.
    #[error("figure {figure} cannot be drawn: {why}")]
    Drawing {
        /// The name of the figure.
        figure: String,
        /// Why not.
        why: String,
    },
}

impl ReportError {
    pub(crate) fn not_a_report(source: serde_json::Error) -> Self {
        Self::NotAReport { source }
    }

    pub(crate) fn unwritable(source: serde_json::Error) -> Self {
        Self::Unwritable { source }
    }
}
