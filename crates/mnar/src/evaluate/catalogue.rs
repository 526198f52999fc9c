//! Which metrics there are, and how all of them are computed for a model and a set of rows.

use super::decisions::{Confusion, Decided, mean_defined};
use super::expected::{Counted, ExpectedLabels};
use super::intervals::{Scale, Support};
use super::probabilities::{Losses, MOST_SLOPE_CLASSES, Prepared};
use super::ranking::Order;
use super::{Model, Scores};
use crate::error::Error;
use crate::labels::Labels;
use serde::{Deserialize, Serialize};

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MetricName {
    /// The share of rows whose decision is their class.
    Accuracy,
    /// The mean recall of the classes.
    BalancedAccuracy,
    /// The share of a class, whatever the model.
    Prevalence,
    /// The share of a class that is recognised: sensitivity.
    Recall,
    /// The share of the other classes that is not taken for this one.
    Specificity,
    /// The share of the rows taken for a class that belong to it: the positive predictive value.
    Precision,
    /// The share of the rows not taken for a class that do not belong to it: the negative predictive value.
    Npv,
    /// The harmonic mean of precision and recall; without a class, its mean over the classes.
    F1,
    /// The area under the ROC curve of a class against the rest; without a class, its mean over the classes.
    Auc,
    /// The average precision of a class against the rest; without a class, its mean over the classes.
    AveragePrecision,
    /// The mean of −log p of the class.
    LogLoss,
    /// The mean squared error of the probabilities: summed over classes, and halved where there are two.
    Brier,
    /// The expected calibration error of the most probable class, in 15 bins of equal width.
    CalibrationError,
    /// The slope of a logistic regression on the logarithms of the probabilities: below 1, the model is too sure of itself.
    CalibrationSlope,
}

impl MetricName {
    /// The name in results, such as `balanced_accuracy`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::BalancedAccuracy => "balanced_accuracy",
            Self::Prevalence => "prevalence",
            Self::Recall => "recall",
            Self::Specificity => "specificity",
            Self::Precision => "precision",
            Self::Npv => "npv",
            Self::F1 => "f1",
            Self::Auc => "auc",
            Self::AveragePrecision => "average_precision",
            Self::LogLoss => "log_loss",
            Self::Brier => "brier",
            Self::CalibrationError => "calibration_error",
            Self::CalibrationSlope => "calibration_slope",
        }
    }

    pub(super) fn scale(self) -> Scale {
        match self {
            Self::LogLoss | Self::Brier => Scale::Positive,
            Self::CalibrationError => Scale::Between0And1,
            Self::CalibrationSlope => Scale::Free,
            _ => Scale::Share,
        }
    }

    fn decided(self) -> Option<Decided> {
        match self {
            Self::Prevalence => Some(Decided::Prevalence),
            Self::Recall => Some(Decided::Recall),
            Self::Specificity => Some(Decided::Specificity),
            Self::Precision => Some(Decided::Precision),
            Self::Npv => Some(Decided::NegativePredictiveValue),
            Self::F1 => Some(Decided::F1),
            _ => None,
        }
    }
}

/// A metric of all classes or of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) name: MetricName,
    pub(super) class: Option<usize>,
}

impl Key {
    /// The metrics that follow from sums over rows, in which the order of the rows does not matter.
    pub(super) fn of_streams(classes: usize) -> Vec<Self> {
        use MetricName as M;
        let overall = [M::Accuracy, M::BalancedAccuracy, M::F1, M::LogLoss, M::Brier, M::CalibrationError];
        let per_class = [M::Prevalence, M::Recall, M::Specificity, M::Precision, M::Npv, M::F1];
        let of_class = (0..classes).flat_map(|class| per_class.map(|name| Self { name, class: Some(class) }));
        overall.into_iter().map(|name| Self { name, class: None }).chain(of_class).collect()
    }

    /// The value of a metric that is a function of sums; NaN for others.
    pub(super) fn of_sums(&self, confusion: &Confusion, losses: Option<&Losses>) -> f64 {
        let of = |read: fn(&Losses) -> f64| losses.map_or(f64::NAN, read);
        match (self.name, self.class) {
            (MetricName::Accuracy, _) => confusion.accuracy(),
            (MetricName::BalancedAccuracy, _) => confusion.mean(Decided::Recall),
            (MetricName::F1, None) => confusion.mean(Decided::F1),
            (MetricName::LogLoss, _) => of(|losses| losses.log_loss),
            (MetricName::Brier, _) => of(|losses| losses.brier),
            (MetricName::CalibrationError, _) => of(|losses| losses.calibration_error),
            (name, Some(class)) => name.decided().map_or(f64::NAN, |decided| confusion.value(decided, class)),
            (_, None) => f64::NAN,
        }
    }
}

