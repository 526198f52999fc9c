//! Tables as people have them. Every line of the lists below is a small file and what must become of it.
#![allow(clippy::unwrap_used)]

mod common;

use common::parquet::Values::{Bool, F64, I32, I64, Text};
use common::parquet::parquet;
use common::workbook::workbook;
use common::{chain, csv, file, folder, labelled, numbers, table};
use mnar::Remedy;
use mnar_data::{
    Dataset, Expected, Inputs, Note, PredictionColumns, ReadOptions, Split, TableEncoder, TextTable, read_dataset,
    read_for_prediction, read_labels, read_predictions,
};

/// A file, and what must become of it.
struct Case {
    what: &'static str,
    name: &'static str,
    bytes: Vec<u8>,
    result: Expect,
}

enum Expect {
    /// The rows, the columns with their kind (`#` numbers, `@` names), the classes, and the notes in order.
    Read(usize, &'static str, &'static str, &'static [&'static str]),
    /// Words of the one message, which starts with the file.
    Refused(&'static [&'static str]),
}

fn utf16(text: &str, big: bool, mark: bool) -> Vec<u8> {
    let mark = if mark { "\u{feff}" } else { "" };
    let unit = |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
    mark.encode_utf16().chain(text.encode_utf16()).flat_map(unit).collect()
}

