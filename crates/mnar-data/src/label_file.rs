//! Labels in a file of their own.

use crate::arrow_table::Source;
use crate::classes::missing_classes;
use crate::columns::{Selection, find, no_label_column, twice};
use crate::dataset::{ReadOptions, is_npy};
use crate::error::{DataError, show};
use crate::format::{AnyTable, Format, open_maybe_gzipped};
use crate::guard::Memory;
use crate::image_rows::{ImageNames, ImageRows};
use crate::note::Note;
use crate::npy::Npy;
use crate::row_names::{FILE, RowNames};
use crate::screen::similar_classes;
use crate::text::TextReader;
use crate::values::{Interner, Merged, Missing, folded};
use mnar::Labels;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// What a file of labels is read for.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// How many there are.
    pub(crate) count: usize,
    /// The names of the images of a folder, or of other rows.
    pub(crate) names: Option<&'a RowNames>,
    /// The classes that the folders of images say.
    pub(crate) folders: Option<&'a Labels>,
}

impl<'a> Rows<'a> {
    pub(crate) fn images(&self) -> Option<&'a [String]> {
        self.names.filter(|names| names.column == FILE).map(|names| &names.names[..])
    }
}

/// Reads the labels of all rows: a table with the column `label`, or a numpy array of whole numbers. Where a column names the
/// images of a folder, rows are matched by it, and images that it does not name are unlabelled; without such a column, and for
/// all other inputs, there is one label per row. A note says which it was.
pub(crate) fn read(
    path: &Path,
    options: &ReadOptions,
    rows: Rows<'_>,
    inputs: Source<'_>,
) -> Result<(Labels, Vec<Note>), DataError> {
    let shown = show(path);
    let (memory, inputs) = (inputs.memory.resolved(), &inputs.name());
    let (label, missing) = (options.label.as_deref(), &options.missing[..]);
    let mut labels = Interner::default();
    let mut matched = ImageRows::Position { unknown: None };
    if is_npy(path)? {
        let file = File::open(path).map_err(|error| DataError::io(&shown, "opened", error))?;
        Npy::open(BufReader::new(file), memory, &shown)?.read_labels(|label| match label {
            Some(label) => labels.push(Some(&label.to_string())),
            None => labels.push(None),
        })?;
    } else if let Some(lines) = lines_of_one_column(path, label, rows.count, memory)? {
        let missing = Missing::new(missing);
        lines.iter().for_each(|line| labels.push(missing.present(line)));
    } else {
        let table = AnyTable::open(Source::from(path).with_memory(memory)).map_err(|error| match error {
            // Rows are skipped in the data alone.
            DataError::TitleRows { path, row, title, columns, .. } => {
                DataError::TitleRows { path, row, title, columns, skippable: false }
            }
            other => other,
        })?;
        let header = table.header();
        let column = label_column(header, label, &shown)?;
        let mut names = rows.images().map(ImageNames::new);
        if names.is_some() && header[column] == FILE {
            return Err(twice(&shown, FILE, "the label", "the file of the row"));
        }
        let mut texts = vec![column];
        if let Some(names) = &mut names {
            let others = ImageNames::columns_of(&table, Some(column));
            names.expect(others.iter().map(|&column| header[column].clone()));
            texts.extend(others);
        }
        let missing = Missing::new(missing);
        for batch in table.into_table().batches(&Selection::texts(texts))? {
            let batch = batch?;
            labels.extend(&batch.texts[0], &missing);
            memory.check(labels.bytes(), "the labels", &shown)?;
            if let Some(names) = &mut names {
                names.extend(&batch.texts[1..], memory, &shown)?;
            }
        }
        if let Some(names) = names {
            matched = names.decide(&shown, inputs)?;
        }
    }
    let (mut labels, mut notes) = finish(labels, options, &shown)?;
    match &matched {
        ImageRows::Named { column, rows: found } => {
            let y = found.iter().map(|row| row.and_then(|row| labels.get(row))).collect();
            labels =
                Labels::allow_degenerate(y, labels.names().to_vec()).map_err(|cause| DataError::core(&shown, cause))?;
            let without = found.iter().filter(|row| row.is_none()).count();
            notes.push(Note::LabelsByName { column: column.clone(), without, of: found.len() });
        }
        ImageRows::Position { unknown } => {
            if labels.len() != rows.count {
                let (found, expected, inputs) = (labels.len(), rows.count, inputs.to_owned());
                return Err(DataError::LabelCount { path: shown, found, expected, inputs });
            }
            notes.push(Note::LabelsByPosition { images: rows.images().is_some(), unknown: unknown.clone() });
        }
    }
    if let (Some(names), Some(folders)) = (rows.images(), rows.folders)
        && let Some(other) = OtherFolders::find(names, folders, &labels)
    {
        if matches!(matched, ImageRows::Position { .. }) && other.are_many() {
            let OtherFolders { images, of, example, label } = other;
            let inputs = inputs.to_owned();
            let (inputs, example, label) = (inputs.into(), example.into(), label.into());
            return Err(DataError::LabelsAgainstFolders { path: shown, inputs, images, of, example, label });
        }
        let OtherFolders { images, of, example, label } = other;
        notes.push(Note::OtherFolders { images, of, example, label });
    }
    Ok((labels, notes))
}

