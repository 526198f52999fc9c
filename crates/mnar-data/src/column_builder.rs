//! A column in the making: what its values are is seen from all of them, in a single pass.

use crate::dates::{self, DateFormat};
use crate::disguise::{Disguise, disguise};
use crate::error::{ColumnRole, DataError};
use crate::feature_table::{Categories, ColumnValues, FeatureColumn, MISSING};
use crate::screen::names_identifier;
use crate::values::{DISTINCT, Missing, settle};
use std::collections::HashMap;

/// Which texts mean that a feature is missing: what the common tools write, and what the user adds. Unlike a
/// label, a feature called `NA` loses nothing by it: missing is a level of its own.
pub(crate) struct MissingFeature {
    named: Missing,
    numbers: Vec<f64>,
}

impl MissingFeature {
    pub(crate) fn new(values: &[String]) -> Self {
        let numbers = values.iter().filter_map(|value| value.trim().parse().ok()).collect();
        Self { named: Missing::new(values), numbers }
    }

    /// The trimmed value, or `None` where it is missing.
    pub(crate) fn present<'a>(&self, value: &'a str) -> Option<&'a str> {
        const USUAL: [&str; 7] = ["na", "nan", "n/a", "null", "none", "<na>", "#n/a"];
        let value = self.named.present(value)?;
        let usual = value.len() <= 4 && USUAL.iter().any(|usual| usual.eq_ignore_ascii_case(value));
        (!usual).then_some(value)
    }

    /// The number, or NaN where it means missing: `-999` may be named as such in a column of numbers too.
    pub(crate) fn number(&self, value: f64) -> f64 {
        if self.numbers.contains(&value) { f64::NAN } else { value }
    }
}

/// What a column is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Numbers if all values are numbers, all are booleans or all are dates, else names.
    Inferred,
    Numeric,
    /// Dates of this format, as numbers.
    Dates(DateFormat),
    /// Names; `forced` where the user says so, no matter how many there are.
    Names {
        forced: bool,
    },
}

impl Wanted {
    /// Numbers of one kind or another, since a model needs them.
    fn is_number(self) -> bool {
        matches!(self, Wanted::Numeric | Wanted::Dates(_))
    }
}

/// Where a value stands.
pub(crate) struct Place<'a> {
    pub(crate) path: &'a str,
    /// From 1.
    pub(crate) row: usize,
}

/// A column in the making.
pub(crate) struct ColumnBuilder {
    name: String,
    wanted: Wanted,
    values: Building,
    decimals: Decimals,
    /// How often each mark of a missing value, such as `?`, was met among numbers.
    marks: [usize; MARKS.len()],
}

/// Which decimal marks a column has.
#[derive(Clone, Copy, Default)]
struct Decimals {
    /// Whether a comma may be one: not in a file whose values are separated by commas.
    commas_allowed: bool,
    commas: bool,
    points: bool,
}

/// Texts that mean missing among numbers, and are names anywhere else.
const MARKS: [&str; 2] = ["?", "."];

enum Building {
    Numbers(Numbers),
    Texts(Texts),
}

/// Distinct numbers after which a column is numeric for good. Up to there its texts are kept, each once, so that
/// a text further down makes names of all of them; a column of codes has fewer, one of measurements soon more.
const UNDECIDED: usize = 4096;

/// A column, and what was found out about it.
pub(crate) struct FinishedColumn {
    pub(crate) column: FeatureColumn,
    /// Whether numbers were written with decimal commas.
    pub(crate) commas: bool,
    /// Texts that were read as missing among numbers, and how often.
    pub(crate) marks: Vec<(String, usize)>,
    /// Set for dates, with whether day and month could be the other way round.
    pub(crate) dates: Option<(DateFormat, bool)>,
    /// Whether it holds names because the user says so.
    pub(crate) forced: bool,
    /// What its names look like, if it is something else than names, and one of them.
    pub(crate) disguise: Option<(Disguise, String)>,
    /// Whether points in its numbers may stand between thousands.
    pub(crate) thousands: bool,
    /// Whether its numbers are written with leading zeros, as codes are.
    pub(crate) leading_zeros: bool,
    /// Set if it holds names only because some of its values are not numbers.
    pub(crate) odd: Option<Odd>,
}

