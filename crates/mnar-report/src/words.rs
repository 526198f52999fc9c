//! What the numbers mean, in plain words.

use crate::report::{IntervalKind, Report, Test};
use crate::table::p_value;
use mnar::diagnose::Verdict;
use mnar::test::SelfMaskingCheck;

/// The level at which a test rejects.
pub const LEVEL: f64 = 0.05;
/// Below this p-value the self-masking check speaks of doubt: its size at 5% is 5.6% to 8.0%.
const DOUBT: f64 = 0.01;

/// The class with the largest phi, the one with the smallest, and their ratio.
pub fn most_and_least(names: &[String], phi: &[f64]) -> Option<(String, String, f64)> {
    let order = |a: &usize, b: &usize| phi[*a].total_cmp(&phi[*b]);
    let (most, least) = ((0..phi.len()).max_by(order)?, (0..phi.len()).min_by(order)?);
    Some((names[most].clone(), names[least].clone(), phi[most] / phi[least]))
}

/// One sentence of verdict.
pub fn verdict(p: f64, reject: bool, level: f64, ratio: &Option<(String, String, f64)>) -> String {
    let p = p_value(p);
    match ratio {
        Some((most, least, ratio)) if reject => format!(
            "These labels are informative ({p}): class `{most}` is about {ratio:.1} times as likely to be labelled as class `{least}`."
        ),
        _ if reject => format!("These labels are informative ({p})."),
        _ => format!(
            "No sign that the labels are informative ({p}): at the {} level the data agree with labels missing completely at random.",
            percent(level)
        ),
    }
}

/// A share as a percentage, without needless digits.
pub fn percent(level: f64) -> String {
    format!("{}%", (level * 1e6).round() / 1e4)
}

/// The self-masking check in one line.
pub fn self_masking_line(check: &SelfMaskingCheck) -> String {
    let p = p_value(check.p_value);
    if check.p_value > DOUBT {
        format!("self-masking (labels depend on the class alone) is believable: {p}")
    } else {
        let harder = if check.excess_uncertainty > 0.0 { "harder" } else { "easier" };
        format!(
            "self-masking is doubtful: {p}; unlabelled rows look {harder} than labelled rows of the same classes; see --sensitivity of `mnar estimate`"
        )
    }
}

/// How far a reader can lean on something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// As it should be.
    Good,
    /// With care.
    Careful,
    /// Not at all.
    Bad,
}

impl Level {
    /// Its name on the page, for those who see no colours.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Careful => "careful",
            Self::Bad => "bad",
        }
    }
}

/// A traffic light: what it is about, how it stands, and one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Light {
    /// What it is about.
    pub about: &'static str,
    /// How it stands.
    pub level: Level,
    /// Why.
    pub sentence: String,
}

impl Report {
    /// Does the test reject that labels are missing completely at random?
    pub fn rejects(&self) -> Option<bool> {
        self.result.as_ref().map(|result| result.p_value <= LEVEL)
    }

    /// The verdict in plain words.
    pub fn verdict(&self) -> String {
        let Some(result) = &self.result else {
            return "All labels are there: nothing is missing, so nothing can be informative.".to_owned();
        };
        let ratio = most_and_least(&self.classes, &self.phi);
        verdict(result.p_value, result.p_value <= LEVEL, LEVEL, &ratio)
    }

    /// How sure we are.
    pub fn how_sure(&self) -> String {
        let Some(result) = &self.result else { return String::new() };
        let ratio = most_and_least(&self.classes, &self.phi);
        let intervals = match self.interval {
            IntervalKind::BootstrapWithRefit => {
                "Intervals come from refitting the classifier on resampled rows, so they include what it does not know."
            }
            IntervalKind::Bootstrap | IntervalKind::Profile | IntervalKind::Information => {
                "Intervals take the classifier as given and are too short where it was learnt from few labels."
            }
            IntervalKind::None => "",
        };
        let range = ratio.zip(self.phi_ci95.as_ref()).and_then(|((most, least, _), intervals)| {
            let of = |name: &str| {
                let (low, high) = intervals[self.classes.iter().position(|class| class == name)?];
                (low.is_finite() && high.is_finite()).then(|| format!("{} to {}", share(low), share(high)))
            };
            let (of_most, of_least) = (of(&most)?, of(&least)?);
            Some(format!(" Of `{most}`, {of_most} are labelled; of `{least}`, {of_least} (95% intervals)."))
        });
        format!("{}.{} {intervals}", sentence_of(result), range.unwrap_or_default())
    }

