//! Texts that are numbers, dates or times to a person, and names to a program: `4.81 mg/l`, `95%`, `1,234`, `05-Jan-24`.

use crate::column_builder::decimal_comma;
use crate::dates::{self, DateFormat};
use std::fmt;

/// What texts look like that could only be read as names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disguise {
    /// `4.81 mg/l`, `95%`, `€ 12`.
    Unit,
    /// `1,234` or `1.234,50`.
    Thousands,
    /// `0,41` in a file whose values are separated by commas.
    DecimalComma,
    /// `05-Jan-24`, or dates that are written in several ways.
    Date,
    /// `14:35`.
    Time,
}

impl Disguise {
    /// What to write instead.
    pub fn advice(self) -> &'static str {
        match self {
            Disguise::Unit => "write the numbers alone",
            Disguise::Thousands => "write them without the marks between thousands",
            Disguise::DecimalComma => "write them with decimal points",
            Disguise::Date => "write all of them as 2024-12-31",
            Disguise::Time => "write them as numbers, such as the minutes since midnight",
        }
    }
}

impl fmt::Display for Disguise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Disguise::Unit => "numbers with a unit or a sign",
            Disguise::Thousands => "numbers with marks between thousands",
            Disguise::DecimalComma => "numbers with decimal commas",
            Disguise::Date => "dates, written in a way that is not known here or in several ways",
            Disguise::Time => "times of day",
        })
    }
}

/// Fewer different texts than this may look like anything.
const FEWEST: usize = 8;

/// What nine in ten of these texts look like, with the first one as an example.
pub(crate) fn disguise<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> Option<(Disguise, &'a str)> {
    let count = texts.clone().count();
    if count < FEWEST {
        return None;
    }
    let enough = |hits: usize| 10 * hits >= 9 * count;
    let looks = |is: &dyn Fn(&str) -> bool| enough(texts.clone().filter(|text| is(text)).count());
    let example = |is: &dyn Fn(&str) -> bool| texts.clone().find(|text| is(text));
    // Where some are plain numbers, the others decide.
    type Looks = fn(&str) -> bool;
    let kinds: [(Disguise, Looks); 4] = [
        (Disguise::Time, is_time),
        (Disguise::Date, is_date),
        (Disguise::Thousands, has_thousands),
        (Disguise::DecimalComma, |text| decimal_comma(text).is_some()),
    ];
    for (kind, is) in kinds {
        if looks(&|text| is(text) || text.parse::<f64>().is_ok())
            && let Some(example) = example(&is)
        {
            return Some((kind, example));
        }
    }
    // The same unit for nearly all of them; codes such as P017 have no unit.
    let first = texts.clone().find_map(unit)?;
    looks(&|text| unit(text).is_some_and(|of| of == first))
        .then(|| example(&|text| unit(text).is_some()).map(|text| (Disguise::Unit, text)))?
}

/// Signs before a number, and units after it.
fn unit(text: &str) -> Option<(&str, &str)> {
    const SIGNS: [char; 8] = ['€', '$', '£', '¥', '<', '>', '≤', '≥'];
    let number = text.trim_start_matches(|c: char| SIGNS.contains(&c) || c.is_whitespace());
    let before = text[..text.len() - number.len()].trim();
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+');
    let end = number.find(|c: char| !is_part(c)).unwrap_or(number.len());
    let (digits, after) = (number[..end].trim_end_matches(['.', ',']), number[end..].trim());
    let is_number = digits.parse::<f64>().is_ok() || decimal_comma(digits).is_some() || has_thousands(digits);
    let is_unit = !after.contains(|c: char| c.is_ascii_digit()) || after.ends_with(['²', '³', '2', '3']);
    let any = !before.is_empty() || !after.is_empty();
    (is_number && any && is_unit && after.chars().count() <= 12).then_some((before, after))
}

/// `1,234`, `1,234.56`, `1.234.567`, `1.234,56`, `1 234` or `1'234`.
fn has_thousands(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    [(',', '.'), ('.', ','), (' ', '.'), ('\'', '.'), ('\u{a0}', ','), ('\u{202f}', ',')].into_iter().any(
        |(mark, decimal)| {
            let (whole, part) = text.split_once(decimal).map_or((text, None), |(whole, part)| (whole, Some(part)));
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let mut groups = whole.split(mark);
            let first = groups.next().unwrap_or_default();
            let rest: Vec<&str> = groups.collect();
            // A single group after a point is a decimal: 1.234.
            let clear = mark != '.' || rest.len() > 1 || part.is_some();
            let grouped = !rest.is_empty() && rest.iter().all(|group| group.len() == 3 && digits(group));
            clear && grouped && (1..=3).contains(&first.len()) && digits(first) && part.is_none_or(digits)
        },
    )
}

fn is_time(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let two = |part: &&str| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    (2..=3).contains(&parts.len()) && parts.iter().all(two)
}

fn is_date(text: &str) -> bool {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let formats = [DateFormat::Iso, DateFormat::DayFirst, DateFormat::MonthFirst];
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let month = |word: &str| word.get(..3).is_some_and(|start| MONTHS.contains(&start.to_ascii_lowercase().as_str()));
    let number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    formats.into_iter().any(|format| dates::parse(text, format).is_some())
        || (words.clone().count() == 3 && words.clone().any(month) && words.filter(|word| number(word)).count() == 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Option<Disguise> {
        let repeated: Vec<String> =
            (0..4).flat_map(|i| texts.iter().map(move |text| text.replace('#', &i.to_string()))).collect();
        disguise(repeated.iter().map(String::as_str)).map(|(kind, _)| kind)
    }

    #[test]
    fn numbers_that_were_written_for_people() {
        assert_eq!(of(&["4.8# mg/l", "12 mg/l", "<0.# mg/l"]), None, "a sign on some of them");
        assert_eq!(of(&["4.8# mg/l", "12 mg/l", "0.# mg/l"]), Some(Disguise::Unit));
        assert_eq!(of(&["9#%", "8#%"]), Some(Disguise::Unit));
        assert_eq!(of(&["€ 9#", "€ 8#,50"]), Some(Disguise::Unit));
        assert_eq!(of(&["1,23#", "98#", "12,345.5#"]), Some(Disguise::Thousands));
        assert_eq!(of(&["1.23#.000", "98#"]), Some(Disguise::Thousands));
        assert_eq!(of(&["0,4#", "1,2#"]), Some(Disguise::DecimalComma));
        assert_eq!(of(&["14:3#", "9:1#"]), Some(Disguise::Time));
        assert_eq!(of(&["05-Jan-2#", "1# Mar 2024"]), Some(Disguise::Date));
        assert_eq!(of(&["2024-01-0#", "2024-02-1#", "1#.12.2024"]), Some(Disguise::Date));
    }

    #[test]
    fn names_are_names() {
        assert_eq!(of(&["P01#", "P02#"]), None);
        assert_eq!(of(&["120/8#", "110/7#"]), None);
        assert_eq!(of(&["North #", "South #"]), None);
        assert_eq!(of(&["May #", "Ann #"]), None);
        assert_eq!(of(&["1.23#", "98#"]), None, "plain numbers");
        assert_eq!(of(&["a1#", "b2#", "3 mg"]), None);
    }
}
