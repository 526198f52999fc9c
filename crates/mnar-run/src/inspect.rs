//! What a run would make of data, found out without running anything.

use crate::error::RunError;
use mnar::analysis::LabellingRate;
use mnar::covariates::Group;
use mnar::crossfit::FoldPlan;
use mnar::{Covariates, Labels, RareClass, Remedy};
use mnar_data::{
    ColumnFate, ColumnValues, FeatureColumn, ImageShape, ReadOptions, Source, Survey, SurveyedColumn, date_text, survey,
};
use serde::Serialize;
use std::error::Error as StdError;

/// Everything that can be told about data before a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Inspection {
    /// The data.
    pub source: String,
    /// What they are, such as `a table` or `an image folder`.
    pub kind: String,
    /// Number of rows, or images.
    pub rows: usize,
    /// The shape of images, if all have the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<ImageShape>,
    /// The label column, where one was named.
    pub label: Option<String>,
    /// How many rows have a label; `None` if labels are not known.
    pub labelled: Option<usize>,
    /// The classes, in their order.
    pub classes: Vec<ClassCount>,
    /// The columns, in the order of the file.
    pub columns: Vec<ColumnInspection>,
    /// Without a label: columns of few values with gaps, which could be it, the one with most gaps first.
    pub could_be_label: Vec<String>,
    /// The columns along which the labelling rate differs most, at most three.
    pub differs_most: Vec<ColumnDifference>,
    /// What in an image folder was not read.
    pub skipped: Vec<String>,
    /// What was detected in the file, and what was done about it.
    pub notes: Vec<String>,
    /// What could be done about some of the notes.
    pub hints: Vec<NoteHint>,
    /// What would stop a run.
    pub problems: Vec<Problem>,
}

/// What could be done about a note.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NoteHint {
    /// The note.
    pub note: String,
    /// What could be done, each by itself.
    pub remedies: Vec<Remedy>,
}

/// The labels of a class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassCount {
    /// The class.
    pub name: String,
    /// How many rows have this label.
    pub rows: usize,
    /// Their share of the labelled rows.
    pub share: f64,
}

/// A column: how it was read, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ColumnInspection {
    /// Its name.
    pub name: String,
    /// What its values are.
    pub kind: ColumnKind,
    /// The share of rows without a value; `None` if the column could not be read.
    pub missing: Option<f64>,
    /// Whether it is a feature.
    pub used: bool,
    /// Why it is not.
    pub why_not: Option<String>,
    /// How many different names there are.
    pub levels: Option<usize>,
    /// What its values are like; `None` if there are none.
    pub summary: Option<Summary>,
    /// The labelling rate of its groups of at least 10 rows: names, fifths of numbers, and missing values.
    pub labelling: Vec<LabellingRate>,
}

impl ColumnInspection {
    /// The groups with the lowest and the highest labelling rate, if there are two or more.
    pub fn extremes(&self) -> Option<(&LabellingRate, &LabellingRate)> {
        let by_rate = |a: &&LabellingRate, b: &&LabellingRate| a.rate.total_cmp(&b.rate);
        let (lowest, highest) = (self.labelling.iter().min_by(by_rate)?, self.labelling.iter().max_by(by_rate)?);
        (self.labelling.len() > 1).then_some((lowest, highest))
    }
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ColumnKind {
    /// Numbers.
    Number,
    /// Names.
    Name,
    /// Dates.
    Date,
    /// They could not be read.
    Unreadable,
}

/// What the values of a column are like.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Summary {
    /// Of numbers.
    Numbers {
        /// The least.
        min: f64,
        /// The one in the middle.
        median: f64,
        /// The largest.
        max: f64,
    },
    /// Of dates, as year-month-day.
    Dates {
        /// The first.
        min: String,
        /// The one in the middle.
        median: String,
        /// The last.
        max: String,
    },
    /// Of names.
    Names {
        /// The most common ones, at most three.
        most_common: Vec<NameCount>,
    },
}

/// A name and its rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NameCount {
    /// The name.
    pub name: String,
    /// How many rows have it.
    pub rows: usize,
}

/// How much the labelling rate differs along a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnDifference {
    /// The column.
    pub column: String,
    /// The chi-square statistic of its groups against being labelled.
    pub statistic: f64,
    /// Its degrees of freedom.
    pub df: usize,
}

/// Something that would stop a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Problem {
    /// What it is.
    pub message: String,
    /// What would cure it.
    pub remedies: Vec<Remedy>,
}

impl Problem {
    fn new(error: &RunError) -> Self {
        let (mut message, mut cause) = (error.to_string(), error.source());
        while let Some(error) = cause {
            message.push_str(&format!(": {error}"));
            cause = error.source();
        }
        Self { message, remedies: error.remedies() }
    }
}

