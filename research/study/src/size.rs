//! Does a test reject a true MCAR hypothesis as often as its level says, and how often does it reject a false one?

use crate::draws::{Failed, Seeds, Share, run};
use crate::fit::{FOLDS, REGRESSION, cross_fit};
use crate::worlds::{self, World};
use anyhow::{Context, Result};
use mnar::estimate::LabelShift;
use mnar::test::{BootstrapTest, PermutationTest, likelihood_ratio};
use mnar::{Class, Estimator, Labels, Phi, PosteriorKind, Posteriors, Sample, Solver};
use mnar_data::FullyLabelled;
use ndarray::Axis;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Results for a world and a mechanism.
#[derive(Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) world: String,
    pub(crate) mechanism: String,
    pub(crate) phi: Vec<f64>,
    pub(crate) mean_labels: f64,
    pub(crate) failed: Failed,
    pub(crate) failed_bootstrap: Failed,
    pub(crate) tests: Vec<Rejections>,
}

/// How often one test rejected.
#[derive(Serialize, Deserialize)]
pub(crate) struct Rejections {
    pub(crate) test: String,
    pub(crate) draws: usize,
    pub(crate) at_1: Share,
    pub(crate) at_5: Share,
    pub(crate) at_10: Share,
    /// Target range for the share at 5%, where there is one.
    pub(crate) target: Option<[f64; 2]>,
}

const PERMUTATIONS: usize = 999;
const REPLICATES: usize = 99;

/// Names of the tests, in the order of [`p_values`].
const TESTS: [&str; 6] = [
    "auto: permutation, 5 folds",
    "permutation, 2 folds",
    "likelihood ratio, chi-square, cross-fitted",
    "label-shift ratio, chi-square, cross-fitted",
    "label-shift ratio, chi-square, trained on the rows it scores",
    "G-test that knows every label",
];
const AUTO: usize = 0;

/// Number of draws for the bootstrap tests and for all others.
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) draws: usize,
    pub(crate) bootstrap: usize,
}

/// Runs the Gaussians, with base seed 0. MCAR and MNAR use the same rows.
pub(crate) fn gaussians(counts: Counts) -> Result<Vec<Setting>> {
    let mechanisms = [("MCAR", Phi::new(vec![0.1; 3])?), ("MNAR", Phi::new(vec![0.08, 0.10, 0.15])?)];
    settings("gaussians", &World::Gaussians, mechanisms, 0, counts)
}

/// Runs optdigits, with base seed 1,000,000.
pub(crate) fn optdigits(world: &World, counts: Counts) -> Result<Vec<Setting>> {
    let mechanisms = [("MCAR", Phi::new(vec![0.08; 10])?), ("MNAR", worlds::digit_phi()?)];
    settings("optdigits", world, mechanisms, 1_000_000, counts)
}

fn settings(
    name: &str,
    world: &World,
    mechanisms: [(&str, Phi); 2],
    base: u64,
    counts: Counts,
) -> Result<Vec<Setting>> {
    mechanisms
        .into_iter()
        .map(|(mechanism, phi)| {
            let title = format!("size, {name}, {mechanism}");
            let drawn = run(&title, base, counts.draws, |seeds| {
                let rows = world.draw(seeds.data);
                let labels = worlds::self_masked(&rows, &phi, seeds.mask)?;
                Ok((labels.n_labelled(), p_values(&rows, &labels, seeds)?))
            })?;
            let bootstrap = run(&format!("{title}, bootstrap"), base, counts.bootstrap, |seeds| {
                let rows = world.draw(seeds.data);
                let labels = worlds::self_masked(&rows, &phi, seeds.mask)?;
                bootstrap_p_values(&rows, &labels, seeds)
            })?;
            let target = (mechanism == "MCAR").then_some([0.035, 0.065]);
            let mut tests: Vec<Rejections> = TESTS
                .iter()
                .enumerate()
                .map(|(t, test)| {
                    rejections(test, drawn.values.iter().map(|(_, p)| p[t]).collect(), target.filter(|_| t == AUTO))
                })
                .collect();
            for (t, test) in ["likelihood ratio, bootstrap", "moments, bootstrap"].iter().enumerate() {
                tests.push(rejections(test, bootstrap.values.iter().map(|p| p[t]).collect(), None));
            }
            Ok(Setting {
                world: name.into(),
                mechanism: mechanism.into(),
                phi: phi.as_slice().to_vec(),
                mean_labels: drawn.values.iter().map(|(labels, _)| *labels as f64).sum::<f64>()
                    / drawn.values.len() as f64,
                failed: drawn.failed,
                failed_bootstrap: bootstrap.failed,
                tests,
            })
        })
        .collect()
}

