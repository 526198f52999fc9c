//! What can be wrong with a file. Every message starts with the file, then says what is wrong, and where.
//!
//! Rows are counted from 1 below the header. The cause of an error is given by `source()` alone, so that printing the
//! chain says it once; what the user could do about it is offered as data by [`DataError::remedies`].

use crate::disguise::Disguise;
use crate::guard::{OverLimit, SHARE, amount};
use mnar::Remedy;
use mnar::posteriors::are_percentages;
use parquet::errors::ParquetError;
use std::fmt;
use std::io;
use std::path::Path;

/// The error of a decoder.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// What a column is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnRole {
    /// A label or the fold of a row.
    Label,
    /// The probability of a class.
    Probability,
    /// The logit of a class.
    Logit,
    /// A feature that has to be a number without gaps.
    Number,
    /// A feature of a data set: numbers or names, with gaps.
    Feature,
    /// A feature of a trained model, which has to be what it was in training.
    Learnt,
}

impl ColumnRole {
    /// What makes a value fit for this role.
    fn advice(self) -> &'static str {
        match self {
            ColumnRole::Label => "write the column as text",
            ColumnRole::Probability => "every row, labelled or not, needs a probability from 0 to 1 for every class",
            ColumnRole::Logit => "every row, labelled or not, needs a logit for every class",
            ColumnRole::Number => "choose the numeric columns to use, or write this one as numbers",
            ColumnRole::Feature => "write it as one of these, or leave it out",
            ColumnRole::Learnt => "it must be as it was in training",
        }
    }

    /// What to do about a missing value.
    fn advice_missing(self) -> &'static str {
        match self {
            ColumnRole::Number => "fill it in, drop the row, or choose columns without gaps",
            other => other.advice(),
        }
    }
}

impl fmt::Display for ColumnRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ColumnRole::Label => "a label or fold",
            ColumnRole::Probability => "a probability",
            ColumnRole::Logit => "a logit",
            ColumnRole::Number | ColumnRole::Feature => "a feature",
            ColumnRole::Learnt => "this feature",
        })
    }
}

/// Sheets that are suggested.
const MOST_SHEETS: usize = 4;

/// Columns that a model does not know, as the end of a message.
fn unknown(columns: &str) -> String {
    if columns.is_empty() { String::new() } else { format!("; columns that it does not know: {columns}") }
}

/// What may be the matter with a label that is not among the classes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelAdvice {
    /// It looks like a mark of a missing label.
    Missing,
    /// There is no column for its class, which would have this name.
    NoColumn(String),
    /// There is one column alone, for another class.
    OneColumn {
        /// The column.
        column: String,
        /// Its class.
        class: String,
    },
    /// It was not named with the classes.
    NotNamed,
}

impl fmt::Display for LabelAdvice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabelAdvice::Missing => f.write_str("does it stand for a missing label?"),
            LabelAdvice::NoColumn(column) => write!(f, "its probabilities would be in a column `{column}`"),
            LabelAdvice::OneColumn { column, .. } => {
                write!(f, "one column is enough for two classes, if `{column}` is named as the only one")
            }
            LabelAdvice::NotNamed => f.write_str("name all classes, or number the labels from 0"),
        }
    }
}

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
    /// A requested column does not exist.
    #[error("{path}: there is no column `{name}`{hint} (the columns are {columns})")]
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
    /// There is a text in a column of numbers.
    #[error(
        "{path}: row {row}, column `{column}`: `{}` is not a number, though nearly all values of the column are; correct it, read it as a missing value, or read the whole column as names",
        shorten(.value, SHOWN)
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

/// What the names of probability columns start with unless another prefix is named.
pub(crate) const DEFAULT_PREFIX: &str = "p_";

/// Characters of a value that a message shows: an unclosed quote can make one value of a whole file.
const SHOWN: usize = 60;

