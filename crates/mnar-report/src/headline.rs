//! The first sentences of the page and of the terminal: how common, who got labelled, what failed, what was not checked.

use crate::labelling::{in_doubt, quoted};
use crate::line::Line;
use crate::report::Report;
use crate::table::cut;
use crate::words::{APART, CALIBRATION, CONVERGENCE, INFLUENCES, Level, Light, MECHANISM, ROWS, WEIGHT, contrast};
use mnar::analysis::VerdictKind;

/// Letters of a class name in a headline.
const NAME: usize = 32;

impl Report {
    /// The share of a class among the labels.
    pub(crate) fn label_share(&self, k: usize) -> f64 {
        let about = &self.findings.about;
        about.labelled_per_class[k] as f64 / about.n_labelled.max(1) as f64
    }

    /// The interval of a class share, if it has one.
    pub(crate) fn share_interval(&self, k: usize) -> Option<(f64, f64)> {
        let all = self.findings.prevalence_ci95.as_ref()?;
        Some(all[k]).filter(|(low, high)| low.is_finite() && high.is_finite())
    }

    /// The classes, those first whose share is furthest from what the labels suggest; the rarer one where that is the same.
    pub(crate) fn by_gap(&self) -> Vec<usize> {
        let shares = &self.findings.prevalence;
        // Rounded, so that the two classes of a pair, which are off by the same, count as equal.
        let gap = |k: usize| ((shares[k] - self.label_share(k)).abs() * 1e9).round();
        let mut order: Vec<usize> = (0..self.classes().len()).collect();
        order.sort_by(|&a, &b| gap(b).total_cmp(&gap(a)).then(shares[a].total_cmp(&shares[b])));
        order
    }

    /// The checks that found a problem.
    pub(crate) fn failed(&self) -> Vec<Light> {
        self.lights().into_iter().filter(|light| light.level == Level::Bad).collect()
    }

    /// The headline: how common the class is that the labels mislead about most, or why not to rely on that.
    pub(crate) fn headline(&self) -> Line {
        if self.nothing_missing() {
            return Line::new("No labels are missing");
        }
        match self.failed().first() {
            Some(_) if self.findings.audit.is_some() && self.verdict_is(VerdictKind::Unclear) => {
                Line::new("It is unclear what decided who got labelled; the shares rest on the audit")
            }
            Some(light) => Line::new(format!("Do not rely on these numbers yet: {}", reason(light))),
            None => self.share_line(),
        }
    }

    pub(crate) fn verdict_is(&self, kind: VerdictKind) -> bool {
        self.findings.verdict.as_ref().is_some_and(|verdict| verdict.kind == kind)
    }

    /// How common the class is that the labels mislead about most.
    pub(crate) fn share_line(&self) -> Line {
        let Some(&k) = self.by_gap().first() else { return Line::default() };
        let name = cut(&self.classes()[k], NAME).replace('`', "'");
        let (share, labels) = (self.findings.prevalence[k], self.label_share(k));
        let line = Line::new(format!("`{name}` is ")).percent(share, format!("prevalence.{k}")).words(" of all rows");
        if self.findings.positive.is_some() {
            return line.words(", as given");
        }
        let of_labels = |line: Line| line.share(labels, format!("labelled_per_class.{k}"), "n_labelled");
        match self.share_interval(k) {
            Some((low, high)) => {
                let line =
                    line.words(" (95% interval ").percents((low, high), &format!("prevalence_ci95.{k}")).words(")");
                match (low..=high).contains(&labels) {
                    true => of_labels(line.words(", which the labels do not contradict (")).words(")"),
                    false => of_labels(line.words(", but ")).words(" of the labels"),
                }
            }
            None => of_labels(line.words(", and ")).words(" of the labels"),
        }
    }

    /// What decided who got labelled, in a few words.
    pub(crate) fn short_verdict(&self) -> String {
        let found = &self.findings;
        if found.positive.is_some() {
            return "Only one class is ever labelled.".to_owned();
        }
        let classes: Vec<String> = self.classes().iter().map(|name| cut(name, NAME).replace('`', "'")).collect();
        let contrast = contrast(&classes, &found.phi).unwrap_or_default();
        let given = found.labelling.as_ref().map_or_else(String::new, |of| {
            let names: Vec<String> = of.given.iter().take(3).map(|name| cut(name, NAME).replace('`', "'")).collect();
            quoted(names.iter().map(String::as_str))
        });
        let Some(verdict) = &found.verdict else {
            return match self.rejects() {
                Some(true) => format!("Not chance: {contrast}."),
                Some(false) => "No sign that anything but chance did.".to_owned(),
                None if self.nothing_missing() => "Every row has a label.".to_owned(),
                None => "Not tested.".to_owned(),
            };
        };
        match verdict.kind {
            VerdictKind::AtRandom => "Chance, as far as the checks can see.".to_owned(),
            // Without columns, something that goes with the class cannot be told from it.
            VerdictKind::ByClass if !self.columns_were_checked() => {
                format!("The class, or something related to it: {contrast}.")
            }
            VerdictKind::ByClass => format!("The class: {contrast}."),
            VerdictKind::ByColumns => format!("Columns: {given}. Beyond them, the class shows no effect."),
            VerdictKind::ByClassAndColumns => format!("The class and columns ({given}): {contrast}."),
            VerdictKind::Unclear => {
                "Unclear: the data contradict every mechanism that was tried, or cannot tell.".to_owned()
            }
        }
    }

