//! Predictions as people have them: logits, lists, one column for two classes, numbered labels, names of rows; from text,
//! from Parquet in memory, and from Parquet that stays in its file.
#![allow(clippy::unwrap_used)]

mod common;

use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, FixedSizeListArray, RecordBatch, StringArray};
use common::chain;
use common::parquet::Values::{self, F64, Fixed, I32, I64, Lists, Text};
use common::parquet::parquet;
use mnar::rows::{Block, Rows, Sums};
use mnar::{PosteriorKind, Remedy};
use mnar_data::{
    ArrowTable, Column, ColumnKind, DataError, Note, ParquetPredictions, PredictionColumns, Predictions, TableWriter,
    TextTable, predictions_from_parquet, read_predictions,
};
use std::sync::Arc;

fn columns(proba: &str) -> PredictionColumns {
    PredictionColumns { proba: proba.into(), ..PredictionColumns::new("y") }
}

fn names(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn csv(text: &str, columns: &PredictionColumns) -> Result<Predictions, DataError> {
    read_predictions(&TextTable::new(text.to_owned(), "p.csv"), columns)
}

fn refused(text: &str, columns: &PredictionColumns) -> (String, Vec<Remedy>) {
    let error = csv(text, columns).unwrap_err();
    (chain(&error).strip_prefix("p.csv: ").unwrap().to_owned(), error.remedies())
}

fn labels(read: &Predictions) -> Vec<&str> {
    read.labels.as_slice().iter().map(|class| class.map_or("", |class| read.labels.name(class))).collect()
}

fn notes(read: &Predictions) -> Vec<String> {
    read.notes.iter().map(Note::to_string).collect()
}

/// The rows of a streamed table.
#[derive(Clone, Default)]
struct Collected(Vec<Vec<f64>>);

impl Sums for Collected {
    fn add(&mut self, block: &Block<'_>) {
        self.0.extend((0..block.len()).map(|i| block.columns.iter().map(|column| column[i]).collect::<Vec<_>>()));
    }

    fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// Opens a Parquet file that stays where it is, and passes over its rows, which checks them.
fn opened(path: &std::path::Path, columns: &PredictionColumns) -> Result<ParquetPredictions, DataError> {
    let file = ParquetPredictions::open(path, columns)?;
    match file.scan(&Collected::default()) {
        Ok(_) => Ok(file),
        Err(mnar::Error::Source(cause)) => Err(*cause.downcast().unwrap()),
        Err(error) => panic!("{error}"),
    }
}

/// Reads a Parquet file in memory, and checks that it is the same when it stays in its file.
fn from_parquet(bytes: Vec<u8>, columns: &PredictionColumns) -> Result<Predictions, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.parquet");
    std::fs::write(&path, &bytes).unwrap();
    let memory = predictions_from_parquet(bytes.into(), columns, &path.display().to_string());
    match (opened(&path, columns), memory) {
        (Ok(file), Ok(memory)) => {
            assert_eq!((file.names(), file.counts()), (memory.labels.names(), memory.labels.counts()));
            assert_eq!(file.notes(), &memory.notes[..file.notes().len()]);
            let rows = file.scan(&Collected::default()).unwrap().0;
            let expected: Vec<Vec<f64>> = memory.posteriors.view().rows().into_iter().map(|row| row.to_vec()).collect();
            assert_eq!(rows, expected);
            let mut y = Vec::new();
            file.walk_labels(|rows| {
                y.extend_from_slice(rows.labels);
                Ok(())
            })
            .unwrap();
            assert_eq!(y, memory.labels.as_slice());
            Ok(memory)
        }
        (Err(file), Err(memory)) => {
            assert_eq!(chain(&file), chain(&memory));
            assert_eq!(file.remedies(), memory.remedies());
            Err(chain(&memory).replace(&format!("{}: ", path.display()), ""))
        }
        (file, memory) => panic!("{:?} {memory:?}", file.map(|_| ())),
    }
}

const LIST: &str = "(LIST) { repeated group list { optional float element; } }";

fn close(read: &Predictions, expected: &[[f64; 2]]) {
    for (i, row) in expected.iter().enumerate() {
        let found = read.posteriors.row(i);
        assert!((found[0] - row[0]).abs() < 1e-12 && (found[1] - row[1]).abs() < 1e-12, "{found} {row:?}");
    }
}

#[test]
fn logits_become_probabilities_and_are_never_guessed() {
    let text = "y,p_a,p_b\na,1000,-1000\n,0.5,0.5\nb,-1.5,2.5\n";
    let (message, remedies) = refused(text, &columns("p_"));
    assert!(message.starts_with("row 1: the probability of class `a` is 1000; probabilities must be"), "{message}");
    assert_eq!(remedies, [Remedy::set("logits", "")]);
    let logits = PredictionColumns { logits: true, ..columns("p_") };
    let read = csv(text, &logits).unwrap();
    // python: 1 / (1 + math.exp(4.0))
    let low = 0.017_986_209_962_091_56;
    close(&read, &[[1.0, 0.0], [0.5, 0.5], [low, 1.0 - low]]);
    assert_eq!(read.posteriors.renormalised().rows, 0);
    let schema = "optional binary y (STRING); optional double p_a; optional int32 p_b;";
    let values = || [Text(vec![Some("a"), None]), F64(vec![Some(2.0), Some(-3.5)]), I32(vec![Some(-1), Some(4)])];
    let read = from_parquet(parquet(schema, &values()), &logits).unwrap();
    // python: 1 / (1 + math.exp(-3)), 1 / (1 + math.exp(7.5))
    close(&read, &[[0.9525741268224334, 0.04742587317756678], [0.0005527786369235996, 0.9994472213630764]]);
    let message = from_parquet(parquet(schema, &values()), &columns("p_")).unwrap_err();
    assert!(message.starts_with("row 1: the probability of class `a` is 2;"), "{message}");
    let (message, _) = refused("y,p_a,p_b\na,NaN,1\n,1,2\n", &logits);
    assert_eq!(message, "row 1: the logit of class `a` is NaN; logits must be numbers");
    let (message, _) = refused("y,p_a,p_b\na,x,1\n,1,2\n", &logits);
    assert!(message.ends_with("`x` is not a number; every row, labelled or not, needs a logit for every class"));
    // Percentages are no logits.
    let (message, remedies) = refused("y,p_a,p_b\na,70,30\n,40,60\n", &columns("p_"));
    assert!(message.ends_with("from 0 to 1, so divide percentages by 100") && remedies.is_empty(), "{message}");
}

#[test]
fn a_list_column_holds_all_probabilities_of_a_row() {
    let named = PredictionColumns { classes: names("a b"), ..columns("probs") };
    let expected = [[0.1, 0.9], [0.5, 0.5], [0.75, 0.25]];
    for text in [
        "y,probs\nb,\"[0.1, 0.9]\"\n,\"[0.5, 0.5]\"\na,\"[0.75, 0.25]\"\n",
        "y;probs;probs_old\nb;[0.1 0.9];1\n;[0.5  0.5];\na;[0.75 0.25];3\n",
        "{\"y\":\"b\",\"probs\":[0.1,0.9]}\n{\"y\":null,\"probs\":[0.5,0.5]}\n{\"y\":\"a\",\"probs\":[0.75,0.25]}\n",
    ] {
        let read = csv(text, &named).unwrap();
        assert_eq!(labels(&read), ["b", "", "a"]);
        close(&read, &expected);
        assert!(read.notes.is_empty());
    }
    let schema = format!("optional binary y (STRING); optional group probs {LIST}");
    let lists = |rows: &[&[f32]]| Lists(rows.iter().map(|row| Some(row.iter().copied().map(Some).collect())).collect());
    let file = |rows: &[&[f32]]| parquet(&schema, &[Text(vec![Some("b"), None, Some("a")]), lists(rows)]);
    let good = file(&[&[0.25, 0.75], &[0.5, 0.5], &[1.0, 0.0]]);
    close(&from_parquet(good.clone(), &named).unwrap(), &[[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]]);
    let logits = PredictionColumns { logits: true, ..named.clone() };
    let read = from_parquet(file(&[&[7.0, 7.0], &[0.0, 90.0], &[0.0, 0.0]]), &logits).unwrap();
    close(&read, &[[0.5, 0.5], [0.0, 1.0], [0.5, 0.5]]);

    // Arrow's lists of a fixed length.
    let rows = [Some([Some(0.25), Some(0.75)]), Some([Some(0.5), Some(0.5)])];
    let probs: ArrayRef = Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 2));
    let y: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
    let batch = RecordBatch::try_from_iter([("probs", probs), ("y", y)]).unwrap();
    let table = ArrowTable::new(batch.schema(), vec![batch], "t").unwrap();
    close(&read_predictions(&table, &named).unwrap(), &[[0.25, 0.75], [0.5, 0.5]]);

    let refused = |rows: &[&[f32]], columns: &PredictionColumns| from_parquet(file(rows), columns).unwrap_err();
    assert!(refused(&[&[0.25, 0.75], &[1.0], &[1.0, 0.0]], &named).starts_with("row 2, column `probs`: a list of 1"));
    assert!(
        refused(&[&[0.25, 0.75], &[], &[1.0, 0.0]], &named).starts_with("row 2, column `probs`: the value is missing")
    );
    let three = PredictionColumns { classes: names("a b c"), ..columns("probs") };
    assert_eq!(
        refused(&[&[0.25, 0.75][..]; 3], &three),
        "a, b, c were named as the classes, but the lists in `probs` have 2 numbers"
    );
}

