//! What can be wrong with a file. Every message starts with the file, then says what is wrong, and where.
//!
//! Rows are counted from 1 below the header. The cause of an error is given by `source()` alone, so that printing the
//! chain says it once; what the user could do about it is offered as data by [`DataError::remedies`].

mod causes;
mod label_advice;
mod remedies;
mod role;
mod words;

pub use label_advice::LabelAdvice;
pub(crate) use remedies::{DEFAULT_PREFIX, read_as_missing};
pub use role::ColumnRole;
pub(crate) use words::{SHOWN, list, said, shorten, show, ticked};

use crate::disguise::Disguise;
use crate::guard::{SHARE, amount};
use mnar::posteriors::are_percentages;
use std::io;
use words::{itemised, unknown};

/// The error of a decoder.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The one error type of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A column that marks rows holds something else.
    #[error("{path}: the column `{column}` marks rows, so it must hold 1 and 0 or yes and no, but it holds `{value}`")]
    NotAMark {
        /// The table.
        path: String,
        /// The column.
        column: String,
        /// What it holds.
        value: String,
    },
    /// The operating system refused.
    #[error("{path}: cannot be {action}")]
    Io {
        /// The file.
        path: String,
        /// What was tried: "opened", "read", "written".
        action: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A result would replace what it is made from.
    #[error("{path}: this file is read, and the result would replace it; write the result to another file")]
    OutputIsInput {
        /// The file.
        path: String,
    },
    /// A result cannot be written in the format of its name.
    #[error("{path}: a {format} file cannot be written; choose a name that ends in .csv, .tsv or .parquet")]
    OutputFormat {
        /// The file.
        path: String,
        /// The format.
        format: &'static str,
    },
    /// A table lacks what is asked of it, but only one sheet of several was read.
    #[error("{lack}, in the sheet `{sheet}`; the other sheets are {}", ticked(.others))]
    OneSheet {
        /// What the sheet lacks.
        lack: Box<DataError>,
        /// The sheet that was read.
        sheet: String,
        /// The other sheets.
        others: Vec<String>,
    },
    /// The file is empty.
    #[error("{path}: the file is empty; a header with the column names and at least one row are needed")]
    Empty {
        /// The file.
        path: String,
    },
    /// There is a header, but no rows.
    #[error("{path}: there are no rows below the header")]
    NoRows {
        /// The file.
        path: String,
    },
    /// A text is not UTF-8.
    #[error("{path}: {place} is not UTF-8 text; save the file as UTF-8 (a spreadsheet offers \"CSV UTF-8\")")]
    NotUtf8 {
        /// The file.
        path: String,
        /// Where: the header, or a row and column.
        place: String,
    },
    /// The file is not text at all, though its name says so.
    #[error("{path}: this is not a table of text: {what}")]
    NotText {
        /// The file.
        path: String,
        /// What it is instead, and what to do.
        what: &'static str,
    },
    /// Several columns cannot be used.
    #[error("{path}: {} columns cannot be used as they are:{}", problems.len(), itemised(problems, path))]
    Columns {
        /// The file.
        path: String,
        /// One error per column, in the order of the columns.
        problems: Vec<DataError>,
    },
    /// Two columns carry the same name.
    #[error("{path}: more than one column is called {names}; column names must differ")]
    DuplicateColumns {
        /// The file.
        path: String,
        /// The repeated names.
        names: String,
    },
    /// Several columns have no name.
    #[error(
        "{path}: columns {} have no name; write the name of every column into the first row (a cell that is merged over several columns names only the first)",
        list(&positions.iter().map(usize::to_string).collect::<Vec<_>>())
    )]
    UnnamedColumns {
        /// The file.
        path: String,
        /// Their positions, from 1.
        positions: Vec<usize>,
    },
    /// The header stands below a title.
    #[error(
        "{path}: the first row ({}) does not name the columns; row {row} seems to ({})",
        if title.is_empty() { "empty".to_owned() } else { format!("`{}`", shorten(title, SHOWN)) },
        list(columns)
    )]
    TitleRows {
        /// The file.
        path: String,
        /// The row of the header, from 1.
        row: usize,
        /// What the first row holds.
        title: String,
        /// What the row of the header holds.
        columns: Vec<String>,
        /// Whether the rows above the header can be skipped by an option.
        skippable: bool,
    },
    /// All rows are skipped.
    #[error("{path}: nothing is left below the {skipped} rows that are skipped")]
    AllSkipped {
        /// The file.
        path: String,
        /// How many rows are skipped.
        skipped: usize,
    },
    /// Rows above the header are to be skipped where there can be none.
    #[error("{path}: a {kind} has no rows above its header that could be skipped")]
    NoLines {
        /// The file.
        path: String,
        /// What it is.
        kind: &'static str,
    },
    /// A requested column does not exist.
    #[error("{path}: there is no column `{}`{hint} (the columns are {columns})", shorten(.name, SHOWN))]
    UnknownColumn {
        /// The file.
        path: String,
        /// The requested name.
        name: String,
        /// ", did you mean ...?" or another remark; may be empty.
        hint: String,
        /// The first columns of the file.
        columns: String,
    },
    /// A table lacks columns that a model was trained on.
    #[error("{path}: the model needs columns that the table does not have: {missing}{}", unknown(.extra))]
    ModelColumns {
        /// The file.
        path: String,
        /// The columns that are missing.
        missing: String,
        /// The columns of the table that the model does not know; empty if there are none.
        extra: String,
    },
    /// No column starts with the prefix of probabilities.
    #[error(
        "{path}: no column starts with `{prefix}`; one column `{prefix}<class>` per class is needed, or the name of a column with all of them; the columns are {columns}"
    )]
    NoClassColumns {
        /// The file.
        path: String,
        /// The prefix.
        prefix: String,
        /// The first columns of the file.
        columns: String,
        /// A column, or what several start with, that could be meant.
        likely: Option<String>,
    },
    /// A column is the bare prefix, so its class has no name.
    #[error("{path}: column `{column}` does not name a class: nothing follows the prefix; rename the column")]
    UnnamedClass {
        /// The file.
        path: String,
        /// The column.
        column: String,
    },
    /// The same column is requested in two roles, or twice.
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
    /// There is a text where a number should be.
    #[error("{path}: row {row}, column `{column}`: `{}` is not a number; {}", shorten(.value, SHOWN), .role.advice())]
    NotANumber {
        /// The file.
        path: String,
        /// The row, from 1.
        row: usize,
        /// The column.
        column: String,
        /// The text found.
        value: String,
        /// What the column is read as.
        role: ColumnRole,
    },
    /// A number is missing.
    #[error("{path}: row {row}, column `{column}`: the value is missing; {}", .role.advice_missing())]
    MissingValue {
        /// The file.
        path: String,
        /// The row, from 1.
        row: usize,
        /// The column.
        column: String,
        /// What the column is read as.
        role: ColumnRole,
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
    /// A column has a type that does not fit its role.
    #[error("{path}: column `{column}` has type {found}, but {role} must be {expected}; {}", .role.advice())]
    ColumnType {
        /// The file.
        path: String,
        /// The column.
        column: String,
        /// Its type.
        found: String,
        /// What it is read as.
        role: ColumnRole,
        /// The types that would do.
        expected: &'static str,
    },
    /// A label does not belong to any class.
    #[error(
        "{path}: row {row}: label `{}` is not among the classes ({classes}){}; {advice}",
        shorten(.label, SHOWN),
        if others.is_empty() { String::new() } else { format!(", nor are {}", ticked(others)) }
    )]
    UnknownLabel {
        /// The file.
        path: String,
        /// The first row that has it, from 1.
        row: usize,
        /// The label.
        label: String,
        /// Other labels that are not among the classes.
        others: Vec<String>,
        /// The classes.
        classes: String,
        /// What may be the matter.
        advice: Box<LabelAdvice>,
    },
    /// Labels are numbers while classes have names.
    #[error(
        "{path}: the labels are numbers from 0 while the classes have names ({}); say in which order they are numbered",
        list(classes)
    )]
    NumberedLabels {
        /// The file.
        path: String,
        /// The classes, in the order of their columns.
        classes: Vec<String>,
    },
    /// Labels are names of some classes, and numbers of others.
    #[error("{path}: the labels could be names of the classes ({classes}) or their numbers from 0; rename the classes")]
    AmbiguousLabels {
        /// The file.
        path: String,
        /// The classes.
        classes: String,
    },
    /// The classes that were named are not those of the table.
    #[error("{path}: {named} were named as the classes, but {found}")]
    NamedClasses {
        /// The file.
        path: String,
        /// The names.
        named: String,
        /// What the table has.
        found: String,
    },
    /// Nothing says which class each place in a list belongs to.
    #[error(
        "{path}: the lists in `{column}` have {width} numbers, but their classes are not known; name them in the order of the lists (the labels are {})",
        list(labels)
    )]
    ListClasses {
        /// The file.
        path: String,
        /// The column of lists.
        column: String,
        /// The length of the lists.
        width: usize,
        /// The labels, sorted.
        labels: Vec<String>,
    },
    /// Nothing says which class a single column belongs to.
    #[error(
        "{path}: column `{column}` has one number per row, for one of two classes ({}); {}",
        list(classes),
        match positive { Some(name) => format!("`{name}` is neither of them"), None => "say for which".to_owned() }
    )]
    PositiveUnknown {
        /// The file.
        path: String,
        /// The column.
        column: String,
        /// The two classes.
        classes: Vec<String>,
        /// The class that was named.
        positive: Option<String>,
    },
    /// A single column cannot tell more than two classes apart, and less are not known.
    #[error(
        "{path}: column `{column}` has one number per row, which is enough for two classes, but the labels are {}; {}",
        list(labels),
        if labels.len() < 2 { "name both classes" } else { "every class needs its probabilities" }
    )]
    NotTwoClasses {
        /// The file.
        path: String,
        /// The column.
        column: String,
        /// The labels, sorted.
        labels: Vec<String>,
    },
    /// A positive class was named where every class has its probabilities.
    #[error("{path}: `{positive}` was named as the class of a single column, but there is {found}")]
    PositiveUnused {
        /// The file.
        path: String,
        /// The class that was named.
        positive: String,
        /// What the table has.
        found: String,
    },
    /// Standard input was given twice.
    #[error(
        "standard input was given for both the data and the labels, but it can be read once; save one of them to a file"
    )]
    StdinTwice,
    /// A row does not belong to any fold.
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
    #[error("{path}: not a readable Parquet file")]
    Parquet {
        /// The file.
        path: String,
        /// The error of the decoder.
        source: Cause,
    },
    /// A Parquet file is compressed in a way that is not supported.
    #[error(
        "{path}: the file is compressed with {codec}, which cannot be read; write it again with snappy, zstd, gzip or lz4, or without compression"
    )]
    Codec {
        /// The file.
        path: String,
        /// The name of the codec.
        codec: String,
    },
    /// Batches of a table in memory do not fit its schema.
    #[error("{path}: the record batches do not all have the columns of the schema")]
    Batches {
        /// The table.
        path: String,
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
    /// The columns to write differ in length.
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
    /// The name of a new column is taken.
    #[error("{path}: there already is a column `{column}`; choose another name for the new one")]
    ColumnExists {
        /// The file.
        path: String,
        /// The column.
        column: String,
    },
    /// A copy would be written in another format than its source.
    #[error("{path}: the copy of a {from} file must be {from} too, but this name means {to}; change its extension")]
    FormatChange {
        /// The file to write.
        path: String,
        /// The source's format.
        from: &'static str,
        /// The format that the name of the copy stands for.
        to: &'static str,
    },
    /// Copies of tables are made of text and Parquet alone.
    #[error("{path}: no copy can be made of a {kind} file; save it as CSV or Parquet first")]
    CopyOf {
        /// The file.
        path: String,
        /// Its format.
        kind: &'static str,
    },
    /// Not JSON with one object per row.
    #[error("{path}: {place}not readable as JSON with one object per row")]
    Json {
        /// The file.
        path: String,
        /// The row, or nothing.
        place: String,
        /// The error of the decoder.
        source: Cause,
    },
    /// A value of JSON is not a single one.
    #[error("{path}: row {row}, column `{column}`: the value is {what}; write numbers, texts or lists of numbers")]
    Nested {
        /// The file.
        path: String,
        /// The row, from 1.
        row: usize,
        /// The column.
        column: String,
        /// What it is.
        what: &'static str,
    },
    /// Not a spreadsheet, or a damaged one.
    #[error("{path}: not a readable spreadsheet")]
    Excel {
        /// The file.
        path: String,
        /// The error of the decoder.
        source: Cause,
    },
    /// A spreadsheet has no such sheet.
    #[error("{path}: there is no sheet `{sheet}` (the sheets are {})", list(.sheets))]
    UnknownSheet {
        /// The file.
        path: String,
        /// The requested sheet.
        sheet: String,
        /// The sheets there are.
        sheets: Vec<String>,
    },
    /// A sheet is requested of a file that has none.
    #[error("{path}: a {kind} file has no sheets, so there is no `{sheet}`")]
    NoSheets {
        /// The file.
        path: String,
        /// Its format.
        kind: &'static str,
        /// The requested sheet.
        sheet: String,
    },
    /// Not an Arrow file, or a damaged one.
    #[error("{path}: not a readable Arrow or feather file")]
    Arrow {
        /// The file.
        path: String,
        /// The error of the decoder.
        source: Cause,
    },
    /// The program was built without a format.
    #[error("{path}: this program was built without {format}; save the table as CSV or Parquet")]
    NotBuilt {
        /// The file.
        path: String,
        /// The format.
        format: &'static str,
    },
    /// No file fits a pattern.
    #[error("{path}: no file has a name like this")]
    NoMatch {
        /// The pattern.
        path: String,
    },
    /// A pattern stands for files that are not Parquet.
    #[error("{path}: `{file}` is among these files, but only Parquet files can be read as one table")]
    NotParquetPart {
        /// The pattern.
        path: String,
        /// The file.
        file: String,
    },
    /// The files of one table differ in their columns.
    #[error("{path}: it has {difference}; all files of a table must have the columns of {first}")]
    Schema {
        /// The file.
        path: String,
        /// The file that it is compared with.
        first: String,
        /// What differs.
        difference: String,
    },
    /// Not an MNIST idx file, or a damaged one.
    #[error("{path}: not a readable idx file: {what}")]
    Idx {
        /// The file.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// No column was named to hold the labels.
    #[error(
        "{path}: which column holds the labels? Name it, or give the labels in a file of their own; the columns are {columns}"
    )]
    NoLabelColumn {
        /// The file.
        path: String,
        /// A column that could be meant.
        likely: Option<String>,
        /// The first columns of the file.
        columns: String,
    },
    /// The inputs come without labels.
    #[error("{path}: {what}; give the labels in a file of their own")]
    NoLabelsInside {
        /// The file or folder.
        path: String,
        /// What was looked for and not found.
        what: String,
    },
    /// A label column is named for something that has no columns.
    #[error(
        "{path}: {kind} has no column `{label}`: it comes with its own labels; to replace them, give a table of labels too"
    )]
    LabelNotAColumn {
        /// The file or folder.
        path: String,
        /// What it is.
        kind: &'static str,
        /// The requested label.
        label: String,
    },
    /// A column of row names is requested where there are no columns.
    #[error("{path}: {kind} has no column `{id}`: only the rows of a table can be named by a column")]
    IdNotAColumn {
        /// The file or folder.
        path: String,
        /// What it is.
        kind: &'static str,
        /// The requested column.
        id: String,
    },
    /// The number of labels is not the number of rows.
    #[error(
        "{path}: there are {found} labels for the {expected} rows of {inputs}; one label per row is needed, blank where it is missing"
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
    /// A table of labels names a file that the folder does not have, or one twice.
    #[error(
        "{path}: the column `{column}` names images of the folder, but row {row} names `{file}`, {trouble}{}{}",
        without.as_ref().map_or(String::new(), |image| format!(" (the first image without a row is `{image}`)")),
        if **column == *crate::row_names::FILE { "" } else { "; if this column does not name the images, remove it, or call the one that does `file`" }
    )]
    LabelledFile {
        /// The table of labels.
        path: String,
        /// The row, from 1.
        row: usize,
        /// The column that names files.
        column: Box<str>,
        /// The file it names.
        file: Box<str>,
        /// What is wrong with it, and what to do.
        trouble: Box<str>,
        /// The first image that no row names.
        without: Option<Box<str>>,
    },
    /// Two columns of a table of labels name the images, and not alike.
    #[error(
        "{path}: the columns `{first}` and `{second}` both name the images of the folder, but different ones in the same row; call the one that the labels are about `file`"
    )]
    TwoColumnsOfImages {
        /// The table of labels.
        path: String,
        /// A column.
        first: String,
        /// Another.
        second: String,
    },
    /// Labels that were matched by position are not those of the folders that the images are in.
    #[error(
        "{path}: no column names the images, and by position {images} of {of} images in {inputs} have the label of another folder than their own, such as `{example}`, labelled `{label}`; the rows may be in another order than the images: add a column `file` that names them"
    )]
    LabelsAgainstFolders {
        /// The table of labels.
        path: String,
        /// The folder.
        inputs: Box<str>,
        /// How many images.
        images: usize,
        /// How many images in the folder of a class have a label that is the name of such a folder.
        of: usize,
        /// The first of the images.
        example: Box<str>,
        /// Its label.
        label: Box<str>,
    },
    /// There is a text in a column of numbers.
    #[error(
        "{path}: row {row}, column `{column}`: `{}` is not a number, though nearly all values of the column are{}; correct it, read it as a missing value, or read the whole column as names",
        shorten(.value, SHOWN),
        if others.is_empty() { String::new() } else { format!(" (nor {} {})", if others.len() == 1 { "is" } else { "are" }, ticked(others)) }
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
        /// Other texts of the column that are not numbers.
        others: Vec<String>,
    },
    /// Hardly any name in a column of names occurs twice, or there are very many names.
    #[error(
        "{path}: column `{column}` has {levels} different values in {rows} rows, like identifiers or free text, so nothing can be learnt from it; leave it out, or let it name the rows"
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
    /// A column of names holds what people read as numbers or dates.
    #[error(
        "{path}: column `{column}` holds {looks_like}, such as `{example}`, and cannot be read as numbers; {}, or leave the column out", looks_like.advice()
    )]
    Disguised {
        /// The file.
        path: String,
        /// The column.
        column: String,
        /// What its values look like.
        looks_like: Disguise,
        /// One of them.
        example: String,
    },
    /// A feature is too large for the precision in which features are kept.
    #[error(
        "{path}: row {row}, column `{column}`: the value is {value:e}, but features must be below 3.4e38; divide the column by a constant, or leave it out"
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
        "{path}: column `{column}` varies by {sd:.3e} around {mean:.9e}, which seven digits do not show; subtract a constant from it, or leave it out"
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
        "{path}: row {row}, column `{column}`: a list of {found} numbers, where the others have {expected}; all lists must have the same length"
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
    #[error("{path}: not a readable numpy array: {what}")]
    Npy {
        /// The file, with the name of the array where it holds several.
        path: String,
        /// What is wrong, and what to do.
        what: String,
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
    #[error("{path}: not a readable .npz file")]
    Npz {
        /// The file.
        path: String,
        /// What is wrong.
        source: Cause,
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
    /// A label in a numpy array is not a whole number.
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
        /// The requested part.
        split: &'static str,
        /// The parts that exist.
        has: String,
    },
    /// Not a CIFAR-10 file, or a damaged one.
    #[error("{path}: not a readable CIFAR-10 file: {what}")]
    Cifar {
        /// The file.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// An image cannot be decoded.
    #[error("{path}: not a readable image")]
    Image {
        /// The file.
        path: String,
        /// The error of the decoder.
        source: Cause,
    },
    /// Two images differ in size.
    #[error(
        "{second} is {second_size} pixels but {first} is {first_size}; all images must have the same size, or be resized to one"
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
    /// A folder has no images.
    #[error("{path}: there are no images in the folder; {advice}")]
    NoImages {
        /// The folder.
        path: String,
        /// What it should hold.
        advice: &'static str,
    },
    /// The images of a folder are not in folders of classes, and nothing else says their classes.
    #[error(
        "{path}: there {} in the folder, but no folders of classes, so that nothing says what {}; {advice}, or give the labels in a file of their own",
        if *images == 1 { "is 1 image".to_owned() } else { format!("are {images} images") },
        if *images == 1 { "it shows" } else { "they show" }
    )]
    NoClassFolders {
        /// The folder.
        path: String,
        /// How many images there are.
        images: usize,
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
    /// There are images where a table is needed, or the other way round.
    #[error("{path}: it holds {found}, but {expected} needed")]
    WrongInputs {
        /// The file or folder.
        path: String,
        /// What it holds.
        found: &'static str,
        /// What is needed, with its verb.
        expected: &'static str,
    },
    /// A probability is not a number from 0 to 1.
    #[error(
        "{path}: row {row}: the probability of class `{class}` is {value}; probabilities must be numbers from 0 to 1{}",
        if are_percentages(*sum) { ", so divide percentages by 100" } else { "" }
    )]
    NotAProbability {
        /// The file.
        path: String,
        /// The row, from 1.
        row: usize,
        /// The name of the class.
        class: String,
        /// The value.
        value: f64,
        /// The sum of the row.
        sum: f64,
    },
    /// A logit is not a number.
    #[error("{path}: row {row}: the logit of class `{class}` is {value}; logits must be numbers")]
    NotALogit {
        /// The file.
        path: String,
        /// The row, from 1.
        row: usize,
        /// The name of the class.
        class: String,
        /// The value.
        value: f64,
    },
    /// What a file holds, or claims to hold, is more than may be kept in memory.
    #[error(
        "{path}: {what} take {} of memory or more, but with {} in all data may take {}",
        amount(*.needed),
        amount(.limit.saturating_mul(SHARE)),
        amount(*.limit)
    )]
    Memory {
        /// The file.
        path: String,
        /// What takes the memory, in the plural.
        what: &'static str,
        /// The bytes needed, as far as they were counted.
        needed: u64,
        /// The bytes that data may take.
        limit: u64,
    },
    /// Something that is neither a file nor a folder stands where only these can be read.
    #[error("{path}: it is {what}, and {needs}; save it to a file first")]
    NotAFile {
        /// The path.
        path: String,
        /// What it is.
        what: &'static str,
        /// Why that is not enough.
        needs: &'static str,
    },
    /// The rows were read, but the statistics cannot use them.
    #[error("{path}: cannot be used")]
    Core {
        /// The file.
        path: String,
        /// The error of the statistics crate.
        source: mnar::Error,
    },
}