/// The values of a column that are not numbers, though most of its values are.
#[derive(Clone, Debug)]
pub(crate) struct Odd {
    /// The values, those of most rows first, with how many rows have each.
    pub(crate) values: Vec<(String, usize)>,
    /// The first row that has one, from 1, and which it is.
    first: (usize, String),
    /// How many rows have a value.
    pub(crate) of: usize,
    /// How many different numbers there are.
    numbers: usize,
}

impl Odd {
    /// How many rows have one of the values.
    pub(crate) fn rows(&self) -> usize {
        self.values.iter().map(|(_, rows)| rows).sum()
    }

    /// Whether it is clear that the column should hold numbers: many different ones, and one other value in a hundred, or a
    /// single one. Codes that happen to be numbers are fewer, or have more exceptions.
    fn is_slip(&self) -> bool {
        let few = self.values.len() <= ODD && (self.rows() == 1 || 100 * self.rows() <= self.of);
        few && self.numbers >= 10
    }

    fn error(self, column: &str, path: &str) -> DataError {
        let (row, value) = self.first;
        let others = self.values.into_iter().map(|(other, _)| other).filter(|other| *other != value).collect();
        DataError::MixedColumn { path: path.to_owned(), row, column: column.to_owned(), value, others }
    }
}

/// Different values up to which they are all named.
pub(crate) const ODD: usize = 5;

impl ColumnBuilder {
    pub(crate) fn new(name: String, wanted: Wanted) -> Self {
        let values = match wanted {
            Wanted::Numeric | Wanted::Dates(_) => Building::Numbers(Numbers::default()),
            Wanted::Inferred | Wanted::Names { .. } => Building::Texts(Texts::default()),
        };
        Self { name, wanted, values, decimals: Decimals::default(), marks: [0; MARKS.len()] }
    }