/// A model, prepared for many passes.
pub(super) struct Prepped<'a> {
    pub(super) name: &'a str,
    pub(super) decisions: Vec<u32>,
    pub(super) probabilities: Option<Prepared<'a>>,
}

impl<'a> Prepped<'a> {
    pub(super) fn new(model: &'a Model<'_>, labels: &Labels) -> Result<Self, Error> {
        let (n, k) = (labels.len(), labels.n_classes());
        let decisions: Vec<u32> = match &model.scores {
            Scores::Decisions(decisions) => decisions.iter().map(|class| class.0).collect(),
            Scores::Probabilities(p) => {
                if p.n_classes() != k {
                    let classes = crate::error::list_names(labels.names());
                    return Err(Error::ClassCountMismatch { found: p.n_classes(), expected: k, classes });
                }
                most_probable(p)
            }
        };
        if decisions.len() != n {
            let found = decisions.len();
            return Err(Error::LengthMismatch { what: "the table of a model's scores", found, expected: n });
        }
        if let Some(row) = decisions.iter().position(|&d| d as usize >= k) {
            let classes = crate::error::list_names(labels.names());
            let label = format!("class number {}", decisions[row]);
            return Err(Error::UnknownClass { row: row + 1, label, classes });
        }
        let probabilities = match &model.scores {
            Scores::Probabilities(p) => Some(Prepared::new(p, &decisions)),
            Scores::Decisions(_) => None,
        };
        Ok(Self { name: &model.name, decisions, probabilities })
    }

    /// The metrics of the model, in the order of [`Sheet::values`].
    pub(super) fn keys(&self, classes: usize) -> Vec<Key> {
        use MetricName as M;
        let mut names = vec![M::Accuracy, M::BalancedAccuracy, M::F1];
        let mut per_class = vec![M::Prevalence, M::Recall, M::Specificity, M::Precision, M::Npv, M::F1];
        if self.probabilities.is_some() {
            names.extend([M::Auc, M::AveragePrecision, M::LogLoss, M::Brier, M::CalibrationError]);
            if classes <= MOST_SLOPE_CLASSES {
                names.push(M::CalibrationSlope);
            }
            per_class.extend([M::Auc, M::AveragePrecision]);
        }
        let overall = names.into_iter().map(|name| Key { name, class: None });
        let of_class =
            (0..classes).flat_map(|class| per_class.iter().map(move |&name| Key { name, class: Some(class) }));
        overall.chain(of_class).collect()
    }

    /// Orders the rows by the probability of each class.
    pub(super) fn orders(&self, rows: &[u32]) -> Vec<Order> {
        let Some(prepared) = &self.probabilities else { return Vec::new() };
        (0..prepared.p.n_classes()).map(|k| Order::new(prepared.p.column(k), rows)).collect()
    }

    /// All metrics. `start` is the slope of the same rows with other weights.
    pub(super) fn sheet(
        &self,
        keys: &[Key],
        counted: &Counted<'_>,
        rows: &[u32],
        orders: &[Order],
        start: Option<&[f64]>,
    ) -> Sheet {
        let confusion = Confusion::new(counted, &self.decisions, rows);
        let areas: Vec<(f64, f64)> =
            orders.iter().enumerate().map(|(k, order)| order.areas(&counted.column(k))).collect();
        let losses = self.probabilities.as_ref().map(|p| p.losses(counted, &self.decisions, rows));
        let theta = match (&self.probabilities, start) {
            (Some(p), None) if areas.len() <= MOST_SLOPE_CLASSES => p.slope(counted, rows, None, 50),
            // Two steps of Newton's method from the maximum of all rows are as good as the maximum itself.
            (Some(p), Some(start)) if start.first().is_some_and(|slope| slope.is_finite()) => {
                p.slope(counted, rows, Some(start), 2)
            }
            _ => vec![f64::NAN],
        };
        let values = keys.iter().map(|key| match (key.name, key.class) {
            (MetricName::Auc, None) => mean_defined(areas.iter().map(|area| area.0)),
            (MetricName::AveragePrecision, None) => mean_defined(areas.iter().map(|area| area.1)),
            (MetricName::Auc, Some(class)) => areas[class].0,
            (MetricName::AveragePrecision, Some(class)) => areas[class].1,
            (MetricName::CalibrationSlope, _) => theta[0],
            _ => key.of_sums(&confusion, losses.as_ref()),
        });
        Sheet { values: values.collect(), confusion, theta }
    }
}

