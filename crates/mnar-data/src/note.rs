//! What a reader took the liberty of deciding, for the edge to print.

use crate::dates::DateFormat;
use crate::disguise::Disguise;
use crate::error::{SHOWN, list, read_as_missing, shorten, ticked};
use mnar::Remedy;
use std::fmt;

/// Something that was detected in a file, or done about it, and that the user should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// The values are separated by something else than the name of the file says.
    Delimiter {
        /// The separator in words, such as `semicolon`.
        name: &'static str,
    },
    /// The text is not UTF-8.
    Encoding {
        /// The encoding, such as `Windows-1252`.
        name: &'static str,
    },
    /// Numbers are written as `1,5`.
    DecimalCommas {
        /// The columns.
        columns: Vec<String>,
    },
    /// Labels such as `NA` were read as missing.
    MissingLabels {
        /// The texts, and how many labels of each there are.
        marks: Vec<(String, usize)>,
    },
    /// Values such as `?` in a column of numbers were read as missing.
    MissingValues {
        /// The column.
        column: String,
        /// The texts, and how many values of each there are.
        marks: Vec<(String, usize)>,
    },
    /// Dates became numbers.
    Dates {
        /// The columns.
        columns: Vec<String>,
        /// How they are written.
        format: DateFormat,
        /// Whether day and month could be meant the other way round.
        ambiguous: bool,
    },
    /// A column that looks like an identifier is not used as a feature.
    Identifier {
        /// The column.
        column: String,
        /// Why it looks like one.
        reason: IdentifierReason,
    },
    /// A column of names holds what people read as numbers or dates.
    Disguised {
        /// The column.
        column: String,
        /// What its names look like.
        looks_like: Disguise,
        /// One of them.
        example: String,
    },
    /// A column holds names, because some of its values are not numbers.
    MostlyNumbers {
        /// The column.
        column: String,
        /// Values that are not numbers, and how many rows have each; those of most rows first.
        values: Vec<(String, usize)>,
        /// How many different values are not numbers.
        kinds: usize,
        /// How many rows have one of them.
        rows: usize,
        /// How many rows have a value.
        of: usize,
    },
    /// Points in numbers were read as decimal points, and may stand between thousands.
    Thousands {
        /// The columns.
        columns: Vec<String>,
    },
    /// Numbers with leading zeros, which may be codes.
    LeadingZeros {
        /// The columns.
        columns: Vec<String>,
    },
    /// Columns that have the same value in every row are not used as features.
    Constant {
        /// The columns.
        columns: Vec<String>,
    },
    /// A class that may stand for missing labels.
    MissingClass {
        /// The class.
        label: String,
        /// How many rows have it.
        rows: usize,
    },
    /// Labels that differ only by case or blanks were made one class.
    MergedLabels {
        /// The class.
        into: String,
        /// The other names, and how many labels have each.
        others: Vec<(String, usize)>,
    },
    /// Names that differ only by case or blanks, and are kept apart.
    SimilarNames {
        /// The column, or `None` for the classes.
        column: Option<String>,
        /// The names that are alike.
        names: Vec<String>,
    },
    /// One sheet of several was read.
    Sheet {
        /// The sheet.
        name: String,
        /// The other sheets.
        others: Vec<String>,
    },
    /// The places in a list of probabilities were taken for these classes.
    ListClasses {
        /// The column of lists.
        column: String,
        /// The classes, in the order of the lists.
        classes: Vec<String>,
    },
    /// Labels that are numbers from 0 were taken for these classes.
    NumberedLabels {
        /// The classes, in the order of the numbers.
        classes: Vec<String>,
    },
    /// A single column was taken for the probability of one of two classes.
    Positive {
        /// The column.
        column: String,
        /// Its class.
        positive: String,
        /// The other class.
        other: String,
    },
    /// Rows to predict have names that a model did not learn.
    NotLearnt {
        /// The column.
        column: String,
        /// How many rows.
        rows: usize,
        /// The first such name.
        example: String,
    },
    /// Rows to predict lack values in a column that had no gaps in training.
    NewGaps {
        /// The column.
        column: String,
        /// How many rows.
        rows: usize,
    },
    /// Some rows share their names.
    RepeatedNames {
        /// The column.
        column: String,
        /// How many rows have the name of an earlier row.
        rows: usize,
        /// The first such name.
        example: String,
    },
    /// Some rows have no name.
    MissingNames {
        /// The column.
        column: String,
        /// How many rows.
        rows: usize,
    },
    /// The labels of a file of their own belong to the images that a column of it names.
    LabelsByName {
        /// The column.
        column: String,
        /// How many images it does not name.
        without: usize,
        /// How many images there are.
        of: usize,
    },
    /// The labels of a file of their own belong to the rows in their order.
    LabelsByPosition {
        /// Whether the rows are the images of a folder.
        images: bool,
        /// A column that names images, none of which is in the folder.
        unknown: Option<String>,
    },
    /// Some labels are not the names of the folders that the images are in.
    OtherFolders {
        /// How many images.
        images: usize,
        /// How many images in the folder of a class have a label that is the name of such a folder.
        of: usize,
        /// The first of the images.
        example: String,
        /// Its label.
        label: String,
    },
    /// Several files were read as one table.
    Files {
        /// How many.
        count: usize,
    },
}

