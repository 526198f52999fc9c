//! The sections of the page, in the order of a reader's questions.

use crate::figure::{Cell, Figure, Table};
use crate::html::{grid, number, p_short, table, ticked, uncertain};
use crate::labelling::{DOUBTFUL, odds_table, questions, shares_table};
use crate::line::{percent, share_of};
use crate::report::Report;
use crate::table::{cut, p_value as p_text};
use crate::words::{Level, Light, capitalised, percent as level};
use maud::{Markup, html};
use mnar::analysis::VerdictKind;

/// The sections, with the names they have in the contents.
pub(crate) const SECTIONS: [(&str, &str); 8] = [
    ("prevalence", "How common"),
    ("labelling", "Who got labelled"),
    ("quality", "How good"),
    ("checks", "Checks"),
    ("next", "Next steps"),
    ("label-next", "What to label"),
    ("methods", "Methods"),
    ("run", "Settings"),
];

/// The questions that the sections answer; the terminal asks the same.
pub(crate) const HOW_COMMON: &str = "How common is each class really?";
pub(crate) const WHO: &str = "What decided who got labelled?";
pub(crate) const HOW_GOOD: &str = "How good is the model really?";
pub(crate) const CHECKED: &str = "What was checked, and what was not?";
pub(crate) const NEXT: &str = "What to do next";
pub(crate) const LABEL_NEXT: &str = "Which rows to label next";

/// Classes of the summary.
const SUMMARY: usize = 4;
/// Steps of the summary; a phone shows the first.
const STEPS: usize = 2;
/// Classes in the table of what more labels would tell.
const NARROWED: usize = 12;

/// The figures of a section.
fn figures_of(figures: &[Figure], ids: &[&str]) -> Vec<Figure> {
    figures.iter().filter(|figure| ids.contains(&figure.id)).cloned().collect()
}

fn section(id: &str, title: &str, body: &Markup) -> Markup {
    let title_id = format!("{id}-title");
    html! { section id=(id) aria-labelledby=(title_id) { h2 id=(title_id) { (title) } (body) } }
}

impl Report {
    /// All sections.
    pub(crate) fn sections(&self, figures: &[Figure]) -> Markup {
        html! {
            (self.failed_section())
            (self.summary_section())
            (section("prevalence", HOW_COMMON, &self.prevalence_block(&figures_of(figures, &["shares"]))))
            (self.groups_section(&figures_of(figures, &["groups", "groups-phi"])))
            (section("labelling", WHO, &self.labelling_block(&figures_of(figures, &["phi", "rates", "counts"]))))
            (section("quality", HOW_GOOD, &html! {
                (self.quality_block())
                (grid(&figures_of(figures, &["accuracy", "confusion", "training", "phi-by-epoch"])))
            }))
            (section("checks", CHECKED, &self.checks_block(&figures_of(figures, &["calibration", "sensitivity"]))))
            (section("next", NEXT, &self.next_block()))
            (section("label-next", LABEL_NEXT, &self.label_next_block()))
            (section("methods", "For a paper", &self.methods_block()))
            (section("run", "Every setting, and how to reproduce this", &self.run_block()))
        }
    }