/// Rows of a group below which its labelling rate is not told: of 9, one label more or less moves it by 11%.
const FEWEST_ROWS: usize = 10;

/// How many common names, and columns along which the labelling rate differs, are told.
const TOLD: usize = 3;

/// Different values up to which a column with gaps could be the label.
const FEW_VALUES: usize = 20;

/// Looks at data: how every column is read, what becomes of it, and how often rows are labelled along it. It fails only if
/// the data cannot be read at all; what would stop a run is told among the problems.
///
/// ```
/// use mnar_data::{ReadOptions, TextTable};
/// let row = |i: usize| ["North,sick\n", "South,\n", "North,well\n", "South,\n", "South,well\n"][i % 5];
/// let rows: String = (0..100).map(row).collect();
/// let table = TextTable::new(format!("hospital,diagnosis\n{rows}"), "clinic.csv");
/// let found = mnar_run::inspect(&table, &ReadOptions::default())?;
/// assert_eq!(found.could_be_label, ["diagnosis"]);
/// let found = mnar_run::inspect(&table, &ReadOptions { label: Some("diagnosis".into()), ..Default::default() })?;
/// assert_eq!(found.differs_most[0].column, "hospital");
/// # Ok::<(), mnar_run::RunError>(())
/// ```
pub fn inspect<'a>(source: impl Into<Source<'a>>, options: &ReadOptions) -> Result<Inspection, RunError> {
    let source = source.into();
    let mut found = survey(source, options)?;
    let mut columns = Vec::with_capacity(found.columns.len());
    let mut differences = Vec::new();
    for column in &found.columns {
        let (inspected, difference) = inspect_column(column, found.rows, found.labels.as_ref())?;
        columns.push(inspected);
        differences.extend(difference);
    }
    let per_df = |difference: &ColumnDifference| difference.statistic / difference.df as f64;
    differences.retain(|difference| difference.statistic > 0.0);
    // A stable sort: of equal ones, the first in the file stays first.
    differences.sort_by(|a, b| per_df(b).total_cmp(&per_df(a)));
    differences.truncate(TOLD);
    let named = found.columns.iter().any(|column| column.fate == ColumnFate::Label);
    let could_be_label = if found.labels.is_none() && !named { guesses(&found.columns) } else { Vec::new() };
    let (problems, about_labels) = problems(&mut found, &source.name());
    let notes = found.notes.iter().map(ToString::to_string).chain(about_labels).chain(separating(&found));
    let with_hint = found.notes.iter().filter(|note| !note.remedies().is_empty());
    let hints = with_hint.map(|note| NoteHint { note: note.to_string(), remedies: note.remedies() });
    Ok(Inspection {
        notes: notes.collect(),
        hints: hints.collect(),
        source: source.name(),
        kind: found.kind.to_owned(),
        rows: found.rows,
        shape: found.shape,
        label: options.label.clone().filter(|_| found.labels.is_some() || named),
        labelled: found.labels.as_ref().map(Labels::n_labelled),
        classes: found.labels.as_ref().map_or_else(Vec::new, classes),
        columns,
        could_be_label,
        differs_most: differences,
        problems,
        skipped: found.skipped,
    })
}

/// Features that tell exactly which rows are labelled.
fn separating(found: &Survey) -> Vec<String> {
    let Some(labels) = &found.labels else { return Vec::new() };
    let features = found.columns.iter().filter(|column| column.fate == ColumnFate::Feature);
    let separates =
        features.filter(|column| column.values.as_ref().is_some_and(|values| values.covariate().separates(labels)));
    let say = |column: &SurveyedColumn| {
        format!(
            "`{}` tells exactly which rows are labelled; if it is filled in with the label, leave it out",
            column.name
        )
    };
    separates.map(say).collect()
}

fn classes(labels: &Labels) -> Vec<ClassCount> {
    let all = labels.n_labelled().max(1) as f64;
    let counted = labels.names().iter().zip(labels.counts());
    counted.map(|(name, &rows)| ClassCount { name: name.clone(), rows, share: rows as f64 / all }).collect()
}

/// Everything that would stop a run, or the estimate, and what there is to say about the labels.
fn problems(found: &mut Survey, source_name: &str) -> (Vec<Problem>, Vec<String>) {
    let data = std::mem::take(&mut found.problems).into_iter();
    let mut problems: Vec<Problem> = data.map(|problem| Problem::new(&problem.into())).collect();
    for column in found.columns.iter().filter(|column| column.fate == ColumnFate::CopyOfLabel) {
        let (source_name, column) = (source_name.to_owned(), column.name.clone());
        problems.push(Problem::new(&RunError::LeakedLabel { source_name, column }));
    }
    // Without any label, that has been told.
    let mut notes = Vec::new();
    if let Some(labels) = found.labels.as_ref().filter(|labels| labels.n_labelled() > 0) {
        match check(labels) {
            Ok(set_aside) => notes.extend(set_aside.iter().map(ToString::to_string)),
            Err(mnar::Error::OneClass { class }) => notes.push(format!(
                "only `{class}` is ever labelled: how common it is can only be bounded, unless its share is known and given"
            )),
            Err(error) => problems.push(Problem::new(&error.into())),
        }
    }
    (problems, notes)
}

