//! `mnar test`: are the labels informative?

use crate::Outcome;
use crate::args::{Format, TestArgs};
use crate::input::Input;
use crate::output::{self, Versioned};
use crate::plan;
use anyhow::{Result, bail};
use mnar_report::test_text;

pub(crate) fn run(args: TestArgs) -> Result<Outcome> {
    let settings = plan::test(&args);
    let Input::Table(table) = Input::read(&args.table, false, false)? else {
        bail!("the test needs the table in memory");
    };
    let found = settings.run(&table.given(), &output::Bar::new(args.table.quiet))?;
    match args.table.format {
        Format::Json => output::print_json(&Versioned::new(&found))?,
        Format::Text => output::print(&test_text(&found, &settings, table.features.is_some()))?,
    }
    Ok(if found.reject && args.fail_on_reject { Outcome::Rejected } else { Outcome::Done })
}
