//! The meaning of the numbers in plain words.

use crate::labelling::{columns, quoted};
use crate::report::Report;
use crate::table::p_value;
use mnar::Phi;
use mnar::analysis::{HARDNESS_LEVEL, IntervalKind, Labelling, TestDecision, VerdictKind};
use mnar::diagnose::Verdict;
use mnar::test::{SelfMaskingCheck, TestResult};

/// The classes with the largest and the smallest phi.
pub(crate) fn most_and_least(phi: &Phi) -> Option<(usize, usize)> {
    let order = |a: &usize, b: &usize| phi[*a].total_cmp(&phi[*b]);
    Some(((0..phi.len()).max_by(order)?, (0..phi.len()).min_by(order)?))
}

/// "class `a` is about 3.0 times as likely to be labelled as class `b`", for the classes that differ most.
pub(crate) fn contrast(classes: &[String], phi: &Phi) -> Option<String> {
    let (most, least) = most_and_least(phi)?;
    let named = |k: usize| format!("class `{}`", classes[k]);
    Some(mnar::analysis::contrast((&named(most), phi[most]), (&named(least), phi[least])))
}

/// The verdict of a test in one sentence.
pub(crate) fn verdict(test: &TestDecision, classes: &[String], phi: Option<&Phi>) -> String {
    let p = p_value(test.result.p_value);
    match phi.and_then(|phi| contrast(classes, phi)) {
        Some(contrast) if test.reject => format!("These labels are informative ({p}): {contrast}."),
        None if test.reject => format!("These labels are informative ({p})."),
        _ => format!(
            "No sign that the labels are informative ({p}): at the {} level the data are consistent with labels missing completely at random.",
            percent(test.level)
        ),
    }
}

/// A share as a percentage, without trailing zeros.
pub(crate) fn percent(share: f64) -> String {
    format!("{}%", (share * 1e6).round() / 1e4)
}

/// An interval of a share, in percent.
pub(crate) fn percents((low, high): (f64, f64)) -> String {
    format!("{:.1}% to {:.1}%", 100.0 * low, 100.0 * high)
}

/// The self-masking check in one line.
pub(crate) fn self_masking_line(check: &SelfMaskingCheck) -> String {
    let p = p_value(check.p_value);
    if check.p_value > HARDNESS_LEVEL {
        format!("no sign that labels depend on more than the class ({p})")
    } else {
        format!("labels seem to depend on more than the class ({p}): {}; see the sensitivity analysis", misfit(check))
    }
}

/// How unlabelled rows differ from labelled rows.
fn misfit(check: &SelfMaskingCheck) -> String {
    let harder = if check.excess_uncertainty > 0.0 { "harder" } else { "easier" };
    format!("unlabelled rows look {harder} to classify than labelled rows of the same classes")
}

/// What the checks are about, in the reader's words.
pub(crate) const INFLUENCES: &str = "Other influences";
pub(crate) const ROWS: &str = "Hard and easy rows";
pub(crate) const MECHANISM: &str = "Mechanism";
pub(crate) const APART: &str = "Telling the classes apart";
pub(crate) const WEIGHT: &str = "Weight of the labels";
pub(crate) const CALIBRATION: &str = "Calibration";
pub(crate) const CONVERGENCE: &str = "Convergence";

/// How far a reader can rely on something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Level {
    /// The check found no problem.
    Good,
    /// The numbers need care.
    Careful,
    /// The check found a problem.
    Bad,
}

impl Level {
    /// The name on the page, for readers who do not see the colours.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "no problem found",
            Self::Careful => "caution",
            Self::Bad => "problem found",
        }
    }

    /// The name in the style sheet.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Careful => "careful",
            Self::Bad => "bad",
        }
    }
}

/// A traffic light: the outcome of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Light {
    /// What was checked.
    pub about: &'static str,
    /// What that means, in one sentence.
    pub meaning: &'static str,
    /// The outcome.
    pub level: Level,
    /// The reason, in one sentence.
    pub sentence: String,
}

impl Report {
    /// Whether the test rejects that labels are missing completely at random; `None` if there was no test.
    pub fn rejects(&self) -> Option<bool> {
        self.test.as_ref().map(|test| test.reject)
    }

