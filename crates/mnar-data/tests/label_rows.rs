//! Which labels of a file of their own belong to which images.
#![allow(clippy::unwrap_used)]

mod common;

use common::{file, folder, refused};
use mnar::Remedy;
use mnar_data::{
    ColumnValues, Dataset, ImageShape, Images, Memory, Note, ReadOptions, read_dataset, read_label_columns,
};
use std::path::Path;
use tempfile::TempDir;

const DIGITS: [&str; 3] = ["one", "two", "three"];

fn picture(folder: &TempDir, name: &str, grey: u8) {
    let pixels = vec![grey; 4];
    file(folder, name, Images::new(ImageShape::flat(2, 2, 1), pixels, name).unwrap().png(0).unwrap());
}

/// `prefix00.png` to `prefix29.png`, and what is to be the label of each.
fn images(prefix: &str) -> (TempDir, Vec<(String, &'static str)>) {
    let folder = folder();
    let all: Vec<(String, &str)> = (0..30).map(|i| (format!("{prefix}{i:02}"), DIGITS[i % 3])).collect();
    for (i, (name, _)) in all.iter().enumerate() {
        picture(&folder, &format!("{name}.png"), i as u8);
    }
    (folder, all)
}

/// A table of labels with its rows in another order than the images.
fn table(header: &str, all: &[(String, &'static str)], row: impl Fn(&str, &str) -> String) -> String {
    let rows = (0..all.len()).map(|i| &all[(7 * i + 3) % all.len()]).map(|(name, label)| row(name, label));
    std::iter::once(header.to_owned()).chain(rows).collect::<Vec<_>>().join("\n")
}

fn options(labels: &TempDir, text: &str) -> ReadOptions {
    let labels_file = Some(file(labels, "labels.csv", text));
    ReadOptions { labels_file, label: Some("digit".into()), ..Default::default() }
}

fn read(images: &Path, text: &str) -> (Dataset, ReadOptions, TempDir) {
    let labels = folder();
    let options = options(&labels, text);
    (read_dataset(images, &options).unwrap(), options, labels)
}

fn refusal(images: &Path, text: &str) -> String {
    refused(images, &options(&folder(), text))
}

fn label(read: &Dataset, row: usize) -> Option<&str> {
    read.labels.get(row).map(|class| read.labels.names()[class.index()].as_str())
}

fn by(column: &str, without: usize) -> Note {
    Note::LabelsByName { column: column.to_owned(), without, of: 30 }
}

#[test]
fn any_column_may_name_the_images() {
    let (folder, all) = images("im");
    for (header, spelt) in [
        ("file,digit", &(|name: &str| format!("{name}.png")) as &dyn Fn(&str) -> String),
        ("filename,digit", &|name| format!("{name}.png")),
        ("image,digit", &|name| name.to_owned()),
        ("path,digit", &|name| format!("/data/of the clinic/{name}.png")),
        ("path,digit", &|name| format!(".\\{name}.png")),
    ] {
        let (read, ..) = read(folder.path(), &table(header, &all, |name, label| format!("{},{label}", spelt(name))));
        for (row, (_, expected)) in all.iter().enumerate() {
            assert_eq!(label(&read, row), Some(*expected), "{header}");
        }
        let note = by(header.split(',').next().unwrap(), 0);
        assert_eq!(read.notes, std::slice::from_ref(&note));
        assert!(note.to_string().starts_with("labels matched by the column `"));
    }
    // Images that have no row are unlabelled, and a note counts them.
    let text = table("digit,filename", &all[..27], |name, label| format!("{label},{name}.png"));
    let (read, ..) = read(folder.path(), &text);
    assert_eq!((label(&read, 0), label(&read, 28), read.labels.n_unlabelled()), (Some("one"), None, 3));
    assert_eq!(read.notes, [by("filename", 3)]);
    let said = "labels matched by the column `filename`; 3 of 30 images have no row there, and are unlabelled";
    assert_eq!(read.notes[0].to_string(), said);
}

#[test]
fn other_columns_are_matched_as_the_labels_are() {
    let (folder, all) = images("im");
    let text = table("digit,site,image", &all, |name, label| format!("{label},at {name},{name}"));
    let (read, options, _labels) = read(folder.path(), &text);
    let labels = options.labels_file.as_deref().unwrap();
    let found = read_label_columns(labels, &["site".to_owned()], &options, &read, Memory::default()).unwrap();
    let ColumnValues::Categorical(site) = &found.columns()[0].values else { unreachable!() };
    for (row, (name, _)) in all.iter().enumerate() {
        assert_eq!(site.levels()[site.code(row).unwrap()], format!("at {name}"));
    }
}

#[test]
fn position_is_said() {
    let (folder, all) = images("im");
    let by_position =
        |unknown: Option<&str>| Note::LabelsByPosition { images: true, unknown: unknown.map(str::to_owned) };
    let rows = |header: &str, row: &dyn Fn(&str, &str) -> String| {
        let rows = all.iter().map(|(name, label)| row(name, label));
        std::iter::once(header.to_owned()).chain(rows).collect::<Vec<_>>().join("\n")
    };
    for (text, note) in [
        (rows("digit", &|_, label| label.to_owned()), by_position(None)),
        (rows("site,digit", &|_, label| format!("N,{label}")), by_position(None)),
        (rows("original,digit", &|name, label| format!("scan-{name}.jpg,{label}")), by_position(Some("original"))),
    ] {
        let (read, ..) = read(folder.path(), &text);
        assert_eq!((label(&read, 1), label(&read, 2)), (Some("two"), Some("three")));
        assert_eq!(read.notes, [note]);
    }
    assert_eq!(
        by_position(Some("original")).to_string(),
        "labels matched by position, with the images in the order of their names; the column `original` names images, but none that is in the folder"
    );
    let other = refusal(folder.path(), "site,digit\nN,one\n");
    assert!(other.contains("there are 1 labels for the 30 rows"), "{other}");
}

#[test]
fn a_column_that_names_some_images_is_refused() {
    let (folder, all) = images("im");
    let stranger = |name: &str| if name == "im04" { "im99".to_owned() } else { name.to_owned() };
    let message =
        refusal(folder.path(), &table("image,digit", &all, |name, label| format!("{},{label}", stranger(name))));
    for part in ["the column `image`", "names `im99`, which is not in", "the first image without a row is `im04.png`"] {
        assert!(message.contains(part), "{message}");
    }
    let blank = |name: &str| if name == "im04" { String::new() } else { format!("{name}.png") };
    let message = refusal(folder.path(), &table("image,digit", &all, |name, label| format!("{},{label}", blank(name))));
    assert!(message.contains("names ``, which is not in"), "{message}");
    let twice = |name: &str| if name == "im04" { "im05" } else { name }.to_owned();
    let message = refusal(folder.path(), &table("image,digit", &all, |name, label| format!("{},{label}", twice(name))));
    assert!(message.contains("names `im05.png`, as row "), "{message}");
    // Two columns name all images, in different orders.
    let next = |name: &str| format!("im{:02}", (name[2..].parse::<usize>().unwrap() + 1) % 30);
    let both = |header: &str| table(header, &all, |name, label| format!("{name},{},{label}", next(name)));
    let message = refusal(folder.path(), &both("image,next,digit"));
    assert!(message.contains("the columns `image` and `next` both name the images"), "{message}");
    assert_eq!(read(folder.path(), &both("file,next,digit")).0.notes, [by("file", 0)]);
}

#[test]
fn numbers_name_images_only_if_they_name_all() {
    let (folder, all) = images("");
    let (found, ..) = read(folder.path(), &table("number,digit", &all, |name, label| format!("{name},{label}")));
    assert!(all.iter().enumerate().all(|(row, (_, expected))| label(&found, row) == Some(*expected)));
    // Ages are names of images by chance.
    let ages = |name: &str| 10 + name.parse::<usize>().unwrap() % 15;
    let (found, ..) = read(folder.path(), &table("age,digit", &all, |name, label| format!("{},{label}", ages(name))));
    assert_eq!(found.notes, [Note::LabelsByPosition { images: true, unknown: None }]);
    // With both, names with an extension are surer.
    let text = table("age,image,digit", &all, |name, label| {
        format!("{:02},{name}.png,{label}", (name.parse::<usize>().unwrap() + 1) % 30)
    });
    assert_eq!(read(folder.path(), &text).0.notes, [by("image", 0)]);
}

#[test]
fn labels_that_contradict_the_folders_are_refused_by_position() {
    let folder = folder();
    let all: Vec<(String, &str)> = (0..30).map(|i| (format!("{}/{i:02}", DIGITS[i % 3]), DIGITS[i % 3])).collect();
    for (i, (name, _)) in all.iter().enumerate() {
        picture(&folder, &format!("{name}.png"), i as u8);
    }
    let message = refusal(folder.path(), &table("site,digit", &all, |_, label| format!("N,{label}")));
    for part in ["no column names the images, and by position ", " of 30 images", "add a column `file` that names them"]
    {
        assert!(message.contains(part), "{message}");
    }
    // In the order of the images, with two labels corrected, they are taken, and so they are by name.
    let mut sorted = all.clone();
    sorted.sort();
    let corrected = |name: &str, label: &str| match name {
        "one/00" | "one/03" => "two".to_owned(),
        _ => label.to_owned(),
    };
    let rows = sorted.iter().map(|(name, label)| format!("N,{}", corrected(name, label)));
    let text = std::iter::once("site,digit".to_owned()).chain(rows).collect::<Vec<_>>().join("\n");
    let note = Note::OtherFolders { images: 2, of: 30, example: "one/00.png".into(), label: "two".into() };
    assert_eq!(read(folder.path(), &text).0.notes[1], note);
    for spelt in [(|name| format!("{name}.png")) as fn(&str) -> String, |name| name[name.len() - 2..].to_owned()] {
        let text = table("image,digit", &all, |name, label| format!("{},{}", spelt(name), corrected(name, label)));
        assert_eq!(read(folder.path(), &text).0.notes, [by("image", 0), note.clone()]);
    }
    // Labels of another kind than the folders contradict nothing.
    let text = table("site,digit", &all, |_, label| format!("N,{}", label.len()));
    assert_eq!(read(folder.path(), &text).0.notes, [Note::LabelsByPosition { images: true, unknown: None }]);
}

#[test]
fn images_without_folders_of_classes_need_a_file_of_labels() {
    let (folder, _) = images("im");
    for options in [ReadOptions::default(), ReadOptions { label: Some("digit".into()), ..Default::default() }] {
        for error in [
            read_dataset(folder.path(), &options).unwrap_err(),
            mnar_data::survey(folder.path(), &options).unwrap_err(),
        ] {
            let message = error.to_string();
            assert!(message.contains("there are 30 images in the folder, but no folders of classes"), "{message}");
            let together = [Remedy::set("labels", "labels.csv"), Remedy::set("label", "COLUMN")];
            assert_eq!(error.remedies(), [Remedy::All(together.to_vec())]);
        }
    }
}