fn rejections(test: &str, p: Vec<f64>, target: Option<[f64; 2]>) -> Rejections {
    // p-values from resampling are multiples of 1/1000 or 1/100; one that equals the level must not miss it by
    // rounding.
    let at = |level: f64| Share::of(p.iter().map(|p| *p <= level + 1e-12));
    Rejections { test: test.into(), draws: p.len(), at_1: at(0.01), at_5: at(0.05), at_10: at(0.10), target }
}

fn p_values(rows: &FullyLabelled, labels: &Labels, seeds: &Seeds) -> Result<[f64; TESTS.len()]> {
    let permutation = PermutationTest { permutations: PERMUTATIONS, seed: seeds.resample };
    let fifths = cross_fit(&rows.x, labels, &REGRESSION, FOLDS, seeds.folds)?;
    let sample = Sample::new(&fifths.posteriors, labels)?;
    let halves = cross_fit(&rows.x, labels, &REGRESSION, 2, seeds.other_folds)?;
    let in_sample = in_sample(rows, labels)?;
    Ok([
        permutation.run(&sample, &fifths.plan)?.p_value,
        permutation.run(&Sample::new(&halves.posteriors, labels)?, &halves.plan)?.p_value,
        likelihood_ratio(&sample, &Solver::default())?.p_value,
        label_shift_ratio(&sample)?,
        label_shift_ratio(&Sample::new(&in_sample, labels)?)?,
        g_test(rows, labels)?,
    ])
}

fn bootstrap_p_values(rows: &FullyLabelled, labels: &Labels, seeds: &Seeds) -> Result<[f64; 2]> {
    let test = BootstrapTest { replicates: REPLICATES, seed: seeds.resample, ..BootstrapTest::default() };
    let tests = test.run(labels, &(), |labels, replicate| {
        let fitted = cross_fit(&rows.x, labels, &REGRESSION, FOLDS, seeds.folds.wrapping_add(replicate))?;
        Ok(fitted.posteriors.into_owned())
    })?;
    Ok([tests.likelihood_ratio.p_value, tests.moments.p_value])
}

/// Posteriors of all rows from one classifier, trained on all labelled rows.
pub(crate) fn in_sample(rows: &FullyLabelled, labels: &Labels) -> Result<Posteriors> {
    let (labelled, y): (Vec<usize>, Vec<Class>) = labels.labelled().unzip();
    let fit = REGRESSION.fit(rows.x.select(Axis(0), &labelled).view(), &y, labels.n_classes(), None)?;
    Ok(Posteriors::from_logits(fit.logits(rows.x.view()).view(), PosteriorKind::Labelled)?)
}

/// The p-value of twice the label-shift log-likelihood, which is 0 at w = 1, with a chi-square reference, as if the
/// posteriors were known.
fn label_shift_ratio(sample: &Sample<'_>) -> Result<f64> {
    let estimate = LabelShift::default().estimate(sample)?;
    chi_square_p(2.0 * estimate.log_likelihood.context("label shift has a likelihood")?, estimate.phi.len() - 1)
}

/// The likelihood-ratio test of independence in the 2 × K table of r by true class. No test that sees only the observed
/// labels can beat it.
fn g_test(rows: &FullyLabelled, labels: &Labels) -> Result<f64> {
    let k = labels.n_classes();
    let mut total = vec![0.0; k];
    rows.y.iter().for_each(|class| total[class.index()] += 1.0);
    let rate = labels.n_labelled() as f64 / labels.len() as f64;
    let term = |observed: f64, expected: f64| if observed > 0.0 { observed * (observed / expected).ln() } else { 0.0 };
    let sum: f64 = (0..k)
        .map(|j| {
            let labelled = labels.counts()[j] as f64;
            term(labelled, total[j] * rate) + term(total[j] - labelled, total[j] * (1.0 - rate))
        })
        .sum();
    chi_square_p(2.0 * sum, k - 1)
}

fn chi_square_p(statistic: f64, df: usize) -> Result<f64> {
    Ok(ChiSquared::new(df as f64)?.sf(statistic.max(0.0)))
}