    /// What failed comes before every number.
    fn failed_section(&self) -> Markup {
        let failed = self.failed();
        if failed.is_empty() {
            return html! {};
        }
        html! {
            section #failed aria-labelledby="failed-title" {
                h2 #failed-title { @if failed.len() == 1 { "A check failed" } @else { (failed.len()) " checks failed" } }
                ul { @for light in &failed { li { strong { (light.about) } span.why { ": " (ticked(&cut(&light.sentence, 240))) } } } }
            }
        }
    }

    /// The first screen: how common, who got labelled, what next.
    fn summary_section(&self) -> Markup {
        let next = self.what_next();
        let order = self.by_gap();
        let kind = match (&self.findings.verdict, self.rejects()) {
            (Some(verdict), _) if verdict.kind == VerdictKind::Unclear => "unclear",
            (Some(verdict), _) if verdict.kind == VerdictKind::AtRandom => "no",
            (Some(_), _) | (None, Some(true)) => "yes",
            (None, Some(false)) => "no",
            (None, None) => "none",
        };
        html! {
            section #verdict data-verdict=(kind) aria-label="In short" {
                div.answer data-answer="prevalence" {
                    h2 { "How common?" }
                    table.brief {
                        caption.hidden { "The classes that the labels mislead about most" }
                        thead { tr { th scope="col" { "class" } th scope="col" { "of all rows" } th scope="col" { "of the labels" } } }
                        tbody { @for &k in order.iter().take(SUMMARY) { (self.brief_line(k)) } }
                    }
                    @if order.len() > 2 { p.quiet.more { a href="#prevalence" { "All " (order.len()) " classes" } } }
                }
                div.answer data-answer="verdict" {
                    h2 { "Who got labelled?" }
                    p.short { (ticked(&self.short_verdict())) }
                    p.quiet.more {
                        (number(self.findings.about.n_labelled as f64, self.findings.about.n_labelled.to_string(), "n_labelled")) " of "
                        (number(self.findings.about.n as f64, self.findings.about.n.to_string(), "n")) " rows have a label. "
                        @if !self.nothing_missing() { a href="#labelling" { "More" } }
                    }
                }
                div.answer data-answer="next" {
                    h2 { "What next?" }
                    @for (place, step) in next.iter().take(STEPS).enumerate() {
                        p class=(if place == 0 { "short" } else { "further" }) { (ticked(&cut(&step.step, 200))) }
                        @if let Some(command) = step.command.as_ref().filter(|_| place == 0) { pre tabindex="0" { code { (command) } } }
                    }
                    @if next.len() > 1 { p.quiet.more { a href="#next" { "All " (next.len()) " steps" } } }
                }
            }
        }
    }

    fn brief_line(&self, k: usize) -> Markup {
        html! {
            tr {
                th scope="row" { (cut(&self.classes()[k], 40)) }
                td {
                    (number(self.findings.prevalence[k], percent(self.findings.prevalence[k]), &format!("prevalence.{k}")))
                    @if let Some((low, high)) = self.share_interval(k) {
                        " " span.interval data-answer="interval" {
                            (number(low, percent(low), &format!("prevalence_ci95.{k}.0"))) " to "
                            (number(high, percent(high), &format!("prevalence_ci95.{k}.1")))
                        }
                    }
                }
                td { (share_of(self.label_share(k), &format!("labelled_per_class.{k}"), "n_labelled")) }
            }
        }
    }

    fn prevalence_block(&self, figures: &[Figure]) -> Markup {
        let found = &self.findings;
        let intervals = found.prevalence_ci95.is_some();
        let given = if found.positive.is_some() { " The shares were given, not estimated." } else { "" };
        html! {
            @if self.doubtful() { p.doubtful { (DOUBTFUL) } }
            @if self.nothing_missing() {
                p { "Every row has a label, so the shares are counted." }
            } @else {
                p { "The share of each class among all rows, beside its share of the labels. Where the two differ, counting labels misleads." (given) }
            }
            div.pair {
                div {
                    (self.shares_list())
                    @if intervals {
                        p.quiet { "A 95% interval is a range that, in 95 of 100 such data sets, contains the true share, if what the estimate assumes holds. " (self.about_intervals()) }
                    }
                }
                (grid(figures))
            }
            @if let Some(shares) = shares_table(found) {
                h3 { "With and without the columns" }
                p { "Where the two estimates differ, leaving out the columns would have misled." }
                (table(&shares, "Class shares, with and without the columns"))
            }
        }
    }

    /// All class shares as a table.
    fn shares_list(&self) -> Markup {
        html! {
            div.scroll.shares tabindex="0" role="region" aria-label="Class shares" {
                table {
                    thead { tr {
                        th scope="col" { "class" } th scope="col" { "of all rows" }
                        @if self.findings.prevalence_ci95.is_some() { th scope="col" { "95% interval" } }
                        th scope="col" { "of the labels" } th.count scope="col" { "labels" }
                        @if self.truth.is_some() { th scope="col" { "true share" } }
                    } }
                    tbody { @for k in 0..self.classes().len() {
                        tr {
                            th scope="row" { (cut(&self.classes()[k], 60)) }
                            td { (number(self.findings.prevalence[k], percent(self.findings.prevalence[k]), &format!("prevalence.{k}"))) }
                            @if self.findings.prevalence_ci95.is_some() { td.number { (self.ends(k)) } }
                            td { (share_of(self.label_share(k), &format!("labelled_per_class.{k}"), "n_labelled")) }
                            td.count { (number(self.findings.about.labelled_per_class[k] as f64, self.findings.about.labelled_per_class[k].to_string(), &format!("labelled_per_class.{k}"))) }
                            @if let Some(truth) = &self.truth { td { (number(truth.prevalence[k], percent(truth.prevalence[k]), &format!("truth.prevalence.{k}"))) } }
                        }
                    } }
                }
            }
        }
    }

    fn ends(&self, k: usize) -> Markup {
        match self.share_interval(k) {
            Some((low, high)) => html! {
                (number(low, percent(low), &format!("prevalence_ci95.{k}.0"))) " to "
                (number(high, percent(high), &format!("prevalence_ci95.{k}.1")))
            },
            None => html! { "–" },
        }
    }

    /// Class shares and phi per group.
    fn groups_section(&self, figures: &[Figure]) -> Markup {
        let Some(groups) = self.groups() else { return html! {} };
        let title = format!("By {}", cut(&groups.by.column, 60));
        section(
            "by-group",
            &title,
            &html! {
                p { (groups.homogeneity()) }
                p.quiet { "Pooled shares are drawn towards those of the other groups, as far as the groups are alike: better for small groups. The rows of a class add up to its rows in the whole table." }
                (grid(figures))
                (table(&groups.table(), &title))
                @if groups.left_out() > 0 { p { "And " (groups.left_out()) " more lines; the JSON has them all." } }
            },
        )
    }

    /// The verdict, labelling rates by class and column, and the questions behind the verdict.
    fn labelling_block(&self, figures: &[Figure]) -> Markup {
        html! {
            p.lead { (ticked(&self.verdict())) }
            @if self.findings.verdict.is_none() && self.test.is_some() { p { (ticked(&self.how_sure())) } }
            (grid(figures))
            @if let Some(of) = &self.findings.labelling {
                h3 { "The questions behind this" }
                p.quiet { "Answered at the " (level(of.level)) " level. A p-value says how often chance alone would look at least like this; a small one speaks against chance, a large one proves nothing." }
                div.scroll tabindex="0" role="region" aria-label="Questions" {
                    table.words {
                        thead { tr { @for heading in ["question", "answer", "p-value", "from"] { th.number scope="col" { (heading) } } } }
                        tbody { @for question in questions(of) {
                            tr {
                                th scope="row" { (ticked(&question.asked)) }
                                td { (ticked(&question.answer)) }
                                @match question.p_value { Some((p, path)) => td.number { (number(p, p_short(p), path)) }, None => td.none { "–" } }
                                td { (question.by) }
                            }
                        } }
                    }
                }
                @if let Some(odds) = odds_table(of) {
                    h3 { "Odds of a label by column" }
                    p { "By how much the odds of a label (labelled to unlabelled rows) are multiplied, among rows of the same class" @if of.found_here { "; the columns were found in these data" } "." }
                    (table(&odds, "Odds of a label by column"))
                }
            }
        }
    }

    fn checks_block(&self, figures: &[Figure]) -> Markup {
        let mut checked = self.lights();
        // What failed first, then what needs care.
        checked.sort_by_key(|light| match light.level {
            Level::Bad => 0,
            Level::Careful => 1,
            Level::Good => 2,
        });
        let not = self.not_checked();
        html! {
            @if checked.is_empty() { p { "Nothing was checked." } } @else { p { "A check that found no problem does not prove that there is none." } }
            (lights(&checked))
            div.pair {
                @if self.findings.verdict.is_some() || !self.findings.warnings.is_empty() {
                    div {
                        @if let Some(verdict) = &self.findings.verdict {
                            h3 { "What was checked" }
                            ul { @for sentence in &verdict.checked { li { (ticked(sentence)) } } }
                        }
                        @if !self.findings.warnings.is_empty() {
                            h3 { "Warnings" }
                            ul.warnings { @for warning in &self.findings.warnings { li { (ticked(&capitalised(warning))) "." } } }
                        }
                    }
                }
                div {
                    @if !not.is_empty() { h3 { "What was not checked" } ul { @for sentence in not { li { (sentence) } } } }
                    @if !self.nothing_missing() {
                        h3 { "What cannot be checked with such data" }
                        ul { @for sentence in self.cannot_be_checked() { li { (ticked(&sentence)) } } }
                    }
                }
            }
            (grid(figures))
        }
    }

    fn next_block(&self) -> Markup {
        html! {
            ol.steps { @for next in self.what_next() {
                li { (ticked(&next.step)) @if let Some(command) = &next.command { pre tabindex="0" { code { (command) } } } }
            } }
        }
    }

    /// How much more labels would narrow the intervals, and the rows whose class is least certain.
    fn label_next_block(&self) -> Markup {
        html! {
            @if let Some(line) = self.narrowing_line() { p { (line) } }
            @if let Some(widths) = self.narrowing_table() {
                (table(&widths, "Widths of the intervals with more labels"))
                p.quiet {
                    "Widths of 95% intervals in percentage points, if so many rows are drawn at random from all rows, labelled and named as an audit. "
                    @if self.doubtful() {
                        "Those labels do not rest on any mechanism, and here the predictions are given no weight."
                    } @else {
                        "Those labels do not rest on any mechanism; the predictions of all rows make them more precise. Computed from the present estimate and from how sure the classifier is, taken at its word."
                    }
                }
            }
            @if self.uncertain.is_empty() {
                @if self.more_labels.is_none() { p { "No rows stand out." } }
            } @else {
                (uncertain(&self.uncertain))
            }
        }
    }

    /// The table of widths: those classes whose interval is widest now.
    fn narrowing_table(&self) -> Option<Table> {
        let more = self.more_labels.as_ref().filter(|more| !more.samples.is_empty())?;
        let now = |k: usize| more.width_now[k].unwrap_or(0.0);
        let mut order: Vec<usize> = (0..self.classes().len()).collect();
        order.sort_by(|&a, &b| now(b).total_cmp(&now(a)));
        order.truncate(NARROWED);
        order.sort_unstable();
        let points =
            |value: f64, path: String| Cell::Number { value, text: format!("{:.1}", 100.0 * value), path: Some(path) };
        let (field, alone) = if self.doubtful() { ("width_alone", true) } else { ("width", false) };
        let line = |k: usize| {
            let mut line = vec![
                Cell::text(cut(&self.classes()[k], 60)),
                more.width_now[k]
                    .map_or_else(|| Cell::text("–"), |width| points(width, format!("more_labels.width_now.{k}"))),
            ];
            line.extend(more.samples.iter().enumerate().map(|(i, sample)| {
                let width = if alone { sample.width_alone[k] } else { sample.width[k] };
                points(width, format!("more_labels.samples.{i}.{field}.{k}"))
            }));
            line.push(match more.to_halve[k].filter(|_| !alone) {
                Some(labels) => Cell::count(labels, Some(format!("more_labels.to_halve.{k}"))),
                None => Cell::text("–"),
            });
            line
        };
        let mut heading = vec!["class".to_owned(), "now".to_owned()];
        heading.extend(more.samples.iter().map(|sample| format!("{} labels", sample.labels)));
        heading.push("to halve it".to_owned());
        Some(Table { heading, lines: order.into_iter().map(line).collect() })
    }

    fn methods_block(&self) -> Markup {
        let methods = self.methods();
        html! {
            @if methods.is_empty() { p { "No label is missing, and nothing was estimated." } } @else { p.methods { (ticked(&methods)) } }
            h3 { "What to cite" }
            ul.cite { @for cited in self.citations() { li { (cited) } } }
        }
    }

    fn run_block(&self) -> Markup {
        let (provenance, found) = (&self.provenance, &self.findings);
        let settings = provenance.settings.iter().filter(|(_, value)| !value.is_null());
        html! {
            @if let Some(command) = &provenance.command { pre tabindex="0" { code { (command) } } }
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
                @for (name, value) in settings {
                    dt { (cut(&name.replace('_', " "), 60)) }
                    dd { code { (setting(value)) } }
                }
            }
        }
    }
}

/// A setting as text.
fn setting(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => cut(text, 400),
        other => cut(&other.to_string(), 400),
    }
}

fn lights(lights: &[Light]) -> Markup {
    html! {
        ul.lights { @for light in lights {
            li.light data-level=(light.level.key()) {
                span.lamp aria-hidden="true" {}
                div {
                    h3 { (light.about) ": " (light.level.name()) }
                    p { (ticked(&light.sentence)) }
                    p.meaning { (light.meaning) }
                }
            }
        } }
    }
}

/// The contents of the page: one entry per section.
pub(crate) fn contents(report: &Report) -> Markup {
    html! {
        nav aria-label="Contents" {
            ul {
                @for (id, name) in SECTIONS {
                    li { a href=(format!("#{id}")) { (name) } }
                    @if id == "prevalence" && report.groups().is_some() { li { a href="#by-group" { "By group" } } }
                }
            }
        }
    }
}
