//! The terms that columns, and products of two columns, add to the logit of being labelled.

use super::{Covariate, CovariateValues, Covariates, FURTHEST, MISSING, MOST_LEVELS};
use crate::error::Error;
use serde::{Deserialize, Serialize};

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

/// Two columns whose product a mechanism has beside both of them: the effect of one differs by the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Product {
    /// One column.
    pub first: String,
    /// The other.
    pub second: String,
}

impl Product {
    /// The two columns of `hospital*age`; `None` if there is no `*`, or if it is part of the name of a column.
    pub fn parse(name: &str, is_column: impl Fn(&str) -> bool) -> Result<Option<Self>, Error> {
        if !name.contains('*') || is_column(name) {
            return Ok(None);
        }
        match name.split('*').map(str::trim).collect::<Vec<_>>()[..] {
            [first, second] if !first.is_empty() && !second.is_empty() => {
                Ok(Some(Self { first: first.to_owned(), second: second.to_owned() }))
            }
            _ => Err(Error::UnusableCovariate {
                name: name.to_owned(),
                why: "a product is of two columns, such as `hospital*age`".to_owned(),
            }),
        }
    }

    /// What the product is called: `hospital x age`.
    pub fn name(&self) -> String {
        format!("{} x {}", self.first, self.second)
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    products: Vec<Product>,
}

/// What a coefficient belongs to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TermAbout {
    /// The position of the column, or of the product after all columns.
    pub(crate) column: usize,
    pub(crate) level: Option<String>,
    pub(crate) unit: Option<f64>,
    /// The positions of the two terms that a term of a product is made of.
    pub(crate) factors: Option<(usize, usize)>,
}

impl TermEncoder {
    /// Learns the terms of these columns, in the order of [`Design`].
    pub fn learn(covariates: &Covariates) -> Self {
        let columns = covariates.columns().iter().map(ColumnTerms::learn).collect();
        Self { columns, products: Vec::new() }
    }

    /// The same with products of two of the columns.
    pub fn with_products(mut self, products: Vec<Product>) -> Result<Self, Error> {
        for product in &products {
            let levels = |name: &str| {
                let column = self.columns.iter().find(|column| column.name == name);
                let column = column.ok_or_else(|| Error::UnknownCovariate {
                    name: name.to_owned(),
                    known: self.names().map(str::to_owned).collect(),
                })?;
                Ok(column.factor_terms().count())
            };
            let terms = levels(&product.first)? * levels(&product.second)?;
            if product.first == product.second {
                return Err(unusable(product, "it is the product of a column and itself"));
            }
            if terms > MOST_LEVELS {
                let why = format!("it has {terms} terms, and at most {MOST_LEVELS} are taken: group the names first");
                return Err(unusable(product, &why));
            }
        }
        self.products = products;
        Ok(self)
    }

    /// The values of every term, one number per row, from the columns of the same names in other rows.
    pub fn terms(&self, covariates: &Covariates) -> Result<Vec<Vec<f64>>, Error> {
        let mut all = Vec::with_capacity(self.n_terms());
        for column in &self.columns {
            all.extend(column.of(covariates.get(&column.name)?)?.into_iter().map(|term| term.values));
        }
        for (_, first, second) in self.factors() {
            let product = all[first].iter().zip(&all[second]).map(|(a, b)| a * b).collect();
            all.push(product);
        }
        Ok(all)
    }

    /// The names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// For every term its column or product, and the name that it stands for; `None` for numbers.
    pub fn term_names(&self) -> Vec<(String, Option<String>)> {
        let groups = self.groups();
        self.about().into_iter().map(|term| (groups[term.column].clone(), term.level)).collect()
    }

    /// The number of terms.
    pub fn n_terms(&self) -> usize {
        self.columns.iter().map(ColumnTerms::n_terms).sum::<usize>() + self.factors().len()
    }

