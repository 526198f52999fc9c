//! The classifiers that are cross-fitted on a table: softmax regression, with or without quadratic terms, boosted trees, or
//! whichever predicts best.

use crate::beside::{Candidate, Candidates, Settings};
use clap::ValueEnum;
use mnar::analysis::{Evidence, Features};
use mnar::classify::{
    BoostedTrees, Classifier as _, Fitted as _, FittedRandomised, FittedSoftmax, FittedTrees, RandomisedTrees,
    SoftmaxRegression, Terms, Training,
};
use mnar::crossfit::{CrossFit, FoldPlan};
use mnar::progress::Progress;
use mnar::{Class, Labels};
use mnar_data::TableEncoder;
use ndarray::{Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

/// The classifier of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableClassifier {
    /// Whichever has the lowest loss on labelled rows that it has not seen
    #[default]
    Auto,
    /// Softmax regression
    Softmax,
    /// Softmax regression with the squares and products of the columns
    Quadratic,
    /// Gradient-boosted trees
    Trees,
}

/// Seconds on one core up to which trees are tried without being asked for.
const AFFORDABLE_SECONDS: f64 = 100.0;

/// Quadratic terms are tried without being asked for up to this many of them: those of 12 columns.
const AFFORDABLE_TERMS: usize = 90;

/// With more labels randomised trees are not tried: boosted trees and networks are as good there, and the file of the model would
/// have tens of megabytes.
const MOST_LABELS: usize = 2000;

/// A table as numbers, and how it became them.
#[derive(Clone, Copy)]
pub struct EncodedTable<'a> {
    /// How the columns became numbers.
    pub encoder: &'a TableEncoder,
    /// The numbers, one line per row.
    pub x: ArrayView2<'a, f32>,
}

/// A table as its classifiers see it.
pub struct TableModels {
    encoded: Array2<f64>,
    feature_names: Vec<String>,
    /// Linear, quadratic or both.
    regressions: Vec<SoftmaxRegression>,
    trees: Option<Trees>,
    /// Why something was not tried.
    note: Option<String>,
}

/// Boosted trees, and the columns that they split.
struct Trees {
    settings: BoostedTrees,
    columns: Array2<f64>,
    column_names: Vec<String>,
}

impl TableModels {
    /// Prepares the classifiers; the number of rounds of the trees is chosen in the folds of `plan`.
    pub fn new(
        which: TableClassifier,
        softmax: SoftmaxRegression,
        table: EncodedTable<'_>,
        labels: &Labels,
        plan: &FoldPlan,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Self, mnar::Error> {
        let settings = BoostedTrees {
            categorical: table.encoder.categorical(),
            ..BoostedTrees::candidates(labels.n_labelled()).remove(0)
        };
        let fits = 2.0 * plan.n_folds() as f64;
        let seconds = fits * settings.seconds(labels.n_labelled(), table.encoder.columns().len(), labels.n_classes());
        let affordable = which == TableClassifier::Trees || seconds <= AFFORDABLE_SECONDS;
        let trees = match which {
            TableClassifier::Softmax | TableClassifier::Quadratic => None,
            _ if !affordable => None,
            _ => Some(Trees::tuned(settings, table, labels, plan, seed, progress)?),
        };
        let quadratic = SoftmaxRegression { terms: Terms::Quadratic, ..softmax };
        let width = table.x.ncols();
        let few_terms = Terms::Quadratic.count(width) <= AFFORDABLE_TERMS
            && fits * quadratic.seconds(labels.n_labelled(), width, labels.n_classes()) <= AFFORDABLE_SECONDS;
        let regressions = match which {
            TableClassifier::Trees => Vec::new(),
            TableClassifier::Softmax => vec![softmax],
            TableClassifier::Quadratic => vec![quadratic],
            TableClassifier::Auto if few_terms => vec![softmax, quadratic],
            TableClassifier::Auto => vec![softmax],
        };
        let note = (which == TableClassifier::Auto && !affordable).then(|| {
            format!("boosted trees were not tried: with this many labels and columns that would take some {seconds:.0} seconds")
        });
        Ok(Self {
            encoded: table.x.mapv(f64::from),
            feature_names: table.encoder.feature_names(),
            regressions,
            trees,
            note,
        })
    }

    /// Why a classifier was not tried, if one was not.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Cross-fits the classifiers and takes the evidence of the best one.
    pub fn evidence<'a>(
        &'a self,
        labels: &'a Labels,
        plan: &FoldPlan,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Evidence<'a>, mnar::Error> {
        Ok(self.cross_fit(labels, plan, seed, progress)?.0)
    }

