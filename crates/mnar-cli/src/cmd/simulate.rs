//! `mnar simulate`: hides labels by a known mechanism.

use crate::Outcome;
use crate::args::{Format, SimulateArgs};
use crate::output;
use anyhow::{Result, bail};
use mnar::Phi;
use mnar_report::{TextTable, number};
use mnar_run::PerClass;
use serde::Serialize;

#[derive(Serialize)]
struct SimulateOutput {
    version: &'static str,
    classes: Vec<String>,
    n: usize,
    n_labelled: usize,
    labelled_per_class: Vec<usize>,
    rows_per_class: Vec<usize>,
    phi: Phi,
    seed: u64,
    output: String,
}

pub(crate) fn run(args: SimulateArgs) -> Result<Outcome> {
    let labels = mnar_data::read_labels(&args.table, &args.label, &args.missing)?;
    if labels.n_labelled() == 0 {
        bail!("{}: column `{}` has no label to hide", args.table.display(), args.label);
    }
    let phi = Phi::new(PerClass::Items(args.phi).resolve("phi", labels.names())?)?;
    let kept = mnar::simulate::mask(&labels, &phi, args.seed)?;
    mnar_data::mask_labels(&args.table, &args.output, &args.label, &args.missing, args.keep_truth.as_deref(), &kept)?;
    let mut left = vec![0; labels.n_classes()];
    for (i, class) in labels.labelled() {
        left[class.index()] += usize::from(kept[i]);
    }
    let result = SimulateOutput {
        version: env!("CARGO_PKG_VERSION"),
        classes: labels.names().to_vec(),
        n: labels.len(),
        n_labelled: left.iter().sum(),
        rows_per_class: labels.counts().to_vec(),
        labelled_per_class: left,
        phi,
        seed: args.seed,
        output: args.output.display().to_string(),
    };
    match args.format {
        Format::Json => output::print_json(&result)?,
        Format::Text => output::print(&text(&result))?,
    }
    Ok(Outcome::Done)
}

fn text(result: &SimulateOutput) -> String {
    let mut table = TextTable::new(&["class", "rows", "labels kept", "phi"]);
    for (k, class) in result.classes.iter().enumerate() {
        table.row(vec![
            class.clone(),
            result.rows_per_class[k].to_string(),
            result.labelled_per_class[k].to_string(),
            number(result.phi[k]),
        ]);
    }
    format!(
        "{} of {} rows keep their label (seed {}); written to {}\n\n{}",
        result.n_labelled,
        result.n,
        result.seed,
        result.output,
        table.render()
    )
}
