//! Reports on informative labels, as text, as JSON and as one self-contained HTML page that works offline.
//!
//! A [`Report`] puts together what [`mnar::analysis`] found, where it comes from and which models were trained.
//! [`Report::to_text`], [`Report::to_json`] and [`Report::to_html`] show it, [`Report::from_json`] reads it again, and
//! [`Figure::svg`] draws one of its figures for a paper. Nothing is estimated or tested here.
//!
//! ```
//! use mnar::analysis::{EstimateSettings, Evidence, TestSettings};
//! use mnar::{Labels, PosteriorKind, Posteriors};
//! use mnar_report::{Provenance, Report};
//! use ndarray::Array2;
//!
//! let p = Array2::from_shape_fn((200, 2), |(i, k)| if (i % 2 == 0) == (k == 0) { 0.9 } else { 0.1 });
//! let labels = Labels::from_values((0..200).map(|i| match i % 20 {
//!     0 | 2 | 4 | 6 | 8 => Some("sick"),
//!     1 => Some("well"),
//!     _ => None,
//! }))?;
//! let posteriors = Posteriors::new(p, PosteriorKind::Labelled)?;
//! let evidence = Evidence::predictions(&posteriors, &labels);
//! let found = EstimateSettings::default().for_report(posteriors.kind()).run(&evidence, &())?;
//! let test = TestSettings::default().run(&evidence, &())?;
//!
//! let report = Report::new(Provenance::new("patients.csv"), found).with_test(test.decision);
//! let verdict = report.findings.verdict.as_ref().expect("a verdict");
//! assert!(report.to_text().contains(&verdict.headline));
//! assert!(report.to_html()?.contains("How common is each class really?"));
//! assert_eq!(Report::from_json(&report.to_json()?)?.findings.phi, report.findings.phi);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The feature `schema` adds `Report::json_schema`; the schema of the current layout is `schema/report.v2.json`.

mod check;
mod comparison;
mod error;
mod evaluation;
mod evaluation_page;
mod figure;
mod figures;
mod findings;
mod groups;
mod headline;
mod html;
mod json;
mod labelling;
mod line;
mod methods;
mod more_labels;
mod next;
mod quality;
mod report;
mod sections;
mod sha256;
mod svg;
mod table;
mod text;
mod v1;
mod words;

pub use comparison::Comparison;
pub use error::ReportError;
pub use evaluation::evaluate_text;
pub use evaluation_page::evaluate_html;
pub use figure::{Bar, Cell, Chart, Dot, Figure, Panel, Point, Rate, Table};
pub use findings::{bound_text, estimate_text, test_text};
pub use more_labels::{MoreLabels, RandomSample};
pub use next::{NextStep, Task};
pub use quality::OutOfFold;
pub use report::{Ended, Guess, HeldOut, Model, Provenance, Report, SCHEMA, Training, Truth, UncertainRow, Weighted};
pub use table::{TextTable, cut, interval, is_unsettling, number, p_value, printable, printable_lines};
pub use words::{Level, Light};
