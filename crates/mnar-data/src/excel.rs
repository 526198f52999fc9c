//! Spreadsheets: `.xlsx`, `.xlsm`, `.xlsb`, `.xls` and `.ods`.

use crate::arrow_table::ArrowTable;
use crate::error::DataError;
use crate::guard::Memory;
use crate::note::Note;
use bytes::Bytes;

#[cfg(not(feature = "excel"))]
pub(crate) fn read(
    _: Bytes,
    _: Option<&str>,
    _: usize,
    _: Memory,
    path: &str,
) -> Result<(ArrowTable, Vec<Note>), DataError> {
    Err(DataError::NotBuilt { path: path.to_owned(), format: "spreadsheets" })
}

/// Reads a sheet, by default the first: a row of names below `skip_rows` others, and the rows below it. Blank rows are skipped.
#[cfg(feature = "excel")]
pub(crate) fn read(
    bytes: Bytes,
    sheet: Option<&str>,
    skip_rows: usize,
    memory: Memory,
    path: &str,
) -> Result<(ArrowTable, Vec<Note>), DataError> {
    use calamine::Reader as _;
    let damaged = |cause: String| DataError::Excel { path: path.to_owned(), source: crate::error::said(cause) };
    let (cells, notes) = crate::guard::fenced(damaged, || {
        let failed = |error: calamine::Error| damaged(error.to_string());
        sheet::check_parts(&bytes, memory, path)?;
        let mut book = sheet::open(bytes).map_err(failed)?;
        let mut others = book.sheet_names();
        let position = match sheet {
            None => Some(0).filter(|_| !others.is_empty()),
            Some(sheet) => others.iter().position(|name| name.trim() == sheet.trim()),
        };
        let Some(position) = position else {
            let (path, sheet) = (path.to_owned(), sheet.unwrap_or_default().to_owned());
            return Err(DataError::UnknownSheet { path, sheet, sheets: others });
        };
        let name = others.remove(position);
        if let Some(sheet::Area { cells, area }) = sheet::area(&mut book, &name).map_err(failed)? {
            if sheet::is_mostly_empty(cells, area) {
                return Err(damaged(
                    "a few cells are spread over millions; save the table in a sheet of its own".to_owned(),
                ));
            }
            memory.check(area.saturating_mul(sheet::CELL), "the cells of the sheet", path)?;
        }
        let cells = book.worksheet_range(&name).map_err(failed)?;
        let several = sheet.is_none() && !others.is_empty();
        let notes = if several { vec![Note::Sheet { name, others }] } else { Vec::new() };
        Ok((cells, notes))
    })?;
    let table = sheet::table(&cells, skip_rows, path);
    Ok((table.map_err(|error| crate::table_reader::in_sheet(error, &notes))?, notes))
}

#[cfg(feature = "excel")]
mod sheet {
    use crate::arrow_table::ArrowTable;
    use crate::cells::{self, Cell};
    use crate::dates::{self, DateFormat};
    use crate::error::DataError;
    use crate::guard::Memory;
    use crate::title_rows::{self, LOOKED_AT, RawRow};
    use bytes::Bytes;
    use calamine::{Data, Error, ExcelDateTime, Ods, Range, Reader as _, Sheets, Xls, Xlsb, Xlsx};
    use std::io::{Cursor, Read as _};

    /// Opens a workbook by its content, so that what is wrong with it is said by the reader of its own format.
    pub(super) fn open(bytes: Bytes) -> Result<Sheets<Cursor<Bytes>>, Error> {
        let has =
            |name: &str| zip::ZipArchive::new(Cursor::new(&bytes)).is_ok_and(|zip| zip.index_for_name(name).is_some());
        let (open_document, binary) = (has("content.xml"), has("xl/workbook.bin"));
        if bytes.starts_with(b"\xd0\xcf\x11\xe0") {
            Xls::new(Cursor::new(bytes)).map(Sheets::Xls).map_err(Error::Xls)
        } else if open_document {
            Ods::new(Cursor::new(bytes)).map(Sheets::Ods).map_err(Error::Ods)
        } else if binary {
            Xlsb::new(Cursor::new(bytes)).map(Sheets::Xlsb).map_err(Error::Xlsb)
        } else {
            Xlsx::new(Cursor::new(bytes)).map(Sheets::Xlsx).map_err(Error::Xlsx)
        }
    }

    /// Bytes of a cell: as read, as its own type, and in a column.
    pub(super) const CELL: u64 = 80;