fn windows(text: &str) -> Vec<u8> {
    text.chars().map(|char| if char == '€' { 0x80 } else { u8::try_from(u32::from(char)).unwrap() }).collect()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A header and rows made by number.
fn rows(header: &str, n: usize, row: impl Fn(usize) -> String) -> Vec<u8> {
    let rows: String = (0..n).map(|i| row(i) + "\n").collect();
    format!("{header}\n{rows}").into_bytes()
}

fn shape(read: &Dataset) -> String {
    let kind = |column: &mnar_data::FeatureColumn| match column.values {
        mnar_data::ColumnValues::Numeric(_) => format!("{}#", column.name),
        mnar_data::ColumnValues::Categorical(_) => format!("{}@", column.name),
    };
    table(read).columns().iter().map(kind).collect::<Vec<_>>().join(" ")
}

fn check(case: &Case) {
    let folder = folder();
    let path = file(&folder, case.name, &case.bytes);
    let what = format!("{} ({})", case.what, case.name);
    match (read_dataset(&path, &labelled("y")), &case.result) {
        (Ok(read), Expect::Read(n, columns, classes, notes)) => {
            let found: Vec<String> = read.notes.iter().map(ToString::to_string).collect();
            assert_eq!(read.inputs.len(), *n, "{what}");
            assert_eq!(shape(&read), *columns, "{what}: {found:?}");
            assert_eq!(read.labels.names().join(" "), *classes, "{what}");
            assert_eq!(found, *notes, "{what}");
        }
        (Err(error), Expect::Refused(words)) => {
            let message = chain(&error);
            assert!(message.starts_with(&format!("{}: ", path.display())), "{what}: {message}");
            for word in *words {
                assert!(message.contains(word), "{what}: {message}");
            }
        }
        (Ok(read), Expect::Refused(words)) => panic!("{what}: read as {read:?}, not refused with {words:?}"),
        (Err(error), Expect::Read(..)) => panic!("{what}: {}", chain(&error)),
    }
}

fn case(what: &'static str, name: &'static str, bytes: impl Into<Vec<u8>>, result: Expect) -> Case {
    Case { what, name, bytes: bytes.into(), result }
}

use Expect::{Read, Refused};

const SEMI: &str = "read as semicolon-separated";
const TAB: &str = "read as tab-separated";

#[test]
fn separators_and_decimal_marks() {
    let n = |i: usize| format!("{},{};{}", i, i % 7, ["u", "v", ""][i % 3]);
    let thousands = |i: usize| format!("{},5;{}", i * 3, ["u", "v", ""][i % 3]);
    for case in [
        case("commas", "t.csv", "a,b,y\n1.5,k,u\n2,l,v\n3,k,\n", Read(3, "a# b@", "u v", &[])),
        case("semicolons", "t.csv", "a;b;y\n1.5;k;u\n2;l;v\n", Read(2, "a# b@", "u v", &[SEMI])),
        case("tabs in .csv", "t.csv", "a\tb\ty\n1\tk\tu\n2\tl\tv\n", Read(2, "a# b@", "u v", &[TAB])),
        case("tabs in .tsv", "t.tsv", "a\tb\ty\n1\tk\tu\n2\tl\tv\n", Read(2, "a# b@", "u v", &[])),
        case("commas in .tsv", "t.tsv", "a,b,y\n1,k,u\n2,l,v\n", Read(2, "a# b@", "u v", &["read as comma-separated"])),
        case("bars", "t.txt", "a|b|y\n1|k|u\n2|l|v\n", Read(2, "a# b@", "u v", &["read as bar-separated"])),
        case("tabs in .txt", "t.txt", "a\ty\n1\tu\n2\tv\n", Read(2, "a#", "u v", &[TAB])),
        case("sep= of spreadsheets", "t.csv", "sep=;\r\na;y\r\n1;u\r\n2;v\r\n", Read(2, "a#", "u v", &[SEMI])),
        case(
            "decimal commas",
            "t.csv",
            "a;b;y\n1,5;k;u\n-2,25;l;v\n3;k;\n",
            Read(3, "a# b@", "u v", &[SEMI, "decimal commas in `a`"]),
        ),
        case(
            "decimal commas and gaps",
            "t.csv",
            "a;y\n1,5;u\nNA;v\n;u\n",
            Read(3, "a#", "u v", &[SEMI, "decimal commas in `a`"]),
        ),
        case(
            "many decimal commas",
            "t.csv",
            rows("a;y", 9000, thousands),
            Read(9000, "a#", "u v", &[SEMI, "decimal commas in `a`"]),
        ),
        case(
            "counting with commas",
            "t.csv",
            rows("a;y", 30, n),
            Read(30, "a#", "u v", &[SEMI, "decimal commas in `a`"]),
        ),
        case("points and commas are names", "t.csv", "a;y\n1,5;u\n2.5;v\n", Read(2, "a@", "u v", &[SEMI])),
        case("lists of numbers are names", "t.csv", "a;y\n1,5,2;u\n3,4,5;v\n", Read(2, "a@", "u v", &[SEMI])),
        case("quoted commas in a comma file", "t.csv", "a,y\n\"1,5\",u\n\"2,5\",v\n", Read(2, "a@", "u v", &[])),
        case("semicolons inside quotes", "t.csv", "a,b,y\n\"1;2\",k,u\n\"3;4\",l,v\n", Read(2, "a@ b@", "u v", &[])),
        case("Windows and old Mac lines", "t.csv", "a,y\r\n1,u\r2,v\r\n", Read(2, "a#", "u v", &[])),
        case("blank lines", "t.csv", "\n\na,y\n\n1,u\n\n2,v\n\n", Read(2, "a#", "u v", &[])),
        case("ragged", "t.csv", "a,b,y\n1,2,u\n1,2\n", Refused(&["row 2 has 2 values but the header has 3"])),
        case("an open quote", "t.csv", "a,y\n1,u\n\"2,v\n3,w\n", Refused(&["a quote opened in row 2"])),
        case("spaces", "t.csv", "a b y\n1 2 u\n", Refused(&["there is no column `y`"])),
        case("a name twice", "t.csv", "a,a,y\n1,2,u\n", Refused(&["more than one column is called `a`"])),
        case(
            "gzipped",
            "t.csv.gz",
            gzipped(b"a;y\n1,5;u\n2;v\n"),
            Read(2, "a#", "u v", &[SEMI, "decimal commas in `a`"]),
        ),
    ] {
        check(&case);
    }
}

#[test]
fn encodings() {
    let text = "größe,y\n1,süß\n2,€\n3,\n";
    let classes = "süß €";
    let wide: fn(bool) -> &'static [&'static str] =
        |big| if big { &["decoded as UTF-16 (big-endian)"] } else { &["decoded as UTF-16 (little-endian)"] };
    for case in [
        case("UTF-8", "t.csv", text, Read(3, "größe#", classes, &[])),
        case("UTF-8 with a mark", "t.csv", format!("\u{feff}{text}"), Read(3, "größe#", classes, &[])),
        case("Windows-1252", "t.csv", windows(text), Read(3, "größe#", classes, &["decoded as Windows-1252"])),
        case(
            "Windows-1252, gzipped",
            "t.csv.gz",
            gzipped(&windows(text)),
            Read(3, "größe#", classes, &["decoded as Windows-1252"]),
        ),
        case("UTF-16, little", "t.csv", utf16(text, false, true), Read(3, "größe#", classes, wide(false))),
        case("UTF-16, big", "t.csv", utf16(text, true, true), Read(3, "größe#", classes, wide(true))),
        case("UTF-16 without a mark", "t.csv", utf16(text, false, false), Read(3, "größe#", classes, wide(false))),
        case("UTF-16, big, without a mark", "t.csv", utf16(text, true, false), Read(3, "größe#", classes, wide(true))),
        case(
            "UTF-16 of a spreadsheet",
            "t.txt",
            utf16("a\ty\r\n1\tu\r\n2\tv\r\n", false, true),
            Read(2, "a#", "u v", &[TAB, "decoded as UTF-16 (little-endian)"]),
        ),
        case(
            "damaged UTF-8",
            "t.csv",
            b"a,y\n1,\xc3\xbc\n2,\xff\n".to_vec(),
            Refused(&["row 2, column `y` is not UTF-8"]),
        ),
        case(
            "bytes without a meaning",
            "t.csv",
            b"a,y\n1,\x81\n2,u\n".to_vec(),
            Refused(&["row 1, column `y` is not UTF-8"]),
        ),
        case("zero bytes", "t.csv", b"a,y\n1,\0\0u\n".to_vec(), Refused(&["zero bytes", "UTF-8"])),
        case("a zip archive", "t.csv", b"PK\x03\x04....".to_vec(), Refused(&["not a table of text", ".xlsx"])),
        case(
            "an old spreadsheet",
            "t.csv",
            b"\xd0\xcf\x11\xe0....".to_vec(),
            Refused(&["not a table of text", ".xls"]),
        ),
        case("empty", "t.csv", "", Refused(&["the file is empty"])),
        case("a header alone", "t.csv", "a,y\n", Refused(&["no rows below the header"])),
    ] {
        check(&case);
    }
}

