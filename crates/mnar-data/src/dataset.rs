//! Reads everything that a model can be trained on.

use crate::arrow_table::{Source, SourceKind};
use crate::encoder::TableEncoder;
use crate::error::{DataError, show};
use crate::feature_table::FeatureTable;
use crate::format::open_maybe_gzipped;
use crate::guard::Memory;
use crate::image_folder::{self, ClassPlace};
use crate::images::{ImageShape, Images};
use crate::label_file;
use crate::note::Note;
use crate::npy::{ArrayInputs, Npy};
use crate::npz::{self, LabelKey};
use crate::parquet_folder;
use crate::row_names::RowNames;
use crate::table_reader::{Purpose, read_table};
use crate::text_table::STDIN;
use crate::values::Interner;
use crate::{cifar, mnist};
use mnar::Labels;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// Inputs and partly missing labels of the same rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// What is classified.
    pub inputs: Inputs,
    /// The labels; at least one is there, and all may be.
    pub labels: Labels,
    /// The files of an image folder, or the column of a table that was named for it.
    pub row_names: Option<RowNames>,
    /// What in an image folder was not read: files that are not images, empty folders.
    pub skipped: Vec<String>,
    /// What was detected in the file, and what was done about it.
    pub notes: Vec<Note>,
}

/// What is classified.
#[derive(Clone, Debug, PartialEq)]
pub enum Inputs {
    /// Columns of numbers and names.
    Table(FeatureTable),
    /// Images of one shape.
    Images(Images),
}

impl Inputs {
    /// Number of rows, or images.
    pub fn len(&self) -> usize {
        match self {
            Inputs::Table(table) => table.len(),
            Inputs::Images(images) => images.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A part of data that come in parts: MedMNIST, MNIST, CIFAR-10, image folders with `train/` and `test/`. Tables
/// have none and are read whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Split {
    /// The rows to train on.
    #[default]
    Train,
    /// The rows to choose settings by.
    Validation,
    /// The rows to evaluate on.
    Test,
    /// All parts, one after the other.
    All,
}

impl Split {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Split::Train => "training",
            Split::Validation => "validation",
            Split::Test => "test",
            Split::All => "training or test",
        }
    }
}

/// How to read what a model is to be trained on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadOptions {
    /// The column of labels in a table, or in `labels_file`; the array of labels in an `.npz` file.
    pub label: Option<String>,
    /// A file of labels that replace those that come with the inputs: CSV or Parquet with one row per row of the data
    /// (in an image folder, a column may name the image instead), or an `.npy` array of whole numbers.
    pub labels_file: Option<PathBuf>,
    /// Which part to read.
    pub split: Split,
    /// The column of a table that names its rows and is not a feature.
    pub id: Option<String>,
    /// The columns of a table that are features; by default all but the label and those below.
    pub features: Option<Vec<String>>,
    /// Columns of a table that are not features.
    pub ignore: Vec<String>,
    /// Further texts that mean missing, for labels and features.
    pub missing: Vec<String>,
    /// Keeps labels such as `NA`, `?` and `-1` as classes. By default they are read as missing, with a note.
    pub labels_as_they_are: bool,
    /// Makes one class of labels that differ only by case or blanks. By default they are kept apart, with a note.
    pub merge_labels: bool,
    /// Columns of a table that hold names though they look like numbers.
    pub categorical: Vec<String>,
    /// The sheet of a spreadsheet; by default the first.
    pub sheet: Option<String>,
    /// How many lines of a text table, or rows of a sheet, stand above the header and are skipped.
    pub skip_rows: usize,
    /// The height and width that the images of a folder are resized to.
    pub resize: Option<(usize, usize)>,
}

impl ReadOptions {
    /// The part of the file that these options name: the sheet, and the rows below the title.
    pub(crate) fn within<'a>(&'a self, source: Source<'a>) -> Source<'a> {
        let skip_rows = if self.skip_rows > 0 { self.skip_rows } else { source.skip_rows };
        source.with_sheet(self.sheet.as_deref().or(source.sheet)).with_skip_rows(skip_rows)
    }
}

/// What a trained model takes.
#[derive(Clone, Copy, Debug)]
pub enum Expected<'a> {
    /// The columns of a table.
    Table(&'a TableEncoder),
    /// Images.
    Images {
        /// Their shape.
        shape: ImageShape,
        /// Whether the images of a folder are resized to this shape, as those for training were.
        resize: bool,
    },
}

