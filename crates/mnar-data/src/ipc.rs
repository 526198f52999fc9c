//! Arrow's own files, which are also called feather.

use crate::arrow_table::ArrowTable;
use crate::error::DataError;
use bytes::Bytes;

#[cfg(not(feature = "arrow-ipc"))]
pub(crate) fn read(_: Bytes, path: &str) -> Result<ArrowTable, DataError> {
    Err(DataError::NotBuilt { path: path.to_owned(), format: "Arrow files" })
}

/// Reads all batches of a file, or of a stream that was saved as one.
#[cfg(feature = "arrow-ipc")]
pub(crate) fn read(bytes: Bytes, path: &str) -> Result<ArrowTable, DataError> {
    use arrow_ipc::reader::{FileReader, StreamReader};
    let damaged = |cause: String| DataError::Arrow { path: path.to_owned(), source: crate::error::said(cause) };
    if bytes.starts_with(b"FEA1") {
        return Err(damaged("it is of the first version of feather; write it again with a newer program".to_owned()));
    }
    let failed = |error: arrow_schema::ArrowError| damaged(error.to_string());
    let (schema, batches) = crate::guard::fenced(damaged, || {
        if bytes.starts_with(b"ARROW1") {
            check_blocks(&bytes).map_err(|what| damaged(what.to_owned()))?;
            let reader = FileReader::try_new(std::io::Cursor::new(bytes), None).map_err(failed)?;
            Ok((reader.schema(), reader.collect::<Result<Vec<_>, _>>().map_err(failed)?))
        } else {
            let reader = StreamReader::try_new(std::io::Cursor::new(bytes), None).map_err(failed)?;
            Ok((reader.schema(), reader.collect::<Result<Vec<_>, _>>().map_err(failed)?))
        }
    })?;
    ArrowTable::new(schema, batches, path)
}

/// A damaged footer may claim blocks of any size, for which memory would be taken.
#[cfg(feature = "arrow-ipc")]
fn check_blocks(bytes: &[u8]) -> Result<(), &'static str> {
    const CUT: &str = "it is cut off";
    // The file ends with the footer, its length in four bytes, and six bytes of a name.
    let (body, end) = bytes.split_last_chunk::<10>().ok_or(CUT)?;
    let [a, b, c, d, name @ ..] = *end;
    if name != *b"ARROW1" {
        return Err(CUT);
    }
    let length = usize::try_from(i32::from_le_bytes([a, b, c, d])).map_err(|_| CUT)?;
    let start = body.len().checked_sub(length).ok_or(CUT)?;
    let footer = arrow_ipc::root_as_footer(&body[start..]).map_err(|_| "its footer is damaged")?;
    let blocks = footer.recordBatches().into_iter().chain(footer.dictionaries()).flatten();
    for block in blocks {
        let parts = [block.offset(), i64::from(block.metaDataLength()), block.bodyLength()];
        let end = parts.iter().try_fold(0_i64, |end, part| end.checked_add(*part).filter(|_| *part >= 0));
        if end.and_then(|end| usize::try_from(end).ok()).is_none_or(|end| end > bytes.len()) {
            return Err("a block lies outside of the file");
        }
    }
    Ok(())
}
