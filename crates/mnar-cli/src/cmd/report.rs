//! `mnar report`: the page of a run, drawn again from its `report.json`.

use crate::args::ReportArgs;
use crate::{Outcome, output};
use anyhow::{Context as _, Result, bail};
use mnar_data::AtomicFile;
use mnar_report::Report;
use std::io::ErrorKind;

pub(crate) fn run(args: &ReportArgs) -> Result<Outcome> {
    let source = args.run.join("report.json");
    // Opening a pipe would wait for someone to write to it.
    if source.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        bail!("{} is not a file", source.display());
    }
    let text = match std::fs::read_to_string(&source) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "{} holds no finished run: there is no report.json; name the folder that `mnar fit` or `mnar demo` wrote",
            args.run.display()
        ),
        Err(error) => return Err(error).with_context(|| source.display().to_string()),
    };
    let report = Report::from_json(&text).with_context(|| source.display().to_string())?;
    let page = args.output.clone().unwrap_or_else(|| args.run.join("report.html"));
    AtomicFile::write_text(&page, &report.to_html()?)?;
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
