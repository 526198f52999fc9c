//! `mnar estimate`: phi and the class shares.

use crate::Outcome;
use crate::args::{EstimateArgs, Format};
use crate::cmd::fit::typed_origin;
use crate::input::{Input, Table};
use crate::output::{self, Versioned};
use crate::plan;
use anyhow::{Result, bail};
use mnar::analysis::{About, EstimateSettings, Findings};
use mnar::risk::RiskWeights;
use mnar::{Labels, Phi, Rows};
use mnar_data::{AtomicFile, Column, ParquetPredictions};
use mnar_report::{Occasion, Report, estimate_text};
use std::path::Path;
use std::time::{Instant, SystemTime};

pub(crate) fn run(args: EstimateArgs) -> Result<Outcome> {
    let start = Instant::now();
    if args.report.is_some() && args.stream {
        bail!("--report needs the table in memory, and --stream leaves it in its file; use one of them");
    }
    let may_stream = args.sensitivity.is_empty() && args.weights.is_none() && args.report.is_none();
    let (settings, found) = match Input::read(&args.table, args.stream, may_stream)? {
        Input::Stream(table) => streamed(&args, &table)?,
        Input::Table(table) => in_memory(&args, &table, start)?,
    };
    match args.table.format {
        Format::Json => output::print_json(&Versioned::new(&found))?,
        Format::Text => output::print(&estimate_text(&found, &settings))?,
    }
    Ok(Outcome::Done)
}

fn in_memory(args: &EstimateArgs, table: &Table, start: Instant) -> Result<(EstimateSettings, Findings)> {
    let settings = plan::estimate(args, table.labels.names())?;
    let given = table.given();
    let found = settings.run(&given, &output::Bar::new(args.table.quiet))?;
    if let Some(path) = &args.weights {
        write_weights(path, &table.labels, &Phi::new(found.phi.clone())?)?;
    }
    if let Some(path) = &args.report {
        let origin = typed_origin(&args.table.table);
        let occasion = Occasion {
            title: origin.title,
            command: origin.command,
            created: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            seconds: start.elapsed().as_secs_f64(),
        };
        AtomicFile::write_text(path, &Report::of_estimate(&found, &given, occasion)?.to_html()?)?;
    }
    Ok((settings, found))
}

fn streamed(args: &EstimateArgs, table: &ParquetPredictions) -> Result<(EstimateSettings, Findings)> {
    let settings = plan::estimate(args, table.names())?;
    let about = About {
        classes: table.names().to_vec(),
        n: table.rows(),
        n_labelled: table.n_labelled(),
        labelled_per_class: table.counts().to_vec(),
    };
    let found = settings.run_streamed(table, about)?;
    Ok((settings, found))
}

fn write_weights(path: &Path, labels: &Labels, phi: &Phi) -> Result<()> {
    let weights = RiskWeights::new(phi);
    let rows: Vec<u64> = (1..=labels.len() as u64).collect();
    let names = labels.as_slice().iter().map(|label| label.map(|class| labels.name(class))).collect();
    let ell: Vec<f64> = labels.as_slice().iter().map(|label| weights.ell(*label)).collect();
    let h: Vec<f64> = labels.as_slice().iter().map(|label| weights.h(*label)).collect();
    mnar_data::write_table(
        path,
        &[
            ("row", Column::Integers(&rows)),
            ("label", Column::Texts(names)),
            ("weight_labelled_loss", Column::Numbers(&ell)),
            ("weight_unlabelled_loss", Column::Numbers(&h)),
        ],
    )?;
    Ok(())
}
