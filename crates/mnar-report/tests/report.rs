//! The report as text, JSON, page and figures.

mod samples;

use mnar_report::{Level, Report};
use samples::{bare, full, hostile, plain};
use std::path::Path;

/// The committed schema is that of the code. `MNAR_BLESS=1 cargo test` writes it anew.
#[test]
fn the_committed_schema_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/report.v1.json");
    if std::env::var_os("MNAR_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, Report::json_schema()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), Report::json_schema());
}

#[test]
fn json_can_be_read_again() {
    for report in [full(plain(3)), full(hostile()), bare()] {
        let json = report.to_json().unwrap();
        assert_eq!(Report::from_json(&json).unwrap().to_json().unwrap(), json);
    }
}

#[test]
fn what_is_no_report_is_refused() {
    let said = |text: &str| Report::from_json(text).unwrap_err().to_string();
    assert!(said("{}").contains("not the report of a run"));
    assert!(said("[1, 2").contains("not the report of a run"));
    let json = full(plain(3)).to_json().unwrap();
    assert!(said(&json.replace("\"schema\": 1", "\"schema\": 99")).contains("newer mnar"));
    let mut uneven = full(plain(3));
    uneven.phi.pop();
    assert_eq!(said(&uneven.to_json().unwrap()), "the report speaks of 3 classes, but `phi` has 2 values");
}

/// No name of the user's may end an element or begin one.
#[test]
fn names_do_not_become_html() {
    let page = full(hostile()).to_html().unwrap();
    assert!(!page.contains("<script>window.__injected"), "a script came through");
    assert!(!page.contains("<img src=x"), "an image came through");
    assert!(!page.contains("<b>bold"));
    assert!(page.contains("&lt;script&gt;window.__injected"));
}

#[test]
fn a_hundred_classes_stay_below_two_megabytes() {
    let page = full(plain(100)).to_html().unwrap();
    assert!(page.len() < 2_000_000, "{}", page.len());
    // A matrix of 10,000 cells is no picture.
    assert!(!page.contains("data-figure=\"confusion\""));
    assert!(page.contains("data-figure=\"phi\""));
}

/// The page asks nothing of the network: no address but those of namespaces.
#[test]
fn the_page_names_no_address_to_load() {
    let page = full(plain(3)).to_html().unwrap();
    for attribute in ["src=\"http", "href=\"http", "src=http", "@import", "url(http"] {
        assert!(!page.contains(attribute), "{attribute}");
    }
}

#[test]
fn every_figure_has_its_table_and_its_svg() {
    let report = full(hostile());
    let figures = report.figures();
    let ids: Vec<&str> = figures.iter().map(|figure| figure.id).collect();
    assert_eq!(
        ids,
        ["phi", "shares", "counts", "calibration", "accuracy", "training", "phi-by-epoch", "confusion", "sensitivity"]
    );
    for figure in figures {
        assert!(!figure.table.lines.is_empty(), "{}", figure.id);
        assert!(figure.table.lines.iter().all(|line| line.len() == figure.table.heading.len()), "{}", figure.id);
        let svg = figure.svg().unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{}", figure.id);
        assert!(!svg.contains("<script>"), "{}", figure.id);
        assert!(!svg.chars().any(|c| c.is_control() && c != '\n'), "{}", figure.id);
    }
    assert_eq!(bare().figures().len(), 3);
}

#[test]
fn words_follow_the_numbers() {
    let mut report = full(plain(3));
    assert!(report.verdict().starts_with("These labels are informative (p = 0.0123)"));
    assert!(report.verdict().contains("`class 0` is about 3.0 times as likely to be labelled as class `class 2`"));
    let level = |report: &Report, about: &str| report.lights().iter().find(|light| light.about == about).unwrap().level;
    assert_eq!(level(&report, "Self-masking"), Level::Careful);
    assert_eq!(level(&report, "Identifiability"), Level::Bad);
    assert!(report.next_steps().iter().any(|step| step.contains("red")));
    report.result.as_mut().unwrap().p_value = 0.3;
    assert!(report.verdict().starts_with("No sign"));
    assert!(report.next_steps().iter().any(|step| step.contains("no proof")));
    report.converged = false;
    assert_eq!(level(&report, "Convergence"), Level::Bad);
    assert!(bare().verdict().starts_with("All labels are there"));
}

#[test]
fn text_fits_eighty_columns() {
    for line in full(plain(12)).to_text().lines().filter(|line| line.starts_with("  ")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
