//! Every rule of the CSV reader, with the words of its refusal.
#![allow(clippy::unwrap_used)]

mod common;

use common::chain;
use mnar::Remedy;
use mnar::posteriors::PosteriorKind;
use mnar_data::{PredictionColumns, Predictions, predictions_from_csv, read_predictions};
use std::io::{Cursor, Write};

fn read_with(text: impl AsRef<[u8]>, columns: &PredictionColumns) -> Result<Predictions, String> {
    predictions_from_csv(Cursor::new(text.as_ref().to_vec()), columns, "f.csv").map_err(|error| chain(&error))
}

fn read(text: impl AsRef<[u8]>) -> Result<Predictions, String> {
    read_with(text, &PredictionColumns::new("label"))
}

/// The message, which must start with the file.
fn refused(text: impl AsRef<[u8]>) -> String {
    let message = read(text).unwrap_err();
    message.strip_prefix("f.csv: ").unwrap_or_else(|| panic!("no file in {message}")).to_owned()
}

fn labels(predictions: &Predictions) -> Vec<Option<&str>> {
    predictions.labels.as_slice().iter().map(|class| class.map(|class| predictions.labels.name(class))).collect()
}

const GOOD: &str = "label,p_a,p_b\na,0.9,0.1\n,0.5,0.5\nb,0.2,0.8\n";

#[test]
fn a_plain_table_is_read() {
    let read = read(GOOD).unwrap();
    assert_eq!(labels(&read), [Some("a"), None, Some("b")]);
    assert_eq!(read.posteriors.column(1), [0.1, 0.5, 0.8]);
    assert_eq!(read.posteriors.kind(), PosteriorKind::Labelled);
    assert_eq!(read.folds, None);
}

#[test]
fn classes_are_in_the_order_of_their_columns_and_other_columns_are_ignored() {
    let read = read("id,p_z,note,label,p_a\n1,0.1,\"x, \"\"y\"\"\nz\",a,0.9\n2,0.4,,,0.6\n3,1,,z,0\n").unwrap();
    assert_eq!(read.labels.names(), ["z", "a"]);
    assert_eq!(labels(&read), [Some("a"), None, Some("z")]);
    assert_eq!(read.posteriors.column(0), [0.1, 0.4, 1.0]);
}

#[test]
fn a_byte_order_mark_windows_lines_and_spaces_do_no_harm() {
    let read = read("\u{feff}label , p_a, p_b\r\n a , 0.9 ,0.1\r\n  ,.5,5e-1\r\nb,0.2,+0.8").unwrap();
    assert_eq!(labels(&read), [Some("a"), None, Some("b")]);
    assert_eq!(read.posteriors.column(0), [0.9, 0.5, 0.2]);
}

#[test]
fn inner_spaces_accents_and_emoji_are_kept() {
    let read = read("label,p_très haut 🙂,p_b c\n très haut 🙂 ,0.9,0.1\n,0.5,0.5\nb c,0.2,0.8\n").unwrap();
    assert_eq!(labels(&read), [Some("très haut 🙂"), None, Some("b c")]);
}

#[test]
fn whole_numbers_written_as_floats_are_the_same_class() {
    let read = read("label,p_0,p_1\n1.0,0.1,0.9\n,0.5,0.5\n0.0,0.8,0.2\n0,0.8,0.2\n").unwrap();
    assert_eq!(labels(&read), [Some("1"), None, Some("0"), Some("0")]);
    assert!(refused("label,p_0,p_1\n1.5,0.1,0.9\n,0.5,0.5\n").starts_with("row 1: label `1.5` is not among"));
}

#[test]
fn further_values_may_mean_missing() {
    let mut columns = PredictionColumns::new("label");
    columns.missing = vec!["NA".into(), "?".into()];
    let read = read_with("label,p_a,p_b\nNA,0.9,0.1\n ? ,0.5,0.5\nb,0.2,0.8\n", &columns).unwrap();
    assert_eq!(labels(&read), [None, None, Some("b")]);
}

#[test]
fn prefix_kind_and_folds_are_chosen() {
    let mut columns = PredictionColumns::new("p_true");
    columns.kind = PosteriorKind::Population;
    columns.fold = Some("p_fold".into());
    let text = "p_fold,p_true,p_a,p_b\n10,a,0.9,0.1\n9,,0.5,0.5\n10,b,0.2,0.8\n";
    // Neither the label nor the fold is a class, whatever their names.
    let read = read_with(text, &columns).unwrap();
    assert_eq!(read.labels.names(), ["a", "b"]);
    assert_eq!(read.folds, Some(vec![1, 0, 1]));
    assert_eq!(read.posteriors.kind(), PosteriorKind::Population);
    columns.proba = "prob:".into();
    let read = read_with("p_fold,p_true,prob:a,prob:b\nx,a,0.9,0.1\ny,,0.5,0.5\n", &columns).unwrap();
    assert_eq!(read.labels.names(), ["a", "b"]);
    assert_eq!(
        read_with("p_fold,p_true,prob:a,prob:b\nx,a,0.9,0.1\n ,,0.5,0.5\n", &columns).unwrap_err(),
        "f.csv: row 2, column `p_fold`: the fold is missing; every row, labelled or not, is predicted by the model of one fold"
    );
    columns.fold = Some("p_true".into());
    assert!(read_with(text, &columns).unwrap_err().contains("`p_true` cannot be the label and the fold at once"));
}

