//! What was seen in a file, as text for a terminal.

use crate::hint::flag;
use mnar::analysis::LabellingRate;
use mnar_report::{TextTable, cut, printable};
use mnar_run::{ColumnInspection, ColumnKind, Inspection, Summary};
use std::fmt::Write as _;

/// Columns that are listed; a list of numbers may make thousands.
const LISTED: usize = 100;

/// Columns of a usual terminal.
const WIDTH: usize = 80;

/// Letters of a name in a sentence.
const LETTERS: usize = 24;

/// The facts, what is wrong, and the command to go on with.
pub(crate) fn to_text(found: &Inspection, next: &str) -> String {
    let mut out = head(found);
    out.push_str(&classes(found));
    if !found.columns.is_empty() {
        out.push_str("\nColumns, as they are in the file:\n");
        let width = found.columns.iter().take(LISTED).map(|column| cut(&column.name, LETTERS).chars().count());
        let width = width.max().unwrap_or(0);
        found.columns.iter().take(LISTED).for_each(|column| out.push_str(&one_column(column, width)));
        if found.columns.len() > LISTED {
            let _ = writeln!(out, "  and {} more columns; --format json has them all", found.columns.len() - LISTED);
        }
    }
    section(&mut out, notes(found).into_iter());
    section(&mut out, skipped(found).into_iter());
    for problem in &found.problems {
        let _ = write!(out, "\nproblem: {}\n", lines(&problem.message));
        problem.remedies.iter().for_each(|remedy| out.push_str(&format!("hint: {}\n", printable(&flag(remedy)))));
    }
    out.push_str(&differs(found));
    out.push_str(&could_be(found));
    let when = if found.problems.is_empty() { "Next" } else { "Next, once the problems are solved" };
    let _ = write!(out, "\n{when}: {}\n", printable(next));
    out
}

/// The notes, and below them what could be done; the same hint once for notes that follow each other.
fn notes(found: &Inspection) -> Vec<String> {
    let remedies = |note: Option<&String>| {
        let hint = note.and_then(|note| found.hints.iter().find(|hint| hint.note == *note));
        hint.map_or(&[][..], |hint| &hint.remedies)
    };
    let mut lines = Vec::new();
    for (i, note) in found.notes.iter().enumerate() {
        lines.push(format!("note: {note}"));
        let these = remedies(Some(note));
        if these != remedies(found.notes.get(i + 1)) {
            lines.extend(these.iter().map(|remedy| format!("hint: {}", flag(remedy))));
        }
    }
    lines
}

/// The lines of a list of problems stay lines.
fn lines(text: &str) -> String {
    text.lines().map(printable).collect::<Vec<_>>().join("\n")
}

fn section(out: &mut String, lines: impl Iterator<Item = String>) {
    for (i, line) in lines.enumerate() {
        let _ = writeln!(out, "{}{}", if i == 0 { "\n" } else { "" }, printable(&line));
    }
}

fn head(found: &Inspection) -> String {
    let source = printable(&found.source);
    let rows = found.rows;
    match (&found.shape, found.columns.is_empty()) {
        (_, false) => {
            let used = found.columns.iter().filter(|column| column.used).count();
            let features = if found.labelled.is_some() {
                format!(", of which {used} will be {}", if used == 1 { "a feature" } else { "features" })
            } else {
                String::new()
            };
            format!("{source}: {} with {} rows and {} columns{features}\n", found.kind, rows, found.columns.len())
        }
        (Some(shape), true) => format!("{source}: {} with {rows} images, {shape}\n", found.kind),
        (None, true) => format!("{source}: {} with {rows} images\n", found.kind),
    }
}

fn classes(found: &Inspection) -> String {
    let Some(labelled) = found.labelled else { return String::new() };
    let (rows, what) = (found.rows, if found.columns.is_empty() { "images" } else { "rows" });
    let share = percent(labelled as f64 / rows.max(1) as f64);
    let label = found.label.as_ref().map_or(String::new(), |label| format!(" in `{}`", cut(label, LETTERS)));
    let mut out = format!("{labelled} of {rows} {what} have a label{label} ({share}).\n\n");
    if labelled == 0 {
        return out;
    }
    let mut table = TextTable::new(&["class", "labels", "share of labels"]);
    for class in &found.classes {
        table.row(vec![class.name.clone(), class.rows.to_string(), percent(class.share)]);
    }
    out.push_str(&table.render());
    out
}

