//! The HTML page: one self-contained file.

use crate::error::ReportError;
use crate::figure::{Cell, Figure, Table};
use crate::report::{Report, UncertainRow};
use crate::words::{Light, share};
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
        let heading = if self.nothing_missing() { "No labels are missing" } else { "Are these labels informative?" };
        let provenance = &self.provenance;
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (provenance.title) " · mnar" }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    a.skip href="#main" { "Skip to the verdict" }
                    header {
                        div {
                            p.kicker { "mnar · " (provenance.title) }
                            h1 { (heading) }
                        }
                        button #theme type="button" { "Toggle theme" }
                    }
                    (contents(&figures, self))
                    main #main tabindex="-1" {
                        (self.verdict_section())
                        (lights(&self.lights()))
                        section #figures aria-labelledby="figures-title" {
                            h2 #figures-title { "What the data show" }
                            div.grid { @for figure in &figures { (drawn(figure)) } }
                        }
                        @if !self.uncertain.is_empty() { (uncertain(&self.uncertain)) }
                        (self.run_section())
                    }
                    footer { p { "Created by mnar " (provenance.version) ". This page needs no network and sends nothing." } }
                    (data("report-data", &self.without_phi_by_epoch())?)
                    (data("figures-data", &figures)?)
                    script { (PreEscaped(D3)) }
                    script { (PreEscaped(PLOT)) }
                    script { (PreEscaped(SCRIPT)) }
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

    fn verdict_section(&self) -> Markup {
        let kind = match self.rejects() {
            Some(true) => "yes",
            Some(false) => "no",
            None => "none",
        };
        let about = &self.findings.about;
        html! {
            section #verdict data-verdict=(kind) aria-labelledby="verdict-title" {
                h2 #verdict-title { (ticked(&self.verdict())) }
                dl.numbers {
                    div { dt { "rows" } dd { (number(about.n as f64, about.n.to_string(), "n")) } }
                    div { dt { "labelled" } dd { (number(about.n_labelled as f64, about.n_labelled.to_string(), "n_labelled")) } }
                    div { dt { "classes" } dd { (about.classes.len()) } }
                    @if let Some(test) = &self.test {
                        div { dt { "p-value" } dd { (p_value(test.result.p_value)) } }
                    }
                    @for (name, path, model) in self.models().into_iter().rev() {
                        @if let Some(held_out) = model.held_out {
                            div { dt { "accuracy, " (name) } dd { (number(held_out.accuracy, share_text(held_out.accuracy), &format!("{path}.held_out.accuracy"))) } }
                        }
                    }
                }
                @if self.test.is_some() {
                    h3 { "How certain is this?" }
                    p { (ticked(&self.how_sure())) }
                }
                h3 { "What to do next" }
                ol { @for step in self.next_steps() { li { (ticked(&step)) } } }
                @if !self.findings.warnings.is_empty() {
                    h3 { "Warnings" }
                    ul.warnings { @for warning in &self.findings.warnings { li { (warning) } } }
                }
            }
        }
    }

    fn run_section(&self) -> Markup {
        let (provenance, found) = (&self.provenance, &self.findings);
        let settings = serde_json::to_string_pretty(&provenance.settings).unwrap_or_default();
        html! {
            section #run aria-labelledby="run-title" {
                h2 #run-title { "How to reproduce this" }
                @if let Some(command) = &provenance.command {
                    pre tabindex="0" { code { (command) } }
                }
                dl.facts {
                    dt { "version" } dd { (provenance.version) }
                    dt { "seed" } dd { (found.seed) }
                    @if !provenance.created.is_empty() { dt { "created" } dd { (provenance.created) } }
                    dt { "computed on" } dd { (provenance.computed_on) }
                    dt { "time" } dd { (format!("{:.1} s", provenance.seconds)) }
                    dt { "estimator" } dd { (found.method) @if !found.converged { " (did not converge)" } }
                    @if let Some(test) = &self.test {
                        dt { "test" } dd { (test.result.test) @if test.result.draws > 0 { ", " (test.result.draws) " draws" } }
                    }
                }
                details.data {
                    summary { "All settings" }
                    pre tabindex="0" { code { (settings) } }
                }
            }
        }
    }
}

