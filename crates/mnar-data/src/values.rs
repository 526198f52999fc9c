//! Labels and folds as text, turned into classes.

use crate::error::DataError;
use arrow_array::{Array, LargeStringArray};
use mnar::labels::class_names;
use mnar::{Class, Labels};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

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

/// One text for names that differ only by case or blanks.
pub(crate) fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Finds classes by their names.
#[derive(Clone, Debug)]
pub(crate) struct LabelMatcher {
    exact: HashMap<String, Class>,
    /// Tried next; without names that two classes share once written alike.
    alike: HashMap<String, Option<Class>>,
    /// The same where case and blanks do not count.
    folded: HashMap<String, Option<Class>>,
}

impl LabelMatcher {
    pub(crate) fn new(classes: &[String]) -> Self {
        let numbered = || classes.iter().enumerate().map(|(k, name)| (name, Class::from(k)));
        let by = |key: &dyn Fn(&str) -> String| {
            let mut found = HashMap::new();
            for (name, class) in numbered() {
                found.entry(key(name)).and_modify(|other| *other = None).or_insert(Some(class));
            }
            found
        };
        let (alike, folded) = (by(&|name| canonical(name).into_owned()), by(&folded));
        Self { exact: numbered().map(|(name, class)| (name.clone(), class)).collect(), alike, folded }
    }

    pub(crate) fn class(&self, label: &str) -> Option<Class> {
        self.exact.get(label).copied().or_else(|| self.alike.get(canonical(label).as_ref()).copied().flatten())
    }

    /// The class of a label that may differ from its name by case and blanks.
    pub(crate) fn class_alike(&self, label: &str) -> Option<Class> {
        self.class(label).or_else(|| self.folded.get(&folded(label)).copied().flatten())
    }
}

/// The sorted names of texts that were numbered from 0, and the position among them of every number.
pub(crate) fn settle(codes: &HashMap<String, u32>) -> (Vec<String>, Vec<u32>) {
    // Only where all values are whole numbers: among "1.0" and "2.5" the ".0" belongs to the value.
    let whole = codes.keys().all(|text| whole_number(text).is_some());
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

/// The distinct texts of a column, numbered in the order in which they occur.
#[derive(Default)]
pub(crate) struct Census {
    codes: HashMap<String, u32>,
    /// How many rows have each, and the first of them, from 0.
    tallies: Vec<(usize, usize)>,
    rows: usize,
    /// Bytes of the distinct texts.
    text: usize,
}

/// A text of a column.
pub(crate) struct Counted<'a> {
    pub(crate) text: &'a str,
    pub(crate) count: usize,
    /// The first row that has it, from 0.
    pub(crate) first_row: usize,
}

/// Labels that became one.
pub(crate) struct Merged {
    pub(crate) into: String,
    /// The other names, and how many rows have each.
    pub(crate) others: Vec<(String, usize)>,
}

/// Texts that mean missing in the files of common tools.
const MARKS: [&str; 14] =
    ["NA", "na", "<NA>", "N/A", "n/a", "#N/A", "nan", "NaN", "null", "NULL", "None", "none", "?", "."];

impl Census {
    /// Counts a row, `None` where its value is missing, and gives the number of its text.
    pub(crate) fn add(&mut self, text: Option<&str>) -> Option<u32> {
        let row = self.rows;
        self.rows += 1;
        let text = text?;
        if let Some(&code) = self.codes.get(text) {
            self.tallies[code as usize].0 += 1;
            return Some(code);
        }
        Some(self.insert(text.to_owned(), (1, row)))
    }

    /// Counts rows, and hands over the number of each row's text.
    pub(crate) fn extend(&mut self, texts: &LargeStringArray, missing: &Missing, visit: impl FnMut(Option<u32>)) {
        cells(texts, missing).map(|text| self.add(text)).for_each(visit);
    }

    fn insert(&mut self, text: String, tally: (usize, usize)) -> u32 {
        let code = u32::try_from(self.codes.len()).expect("fewer than 2^32 distinct values");
        self.text += text.len();
        self.codes.insert(text, code);
        self.tallies.push(tally);
        code
    }

    /// Rows counted, those without a value among them.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The number of distinct texts.
    pub(crate) fn len(&self) -> usize {
        self.codes.len()
    }

