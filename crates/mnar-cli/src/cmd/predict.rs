//! `mnar predict`: class probabilities of new rows.

use crate::Outcome;
use crate::args::{PredictArgs, SplitName};
use anyhow::Result;
use mnar_data::Split;
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
    let predictions = predict(&args.run, args.data.as_path(), &options)?;
    predictions.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
    predictions.write(&args.output)?;
    Ok(Outcome::Done)
}
