//! Label-shift maximum likelihood for labelled posteriors (the Saerens-Latinne-Decaestecker problem).
//!
//! Self-masking (A2) is label shift between the labelled and the unlabelled rows:
//! p(x | r=0) / p(x | r=1) = Σ_k w_k s(k|x) with w = q_u/π_l, so w maximises Σ_{i∈U} log(w·s_i) subject to
//! π_l·w = 1, and 1/phi_k = 1 + (n_u/n_l) w_k. At an interior optimum the mean over U of s_k/(w·s) is π_k: a
//! just-identified moment equation, from which the covariance follows.

use super::{Estimator, FromRatios, PhiEstimate, RatioCovariance, Shape, at_one, inverse_over, multinomial};
use crate::error::Error;
use crate::few_passes::{self, OfSample};
use crate::mixture::LogMixture;
use crate::posteriors::PosteriorKind;
use crate::rows::Rows;
use crate::solver::{Solver, Terms, Walk, maximise};
use crate::sums::{SecondMoments, Tally};
use nalgebra::DMatrix;

/// Which π_l the posteriors are compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceShares {
    /// n_k / n_l, the label counts: correct for calibrated posteriors.
    #[default]
    Counts,
    /// The mean posterior over the labelled rows. It agrees with the counts for calibrated posteriors; for others
    /// it cancels the part of the miscalibration that both sides share.
    MeanPosterior,
}

/// A Dirichlet prior on the shares of the classes among the unlabelled rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum SharePrior {
    /// No prior.
    #[default]
    None,
    /// `weight` pseudo-rows with the class shares of the labelled rows: shrinks towards MCAR.
    Labelled {
        /// Weight in rows.
        weight: f64,
    },
}

impl SharePrior {
    pub(crate) fn weight(self) -> f64 {
        match self {
            SharePrior::None => 0.0,
            SharePrior::Labelled { weight } => weight,
        }
    }

    fn pseudo_counts(self, source: &[f64]) -> Vec<f64> {
        source.iter().map(|pi| self.weight() * pi).collect()
    }
}

/// The label-shift estimator. EM to start and Newton to finish; accelerated EM for thousands of classes.
#[derive(Clone, Copy, Debug, Default)]
pub struct LabelShift {
    /// Which shares the posteriors are compared with.
    pub source: SourceShares,
    /// A prior on the unlabelled shares.
    pub prior: SharePrior,
    /// Settings of the solver.
    pub solver: Solver,
}

impl LabelShift {
    fn check_prior(&self) -> Result<(), Error> {
        let weight = self.prior.weight();
        if !(weight.is_finite() && weight >= 0.0) {
            return Err(Error::OutOfRange {
                name: "the weight of the prior",
                value: weight.to_string(),
                range: "a finite number of rows, at least 0",
            });
        }
        Ok(())
    }

    /// The class ratios w = q_u/π_l and the solution they come from.
    pub(crate) fn ratios<R: Rows>(&self, rows: &R, tally: &Tally) -> Result<Ratios, Error> {
        self.check_prior()?;
        let source = match self.source {
            SourceShares::Counts => tally.labelled_shares(),
            SourceShares::MeanPosterior => {
                let n_l = tally.n_labelled();
                tally.labelled_mass.iter().map(|mass| mass / n_l).collect()
            }
        };
        self.ratios_against(rows, tally, source)
    }

    /// Like [`LabelShift::ratios`], with any source measure (sensitivity analysis tilts it).
    pub(crate) fn ratios_against<R: Rows>(&self, rows: &R, tally: &Tally, source: Vec<f64>) -> Result<Ratios, Error> {
        let k = source.len();
        let (source, terms) = self.problem(tally, source);
        let solution = maximise(rows, &terms, vec![1.0; k], tally.n_unlabelled, &self.solver)?;
        Ok(Ratios { source, terms, solution })
    }

    /// What is maximised beside the mixture.
    fn problem(&self, tally: &Tally, source: Vec<f64>) -> (Vec<f64>, Terms) {
        let k = source.len();
        let pseudo = self.prior.pseudo_counts(&source);
        let total = tally.n_unlabelled + pseudo.iter().sum::<f64>();
        let cost = source.iter().map(|pi| total * pi).collect();
        (source, Terms { log_v: pseudo, log_rest: vec![0.0; k], cost, held: None })
    }
}

pub(crate) struct Ratios {
    pub(crate) source: Vec<f64>,
    pub(crate) terms: Terms,
    pub(crate) solution: crate::solver::Solution,
}

