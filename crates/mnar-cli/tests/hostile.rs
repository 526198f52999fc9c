//! The command under attack: names that drive a terminal, readers that leave, disks that are full, numbers out of range, and
//! files that are larger than memory. For every command.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// An escape sequence that sets the title of a terminal, its 8-bit form, a carriage return, and marks that turn text around.
const EVIL: &str = "\u{1b}]0;pwned\u{7}\u{9b}31m\r\u{202e}evil\u{2066}\u{200f}";

fn mnar(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mnar"));
    command.current_dir(folder).args(arguments).env_remove("RAYON_NUM_THREADS").stdin(Stdio::null());
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    mnar(folder, arguments).output().unwrap()
}

/// Predictions of classes `a` and `b`, of which b is labelled far more often.
fn predictions(a: &str, b: &str, rows: usize) -> String {
    let mut text = format!("x,y,\"p_{a}\",\"p_{b}\"\n");
    for i in 0..rows {
        let is_b = i % 3 == 0;
        let p_b = if is_b == (i * 7 % 10 != 0) { 0.8 } else { 0.2 } + 0.1 * ((i * 37 % 101) as f64 / 101.0);
        let labelled = (i * 13 % 97) as f64 / 97.0 < if is_b { 0.6 } else { 0.1 };
        let label = if !labelled {
            ""
        } else if is_b {
            b
        } else {
            a
        };
        writeln!(text, "{}.{},\"{label}\",{},{p_b}", i % 7, i % 10, 1.0 - p_b).unwrap();
    }
    text
}

/// A folder with a table whose name, columns and labels are hostile, and one that is not.
fn hostile() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (format!("a{EVIL}"), format!("b{EVIL}"));
    let evil = folder.path().join(format!("{EVIL}.csv").replace(['\r'], ""));
    std::fs::write(&evil, predictions(&a, &b, 400).replacen("x,y", &format!("\"x{EVIL}\",\"y{EVIL}\""), 1)).unwrap();
    std::fs::write(folder.path().join("plain.csv"), predictions("a", "b", 400)).unwrap();
    (folder, evil)
}

fn assert_calm(output: &Output, what: &str) {
    for (stream, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let bad =
            text.chars().find(|c| (c.is_control() && !"\n\t".contains(*c)) || "\u{202e}\u{2066}\u{200f}".contains(*c));
        assert_eq!(bad, None, "{what}, {stream}: {text:?}");
        assert!(!text.contains("panicked"), "{what}: {text}");
    }
}

/// Every command, on a table with hostile names, with an error and without.
fn commands<'a>(evil: &'a str, label: &'a str, x: &'a str, phi: &'a str) -> Vec<Vec<&'a str>> {
    let quick = ["--epochs", "1", "--replicates", "0", "--no-baseline", "--folds", "2", "--quiet"];
    let features = ["estimate", evil, "--label", label, "--features", x, "--replicates", "8"];
    let mut fit = vec!["fit", evil, "--label", label, "--out", "run"];
    fit.extend(quick);
    vec![
        vec!["inspect", evil],
        vec!["inspect", evil, "--label", label],
        vec!["inspect", evil, "--label", label, "--format", "json"],
        vec!["inspect", evil, "--label", EVIL],
        vec!["estimate", evil, "--label", label],
        vec!["estimate", evil, "--label", label, "--format", "json"],
        vec!["estimate", evil, "--label", EVIL],
        vec!["estimate", evil, "--label", label, "--missing", EVIL, "--weights", "w.csv"],
        features.to_vec(),
        vec!["test", evil, "--label", label],
        vec!["test", evil, "--label", label, "--format", "json"],
        vec!["test", evil, "--label", EVIL],
        fit,
        vec!["fit", evil, "--label", EVIL, "--out", "none"],
        vec!["predict", "run", evil, "-o", "p.csv"],
        vec!["predict", "run", "plain.csv", "-o", "p.csv"],
        vec!["predict", EVIL, evil, "-o", "p.csv"],
        vec!["report", "run"],
        vec!["report", EVIL],
        vec!["simulate", evil, "--label", label, "--phi", "0.5,0.5", "-o", "s.csv"],
        vec!["simulate", evil, "--label", label, "--phi", phi, "-o", "s.csv"],
        vec!["simulate", evil, "--label", label, "--phi", "0.5,0.5", "--odds", EVIL, "-o", "s.csv"],
        vec!["demo", "--out", evil],
        vec!["completions", EVIL],
        vec![EVIL],
        vec!["estimate", "plain.csv", EVIL],
        vec!["--help"],
        vec!["man"],
    ]
}

#[test]
fn hostile_names_do_not_reach_the_terminal() {
    let (folder, evil) = hostile();
    let (label, x) = (format!("y{EVIL}"), format!("x{EVIL}"));
    let phi = format!("a{EVIL}=0.5,b{EVIL}=nonsense");
    // A carriage return in the middle of a header is part of the name.
    for arguments in commands(evil.to_str().unwrap(), &label, &x, &phi) {
        assert_calm(&run(folder.path(), &arguments), &format!("{arguments:?}"));
    }
}

