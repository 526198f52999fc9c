//! Looks at data without stopping at what cannot be used: every column and what becomes of it, and all that is wrong.

use crate::arrow_table::{Source, SourceKind};
use crate::column_builder::FinishedColumn;
use crate::columns::{find, twice};
use crate::dataset::{FolderFiles, Inputs, Kind, ReadInputs, ReadOptions, check_stdin, list_image_folder};
use crate::encoder::encoding_of;
use crate::error::{DataError, list};
use crate::feature_table::{Categories, ColumnValues, FeatureColumn, MISSING};
use crate::image_folder;
use crate::images::ImageShape;
use crate::label_file;
use crate::note::{IdentifierReason, Note};
use crate::row_names::RowNames;
use crate::screen::{describe, identifier_notes, identifiers};
use crate::table_reader::{Purpose, Read, in_sheet, read_all};
use mnar::Labels;
use std::path::{Path, PathBuf};

/// What data hold, and what [`read_dataset`](crate::read_dataset) and an encoder would make of them.
#[derive(Debug)]
#[non_exhaustive]
pub struct Survey {
    /// Number of rows, or images.
    pub rows: usize,
    /// What was found, such as `a table` or `an image folder`.
    pub kind: &'static str,
    /// The columns of a table in the order of the file, the label among them; of arrays of numbers, one per number.
    pub columns: Vec<SurveyedColumn>,
    /// The shape of images, if all have the same.
    pub shape: Option<ImageShape>,
    /// The labels, where they could be found; all may be missing.
    pub labels: Option<Labels>,
    /// What in an image folder was not read.
    pub skipped: Vec<String>,
    /// What was detected, and what was done about it.
    pub notes: Vec<Note>,
    /// Everything that would stop [`read_dataset`](crate::read_dataset) or an encoder.
    pub problems: Vec<DataError>,
}

/// A column of a table and what becomes of it.
#[derive(Debug)]
#[non_exhaustive]
pub struct SurveyedColumn {
    /// Its name.
    pub name: String,
    /// Its values; `None` if they could not be read.
    pub values: Option<FeatureColumn>,
    /// Of a column with too many different names to be kept: how many there are, and how many rows have one.
    pub too_many_names: Option<(usize, usize)>,
    /// Whether its numbers are dates, as days since 1970-01-01.
    pub is_date: bool,
    /// What becomes of it.
    pub fate: ColumnFate,
}

impl SurveyedColumn {
    fn new(name: String, fate: ColumnFate) -> Self {
        Self { name, values: None, too_many_names: None, is_date: false, fate }
    }
}

/// What becomes of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnFate {
    /// It is a feature.
    Feature,
    /// It is the label.
    Label,
    /// It names the rows.
    RowName,
    /// It was asked to be left out.
    Ignored,
    /// It looks like an identifier, and is left out.
    Identifier(IdentifierReason),
    /// It does not vary, and is left out.
    Constant,
    /// It repeats the label, and would leak it.
    CopyOfLabel,
    /// It cannot be used, and stops a run.
    Unusable,
}

/// Looks at data as [`read_dataset`](crate::read_dataset) would read them, in a single pass where nothing is wrong with
/// the label. It fails only if the data cannot be read at all. Without a label, all columns of a table are taken for
/// features.
///
/// ```
/// use mnar_data::{ColumnFate, ReadOptions, TextTable, survey};
/// let table = TextTable::new("legs,coat,planet,label\n4,fur,Earth,cat\n2,,Earth,\n4,fur,Earth,dog\n", "pets.csv");
/// let found = survey(&table, &ReadOptions { label: Some("label".into()), ..Default::default() })?;
/// assert_eq!(found.columns[2].fate, ColumnFate::Constant);
/// assert!(found.problems.is_empty());
/// let found = survey(&table, &ReadOptions { label: Some("lable".into()), ..Default::default() })?;
/// assert!(found.problems[0].to_string().contains("did you mean `label`?"));
/// # Ok::<(), mnar_data::DataError>(())
/// ```
pub fn survey<'a>(source: impl Into<Source<'a>>, options: &ReadOptions) -> Result<Survey, DataError> {
    let source = source.into();
    check_stdin(source, options)?;
    let source = source.with_memory(source.memory.resolved());
    let kind = Kind::of_source(source)?;
    match (kind, source.kind) {
        (Kind::ImageFolder, SourceKind::Path(path)) => survey_folder(path, options, source),
        (Kind::Table, _) | (_, SourceKind::Text(_) | SourceKind::Table(_)) => survey_table(source, options),
        (kind, SourceKind::Path(path)) => survey_arrays(kind, path, options, source),
    }
}

