//! What a browser may do with the page.
#![allow(clippy::unwrap_used, dead_code)]

mod samples;

use mnar_report::{Report, ReportError};
use samples::{full, hostile, plain};
use serde_json::{Value, json};

/// The value of the policy, and the scripts that a browser would run.
fn parts(page: &str) -> (&str, Vec<&str>) {
    let policy = page.split_once("Content-Security-Policy\" content=\"").unwrap().1.split_once('"').unwrap().0;
    let scripts = page.split("<script>").skip(1).map(|rest| rest.split_once("</script>").unwrap().0).collect();
    (policy, scripts)
}

#[test]
fn the_policy_allows_the_scripts_of_the_page_and_nothing_else() {
    let page = full(hostile()).to_html().unwrap();
    let (policy, scripts) = parts(&page);
    assert_eq!(scripts.len(), 3);
    for rule in ["default-src 'none'; ", "img-src data:; ", "base-uri 'none'; ", "form-action 'none'"] {
        assert!(policy.contains(rule), "{policy}");
    }
    let scripts_allowed = policy.split("; ").find(|rule| rule.starts_with("script-src")).unwrap();
    // One hash each, and no word that would let anything else run.
    assert_eq!(scripts_allowed.matches("'sha256-").count(), 3);
    assert_eq!(scripts_allowed.split(' ').count(), 4, "{scripts_allowed}");
    // The policy stands before anything that it applies to.
    assert!(page.find("Content-Security-Policy").unwrap() < page.find("<style>").unwrap());
    assert_eq!(page.matches("<style>").count(), 1);
}

/// The address of an image on the web would tell its owner who opens the report, and when.
#[test]
fn only_images_within_the_report_are_shown() {
    let report = full(plain(3));
    let mut value: Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    assert!(!value["uncertain"].as_array().unwrap().is_empty());
    for address in [
        "https://example.org/pixel.png",
        "//example.org/pixel.png",
        "file:///etc/passwd",
        "data:image/svg+xml;base64,AAAA",
        "data:text/html;base64,AAAA",
        "data:image/png;base64,AA\" onerror=\"alert(1)",
        "data:image/png;base64,",
        "javascript:alert(1)",
        "",
    ] {
        value["uncertain"][0]["thumbnail"] = json!(address);
        let error = Report::from_json(&value.to_string()).unwrap_err();
        assert!(matches!(error, ReportError::Thumbnail { .. }), "{address}: {error}");
        // A report made in memory is drawn without it.
        let mut made = report.clone();
        made.uncertain[0].thumbnail = Some(address.to_owned());
        let page = made.to_html().unwrap();
        assert!(address.is_empty() || !page.contains(&format!("src=\"{address}")), "{address}");
    }
    value["uncertain"][0]["thumbnail"] = json!("data:image/png;base64,Ag==");
    let page = Report::from_json(&value.to_string()).unwrap().to_html().unwrap();
    assert!(page.contains("<img src=\"data:image/png;base64,Ag==\""));
}

/// The page of an evaluation has the same policy, and names of classes and groups do not become HTML.
#[test]
fn the_page_of_an_evaluation_is_as_safe() {
    use mnar::analysis::{EstimateSettings, Evidence};
    use mnar::evaluate::{EvaluateSettings, Model, Scores};
    use mnar::{Labels, PosteriorKind, Posteriors};
    let name = "<img src=x onerror=\"window.__injected=1\">";
    let p = ndarray::Array2::from_shape_fn((300, 2), |(i, k)| if (i % 3 == 0) == (k == 0) { 0.8 } else { 0.2 });
    let label = |i: usize| match i % 10 {
        0..4 => Some(if i.is_multiple_of(3) { name } else { "b" }),
        _ => None,
    };
    let labels = Labels::with_names((0..300).map(label), vec![name.to_owned(), "b".to_owned()]).unwrap();
    let p = Posteriors::new(p, PosteriorKind::Labelled).unwrap();
    let estimate = EstimateSettings { replicates: Some(10), ..Default::default() };
    let settings = EvaluateSettings { estimate, curves: true, ..Default::default() };
    let model = Model { name: name.to_owned(), scores: Scores::Probabilities(&p) };
    let found = settings.run(&Evidence::predictions(&p, &labels), &[model], &()).unwrap();
    let page = mnar_report::evaluate_html(&found, &mnar_report::Provenance::new(name)).unwrap();
    let report = full(hostile()).to_html().unwrap();
    assert_eq!(parts(&page).0, parts(&report).0);
    assert_eq!(parts(&page).1, parts(&report).1);
    assert!(!page.contains("<img") && page.contains("&lt;img"));
    assert!(page.contains("data-figure=\"roc\"") && page.contains("data-figure=\"calibration\""));
}
