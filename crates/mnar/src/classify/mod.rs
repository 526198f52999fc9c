//! Classifiers that can be trained again and again: the seam between statistics and models.
//!
//! Cross-fitting, the bootstrap that refits and the choice of a classifier are written against [`Classifier`]. Softmax
//! regression and boosted trees implement it here; the networks of `mnar-train` implement it on images and encoded tables.

pub mod randomised;
pub mod softmax;
pub mod trees;

pub use randomised::{FittedRandomised, RandomisedTrees};
pub use softmax::{FittedSoftmax, SoftmaxRegression, Standardise, Terms};
pub use trees::{BoostedTrees, FittedTrees};

use crate::error::Error;
use crate::labels::Class;
use crate::posteriors::softmax_in_place;
use crate::progress::Progress;
use ndarray::Array2;
use std::any::Any;

/// The rows that a classifier is trained on.
#[derive(Clone, Copy, Debug)]
pub struct Training<'a> {
    /// Positions of the rows among the inputs.
    pub rows: &'a [usize],
    /// The class of each of these rows.
    pub classes: &'a [Class],
    /// The number of classes; every class must appear.
    pub n_classes: usize,
    /// How often each of these rows counts; once if absent.
    pub weights: Option<&'a [f64]>,
}

/// A classifier with its settings, not yet trained. `X` is the type of the inputs, such as a matrix of features.
pub trait Classifier<X: ?Sized>: Sync {
    /// A short name for reports, such as "softmax regression".
    fn name(&self) -> &str;

    /// Trains on some rows of `x`. The same rows, weights and seed give the same model.
    fn fit(
        &self,
        x: &X,
        training: &Training<'_>,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Box<dyn Fitted<X>>, Error>;

    /// A classifier that gives the same fits sooner on rows like these, because it starts from a fit on them. None if there
    /// is nothing to gain. A bootstrap asks for it before it refits.
    fn started(&self, _x: &X, _training: &Training<'_>) -> Result<Option<Box<dyn Classifier<X>>>, Error> {
        Ok(None)
    }

    /// Roughly how many seconds one fit takes on one core; what a bootstrap is planned with. It depends on the arguments alone,
    /// so that the same table gets the same number of replicates on every machine.
    fn seconds(&self, rows: usize, columns: usize, classes: usize) -> f64;

    /// By how many standard errors its loss must be lower than that of a simpler classifier to be preferred to it. A difference
    /// within the noise is no reason to leave what is refitted faster and extrapolates better.
    fn margin(&self) -> f64 {
        2.0
    }

    /// Whether a bootstrap that refits it shows how far its probabilities may be off. Of trees it does not: what they leave out
    /// for want of labels, they leave out in every replicate.
    fn refits_suffice(&self) -> bool {
        true
    }

    /// Whether several fits may run side by side. A classifier that uses all cores by itself says no.
    fn parallel(&self) -> bool {
        true
    }
}

/// A trained classifier.
pub trait Fitted<X: ?Sized>: Send + Sync {
    /// log p(y|x) up to a constant per row, one line per entry of `rows`.
    fn logits(&self, x: &X, rows: &[usize]) -> Result<Array2<f64>, Error>;

    /// p(y|x), one line per entry of `rows`.
    fn predict_proba(&self, x: &X, rows: &[usize]) -> Result<Array2<f64>, Error> {
        let mut p = self.logits(x, rows)?;
        for mut row in p.rows_mut() {
            let mut values = row.to_vec();
            softmax_in_place(&mut values);
            row.iter_mut().zip(values).for_each(|(to, value)| *to = value);
        }
        Ok(p)
    }

    /// The fitted model itself, for a caller that knows its type.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}
