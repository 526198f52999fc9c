//! What `mnar fit` prints.

use crate::cmd::test::{most_and_least, self_masking_line, verdict};
use crate::output::warning_lines;
use crate::table::{TextTable, interval, number};
use mnar_train::fit::FitReport;
use std::path::Path;

pub(super) fn text(report: &FitReport, folder: &Path) -> String {
    let mut out = String::new();
    if let Some(result) = &report.result {
        let ratio = most_and_least(&report.classes, &report.phi);
        out.push_str(&format!("{}\n\n", verdict(result, result.p_value <= 0.05, 0.05, &ratio)));
    }
    let mut table = TextTable::new(&["class", "labels", "phi", "95% interval", "share", "95% interval"]);
    for (k, class) in report.classes.iter().enumerate() {
        let of =
            |intervals: &Option<Vec<(f64, f64)>>| intervals.as_ref().map_or("-".to_owned(), |all| interval(all[k]));
        table.row(vec![
            class.clone(),
            report.labelled_per_class[k].to_string(),
            number(report.phi[k]),
            of(&report.phi_ci95),
            number(report.prevalence[k]),
            of(&report.prevalence_ci95),
        ]);
    }
    out.push_str(&table.render());
    if let Some(check) = &report.self_masking {
        out.push_str(&format!("\n{}\n", self_masking_line(check)));
    }
    if let Some(held_out) = report.debiased.held_out {
        out.push_str(&format!(
            "\n{} labelled rows were held out; weighted by 1/phi they stand for the population:\n",
            held_out.rows
        ));
        let mut table = TextTable::new(&["model", "accuracy", "log-loss"]);
        let models =
            [("debiased", Some(held_out)), ("biased baseline", report.baseline.as_ref().and_then(|b| b.held_out))];
        for (name, scores) in models.into_iter().filter_map(|(name, scores)| Some((name, scores?))) {
            table.row(vec![name.into(), format!("{:.2}%", 100.0 * scores.accuracy), format!("{:.4}", scores.log_loss)]);
        }
        out.push_str(&table.render());
    }
    out.push_str(&warning_lines(&report.warnings));
    out.push_str(&format!(
        "\n{:.1} s on {}, seed {}. In {}: report.json, predictions.csv, model/, settings.toml, metrics and events.\nNext: `mnar predict {} NEW_DATA -o predictions.csv`.\n",
        report.seconds,
        report.computed_on,
        report.seed,
        folder.display(),
        folder.display()
    ));
    out
}
