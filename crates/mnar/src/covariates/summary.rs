//! What one pass over a column tells, for columns that stay in their file.

use super::terms::{ColumnTerms, TermEncoder, TermValues, spread};
use super::{Covariate, CovariateValues, Product, SEPARATES, check, fifths, range_name};
use crate::analysis::LabellingRate;
use crate::error::Error;
use crate::travel::{Bytes, bytes};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many labelled and unlabelled rows there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Labelled rows.
    pub labelled: usize,
    /// Unlabelled rows.
    pub unlabelled: usize,
}

impl RowCounts {
    /// Counts `rows` more rows.
    pub fn add(&mut self, labelled: bool, rows: usize) {
        *(if labelled { &mut self.labelled } else { &mut self.unlabelled }) += rows;
    }

    /// All rows.
    pub fn rows(&self) -> usize {
        self.labelled + self.unlabelled
    }

    fn merge(&mut self, other: Self) {
        *self = self.merged(other);
    }

    fn is_pure(&self) -> bool {
        self.labelled == 0 || self.unlabelled == 0
    }

    fn merged(self, other: Self) -> Self {
        Self { labelled: self.labelled + other.labelled, unlabelled: self.unlabelled + other.unlabelled }
    }

    fn rate(&self, group: String) -> LabellingRate {
        let rows = self.rows();
        LabellingRate { group, rows, rate: self.labelled as f64 / rows as f64 }
    }
}

/// A column of which only sums were kept: enough for its terms in a mechanism, and for everything that
/// [`Covariates::usable`](super::Covariates::usable) refuses.
///
/// ```
/// use mnar::covariates::{ColumnSummary, TermEncoder};
/// let mut age = ColumnSummary::numeric("age");
/// for years in [30.0, 50.0, 40.0] {
///     age.add(years, true, 1);
///     age.add(years, false, 2);
/// }
/// assert!(age.check().is_ok());
/// assert_eq!(ColumnSummary::encoder(&[age], Vec::new())?.n_terms(), 1);
/// # Ok::<(), mnar::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSummary {
    name: String,
    values: Values,
    missing: RowCounts,
}

/// The groups of a column, and which one a value belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grouping {
    /// The column.
    pub column: String,
    /// The names of the groups; missing values, where there are some, come last.
    pub names: Vec<String>,
    by: GroupedBy,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum GroupedBy {
    Names(Vec<String>),
    /// The greatest number of each group.
    UpTo(Vec<f64>),
}

