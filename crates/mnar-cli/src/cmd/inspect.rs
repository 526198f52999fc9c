//! `mnar inspect`: how a file is read, and how often rows are labelled along each column.

use crate::Outcome;
use crate::args::{Format, InspectArgs, source};
use crate::hint::{flag, quoted};
use crate::inspection::to_text;
use crate::output::{self, Versioned};
use anyhow::Result;
use mnar::Remedy;
use mnar_data::TextTable;
use mnar_run::{Inspection, inspect};
use serde::Serialize;

/// The facts, and the command to go on with.
#[derive(Serialize)]
struct WithNext<'a> {
    #[serde(flatten)]
    found: &'a Inspection,
    next: &'a str,
}

pub(crate) fn run(args: &InspectArgs) -> Result<Outcome> {
    let held = TextTable::hold(&args.data, args.memory.most())?;
    let found = inspect(source(&args.data, held.as_ref(), args.memory.most()), &args.read_options())?;
    let next = next(args, &found);
    match args.format {
        Format::Json => output::print_json(&Versioned::new(WithNext { found: &found, next: &next }))?,
        Format::Text => output::print(&to_text(&found, &next))?,
    }
    Ok(Outcome::Done)
}

/// The next command, ready to be pasted, with the options that change how the file is read.
fn next(args: &InspectArgs, found: &Inspection) -> String {
    let mut read = Vec::new();
    read.extend(args.missing.iter().map(|value| Remedy::set("missing", value)));
    read.extend(args.categorical.iter().map(|column| Remedy::set("categorical", column)));
    read.extend(args.labels_as_they_are.then(|| Remedy::set("labels-as-they-are", "")));
    read.extend(args.merge_labels.then(|| Remedy::set("merge-labels", "")));
    read.extend(args.sheet.iter().map(|sheet| Remedy::set("sheet", sheet)));
    read.extend((args.skip_rows > 0).then(|| Remedy::set("skip-rows", args.skip_rows.to_string())));
    let mut not_features: Vec<Remedy> = args.ignore.iter().map(|column| Remedy::set("ignore", column)).collect();
    not_features.extend(args.id.iter().map(|column| Remedy::set("id", column)));

    let is_table = !found.columns.is_empty();
    let all_labelled = found.labelled == Some(found.rows);
    let (command, features) = match &found.label {
        None if is_table && found.labelled.is_none() => ("inspect", None),
        // `estimate` takes all columns or a list; only `fit` leaves some out.
        Some(_) if is_table && not_features.is_empty() && !all_labelled => {
            ("estimate", Some(Remedy::set("features", "all")))
        }
        _ => ("fit", None),
    };
    let label = match &found.label {
        Some(label) => Some(label.clone()),
        None if command == "inspect" => Some(found.could_be_label.first().map_or("COLUMN", String::as_str).to_owned()),
        None => None,
    };
    if command == "estimate" {
        not_features.clear();
    }
    let label = label.map(|label| Remedy::set("label", label));
    let options = label.into_iter().chain(features).chain(read).chain(not_features).map(|option| flag(&option));
    // A name that starts with a dash would be taken for a flag; `-` alone is standard input.
    let data = args.data.to_string_lossy();
    let data = if data.len() > 1 && data.starts_with('-') { format!("./{data}") } else { data.into_owned() };
    let words = ["mnar".to_owned(), command.to_owned(), quoted(&data)].into_iter().chain(options);
    words.collect::<Vec<_>>().join(" ")
}
