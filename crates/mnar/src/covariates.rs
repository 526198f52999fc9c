//! Columns that labelling may depend on besides the class: the hospital, the year, the age of the patient.

mod summary;
mod terms;

pub use summary::{ColumnSummary, Grouping, RowCounts};
pub use terms::{Design, Product, TermEncoder};
pub(crate) use terms::{Term, TermAbout};

use crate::error::Error;
use crate::labels::Labels;
use std::ops::Range;
use terms::ColumnTerms;

/// Named columns of the same rows, each of numbers or of names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Covariates {
    rows: usize,
    columns: Vec<Covariate>,
}

/// A column that labelling may depend on.
#[derive(Clone, Debug, PartialEq)]
pub struct Covariate {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: CovariateValues,
}

/// The values of a [`Covariate`].
#[derive(Clone, Debug, PartialEq)]
pub enum CovariateValues {
    /// Numbers; NaN where missing.
    Numeric(Vec<f64>),
    /// Names.
    Categorical {
        /// The distinct names.
        levels: Vec<String>,
        /// The position of each row's name among the levels; `None` where it is missing.
        codes: Vec<Option<u32>>,
    },
}

/// Columns with more names than this are not taken into a mechanism: every name has an effect of its own.
pub const MOST_LEVELS: usize = 100;

/// Numbers further from the mean than this many standard deviations count as this many: one wild value must not decide the
/// effect of a column.
const FURTHEST: f64 = 4.0;

/// Names with fewer rows than this share one direction in the check of a column, and so few missing values have none: along a
/// handful of rows the scores are not normal, and the check rejected two to three times too often.
const FEWEST_ROWS: usize = 30;

impl Covariates {
    /// Checks that all columns have the same number of rows and that no name comes twice.
    pub fn new(columns: Vec<Covariate>) -> Result<Self, Error> {
        let rows = columns.first().map_or(0, Covariate::len);
        for (i, column) in columns.iter().enumerate() {
            if column.len() != rows {
                return Err(Error::LengthMismatch {
                    what: "a column that labelling may depend on",
                    found: column.len(),
                    expected: rows,
                });
            }
            if columns[..i].iter().any(|other| other.name == column.name) {
                return Err(column.unusable("it is given twice"));
            }
        }
        Ok(Self { rows, columns })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The columns.
    pub fn columns(&self) -> &[Covariate] {
        &self.columns
    }

    /// The column of this name.
    pub fn get(&self, name: &str) -> Result<&Covariate, Error> {
        self.columns.iter().find(|column| column.name == name).ok_or_else(|| Error::UnknownCovariate {
            name: name.to_owned(),
            known: self.columns.iter().map(|column| column.name.clone()).collect(),
        })
    }

    /// The columns of these names, if labelling can be taken to depend on all of them.
    pub fn usable(&self, names: &[String], labels: &Labels) -> Result<Self, Error> {
        let asked = self.select(names)?;
        for column in asked.columns() {
            column.check()?;
            if column.separates(labels) {
                return Err(column.unusable(SEPARATES));
            }
        }
        Ok(asked)
    }

    /// The columns of these names, in this order. `hospital*age` stands for both columns.
    pub fn select(&self, names: &[String]) -> Result<Self, Error> {
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            match self.product(name)? {
                None => columns.push(self.get(name)?.clone()),
                // A column of a product may be in other products, or named by itself, too.
                Some(Product { first, second }) => {
                    for part in [first, second] {
                        let named = names.contains(&part) || columns.iter().any(|column| column.name == part);
                        if !named {
                            columns.push(self.get(&part)?.clone());
                        }
                    }
                }
            }
        }
        Self::new(columns)
    }

    /// The products among these names, such as `hospital*age`: the effect of each column differs by the other then.
    pub fn products(&self, names: &[String]) -> Result<Vec<Product>, Error> {
        let mut products: Vec<Product> = Vec::new();
        for product in names.iter().filter_map(|name| self.product(name).transpose()) {
            let product = product?;
            let same =
                |other: &Product| *other == product || (other.second == product.first && other.first == product.second);
            if !products.iter().any(same) {
                products.push(product);
            }
        }
        Ok(products)
    }

    /// The two columns of a product; `None` if the name is that of a column, or has no `*` in it.
    fn product(&self, name: &str) -> Result<Option<Product>, Error> {
        let product = Product::parse(name, |name| self.get(name).is_ok())?;
        if let Some(Product { first, second }) = &product {
            self.get(first).and(self.get(second))?;
        }
        Ok(product)
    }
}

impl Covariate {
    /// A column of numbers; NaN where missing.
    pub fn numeric(name: impl Into<String>, values: Vec<f64>) -> Self {
        Self { name: name.into(), values: CovariateValues::Numeric(values) }
    }

