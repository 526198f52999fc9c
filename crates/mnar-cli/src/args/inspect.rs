//! `mnar inspect`.

use super::{Format, MemoryArgs};
use clap::Args;
use mnar_data::ReadOptions;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Examples:
  mnar inspect clinic.csv
  mnar inspect clinic.csv --label diagnosis
  mnar inspect clinic.xlsx --sheet 2024 --label diagnosis --missing unknown
  mnar inspect scans/ --format json

Nothing is written. DATA is whatever `mnar fit` takes. Problems that would stop `mnar fit` are
printed; the exit code is 0 unless the data cannot be read at all.")]
pub(crate) struct InspectArgs {
    /// The data
    #[arg(value_name = "DATA")]
    pub(crate) data: PathBuf,

    /// The label column; a blank or null label is missing
    #[arg(long, value_name = "COLUMN")]
    pub(crate) label: Option<String>,

    /// The column of the table that names its rows, and is not a feature
    #[arg(long, value_name = "COLUMN")]
    pub(crate) id: Option<String>,

    /// A column of the table that is not a feature; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub(crate) ignore: Vec<String>,

    /// A column that holds names although it looks like numbers; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub(crate) categorical: Vec<String>,

    /// Another value that means missing; may be repeated
    #[arg(long, value_name = "VALUE")]
    pub(crate) missing: Vec<String>,

    /// Treat labels such as NA, ? or -1 as classes, not as missing
    #[arg(long)]
    pub(crate) labels_as_they_are: bool,

    /// Make one class of labels that differ only by case or blanks, such as `Sick` and `sick`
    #[arg(long)]
    pub(crate) merge_labels: bool,

    /// The sheet of a spreadsheet [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) sheet: Option<String>,

    /// Skip N lines of a text file, or rows of a sheet, above the header
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip_rows: usize,

    #[command(flatten)]
    pub(crate) memory: MemoryArgs,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

impl InspectArgs {
    pub(crate) fn read_options(&self) -> ReadOptions {
        ReadOptions {
            label: self.label.clone(),
            id: self.id.clone(),
            ignore: self.ignore.clone(),
            categorical: self.categorical.clone(),
            missing: self.missing.clone(),
            labels_as_they_are: self.labels_as_they_are,
            merge_labels: self.merge_labels,
            sheet: self.sheet.clone(),
            skip_rows: self.skip_rows,
            ..Default::default()
        }
    }
}