fn contents(figures: &[Figure], report: &Report) -> Markup {
    html! {
        nav aria-label="Contents" {
            ul {
                li { a href="#verdict" { "Verdict" } }
                li { a href="#checks" { "Checks" } }
                @for figure in figures { li { a href=(format!("#figure-{}", figure.id)) { (short_title(figure.id)) } } }
                @if !report.uncertain.is_empty() { li { a href="#uncertain" { "Uncertain rows" } } }
                li { a href="#run" { "Reproduce" } }
            }
        }
    }
}

fn short_title(id: &str) -> &str {
    match id {
        "phi" => "phi",
        "shares" => "Shares",
        "counts" => "Counts",
        "calibration" => "Calibration",
        "accuracy" => "Accuracy",
        "training" => "Training",
        "phi-by-epoch" => "phi by epoch",
        "confusion" => "Confusion",
        "sensitivity" => "Sensitivity",
        other => other,
    }
}

fn lights(lights: &[Light]) -> Markup {
    html! {
        section #checks aria-labelledby="checks-title" {
            h2 #checks-title { "Can you rely on these numbers?" }
            @if lights.is_empty() { p { "Nothing was checked." } }
            ul.lights {
                @for light in lights {
                    li.light data-level=(light.level.key()) {
                        span.lamp aria-hidden="true" {}
                        div {
                            h3 { (light.about) ": " (light.level.name()) }
                            p { (light.sentence) }
                        }
                    }
                }
            }
        }
    }
}

fn drawn(figure: &Figure) -> Markup {
    let id = format!("figure-{}", figure.id);
    html! {
        figure id=(id) data-figure=(figure.id) {
            figcaption {
                h3 { (figure.title) }
                p { (figure.about) }
            }
            div.chart {}
            details.data {
                summary { "Show as a table" }
                (table(&figure.table, &figure.title))
            }
        }
    }
}

fn table(table: &Table, title: &str) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(title) {
            table {
                thead { tr { @for heading in &table.heading { th scope="col" { (heading) } } } }
                tbody {
                    @for line in &table.lines {
                        tr {
                            @for (column, cell) in line.iter().enumerate() {
                                @if column == 0 { th scope="row" { (content(cell)) } } @else { td { (content(cell)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn content(cell: &Cell) -> Markup {
    match cell {
        Cell::Text(text) => html! { (text) },
        Cell::Number { value, text, path: Some(path) } => number(*value, text.clone(), path),
        Cell::Number { text, path: None, .. } => html! { (text) },
    }
}

/// A number with its path in the JSON, so that the page can be checked against it.
fn number(value: f64, text: String, path: &str) -> Markup {
    html! { span data-path=(path) data-value=(format!("{value:?}")) { (text) } }
}

fn p_value(p: f64) -> Markup {
    if p < 1e-4 {
        html! { "< 0.0001" }
    } else {
        number(p, format!("{p:.4}"), "p_value")
    }
}

fn share_text(value: f64) -> String {
    format!("{:.1}%", 100.0 * value)
}

fn uncertain(rows: &[UncertainRow]) -> Markup {
    html! {
        section #uncertain aria-labelledby="uncertain-title" {
            h2 #uncertain-title { "Rows worth labelling next" }
            p { "The model is least certain about these rows, so labelling them helps more than labelling rows it already predicts well." }
            ul.rows {
                @for row in rows {
                    li {
                        @if let Some(image) = &row.thumbnail {
                            img src=(image) alt=(format!("Row {}", row.row)) width="84" height="84";
                        }
                        div {
                            p.row-name { "Row " (row.row) @if let Some(name) = &row.name { ": " (name) } }
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
}

/// Text in which `backticks` mark code.
fn ticked(text: &str) -> Markup {
    html! { @for (i, part) in text.split('`').enumerate() { @if i % 2 == 1 { code { (part) } } @else { (part) } } }
}

/// JSON for the script. `<` is escaped so that no text supplied by the user can end the element.
fn data<T: Serialize + ?Sized>(id: &str, value: &T) -> Result<Markup, ReportError> {
    let json = serde_json::to_string(value).map_err(ReportError::unwritable)?.replace('<', "\\u003c");
    Ok(html! { script type="application/json" id=(id) { (PreEscaped(json)) } })
}
