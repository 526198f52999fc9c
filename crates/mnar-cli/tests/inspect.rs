//! `mnar inspect` as a user meets it.
#![allow(clippy::unwrap_used)]

use assert_cmd::Command;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;
use tempfile::TempDir;

/// Runs, expects the exit code, and gives back stdout and stderr.
fn mnar(arguments: &[&str], code: i32) -> (String, String) {
    let output = Command::cargo_bin("mnar").unwrap().args(arguments).output().unwrap();
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
    (stdout, stderr)
}

fn write(folder: &TempDir, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// 400 patients: 90% of North's and 20% of South's are labelled. `ward` has a gap in every tenth row.
fn clinic() -> String {
    let mut text = "patient_id,hospital,country,seen,age,ward,diagnosis\n".to_owned();
    for i in 0..400 {
        let north = i % 2 == 0;
        let labelled = (i / 2 * 7) % 10 < if north { 9 } else { 2 };
        let diagnosis = match (labelled, i % 3) {
            (false, _) => "",
            (true, 0) => "sick",
            (true, _) => "healthy",
        };
        let hospital = if north { "North" } else { "South" };
        let ward = if i % 10 == 3 { "" } else { ["a", "b", "c"][i % 3] };
        let (month, day, age) = (1 + i / 40, 1 + i % 28, 20 + i * 37 % 60);
        writeln!(text, "p{i},{hospital},Norway,2024-{month:02}-{day:02},{age},{ward},{diagnosis}").unwrap();
    }
    text
}

fn column<'a>(found: &'a Value, name: &str) -> &'a Value {
    found["columns"].as_array().unwrap().iter().find(|column| column["name"] == name).unwrap()
}

#[test]
fn inspect_tells_how_columns_are_read_and_who_is_labelled() {
    let folder = tempfile::tempdir().unwrap();
    let table = write(&folder, "my clinic.csv", clinic());
    let table = table.to_str().unwrap();
    let before = std::fs::read_dir(folder.path()).unwrap().count();
    let (text, stderr) = mnar(&["inspect", table, "--label", "diagnosis"], 0);
    assert!(stderr.is_empty(), "{stderr}");
    for words in [
        "400 rows and 7 columns, of which 4 will be features",
        "220 of 400 rows have a label in `diagnosis` (55.0%)",
        "not a feature: identifier: all of its values are different names",
        "  patient_id  name, 400 levels\n",
        "not a feature: constant",
        "labelled: lowest 20.0% (South), highest 90.0% (North)",
        "from 2024-01-01 to 2024-10-28",
        "name, 3 levels, 10.0% missing",
        "note: `patient_id` is not used as a feature",
        "The labelling rate differs most along `hospital`,",
    ] {
        assert!(text.contains(words), "no `{words}` in:\n{text}");
    }
    let next = format!("\nNext: mnar estimate '{table}' --label diagnosis --features all\n");
    assert!(text.ends_with(&next), "{text}");
    assert!(!text.contains("problem"), "{text}");
    let widest = text.lines().filter(|line| line.starts_with("  ")).map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), before);
}

