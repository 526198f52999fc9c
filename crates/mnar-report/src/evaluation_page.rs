//! An evaluation as one self-contained HTML page.

use crate::error::ReportError;
use crate::evaluation::{listed, words};
use crate::figure::{Cell, Chart, Dot, Figure, Point, Table};
use crate::html::{drawing_scripts, grid, head, number as linked, scripts, table, ticked};
use crate::labelling::DOUBTFUL;
use crate::report::Provenance;
use maud::{DOCTYPE, Markup, html};
use mnar::evaluate::{Curves, Evaluation, Metric, MetricName, Population};

/// The largest number of curves that can still be told apart in one chart.
const CURVES: usize = 8;
/// The largest number of classes for which a confusion matrix is drawn.
const MATRIX_CLASSES: usize = 30;

/// The metrics that are shown large.
const LARGE: [MetricName; 4] =
    [MetricName::Accuracy, MetricName::BalancedAccuracy, MetricName::Auc, MetricName::LogLoss];

/// An evaluation as one page that works offline: the metrics, naive beside corrected, by group where there are groups, with ROC and
/// calibration curves where the evaluation has them. All text supplied by the user is escaped.
pub fn evaluate_html(found: &Evaluation, provenance: &Provenance) -> Result<String, ReportError> {
    let page = Page { found };
    let figures = page.figures();
    let html = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&provenance.title))
            body {
                a.skip href="#main" { "Skip to the metrics" }
                header {
                    div {
                        p.kicker { "mnar · " (provenance.title) }
                        h1 { "How good is the model really?" }
                    }
                    button #theme type="button" { "Toggle theme" }
                }
                nav aria-label="Contents" {
                    ul {
                        li { a href="#verdict" { "Summary" } }
                        li { a href="#metrics" { "Metrics" } }
                        @if found.by.is_some() { li { a href="#groups" { "Groups" } } }
                        @for figure in &figures { li { a href=(format!("#figure-{}", figure.id)) { (figure.title) } } }
                        li { a href="#run" { "Reproduce" } }
                    }
                }
                main #main tabindex="-1" {
                    (page.summary())
                    (page.metrics_section())
                    @if let Some(by) = &found.by { (page.groups_section(by)) }
                    section #figures aria-labelledby="figures-title" {
                        h2 #figures-title { "Figures" }
                        (grid(&figures))
                    }
                    (page.run_section(provenance))
                }
                footer { p { "Created by mnar " (provenance.version) ". This page needs no network and sends nothing." } }
                (scripts(found, &figures)?)
                (drawing_scripts())
            }
        }
    };
    Ok(html.into_string())
}

struct Page<'a> {
    found: &'a Evaluation,
}

impl<'a> Page<'a> {
    /// The metrics of all rows, with their places in the list.
    fn all(&self) -> impl Iterator<Item = (usize, &'a Metric)> + use<'a> {
        self.found.metrics.iter().enumerate().filter(|(_, metric)| metric.population == Population::All)
    }

    fn first(&self) -> &'a str {
        self.found.models.first().map_or("", String::as_str)
    }

