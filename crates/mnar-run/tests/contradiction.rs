//! Numbers that the user states, and that the labels rule out, are pointed out.
#![allow(clippy::unwrap_used)] // helpers of tests are not seen as tests

use mnar_run::{FitOptions, FitRequest, NetworkName, PerClass, fit};
use mnar_train::method::MethodName;

/// 150 rows of each class; 120 of the ill and 30 of the well are labelled. The warnings about numbers that were given.
fn warnings(method: MethodName, phi: Option<&str>, shares: Option<&str>) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "measured,state\n".to_owned();
    for row in 0..300 {
        let (ill, nth) = (row % 2, row / 2);
        let label = match (ill, nth % 5) {
            (1, 0..=3) => "ill",
            (0, 4) => "well",
            _ => "",
        };
        let noise = (row * 7919 % 300) as f64 / 100.0;
        text += &format!("{:.4},{label}\n", noise + 2.0 * f64::from(ill));
    }
    let data = folder.path().join("patients.csv");
    std::fs::write(&data, text).unwrap();
    let mut request = FitRequest::new(data.as_path(), folder.path().join("run"));
    let given = |numbers: Option<&str>| numbers.map(|numbers| PerClass::Text(numbers.to_owned()));
    request.options = FitOptions {
        label: Some("state".into()),
        method: Some(method),
        phi: given(phi),
        shares: given(shares),
        network: Some(NetworkName::Linear),
        epochs: Some(1),
        replicates: Some(0),
        permutations: Some(99),
        no_baseline: Some(true),
        ..Default::default()
    };
    let report = fit(&request, &()).unwrap();
    let json = std::fs::read_to_string(folder.path().join("run/report.json")).unwrap();
    let page = std::fs::read_to_string(folder.path().join("run/report.html")).unwrap();
    let about = |warning: &&String| warning.contains("contradict the data");
    let found: Vec<String> = report.findings.warnings.iter().filter(about).cloned().collect();
    for text in [&json, &page] {
        assert_eq!(text.contains("contradict the data"), !found.is_empty());
    }
    found
}

#[test]
fn phi_that_the_labels_rule_out() {
    assert!(warnings(MethodName::Oracle, Some("ill=.8,well=.2"), None).is_empty());
    let said = warnings(MethodName::Oracle, Some("ill=.1,well=.9"), None);
    let expected = "the given phi contradict the data: with them the labels stand for 1233 rows, and there are 300; the model was trained with them all the same";
    assert_eq!(said, [expected]);
}

#[test]
fn shares_that_the_labels_rule_out() {
    assert!(warnings(MethodName::KnownShares, None, Some("ill=.5,well=.5")).is_empty());
    let said = warnings(MethodName::KnownShares, None, Some("ill=.1,well=.9"));
    let expected = "the given shares contradict the data: 40.0% of all rows carry the label `ill`, whose share is said to be 10.0%; the model was trained with them all the same";
    assert_eq!(said, [expected]);
}