#[test]
fn inspect_as_json_has_its_keys() {
    let folder = tempfile::tempdir().unwrap();
    let table = write(&folder, "clinic.csv", clinic());
    let arguments = ["inspect", table.to_str().unwrap(), "--label", "diagnosis", "--format", "json"];
    let found: Value = serde_json::from_str(&mnar(&arguments, 0).0).unwrap();
    assert_eq!((&found["rows"], &found["labelled"], &found["label"]), (&400.into(), &220.into(), &"diagnosis".into()));
    let classes: Vec<&Value> = found["classes"].as_array().unwrap().iter().map(|class| &class["name"]).collect();
    assert_eq!(classes, ["healthy", "sick"]);
    let names: Vec<&Value> = found["columns"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    assert_eq!(names, ["patient_id", "hospital", "country", "seen", "age", "ward", "diagnosis"]);
    let hospital = column(&found, "hospital");
    assert_eq!((&hospital["kind"], &hospital["levels"], &hospital["used"]), (&"name".into(), &2.into(), &true.into()));
    let rates = hospital["labelling"].as_array().unwrap();
    assert_eq!((&rates[0]["group"], &rates[0]["rows"]), (&"North".into(), &200.into()));
    assert!((rates[0]["rate"].as_f64().unwrap() - 0.9).abs() < 1e-12, "{rates:?}");
    // By hand: rates 0.9 and 0.2 of 200 rows each, 0.55 together: 2 · 200 · 0.35² / (0.55 · 0.45).
    let first = &found["differs_most"][0];
    assert_eq!((&first["column"], &first["df"]), (&"hospital".into(), &1.into()));
    assert!((first["statistic"].as_f64().unwrap() - 49.0 / 0.2475).abs() < 1e-9, "{first}");
    assert_eq!(column(&found, "seen")["kind"], "date");
    assert_eq!(column(&found, "seen")["summary"]["min"], "2024-01-01");
    let groups = column(&found, "seen")["labelling"].as_array().unwrap();
    assert!(groups[0]["group"].as_str().unwrap().starts_with("2024-01-01 to 2024-0"), "{groups:?}");
    assert_eq!(column(&found, "age")["summary"]["max"], 79.0);
    assert!((column(&found, "ward")["missing"].as_f64().unwrap() - 0.1).abs() < 1e-12);
    assert_eq!(column(&found, "patient_id")["used"], false);
    assert!(column(&found, "country")["why_not"].as_str().unwrap().contains("constant"));
    assert!(found["problems"].as_array().unwrap().is_empty());
    assert!(!found["notes"].as_array().unwrap().is_empty());
    assert!(found["version"].is_string());
}

#[test]
fn inspect_without_a_label_guesses_it() {
    let folder = tempfile::tempdir().unwrap();
    let table = write(&folder, "clinic.csv", clinic());
    let table = table.to_str().unwrap();
    let (text, _) = mnar(&["inspect", table], 0);
    assert!(text.contains("The label could be `diagnosis` or `ward`"), "{text}");
    assert!(text.ends_with(&format!("\nNext: mnar inspect {table} --label diagnosis\n")), "{text}");
    assert!(!text.contains("labelled:") && !text.contains("differs most"), "{text}");
    let found: Value = serde_json::from_str(&mnar(&["inspect", table, "--format", "json"], 0).0).unwrap();
    assert_eq!(found["could_be_label"], serde_json::json!(["diagnosis", "ward"]));
    assert_eq!((&found["label"], &found["labelled"]), (&Value::Null, &Value::Null));
}

#[test]
fn inspect_shows_what_it_can_beside_problems() {
    let folder = tempfile::tempdir().unwrap();
    let table = write(&folder, "clinic.csv", clinic());
    let table = table.to_str().unwrap();
    // A label that is misspelt.
    let (text, _) = mnar(&["inspect", table, "--label", "diagnoses"], 0);
    assert!(text.contains("problem: ") && text.contains("did you mean `diagnosis`?"), "{text}");
    assert!(text.contains("name, 2 levels") && text.contains("could be `diagnosis`"), "{text}");
    // A copy of the label, and a number that is infinite.
    let mut lines: Vec<String> = clinic().lines().map(str::to_owned).collect();
    for (i, line) in lines.iter_mut().enumerate() {
        let truth = if i == 0 { "truth" } else { ["sick", "healthy", "healthy"][(i - 1) % 3] };
        let dose = ["dose", "inf", "3"][i.min(2)];
        line.push_str(&format!(",{truth},{dose}"));
    }
    let table = write(&folder, "leaks.csv", lines.join("\n"));
    let (text, _) = mnar(&["inspect", table.to_str().unwrap(), "--label", "diagnosis"], 0);
    for words in [
        "column `truth` duplicates the label",
        "hint: --ignore truth",
        "not a feature: it repeats the label",
        "could not be read",
        "hint: --ignore dose",
        "labelled: lowest 20.0% (South), highest 90.0% (North)",
        "Next, once the problems are solved: mnar estimate",
    ] {
        assert!(text.contains(words), "no `{words}` in:\n{text}");
    }
    let arguments =
        ["inspect", table.to_str().unwrap(), "--label", "diagnosis", "--ignore", "truth", "--ignore", "dose"];
    let (text, _) = mnar(&arguments, 0);
    assert!(!text.contains("problem:") && text.contains("it is ignored, as asked"), "{text}");
    assert!(text.contains("Next: mnar fit ") && text.ends_with("--ignore truth --ignore dose\n"), "{text}");
}

#[test]
fn inspect_and_fit_agree_on_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let all = clinic().replace(",\n", ",healthy\n");
    let table = write(&folder, "all.csv", all);
    let (text, _) = mnar(&["inspect", table.to_str().unwrap(), "--label", "diagnosis"], 0);
    assert!(
        text.contains("400 of 400 rows have a label") && text.contains("or a value that is named as missing"),
        "{text}"
    );
    let none = write(&folder, "none.csv", "x,y\n1,\n2,\n3,\n");
    let (text, _) = mnar(&["inspect", none.to_str().unwrap(), "--label", "y"], 0);
    assert!(text.contains("0 of 3 rows have a label") && text.contains("problem: "), "{text}");
}

