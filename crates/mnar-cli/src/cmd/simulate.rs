//! `mnar simulate`: hides labels by a known mechanism.

use crate::Outcome;
use crate::args::{Format, SimulateArgs, source};
use crate::hint::flag;
use crate::output;
use anyhow::{Result, bail};
use mnar::Phi;
use mnar::covariates::CovariateValues;
use mnar_data::{Note, ReadOptions, Source, check_output, is_stdout};
use mnar_report::number;
use mnar_run::PerClass;
use serde::Serialize;
use std::collections::BTreeSet;

#[derive(Serialize)]
struct SimulateOutput {
    version: &'static str,
    classes: Vec<String>,
    n: usize,
    n_labelled: usize,
    labelled_per_class: Vec<usize>,
    rows_per_class: Vec<usize>,
    phi: Phi,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    odds: Vec<String>,
    seed: u64,
    output: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

pub(crate) fn run(args: SimulateArgs) -> Result<Outcome> {
    check_output(&args.output, &[&args.table])?;
    // A table that can be read only once is held, because it is read several times.
    let held = mnar_data::TextTable::hold(&args.table, args.memory.most())?;
    let source = source(&args.table, held.as_ref(), args.memory.most()).with_skip_rows(args.skip_rows);
    let options = ReadOptions {
        label: Some(args.label.clone()),
        missing: args.missing.clone(),
        labels_as_they_are: args.labels_as_they_are,
        merge_labels: args.merge_labels,
        ..Default::default()
    };
    let (labels, notes) = mnar_data::read_labels(source, &options)?;
    if labels.n_labelled() == 0 {
        bail!("{}: column `{}` has no label to hide", args.table.display(), args.label);
    }
    let phi = Phi::new(PerClass::Items(args.phi).resolve("phi", labels.names())?)?;
    let kept = match args.odds.as_slice() {
        [] => mnar::simulate::mask(&labels, &phi, args.seed)?,
        odds => {
            let log_odds = log_odds(source, odds, &args.missing, labels.len())?;
            mnar::simulate::mask_by_columns(&labels, &phi, &log_odds, args.seed)?
        }
    };
    mnar_data::mask_labels(source, &args.output, &args.label, &args.missing, args.keep_truth.as_deref(), &kept)?;
    let mut left = vec![0; labels.n_classes()];
    for (i, class) in labels.labelled() {
        left[class.index()] += usize::from(kept[i]);
    }
    let result = SimulateOutput {
        version: env!("CARGO_PKG_VERSION"),
        classes: labels.names().to_vec(),
        n: labels.len(),
        n_labelled: left.iter().sum(),
        rows_per_class: labels.counts().to_vec(),
        labelled_per_class: left,
        phi,
        odds: args.odds,
        seed: args.seed,
        output: match is_stdout(&args.output) {
            true => "standard output".to_owned(),
            false => args.output.display().to_string(),
        },
        notes: notes.iter().map(Note::to_string).collect(),
    };
    let hints: BTreeSet<String> = notes.iter().flat_map(Note::remedies).map(|remedy| flag(&remedy)).collect();
    match args.format {
        Format::Json => output::print_json_beside(Some(&args.output), &result)?,
        Format::Text => output::print_beside(Some(&args.output), &text(&result, &hints))?,
    }
    Ok(Outcome::Done)
}

/// The logarithm of every row's factor.
fn log_odds(table: Source<'_>, odds: &[String], missing: &[String], rows: usize) -> Result<Vec<f64>> {
    let mut total = vec![0.0; rows];
    for word in odds {
        let parsed = word.rsplit_once('=').and_then(|(of, factor)| Some((of, factor.trim().parse::<f64>().ok()?)));
        let Some((of, factor)) = parsed.filter(|(_, factor)| *factor > 0.0 && factor.is_finite()) else {
            bail!(
                "--odds {word}: expected COLUMN=FACTOR or COLUMN:VALUE=FACTOR with a positive factor, such as age=2 or hospital:North=8"
            );
        };
        let (column, value) = match of.split_once(':') {
            Some((column, value)) => (column.trim(), Some(value.trim())),
            None => (of.trim(), None),
        };
        let columns = mnar_data::read_columns(table, &[column.to_owned()], missing)?;
        let Some(column) = columns.column(column) else {
            bail!("--odds {word}: a list of numbers cannot be given odds");
        };
        match (column.covariate().values, value) {
            (CovariateValues::Numeric(values), None) => {
                let present: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
                let mean = present.iter().sum::<f64>() / present.len().max(1) as f64;
                let squares: f64 = present.iter().map(|value| (value - mean).powi(2)).sum();
                let sd = (squares / present.len().max(1) as f64).sqrt();
                for (total, value) in total.iter_mut().zip(values) {
                    if !value.is_nan() && sd > 0.0 {
                        *total += factor.ln() * (value - mean) / sd;
                    }
                }
            }
            (CovariateValues::Numeric(values), Some(wanted)) => {
                let Ok(wanted) = wanted.parse::<f64>() else {
                    bail!("--odds {word}: the column holds numbers, and `{wanted}` is not one");
                };
                let hits = total.iter_mut().zip(values).filter(|(_, value)| *value == wanted);
                hits.for_each(|(total, _)| *total += factor.ln());
            }
            (CovariateValues::Categorical { levels, codes }, Some(wanted)) => {
                let Some(code) = levels.iter().position(|level| level == wanted) else {
                    bail!("--odds {word}: there is no `{wanted}` in the column; it has {}", shown(&levels));
                };
                let hits = total.iter_mut().zip(codes).filter(|(_, of)| *of == Some(code as u32));
                hits.for_each(|(total, _)| *total += factor.ln());
            }
            (CovariateValues::Categorical { levels, .. }, None) => {
                let example = levels.first().map_or("", String::as_str);
                bail!("--odds {word}: the column holds names; say which, such as {}:{example}={factor}", column.name);
            }
        }
    }
    Ok(total)
}

fn shown(levels: &[String]) -> String {
    const SHOWN: usize = 8;
    let more = if levels.len() > SHOWN { ", ..." } else { "" };
    levels.iter().take(SHOWN).map(|level| format!("`{level}`")).collect::<Vec<_>>().join(", ") + more
}

fn text(result: &SimulateOutput, hints: &BTreeSet<String>) -> String {
    // With odds by column, phi is that of rows whose odds are not changed.
    let asked = if result.odds.is_empty() { "phi" } else { "phi before --odds" };
    let mut table = mnar_report::TextTable::new(&["class", "rows", "labels kept", "share kept", asked]);
    for (k, class) in result.classes.iter().enumerate() {
        let (rows, kept) = (result.rows_per_class[k], result.labelled_per_class[k]);
        let share = number(kept as f64 / rows.max(1) as f64);
        table.row(vec![class.clone(), rows.to_string(), kept.to_string(), share, number(result.phi[k])]);
    }
    let notes: String = result.notes.iter().map(|note| format!("\nnote: {note}\n")).collect();
    let hints: String = hints.iter().map(|hint| format!("hint: {hint}\n")).collect();
    format!(
        "{} of {} rows keep their label (seed {}); written to {}\n\n{}{notes}{hints}",
        result.n_labelled,
        result.n,
        result.seed,
        result.output,
        table.render()
    )
}