    /// The same, and what all models say of rows that they have not seen, if trees are among them.
    pub(crate) fn cross_fit<'a>(
        &'a self,
        labels: &'a Labels,
        plan: &FoldPlan,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<(Evidence<'a>, Option<Candidates>), mnar::Error> {
        let regressions = self.regressions.iter().map(|regression| Features {
            x: &self.encoded,
            names: &self.feature_names,
            classifier: regression,
        });
        let trees = self.trees.as_ref().map(|trees| Features {
            x: &trees.columns,
            names: &trees.column_names,
            classifier: &trees.settings,
        });
        let cross_fit = |features| Evidence::cross_fit(features, labels, plan.clone(), seed, progress);
        let mut candidates = regressions.map(cross_fit).collect::<Result<Vec<_>, _>>()?;
        let by_trees = trees.map(cross_fit).transpose()?;
        let beside = match (&self.trees, &by_trees) {
            (Some(trees), Some(by_trees)) => {
                let trees = Candidate::new(Settings::Trees(trees.settings.clone()), &by_trees.posteriors, labels)?;
                let mut all = vec![trees];
                for (settings, evidence) in self.regressions.iter().zip(&candidates) {
                    all.push(Candidate::new(Settings::Softmax(*settings), &evidence.posteriors, labels)?);
                }
                if !self.regressions.is_empty() {
                    all.extend(self.randomised(labels, plan, seed, progress)?);
                }
                Some(Candidates(all))
            }
            _ => None,
        };
        candidates.extend(by_trees);
        Ok((Evidence::best(candidates)?, beside))
    }

    /// Randomised trees for the final model, where labels are few.
    fn randomised(
        &self,
        labels: &Labels,
        plan: &FoldPlan,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Option<Candidate>, mnar::Error> {
        if labels.n_labelled() > MOST_LABELS {
            return Ok(None);
        }
        let settings = RandomisedTrees::default();
        let cross_fit = CrossFit { classifier: &settings, x: &self.encoded, seed };
        let out_of_fold = cross_fit.run(labels, plan, None, progress)?.posteriors;
        Candidate::new(Settings::Randomised(settings), &out_of_fold, labels).map(Some)
    }
}

impl TableModels {
    /// The classifier behind the evidence, trained on all rows that have a label.
    pub(crate) fn trained(
        &self,
        evidence: &Evidence<'_>,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<SavedClassifier, mnar::Error> {
        let labels = evidence.labels;
        let is_of = |trees: &&Trees| evidence.features.is_some_and(|features| std::ptr::eq(features.x, &trees.columns));
        if let Some(trees) = self.trees.as_ref().filter(is_of) {
            return SavedClassifier::trees(&trees.settings, &trees.columns, labels, seed, progress);
        }
        let chosen = evidence.features.map(|features| features.classifier.name());
        let regression = self.regressions.iter().find(|regression| Some(regression.name()) == chosen);
        SavedClassifier::softmax(&regression.copied().unwrap_or_default(), &self.encoded, labels)
    }
}

/// A classifier of a table that can be written to a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SavedClassifier {
    /// Softmax regression: one line of weights per term of the encoded columns, one entry per class.
    Softmax {
        #[serde(default)]
        terms: Terms,
        weights: Vec<Vec<f64>>,
        intercepts: Vec<f64>,
    },
    /// Boosted trees.
    Trees(FittedTrees),
    /// Randomised trees.
    Randomised(FittedRandomised),
}

