//! The HTML page: one self-contained file.

use crate::error::ReportError;
use crate::figure::{Cell, Figure, Table};
use crate::json::is_own_image;
use crate::labelling::{DOUBTFUL, in_doubt, odds_table, questions, shares_table};
use crate::report::{Report, Training, UncertainRow};
use crate::sha256::sha256;
use crate::table::{cut, p_value as p_text, printable};
use crate::words::{Light, percent, share};
use base64::Engine as _;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use mnar::analysis::VerdictKind;
use serde::Serialize;

const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");
const D3: &str = include_str!("../assets/vendor/d3.min.js");
const PLOT: &str = include_str!("../assets/vendor/plot.umd.min.js");

impl Report {
    /// The report as one page that works offline. All text supplied by the user is escaped.
    pub fn to_html(&self) -> Result<String, ReportError> {
        let figures = self.figures();
        let heading = match self.findings.verdict {
            _ if self.nothing_missing() => "No labels are missing",
            Some(_) => "What decided who got labelled?",
            None => "Are these labels informative?",
        };
        let provenance = &self.provenance;
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                (head(&provenance.title))
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
                        (self.questions_section())
                        (self.groups_section())
                        section #figures aria-labelledby="figures-title" {
                            h2 #figures-title { "What the data show" }
                            (grid(&figures))
                        }
                        @if !self.uncertain.is_empty() { (uncertain(&self.uncertain)) }
                        (self.run_section())
                    }
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

    fn verdict_section(&self) -> Markup {
        let kind = match (&self.findings.verdict, self.rejects()) {
            (Some(verdict), _) if verdict.kind == VerdictKind::Unclear => "unclear",
            (Some(verdict), _) if verdict.kind == VerdictKind::AtRandom => "no",
            (Some(_), _) | (None, Some(true)) => "yes",
            (None, Some(false)) => "no",
            (None, None) => "none",
        };
        let about = &self.findings.about;
        html! {
            section #verdict data-verdict=(kind) aria-labelledby="verdict-title" {
                h2 #verdict-title { (ticked(&self.verdict())) }
                @if !self.nothing_missing() { (self.shares_block()) }
                (self.quality_block())
                dl.facts.counts {
                    div { dt { "rows" } dd { (number(about.n as f64, about.n.to_string(), "n")) } }
                    div { dt { "labelled" } dd { (number(about.n_labelled as f64, about.n_labelled.to_string(), "n_labelled")) } }
                    div { dt { "classes" } dd { (about.classes.len()) } }
                    @if let Some(test) = self.test.as_ref().filter(|_| self.findings.verdict.is_none()) {
                        div { dt { "p-value" } dd { (p_value(test.result.p_value)) } }
                    }
                    @for (name, path, model) in self.models().into_iter().rev() {
                        @if let Some(held_out) = model.held_out {
                            div {
                                dt { @if self.evaluation.is_some() { "held-out accuracy, " } @else { "accuracy, " } (name) }
                                dd {
                                    (number(held_out.accuracy, share_text(held_out.accuracy), &format!("{path}.held_out.accuracy")))
                                    @if let Some((low, high)) = held_out.accuracy_ci95 {
                                        " ("
                                        (number(low, share_text(low), &format!("{path}.held_out.accuracy_ci95.0")))
                                        " to "
                                        (number(high, share_text(high), &format!("{path}.held_out.accuracy_ci95.1")))
                                        ")"
                                    }
                                    " on " (number(held_out.rows as f64, held_out.rows.to_string(), &format!("{path}.held_out.rows"))) " rows"
                                }
                            }
                        }
                    }
                }
                @if let Some(parts) = self.training.as_ref().and_then(Training::parts) { p { "The debiased model is " (parts) "." } }
                @if let Some(sentence) = self.training.as_ref().and_then(|training| training.own_phi(&self.findings)) { p { (sentence) } }
                @if let Some(verdict) = &self.findings.verdict {
                    h3 { "What was checked" }
                    ul { @for sentence in &verdict.checked { li { (ticked(sentence)) } } }
                    p { (ticked(&verdict.cannot_know)) }
                } @else if self.test.is_some() {
                    h3 { "How certain is this?" }
                    p { (ticked(&self.how_sure())) }
                }
                h3 { "What to do next" }
                ol { @for step in self.next_steps() { li { (ticked(&step)) } } }
                @if !self.findings.warnings.is_empty() {
                    h3 { "Warnings" }
                    ul.warnings { @for warning in &self.findings.warnings { li { (ticked(warning)) } } }
                }
            }
        }
    }

    /// The class shares, the largest first.
    fn shares_block(&self) -> Markup {
        const SHOWN: usize = 8;
        let found = &self.findings;
        let mut order: Vec<usize> = (0..self.classes().len()).collect();
        order.sort_by(|&a, &b| found.prevalence[b].total_cmp(&found.prevalence[a]));
        let more = order.len().saturating_sub(SHOWN);
        order.truncate(SHOWN);
        html! {
            h3 { @if found.positive.is_some() { "Share of each class among all rows, as given" } @else { "Estimated share of each class among all rows" } }
            @if in_doubt(found) { p.doubtful { (DOUBTFUL) } }
            dl.numbers {
                @for k in order {
                    div {
                        dt { (cut(&self.classes()[k], 60)) }
                        dd { (number(found.prevalence[k], share_text(found.prevalence[k]), &format!("prevalence.{k}"))) }
                        @if let Some((low, high)) = found.prevalence_ci95.as_ref().map(|all| all[k]).filter(|(low, high)| low.is_finite() && high.is_finite()) {
                            dd.interval {
                                "95% interval "
                                (number(low, share_text(low), &format!("prevalence_ci95.{k}.0"))) " to "
                                (number(high, share_text(high), &format!("prevalence_ci95.{k}.1")))
                            }
                        }
                        dd.interval { (share_text(found.about.labelled_per_class[k] as f64 / found.about.n_labelled.max(1) as f64)) " of the labels" }
                    }
                }
            }
            @if more > 0 { p { "And " (more) " more classes: see the figures." } }
            @if found.verdict.is_some() && found.prevalence_ci95.is_some() { p.quiet { (self.about_intervals()) } }
        }
    }

    /// The questions behind the verdict, and the effects of columns.
    fn questions_section(&self) -> Markup {
        let Some(of) = &self.findings.labelling else { return html! {} };
        html! {
            section #questions aria-labelledby="questions-title" {
                h2 #questions-title { "Three questions about who gets labelled" }
                p { "Answered at the " (percent(of.level)) " level." }
                div.scroll.whole tabindex="0" role="region" aria-label="Questions" {
                    table.words {
                        thead { tr { @for heading in ["question", "answer", "p-value", "from"] { th.number scope="col" { (heading) } } } }
                        tbody {
                            @for question in questions(of) {
                                tr {
                                    th scope="row" { (ticked(&question.asked)) }
                                    td { (ticked(&question.answer)) }
                                    td.number { @match question.p_value {
                                        Some((p, path)) => (number(p, p_short(p), path)),
                                        None => "–",
                                    } }
                                    td { (question.by) }
                                }
                            }
                        }
                    }
                }
                @if let Some(odds) = odds_table(of) {
                    h3 { "Odds of a label by column" }
                    p { "By how much the odds of a label are multiplied, among rows of the same class" @if of.found_here { "; the columns were found in these data" } "." }
                    (table(&odds, "Odds of a label by column"))
                }
                @if let Some(shares) = shares_table(&self.findings) {
                    h3 { "Class shares, with and without the columns" }
                    p { "Where the two estimates differ, leaving out the columns would have misled." }
                    (table(&shares, "Class shares, with and without the columns"))
                }
            }
        }
    }

    /// Class shares and phi per group.
    fn groups_section(&self) -> Markup {
        let Some(groups) = self.groups() else { return html! {} };
        let title = format!("By {}", cut(&groups.by.column, 60));
        html! {
            section #by-group aria-labelledby="by-group-title" {
                h2 #by-group-title { (title) }
                p { (groups.homogeneity()) }
                p.quiet { "Pooled shares are drawn towards those of the other groups, as far as the groups are alike: better for small groups. The rows of a class add up to its rows in the whole table." }
                (table(&groups.table(), &title))
                @if groups.left_out() > 0 { p { "And " (groups.left_out()) " more lines; the JSON has them all." } }
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
                        dt { "test" } dd { (test.result.test) @if test.result.draws > 0 { ", " (test.result.draws) " draws" } ", " (p_text(test.result.p_value)) }
                    }
                }
                @if !self.nothing_missing() { p.methods { (ticked(&self.methods())) } }
                details.data {
                    summary { "All settings" }
                    pre tabindex="0" { code { (settings) } }
                }
            }
        }
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
        div.grid { @for column in columns(figures) { div { @for (place, figure) in column { (drawn(figure, place)) } } } }
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

