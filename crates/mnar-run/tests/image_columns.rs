//! A run on images whose labels depend on the class and on the hospital, which is a column of the file of labels.
#![allow(clippy::unwrap_used)] // helpers of tests are not seen as tests

use mnar::analysis::Given;
use mnar_report::Report;
use mnar_run::{FitOptions, FitRequest, NetworkName, RunError, fit};
use mnar_train::method::MethodName;
use std::path::{Path, PathBuf};

const ROWS: usize = 3000;
const SIDE: usize = 4;
/// Patients of the second hospital are labelled far more often, and more of them are ill.
const CLASS_EFFECT: [f64; 2] = [-1.8, -0.6];
const SITE_EFFECT: [f64; 2] = [0.0, 2.4];
const ILL: [f64; 2] = [0.3, 0.6];

struct Files {
    images: PathBuf,
    labels: PathBuf,
    /// The share of the ill in each hospital.
    shares: [f64; 2],
}

/// Noisy images that are brighter where the patient is ill, as an idx file, and a table of labels and hospitals.
fn files(folder: &Path) -> Files {
    let mut state = 3u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut bytes = [0x0803u32, ROWS as u32, SIDE as u32, SIDE as u32].map(u32::to_be_bytes).concat();
    let mut text = "hospital,state,constant,filled_in\n".to_owned();
    let mut ill_rows = [0, 0];
    for row in 0..ROWS {
        let site = row % 2;
        let ill = usize::from(uniform() < ILL[site]);
        ill_rows[site] += ill;
        let shift = 14.0 * ill as f64;
        bytes.extend((0..SIDE * SIDE).map(|_| (60.0 + shift + 120.0 * uniform()) as u8));
        let logit = CLASS_EFFECT[ill] + SITE_EFFECT[site];
        let labelled = uniform() < 1.0 / (1.0 + (-logit).exp());
        let label = if labelled { ["well", "ill"][ill] } else { "" };
        let site = if row == 7 { "" } else { ["north", "south"][site] };
        text += &format!("{site},{label},1,{}\n", if labelled { "yes" } else { "no" });
    }
    let images = folder.join("train-images-idx3-ubyte");
    let labels = folder.join("labels.csv");
    std::fs::write(&images, bytes).unwrap();
    std::fs::write(&labels, text).unwrap();
    Files { images, labels, shares: ill_rows.map(|ill| f64::from(ill as u32) / (ROWS / 2) as f64) }
}

fn run(files: &Files, folder: PathBuf, change: impl FnOnce(&mut FitOptions)) -> Result<Report, RunError> {
    let mut request = FitRequest::new(files.images.as_path(), folder);
    request.options = FitOptions {
        label: Some("state".into()),
        labels: Some(files.labels.clone()),
        method: Some(MethodName::LabelShift),
        network: Some(NetworkName::Linear),
        epochs: Some(10),
        permutations: Some(99),
        no_baseline: Some(true),
        ..Default::default()
    };
    change(&mut request.options);
    fit(&request, &())
}

fn given(names: &[&str]) -> Option<Given> {
    Some(Given::Columns(names.iter().map(|name| (*name).to_owned()).collect()))
}

#[test]
fn a_run_on_images_corrects_for_the_hospital_in_the_file_of_labels() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    let folder_of = |name: &str| folder.path().join(name);
    // The furthest that the share of the ill in a hospital is off.
    let off = |report: &Report| {
        assert_eq!(report.findings.about.classes, ["ill", "well"]);
        let groups = report.findings.groups.as_ref().unwrap();
        let share = |name: &str| groups.iter().find(|group| group.group == name).unwrap().prevalence[0];
        (share("north") - files.shares[0]).abs().max((share("south") - files.shares[1]).abs())
    };
    let by_hospital = |folder: &str, given: Option<Given>| {
        let report = run(&files, folder_of(folder), |options| {
            (options.given, options.by) = (given, Some("hospital".to_owned()));
        });
        report.unwrap()
    };
    let (report, alone) = (by_hospital("site", given(&["hospital"])), by_hospital("alone", Some(Given::None)));
    assert!(off(&report) < 0.08 && off(&alone) < 0.08, "{} {}", off(&report), off(&alone));
    // The probability of a label of each class in each hospital, which the class alone cannot give. The terms are the names in
    // alphabetical order, and a missing name.
    let mechanism = report.findings.mechanism.as_ref().unwrap();
    for (class, effect) in [(0, CLASS_EFFECT[1]), (1, CLASS_EFFECT[0])] {
        for (site, terms) in [(0, [1.0, 0.0, 0.0]), (1, [0.0, 1.0, 0.0])] {
            let (found, truth) = (mechanism.phi(class, terms), 1.0 / (1.0 + (-effect - SITE_EFFECT[site]).exp()));
            assert!((found - truth).abs() < 0.1, "class {class}, hospital {site}: {found} {truth}");
        }
    }
    assert!(alone.findings.mechanism.is_none());
    // The odds of a label are exp(2.4) = 11 times as high in the south; the missing hospital is a name of its own.
    let effect = &report.findings.labelling.as_ref().unwrap().effects[0];
    assert_eq!(effect.column, "hospital");
    let odds = |name: &str| effect.terms.iter().find(|term| term.term == name).map(|term| term.odds_ratio);
    let ratio = odds("south").or_else(|| odds("north").map(|ratio| 1.0 / ratio)).unwrap();
    assert!((6.0..20.0).contains(&ratio), "{effect:?}");
    let groups: Vec<&str> = report.findings.groups.as_ref().unwrap().iter().map(|group| group.group.as_str()).collect();
    assert_eq!(groups, ["north", "south", "(missing)"]);
    // Training took the phi of every row, and the predictions of unlabelled rows show it.
    let written = std::fs::read_to_string(folder.path().join("site/predictions.csv")).unwrap();
    let other = std::fs::read_to_string(folder.path().join("alone/predictions.csv")).unwrap();
    assert_ne!(written, other);
    let model = std::fs::read_to_string(folder.path().join("site/model/model.json")).unwrap();
    assert!(model.contains("by_columns") && model.contains("hospital"), "{model}");
    let page = std::fs::read_to_string(folder.path().join("site/report.html")).unwrap();
    assert!(page.contains("By hospital"));
}

#[test]
fn columns_beside_images_are_refused_as_those_of_tables_are() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    let refused = |change: &dyn Fn(&mut FitOptions)| {
        run(&files, folder.path().join("run"), |options| change(options)).unwrap_err().to_string()
    };
    for (name, why) in [
        ("constant", "the same value in every row"),
        ("filled_in", "exactly which rows are labelled"),
        ("hospitals", "did you mean `hospital`?"),
        ("hospital*constant", "the same value in every row"),
    ] {
        let message = refused(&|options| options.given = given(&[name]));
        assert!(message.contains(why), "{name}: {message}");
    }
    assert!(refused(&|options| options.by = Some("constant".into())).contains("the same value in every row"));
    // Without a file of labels there are no columns.
    let message = refused(&|options| (options.given, options.labels) = (given(&["hospital"]), None));
    assert!(message.contains("no columns") || message.contains("labels"), "{message}");
}
