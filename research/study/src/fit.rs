//! How the studies call the library: a cross-fitted classifier, and the program's default estimate from it.

use mnar::analysis::{EstimateSettings, Evidence, Features, IntervalMethod};
use mnar::classify::{BoostedTrees, Classifier, SoftmaxRegression, Terms, Training};
use mnar::crossfit::FoldPlan;
use mnar::{Class, Labels};
use ndarray::Array2;

/// The number of folds, unless a study varies it.
pub(crate) const FOLDS: usize = 5;

/// With more terms than this, the program does not try quadratic ones by itself.
const QUADRATIC_TERMS: usize = 90;

/// The classifier of most studies: fitted less closely than by default, because they fit it thousands of times.
pub(crate) const REGRESSION: SoftmaxRegression =
    SoftmaxRegression { terms: Terms::Linear, l2: 1.0, tolerance: 1e-5, max_iterations: 100 };

const QUADRATIC: SoftmaxRegression = SoftmaxRegression { terms: Terms::Quadratic, ..REGRESSION };

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

/// Boosted trees with the number of rounds that predicts best in the folds of `plan`, as the program chooses them on a table.
pub(crate) fn tuned_trees(
    x: &Array2<f64>,
    labels: &Labels,
    plan: &FoldPlan,
    seed: u64,
) -> Result<BoostedTrees, mnar::Error> {
    let (rows, classes): (Vec<usize>, Vec<Class>) = labels.labelled().unzip();
    let training = Training { rows: &rows, classes: &classes, n_classes: labels.n_classes(), weights: None };
    let folds: Vec<u32> = rows.iter().map(|&row| plan.folds()[row]).collect();
    let settings = BoostedTrees::candidates(labels.n_labelled()).remove(0);
    Ok(BoostedTrees::tuned(&[settings], x, &training, &folds, seed, &())?.settings)
}

/// Cross-fits softmax regression, quadratic terms where there are few, and trees in the same folds, and takes whichever predicts
/// best, as the program does on a table.
pub(crate) fn better_of<'a>(
    x: &'a Array2<f64>,
    labels: &'a Labels,
    trees: &'a BoostedTrees,
    plan: &FoldPlan,
    seed: u64,
) -> Result<Evidence<'a>, mnar::Error> {
    let cross_fit = |classifier: &'a dyn Classifier<Array2<f64>>| {
        Evidence::cross_fit(Features { x, names: &[], classifier }, labels, plan.clone(), seed, &())
    };
    let mut candidates = vec![cross_fit(&REGRESSION)?];
    if QUADRATIC.terms.count(x.ncols()) <= QUADRATIC_TERMS {
        candidates.push(cross_fit(&QUADRATIC)?);
    }
    candidates.push(cross_fit(trees)?);
    Evidence::best(candidates)
}