/// Why a column looks like an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdentifierReason {
    /// Every row has a name of its own.
    AllDifferent,
    /// It counts the rows.
    CountsRows,
    /// It is called like one, and all values differ.
    Name,
    /// Its numbers are longer than a measurement is ever written.
    LongNumbers,
}

impl fmt::Display for IdentifierReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IdentifierReason::AllDifferent => "all of its values are different names",
            IdentifierReason::CountsRows => "it counts the rows",
            IdentifierReason::LongNumbers => "its values are whole numbers of 16 digits or more",
            IdentifierReason::Name => "it has the name of an identifier, and all of its values differ",
        })
    }
}

impl Note {
    /// What the user could do if this is not as it should be, as options and their values.
    pub fn remedies(&self) -> Vec<Remedy> {
        match self {
            Note::MostlyNumbers { column, values, kinds, .. } => {
                let values: Vec<&str> = values.iter().map(|(value, _)| value.as_str()).collect();
                let missing = read_as_missing(&values).filter(|_| *kinds == values.len());
                missing.into_iter().chain([Remedy::set("categorical", column)]).collect()
            }
            Note::LeadingZeros { columns } => {
                let each: Vec<Remedy> = columns.iter().map(|column| Remedy::set("categorical", column)).collect();
                if each.len() == 1 { each } else { vec![Remedy::All(each)] }
            }
            Note::MissingClass { label, .. } => read_as_missing(&[label]).into_iter().collect(),
            Note::SimilarNames { column: None, .. } => vec![Remedy::set("merge-labels", "")],
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Delimiter { name } => write!(f, "read as {name}-separated"),
            Note::Encoding { name } => write!(f, "decoded as {name}"),
            Note::DecimalCommas { columns } => write!(f, "decimal commas in {}", ticked(columns)),
            Note::MissingLabels { marks } => {
                write!(f, "{} {} read as missing", counted(marks, "label"), were(marks))
            }
            Note::MissingValues { column, marks } => {
                write!(f, "{} in `{column}` {} read as missing", counted(marks, "value"), were(marks))
            }
            Note::Dates { columns, format, ambiguous } => {
                let columns = ticked(columns);
                write!(f, "the dates in {columns} ({format}) became days since 1970-01-01")?;
                if *ambiguous {
                    f.write_str("; day and month could also be the other way round")?;
                }
                Ok(())
            }
            Note::Identifier { column, reason } => {
                write!(f, "`{column}` is not used as a feature, because {reason}")
            }
            Note::Disguised { column, looks_like, example } => write!(
                f,
                "`{column}` was read as names, but holds {looks_like}, such as `{example}`; {}",
                looks_like.advice()
            ),
            Note::MostlyNumbers { column, values, kinds, rows, of } => {
                let (is, numbers) = if *rows == 1 { ("is", "a number") } else { ("are", "numbers") };
                let one = |(value, rows): &(String, usize)| {
                    format!("`{}` ({rows} row{})", shorten(value, SHOWN), if *rows == 1 { "" } else { "s" })
                };
                let mut said: Vec<String> = values.iter().map(one).collect();
                if *kinds > values.len() {
                    said.push(format!("{} more", kinds - values.len()));
                }
                write!(
                    f,
                    "`{column}` was read as names, because {rows} of its {of} values {is} not {numbers}: {}; read them as missing, or confirm that the column holds names",
                    joined(&said)
                )
            }
            Note::Thousands { columns } => write!(
                f,
                "the points in {} were read as decimal points; if they stand between thousands (1.234 for 1234), take them out",
                ticked(columns)
            ),
            Note::LeadingZeros { columns } => write!(
                f,
                "{} {} read as numbers, but with leading zeros may hold codes; if so, they are names",
                ticked(columns),
                if columns.len() == 1 { "was" } else { "were" }
            ),
            Note::Constant { columns } if columns.len() == 1 => {
                write!(f, "{} is not used as a feature, because it has a single value", ticked(columns))
            }
            Note::Constant { columns } => {
                write!(f, "{} are not used as features, because each has a single value", ticked(columns))
            }
            Note::MissingClass { label, rows } => {
                let (s, were) = if *rows == 1 { ("", "was") } else { ("s", "were") };
                write!(
                    f,
                    "{rows} label{s} `{label}` {were} taken for a class; if it stands for a missing label, say so"
                )
            }
            Note::MergedLabels { into, others } => {
                write!(f, "{} {} read as `{into}`", counted(others, "label"), were(others))
            }
            Note::SimilarNames { column, names } => {
                let place =
                    column.as_ref().map_or("the classes".to_owned(), |column| format!("the names in `{column}`"));
                let lower = |name: &String| name.to_lowercase();
                let case = names.iter().all(|name| lower(name) == lower(&names[0]));
                let by = if case { "case" } else { "case or blanks" };
                write!(f, "{place} {} differ only by {by}, and are kept apart", ticked(names))
            }
            Note::Sheet { name, others } => {
                write!(f, "read the sheet `{name}`; the other sheets are {}", ticked(others))
            }
            Note::ListClasses { column, classes } => {
                write!(f, "the numbers of a list in `{column}` are for the classes {}, in this order", list(classes))
            }
            Note::NumberedLabels { classes } => {
                write!(f, "labels are numbers: 0 to {} stand for {}", classes.len().saturating_sub(1), ticked(classes))
            }
            Note::Positive { column, positive, other } => {
                write!(f, "`{column}` is the probability of `{positive}`; the other class is `{other}`")
            }
            Note::NotLearnt { column, rows, example } => {
                let (have, s) = if *rows == 1 { ("has", "") } else { ("have", "s") };
                write!(
                    f,
                    "{rows} row{s} {have} a value of `{column}` that was met at most once in training, such as `{example}`; nothing was learnt about it"
                )
            }
            Note::NewGaps { column, rows } => {
                let s = if *rows == 1 { "" } else { "s" };
                write!(
                    f,
                    "`{column}` is missing in {rows} row{s}, and never was in training; its average is taken instead"
                )
            }
            Note::RepeatedNames { column, rows, example } => {
                let (are, s) = if *rows == 1 { ("is", "") } else { ("are", "s") };
                write!(
                    f,
                    "the names in `{column}` are not unique: {rows} row{s} {are} called as an earlier one, such as `{example}`"
                )
            }
            Note::MissingNames { column, rows: 1 } => write!(f, "1 row has no name in `{column}`"),
            Note::MissingNames { column, rows } => write!(f, "{rows} rows have no name in `{column}`"),
            Note::LabelsByName { column, without: 0, .. } => write!(f, "labels matched by the column `{column}`"),
            Note::LabelsByName { column, without, of } => {
                let (have, are) = if *without == 1 { ("has", "is") } else { ("have", "are") };
                write!(
                    f,
                    "labels matched by the column `{column}`; {without} of {of} images {have} no row there, and {are} unlabelled"
                )
            }
            Note::LabelsByPosition { images, unknown } => {
                f.write_str("labels matched by position")?;
                if *images {
                    f.write_str(", with the images in the order of their names")?;
                }
                match unknown {
                    Some(column) => write!(f, "; the column `{column}` names images, but none that is in the folder"),
                    None => Ok(()),
                }
            }
            Note::OtherFolders { images, of, example, label } => write!(
                f,
                "{images} of {of} images {} labelled with the name of another folder than their own, such as `{example}`, labelled `{label}`; the label counts",
                if *images == 1 { "is" } else { "are" }
            ),
            Note::Files { count } => write!(f, "read {count} files as one table"),
        }
    }
}

/// `12 labels `NA` and 1 label `?``.
fn counted(marks: &[(String, usize)], what: &str) -> String {
    let one = |(mark, count): &(String, usize)| {
        let plural = if *count == 1 { "" } else { "s" };
        format!("{count} {what}{plural} `{mark}`")
    };
    joined(&marks.iter().map(one).collect::<Vec<_>>())
}

/// `a, b and c`.
fn joined(all: &[String]) -> String {
    match all.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => all.concat(),
    }
}

fn were(marks: &[(String, usize)]) -> &'static str {
    if marks.iter().map(|(_, count)| count).sum::<usize>() == 1 { "was" } else { "were" }
}
