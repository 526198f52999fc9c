//! Findings from positive-unlabelled data whose share is known.

use super::{About, Findings, IntervalAbout, IntervalKind, TriedClassifier, Verdict, VerdictKind};
use crate::error::Error;
use crate::labels::Labels;
use crate::phi::Phi;
use crate::positive::{KnownShare, PositiveBound};
use crate::shares::ClassShares;

/// The mechanism of a class that is never labelled: as near to 0 as phi can be.
const NEVER: f64 = f64::MIN_POSITIVE;

impl KnownShare {
    /// The mechanism, the class itself first and then all others together, which are never labelled.
    pub fn mechanism(&self) -> Result<Phi, Error> {
        Phi::new(vec![self.phi, NEVER])
    }
}

impl PositiveBound {
    /// The names of the two classes: the one that is ever labelled, and the rest.
    pub fn classes(&self) -> Vec<String> {
        vec![self.class.clone(), format!("not {}", self.class)]
    }

    /// What the data say by themselves, in a sentence.
    pub fn sentence(&self) -> String {
        format!(
            "Only `{}` is ever labelled, so these data alone cannot say how common it is. They say that at least {:.1}% of its rows are labelled, and that it is {:.1}% to {:.1}% of all rows (bounds at the 95% level, not an estimate), if all of its rows have the same chance of a label.",
            self.class,
            100.0 * self.phi_at_least,
            100.0 * self.share_at_least,
            100.0 * self.share_at_most
        )
    }
}

impl Findings {
    /// What can be said where only one class is ever labelled and its share is known.
    pub fn positive_unlabelled(
        labels: &Labels,
        bound: PositiveBound,
        known: &KnownShare,
        tried: Vec<TriedClassifier>,
        seed: u64,
    ) -> Result<Self, Error> {
        let n = labels.len() as f64;
        let n_unlabelled = labels.n_unlabelled() as f64;
        let of_class = (known.share * n - labels.n_labelled() as f64) / n_unlabelled;
        let mut warnings = Vec::new();
        if known.contradicted {
            warnings.push(format!(
                "the data contradict the share that was given: it is {:.3}, but they allow {:.3} at most; phi and everything that rests on it are then too small, or some rows of `{}` are labelled more readily than others",
                known.share, bound.share_at_most, bound.class
            ));
        }
        let verdict = Verdict {
            kind: if known.contradicted { VerdictKind::Unclear } else { VerdictKind::ByClass },
            headline: headline(&bound, known),
            checked: vec![format!(
                "The share that was given, {:.3}, against the largest that the data allow: {:.3} at the 95% level.",
                known.share, bound.share_at_most
            )],
            cannot_know:
                "Whether all rows of the class have the same chance of a label: nothing in data of this kind can show that."
                    .to_owned(),
        };
        let about = About {
            classes: bound.classes(),
            n: labels.len(),
            n_labelled: labels.n_labelled(),
            labelled_per_class: vec![labels.n_labelled(), 0],
        };
        let nothing = Self::nothing_missing(labels, seed);
        Ok(Self {
            about,
            phi: known.mechanism()?,
            phi_ci95: Some(vec![known.phi_ci95, (0.0, 0.0)]),
            prevalence: ClassShares::new(vec![known.share, 1.0 - known.share])?,
            unlabelled_shares: ClassShares::new(vec![of_class, 1.0 - of_class])?,
            method: "positive-unlabelled".to_owned(),
            interval: IntervalAbout::new(IntervalKind::Count),
            tried,
            warnings,
            verdict: Some(verdict),
            positive: Some(bound),
            ..nothing
        })
    }
}

fn headline(bound: &PositiveBound, known: &KnownShare) -> String {
    let class = &bound.class;
    if known.contradicted {
        return format!(
            "Only `{class}` is ever labelled, and the share that was given contradicts the data: {:.1}%, where they allow {:.1}% at most.",
            100.0 * known.share,
            100.0 * bound.share_at_most
        );
    }
    format!(
        "Only `{class}` is ever labelled. If it is {:.1}% of all rows, as was given, {:.1}% of its rows are labelled ({:.1}% to {:.1}%).",
        100.0 * known.share,
        100.0 * known.phi,
        100.0 * known.phi_ci95.0,
        100.0 * known.phi_ci95.1
    )
}