#[test]
fn missing_marks() {
    for case in [
        case(
            "NA",
            "t.csv",
            "a,y\n1,u\n2,NA\n4,v\n3,NA\n",
            Read(4, "a#", "u v", &["2 labels `NA` were read as missing"]),
        ),
        case(
            "NA and ?",
            "t.csv",
            "a,y\n1,u\n2,NA\n4,v\n3,NA\n7,?\n",
            Read(5, "a#", "u v", &["2 labels `NA` and 1 label `?` were read as missing"]),
        ),
        case("n/a", "t.csv", "a,y\n1,u\n2,n/a\n4,v\n", Read(3, "a#", "u v", &["1 label `n/a` was read as missing"])),
        case("N/A", "t.csv", "a,y\n1,u\n2,N/A\n4,v\n", Read(3, "a#", "u v", &["1 label `N/A` was read as missing"])),
        case("nan", "t.csv", "a,y\n1,0\n2,nan\n4,1\n", Read(3, "a#", "0 1", &["1 label `nan` was read as missing"])),
        case("NaN", "t.csv", "a,y\n1,0\n2,NaN\n4,1\n", Read(3, "a#", "0 1", &["1 label `NaN` was read as missing"])),
        case("null", "t.csv", "a,y\n1,0\n2,null\n4,1\n", Read(3, "a#", "0 1", &["1 label `null` was read as missing"])),
        case("NULL", "t.csv", "a,y\n1,0\n2,NULL\n4,1\n", Read(3, "a#", "0 1", &["1 label `NULL` was read as missing"])),
        case("None", "t.csv", "a,y\n1,u\n2,None\n4,v\n", Read(3, "a#", "u v", &["1 label `None` was read as missing"])),
        case("none", "t.csv", "a,y\n1,u\n2,none\n4,v\n", Read(3, "a#", "u v", &["1 label `none` was read as missing"])),
        case("a point", "t.csv", "a,y\n1,u\n2,.\n4,v\n", Read(3, "a#", "u v", &["1 label `.` was read as missing"])),
        case("blanks", "t.csv", "a,y\n1,u\n2,  \n4,v\n", Read(3, "a#", "u v", &[])),
        case(
            "-1 among classes",
            "t.csv",
            "a,y\n1,0\n2,-1\n4,1\n3,-1\n",
            Read(4, "a#", "0 1", &["2 labels `-1` were read as missing"]),
        ),
        case(
            "-1.0 among classes",
            "t.csv",
            "a,y\n1,0.0\n2,-1.0\n4,2.0\n",
            Read(3, "a#", "0 2", &["1 label `-1.0` was read as missing"]),
        ),
        case("-1 and 1 are classes", "t.csv", "a,y\n1,1\n2,-1\n4,\n", Read(3, "a#", "-1 1", &[])),
        case("-1 and -2 are classes", "t.csv", "a,y\n1,-2\n2,-1\n4,0\n", Read(3, "a#", "-2 -1 0", &[])),
        case("-1 among names", "t.csv", "a,y\n1,u\n2,-1\n4,v\n", Read(3, "a#", "-1 u v", &[])),
        case("sodium", "t.csv", "a,y\n1,Na\n2,K\n4,\n", Read(3, "a#", "K Na", &[])),
        case("only marks", "t.csv", "a,y\n1,NA\n2,?\n", Refused(&["none of the 2 rows has a label"])),
        case(
            "? among numbers",
            "t.csv",
            "a,y\n1,u\n?,v\n3,u\n?,v\n",
            Read(4, "a#", "u v", &["2 values `?` in `a` were read as missing"]),
        ),
        case(
            ". among numbers",
            "t.csv",
            "a,y\n1,u\n.,v\n3,u\n",
            Read(3, "a#", "u v", &["1 value `.` in `a` was read as missing"]),
        ),
        case("? among names", "t.csv", "a,y\nk,u\n?,v\nk,u\n", Read(3, "a@", "u v", &[])),
        case("NA among numbers", "t.csv", "a,y\n1,u\nNA,v\n3,u\n", Read(3, "a#", "u v", &[])),
    ] {
        check(&case);
    }
    let as_they_are = ReadOptions { labels_as_they_are: true, ..labelled("y") };
    let read = csv("a,y\n1,u\n2,NA\n4,v\n3,?\n", &as_they_are).unwrap();
    assert_eq!((read.labels.names().join(" "), read.notes), ("? NA u v".to_owned(), Vec::new()));
    assert_eq!(csv("a,y\n1,0\n2,-1\n4,1\n3,\n", &as_they_are).unwrap().labels.names(), ["-1", "0", "1"]);
    // The user's own marks go without saying.
    let own = ReadOptions { missing: vec!["unclear".into()], ..labelled("y") };
    let read = csv("a,y\n1,u\n2,unclear\n4,v\n", &own).unwrap();
    assert_eq!((read.labels.n_unlabelled(), read.notes.len()), (1, 0));
    // Labels in a file of their own are read alike.
    let folder = folder();
    let data = file(&folder, "t.csv", "a\n1\n2\n4\n");
    for labels in ["y\n0\n-1\n1\n", "y;z\n0;k\n-1;k\n1;k\n"] {
        let labels = Some(file(&folder, "l.csv", labels));
        let read = read_dataset(&data, &ReadOptions { labels_file: labels, ..labelled("y") }).unwrap();
        assert_eq!(read.labels.names(), ["0", "1"]);
        let by_position = Note::LabelsByPosition { images: false, unknown: None };
        assert_eq!(read.notes, [Note::MissingLabels { marks: vec![("-1".into(), 1)] }, by_position]);
    }
}

