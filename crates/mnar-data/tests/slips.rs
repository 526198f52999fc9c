//! Slips in tables that people keep by hand: each is pointed out, with what can be done about it.
#![allow(clippy::unwrap_used)]

mod common;

use common::workbook::workbook;
use common::{chain, csv, file, folder, labelled, table};
use mnar::Remedy;
use mnar_data::{
    ColumnValues, Memory, Note, PredictionColumns, ReadOptions, Source, TextTable, predictions_from_csv, read_dataset,
    survey,
};

/// 200 rows; `age` is that of the row, and some labels are missing.
fn clinic(age: impl Fn(usize) -> String) -> TextTable {
    let row = |i: usize| format!("{},{},{}\n", age(i), i * 7 % 13, ["sick", "well", ""][i % 3]);
    TextTable::new(format!("age,crp,y\n{}", (0..200).map(row).collect::<String>()), "clinic.csv")
}

fn years(i: usize) -> String {
    (20 + i * 7 % 60).to_string()
}

fn is_number(read: &mnar_data::Dataset, column: usize) -> bool {
    matches!(table(read).columns()[column].values, ColumnValues::Numeric(_))
}

#[test]
fn labels_that_differ_by_case_and_blanks_are_merged_if_asked() {
    let text = TextTable::new(
        "a,y\n1,Sick\n2,sick \n3,sick\n4,SICK\n5,\n6,not  sick\n7,Not sick\n8,Not sick\n9,\n",
        "clinic.csv",
    );
    let read = read_dataset(&text, &labelled("y")).unwrap();
    assert_eq!(read.labels.names().len(), 5);
    let said: Vec<String> = read.notes.iter().map(ToString::to_string).collect();
    assert!(said.iter().any(|note| note.contains("`SICK`, `Sick`, `sick` differ only by case, and")), "{said:?}");
    assert!(said.iter().any(|note| note.contains("differ only by case or blanks, and")), "{said:?}");
    let remedies: Vec<Remedy> = read.notes.iter().flat_map(Note::remedies).collect();
    assert_eq!(remedies, [Remedy::set("merge-labels", ""), Remedy::set("merge-labels", "")]);

    let merge = ReadOptions { merge_labels: true, ..labelled("y") };
    let read = read_dataset(&text, &merge).unwrap();
    assert_eq!(read.labels.names(), ["Not sick", "sick"]);
    assert_eq!(read.labels.counts(), [3, 4]);
    let said: Vec<String> = read.notes.iter().map(ToString::to_string).collect();
    let expected =
        ["1 label `not  sick` was read as `Not sick`", "1 label `Sick` and 1 label `SICK` were read as `sick`"];
    assert_eq!(said, expected);
}

#[test]
fn labels_may_differ_from_the_classes_of_predictions_if_asked() {
    let text = "y,p_sick,p_well\nSick,0.9,0.1\n,0.3,0.7\nWELL ,0.2,0.8\nsick,0.8,0.2\n";
    let read = |columns: &PredictionColumns| predictions_from_csv(text.as_bytes(), columns, "p.csv");
    let error = read(&PredictionColumns::new("y")).unwrap_err();
    assert!(error.to_string().contains("it differs from `sick` only by case or blanks"), "{error}");
    assert_eq!(error.remedies(), [Remedy::set("merge-labels", "")]);
    let merged = read(&PredictionColumns { merge_labels: true, ..PredictionColumns::new("y") }).unwrap();
    assert_eq!(merged.labels.counts(), [2, 1]);
    let said: Vec<String> = merged.notes.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["1 label `Sick` was read as `sick`", "1 label `WELL` was read as `well`"]);
}

