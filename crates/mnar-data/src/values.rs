//! Labels and folds as text, turned into classes.

use crate::error::{DataError, list};
use arrow_array::{Array, LargeStringArray};
use mnar::labels::class_names;
use mnar::{Class, Labels};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Which texts mean that there is no label.
#[derive(Clone, Debug)]
pub(crate) struct Missing(Vec<String>);

impl Missing {
    pub(crate) fn new(values: &[String]) -> Self {
        Self(values.iter().map(|value| value.trim().to_owned()).collect())
    }

    /// The trimmed label, or `None` where it is missing.
    pub(crate) fn present<'a>(&self, value: &'a str) -> Option<&'a str> {
        let value = value.trim();
        (!value.is_empty() && !self.0.iter().any(|missing| missing == value)).then_some(value)
    }
}

fn cells<'a>(texts: &'a LargeStringArray, missing: &'a Missing) -> impl Iterator<Item = Option<&'a str>> {
    (0..texts.len()).map(move |i| if texts.is_null(i) { None } else { missing.present(texts.value(i)) })
}

/// One text for the ways in which one value is written: pandas turns the integer labels of a column with gaps
/// into floats ("1.0"), and writes booleans as "True".
fn canonical(text: &str) -> Cow<'_, str> {
    if let Some((whole, zeros)) = text.split_once('.') {
        let digits = whole.strip_prefix('-').unwrap_or(whole);
        let is_whole = !digits.is_empty()
            && digits.bytes().all(|b| b.is_ascii_digit())
            && (digits == "0" || !digits.starts_with('0'))
            && zeros.bytes().all(|b| b == b'0');
        if is_whole {
            return Cow::Borrowed(if digits == "0" { digits } else { whole });
        }
    } else if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        return Cow::Owned(text.to_ascii_lowercase());
    }
    Cow::Borrowed(text)
}

/// Turns labels into the classes of the probability columns.
#[derive(Clone, Debug)]
pub(crate) struct LabelMatcher {
    exact: HashMap<String, Class>,
    /// Tried next; without names that two classes share once written alike.
    alike: HashMap<String, Option<Class>>,
    classes: Vec<String>,
    missing: Missing,
    path: String,
}

impl LabelMatcher {
    pub(crate) fn new(classes: &[String], missing: &[String], path: &str) -> Self {
        let numbered = || classes.iter().enumerate().map(|(k, name)| (name, Class::from(k)));
        let mut alike = HashMap::new();
        for (name, class) in numbered() {
            alike.entry(canonical(name).into_owned()).and_modify(|other| *other = None).or_insert(Some(class));
        }
        Self {
            exact: numbered().map(|(name, class)| (name.clone(), class)).collect(),
            alike,
            classes: classes.to_vec(),
            missing: Missing::new(missing),
            path: path.to_owned(),
        }
    }

    /// The classes of a batch whose first row is `first_row`, from 0.
    pub(crate) fn encode(
        &self,
        texts: &LargeStringArray,
        first_row: usize,
        out: &mut Vec<Option<Class>>,
    ) -> Result<(), DataError> {
        for (i, label) in cells(texts, &self.missing).enumerate() {
            out.push(match label {
                None => None,
                Some(label) => Some(self.class(label).ok_or_else(|| DataError::UnknownLabel {
                    path: self.path.clone(),
                    row: first_row + i + 1,
                    label: label.to_owned(),
                    classes: list(&self.classes),
                })?),
            });
        }
        Ok(())
    }

    pub(crate) fn class(&self, label: &str) -> Option<Class> {
        self.exact.get(label).copied().or_else(|| self.alike.get(canonical(label).as_ref()).copied().flatten())
    }
}

/// The sorted names of texts that were numbered from 0, and the position among them of every number.
pub(crate) fn settle(codes: &HashMap<String, u32>) -> (Vec<String>, Vec<u32>) {
    // Only where all values are whole numbers: among "1.0" and "2.5" the ".0" belongs to the value.
    let whole = codes.keys().all(|text| canonical(text).parse::<i64>().is_ok());
    let name = |text: &str| if whole { canonical(text).into_owned() } else { text.to_owned() };
    let renamed: Vec<(String, u32)> = codes.iter().map(|(text, &code)| (name(text), code)).collect();
    let names = class_names(renamed.iter().map(|(name, _)| name.as_str()));
    let position: HashMap<&str, u32> = names.iter().map(String::as_str).zip(0..).collect();
    let mut order = vec![0; renamed.len()];
    for (name, code) in &renamed {
        order[*code as usize] = position[name.as_str()];
    }
    (names, order)
}

/// Bytes that a distinct text takes besides its own: its place in a hash table, and a second one once it is a name.
pub(crate) const DISTINCT: usize = 96;

/// Numbers texts in the order in which they occur; names and order are settled once all are known.
#[derive(Default)]
pub(crate) struct Interner {
    codes: HashMap<String, u32>,
    rows: Vec<Option<u32>>,
    /// Bytes of the distinct texts.
    text: usize,
}

