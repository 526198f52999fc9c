//! Signals, links, leftovers, old folders and columns: one test for each.

use crate::runs::{files, fit, has_checkpoint, interrupt, mnar, said, start, strays, table};
use nix::sys::signal::{Signal, kill as send};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

const QUICK: [&str; 9] =
    ["t.csv", "--label", "diagnosis", "--epochs", "2", "--replicates", "0", "--permutations=9", "--quiet"];

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("t.csv"), table(150, 1)).unwrap();
    home
}

fn refused(output: &Output, says: &str) {
    assert_eq!(output.status.code(), Some(2), "{}", said(output));
    assert!(said(output).contains(says), "{}", said(output));
}

fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
}

/// `report.html -> ../authorized_keys` is not a way to overwrite that file.
#[test]
fn nothing_in_a_run_folder_is_written_through_a_link() {
    let home = home();
    let (run, keys) = (home.path().join("run"), home.path().join("authorized_keys"));
    succeeded(&fit(home.path(), &QUICK, &["--out", "run"]));
    fs::write(&keys, "precious").unwrap();
    fs::remove_file(run.join("report.html")).unwrap();
    symlink("../authorized_keys", run.join("report.html")).unwrap();
    refused(&mnar(home.path()).args(["report", "run"]).output().unwrap(), "is a link");
    assert_eq!(fs::read(&keys).unwrap(), b"precious");
    // Where the user names the file, a link is followed.
    symlink("page.html", home.path().join("link.html")).unwrap();
    fs::write(home.path().join("page.html"), "").unwrap();
    succeeded(&mnar(home.path()).args(["report", "run", "-o", "link.html"]).output().unwrap());
    assert!(fs::read_to_string(home.path().join("page.html")).unwrap().contains("<html"));
    // The demonstration writes into a folder that may be there already.
    fs::create_dir(home.path().join("demo")).unwrap();
    symlink("../authorized_keys", home.path().join("demo/report.json")).unwrap();
    let demo = ["demo", "--dataset", "breast-cancer", "--out", "demo", "--quiet"];
    refused(&mnar(home.path()).args(demo).output().unwrap(), "is a link");
    assert_eq!(fs::read(&keys).unwrap(), b"precious");
}

/// Links in an unfinished run are refused, and those that come later are replaced.
#[test]
fn a_run_does_not_write_through_links() {
    let home = home();
    fs::create_dir(home.path().join("target")).unwrap();
    let run = home.path().join("run");
    interrupted(home.path());
    for (link, target) in
        [("report.json", "../x"), ("model", "../target"), ("baseline", "../target"), ("predictions.csv", "../x")]
    {
        symlink(target, run.join(link)).unwrap();
        refused(&fit(home.path(), &LONG, &["--out", "run", "--resume"]), "is a link");
        fs::remove_file(run.join(link)).unwrap();
    }
    assert!(!home.path().join("x").exists());
    assert_eq!(files(&home.path().join("target")), [""; 0]);
}

const LONG: [&str; 9] =
    ["t.csv", "--label", "diagnosis", "--epochs", "5000", "--replicates", "0", "--permutations=9", "--quiet"];

/// A run that was killed while it trained.
fn interrupted(home: &Path) {
    interrupt(home, &LONG, "run");
}