    /// Refuses archives whose parts unpack to more than there is memory for. What they claim is not believed: every part
    /// is unpacked once and thrown away.
    pub(super) fn check_parts(bytes: &Bytes, memory: Memory, path: &str) -> Result<(), DataError> {
        // A part of XML is held whole by some readers, and as texts.
        const FACTOR: u64 = 2;
        let Ok(mut archive) = zip::ZipArchive::new(Cursor::new(bytes)) else { return Ok(()) };
        let mut total = 0_u64;
        for part in 0..archive.len() {
            // What is wrong with a part is for its reader to say.
            let Ok(part) = archive.by_index(part) else { continue };
            let left = (memory.limit() / FACTOR).saturating_sub(total).saturating_add(1);
            let is_xml = part.name().ends_with(".xml");
            let mut bytes = Vec::new();
            let read = part.take(left).read_to_end(&mut bytes);
            total += bytes.len() as u64;
            memory.check(total.saturating_mul(FACTOR), "the parts of the spreadsheet", path)?;
            if is_xml && read.is_ok() && !is_closed(&bytes) {
                let source = "a part of it ends before all of its elements do".into();
                return Err(DataError::Excel { path: path.to_owned(), source });
            }
        }
        Ok(())
    }

    /// Whether all elements of an XML text end, by their names. calamine 0.38 waits for ever for the end of a table of an open document that has
    /// none (`ods.rs` takes the end of the file for any other event).
    fn is_closed(xml: &[u8]) -> bool {
        let find = |text: &[u8], what: &[u8]| text.windows(what.len()).position(|at| at == what);
        let (mut rest, mut open) = (xml, Vec::new());
        while let Some(at) = rest.iter().position(|byte| *byte == b'<') {
            rest = &rest[at..];
            let end = match rest {
                [b'<', b'!', b'-', b'-', ..] => find(rest, b"-->").map(|at| at + 3),
                [b'<', b'!', b'[', ..] => find(rest, b"]]>").map(|at| at + 3),
                [b'<', b'?', ..] => find(rest, b"?>").map(|at| at + 2),
                _ => end_of_tag(rest),
            };
            let Some(end) = end else { return false };
            match &rest[..end] {
                [b'<', b'!' | b'?', ..] | [.., b'/', b'>'] => {}
                [b'<', b'/', tag @ ..] => {
                    if open.pop() != Some(tag_name(tag)) {
                        return false;
                    }
                }
                tag => open.push(tag_name(&tag[1..])),
            }
            rest = &rest[end..];
        }
        open.is_empty()
    }

    /// The name at the start of a tag.
    fn tag_name(tag: &[u8]) -> &[u8] {
        let end = tag.iter().position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/'));
        &tag[..end.unwrap_or(tag.len())]
    }

    /// The length of a tag, whose attributes may hold any character in their quotes.
    fn end_of_tag(text: &[u8]) -> Option<usize> {
        let mut quote = None;
        let is_end = |byte: &u8| {
            match (quote, *byte) {
                (None, b'>') => return true,
                (None, b'"' | b'\'') => quote = Some(*byte),
                (Some(open), byte) if open == byte => quote = None,
                _ => {}
            }
            false
        };
        text.iter().position(is_end).map(|at| at + 1)
    }

    /// The cells of a sheet that have a value, and those of the rectangle around them.
    pub(super) struct Area {
        pub(super) cells: u64,
        pub(super) area: u64,
    }

    /// Counts cells one by one, before all of the rectangle is held in memory; `None` for formats that have limits of their own.
    pub(super) fn area(book: &mut Sheets<Cursor<Bytes>>, sheet: &str) -> Result<Option<Area>, Error> {
        let (mut cells, mut rows, mut columns) = (0_u64, 0_u64, 0_u64);
        let mut count = |(row, column): (u32, u32)| {
            cells += 1;
            rows = rows.max(u64::from(row) + 1);
            columns = columns.max(u64::from(column) + 1);
        };
        match book {
            Sheets::Xlsx(book) => {
                let mut reader = book.worksheet_cells_reader(sheet).map_err(Error::Xlsx)?;
                while let Some(cell) = reader.next_cell().map_err(Error::Xlsx)? {
                    count(cell.get_position());
                }
            }
            Sheets::Xlsb(book) => {
                let mut reader = book.worksheet_cells_reader(sheet).map_err(Error::Xlsb)?;
                while let Some(cell) = reader.next_cell().map_err(Error::Xlsb)? {
                    count(cell.get_position());
                }
            }
            // At most 65536 x 256 cells in old spreadsheets, and 100 million in open documents.
            _ => return Ok(None),
        }
        Ok(Some(Area { cells, area: rows * columns }))
    }

