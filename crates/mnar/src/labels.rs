//! Partly observed labels. A missing label is `None`; there is no sentinel value.

use crate::error::{Error, list_names};
use std::collections::{BTreeSet, HashMap};

/// The index of a class among [`Labels::names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Class(pub u32);

impl Class {
    /// The class as an array index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<usize> for Class {
    fn from(index: usize) -> Self {
        Class(u32::try_from(index).expect("fewer than 2^32 classes"))
    }
}

/// One entry per row: the class where the label is observed (r = 1), `None` where it is missing (r = 0).
///
/// ```
/// use mnar::Labels;
/// let labels = Labels::from_values(["cat", "", "dog", "cat"].map(|v| (!v.is_empty()).then_some(v)))?;
/// assert_eq!(labels.names(), ["cat", "dog"]);
/// assert_eq!(labels.counts(), [2, 1]);
/// assert_eq!(labels.n_unlabelled(), 1);
/// # Ok::<(), mnar::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Labels {
    y: Vec<Option<Class>>,
    names: Vec<String>,
    counts: Vec<usize>,
}

impl Labels {
    /// Labels from class indices. There must be two classes, and labelled as well as unlabelled rows.
    pub fn new(y: Vec<Option<Class>>, names: Vec<String>) -> Result<Self, Error> {
        let labels = Self::allow_degenerate(y, names)?;
        labels.check_estimable()?;
        Ok(labels)
    }

    /// Labels from values, the classes being the distinct values: in numeric order if all are numbers,
    /// in alphabetical order otherwise.
    pub fn from_values<V: AsRef<str>>(values: impl IntoIterator<Item = Option<V>>) -> Result<Self, Error> {
        let values: Vec<Option<V>> = values.into_iter().collect();
        let names = class_names(values.iter().flatten().map(AsRef::as_ref));
        Self::with_names(values, names)
    }

    /// Labels from values and the names of all classes, in the order of the posteriors' columns.
    pub fn with_names<V: AsRef<str>>(
        values: impl IntoIterator<Item = Option<V>>,
        names: Vec<String>,
    ) -> Result<Self, Error> {
        let index: HashMap<&str, usize> = names.iter().enumerate().map(|(k, name)| (name.as_str(), k)).collect();
        let y = values
            .into_iter()
            .enumerate()
            .map(|(i, value)| match value {
                None => Ok(None),
                Some(value) => match index.get(value.as_ref()) {
                    Some(&k) => Ok(Some(Class::from(k))),
                    None => Err(Error::UnknownClass {
                        row: i + 1,
                        label: value.as_ref().to_owned(),
                        classes: list_names(&names),
                    }),
                },
            })
            .collect::<Result<Vec<_>, _>>()?;
        Self::new(y, names)
    }

    /// Labels that may lack labelled or unlabelled rows: a batch, a fold, a fully labelled table.
    pub fn allow_degenerate(y: Vec<Option<Class>>, names: Vec<String>) -> Result<Self, Error> {
        let mut seen = BTreeSet::new();
        if let Some(name) = names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(Error::DuplicateClass { name: name.clone() });
        }
        let mut counts = vec![0; names.len()];
        for (i, class) in y.iter().enumerate() {
            let Some(class) = class else { continue };
            match counts.get_mut(class.index()) {
                Some(count) => *count += 1,
                None => {
                    return Err(Error::UnknownClass {
                        row: i + 1,
                        label: format!("class number {}", class.0),
                        classes: list_names(&names),
                    });
                }
            }
        }
        Ok(Self { y, names, counts })
    }

    /// Sets classes aside that have a label but fewer than `fewest`: too few to learn from, while the other classes still
    /// can be. Rows with those labels then count as unlabelled. Fully labelled rows stay as they are, and it is an error if
    /// fewer than two classes would be left.
    pub fn without_rare(self, fewest: usize) -> Result<(Self, Vec<RareClass>), Error> {
        let is_rare = |k: usize| (1..fewest).contains(&self.counts[k]);
        let (rare, kept): (Vec<usize>, Vec<usize>) = (0..self.n_classes()).partition(|&k| is_rare(k));
        if rare.is_empty() || self.n_unlabelled() == 0 {
            return Ok((self, Vec::new()));
        }
        if kept.len() < 2 {
            return Err(Error::TooFewLabels {
                class: self.names[rare[0]].clone(),
                found: self.counts[rare[0]],
                needed: fewest,
                purpose: "a comparison of two classes",
            });
        }
        let mut index = vec![None; self.n_classes()];
        kept.iter().enumerate().for_each(|(new, &old)| index[old] = Some(Class::from(new)));
        let y = self.y.iter().map(|class| class.and_then(|class| index[class.index()])).collect();
        let labels = Self::allow_degenerate(y, kept.iter().map(|&k| self.names[k].clone()).collect())?;
        let rare = rare.iter().map(|&k| RareClass { class: self.names[k].clone(), labels: self.counts[k] }).collect();
        Ok((labels, rare))
    }

    fn check_estimable(&self) -> Result<(), Error> {
        let n = self.len();
        if n == 0 {
            return Err(Error::NoRows);
        }
        if self.n_labelled() == 0 {
            return Err(Error::NoLabels { n });
        }
        if self.names.len() == 1 {
            return Err(Error::OneClass { class: self.names[0].clone() });
        }
        if self.n_unlabelled() == 0 {
            return Err(Error::NoUnlabelled { n });
        }
        Ok(())
    }

    /// The labels, one entry per row.
    pub fn as_slice(&self) -> &[Option<Class>] {
        &self.y
    }

    /// The label of row `i` (from 0).
    pub fn get(&self, i: usize) -> Option<Class> {
        self.y[i]
    }

    /// r_i: whether the label of row `i` is observed.
    pub fn is_labelled(&self, i: usize) -> bool {
        self.y[i].is_some()
    }

    /// The names of the classes; a [`Class`] is an index into them.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The name of a class.
    pub fn name(&self, class: Class) -> &str {
        &self.names[class.index()]
    }

    /// n_k: how many rows carry each label.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// K, the number of classes.
    pub fn n_classes(&self) -> usize {
        self.names.len()
    }

    /// n, the number of rows.
    pub fn len(&self) -> usize {
        self.y.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.y.is_empty()
    }

    /// n_l, the number of labelled rows.
    pub fn n_labelled(&self) -> usize {
        self.counts.iter().sum()
    }

    /// n_u, the number of unlabelled rows.
    pub fn n_unlabelled(&self) -> usize {
        self.len() - self.n_labelled()
    }

    /// The labelled rows (from 0) with their classes.
    pub fn labelled(&self) -> impl Iterator<Item = (usize, Class)> + '_ {
        self.y.iter().enumerate().filter_map(|(i, class)| class.map(|class| (i, class)))
    }
}

