//! Several Parquet files as one table: a folder, or a pattern such as `part-*.parquet`.

use crate::arrays::{Arrays, Spelling, TypedTable, batches};
use crate::batch::Batches;
use crate::columns::Selection;
use crate::error::{DataError, show};
use crate::format::{FROM_ITS_END, Format, open_regular};
use crate::guard::Memory;
use crate::parquet_table::{ParquetFooter, ParquetTable};
use arrow_schema::DataType;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Files with the same columns, one below the other, or a single file. They can be read any number of times.
#[derive(Clone)]
pub(crate) struct ParquetFolder {
    /// Opened when their turn comes: a system lets a process have some 1000 files open.
    parts: Arc<[Part]>,
    name: String,
}

struct Part {
    path: PathBuf,
    footer: Arc<ParquetFooter>,
    stamp: Stamp,
}

/// Recognises a file that was replaced between two passes.
#[derive(Clone, Copy, PartialEq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(file: &File, shown: &str) -> Result<Self, DataError> {
        let metadata = file.metadata().map_err(|error| DataError::io(shown, "read", error))?;
        Ok(Self { bytes: metadata.len(), modified: metadata.modified().ok() })
    }
}

impl Part {
    fn open(path: &Path, memory: Memory) -> Result<Self, DataError> {
        let shown = show(path);
        let file = open_regular(path, FROM_ITS_END)?;
        let stamp = Stamp::of(&file, &shown)?;
        let footer = ParquetTable::open(file, memory, &shown)?.footer().clone();
        Ok(Self { path: path.to_owned(), footer, stamp })
    }

    /// The file, to be read from its start: opened anew, since passes may run side by side.
    fn again(&self) -> Result<ParquetTable<File>, DataError> {
        let file = open_regular(&self.path, FROM_ITS_END)?;
        let shown = &self.footer.path;
        if Stamp::of(&file, shown)? != self.stamp {
            return Err(DataError::Changed { path: shown.clone() });
        }
        Ok(ParquetTable::again(file, self.footer.clone()))
    }
}

/// The Parquet files that a folder or a pattern stands for, sorted by name; `None` where the path is something else.
pub(crate) fn files_of(path: &Path) -> Result<Option<Vec<PathBuf>>, DataError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let (folder, pattern) = if path.is_dir() {
        (path, None)
    } else if name.contains(['*', '?']) && !path.exists() {
        (path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new(".")), Some(name))
    } else {
        return Ok(None);
    };
    let entries = std::fs::read_dir(folder).map_err(|error| DataError::io(&show(folder), "read", error))?;
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    // Spark writes `_SUCCESS` and hidden checksums beside its parts.
    names.retain(|name| !name.starts_with(['.', '_']));
    match pattern {
        Some(pattern) => names.retain(|name| matches_pattern(name.as_bytes(), pattern.as_bytes())),
        None => names.retain(|name| Format::of_name(Path::new(name)) == Some(Format::Parquet)),
    }
    names.sort_unstable();
    if pattern.is_some() {
        if names.is_empty() {
            return Err(DataError::NoMatch { path: show(path) });
        }
        if let Some(other) = names.iter().find(|name| Format::of_name(Path::new(name)) != Some(Format::Parquet)) {
            return Err(DataError::NotParquetPart { path: show(path), file: other.clone() });
        }
    } else if names.is_empty() {
        return Ok(None);
    }
    Ok(Some(names.into_iter().map(|name| folder.join(name)).collect()))
}

/// Whether a name fits a pattern in which `*` stands for any characters and `?` for one.
fn matches_pattern(name: &[u8], pattern: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=name.len()).any(|used| matches_pattern(&name[used..], rest)),
        ([b'?', pattern @ ..], [_, name @ ..]) => matches_pattern(name, pattern),
        ([a, pattern @ ..], [b, name @ ..]) => a == b && matches_pattern(name, pattern),
        _ => false,
    }
}

impl ParquetFolder {
    /// Opens all files and checks that their columns are the same.
    pub(crate) fn open(files: &[PathBuf], name: &str, memory: Memory) -> Result<Self, DataError> {
        let mut parts: Vec<Part> = Vec::with_capacity(files.len());
        for path in files {
            let part = Part::open(path, memory)?;
            if let Some(difference) = parts.first().and_then(|first| difference(&first.footer, &part.footer)) {
                let first = show(&files[0]);
                return Err(DataError::Schema { path: show(path), first, difference });
            }
            parts.push(part);
        }
        if parts.is_empty() {
            return Err(DataError::NoMatch { path: name.to_owned() });
        }
        Ok(Self { parts: parts.into(), name: name.to_owned() })
    }

    /// The number of rows that the footers claim.
    pub(crate) fn claimed_rows(&self) -> i64 {
        self.parts.iter().fold(0, |rows, part| part.footer.claimed_rows().saturating_add(rows))
    }

    /// One pass over the selected columns.
    pub(crate) fn batches(&self, selection: &Selection) -> Result<Batches, DataError> {
        batches(Box::new(self.clone()), selection)
    }
}

/// The first column in which two files differ.
fn difference(first: &ParquetFooter, other: &ParquetFooter) -> Option<String> {
    let (ours, theirs) = (first.header(), other.header());
    if ours.len() != theirs.len() {
        return Some(format!("{} columns, not {}", theirs.len(), ours.len()));
    }
    (0..ours.len()).find_map(|column| {
        if ours[column] != theirs[column] {
            return Some(format!("the column `{}` in the place of `{}`", theirs[column], ours[column]));
        }
        let (a, b) = (&first.columns[column].data_type, &other.columns[column].data_type);
        (a != b).then(|| format!("{b} in the column `{}`, not {a}", ours[column]))
    })
}

impl TypedTable for ParquetFolder {
    fn header(&self) -> &[String] {
        self.parts[0].footer.header()
    }

    fn data_type(&self, column: usize) -> &DataType {
        &self.parts[0].footer.columns[column].data_type
    }

    fn spelling(&self) -> Spelling {
        Spelling::Parquet
    }

    fn source_name(&self) -> &str {
        &self.name
    }

    fn arrays(self: Box<Self>, wanted: &[usize], most: usize) -> Result<Arrays, DataError> {
        let (wanted, parts, count) = (wanted.to_vec(), self.parts.clone(), self.parts.len());
        let part = move |part: usize| -> Arrays {
            let arrays = parts[part].again().and_then(|table| Box::new(table).arrays(&wanted, most));
            arrays.unwrap_or_else(|error| Box::new(std::iter::once(Err(error))))
        };
        let mut failed = false;
        let arrays = (0..count).flat_map(part).take_while(move |arrays| {
            // Nothing sensible follows an error.
            let go_on = !failed;
            failed |= arrays.is_err();
            go_on
        });
        Ok(Box::new(arrays))
    }
}

#[cfg(test)]
mod tests {
    use super::matches_pattern;

    #[test]
    fn patterns() {
        for (name, pattern, expected) in [
            ("part-1.parquet", "part-*.parquet", true),
            ("part-12.parquet", "part-?.parquet", false),
            ("a.parquet", "*", true),
            ("", "*", true),
            ("ab", "a*b*", true),
            ("ba", "a*", false),
        ] {
            assert_eq!(matches_pattern(name.as_bytes(), pattern.as_bytes()), expected, "{name} {pattern}");
        }
    }
}