#[test]
fn the_classes_of_a_list_follow_from_numbers_only() {
    let text =
        |y: [&str; 3]| format!("y,probs\n{},[0.2 0.3 0.5]\n{},[1 0 0]\n{},[0 1 0]\n,[0 0 1]\n", y[0], y[1], y[2]);
    let read = csv(&text(["0", "2", "NA"]), &columns("probs")).unwrap();
    assert_eq!(read.labels.names(), ["0", "1", "2"]);
    assert_eq!(
        notes(&read),
        [
            "the numbers of a list in `probs` are for the classes 0, 1, 2, in this order",
            "1 label `NA` was read as missing"
        ]
    );
    assert_eq!(csv(&text(["1.0", "2.0", "3.0"]), &columns("probs")).unwrap().labels.names(), ["1", "2", "3"]);
    let (message, remedies) = refused(&text(["dog", "cat", "emu"]), &columns("probs"));
    assert_eq!(
        message,
        "the lists in `probs` have 3 numbers, but their classes are not known; name them in the order of the lists (the labels are cat, dog, emu)"
    );
    assert_eq!(remedies, [Remedy::set("classes", "cat,dog,emu")]);
    // From 0 or from 1: nothing says which.
    let (_, remedies) = refused(&text(["1", "2", ""]), &columns("probs"));
    assert_eq!(remedies, [Remedy::set("classes", "NAMES")]);
    let (message, _) = refused(&text(["", "", "?"]), &columns("probs"));
    assert!(message.contains("none of the 4 rows has a label"), "{message}");
    // The name of a list that is called otherwise is offered.
    let (_, remedies) = refused(&text(["0", "1", "2"]), &columns("p_"));
    assert_eq!(remedies, [Remedy::set("proba", "probs")]);
}

