//! Several runs beside each other.

use crate::error::ReportError;
use crate::figure::{Cell, Chart, Dot, Figure, Table};
use crate::html::{drawing_scripts, grid, head, scripts, table, ticked};
use crate::line::percent;
use crate::report::Report;
use crate::sections::{HOW_COMMON, HOW_GOOD, WHO};
use crate::table::{TextTable, cut, printable_lines};
use maud::{DOCTYPE, Markup, html};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// Classes whose shares are shown: those in which the runs differ most.
const CLASSES: usize = 20;
/// Letters of a run's name.
const NAME: usize = 40;

/// Reports of several runs, with the names of the runs.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    runs: Vec<Run>,
}

#[derive(Clone, Debug, Serialize)]
struct Run {
    name: String,
    report: Report,
}

impl Comparison {
    /// At least two reports with the names of their runs. They must have a class in common.
    pub fn new(reports: Vec<(String, Report)>) -> Result<Self, ReportError> {
        let runs: Vec<Run> = reports.into_iter().map(|(name, report)| Run { name, report }).collect();
        let comparison = Self { runs };
        if comparison.runs.len() < 2 || comparison.shared().is_empty() {
            return Err(ReportError::NothingToCompare);
        }
        Ok(comparison)
    }

    /// The classes that all runs have.
    fn shared(&self) -> Vec<&str> {
        let Some((first, others)) = self.runs.split_first() else { return Vec::new() };
        let all = first.report.classes().iter().map(String::as_str);
        all.filter(|class| others.iter().all(|run| run.place(class).is_some())).collect()
    }

    /// The classes that are shown: those in which the runs differ most, in their own order.
    fn shown(&self) -> Vec<&str> {
        let shared = self.shared();
        let spread = |class: &str| {
            let shares = self.runs.iter().filter_map(|run| Some(run.report.findings.prevalence[run.place(class)?]));
            let (low, high) = shares.fold((f64::MAX, f64::MIN), |(low, high), share| (low.min(share), high.max(share)));
            high - low
        };
        let mut order: Vec<usize> = (0..shared.len()).collect();
        order.sort_by(|&a, &b| spread(shared[b]).total_cmp(&spread(shared[a])));
        order.truncate(CLASSES);
        order.sort_unstable();
        order.into_iter().map(|at| shared[at]).collect()
    }

    /// The runs beside each other as text: shares, verdicts, accuracy, and the settings that differ. Tables fit 80 columns as far
    /// as there are few runs.
    pub fn to_text(&self) -> String {
        let mut out = format!("{HOW_COMMON}\n");
        let names: Vec<String> = self.runs.iter().map(|run| cut(&run.name, 24)).collect();
        let mut heading = vec!["class"];
        heading.extend(names.iter().map(String::as_str));
        let mut table = TextTable::new(&heading);
        for class in self.shown() {
            let cells = self.runs.iter().map(|run| run.share_text(class));
            table.row(std::iter::once(class.to_owned()).chain(cells).collect());
        }
        out.push_str(&table.render());
        out.push_str(&format!("\n{WHO}\n"));
        for run in &self.runs {
            out.push_str(&format!("  {}: {}\n", cut(&run.name, NAME), run.report.short_verdict()));
        }
        out.push_str(&format!("\n{HOW_GOOD}\n"));
        for run in &self.runs {
            let first = run.report.quality_lines().first().map_or("not evaluated".to_owned(), |line| line.text());
            out.push_str(&format!("  {}: {first}\n", cut(&run.name, NAME)));
        }
        out.push_str("\nSettings that differ\n");
        let settings = self.settings();
        if settings.is_empty() {
            out.push_str("  none\n");
        }
        for (name, values) in settings {
            out.push_str(&format!("  {name}: {}\n", values.join(" | ")));
        }
        printable_lines(&out)
    }