/// Rows to predict.
#[derive(Clone, Debug, PartialEq)]
pub struct RowsToPredict {
    /// What is classified.
    pub inputs: Inputs,
    /// The files of an image folder, or the column of a table that was named for it.
    pub row_names: Option<RowNames>,
    /// What in an image folder was not read.
    pub skipped: Vec<String>,
    /// What was detected in the file, and what was done about it.
    pub notes: Vec<Note>,
}

/// Reads inputs with their labels: a table in memory, or a file or folder. By name and content, the latter is one of
///
/// - a table of features: text with any of the usual separators and encodings, gzipped or not (`.csv`, `.tsv`, `.txt`, or
///   `-` for standard input); Parquet, in one file, a folder or a pattern; Arrow or feather; JSON lines; a sheet of a
///   spreadsheet. A list of numbers becomes one feature per number;
/// - an `.npy` array: numbers of shape (n, features), or bytes that are images;
/// - an `.npz` archive with `train_images`, `train_labels` and so on, `x` and `y`, or `images` and `labels`;
/// - MNIST's idx files, as a folder or as the file of images;
/// - the folder of CIFAR-10's binary files;
/// - a folder with one folder of images per class, and `unlabelled`.
///
/// At least one row must have a label, and all may; a class may have a single one.
///
/// ```
/// use mnar_data::{Inputs, ReadOptions, TableEncoder, read_dataset};
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("pets.csv");
/// std::fs::write(&path, "legs,coat,label\n4,fur,cat\n2,,\n4,fur,dog\n2,feathers,\n")?;
/// let dataset = read_dataset(&path, &ReadOptions { label: Some("label".into()), ..Default::default() })?;
/// assert_eq!(dataset.labels.counts(), [1, 1]);
/// let Inputs::Table(table) = &dataset.inputs else { unreachable!() };
/// let encoder = TableEncoder::fit(table)?;
/// assert_eq!(encoder.feature_names(), ["legs", "coat=fur", "coat (missing)"]);
/// assert_eq!(encoder.encode(table)?.row(1).to_vec(), [-1.0, 0.0, 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_dataset<'a>(source: impl Into<Source<'a>>, options: &ReadOptions) -> Result<Dataset, DataError> {
    let source = source.into();
    let source = source.with_memory(source.memory.resolved());
    let shown = source.name();
    check_stdin(source, options)?;
    let kind = Kind::of_source(source)?;
    let read = match source.kind {
        SourceKind::Path(path) if kind != Kind::Table => kind.read(path, options, source.memory)?,
        _ => read_table_inputs(source, options)?,
    };
    let mut notes = read.notes;
    let labels = match (&options.labels_file, read.labels) {
        (Some(file), inside) => {
            let (count, names) = (read.inputs.len(), read.row_names.as_ref());
            let rows = label_file::Rows { count, names, folders: inside.as_ref() };
            let (labels, more) = label_file::read(file, options, rows, source)?;
            notes.extend(more);
            labels
        }
        (None, Some(labels)) => labels,
        (None, None) => {
            let what = format!("{} has no labels", kind.name());
            return Err(DataError::NoLabelsInside { path: shown, what });
        }
    };
    if labels.n_labelled() == 0 {
        let source = options.labels_file.as_deref().map_or(shown, show);
        return Err(DataError::core(&source, mnar::Error::NoLabels { n: labels.len() }));
    }
    Ok(Dataset { inputs: read.inputs, labels, row_names: read.row_names, skipped: read.skipped, notes })
}

/// Standard input can be read once.
pub(crate) fn check_stdin(source: Source<'_>, options: &ReadOptions) -> Result<(), DataError> {
    let is_stdin = |path: &Path| path == Path::new("-");
    // What was read from it before counts as well.
    let from_stdin = match source.kind {
        SourceKind::Path(path) => is_stdin(path),
        SourceKind::Text(text) => text.source_name() == STDIN,
        SourceKind::Table(_) => false,
    };
    match from_stdin && options.labels_file.as_deref().is_some_and(is_stdin) {
        true => Err(DataError::StdinTwice),
        false => Ok(()),
    }
}

