//! `mnar fit`: from a file to a model corrected for label-selection bias.

use crate::args::{FitArgs, Format, formulas, source};
use crate::environment::checkpoint_every;
use crate::interrupt::Stop;
use crate::terminal::Terminal;
use crate::{Outcome, Typed, output};
use anyhow::Result;
use mnar_data::TextTable;
use mnar_report::Report;
use mnar_run::{FitOptions, FitRequest, fit};
use std::path::{Path, PathBuf};

pub(crate) fn run(args: FitArgs, typed: &Typed) -> Result<Outcome> {
    let options = match &args.settings {
        Some(path) => args.options.or(FitOptions::read(path)?)?,
        None => args.options,
    };
    let held = TextTable::hold(&args.data, args.memory.most())?;
    let folder = args.out.unwrap_or_else(|| default_folder(&args.data));
    let label = options.label.clone();
    let request = FitRequest {
        options,
        resume: args.resume,
        origin: typed.origin(&args.data, label.as_deref(), Some(&folder)),
        checkpoint_every: checkpoint_every()?.unwrap_or(FitRequest::CHECKPOINT_EVERY),
        formulas: formulas(args.keep_formulas),
        ..FitRequest::new(source(&args.data, held.as_ref(), args.memory.most()), &folder)
    };
    let stop = Stop::on_signals()?;
    let terminal = Terminal::new(args.quiet, stop.flag());
    let report = fit(&request, &terminal);
    terminal.clear();
    let report = match report {
        Err(error) if error.is_cancelled() => {
            if folder.is_dir() {
                output::complain(&format!("stopped; everything done so far is in {}.", folder.display()));
                output::complain("Go on with the same command and --resume.");
            }
            return Ok(Outcome::Interrupted(stop.code()));
        }
        report => report?,
    };
    match args.format {
        Format::Json => output::print_json(&report)?,
        Format::Text => output::print(&format!("{}{}", report.to_text(), trailer(&report, &folder)))?,
    }
    Ok(Outcome::Done)
}

fn trailer(report: &Report, folder: &Path) -> String {
    let records = if report.training.is_some() { ", metrics and events" } else { "" };
    format!(
        "\n{:.1} s on {}, seed {}. In {}: report.html, report.json, predictions.csv, model/, settings.toml{records}.\nOpen {}.\n",
        report.provenance.seconds,
        report.provenance.computed_on,
        report.findings.seed,
        folder.display(),
        folder.join("report.html").display(),
    )
}

fn default_folder(data: &Path) -> PathBuf {
    let name = match data == Path::new("-") {
        true => "stdin".to_owned(),
        false => data.file_stem().map_or_else(|| "mnar".into(), |name| name.to_string_lossy().into_owned()),
    };
    PathBuf::from(format!("{name}-run"))
}