impl Grouping {
    /// The group of every row of a column.
    pub fn of(&self, column: &Covariate) -> Result<Vec<f64>, Error> {
        let missing = self.names.len() - 1;
        match (&self.by, &column.values) {
            (GroupedBy::Names(known), CovariateValues::Categorical { levels, codes }) => {
                let group = |level: &String| known.iter().position(|name| name == level).unwrap_or(missing);
                let groups: Vec<usize> = levels.iter().map(group).collect();
                Ok(codes.iter().map(|code| code.map_or(missing, |code| groups[code as usize]) as f64).collect())
            }
            (GroupedBy::UpTo(last), CovariateValues::Numeric(values)) => {
                let group = |value: &f64| match value.is_nan() {
                    true => missing,
                    false => last.partition_point(|last| last < value).min(last.len() - 1),
                };
                Ok(values.iter().map(|value| group(value) as f64).collect())
            }
            _ => {
                let why = "it holds numbers in some rows and names in others".to_owned();
                Err(Error::UnusableCovariate { name: self.column.clone(), why })
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Values {
    Numeric(Numbers),
    Categorical(Vec<(String, RowCounts)>),
}

/// Different numbers that are counted one by one. A column of more is one of measurements, and has no rates by number.
const MOST_NUMBERS: usize = 4096;

#[derive(Clone, Debug, Default, PartialEq)]
struct Numbers {
    n: f64,
    mean: f64,
    /// Σ (value − mean)².
    squares: f64,
    /// The least and the greatest number of the labelled rows, and of the others.
    labelled: Option<(f64, f64)>,
    unlabelled: Option<(f64, f64)>,
    /// How often each number occurs, by its order; `None` once there are too many.
    counts: Option<BTreeMap<i64, RowCounts>>,
}

bytes!(RowCounts { labelled, unlabelled });
bytes!(ColumnSummary { name, values, missing });

impl Bytes for Values {
    fn write(&self, out: &mut Vec<u8>) {
        matches!(self, Self::Numeric(_)).write(out);
        match self {
            Self::Numeric(numbers) => numbers.write(out),
            Self::Categorical(levels) => levels.write(out),
        }
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        Some(match bool::read(input)? {
            true => Self::Numeric(Numbers::read(input)?),
            false => Self::Categorical(Vec::read(input)?),
        })
    }
}

impl Bytes for Numbers {
    fn write(&self, out: &mut Vec<u8>) {
        [self.n, self.mean, self.squares].write(out);
        self.labelled.write(out);
        self.unlabelled.write(out);
        self.counts.as_ref().map(|counts| counts.clone().into_iter().collect::<Vec<_>>()).write(out);
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        let [n, mean, squares] = <[f64; 3]>::read(input)?;
        let (labelled, unlabelled) = (Bytes::read(input)?, Bytes::read(input)?);
        let counts = Option::<Vec<(i64, RowCounts)>>::read(input)?;
        let counts = counts.map(|counts| counts.into_iter().collect());
        Some(Self { n, mean, squares, labelled, unlabelled, counts })
    }
}

/// Bits that are ordered as numbers are. A negative zero is the same as zero.
fn ordered(value: f64) -> i64 {
    let bits = (value + 0.0).to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

fn number(ordered: i64) -> f64 {
    f64::from_bits((ordered ^ (((ordered >> 63) as u64) >> 1) as i64) as u64)
}

impl Numbers {
    fn add(&mut self, value: f64, labelled: bool, rows: usize) {
        // Welford's update: sums of squares lose all digits of dates, whose spread is small beside their values.
        let weight = rows as f64;
        self.n += weight;
        let step = value - self.mean;
        self.mean += step * weight / self.n;
        self.squares += weight * step * (value - self.mean);
        let range = if labelled { &mut self.labelled } else { &mut self.unlabelled };
        let (low, high) = range.unwrap_or((value, value));
        *range = Some((low.min(value), high.max(value)));
        if let Some(counts) = &mut self.counts {
            counts.entry(ordered(value)).or_default().add(labelled, rows);
            if counts.len() > MOST_NUMBERS {
                self.counts = None;
            }
        }
    }

    /// Adds other rows (Chan, Golub and LeVeque's update of the moments).
    fn merge(&mut self, other: Self) {
        if other.n == 0.0 {
            return;
        }
        let (n, step) = (self.n + other.n, other.mean - self.mean);
        self.squares += other.squares + step * step * self.n * other.n / n;
        self.mean += step * other.n / n;
        self.n = n;
        for (range, other) in [(&mut self.labelled, other.labelled), (&mut self.unlabelled, other.unlabelled)] {
            *range = match (*range, other) {
                (Some(one), Some(two)) => Some((one.0.min(two.0), one.1.max(two.1))),
                (one, two) => one.or(two),
            };
        }
        self.counts = match (self.counts.take(), other.counts) {
            (Some(mut counts), Some(others)) => {
                others.into_iter().for_each(|(number, rows)| counts.entry(number).or_default().merge(rows));
                Some(counts).filter(|counts| counts.len() <= MOST_NUMBERS)
            }
            _ => None,
        };
    }

    /// The counts of each fifth of the numbers, where they are known.
    fn groups(&self) -> Option<Vec<(String, RowCounts)>> {
        let counts: Vec<(f64, RowCounts)> =
            self.counts.as_ref()?.iter().map(|(key, rows)| (number(*key), *rows)).collect();
        let distinct: Vec<(f64, usize)> = counts.iter().map(|(value, rows)| (*value, rows.rows())).collect();
        let group = |range: std::ops::Range<usize>| {
            let rows = counts[range.clone()].iter().fold(RowCounts::default(), |sum, (_, rows)| sum.merged(*rows));
            (range_name(&distinct[range]), rows)
        };
        Some(fifths(&distinct).into_iter().map(group).collect())
    }

    /// Whether the numbers of labelled and of unlabelled rows do not mix.
    fn is_apart(&self) -> bool {
        matches!((self.labelled, self.unlabelled), (Some(with), Some(without)) if with.1 < without.0 || without.1 < with.0)
    }

    fn varies(&self) -> bool {
        let ranges = [self.labelled, self.unlabelled].into_iter().flatten();
        let (low, high) = ranges.fold((f64::INFINITY, f64::NEG_INFINITY), |all, of| (all.0.min(of.0), all.1.max(of.1)));
        low < high
    }
}

impl ColumnSummary {
    /// A column of numbers, without rows yet.
    pub fn numeric(name: impl Into<String>) -> Self {
        let numbers = Numbers { counts: Some(BTreeMap::new()), ..Numbers::default() };
        Self { name: name.into(), values: Values::Numeric(numbers), missing: RowCounts::default() }
    }

    /// A column of names, with the rows of each.
    pub fn categorical(name: impl Into<String>, levels: Vec<(String, RowCounts)>, missing: RowCounts) -> Self {
        Self { name: name.into(), values: Values::Categorical(levels), missing }
    }

    /// Adds rows of a column of numbers; NaN where missing.
    pub fn add(&mut self, value: f64, labelled: bool, rows: usize) {
        match &mut self.values {
            _ if rows == 0 => {}
            Values::Numeric(numbers) if !value.is_nan() => numbers.add(value, labelled, rows),
            _ => self.missing.add(labelled, rows),
        }
    }

    /// Adds rows of a column of names; `None` where missing.
    pub fn add_name(&mut self, name: Option<&str>, counts: RowCounts) {
        match (&mut self.values, name) {
            _ if counts.rows() == 0 => {}
            (Values::Categorical(levels), Some(name)) => {
                match levels.binary_search_by(|(level, _)| level.as_str().cmp(name)) {
                    Ok(at) => levels[at].1.merge(counts),
                    Err(at) => levels.insert(at, (name.to_owned(), counts)),
                }
            }
            _ => self.missing.merge(counts),
        }
    }

    /// Adds other rows of the same column. Names are sorted, as they are if every name came by [`add_name`](Self::add_name).
    pub fn merge(&mut self, other: Self) -> Result<(), Error> {
        match (&mut self.values, other.values) {
            (Values::Numeric(numbers), Values::Numeric(others)) => numbers.merge(others),
            (Values::Categorical(_), Values::Categorical(others)) => {
                others.into_iter().for_each(|(name, counts)| self.add_name(Some(&name), counts));
            }
            _ => {
                let why = "it holds numbers in some rows and names in others".to_owned();
                return Err(Error::UnusableCovariate { name: self.name.clone(), why });
            }
        }
        self.missing.merge(other.missing);
        Ok(())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names; `None` for numbers.
    pub fn levels(&self) -> Option<Vec<String>> {
        match &self.values {
            Values::Numeric(_) => None,
            Values::Categorical(levels) => Some(levels.iter().map(|(level, _)| level.clone()).collect()),
        }
    }

    /// Refuses what [`Covariates::usable`](super::Covariates::usable) refuses.
    pub fn check(&self) -> Result<(), Error> {
        let missing = usize::from(self.missing.rows() > 0);
        let (varies, levels, rows) = match &self.values {
            Values::Numeric(numbers) => (numbers.varies() || (missing > 0 && numbers.n > 0.0), None, 0),
            Values::Categorical(levels) => {
                let rows = levels.iter().map(|(_, rows)| rows.rows()).sum::<usize>() + self.missing.rows();
                (levels.len() + missing > 1, Some(levels.len()), rows)
            }
        };
        check(&self.name, varies, levels, rows)?;
        match self.separates() {
            true => Err(Error::UnusableCovariate { name: self.name.clone(), why: SEPARATES.to_owned() }),
            false => Ok(()),
        }
    }

    fn separates(&self) -> bool {
        let pure = |groups: &[(String, RowCounts)]| groups.iter().all(|(_, rows)| rows.is_pure());
        self.missing.is_pure()
            && match &self.values {
                Values::Categorical(levels) => pure(levels),
                Values::Numeric(numbers) => numbers.is_apart() || numbers.groups().is_some_and(|groups| pure(&groups)),
            }
    }

    /// The labelling rate along the column; none where a column of numbers has too many different ones to count.
    pub(crate) fn rates(&self) -> Vec<LabellingRate> {
        let groups = match &self.values {
            Values::Categorical(levels) => levels.clone(),
            Values::Numeric(numbers) => match numbers.groups() {
                Some(groups) => groups,
                None => return Vec::new(),
            },
        };
        let missing = (self.missing.rows() > 0).then(|| (super::MISSING.to_owned(), self.missing));
        groups
            .into_iter()
            .chain(missing)
            .filter(|(_, rows)| rows.rows() > 0)
            .map(|(name, rows)| rows.rate(name))
            .collect()
    }

    /// The groups that the column divides rows into: names, or fifths of its numbers, and missing values. `None` where there are
    /// too many different numbers to be counted one by one.
    pub fn grouping(&self) -> Option<Grouping> {
        let (mut names, by) = match &self.values {
            Values::Categorical(levels) => {
                let names: Vec<String> = levels.iter().map(|(level, _)| level.clone()).collect();
                (names.clone(), GroupedBy::Names(names))
            }
            Values::Numeric(numbers) => {
                let counts = numbers.counts.as_ref()?;
                let distinct: Vec<(f64, usize)> =
                    counts.iter().map(|(key, rows)| (number(*key), rows.rows())).collect();
                let parts = fifths(&distinct);
                let last = parts.iter().map(|part| distinct[part.end - 1].0).collect();
                (parts.into_iter().map(|part| range_name(&distinct[part])).collect(), GroupedBy::UpTo(last))
            }
        };
        if self.missing.rows() > 0 {
            names.push(super::MISSING.to_owned());
        }
        Some(Grouping { column: self.name.clone(), names, by })
    }

    /// The terms of these columns, and of products of two of them.
    pub fn encoder(columns: &[Self], products: Vec<Product>) -> Result<TermEncoder, Error> {
        let terms = |column: &Self| {
            let values = match &column.values {
                Values::Numeric(numbers) => {
                    let sd = (numbers.squares / numbers.n.max(1.0)).sqrt();
                    TermValues::Numeric { mean: numbers.mean, sd: spread(numbers.mean, sd) }
                }
                Values::Categorical(levels) => {
                    TermValues::Categorical { levels: levels.iter().map(|(level, _)| level.clone()).collect() }
                }
            };
            ColumnTerms { name: column.name.clone(), values, missing: column.missing.rows() > 0 }
        };
        TermEncoder::of_columns(columns.iter().map(terms).collect()).with_products(products)
    }
}
