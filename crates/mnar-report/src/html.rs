//! The HTML page: one self-contained file.

use crate::error::ReportError;
use crate::figure::{Cell, Figure, Table};
use crate::json::is_own_image;
use crate::report::{Report, UncertainRow};
use crate::sections::contents;
use crate::sha256::sha256;
use crate::table::{cut, printable};
use crate::words::share;
use base64::Engine as _;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;

const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");
const D3: &str = include_str!("../assets/vendor/d3.min.js");
const PLOT: &str = include_str!("../assets/vendor/plot.umd.min.js");

impl Report {
    /// The report as one page that works offline. All text supplied by the user is escaped.
    pub fn to_html(&self) -> Result<String, ReportError> {
        let figures = self.figures();
        let provenance = &self.provenance;
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                (head(&provenance.title))
                body {
                    a.skip href="#main" { "Skip to the answers" }
                    header {
                        p.kicker { "mnar · " (cut(&provenance.title, 80)) }
                        button #theme type="button" { "Toggle theme" }
                    }
                    h1 data-answer="headline" { (self.headline()) }
                    @if !self.failed().is_empty() { p.face-value { "Taken at face value: " (self.share_line()) "." } }
                    (contents(self))
                    main #main tabindex="-1" { (self.sections(&figures)) }
                    footer { p { "Created by mnar " (provenance.version) ". This page needs no network and sends nothing." } }
                    (scripts(&self.without_phi_by_epoch(), &figures)?)
                    (drawing_scripts())
                }
            }
        };
        Ok(page.into_string())
    }

    /// The report without phi by epoch, which the page's own figure already holds: 300 epochs of 100 classes are a
    /// megabyte.
    fn without_phi_by_epoch(&self) -> Self {
        let mut report = self.clone();
        let models = report
            .training
            .iter_mut()
            .flat_map(|training| training.baseline.iter_mut().chain([&mut training.debiased]));
        models.flat_map(|model| &mut model.history).for_each(|epoch| epoch.phi.clear());
        report
    }
}

/// The head of a page with this title: its policy and its style.
pub(crate) fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(policy(&[D3, PLOT, SCRIPT]));
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) " · mnar" }
            style { (PreEscaped(STYLE)) }
        }
    }
}

/// The numbers of a page and its figures, for the scripts and for anyone who reads the page by program.
pub(crate) fn scripts<T: Serialize>(numbers: &T, figures: &[Figure]) -> Result<Markup, ReportError> {
    let (numbers, figures) = (data("report-data", numbers)?, data("figures-data", figures)?);
    Ok(html! { (numbers) (figures) })
}

/// The scripts that draw the figures.
pub(crate) fn drawing_scripts() -> Markup {
    html! {
        script { (PreEscaped(D3)) }
        script { (PreEscaped(PLOT)) }
        script { (PreEscaped(SCRIPT)) }
    }
}

/// The figures of a page.
pub(crate) fn grid(figures: &[Figure]) -> Markup {
    html! {
        @if !figures.is_empty() {
            div.grid { @for column in columns(figures) { @if !column.is_empty() { div { @for (place, figure) in column { (drawn(figure, place)) } } } } }
        }
    }
}