/// Images whose labels are not the names of the folders that they are in.
struct OtherFolders {
    images: usize,
    /// Labelled images in the folder of a class, where the label is the name of such a folder.
    of: usize,
    example: String,
    label: String,
}

impl OtherFolders {
    fn find(names: &[String], folders: &Labels, labels: &Labels) -> Option<Self> {
        let classes: Vec<String> = folders.names().iter().map(|name| folded(name)).collect();
        let known: Vec<Option<usize>> =
            labels.names().iter().map(|name| classes.iter().position(|class| *class == folded(name))).collect();
        let (mut images, mut of, mut first) = (0, 0, None);
        for (i, name) in names.iter().enumerate() {
            let (Some(folder), Some(label)) = (folders.get(i), labels.get(i)) else { continue };
            let Some(class) = known[label.index()] else { continue };
            of += 1;
            if classes[class] != classes[folder.index()] {
                images += 1;
                first.get_or_insert_with(|| (name.clone(), labels.names()[label.index()].clone()));
            }
        }
        first.map(|(example, label)| Self { images, of, example, label })
    }

    /// More than a few labels that were corrected by hand.
    fn are_many(&self) -> bool {
        self.images > 3.max(self.of / 20)
    }
}

/// The classes, and what there is to say about them. Marks of missing labels are taken out, and labels that are alike made one
/// if that was asked for.
pub(crate) fn finish(
    mut labels: Interner,
    options: &ReadOptions,
    path: &str,
) -> Result<(Labels, Vec<Note>), DataError> {
    let mut notes = Vec::new();
    if !options.labels_as_they_are {
        let marks = labels.take_marks();
        if !marks.is_empty() {
            notes.push(Note::MissingLabels { marks });
        }
    }
    if options.merge_labels {
        let merged = labels.merge_alike().into_iter();
        notes.extend(merged.map(|Merged { into, others }| Note::MergedLabels { into, others }));
    }
    let labels = labels.into_labels(path)?;
    notes.extend(similar_classes(&labels));
    if !options.labels_as_they_are {
        notes.extend(missing_classes(&labels));
    }
    Ok((labels, notes))
}

/// The rows of a text file whose only column is the label. There a missing label is a blank line, which a reader
/// of CSV would skip; blank lines at the end of the file beyond its `rows` rows are not rows either.
fn lines_of_one_column(
    path: &Path,
    label: Option<&str>,
    rows: usize,
    memory: Memory,
) -> Result<Option<Vec<String>>, DataError> {
    let is_text = matches!(Format::of_name(path), None | Some(Format::Delimited { .. }));
    if !is_text || !path.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let Ok(text) = TextReader::open(open_maybe_gzipped(path)?, &show(path)) else { return Ok(None) };
    memory.capped(text, 3).read_to_end(&mut bytes).map_err(|error| DataError::io(&show(path), "read", error))?;
    // Quoted values and bytes that are not text are left to the reader of CSV.
    let Some(text) = String::from_utf8(bytes).ok().filter(|text| !text.contains('"')) else { return Ok(None) };
    let mut lines = text.strip_prefix('\u{feff}').unwrap_or(&text).lines();
    let header = lines.next().unwrap_or_default();
    if header.contains([',', '\t', ';', '|']) || label.is_some_and(|label| label.trim() != header.trim()) {
        return Ok(None);
    }
    memory.check_product(&[text.lines().count(), size_of::<String>()], "the labels", &show(path))?;
    let mut lines: Vec<String> = lines.map(str::to_owned).collect();
    while lines.len() > rows && lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    // A line with more than one value is for the reader of CSV to refuse.
    Ok((!lines.iter().any(|line| line.contains([',', '\t']))).then_some(lines))
}

pub(crate) fn label_column(header: &[String], label: Option<&str>, path: &str) -> Result<usize, DataError> {
    match (label, header) {
        (Some(label), _) => find(header, label, path),
        (None, [_]) => Ok(0),
        (None, _) => header.iter().position(|name| name == "label").ok_or_else(|| no_label_column(header, path)),
    }
}