impl Survey {
    fn of(kind: Kind, rows: usize) -> Self {
        let (columns, skipped, notes, problems) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { rows, kind: kind.name(), columns, shape: None, labels: None, skipped, notes, problems }
    }

    /// Puts in labels, from another file where there is one.
    fn label(
        &mut self,
        inside: Option<Labels>,
        options: &ReadOptions,
        row_names: Option<&RowNames>,
        source: Source<'_>,
        expected: bool,
    ) {
        let shown = &source.name();
        let labels = match (&options.labels_file, inside) {
            (Some(file), inside) => {
                let rows = label_file::Rows { count: self.rows, names: row_names, folders: inside.as_ref() };
                label_file::read(file, options, rows, source).map(Some)
            }
            (None, Some(labels)) => Ok(Some((labels, Vec::new()))),
            (None, None) if expected => {
                let what = format!("{} has no labels", self.kind);
                Err(DataError::NoLabelsInside { path: shown.to_owned(), what })
            }
            (None, None) => Ok(None),
        };
        match labels {
            Err(error) => self.problems.push(error),
            Ok(None) => {}
            Ok(Some((labels, notes))) => {
                self.notes.extend(notes);
                if labels.n_labelled() == 0 {
                    self.problems.push(DataError::core(shown, mnar::Error::NoLabels { n: labels.len() }));
                }
                self.labels = Some(labels);
            }
        }
    }

    /// Settles what becomes of the features, now that the labels are known.
    fn settle(&mut self, shown: &str) {
        for column in self.columns.iter_mut().filter(|column| column.fate == ColumnFate::Feature) {
            let Some(values) = &column.values else { continue };
            match encoding_of(values, shown) {
                Ok(Some(_)) => {}
                Ok(None) => column.fate = ColumnFate::Constant,
                Err(problem) => {
                    column.fate = ColumnFate::Unusable;
                    self.problems.push(problem);
                }
            }
            if let Some(labels) = &self.labels
                && values.repeats(labels)
            {
                column.fate = ColumnFate::CopyOfLabel;
            }
        }
        let used = |column: &SurveyedColumn| column.fate == ColumnFate::Feature || column.fate == ColumnFate::Unusable;
        if !self.columns.iter().any(used) {
            let constant = self.columns.iter().filter(|column| column.fate == ColumnFate::Constant);
            let dropped: Vec<String> = constant.map(|column| column.name.clone()).collect();
            let path = shown.to_owned();
            self.problems.push(match dropped.is_empty() {
                true => DataError::NoFeatures { path },
                false => DataError::AllConstant { path, dropped: list(&dropped) },
            });
        }
    }
}

fn survey_table(source: Source<'_>, options: &ReadOptions) -> Result<Survey, DataError> {
    let shown = source.name();
    let within = options.clone();
    let source = within.within(source);
    let (read, trouble, without);
    let mut options = options;
    match read_all(source, &Purpose::Survey(options), None) {
        Ok(all) => (read, trouble) = (all, None),
        // A label of a type that is not one stops the reader; the other columns can still be shown.
        Err(error) if options.label.is_some() && !matches!(error, DataError::Memory { .. } | DataError::Io { .. }) => {
            without = ReadOptions { label: None, ..options.clone() };
            let Ok(all) = read_all(source, &Purpose::Survey(&without), None) else { return Err(error) };
            (read, trouble) = (all, Some(error));
            options = &without;
        }
        Err(error) => return Err(error),
    }
    let mut survey = Survey::of(Kind::Table, read.rows);
    survey.problems.extend(trouble);
    let roles = Roles::find(&read.header, options, &shown, &mut survey.problems);
    let Read { columns, positions, header, labels, notes, .. } = read;
    survey.problems = survey.problems.into_iter().map(|problem| in_sheet(problem, &notes)).collect();
    survey.notes = notes;
    survey.columns = sort_out(columns, &positions, &roles, options, &shown, &mut survey);
    let mut inside = None;
    if let Some(labels) = labels.filter(|_| options.labels_file.is_none()) {
        match label_file::finish(labels, options, &shown) {
            Ok((labels, notes)) => {
                inside = Some(labels);
                survey.notes.extend(notes);
            }
            Err(problem) => survey.problems.push(problem),
        }
    }
    if let Some(label) = roles.label {
        let at = positions.partition_point(|position| *position < label);
        let values = inside.as_ref().map(|labels| column_of(labels, &header[label]));
        let name = header[label].clone();
        survey.columns.insert(at, SurveyedColumn { values, ..SurveyedColumn::new(name, ColumnFate::Label) });
    }
    survey.label(inside, options, None, source, false);
    survey.settle(&shown);
    Ok(survey)
}