impl DataError {
    /// What the user could do about the error, as options and their values.
    ///
    /// ```
    /// use mnar::Remedy;
    /// use mnar_data::{PredictionColumns, predictions_from_csv};
    /// let csv = "label,p_cat,p_dog\ncat,0.9,0.1\nunknown,0.3,0.7\ndog,0.2,0.8\n";
    /// let error = predictions_from_csv(csv.as_bytes(), &PredictionColumns::new("label"), "pets.csv").unwrap_err();
    /// assert_eq!(error.remedies(), [Remedy::set("missing", "unknown")]);
    /// ```
    pub fn remedies(&self) -> Vec<Remedy> {
        // What a message has to shorten is free text or a damaged file, not a value to be named.
        let named = |option, value: &String| (value.chars().count() <= SHOWN).then(|| Remedy::set(option, value));
        match self {
            DataError::NoClassColumns { likely: Some(likely), .. } => vec![Remedy::set("proba", likely)],
            // Nobody named probabilities, and nothing looks like them: the columns may be features.
            DataError::NoClassColumns { likely: None, prefix, .. } => {
                let features = (prefix == DEFAULT_PREFIX).then(|| Remedy::set("features", "all"));
                std::iter::once(Remedy::set("proba", "PREFIX")).chain(features).collect()
            }
            DataError::UnknownLabel { label, advice, .. } => match &**advice {
                LabelAdvice::Missing => named("missing", label).into_iter().collect(),
                LabelAdvice::OneColumn { column, class } => {
                    vec![Remedy::All(vec![Remedy::set("proba", column), Remedy::set("positive", class)])]
                }
                LabelAdvice::NoColumn(_) | LabelAdvice::NotNamed => Vec::new(),
            },
            DataError::NumberedLabels { classes, .. } => vec![in_order(classes)],
            DataError::ListClasses { labels, width, .. } if labels.len() == *width => vec![in_order(labels)],
            DataError::ListClasses { .. } => vec![Remedy::set("classes", "NAMES")],
            DataError::PositiveUnknown { classes, .. } => {
                classes.iter().map(|class| Remedy::set("positive", class)).collect()
            }
            DataError::NotTwoClasses { labels, .. } => match &labels[..] {
                [only] => vec![in_order(&["OTHER".to_owned(), only.clone()])],
                _ => Vec::new(),
            },
            DataError::PositiveUnused { .. } => vec![Remedy::unset("positive")],
            DataError::NotAProbability { value, sum, .. } if value.is_finite() && !are_percentages(*sum) => {
                vec![Remedy::set("logits", "")]
            }
            DataError::NotANumber { role: ColumnRole::Number, .. }
            | DataError::MissingValue { role: ColumnRole::Number, .. }
            | DataError::ColumnType { role: ColumnRole::Number, .. } => vec![Remedy::set("features", "COLUMNS")],
            DataError::ColumnType { role: ColumnRole::Feature, column, .. }
            | DataError::Infinite { column, .. }
            | DataError::ListLength { column, .. }
            | DataError::Disguised { column, .. }
            | DataError::TooLarge { column, .. }
            | DataError::TooFine { column, .. } => vec![Remedy::set("ignore", column)],
            DataError::TooManyLevels { column, .. } => vec![Remedy::set("ignore", column), Remedy::set("id", column)],
            DataError::MixedColumn { column, value, .. } => {
                named("missing", value).into_iter().chain([Remedy::set("categorical", column)]).collect()
            }
            DataError::NoLabelColumn { .. } => vec![Remedy::set("label", "COLUMN"), Remedy::set("labels", "FILE")],
            DataError::NoLabelsInside { .. } => vec![Remedy::set("labels", "FILE")],
            DataError::LabelNotAColumn { .. } => vec![Remedy::unset("label"), Remedy::set("labels", "FILE")],
            DataError::IdNotAColumn { .. } => vec![Remedy::unset("id")],
            DataError::NoSheets { .. } => vec![Remedy::unset("sheet")],
            DataError::UnknownSheet { sheets, .. } | DataError::OneSheet { others: sheets, .. } => {
                sheets.iter().take(MOST_SHEETS).map(|sheet| Remedy::set("sheet", sheet)).collect()
            }
            DataError::ImageSizes { .. } => vec![Remedy::set("resize", "HEIGHTxWIDTH")],
            DataError::Memory { .. } => vec![Remedy::set("memory", "SIZE")],
            // One hint for all columns: the first remedy of each.
            DataError::Columns { problems, .. } => {
                let mut together = Vec::new();
                for remedy in problems.iter().filter_map(|problem| problem.remedies().into_iter().next()) {
                    if !together.contains(&remedy) {
                        together.push(remedy);
                    }
                }
                if together.is_empty() { together } else { vec![Remedy::All(together)] }
            }
            _ => Vec::new(),
        }
    }

    /// The column whose values cannot be used, where the error is about one.
    pub fn column(&self) -> Option<&str> {
        match self {
            DataError::NotANumber { column, .. }
            | DataError::Infinite { column, .. }
            | DataError::ColumnType { column, .. }
            | DataError::MixedColumn { column, .. }
            | DataError::TooManyLevels { column, .. }
            | DataError::Disguised { column, .. }
            | DataError::TooLarge { column, .. }
            | DataError::TooFine { column, .. }
            | DataError::ListLength { column, .. } => Some(column),
            _ => None,
        }
    }

