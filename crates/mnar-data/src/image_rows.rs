//! Which row of a file of labels is about which image of a folder.

use crate::arrays::check_text;
use crate::error::DataError;
use crate::format::AnyTable;
use crate::guard::Memory;
use crate::image_folder::names_image;
use crate::row_names::FILE;
use arrow_array::{Array, LargeStringArray};
use std::collections::HashMap;

/// How the rows of a file of labels belong to the images of a folder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ImageRows {
    /// A column names the images.
    Named {
        /// The column.
        column: String,
        /// For each image its row, from 0, if it has one.
        rows: Vec<Option<usize>>,
    },
    /// No column does: one row per image, in the order of the images.
    Position {
        /// A column of names of images, none of which is in the folder.
        unknown: Option<String>,
    },
}

/// What the values of a column say about the images. `file` must name them; any other column may.
pub(crate) struct ImageNames<'a> {
    images: &'a [String],
    keys: HashMap<String, Key>,
    columns: Vec<Column>,
}

/// What an image may be called by.
#[derive(Clone, Copy)]
struct Key {
    style: Style,
    /// The image, or `None` if several are called so.
    image: Option<usize>,
}

/// From the surest to the least sure: where a text is one thing for one image and another for the next, the surer counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Path,
    File,
    PathStem,
    Stem,
}

struct Column {
    name: String,
    /// The image that each row names.
    found: Vec<Option<usize>>,
    /// Rows that name an image, be it one of several of that name.
    naming: usize,
    /// Of these, the rows where the name has its extension.
    with_extension: usize,
    /// Of these, the rows where the name is a plain number, as an age is.
    numbers: usize,
    several: usize,
    /// The first row that names no image of the folder, or one of several.
    odd: Option<Odd>,
    /// Rows that name an image, in the folder or not.
    looks_like_image: usize,
}

struct Odd {
    row: usize,
    text: String,
    several: bool,
}

impl<'a> ImageNames<'a> {
    /// Of a folder whose images are called so, below it.
    pub(crate) fn new(images: &'a [String]) -> Self {
        let mut keys: HashMap<String, Key> = HashMap::with_capacity(2 * images.len());
        let file = |name: &'a str| name.rsplit_once('/').map_or(name, |(_, file)| file);
        let stem = |name: &'a str| name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        for style in [Style::Path, Style::File, Style::PathStem, Style::Stem] {
            for (i, image) in images.iter().enumerate() {
                let text = match style {
                    Style::Path => image,
                    Style::File => file(image),
                    Style::PathStem => stem(image),
                    Style::Stem => stem(file(image)),
                };
                let key = keys.entry(text.to_owned()).or_insert(Key { style, image: Some(i) });
                if key.style == style && key.image != Some(i) {
                    key.image = None;
                }
            }
        }
        Self { images, keys, columns: Vec::new() }
    }

    /// The columns of a table, other than the labels, that could name images.
    pub(crate) fn columns_of(table: &AnyTable, label: Option<usize>) -> Vec<usize> {
        let readable = |column: &usize| match table {
            AnyTable::Text(_) => true,
            AnyTable::Typed(typed, _) => check_text(&**typed, *column).is_ok(),
        };
        (0..table.header().len()).filter(|column| Some(*column) != label).filter(readable).collect()
    }

    /// Prepares for the values of these columns.
    pub(crate) fn expect(&mut self, names: impl IntoIterator<Item = String>) {
        self.columns = names.into_iter().map(Column::new).collect();
    }

    /// The next rows of all columns.
    pub(crate) fn extend(&mut self, texts: &[LargeStringArray], memory: Memory, path: &str) -> Result<(), DataError> {
        let Self { keys, columns, .. } = self;
        for (column, texts) in columns.iter_mut().zip(texts) {
            for i in 0..texts.len() {
                let text = if texts.is_null(i) { "" } else { texts.value(i) };
                column.push(text, keys);
            }
        }
        let bytes: usize = columns.iter().map(|column| column.found.len() * size_of::<Option<usize>>()).sum();
        memory.check(bytes as u64, "the names of images", path)
    }

    /// Decides for a column, or that there is none.
    pub(crate) fn decide(self, path: &str, inputs: &str) -> Result<ImageRows, DataError> {
        let Self { images, columns, .. } = self;
        let n = images.len();
        if let Some(file) = columns.iter().find(|column| column.name == FILE) {
            return file.matched(images, path, inputs);
        }
        let mut whole: Vec<&Column> = columns.iter().filter(|column| column.names_all(n)).collect();
        // A column that counts the rows may name images by chance.
        whole.sort_by_key(|column| column.numbers > 0);
        if let Some((first, others)) = whole.split_first() {
            let other = |other: &&&Column| (other.numbers > 0) == (first.numbers > 0) && other.found != first.found;
            if let Some(other) = others.iter().find(other) {
                let (first, second) = (first.name.clone(), other.name.clone());
                return Err(DataError::TwoColumnsOfImages { path: path.to_owned(), first, second });
            }
            return first.matched(images, path, inputs);
        }
        let partly = columns.iter().filter(|column| column.means_images(n)).max_by_key(|column| column.naming);
        if let Some(column) = partly {
            return column.matched(images, path, inputs);
        }
        let unknown = columns.iter().find(|column| 2 * column.looks_like_image > column.found.len());
        Ok(ImageRows::Position { unknown: unknown.map(|column| column.name.clone()) })
    }
}