impl SavedClassifier {
    /// Trains on all rows that have a label.
    pub(crate) fn train(
        settings: &Settings,
        table: EncodedTable<'_>,
        labels: &Labels,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Self, mnar::Error> {
        match settings {
            Settings::Softmax(softmax) => Self::softmax(softmax, &table.x.mapv(f64::from), labels),
            Settings::Trees(trees) => Self::trees(trees, &table.encoder.columns_of(table.x), labels, seed, progress),
            Settings::Randomised(trees) => {
                let (rows, classes): (Vec<usize>, Vec<Class>) = labels.labelled().unzip();
                let training = training(&rows, &classes, labels);
                trees.train(&table.x.mapv(f64::from), &training, seed, progress).map(Self::Randomised)
            }
        }
    }

    fn trees(
        settings: &BoostedTrees,
        columns: &Array2<f64>,
        labels: &Labels,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Self, mnar::Error> {
        let (rows, classes): (Vec<usize>, Vec<Class>) = labels.labelled().unzip();
        settings.train(columns, &training(&rows, &classes, labels), seed, progress).map(Self::Trees)
    }

    fn softmax(settings: &SoftmaxRegression, x: &Array2<f64>, labels: &Labels) -> Result<Self, mnar::Error> {
        let (rows, classes): (Vec<usize>, Vec<Class>) = labels.labelled().unzip();
        let fitted = settings.fit(x.select(Axis(0), &rows).view(), &classes, labels.n_classes(), None)?;
        let weights = fitted.weights.rows().into_iter().map(|row| row.to_vec()).collect();
        Ok(Self::Softmax { terms: fitted.terms, weights, intercepts: fitted.intercepts.to_vec() })
    }

    /// What results call it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Softmax { terms, .. } => terms.classifier_name(),
            Self::Trees(_) => BoostedTrees::NAME,
            Self::Randomised(_) => RandomisedTrees::NAME,
        }
    }

    /// Checks that a classifier that was read from a file tells two classes apart from rows of this encoder.
    pub(crate) fn check(&self, encoder: &TableEncoder, classes: usize) -> Result<(), &'static str> {
        let fits = match self {
            Self::Trees(trees) => (trees.n_classes(), trees.n_columns()) == (classes, encoder.columns().len()),
            Self::Randomised(trees) => (trees.n_classes(), trees.n_columns()) == (classes, encoder.width()),
            Self::Softmax { terms, weights, intercepts } => {
                let finite = weights.iter().flatten().chain(intercepts).all(|weight| weight.abs() < 1e100);
                let of_classes = intercepts.len() == classes && weights.iter().all(|line| line.len() == classes);
                finite && of_classes && weights.len() == terms.count(encoder.width())
            }
        };
        if fits { Ok(()) } else { Err("the classifier does not go with the columns, or with the classes") }
    }

    /// p(y|x) of every row.
    pub(crate) fn predict_proba(&self, table: EncodedTable<'_>) -> Result<Array2<f64>, mnar::Error> {
        let rows: Vec<usize> = (0..table.x.nrows()).collect();
        match self {
            Self::Trees(trees) => trees.predict_proba(&table.encoder.columns_of(table.x), &rows),
            Self::Randomised(trees) => trees.predict_proba(&table.x.mapv(f64::from), &rows),
            Self::Softmax { terms, weights, intercepts } => {
                let (found, expected) = (terms.count(table.x.ncols()), weights.len());
                if found != expected {
                    return Err(mnar::Error::ColumnCountMismatch { found, expected });
                }
                if weights.iter().any(|line| line.len() != intercepts.len()) {
                    return Err(mnar::Error::BrokenModel {
                        what: "weights",
                        why: "there is not one per column and class",
                    });
                }
                let weights = Array2::from_shape_fn((expected, intercepts.len()), |(d, k)| weights[d][k]);
                let fitted = FittedSoftmax {
                    terms: *terms,
                    weights,
                    intercepts: intercepts.clone().into(),
                    converged: true,
                    iterations: 0,
                    objective: f64::NAN,
                };
                fitted.predict_proba(&table.x.mapv(f64::from), &rows)
            }
        }
    }
}

fn training<'a>(rows: &'a [usize], classes: &'a [Class], labels: &Labels) -> Training<'a> {
    Training { rows, classes, n_classes: labels.n_classes(), weights: None }
}

impl Trees {
    fn tuned(
        settings: BoostedTrees,
        table: EncodedTable<'_>,
        labels: &Labels,
        plan: &FoldPlan,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Self, mnar::Error> {
        let columns = table.encoder.columns_of(table.x);
        let (rows, classes): (Vec<usize>, Vec<Class>) = labels.labelled().unzip();
        let training = training(&rows, &classes, labels);
        let folds: Vec<u32> = rows.iter().map(|&row| plan.folds()[row]).collect();
        let tuned = BoostedTrees::tuned(&[settings], &columns, &training, &folds, seed, progress)?;
        let column_names = table.encoder.columns().iter().map(|column| column.name.clone()).collect();
        Ok(Self { settings: tuned.settings, columns, column_names })
    }
}