/// The columns that have a role by name.
struct Roles {
    label: Option<usize>,
    id: Option<usize>,
    left_out: Vec<usize>,
}

impl Roles {
    /// Finds them, and says which names are not columns.
    fn find(header: &[String], options: &ReadOptions, path: &str, problems: &mut Vec<DataError>) -> Self {
        let mut known = |name: &String| find(header, name, path).map_err(|problem| problems.push(problem)).ok();
        let label = match (&options.label, &options.labels_file) {
            (Some(label), Some(_)) => header.iter().position(|name| name == label.trim()),
            (label, _) => label.as_ref().and_then(&mut known),
        };
        let id = options.id.as_ref().and_then(&mut known);
        let mut left_out: Vec<usize> = options.ignore.iter().filter_map(&mut known).collect();
        for name in &options.categorical {
            known(name);
        }
        if let Some(only) = &options.features {
            let only: Vec<usize> = only.iter().filter_map(&mut known).collect();
            left_out.extend((0..header.len()).filter(|column| !only.contains(column)));
        }
        if let Some(label) = label.filter(|_| options.labels_file.is_none()) {
            if options.ignore.iter().any(|name| header[label] == name.trim()) {
                problems.push(twice(path, &header[label], "the label", "ignored"));
            }
            if id == Some(label) {
                problems.push(twice(path, &header[label], "the label", "the name of the row"));
            }
        }
        Self { label, id, left_out }
    }

    fn of(&self, position: usize) -> Option<ColumnFate> {
        if self.id == Some(position) {
            Some(ColumnFate::RowName)
        } else {
            self.left_out.contains(&position).then_some(ColumnFate::Ignored)
        }
    }
}

/// What becomes of every column but the label.
fn sort_out(
    columns: Vec<Result<FinishedColumn, DataError>>,
    positions: &[usize],
    roles: &Roles,
    options: &ReadOptions,
    path: &str,
    survey: &mut Survey,
) -> Vec<SurveyedColumn> {
    let choose = options.features.is_none();
    let mut sorted: Vec<Option<SurveyedColumn>> = Vec::with_capacity(columns.len());
    let (mut candidates, mut places) = (Vec::new(), Vec::new());
    for (place, (column, &position)) in columns.into_iter().zip(positions).enumerate() {
        sorted.push(None);
        match roles.of(position) {
            // What is ignored may be as it likes, but names of rows are needed.
            Some(ColumnFate::RowName) => {
                sorted[place] = Some(surveyed(column, ColumnFate::RowName, &mut survey.problems));
            }
            Some(fate) => sorted[place] = Some(surveyed(column, fate, &mut Vec::new())),
            None => {
                candidates.push(column);
                places.push(place);
            }
        }
    }
    let reasons = identifiers(&candidates, choose);
    survey.notes.extend(identifier_notes(&candidates, &reasons));
    let kept = candidates.iter().zip(&reasons).filter(|(_, reason)| reason.is_none());
    describe(&kept.filter_map(|(column, _)| column.as_ref().ok()).collect::<Vec<_>>(), choose, &mut survey.notes);
    let before = survey.problems.len();
    for ((column, reason), place) in candidates.into_iter().zip(reasons).zip(places) {
        let (fate, mut unused) = (reason.map_or(ColumnFate::Feature, ColumnFate::Identifier), Vec::new());
        // An identifier that could not be read is no problem: it is left out.
        let problems = if reason.is_some() { &mut unused } else { &mut survey.problems };
        sorted[place] = Some(surveyed(column, fate, problems));
    }
    // One hint for all columns.
    let wrong: Vec<DataError> = survey.problems.drain(before..).collect();
    if !wrong.is_empty() {
        survey.problems.push(DataError::all(wrong, path));
    }
    sorted.into_iter().flatten().collect()
}

