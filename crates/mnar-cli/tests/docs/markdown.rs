//! As much of Markdown as the documentation uses.

use std::path::{Path, PathBuf};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The pages for users and developers.
pub(crate) fn pages() -> Vec<PathBuf> {
    let named =
        ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "bindings/python/README.md"].map(|page| root().join(page));
    let docs = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    named.into_iter().chain(docs.filter(|path| path.extension().is_some_and(|end| end == "md"))).collect()
}

/// A block between fences.
pub(crate) struct Block {
    language: String,
    pub(crate) text: String,
}

impl Block {
    /// Whether it holds commands and what they print.
    pub(crate) fn is_shell(&self) -> bool {
        matches!(self.language.as_str(), "" | "sh" | "console")
    }
}

/// All fenced blocks of a page.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in page.lines() {
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(language), None) => open = Some(Block { language: language.trim().to_owned(), text: String::new() }),
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some(mut block)) => {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    blocks
}

/// The page without its fenced blocks.
fn prose(page: &str) -> String {
    let mut inside = false;
    let mut out = String::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// The targets of links and images, but for those on the web.
pub(crate) fn links(page: &str) -> Vec<String> {
    let prose = prose(page);
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.trim());
    targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:")).map(str::to_owned).collect()
}

/// The anchors of the headings, as GitHub makes them.
pub(crate) fn anchors(page: &str) -> Vec<String> {
    let of = |heading: &str| {
        let kept = |c: char| c.is_alphanumeric() || c == '-' || c == '_' || c == ' ';
        heading.to_lowercase().chars().filter(|c| kept(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    let prose = prose(page);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| of(line.trim_start_matches('#').trim())).collect()
}