    /// Whether a stray cell far out would make a table of up to 17 billion cells.
    pub(super) fn is_mostly_empty(cells: u64, area: u64) -> bool {
        const ALWAYS: u64 = 10_000_000;
        area > ALWAYS && area / 100 > cells
    }

    pub(super) fn table(cells: &Range<Data>, skip_rows: usize, path: &str) -> Result<ArrowTable, DataError> {
        let blank = |row: &[Data]| row.iter().all(|cell| cell_of(cell) == Cell::Missing);
        // The rectangle of the cells may start further down.
        let from = cells.start().map_or(0, |(row, _)| row as usize) + 1;
        let numbered = (from..).zip(cells.rows()).filter(|(number, row)| *number > skip_rows && !blank(row));
        let raw = |(number, row): (usize, &[Data])| {
            let name = |cell: &Data| if cell_of(cell) == Cell::Missing { String::new() } else { name_of(cell) };
            RawRow { number, cells: row.iter().map(|cell| name(cell).trim().to_owned()).collect() }
        };
        title_rows::check_rows(&numbered.clone().take(LOOKED_AT).map(raw).collect::<Vec<_>>(), path)?;
        let mut rows = numbered.map(|(_, row)| row);
        let Some(header) = rows.next() else {
            let path = path.to_owned();
            return Err(match skip_rows {
                0 => DataError::Empty { path },
                skipped => DataError::AllSkipped { path, skipped },
            });
        };
        let mut columns: Vec<(String, Vec<Cell>)> =
            header.iter().map(|name| (name_of(name).trim().to_owned(), Vec::new())).collect();
        for row in rows {
            for ((_, cells), cell) in columns.iter_mut().zip(row) {
                cells.push(cell_of(cell));
            }
        }
        // A spreadsheet has columns that were formatted and never filled in.
        columns.retain(|(name, cells)| !name.is_empty() || cells.iter().any(|cell| *cell != Cell::Missing));
        cells::table(columns, path)
    }

    fn name_of(cell: &Data) -> String {
        match cell {
            Data::Float(value) if value.fract() == 0.0 => format!("{value:.0}"),
            other => other.to_string(),
        }
    }

    fn cell_of(cell: &Data) -> Cell {
        match cell {
            Data::Empty | Data::Error(_) => Cell::Missing,
            Data::Int(value) => Cell::Whole(*value),
            // Spreadsheets know no whole numbers, and hold them exactly up to 2^53.
            Data::Float(value) if value.fract() == 0.0 && value.abs() < 9e15 => Cell::Whole(*value as i64),
            Data::Float(value) => Cell::Number(*value),
            Data::Bool(value) => Cell::Boolean(*value),
            Data::DateTime(time) => time_of(time),
            Data::DateTimeIso(text) => match dates::parse(text, DateFormat::Iso) {
                Some(days) => Cell::Time((days * 86_400e6).round() as i64),
                None => Cell::Text(text.clone()),
            },
            Data::DurationIso(text) => Cell::Text(text.clone()),
            Data::String(text) if text.trim().is_empty() => Cell::Missing,
            Data::String(text) => Cell::Text(text.clone()),
        }
    }

    /// A date, or a number of days where the cell is a duration or a time of day.
    fn time_of(time: &ExcelDateTime) -> Cell {
        if time.is_duration() || (0.0..1.0).contains(&time.as_f64()) {
            return Cell::Number(time.as_f64());
        }
        let (year, month, day, hour, minute, second, milli) = time.to_ymd_hms_milli();
        match dates::days_of(i64::from(year), u32::from(month), u32::from(day)) {
            Some(days) => {
                let seconds = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
                Cell::Time((days * 86_400 + seconds) * 1_000_000 + i64::from(milli) * 1000)
            }
            None => Cell::Number(time.as_f64()),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::is_closed;

        #[test]
        fn elements_are_closed_or_not() {
            for xml in
                ["<a/>", "<?xml?><a b='>'><!-- <c> --><c/>x</a>", "<a><![CDATA[<b>]]></a>", "<!DOCTYPE a><a></a>", ""]
            {
                assert!(is_closed(xml.as_bytes()), "{xml}");
            }
            for xml in [
                "<a>",
                "<a><b></a>",
                "<a b=\"></a>",
                "<a",
                "<a><!-- </a>",
                "</a>",
                "<a></a></a>",
                "<a></b>",
                "<a x='1'></ab>",
            ] {
                assert!(!is_closed(xml.as_bytes()), "{xml}");
            }
        }
    }
}