    /// The runs beside each other as one page that works offline. All text supplied by the user is escaped.
    pub fn to_html(&self) -> Result<String, ReportError> {
        let figures = [self.shares_figure(), self.phi_figure()];
        let failed: Vec<&Run> = self.runs.iter().filter(|run| !run.report.failed().is_empty()).collect();
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                (head("Comparison of runs"))
                body {
                    a.skip href="#main" { "Skip to the comparison" }
                    header {
                        div {
                            p.kicker { "mnar · comparison" }
                            h1 { (self.runs.len()) " runs beside each other" }
                        }
                        button #theme type="button" { "Toggle theme" }
                    }
                    nav aria-label="Contents" { ul {
                        @for (id, name) in [("prevalence", "How common"), ("labelling", "Who got labelled"), ("quality", "How good"), ("settings", "Settings")] {
                            li { a href=(format!("#{id}")) { (name) } }
                        }
                    } }
                    main #main tabindex="-1" {
                        @if !failed.is_empty() {
                            section #failed aria-labelledby="failed-title" {
                                h2 #failed-title { "Do not rely on every run" }
                                ul { @for run in failed { li { strong { (cut(&run.name, NAME)) ": " } (run.report.headline()) } } }
                            }
                        }
                        (self.sections(&figures))
                    }
                    footer { p { "Created by mnar " (env!("CARGO_PKG_VERSION")) ". This page needs no network and sends nothing." } }
                    (scripts(&self.light(), &figures)?)
                    (drawing_scripts())
                }
            }
        };
        Ok(page.into_string())
    }

    /// The runs without their histories and pictures, which the page does not show.
    fn light(&self) -> Self {
        let mut light = self.clone();
        for run in &mut light.runs {
            run.report.uncertain.clear();
            let models = run.report.training.iter_mut();
            let models = models.flat_map(|training| training.baseline.iter_mut().chain([&mut training.debiased]));
            models.for_each(|model| model.history.clear());
        }
        light
    }

    fn sections(&self, figures: &[Figure]) -> Markup {
        let settings = self.settings();
        html! {
            section #prevalence aria-labelledby="prevalence-title" {
                h2 #prevalence-title { (HOW_COMMON) }
                @if self.shown().len() < self.shared().len() { p { "The " (CLASSES) " classes in which the runs differ most." } }
                (table(&self.shares_table(), "Class shares of the runs"))
                (grid(figures))
            }
            section #labelling aria-labelledby="labelling-title" {
                h2 #labelling-title { (WHO) }
                dl.facts.runs { @for run in &self.runs { dt { (cut(&run.name, NAME)) } dd { (ticked(&run.report.verdict())) } } }
            }
            section #quality aria-labelledby="quality-title" {
                h2 #quality-title { (HOW_GOOD) }
                (table(&self.quality_table(), "Accuracy of the runs"))
            }
            section #settings aria-labelledby="settings-title" {
                h2 #settings-title { "Settings that differ" }
                @if settings.is_empty() { p { "None." } } @else {
                    div.scroll tabindex="0" role="region" aria-label="Settings that differ" {
                        table.words {
                            thead { tr { th scope="col" { "setting" } @for run in &self.runs { th scope="col" { (cut(&run.name, NAME)) } } } }
                            tbody { @for (name, values) in &settings { tr { th scope="row" { (name) } @for value in values { td { (value) } } } } }
                        }
                    }
                }
            }
        }
    }

    fn shares_table(&self) -> Table {
        let mut heading = vec!["class".to_owned()];
        for run in &self.runs {
            heading.extend([cut(&run.name, NAME), "95% interval".to_owned()]);
        }
        let line = |class: &str| {
            let mut line = vec![Cell::text(cut(class, 60))];
            for (at, run) in self.runs.iter().enumerate() {
                let Some(k) = run.place(class) else { continue };
                let share = run.report.findings.prevalence[k];
                let path = format!("runs.{at}.report");
                line.push(Cell::number(share, Some(format!("{path}.prevalence.{k}"))));
                line.push(Cell::interval(run.report.share_interval(k), format!("{path}.prevalence_ci95.{k}")));
            }
            line
        };
        Table { heading, lines: self.shown().into_iter().map(line).collect() }
    }

    fn quality_table(&self) -> Table {
        let line = |run: &Run| {
            let report = &run.report;
            let lines = report.quality_lines();
            let of = |at: usize| Cell::text(lines.get(at).map_or("–".to_owned(), |line| line.text()));
            vec![
                Cell::text(cut(&run.name, NAME)),
                Cell::count(report.findings.about.n, None),
                Cell::count(report.findings.about.n_labelled, None),
                of(0),
            ]
        };
        let heading = ["run", "rows", "labels", "metric"].map(str::to_owned).to_vec();
        Table { heading, lines: self.runs.iter().map(line).collect() }
    }

    fn shares_figure(&self) -> Figure {
        self.figure(
            "shares",
            "Class shares",
            "The estimated share of each class among all rows, with 95% intervals where there are some, in every run.",
            "share",
            |report, k| (report.findings.prevalence[k], report.share_interval(k)),
        )
    }

    fn phi_figure(&self) -> Figure {
        self.figure(
            "phi",
            "How likely is a row of each class to be labelled?",
            "phi, the share of each class that has a label, in every run.",
            "phi",
            |report, k| {
                let interval = report.findings.phi_ci95.as_ref().map(|all| all[k]);
                (report.findings.phi[k], interval.filter(|(low, high)| low.is_finite() && high.is_finite()))
            },
        )
    }

    fn figure(
        &self,
        id: &'static str,
        title: &str,
        about: &str,
        axis: &str,
        value: impl Fn(&Report, usize) -> (f64, Option<(f64, f64)>),
    ) -> Figure {
        let (mut marks, mut lines) = (Vec::new(), Vec::new());
        let (field, intervals) = if id == "phi" { ("phi", "phi_ci95") } else { ("prevalence", "prevalence_ci95") };
        for class in self.shown() {
            for (series, run) in self.runs.iter().enumerate() {
                let Some(k) = run.place(class) else { continue };
                let (value, interval) = value(&run.report, k);
                marks.push(Dot { label: class.to_owned(), series, value, interval });
                let path = format!("runs.{series}.report");
                lines.push(vec![
                    Cell::text(cut(class, 60)),
                    Cell::text(cut(&run.name, NAME)),
                    Cell::number(value, Some(format!("{path}.{field}.{k}"))),
                    Cell::interval(interval, format!("{path}.{intervals}.{k}")),
                ]);
            }
        }
        Figure {
            id,
            title: title.to_owned(),
            about: about.to_owned(),
            table: Table { heading: ["class", "run", axis, "95% interval"].map(str::to_owned).to_vec(), lines },
            chart: Chart::Dots {
                axis: axis.to_owned(),
                series: self.runs.iter().map(|run| cut(&run.name, NAME)).collect(),
                marks,
            },
        }
    }

    /// The settings in which the runs differ, with the value of every run.
    fn settings(&self) -> Vec<(String, Vec<String>)> {
        let names: BTreeSet<&String> = self.runs.iter().flat_map(|run| run.report.provenance.settings.keys()).collect();
        let mut all: Vec<(String, Vec<String>)> = names
            .into_iter()
            .map(|name| {
                let of = |run: &Run| match run.report.provenance.settings.get(name) {
                    None | Some(Value::Null) => "–".to_owned(),
                    Some(Value::String(text)) => cut(text, 80),
                    Some(other) => cut(&other.to_string(), 80),
                };
                (cut(&name.replace('_', " "), NAME), self.runs.iter().map(of).collect())
            })
            .collect();
        let of_all = |name: &str, of: fn(&Report) -> String| {
            (name.to_owned(), self.runs.iter().map(|run| of(&run.report)).collect::<Vec<_>>())
        };
        all.push(of_all("data", |report| cut(&report.provenance.title, 80)));
        all.push(of_all("rows", |report| report.findings.about.n.to_string()));
        all.push(of_all("labels", |report| report.findings.about.n_labelled.to_string()));
        all.push(of_all("estimator", |report| report.findings.method.clone()));
        all.push(of_all("version", |report| report.provenance.version.clone()));
        all.retain(|(_, values)| values.windows(2).any(|pair| pair[0] != pair[1]));
        all
    }
}

impl Run {
    fn place(&self, class: &str) -> Option<usize> {
        self.report.classes().iter().position(|own| own == class)
    }

    fn share_text(&self, class: &str) -> String {
        let Some(k) = self.place(class) else { return "-".to_owned() };
        let share = percent(self.report.findings.prevalence[k]);
        match self.report.share_interval(k) {
            Some((low, high)) => format!("{share} ({} to {})", percent(low), percent(high)),
            None => share,
        }
    }
}