/// A class that was set aside because it has too few labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RareClass {
    /// The name of the class.
    pub class: String,
    /// How many rows carry its label.
    pub labels: usize,
}

impl std::fmt::Display for RareClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (labels, rows) = if self.labels == 1 { ("label", "its row counts") } else { ("labels", "its rows count") };
        write!(
            f,
            "the class `{}` is set aside: it has {} {labels}, too few to learn from, and {rows} as unlabelled; nothing is said about this class, whose rows count towards the shares of the others, unless more of them are labelled",
            self.class, self.labels
        )
    }
}

/// The distinct values as class names: in numeric order if all are numbers, alphabetical otherwise.
pub fn class_names<'a>(values: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let distinct: BTreeSet<&str> = values.into_iter().collect();
    let mut numbers: Vec<(f64, &str)> = Vec::with_capacity(distinct.len());
    for value in &distinct {
        match value.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => numbers.push((number, value)),
            _ => return distinct.into_iter().map(str::to_owned).collect(),
        }
    }
    numbers.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(b.1)));
    numbers.into_iter().map(|(_, value)| value.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numeric_names_sort_as_numbers() {
        assert_eq!(class_names(["10", "9", "-1", "2.5"]), ["-1", "2.5", "9", "10"]);
        assert_eq!(class_names(["10", "9", "x"]), ["10", "9", "x"]);
    }

    #[test]
    fn rare_classes_are_set_aside() {
        let labels = Labels::from_values("a a b b c . a".split(' ').map(|v| (v != ".").then_some(v))).unwrap();
        assert_eq!(labels.clone().without_rare(1).unwrap(), (labels.clone(), vec![]));
        let (kept, rare) = labels.clone().without_rare(2).unwrap();
        assert_eq!((kept.names().join(" "), kept.counts()), ("a b".to_owned(), &[3, 2][..]));
        assert_eq!((kept.get(4), kept.get(6)), (None, Some(Class(0))));
        assert_eq!(rare, [RareClass { class: "c".into(), labels: 1 }]);
        assert!(rare[0].to_string().contains("`c` is set aside: it has 1 label"), "{}", rare[0]);
        let error = labels.without_rare(3).unwrap_err().to_string();
        assert!(error.contains("class `b` has 2 label(s) but a comparison of two classes needs at least 3"), "{error}");
    }

    #[test]
    fn degenerate_tables_are_refused_by_name() {
        let message = |values: &[Option<&str>]| Labels::from_values(values.to_vec()).unwrap_err().to_string();
        assert!(message(&[]).contains("no rows"));
        assert!(message(&[None, None]).contains("none of the 2 rows"));
        assert!(message(&[Some("a"), None]).contains("only one class, `a`"));
        assert!(message(&[Some("a"), Some("b")]).contains("all 2 rows"));
        let error = Labels::with_names([Some("z"), None], vec!["a".into(), "b".into()]).unwrap_err();
        assert!(error.to_string().contains("row 1: label `z`"), "{error}");
        let error = Labels::with_names([Some("a"), None], vec!["a".into(), "a".into()]).unwrap_err();
        assert!(error.to_string().contains("both called `a`"), "{error}");
    }
}