    fn summary(&self) -> Markup {
        let found = self.found;
        let about = &found.about;
        html! {
            section #verdict data-verdict=(if found.cautions.is_empty() { "none" } else { "unclear" }) aria-labelledby="verdict-title" {
                h2 #verdict-title { "Model " code { (self.first()) } ", corrected for who was labelled" }
                @for caution in &found.cautions { p.doubtful { (ticked(caution)) " " (DOUBTFUL) } }
                dl.numbers {
                    @for name in LARGE {
                        @if let Some((at, metric)) = self.all().find(|(_, m)| m.name == name && m.class.is_none() && m.group.is_none() && m.model == self.first()) {
                            (large(at, metric))
                        }
                    }
                }
                dl.facts.counts {
                    div { dt { "rows" } dd { (about.n) } }
                    div { dt { "labelled" } dd { (about.n_labelled) } }
                    div { dt { "classes" } dd { (about.classes.len()) } }
                    div { dt { "mechanism" } dd { (found.method) @if !found.given.is_empty() { ", by class and " (found.given.join(", ")) } } }
                    div { dt { "replicates of the intervals" } dd { (found.interval.replicates) } }
                }
                p { "Naive metrics describe the labelled rows as they are. Corrected metrics describe all rows: every row counts with the label that is expected of it." }
                @if !found.warnings.is_empty() {
                    h3 { "Warnings" }
                    ul.warnings { @for warning in &found.warnings { li { (ticked(warning)) } } }
                }
            }
        }
    }

    fn metrics_section(&self) -> Markup {
        let found = self.found;
        html! {
            section #metrics aria-labelledby="metrics-title" {
                h2 #metrics-title { "Metrics" }
                @for model in &found.models {
                    h3 { "Model " code { (model) } }
                    (table(&self.metrics_table(model), &format!("Metrics of {model}")))
                }
                @if !found.differences.is_empty() {
                    h3 { "Differences between models, on the same rows" }
                    (table(&self.differences_table(), "Differences between models"))
                }
            }
        }
    }

    fn metrics_table(&self, model: &str) -> Table {
        let found = self.found;
        let classes = found.about.classes.len();
        let unlabelled = |metric: &Metric| {
            found.metrics.iter().enumerate().find(|(_, other)| {
                other.population == Population::Unlabelled
                    && (other.name, &other.class, &other.group, &other.model)
                        == (metric.name, &metric.class, &metric.group, &metric.model)
            })
        };
        let complete = !found.metrics.iter().any(|metric| metric.population == Population::Unlabelled);
        let mut heading = vec!["metric", "naive", "corrected", "95% interval"];
        if !complete {
            heading.push("unlabelled rows");
        }
        let own = self.all().filter(|(_, m)| m.group.is_none() && m.model == model && listed(m, classes));
        let lines = own.map(|(at, metric)| {
            let mut line = line(words(metric.name, metric.class.as_deref()), at, metric);
            if !complete {
                line.push(unlabelled(metric).map_or_else(
                    || Cell::text("–"),
                    |(at, other)| Cell::maybe(other.corrected, format!("metrics.{at}.corrected")),
                ));
            }
            line
        });
        table_of(&heading, lines)
    }

    fn differences_table(&self) -> Table {
        let overall = self.found.differences.iter().enumerate().filter(|(_, difference)| {
            difference.class.is_none() && difference.group.is_none() && difference.population == Population::All
        });
        let lines = overall.map(|(at, difference)| {
            vec![
                Cell::text(format!("{}, {} less {}", words(difference.name, None), difference.model, difference.than)),
                Cell::maybe(difference.naive, format!("differences.{at}.naive")),
                Cell::maybe(difference.corrected, format!("differences.{at}.corrected")),
                Cell::interval(difference.ci95, format!("differences.{at}.ci95")),
            ]
        });
        table_of(&["difference", "naive", "corrected", "95% interval"], lines)
    }

    fn groups_section(&self, by: &str) -> Markup {
        use MetricName as M;
        let shown = |metric: &Metric| {
            let overall = matches!(metric.name, M::Accuracy | M::BalancedAccuracy | M::Auc) && metric.class.is_none();
            overall || (metric.name == M::Prevalence && metric.model == self.first())
        };
        let of_groups = self.all().filter(|(_, metric)| shown(metric)).filter_map(|(at, metric)| {
            let group = metric.group.as_ref()?;
            let mut line = line(words(metric.name, metric.class.as_deref()), at, metric);
            line.insert(0, Cell::text(group));
            line.push(Cell::text(if metric.name == M::Prevalence { "–" } else { &metric.model }));
            Some(line)
        });
        let heading = [by, "metric", "naive", "corrected", "95% interval", "model"];
        html! {
            section #groups aria-labelledby="groups-title" {
                h2 #groups-title { "By " code { (by) } }
                (table(&table_of(&heading, of_groups), &format!("Metrics by {by}")))
            }
        }
    }

    fn figures(&self) -> Vec<Figure> {
        let figures = [self.metrics_figure(), self.roc_figure(), self.calibration_figure(), self.confusion_figure()];
        figures.into_iter().flatten().collect()
    }

    /// Shares, naive beside corrected.
    fn metrics_figure(&self) -> Option<Figure> {
        use MetricName as M;
        let classes = self.found.about.classes.len();
        let is_share = |metric: &Metric| {
            !matches!(metric.name, M::LogLoss | M::Brier | M::CalibrationSlope | M::CalibrationError)
                && metric.group.is_none()
                && metric.model == self.first()
                && listed(metric, classes)
                && (metric.class.is_none() || classes <= CURVES)
        };
        let mut marks = Vec::new();
        for (_, metric) in self.all().filter(|(_, metric)| is_share(metric)) {
            let label = words(metric.name, metric.class.as_deref());
            let dot = |series, value, interval| Dot { label: label.clone(), series, value, interval };
            marks.extend(metric.corrected.map(|value| dot(0, value, metric.ci95)));
            marks.extend(metric.naive.map(|value| dot(1, value, None)));
        }
        (!marks.is_empty()).then(|| Figure {
            id: "metrics",
            title: "Naive and corrected".into(),
            about: format!(
                "Metrics of {} among all rows, with 95% intervals, next to those of the labelled rows as they are. Where the two differ, counting labelled rows misleads.",
                self.first()
            ),
            table: self.metrics_table(self.first()),
            chart: Chart::Dots { axis: "value".into(), series: vec!["corrected".into(), "naive".into()], marks },
        })
    }

    /// Of two classes, the second of every model; of more, every class of the first model.
    fn roc_figure(&self) -> Option<Figure> {
        let (curves, names) = (&self.found.curves, &self.found.about.classes);
        let shown: Vec<(String, &Vec<(f64, f64)>)> = match names.len() {
            2 => curves.iter().filter_map(|curve| Some((curve.model.clone(), curve.roc.get(1)?))).collect(),
            _ => curves.first().into_iter().flat_map(|curve| names.iter().cloned().zip(&curve.roc)).collect(),
        };
        let shown = &shown[..shown.len().min(CURVES)];
        let what = match names.len() {
            2 => format!("rows of {} that are found", names[1]),
            _ => "rows of a class that are found".to_owned(),
        };
        figure(
            "roc",
            "ROC curve",
            format!(
                "The share of {what}, against the share of other rows that are taken for it, as the threshold falls. All rows count with their expected labels."
            ),
            ("false positive rate", "true positive rate"),
            shown.iter().map(|(name, curve)| (name.as_str(), curve.to_vec())).collect(),
        )
    }

    fn calibration_figure(&self) -> Option<Figure> {
        let points = |curve: &Curves| {
            curve.calibration.iter().map(|bin| (bin.confidence, bin.accuracy.clamp(0.0, 1.0))).collect()
        };
        let curves = self.found.curves.iter().take(CURVES).map(|curve| (curve.model.as_str(), points(curve))).collect();
        figure(
            "calibration",
            "Calibration",
            "How often the most probable class is right, among rows for which it has about this probability. On the diagonal, probabilities mean what they say. All rows count with their expected labels.".to_owned(),
            ("probability of the most probable class", "share of right decisions"),
            curves,
        )
    }

    fn confusion_figure(&self) -> Option<Figure> {
        let names = &self.found.about.classes;
        let matrix = self.found.confusion.iter().find(|matrix| {
            matrix.model == self.first() && matrix.group.is_none() && matrix.population == Population::All
        });
        let matrix = matrix.filter(|_| names.len() <= MATRIX_CLASSES)?;
        let share = |row: &Vec<f64>| -> Vec<f64> {
            let sum: f64 = row.iter().sum();
            row.iter().map(|cell| if sum > 0.0 { (cell / sum).clamp(0.0, 1.0) } else { 0.0 }).collect()
        };
        let heading: Vec<&str> = std::iter::once("class").chain(names.iter().map(String::as_str)).collect();
        let lines = names.iter().zip(&matrix.corrected).map(|(class, row)| {
            let cells = row.iter().map(|&rows| Cell::Number { value: rows, text: format!("{rows:.1}"), path: None });
            std::iter::once(Cell::text(class)).chain(cells).collect()
        });
        Some(Figure {
            id: "confusion",
            title: "Which classes are confused?".into(),
            about: format!(
                "All rows of each class (down) by the decision of {} (across), as shares of the class; the table has expected numbers of rows.",
                self.first()
            ),
            table: table_of(&heading, lines),
            chart: Chart::Heat {
                x: "decision".into(),
                y: "class".into(),
                labels: names.clone(),
                cells: matrix.corrected.iter().map(share).collect(),
            },
        })
    }

    fn run_section(&self, provenance: &Provenance) -> Markup {
        let settings = serde_json::to_string_pretty(&provenance.settings).unwrap_or_default();
        html! {
            section #run aria-labelledby="run-title" {
                h2 #run-title { "How to reproduce this" }
                @if let Some(command) = &provenance.command { pre tabindex="0" { code { (command) } } }
                dl.facts {
                    dt { "version" } dd { (provenance.version) }
                    dt { "seed" } dd { (self.found.seed) }
                    @if !provenance.created.is_empty() { dt { "created" } dd { (provenance.created) } }
                    dt { "time" } dd { (format!("{:.1} s", provenance.seconds)) }
                }
                details.data {
                    summary { "All settings" }
                    pre tabindex="0" { code { (settings) } }
                }
            }
        }
    }
}

