//! Arrow's own files, which are also called feather.

use crate::arrow_table::ArrowTable;
use crate::error::DataError;
use crate::guard::Memory;
use bytes::Bytes;

#[cfg(not(feature = "arrow-ipc"))]
pub(crate) fn read(_: Bytes, _: Memory, path: &str) -> Result<ArrowTable, DataError> {
    Err(DataError::NotBuilt { path: path.to_owned(), format: "Arrow files" })
}

/// Reads all batches of a file, or of a stream that was saved as one.
#[cfg(feature = "arrow-ipc")]
pub(crate) fn read(bytes: Bytes, memory: Memory, path: &str) -> Result<ArrowTable, DataError> {
    use arrow_ipc::reader::{FileReader, StreamReader};
    let damaged = |cause: String| DataError::Arrow { path: path.to_owned(), source: crate::error::said(cause) };
    if bytes.starts_with(b"FEA1") {
        return Err(damaged("it is of the first version of feather; write it again with a newer program".to_owned()));
    }
    let failed = |error: arrow_schema::ArrowError| damaged(error.to_string());
    let (schema, batches) = crate::guard::fenced(damaged, || {
        if bytes.starts_with(b"ARROW1") {
            let unpacked = check_blocks(&bytes).map_err(|what| damaged(what.to_owned()))?;
            memory.check(unpacked, "its columns", path)?;
            let reader = FileReader::try_new(std::io::Cursor::new(bytes), None).map_err(failed)?;
            Ok((reader.schema(), reader.collect::<Result<Vec<_>, _>>().map_err(failed)?))
        } else {
            let unpacked = check_stream(&bytes).map_err(|what| damaged(what.to_owned()))?;
            memory.check(unpacked, "its columns", path)?;
            let reader = StreamReader::try_new(std::io::Cursor::new(bytes), None).map_err(failed)?;
            Ok((reader.schema(), reader.collect::<Result<Vec<_>, _>>().map_err(failed)?))
        }
    })?;
    ArrowTable::new(schema, batches, path)
}

#[cfg(feature = "arrow-ipc")]
const CUT: &str = "it is cut off";

/// A damaged footer may claim blocks of any size, for which memory would be taken. Gives the bytes of all blocks once they
/// are unpacked.
#[cfg(feature = "arrow-ipc")]
fn check_blocks(bytes: &[u8]) -> Result<u64, &'static str> {
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
    let mut unpacked = 0_u64;
    for block in blocks {
        const OUTSIDE: &str = "a block lies outside of the file";
        let at = usize::try_from(block.offset()).map_err(|_| OUTSIDE)?;
        let message = bytes.get(at..).and_then(Message::read).ok_or(OUTSIDE)?;
        let metadata = usize::try_from(block.metaDataLength()).map_err(|_| OUTSIDE)?;
        let length = usize::try_from(block.bodyLength()).map_err(|_| OUTSIDE)?;
        let body = at.checked_add(metadata).and_then(|from| Some(from..from.checked_add(length)?));
        let body = body.and_then(|body| bytes.get(body)).ok_or(OUTSIDE)?;
        // Blocks may overlap, and each is unpacked for itself.
        unpacked = unpacked.saturating_add(unpacked_bytes(message.metadata, body)?);
    }
    Ok(unpacked)
}

/// The same for messages one after the other.
#[cfg(feature = "arrow-ipc")]
fn check_stream(bytes: &[u8]) -> Result<u64, &'static str> {
    let (mut rest, mut unpacked) = (bytes, 0_u64);
    while let Some(message) = Message::read(rest) {
        let length = arrow_ipc::root_as_message(message.metadata).map_err(|_| DAMAGED)?.bodyLength();
        let length = usize::try_from(length).map_err(|_| DAMAGED)?;
        let body = message.rest.get(..length).ok_or(CUT)?;
        unpacked = unpacked.saturating_add(unpacked_bytes(message.metadata, body)?);
        rest = &message.rest[length..];
    }
    Ok(unpacked)
}

#[cfg(feature = "arrow-ipc")]
const DAMAGED: &str = "a message is damaged";

/// A message: a length, what it holds, and the rest of the file, which starts with its body.
#[cfg(feature = "arrow-ipc")]
struct Message<'a> {
    metadata: &'a [u8],
    rest: &'a [u8],
}

#[cfg(feature = "arrow-ipc")]
impl<'a> Message<'a> {
    /// `None` at the end of a stream, which may be marked by a length of 0.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (mut length, mut rest) = bytes.split_first_chunk::<4>()?;
        // Since version 0.15 a mark comes first.
        if *length == [0xff; 4] {
            (length, rest) = rest.split_first_chunk::<4>()?;
        }
        let length = usize::try_from(i32::from_le_bytes(*length)).ok().filter(|length| *length > 0)?;
        let (metadata, rest) = rest.split_at_checked(length)?;
        Some(Self { metadata, rest })
    }
}

/// The bytes of a message's buffers. Those that are compressed start with their true length.
#[cfg(feature = "arrow-ipc")]
fn unpacked_bytes(metadata: &[u8], body: &[u8]) -> Result<u64, &'static str> {
    let message = arrow_ipc::root_as_message(metadata).map_err(|_| DAMAGED)?;
    let batch = message
        .header_as_record_batch()
        .or_else(|| message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data()));
    let (Some(batch), Some(buffers)) = (batch, batch.and_then(|batch| batch.buffers())) else {
        return Ok(body.len() as u64);
    };
    let compressed = batch.compression().is_some();
    let mut unpacked = 0_u64;
    for buffer in buffers {
        let (at, length) = (usize::try_from(buffer.offset()), usize::try_from(buffer.length()));
        let (Ok(at), Ok(length)) = (at, length) else { return Err(DAMAGED) };
        let bytes =
            at.checked_add(length).and_then(|end| body.get(at..end)).ok_or("a buffer lies outside of its block")?;
        let claimed = match bytes.first_chunk::<8>() {
            Some(claimed) if compressed => i64::from_le_bytes(*claimed),
            _ => -1,
        };
        unpacked = unpacked.saturating_add(match u64::try_from(claimed) {
            Ok(claimed) => claimed,
            // -1 stands for a buffer that is as it is.
            Err(_) => length as u64,
        });
    }
    // The file itself is there too.
    Ok(unpacked.saturating_add(body.len() as u64))
}