    /// The verdict in one or two sentences: what decided who got labelled, where that was asked, and otherwise what the test
    /// says.
    pub fn verdict(&self) -> String {
        if let Some(verdict) = &self.findings.verdict {
            return verdict.headline.clone();
        }
        match &self.test {
            Some(test) => verdict(test, self.classes(), Some(&self.findings.phi)),
            None if self.nothing_missing() => "No label is missing, so there is nothing to test.".to_owned(),
            None => {
                let contrast = contrast(self.classes(), &self.findings.phi);
                let estimated = contrast.map_or_else(String::new, |contrast| format!(" By this estimate, {contrast}."));
                format!("It was not tested whether these labels are informative.{estimated}")
            }
        }
    }

    /// How certain the verdict is; empty without a test.
    pub fn how_sure(&self) -> String {
        let Some(test) = &self.test else { return String::new() };
        let (found, intervals) = (&self.findings, self.about_intervals());
        let range = most_and_least(&found.phi).zip(found.phi_ci95.as_ref()).and_then(|((most, least), intervals)| {
            let of = |k: usize| {
                let (low, high) = intervals[k];
                (low.is_finite() && high.is_finite()).then(|| format!("{} to {}", share(low), share(high)))
            };
            let (of_most, of_least) = (of(most)?, of(least)?);
            let (most, least) = (&self.classes()[most], &self.classes()[least]);
            Some(format!(" Of `{most}`, {of_most} are labelled; of `{least}`, {of_least} (95% intervals)."))
        });
        format!("{}.{} {intervals}", sentence_of(&test.result), range.unwrap_or_default())
    }

    /// What the intervals take into account.
    pub(crate) fn about_intervals(&self) -> &'static str {
        match self.findings.interval.kind {
            IntervalKind::BootstrapWithRefit => {
                "The intervals come from refitting the classifier on resampled rows, so they include its uncertainty."
            }
            IntervalKind::Bootstrap | IntervalKind::Profile | IntervalKind::Information => {
                "The intervals take the classifier as given and are too short if it was learnt from few labels."
            }
            IntervalKind::Count => "The intervals take the share that was given as exact.",
            _ => "",
        }
    }

    /// The checks that decide how far the numbers can be relied on.
    pub fn lights(&self) -> Vec<Light> {
        let found = &self.findings;
        let mut lights: Vec<Light> = found.labelling.iter().map(other_influences).collect();
        if let Some(check) = &found.self_masking {
            let p = p_value(check.p_value);
            let doubtful = found.labelling.as_ref().map_or(HARDNESS_LEVEL, Labelling::hardness_level);
            let (level, sentence) = if check.p_value > doubtful {
                let sentence = match found.verdict {
                    Some(_) => format!(
                        "No sign that unlabelled rows are harder or easier than labelled rows of the same classes ({p})."
                    ),
                    None => format!("No sign that labels depend on more than the class ({p})."),
                };
                (Level::Good, sentence)
            } else {
                let sentence = format!(
                    "{} ({p}): look at the sensitivity curve before you rely on phi.",
                    capitalised(&misfit(check))
                );
                (Level::Careful, sentence)
            };
            let meaning = "Labels that depend on the class alone (self-masking) leave unlabelled rows as hard to classify as labelled rows of their class.";
            lights.push(Light { about: ROWS, meaning, level, sentence });
        }
        if let Some(verdict) = found.verdict.as_ref().filter(|verdict| verdict.kind == VerdictKind::Unclear)
            && lights.iter().all(|light| light.level != Level::Bad)
        {
            let meaning = "The estimate rests on a mechanism that the data must not contradict and must identify.";
            lights
                .insert(0, Light { about: MECHANISM, meaning, level: Level::Bad, sentence: verdict.headline.clone() });
        }
        if let Some(identifiability) = &found.identifiability {
            let level = match identifiability.verdict {
                Verdict::Good => Level::Good,
                Verdict::Weak => Level::Careful,
                Verdict::Poor => Level::Bad,
            };
            let sentence = capitalised(identifiability.verdict.sentence()) + ".";
            let meaning = "What decided who got labelled can be estimated only if the classifier tells the classes apart (identifiability).";
            lights.push(Light { about: APART, meaning, level, sentence });
        }
        if !self.nothing_missing() {
            let (size, labels) = (found.effective_sample_size, found.about.n_labelled);
            let level = match size / self.classes().len().max(1) as f64 {
                per_class if per_class >= 20.0 => Level::Good,
                per_class if per_class >= 5.0 => Level::Careful,
                _ => Level::Bad,
            };
            let share = size / labels.max(1) as f64;
            let sentence = format!(
                "Weighted by 1/phi, the {labels} labels are worth {size:.0} unweighted ones ({}).",
                percent((share * 100.0).round() / 100.0)
            );
            let meaning = "Labels of a class that is rarely labelled count for many rows. The more the weights differ, the fewer equal labels they are worth (effective sample size).";
            lights.push(Light { about: WEIGHT, meaning, level, sentence });
        }
        if let Some(calibration) = found.calibration.as_ref().filter(|calibration| calibration.ece_after.is_finite()) {
            let level = match calibration.ece_after {
                error if error <= 0.05 => Level::Good,
                error if error <= 0.15 => Level::Careful,
                _ => Level::Bad,
            };
            let sentence = format!(
                "After calibration, the classifier's confidence is off by {} on average ({} before).",
                share(calibration.ece_after),
                share(calibration.ece_before)
            );
            let meaning = "Calibrated probabilities come true as often as they say: of rows predicted with 80%, four in five are right. The estimate relies on that.";
            lights.push(Light { about: CALIBRATION, meaning, level, sentence });
        }
        if !found.converged {
            let sentence = "The estimator did not converge: the numbers are those at which it stopped.".to_owned();
            let meaning = "The estimate is found step by step.";
            lights.push(Light { about: CONVERGENCE, meaning, level: Level::Bad, sentence });
        }
        lights
    }
}

