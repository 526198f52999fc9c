//! How the studies call the library: a cross-fitted softmax regression, and the program's default estimate from it.

use mnar::Labels;
use mnar::analysis::{EstimateSettings, Evidence, Features, IntervalMethod};
use mnar::classify::SoftmaxRegression;
use mnar::crossfit::FoldPlan;
use ndarray::Array2;

/// The number of folds, unless a study varies it.
pub(crate) const FOLDS: usize = 5;

/// The classifier of most studies: fitted less closely than by default, because they fit it thousands of times.
pub(crate) const REGRESSION: SoftmaxRegression = SoftmaxRegression { l2: 1.0, tolerance: 1e-5, max_iterations: 100 };

/// Cross-fits a regression; the seed draws the folds.
pub(crate) fn cross_fit<'a>(
    x: &'a Array2<f64>,
    labels: &'a Labels,
    regression: &'a SoftmaxRegression,
    folds: usize,
    seed: u64,
) -> Result<Evidence<'a>, mnar::Error> {
    let plan = FoldPlan::for_labels(labels, folds, seed)?;
    Evidence::cross_fit(Features { x, names: &[], classifier: regression }, labels, plan, seed, &())
}

/// The program's default estimate, but with intervals from the observed information, which need no bootstrap.
pub(crate) fn default_estimate() -> EstimateSettings {
    EstimateSettings { interval: IntervalMethod::Information, ..EstimateSettings::default() }
}
