//! A report as text for a terminal: the answers of the page, in the same order and words.

use crate::labelling::{DOUBTFUL, groups_text};
use crate::line::percent;
use crate::report::Report;
use crate::table::{TextTable, number, printable, printable_lines};
use crate::words::Level;
use mnar::analysis::IntervalKind;

/// Classes of the table; the page and the JSON have all.
const CLASSES: usize = 12;

impl Report {
    /// How common each class is, what decided who got labelled, how good the model is, what was checked, and what to do next. Tables
    /// fit 80 columns.
    pub fn to_text(&self) -> String {
        let mut out = format!("{}.\n", printable(&self.headline().text()));
        for light in self.failed() {
            out.push_str(&format!("  {}: {}\n", light.about, printable(&light.sentence)));
        }
        out.push_str(&format!("\n{}", self.classes_text()));
        out.push_str(&groups_text(&self.findings));
        if !self.nothing_missing() {
            out.push_str(&self.answers());
        }
        for warning in &self.findings.warnings {
            out.push_str(&format!("\nwarning: {warning}\n"));
        }
        printable_lines(&out)
    }

    /// Everything but the shares.
    fn answers(&self) -> String {
        let mut out = String::new();
        out.push_str(&format!("\nWho got labelled?  {}\n", printable(&self.verdict())));
        out.push_str(&asked("How good?", &self.quality_lines().iter().map(|line| line.text()).collect::<Vec<_>>()));
        out.push_str(&asked("What was checked?", &self.checked_lines()));
        out.push_str("What next?\n");
        for (i, next) in self.what_next().into_iter().enumerate() {
            out.push_str(&format!("  {}. {}\n", i + 1, printable(&next.step)));
            if let Some(command) = next.command {
                out.push_str(&format!("     {}\n", printable(&command)));
            }
        }
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

    /// The classes: those whose share is furthest from what the labels suggest, where there are many.
    fn classes_text(&self) -> String {
        let found = &self.findings;
        let mut heading = vec!["class", "labels", "of the labels", "of all rows"];
        let intervals = found.prevalence_ci95.is_some() && found.interval.kind != IntervalKind::None;
        heading.extend(intervals.then_some("95% interval"));
        heading.extend(self.truth.as_ref().map(|_| "truly"));
        heading.push("phi");
        let mut table = TextTable::new(&heading);
        let mut order = self.by_gap();
        let more = order.len().saturating_sub(CLASSES);
        order.truncate(CLASSES);
        order.sort_unstable();
        for k in order {
            let mut row = vec![
                self.classes()[k].clone(),
                found.about.labelled_per_class[k].to_string(),
                percent(self.label_share(k)),
                percent(found.prevalence[k]),
            ];
            let ends = |(low, high): (f64, f64)| format!("{} to {}", percent(low), percent(high));
            row.extend(intervals.then(|| self.share_interval(k).map_or("-".to_owned(), ends)));
            row.extend(self.truth.as_ref().map(|truth| percent(truth.prevalence[k])));
            row.push(number(found.phi[k]));
            table.row(row);
        }
        let doubt = if self.doubtful() { format!("  {DOUBTFUL}\n") } else { String::new() };
        let left_out =
            if more > 0 { format!("  and {more} more classes; the page has them all\n") } else { String::new() };
        let phi = if self.nothing_missing() { "" } else { "  (phi: the share of the class that has a label)\n" };
        format!("{doubt}{}{left_out}{phi}", table.render())
    }
}

/// A question and its answers; nothing without an answer.
fn asked(question: &str, answers: &[String]) -> String {
    if answers.is_empty() { String::new() } else { format!("{question}  {}\n", printable(&answers.join(" "))) }
}

/// The sentence with its first letter in lower case.
fn lowered(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