const DAYS: &str = "the dates in `d` (year-month-day) became days since 1970-01-01";

#[test]
fn columns_that_are_not_what_they_seem() {
    let y = |i: usize| ["u", "v", ""][i % 3];
    let counts = |from: usize| rows("k,a,y", 30, move |i| format!("{},{},{}", i + from, i * i % 11, y(i)));
    for case in [
        case("ISO dates", "t.csv", "d,y\n2024-02-29,u\n1970-01-02,v\n,u\n", Read(3, "d#", "u v", &[DAYS])),
        case("ISO times", "t.csv", "d,y\n2024-02-29T12:00:00Z,u\n2023-01-02 06:30,v\n", Read(2, "d#", "u v", &[DAYS])),
        case(
            "German dates",
            "t.csv",
            "d,y\n29.02.2024,u\n1.3.2024,v\n",
            Read(2, "d#", "u v", &["the dates in `d` (day, month, year) became days since 1970-01-01"]),
        ),
        case(
            "British dates",
            "t.csv",
            "d,y\n29/02/2024,u\n01/03/2024,v\n",
            Read(2, "d#", "u v", &["the dates in `d` (day, month, year) became days since 1970-01-01"]),
        ),
        case(
            "American dates",
            "t.csv",
            "d,y\n02/29/2024,u\n03/01/2024,v\n",
            Read(2, "d#", "u v", &["the dates in `d` (month, day, year) became days since 1970-01-01"]),
        ),
        case(
            "either way",
            "t.csv",
            "d,y\n02/03/2024,u\n03/01/2024,v\n",
            Read(
                2,
                "d#",
                "u v",
                &[
                    "the dates in `d` (month, day, year) became days since 1970-01-01; day and month could also be the other way round",
                ],
            ),
        ),
        case("a day that does not exist", "t.csv", "d,y\n2024-02-30,u\n2024-02-01,v\n", Read(2, "d@", "u v", &[])),
        case(
            "dates and a mark",
            "t.csv",
            "d,y\n2024-02-29,u\n?,v\n2024-03-01,u\n",
            Read(3, "d#", "u v", &[DAYS, "1 value `?` in `d` was read as missing"]),
        ),
        case(
            "one date per row",
            "t.csv",
            rows("d,y", 27, |i| format!("2024-01-{:02},{}", i + 1, y(i))),
            Read(27, "d#", "u v", &[DAYS]),
        ),
        case("booleans", "t.csv", "b,c,y\ntrue,yes,u\nFalse,no,v\nTRUE,yes,u\n", Read(3, "b# c@", "u v", &[])),
        case(
            "rows from 0",
            "t.csv",
            counts(0),
            Read(30, "a#", "u v", &["`k` is not used as a feature, because it counts the rows"]),
        ),
        case(
            "rows from 1",
            "t.csv",
            counts(1),
            Read(30, "a#", "u v", &["`k` is not used as a feature, because it counts the rows"]),
        ),
        case("rows from 2", "t.csv", counts(2), Read(30, "k# a#", "u v", &[])),
        case("a counter alone", "t.csv", rows("k,y", 30, |i| format!("{i},{}", y(i))), Read(30, "k#", "u v", &[])),
        case(
            "names of rows",
            "t.csv",
            rows("p,a,y", 30, |i| format!("n{i},{},{}", i * i % 11, y(i))),
            Read(30, "a#", "u v", &["`p` is not used as a feature, because all of its values are different names"]),
        ),
        case(
            "many names of rows",
            "t.csv",
            rows("p,a,y", 300, |i| format!("n{i},{},{}", i * i % 11, y(i))),
            Read(300, "a#", "u v", &["`p` is not used as a feature, because all of its values are different names"]),
        ),
        case(
            "an id",
            "t.csv",
            "id,a,y\n17,1,u\n4,2,v\n9,1,u\n",
            Read(
                3,
                "a#",
                "u v",
                &[
                    "`id` is not used as a feature, because it has the name of an identifier, and all of its values differ",
                ],
            ),
        ),
        case(
            "an index without a name",
            "t.csv",
            ",a,y\n0,1,u\n1,2,v\n2,1,u\n",
            Read(
                3,
                "a#",
                "u v",
                &[
                    "`` is not used as a feature, because it has the name of an identifier, and all of its values differ",
                ],
            ),
        ),
        case(
            "Unnamed: 0",
            "t.csv",
            "Unnamed: 0,a,y\n0,1,u\n1,2,v\n2,1,u\n",
            Read(
                3,
                "a#",
                "u v",
                &[
                    "`Unnamed: 0` is not used as a feature, because it has the name of an identifier, and all of its values differ",
                ],
            ),
        ),
        case("an id that repeats", "t.csv", "id,a,y\n17,1,u\n4,2,v\n17,1,u\n", Read(3, "id# a#", "u v", &[])),
        case(
            "a constant",
            "t.csv",
            "k,a,y\n5,1,u\n5,2,v\n",
            Read(2, "k# a#", "u v", &["`k` is not used as a feature, because it has a single value"]),
        ),
        case(
            "constants",
            "t.csv",
            "k,l,a,y\n5,z,1,u\n5,z,2,v\n",
            Read(2, "k# l@ a#", "u v", &["`k`, `l` are not used as features, because each has a single value"]),
        ),
        case(
            "classes that differ by case",
            "t.csv",
            "a,y\n1,Cat\n2,cat\n3,dog\n5,\n",
            Read(4, "a#", "Cat cat dog", &["the classes `Cat`, `cat` differ only by case, and are kept apart"]),
        ),
        case("blanks around classes", "t.csv", "a,y\n1,cat\n2, cat \n3,dog\n5,\n", Read(4, "a#", "cat dog", &[])),
        case(
            "names that differ by case",
            "t.csv",
            "a,y\nUlm,u\nulm,v\nUlm,u\n",
            Read(3, "a@", "u v", &["the names in `a` `Ulm`, `ulm` differ only by case, and are kept apart"]),
        ),
    ] {
        check(&case);
    }
    // What is named is used.
    let named = ReadOptions { features: Some(vec!["k".into()]), ..labelled("y") };
    let read = csv(std::str::from_utf8(&counts(0)).unwrap(), &named).unwrap();
    assert_eq!((shape(&read), read.notes.len()), ("k#".to_owned(), 0));
    let read = csv("d,y\n2024-02-29 12:00,u\n1970-01-02,v\n,u\n", &labelled("y")).unwrap();
    assert_eq!(numbers(table(&read), "d")[..2], [19_782.5, 1.0]);
}