impl Prepped<'_> {
    /// The variance of every metric that the labelled rows at hand are too few to show.
    pub(super) fn unseen_variances(
        &self,
        keys: &[Key],
        expected: &ExpectedLabels<'_>,
        counted: &Counted<'_>,
        rows: &[u32],
        orders: &[Order],
    ) -> Vec<f64> {
        let mass: f64 = rows.iter().map(|&row| counted.mass(row as usize)).sum();
        let mut other = vec![0.0; counted.t.n_classes()];
        let right = |i: usize, g: &mut [f64]| {
            g.fill(0.0);
            g[self.decisions[i] as usize] = 1.0 / mass;
        };
        let by_class = || orders.iter().enumerate().map(|(k, order)| (order, counted.column(k)));
        let areas: Vec<_> = by_class().map(|(order, column)| order.area_influences(&column)).collect();
        let precisions: Vec<_> = by_class().map(|(order, column)| order.precision_influences(&column)).collect();
        let of_class = |influences: &[Vec<[f64; 2]>], class: usize, i: usize, g: &mut [f64], part: f64| {
            let [positive, negative] = influences[class][i];
            for (k, g) in g.iter_mut().enumerate() {
                *g += part * if k == class { positive } else { negative };
            }
        };
        // Of one class, or the mean over all of them.
        let ranked = |influences: &[Vec<[f64; 2]>], class: Option<usize>| {
            let classes = class.map_or(0..influences.len(), |class| class..class + 1);
            let part = 1.0 / classes.len() as f64;
            expected.unseen_variance(rows, |i, g| {
                g.fill(0.0);
                classes.clone().for_each(|class| of_class(influences, class, i, g, part));
            })
        };
        keys.iter()
            .map(|key| match (key.name, key.class, &self.probabilities) {
                (MetricName::Accuracy, ..) => expected.unseen_variance(rows, right),
                (MetricName::LogLoss, _, Some(p)) => {
                    expected.unseen_variance(rows, |i, g| p.losses_of(i, g, &mut other)) / (mass * mass)
                }
                (MetricName::Brier, _, Some(p)) => {
                    expected.unseen_variance(rows, |i, g| p.losses_of(i, &mut other, g)) / (mass * mass)
                }
                (MetricName::Auc, class, Some(_)) => ranked(&areas, class),
                (MetricName::AveragePrecision, class, Some(_)) => ranked(&precisions, class),
                (MetricName::CalibrationSlope, _, Some(p)) if orders.len() <= MOST_SLOPE_CLASSES => {
                    p.slope_influences(counted, rows).map_or(0.0, |of_row| expected.unseen_variance(rows, of_row))
                }
                _ => 0.0,
            })
            .map(|variance| if variance.is_finite() { variance } else { 0.0 })
            .collect()
    }
}

/// The values of all metrics.
#[derive(Clone, Debug)]
pub(super) struct Sheet {
    pub(super) values: Vec<f64>,
    pub(super) confusion: Confusion,
    pub(super) theta: Vec<f64>,
}

impl Sheet {
    /// What the labelled rows alone, counted once each, say about a share.
    pub(super) fn support(&self, key: Key, classes: usize) -> Support {
        let (hits, of) = match (key.name, key.class) {
            (MetricName::Auc | MetricName::AveragePrecision, Some(class)) => {
                let (of_class, all) = self.confusion.ratio(Decided::Prevalence, class);
                (of_class, all)
            }
            (name, Some(class)) => name.decided().map_or((0.0, 0.0), |decided| self.confusion.ratio(decided, class)),
            (_, None) => {
                let right: f64 = (0..classes).map(|k| self.confusion.ratio(Decided::Recall, k).0).sum();
                (right, self.confusion.total())
            }
        };
        Support { hits, of }
    }
}

/// The most probable class of every row, the first one where several are.
fn most_probable(p: &crate::posteriors::Posteriors) -> Vec<u32> {
    let mut best = p.column(0).to_vec();
    let mut decisions = vec![0u32; p.len()];
    for k in 1..p.n_classes() {
        for ((best, decision), &p) in best.iter_mut().zip(&mut decisions).zip(p.column(k)) {
            if p > *best {
                (*best, *decision) = (p, k as u32);
            }
        }
    }
    decisions
}
