//! Labelling that depends on the class and on columns: logit P(labelled | y, z) = a_y + b'z.
//!
//! With the labelled posterior s(y|x) of a classifier that has z among its features, the odds of being unlabelled are
//!
//! P(r=0|x) / P(r=1|x) = Σ_y s(y|x) exp(−a_y − b'z),
//!
//! so (a, b) maximise the likelihood of r given x. It is a logistic regression of r whose predictor l = log Σ_y s(y|x)
//! exp(−a_y) − b'z is linear in b and has the gradient −t in a, where t_k = p(k | x, r=0) ∝ s(k|x) exp(−a_k). With b = 0
//! this is label shift between labelled and unlabelled rows.

mod columns_check;
mod maximise;
mod sums;

pub use columns_check::{Direction, Reference, Scores, orthogonal_check};
pub(crate) use columns_check::{orthogonal_estimate, orthogonal_mechanism, projected_scores, quadratic_form};

use crate::error::Error;
use crate::estimate::{Covariance, PhiEstimate, Shape, at_one};
use crate::mixture::LogMixture;
use crate::phi::Phi;
use crate::posteriors::PosteriorKind;
use crate::rows::Rows;
use crate::shares::ClassShares;
use crate::solver::Solver;
use crate::sums::{SecondMoments, Tally};
use crate::travel::bytes;
use maximise::Maximum;
use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};
pub(crate) use sums::{SecondOrder, Selection};

/// P(labelled | y, z) = 1 / (1 + exp(−a_y − b'z)).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mechanism {
    /// a: the effect of each class.
    pub classes: Vec<f64>,
    /// b: the effect of each term of the columns.
    pub terms: Vec<f64>,
}

bytes!(Mechanism { classes, terms });

impl Mechanism {
    /// φ(k, z): the probability that a row of class `k` with these terms is labelled.
    pub fn phi(&self, class: usize, z: impl IntoIterator<Item = f64>) -> f64 {
        let logit = self.classes[class] + self.terms.iter().zip(z).map(|(b, z)| b * z).sum::<f64>();
        1.0 / (1.0 + (-logit).exp())
    }

    /// φ(k, z_i) of every class for every row.
    pub fn rows(&self, terms: &[Vec<f64>], rows: usize) -> Vec<Phi> {
        self.of_terms(&terms.iter().map(Vec::as_slice).collect::<Vec<_>>(), rows)
    }

    /// The same from slices.
    pub fn of_terms(&self, terms: &[&[f64]], rows: usize) -> Vec<Phi> {
        (0..rows)
            .map(|row| {
                let z = || terms.iter().map(|column| column[row]);
                let phi = (0..self.classes.len()).map(|k| self.phi(k, z()).max(f64::MIN_POSITIVE)).collect();
                Phi::new(phi).expect("probabilities")
            })
            .collect()
    }

    /// Checks that there is one effect per class and per term, for a mechanism that was read from a file.
    pub fn check(&self, classes: usize, terms: usize) -> Result<(), &'static str> {
        if self.classes.len() != classes || self.terms.len() != terms {
            return Err("the effects on labelling are not one per class and one per term");
        }
        // Estimated effects are below 100; sums of effects as large as these are still finite.
        match self.classes.iter().chain(&self.terms).all(|effect| effect.abs() < 1e9) {
            true => Ok(()),
            false => Err("an effect on labelling is not a number that makes sense"),
        }
    }

    /// The mechanism by class alone, with phi kept away from its bounds.
    pub(crate) fn of_classes(phi: &Phi) -> Self {
        let logit = |phi: &f64| {
            let phi = phi.clamp(1e-3, 0.99);
            (phi / (1.0 - phi)).ln()
        };
        Self { classes: phi.iter().map(logit).collect(), terms: Vec::new() }
    }

    fn parameters(&self) -> DVector<f64> {
        DVector::from_iterator(self.classes.len() + self.terms.len(), self.classes.iter().chain(&self.terms).copied())
    }

    fn from_parameters(theta: &DVector<f64>, k: usize) -> Self {
        Self { classes: theta.as_slice()[..k].to_vec(), terms: theta.as_slice()[k..].to_vec() }
    }
}

