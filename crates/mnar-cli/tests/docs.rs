//! The documentation runs: commands are executed, transcripts compared, links followed, and the reference is that of the program.
#![allow(clippy::unwrap_used)]

#[path = "docs/fixtures.rs"]
mod fixtures;
#[path = "docs/markdown.rs"]
mod markdown;

use markdown::{Block, anchors, blocks, links, pages, root};
use std::path::Path;
use std::process::{Command, Output};

/// Runs a line of a page as a shell would, with this `mnar` first in the path.
fn run(line: &str, folder: &Path) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_mnar")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", program.display()))
        .output()
        .unwrap()
}

/// The commands of a block without a prompt: lines that start with `mnar`, with their continuations.
fn commands(block: &Block) -> Vec<String> {
    let joined = block.text.replace("\\\n", " ");
    joined.lines().filter(|line| line.starts_with("mnar ")).map(str::to_owned).collect()
}

/// Every command of these pages runs, one after the other in a folder with the files that the page speaks of.
fn all_commands_run(page: &str) {
    let folder = tempfile::tempdir().unwrap();
    fixtures::write(page, folder.path());
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let all: Vec<String> = blocks(&text).iter().filter(|block| block.is_shell()).flat_map(commands).collect();
    assert!(!all.is_empty(), "{page} has no commands");
    for command in all {
        let output = run(&command, folder.path());
        assert!(output.status.success(), "{page}: {command}\n{}", String::from_utf8_lossy(&output.stderr));
    }
}

macro_rules! pages_that_run {
    ($($name:ident: $page:literal,)*) => { $(
        #[test]
        fn $name() {
            all_commands_run($page);
        }
    )* };
}

pages_that_run! {
    readme: "README.md",
    evaluate: "docs/evaluate.md",
    weights: "docs/weights.md",
    only_positives: "docs/positive-unlabelled.md",
    prediction_sets: "docs/prediction-sets.md",
    who_gets_labelled: "docs/who-gets-labelled.md",
    by_hospital: "docs/howto-hospital.md",
    own_model: "docs/howto-own-model.md",
    label_next: "docs/howto-label-next.md",
}

/// Words without the breaks between lines, which a page may set elsewhere.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the README says that the demonstration prints is what it prints, but for the time it takes.
#[test]
fn the_readme_shows_what_the_demo_prints() {
    let folder = tempfile::tempdir().unwrap();
    let output = run("mnar demo --quiet", folder.path());
    let printed = String::from_utf8(output.stdout).unwrap();
    let until_time = |text: &str| flat(text.rsplit_once(" s, seed").unwrap().0.rsplit_once('\n').unwrap().0);
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    let shown = blocks(&text).into_iter().find(|block| block.text.starts_with("The digits sample")).unwrap().text;
    assert_eq!(until_time(&shown), until_time(&printed), "the demo prints:\n{printed}");
}

/// No link within the documentation leads nowhere.
#[test]
fn links_lead_somewhere() {
    let mut dead = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            let (file, anchor) = link.split_once('#').map_or((link.as_str(), None), |(file, at)| (file, Some(at)));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let found = match anchor {
                _ if !target.exists() => false,
                Some(at) if target.extension().is_some_and(|end| end == "md") => {
                    anchors(&std::fs::read_to_string(&target).unwrap()).contains(&at.to_owned())
                }
                _ => true,
            };
            if !found {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

/// The commands of `mnar`, as its help lists them.
fn names() -> Vec<String> {
    let help = run("mnar --help", Path::new("."));
    let help = String::from_utf8(help.stdout).unwrap();
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| name != "help").collect()
}

/// The reference holds the help of every command. `MNAR_BLESS=1 cargo test` writes it again.
#[test]
fn the_reference_is_that_of_the_program() {
    let mut page = "# Commands and options\n\nThis page is written by the program: `MNAR_BLESS=1 cargo test --workspace --test docs`. \
        `mnar COMMAND --help` prints the same.\n"
        .to_owned();
    for name in names() {
        let help = run(&format!("mnar {name} --help"), Path::new("."));
        let help = String::from_utf8(help.stdout).unwrap();
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        page.push_str(&format!("\n## mnar {name}\n\n```text\n{}\n```\n", lines.join("\n").trim_end()));
    }
    let path = root().join("docs/reference.md");
    if std::env::var_os("MNAR_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), page);
}

/// A Python with scikit-learn, pandas and Pillow: `MNAR_PYTHON`, or the one in the path.
fn python() -> Option<String> {
    let python = std::env::var("MNAR_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let able = Command::new(&python).args(["-c", "import sklearn, pandas, PIL"]).output();
    able.is_ok_and(|output| output.status.success()).then_some(python)
}

/// Whether a line is as the page shows it; the page may leave out its end.
fn shows(shown: &str, printed: &str) -> bool {
    match shown.strip_suffix("...") {
        Some(begin) => printed.starts_with(begin.trim_end()),
        None => shown.trim_end() == printed.trim_end(),
    }
}

/// The first line that the page shows and the program does not print. A line `...` stands for any number of lines.
fn difference<'a>(shown: &'a str, printed: &str) -> Option<&'a str> {
    let mut printed = printed.lines();
    let mut skipping = false;
    for line in shown.lines() {
        if line == "..." {
            skipping = true;
            continue;
        }
        let found = if skipping {
            printed.any(|printed| shows(line, printed))
        } else {
            printed.next().is_some_and(|printed| shows(line, printed))
        };
        if !found {
            return Some(line);
        }
        skipping = false;
    }
    None
}

/// The tutorial from its first line to its last: its Python is written to files, its commands run, and what they print is what the
/// page shows.
#[test]
fn the_tutorial_is_true() {
    let Some(python) = python() else {
        println!("skipped: no Python with scikit-learn, pandas and Pillow (set MNAR_PYTHON)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(root().join("docs/tutorial.md")).unwrap();
    let mut wrong = Vec::new();
    for block in blocks(&text) {
        let named = block.text.lines().next().and_then(|line| line.strip_prefix("# "));
        if let Some(name) = named.filter(|name| name.ends_with(".py")) {
            std::fs::write(folder.path().join(name), &block.text).unwrap();
        } else if block.text.starts_with("$ ") {
            for step in format!("\n{}", block.text).split("\n$ ").skip(1) {
                let (command, shown) = step.split_once('\n').unwrap_or((step, ""));
                let output = run(&command.replacen("python ", &format!("{python} "), 1), folder.path());
                let printed = String::from_utf8_lossy(&output.stdout);
                if !output.status.success() {
                    wrong.push(format!("$ {command}\nfailed: {}", String::from_utf8_lossy(&output.stderr)));
                } else if let Some(line) = difference(shown, &printed) {
                    wrong.push(format!("$ {command}\nthe page shows: {line}\nit prints:\n{printed}"));
                }
            }
        } else {
            for command in commands(&block) {
                let output = run(&command, folder.path());
                if !output.status.success() {
                    wrong.push(format!("{command}\nfailed: {}", String::from_utf8_lossy(&output.stderr)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
