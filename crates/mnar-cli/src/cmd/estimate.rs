//! `mnar estimate`: phi and the class shares.

use crate::args::{EstimateArgs, Format, formulas};
use crate::hint::quoted;
use crate::imputed;
use crate::input::{Input, Loading, Table, say};
use crate::interrupt::Stop;
use crate::output::{self, Versioned};
use crate::streamed::Streamed;
use crate::terminal::Terminal;
use crate::weights::{self, WeightsFile};
use crate::{Outcome, Typed};
use anyhow::{Result, bail};
use mnar::analysis::{EstimateSettings, Findings, IntervalMethod, ReplicateWeights};
use mnar::keys::Buckets;
use mnar::{Progress as _, Rows};
use mnar_data::{AtomicFile, Formulas, LabelledRows, ParquetPredictions, RowNames, check_not_read, check_output};
use mnar_report::{bound_text, estimate_text};
use mnar_run::{PerClass, PositiveAnalysis, PositiveOptions, RunError, estimate_report};
use std::path::Path;
use std::time::Instant;

pub(crate) fn run(mut args: EstimateArgs, typed: &Typed) -> Result<Outcome> {
    let start = Instant::now();
    if args.report.is_some() && args.stream {
        bail!("--report needs the table in memory, and --stream leaves it in its file; use one of them");
    }
    if args.shares.is_empty() && args.phi.is_empty() {
        // Settings that do not go together are refused before the table is read.
        args.settings(&[])?.check(args.table.posterior)?;
    }
    for table in args.weights.iter().chain(&args.imputed) {
        check_output(table, &[&args.table.table])?;
    }
    if let Some(page) = &args.report {
        check_not_read(page, &[&args.table.table])?;
    }
    if args.weights.is_some() {
        weights::check_id(args.table.id.as_deref())?;
    }
    if args.imputed.is_some() {
        imputed::check_id(args.table.id.as_deref())?;
    }
    let in_memory_only = !args.sensitivity.is_empty()
        || args.report.is_some()
        || args.by.is_some()
        || args.table.audit.is_some()
        || args.imputed.is_some();
    let loading = match (args.stream, in_memory_only) {
        (true, _) => Loading::Stream,
        (false, true) => Loading::Load,
        (false, false) => Loading::Auto,
    };
    args.table.hold()?;
    let stop = Stop::on_signals()?;
    let terminal = Terminal::new(args.table.quiet, stop.flag());
    let estimated = match Input::read(&args.table, args.by.as_ref(), loading)? {
        Input::Stream(table) => streamed(&args, &table, &terminal),
        Input::Table(table) if table.positive_unlabelled().is_some() => {
            return positive(&args, &table, typed, &terminal, &stop);
        }
        Input::Table(table) => in_memory(&args, &table, typed, start, &terminal),
    };
    terminal.clear();
    let (settings, found) = match estimated {
        Err(error) if matches!(error.downcast_ref(), Some(mnar::Error::Cancelled)) => {
            return Ok(Outcome::Interrupted(stop.code()));
        }
        estimated => estimated?,
    };
    print(&args, typed, &settings, &found)?;
    Ok(Outcome::Done)
}

fn print(args: &EstimateArgs, typed: &Typed, settings: &EstimateSettings, found: &Findings) -> Result<()> {
    let beside = args.weights.as_deref();
    match args.table.format {
        Format::Json => output::print_json_beside(beside, &Versioned::new(found)),
        Format::Text => {
            let origin = typed.origin(&args.table.table, Some(&args.table.label), None);
            output::print_beside(beside, &estimate_text(found, settings, |task| origin.spell(task)))
        }
    }
}

fn in_memory(
    args: &EstimateArgs,
    table: &Table,
    typed: &Typed,
    start: Instant,
    terminal: &Terminal,
) -> Result<(EstimateSettings, Findings)> {
    let settings = args.settings(table.labels.names())?;
    let models = table.models(&args.table, terminal)?;
    let evidence = table.evidence(models.as_ref(), &args.table, terminal)?;
    let found = match &args.report {
        None => settings.run(&evidence, terminal)?,
        Some(path) => {
            let origin = typed.origin(&args.table.table, Some(&args.table.label), None);
            let (mut found, report) = estimate_report(&settings, &evidence, &origin, start, terminal)?;
            AtomicFile::write_text(path, &report.to_html()?)?;
            // What is printed does not depend on whether there is a report.
            found.classifier = None;
            if settings.sensitivity.is_empty() {
                (found.sensitivity, found.breakdown) = (None, None);
            }
            found
        }
    };
    if let Some(path) = &args.weights {
        let given = found.labelling.as_ref().map_or(&[][..], |labelling| &labelling.given);
        let draw = |count| settings.replicate_weights(&evidence, given, count as usize, terminal);
        let drawn = args.replicate_weights.map(draw).transpose()?;
        if let Some(failed) = drawn.as_ref().map(|drawn| drawn.failed).filter(|failed| *failed > 0) {
            terminal.warn(&format!("{failed} replicates failed and are left out of the file"));
        }
        write_weights(path, table, &found, drawn.as_ref(), formulas(args.keep_formulas))?;
    }
    if let Some(path) = &args.imputed {
        let given = found.labelling.as_ref().map_or(&[][..], |labelling| &labelling.given);
        let count = args.imputations.unwrap_or(IMPUTATIONS) as usize;
        let drawn = settings.imputations(&evidence, given, count, terminal)?;
        if drawn.failed > 0 {
            terminal.warn(&format!("{} imputations failed and are left out of the file", drawn.failed));
        }
        imputed::write(path, &table.labels, table.row_names.as_ref(), &drawn, formulas(args.keep_formulas))?;
    }
    Ok((settings, found))
}

