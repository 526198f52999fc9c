//! `mnar test`: are the labels informative?

use crate::args::{Format, TestArgs};
use crate::input::{Input, Loading, say};
use crate::interrupt::Stop;
use crate::output::{self, Versioned};
use crate::streamed::{about, of_files};
use crate::terminal::Terminal;
use crate::{Outcome, Typed};
use anyhow::{Result, bail};
use mnar::analysis::{TestFindings, TestMethod, TestSettings, VerdictKind};
use mnar_data::ParquetPredictions;
use mnar_report::test_text;
use mnar_run::TableClassifier;

pub(crate) fn run(mut args: TestArgs, typed: &Typed) -> Result<Outcome> {
    let settings = args.settings();
    // These tests refit a regression on the features.
    let of_regression = !matches!(args.method, TestMethod::Auto | TestMethod::Permutation);
    match args.table.classifier {
        TableClassifier::Auto if of_regression => args.table.classifier = TableClassifier::Softmax,
        TableClassifier::Trees | TableClassifier::Quadratic if of_regression => {
            bail!("this test refits a softmax regression; use --classifier softmax, or --method permutation")
        }
        _ => {}
    }
    args.table.hold()?;
    let loading = if args.stream { Loading::Stream } else { Loading::Load };
    let table = match Input::read(&args.table, None, loading)? {
        Input::Table(table) => table,
        Input::Stream(table) => return streamed(&args, typed, &settings, &table),
    };
    if table.positive_unlabelled().is_some() {
        bail!(
            "only the class `{}` is ever labelled, so labels are informative by design and there is nothing to test; `mnar estimate` says what the data tell about its share",
            table.labels.names()[0]
        );
    }
    let stop = Stop::on_signals()?;
    let terminal = Terminal::new(args.table.quiet, stop.flag());
    let found = table.models(&args.table, &terminal).and_then(|models| {
        let evidence = table.evidence(models.as_ref(), &args.table, &terminal)?;
        Ok(settings.run(&evidence, &terminal)?)
    });
    terminal.clear();
    let found = match found {
        Err(error) if matches!(error.downcast_ref(), Some(mnar::Error::Cancelled)) => {
            return Ok(Outcome::Interrupted(stop.code()));
        }
        found => found?,
    };
    print(&args, typed, &settings, &found)
}

fn streamed(args: &TestArgs, typed: &Typed, settings: &TestSettings, table: &ParquetPredictions) -> Result<Outcome> {
    let terminal = Terminal::new(args.table.quiet, Stop::on_signals()?.flag());
    say(table.notes(), &terminal);
    let found = settings.run_streamed(table, about(table), None).map_err(of_files)?;
    terminal.clear();
    print(args, typed, settings, &found)
}

fn print(args: &TestArgs, typed: &Typed, settings: &TestSettings, found: &TestFindings) -> Result<Outcome> {
    match args.table.format {
        Format::Json => output::print_json(&Versioned::new(found))?,
        Format::Text => {
            let origin = typed.origin(&args.table.table, Some(&args.table.label), None);
            let refitted = args.table.features.is_some();
            output::print(&test_text(found, settings, refitted, |task| origin.spell(task)))?;
        }
    }
    // The class may matter beyond columns that hide it from the test.
    let kind = found.verdict.as_ref().map(|verdict| verdict.kind);
    let by_class = matches!(kind, Some(VerdictKind::ByClass | VerdictKind::ByClassAndColumns));
    Ok(if (found.decision.reject || by_class) && args.fail_on_reject { Outcome::Rejected } else { Outcome::Done })
}