#[test]
fn all_problems_at_once() {
    let odd = |i: usize| if i == 77 { "many".to_owned() } else { format!("{i}.5") };
    let text = |i: usize| format!("free {}", i / 2 * 2 + i % 7 / 6);
    let inf = |i: usize| if i == 5 { "inf" } else { "1" };
    let bytes = rows("good,odd one,the text,it's,y", 300, |i| {
        format!("{},{},{},{},{}", i % 3, odd(i), text(i), inf(i), ["u", "v", ""][i % 3])
    });
    let folder = folder();
    let path = file(&folder, "t.csv", &bytes);
    let error = read_dataset(&path, &labelled("y")).unwrap_err();
    let message = error.to_string().replace(&format!("{}/", folder.path().display()), "");
    assert_eq!(message.lines().count(), 4, "{message}");
    assert!(message.starts_with("t.csv: 3 columns cannot be used as they are:\n  - row 78, column `odd one`: `many`"));
    assert!(message.contains("\n  - column `the text` has 1"), "{message}");
    assert!(message.contains("\n  - row 6, column `it's`: the value is inf"), "{message}");
    let together =
        vec![Remedy::set("missing", "many"), Remedy::set("ignore", "the text"), Remedy::set("ignore", "it's")];
    assert_eq!(error.remedies(), [Remedy::All(together)]);
    // The hint, followed, cures all.
    let ignore = vec!["the text".into(), "it's".into()];
    let cured = ReadOptions { missing: vec!["many".into()], ignore, ..labelled("y") };
    assert_eq!(shape(&read_dataset(&path, &cured).unwrap()), "good# odd one#");
    // Ten are shown.
    let header: Vec<String> = (0..15).map(|k| format!("c{k}")).collect();
    let bytes = rows(&format!("{},y", header.join(",")), 3, |_| format!("{}u", "inf,".repeat(15)));
    let message = read_dataset(&file(&folder, "w.csv", bytes), &labelled("y")).unwrap_err().to_string();
    assert!(message.contains("15 columns") && message.ends_with("\n  - and 5 more"), "{message}");
}