#[test]
fn a_few_texts_among_numbers_are_a_slip() {
    let one = clinic(|i| if i == 16 { "vieux".to_owned() } else { years(i) });
    let error = read_dataset(&one, &labelled("y")).unwrap_err();
    assert!(error.to_string().contains("row 17, column `age`: `vieux` is not a number, though nearly all"), "{error}");
    assert_eq!(error.remedies(), [Remedy::set("missing", "vieux"), Remedy::set("categorical", "age")]);
    assert!(survey(&one, &labelled("y")).unwrap().problems[0].to_string().contains("`vieux` is not a number"));
    // What the hints say works.
    let missing = ReadOptions { missing: vec!["vieux".into()], ..labelled("y") };
    assert!(is_number(&read_dataset(&one, &missing).unwrap(), 0));
    let names = ReadOptions { categorical: vec!["age".into()], ..labelled("y") };
    let read = read_dataset(&one, &names).unwrap();
    assert!(!is_number(&read, 0) && read.notes.is_empty(), "{:?}", read.notes);

    let two = clinic(|i| match i {
        16 => "vieux".to_owned(),
        9 => "jeune".to_owned(),
        _ => years(i),
    });
    let error = read_dataset(&two, &labelled("y")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("`jeune` is not a number, though nearly all values of the column are (nor is `vieux`)")
    );
    let both = Remedy::All(vec![Remedy::set("missing", "jeune"), Remedy::set("missing", "vieux")]);
    assert_eq!(error.remedies()[0], both);
}

#[test]
fn many_texts_among_numbers_are_pointed_out() {
    let many = clinic(|i| if i % 10 == 3 { "unknown".to_owned() } else { years(i) });
    let read = read_dataset(&many, &labelled("y")).unwrap();
    assert!(!is_number(&read, 0));
    assert_eq!(
        read.notes[0].to_string(),
        "`age` was read as names, because 20 of its 200 values are not numbers: `unknown` (20 rows); read them as missing, or confirm that the column holds names"
    );
    assert_eq!(read.notes[0].remedies(), [Remedy::set("missing", "unknown"), Remedy::set("categorical", "age")]);
    assert_eq!(survey(&many, &labelled("y")).unwrap().notes[0], read.notes[0]);
    // Names, few of which are numbers, and a few codes that are.
    for plain in [clinic(|i| format!("p{}", i % 20)), clinic(|i| ["1", "2", "3", "X"][i % 4].to_owned())] {
        assert!(read_dataset(&plain, &labelled("y")).unwrap().notes.is_empty());
    }
}

#[test]
fn identifiers_with_letters_are_still_identifiers_and_measurements_are_not() {
    let odd = |i: usize| if i == 7 { "1007b".to_owned() } else { (1000 + i).to_string() };
    let keyed = |name: &str| {
        let rows: String = (0..60).map(|i| format!("{},{},{}\n", odd(i), i % 9, ["u", "v", ""][i % 3])).collect();
        TextTable::new(format!("{name},a,y\n{rows}"), "t.csv")
    };
    let read = read_dataset(&keyed("patient_id"), &labelled("y")).unwrap();
    assert!(read.notes[0].to_string().starts_with("`patient_id` is not used as a feature"), "{:?}", read.notes);
    let error = read_dataset(&keyed("dose"), &labelled("y")).unwrap_err();
    assert!(error.to_string().contains("`1007b` is not a number"), "{error}");
}

#[test]
fn codes_and_keys_are_not_taken_for_measurements() {
    let zip = clinic(|i| format!("{:05}", i * 37 % 1000));
    let read = read_dataset(&zip, &labelled("y")).unwrap();
    assert_eq!(
        read.notes[0].to_string(),
        "`age` was read as numbers, but with leading zeros may hold codes; if so, they are names"
    );
    assert_eq!(read.notes[0].remedies(), [Remedy::set("categorical", "age")]);
    let long = clinic(|i| (100_000_000_000_000_000_u64 + i as u64).to_string());
    let read = read_dataset(&long, &labelled("y")).unwrap();
    assert_eq!(
        read.notes[0].to_string(),
        "`age` is not used as a feature, because its values are whole numbers of 16 digits or more"
    );
    assert!(read_dataset(&clinic(|i| (i % 10).to_string()), &labelled("y")).unwrap().notes.is_empty());
}

