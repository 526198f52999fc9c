//! A mechanism by class and columns that is known, such as that of an earlier run.

use super::EvaluateSettings;
use crate::analysis::{Evidence, Findings, Reestimate};
use crate::covariates::TermEncoder;
use crate::error::Error;
use crate::mechanism::Mechanism;
use crate::phi::Phi;
use crate::shares::ClassShares;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, StandardNormal};
use serde::{Deserialize, Serialize};

/// P(labelled | class, columns), and how columns become its terms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownMechanism {
    /// The effects of classes and terms.
    pub mechanism: Mechanism,
    /// How columns become terms.
    pub terms: TermEncoder,
    /// Standard errors of the effects of the terms, one by one, if they are known: the replicates draw the effects.
    #[serde(default)]
    pub term_se: Option<Vec<f64>>,
}

/// A known mechanism with the terms of the rows that are evaluated.
pub(super) struct OfRows {
    mechanism: Mechanism,
    terms: Vec<Vec<f64>>,
    names: Vec<String>,
    term_se: Option<Vec<f64>>,
    seed: u64,
}

/// What one look at the rows under a known mechanism gives.
pub(super) type Looked<'a> = (super::ExpectedLabels<'a>, Option<(Phi, ClassShares)>);

impl OfRows {
    /// `None` if no mechanism by columns is known.
    pub(super) fn new(settings: &EvaluateSettings, evidence: &Evidence<'_>) -> Result<Option<Self>, Error> {
        let Some(known) = &settings.mechanism else { return Ok(None) };
        let classes = evidence.labels.n_classes();
        let one_each = known.term_se.as_ref().is_none_or(|se| se.len() == known.terms.n_terms());
        if known.mechanism.check(classes, known.terms.n_terms()).is_err() || !one_each {
            return Err(Error::Settings("a known mechanism needs one effect per class and one per term"));
        }
        let names: Vec<String> = known.terms.names().map(str::to_owned).collect();
        let missing = |name: String| Error::UnknownCovariate { name, known: Vec::new() };
        let covariates = evidence.covariates.ok_or_else(|| missing(names.join(", ")))?;
        let terms = known.terms.terms(covariates)?;
        let (mechanism, term_se, seed) = (known.mechanism.clone(), known.term_se.clone(), settings.estimate.seed);
        Ok(Some(Self { mechanism, terms, names, term_se, seed }))
    }

    /// The names of the columns.
    pub(super) fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// The expected labels under row weights. The effects of the classes move as phi by class does
    /// in `moved`, and the effects of terms by their errors in a replicate.
    pub(super) fn at<'a>(
        &self,
        reestimate: &Reestimate<'a>,
        weights: Option<&[f64]>,
        moved: Option<(&Phi, &Phi)>,
        replicate: Option<u64>,
    ) -> Result<Looked<'a>, Error> {
        let mut mechanism = self.mechanism.clone();
        if let Some((phi, drawn)) = moved {
            let logit = |phi: f64| (phi / (1.0 - phi)).ln();
            for ((effect, &phi), &drawn) in mechanism.classes.iter_mut().zip(phi.iter()).zip(drawn.iter()) {
                let by = logit(drawn) - logit(phi);
                *effect += if by.is_finite() { by } else { 0.0 };
            }
        }
        if let (Some(replicate), Some(se)) = (replicate, &self.term_se) {
            let mut rng = ChaCha8Rng::seed_from_u64(self.seed ^ 0x74_72_6d);
            rng.set_stream(replicate + 1);
            let z = StandardNormal.sample_iter(&mut rng);
            mechanism.terms.iter_mut().zip(se).zip(z).for_each(|((effect, se), z): (_, f64)| *effect += se * z);
        }
        let expected = reestimate.expected(weights, &mechanism, &self.terms)?;
        let marginal = expected.marginal(weights)?;
        Ok((expected, Some(marginal)))
    }

    /// What follows for the findings of a mechanism by class alone.
    pub(super) fn describe(&self, findings: &mut Findings, phi: Phi, prevalence: ClassShares) {
        (findings.phi, findings.prevalence) = (phi, prevalence);
        findings.verdict = None;
        let columns = self.names.join(", ");
        findings.warnings.push(match &self.term_se {
            None => format!("the effects of {columns} are taken as they are: their errors are not in the intervals"),
            Some(_) => format!(
                "the effects of {columns} are not estimated from these rows; the intervals take their errors for independent"
            ),
        });
    }
}