/// How many times missing labels are drawn by default: with half of the information missing, 20 draws give standard errors
/// that are 1% larger than infinitely many would.
const IMPUTATIONS: u32 = 20;

/// Only one class is ever labelled: bounds, and an estimate where the share of the class is given.
fn positive(args: &EstimateArgs, table: &Table, typed: &Typed, terminal: &Terminal, stop: &Stop) -> Result<Outcome> {
    let Some(encoded) = table.positive_unlabelled() else { bail!("more than one class is labelled") };
    if args.imputed.is_some() {
        bail!("labels cannot be imputed where a single class is ever labelled; leave out --imputed");
    }
    say(&table.notes, terminal);
    let options = PositiveOptions {
        classifier: args.table.classifier,
        softmax: args.table.softmax(),
        folds: args.table.folds,
        seed: args.table.seed,
    };
    let analysis = PositiveAnalysis::new(encoded, &table.labels, &options, terminal);
    terminal.clear();
    let analysis = match analysis {
        Err(error) if error.is_cancelled() => return Ok(Outcome::Interrupted(stop.code())),
        analysis => analysis?,
    };
    if args.shares.is_empty() {
        if args.weights.is_some() || args.report.is_some() {
            return Err(RunError::ShareNeeded { bound: Box::new(analysis.bound) }.into());
        }
        match args.table.format {
            Format::Json => output::print_json(&Versioned::new(&analysis.bound))?,
            Format::Text => output::print(&format!(
                "{}\nIf you know how common the class is, give it: --shares {}. Then there are phi and weights, and `mnar fit` trains a model.\n",
                bound_text(&analysis.bound, &analysis.tried),
                quoted(&format!("{}=SHARE", analysis.bound.class))
            ))?,
        }
        return Ok(Outcome::Done);
    }
    let known = analysis.share(&PerClass::Items(args.shares.clone()))?;
    let found = analysis.findings(&table.labels, &known, args.table.seed)?;
    if let Some(path) = &args.weights {
        if args.replicate_weights.is_some() {
            bail!("--replicate-weights needs labels of at least two classes");
        }
        write_weights(path, table, &found, None, formulas(args.keep_formulas))?;
    }
    print(args, typed, &EstimateSettings::default(), &found)?;
    Ok(Outcome::Done)
}

fn streamed(
    args: &EstimateArgs,
    table: &ParquetPredictions,
    terminal: &Terminal,
) -> Result<(EstimateSettings, Findings)> {
    say(table.notes(), terminal);
    let settings = args.settings(table.names())?;
    let keys = (settings.interval == IntervalMethod::Bootstrap).then(|| Buckets::of_bootstrap(settings.seed));
    let rows = Streamed::new(table, &settings, keys)?;
    let found = rows.by_groups(rows.estimate(&settings)?)?;
    if let Some(path) = &args.weights {
        let (id, formulas) = (args.table.id.as_deref(), formulas(args.keep_formulas));
        let mut file = WeightsFile::create(path, id, table.names(), &found, None, formulas)?;
        let add = |rows: LabelledRows<'_>| {
            // Where labelling depends on columns, the phi of these rows follow from their terms.
            let phi = found.mechanism.as_ref().map(|mechanism| mechanism.of_terms(rows.given, rows.labels.len()));
            file.add(rows.labels, rows.names, phi.as_deref())
        };
        match &rows.beside {
            Some(rows) => rows.walk_labels(add)?,
            None => table.walk_labels(add)?,
        }
        file.commit()?;
    }
    Ok((settings, found))
}

/// Rows that are written at a time, the usual number for a row group of Parquet.
const PART: usize = 1 << 20;

fn write_weights(
    path: &Path,
    table: &Table,
    found: &Findings,
    replicates: Option<&ReplicateWeights>,
    formulas: Formulas,
) -> Result<()> {
    let (labels, row_names) = (&table.labels, table.row_names.as_ref());
    let id = row_names.map(|names| names.column.as_str());
    let mut file = WeightsFile::create(path, id, labels.names(), found, replicates, formulas)?;
    for (part, labels) in labels.as_slice().chunks(PART).enumerate() {
        let names = row_names.map(|RowNames { names, .. }| &names[part * PART..][..labels.len()]);
        let names = names.map(|names| names.iter().map(|name| Some(name.as_str()).filter(|name| !name.is_empty())));
        let phi = found.row_phi.as_ref().map(|rows| &rows[part * PART..][..labels.len()]);
        file.add(labels, names.map(Iterator::collect), phi)?;
    }
    file.commit()
}
