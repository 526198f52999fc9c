//! The paper's likelihood-ratio statistic as it is written: both hypotheses at their own maximum over theta.
//!
//! theta is a softmax regression, and both likelihoods carry its ridge penalty. Under MCAR the unlabelled rows drop out
//! and theta is the fit to the labelled rows. Under the alternative, theta and phi jointly maximise the observed
//! likelihood, by EM: an unlabelled row belongs to class k with probability q_k ∝ p(k|x)(1 − phi_k); theta is refitted
//! to the labels and q, and phi_k = n_k/(n_k + Σ q_k).

use super::bootstrap::draw_labels;
use super::{TestResult, chi_square_p, drawn_p};
use crate::classify::{FittedSoftmax, SoftmaxRegression};
use crate::error::Error;
use crate::labels::{Class, Labels};
use crate::phi::Phi;
use crate::posteriors::{PosteriorKind, Posteriors};
use crate::progress::{Progress, Stage};
use ndarray::{Array2, ArrayView2, Axis, concatenate};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Settings of the profiled likelihood ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProfiledRatio {
    /// The model of p(y|x).
    pub regression: SoftmaxRegression,
    /// Number of bootstrap replicates of the reference; 0 for chi-square alone.
    pub replicates: usize,
    /// Seed of the replicates.
    pub seed: u64,
    /// Maximum number of EM steps.
    pub max_iterations: usize,
    /// Stop when a step raises the log-likelihood by less than this.
    pub tolerance: f64,
}

impl Default for ProfiledRatio {
    fn default() -> Self {
        Self { regression: SoftmaxRegression::default(), replicates: 99, seed: 0, max_iterations: 500, tolerance: 1e-3 }
    }
}

/// The maxima under both hypotheses.
#[derive(Clone, Debug)]
pub struct ProfiledFit {
    /// 2 (ℓ(theta, phi) − ℓ(theta_0, n_l/n)), with ℓ the penalised log-likelihood.
    pub statistic: f64,
    /// phi under the alternative.
    pub phi: Phi,
    /// theta under MCAR.
    pub null: FittedSoftmax,
    /// theta under the alternative.
    pub alternative: FittedSoftmax,
    /// The penalised log-likelihood of the alternative after every EM step; it never decreases.
    pub path: Vec<f64>,
    /// Whether EM met the tolerance.
    pub converged: bool,
}

impl ProfiledRatio {
    /// Runs the test. With replicates, the p-value is the bootstrap's and chi-square's is given beside it.
    pub fn run(&self, x: ArrayView2<'_, f64>, labels: &Labels, progress: &dyn Progress) -> Result<TestResult, Error> {
        let observed = self.fit(x, labels)?;
        let df = labels.n_classes() - 1;
        let chi_square = chi_square_p(observed.statistic, df);
        if self.replicates == 0 {
            return Ok(TestResult {
                test: "lrt-profiled".into(),
                statistic: observed.statistic,
                df: Some(df),
                p_value: chi_square,
                p_value_chi_square: None,
                draws: 0,
                condition: "valid with many labels and a correct model of p(y|x); with few labels or a strong penalty use replicates".into(),
            });
        }
        // Under MCAR the fit to the labelled rows is the distribution of every label.
        let law = Posteriors::from_logits(observed.null.logits(x).view(), PosteriorKind::Labelled)?;
        progress.begin(Stage::Bootstrap, self.replicates as u64, 0);
        let reference = (1..=self.replicates as u64)
            .into_par_iter()
            .map(|replicate| {
                if progress.cancelled() {
                    return Err(Error::Cancelled);
                }
                let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
                rng.set_stream(replicate);
                let (drawn, _) = draw_labels(&law, labels, &mut rng)?;
                let statistic = self.fit(x, &drawn)?.statistic;
                progress.step();
                Ok(statistic)
            })
            .collect::<Result<Vec<f64>, Error>>();
        progress.end();
        let reference = reference?;
        Ok(TestResult {
            test: "lrt-profiled".into(),
            statistic: observed.statistic,
            df: Some(df),
            p_value: drawn_p(observed.statistic, &reference),
            p_value_chi_square: Some(chi_square),
            draws: reference.len(),
            condition: "valid if the model of p(y|x) is correct, since the reference is drawn from its fit to the labelled rows"
                .into(),
        })
    }