#[test]
fn one_column_is_enough_for_two_classes() {
    let text = "y,score,score_version\nsick,0.9,1\nwell,0.2,1\n,0.5,1\nNA,0.6,1\n";
    let (message, remedies) = refused(text, &columns("score"));
    assert_eq!(message, "column `score` has one number per row, for one of two classes (sick, well); say for which");
    assert_eq!(remedies, [Remedy::set("positive", "sick"), Remedy::set("positive", "well")]);
    let positive = |class: &str| PredictionColumns { positive: Some(class.into()), ..columns("score") };
    let read = csv(text, &positive("sick")).unwrap();
    close(&read, &[[0.9, 1.0 - 0.9], [0.2, 1.0 - 0.2], [0.5, 0.5]]);
    assert_eq!(notes(&read)[0], "`score` is the probability of `sick`; the other class is `well`");
    assert_eq!(labels(&read), ["sick", "well", "", ""]);
    let read = csv(text, &positive("well")).unwrap();
    close(&read, &[[1.0 - 0.9, 0.9], [1.0 - 0.2, 0.2]]);
    let (message, remedies) = refused(text, &positive("sik"));
    assert!(message.ends_with("(sick, well); `sik` is neither of them") && remedies.len() == 2, "{message}");

    // Log odds; floats that are labels; -1 beside 1 is a class.
    let odds = PredictionColumns { logits: true, ..positive("1") };
    let read = csv("y,score\n1.0,0\n-1.0,4\n,-4\n", &odds).unwrap();
    let low = 0.017_986_209_962_091_56;
    close(&read, &[[0.5, 0.5], [low, 1.0 - low], [1.0 - low, low]]);
    assert_eq!(read.labels.names(), ["-1", "1"]);

    let schema = "optional boolean y; optional float score;";
    let values =
        [Values::Bool(vec![Some(true), None, Some(false)]), Values::F32(vec![Some(0.75), Some(0.5), Some(0.0)])];
    let read = from_parquet(parquet(schema, &values), &positive("True")).unwrap();
    close(&read, &[[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]]);

    let (message, _) = refused("y,score\na,0.9\nb,0.2\nc,0.5\n,1\n", &positive("a"));
    assert!(message.contains("but the labels are a, b, c; every class needs its probabilities"), "{message}");
    let (message, remedies) = refused("y,score\na,0.9\n,1\n", &positive("a"));
    assert!(message.ends_with("but the labels are a; name both classes"), "{message}");
    assert_eq!(remedies, [Remedy::set("classes", "OTHER,a")]);
    let both = PredictionColumns { classes: names("b a"), ..positive("a") };
    assert_eq!(csv("y,score\na,0.9\n,1\n", &both).unwrap().labels.names(), ["b", "a"]);
    let (message, remedies) = refused("y,score\na,0.9\nb,-2\n,1\n", &positive("a"));
    assert!(message.starts_with("row 2: the probability of class `a` is -2"), "{message}");
    assert_eq!(remedies, [Remedy::set("logits", "")]);
    let (message, remedies) = refused("y,score\na,90\nb,20\n,1\n", &positive("a"));
    assert!(message.ends_with("so divide percentages by 100") && remedies.is_empty(), "{message}");

    // A single column with the name of its class.
    let (message, remedies) = refused("y,p_sick\nsick,0.9\nwell,0.2\n,1\n", &columns("p_"));
    assert!(
        message.starts_with("row 2: label `well` is not among the classes (sick); one column is enough"),
        "{message}"
    );
    let all = vec![Remedy::set("proba", "p_sick"), Remedy::set("positive", "sick")];
    assert_eq!(remedies, [Remedy::All(all)]);
    let sick = PredictionColumns { positive: Some("sick".into()), ..columns("p_") };
    assert_eq!(csv("y,p_sick\nsick,0.9\nwell,0.2\n,1\n", &sick).unwrap().labels.names(), ["sick", "well"]);
    let (message, remedies) = refused("y,p_sick,p_well\nsick,0.9,0.1\n,1,0\n", &sick);
    assert!(message.contains("but there is a column per class (sick, well)"), "{message}");
    assert_eq!(remedies, [Remedy::unset("positive")]);
}