    /// A column of names, as it stands in a table.
    ///
    /// ```
    /// use mnar::covariates::Covariate;
    /// let site = Covariate::categorical("site", ["a", "b", "a"].map(Some));
    /// assert_eq!(site.n_levels(), Some(2));
    /// ```
    pub fn categorical<'a>(name: impl Into<String>, values: impl IntoIterator<Item = Option<&'a str>>) -> Self {
        let values: Vec<Option<&str>> = values.into_iter().collect();
        let mut levels: Vec<&str> = values.iter().flatten().copied().collect();
        levels.sort_unstable();
        levels.dedup();
        let code = |name: &str| levels.binary_search(&name).ok().map(|code| code as u32);
        let codes = values.iter().map(|value| value.and_then(code)).collect();
        let levels = levels.into_iter().map(str::to_owned).collect();
        Self { name: name.into(), values: CovariateValues::Categorical { levels, codes } }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        match &self.values {
            CovariateValues::Numeric(values) => values.len(),
            CovariateValues::Categorical { codes, .. } => codes.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of distinct names; `None` for numbers.
    pub fn n_levels(&self) -> Option<usize> {
        match &self.values {
            CovariateValues::Numeric(_) => None,
            CovariateValues::Categorical { levels, .. } => Some(levels.len()),
        }
    }

    fn unusable(&self, why: &str) -> Error {
        Error::UnusableCovariate { name: self.name.clone(), why: why.to_owned() }
    }

    /// Refuses a column that no mechanism can depend on: one that never varies, or that has a name for nearly every row.
    pub fn check(&self) -> Result<(), Error> {
        let varies = match &self.values {
            CovariateValues::Numeric(values) => {
                values.iter().any(|value| *value != values[0] && !(value.is_nan() && values[0].is_nan()))
            }
            CovariateValues::Categorical { codes, .. } => codes.iter().any(|code| *code != codes[0]),
        };
        check(&self.name, varies, self.n_levels(), self.len())
    }

    /// Whether the column tells exactly which rows are labelled: such a column was filled in with the label, and did not decide it.
    pub fn separates(&self, labels: &Labels) -> bool {
        let pure = |rows: &[usize]| {
            let labelled = rows.iter().filter(|&&row| labels.is_labelled(row)).count();
            labelled == 0 || labelled == rows.len()
        };
        if self.groups().iter().all(|group| pure(&group.rows)) {
            return true;
        }
        let CovariateValues::Numeric(values) = &self.values else { return false };
        let range = |wanted: bool| {
            let of = values.iter().enumerate().filter(|(row, v)| !v.is_nan() && labels.is_labelled(*row) == wanted);
            of.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (_, &v)| (low.min(v), high.max(v)))
        };
        let (with, without) = (range(true), range(false));
        // Numbers on both sides, and not mixed; missing ones are a group of their own.
        let missing: Vec<usize> = (0..values.len()).filter(|&row| values[row].is_nan()).collect();
        pure(&missing) && with.0.is_finite() && without.0.is_finite() && (with.1 < without.0 || without.1 < with.0)
    }

    /// The rows of each name, or of each fifth of the numbers, and of missing values: what a labelling rate is shown for.
    pub fn groups(&self) -> Vec<Group> {
        match &self.values {
            CovariateValues::Categorical { levels, codes } => {
                let mut groups: Vec<Group> =
                    levels.iter().map(|level| Group { name: level.clone(), rows: Vec::new() }).collect();
                let mut missing = Vec::new();
                for (row, code) in codes.iter().enumerate() {
                    match code {
                        Some(code) => groups[*code as usize].rows.push(row),
                        None => missing.push(row),
                    }
                }
                push_missing(groups, missing)
            }
            CovariateValues::Numeric(values) => {
                let mut order: Vec<usize> = (0..values.len()).filter(|&row| !values[row].is_nan()).collect();
                order.sort_by(|&a, &b| values[a].total_cmp(&values[b]).then(a.cmp(&b)));
                let mut distinct: Vec<(f64, usize)> = Vec::new();
                for &row in &order {
                    match distinct.last_mut() {
                        Some((value, rows)) if *value == values[row] => *rows += 1,
                        _ => distinct.push((values[row], 1)),
                    }
                }
                let mut rows = order.into_iter();
                let groups = fifths(&distinct).into_iter().map(|range| {
                    let count = distinct[range.clone()].iter().map(|(_, rows)| rows).sum();
                    Group { name: range_name(&distinct[range]), rows: rows.by_ref().take(count).collect() }
                });
                let groups = groups.collect();
                let missing = (0..values.len()).filter(|&row| values[row].is_nan()).collect();
                push_missing(groups, missing)
            }
        }
    }

    /// What the column adds to the logit of being labelled: one term per name, or one for numbers, and one for missing
    /// numbers. Missing names are a name of their own.
    pub(crate) fn terms(&self) -> Vec<Term> {
        ColumnTerms::learn(self).of(self).expect("terms of the column that they are learnt from")
    }

    /// The directions in which a dependence on the column is looked for. Numbers are taken as the classifier takes them, in
    /// standard deviations: along functions that it does not know, such as ranks, its own misfit looked like a dependence (15%
    /// of true self-masking rejected on Pima in place of 5%). Rare names share one direction, and the most common name is the
    /// reference.
    pub(crate) fn directions(&self) -> Vec<Vec<f64>> {
        match &self.values {
            CovariateValues::Numeric(values) => {
                let numbers = self.terms().into_iter().filter(|term| term.unit.is_some());
                let mut directions: Vec<Vec<f64>> = numbers.map(|term| term.values).collect();
                let missing = values.iter().filter(|value| value.is_nan()).count();
                if missing >= FEWEST_ROWS && values.len() - missing >= FEWEST_ROWS {
                    directions.push(values.iter().map(|value| f64::from(u8::from(value.is_nan()))).collect());
                }
                directions
            }
            CovariateValues::Categorical { .. } => {
                let mut groups = self.groups();
                groups.sort_by_key(|group| std::cmp::Reverse(group.rows.len()));
                let (common, rare): (Vec<_>, Vec<_>) =
                    groups.into_iter().skip(1).partition(|group| group.rows.len() >= FEWEST_ROWS);
                let mut sets: Vec<Vec<usize>> = common.into_iter().map(|group| group.rows).collect();
                let rare: Vec<usize> = rare.into_iter().flat_map(|group| group.rows).collect();
                if rare.len() >= FEWEST_ROWS {
                    sets.push(rare);
                }
                sets.into_iter()
                    .map(|rows| {
                        let mut direction = vec![0.0; self.len()];
                        rows.into_iter().for_each(|row| direction[row] = 1.0);
                        direction
                    })
                    .collect()
            }
        }
    }
}

