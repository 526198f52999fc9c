//! Class probabilities of every row, checked once, at the door.

use crate::error::Error;
use crate::labels::Class;
use crate::phi::Phi;
use crate::shares::ClassShares;
use ndarray::{Array2, ArrayView1, ArrayView2, ShapeBuilder};

/// Rows whose probabilities sum to one within this are renormalised, and counted; others are refused.
pub const SIMPLEX_TOLERANCE: f64 = 1e-3;

/// Drift below this is rounding, not worth counting: K = 5000 doubles sum to one within about 1e-13.
const ROUNDING: f64 = 1e-12;

/// Which posterior the probabilities are. The two have different likelihoods (see the crate's notation page).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PosteriorKind {
    /// s(y|x) = p(y | x, r=1): what a classifier trained on the labelled rows alone learns.
    Labelled,
    /// p(y|x): the whole population, as learnt with 1/phi weights or from fully labelled data.
    Population,
}

impl PosteriorKind {
    /// The name of the kind, in messages and options.
    pub fn name(self) -> &'static str {
        match self {
            PosteriorKind::Labelled => "labelled",
            PosteriorKind::Population => "population",
        }
    }
}

/// What was done to rows slightly off the simplex.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Renormalised {
    /// Number of rows divided by their sum.
    pub rows: usize,
    /// The largest |sum − 1| among them.
    pub largest_drift: f64,
}

impl Renormalised {
    /// Adds the count of another part of the same table.
    pub fn merge(&mut self, other: Renormalised) {
        self.rows += other.rows;
        self.largest_drift = self.largest_drift.max(other.largest_drift);
    }
}

/// An n × K table of probabilities, rows on the simplex, stored one class after the other.
///
/// ```
/// use mnar::{Posteriors, PosteriorKind};
/// use ndarray::array;
/// let p = Posteriors::new(array![[0.25, 0.75], [1.0, 0.0]], PosteriorKind::Labelled)?;
/// assert_eq!(p.column(1), [0.75, 0.0]);
/// assert!(Posteriors::new(array![[0.3, 0.3]], PosteriorKind::Labelled).is_err());
/// # Ok::<(), mnar::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Posteriors {
    /// Column-major: the sums of this crate run down the rows of one class, several rows at a time.
    p: Array2<f64>,
    kind: PosteriorKind,
    renormalised: Renormalised,
}

impl Posteriors {
    /// Checks every row and, within [`SIMPLEX_TOLERANCE`], renormalises it.
    pub fn new(p: Array2<f64>, kind: PosteriorKind) -> Result<Self, Error> {
        Self::checked(column_major(p), kind)
    }

    /// The same from numbers that stay where they are, of either precision and in any layout: one copy.
    pub fn copied<T: Copy + Into<f64>>(p: ArrayView2<'_, T>, kind: PosteriorKind) -> Result<Self, Error> {
        Self::checked(copied_by_column(p), kind)
    }

    fn checked(mut p: Array2<f64>, kind: PosteriorKind) -> Result<Self, Error> {
        let mut columns: Vec<&mut [f64]> =
            p.columns_mut().into_iter().map(|column| column.into_slice().expect("columns are contiguous")).collect();
        let renormalised = check_rows(&mut columns, 0)?;
        Ok(Self { p, kind, renormalised })
    }

    /// Softmax of logits, row by row; never off the simplex.
    pub fn from_logits(logits: ArrayView2<'_, f64>, kind: PosteriorKind) -> Result<Self, Error> {
        let mut p = Array2::zeros(logits.raw_dim().f());
        let mut buffer = vec![0.0; logits.ncols()];
        for (i, (row, mut out)) in logits.rows().into_iter().zip(p.rows_mut()).enumerate() {
            if let Some(column) = row.iter().position(|value| value.is_nan() || *value == f64::INFINITY) {
                return Err(Error::NotFinite { what: "logit", row: i + 1, column: column + 1, value: row[column] });
            }
            buffer.iter_mut().zip(&row).for_each(|(value, logit)| *value = *logit);
            softmax_in_place(&mut buffer);
            out.iter_mut().zip(&buffer).for_each(|(out, value)| *out = *value);
        }
        Self::new(p, kind)
    }

    /// The same numbers declared to be of another kind.
    pub fn with_kind(mut self, kind: PosteriorKind) -> Self {
        self.kind = kind;
        self
    }

    /// Labelled or population.
    pub fn kind(&self) -> PosteriorKind {
        self.kind
    }

    /// Rows that were slightly off the simplex.
    pub fn renormalised(&self) -> Renormalised {
        self.renormalised
    }

    /// n, the number of rows.
    pub fn len(&self) -> usize {
        self.p.nrows()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.p.nrows() == 0
    }