fn json(text: &str) -> Vec<u8> {
    text.replace('\'', "\"").into_bytes()
}

#[test]
fn json_lines() {
    for case in [
        case(
            "objects",
            "t.jsonl",
            json("{'a':1,'b':'k','y':'u'}\n{'a':2.5,'b':null,'y':null}\n"),
            Read(2, "a# b@", "u", &[]),
        ),
        case(
            "names that come later",
            "t.ndjson",
            json("{'a':1,'y':0}\n{'y':1,'c':true,'a':3}\n"),
            Read(2, "a# c#", "0 1", &[]),
        ),
        case("a list of objects", "t.json", json("[{'a':1,'y':'u'},\n {'a':2,'y':'v'}]"), Read(2, "a#", "u v", &[])),
        case(
            "lists are spread",
            "t.jsonl",
            json("{'e':[1,2],'y':'u'}\n{'e':[3,null],'y':'v'}\n"),
            Read(2, "e_0# e_1#", "u v", &[]),
        ),
        case(
            "dates",
            "t.jsonl",
            json("{'d':'2024-02-29','y':'u'}\n{'d':'2024-03-01','y':'v'}\n"),
            Read(2, "d#", "u v", &[DAYS]),
        ),
        case(
            "numbers and NA",
            "t.jsonl",
            json("{'a':1,'y':'u'}\n{'a':'NA','y':'NA'}\n{'a':2.5,'y':'v'}"),
            Read(3, "a#", "u v", &["1 label `NA` was read as missing"]),
        ),
        case("without an extension", "table", json("{'a':1,'y':'u'}\n{'a':2,'y':'v'}\n"), Read(2, "a#", "u v", &[])),
        case("gzipped", "t.jsonl.gz", gzipped(&json("{'a':1,'y':'u'}\n{'a':2,'y':'v'}\n")), Read(2, "a#", "u v", &[])),
        case(
            "a damaged row",
            "t.jsonl",
            json("{'a':1,'y':'u'}\n{'a':2,'y'\n"),
            Refused(&["row 2: not readable as JSON"]),
        ),
        case(
            "an object inside",
            "t.jsonl",
            json("{'a':{'b':1},'y':'u'}\n"),
            Refused(&["row 1, column `a`: the value is an object"]),
        ),
        case(
            "texts in a list",
            "t.jsonl",
            json("{'a':['k'],'y':'u'}\n"),
            Refused(&["row 1, column `a`: the value is a list of something else"]),
        ),
        case("numbers, not objects", "t.jsonl", "1\n2\n", Refused(&["row 1: not readable as JSON", "an object"])),
        case("nothing", "t.jsonl", "\n", Refused(&["the file is empty"])),
        case(
            "no such label",
            "t.jsonl",
            json("{'a':1,'Y':'u'}\n"),
            Refused(&["there is no column `y`, did you mean `Y`?"]),
        ),
    ] {
        check(&case);
    }
}

#[cfg(feature = "excel")]
#[test]
fn spreadsheets() {
    let one = |cells: &str| workbook(&[("Data", cells)]);
    for case in [
        case("numbers and names", "t.xlsx", one("a|b|y\n1.5|k|u\n2|l|v\n3||\n"), Read(3, "a# b@", "u v", &[])),
        case("classes by number", "t.xlsx", one("a|y\n1.5|0\n2|1\n3|\n"), Read(3, "a#", "0 1", &[])),
        case(
            "dates, booleans, errors",
            "t.xlsx",
            one("d|b|e|y\nd:45351|b:1|1.5|u\nd:45352.5|b:0|!|v\n"),
            Read(2, "d# b# e#", "u v", &[DAYS]),
        ),
        case("blank rows", "t.xlsx", one("|\na|y\n1|u\n|\n2|v\n"), Read(2, "a#", "u v", &[])),
        case(
            "numbers and NA",
            "t.xlsx",
            one("a|y\n1|u\nNA|NA\n2|v\n"),
            Read(3, "a#", "u v", &["1 label `NA` was read as missing"]),
        ),
        case(
            "two sheets",
            "t.xlsx",
            workbook(&[("Data", "a|y\n1|u\n2|v"), ("Notes", "x")]),
            Read(2, "a#", "u v", &["read the sheet `Data`; the other sheets are `Notes`"]),
        ),
        case("no label", "t.xlsx", one("a|Y\n1|u\n"), Refused(&["there is no column `y`, did you mean `Y`?"])),
        case(
            "a stray cell",
            "t.xlsx",
            one("a|y\n1|u\n@XFD1048576"),
            Refused(&["not a readable spreadsheet", "spread over millions"]),
        ),
        case("an empty sheet", "t.xlsx", one(""), Refused(&["the file is empty"])),
        case("not a spreadsheet", "t.xlsx", "a,y\n1,u\n", Refused(&["not a readable spreadsheet"])),
        case(
            "not an old spreadsheet",
            "t.xls",
            b"\xd0\xcf\x11\xe0cut".to_vec(),
            Refused(&["not a readable spreadsheet"]),
        ),
    ] {
        check(&case);
    }
    let folder = folder();
    let path = file(&folder, "t.xlsx", workbook(&[("Notes", "x"), ("Data", "a|d|y\n1|d:45351|u\n2|d:45352.5|v")]));
    let read = |sheet: &str| read_dataset(&path, &ReadOptions { sheet: Some(sheet.into()), ..labelled("y") });
    assert_eq!(numbers(table(&read("Data").unwrap()), "d"), [19_782.0, 19_783.5]);
    let error = read("Date").unwrap_err();
    assert!(error.to_string().contains("there is no sheet `Date` (the sheets are Notes, Data)"), "{error}");
    let csv = file(&folder, "t.csv", "a,y\n1,u\n");
    let error = read_dataset(&csv, &ReadOptions { sheet: Some("Data".into()), ..labelled("y") }).unwrap_err();
    assert!(error.to_string().contains("a CSV file has no sheets"), "{error}");
    let predictions = file(&folder, "p.xlsx", workbook(&[("P", "y|p_a|p_b\na|0.9|0.1\n|0.5|0.5\nb|0|1")]));
    assert_eq!(read_predictions(&predictions, &PredictionColumns::new("y")).unwrap().labels.counts(), [1, 1]);
}

