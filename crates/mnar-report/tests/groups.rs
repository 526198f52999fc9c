//! Class shares and phi per group, on the page and as text.
#![allow(clippy::unwrap_used, dead_code)]

mod samples;

use mnar::analysis::VerdictKind;
use mnar_report::Report;
use samples::{hostile_columns, judged};
use serde_json::{Value, json};

/// A report with several groups of a column, whose intervals come from replicates or are not there.
fn with_groups(column: &str, groups: usize, replicates: bool) -> Report {
    let report = judged(VerdictKind::ByClass, None);
    let mut value: Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    let pair = |low: f64, high: f64| replicates.then(|| json!([[low, high], [1.0 - high, 1.0 - low]]));
    let group = |i: usize| {
        let share = 0.2 + 0.5 * i as f64 / groups as f64;
        json!({
            "group": format!("{column} {i}"), "n": 100 + i, "n_labelled": 40,
            "phi": [0.6, if i == 1 { Value::Null } else { json!(0.3) }],
            "phi_ci95": pair(0.5, 0.7), "prevalence": [share, 1.0 - share], "prevalence_ci95": pair(share - 0.1, share + 0.1),
            "prevalence_pooled": replicates.then(|| json!([share, 1.0 - share])),
            "prevalence_pooled_ci95": pair(share - 0.05, share + 0.05),
            "totals": [share * (100 + i) as f64, (1.0 - share) * (100 + i) as f64],
        })
    };
    let test = replicates.then(|| json!({ "statistic": 12.34, "df": groups - 1, "p_value": 0.0123 }));
    value["by"] = json!({ "column": column, "homogeneity": test });
    value["groups"] = (0..groups).map(group).collect();
    Report::from_json(&value.to_string()).unwrap()
}

#[test]
fn the_page_has_what_the_text_has() {
    let report = with_groups("ward", 3, true);
    let (page, text) = (report.to_html().unwrap(), report.to_text());
    for said in ["By ward", "ward 2", "p = 0.0123", "statistic 12.3 on 2 degrees of freedom"] {
        assert!(page.contains(said), "{said}");
        assert!(text.contains(said), "{said}: {text}");
    }
    // Shares, phi and totals of every group, each with its place in the JSON.
    for path in ["groups.2.prevalence.1", "groups.0.phi.1", "groups.1.totals.0", "groups.1.prevalence_pooled.0"] {
        assert!(page.contains(&format!("data-path=\"{path}\"")), "{path}");
    }
    // A class that a group does not seem to have has no phi.
    assert!(!page.contains("data-path=\"groups.1.phi.1\""));
    let ids: Vec<&str> = report.figures().iter().map(|figure| figure.id).collect();
    assert!(ids.contains(&"groups") && ids.contains(&"groups-phi"), "{ids:?}");
    for id in ["groups", "groups-phi"] {
        assert!(page.contains(&format!("id=\"figure-{id}\"")), "{id}");
    }
}

#[test]
fn without_replicates_or_groups_the_page_says_so_or_says_nothing() {
    let page = with_groups("ward", 2, false).to_html().unwrap();
    assert!(page.contains("was not tested") && page.contains("id=\"by-group\""));
    assert!(!judged(VerdictKind::ByClass, None).to_html().unwrap().contains("id=\"by-group\""));
}

#[test]
fn many_groups_and_hostile_names_are_cut_and_escaped() {
    for column in hostile_columns() {
        let page = with_groups(&column, 300, true).to_html().unwrap();
        assert!(!page.contains("<img src=x"), "{column}");
        assert!(page.contains("And 200 more lines"));
        assert!(page.contains("The 20 largest groups are drawn; the table has 280 more."));
    }
}
