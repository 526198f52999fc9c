//! `mnar predict`: class probabilities of new rows.

use crate::Outcome;
use crate::args::{PredictArgs, SplitName, formulas, source};
use anyhow::Result;
use mnar_data::{Split, TextTable};
use mnar_run::{PredictOptions, predict};

pub(crate) fn run(args: PredictArgs) -> Result<Outcome> {
    let split = match args.split {
        SplitName::Train => Split::Train,
        SplitName::Validation => Split::Validation,
        SplitName::Test => Split::Test,
        SplitName::All => Split::All,
    };
    let options = PredictOptions { id: args.id, split, baseline: args.baseline };
    let held = TextTable::hold(&args.data, args.memory.most())?;
    let data = source(&args.data, held.as_ref(), args.memory.most());
    predict(&args.run, data, &options)?.write_with(&args.output, formulas(args.keep_formulas))?;
    Ok(Outcome::Done)
}
