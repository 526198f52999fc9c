//! Small valid files of every format that is read, for mutations to start from.

use super::npy;
use super::parquet::Values::{Bool, F64, I32, Lists, Text};
use super::parquet::{Layout, parquet_laid_out};
use super::workbook::workbook;
use ::parquet::basic::Compression;
use ::parquet::file::properties::WriterVersion;
use flate2::write::GzEncoder;
use std::io::{Cursor, Write};

/// A valid file.
pub(crate) struct Seed {
    pub(crate) name: &'static str,
    /// The file's path below a folder that is read as a whole, or alone.
    pub(crate) path: &'static str,
    /// Whether the folder is what is read.
    pub(crate) folder: bool,
    /// Files beside it, which stay as they are.
    pub(crate) beside: Vec<(&'static str, Vec<u8>)>,
    /// What is mutated.
    pub(crate) bytes: Vec<u8>,
    /// What becomes of it before it is written: checksums of an archive are those of the mutated content.
    pub(crate) pack: fn(Vec<u8>) -> Vec<u8>,
}

impl Seed {
    fn new(name: &'static str, path: &'static str, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name, path, folder: false, beside: Vec::new(), bytes: bytes.into(), pack: |bytes| bytes }
    }

    fn packed(self, pack: fn(Vec<u8>) -> Vec<u8>) -> Self {
        Self { pack, ..self }
    }