    /// The texts in the order of their numbers.
    pub(crate) fn texts(&self) -> Vec<Counted<'_>> {
        let mut texts: Vec<(&String, &u32)> = self.codes.iter().collect();
        texts.sort_unstable_by_key(|(_, code)| **code);
        let tallied = texts.into_iter().zip(&self.tallies);
        tallied.map(|((text, _), &(count, first_row))| Counted { text, count, first_row }).collect()
    }

    /// The labels that mean missing in the files of common tools, and how often each occurs. The name of one of the
    /// `classes`, where these are known, is none.
    ///
    /// `-1` is one where the others are classes numbered from 0; with one other label it is a class, as in -1 and 1,
    /// unless the classes are known.
    pub(crate) fn marks(&self, classes: Option<&LabelMatcher>) -> Vec<(String, usize)> {
        let is_class = |text: &str| classes.is_some_and(|classes| classes.class(text).is_some());
        let is_word = |text: &str| MARKS.contains(&text) && !is_class(text);
        let others = self.codes.keys().filter(|text| !is_word(text));
        let numbers: Option<HashSet<i64>> = others.map(|text| whole_number(text)).collect();
        let minus_one = numbers.is_some_and(|numbers| {
            let enough = classes.is_some() || numbers.len() > 2;
            numbers.contains(&-1) && enough && numbers.iter().all(|number| *number >= -1)
        });
        let is_mark = |text: &str| is_word(text) || (minus_one && canonical(text) == "-1" && !is_class(text));
        let marks = self.texts().into_iter().filter(|counted| is_mark(counted.text));
        let mut marks: Vec<(String, usize)> = marks.map(|mark| (mark.text.to_owned(), mark.count)).collect();
        marks.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        marks
    }
}

/// The whole number that a text is, however it is written.
pub(crate) fn whole_number(text: &str) -> Option<i64> {
    canonical(text).parse().ok()
}

/// Bytes that a distinct text takes besides its own: its place in a hash table, and a second one once it is a name.
pub(crate) const DISTINCT: usize = 96;

/// Numbers the text of every row; names and order are settled once all are known.
#[derive(Default)]
pub(crate) struct Interner {
    census: Census,
    rows: Vec<Option<u32>>,
}