/// The estimator of a mechanism that depends on the class and on columns, by penalised maximum likelihood.
///
/// The penalties are normal priors on the logit scale: one that keeps the effects of classes finite where the data say
/// nothing, and one that draws the effects of small groups towards the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassAndColumns {
    /// Standard deviation of the prior of a class's effect around the overall rate.
    pub class_spread: f64,
    /// Standard deviation of the prior of a term's effect around none.
    pub term_spread: f64,
    /// Maximum number of Newton steps.
    pub max_iterations: usize,
    /// Stop when no parameter moves by more than this.
    pub tolerance: f64,
}

impl Default for ClassAndColumns {
    fn default() -> Self {
        Self { class_spread: 5.0, term_spread: 2.0, max_iterations: 200, tolerance: 1e-9 }
    }
}

/// An estimated mechanism, and what follows from it for the classes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MechanismEstimate {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// Covariance of its parameters, classes first, conditional on the classifier.
    pub covariance: DMatrix<f64>,
    /// Marginal phi by class, class shares and their covariances.
    pub estimate: PhiEstimate,
}

/// A mechanism under a tilt, and what follows from it for the classes.
pub(crate) struct Tilted {
    pub(crate) mechanism: Mechanism,
    pub(crate) phi: Vec<f64>,
    pub(crate) prevalence: ClassShares,
}

/// Where a maximum is looked for.
#[derive(Default)]
struct Around<'a> {
    /// The fixed coefficient of the column that follows the terms; 0 where there is none.
    tilt: f64,
    start: Option<&'a Mechanism>,
}

/// Effects beyond this are taken for infinite: exp(−15) is 3e-7.
const FURTHEST: f64 = 15.0;

impl ClassAndColumns {
    /// Estimates from rows whose [`given`](crate::rows::Block::given) columns are the `terms` terms of the mechanism.
    pub fn estimate<R: Rows>(&self, rows: &R, terms: usize) -> Result<MechanismEstimate, Error> {
        if rows.kind() != PosteriorKind::Labelled {
            return Err(Error::WrongPosterior {
                method: "a mechanism that depends on columns",
                needed: PosteriorKind::Labelled.name(),
                given: rows.kind().name(),
                hint: "it compares labelled with unlabelled rows, so it needs the posteriors of a classifier trained on the labelled rows",
            });
        }
        let tally = Tally::of(rows)?;
        let Maximum { mechanism, point: last, stop } = self.maximise(rows, terms, &tally, &Around::default())?;
        let k = tally.counts.len();
        let n = tally.n();
        let shares = |mass: &[f64], total: f64| mass.iter().map(|mass| mass / total).collect::<Vec<f64>>();
        let prevalence: Vec<f64> =
            tally.counts.iter().zip(&last.unlabelled).map(|(count, mass)| (count + mass) / n).collect();
        let phi: Vec<f64> =
            tally.counts.iter().zip(&last.unlabelled).map(|(count, mass)| count / (count + mass)).collect();
        let phi = Phi::new(phi)?;
        let information = &last.information + self.penalty(k, terms);
        let inverse = inverse(&information)?;
        let (second, shape) = match rows.counted() {
            // A pass over a stream is dear: this one also has what tells how well phi is identified.
            Some(_) if k <= Solver::default().full_matrix_classes => {
                let ratio =
                    |(mass, count): (&f64, &f64)| (mass / tally.n_unlabelled / (count / tally.n_labelled())).max(1e-9);
                let w: Vec<f64> = last.unlabelled.iter().zip(&tally.counts).map(ratio).collect();
                let moments = SecondMoments::zero(k, vec![1.0; k], false);
                let zero = (SecondOrder::at(&mechanism), (LogMixture::at(&w, true), moments));
                let (second, (mixture, moments)) = rows.scan(&zero)?;
                (second, Some(Shape { information: mixture.hessian(), confusion: moments.confusion() }))
            }
            _ => (rows.scan(&SecondOrder::at(&mechanism))?, None),
        };
        let covariance = second.covariance(&tally, &phi, &prevalence, &inverse);
        let estimate = PhiEstimate {
            method: if terms == 0 { "class" } else { "class and columns" },
            clipped: at_one(&phi),
            phi,
            prevalence: ClassShares::estimated(prevalence),
            unlabelled_shares: ClassShares::estimated(shares(&last.unlabelled, tally.n_unlabelled)),
            covariance: Some(covariance),
            stop,
            log_likelihood: Some(-last.loss),
            prior_weight: 0.0,
            tally,
            shape,
        };
        Ok(MechanismEstimate { mechanism, covariance: inverse, estimate })
    }