/// What programs read is what was in the file.
#[test]
fn json_still_says_what_the_labels_are() {
    let (folder, evil) = hostile();
    let label = format!("y{EVIL}");
    let output = run(folder.path(), &["estimate", evil.to_str().unwrap(), "--label", &label, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["classes"][0].as_str(), Some(format!("a{EVIL}").as_str()));
}

/// The exit code of a command whose stdout nobody reads.
fn unread(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut child = mnar(folder, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (child.wait().unwrap().code(), stderr)
}

#[test]
fn a_closed_pipe_keeps_the_exit_code() {
    let (folder, _) = hostile();
    let rejecting = ["test", "plain.csv", "--label", "y", "--fail-on-reject"];
    assert_eq!(run(folder.path(), &rejecting).status.code(), Some(1));
    assert_eq!(unread(folder.path(), &rejecting), (Some(1), String::new()));
    let json = ["test", "plain.csv", "--label", "y", "--fail-on-reject", "--format", "json"];
    assert_eq!(unread(folder.path(), &json).0, Some(1));
    // In the order in which they need each other.
    let (label, x, phi) = ("y", "x", "a=0.5,b=0.5");
    for arguments in commands("plain.csv", label, x, phi) {
        let usual = run(folder.path(), &arguments).status.code();
        if arguments.contains(&"run") && arguments[0] == "fit" {
            std::fs::remove_dir_all(folder.path().join("run")).unwrap();
        }
        let (code, stderr) = unread(folder.path(), &arguments);
        assert_eq!(code, usual, "{arguments:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn a_full_disk_is_told_and_a_full_stderr_is_nothing() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let (folder, _) = hostile();
    let full = || Stdio::from(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    for arguments in commands("plain.csv", "y", "x", "a=0.5,b=0.5") {
        let usual = run(folder.path(), &arguments).status.code();
        if arguments.contains(&"run") && arguments[0] == "fit" {
            std::fs::remove_dir_all(folder.path().join("run")).unwrap();
        }
        let code = mnar(folder.path(), &arguments).stdout(Stdio::null()).stderr(full()).status().unwrap().code();
        assert_eq!(code, usual, "{arguments:?} with a full stderr");
        let output = mnar(folder.path(), &arguments).stdout(full()).stderr(Stdio::piped()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
        assert!([Some(0), Some(1), Some(2)].contains(&output.status.code()), "{arguments:?}: {stderr}");
    }
    let output = mnar(folder.path(), &["test", "plain.csv", "--label", "y"]).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("error: the result cannot be written"));
}

#[test]
fn numbers_out_of_range_are_refused() {
    let (folder, _) = hostile();
    let huge = "18446744073709551615";
    let fit = ["fit", "plain.csv", "--label", "y", "--out", "ranges", "--quiet"];
    let estimate = ["estimate", "plain.csv", "--label", "y"];
    let features = ["estimate", "plain.csv", "--label", "y", "--features", "x"];
    let test = ["test", "plain.csv", "--label", "y"];
    let refused = |base: &[&str], option: &str, value: &str| {
        let output = run(folder.path(), &[base, &[option, value]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{base:?} {option} {value}: {stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        assert!(stderr.starts_with("error: "), "{option} {value}: {stderr}");
    };
    for option in
        ["--epochs", "--batch-labelled", "--batch-unlabelled", "--patience", "--refresh", "--folds", "--permutations"]
    {
        for value in ["0", huge, "-1", "1.5", "nan"] {
            refused(&fit, option, value);
        }
    }
    refused(&fit, "--replicates", huge);
    for option in ["--learning-rate", "--averaging", "--lambda", "--threshold", "--validation", "--clip-weights"] {
        for value in ["nan", "inf", "1e999"] {
            refused(&fit, option, value);
        }
    }
    for (option, value) in [
        ("--hidden", "0"),
        ("--hidden", huge),
        ("--resize", "0x0"),
        ("--resize", "999999999x2"),
        ("--budget", "0s"),
        ("--budget", "99999999y"),
        ("--seed", "-1"),
        ("--memory", "0"),
        ("--memory", "-2GB"),
        ("--memory", "lots"),
    ] {
        refused(&fit, option, value);
    }
    for (option, value) in [
        ("--replicates", huge),
        ("--prior-weight", "nan"),
        ("--prior-weight", "-1"),
        ("--sensitivity", "nan"),
        ("--sensitivity", "0"),
        ("--width", "-1"),
        ("--width", "nan"),
        ("--width", "inf"),
        ("--budget", "-1s"),
    ] {
        refused(&estimate, option, value);
    }
    for (option, value) in [("--folds", "0"), ("--folds", "1"), ("--folds", huge), ("--l2", "nan"), ("--l2", "-1")] {
        refused(&features, option, value);
    }
    for (option, value) in [
        ("--level", "0"),
        ("--level", "nan"),
        ("--level", "2"),
        ("--permutations", "0"),
        ("--permutations", huge),
        ("--replicates", huge),
        ("--power", "1"),
        ("--power", "nan"),
    ] {
        refused(&test, option, value);
    }
    for (variable, value) in [
        ("MNAR_CHECKPOINT_SECONDS", "-1"),
        ("MNAR_CHECKPOINT_SECONDS", "nan"),
        ("MNAR_CHECKPOINT_SECONDS", "1e300"),
        ("RAYON_NUM_THREADS", "-1"),
        ("RAYON_NUM_THREADS", "99999999"),
        ("MNAR_KERNELS", EVIL),
    ] {
        let output = mnar(folder.path(), &fit).env(variable, value).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{variable}={value}");
        assert_calm(&output, variable);
        assert!(String::from_utf8_lossy(&output.stderr).contains(variable));
    }
    assert!(!folder.path().join("ranges").exists(), "nothing was started");
    // The largest seed is a seed.
    assert_eq!(run(folder.path(), &[&test[..], &["--seed", huge]].concat()).status.code(), Some(0));
}

#[test]
fn a_run_that_diverges_says_so() {
    let (folder, _) = hostile();
    for (k, more) in
        [&["--network", "linear"][..], &["--network", "mlp", "--optimiser", "sgd"], &["--classifier", "network"]]
            .iter()
            .enumerate()
    {
        let out = format!("run-{k}");
        let base =
            ["fit", "plain.csv", "--label", "y", "--learning-rate", "1e30", "--epochs", "3", "--quiet", "--out", &out];
        let output = run(folder.path(), &[&base[..], more].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {stderr}");
        assert!(stderr.contains("diverged") && stderr.contains("learning rate"), "{more:?}: {stderr}");
        assert!(stderr.contains("hint: --learning-rate"), "{stderr}");
    }
}

/// A numpy archive of zeros: megabytes in a few kilobytes.
fn bomb() -> Vec<u8> {
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (90, 400, 250), }                                             \n";
    let mut array = b"\x93NUMPY\x01\x00".to_vec();
    array.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    array.extend(header.as_bytes());
    array.resize(array.len() + 9_000_000, 0);
    array
}

#[test]
fn what_is_larger_than_memory_is_refused_by_every_command() {
    let (folder, _) = hostile();
    std::fs::write(folder.path().join("bomb.npy"), bomb()).unwrap();
    std::fs::write(folder.path().join("labels.csv"), "label\na\n").unwrap();
    let mut large = predictions("a", "b", 400);
    let rows = large.split_once('\n').unwrap().1.repeat(250);
    large.push_str(&rows);
    std::fs::write(folder.path().join("large.csv"), large).unwrap();
    for arguments in [
        &["inspect", "bomb.npy"][..],
        &["fit", "bomb.npy", "--labels", "labels.csv"],
        &["inspect", "large.csv"],
        &["estimate", "large.csv", "--label", "y"],
        &["estimate", "large.csv", "--label", "y", "--features", "x"],
        &["test", "large.csv", "--label", "y"],
        &["fit", "large.csv", "--label", "y"],
        &["simulate", "large.csv", "--label", "y", "--phi", "0.5,0.5", "-o", "s.csv"],
    ] {
        let output = run(folder.path(), &[arguments, &["--memory", "4MB"]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        // Labels alone fit into little.
        if arguments[0] == "simulate" {
            assert!(output.status.success(), "{stderr}");
            continue;
        }
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(
            stderr.contains("of memory or more, but with 4.0 MB in all data may take 1.0 MB"),
            "{arguments:?}: {stderr}"
        );
        assert!(stderr.contains("hint: leave out --memory"), "{stderr}");
    }
}

#[test]
fn pipes_are_read_once_and_used_as_often_as_needed() {
    let (folder, _) = hostile();
    let pipe = |name: &str| {
        let path = folder.path().join(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    };
    let table = predictions("a", "b", 400);
    // Given columns and audits are read apart from the predictions.
    for (k, arguments) in [&["test"][..], &["estimate"], &["estimate", "--given", "x"], &["inspect"]].iter().enumerate()
    {
        let path = pipe(&format!("pipe-{k}.csv"));
        let writer = std::thread::spawn({
            let (path, table) = (path.clone(), table.clone());
            move || std::fs::write(path, table).unwrap()
        });
        let name = path.file_name().unwrap().to_str().unwrap();
        let output = run(folder.path(), &[&arguments[..1], &[name, "--label", "y"], &arguments[1..]].concat());
        writer.join().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let parquet = pipe("t.parquet");
    for arguments in [
        &["estimate", "t.parquet", "--label", "y"][..],
        &["simulate", "t.parquet", "--label", "y", "--phi", "1,1", "-o", "s.parquet"],
    ] {
        let output = run(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("save it to a file first"));
    }
    drop(parquet);
}

#[test]
fn formulas_do_not_reach_spreadsheets_unless_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), predictions("=cmd|' /C calc'!A1", "b", 400)).unwrap();
    let base = ["estimate", "t.csv", "--label", "y", "--weights"];
    assert!(run(folder.path(), &[&base[..], &["w.csv"]].concat()).status.success());
    assert!(run(folder.path(), &[&base[..], &["k.csv", "--keep-formulas"]].concat()).status.success());
    let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(text("w.csv").contains(",'=cmd|") && !text("w.csv").contains(",=cmd|"));
    assert!(text("k.csv").contains(",=cmd|"));
}