fn surveyed(
    column: Result<FinishedColumn, DataError>,
    fate: ColumnFate,
    problems: &mut Vec<DataError>,
) -> SurveyedColumn {
    match column {
        Ok(FinishedColumn { column, dates, .. }) => {
            let surveyed = SurveyedColumn::new(column.name.clone(), fate);
            SurveyedColumn { values: Some(column), is_date: dates.is_some(), ..surveyed }
        }
        Err(problem) => {
            let name = problem.column().unwrap_or_default().to_owned();
            let too_many_names = match &problem {
                DataError::TooManyLevels { levels, rows, .. } => Some((*levels, *rows)),
                _ => None,
            };
            problems.push(problem);
            let fate = if fate == ColumnFate::Feature { ColumnFate::Unusable } else { fate };
            SurveyedColumn { too_many_names, ..SurveyedColumn::new(name, fate) }
        }
    }
}

/// Labels as a column of names.
fn column_of(labels: &Labels, name: &str) -> FeatureColumn {
    let code = |label: &Option<mnar::Class>| label.map_or(MISSING, |class| class.0);
    let codes = labels.as_slice().iter().map(code).collect();
    let values = ColumnValues::Categorical(Categories { levels: labels.names().to_vec(), codes });
    FeatureColumn { name: name.to_owned(), values }
}

fn survey_folder(path: &Path, options: &ReadOptions, source: Source<'_>) -> Result<Survey, DataError> {
    let shown = crate::error::show(path);
    let FolderFiles { names, labels, skipped } = list_image_folder(path, options)?;
    let mut survey = Survey { skipped, ..Survey::of(Kind::ImageFolder, names.len()) };
    let kind = survey.kind;
    if let (Some(label), None) = (&options.label, &options.labels_file) {
        let (path, label) = (shown.clone(), label.clone());
        survey.problems.push(DataError::LabelNotAColumn { path, kind, label });
    }
    if let Some(id) = &options.id {
        survey.problems.push(DataError::IdNotAColumn { path: shown.clone(), kind, id: id.clone() });
    }
    // The classes are known from the folders even if the images differ in size.
    match image_folder::decode(path, &names, options.resize, source.memory) {
        Ok(images) => survey.shape = Some(images.shape()),
        Err(problem @ DataError::Memory { .. }) => return Err(problem),
        Err(problem) => survey.problems.push(problem),
    }
    survey.label(Some(labels), options, Some(&RowNames::files(names)), source, true);
    Ok(survey)
}

/// Arrays and the files of MNIST and CIFAR-10: with all options, without those for tables, or the inputs alone.
fn survey_arrays(kind: Kind, path: &Path, options: &ReadOptions, source: Source<'_>) -> Result<Survey, DataError> {
    let memory = source.memory;
    let shown = crate::error::show(path);
    let no_columns = ReadOptions { label: None, id: None, ..options.clone() };
    // With labels elsewhere, those inside are not looked for.
    let inputs_alone = ReadOptions { labels_file: Some(PathBuf::new()), ..no_columns.clone() };
    let mut trouble = None;
    let read = match kind.read(path, options, memory) {
        Ok(read) => read,
        Err(first @ DataError::Memory { .. }) => return Err(first),
        Err(first) => match kind.read(path, &no_columns, memory).or_else(|_| kind.read(path, &inputs_alone, memory)) {
            Ok(read) => {
                trouble = Some(first);
                read
            }
            Err(_) => return Err(first),
        },
    };
    let ReadInputs { inputs, labels, row_names, skipped, notes } = read;
    let mut survey = Survey { skipped, notes, ..Survey::of(kind, inputs.len()) };
    let expected = trouble.is_none();
    survey.problems.extend(trouble);
    survey.label(labels, options, row_names.as_ref(), source, expected);
    match inputs {
        Inputs::Images(images) => survey.shape = Some(images.shape()),
        Inputs::Table(table) => {
            let column = |values: &FeatureColumn| SurveyedColumn {
                values: Some(values.clone()),
                ..SurveyedColumn::new(values.name.clone(), ColumnFate::Feature)
            };
            survey.columns = table.columns().iter().map(column).collect();
            survey.settle(&shown);
        }
    }
    Ok(survey)
}