#[test]
fn empty_files_are_refused() {
    assert!(refused("").starts_with("the file is empty"));
    assert!(refused("\n\n").starts_with("the file is empty"));
    assert!(refused("\u{feff}").starts_with("the file is empty"));
    assert_eq!(refused("label,p_a,p_b\n"), "there are no rows below the header");
}

#[test]
fn unknown_columns_are_named_with_the_nearest() {
    let with = |label: &str, text: &str| read_with(text, &PredictionColumns::new(label)).unwrap_err();
    assert_eq!(
        with("lable", GOOD),
        "f.csv: there is no column `lable`, did you mean `label`? (the columns are label, p_a, p_b)"
    );
    assert_eq!(with("zzz", GOOD), "f.csv: there is no column `zzz` (the columns are label, p_a, p_b)");
    assert!(with("LABEL", GOOD).contains("did you mean `label`?"));
    let header = (0..20).map(|i| format!("c{i}")).collect::<Vec<_>>().join(",");
    let message = with("label", &header);
    assert!(message.contains("c11, and 8 more"), "{message}");
    assert!(with("label", &GOOD.replace(',', ";")).contains("semicolons"));
    let mut columns = PredictionColumns::new("label");
    columns.fold = Some("fold".into());
    assert!(read_with(GOOD, &columns).unwrap_err().contains("no column `fold`"));
}

#[test]
fn missing_probability_columns_name_the_prefix() {
    assert_eq!(
        refused("label,q_a,q_b\na,1,0\n"),
        "no column starts with `p_`; one column `p_<class>` per class is needed, or the name of a column with all of them; the columns are label, q_a, q_b"
    );
    assert!(refused("label,p_,p_b\na,1,0\n").starts_with("column `p_` does not name a class"));
    assert!(refused("label,p_a,p_ a\na,1,0\n,1,0\n").contains("two classes are both called `a`"));
}

#[test]
fn duplicate_columns_are_named() {
    assert_eq!(
        refused("label,p_b,p_a,p_a,p_b\na,1,0,0,0\n"),
        "more than one column is called `p_a`, `p_b`; column names must differ"
    );
}

#[test]
fn ragged_rows_are_counted() {
    assert_eq!(
        refused("label,p_a,p_b\na,0.9,0.1\nb,1\n"),
        "row 2 has 2 values but the header has 3 columns; look for a missing or an unquoted separator"
    );
    assert!(refused("label,p_a,p_b\na,0.9,0.1,7\n").starts_with("row 1 has 4 values"));
}

#[test]
fn an_unclosed_quote_does_not_swallow_rows() {
    let text = "label,p_a,p_b,note\na,0.9,0.1,fine\n,0.5,0.5,\"oh\nb,0.2,0.8,lost\n";
    assert_eq!(refused(text), "a quote opened in row 2 is never closed, so the rest of the file would be one value");
    let text = "label,note,p_a,p_b\na,fine,0.9,0.1\n,\"oh,0.5,0.5\nb,lost,0.2,0.8\n";
    assert!(refused(text).starts_with("a quote opened in row 2"));
    // A quote in the middle of a value is an inch mark, odd as it may be; so is one in the last line.
    assert_eq!(read("label,p_a,p_b,note\na,0.9,0.1,5\" pipe\n,0.5,0.5,\n\n\n").unwrap().labels.len(), 2);
}

#[test]
fn other_encodings_are_refused() {
    assert!(refused(b"label,p_a,p_\xe9\na,1,0\n").starts_with("the header is not UTF-8 text; save the file as UTF-8"));
    assert!(refused(b"label,p_a,p_b\n\xe9,1,0\n").starts_with("row 1, column `label` is not UTF-8"));
    assert!(refused(b"label,p_a,p_b\na,1,0\n,\xff,0\n").starts_with("row 2, column `p_a` is not UTF-8"));
    let utf16: Vec<u8> = GOOD.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(refused([&[0xff, 0xfe], &utf16[..]].concat()).contains("not UTF-8"));
}

#[test]
fn unknown_labels_are_named_with_the_classes() {
    let refused = |text: &'static str| {
        let error = predictions_from_csv(text.as_bytes(), &PredictionColumns::new("label"), "f.csv").unwrap_err();
        (error.to_string().strip_prefix("f.csv: ").unwrap().to_owned(), error.remedies())
    };
    let (message, remedies) = refused("label,p_a,p_b\na,0.9,0.1\nunknown,0.5,0.5\n");
    assert_eq!(message, "row 2: label `unknown` is not among the classes (a, b); does it stand for a missing label?");
    assert_eq!(remedies, [Remedy::set("missing", "unknown")]);
    // A class whose column was forgotten is not a mark.
    let (message, remedies) = refused("label,p_a,p_b\na,0.9,0.1\nE,0.5,0.5\nF,0.5,0.5\nG,0.5,0.5\n");
    assert_eq!(
        message,
        "row 2: label `E` is not among the classes (a, b), nor are `F`, `G`; its probabilities would be in a column `p_E`"
    );
    assert_eq!(remedies, []);
}