    /// K, the number of classes.
    pub fn n_classes(&self) -> usize {
        self.p.ncols()
    }

    /// The probabilities of class `k` for every row.
    pub fn column(&self, k: usize) -> &[f64] {
        self.p.column(k).to_slice().expect("columns are contiguous")
    }

    /// The probabilities of row `i`.
    pub fn row(&self, i: usize) -> ArrayView1<'_, f64> {
        self.p.row(i)
    }

    /// p(y | x, unlabelled) of row `i`, by Bayes' rule: ∝ (1 − phi_y) p(y | x), or (1 − phi_y)/phi_y p(y | x, labelled).
    /// `None` where every class it may be has a phi of 1: such a row is never unlabelled.
    ///
    /// ```
    /// use mnar::{Phi, PosteriorKind, Posteriors};
    /// let p = Posteriors::new(ndarray::arr2(&[[0.5, 0.5]]), PosteriorKind::Population)?;
    /// let phi = Phi::new(vec![0.5, 0.25])?;
    /// assert_eq!(p.given_unlabelled(0, &phi), Some(vec![0.5 / 1.25, 0.75 / 1.25]));
    /// assert_eq!(p.given_unlabelled(0, &Phi::all_labelled(2)), None);
    /// # Ok::<(), mnar::Error>(())
    /// ```
    pub fn given_unlabelled(&self, i: usize, phi: &Phi) -> Option<Vec<f64>> {
        let odds = |(p, phi): (&f64, &f64)| match self.kind {
            PosteriorKind::Population => p * (1.0 - phi),
            PosteriorKind::Labelled => p * (1.0 - phi) / phi,
        };
        let odds: Vec<f64> = self.row(i).iter().zip(phi.iter()).map(odds).collect();
        let sum: f64 = odds.iter().sum();
        (sum > 0.0).then(|| odds.iter().map(|odds| odds / sum).collect())
    }

    /// p(y | x) of row `i`: ∝ p(y | x, labelled)/phi_y, or as it is where it is of the population already.
    ///
    /// ```
    /// use mnar::{Phi, PosteriorKind, Posteriors};
    /// let s = Posteriors::new(ndarray::arr2(&[[0.5, 0.5]]), PosteriorKind::Labelled)?;
    /// assert_eq!(s.of_population(0, &Phi::new(vec![0.5, 0.25])?), [2.0 / 6.0, 4.0 / 6.0]);
    /// # Ok::<(), mnar::Error>(())
    /// ```
    pub fn of_population(&self, i: usize, phi: &Phi) -> Vec<f64> {
        let odds: Vec<f64> = match self.kind {
            PosteriorKind::Population => return self.row(i).to_vec(),
            PosteriorKind::Labelled => self.row(i).iter().zip(phi.iter()).map(|(p, phi)| p / phi).collect(),
        };
        let sum: f64 = odds.iter().sum();
        odds.iter().map(|odds| odds / sum).collect()
    }

    /// p(y | x) in a population with other class shares, in which rows of a class look the same: ∝ p(y | x) · to_y / from_y.
    ///
    /// ```
    /// use mnar::{ClassShares, PosteriorKind, Posteriors};
    /// let p = Posteriors::new(ndarray::arr2(&[[0.5, 0.5]]), PosteriorKind::Population)?;
    /// let (from, to) = (ClassShares::new(vec![0.5, 0.5])?, ClassShares::new(vec![0.2, 0.8])?);
    /// assert_eq!(p.moved(&from, &to)?.row(0).to_vec(), [0.2, 0.8]);
    /// # Ok::<(), mnar::Error>(())
    /// ```
    pub fn moved(&self, from: &ClassShares, to: &ClassShares) -> Result<Self, Error> {
        let found = from.len();
        if found != self.n_classes() || to.len() != self.n_classes() {
            let (expected, classes) = (self.n_classes(), "those of the probabilities".to_owned());
            return Err(Error::ClassCountMismatch { found, expected, classes });
        }
        let mut p = self.view().to_owned();
        for mut row in p.rows_mut() {
            row.iter_mut().zip(from.iter().zip(to.iter())).for_each(|(p, (from, to))| *p *= to / from);
            let sum = row.sum();
            row.mapv_inplace(|p| p / sum);
        }
        Self::new(p, self.kind)
    }

    /// All probabilities, n × K.
    pub fn view(&self) -> ArrayView2<'_, f64> {
        self.p.view()
    }
}

fn column_major(p: Array2<f64>) -> Array2<f64> {
    // `t().is_standard_layout()` holds just where every column is contiguous and they follow each other.
    if p.t().is_standard_layout() {
        return p;
    }
    copied_by_column(p.view())
}