/// A scheduler that sends SIGTERM gets a run that can be resumed, at once and with nothing half-written.
#[test]
fn sigterm_is_ctrl_c() {
    let home = home();
    let run = home.path().join("run");
    for (more, signal, code) in
        [(&["--out", "run"][..], Signal::SIGTERM, 143), (&["--out", "run", "--resume"], Signal::SIGINT, 130)]
    {
        let mut child = start(home.path(), &LONG, more);
        while !has_checkpoint(&run) || !run.join(".mnar-lock").exists() {
            assert!(child.try_wait().unwrap().is_none(), "the run has ended");
            std::thread::sleep(Duration::from_millis(10));
        }
        // The lock is taken before the data are read; the handler was there before.
        send(Pid::from_raw(child.id() as i32), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert!(said(&output).contains("--resume"), "{}", said(&output));
        let hidden = files(&run).into_iter().filter(|name| name.contains(".mnar-"));
        assert_eq!(hidden.collect::<Vec<_>>(), [""; 0]);
    }
}

/// What a kill before the start leaves is not in the way of anything.
#[test]
fn leftovers_are_swept_and_a_folder_of_others_is_not_touched() {
    let home = home();
    let run = home.path().join("run");
    for more in [&["--out", "run"][..], &["--out", "run", "--resume"]] {
        fs::create_dir(&run).unwrap();
        for leftover in [".mnar-lock", ".mnar-aB3.partial"] {
            fs::write(run.join(leftover), "half").unwrap();
        }
        succeeded(&fit(home.path(), &QUICK, more));
        assert_eq!(strays(&run), [""; 0]);
        fs::remove_dir_all(&run).unwrap();
    }
    fs::create_dir(&run).unwrap();
    for name in ["notes.txt", ".mnar-aB3.partial"] {
        fs::write(run.join(name), "mine").unwrap();
    }
    refused(&fit(home.path(), &QUICK, &["--out", "run"]), "is not empty");
    assert_eq!(files(&run), [".mnar-aB3.partial", "notes.txt"]);
    // A run that is refused leaves no folder, and none of those above it.
    refused(&fit(home.path(), &["t.csv", "--label", "none"], &["--out", "a/b/c"]), "`none`");
    assert!(!home.path().join("a").exists());
}

/// Of a run that was killed between its report and its end, the checkpoints and the lock are left.
#[test]
fn the_last_moments_of_a_run_are_swept() {
    let home = home();
    let run = home.path().join("run");
    succeeded(&fit(home.path(), &QUICK, &["--out", "run"]));
    fs::create_dir(run.join("checkpoints")).unwrap();
    for leftover in ["checkpoints/debiased.checkpoint", ".mnar-lock", "model/.mnar-x.partial"] {
        fs::write(run.join(leftover), "").unwrap();
    }
    refused(&fit(home.path(), &QUICK, &["--out", "run", "--resume"]), "holds a finished run");
    assert_eq!(strays(&run), [""; 0]);
}

#[test]
fn other_options_and_changed_settings_are_refused_by_name() {
    let home = home();
    interrupted(home.path());
    let resume = ["--out", "run", "--resume"];
    let other: Vec<&str> = LONG.iter().map(|word| if *word == "5000" { "4000" } else { *word }).collect();
    refused(&fit(home.path(), &other, &[&resume[..], &["--seed=7"]].concat()), "the options epochs, seed differ");
    let settings = home.path().join("run/settings.toml");
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, text.replace("5000", "5001")).unwrap();
    refused(&fit(home.path(), &LONG, &resume), "settings.toml cannot be trusted");
    fs::write(&settings, text).unwrap();
    let manifest = home.path().join("run/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    fs::write(&manifest, text.replace(&version, "\"version\": \"0.0.1\"")).unwrap();
    refused(&fit(home.path(), &LONG, &resume), "the version of mnar (0.0.1 then");
    fs::write(&manifest, &text[..text.len() / 2]).unwrap();
    refused(&fit(home.path(), &LONG, &resume), "manifest.json is not the record of a run");
}

/// A folder of a version without a manifest gets a message that says so.
#[test]
fn folders_without_a_manifest() {
    let home = home();
    interrupted(home.path());
    fs::remove_file(home.path().join("run/manifest.json")).unwrap();
    refused(&fit(home.path(), &LONG, &["--out", "run", "--resume"]), "has no manifest.json");
    refused(&fit(home.path(), &LONG, &["--out", "run"]), "holds an unfinished run");
    succeeded(&fit(home.path(), &QUICK, &["--out", "old"]));
    fs::remove_file(home.path().join("old/manifest.json")).unwrap();
    let predict = mnar(home.path()).args(["predict", "old", "t.csv", "-o", "p.csv"]).output().unwrap();
    refused(&predict, "has no manifest.json");
    // A report stands for itself.
    succeeded(&mnar(home.path()).args(["report", "old"]).output().unwrap());
}

/// Predictions and reports that were changed since are noticed.
#[test]
fn changed_files_are_noticed() {
    let home = home();
    let run = home.path().join("run");
    succeeded(&fit(home.path(), &QUICK, &["--out", "run"]));
    let report = || mnar(home.path()).args(["report", "run"]).output().unwrap();
    succeeded(&report());
    assert_eq!(said(&report()), "");
    let predictions = fs::read_to_string(run.join("predictions.csv")).unwrap();
    fs::write(run.join("predictions.csv"), predictions.replacen("0.", "1.", 1)).unwrap();
    succeeded(&report());
    assert!(said(&report()).contains("note: run/predictions.csv is not as the run wrote it"), "{}", said(&report()));
    let words =
        ["estimate", "run/predictions.csv", "--label", "label", "--posterior", "population", "--method", "moments"];
    let estimate = mnar(home.path()).args(words).output().unwrap();
    assert!(said(&estimate).contains("note: run/predictions.csv is not as the run wrote it"), "{}", said(&estimate));
    let text = fs::read_to_string(run.join("report.json")).unwrap();
    fs::write(run.join("report.json"), text.replacen("0.", "1.", 1)).unwrap();
    refused(&report(), "report.json cannot be trusted");
    fs::rename(run.join("model/beside.json"), run.join("beside.json")).unwrap();
    let predict = || mnar(home.path()).args(["predict", "run", "t.csv", "-o", "p.csv"]).output().unwrap();
    refused(&predict(), "beside.json cannot be trusted: it is missing");
}

/// A table without some of the columns of the model: all of them are named.
#[test]
fn columns_that_do_not_match_are_named() {
    let home = home();
    succeeded(&fit(home.path(), &QUICK, &["--out", "run"]));
    let predict = |text: &str| {
        fs::write(home.path().join("new.csv"), text).unwrap();
        mnar(home.path()).args(["predict", "run", "new.csv", "-o", "p.csv"]).output().unwrap()
    };
    refused(
        &predict("age,Marker,beds\n50,1,3\n"),
        "does not have: marker, ward; columns that it does not know: Marker, beds",
    );
    refused(&predict("age,marker,ward\n50,high,north\n"), "column `marker`: `high` is not a number");
    succeeded(&predict("ward,age,beds,marker\nnorth,50,3,0.5\n"));
}