/// What a browser may do with the page: run these scripts and no others, and show images that are in the page itself. It
/// loads nothing and sends nothing, whatever a label or a file name may say. Styles are free, since the charts set theirs.
fn policy(scripts: &[&str]) -> String {
    let engine = base64::engine::general_purpose::STANDARD;
    let hashes = scripts.iter().map(|script| format!(" 'sha256-{}'", engine.encode(sha256(script.as_bytes()))));
    let hashes = hashes.collect::<String>();
    format!(
        "default-src 'none'; script-src{hashes}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )
}

/// The figures in two columns of about the same height. Where there is room for only one, they stand in their own order.
fn columns(figures: &[Figure]) -> [Vec<(usize, &Figure)>; 2] {
    let (mut columns, mut heights) = ([Vec::new(), Vec::new()], [0, 0]);
    for (place, figure) in figures.iter().enumerate() {
        let shorter = usize::from(heights[1] < heights[0]);
        heights[shorter] += figure.height() + 60;
        columns[shorter].push((place, figure));
    }
    columns
}

/// A figure of more pixels than this scrolls in its frame: some 20 classes.
const TALL: u32 = 700;

fn drawn(figure: &Figure, place: usize) -> Markup {
    let id = format!("figure-{}", figure.id);
    html! {
        figure id=(id) data-figure=(figure.id) class=[(figure.height() > TALL).then_some("tall")] style=(format!("--place: {place}")) {
            figcaption {
                h3 { (figure.title) }
                p { (figure.about) }
            }
            div.chart tabindex=[(figure.height() > TALL).then_some("0")] {}
            details.data {
                summary { "Show as a table" }
                (table(&figure.table, &figure.title))
            }
        }
    }
}

/// Columns from which on a table is a list on a phone.
const MANY_COLUMNS: usize = 7;

pub(crate) fn table(table: &Table, title: &str) -> Markup {
    let stacked = table.heading.len() >= MANY_COLUMNS;
    let name = |column: usize| table.heading.get(column).filter(|_| stacked);
    html! {
        div.scroll tabindex="0" role="region" aria-label=(title) {
            table class=[stacked.then_some("stacked")] {
                thead { tr { @for heading in &table.heading { th scope="col" class=[named(heading)] { (heading) } } } }
                tbody {
                    @for line in &table.lines {
                        tr {
                            @for (column, cell) in line.iter().enumerate() {
                                @if column == 0 { th scope="row" { (content(cell)) } } @else { td class=[table.heading.get(column).and_then(|heading| named(heading))] data-name=[name(column)] { (content(cell)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Names are aligned to the left, numbers to the right.
fn named(heading: &str) -> Option<&'static str> {
    ["group", "compared with", "model", "metric"].contains(&heading).then_some("name")
}

fn content(cell: &Cell) -> Markup {
    match cell {
        Cell::Text(text) => html! { (text) },
        Cell::Term { name, meaning } => html! { (name) @if !meaning.is_empty() { " " span.meaning { (meaning) } } },
        Cell::Number { value, text, path: Some(path) } => number(*value, text.clone(), path),
        Cell::Number { text, path: None, .. } => html! { (text) },
        Cell::Interval { ends: (low, high), path } => html! {
            (number(*low, crate::table::number(*low), &format!("{path}.0"))) "–" wbr; (number(*high, crate::table::number(*high), &format!("{path}.1")))
        },
    }
}

/// A number with its path in the JSON, so that the page can be checked against it.
pub(crate) fn number(value: f64, text: String, path: &str) -> Markup {
    html! { span data-path=(path) data-value=(format!("{value:?}")) { (text) } }
}

pub(crate) fn p_short(p: f64) -> String {
    if p < 1e-4 { "< 0.0001".to_owned() } else { format!("{p:.4}") }
}

/// Rows whose class is least certain.
pub(crate) fn uncertain(rows: &[UncertainRow]) -> Markup {
    html! {
        h3 #uncertain { "Rows that the model is least sure of" }
        p.quiet { "Labels of these rows teach a model most. They are not drawn at random: give them to training, and not to an audit." }
        ul.rows {
            @for row in rows {
                li {
                    @if let Some(image) = row.thumbnail.as_ref().filter(|image| is_own_image(image)) {
                        img src=(image) alt=(format!("Row {}", row.row)) width="84" height="84";
                    }
                    div {
                        p.row-name { "Row " (row.row) }
                        @if let Some(name) = &row.name { p.meaning { (name) } }
                        p { @for (i, guess) in row.classes.iter().enumerate() {
                            @if i > 0 { ", " }
                            (guess.class) ": " (share(guess.probability))
                        } }
                    }
                }
            }
        }
    }
}

/// Text in which `backticks` mark code, without characters that would reorder the rest.
pub(crate) fn ticked(text: &str) -> Markup {
    let text = printable(text);
    html! { @for (i, part) in text.split('`').enumerate() { @if i % 2 == 1 { code { (part) } } @else { (part) } } }
}

/// JSON for the script. `<` is escaped so that no text supplied by the user can end the element.
fn data<T: Serialize + ?Sized>(id: &str, value: &T) -> Result<Markup, ReportError> {
    let json = serde_json::to_string(value).map_err(ReportError::unwritable)?.replace('<', "\\u003c");
    Ok(html! { script type="application/json" id=(id) { (PreEscaped(json)) } })
}
