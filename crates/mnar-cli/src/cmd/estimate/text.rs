//! The estimate as a person reads it.

use crate::args::EstimateArgs;
use crate::output::{EstimateOutput, warning_lines};
use mnar_report::{TextTable, interval, number};
use mnar_report::{most_and_least, self_masking_line};

pub(super) fn text(shown: &EstimateOutput, args: &EstimateArgs) -> String {
    let about = &shown.about;
    let mut out = verdict(shown);
    out.push_str("\n\n");
    let mut table =
        TextTable::new(&["class", "labels", "phi", "95% interval", "labelled", "true share", "95% interval"]);
    for (k, class) in about.classes.iter().enumerate() {
        let at =
            |values: &Option<Vec<(f64, f64)>>| values.as_ref().map_or("-".to_owned(), |values| interval(values[k]));
        table.row(vec![
            class.clone(),
            about.labelled_per_class[k].to_string(),
            number(shown.phi[k]),
            at(&shown.phi_ci95),
            number(about.labelled_per_class[k] as f64 / about.n_labelled as f64),
            number(shown.prevalence[k]),
            at(&shown.prevalence_ci95),
        ]);
    }
    out.push_str(&table.render());
    let conditional = if shown.interval.conditional_on_classifier { ", conditional on the classifier" } else { "" };
    let replicates = if shown.interval.replicates > 0 {
        format!(", {} replicates", shown.interval.replicates)
    } else {
        String::new()
    };
    out.push_str(&format!(
        "\n  rows         {} ({} labelled), effective sample size of the 1/phi weights {:.0}\n  method       {} on {} posteriors, {}\n  intervals    {}{replicates}{conditional}; seed {}\n",
        about.n,
        about.n_labelled,
        shown.effective_sample_size,
        shown.method,
        shown.posterior,
        if shown.converged { "converged" } else { "NOT converged" },
        shown.interval.kind,
        shown.seed,
    ));
    if let Some(bcts) = &shown.calibration {
        out.push_str(&format!(
            "  calibration  temperature {:.3}, expected calibration error {:.3} before, {:.3} after\n",
            1.0 / bcts.inverse_temperature,
            bcts.ece_before,
            bcts.ece_after
        ));
    }
    if shown.prior_weight > 0.0 {
        out.push_str(&format!("  prior        Dirichlet, weight {} rows\n", shown.prior_weight));
    }
    if let Some(found) = &shown.identifiability
        && found.verdict == mnar::diagnose::Verdict::Good
    {
        out.push_str(&format!("  identified   {}\n", found.verdict.sentence()));
    }
    if let Some(check) = &shown.self_masking {
        out.push_str(&format!("  check        {}\n", self_masking_line(check)));
    }
    if let (Some(width), Some(needed)) = (args.width, &shown.labels_for_width) {
        out.push_str(&format!("\nLabels needed for intervals of phi of width {width}, at the same labelling rates:\n"));
        let mut table = TextTable::new(&["class", "labels in all", "rows in all"]);
        for (class, needed) in about.classes.iter().zip(needed) {
            let cell = |pick: fn(&mnar::diagnose::Needed) -> usize| {
                needed.as_ref().map_or("-".to_owned(), |needed| pick(needed).to_string())
            };
            table.row(vec![class.clone(), cell(|needed| needed.labels), cell(|needed| needed.rows)]);
        }
        out.push_str(&table.render());
    }
    if let Some(curve) = &shown.sensitivity {
        out.push_str(
            "\nphi (true share) if the odds of a label also rise from the hardest to the easiest row by a factor of:\n",
        );
        let factors: Vec<String> = curve.iter().map(|point| format!("{}", point.odds_factor)).collect();
        let mut header = vec!["class"];
        header.extend(factors.iter().map(String::as_str));
        let mut table = TextTable::new(&header);
        for (k, class) in about.classes.iter().enumerate() {
            let cells = curve.iter().map(|point| format!("{:.3} ({:.3})", point.phi[k], point.prevalence[k]));
            table.row(std::iter::once(class.clone()).chain(cells).collect());
        }
        out.push_str(&table.render());
    }
    out.push_str(&warning_lines(&shown.warnings));
    out
}

/// One sentence: who is labelled most and least, and whether the intervals tell them apart.
fn verdict(shown: &EstimateOutput) -> String {
    let Some((most, least, ratio)) = most_and_least(&shown.about.classes, &shown.phi) else {
        return String::new();
    };
    let index = |name: &str| shown.about.classes.iter().position(|class| class == name);
    let apart = match (&shown.phi_ci95, index(&most), index(&least)) {
        (Some(intervals), Some(most), Some(least)) if intervals[most].0 > intervals[least].1 => {
            "; their 95% intervals do not overlap"
        }
        (Some(_), ..) => "; their 95% intervals overlap, so ask `mnar test` before believing it",
        _ => "",
    };
    format!("Class `{most}` is about {ratio:.1} times as likely to be labelled as class `{least}`{apart}.")
}
