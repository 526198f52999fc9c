//! `mnar predict`: class probabilities of new rows.

use crate::args::{PredictArgs, SplitName, formulas, source};
use crate::{Outcome, output};
use anyhow::Result;
use mnar_data::{Split, TextTable, check_output};
use mnar_run::{PredictOptions, SetOptions, predict};

pub(crate) fn run(args: PredictArgs) -> Result<Outcome> {
    let split = match args.split {
        SplitName::Train => Split::Train,
        SplitName::Validation => Split::Validation,
        SplitName::Test => Split::Test,
        SplitName::All => Split::All,
    };
    let sets = args.sets.map(|level| SetOptions { level, kind: args.set_kind });
    let options = PredictOptions { id: args.id, split, baseline: args.baseline, sets, shares: args.shares };
    check_output(&args.output, &[&args.data])?;
    let held = TextTable::hold(&args.data, args.memory.most())?;
    let data = source(&args.data, held.as_ref(), args.memory.most());
    let data = data.with_sheet(args.sheet.as_deref()).with_skip_rows(args.skip_rows);
    let predictions = predict(&args.run, data, &options)?;
    predictions.notes().iter().for_each(|note| output::complain(&format!("note: {note}")));
    predictions.warnings().iter().for_each(|warning| output::complain(&format!("warning: {warning}")));
    predictions.write_with(&args.output, formulas(args.keep_formulas))?;
    Ok(Outcome::Done)
}