const FIFTHS: usize = 5;
const MISSING: &str = "(missing)";

/// Refuses a column that never varies, or that has a name for nearly every row.
fn check(name: &str, varies: bool, levels: Option<usize>, rows: usize) -> Result<(), Error> {
    let why = match levels {
        _ if !varies => "it has the same value in every row".to_owned(),
        Some(levels) if 2 * levels > rows => format!(
            "it has {levels} different values in {rows} rows, as an identifier has: there is nothing to learn from it"
        ),
        Some(levels) if levels > MOST_LEVELS => {
            format!("it has {levels} different values, and at most {MOST_LEVELS} are taken: group them first")
        }
        _ => return Ok(()),
    };
    Err(Error::UnusableCovariate { name: name.to_owned(), why })
}

/// What is wrong with a column that [`Covariate::separates`].
const SEPARATES: &str =
    "it tells exactly which rows are labelled, as a column that is filled in with the label does; leave it out";

/// Where ascending numbers, each with how often it occurs, are cut into fifths of the rows. Equal numbers stay together, and up
/// to five different numbers are a group each.
fn fifths(distinct: &[(f64, usize)]) -> Vec<Range<usize>> {
    if distinct.len() <= FIFTHS {
        return (0..distinct.len()).map(|i| i..i + 1).collect();
    }
    let total: usize = distinct.iter().map(|(_, rows)| rows).sum();
    let (mut groups, mut start, mut end, mut rows) = (Vec::with_capacity(FIFTHS), 0, 0, 0);
    for part in 1..=FIFTHS {
        while rows < total * part / FIFTHS {
            rows += distinct[end].1;
            end += 1;
        }
        if end > start {
            groups.push(start..end);
            start = end;
        }
    }
    groups
}

/// What numbers from the first to the last are called.
fn range_name(distinct: &[(f64, usize)]) -> String {
    match distinct {
        [] => String::new(),
        [(only, _)] => plain(*only),
        [(low, _), .., (high, _)] => format!("{} to {}", plain(*low), plain(*high)),
    }
}

fn push_missing(mut groups: Vec<Group>, missing: Vec<usize>) -> Vec<Group> {
    if !missing.is_empty() {
        groups.push(Group { name: MISSING.to_owned(), rows: missing });
    }
    groups
}

/// A number with at most four digits that matter.
fn plain(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 12);
    let scale = 10f64.powi(digits);
    format!("{}", (value * scale).round() / scale)
}

/// Rows with the same name, or with numbers in the same range.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The name, or the range.
    pub name: String,
    /// The rows.
    pub rows: Vec<usize>,
}