/// Reads inputs for a trained model. Labels and columns that it does not know are ignored, except for `id`, the column of
/// a table that names its rows.
pub fn read_for_prediction<'a>(
    source: impl Into<Source<'a>>,
    expected: &Expected<'_>,
    split: Split,
    id: Option<&str>,
) -> Result<RowsToPredict, DataError> {
    let source = source.into();
    let source = source.with_memory(source.memory.resolved());
    let (shown, memory) = (source.name(), source.memory);
    let kind = Kind::of_source(source)?;
    kind.check_id(id, &shown)?;
    // A table in memory needs no path.
    let path = match source.kind {
        SourceKind::Path(path) => path,
        SourceKind::Table(_) | SourceKind::Text(_) => Path::new(""),
    };
    let read = match (kind, expected) {
        (Kind::Table, Expected::Table(encoder)) => {
            let read = read_table(source, &Purpose::Predict(encoder), id)?;
            let (row_names, mut notes) = (read.row_names, read.notes);
            notes.extend(encoder.surprises(&read.features));
            ReadInputs { row_names, notes, ..ReadInputs::unnamed(Inputs::Table(read.features), None) }
        }
        (Kind::Table, Expected::Images { .. }) => return Err(wrong(&shown, true)),
        (Kind::ImageFolder | Kind::ImageFile, Expected::Table(_)) => return Err(wrong(&shown, false)),
        (Kind::ImageFolder, Expected::Images { shape, resize }) => {
            let listing = image_folder::list(path, split)?;
            let names: Vec<String> = listing.files.into_iter().map(|file| file.name).collect();
            let size = resize.then_some((shape.height, shape.width));
            let inputs = Inputs::Images(image_folder::decode(path, &names, size, memory)?);
            let (row_names, skipped) = (Some(RowNames::files(names)), listing.skipped);
            ReadInputs { row_names, skipped, ..ReadInputs::unnamed(inputs, None) }
        }
        (Kind::ImageFile, Expected::Images { shape, resize }) => {
            let size = resize.then_some((shape.height, shape.width));
            // The name is the whole path: joined to no folder it stays what it is.
            let images = image_folder::decode(Path::new(""), std::slice::from_ref(&shown), size, memory)?;
            let row_names = Some(RowNames::files(vec![shown.clone()]));
            ReadInputs { row_names, ..ReadInputs::unnamed(Inputs::Images(images), None) }
        }
        (Kind::Npy, _) => ReadInputs::unnamed(read_npy(path, false, memory)?, None),
        (Kind::Npz, _) => ReadInputs::unnamed(npz::read(path, split, LabelKey::None, false, memory)?.0, None),
        (Kind::Mnist, _) => ReadInputs::unnamed(Inputs::Images(mnist::read(path, split, false, memory)?.0), None),
        (Kind::Cifar, _) => {
            let (images, _) = cifar::read(&cifar_folder(path), split, memory)?;
            ReadInputs::unnamed(Inputs::Images(images), None)
        }
    };
    let inputs = match (read.inputs, expected) {
        (Inputs::Table(table), Expected::Table(encoder)) => {
            encoder.check_columns(&table)?;
            Inputs::Table(table)
        }
        (Inputs::Images(images), Expected::Images { shape, .. }) => {
            // Grey images among coloured ones are accepted for training, and so they are here.
            let images = if shape.channels == 3 { images.into_colour() } else { images };
            if images.shape() != *shape {
                let found = images.shape().to_string();
                let expected = format!("{shape}, as in training,");
                return Err(DataError::ImageShape { path: shown, found, expected });
            }
            Inputs::Images(images)
        }
        (Inputs::Table(_), Expected::Images { .. }) => return Err(wrong(&shown, true)),
        (Inputs::Images(_), Expected::Table(_)) => return Err(wrong(&shown, false)),
    };
    Ok(RowsToPredict { inputs, row_names: read.row_names, skipped: read.skipped, notes: read.notes })
}

fn wrong(path: &str, wants_images: bool) -> DataError {
    let (found, expected) = if wants_images {
        ("a table", "the model was trained on images, and images are")
    } else {
        ("images", "the model was trained on a table, and a table is")
    };
    DataError::WrongInputs { path: path.to_owned(), found, expected }
}

/// What was read, before labels from another file are put in.
pub(crate) struct ReadInputs {
    pub(crate) inputs: Inputs,
    pub(crate) labels: Option<Labels>,
    pub(crate) row_names: Option<RowNames>,
    pub(crate) skipped: Vec<String>,
    pub(crate) notes: Vec<Note>,
}

impl ReadInputs {
    fn unnamed(inputs: Inputs, labels: Option<Labels>) -> Self {
        Self { inputs, labels, row_names: None, skipped: Vec::new(), notes: Vec::new() }
    }
}

/// What a path holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Table,
    Npy,
    Npz,
    Mnist,
    Cifar,
    ImageFolder,
    ImageFile,
}

