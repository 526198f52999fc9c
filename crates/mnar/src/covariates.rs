//! Columns that labelling may depend on besides the class: the hospital, the year, the age of the patient.

use crate::error::Error;
use crate::labels::Labels;
use serde::{Deserialize, Serialize};

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
                return Err(column.unusable(
                    "it tells exactly which rows are labelled, as a column that is filled in with the label does; leave it out",
                ));
            }
        }
        Ok(asked)
    }

    /// The columns of these names, in this order.
    pub fn select(&self, names: &[String]) -> Result<Self, Error> {
        Self::new(names.iter().map(|name| self.get(name).cloned()).collect::<Result<_, _>>()?)
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
        let groups = self.groups();
        if groups.iter().filter(|group| !group.rows.is_empty()).count() < 2 {
            return Err(self.unusable("it has the same value in every row"));
        }
        match self.n_levels() {
            Some(levels) if 2 * levels > self.len() => Err(self.unusable(&format!(
                "it has {levels} different values in {} rows, as an identifier has: there is nothing to learn from it",
                self.len()
            ))),
            Some(levels) if levels > MOST_LEVELS => Err(self.unusable(&format!(
                "it has {levels} different values, and at most {MOST_LEVELS} are taken: group them first"
            ))),
            _ => Ok(()),
        }
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
                let mut groups = Vec::new();
                let mut start = 0;
                for part in 1..=FIFTHS {
                    let mut end = order.len() * part / FIFTHS;
                    // Equal numbers stay together.
                    while end > start && end < order.len() && values[order[end]] == values[order[end - 1]] {
                        end += 1;
                    }
                    if end > start {
                        let (low, high) = (values[order[start]], values[order[end - 1]]);
                        let name = if low == high { plain(low) } else { format!("{} to {}", plain(low), plain(high)) };
                        groups.push(Group { name, rows: order[start..end].to_vec() });
                        start = end;
                    }
                }
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

/// One number per row, and its coefficient in the logit of being labelled.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Term {
    /// The name that it stands for; `None` for the numbers of a column.
    pub(crate) level: Option<String>,
    /// The standard deviation by which numbers were divided.
    pub(crate) unit: Option<f64>,
    pub(crate) values: Vec<f64>,
}

impl Term {
    fn indicator(level: &str, rows: impl Iterator<Item = bool>) -> Self {
        let values = rows.map(|is| f64::from(u8::from(is))).collect();
        Self { level: Some(level.to_owned()), unit: None, values }
    }
}

/// How the terms of a mechanism are made from its columns: learnt from all rows that the mechanism is estimated from, and
/// saved with it for new rows.
///
/// ```
/// use mnar::covariates::{Covariate, Covariates, TermEncoder};
/// let site = |names: [&'static str; 4]| Covariates::new(vec![Covariate::categorical("site", names.map(Some))]);
/// let encoder = TermEncoder::learn(&site(["a", "b", "a", "b"])?);
/// // A name that is new belongs to none of the terms, so its effect is that of an average name: none.
/// assert_eq!(encoder.terms(&site(["b", "b", "new", "a"])?)?, [[0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]]);
/// # Ok::<(), mnar::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TermEncoder {
    columns: Vec<ColumnTerms>,
}

impl TermEncoder {
    /// Learns the terms of these columns, in the order of [`Design`].
    pub fn learn(covariates: &Covariates) -> Self {
        Self { columns: covariates.columns().iter().map(ColumnTerms::learn).collect() }
    }

    /// The values of every term, one number per row, from the columns of the same names in other rows.
    pub fn terms(&self, covariates: &Covariates) -> Result<Vec<Vec<f64>>, Error> {
        let mut all = Vec::new();
        for column in &self.columns {
            all.extend(column.of(covariates.get(&column.name)?)?.into_iter().map(|term| term.values));
        }
        Ok(all)
    }

    /// The names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// For every term its column, and the name that it stands for; `None` for numbers.
    pub fn term_names(&self) -> Vec<(&str, Option<&str>)> {
        let mut names = Vec::new();
        for column in &self.columns {
            let mut levels = match &column.values {
                TermValues::Numeric { sd, .. } => vec![None; usize::from(*sd > 0.0)],
                TermValues::Categorical { levels } => levels.iter().map(|level| Some(level.as_str())).collect(),
            };
            levels.extend(column.missing.then_some(Some(MISSING)));
            names.extend(levels.into_iter().map(|level| (column.name.as_str(), level)));
        }
        names
    }

    /// The number of terms.
    pub fn n_terms(&self) -> usize {
        self.columns.iter().map(ColumnTerms::n_terms).sum()
    }

