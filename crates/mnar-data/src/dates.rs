//! Dates and times as numbers: days since 1970-01-01, with the time as a fraction.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How the dates of a column are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DateFormat {
    /// `2024-12-31`, as in ISO 8601, and dates that a file keeps as such.
    Iso,
    /// `31.12.2024` or `31/12/2024`.
    DayFirst,
    /// `12/31/2024`.
    MonthFirst,
}

impl fmt::Display for DateFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DateFormat::Iso => "year-month-day",
            DateFormat::DayFirst => "day, month, year",
            DateFormat::MonthFirst => "month, day, year",
        })
    }
}

/// The format in which all texts are dates, and whether another one would do as well.
pub(crate) fn format_of<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> Option<(DateFormat, bool)> {
    texts.clone().next()?;
    let fits = |format: DateFormat| texts.clone().all(|text| parse(text, format).is_some());
    if fits(DateFormat::Iso) {
        return Some((DateFormat::Iso, false));
    }
    let day_first = fits(DateFormat::DayFirst);
    // Dots are never used with the month first.
    if day_first && texts.clone().all(|text| text.contains('.') && !text.contains(['/', '-'])) {
        return Some((DateFormat::DayFirst, false));
    }
    match (fits(DateFormat::MonthFirst), day_first) {
        (true, ambiguous) => Some((DateFormat::MonthFirst, ambiguous)),
        (false, true) => Some((DateFormat::DayFirst, false)),
        (false, false) => None,
    }
}

/// Days since 1970-01-01.
pub(crate) fn parse(text: &str, format: DateFormat) -> Option<f64> {
    // The shortest is 1/2/2024; a number has no separator in the middle.
    if !(8..=40).contains(&text.len()) || !text.as_bytes()[0].is_ascii_digit() {
        return None;
    }
    let (date, time) = match text.find(['T', ' ']) {
        Some(at) => (&text[..at], Some(text[at + 1..].trim())),
        None => (text, None),
    };
    let separator = date.chars().find(|char| !char.is_ascii_digit())?;
    let allowed: &[char] = match format {
        DateFormat::Iso => &['-', '/'],
        DateFormat::DayFirst => &['.', '/', '-'],
        DateFormat::MonthFirst => &['/', '-'],
    };
    if !allowed.contains(&separator) {
        return None;
    }
    let mut parts = date.split(separator);
    let (a, b, c) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let (year, month, day) = match format {
        DateFormat::Iso => (a, b, c),
        DateFormat::DayFirst => (c, b, a),
        DateFormat::MonthFirst => (c, a, b),
    };
    if year.len() != 4 || month.len() > 2 || day.len() > 2 {
        return None;
    }
    let days = days_of(i64::from(digits(year)?), digits(month)?, digits(day)?)?;
    Some(days as f64 + time.map_or(Some(0.0), fraction_of_day)?)
}

fn digits(text: &str) -> Option<u32> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) { None } else { text.parse().ok() }
}

/// `10:30`, `10:30:05.25`, with `Z` or an offset such as `+02:00`, or with `AM` and `PM`.
fn fraction_of_day(time: &str) -> Option<f64> {
    let (time, offset) = split_offset(time)?;
    let upper = time.to_ascii_uppercase();
    let (time, half) = match (upper.strip_suffix("AM"), upper.strip_suffix("PM")) {
        (Some(time), _) => (time.trim_end(), Some(0)),
        (_, Some(time)) => (time.trim_end(), Some(12)),
        _ => (upper.as_str(), None),
    };
    let mut parts = time.split(':');
    let (hour, minute) = (digits(parts.next()?)?, digits(parts.next()?)?);
    let second = match parts.next() {
        Some(second) if second.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => second.parse().ok()?,
        Some(_) => return None,
        None => 0.0,
    };
    let hour = match half {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(half) => hour % 12 + half,
        None => hour,
    };
    if parts.next().is_some() || hour > 24 || minute > 59 || second > 60.0 {
        return None;
    }
    Some((f64::from(hour) * 3600.0 + f64::from(minute) * 60.0 + second - offset) / 86_400.0)
}

