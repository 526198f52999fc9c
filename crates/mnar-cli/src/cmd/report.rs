//! `mnar report`: the page of a run, drawn again from its `report.json`, or a page that compares several runs.

use crate::args::ReportArgs;
use crate::{Outcome, output};
use anyhow::{Context as _, Result, bail};
use mnar_data::AtomicFile;
use mnar_report::{Comparison, Report};
use mnar_run::{SavedReport, write_page};
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &ReportArgs) -> Result<Outcome> {
    match args.runs.as_slice() {
        [run] => one(run, args),
        runs => several(runs, args),
    }
}

fn read(run: &Path) -> Result<Report> {
    let SavedReport { report, changed } = SavedReport::read(run)?;
    for file in changed {
        output::complain(&format!("note: {} is not as the run wrote it", run.join(file).display()));
    }
    Ok(report)
}

fn one(run: &Path, args: &ReportArgs) -> Result<Outcome> {
    let report = read(run)?;
    let html = report.to_html()?;
    let page = match &args.output {
        Some(page) => {
            AtomicFile::write_text(page, &html)?;
            page.clone()
        }
        None => write_page(run, &html)?,
    };
    output::print(&format!("wrote {}\n", page.display()))?;
    if let Some(folder) = &args.figures {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        for figure in report.figures() {
            let path = folder.join(format!("{}.svg", figure.id));
            AtomicFile::write_text(&path, &figure.svg()?)?;
            output::print(&format!("wrote {}\n", path.display()))?;
        }
    }
    Ok(Outcome::Done)
}

fn several(runs: &[PathBuf], args: &ReportArgs) -> Result<Outcome> {
    if args.figures.is_some() {
        bail!("--figures draws the figures of one run; name one");
    }
    let reports = runs.iter().map(|run| Ok((run.display().to_string(), read(run)?))).collect::<Result<Vec<_>>>()?;
    let comparison = Comparison::new(reports)?;
    let page = args.output.clone().unwrap_or_else(|| PathBuf::from("comparison.html"));
    AtomicFile::write_text(&page, &comparison.to_html()?)?;
    output::print(&format!("{}\nwrote {}\n", comparison.to_text(), page.display()))?;
    Ok(Outcome::Done)
}