/// A metric as a line of a table.
fn line(name: String, at: usize, metric: &Metric) -> Vec<Cell> {
    vec![
        Cell::text(name),
        Cell::maybe(metric.naive, format!("metrics.{at}.naive")),
        Cell::maybe(metric.corrected, format!("metrics.{at}.corrected")),
        Cell::interval(metric.ci95, format!("metrics.{at}.ci95")),
    ]
}

/// A metric in large type, with its interval and what the labelled rows say. `at` is its place in the list `metrics`.
fn large(at: usize, metric: &Metric) -> Markup {
    large_metric(metric, &format!("metrics.{at}"))
}

/// The same with the path of the metric in the JSON.
pub(crate) fn large_metric(metric: &Metric, path: &str) -> Markup {
    let text = |value: f64| match metric.name {
        MetricName::Accuracy | MetricName::BalancedAccuracy => format!("{:.1}%", 100.0 * value),
        _ => format!("{value:.3}"),
    };
    let of = |value: f64, field: &str| linked(value, text(value), &format!("{path}.{field}"));
    html! {
        div {
            dt { (words(metric.name, None)) }
            dd { @match metric.corrected { Some(value) => (of(value, "corrected")), None => "–" } }
            @if let Some((low, high)) = metric.ci95 {
                dd.interval { "95% interval " (of(low, "ci95.0")) " to " (of(high, "ci95.1")) }
            }
            @if let Some(naive) = metric.naive { dd.interval { (of(naive, "naive")) " on labelled rows as they are" } }
        }
    }
}