impl Kind {
    pub(crate) fn of_source(source: Source<'_>) -> Result<Self, DataError> {
        match source.kind {
            SourceKind::Path(path) => Self::of(path),
            SourceKind::Table(_) | SourceKind::Text(_) => Ok(Kind::Table),
        }
    }

    fn of(path: &Path) -> Result<Self, DataError> {
        if path == Path::new("-") || parquet_folder::files_of(path)?.is_some() {
            return Ok(Kind::Table);
        }
        let metadata = std::fs::metadata(path).map_err(|error| DataError::io(&show(path), "opened", error))?;
        if metadata.is_dir() {
            return Self::of_folder(path);
        }
        if let Some(kind) = Self::of_name(path) {
            return Ok(kind);
        }
        // A pipe can be read only once, and is a table. So is a file that is named like one.
        if !metadata.is_file() || crate::format::Format::of_name(path).is_some() {
            return Ok(Kind::Table);
        }
        Ok(match first_bytes(path)?.as_slice() {
            [0x93, b'N', b'U', b'M'] => Kind::Npy,
            [b'P', b'K', 3, 4] => Kind::Npz,
            [0, 0, 8, 3] => Kind::Mnist,
            [0x89, b'P', b'N', b'G'] | [0xff, 0xd8, 0xff, _] => Kind::ImageFile,
            _ => Kind::Table,
        })
    }