/// The time of day, and the seconds that its zone is ahead.
fn split_offset(time: &str) -> Option<(&str, f64)> {
    if let Some(time) = time.strip_suffix(['Z', 'z']).or(time.strip_suffix(" UTC")) {
        return Some((time, 0.0));
    }
    let Some(at) = time.rfind(['+', '-']) else { return Some((time, 0.0)) };
    let sign = if time[at..].starts_with('-') { -1.0 } else { 1.0 };
    let offset = time[at + 1..].replace(':', "");
    let (hours, minutes) = match offset.len() {
        2 => (digits(&offset)?, 0),
        4 if offset.is_ascii() => (digits(&offset[..2])?, digits(&offset[2..])?),
        _ => return None,
    };
    Some((time[..at].trim_end(), sign * f64::from(hours * 3600 + minutes * 60)))
}

/// Days since 1970-01-01 of a date that exists, by the calendar that is used today.
pub(crate) fn days_of(year: i64, month: u32, day: u32) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // Years begin in March, so that the day that may be missing is the last; 400 years have 146,097 days.
    let year = year - i64::from(month < 3);
    let month = i64::from((month + 9) % 12);
    let day_of_year = (153 * month + 2) / 5 + i64::from(day) - 1;
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    Some(era * 146_097 + year * 365 + year / 4 - year / 100 + day_of_year - 719_468)
}

/// A number of days since 1970-01-01, which is how columns of dates are kept, written as `2024-12-31`.
pub fn date_text(days: f64) -> String {
    // Beyond what a file can hold, the number is clearer; 4e6 days are the year 12,921.
    if days.abs() > 4e6 || days.is_nan() { format!("{days}") } else { spell(days.floor() as i64 * 86_400, 0, false) }
}

/// The date as ISO 8601 has it, for a number of seconds since 1970 and billionths of a second.
pub(crate) fn spell(seconds: i64, nanos: u32, with_time: bool) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = era * 400 + year + i64::from(month < 3);
    let mut text = format!("{year:04}-{month:02}-{day:02}");
    if with_time {
        text.push_str(&format!(" {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60));
        if nanos > 0 {
            text.push_str(format!(".{nanos:09}").trim_end_matches('0'));
        }
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    // python: (datetime.date(y, m, d) - datetime.date(1970, 1, 1)).days
    #[test]
    fn dates_are_days_since_1970() {
        for (text, days) in [
            ("1970-01-01", 0.0),
            ("2024-02-29", 19_782.0),
            ("1899-12-30", -25_569.0),
            ("1600-03-01", -135_080.0),
            ("2024-02-29T12:00", 19_782.5),
            ("2024-02-29 06:00:00", 19_782.25),
            ("2024-02-29T02:00:00.000+02:00", 19_782.0),
            ("2024-02-28T22:00:00-0200", 19_782.0),
            ("2024-02-29T18:00:00Z", 19_782.75),
            ("2024/02/29", 19_782.0),
        ] {
            assert_eq!(parse(text, DateFormat::Iso), Some(days), "{text}");
        }
        assert_eq!(parse("29.02.2024", DateFormat::DayFirst), Some(19_782.0));
        assert_eq!(parse("2/29/2024 6:00 PM", DateFormat::MonthFirst), Some(19_782.75));
        for text in ["2023-02-29", "2024-13-01", "2024-1", "12345678", "2024-02-29T25:00", "2024-02-29 x", "29-02-24"] {
            assert_eq!(parse(text, DateFormat::Iso), None, "{text}");
        }
    }

    #[test]
    fn spelling_and_parsing_are_inverse() {
        for days in (-200_000..200_000).step_by(97) {
            let text = spell(days * 86_400, 0, false);
            assert_eq!(parse(&text, DateFormat::Iso), Some(days as f64), "{text}");
        }
        assert_eq!(spell(-1, 500_000_000, true), "1969-12-31 23:59:59.5");
        assert_eq!((date_text(19_782.75), date_text(-0.5)), ("2024-02-29".to_owned(), "1969-12-31".to_owned()));
    }

    #[test]
    fn the_column_decides_what_comes_first() {
        let format = |texts: &[&str]| format_of(texts.iter().copied());
        assert_eq!(format(&["01/02/2024", "13/02/2024"]), Some((DateFormat::DayFirst, false)));
        assert_eq!(format(&["01/02/2024", "02/13/2024"]), Some((DateFormat::MonthFirst, false)));
        assert_eq!(format(&["01/02/2024", "03/04/2024"]), Some((DateFormat::MonthFirst, true)));
        assert_eq!(format(&["01.02.2024", "3.4.2024"]), Some((DateFormat::DayFirst, false)));
        assert_eq!(format(&["13/02/2024", "02/13/2024"]), None);
        assert_eq!(format(&[]), None);
    }
}