    /// The memory that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = match &self.values {
            Building::Numbers(numbers) => numbers.values.len() * size_of::<f32>(),
            Building::Texts(texts) => {
                let codes = texts.codes.len() * size_of::<u32>();
                // Names of rows become one text per row.
                let spread = if self.wanted == (Wanted::Names { forced: true }) { texts.spread } else { 0 };
                codes + spread + texts.text + texts.seen.len() * (DISTINCT + size_of::<Seen>())
            }
        };
        bytes as u64
    }

    /// Lets a comma be the decimal mark.
    pub(crate) fn with_commas(mut self, allowed: bool) -> Self {
        self.decimals.commas_allowed = allowed;
        self
    }

    pub(crate) fn push_text(&mut self, text: Option<&str>, place: &Place<'_>) -> Result<(), DataError> {
        match &mut self.values {
            Building::Texts(texts) => {
                texts.push(text);
                let many = self.wanted == Wanted::Inferred && texts.seen.len() > UNDECIDED;
                if many && texts.all_numbers(self.decimals.commas_allowed) {
                    self.values = Building::Numbers(self.take_numbers(place.path)?);
                }
                Ok(())
            }
            Building::Numbers(_) => self.push_as_number(text, place),
        }
    }

    fn push_as_number(&mut self, text: Option<&str>, place: &Place<'_>) -> Result<(), DataError> {
        let value = match text.map(Seen::of) {
            None => Some(f64::NAN),
            Some(Seen::Number { value, point }) => {
                self.decimals.points |= point;
                Some(value).filter(|_| !(point && self.decimals.commas))
            }
            Some(Seen::Comma(value)) => {
                self.decimals.commas = self.decimals.commas_allowed;
                Some(value).filter(|_| self.decimals.commas_allowed && !self.decimals.points)
            }
            Some(Seen::Boolean(value)) => Some(f64::from(u8::from(value))).filter(|_| self.wanted == Wanted::Numeric),
            Some(Seen::Mark(mark)) => {
                self.marks[mark] += 1;
                Some(f64::NAN)
            }
            Some(Seen::Text) => match (self.wanted, text) {
                (Wanted::Dates(format), Some(text)) => {
                    dates::parse(text, format).or_else(|| dates::parse(text, DateFormat::Iso))
                }
                _ => None,
            },
        };
        match value {
            Some(value) => self.push_number(value, place),
            None => Err(self.not_a_number(text.unwrap_or_default(), place)),
        }
    }

    /// A number, NaN where missing.
    pub(crate) fn push_number(&mut self, value: f64, place: &Place<'_>) -> Result<(), DataError> {
        match &mut self.values {
            Building::Numbers(numbers) => numbers.push(value, &self.name, place),
            Building::Texts(texts) => {
                texts.push((!value.is_nan()).then(|| format!("{value:?}")).as_deref());
                Ok(())
            }
        }
    }

    fn not_a_number(&self, text: &str, place: &Place<'_>) -> DataError {
        let (path, column, value) = (place.path.to_owned(), self.name.clone(), text.to_owned());
        if self.wanted.is_number() {
            DataError::NotANumber { path, row: place.row, column, value, role: ColumnRole::Learnt }
        } else {
            DataError::MixedColumn { path, row: place.row, column, value, others: Vec::new() }
        }
    }

    /// The texts so far as numbers, where they are all numbers, booleans or dates.
    fn take_numbers(&mut self, path: &str) -> Result<Numbers, DataError> {
        let Building::Texts(texts) = &self.values else { return Ok(Numbers::default()) };
        self.decimals.commas = texts.commas > 0;
        self.decimals.points = texts.points > 0;
        for &code in &texts.codes {
            if let Some(Seen::Mark(mark)) = texts.seen.get(code as usize) {
                self.marks[*mark] += 1;
            }
        }
        texts.to_numbers(&self.name, path)
    }

    /// The finished column. Columns for `training` are checked: something must be learnable from them.
    pub(crate) fn finish(mut self, training: bool, path: &str) -> Result<FinishedColumn, DataError> {
        let mut dates = match self.wanted {
            Wanted::Dates(format) => Some((format, false)),
            _ => None,
        };
        let (mut thousands, mut leading_zeros, mut disguise, mut odd) = (false, false, None, None);
        if let Building::Texts(texts) = &mut self.values {
            let inferred = self.wanted == Wanted::Inferred;
            if self.wanted != (Wanted::Names { forced: true }) {
                dates = texts.take_dates();
            }
            let commas_allowed = self.decimals.commas_allowed;
            let numbers = inferred && (texts.all_numbers(commas_allowed) || texts.all_booleans());
            thousands = numbers && texts.may_have_thousands();
            leading_zeros = numbers && texts.have_leading_zeros();
            if numbers || dates.is_some() {
                self.values = Building::Numbers(self.take_numbers(path)?);
            }
        }
        let Self { name, wanted, values, decimals, marks } = self;
        let forced = wanted == (Wanted::Names { forced: true });
        let values = match values {
            Building::Numbers(numbers) => {
                if training {
                    numbers.check_precision(&name, path)?;
                }
                ColumnValues::Numeric(numbers.values)
            }
            Building::Texts(texts) => {
                if training && !forced {
                    disguise = texts.disguise();
                    if wanted == Wanted::Inferred && disguise.is_none() {
                        odd = texts.odd(decimals.commas_allowed);
                    }
                    // An identifier with letters here and there is left out anyway.
                    match odd.take_if(|odd| odd.is_slip() && !(texts.all_different() && names_identifier(&name))) {
                        Some(odd) => return Err(odd.error(&name, path)),
                        None => texts.check_levels(&name, path)?,
                    }
                }
                ColumnValues::Categorical(texts.into_categories())
            }
        };
        let marks = MARKS.iter().zip(marks).filter(|(_, count)| *count > 0);
        let marks = marks.map(|(mark, count)| ((*mark).to_owned(), count)).collect();
        let column = FeatureColumn { name, values };
        Ok(FinishedColumn {
            column,
            commas: decimals.commas,
            marks,
            dates,
            forced,
            disguise,
            thousands,
            leading_zeros,
            odd,
        })
    }
}