impl Interner {
    /// The memory that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        (self.rows.len() * size_of::<Option<u32>>() + self.text + self.codes.len() * DISTINCT) as u64
    }

    pub(crate) fn extend(&mut self, texts: &LargeStringArray, missing: &Missing) {
        self.rows.reserve(texts.len());
        cells(texts, missing).for_each(|text| self.push(text));
    }

    /// Adds a row; `None` where its value is missing.
    pub(crate) fn push(&mut self, text: Option<&str>) {
        let code = text.map(|text| match self.codes.get(text) {
            Some(&code) => code,
            None => {
                let code = u32::try_from(self.codes.len()).expect("fewer than 2^32 distinct values");
                self.text += text.len();
                self.codes.insert(text.to_owned(), code);
                code
            }
        });
        self.rows.push(code);
    }

    /// Takes labels that mean missing in the files of common tools for missing, and returns how often each occurs.
    ///
    /// `-1` is one where the others are classes numbered from 0; with one other class it is a class, as in -1 and 1.
    pub(crate) fn take_marks(&mut self) -> Vec<(String, usize)> {
        const MARKS: [&str; 14] =
            ["NA", "na", "<NA>", "N/A", "n/a", "#N/A", "nan", "NaN", "null", "NULL", "None", "none", "?", "."];
        let others: Vec<Cow<'_, str>> =
            self.codes.keys().filter(|text| !MARKS.contains(&text.as_str())).map(|text| canonical(text)).collect();
        let numbers: Option<HashSet<i64>> = others.iter().map(|text| text.parse().ok()).collect();
        let minus_one = numbers.is_some_and(|numbers| {
            numbers.contains(&-1) && numbers.len() > 2 && numbers.iter().all(|number| *number >= -1)
        });
        let is_mark = |text: &str| MARKS.contains(&text) || (minus_one && canonical(text) == "-1");
        let mut counts = vec![0; self.codes.len()];
        self.rows.iter().flatten().for_each(|&code| counts[code as usize] += 1);
        let mut marks: Vec<(String, usize)> = self
            .codes
            .iter()
            .filter(|(text, _)| is_mark(text))
            .map(|(text, &code)| (text.clone(), counts[code as usize]))
            .collect();
        if marks.is_empty() {
            return marks;
        }
        marks.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let mut old: Vec<(String, u32)> = std::mem::take(&mut self.codes).into_iter().collect();
        old.sort_unstable_by_key(|(_, code)| *code);
        let mut renumbered = vec![None; old.len()];
        for (text, code) in old.into_iter().filter(|(text, _)| !marks.iter().any(|(mark, _)| mark == text)) {
            let new = u32::try_from(self.codes.len()).expect("fewer than before");
            renumbered[code as usize] = Some(new);
            self.codes.insert(text, new);
        }
        for row in &mut self.rows {
            *row = row.and_then(|code| renumbered[code as usize]);
        }
        marks
    }

    /// The first row (from 0) without a value.
    pub(crate) fn first_missing(&self) -> Option<usize> {
        self.rows.iter().position(Option::is_none)
    }

    /// The sorted names, and the position of every row's value among them.
    fn finish(self) -> (Vec<String>, Vec<Option<u32>>) {
        let (names, order) = settle(&self.codes);
        let rows = self.rows.into_iter().map(|code| code.map(|code| order[code as usize])).collect();
        (names, rows)
    }

    /// The distinct values as classes; some or all labels may be missing.
    pub(crate) fn into_labels(self, path: &str) -> Result<Labels, DataError> {
        let (names, rows) = self.finish();
        let y = rows.into_iter().map(|code| code.map(Class)).collect();
        Labels::allow_degenerate(y, names).map_err(|cause| DataError::core(path, cause))
    }

    /// Folds numbered from 0, in the order of their names.
    pub(crate) fn into_folds(self, column: &str, path: &str) -> Result<Vec<u32>, DataError> {
        if let Some(row) = self.first_missing() {
            return Err(DataError::MissingFold { path: path.to_owned(), row: row + 1, column: column.to_owned() });
        }
        Ok(self.finish().1.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_floats_and_booleans_are_written_alike() {
        for (text, expected) in [
            ("1.0", "1"),
            ("1.", "1"),
            ("-3.00", "-3"),
            ("-0.0", "0"),
            ("1.5", "1.5"),
            ("01.0", "01.0"),
            (".0", ".0"),
            ("v1.0", "v1.0"),
            ("True", "true"),
            ("FALSE", "false"),
            ("truest", "truest"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
    }

    #[test]
    fn classes_that_would_be_confused_match_exactly_only() {
        let matcher = LabelMatcher::new(&["1".into(), "1.0".into(), "2".into()], &[], "f");
        assert_eq!(matcher.class("1"), Some(Class(0)));
        assert_eq!(matcher.class("1.0"), Some(Class(1)));
        assert_eq!(matcher.class("1.00"), None);
        assert_eq!(matcher.class("2.0"), Some(Class(2)));
    }

    #[test]
    fn folds_are_numbered_in_the_order_of_their_names() {
        let mut folds = Interner::default();
        folds.extend(&LargeStringArray::from(vec!["10", "9", "10", "11"]), &Missing::new(&[]));
        assert_eq!(folds.into_folds("fold", "f").expect("no gaps"), [1, 0, 1, 2]);
    }
}