    pub(crate) fn penalty(&self, k: usize, terms: usize) -> DMatrix<f64> {
        let of = |spread: f64| 1.0 / (spread * spread);
        DMatrix::from_fn(k + terms, k + terms, |i, j| match i == j {
            true if i < k => of(self.class_spread),
            true => of(self.term_spread),
            false => 0.0,
        })
    }

    /// The mechanism, phi and class shares where the odds of a label are also multiplied by exp(`tilt`·h), with h the column that
    /// follows the terms. `start` is a mechanism nearby.
    pub(crate) fn tilted<R: Rows>(
        &self,
        rows: &R,
        start: &Mechanism,
        tally: &Tally,
        tilt: f64,
    ) -> Result<Tilted, Error> {
        let around = Around { tilt, start: Some(start) };
        let Maximum { mechanism, point: last, .. } = self.maximise(rows, start.terms.len(), tally, &around)?;
        let mass = || tally.counts.iter().zip(&last.unlabelled);
        let phi = mass().map(|(count, mass)| count / (count + mass)).collect();
        let prevalence = mass().map(|(count, mass)| (count + mass) / tally.n()).collect();
        Ok(Tilted { mechanism, phi, prevalence: ClassShares::estimated(prevalence) })
    }
}

fn inverse(information: &DMatrix<f64>) -> Result<DMatrix<f64>, Error> {
    information.clone().cholesky().map(|cholesky| cholesky.inverse()).ok_or_else(not_identified)
}

fn not_identified() -> Error {
    Error::NotIdentified {
        method: "the mechanism by class and columns",
        why: "the information about its effects is singular".to_owned(),
    }
}

impl SecondOrder {
    /// Covariances of phi and of the class shares by the delta method, from the influence of every row.
    fn covariance(&self, tally: &Tally, phi: &Phi, prevalence: &[f64], inverse: &DMatrix<f64>) -> Covariance {
        let (k, p) = (prevalence.len(), inverse.nrows());
        let n = tally.n();
        // Influence of a row on the shares: v_i − p + J I⁻¹ score_i, with v the label or t, and J = ∂ Σ_U t / ∂θ.
        let pull = self.share_slopes() * inverse;
        // From q = (label, v, score) to (phi, shares), both times n.
        let map = DMatrix::from_fn(2 * k, 2 * k + p, |row, column| {
            let of_share = |class: usize| match column {
                c if c < k => 0.0,
                c if c < 2 * k => f64::from(u8::from(c - k == class)),
                c => pull[(class, c - 2 * k)],
            };
            if row >= k {
                return of_share(row - k);
            }
            // log phi_k = log(n_k / n) − log p_k.
            let label = if column == row { 1.0 / (tally.counts[row] / n) } else { 0.0 };
            phi[row] * (label - of_share(row) / prevalence[row])
        });
        let all = &map * self.central_moments() * map.transpose() / (n * n);
        let mut covariance = Covariance {
            phi: all.view((0, 0), (k, k)).into_owned(),
            prevalence: all.view((k, k), (k, k)).into_owned(),
        };
        for class in at_one(phi) {
            crate::estimate::blank(&mut covariance.phi, class.index());
        }
        covariance
    }
}