fn one_column(column: &ColumnInspection, width: usize) -> String {
    let name = cut(&column.name, LETTERS);
    let pad = " ".repeat(width.saturating_sub(name.chars().count()));
    let mut first = match (column.kind, column.levels) {
        (ColumnKind::Number, _) => "number".to_owned(),
        (ColumnKind::Date, _) => "date".to_owned(),
        (ColumnKind::Name, Some(1)) => "name, 1 level".to_owned(),
        (ColumnKind::Name, levels) => format!("name, {} levels", levels.unwrap_or(0)),
        _ => "could not be read".to_owned(),
    };
    if let Some(missing) = column.missing.filter(|missing| *missing > 0.0) {
        let _ = write!(first, ", {} missing", percent(missing));
    }
    let summary = column.summary.as_ref().map(summary);
    let left_out = column.why_not.as_ref().map(|why| format!("not a feature: {}", printable(why)));
    let labelled = column.extremes().map(|(low, high)| {
        let said = |rate: &LabellingRate| format!("{} ({})", percent(rate.rate), cut(&rate.group, LETTERS));
        (format!("labelled: lowest {},", said(low)), format!("highest {}", said(high)))
    });
    let mut out = format!("  {name}{pad}  {first}\n");
    let indent = " ".repeat(width + 4);
    for line in [left_out, summary].into_iter().flatten() {
        let _ = writeln!(out, "{indent}{line}");
    }
    if let Some((low, high)) = labelled {
        let fits = indent.len() + low.chars().count() + 1 + high.chars().count() <= WIDTH;
        let between = if fits { " ".to_owned() } else { format!("\n{indent}          ") };
        let _ = writeln!(out, "{indent}{low}{between}{high}");
    }
    out
}

fn summary(summary: &Summary) -> String {
    match summary {
        Summary::Numbers { min, median, max } => {
            format!("from {} to {}, median {}", short(*min), short(*max), short(*median))
        }
        Summary::Dates { min, median, max } => format!("from {min} to {max}, median {median}"),
        Summary::Names { most_common } => {
            let name = |count: &mnar_run::NameCount| format!("{} ({})", cut(&count.name, LETTERS), count.rows);
            most_common.iter().map(name).collect::<Vec<_>>().join(", ")
        }
        _ => String::new(),
    }
}

/// Up to six digits that matter, as the number would be written.
fn short(value: f64) -> String {
    if value == 0.0 || value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value}");
    }
    let size = value.abs().log10().floor() as i32;
    if !(-4..15).contains(&size) {
        return format!("{value:.3e}");
    }
    let text = format!("{value:.*}", (5 - size).clamp(0, 10) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

fn skipped(found: &Inspection) -> Vec<String> {
    const MOST: usize = 10;
    let mut said: Vec<String> = found.skipped.iter().take(MOST).map(|entry| format!("skipped: {entry}")).collect();
    if found.skipped.len() > MOST {
        said.push(format!("skipped: {} more", found.skipped.len() - MOST));
    }
    said
}

fn differs(found: &Inspection) -> String {
    if found.differs_most.is_empty() {
        return String::new();
    }
    let names = found.differs_most.iter().map(|difference| format!("`{}`", cut(&difference.column, LETTERS)));
    format!("\nThe labelling rate differs most along {}.\n", joined(&names.collect::<Vec<_>>()))
}

fn could_be(found: &Inspection) -> String {
    const MOST: usize = 5;
    if found.labelled.is_some() || found.columns.is_empty() || found.label.is_some() {
        return String::new();
    }
    if found.could_be_label.is_empty() {
        return "\nNo column has few values and gaps, as a label would; name the label column.\n".to_owned();
    }
    let names = found.could_be_label.iter().take(MOST).map(|name| format!("`{}`", cut(name, LETTERS)));
    let names = names.collect::<Vec<_>>().join(" or ");
    format!("\nThe label could be {names}: few values, with gaps.\n")
}

fn joined(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first, second] => format!("{first} and {second}"),
        [rest @ .., last] => format!("{}, and {last}", rest.join(", ")),
    }
}
