//! `mnar estimate`: phi and the class shares.

use crate::args::{EstimateArgs, Format, formulas};
use crate::input::{Input, Loading, Table};
use crate::interrupt::stop_on_ctrl_c;
use crate::output::{self, Versioned};
use crate::terminal::Terminal;
use crate::{Outcome, Typed};
use anyhow::{Result, bail};
use mnar::analysis::{About, EstimateSettings, Findings, Given};
use mnar::risk::RiskWeights;
use mnar::{Labels, Rows};
use mnar_data::{AtomicFile, Column, Formulas, ParquetPredictions};
use mnar_report::estimate_text;
use mnar_run::estimate_report;
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
    let by_columns = matches!(args.table.given, Given::Columns(_));
    if args.stream && by_columns {
        bail!("--given needs the table in memory, and --stream leaves it in its file; use one of them");
    }
    let in_memory_only = !args.sensitivity.is_empty()
        || args.weights.is_some()
        || args.report.is_some()
        || args.by.is_some()
        || args.table.audit.is_some()
        || by_columns;
    let loading = match (args.stream, in_memory_only) {
        (true, _) => Loading::Stream,
        (false, true) => Loading::Load,
        (false, false) => Loading::Auto,
    };
    args.table.hold()?;
    let terminal = Terminal::new(args.table.quiet, stop_on_ctrl_c()?);
    let estimated = match Input::read(&args.table, args.by.as_ref(), loading)? {
        Input::Stream(table) => streamed(&args, &table),
        Input::Table(table) => in_memory(&args, &table, typed, start, &terminal),
    };
    terminal.clear();
    let (settings, found) = match estimated {
        Err(error) if matches!(error.downcast_ref(), Some(mnar::Error::Cancelled)) => return Ok(Outcome::Interrupted),
        estimated => estimated?,
    };
    match args.table.format {
        Format::Json => output::print_json(&Versioned::new(&found))?,
        Format::Text => output::print(&estimate_text(&found, &settings))?,
    }
    Ok(Outcome::Done)
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
            let origin = typed.origin(&args.table.table);
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
        write_weights(path, &table.labels, &found, formulas(args.keep_formulas))?;
    }
    Ok((settings, found))
}

fn streamed(args: &EstimateArgs, table: &ParquetPredictions) -> Result<(EstimateSettings, Findings)> {
    let settings = args.settings(table.names())?;
    let about = About {
        classes: table.names().to_vec(),
        n: table.rows(),
        n_labelled: table.n_labelled(),
        labelled_per_class: table.counts().to_vec(),
    };
    let found = settings.run_streamed(table, about)?;
    Ok((settings, found))
}

fn write_weights(path: &Path, labels: &Labels, found: &Findings, formulas: Formulas) -> Result<()> {
    let by_class = RiskWeights::new(&found.phi);
    let rows: Vec<u64> = (1..=labels.len() as u64).collect();
    let names = labels.as_slice().iter().map(|label| label.map(|class| labels.name(class))).collect();
    // Where labelling depends on columns, every row has weights of its own.
    let (mut ell, mut h) = (Vec::with_capacity(labels.len()), Vec::with_capacity(labels.len()));
    for (row, &label) in labels.as_slice().iter().enumerate() {
        let of_row = found.row_phi.as_ref().map(|rows| RiskWeights::new(&rows[row]));
        let weights = of_row.as_ref().unwrap_or(&by_class);
        ell.push(weights.ell(label));
        h.push(weights.h(label));
    }
    mnar_data::write_table_with(
        path,
        &[
            ("row", Column::Integers(&rows)),
            ("label", Column::Texts(names)),
            ("weight_labelled_loss", Column::Numbers(&ell)),
            ("weight_unlabelled_loss", Column::Numbers(&h)),
        ],
        formulas,
    )?;
    Ok(())
}