/// Numbers in the precision in which they are kept, and moments of the original values.
#[derive(Default)]
struct Numbers {
    values: Vec<f32>,
    n: f64,
    mean: f64,
    squares: f64,
    largest: f64,
}

impl Numbers {
    fn push(&mut self, value: f64, column: &str, place: &Place<'_>) -> Result<(), DataError> {
        let kept = value as f32;
        if kept.is_infinite() {
            let (path, row, column) = (place.path.to_owned(), place.row, column.to_owned());
            return Err(if value.is_infinite() {
                DataError::Infinite { path, row, column, value }
            } else {
                DataError::TooLarge { path, row, column, value }
            });
        }
        self.values.push(kept);
        if !value.is_nan() {
            self.n += 1.0;
            let step = value - self.mean;
            self.mean += step / self.n;
            self.squares += step * (value - self.mean);
            self.largest = self.largest.max(value.abs());
        }
        Ok(())
    }

    /// Seconds since 1970 are 1.8e9, and as `f32` multiples of 128: fine for years, but the minutes of one day
    /// would be gone. Refused where rounding moves values by more than a hundredth of their spread.
    fn check_precision(&self, column: &str, path: &str) -> Result<(), DataError> {
        let sd = (self.squares / self.n.max(1.0)).sqrt();
        let rounding = self.largest * f64::from(f32::EPSILON) / 2.0;
        // A constant column may show a spread of some 1e-16 of its value here.
        if sd > 1e-12 * self.largest && rounding > 0.01 * sd {
            let (path, column) = (path.to_owned(), column.to_owned());
            return Err(DataError::TooFine { path, column, mean: self.mean, sd });
        }
        Ok(())
    }
}

/// What a text could be.
#[derive(Clone, Copy)]
enum Seen {
    /// A number, and whether it is written with a decimal point.
    Number {
        value: f64,
        point: bool,
    },
    /// A number if a comma is the decimal mark.
    Comma(f64),
    Boolean(bool),
    /// One of [`MARKS`].
    Mark(usize),
    Text,
}

impl Seen {
    fn of(text: &str) -> Self {
        if let Ok(value) = text.parse() {
            Seen::Number { value, point: text.contains('.') }
        } else if text.eq_ignore_ascii_case("true") {
            Seen::Boolean(true)
        } else if text.eq_ignore_ascii_case("false") {
            Seen::Boolean(false)
        } else if let Some(mark) = MARKS.iter().position(|mark| *mark == text) {
            Seen::Mark(mark)
        } else {
            decimal_comma(text).map_or(Seen::Text, Seen::Comma)
        }
    }
}

/// The number of a text such as `-1,5`.
pub(crate) fn decimal_comma(text: &str) -> Option<f64> {
    let (whole, part) = text.split_once(',')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    let plain = !whole.contains('.') && !part.contains(['.', ',', '+']) && digits(part);
    if plain { format!("{whole}.{part}").parse().ok() } else { None }
}

/// Texts, each kept once.
#[derive(Default)]
struct Texts {
    index: HashMap<String, u32>,
    seen: Vec<Seen>,
    /// How many of the distinct texts are numbers, numbers with a point, numbers with a comma, booleans, and marks.
    numbers: usize,
    points: usize,
    commas: usize,
    booleans: usize,
    marks: usize,
    codes: Vec<u32>,
    /// Bytes of the distinct texts, and of all of them if every row had one of its own.
    text: usize,
    spread: usize,
}