    /// The maxima under both hypotheses on these rows.
    pub fn fit(&self, x: ArrayView2<'_, f64>, labels: &Labels) -> Result<ProfiledFit, Error> {
        let (rows, y): (Vec<usize>, Vec<Class>) = labels.labelled().unzip();
        let hidden: Vec<usize> = (0..labels.len()).filter(|&row| !labels.is_labelled(row)).collect();
        let (x_l, x_u) = (x.select(Axis(0), &rows), x.select(Axis(0), &hidden));
        let (k, n, n_l, n_u) = (labels.n_classes(), labels.len() as f64, rows.len() as f64, hidden.len() as f64);
        let null = self.regression.fit(x_l.view(), &y, k, None)?;
        let null_value = -null.objective + n_l * (n_l / n).ln() + n_u * (n_u / n).ln();

        // Every unlabelled row once per class, weighted by its probability.
        let stacked =
            concatenate(Axis(0), &std::iter::once(x_l.view()).chain((0..k).map(|_| x_u.view())).collect::<Vec<_>>())
                .expect("one width");
        let classes = (0..k).flat_map(|class| std::iter::repeat_n(Class::from(class), hidden.len()));
        let stacked_y: Vec<Class> = y.iter().copied().chain(classes).collect();
        let mut weights = vec![1.0; stacked_y.len()];
        let mut theta = null.clone();
        let mut phi = vec![n_l / n; k];
        let mut path: Vec<f64> = Vec::new();
        let mut converged = false;
        while path.len() < self.max_iterations && !converged {
            let q = responsibilities(&theta, x_u.view(), &phi);
            for class in 0..k {
                let mass: f64 = q.column(class).sum();
                let count = labels.counts()[class] as f64;
                phi[class] = count / (count + mass);
                let start = rows.len() + class * hidden.len();
                weights[start..start + hidden.len()].iter_mut().zip(q.column(class)).for_each(|(to, q)| *to = *q);
            }
            theta = self.regression.fit_from(stacked.view(), &stacked_y, k, Some(&weights), Some(&theta))?;
            let value = self.value(&theta, &phi, x_l.view(), &y, x_u.view());
            converged = path.last().is_some_and(|last| value - last < self.tolerance);
            path.push(value);
        }
        let best = path.last().copied().unwrap_or(null_value);
        let statistic = (2.0 * (best - null_value)).max(0.0);
        Ok(ProfiledFit { statistic, phi: Phi::new(phi)?, null, alternative: theta, path, converged })
    }

    /// The observed log-likelihood with the ridge penalty.
    fn value(
        &self,
        theta: &FittedSoftmax,
        phi: &[f64],
        x_l: ArrayView2<'_, f64>,
        y: &[Class],
        x_u: ArrayView2<'_, f64>,
    ) -> f64 {
        let labelled: f64 = log_softmax(theta.logits(x_l))
            .rows()
            .into_iter()
            .zip(y)
            .map(|(row, class)| row[class.index()] + phi[class.index()].ln())
            .sum();
        let unlabelled: f64 = log_softmax(theta.logits(x_u))
            .rows()
            .into_iter()
            .map(|row| row.iter().zip(phi).map(|(log_p, phi)| log_p.exp() * (1.0 - phi)).sum::<f64>().ln())
            .sum();
        labelled + unlabelled - 0.5 * self.regression.l2 * theta.weights.iter().map(|w| w * w).sum::<f64>()
    }
}

/// q_k ∝ p(k|x)(1 − phi_k), one row per row of `x`.
fn responsibilities(theta: &FittedSoftmax, x: ArrayView2<'_, f64>, phi: &[f64]) -> Array2<f64> {
    let mut q = log_softmax(theta.logits(x));
    for mut row in q.rows_mut() {
        row.iter_mut().zip(phi).for_each(|(q, phi)| *q = q.exp() * (1.0 - phi));
        let sum = row.sum();
        row.iter_mut().for_each(|q| *q /= sum);
    }
    q
}

