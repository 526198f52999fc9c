//! `mnar predict`: class probabilities of new rows.

use crate::Outcome;
use crate::args::{PredictArgs, SplitName};
use anyhow::{Result, bail};
use mnar::PosteriorKind;
use mnar_data::{Expected, Split, read_for_prediction};
use mnar_train::crossfit::score;
use mnar_train::fit::write_predictions;
use mnar_train::{Encoding, device, load_model};

pub(crate) fn run(args: PredictArgs) -> Result<Outcome> {
    let folder = args.run.join(if args.baseline { "baseline" } else { "model" });
    if !folder.is_dir() {
        let finished = args.run.join("report.json").exists();
        match (args.run.is_dir(), args.baseline && finished) {
            (false, _) => bail!("{}: there is no such run folder", args.run.display()),
            (true, true) => bail!("{}: this run has no baseline; it was fitted with --no-baseline", args.run.display()),
            (true, false) => {
                bail!("{}: holds no model; is the run finished? `mnar fit ... --resume` goes on", args.run.display())
            }
        }
    }
    device::name(&device::cpu())?;
    let (network, model) = load_model(&folder, &device::cpu().inner())?;
    let expected = match &model.encoding {
        Encoding::Table(encoder) => Expected::Table(encoder),
        Encoding::Images { shape, .. } => Expected::Images { shape: *shape, resize: true },
    };
    let split = match args.split {
        SplitName::Train => Split::Train,
        SplitName::Validation => Split::Validation,
        SplitName::Test => Split::Test,
        SplitName::All => Split::All,
    };
    let rows = read_for_prediction(&args.data, &expected, split, args.id.as_deref())?;
    let examples = model.encoding.examples(rows.inputs)?;
    let posteriors = score(&network, &examples, model.temperature, PosteriorKind::Population)?;
    write_predictions(&args.output, &posteriors, &model.phi, &model.classes, rows.row_names.as_ref(), None)?;
    Ok(Outcome::Done)
}