    /// What to do next.
    pub fn next_steps(&self) -> Vec<String> {
        let mut steps = Vec::new();
        match self.rejects() {
            Some(true) => {
                steps.push("Do not read class shares off the labels: use the estimated shares below.".to_owned());
                steps.push(if self.debiased.is_some() {
                    "Predict with the debiased model: `mnar predict RUN NEW_DATA -o predictions.csv`.".to_owned()
                } else {
                    "Train again with the labels weighted by 1/phi (`mnar estimate … --weights FILE`), or let `mnar fit` do it."
                        .to_owned()
                });
                if let Some((_, least, _)) = most_and_least(&self.classes, &self.phi) {
                    steps.push(format!(
                        "More labels help most where they are fewest for their class: start with rows that may be `{least}`, such as the uncertain rows below."
                    ));
                }
            }
            Some(false) => {
                steps.push("Nothing speaks against using the labels as they are.".to_owned());
                steps.push(
                    "A test that does not reject is no proof: look at the width of the intervals before relying on it."
                        .to_owned(),
                );
            }
            None => steps.push("Use the data as they are.".to_owned()),
        }
        if self.lights().iter().any(|light| light.level == Level::Bad) {
            steps.push("A check below is red: settle that first.".to_owned());
        }
        steps
    }

    /// The checks that decide how far the numbers can be leant on.
    pub fn lights(&self) -> Vec<Light> {
        let mut lights = Vec::new();
        if let Some(check) = &self.self_masking {
            let p = p_value(check.p_value);
            let (level, sentence) = if check.p_value > DOUBT {
                (Level::Good, format!("Labels seem to depend on the class alone, as the method assumes ({p})."))
            } else {
                let harder = if check.excess_uncertainty > 0.0 { "harder" } else { "easier" };
                (
                    Level::Careful,
                    format!(
                        "Unlabelled rows look {harder} than labelled rows of the same classes ({p}): read the sensitivity curve before phi."
                    ),
                )
            };
            lights.push(Light { about: "Self-masking", level, sentence });
        }
        if let Some(identifiability) = &self.identifiability {
            let level = match identifiability.verdict {
                Verdict::Good => Level::Good,
                Verdict::Weak => Level::Careful,
                Verdict::Poor => Level::Bad,
            };
            let sentence = capitalised(identifiability.verdict.sentence()) + ".";
            lights.push(Light { about: "Identifiability", level, sentence });
        }
        if let Some(size) = self.effective_sample_size {
            let share = size / self.n_labelled.max(1) as f64;
            let level = match size / self.classes.len().max(1) as f64 {
                per_class if per_class >= 20.0 => Level::Good,
                per_class if per_class >= 5.0 => Level::Careful,
                _ => Level::Bad,
            };
            let sentence = format!(
                "Weighted by 1/phi, the {} labels are worth {size:.0} ({}).",
                self.n_labelled,
                percent((share * 100.0).round() / 100.0)
            );
            lights.push(Light { about: "Effective sample size", level, sentence });
        }
        if let Some(calibration) = &self.calibration {
            let level = match calibration.error_after {
                error if error <= 0.05 => Level::Good,
                error if error <= 0.15 => Level::Careful,
                _ => Level::Bad,
            };
            let sentence = format!(
                "After calibration the classifier's confidence is off by {} on average ({} before).",
                share(calibration.error_after),
                share(calibration.error_before)
            );
            lights.push(Light { about: "Calibration", level, sentence });
        }
        if !self.converged {
            let sentence = "The estimator did not converge: its numbers are where it stopped.".to_owned();
            lights.push(Light { about: "Convergence", level: Level::Bad, sentence });
        }
        lights
    }
}

fn sentence_of(result: &Test) -> String {
    let statistic = match result.df {
        Some(df) => format!("statistic {:.1} on {df} degrees of freedom", result.statistic),
        None => format!("statistic {:.1}", result.statistic),
    };
    let draws = if result.draws > 0 { format!(", {} draws", result.draws) } else { String::new() };
    format!("{} test: {statistic}, {}{draws}; {}", capitalised(&result.test), p_value(result.p_value), result.condition)
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A share as people read it: 12%, 1.5%, 0.03%.
pub(crate) fn share(value: f64) -> String {
    let percent = 100.0 * value;
    match percent {
        _ if !value.is_finite() => "–".to_owned(),
        p if p == 0.0 || p >= 10.0 => format!("{p:.0}%"),
        p if p >= 0.1 => format!("{p:.1}%"),
        p => format!("{p:.2}%"),
    }
}