fn log_softmax(mut logits: Array2<f64>) -> Array2<f64> {
    for mut row in logits.rows_mut() {
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let log_sum = top + row.iter().map(|value| (value - top).exp()).sum::<f64>().ln();
        row.iter_mut().for_each(|value| *value -= log_sum);
    }
    logits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{apply_mask, mask};
    use rand::RngExt;

    /// Two classes on a line, with means two apart.
    fn line(n: usize, phi: [f64; 2], seed: u64) -> (Array2<f64>, Labels) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut x = Array2::zeros((n, 1));
        let y: Vec<Option<Class>> = (0..n)
            .map(|i| {
                let k = usize::from(rng.random::<f64>() < 0.4);
                // The sum of twelve uniforms is close to a normal.
                x[[i, 0]] = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0 + 2.0 * k as f64 - 1.0;
                Some(Class::from(k))
            })
            .collect();
        let complete = Labels::allow_degenerate(y, vec!["a".into(), "b".into()]).unwrap();
        let kept = mask(&complete, &Phi::new(phi.to_vec()).unwrap(), seed).unwrap();
        (x, apply_mask(&complete, &kept).unwrap())
    }

    #[test]
    fn em_climbs_to_a_stationary_point_above_the_null() {
        let (x, labels) = line(600, [0.1, 0.5], 3);
        let ratio = ProfiledRatio { tolerance: 1e-9, max_iterations: 5000, ..Default::default() };
        let fit = ratio.fit(x.view(), &labels).unwrap();
        assert!(fit.converged && fit.path.windows(2).all(|pair| pair[1] >= pair[0] - 1e-7));
        // phi within sampling error of the truth: 600 rows, classes two standard deviations apart.
        assert!(
            (fit.phi.as_slice()[0] - 0.1).abs() < 0.05 && (fit.phi.as_slice()[1] - 0.5).abs() < 0.15,
            "{:?}",
            fit.phi
        );
        let (rows, y): (Vec<usize>, Vec<Class>) = labels.labelled().unzip();
        let hidden: Vec<usize> = (0..labels.len()).filter(|&row| !labels.is_labelled(row)).collect();
        let (x_l, x_u) = (x.select(Axis(0), &rows), x.select(Axis(0), &hidden));
        let value = |theta: &FittedSoftmax, phi: &[f64]| ratio.value(theta, phi, x_l.view(), &y, x_u.view());
        let (best, phi) = (&fit.alternative, fit.phi.as_slice().to_vec());
        let step = 1e-4;
        for class in 0..2 {
            let slope = |shift: &dyn Fn(f64) -> f64| (shift(step) - shift(-step)) / (2.0 * step);
            let by_weight = slope(&|h| {
                let mut theta = best.clone();
                theta.weights[[0, class]] += h;
                value(&theta, &phi)
            });
            let by_phi = slope(&|h| {
                let mut moved = phi.clone();
                moved[class] += h;
                value(best, &moved)
            });
            assert!(by_weight.abs() < 0.05 && by_phi.abs() < 0.05, "{by_weight} {by_phi}");
        }
    }

    #[test]
    fn rejects_informative_labels_and_holds_its_size() {
        let ratio = ProfiledRatio { replicates: 49, ..Default::default() };
        let (x, labels) = line(500, [0.1, 0.6], 1);
        assert!(ratio.run(x.view(), &labels, &()).unwrap().p_value <= 0.02);
        // 40 draws under MCAR at 10%: more than 10 rejections have probability 0.002 if the size is 10%.
        let rejected = (0..40)
            .filter(|&seed| {
                let (x, labels) = line(300, [0.25, 0.25], 100 + seed);
                ProfiledRatio { seed, ..ratio }.run(x.view(), &labels, &()).unwrap().p_value <= 0.1
            })
            .count();
        assert!(rejected <= 10, "{rejected} of 40");
    }
}