impl Texts {
    fn push(&mut self, text: Option<&str>) {
        self.spread += size_of::<String>() + text.map_or(0, str::len);
        let code = match text {
            None => MISSING,
            Some(text) => match self.index.get(text) {
                Some(&code) => code,
                None => {
                    let code = u32::try_from(self.seen.len())
                        .ok()
                        .filter(|&code| code < MISSING)
                        .expect("fewer than 2^32 - 1 distinct values");
                    self.text += text.len();
                    self.index.insert(text.to_owned(), code);
                    let seen = Seen::of(text);
                    match seen {
                        Seen::Number { point, .. } => {
                            self.numbers += 1;
                            self.points += usize::from(point);
                        }
                        Seen::Comma(_) => self.commas += 1,
                        Seen::Boolean(_) => self.booleans += 1,
                        Seen::Mark(_) => self.marks += 1,
                        Seen::Text => {}
                    }
                    self.seen.push(seen);
                    code
                }
            },
        };
        self.codes.push(code);
    }

    /// Marks of missing values are numbers among numbers; commas are where no point is.
    fn all_numbers(&self, commas_allowed: bool) -> bool {
        let commas = if commas_allowed && self.points == 0 { self.commas } else { 0 };
        let numbers = self.numbers + commas;
        numbers + self.marks == self.seen.len() && (numbers > 0 || self.marks == 0)
    }

    fn all_booleans(&self) -> bool {
        self.booleans == self.seen.len()
    }

    /// Turns texts that are all dates into numbers, and returns how the dates are written.
    fn take_dates(&mut self) -> Option<(DateFormat, bool)> {
        if self.numbers + self.commas + self.booleans > 0 {
            return None;
        }
        let texts = self.index.keys().map(String::as_str).filter(|text| !MARKS.contains(text));
        let (format, ambiguous) = dates::format_of(texts)?;
        for (text, &code) in &self.index {
            if let Some(value) = dates::parse(text, format) {
                self.seen[code as usize] = Seen::Number { value, point: false };
            }
        }
        Some((format, ambiguous))
    }

    fn to_numbers(&self, column: &str, path: &str) -> Result<Numbers, DataError> {
        let mut numbers = Numbers { values: Vec::with_capacity(self.codes.len()), ..Numbers::default() };
        for (i, &code) in self.codes.iter().enumerate() {
            let value = match self.seen.get(code as usize) {
                Some(Seen::Number { value, .. } | Seen::Comma(value)) => *value,
                Some(Seen::Boolean(boolean)) => f64::from(u8::from(*boolean)),
                Some(Seen::Text | Seen::Mark(_)) | None => f64::NAN,
            };
            numbers.push(value, column, &Place { path, row: i + 1 })?;
        }
        Ok(numbers)
    }

    fn check_levels(&self, column: &str, path: &str) -> Result<(), DataError> {
        let rows = self.codes.iter().filter(|&&code| code != MISSING).count();
        let levels = self.seen.len();
        if levels > 100 && levels > rows / 2 {
            // Numbers except for a few cells are not identifiers: the odd cell is what is wrong.
            let identifier = names_identifier(column) && self.all_different();
            if let Some(odd) = self.odd(false).filter(|_| 10 * self.numbers >= 9 * levels && !identifier) {
                return Err(odd.error(column, path));
            }
            let (path, column) = (path.to_owned(), column.to_owned());
            return Err(match self.disguise() {
                Some((looks_like, example)) => DataError::Disguised { path, column, looks_like, example },
                None => DataError::TooManyLevels { path, column, levels, rows },
            });
        }
        Ok(())
    }

    fn all_different(&self) -> bool {
        self.seen.len() == self.codes.iter().filter(|&&code| code != MISSING).count()
    }