impl Interner {
    /// The memory that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        (self.rows.len() * size_of::<Option<u32>>() + self.census.text + self.census.len() * DISTINCT) as u64
    }

    pub(crate) fn extend(&mut self, texts: &LargeStringArray, missing: &Missing) {
        self.rows.reserve(texts.len());
        cells(texts, missing).for_each(|text| self.push(text));
    }

    /// Adds a row; `None` where its value is missing.
    pub(crate) fn push(&mut self, text: Option<&str>) {
        let code = self.census.add(text);
        self.rows.push(code);
    }

    pub(crate) fn census(&self) -> &Census {
        &self.census
    }

    /// The value of every row, given the values of the texts in the order of their numbers.
    pub(crate) fn with_values<T: Copy>(self, values: &[Option<T>]) -> Vec<Option<T>> {
        self.rows.into_iter().map(|code| code.and_then(|code| values[code as usize])).collect()
    }

    /// Takes labels that mean missing in the files of common tools for missing, and returns how often each occurs.
    pub(crate) fn take_marks(&mut self) -> Vec<(String, usize)> {
        let marks = self.census.marks(None);
        if marks.is_empty() {
            return marks;
        }
        let old = std::mem::take(&mut self.census);
        let mut kept = Census { rows: old.rows, ..Census::default() };
        let is_mark = |text: &str| marks.iter().any(|(mark, _)| mark == text);
        let renumber = |Counted { text, count, first_row }: Counted<'_>| {
            (!is_mark(text)).then(|| kept.insert(text.to_owned(), (count, first_row)))
        };
        let renumbered: Vec<Option<u32>> = old.texts().into_iter().map(renumber).collect();
        for row in &mut self.rows {
            *row = row.and_then(|code| renumbered[code as usize]);
        }
        self.census = kept;
        marks
    }

    /// Makes one of labels that differ only by case or blanks, under the name that most rows have, and returns what was
    /// merged.
    pub(crate) fn merge_alike(&mut self) -> Vec<Merged> {
        let mut groups: BTreeMap<String, Vec<Counted<'_>>> = BTreeMap::new();
        let texts = self.census.texts();
        for counted in self.census.texts() {
            groups.entry(folded(counted.text)).or_default().push(counted);
        }
        groups.retain(|_, names| names.len() > 1);
        if groups.is_empty() {
            return Vec::new();
        }
        let mut merged = Vec::with_capacity(groups.len());
        let mut renamed: HashMap<&str, String> = HashMap::new();
        for names in groups.values_mut() {
            names.sort_by(|a, b| b.count.cmp(&a.count).then(a.first_row.cmp(&b.first_row)));
            let into = names[0].text.to_owned();
            renamed.extend(names[1..].iter().map(|name| (name.text, into.clone())));
            let others = names[1..].iter().map(|name| (name.text.to_owned(), name.count)).collect();
            merged.push(Merged { into, others });
        }
        let mut kept = Census { rows: self.census.rows, ..Census::default() };
        let mut renumbered = Vec::with_capacity(texts.len());
        for Counted { text, count, first_row } in texts {
            let text = renamed.get(text).map_or(text, String::as_str);
            renumbered.push(match kept.codes.get(text) {
                Some(&code) => {
                    kept.tallies[code as usize].0 += count;
                    code
                }
                None => kept.insert(text.to_owned(), (count, first_row)),
            });
        }
        for row in &mut self.rows {
            *row = row.map(|code| renumbered[code as usize]);
        }
        self.census = kept;
        merged
    }

    /// The first row (from 0) without a value.
    pub(crate) fn first_missing(&self) -> Option<usize> {
        self.rows.iter().position(Option::is_none)
    }

    /// The sorted names, and the position of every row's value among them.
    fn finish(self) -> (Vec<String>, Vec<Option<u32>>) {
        let (names, order) = settle(&self.census.codes);
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
        let matcher = LabelMatcher::new(&["1".into(), "1.0".into(), "2".into()]);
        assert_eq!(matcher.class("1"), Some(Class(0)));
        assert_eq!(matcher.class("1.0"), Some(Class(1)));
        assert_eq!(matcher.class("1.00"), None);
        assert_eq!(matcher.class("2.0"), Some(Class(2)));
    }

    #[test]
    fn marks_of_missing_labels_are_no_class_by_name() {
        let marks = |texts: &[&str], classes: Option<&[&str]>| {
            let mut census = Census::default();
            texts.iter().for_each(|text| {
                census.add(Some(text));
            });
            let classes = classes.map(|names| LabelMatcher::new(&names.iter().map(|&n| n.into()).collect::<Vec<_>>()));
            census.marks(classes.as_ref()).into_iter().map(|(mark, _)| mark).collect::<Vec<_>>()
        };
        assert_eq!(marks(&["a", "?", "NA", "NA"], None), ["NA", "?"]);
        assert_eq!(marks(&["a", "?", "NA"], Some(&["a", "NA"])), ["?"]);
        assert_eq!(marks(&["0", "1", "-1"], None), ["-1"]);
        // A class beside 1, unless it is known that the classes are others.
        assert!(marks(&["1", "-1"], None).is_empty());
        assert_eq!(marks(&["1", "-1.0", "nan"], Some(&["0", "1"])), ["-1.0", "nan"]);
        assert!(marks(&["1", "-1"], Some(&["-1", "1"])).is_empty());
        assert!(marks(&["a", "-1"], Some(&["a", "b"])).is_empty());
        assert!(marks(&["0", "-2", "-1"], Some(&["0", "1"])).is_empty());
    }

    #[test]
    fn labels_that_differ_by_case_and_blanks_become_one() {
        let mut labels = Interner::default();
        for label in ["sick", "Sick", "not  sick", "Sick", "SICK", "Not sick", "well"] {
            labels.push(Some(label));
        }
        labels.push(None);
        let merged = labels.merge_alike();
        let said: Vec<String> = merged.iter().map(|merged| format!("{} {:?}", merged.into, merged.others)).collect();
        assert_eq!(said, ["not  sick [(\"Not sick\", 1)]", "Sick [(\"sick\", 1), (\"SICK\", 1)]"]);
        let labels = labels.into_labels("f").expect("labels");
        assert_eq!(labels.names(), ["Sick", "not  sick", "well"]);
        assert_eq!(labels.counts(), [4, 2, 1]);
    }

    #[test]
    fn folds_are_numbered_in_the_order_of_their_names() {
        let mut folds = Interner::default();
        folds.extend(&LargeStringArray::from(vec!["10", "9", "10", "11"]), &Missing::new(&[]));
        assert_eq!(folds.into_folds("fold", "f").expect("no gaps"), [1, 0, 1, 2]);
    }
}