#[test]
fn half_precision_and_whole_numbers_are_probabilities() {
    // numpy: np.float16(0.3).tobytes(), np.float16(0.7).tobytes(), np.float16(1).tobytes(), np.float16(0).tobytes()
    let half = |values: [[u8; 2]; 2]| Fixed(values.iter().map(|bytes| Some(bytes.to_vec())).collect());
    let schema = "optional binary y (STRING); optional fixed_len_byte_array (2) p_a (FLOAT16); \
                  required fixed_len_byte_array (2) p_b (FLOAT16);";
    let columns_of = || [Text(vec![Some("a"), None]), half([[0xcd, 0x34], [0x00, 0x3c]]), half([[0x9a, 0x39], [0, 0]])];
    let read = from_parquet(parquet(schema, &columns_of()), &columns("p_")).unwrap();
    assert!((read.posteriors.row(0)[0] - 0.3).abs() < 1e-3, "{}", read.posteriors.row(0));
    assert!((read.posteriors.row(0).sum() - 1.0).abs() < 1e-15);
    assert_eq!(read.posteriors.row(1).to_vec(), [1.0, 0.0]);
    let schema = "optional int64 y; optional int32 p_0 (INTEGER(8,false)); optional int64 p_1;";
    let whole = [I64(vec![Some(1), None]), I32(vec![Some(0), Some(1)]), I64(vec![Some(1), Some(0)])];
    let read = from_parquet(parquet(schema, &whole), &columns("p_")).unwrap();
    assert_eq!(read.posteriors.column(1), [1.0, 0.0]);
}

