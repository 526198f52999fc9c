//! An evaluation as text.

use crate::labelling::DOUBTFUL;
use crate::table::{TextTable, interval, number, printable};
use mnar::analysis::IntervalKind;
use mnar::evaluate::{Evaluation, Metric, MetricName, Population};

/// The number of classes up to which all metrics of each class are shown; with more, the most important ones are. JSON has all of them.
const FEW_CLASSES: usize = 3;
/// The number of classes up to which the confusion matrix is shown.
const MATRIX_CLASSES: usize = 6;

/// An evaluation as text that fits 80 columns: what speaks against it, then a table for every model, comparisons, groups and
/// the confusion matrix.
pub fn evaluate_text(found: &Evaluation) -> String {
    let mut out = String::new();
    for caution in &found.cautions {
        out.push_str(&format!("caution: {}\n", printable(caution)));
    }
    if !found.cautions.is_empty() {
        out.push_str(&format!("{DOUBTFUL}\n\n"));
    }
    for model in &found.models {
        out.push_str(&format!("Model `{}`\n\n{}\n", printable(model), model_table(found, model)));
    }
    if !found.differences.is_empty() {
        out.push_str(&differences(found));
    }
    if let Some(by) = &found.by {
        out.push_str(&groups(found, by));
    }
    if found.about.classes.len() <= MATRIX_CLASSES {
        out.push_str(&confusion(found));
    }
    out.push_str(&about(found));
    for warning in &found.warnings {
        out.push_str(&format!("warning: {}\n", printable(warning)));
    }
    out
}

pub(crate) fn words(name: MetricName, class: Option<&str>) -> String {
    let name = match name {
        MetricName::Npv => "negative predictive value".to_owned(),
        MetricName::Auc => "AUC".to_owned(),
        MetricName::Brier => "Brier score".to_owned(),
        MetricName::F1 => "F1".to_owned(),
        name => name.name().replace('_', " "),
    };
    match class {
        Some(class) => format!("{name}, {class}"),
        None => name,
    }
}

fn shown(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), number)
}

fn between(ends: Option<(f64, f64)>) -> String {
    ends.map_or("-".to_owned(), interval)
}

pub(crate) fn listed(metric: &Metric, classes: usize) -> bool {
    use MetricName as M;
    metric.class.is_none()
        || classes <= FEW_CLASSES
        || matches!(metric.name, M::Recall | M::Precision | M::Auc | M::Prevalence)
}

fn model_table(found: &Evaluation, model: &str) -> String {
    let classes = found.about.classes.len();
    let of = |population: Population| {
        found.metrics.iter().filter(move |m| m.model == model && m.group.is_none() && m.population == population)
    };
    let complete = of(Population::Unlabelled).next().is_none();
    let mut header = vec!["", "naive", "corrected", "95% interval"];
    if !complete {
        header.push("unlabelled");
    }
    let mut table = TextTable::new(&header);
    for metric in of(Population::All).filter(|metric| listed(metric, classes)) {
        let mut cells = vec![
            words(metric.name, metric.class.as_deref()),
            shown(metric.naive),
            shown(metric.corrected),
            between(metric.ci95),
        ];
        if !complete {
            let same = of(Population::Unlabelled).find(|m| m.name == metric.name && m.class == metric.class);
            cells.push(shown(same.and_then(|same| same.corrected)));
        }
        table.row(cells);
    }
    table.render()
}

fn differences(found: &Evaluation) -> String {
    let mut table = TextTable::new(&["", "naive", "corrected", "95% interval"]);
    let overall =
        found.differences.iter().filter(|d| d.class.is_none() && d.group.is_none() && d.population == Population::All);
    for difference in overall {
        table.row(vec![
            format!("{}, {} less {}", words(difference.name, None), difference.model, difference.than),
            shown(difference.naive),
            shown(difference.corrected),
            between(difference.ci95),
        ]);
    }
    format!("Differences between models, on the same rows\n\n{}\n", table.render())
}

fn groups(found: &Evaluation, by: &str) -> String {
    use MetricName as M;
    let mut table = TextTable::new(&["", "naive", "corrected", "95% interval"]);
    let in_groups = found.metrics.iter().filter(|metric| {
        metric.population == Population::All
            && matches!(
                (metric.name, &metric.class),
                (M::Accuracy | M::BalancedAccuracy | M::Auc, None) | (M::Prevalence, Some(_))
            )
    });
    let several = found.models.len() > 1;
    for metric in in_groups {
        let Some(group) = &metric.group else { continue };
        if metric.name == M::Prevalence && Some(&metric.model) != found.models.first() {
            continue;
        }
        let model = if several && metric.name != M::Prevalence { format!(", {}", metric.model) } else { String::new() };
        let what = words(metric.name, metric.class.as_deref());
        table.row(vec![
            format!("{group}: {what}{model}"),
            shown(metric.naive),
            shown(metric.corrected),
            between(metric.ci95),
        ]);
    }
    format!("By `{}`\n\n{}\n", printable(by), table.render())
}

fn confusion(found: &Evaluation) -> String {
    let mut out = String::new();
    for model in &found.models {
        let matrix =
            found.confusion.iter().find(|m| m.model == *model && m.group.is_none() && m.population == Population::All);
        let Some(matrix) = matrix else { continue };
        let taken: Vec<String> = found.about.classes.iter().map(|class| format!("as {class}")).collect();
        let header: Vec<&str> = std::iter::once("class").chain(taken.iter().map(String::as_str)).collect();
        let mut table = TextTable::new(&header);
        for (class, row) in found.about.classes.iter().zip(&matrix.corrected) {
            table.row(std::iter::once(class.clone()).chain(row.iter().map(|cell| format!("{cell:.1}"))).collect());
        }
        out.push_str(&format!("All rows by class and decision of `{}`\n\n{}\n", printable(model), table.render()));
    }
    out
}

fn about(found: &Evaluation) -> String {
    let rows = &found.about;
    let given = if found.given.is_empty() { String::new() } else { format!(" and {}", found.given.join(", ")) };
    let mechanism = match found.method.as_str() {
        "none" => "no label is missing".to_owned(),
        method => {
            let phi = rows.classes.iter().zip(found.phi.iter());
            let phi: Vec<String> = phi.take(6).map(|(class, phi)| format!("{class} {phi:.3}")).collect();
            let more = if rows.classes.len() > 6 { ", ..." } else { "" };
            format!("by class{given}, {method}; phi: {}{more}", phi.join(", "))
        }
    };
    let intervals = match found.interval.replicates {
        0 => "none".to_owned(),
        n if found.interval.kind == IntervalKind::Jackknife => {
            format!("jackknife of rows and mechanism, {n} buckets of rows")
        }
        n => format!("bootstrap of rows and mechanism, {n} replicates"),
    };
    format!(
        "  rows         {} ({} labelled), effective sample size of the 1/phi weights {:.0}\n  mechanism    {}\n  estimate     {}\n  intervals    {intervals}; seed {}\n",
        rows.n,
        rows.n_labelled,
        found.effective_sample_size,
        printable(&mechanism),
        if found.augmented {
            "labelled rows by 1/phi, unlabelled rows by their expected labels"
        } else {
            "labelled rows by 1/phi, unlabelled rows left out"
        },
        found.seed
    )
}