/// Ranks scaled to −1..1, equal numbers at their mean rank, missing ones at 0.
pub(crate) fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).filter(|&row| !values[row].is_nan()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let n = order.len() as f64;
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let mut end = start + 1;
        while end < order.len() && values[order[end]] == values[order[start]] {
            end += 1;
        }
        let middle = (start + end) as f64 / n - 1.0;
        order[start..end].iter().for_each(|&row| ranks[row] = middle);
        start = end;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_centred_and_ties_share_theirs() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, f64::NAN, 2.0]), [0.5, -0.75, 0.5, 0.0, -0.25]);
        let sum: f64 = ranks(&[5.0, 5.0, 7.0, 1.0, 2.0, 2.0, 2.0]).iter().sum();
        assert!(sum.abs() < 1e-12);
    }

    #[test]
    fn columns_without_information_are_refused_by_name() {
        let constant = Covariate::numeric("year", vec![2020.0; 10]);
        assert!(constant.check().unwrap_err().to_string().contains("`year`"));
        let names: Vec<String> = (0..10).map(|i| format!("patient {i}")).collect();
        let id = Covariate::categorical("id", names.iter().map(|name| Some(name.as_str())));
        assert!(id.check().unwrap_err().to_string().contains("identifier"));
        assert!(Covariate::categorical("site", ["a", "b"].iter().cycle().take(10).map(|s| Some(*s))).check().is_ok());
        // A number that is sometimes missing varies in that, even if it never varies where it is there.
        let gaps = Covariate::numeric("dose", vec![1.0, f64::NAN, 1.0, 1.0]);
        assert!(gaps.check().is_ok());
        assert_eq!(gaps.terms().len(), 1);
    }

    #[test]
    fn terms_of_new_rows_are_those_of_the_rows_they_were_learnt_from() {
        let columns = |site: [Option<&str>; 4], age: [f64; 4]| {
            let columns = vec![Covariate::categorical("site", site), Covariate::numeric("age", age.to_vec())];
            Covariates::new(columns).unwrap()
        };
        let rows = columns([Some("a"), None, Some("b"), Some("a")], [50.0, f64::NAN, 30.0, 40.0]);
        let encoder = TermEncoder::learn(&rows);
        let design = Design::new(&rows).unwrap();
        assert_eq!(encoder.terms(&rows).unwrap(), design.columns());
        // Only the last two of those rows, and two new ones: the codes of the names and the moments differ.
        let new = columns([Some("b"), Some("a"), Some("A"), Some("b")], [30.0, 40.0, 1e6, f64::NAN]);
        let read = serde_json::from_str::<TermEncoder>(&serde_json::to_string(&encoder).unwrap()).unwrap();
        let terms = read.terms(&new).unwrap();
        assert_eq!((read.n_terms(), read.check()), (terms.len(), Ok(())));
        for (ours, theirs) in terms.iter().zip(design.columns()) {
            assert_eq!(ours[..2], theirs[2..]);
        }
        let last = |row: usize| terms.iter().map(|term| term[row]).collect::<Vec<_>>();
        assert_eq!((last(2), last(3)), (vec![0.0, 0.0, 0.0, FURTHEST, 0.0], vec![0.0, 1.0, 0.0, 0.0, 1.0]));
        let swapped = vec![Covariate::numeric("site", vec![1.0]), Covariate::numeric("age", vec![1.0])];
        assert!(read.terms(&Covariates::new(swapped).unwrap()).unwrap_err().to_string().contains("names are expected"));
        assert!(read.terms(&Covariates::default()).is_err());
    }

    #[test]
    fn columns_that_come_with_the_label_are_recognised() {
        let labels =
            Labels::from_values((0..20).map(|i| (i < 8).then_some(if i % 2 == 0 { "a" } else { "b" }))).unwrap();
        let dates = Covariate::numeric("labelled on", (0..20).map(|i| if i < 8 { 2020.0 } else { f64::NAN }).collect());
        let row = Covariate::numeric("row", (0..20).map(f64::from).collect());
        let age = Covariate::numeric("age", (0..20).map(|i| f64::from(i * 7 % 20)).collect());
        assert!(dates.separates(&labels) && row.separates(&labels) && !age.separates(&labels));
        let status = Covariate::categorical("status", (0..20).map(|i| Some(if i < 8 { "done" } else { "open" })));
        assert!(status.separates(&labels));
    }

    #[test]
    fn groups_of_numbers_hold_equal_numbers_together() {
        let column = Covariate::numeric("age", (0..50).map(|i| f64::from(i / 20)).chain([f64::NAN]).collect());
        let groups = column.groups();
        assert_eq!(groups.iter().map(|group| group.rows.len()).collect::<Vec<_>>(), [20, 20, 10, 1]);
        assert_eq!(groups[0].name, "0");
        assert_eq!(groups[3].name, "(missing)");
    }
}