    /// One error for all that is wrong.
    pub(crate) fn all(mut problems: Vec<DataError>, path: &str) -> Self {
        match problems.pop() {
            Some(only) if problems.is_empty() => only,
            last => {
                problems.extend(last);
                DataError::Columns { path: path.to_owned(), problems }
            }
        }
    }

    pub(crate) fn io(path: &str, action: &'static str, source: io::Error) -> Self {
        match OverLimit::of(&source) {
            Some(limit) => DataError::Memory { path: path.to_owned(), what: "its contents", needed: limit, limit },
            None => DataError::Io { path: path.to_owned(), action, source },
        }
    }

    pub(crate) fn core(path: &str, source: mnar::Error) -> Self {
        DataError::Core { path: path.to_owned(), source }
    }

    /// An error of the checks of probabilities, which know classes by their number from 1, with the name of the class.
    pub(crate) fn posterior(path: &str, source: mnar::Error, classes: &[String]) -> Self {
        match source {
            mnar::Error::NotAProbability { row, class, value, sum } => {
                let class = classes[class.index()].clone();
                DataError::NotAProbability { path: path.to_owned(), row, class, value, sum }
            }
            mnar::Error::NotFinite { row, column, value, .. } => {
                let class = classes[column - 1].clone();
                DataError::NotALogit { path: path.to_owned(), row, class, value }
            }
            other => Self::core(path, other),
        }
    }

    pub(crate) fn parquet(path: &str, cause: impl fmt::Display) -> Self {
        DataError::Parquet { path: path.to_owned(), source: said(cause) }
    }

    /// An error in writing Parquet; the error of the operating system is unwrapped, so that a closed pipe is recognised.
    pub(crate) fn parquet_written(path: &str, error: ParquetError) -> Self {
        let source = match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(source) => *source,
                Err(other) => io::Error::other(other),
            },
            other => io::Error::other(other),
        };
        Self::io(path, "written", source)
    }

    /// An error in writing CSV; the error of the operating system is unwrapped, so that a closed pipe is recognised.
    pub(crate) fn csv(path: &str, action: &'static str, error: csv::Error) -> Self {
        let source = match error.into_kind() {
            csv::ErrorKind::Io(source) => source,
            other => io::Error::other(format!("{other:?}")),
        };
        Self::io(path, action, source)
    }
}

/// Names the classes in this order, unless a comma in a name would make two of it.
fn in_order(classes: &[String]) -> Remedy {
    let plain = classes.iter().all(|class| !class.contains(',') && class.chars().count() <= SHOWN);
    Remedy::set("classes", if plain { classes.join(",") } else { "NAMES".to_owned() })
}

/// Errors of the same file, one per line.
fn itemised(problems: &[DataError], path: &str) -> String {
    const MOST: usize = 10;
    let start = format!("{path}: ");
    let mut text = String::new();
    for problem in problems.iter().take(MOST) {
        let said = problem.to_string();
        text.push_str(&format!("\n  - {}", said.strip_prefix(&start).unwrap_or(&said)));
    }
    if problems.len() > MOST {
        text.push_str(&format!("\n  - and {} more", problems.len() - MOST));
    }
    text
}

/// The words of a decoder, which may quote a whole damaged file.
pub(crate) fn said(cause: impl fmt::Display) -> Cause {
    shorten(&cause.to_string(), 300).into()
}

/// The name of a file in messages.
pub(crate) fn show(path: &Path) -> String {
    path.display().to_string()
}

/// The first `most` characters of a value.
pub(crate) fn shorten(value: &str, most: usize) -> String {
    match value.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

/// Names for a message, each in quotes.
pub(crate) fn ticked<S: AsRef<str>>(names: &[S]) -> String {
    list(&names.iter().map(|name| format!("`{}`", name.as_ref())).collect::<Vec<_>>())
}

/// Names for a message: all of them when few, the first dozen otherwise.
pub(crate) fn list<S: AsRef<str>>(names: &[S]) -> String {
    const MOST: usize = 12;
    let shown: Vec<String> = names.iter().take(MOST).map(|name| shorten(name.as_ref(), SHOWN)).collect();
    let shown = shown.join(", ");
    if names.len() > MOST { format!("{shown}, and {} more", names.len() - MOST) } else { shown }
}