    /// The values that are not numbers, if most are and there are several.
    fn odd(&self, commas_allowed: bool) -> Option<Odd> {
        const FEWEST: usize = 5;
        let commas = commas_allowed && self.points == 0;
        let is_number = |seen: &Seen| match seen {
            Seen::Number { .. } => true,
            Seen::Comma(_) => commas,
            Seen::Boolean(_) | Seen::Mark(_) | Seen::Text => false,
        };
        let numbers = self.seen.iter().filter(|seen| is_number(seen)).count();
        if numbers < FEWEST {
            return None;
        }
        // How many rows have each text, and the first of them.
        let mut rows = vec![(0_usize, 0_usize); self.seen.len()];
        for (i, &code) in self.codes.iter().enumerate().filter(|(_, code)| **code != MISSING) {
            let (count, first) = &mut rows[code as usize];
            if *count == 0 {
                *first = i + 1;
            }
            *count += 1;
        }
        let is_odd = |code: usize| !is_number(&self.seen[code]) && !matches!(self.seen[code], Seen::Mark(_));
        let of: usize = rows.iter().map(|(count, _)| count).sum();
        let mut odd: Vec<(&String, usize, usize)> = self
            .index
            .iter()
            .map(|(text, &code)| (text, code as usize))
            .filter(|(_, code)| is_odd(*code))
            .map(|(text, code)| (text, rows[code].0, rows[code].1))
            .collect();
        odd.sort_by(|a, b| b.1.cmp(&a.1).then(a.2.cmp(&b.2)));
        let (first, _, row) = odd.iter().min_by_key(|(_, _, first)| *first)?;
        let first = (*row, (*first).clone());
        let values: Vec<(String, usize)> = odd.into_iter().map(|(text, count, _)| (text.clone(), count)).collect();
        let odd = Odd { values, first, of, numbers };
        (2 * odd.rows() < of).then_some(odd)
    }

    /// What its texts look like, if it is something else than names.
    fn disguise(&self) -> Option<(Disguise, String)> {
        let mut texts: Vec<&str> = self.index.keys().map(String::as_str).collect();
        texts.sort_unstable();
        disguise(texts.into_iter()).map(|(kind, example)| (kind, example.to_owned()))
    }

    /// Whether a point may stand between thousands: all numbers with one have three digits behind it, and there are numbers
    /// below 1000 without one. Decimals are seldom written so.
    fn may_have_thousands(&self) -> bool {
        const FEWEST: usize = 5;
        let (mut grouped, mut small) = (0, 0);
        for text in self.index.keys().filter(|text| !MARKS.contains(&text.as_str())) {
            let text = text.strip_prefix('-').unwrap_or(text);
            let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            match text.split_once('.') {
                Some((whole, part)) => {
                    let group = (1..=3).contains(&whole.len()) && !whole.starts_with('0') && part.len() == 3;
                    if !(group && digits(whole) && digits(part)) {
                        return false;
                    }
                    grouped += 1;
                }
                None if text.len() <= 3 && digits(text) => small += 1,
                None => return false,
            }
        }
        grouped >= FEWEST && small > 0
    }

    /// Whether they are digits of one length, and some start with zeros: `00123`.
    fn have_leading_zeros(&self) -> bool {
        let mut texts = self.index.keys().filter(|text| !MARKS.contains(&text.as_str()));
        let Some(length) = texts.clone().next().map(String::len).filter(|length| *length > 1) else { return false };
        let zeros = texts.clone().any(|text| text.starts_with('0'));
        zeros && texts.all(|text| text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit()))
    }

    fn into_categories(self) -> Categories {
        let (levels, order) = settle(&self.index);
        let mut codes = self.codes;
        for code in codes.iter_mut().filter(|code| **code != MISSING) {
            *code = order[*code as usize];
        }
        Categories { levels, codes }
    }
}