#[cfg(feature = "arrow-ipc")]
#[test]
fn arrow_files() {
    use arrow_array::{ArrayRef, Date32Array, Float64Array, RecordBatch, StringArray};
    use std::sync::Arc;
    let a: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.5), None, Some(3.0)]));
    let d: ArrayRef = Arc::new(Date32Array::from(vec![19_782, 19_783, 19_785]));
    let y: ArrayRef = Arc::new(StringArray::from(vec![Some("u"), None, Some("v")]));
    let batch = RecordBatch::try_from_iter([("a", a), ("d", d), ("y", y)]).unwrap();
    let written = |compression| {
        let options = arrow_ipc::writer::IpcWriteOptions::default().try_with_compression(compression).unwrap();
        let writer = arrow_ipc::writer::FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options);
        let mut writer = writer.unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        writer.into_inner().unwrap()
    };
    let mut stream = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    stream.write(&batch).unwrap();
    stream.finish().unwrap();
    let plain = written(None);
    let shape = "a# d#";
    for case in [
        case("plain", "t.arrow", plain.clone(), Read(3, shape, "u v", &[DAYS])),
        case(
            "as pandas writes feather",
            "t.feather",
            written(Some(arrow_ipc::CompressionType::LZ4_FRAME)),
            Read(3, shape, "u v", &[DAYS]),
        ),
        case("zstd", "t.feather", written(Some(arrow_ipc::CompressionType::ZSTD)), Read(3, shape, "u v", &[DAYS])),
        case("without an extension", "table", plain.clone(), Read(3, shape, "u v", &[DAYS])),
        case("a stream", "t.ipc", stream.into_inner().unwrap(), Read(3, shape, "u v", &[DAYS])),
        case(
            "cut off",
            "t.arrow",
            plain[..plain.len() - 7].to_vec(),
            Refused(&["not a readable Arrow or feather file", "cut off"]),
        ),
        case("the first feather", "t.feather", b"FEA1....FEA1".to_vec(), Refused(&["the first version of feather"])),
        case("CSV", "t.arrow", "a,y\n1,u\n", Refused(&["not a readable Arrow or feather file"])),
        case("empty", "t.arrow", "", Refused(&["the file is empty"])),
    ] {
        check(&case);
    }
    // Any flipped bit gives a table or an error.
    for at in 0..plain.len() {
        let mut bytes = plain.clone();
        bytes[at] ^= 1 << (at % 8);
        let folder = folder();
        let _ = read_dataset(&file(&folder, "t.arrow", bytes), &labelled("y"));
    }
}

