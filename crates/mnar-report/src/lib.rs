//! What a run found, as text, as JSON and as one page that opens offline.
//!
//! [`Report`] is the value; [`Report::to_text`], [`Report::to_json`] and [`Report::to_html`] show it, and
//! [`Figure::svg`] draws one of its figures for a paper.

mod estimate;
mod figure;
mod figures;
mod findings;
mod html;
mod report;
mod svg;
mod table;
mod text;
mod uncertain;
mod words;

pub use estimate::Occasion;
pub use figure::{Bar, Cell, Chart, Dot, Figure, Point, Table};
pub use findings::{estimate_text, test_text};
pub use report::{
    Calibration, EpochRecord, Guess, HeldOut, IntervalKind, Model, ODDS_FACTORS, Report, ReportError, SCHEMA, Test,
    Truth, UncertainRow,
};
pub use table::{TextTable, interval, number, p_value};
pub use uncertain::most_uncertain;
pub use words::{LEVEL, Level, Light, most_and_least, percent, self_masking_line, verdict};