    /// What the name alone says.
    fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_lowercase();
        if name.ends_with(".npy") {
            Some(Kind::Npy)
        } else if name.ends_with(".npz") {
            Some(Kind::Npz)
        } else if mnist::names_images(&name) {
            Some(Kind::Mnist)
        } else if image_folder::names_image(&name) {
            Some(Kind::ImageFile)
        } else {
            None
        }
    }

    fn of_folder(path: &Path) -> Result<Self, DataError> {
        let entries = std::fs::read_dir(path).map_err(|error| DataError::io(&show(path), "read", error))?;
        let names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        Ok(if names.iter().any(|name| mnist::names_images(name)) {
            Kind::Mnist
        } else if names.iter().any(|name| cifar::names_batch(name) || name == CIFAR) {
            Kind::Cifar
        } else {
            Kind::ImageFolder
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Table => "a table",
            Kind::Npy => "a numpy array",
            Kind::Npz => "an .npz file",
            Kind::Mnist => "an MNIST file",
            Kind::Cifar => "CIFAR-10",
            Kind::ImageFolder => "an image folder",
            Kind::ImageFile => "an image",
        }
    }

    /// Only tables have columns that could name their rows.
    fn check_id(self, id: Option<&str>, path: &str) -> Result<(), DataError> {
        match id {
            Some(id) if self != Kind::Table => {
                Err(DataError::IdNotAColumn { path: path.to_owned(), kind: self.name(), id: id.to_owned() })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn read(self, path: &Path, options: &ReadOptions, memory: Memory) -> Result<ReadInputs, DataError> {
        let shown = show(path);
        self.check_id(options.id.as_deref(), &shown)?;
        let elsewhere = options.labels_file.is_some();
        let label = options.label.as_deref();
        if let (Some(label), false, Kind::Mnist | Kind::Cifar | Kind::ImageFolder) = (label, elsewhere, self) {
            if self == Kind::ImageFolder {
                // Without folders of classes it has no labels of its own.
                list_image_folder(path, options)?;
            }
            let (kind, label) = (self.name(), label.to_owned());
            return Err(DataError::LabelNotAColumn { path: shown, kind, label });
        }
        let named = |labels: Interner| labels.into_labels(&shown);
        match self {
            Kind::Table => read_table_inputs(Source::from(path).with_memory(memory), options),
            Kind::Npy => Ok(ReadInputs::unnamed(read_npy(path, true, memory)?, None)),
            Kind::Npz => {
                let key = match label {
                    _ if elsewhere => LabelKey::None,
                    Some(label) => LabelKey::Named(label),
                    None => LabelKey::Usual,
                };
                let (inputs, labels) = npz::read(path, options.split, key, true, memory)?;
                Ok(ReadInputs::unnamed(inputs, labels.map(named).transpose()?))
            }
            Kind::Mnist => {
                let (images, labels) = mnist::read(path, options.split, !elsewhere, memory)?;
                Ok(ReadInputs::unnamed(Inputs::Images(images), labels.map(named).transpose()?))
            }
            Kind::Cifar => {
                let (images, labels) = cifar::read(&cifar_folder(path), options.split, memory)?;
                Ok(ReadInputs::unnamed(Inputs::Images(images), Some(labels)))
            }
            Kind::ImageFolder => read_image_folder(path, options, memory),
            Kind::ImageFile => Err(DataError::WrongInputs {
                path: shown,
                found: "one image",
                expected: "a folder of images, with one folder per class, is",
            }),
        }
    }
}

fn read_table_inputs(source: Source<'_>, options: &ReadOptions) -> Result<ReadInputs, DataError> {
    let purpose = Purpose::Train {
        label: options.label.as_deref(),
        labels_elsewhere: options.labels_file.is_some(),
        only: options.features.as_deref(),
        ignore: &options.ignore,
        missing: &options.missing,
        categorical: &options.categorical,
    };
    let source = options.within(source);
    let read = read_table(source, &purpose, options.id.as_deref())?;
    let (row_names, mut notes) = (read.row_names, read.notes);
    let labels = match read.labels {
        Some(labels) => {
            let (labels, more) = label_file::finish(labels, options, &source.name())?;
            notes.extend(more);
            Some(labels)
        }
        None => None,
    };
    Ok(ReadInputs { row_names, notes, ..ReadInputs::unnamed(Inputs::Table(read.features), labels) })
}

/// The folder that CIFAR-10's archive unpacks to.
const CIFAR: &str = "cifar-10-batches-bin";

fn cifar_folder(path: &Path) -> PathBuf {
    let below = path.join(CIFAR);
    if below.is_dir() { below } else { path.to_owned() }
}

/// Whether the name is that of arrays or images, and so not of a table.
pub(crate) fn names_arrays(path: &Path) -> bool {
    Kind::of_name(path).is_some()
}

fn first_bytes(path: &Path) -> Result<Vec<u8>, DataError> {
    let mut bytes = Vec::new();
    // An error here is not worth failing for: reading the file will report it.
    let _ = open_maybe_gzipped(path)?.take(4).read_to_end(&mut bytes);
    Ok(bytes)
}

/// Whether this file is a numpy array.
pub(crate) fn is_npy(path: &Path) -> Result<bool, DataError> {
    Ok(Kind::of(path)? == Kind::Npy)
}

fn read_npy(path: &Path, training: bool, memory: Memory) -> Result<Inputs, DataError> {
    let shown = show(path);
    let file = File::open(path).map_err(|error| DataError::io(&shown, "opened", error))?;
    let mut inputs = ArrayInputs::default();
    inputs.extend(Npy::open(BufReader::with_capacity(1 << 16, file), memory, &shown)?)?;
    inputs.finish(training, &shown)
}

fn read_image_folder(path: &Path, options: &ReadOptions, memory: Memory) -> Result<ReadInputs, DataError> {
    let FolderFiles { names, labels, skipped } = list_image_folder(path, options)?;
    let images = image_folder::decode(path, &names, options.resize, memory)?;
    Ok(ReadInputs {
        inputs: Inputs::Images(images),
        labels: Some(labels),
        row_names: Some(RowNames::files(names)),
        skipped,
        notes: Vec::new(),
    })
}

/// The images of a folder before they are decoded.
pub(crate) struct FolderFiles {
    pub(crate) names: Vec<String>,
    pub(crate) labels: Labels,
    pub(crate) skipped: Vec<String>,
}

pub(crate) fn list_image_folder(path: &Path, options: &ReadOptions) -> Result<FolderFiles, DataError> {
    let image_folder::Listing { files, mut skipped } = image_folder::list(path, options.split)?;
    // Only a file of labels can tell the class of an image outside the folders of classes.
    let (files, loose): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| options.labels_file.is_some() || file.place != ClassPlace::Loose);
    let outside = loose.len();
    skipped.extend(loose.into_iter().map(|file| format!("{} (not in the folder of a class)", file.name)));
    if files.is_empty() {
        let (path, advice) = (show(path), image_folder::ADVICE);
        return Err(match outside {
            0 => DataError::NoImages { path, advice },
            images => DataError::NoClassFolders { path, images, advice },
        });
    }
    let mut labels = Interner::default();
    let mut names = Vec::with_capacity(files.len());
    for file in files {
        match &file.place {
            ClassPlace::Class(class) => labels.push(Some(class)),
            ClassPlace::Unlabelled | ClassPlace::Loose => labels.push(None),
        }
        names.push(file.name);
    }
    Ok(FolderFiles { names, labels: labels.into_labels(&show(path))?, skipped })
}