impl Column {
    fn new(name: String) -> Self {
        let (found, odd) = (Vec::new(), None);
        Self { name, found, naming: 0, with_extension: 0, numbers: 0, several: 0, odd, looks_like_image: 0 }
    }

    fn push(&mut self, text: &str, keys: &HashMap<String, Key>) {
        let text = text.trim();
        let slashes = text.replace('\\', "/");
        let name = slashes.strip_prefix("./").unwrap_or(&slashes);
        // What stands before the folder is of no account.
        let below = || {
            let ends = name.match_indices('/').map(|(at, _)| &name[at + 1..]);
            ends.filter_map(|end| keys.get(end)).find(|key| key.style == Style::Path)
        };
        let key = keys.get(name).or_else(below);
        let row = self.found.len();
        self.found.push(key.and_then(|key| key.image));
        self.looks_like_image += usize::from(names_image(name));
        if let Some(key) = key {
            self.naming += 1;
            self.with_extension += usize::from(matches!(key.style, Style::Path | Style::File));
            self.numbers += usize::from(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()));
            self.several += usize::from(key.image.is_none());
        }
        if self.odd.is_none() && key.is_none_or(|key| key.image.is_none()) {
            self.odd = Some(Odd { row, text: text.to_owned(), several: key.is_some() });
        }
    }

    /// How many images are named.
    fn different(&self, n: usize) -> usize {
        let mut named = vec![false; n];
        self.found.iter().flatten().for_each(|&image| named[image] = true);
        named.iter().filter(|named| **named).count()
    }

    /// Whether every row names an image of its own. Numbers must name nearly all: a few are images by chance.
    fn names_all(&self, n: usize) -> bool {
        let rows = self.found.len();
        rows > 0 && self.odd.is_none() && self.different(n) == rows && (self.numbers == 0 || 10 * rows >= 9 * n)
    }

    /// Whether the column is meant to name the images, though it does not name one in every row: so many values cannot be
    /// names of images by chance, and a class or a hospital is the same in many rows.
    fn means_images(&self, n: usize) -> bool {
        let different = self.different(n) + self.several;
        if self.numbers > 0 && self.with_extension == 0 {
            return different >= 10 && 10 * different >= 9 * self.found.len();
        }
        let least = if self.with_extension > 0 { 1 } else { 2 };
        different >= least && (self.naming <= 2 * different || 2 * different >= n)
    }

    /// The row of each image, or what is wrong with the names.
    fn matched(&self, images: &[String], path: &str, inputs: &str) -> Result<ImageRows, DataError> {
        let mut rows = vec![None; images.len()];
        let mut twice = None;
        for (row, image) in self.found.iter().enumerate() {
            let Some(image) = *image else { continue };
            match rows[image] {
                None => rows[image] = Some(row),
                Some(first) if twice.is_none() => twice = Some((row, first, image)),
                Some(_) => {}
            }
        }
        let without = rows.iter().position(Option::is_none).map(|image| images[image].as_str().into());
        let refused = |row: usize, file: String, trouble: String| DataError::LabelledFile {
            path: path.to_owned(),
            row: row + 1,
            column: self.name.as_str().into(),
            file: file.into(),
            trouble: trouble.into(),
            without: without.clone(),
        };
        let before = |row: usize| twice.is_none_or(|(other, ..)| row < other);
        if let Some(odd) = self.odd.as_ref().filter(|odd| before(odd.row)) {
            let example = images.first().map_or("", String::as_str);
            let trouble = match odd.several {
                true => format!("which several files in {inputs} are called; name them as in `{example}`"),
                false => format!("which is not in {inputs}; its files are named as in `{example}`"),
            };
            return Err(refused(odd.row, odd.text.clone(), trouble));
        }
        if let Some((row, first, image)) = twice {
            let trouble = format!("as row {} does; name every file once", first + 1);
            return Err(refused(row, images[image].clone(), trouble));
        }
        Ok(ImageRows::Named { column: self.name.clone(), rows })
    }
}