fn contents(figures: &[Figure], report: &Report) -> Markup {
    html! {
        nav aria-label="Contents" {
            ul {
                li { a href="#verdict" { "Verdict" } }
                li { a href="#checks" { "Checks" } }
                @if report.findings.labelling.is_some() { li { a href="#questions" { "Questions" } } }
                @if report.groups().is_some() { li { a href="#by-group" { "By group" } } }
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
        "rates" => "Labelling rates",
        "groups" => "Shares by group",
        "groups-phi" => "phi by group",
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
                            p { (ticked(&light.sentence)) }
                            p.meaning { (light.meaning) }
                        }
                    }
                }
            }
        }
    }
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

fn drawn(figure: &Figure, place: usize) -> Markup {
    let id = format!("figure-{}", figure.id);
    html! {
        figure id=(id) data-figure=(figure.id) style=(format!("--place: {place}")) {
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

pub(crate) fn table(table: &Table, title: &str) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(title) {
            table {
                thead { tr { @for heading in &table.heading { th scope="col" class=[named(heading)] { (heading) } } } }
                tbody {
                    @for line in &table.lines {
                        tr {
                            @for (column, cell) in line.iter().enumerate() {
                                @if column == 0 { th scope="row" { (content(cell)) } } @else { td class=[table.heading.get(column).and_then(|heading| named(heading))] { (content(cell)) } }
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
        Cell::Number { value, text, path: Some(path) } => number(*value, text.clone(), path),
        Cell::Number { text, path: None, .. } => html! { (text) },
    }
}

/// A number with its path in the JSON, so that the page can be checked against it.
pub(crate) fn number(value: f64, text: String, path: &str) -> Markup {
    html! { span data-path=(path) data-value=(format!("{value:?}")) { (text) } }
}

fn p_value(p: f64) -> Markup {
    number(p, p_short(p), "p_value")
}

fn p_short(p: f64) -> String {
    if p < 1e-4 { "< 0.0001".to_owned() } else { format!("{p:.4}") }
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
                        @if let Some(image) = row.thumbnail.as_ref().filter(|image| is_own_image(image)) {
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