    /// Checks what [`learn`](Self::learn) could not have learnt, for an encoder that was read from a file.
    pub fn check(&self) -> Result<(), &'static str> {
        let usable = |column: &ColumnTerms| match &column.values {
            TermValues::Numeric { mean, sd } => mean.is_finite() && sd.is_finite() && *sd >= 0.0,
            TermValues::Categorical { .. } => true,
        };
        match self.columns.iter().all(usable) {
            true => Ok(()),
            false => Err("the mean or the standard deviation of a term is not a number that makes sense"),
        }
    }
}

/// The terms of one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct ColumnTerms {
    name: String,
    #[serde(flatten)]
    values: TermValues,
    /// Whether missing values have a term.
    missing: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum TermValues {
    /// One term, (value − mean)/sd, unless the numbers never vary.
    Numeric { mean: f64, sd: f64 },
    /// One term per name.
    Categorical { levels: Vec<String> },
}

impl ColumnTerms {
    fn learn(column: &Covariate) -> Self {
        let (values, missing) = match &column.values {
            CovariateValues::Numeric(values) => {
                let (mean, sd) = moments(values);
                (TermValues::Numeric { mean, sd }, values.iter().any(|value| value.is_nan()))
            }
            CovariateValues::Categorical { levels, codes } => {
                (TermValues::Categorical { levels: levels.clone() }, codes.iter().any(Option::is_none))
            }
        };
        Self { name: column.name.clone(), values, missing }
    }

    fn n_terms(&self) -> usize {
        let of_values = match &self.values {
            TermValues::Numeric { sd, .. } => usize::from(*sd > 0.0),
            TermValues::Categorical { levels } => levels.len(),
        };
        of_values + usize::from(self.missing)
    }

    fn of(&self, column: &Covariate) -> Result<Vec<Term>, Error> {
        let mut terms = Vec::new();
        match (&self.values, &column.values) {
            (TermValues::Numeric { mean, sd }, CovariateValues::Numeric(values)) => {
                let scaled = |value: f64| match value.is_nan() {
                    true => 0.0,
                    false => ((value - mean) / sd).clamp(-FURTHEST, FURTHEST),
                };
                if *sd > 0.0 {
                    let values = values.iter().map(|&value| scaled(value)).collect();
                    terms.push(Term { level: None, unit: Some(*sd), values });
                }
                if self.missing {
                    terms.push(Term::indicator(MISSING, values.iter().map(|value| value.is_nan())));
                }
            }
            (TermValues::Categorical { levels: known }, CovariateValues::Categorical { levels, codes }) => {
                for name in known {
                    // Other rows may have other names, and so other codes.
                    let here = levels.iter().position(|level| level == name).map(|code| code as u32);
                    terms.push(Term::indicator(name, codes.iter().map(|code| code.is_some() && *code == here)));
                }
                if self.missing {
                    terms.push(Term::indicator(MISSING, codes.iter().map(Option::is_none)));
                }
            }
            (TermValues::Numeric { .. }, CovariateValues::Categorical { .. }) => {
                return Err(column.unusable("it holds names, but numbers are expected"));
            }
            (TermValues::Categorical { .. }, CovariateValues::Numeric(_)) => {
                return Err(column.unusable("it holds numbers, but names are expected"));
            }
        }
        Ok(terms)
    }
}

/// Mean and standard deviation of the numbers that are there.
fn moments(values: &[f64]) -> (f64, f64) {
    let present = || values.iter().copied().filter(|value| !value.is_nan());
    let n = present().count().max(1) as f64;
    let mean = present().sum::<f64>() / n;
    let sd = (present().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt();
    // A constant column may show a spread of some 1e-16 of its value.
    (mean, if sd > 1e-12 * mean.abs() { sd } else { 0.0 })
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

/// The terms of several columns: z in logit P(labelled | y, z) = a_y + b'z.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Design {
    /// For every term, the position of its column, the name or `None`, and the unit of numbers.
    pub(crate) terms: Vec<TermAbout>,
    columns: Vec<Vec<f64>>,
    names: Vec<String>,
}

/// What a coefficient belongs to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TermAbout {
    pub(crate) column: usize,
    pub(crate) level: Option<String>,
    pub(crate) unit: Option<f64>,
}

impl Design {
    /// The terms of these columns. Columns that never vary, or are identifiers, are refused.
    pub fn new(covariates: &Covariates) -> Result<Self, Error> {
        let mut design = Self::default();
        for (column, covariate) in covariates.columns().iter().enumerate() {
            covariate.check()?;
            design.names.push(covariate.name.clone());
            for Term { level, unit, values } in covariate.terms() {
                design.terms.push(TermAbout { column, level, unit });
                design.columns.push(values);
            }
        }
        Ok(design)
    }

    /// The number of terms.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there are no terms.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The names of the columns that the terms come from.
    pub fn column_names(&self) -> &[String] {
        &self.names
    }

    /// The values of every term, one number per row.
    pub fn columns(&self) -> &[Vec<f64>] {
        &self.columns
    }
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
