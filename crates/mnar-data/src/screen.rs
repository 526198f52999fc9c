//! Looks over the columns that were read: what is wrong with them, all at once, and which are not features.

use crate::column_builder::{FinishedColumn, ODD};
use crate::dates::DateFormat;
use crate::error::DataError;
use crate::feature_table::{Categories, ColumnValues, FeatureColumn};
use crate::note::{IdentifierReason, Note};
use crate::values::folded;
use mnar::Labels;
use std::collections::{BTreeMap, HashSet};

/// The columns that stay, and what there is to say about them.
#[derive(Default)]
pub(crate) struct Screened {
    pub(crate) columns: Vec<FeatureColumn>,
    pub(crate) dates: Vec<(String, DateFormat)>,
    pub(crate) notes: Vec<Note>,
}

/// Rows from which on a column that counts them, or has a name of its own for each, is taken for an identifier: in a
/// shorter table that may be chance.
const ROWS: usize = 20;

/// Collects the columns, or everything that is wrong with them. With `choose`, identifiers are left out.
pub(crate) fn screen(
    read: Vec<Result<FinishedColumn, DataError>>,
    choose: bool,
    path: &str,
) -> Result<Screened, DataError> {
    let identifiers = identifiers(&read, choose);
    let (mut columns, mut problems) = (Vec::new(), Vec::new());
    let mut notes = identifier_notes(&read, &identifiers);
    for (result, reason) in read.into_iter().zip(identifiers) {
        match (result, reason) {
            (_, Some(_)) => {}
            (Ok(column), None) => columns.push(column),
            (Err(problem), None) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(DataError::all(problems, path));
    }
    describe(&columns.iter().collect::<Vec<_>>(), choose, &mut notes);
    let dates = columns.iter().filter_map(|column| Some((column.column.name.clone(), column.dates?.0))).collect();
    let columns = columns.into_iter().map(|column| column.column).collect();
    Ok(Screened { columns, dates, notes })
}

/// Which columns are left out as identifiers, and why. With `choose` unset, none is.
pub(crate) fn identifiers(read: &[Result<FinishedColumn, DataError>], choose: bool) -> Vec<Option<IdentifierReason>> {
    let reason = |result: &Result<FinishedColumn, DataError>| match result {
        Ok(column) => identifier(column),
        Err(DataError::TooManyLevels { levels, rows, .. }) if levels == rows => Some(IdentifierReason::AllDifferent),
        Err(_) => None,
    };
    let mut reasons: Vec<_> = read.iter().map(|result| reason(result).filter(|_| choose)).collect();
    // A table with identifiers only is used as it is, where it can be.
    if reasons.iter().all(Option::is_some) {
        let any = read.iter().any(Result::is_ok);
        reasons.iter_mut().zip(read).filter(|(_, result)| result.is_ok() == any).for_each(|(reason, _)| *reason = None);
    }
    reasons
}

/// Says which columns are left out as identifiers: those that could have been used first.
pub(crate) fn identifier_notes(
    read: &[Result<FinishedColumn, DataError>],
    reasons: &[Option<IdentifierReason>],
) -> Vec<Note> {
    let (mut notes, mut too_many) = (Vec::new(), Vec::new());
    for (result, reason) in read.iter().zip(reasons) {
        match (result, reason) {
            (Ok(FinishedColumn { column, .. }), Some(reason)) => {
                notes.push(Note::Identifier { column: column.name.clone(), reason: *reason });
            }
            (Err(DataError::TooManyLevels { column, .. }), Some(reason)) => {
                too_many.push(Note::Identifier { column: column.clone(), reason: *reason });
            }
            _ => {}
        }
    }
    notes.append(&mut too_many);
    notes
}

/// What was found out about the columns.
pub(crate) fn describe(columns: &[&FinishedColumn], choose: bool, notes: &mut Vec<Note>) {
    let name = |column: &&FinishedColumn| column.column.name.clone();
    let commas: Vec<String> = columns.iter().filter(|column| column.commas).map(name).collect();
    if !commas.is_empty() {
        notes.push(Note::DecimalCommas { columns: commas });
    }
    let thousands: Vec<String> = columns.iter().filter(|column| column.thousands).map(name).collect();
    if !thousands.is_empty() {
        notes.push(Note::Thousands { columns: thousands });
    }
    let zeros: Vec<String> = columns.iter().filter(|column| column.leading_zeros).map(name).collect();
    if !zeros.is_empty() {
        notes.push(Note::LeadingZeros { columns: zeros });
    }
    for column in columns {
        if let Some((looks_like, example)) = &column.disguise {
            let (column, looks_like, example) = (name(column), *looks_like, example.clone());
            notes.push(Note::Disguised { column, looks_like, example });
        }
    }
    for column in columns {
        if let Some(odd) = &column.odd {
            let values = odd.values.iter().take(ODD).cloned().collect();
            let (rows, of, kinds) = (odd.rows(), odd.of, odd.values.len());
            notes.push(Note::MostlyNumbers { column: name(column), values, kinds, rows, of });
        }
    }
    for format in [DateFormat::Iso, DateFormat::DayFirst, DateFormat::MonthFirst] {
        for ambiguous in [false, true] {
            let these = columns.iter().filter(|column| column.dates == Some((format, ambiguous)));
            let columns: Vec<String> = these.map(name).collect();
            if !columns.is_empty() {
                notes.push(Note::Dates { columns, format, ambiguous });
            }
        }
    }
    for column in columns.iter().filter(|column| !column.marks.is_empty()) {
        notes.push(Note::MissingValues { column: name(column), marks: column.marks.clone() });
    }
    if !choose {
        return;
    }
    let constant: Vec<String> = columns.iter().filter(|column| is_constant(&column.column.values)).map(name).collect();
    if !constant.is_empty() {
        notes.push(Note::Constant { columns: constant });
    }
    for column in columns {
        if let ColumnValues::Categorical(names) = &column.column.values {
            notes.extend(similar(names.levels(), Some(&column.column.name)));
        }
    }
}

/// Notes on classes that differ only by case or blanks.
pub(crate) fn similar_classes(labels: &Labels) -> Vec<Note> {
    similar(labels.names(), None)
}

fn similar(names: &[String], column: Option<&str>) -> Vec<Note> {
    let mut alike: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in names {
        alike.entry(folded(name)).or_default().push(name.clone());
    }
    let several = alike.into_values().filter(|names| names.len() > 1);
    several.map(|names| Note::SimilarNames { column: column.map(str::to_owned), names }).collect()
}

/// Whether two rows or more all have the same value, or none.
fn is_constant(values: &ColumnValues) -> bool {
    match values {
        ColumnValues::Numeric(values) => {
            let first = values.first().copied().unwrap_or(f32::NAN);
            let same = |value: &f32| *value == first || (value.is_nan() && first.is_nan());
            values.len() > 1 && values.iter().all(same)
        }
        ColumnValues::Categorical(names) => {
            names.len() > 1 && names.levels().len() < 2 && (1..names.len()).all(|i| names.code(i) == names.code(0))
        }
    }
}

fn identifier(column: &FinishedColumn) -> Option<IdentifierReason> {
    if column.forced || column.dates.is_some() || column.disguise.is_some() {
        return None;
    }
    let named = names_identifier(&column.column.name);
    // Numbers but for some cells, under a name that says nothing else, are a measurement.
    if column.odd.is_some() && !named {
        return None;
    }
    match &column.column.values {
        ColumnValues::Numeric(values) => {
            let counts = |from: f64| values.iter().enumerate().all(|(i, value)| *value == (i as f64 + from) as f32);
            // From 2^53 on not even a double tells whole numbers apart.
            let long = |value: &f32| value.is_finite() && value.abs() >= 9_007_199_254_740_992.0;
            if values.len() >= ROWS && (counts(0.0) || counts(1.0)) {
                Some(IdentifierReason::CountsRows)
            } else if values.len() >= ROWS && values.iter().all(long) {
                Some(IdentifierReason::LongNumbers)
            } else {
                (named && different_numbers(values)).then_some(IdentifierReason::Name)
            }
        }
        ColumnValues::Categorical(names) => {
            if !different_names(names) {
                None
            } else if names.len() >= ROWS {
                Some(IdentifierReason::AllDifferent)
            } else {
                named.then_some(IdentifierReason::Name)
            }
        }
    }
}

fn different_names(names: &Categories) -> bool {
    names.len() > 1 && names.levels().len() == names.len()
}

/// Whether all are whole and different. Beyond 2^24 neighbours fall together as `f32`; then half of them will do.
fn different_numbers(values: &[f32]) -> bool {
    let whole = values.len() > 1 && values.iter().all(|value| value.fract() == 0.0);
    let large = values.iter().any(|value| value.abs() > 16_777_216.0);
    let different = || values.iter().map(|value| value.to_bits()).collect::<HashSet<_>>().len();
    whole && different() >= if large { values.len() / 2 } else { values.len() }
}

/// Whether a column is called like an identifier. pandas writes the index of a table without a name, and reads it
/// as `Unnamed: 0`.
pub(crate) fn names_identifier(name: &str) -> bool {
    const NAMES: [&str; 14] = [
        "",
        "id",
        "ids",
        "idx",
        "index",
        "row",
        "rowid",
        "row number",
        "rownumber",
        "rownum",
        "row names",
        "uuid",
        "guid",
        "identifier",
    ];
    let name = name.trim().to_lowercase().replace(['_', '-', '.'], " ");
    NAMES.contains(&name.as_str()) || name.ends_with(" id") || name.starts_with("unnamed:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_identifiers() {
        for name in ["id", "ID", "Unnamed: 0", "", "patient_id", "Individual ID", "row", "row.names", "Index"] {
            assert!(names_identifier(name), "{name}");
        }
        for name in ["bid", "valid", "body mass index", "rows", "age", "idea"] {
            assert!(!names_identifier(name), "{name}");
        }
    }

    #[test]
    fn large_numbers_that_fall_together_are_still_identifiers() {
        let ids: Vec<f32> = (0..50).map(|i| (4_000_000_000_f64 + f64::from(i) * 300.0) as f32).collect();
        assert!(different_numbers(&ids));
        assert!(!different_numbers(&[1.0, 2.0, 2.0]));
        assert!(!different_numbers(&[1.5, 2.0, 3.0]));
        assert!(!different_numbers(&[1.0, f32::NAN]));
    }
}