fn figure(
    id: &'static str,
    title: &str,
    about: String,
    (x, y): (&str, &str),
    curves: Vec<(&str, Vec<(f64, f64)>)>,
) -> Option<Figure> {
    if curves.iter().all(|(_, curve)| curve.is_empty()) {
        return None;
    }
    let all = || {
        curves.iter().enumerate().flat_map(|(series, (name, curve))| curve.iter().map(move |at| (series, *name, *at)))
    };
    Some(Figure {
        id,
        title: title.to_owned(),
        about,
        table: table_of(
            &["curve", x, y],
            all().map(|(_, name, (x, y))| vec![Cell::text(name), Cell::number(x, None), Cell::number(y, None)]),
        ),
        chart: Chart::Lines {
            x: x.to_owned(),
            y: y.to_owned(),
            log_x: false,
            unit_square: true,
            series: curves.iter().map(|(name, _)| (*name).to_owned()).collect(),
            points: all().map(|(series, _, (x, y))| Point { series, x, y }).collect(),
            marked: Vec::new(),
        },
    })
}

fn table_of(heading: &[&str], lines: impl Iterator<Item = Vec<Cell>>) -> Table {
    Table { heading: heading.iter().map(|text| (*text).to_owned()).collect(), lines: lines.collect() }
}
