//! A report as text for a terminal: the answers of the page, in the same order and words.

use crate::labelling::{DOUBTFUL, groups_text};
use crate::line::percent;
use crate::next::NextStep;
use crate::report::Report;
use crate::table::{TextTable, interval, number, printable, printable_lines};
use crate::words::Level;
use mnar::analysis::IntervalKind;

/// Classes and steps of a text that goes with a page, which has them all.
const CLASSES: usize = 12;
const STEPS: usize = 2;

impl Report {
    /// How common each class is, what decided who got labelled, how good the model is, what was checked, and what to do next: the
    /// answers of the page in some ten lines. Tables fit 80 columns.
    pub fn to_text(&self) -> String {
        let mut out = self.answers(true);
        for warning in &self.findings.warnings {
            out.push_str(&format!("\nwarning: {warning}\n"));
        }
        printable_lines(&out)
    }

    /// The answers in the order of the page. Without a page, every class and every step is shown.
    pub(crate) fn answers(&self, page: bool) -> String {
        let mut out = format!("{}.\n", printable(&self.headline().text()));
        for light in self.failed() {
            out.push_str(&format!("  {}: {}\n", light.about, printable(&light.sentence)));
        }
        out.push_str(&format!("\n{}", self.classes_text(if page { CLASSES } else { usize::MAX })));
        out.push_str(&groups_text(&self.findings));
        if self.nothing_missing() {
            return out;
        }
        out.push_str(&format!("\nWho got labelled?  {}\n", printable(&self.verdict())));
        out.push_str(&asked("How good?", &self.quality_lines().iter().map(|line| line.text()).collect::<Vec<_>>()));
        out.push_str(&asked("What was checked?", &self.checked_lines()));
        out.push_str(&steps_text(&self.what_next(), if page { STEPS } else { usize::MAX }));
        let narrowing: Vec<String> = self.narrowing_line().iter().map(|line| line.text()).collect();
        out.push_str(&asked("What to label?", &narrowing));
        out
    }

    /// What was checked, what was not, and what cannot be, in a few sentences.
    fn checked_lines(&self) -> Vec<String> {
        let lights = self.lights();
        let mut lines = Vec::new();
        for (level, found) in
            [(Level::Bad, "Problem found"), (Level::Careful, "Caution"), (Level::Good, "No problem found")]
        {
            let about = lights.iter().filter(|light| light.level == level).map(|light| light.about.to_lowercase());
            let about: Vec<String> = about.collect();
            lines.extend((!about.is_empty()).then(|| format!("{found}: {}.", about.join(", "))));
        }
        if self.findings.verdict.is_none() && self.test.is_some() {
            lines.push(self.how_sure());
        }
        let not = self.not_checked();
        let not: Vec<String> = not.iter().map(|sentence| lowered(sentence.trim_end_matches('.'))).collect();
        lines.extend((!not.is_empty()).then(|| format!("Not checked: {}.", not.join("; "))));
        lines.extend(self.cannot_be_checked().into_iter().take(1));
        lines
    }

    /// At most `most` classes: those whose share is furthest from what the labels suggest.
    fn classes_text(&self, most: usize) -> String {
        let found = &self.findings;
        let mut heading = vec!["class", "of all rows"];
        let intervals = found.prevalence_ci95.is_some() && found.interval.kind != IntervalKind::None;
        heading.extend(intervals.then_some("95% interval"));
        heading.push("of the labels");
        heading.extend(self.truth.as_ref().map(|_| "true share"));
        heading.push("phi");
        // Beside the truth there is no room for it, and the page has it.
        let phi_intervals = found.phi_ci95.as_ref().filter(|_| intervals && self.truth.is_none());
        heading.extend(phi_intervals.map(|_| "95% interval"));
        let mut table = TextTable::new(&heading);
        let mut order = self.by_gap();
        let more = order.len().saturating_sub(most);
        order.truncate(most);
        order.sort_unstable();
        for k in order {
            let ends = |(low, high): (f64, f64)| format!("{} to {}", percent(low), percent(high));
            let mut row = vec![self.classes()[k].clone(), percent(found.prevalence[k])];
            row.extend(intervals.then(|| self.share_interval(k).map_or("-".to_owned(), ends)));
            row.push(format!("{} ({})", percent(self.label_share(k)), found.about.labelled_per_class[k]));
            row.extend(self.truth.as_ref().map(|truth| percent(truth.prevalence[k])));
            row.push(number(found.phi[k]));
            row.extend(phi_intervals.map(|all| interval(all[k])));
            table.row(row);
        }
        let doubt = if self.doubtful() { format!("  {DOUBTFUL}\n") } else { String::new() };
        let left_out =
            if more > 0 { format!("  and {more} more classes; the page has them all\n") } else { String::new() };
        let phi =
            if self.nothing_missing() { "" } else { "  (phi: the probability that a row of the class has a label)\n" };
        format!("{doubt}{}{left_out}{phi}", table.render())
    }
}

/// A question and its answers; nothing without an answer.
fn asked(question: &str, answers: &[String]) -> String {
    if answers.is_empty() { String::new() } else { format!("{question}  {}\n", printable(&answers.join(" "))) }
}

/// What to do next, with its commands; at most `most` steps.
pub(crate) fn steps_text(steps: &[NextStep], most: usize) -> String {
    const QUESTION: &str = "What next?";
    let mut out = String::new();
    for (i, next) in steps.iter().take(most).enumerate() {
        let question = if i == 0 { QUESTION } else { "" };
        let more = if i + 1 == most && steps.len() > most { " (more on the page)" } else { "" };
        let (number, step) = (i + 1, printable(&next.step));
        out.push_str(&format!("{question:width$}  {number}. {step}{more}\n", width = QUESTION.len()));
        if let Some(command) = &next.command {
            out.push_str(&format!("{:width$}     {}\n", "", printable(command), width = QUESTION.len()));
        }
    }
    out
}

/// The sentence with its first letter in lower case.
fn lowered(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