/// What the estimate needs of labels: classes, gaps, and enough labels of each class for the folds.
fn check(labels: &Labels) -> Result<Vec<RareClass>, mnar::Error> {
    let labels = Labels::new(labels.as_slice().to_vec(), labels.names().to_vec())?;
    let (labels, rare) = labels.without_rare(FoldPlan::FEWEST_LABELS)?;
    FoldPlan::for_labels(&labels, FOLDS, 0)?;
    Ok(rare)
}

/// Folds of the cross-fitting by default.
const FOLDS: usize = 5;

fn inspect_column(
    column: &SurveyedColumn,
    rows: usize,
    labels: Option<&Labels>,
) -> Result<(ColumnInspection, Option<ColumnDifference>), RunError> {
    let used = column.fate == ColumnFate::Feature;
    let mut inspected = ColumnInspection {
        name: column.name.clone(),
        kind: kind(column),
        missing: None,
        used,
        why_not: why_not(column.fate),
        levels: None,
        summary: None,
        labelling: Vec::new(),
    };
    if let Some((levels, present)) = column.too_many_names {
        inspected.levels = Some(levels);
        inspected.missing = Some((rows - present.min(rows)) as f64 / rows as f64);
    }
    let Some(values) = &column.values else { return Ok((inspected, None)) };
    inspected.missing = Some(missing_share(values));
    inspected.summary = summary(values, column.is_date);
    if let ColumnValues::Categorical(names) = &values.values {
        inspected.levels = Some(names.levels().len());
    }
    let Some(labels) = labels.filter(|_| column.fate != ColumnFate::Label) else { return Ok((inspected, None)) };
    let covariates = Covariates::new(vec![values.covariate()])?;
    let groups: Vec<Group> = covariates.columns().iter().flat_map(|column| column.groups()).collect();
    let large = groups.iter().filter(|group| group.rows.len() >= FEWEST_ROWS);
    inspected.labelling = large.map(|group| rate(group, values, column.is_date, labels)).collect();
    // What the user left out, and what came with the label, is not what labelling may depend on.
    let candidate = !matches!(column.fate, ColumnFate::Ignored | ColumnFate::RowName | ColumnFate::CopyOfLabel);
    let difference = difference(&column.name, &inspected.labelling).filter(|_| candidate);
    Ok((inspected, difference))
}

fn kind(column: &SurveyedColumn) -> ColumnKind {
    match column.values.as_ref().map(|column| &column.values) {
        None if column.too_many_names.is_some() => ColumnKind::Name,
        None => ColumnKind::Unreadable,
        Some(ColumnValues::Numeric(_)) if column.is_date => ColumnKind::Date,
        Some(ColumnValues::Numeric(_)) => ColumnKind::Number,
        Some(ColumnValues::Categorical(_)) => ColumnKind::Name,
    }
}

fn why_not(fate: ColumnFate) -> Option<String> {
    Some(match fate {
        ColumnFate::Feature => return None,
        ColumnFate::Label => "it is the label".to_owned(),
        ColumnFate::RowName => "it names the rows".to_owned(),
        ColumnFate::Ignored => "it is ignored, as asked".to_owned(),
        ColumnFate::Identifier(reason) => format!("identifier: {reason}"),
        ColumnFate::Constant => "constant: it does not vary".to_owned(),
        ColumnFate::CopyOfLabel => "it repeats the label".to_owned(),
        _ => "it cannot be used; see the problems".to_owned(),
    })
}

fn missing_share(column: &FeatureColumn) -> f64 {
    let (missing, rows) = match &column.values {
        ColumnValues::Numeric(values) => (values.iter().filter(|value| value.is_nan()).count(), values.len()),
        ColumnValues::Categorical(names) => {
            ((0..names.len()).filter(|&row| names.code(row).is_none()).count(), names.len())
        }
    };
    missing as f64 / rows.max(1) as f64
}

