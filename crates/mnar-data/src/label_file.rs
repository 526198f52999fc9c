//! Labels in a file of their own.

use crate::arrow_table::Source;
use crate::classes::missing_classes;
use crate::columns::{Selection, find, no_label_column, twice};
use crate::dataset::{ReadOptions, is_npy};
use crate::error::{DataError, show};
use crate::format::{Format, open_maybe_gzipped};
use crate::guard::Memory;
use crate::note::Note;
use crate::npy::Npy;
use crate::row_names::{FILE, RowNames};
use crate::screen::similar_classes;
use crate::text::TextReader;
use crate::values::{Interner, Merged, Missing};
use arrow_array::Array;
use mnar::Labels;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// Reads the labels of all rows: a table with the column `label`, or a numpy array of whole numbers. `row_names`
/// are the files of an image folder: a column `file` is matched with them, and files that it does not name are
/// unlabelled; without such a column, and for all other inputs, there is one label per row.
pub(crate) fn read(
    path: &Path,
    options: &ReadOptions,
    rows: usize,
    row_names: Option<&RowNames>,
    inputs: Source<'_>,
) -> Result<(Labels, Vec<Note>), DataError> {
    let shown = show(path);
    let (memory, inputs) = (inputs.memory.resolved(), &inputs.name());
    let (label, missing) = (options.label.as_deref(), &options.missing[..]);
    let row_names = row_names.filter(|names| names.column == FILE).map(|names| &names.names[..]);
    let mut labels = Interner::default();
    if is_npy(path)? {
        let file = File::open(path).map_err(|error| DataError::io(&shown, "opened", error))?;
        Npy::open(BufReader::new(file), memory, &shown)?.read_labels(|label| match label {
            Some(label) => labels.push(Some(&label.to_string())),
            None => labels.push(None),
        })?;
    } else if let Some(lines) = lines_of_one_column(path, label, rows, memory)? {
        let missing = Missing::new(missing);
        lines.iter().for_each(|line| labels.push(missing.present(line)));
    } else {
        let table = Source::from(path).with_memory(memory).into_table().map_err(|error| match error {
            // Rows are skipped in the data alone.
            DataError::TitleRows { path, row, title, columns, .. } => {
                DataError::TitleRows { path, row, title, columns, skippable: false }
            }
            other => other,
        })?;
        let header = table.header();
        let column = label_column(header, label, &shown)?;
        let file = row_names.and_then(|_| header.iter().position(|name| name == FILE));
        if file == Some(column) {
            return Err(twice(&shown, FILE, "the label", "the file of the row"));
        }
        let texts = std::iter::once(column).chain(file).collect();
        let missing = Missing::new(missing);
        let mut files = Vec::new();
        for batch in table.batches(&Selection::texts(texts))? {
            let batch = batch?;
            labels.extend(&batch.texts[0], &missing);
            memory.check(labels.bytes(), "the labels", &shown)?;
            if let Some(names) = batch.texts.get(1) {
                let name = |i| if names.is_null(i) { String::new() } else { names.value(i).trim().replace('\\', "/") };
                files.extend((0..names.len()).map(name));
            }
        }
        if let (Some(row_names), Some(_)) = (row_names, file) {
            let (labels, notes) = finish(labels, options, &shown)?;
            return Ok((match_files(labels, &files, row_names, &shown, inputs)?, notes));
        }
    }
    let (labels, notes) = finish(labels, options, &shown)?;
    if labels.len() != rows {
        let (found, expected, inputs) = (labels.len(), rows, inputs.to_owned());
        return Err(DataError::LabelCount { path: shown, found, expected, inputs });
    }
    Ok((labels, notes))
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

fn label_column(header: &[String], label: Option<&str>, path: &str) -> Result<usize, DataError> {
    match (label, header) {
        (Some(label), _) => find(header, label, path),
        (None, [_]) => Ok(0),
        (None, _) => header.iter().position(|name| name == "label").ok_or_else(|| no_label_column(header, path)),
    }
}

fn match_files(
    labels: Labels,
    files: &[String],
    row_names: &[String],
    path: &str,
    inputs: &str,
) -> Result<Labels, DataError> {
    let position: HashMap<&str, usize> = row_names.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
    let mut y = vec![None; row_names.len()];
    let mut named_in = vec![None; row_names.len()];
    for (i, file) in files.iter().enumerate() {
        let trouble = |trouble: String| DataError::LabelledFile {
            path: path.to_owned(),
            row: i + 1,
            file: file.clone(),
            trouble,
        };
        let Some(&at) = position.get(file.strip_prefix("./").unwrap_or(file)) else {
            let example = row_names.first().map_or("", String::as_str);
            return Err(trouble(format!("which is not in {inputs}; its files are named as in `{example}`")));
        };
        if let Some(other) = named_in[at].replace(i + 1) {
            return Err(trouble(format!("as row {other} does; name every file once")));
        }
        y[at] = labels.get(i);
    }
    Labels::allow_degenerate(y, labels.names().to_vec()).map_err(|cause| DataError::core(path, cause))
}