    fn in_folder(self, beside: Vec<(&'static str, Vec<u8>)>) -> Self {
        Self { folder: true, beside, ..self }
    }
}

const TABLE: &str = "id,fold,when,label,a,p_a,p_b\n1,0,2024-02-29,a,1.5,0.9,0.1\n2,1,01/03/2024,,?,0.5,.5\n3,0,2020-12-31T10:00Z,b,-1e5,0,1\n4,1,\"31.12.2020\",\"b\",\"x, \"\"y\"\"\",1e-1,0.9\n";
const SEMICOLONS: &str =
    "a;when;label;p_a;p_b\n1,5;29.02.2024;a;0,25;0,75\n-1e5;01.03.2024;b;1;0\n3;31.12.2020;;0,5;0,5\n";
const JSON: &str = "{\"a\":1,\"e\":[1,2.5],\"label\":\"a\",\"p_a\":0.5,\"p_b\":0.5}\n{\"a\":null,\"e\":[0,null],\"label\":null,\"b\":true,\"p_a\":1,\"p_b\":0}\n{\"a\":-1e9,\"label\":\"b\",\"p_a\":0,\"p_b\":1}\n";
const XML: &str = "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><dimension ref=\"A1:C4\"/><sheetData><row r=\"1\"><c r=\"A1\" t=\"inlineStr\"><is><t>a</t></is></c><c r=\"B1\" t=\"inlineStr\"><is><t>label</t></is></c></row><row r=\"2\"><c r=\"A2\" s=\"1\"><v>45351.5</v></c><c r=\"B2\" t=\"inlineStr\"><is><t>a</t></is></c></row><row r=\"3\"><c r=\"A3\"><v>1e3</v></c></row><row r=\"4\"><c r=\"A4\" t=\"b\"><v>1</v></c><c r=\"B4\" t=\"inlineStr\"><is><t>b</t></is></c></row></sheetData></worksheet>";
const ODS: &str = "<office:document-content xmlns:office=\"urn:oasis:names:tc:opendocument:xmlns:office:1.0\" xmlns:table=\"urn:oasis:names:tc:opendocument:xmlns:table:1.0\" xmlns:text=\"urn:oasis:names:tc:opendocument:xmlns:text:1.0\"><office:body><office:spreadsheet><table:table table:name=\"Data\"><table:table-row><table:table-cell office:value-type=\"string\"><text:p>a</text:p></table:table-cell><table:table-cell office:value-type=\"string\"><text:p>label</text:p></table:table-cell></table:table-row><table:table-row table:number-rows-repeated=\"2\"><table:table-cell office:value-type=\"float\" office:value=\"1.5\" table:number-columns-repeated=\"1\"/><table:table-cell office:value-type=\"string\"><text:p>b</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet></office:body></office:document-content>";

const MANIFEST: &[u8] =
    b"<manifest:manifest xmlns:manifest=\"urn:oasis:names:tc:opendocument:xmlns:manifest:1.0\"></manifest:manifest>";

/// All seeds.
pub(crate) fn seeds() -> Vec<Seed> {
    let mut all = vec![
        Seed::new("csv", "t.csv", TABLE),
        Seed::new("csv with semicolons and dates", "t.csv", SEMICOLONS),
        Seed::new("csv in UTF-16", "t.csv", utf16(SEMICOLONS)),
        Seed::new(
            "csv in Windows-1252",
            "t.csv",
            TABLE
                .replace("note", "n\u{f6}te")
                .chars()
                .map(|c| c as u8)
                .chain(*b"5,1,2024-01-01,gr\xf6\xdfer,1,1,0\n")
                .collect::<Vec<u8>>(),
        ),
        Seed::new("tsv", "t.tsv", TABLE.replace("x, ", "x").replace(',', "\t")),
        Seed::new("csv, gzipped", "t.csv.gz", gzipped(TABLE.into())),
        Seed::new("csv, gzipped again", "t.csv.gz", TABLE).packed(gzipped),
        Seed::new("json lines", "t.jsonl", JSON),
        Seed::new("json list", "t.json", format!("[{}]", JSON.trim().replace('\n', ","))),
        Seed::new(
            "xlsx",
            "t.xlsx",
            workbook(&[("Data", "a|d|label\n1|d:45351|a\n2|d:45352.5|b\n3||"), ("Notes", "x")]),
        ),
        Seed::new("xlsx, zipped again", "t.xlsx", XML)
            .packed(|xml| rezipped(&workbook(&[("Data", "a|label")]), "xl/worksheets/s0.xml", &xml)),
        Seed::new("ods, zipped again", "t.ods", ODS).packed(|xml| {
            zipped(&[
                ("mimetype", b"application/vnd.oasis.opendocument.spreadsheet"),
                ("META-INF/manifest.xml", MANIFEST),
                ("content.xml", &xml),
            ])
        }),
        Seed::new("parquet", "t.parquet", parquet(Compression::SNAPPY, WriterVersion::PARQUET_1_0)),
        Seed::new(
            "parquet with zstd and new pages",
            "t.parquet",
            parquet(Compression::ZSTD(Default::default()), WriterVersion::PARQUET_2_0),
        ),
        Seed::new("parquet, plain", "t.parquet", parquet(Compression::UNCOMPRESSED, WriterVersion::PARQUET_1_0)),
        Seed::new("parquet folder", "t/part-1.parquet", parquet(Compression::SNAPPY, WriterVersion::PARQUET_1_0))
            .in_folder(vec![("t/part-0.parquet", parquet(Compression::SNAPPY, WriterVersion::PARQUET_1_0))]),
        Seed::new("npy of features", "t.npy", npy("<f4", "(3, 2)", &[0, 0, 128, 63].repeat(6))).in_folder_of_labels(),
        Seed::new("npz", "t.npz", npz(&npy("|u1", "(4, 3, 3)", &[7; 36]))),
        Seed::new("npz, zipped again", "t.npz", npy("|u1", "(4, 3, 3)", &[7; 36])).packed(|images| npz(&images)),
        Seed::new("idx", "train-images-idx3-ubyte", idx(0x0803, &[4, 3, 3], &[9; 36]))
            .beside(vec![("train-labels-idx1-ubyte", idx(0x0801, &[4], &[0, 1, 0, 1]))]),
        Seed::new("idx, gzipped again", "train-images-idx3-ubyte.gz", idx(0x0803, &[4, 3, 3], &[9; 36]))
            .packed(gzipped)
            .beside(vec![("train-labels-idx1-ubyte", idx(0x0801, &[4], &[0, 1, 0, 1]))]),
        Seed::new("cifar", "data_batch_1.bin", cifar(2)).in_folder(
            (2..=5)
                .map(|k| {
                    (
                        ["", "", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"][k],
                        cifar(1),
                    )
                })
                .collect(),
        ),
        Seed::new("png", "photos/a/1.png", png()).in_folder(vec![("photos/b/2.png", png())]),
        Seed::new("png with its checksums", "photos/a/1.png", png())
            .packed(with_checksums)
            .in_folder(vec![("photos/b/2.png", png())]),
        Seed::new("jpeg", "photos/a/1.jpg", include_bytes!("../images/colour.jpg"))
            .in_folder(vec![("photos/b/2.jpg", include_bytes!("../images/grey.jpg").to_vec())]),
        Seed::new("bmp", "photos/a/1.bmp", bmp()).in_folder(vec![("photos/b/2.bmp", bmp())]),
    ];
    all.extend(arrow());
    all
}

impl Seed {
    fn beside(self, beside: Vec<(&'static str, Vec<u8>)>) -> Self {
        Self { beside, ..self }
    }

    /// Labels of an array are in a file of their own.
    fn in_folder_of_labels(self) -> Self {
        self.beside(vec![("labels.csv", b"label\na\n\nb\n".to_vec())])
    }
}

fn utf16(text: &str) -> Vec<u8> {
    std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

pub(crate) fn gzipped(bytes: Vec<u8>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zipped(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    for (name, bytes) in parts {
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// An archive with another content of one part.
pub(crate) fn rezipped(archive: &[u8], part: &str, content: &[u8]) -> Vec<u8> {
    let mut archive = zip::ZipArchive::new(Cursor::new(archive)).unwrap();
    let mut parts: Vec<(String, Vec<u8>)> = Vec::new();
    for i in 0..archive.len() {
        let mut file = archive.by_index(i).unwrap();
        let mut bytes = Vec::new();
        std::io::copy(&mut file, &mut bytes).unwrap();
        parts.push((file.name().to_owned(), if file.name() == part { content.to_vec() } else { bytes }));
    }
    zipped(&parts.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect::<Vec<_>>())
}

pub(crate) fn npz(images: &[u8]) -> Vec<u8> {
    let labels = npy("<i8", "(4, 1)", &[0_i64, 1, -1, 1].map(i64::to_le_bytes).concat());
    zipped(&[("train_images.npy", images), ("train_labels.npy", &labels)])
}

pub(crate) fn idx(magic: u32, sizes: &[u32], bytes: &[u8]) -> Vec<u8> {
    let sizes = sizes.iter().flat_map(|size| size.to_be_bytes());
    magic.to_be_bytes().into_iter().chain(sizes).chain(bytes.iter().copied()).collect()
}

fn cifar(images: usize) -> Vec<u8> {
    (0..images).flat_map(|i| std::iter::once(i as u8).chain([40; 3072])).collect()
}

fn png() -> Vec<u8> {
    pixels(3, 2, &(0..18).collect::<Vec<u8>>())
}

/// A coloured image.
pub(crate) fn pixels(width: u32, height: u32, rgb: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().unwrap().write_image_data(rgb).unwrap();
    file
}

/// The same chunks with the checksums that belong to them.
fn with_checksums(mut file: Vec<u8>) -> Vec<u8> {
    let mut at = 8;
    while let Some(length) = file.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes) {
        let end = at.saturating_add(8).saturating_add(length as usize);
        if end.saturating_add(4) > file.len() {
            break;
        }
        let mut sum = flate2::Crc::new();
        sum.update(&file[at + 4..end]);
        file[end..end + 4].copy_from_slice(&sum.sum().to_be_bytes());
        at = end + 4;
    }
    file
}

fn bmp() -> Vec<u8> {
    let mut file = b"BM".to_vec();
    file.extend([0; 8]);
    file.extend(54_u32.to_le_bytes());
    for value in [40_u32, 2, 2] {
        file.extend(value.to_le_bytes());
    }
    file.extend([1, 0, 24, 0]);
    file.extend([0; 24]);
    file.extend([1, 2, 3, 4, 5, 6, 0, 0, 7, 8, 9, 1, 2, 3, 0, 0]);
    file
}

fn parquet(compression: Compression, version: WriterVersion) -> Vec<u8> {
    let schema =
        "required binary id (STRING); optional binary label (STRING); optional double p_a; optional double p_b;
        optional int32 fold; optional int32 day (DATE); optional boolean flag;
        optional group e (LIST) { repeated group list { optional float element; } }";
    let n = 60;
    let rows = |i: usize| !i.is_multiple_of(7);
    let columns = [
        Text((0..n).map(|i| Some(["x", "yy", "zzz"][i % 3])).collect()),
        Text((0..n).map(|i| [Some("a"), None, Some("b")][i % 3]).collect()),
        F64((0..n).map(|i| Some(i as f64 / n as f64)).collect()),
        F64((0..n).map(|i| Some(1.0 - i as f64 / n as f64)).collect()),
        I32((0..n).map(|i| Some(i as i32 % 4)).collect()),
        I32((0..n).map(|i| rows(i).then_some(19_000 + i as i32)).collect()),
        Bool((0..n).map(|i| rows(i).then_some(i % 2 == 0)).collect()),
        Lists((0..n).map(|i| rows(i).then(|| vec![Some(i as f32), None])).collect()),
    ];
    let layout = Layout { compression, version, dictionary: true, group_rows: 40, page_rows: 16 };
    parquet_laid_out(schema, &columns, &layout)
}

#[cfg(not(feature = "arrow-ipc"))]
fn arrow() -> Vec<Seed> {
    Vec::new()
}

#[cfg(feature = "arrow-ipc")]
fn arrow() -> Vec<Seed> {
    let batch = arrow_batch();
    let mut stream = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    stream.write(&batch).unwrap();
    stream.finish().unwrap();
    vec![
        Seed::new("arrow", "t.arrow", arrow_file(&batch, None)),
        Seed::new("feather with lz4", "t.feather", arrow_file(&batch, Some(arrow_ipc::CompressionType::LZ4_FRAME))),
        Seed::new("feather with zstd", "t.feather", arrow_file(&batch, Some(arrow_ipc::CompressionType::ZSTD))),
        Seed::new("arrow stream", "t.ipc", stream.into_inner().unwrap()),
    ]
}

#[cfg(feature = "arrow-ipc")]
fn arrow_batch() -> arrow_array::RecordBatch {
    use arrow_array::types::Int8Type;
    use arrow_array::{ArrayRef, Date32Array, DictionaryArray, Float64Array, ListArray, StringArray};
    use std::sync::Arc;
    let kinds: DictionaryArray<Int8Type> = (0..40).map(|i| (i % 5 != 0).then_some("kind")).collect();
    let lists = (0..40).map(|i| Some(vec![Some(f64::from(i)), None]));
    let columns: [(&str, ArrayRef); 6] = [
        ("a", Arc::new((0..40).map(|i| (i % 3 != 0).then_some(f64::from(i))).collect::<Float64Array>())),
        ("when", Arc::new(Date32Array::from_iter_values(19_700..19_740))),
        ("kind", Arc::new(kinds)),
        ("e", Arc::new(ListArray::from_iter_primitive::<arrow_array::types::Float64Type, _, _>(lists))),
        ("label", Arc::new((0..40).map(|i| [Some("a"), None, Some("b")][i % 3]).collect::<StringArray>())),
        ("p_a", Arc::new(Float64Array::from(vec![1.0; 40]))),
    ];
    arrow_array::RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
}

#[cfg(feature = "arrow-ipc")]
pub(crate) fn arrow_file(batch: &arrow_array::RecordBatch, codec: Option<arrow_ipc::CompressionType>) -> Vec<u8> {
    let options = arrow_ipc::writer::IpcWriteOptions::default().try_with_compression(codec).unwrap();
    let writer = arrow_ipc::writer::FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options);
    let mut writer = writer.unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}