#[test]
fn numbered_labels_need_an_order() {
    let text = "y,p_cat,p_dog,p_emu\n2,0.1,0.2,0.7\n0,0.8,0.1,0.1\n,0.3,0.3,0.4\n-1,0.3,0.3,0.4\n";
    let (message, remedies) = refused(text, &columns("p_"));
    assert_eq!(
        message,
        "the labels are numbers from 0 while the classes have names (cat, dog, emu); say in which order they are numbered"
    );
    assert_eq!(remedies, [Remedy::set("classes", "cat,dog,emu")]);
    let ordered = |classes: &str| PredictionColumns { classes: names(classes), ..columns("p_") };
    let read = csv(text, &ordered("emu dog cat")).unwrap();
    assert_eq!(read.labels.names(), ["cat", "dog", "emu"]);
    assert_eq!(labels(&read), ["cat", "emu", "", ""]);
    assert_eq!(
        notes(&read),
        ["labels are numbers: 0 to 2 stand for `emu`, `dog`, `cat`", "1 label `-1` was read as missing"]
    );
    // Names are names, whether or not the classes are given.
    let read = csv("y,p_b,p_a\na,0.1,0.9\n,0.5,0.5\nb,1,0\n", &ordered("a b")).unwrap();
    assert_eq!(labels(&read), ["a", "", "b"]);
    assert!(read.notes.is_empty());
    let (message, _) = refused(text, &ordered("cat dog"));
    assert_eq!(message, "cat, dog were named as the classes, but those of the columns are cat, dog, emu");
    // The label 1 could be the first class or the second.
    let (message, _) = refused("y,p_1,p_2\n1,0.1,0.9\n,0.5,0.5\n", &ordered("1 2"));
    assert!(message.starts_with("the labels could be names of the classes (1, 2) or their numbers"), "{message}");
    let (message, remedies) = refused(&text.replace("\n2,", "\n7,"), &ordered("cat dog emu"));
    assert!(message.starts_with("row 1: label `7` is not among the classes (cat, dog, emu), nor are `0`"), "{message}");
    assert!(remedies.is_empty());
    // Lists, with the names of their places.
    let listed = PredictionColumns { classes: names("cat dog"), ..columns("q") };
    let read = csv("y,q\n1,[0.1 0.9]\n0,[1 0]\n,[0.5 0.5]\n", &listed).unwrap();
    assert_eq!(labels(&read), ["dog", "cat", ""]);
}

#[test]
fn marks_of_missing_labels_are_no_classes_unless_a_class_is_called_so() {
    let text = "y,p_a,p_NA\na,1,0\nNA,0,1\n?,0.5,0.5\nnan,0.5,0.5\n?,0.5,0.5\n";
    let read = csv(text, &columns("p_")).unwrap();
    assert_eq!(labels(&read), ["a", "NA", "", "", ""]);
    assert_eq!(notes(&read), ["2 labels `?` and 1 label `nan` were read as missing"]);
    let kept = PredictionColumns { labels_as_they_are: true, ..columns("p_") };
    let (message, remedies) = refused(text, &kept);
    assert!(message.starts_with("row 3: label `?` is not among the classes (a, NA), nor are `nan`"), "{message}");
    assert_eq!(remedies, [Remedy::set("missing", "?")]);
    // -1 is missing among numbered classes even if a single other label occurs.
    let schema = "optional int32 y; optional double p_0; optional double p_1;";
    let half = || F64(vec![Some(0.5); 3]);
    let numbers = I32(vec![Some(1), Some(-1), Some(-1)]);
    let read = from_parquet(parquet(schema, &[numbers, half(), half()]), &columns("p_")).unwrap();
    assert_eq!(read.notes, [Note::MissingLabels { marks: vec![("-1".into(), 2)] }]);
}

