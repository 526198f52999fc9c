//! Spreadsheets: `.xlsx`, `.xlsm`, `.xlsb`, `.xls` and `.ods`.

use crate::arrow_table::ArrowTable;
use crate::error::DataError;
use crate::note::Note;
use bytes::Bytes;

#[cfg(not(feature = "excel"))]
pub(crate) fn read(_: Bytes, _: Option<&str>, path: &str) -> Result<(ArrowTable, Vec<Note>), DataError> {
    Err(DataError::NotBuilt { path: path.to_owned(), format: "spreadsheets" })
}

/// Reads a sheet, by default the first: a row of names, and the rows below it. Blank rows are skipped.
#[cfg(feature = "excel")]
pub(crate) fn read(bytes: Bytes, sheet: Option<&str>, path: &str) -> Result<(ArrowTable, Vec<Note>), DataError> {
    use calamine::Reader as _;
    let damaged = |cause: String| DataError::Excel { path: path.to_owned(), source: crate::error::said(cause) };
    let (cells, notes) = crate::guard::fenced(damaged, || {
        let failed = |error: calamine::Error| damaged(error.to_string());
        let mut book = sheet::open(bytes).map_err(failed)?;
        let mut others = book.sheet_names();
        let position = match sheet {
            None => Some(0).filter(|_| !others.is_empty()),
            Some(sheet) => others.iter().position(|name| name.trim() == sheet.trim()),
        };
        let Some(position) = position else {
            let (path, sheets) = (path.to_owned(), crate::error::list(&others));
            return Err(DataError::UnknownSheet { path, sheet: sheet.unwrap_or_default().to_owned(), sheets });
        };
        let name = others.remove(position);
        if sheet::is_mostly_empty(&mut book, &name).map_err(failed)? {
            return Err(damaged(
                "a few cells are spread over millions; save the table in a sheet of its own".to_owned(),
            ));
        }
        let cells = book.worksheet_range(&name).map_err(failed)?;
        let several = sheet.is_none() && !others.is_empty();
        let notes = if several { vec![Note::Sheet { name, others }] } else { Vec::new() };
        Ok((cells, notes))
    })?;
    Ok((sheet::table(&cells, path)?, notes))
}

#[cfg(feature = "excel")]
mod sheet {
    use crate::arrow_table::ArrowTable;
    use crate::cells::{self, Cell};
    use crate::dates::{self, DateFormat};
    use crate::error::DataError;
    use bytes::Bytes;
    use calamine::{Data, Error, ExcelDateTime, Ods, Range, Reader as _, Sheets, Xls, Xlsb, Xlsx};
    use std::io::Cursor;

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

    /// Whether a stray cell far out would make a table of up to 17 billion cells, which is held in memory.
    pub(super) fn is_mostly_empty(book: &mut Sheets<Cursor<Bytes>>, sheet: &str) -> Result<bool, Error> {
        const ALWAYS: u64 = 10_000_000;
        let Sheets::Xlsx(book) = book else { return Ok(false) };
        let mut reader = book.worksheet_cells_reader(sheet).map_err(Error::Xlsx)?;
        let (mut cells, mut rows, mut columns) = (0_u64, 0_u64, 0_u64);
        while let Some(cell) = reader.next_cell().map_err(Error::Xlsx)? {
            let (row, column) = cell.get_position();
            cells += 1;
            rows = rows.max(u64::from(row) + 1);
            columns = columns.max(u64::from(column) + 1);
        }
        let area = rows * columns;
        Ok(area > ALWAYS && area / 100 > cells)
    }

    pub(super) fn table(cells: &Range<Data>, path: &str) -> Result<ArrowTable, DataError> {
        let blank = |row: &&[Data]| row.iter().all(|cell| cell_of(cell) == Cell::Missing);
        let mut rows = cells.rows().filter(|row| !blank(row));
        let Some(header) = rows.next() else { return Err(DataError::Empty { path: path.to_owned() }) };
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
}