/// Whether labelling goes with anything that the mechanism leaves out.
fn other_influences(of: &Labelling) -> Light {
    let beyond = if of.given.is_empty() { "Beyond the class" } else { "Beyond the class and the given columns" };
    let (level, sentence) = match of.remaining() {
        None => (Level::Careful, "Not checked: no columns were given.".to_owned()),
        Some(check) if check.columns.is_empty() && of.found_in(check).is_empty() => (
            Level::Careful,
            format!(
                "There are no columns to look at; labels show no dependence on how sure the classifier is ({}).",
                p_value(check.p_value)
            ),
        ),
        Some(check) => match quoted(of.found_in(check).into_iter().map(|column| column.column.as_str())) {
            found if found.is_empty() => (
                Level::Good,
                format!(
                    "{beyond}, nothing was found at the {} level, in {} or in how sure the classifier is (smallest corrected {}).",
                    percent(of.level),
                    columns(check.columns.len()),
                    p_value(check.p_value)
                ),
            ),
            found => (
                Level::Bad,
                format!("{beyond}, labelling also goes with {found} (smallest corrected {}).", p_value(check.p_value)),
            ),
        },
    };
    let meaning = match of.given.is_empty() {
        true => "The estimate assumes that the class alone decides who gets labelled.",
        false => "The estimate assumes that the class and the given columns alone decide who gets labelled.",
    };
    Light { about: INFLUENCES, meaning, level, sentence }
}

fn sentence_of(result: &TestResult) -> String {
    let statistic = match result.df {
        Some(df) => format!("statistic {:.1} on {df} degrees of freedom", result.statistic),
        None => format!("statistic {:.1}", result.statistic),
    };
    let draws = if result.draws > 0 { format!(", {} draws", result.draws) } else { String::new() };
    format!("{} test: {statistic}, {}{draws}; {}", capitalised(&result.test), p_value(result.p_value), result.condition)
}

/// The text with its first letter in upper case.
pub(crate) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A share as a percentage with few digits: 12%, 1.5%, 0.03%.
pub(crate) fn share(value: f64) -> String {
    let percent = 100.0 * value;
    match percent {
        _ if !value.is_finite() => "–".to_owned(),
        p if p == 0.0 || p >= 10.0 => format!("{p:.0}%"),
        p if p >= 0.1 => format!("{p:.1}%"),
        p => format!("{p:.2}%"),
    }
}