#[test]
fn a_class_that_means_missing_is_pointed_out() {
    let text = TextTable::new("a,y\n1,sick\n2,unknown\n3,well\n4,unknown\n", "t.csv");
    let read = read_dataset(&text, &labelled("y")).unwrap();
    let note = &read.notes[0];
    assert_eq!(note.to_string(), "2 labels `unknown` were taken for a class; if it stands for a missing label, say so");
    assert_eq!(note.remedies(), [Remedy::set("missing", "unknown")]);
    let signs = TextTable::new("a,y\n1,+\n2,-\n3,\n", "t.csv");
    assert!(read_dataset(&signs, &labelled("y")).unwrap().notes.is_empty());
}

/// The header of an export stands below its title, in text and in spreadsheets.
#[test]
fn headers_below_titles_are_found_and_read() {
    let folder = folder();
    let rows = "1|k|u\n2|l|v\n3|k|";
    let sheet = |cells: String| workbook(&[("Data", &cells)]);
    let titled = format!("Clinic export 2024\n\na|b|y\n{rows}");
    let files = [
        ("t.csv", format!("Clinic export 2024,,\n,,\na,b,y\n{}\n", rows.replace('|', ",")).into_bytes(), 3),
        ("u.csv", format!("Clinic export, 2024\n\na;b;y\n{}\n", rows.replace('|', ";")).into_bytes(), 3),
        ("v.csv", format!("sep=;\nClinic\na;b;y\n{}\n", rows.replace('|', ";")).into_bytes(), 2),
        ("t.xlsx", sheet(titled), 3),
        ("u.xlsx", sheet(format!("Patient||\na|b|y\n{rows}")), 2),
    ];
    for (name, bytes, row) in files {
        let path = file(&folder, name, bytes);
        let error = read_dataset(&path, &labelled("y")).unwrap_err();
        let said = chain(&error);
        assert!(said.contains(&format!("does not name the columns; row {row} seems to (a, b, y)")), "{name}: {said}");
        assert_eq!(error.remedies(), [Remedy::set("skip-rows", (row - 1).to_string())], "{name}");
        let skip = ReadOptions { skip_rows: row - 1, ..labelled("y") };
        let read = read_dataset(&path, &skip).unwrap();
        assert_eq!((read.inputs.len(), read.labels.names().join(" ")), (3, "u v".to_owned()), "{name}");
        assert_eq!(survey(&path, &skip).unwrap().columns.len(), 3, "{name}");
        let source = Source::from(&path).with_memory(Memory::default()).with_skip_rows(row - 1);
        assert_eq!(read_dataset(source, &labelled("y")).unwrap().inputs.len(), 3, "{name}");
        let all = ReadOptions { skip_rows: 99, ..labelled("y") };
        let error = read_dataset(&path, &all).unwrap_err();
        assert!(chain(&error).contains("nothing is left below the 99 rows that are skipped"), "{name}: {error}");
        assert_eq!(error.remedies(), [Remedy::unset("skip-rows")], "{name}");
    }
    let unnamed = file(&folder, "w.csv", "age,Lab,,,y\n1,2,3,4,u\n5,6,7,8,\n");
    let error = read_dataset(&unnamed, &labelled("y")).unwrap_err().to_string();
    assert!(error.contains("columns 3, 4 have no name"), "{error}");
    let json = file(&folder, "t.jsonl", "{\"a\": 1, \"y\": \"u\"}\n{\"a\": 2, \"y\": \"v\"}\n");
    let error = read_dataset(&json, &ReadOptions { skip_rows: 1, ..labelled("y") }).unwrap_err();
    assert_eq!(error.remedies(), [Remedy::unset("skip-rows")], "{error}");
}

#[test]
fn names_of_columns_stay_on_one_line() {
    let read = |label: &str| csv("\"age\n(years)\",y\n1,u\n2,v\n", &labelled(label));
    let error = read("a\nb").unwrap_err().to_string();
    assert!(error.contains("no column `a\\nb`") && error.contains("age\\n(years)"), "{error}");
    let long = read(&"x".repeat(5000)).unwrap_err().to_string();
    assert!(long.len() < 300, "{long}");
    // A line break in a cell is typed as a blank.
    assert!(read("age (years)").is_ok());
}