#[test]
fn rows_keep_their_names_and_repeats_are_told() {
    let named = PredictionColumns { id: Some(" p_id ".into()), ..columns("p_") };
    let read = csv("p_id,y,p_a,p_b\n007,a,1,0\n7,,0,1\n 007 ,b,0,1\n,,0,1\n", &named).unwrap();
    let row_names = read.row_names.as_ref().unwrap();
    assert_eq!(
        (row_names.column.as_str(), &row_names.names[..]),
        ("p_id", &["007", "7", "007", ""].map(String::from)[..])
    );
    assert_eq!(
        notes(&read),
        [
            "the names in `p_id` are not unique: 1 row is called as an earlier one, such as `007`",
            "1 row has no name in `p_id`"
        ]
    );
    let twice = PredictionColumns { id: Some("y".into()), ..columns("p_") };
    let (message, _) = refused("p_id,y,p_a,p_b\n007,a,1,0\n", &twice);
    assert!(message.contains("`y` cannot be the label and the name of the row at once"), "{message}");
}

#[test]
fn labels_and_names_are_walked_over_and_written_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let (input, n) = (folder.path().join("p.parquet"), 150_000_u64);
    let kinds = [
        ("key", ColumnKind::Integers),
        ("y", ColumnKind::Texts),
        ("p_a", ColumnKind::Numbers),
        ("p_b", ColumnKind::Numbers),
    ];
    let mut writer = TableWriter::create(&input, &kinds).unwrap();
    for start in (0..n).step_by(40_000) {
        let rows: Vec<u64> = (start..(start + 40_000).min(n)).collect();
        let y = rows.iter().map(|row| [Some("a"), None, Some("b"), Some("NA")][*row as usize % 4]).collect();
        let p = vec![0.5; rows.len()];
        let parts = [Column::Integers(&rows), Column::Texts(y), Column::Numbers(&p), Column::Numbers(&p)];
        writer.write(&parts).unwrap();
    }
    assert!(!input.exists());
    let short =
        writer.write(&[Column::Integers(&[1]), Column::Texts(vec![None]), Column::Numbers(&[]), Column::Numbers(&[])]);
    assert!(short.unwrap_err().to_string().contains("column `p_a` has 0 values but the first column has 1"));
    writer.commit().unwrap();

    let named = PredictionColumns { id: Some("key".into()), kind: PosteriorKind::Population, ..columns("p_") };
    let file = ParquetPredictions::open(&input, &named).unwrap();
    assert_eq!(file.notes(), [Note::MissingLabels { marks: vec![("NA".into(), 37_500)] }]);
    assert_eq!((file.rows(), file.counts(), file.kind()), (150_000, &[37_500, 37_500][..], PosteriorKind::Population));
    let mut next = 0_u64;
    file.walk_labels(|rows| {
        let names = rows.names.unwrap();
        assert!(rows.labels.len() == names.len() && names.len() <= 65_536);
        for (label, name) in rows.labels.iter().zip(names) {
            assert_eq!(label.map(|class| class.index()), [Some(0), None, Some(1), None][next as usize % 4]);
            assert_eq!(name, Some(next.to_string().as_str()));
            next += 1;
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(next, n);
    // What the visitor cannot do ends the walk.
    let stop = || DataError::NoRows { path: "w".into() };
    assert!(file.walk_labels(|_| Err(stop())).unwrap_err().to_string().starts_with("w: there are no rows"));
}