    /// Checks what [`learn`](Self::learn) could not have learnt, for an encoder that was read from a file.
    pub fn check(&self) -> Result<(), &'static str> {
        let usable = |column: &ColumnTerms| match &column.values {
            TermValues::Numeric { mean, sd } => mean.is_finite() && sd.is_finite() && *sd >= 0.0,
            TermValues::Categorical { .. } => true,
        };
        if !self.columns.iter().all(usable) {
            return Err("the mean or the standard deviation of a term is not a number that makes sense");
        }
        let known = |name: &String| self.names().any(|column| column == name);
        match self.products.iter().all(|product| known(&product.first) && known(&product.second)) {
            true => Ok(()),
            false => Err("a product is of a column that is not there"),
        }
    }

    /// Columns whose terms were learnt elsewhere.
    pub(super) fn of_columns(columns: Vec<ColumnTerms>) -> Self {
        Self { columns, products: Vec::new() }
    }

    /// What each term belongs to.
    pub(crate) fn about(&self) -> Vec<TermAbout> {
        let mut all = Vec::with_capacity(self.n_terms());
        for (column, terms) in self.columns.iter().enumerate() {
            let about = |(level, unit)| TermAbout { column, level, unit, factors: None };
            all.extend(terms.parts().into_iter().map(about));
        }
        for (product, first, second) in self.factors() {
            let column = self.columns.len() + product;
            let named = |term: &TermAbout| {
                let name = &self.columns[term.column].name;
                term.level.as_ref().map_or_else(|| name.clone(), |level| format!("{name}={level}"))
            };
            let level = Some(format!("{} x {}", named(&all[first]), named(&all[second])));
            all.push(TermAbout { column, level, unit: None, factors: Some((first, second)) });
        }
        all
    }

    /// The names of the columns and of the products, which are the columns of [`TermAbout`].
    pub(crate) fn groups(&self) -> Vec<String> {
        self.names().map(str::to_owned).chain(self.products.iter().map(Product::name)).collect()
    }

    /// Whether the column at this position holds names.
    pub(crate) fn is_categorical(&self, column: usize) -> bool {
        self.columns.get(column).is_some_and(|column| matches!(column.values, TermValues::Categorical { .. }))
    }

    /// For every term of a product: the product, and the positions of the terms that are multiplied.
    fn factors(&self) -> Vec<(usize, usize, usize)> {
        let start = |name: &str| {
            let position = self.columns.iter().position(|column| column.name == name)?;
            let before = self.columns[..position].iter().map(ColumnTerms::n_terms).sum::<usize>();
            Some((before, &self.columns[position]))
        };
        let mut all = Vec::new();
        for (number, product) in self.products.iter().enumerate() {
            let (Some((a, first)), Some((b, second))) = (start(&product.first), start(&product.second)) else {
                continue;
            };
            for i in first.factor_terms() {
                all.extend(second.factor_terms().map(|j| (number, a + i, b + j)));
            }
        }
        all
    }
}

fn unusable(product: &Product, why: &str) -> Error {
    Error::UnusableCovariate { name: product.name(), why: why.to_owned() }
}

/// The terms of one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ColumnTerms {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) values: TermValues,
    /// Whether missing values have a term.
    pub(super) missing: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum TermValues {
    /// One term, (value − mean)/sd, unless the numbers never vary.
    Numeric { mean: f64, sd: f64 },
    /// One term per name.
    Categorical { levels: Vec<String> },
}

impl ColumnTerms {
    pub(super) fn learn(column: &Covariate) -> Self {
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

    /// The terms that products are made of: all names, but of numbers not whether they are missing.
    fn factor_terms(&self) -> std::ops::Range<usize> {
        match &self.values {
            TermValues::Numeric { sd, .. } => 0..usize::from(*sd > 0.0),
            TermValues::Categorical { .. } => 0..self.n_terms(),
        }
    }

    /// The name or the unit of every term.
    fn parts(&self) -> Vec<(Option<String>, Option<f64>)> {
        let mut parts: Vec<_> = match &self.values {
            TermValues::Numeric { sd, .. } => (*sd > 0.0).then_some((None, Some(*sd))).into_iter().collect(),
            TermValues::Categorical { levels } => levels.iter().map(|level| (Some(level.clone()), None)).collect(),
        };
        if self.missing {
            parts.push((Some(MISSING.to_owned()), None));
        }
        parts
    }

    pub(super) fn of(&self, column: &Covariate) -> Result<Vec<Term>, Error> {
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
    (mean, spread(mean, sd))
}

/// A constant column may show a spread of some 1e-16 of its value.
pub(super) fn spread(mean: f64, sd: f64) -> f64 {
    if sd > 1e-12 * mean.abs() { sd } else { 0.0 }
}

/// The terms of several columns: z in logit P(labelled | y, z) = a_y + b'z.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Design {
    pub(crate) encoder: TermEncoder,
    columns: Vec<Vec<f64>>,
    names: Vec<String>,
}

impl Design {
    /// The terms of these columns. Columns that never vary, or are identifiers, are refused.
    pub fn new(covariates: &Covariates) -> Result<Self, Error> {
        Self::with_products(covariates, Vec::new())
    }

    /// The terms of these columns, and of products of two of them.
    pub fn with_products(covariates: &Covariates, products: Vec<Product>) -> Result<Self, Error> {
        covariates.columns().iter().try_for_each(Covariate::check)?;
        let encoder = TermEncoder::learn(covariates).with_products(products)?;
        let columns = encoder.terms(covariates)?;
        let names = encoder.names().map(str::to_owned).collect();
        Ok(Self { encoder, columns, names })
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

    pub(crate) fn into_columns(self) -> Vec<Vec<f64>> {
        self.columns
    }
}