fn summary(column: &FeatureColumn, is_date: bool) -> Option<Summary> {
    match &column.values {
        ColumnValues::Numeric(values) => {
            let mut present: Vec<f32> = values.iter().copied().filter(|value| !value.is_nan()).collect();
            present.sort_unstable_by(f32::total_cmp);
            let (min, max) = (number(*present.first()?), number(*present.last()?));
            let (below, above) = (present[(present.len() - 1) / 2], present[present.len() / 2]);
            let median = if below == above { number(below) } else { (number(below) + number(above)) / 2.0 };
            Some(match is_date {
                true => Summary::Dates { min: date_text(min), median: date_text(median), max: date_text(max) },
                false => Summary::Numbers { min, median, max },
            })
        }
        ColumnValues::Categorical(names) => {
            let mut counts: Vec<NameCount> =
                names.levels().iter().map(|name| NameCount { name: name.clone(), rows: 0 }).collect();
            (0..names.len()).filter_map(|row| names.code(row)).for_each(|code| counts[code].rows += 1);
            counts.sort_by_key(|count| std::cmp::Reverse(count.rows));
            counts.truncate(TOLD);
            (!counts.is_empty()).then_some(Summary::Names { most_common: counts })
        }
    }
}

/// The number that is written the same: 0.1, not 0.10000000149.
fn number(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

fn rate(group: &Group, column: &FeatureColumn, is_date: bool, labels: &Labels) -> LabellingRate {
    let labelled = group.rows.iter().filter(|&&row| labels.is_labelled(row)).count();
    let rows = group.rows.len();
    let name = match &column.values {
        ColumnValues::Numeric(values) if is_date => date_range(values, &group.rows),
        _ => None,
    };
    let group = name.unwrap_or_else(|| group.name.clone());
    LabellingRate { group, rows, rate: labelled as f64 / rows as f64 }
}

/// The first and the last date of some rows; `None` where they are missing.
fn date_range(values: &[f32], rows: &[usize]) -> Option<String> {
    let days = rows.iter().map(|&row| f64::from(values[row])).filter(|value| !value.is_nan());
    let (first, last) = days.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), day| (a.min(day), b.max(day)));
    let (first, last) = (first.is_finite().then(|| date_text(first))?, date_text(last));
    Some(if first == last { first } else { format!("{first} to {last}") })
}

/// Pearson's chi-square statistic of the groups against being labelled.
fn difference(column: &str, groups: &[LabellingRate]) -> Option<ColumnDifference> {
    let rows: f64 = groups.iter().map(|group| group.rows as f64).sum();
    let labelled: f64 = groups.iter().map(|group| group.rate * group.rows as f64).sum();
    let overall = labelled / rows;
    if groups.len() < 2 || overall <= 0.0 || overall >= 1.0 {
        return None;
    }
    // Labelled and unlabelled cells together: n (rate − overall)² (1/overall + 1/(1 − overall)).
    let cells = groups.iter().map(|group| group.rows as f64 * (group.rate - overall).powi(2));
    let statistic = cells.sum::<f64>() / (overall * (1.0 - overall));
    Some(ColumnDifference { column: column.to_owned(), statistic, df: groups.len() - 1 })
}

/// Columns of few values with gaps, the one with most gaps first.
fn guesses(columns: &[SurveyedColumn]) -> Vec<String> {
    let mut found: Vec<(f64, &str)> = Vec::new();
    for column in columns.iter().filter(|column| column.fate == ColumnFate::Feature && !column.is_date) {
        let Some(values) = &column.values else { continue };
        let share = gaps(values);
        if share > 0.0 && (2..=FEW_VALUES).contains(&different(values)) {
            found.push((share, &column.name));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().map(|(_, name)| name.to_owned()).collect()
}

/// The share of rows that would have no label: those without a value, and those with -1 beside classes numbered from 0.
fn gaps(column: &FeatureColumn) -> f64 {
    let marked = match &column.values {
        ColumnValues::Numeric(values) => {
            let classes = values.iter().all(|value| value.is_nan() || (*value >= -1.0 && value.fract() == 0.0));
            if classes && different(column) > 2 { values.iter().filter(|value| **value == -1.0).count() } else { 0 }
        }
        // A mark that only labels have: elsewhere it is a name.
        ColumnValues::Categorical(names) => match names.levels().iter().position(|name| name == "?") {
            Some(mark) => (0..names.len()).filter(|&row| names.code(row) == Some(mark)).count(),
            None => 0,
        },
    };
    let rows = match &column.values {
        ColumnValues::Numeric(values) => values.len(),
        ColumnValues::Categorical(names) => names.len(),
    };
    missing_share(column) + marked as f64 / rows.max(1) as f64
}

/// How many different values there are, as far as it matters.
fn different(column: &FeatureColumn) -> usize {
    match &column.values {
        ColumnValues::Categorical(names) => names.levels().len(),
        ColumnValues::Numeric(values) => {
            let mut seen: Vec<f32> = Vec::new();
            for &value in values.iter().filter(|value| !value.is_nan()) {
                if !seen.contains(&value) {
                    seen.push(value);
                }
                if seen.len() > FEW_VALUES {
                    break;
                }
            }
            seen.len()
        }
    }
}
