//! `mnar report`: the page of a run, drawn again from its `report.json`.

use crate::args::ReportArgs;
use crate::{Outcome, output};
use anyhow::{Context as _, Result};
use mnar_data::AtomicFile;
use mnar_run::{SavedReport, write_page};

pub(crate) fn run(args: &ReportArgs) -> Result<Outcome> {
    let SavedReport { report, changed } = SavedReport::read(&args.run)?;
    for file in changed {
        output::complain(&format!("note: {} is not as the run wrote it", args.run.join(file).display()));
    }
    let html = report.to_html()?;
    let page = match &args.output {
        Some(page) => {
            AtomicFile::write_text(page, &html)?;
            page.clone()
        }
        None => write_page(&args.run, &html)?,
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
