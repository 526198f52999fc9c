//! Rows above the header: the title of an export, blank rows, and names that are merged over several columns.

use crate::error::DataError;
use csv::ByteRecord;

/// A row before it is known what it is.
pub(crate) struct RawRow {
    /// Its number in the file, from 1.
    pub(crate) number: usize,
    pub(crate) cells: Vec<String>,
}

/// Rows that are looked at.
pub(crate) const LOOKED_AT: usize = 40;

/// A header below other rows.
struct Header {
    row: usize,
    title: String,
    names: Vec<String>,
}

impl Header {
    fn error(self, path: &str) -> DataError {
        let Self { row, title, names } = self;
        DataError::TitleRows { path: path.to_owned(), row, title, columns: names, skippable: true }
    }
}

impl RawRow {
    /// The cells up to the last one that is filled in.
    fn filled_part(&self) -> &[String] {
        let end = self.cells.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1);
        &self.cells[..end]
    }

    fn filled(&self) -> usize {
        self.cells.iter().filter(|cell| !cell.is_empty()).count()
    }
}

/// Refuses rows of a spreadsheet whose first is a title, and says where the header seems to be.
#[cfg(feature = "excel")]
pub(crate) fn check_rows(rows: &[RawRow], path: &str) -> Result<(), DataError> {
    header_below(rows).map_or(Ok(()), |header| Err(header.error(path)))
}

/// Does the same for the start of a text, of which `skipped` lines were left out. Its first rows are as long as each other with
/// the separator, or else another separator may be meant: that of a title says nothing.
pub(crate) fn check_text(
    text: &[u8],
    complete: bool,
    delimiter: u8,
    skipped: usize,
    path: &str,
) -> Result<(), DataError> {
    let rows = |delimiter: u8| text_rows(text, complete, delimiter, skipped);
    let first = rows(delimiter);
    let Some(header) = first.first() else { return Ok(()) };
    let even = first.iter().all(|row| row.cells.len() == header.cells.len());
    if even && header.cells.len() > 1 && header.cells.len() - header.filled() < 2 && !has_gap(&first) {
        return Ok(());
    }
    let found = [delimiter, b';', b'\t', b'|', b','].into_iter().filter_map(|delimiter| header_below(&rows(delimiter)));
    // The most columns, then the first row, then the separator that was found.
    let best = found.min_by_key(|header| (std::cmp::Reverse(header.names.len()), header.row));
    best.map_or(Ok(()), |header| Err(header.error(path)))
}

/// Whether a line is missing among the first rows: it was blank.
fn has_gap(rows: &[RawRow]) -> bool {
    rows.windows(2).take(LOOKED_AT).any(|pair| pair[1].number > pair[0].number + 1)
}

fn text_rows(text: &[u8], complete: bool, delimiter: u8, skipped: usize) -> Vec<RawRow> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(text);
    let end_of_line = if text.contains(&b'\n') { b'\n' } else { b'\r' };
    let (mut rows, mut record) = (Vec::new(), ByteRecord::new());
    let (mut counted, mut lines) = (0, skipped + 1);
    while rows.len() <= LOOKED_AT && matches!(reader.read_byte_record(&mut record), Ok(true)) {
        let from = record.position().map_or(0, |position| usize::try_from(position.byte()).unwrap_or(0));
        // Blank lines before the row.
        let start = from + text[from..].iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
        lines += text[counted..start].iter().filter(|byte| **byte == end_of_line).count();
        counted = start;
        let cells = record.iter().map(|cell| String::from_utf8_lossy(cell).trim().to_owned()).collect();
        rows.push(RawRow { number: lines, cells });
    }
    // The last row may be cut off.
    if !complete && rows.len() <= LOOKED_AT {
        rows.pop();
    }
    rows
}

/// The header, if the first row is a title: it fills in at most half of the columns, and a row further down names all of them.
fn header_below(rows: &[RawRow]) -> Option<Header> {
    let (title, below) = rows.split_first()?;
    let width = rows.iter().map(|row| row.filled_part().len()).max().filter(|width| *width > 1)?;
    let is_full = |row: &&RawRow| {
        let cells = row.filled_part();
        let unnamed = usize::from(width > 2);
        cells.len() == width && cells.len() - row.filled() <= unnamed
    };
    let header = below.iter().find(is_full)?;
    let is_short = title.cells.len() < width || title.cells[..width].iter().filter(|cell| cell.is_empty()).count() > 1;
    let until: Vec<&RawRow> = rows.iter().take_while(|row| row.number <= header.number).collect();
    let is_apart =
        until.iter().any(|row| row.filled() == 0) || until.windows(2).any(|pair| pair[1].number > pair[0].number + 1);
    if title.filled() > (width / 2).max(1) || !(is_short || is_apart) {
        return None;
    }
    let names = header.filled_part();
    let numbers = names.iter().filter(|name| name.replace(',', ".").parse::<f64>().is_ok()).count();
    let repeated = names.iter().enumerate().any(|(i, name)| !name.is_empty() && names[..i].contains(name));
    let has_rows = rows.last().is_some_and(|last| last.number > header.number);
    (4 * numbers <= names.len() && !repeated && has_rows).then(|| Header {
        row: header.number,
        title: title.cells.iter().filter(|cell| !cell.is_empty()).cloned().collect::<Vec<_>>().join(" "),
        names: names.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, delimiter: u8) -> Option<usize> {
        match check_text(text.as_bytes(), true, delimiter, 0, "f") {
            Err(DataError::TitleRows { row, .. }) => Some(row),
            _ => None,
        }
    }

    #[test]
    fn headers_below_titles_are_found() {
        for (text, row) in [
            ("Clinic export 2024,,\n,,\nage,crp,y\n1,2,a\n", 3),
            ("Clinic export 2024\n\nage,crp,y\n1,2,a\n3,4,\n", 3),
            ("Clinic export, 2024\r\n\r\nage;crp;y\r\n1,5;2;a\r\n", 3),
            ("\"Clinic\nexport\"\nage,crp,y\n1,2,a\n", 3),
            (",,\nage,crp,y\n1,2,a\n", 2),
            ("Patient,,Lab,,\nage,sex,crp,hb,y\n1,f,2,3,a\n", 2),
            ("Export\nby: me,\nage,y\n1,a\n", 3),
            ("Export\n\nname,y\nx,a\n", 3),
            ("Export\rage,y\r1,a\r", 2),
        ] {
            assert_eq!(found(text, b','), Some(row), "{text:?}");
        }
    }

    #[test]
    fn headers_in_the_first_row_are_left_alone() {
        for text in [
            "age,crp,y\n1,2,a\n",
            "y\na\n\nb\n",
            "age,crp,y\n\n1,2,a\n",
            ",age,y\n1,2,a\n",
            "x,\n1,a\n2,b\n",
            "a,b,y\n1,2,3,x\n4,5,6,x\n",
            "age,Lab,,y\n1,2,3,a\n",
            "Export\n1,2,3\n4,5,6\n",
            "",
        ] {
            assert_eq!(found(text, b','), None, "{text:?}");
        }
    }
}
