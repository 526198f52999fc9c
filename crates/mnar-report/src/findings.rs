//! An estimate and a test as text for a terminal or a notebook.

use crate::labelling::{audit_text, checked_text, columns_text, effects_text, left_out};
use crate::next::{Task, after_test};
use crate::report::{Provenance, Report};
use crate::table::{TextTable, printable, printable_lines};
use crate::text::steps_text;
use crate::words::{percent, self_masking_line, verdict};
use mnar::analysis::{EstimateSettings, Findings, IntervalKind, TestFindings, TestSettings, TriedClassifier};
use mnar::positive::PositiveBound;
use mnar::test::TestResult;

/// An estimate as text: the answers of the page in the same order and words, then how they were computed, what is known of
/// columns, the questions behind the verdict, and the warnings. The settings are those of the estimate; `spell` gives the commands
/// of the next steps, as far as there are any.
pub fn estimate_text(found: &Findings, settings: &EstimateSettings, spell: impl Fn(&Task) -> Option<String>) -> String {
    let about = &found.about;
    let mut out = Report::new(Provenance::default(), found.clone()).with_commands(spell).answers(false);
    out.push_str("\nHow this was computed:\n");
    out.push_str(&format!(
        "  rows         {} ({} labelled), effective sample size of the 1/phi weights {:.0}\n  method       {} on {} posteriors, {}\n  intervals    {}; seed {}\n",
        about.n,
        about.n_labelled,
        found.effective_sample_size,
        found.method,
        found.posterior.name(),
        if found.converged { "converged" } else { "NOT converged" },
        intervals(found),
        found.seed,
    ));
    if let Some(bcts) = &found.calibration {
        out.push_str(&format!(
            "  calibration  temperature {:.3}, expected calibration error {:.3} before, {:.3} after\n",
            1.0 / bcts.inverse_temperature,
            bcts.ece_before,
            bcts.ece_after
        ));
    }
    if found.prior_weight > 0.0 {
        out.push_str(&format!(
            "  prior        the class shares of the labelled rows, with the weight of {} rows\n",
            (10.0 * found.prior_weight).round() / 10.0
        ));
    }
    if let Some(line) = tried_line(&found.tried) {
        out.push_str(&format!("  classifier   {line}\n"));
    }
    if let Some(found) = &found.identifiability
        && found.verdict == mnar::diagnose::Verdict::Good
    {
        out.push_str(&format!("  identified   {}\n", found.verdict.sentence()));
    }
    if let Some(check) = found.self_masking.as_ref().filter(|_| found.verdict.is_none()) {
        out.push_str(&format!("  check        {}\n", self_masking_line(check)));
    }
    out.push_str(&audit_text(found));
    if let Some(factor) = found.breakdown {
        out.push_str(&format!("  robustness   {}\n", breakdown_line(factor)));
    }
    out.push_str(&columns_text(found));
    if let (Some(width), Some(needed)) = (settings.width, &found.labels_for_width) {
        out.push_str(&format!("\nLabels needed for intervals of phi of width {width}, at the same labelling rates:\n"));
        let mut table = TextTable::new(&["class", "total labels", "total rows"]);
        for (class, needed) in about.classes.iter().zip(needed) {
            let cell = |pick: fn(&mnar::diagnose::Needed) -> usize| {
                needed.as_ref().map_or("-".to_owned(), |needed| pick(needed).to_string())
            };
            table.row(vec![class.clone(), cell(|needed| needed.labels), cell(|needed| needed.rows)]);
        }
        out.push_str(&table.render());
    }
    if let Some(curve) = &found.sensitivity {
        out.push_str(
            "\nphi (and share) if the odds of a label also rise from the hardest to the easiest row by a factor of:\n",
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
    if let Some(verdict) = &found.verdict {
        out.push_str(&format!("\nThe questions behind the verdict:\n{}", checked_text(verdict)));
    }
    out.push_str(&warning_lines(&found.warnings));
    printable_lines(&out)
}

/// Which classifier was chosen, and what it was chosen from.
pub(crate) fn tried_line(tried: &[TriedClassifier]) -> Option<String> {
    let chosen = tried.iter().find(|tried| tried.chosen)?;
    let others = tried.iter().filter(|tried| !tried.chosen);
    // A more complex classifier has to be better by more than chance.
    let remark = |other: &TriedClassifier| if other.log_loss < chosen.log_loss { ", not clearly lower" } else { "" };
    let said = |other: &TriedClassifier| format!("{} {:.3}{}", other.name, other.log_loss, remark(other));
    let others: Vec<String> = others.map(said).collect();
    let others = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
    Some(format!("{}, log-loss {:.3} on labels that it had not seen{others}", chosen.name, chosen.log_loss))
}

/// How far the mechanism may depart from the class before the effect of the class is gone.
pub(crate) fn breakdown_line(factor: f64) -> String {
    let (odds, which) = if factor >= 1.0 { (factor, "easiest") } else { (1.0 / factor, "hardest") };
    format!(
        "the effect of the class would be gone if the odds of a label were {odds:.1} times as high for the {which} rows"
    )
}

/// How the intervals were made.
fn intervals(found: &Findings) -> String {
    let about = &found.interval;
    let replicates = if about.replicates > 0 { format!(", {} replicates", about.replicates) } else { String::new() };
    let conditional = if about.conditional_on_classifier { ", conditional on the classifier" } else { "" };
    match about.kind {
        IntervalKind::None => "none".to_owned(),
        kind => format!("{}{replicates}{conditional}", kind.name()),
    }
}

/// What positive-unlabelled data say without the share of the class.
pub fn bound_text(bound: &PositiveBound, tried: &[TriedClassifier]) -> String {
    let mut out = format!("{}\n\n", printable(&bound.sentence()));
    out.push_str(&format!(
        "  rows         {} ({} labelled)\n  the bound    of the {} rows that look most like labelled ones, {} are labelled\n",
        bound.n, bound.n_labelled, bound.rows, bound.labelled
    ));
    if let Some(line) = tried_line(tried) {
        out.push_str(&format!("  classifier   {line}\n"));
    }
    out
}

/// A test as text: the verdict, what was checked, what to do next, then the statistic and what it rests on, what is known of
/// columns, and the warnings. The settings are those of the test, `refitted` says whether the classifier was cross-fitted for it,
/// and `spell` gives the commands of the next steps, as far as there are any.
pub fn test_text(
    found: &TestFindings,
    settings: &TestSettings,
    refitted: bool,
    spell: impl Fn(&Task) -> Option<String>,
) -> String {
    let TestFindings { decision, about, .. } = found;
    let result = &decision.result;
    let mut out = match &found.verdict {
        Some(verdict) => format!("{}\n\n", printable(&verdict.headline)),
        None => format!("{}\n\n", verdict(decision, &about.classes, found.phi.as_ref())),
    };
    if let Some(verdict) = &found.verdict {
        out.push_str(&format!("What was checked?\n{}  {}\n", checked_text(verdict), printable(&verdict.cannot_know)));
    }
    out.push_str(&steps_text(&after_test(found, spell), usize::MAX));
    out.push_str("\nHow this was computed:\n");
    let statistic = match result.df {
        Some(df) => format!("{:.3} on {df} degrees of freedom", result.statistic),
        None => format!("{:.3}", result.statistic),
    };
    let draws = if result.draws > 0 { format!(", {} draws, seed {}", result.draws, found.seed) } else { String::new() };
    out.push_str(&format!("  test        {}{draws}\n  statistic   {statistic}\n", result.test));
    out.push_str(&format!("  p-value     {}\n", p_value_line(result)));
    out.push_str(&format!("  valid       {}\n", result.condition.trim_start_matches("valid ")));
    out.push_str(&format!(
        "  rows        {} ({} labelled), {} classes{}\n",
        about.n,
        about.n_labelled,
        about.classes.len(),
        if found.folds > 1 { format!(", {} folds", found.folds) } else { String::new() }
    ));
    if let Some(check) = found.self_masking.as_ref().filter(|_| found.verdict.is_none()) {
        out.push_str(&format!("  check       {}\n", self_masking_line(check)));
    }
    match (settings.power, found.labels_for_power) {
        (Some(power), Some(needed)) => out.push_str(&format!(
            "  power       {} would need about {} labels in {} rows labelled by the same mechanism\n",
            percent(power),
            needed.labels,
            needed.rows
        )),
        (Some(_), None) => out.push_str(
            "  power       no departure from MCAR to extrapolate from: the statistic is below its expectation\n",
        ),
        (None, _) => {}
    }
    if let Some(of) = &found.labelling {
        out.push_str(&effects_text(of, about));
        out.push_str(&left_out(of));
    }
    if !refitted && found.folds == 1 {
        out.push_str("\nThe predictions for labelled rows must come from a classifier that has not seen them. If they are\ncross-fitted, name the column of their folds.\n");
    }
    out.push_str(&warning_lines(&found.warnings));
    printable_lines(&out)
}

/// The p-value; if the draws cannot show a smaller one, the chi-square approximation says how small it might be.
fn p_value_line(result: &TestResult) -> String {
    let smallest = 1.0 / (1 + result.draws) as f64;
    match result.p_value_chi_square {
        Some(approximate) if result.draws > 0 && result.p_value <= smallest => format!(
            "{} (the smallest that {} draws can show; chi-square approximation {approximate:.1e})",
            result.p_value, result.draws
        ),
        Some(approximate) if result.draws > 0 => {
            format!("{:.4} (chi-square approximation {approximate:.4})", result.p_value)
        }
        _ if result.p_value < 0.0001 => format!("{:.1e}", result.p_value),
        _ => format!("{:.4}", result.p_value),
    }
}

/// The warnings, one paragraph each.
fn warning_lines(warnings: &[String]) -> String {
    warnings.iter().map(|warning| format!("\nwarning: {warning}\n")).collect()
}
