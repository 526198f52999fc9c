//! `mnar demo`: an embedded sample from end to end.

use crate::args::{DemoArgs, Format};
use crate::interrupt::Stop;
use crate::terminal::Terminal;
use crate::{Outcome, Typed, output};
use anyhow::{Context as _, Result};
use mnar_report::Report;
use mnar_run::{check_demo_folder, demo, write_report};
use std::path::Path;

pub(crate) fn run(args: DemoArgs, typed: &Typed) -> Result<Outcome> {
    if check_demo_folder(&args.out)? && !args.quiet {
        output::complain(&format!("note: the report of the last demo in {} is replaced", args.out.display()));
    }
    let stop = Stop::on_signals()?;
    let terminal = Terminal::new(args.quiet, stop.flag());
    let report = demo(args.dataset, args.seed, typed.origin_of_sample(), &terminal);
    terminal.clear();
    let report = match report {
        Err(error) if error.is_cancelled() => return Ok(Outcome::Interrupted(stop.code())),
        report => report?,
    };
    std::fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    let page = write_report(&args.out, &report)?;
    match args.format {
        Format::Json => output::print_json(&report)?,
        Format::Text => output::print(&text(&report, &page))?,
    }
    Ok(Outcome::Done)
}

fn text(report: &Report, page: &Path) -> String {
    format!(
        "{}, {} rows. Labels were hidden by a known mechanism; {} are left.\n\n{}\n{:.1} s, seed {}. The report: {}\n",
        report.provenance.title.replacen("the", "The", 1),
        report.findings.about.n,
        report.findings.about.n_labelled,
        report.to_text(),
        report.provenance.seconds,
        report.findings.seed,
        page.display()
    )
}