    fn columns_were_checked(&self) -> bool {
        let check = self.findings.labelling.as_ref().and_then(|of| of.class_enough.as_ref());
        check.is_some_and(|check| !check.columns.is_empty())
    }

    /// What was not checked, although other data could.
    pub(crate) fn not_checked(&self) -> Vec<&'static str> {
        let found = &self.findings;
        if self.nothing_missing() {
            return Vec::new();
        }
        let mut missing = Vec::new();
        if !self.columns_were_checked() {
            missing
                .push("Whether labelling depends on columns such as place, time or who labelled: none were looked at.");
        }
        if found.self_masking.is_none() {
            missing.push("Whether unlabelled rows are as hard to classify as labelled rows of their class.");
        }
        if found.identifiability.is_none() {
            missing.push("Whether the classifier tells the classes apart well enough.");
        }
        if found.audit.is_none() {
            missing.push("Whether the shares agree with labels of rows drawn at random: there were none.");
        }
        missing
    }

    /// What no analysis of such data can check.
    pub(crate) fn cannot_be_checked(&self) -> Vec<String> {
        let columns = match &self.findings.verdict {
            Some(verdict) => verdict.cannot_know.clone(),
            None => {
                "Columns that are not in the data may decide who gets labelled; nothing here can show that.".to_owned()
            }
        };
        vec![
            columns,
            "Whether the labels themselves are right: a wrong label counts like a right one.".to_owned(),
            "Whether rows that never got into the data are like these.".to_owned(),
        ]
    }

    /// What labels of rows drawn at random would tell about the class whose interval is widest.
    pub(crate) fn narrowing_line(&self) -> Option<Line> {
        let more = self.more_labels.as_ref()?;
        let now = |k: usize| more.width_now[k].unwrap_or(0.0);
        let widest = (0..self.classes().len()).max_by(|&a, &b| now(a).total_cmp(&now(b)).then(b.cmp(&a)))?;
        let (at, sample) = more.samples.iter().enumerate().find(|(_, sample)| sample.labels >= 100)?;
        let points = |line: Line, value: f64, path: String| line.number(value, format!("{:.1}", 100.0 * value), path);
        let name = cut(&self.classes()[widest], NAME).replace('`', "'");
        let labels = format!("more_labels.samples.{at}.labels");
        let line = Line::default().number(sample.labels as f64, sample.labels.to_string(), labels).words(format!(
            " labels of rows drawn at random would give the share of `{name}` a 95% interval of about "
        ));
        const WHATEVER: &str = " percentage points, whatever decided who got labelled";
        if self.doubtful() {
            let path = format!("more_labels.samples.{at}.width_alone.{widest}");
            return Some(points(line, sample.width_alone[widest], path).words(format!("{WHATEVER}.")));
        }
        let line =
            points(line, sample.width[widest], format!("more_labels.samples.{at}.width.{widest}")).words(WHATEVER);
        let Some(width) = more.width_now[widest] else { return Some(line.words(".")) };
        let line = points(line.words("; it is "), width, format!("more_labels.width_now.{widest}"));
        Some(match more.to_halve[widest] {
            Some(labels) => line
                .words(" now, and ")
                .number(labels as f64, labels.to_string(), format!("more_labels.to_halve.{widest}"))
                .words(" such labels would halve that."),
            None => line.words(" now."),
        })
    }

    /// Whether the numbers rest on something that failed.
    pub(crate) fn doubtful(&self) -> bool {
        in_doubt(&self.findings)
    }
}

/// Why a failed check forbids to rely on the numbers.
fn reason(light: &Light) -> &'static str {
    match light.about {
        INFLUENCES => "labelling also depends on something that was left out",
        MECHANISM => "it is unclear what decided who got labelled",
        ROWS => "unlabelled rows are not like labelled rows of their class",
        APART => "the classes are not told apart well enough",
        WEIGHT => "too few labels carry them",
        CALIBRATION => "the classifier's probabilities are off",
        CONVERGENCE => "the estimate did not converge",
        _ => "a check failed",
    }
}