#[test]
fn probabilities_that_are_none_are_named() {
    assert_eq!(
        refused("label,p_a,p_b\na,0.9,0.1\n,high,0.5\n"),
        "row 2, column `p_a`: `high` is not a number; every row, labelled or not, needs a probability from 0 to 1 for every class"
    );
    assert!(refused("label,p_a,p_b\na,0.9,0.1\n,, \n").starts_with("row 2, column `p_a`: the value is missing"));
    assert!(refused("label,p_a,p_b\na,\"0,9\",0.1\n").starts_with("row 1, column `p_a`: `0,9` is not a number"));
    // Refused by the statistics, and still with the name of the class.
    assert!(refused("label,p_a,p_b\na,0.9,0.1\n,1.5,-0.5\n").starts_with("row 2: the probability of class `a` is 1.5"));
    assert!(refused("label,p_a,p_b\na,0.9,0.1\n,1,NaN\n").starts_with("row 2: the probability of class `b` is NaN"));
    assert!(
        refused("label,p_a,p_b\na,0.9,0.1\n,0.9,0.3\n")
            .starts_with("cannot be used: row 2: the probabilities sum to 1.2")
    );
}

#[test]
fn small_drift_is_counted() {
    let read = read("label,p_a,p_b\na,0.9,0.1004\n,0.5,0.5\nb,0.2,0.8\n").unwrap();
    assert_eq!(read.posteriors.renormalised().rows, 1);
}

#[test]
fn tables_without_a_mechanism_are_refused() {
    assert!(refused("label,p_a,p_b\n,1,0\n").contains("none of the 1 rows has a label"));
    assert!(refused("label,p_a,p_b\na,1,0\n").contains("all 1 rows have a label"));
    assert!(refused("label,p_a\na,1\n,1\n").contains("only one class, `a`"));
}

#[test]
fn files_are_read_by_name_and_by_content() {
    let folder = tempfile::tempdir().unwrap();
    let columns = PredictionColumns::new("label");
    let expected = read(GOOD).unwrap();
    let mut gzipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzipped.write_all(GOOD.as_bytes()).unwrap();
    let gzipped = gzipped.finish().unwrap();
    for (name, bytes) in [
        ("p.csv", GOOD.as_bytes()),
        ("p.csv.gz", &gzipped),
        ("p.CSV", GOOD.as_bytes()),
        ("gzipped-unawares.csv", &gzipped),
        ("no extension", GOOD.as_bytes()),
        ("p.tsv", GOOD.replace(',', "\t").as_bytes()),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(read_predictions(&path, &columns).unwrap(), expected, "{name}");
    }
    let path = folder.path().join("cut.csv.gz");
    std::fs::write(&path, &gzipped[..gzipped.len() - 12]).unwrap();
    let error = chain(&read_predictions(&path, &columns).unwrap_err());
    assert!(error.starts_with(&format!("{}: cannot be read: ", path.display())), "{error}");
    let path = folder.path().join("none.csv");
    let error = chain(&read_predictions(&path, &columns).unwrap_err());
    assert!(error.starts_with(&format!("{}: cannot be opened: ", path.display())), "{error}");
    let error = read_predictions(folder.path(), &columns).unwrap_err().to_string();
    assert!(error.contains("cannot be read"), "{error}");
}

#[test]
fn rows_beyond_one_batch_keep_their_number() {
    let mut text = String::from("label,p_a,p_b\n");
    for i in 0..150_000 {
        text.push_str(if i % 2 == 0 { "a,0.75,0.25\n" } else { ",0.5,0.5\n" });
    }
    let read = read(&text).unwrap();
    assert_eq!(read.labels.len(), 150_000);
    assert_eq!(read.posteriors.column(0)[149_999], 0.5);
    assert_eq!(read.posteriors.column(1)[149_998], 0.25);
    text.push_str("z,0.5,0.5\n");
    assert!(refused(&text).starts_with("row 150001: label `z`"));
    let text = text.replace("z,0.5,0.5", "a,x,0.5");
    assert!(refused(text).starts_with("row 150001, column `p_a`: `x`"));
}

#[cfg(target_os = "linux")]
#[test]
fn pipes_are_read_but_not_as_parquet() {
    use std::os::fd::AsRawFd;
    let columns = PredictionColumns::new("label");
    let through = |bytes: &[u8]| {
        let (pipe, mut end) = std::io::pipe().unwrap();
        end.write_all(bytes).unwrap();
        drop(end);
        let path = std::path::PathBuf::from(format!("/proc/self/fd/{}", pipe.as_raw_fd()));
        read_predictions(&path, &columns).map_err(|error| chain(&error))
    };
    assert_eq!(through(GOOD.as_bytes()).unwrap(), read(GOOD).unwrap());
    assert!(through(b"PAR1...").unwrap_err().contains("save it to a file first"));
    assert!(through(b"").unwrap_err().contains("the file is empty"));
}