impl Estimator for LabelShift {
    fn estimate<R: Rows>(&self, rows: &R) -> Result<PhiEstimate, Error> {
        if rows.kind() != PosteriorKind::Labelled {
            return Err(Error::WrongPosterior {
                method: "the label-shift estimator",
                needed: PosteriorKind::Labelled.name(),
                given: rows.kind().name(),
                hint: "use the likelihood or the moment estimator for population posteriors",
            });
        }
        let (tally, Ratios { source, terms, solution }, confusion) = self.in_few_passes(rows)?.map_or_else(
            || {
                let tally = Tally::of(rows)?;
                let ratios = self.ratios(rows, &tally)?;
                Ok((tally, ratios, None))
            },
            |(tally, ratios, confusion)| Ok::<_, Error>((tally, ratios, Some(confusion))),
        )?;
        let w = &solution.v;
        let from = FromRatios { tally: &tally, w, source: &source };
        let phi = from.phi()?;
        let covariance = if w.len() <= self.solver.full_matrix_classes {
            self.ratio_covariance(rows, &tally, &source, &terms, &solution)?.map(|parts| from.covariance(&parts))
        } else {
            None
        };
        Ok(PhiEstimate {
            method: "label-shift",
            clipped: at_one(&phi),
            prevalence: from.prevalence(),
            unlabelled_shares: from.unlabelled_shares(),
            phi,
            covariance,
            stop: solution.stop,
            log_likelihood: Some(solution.sums.value),
            prior_weight: self.prior.weight(),
            tally,
            shape: confusion.map(|confusion| Shape { information: solution.sums.hessian(), confusion }),
        })
    }
}

impl LabelShift {
    /// Where a sample of the rows was kept: the tally, the ratios, and the soft confusion matrix of the labelled rows (not yet
    /// divided by n_l), from as few passes as the ratios take.
    fn in_few_passes<R: Rows>(&self, rows: &R) -> Result<Option<(Tally, Ratios, DMatrix<f64>)>, Error> {
        let Some(counted) = rows.counted() else { return Ok(None) };
        let k = counted.counts.len();
        if self.source != SourceShares::Counts || k > self.solver.full_matrix_classes || counted.lacks_rows() {
            return Ok(None);
        }
        let Some(sample) = OfSample::new(rows, counted.n_unlabelled) else { return Ok(None) };
        self.check_prior()?;
        let (source, terms) = self.problem(counted, counted.labelled_shares());
        let near = few_passes::start(&sample, &terms, vec![1.0; k], &self.solver)?;
        let moments = SecondMoments::of_labels(k);
        let (tally, (sums, moments)) = rows.scan(&(Tally::zero(k), (LogMixture::at(&near, true), moments)))?;
        let all = Walk { rows, every: 1, n_unlabelled: tally.n_unlabelled };
        let solution = few_passes::finish(&sample, &all, &terms, (near, sums), &self.solver)?;
        Ok(Some((tally, Ratios { source, terms, solution }, moments.confusion())))
    }
}

impl LabelShift {
    /// The sandwich covariance of the moment equation mean_U s_k/(w·s) + a_k/(n_u w_k) = (1 + A/n_u) π_k, where both
    /// sides are random.
    fn ratio_covariance<R: Rows>(
        &self,
        rows: &R,
        tally: &Tally,
        source: &[f64],
        terms: &Terms,
        solution: &crate::solver::Solution,
    ) -> Result<Option<RatioCovariance>, Error> {
        let k = source.len();
        let (n_l, n_u) = (tally.n_labelled(), tally.n_unlabelled);
        let w = &solution.v;
        let free: Vec<usize> = (0..k).filter(|&j| w[j] > 0.0).collect();
        let Some(bread) = inverse_over(&(terms.hessian(&solution.sums, w) / n_u), &free) else {
            return Ok(None);
        };
        let g: Vec<f64> = solution.sums.gradient.iter().map(|g| g / n_u).collect();
        let g_outer = DMatrix::from_fn(k, k, |a, b| g[a] * g[b]);
        let unlabelled = (solution.sums.hessian() / n_u - g_outer) / n_u;
        // d/dπ_k of the right-hand side minus the left; 1 without a prior.
        let weight = self.prior.weight();
        let pull = DMatrix::from_fn(k, k, |a, b| match (a == b, self.prior) {
            (false, _) => 0.0,
            (true, SharePrior::Labelled { .. }) => 1.0 + weight / n_u * (1.0 - 1.0 / w[a]),
            (true, _) => 1.0 + weight / n_u,
        });
        let label_cov = multinomial(&tally.labelled_shares()) / n_l;
        let (source_cov, label_source) = match self.source {
            SourceShares::Counts => (label_cov.clone(), label_cov),
            SourceShares::MeanPosterior => {
                let moments = SecondMoments::of(rows, vec![1.0; k], false)?;
                let labels = tally.labelled_shares();
                let centre = DMatrix::from_fn(k, k, |a, b| source[a] * source[b]);
                let cross =
                    moments.confusion().transpose() / n_l - DMatrix::from_fn(k, k, |a, b| labels[a] * source[b]);
                ((moments.labelled() / n_l - centre) / n_l, cross / n_l)
            }
        };
        let meat = &pull * &source_cov * &pull + unlabelled;
        Ok(Some(RatioCovariance {
            w: &bread * meat * &bread,
            label_w: -(&label_source * &pull * &bread),
            source_w: -(&source_cov * &pull * &bread),
            source: source_cov,
            label_source,
        }))
    }
}
