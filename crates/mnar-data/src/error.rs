//! What can be wrong with a file. Every message starts with the file, then says what, where, and what to do.
//!
//! Rows are counted from 1 below the header. The cause of an error is part of its message and is therefore not
//! also given by `source()`: printing the chain would say it twice.

use std::fmt::Display;
use std::io;
use std::path::Path;

/// The one error type of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The operating system refused.
    #[error("{path}: cannot be {action}: {cause}")]
    Io {
        /// The file.
        path: String,
        /// What was tried: "opened", "read", "written".
        action: &'static str,
        /// What the system said.
        cause: io::Error,
    },
    /// No bytes at all.
    #[error("{path}: the file is empty; a header with the column names and at least one row are needed")]
    Empty {
        /// The file.
        path: String,
    },
    /// A header, and nothing below it.
    #[error("{path}: there are no rows below the header")]
    NoRows {
        /// The file.
        path: String,
    },
    /// Bytes that are not UTF-8.
    #[error("{path}: {place} is not UTF-8 text; save the file as UTF-8 (a spreadsheet offers \"CSV UTF-8\")")]
    NotUtf8 {
        /// The file.
        path: String,
        /// Where: the header, or a row and column.
        place: String,
    },
    /// Two columns carry the same name.
    #[error("{path}: more than one column is called {names}; column names must differ")]
    DuplicateColumns {
        /// The file.
        path: String,
        /// The repeated names.
        names: String,
    },
    /// A column that was asked for is not there.
    #[error("{path}: there is no column `{name}`{hint} (the columns are {columns})")]
    UnknownColumn {
        /// The file.
        path: String,
        /// The name asked for.
        name: String,
        /// ", did you mean ...?" or another remark; may be empty.
        hint: String,
        /// The first columns of the file.
        columns: String,
    },
    /// No column starts with the prefix of probabilities.
    #[error(
        "{path}: no column starts with `{prefix}`; one column `{prefix}<class>` a class is needed, and `--proba PREFIX` chooses another prefix; the columns are {columns}"
    )]
    NoClassColumns {
        /// The file.
        path: String,
        /// The prefix.
        prefix: String,
        /// The first columns of the file.
        columns: String,
    },
    /// A column is the bare prefix, so its class has no name.
    #[error("{path}: column `{column}` names no class: nothing follows the prefix; rename the column")]
    UnnamedClass {
        /// The file.
        path: String,
        /// The column.
        column: String,
    },
    /// The same column is asked for in two roles, or twice.
    #[error("{path}: column `{column}` cannot be {first} and {second} at once")]
    ColumnTwice {
        /// The file.
        path: String,
        /// The column.
        column: String,
        /// Its first role.
        first: &'static str,
        /// Its second role.
        second: &'static str,
    },
    /// There is no column left to be a feature.
    #[error("{path}: there are no feature columns; besides the label at least one numeric column is needed")]
    NoFeatures {
        /// The file.
        path: String,
    },
    /// A row has another number of values than the header.
    #[error(
        "{path}: row {row} has {found} values but the header has {expected} columns; look for a missing or an unquoted separator"
    )]
    Ragged {
        /// The file.
        path: String,
        /// The row, from 1.
        row: usize,
        /// Values in the row.
        found: usize,
        /// Columns in the header.
        expected: usize,
    },
    /// A quoted value runs on to the end of the file.
    #[error("{path}: a quote opened in row {row} is never closed, so the rest of the file would be one value")]
    UnclosedQuote {
        /// The file.
        path: String,
        /// The row, from 1.
        row: usize,
    },
    /// Text where a number should be.
    #[error("{path}: row {row}, column `{column}`: `{value}` is not a number; {advice}")]
    NotANumber {
        /// The file.
        path: String,
        /// The row, from 1.
        row: usize,
        /// The column.
        column: String,
        /// The text found.
        value: String,
        /// What to do next.
        advice: &'static str,
    },
    /// Nothing where a number should be.
    #[error("{path}: row {row}, column `{column}`: the value is missing; {advice}")]
    MissingValue {
        /// The file.
        path: String,
        /// The row, from 1.
        row: usize,
        /// The column.
        column: String,
        /// What to do next.
        advice: &'static str,
    },
    /// A feature is infinite.
    #[error("{path}: row {row}, column `{column}`: the value is {value}; features must be finite numbers")]
    Infinite {
        /// The file.
        path: String,
        /// The row, from 1.
        row: usize,
        /// The column.
        column: String,
        /// The value.
        value: f64,
    },
    /// A column of a Parquet file has a type that does not fit its role.
    #[error("{path}: column `{column}` has type {found}, but {role} must be {expected}; {advice}")]
    ColumnType {
        /// The file.
        path: String,
        /// The column.
        column: String,
        /// Its type.
        found: String,
        /// What it should serve as.
        role: &'static str,
        /// The types that would do.
        expected: &'static str,
        /// What to do next.
        advice: &'static str,
    },
    /// A label that belongs to no probability column.
    #[error(
        "{path}: row {row}: label `{label}` is not among the classes of the probability columns ({classes}); if it stands for a missing label, say so with `--missing {label}`"
    )]
    UnknownLabel {
        /// The file.
        path: String,
        /// The row, from 1.
        row: usize,
        /// The label.
        label: String,
        /// The classes.
        classes: String,
    },
    /// A row that belongs to no fold.
    #[error(
        "{path}: row {row}, column `{column}`: the fold is missing; every row, labelled or not, is predicted by the model of one fold"
    )]
    MissingFold {
        /// The file.
        path: String,
        /// The row, from 1.
        row: usize,
        /// The column of folds.
        column: String,
    },
    /// The bytes are not Parquet, or are damaged.
    #[error("{path}: not a readable Parquet file: {cause}")]
    Parquet {
        /// The file.
        path: String,
        /// What the decoder said.
        cause: String,
    },
    /// The file was replaced between two passes over it.
    #[error("{path}: the file changed while it was being read; run again on a file that stays as it is")]
    Changed {
        /// The file.
        path: String,
    },
    /// The table has another number of rows than what comes with it.
    #[error("{path}: the table has {found} rows, but {expected} were expected")]
    RowCount {
        /// The file.
        path: String,
        /// Rows in the table.
        found: usize,
        /// Rows expected.
        expected: usize,
    },
    /// Columns to be written differ in length.
    #[error("{path}: column `{column}` has {found} values but the first column has {expected}")]
    ColumnLength {
        /// The file.
        path: String,
        /// The column.
        column: String,
        /// Its values.
        found: usize,
        /// Those of the first column.
        expected: usize,
    },
    /// A column that is to be added exists.
    #[error("{path}: there is a column `{column}` already; choose another name for the new one")]
    ColumnExists {
        /// The file.
        path: String,
        /// The column.
        column: String,
    },
    /// A copy is to be written in another format than its source.
    #[error("{path}: the copy of a {from} file must be {from} too, but this name means {to}; change its extension")]
    FormatChange {
        /// The file to be written.
        path: String,
        /// The source's format.
        from: &'static str,
        /// The format that the name of the copy stands for.
        to: &'static str,
    },
    /// Not an MNIST idx file, or a damaged one.
    #[error("{path}: not a readable idx file: {cause}")]
    Idx {
        /// The file.
        path: String,
        /// What is wrong.
        cause: String,
    },
    /// No column was named to hold the labels.
    #[error(
        "{path}: which column holds the labels? Name it with `--label COLUMN`, or give the labels in a file of their own with `--labels FILE`; the columns are {columns}"
    )]
    NoLabelColumn {
        /// The file.
        path: String,
        /// The first columns of the file.
        columns: String,
    },
    /// The inputs come without labels.
    #[error("{path}: {what}; give the labels in a file of their own with `--labels FILE`")]
    NoLabelsInside {
        /// The file or folder.
        path: String,
        /// What was looked for, and not found.
        what: String,
    },
    /// A label column is named for something that has no columns.
    #[error(
        "{path}: {kind} has no column `{label}`: its labels are its own; leave out `--label`, or name a table of labels with `--labels FILE` too"
    )]
    LabelNotAColumn {
        /// The file or folder.
        path: String,
        /// What it is.
        kind: &'static str,
        /// The label asked for.
        label: String,
    },
    /// What has no columns has no column of names.
    #[error("{path}: {kind} has no column `{id}`: only the rows of a table can be named by one; leave out `--id`")]
    IdNotAColumn {
        /// The file or folder.
        path: String,
        /// What it is.
        kind: &'static str,
        /// The column asked for.
        id: String,
    },
    /// The labels are not as many as the rows.
    #[error(
        "{path}: there are {found} labels for the {expected} rows of {inputs}; one label a row is needed, blank where it is missing"
    )]
    LabelCount {
        /// Where the labels are.
        path: String,
        /// Labels found.
        found: usize,
        /// Rows they should belong to.
        expected: usize,
        /// Where the rows are.
        inputs: String,
    },
    /// A table of labels names a file that the folder does not have.
    #[error("{path}: row {row} names `{file}`, {trouble}")]
    LabelledFile {
        /// The table of labels.
        path: String,
        /// The row, from 1.
        row: usize,
        /// The file it names.
        file: String,
        /// What is wrong with it, and what to do.
        trouble: String,
    },
    /// Text in a column of numbers.
    #[error(
        "{path}: row {row}, column `{column}`: `{value}` is not a number, though nearly all values of the column are; mend it, say that it stands for a missing value with `--missing {value}`, or take all values of the column for names with `--categorical {column}`"
    )]
    MixedColumn {
        /// The file.
        path: String,
        /// The row, from 1.
        row: usize,
        /// The column.
        column: String,
        /// The text found.
        value: String,
    },
    /// A column of names in which hardly any name comes twice, or one of very many names.
    #[error(
        "{path}: column `{column}` has {levels} different values in {rows} rows, as identifiers or free text have, and would teach nothing; leave it out with `--ignore {column}`, or have it written beside every prediction with `--id {column}`"
    )]
    TooManyLevels {
        /// The file.
        path: String,
        /// The column.
        column: String,
        /// Its different values.
        levels: usize,
        /// Rows that have a value.
        rows: usize,
    },
    /// A feature is too large for the precision in which features are kept.
    #[error(
        "{path}: row {row}, column `{column}`: the value is {value:e}, but features must be below 3.4e38; divide the column by a constant, or leave it out with `--ignore {column}`"
    )]
    TooLarge {
        /// The file.
        path: String,
        /// The row, from 1.
        row: usize,
        /// The column.
        column: String,
        /// The value.
        value: f64,
    },
    /// A feature varies too little around too large a value for the precision in which features are kept.
    #[error(
        "{path}: column `{column}` varies by {sd:.3e} around {mean:.9e}, which seven digits do not show; subtract a constant from it, or leave it out with `--ignore {column}`"
    )]
    TooFine {
        /// The file.
        path: String,
        /// The column.
        column: String,
        /// Its mean.
        mean: f64,
        /// Its standard deviation.
        sd: f64,
    },
    /// Every feature has one value only.
    #[error("{path}: no feature varies ({dropped}), so there is nothing to learn from")]
    AllConstant {
        /// The file.
        path: String,
        /// The columns.
        dropped: String,
    },
    /// The lists of a column differ in length.
    #[error(
        "{path}: row {row}, column `{column}`: a list of {found} numbers, where the others have {expected}; all lists must be of one length"
    )]
    ListLength {
        /// The file.
        path: String,
        /// The row, from 1.
        row: usize,
        /// The column.
        column: String,
        /// Numbers in this row.
        found: usize,
        /// Numbers in the rows before.
        expected: usize,
    },
    /// Not a numpy array, or a damaged one.
    #[error("{path}: not a readable numpy array: {cause}")]
    Npy {
        /// The file, with the name of the array where it holds several.
        path: String,
        /// What is wrong, and what to do.
        cause: String,
    },
    /// A numpy array of a type or shape that does not fit its role.
    #[error("{path}: the array is {found}, but {expected}")]
    ArrayKind {
        /// The file, with the name of the array where it holds several.
        path: String,
        /// Its type and shape.
        found: String,
        /// What is needed, and what to do.
        expected: String,
    },
    /// Not an archive of numpy arrays, or a damaged one.
    #[error("{path}: not a readable .npz file: {cause}")]
    Npz {
        /// The file.
        path: String,
        /// What is wrong.
        cause: String,
    },
    /// An archive lacks an array.
    #[error("{path}: there is no array {wanted} (the arrays are {keys})")]
    MissingKey {
        /// The file.
        path: String,
        /// The names that would do.
        wanted: String,
        /// The arrays there are.
        keys: String,
    },
    /// A label in a numpy array is no whole number.
    #[error(
        "{path}: row {row}: label {value} is not a whole number; number the classes from 0, with -1 for a missing label"
    )]
    LabelNotWhole {
        /// The file.
        path: String,
        /// The row, from 1.
        row: usize,
        /// The value.
        value: f64,
    },
    /// The data have no such part.
    #[error("{path}: there is no {split} part ({has})")]
    NoSplit {
        /// The file or folder.
        path: String,
        /// The part asked for.
        split: &'static str,
        /// What there is.
        has: String,
    },
    /// Not a CIFAR-10 file, or a damaged one.
    #[error("{path}: not a readable CIFAR-10 file: {cause}")]
    Cifar {
        /// The file.
        path: String,
        /// What is wrong.
        cause: String,
    },
    /// An image that cannot be decoded.
    #[error("{path}: not a readable image: {cause}")]
    Image {
        /// The file.
        path: String,
        /// What the decoder said.
        cause: String,
    },
    /// Two images of different sizes.
    #[error(
        "{second} is {second_size} pixels but {first} is {first_size}; all images must be of one size: `--resize HEIGHTxWIDTH` makes them so"
    )]
    ImageSizes {
        /// An image.
        first: String,
        /// Its size.
        first_size: String,
        /// Another image.
        second: String,
        /// Its size.
        second_size: String,
    },
    /// A folder without images.
    #[error("{path}: there are no images in the folder; {advice}")]
    NoImages {
        /// The folder.
        path: String,
        /// What it should hold.
        advice: &'static str,
    },
    /// The images are not of the shape that a model needs.
    #[error("{path}: the images are {found}, but {expected} is needed")]
    ImageShape {
        /// The file or folder.
        path: String,
        /// Their shape.
        found: String,
        /// The shape needed.
        expected: String,
    },
    /// Images where a table is needed, or the other way round.
    #[error("{path}: it holds {found}, but {expected} needed")]
    WrongInputs {
        /// The file or folder.
        path: String,
        /// What it holds.
        found: &'static str,
        /// What is needed, with its verb.
        expected: &'static str,
    },
    /// The rows were read, but make no sense together.
    #[error("{path}: {cause}")]
    Core {
        /// The file.
        path: String,
        /// What the statistics crate said.
        cause: mnar::Error,
    },
}

impl DataError {
    pub(crate) fn io(path: &str, action: &'static str, cause: io::Error) -> Self {
        DataError::Io { path: path.to_owned(), action, cause }
    }

    pub(crate) fn core(path: &str, cause: mnar::Error) -> Self {
        DataError::Core { path: path.to_owned(), cause }
    }

    pub(crate) fn parquet(path: &str, cause: impl Display) -> Self {
        DataError::Parquet { path: path.to_owned(), cause: shorten(&cause.to_string(), 300) }
    }
}

/// The name of a file in messages.
pub(crate) fn show(path: &Path) -> String {
    path.display().to_string()
}

/// A value for a message: an unclosed quote can make one value of a whole file.
pub(crate) fn shorten(value: &str, most: usize) -> String {
    match value.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

/// Names for a message: all of them when few, the first dozen otherwise.
pub(crate) fn list<S: AsRef<str>>(names: &[S]) -> String {
    const SHOWN: usize = 12;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| shorten(name.as_ref(), 60)).collect();
    let shown = shown.join(", ");
    if names.len() > SHOWN { format!("{shown}, and {} more", names.len() - SHOWN) } else { shown }
}