#[test]
fn parquet_types_and_folders() {
    let y = || Text(vec![Some("u"), None, Some("v")]);
    let dated =
        "optional int32 d (DATE); optional int64 t (TIMESTAMP_MILLIS); optional boolean b; optional binary y (STRING);";
    let columns = [
        I32(vec![Some(19_782), None, Some(19_785)]),
        I64(vec![Some(43_200_000), Some(86_400_000), None]),
        Bool(vec![Some(true), Some(false), None]),
        y(),
    ];
    let case_of = |columns: &[common::parquet::Values]| parquet(dated, columns);
    check(&case(
        "dates, times, booleans",
        "t.parquet",
        case_of(&columns),
        Read(3, "d# t# b#", "u v", &["the dates in `d`, `t` (year-month-day) became days since 1970-01-01"]),
    ));
    let folder = folder();
    let path = file(&folder, "t.parquet", case_of(&columns));
    let read = read_dataset(&path, &labelled("y")).unwrap();
    assert_eq!(numbers(table(&read), "t")[..2], [0.5, 1.0]);
    let id = ReadOptions { id: Some("d".into()), ..labelled("y") };
    assert_eq!(read_dataset(&path, &id).unwrap().row_names.unwrap().names, ["2024-02-29", "", "2024-03-03"]);

    let part = |x: &[f64], name: &str| {
        let schema = format!("required double {name}; optional binary y (STRING);");
        parquet(&schema, &[F64(x.iter().copied().map(Some).collect()), y()])
    };
    let folder = common::folder();
    file(&folder, "parts/part-2.parquet", part(&[4.0, 5.0, 6.0], "x"));
    file(&folder, "parts/part-1.parquet", part(&[1.0, 2.0, 3.0], "x"));
    file(&folder, "parts/_SUCCESS", "");
    for name in ["parts", "parts/part-*.parquet", "parts/part-?.parquet"] {
        let read = read_dataset(&folder.path().join(name), &labelled("y")).unwrap();
        assert_eq!(numbers(table(&read), "x"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(read.labels.counts(), [2, 2]);
        assert_eq!(read.notes, [Note::Files { count: 2 }]);
    }
    assert_eq!(read_labels(&folder.path().join("parts"), &labelled("y")).unwrap().0.len(), 6);
    let refused = |name: &str| chain(&read_dataset(&folder.path().join(name), &labelled("y")).unwrap_err());
    assert!(refused("parts/nothing-*").contains("no file has a name like this"));
    file(&folder, "mixed/a.csv", "x,y\n1,u\n");
    assert!(refused("mixed/*").contains("`a.csv` is among these files, but only Parquet"), "{}", refused("mixed/*"));
    file(&folder, "parts/part-3.parquet", part(&[1.0, 2.0, 3.0], "z"));
    let message = refused("parts");
    assert!(message.contains("part-3.parquet: it has the column `z` in the place of `x`"), "{message}");
}

#[test]
fn text_in_memory_is_read_as_often_as_needed() {
    let text = TextTable::new("y;p_a;p_b\na;0,9;0,1\n;0,5;0,5\nb;0;1\n", "standard input");
    let read = read_predictions(&text, &PredictionColumns::new("y")).unwrap();
    assert_eq!(read.posteriors.column(0), [0.9, 0.5, 0.0]);
    assert_eq!(read_labels(&text, &labelled("y")).unwrap().0.counts(), [1, 1]);
    let json = TextTable::new(json("{'a':1,'y':'u'}\n{'a':2,'y':'v'}\n"), "standard input");
    assert_eq!(read_dataset(&json, &labelled("y")).unwrap().inputs.len(), 2);
    let zipped = TextTable::new(gzipped(b"a,y\n1,u\n2,v\n"), "standard input");
    assert_eq!(read_dataset(&zipped, &labelled("y")).unwrap().inputs.len(), 2);
    let error = read_dataset(&TextTable::new("", "standard input"), &labelled("y")).unwrap_err();
    assert!(error.to_string().starts_with("standard input: the file is empty"), "{error}");
}

#[test]
fn rows_to_predict_are_read_as_those_for_training() {
    let folder = folder();
    let text = rows("d;x;k;y", 40, |i| {
        format!("{:02}/03/2024;{},5;{};{}", i % 28 + 1, i % 9, ["p", "q"][i % 2], ["u", "v", ""][i % 3])
    });
    let learnt = read_dataset(&file(&folder, "t.csv", text), &labelled("y")).unwrap();
    assert_eq!(shape(&learnt), "d# x# k@");
    let encoder = TableEncoder::fit(table(&learnt)).unwrap();
    // What is kept with a model brings the format of its dates along.
    let encoder: TableEncoder = serde_json::from_str(&serde_json::to_string(&encoder).unwrap()).unwrap();
    let encoded = |text: &str| {
        let path = file(&folder, "new.csv", text);
        let rows = read_for_prediction(&path, &Expected::Table(&encoder), Split::Train, None).unwrap();
        let Inputs::Table(table) = rows.inputs else { panic!() };
        encoder.encode(&table).unwrap()
    };
    // These dates alone would not tell day and month apart.
    let semicolons = encoded("d;x;k\n05/03/2024;1,5;p\n?;2;q\n");
    assert_eq!(semicolons, encoded("d,x,k\n2024-03-05,1.5,p\n,2,q\n"));
    let path = file(&folder, "new.csv", "d,x,k\nsoon,1.5,p\n");
    let error = read_for_prediction(&path, &Expected::Table(&encoder), Split::Train, None).unwrap_err().to_string();
    assert!(error.contains("row 1, column `d`: `soon` is not a number; it must be as it was in training"), "{error}");
}