#[test]
fn inspect_refuses_what_is_not_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let ragged = write(&folder, "ragged.csv", "a,b,y\n1,2,c\n1,2\n");
    let damaged = write(&folder, "damaged.parquet", b"PAR1 and then nothing");
    for path in [ragged.as_path(), damaged.as_path(), &folder.path().join("absent.csv")] {
        let (stdout, stderr) = mnar(&["inspect", path.to_str().unwrap(), "--label", "y"], 2);
        assert!(stdout.is_empty() && stderr.starts_with("error: "), "{stderr}");
    }
}

#[test]
fn inspect_does_not_let_names_steer_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..40).map(|i| format!("\u{1b}[31mred{},{}\n", i % 2, ["", "a", "b"][i % 3])).collect();
    let table = write(&folder, "t.csv", format!("\u{1b}[2Jx,y\n{rows}"));
    let (text, _) = mnar(&["inspect", table.to_str().unwrap(), "--label", "y"], 0);
    assert!(!text.contains('\u{1b}') && text.contains("red0"), "{text:?}");
}

/// A BMP whose colour channels are all alike, which is read as grey.
fn bmp(width: u32, height: u32) -> Vec<u8> {
    let row = (3 * width).div_ceil(4) * 4;
    let size = 54 + row * height;
    let mut bytes = b"BM".to_vec();
    for number in [size, 0, 54, 40, width, height, 1 | (24 << 16), 0, row * height, 2835, 2835, 0, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.resize(size as usize, 7);
    bytes
}

#[test]
fn inspect_counts_the_images_of_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    for (class, count) in [("cat", 4), ("dog", 6), ("unlabelled", 10)] {
        std::fs::create_dir(folder.path().join(class)).unwrap();
        for i in 0..count {
            write(&folder, &format!("{class}/{i}.bmp"), bmp(8, 8));
        }
    }
    write(&folder, "cat/readme.txt", "not an image");
    let path = folder.path().to_str().unwrap();
    let (text, _) = mnar(&["inspect", path], 0);
    assert!(text.contains("an image folder with 20 images, 8x8 grey"), "{text}");
    assert!(text.contains("10 of 20 images have a label") && text.contains("skipped: cat/readme.txt"), "{text}");
    // Images of another size stop a run, but the classes can be counted.
    write(&folder, "dog/large.bmp", bmp(16, 8));
    let found: Value = serde_json::from_str(&mnar(&["inspect", path, "--format", "json"], 0).0).unwrap();
    assert_eq!((&found["rows"], &found["classes"][1]["rows"]), (&21.into(), &7.into()));
    assert_eq!(found["problems"][0]["remedies"][0]["set"]["option"], "resize");
}