fn copied_by_column<T: Copy + Into<f64>>(p: ArrayView2<'_, T>) -> Array2<f64> {
    let mut out = Array2::zeros(p.raw_dim().f());
    // Block by block, so that source and target lines both stay in cache.
    const BLOCK: usize = 64;
    for (mut target, source) in
        out.axis_chunks_iter_mut(ndarray::Axis(0), BLOCK).zip(p.axis_chunks_iter(ndarray::Axis(0), BLOCK))
    {
        target.zip_mut_with(&source, |target, source| *target = (*source).into());
    }
    out
}

/// Checks rows given as one slice per class and renormalises small drift in place. `first_row` counts from 0. Readers of
/// files use it on each batch.
pub fn check_rows(columns: &mut [&mut [f64]], first_row: usize) -> Result<Renormalised, Error> {
    let n = columns.first().map_or(0, |column| column.len());
    let mut done = Renormalised::default();
    const BLOCK: usize = 256;
    let mut sums = [0.0; BLOCK];
    for start in (0..n).step_by(BLOCK) {
        let end = (start + BLOCK).min(n);
        let sums = &mut sums[..end - start];
        sums.fill(0.0);
        let mut valid = true;
        for column in columns.iter() {
            for (sum, &value) in sums.iter_mut().zip(&column[start..end]) {
                valid &= (0.0..=1.0 + SIMPLEX_TOLERANCE).contains(&value);
                *sum += value;
            }
        }
        if !valid {
            for i in start..end {
                for (k, column) in columns.iter().enumerate() {
                    // A hair above one is drift, judged with the sum of its row.
                    if !(0.0..=1.0 + SIMPLEX_TOLERANCE).contains(&column[i]) {
                        return Err(Error::NotAProbability {
                            row: first_row + i + 1,
                            class: Class::from(k),
                            value: column[i],
                        });
                    }
                }
            }
        }
        for (offset, &sum) in sums.iter().enumerate() {
            let drift = (sum - 1.0).abs();
            if drift <= ROUNDING {
                continue;
            }
            let i = start + offset;
            if drift > SIMPLEX_TOLERANCE {
                return Err(Error::OffSimplex { row: first_row + i + 1, sum, tolerance: SIMPLEX_TOLERANCE });
            }
            columns.iter_mut().for_each(|column| column[i] /= sum);
            done.merge(Renormalised { rows: 1, largest_drift: drift });
        }
    }
    Ok(done)
}

/// exp(x − max) / Σ, in place.
pub(crate) fn softmax_in_place(row: &mut [f64]) {
    let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for value in row.iter_mut() {
        *value = (*value - max).exp();
        sum += *value;
    }
    row.iter_mut().for_each(|value| *value /= sum);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn drift_is_repaired_and_counted_and_more_is_refused() {
        let p = Posteriors::new(array![[0.5, 0.5], [0.5004, 0.5], [0.2, 0.8]], PosteriorKind::Labelled).unwrap();
        assert_eq!(p.renormalised().rows, 1);
        assert!((p.renormalised().largest_drift - 4e-4).abs() < 1e-12);
        assert!((p.row(1).sum() - 1.0).abs() < 1e-15);
        let refused = |p: Array2<f64>| Posteriors::new(p, PosteriorKind::Labelled).unwrap_err().to_string();
        assert!(refused(array![[0.5, 0.5], [0.5, 0.502]]).starts_with("row 2: the probabilities sum to 1.002"));
        assert!(refused(array![[0.5, f64::NAN]]).starts_with("row 1: the probability of class number 2 is NaN"));
        assert!(refused(array![[-0.1, 1.1]]).contains("class number 1 is -0.1"));
        assert!(refused(array![[0.0, 1.5]]).contains("class number 2 is 1.5"));
    }

    #[test]
    fn row_major_and_column_major_input_agree() {
        let p = Array2::from_shape_fn((300, 3), |(i, k)| ((i * 7 + k * 3) % 11) as f64 + 0.5);
        let p = &p / &p.sum_axis(ndarray::Axis(1)).insert_axis(ndarray::Axis(1));
        let rows = Posteriors::new(p.clone(), PosteriorKind::Labelled).unwrap();
        let columns = Posteriors::new(p.t().to_owned().reversed_axes(), PosteriorKind::Labelled).unwrap();
        assert_eq!(rows, columns);
        assert_eq!(rows.row(299)[2], p[[299, 2]]);
    }

    #[test]
    fn logits_far_apart_do_not_overflow() {
        let p = Posteriors::from_logits(array![[1e4, -1e4], [0.0, 0.0]].view(), PosteriorKind::Labelled).unwrap();
        assert_eq!(p.row(0).to_vec(), [1.0, 0.0]);
        assert_eq!(p.row(1).to_vec(), [0.5, 0.5]);
    }
}
