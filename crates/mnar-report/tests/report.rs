//! The report as text, JSON, page and figures.
#![allow(clippy::unwrap_used)] // helpers of tests are not seen as tests

mod samples;

use mnar::analysis::{EstimateSettings, Evidence, TestSettings, VerdictKind};
use mnar::{Labels, PosteriorKind, Posteriors};
use mnar_report::{Comparison, Level, Report, ReportError, SCHEMA, estimate_text, test_text};
use samples::{KINDS, bare, full, hostile, hostile_columns, judged, kind_name, plain};
use serde_json::{Value, json};
use std::error::Error as _;
use std::path::Path;

/// The committed schema is that of the code. `MNAR_BLESS=1 cargo test` writes it again.
#[test]
fn the_committed_schema_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/report.v2.json");
    if std::env::var_os("MNAR_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, Report::json_schema()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), Report::json_schema());
}

/// Every part of a report has a type in the schema; only the settings may hold anything.
#[test]
fn the_schema_types_every_part() {
    let schema: Value = serde_json::from_str(&Report::json_schema()).unwrap();
    for name in ["Identifiability", "SelfMaskingCheck", "SensitivityPoint", "ReliabilityBin", "Bcts", "EpochRecord"] {
        assert!(schema["$defs"][name]["properties"].is_object(), "{name}");
    }
    let untyped: Vec<&str> = schema["properties"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, property)| property["type"].is_null() && property["anyOf"].is_null() && property["$ref"].is_null())
        .map(|(name, _)| name.as_str())
        .collect();
    assert!(untyped.is_empty(), "{untyped:?}");
}

#[test]
fn json_can_be_read_again() {
    let kinds = KINDS.map(|kind| judged(kind, None));
    for report in [full(plain(3)), full(hostile()), bare()].into_iter().chain(kinds) {
        let json = report.to_json().unwrap();
        assert_eq!(Report::from_json(&json).unwrap().to_json().unwrap(), json);
    }
}

/// The keys that programs rely on stand at the top level, each of them once.
#[test]
fn the_json_is_flat() {
    let json = full(plain(3)).to_json().unwrap();
    let value: Value = serde_json::from_str(&json).unwrap();
    let keys = "schema version title created command settings computed_on seconds seed warnings classes n n_labelled \
        labelled_per_class phi phi_se phi_ci95 prevalence prevalence_ci95 method converged test statistic p_value df \
        reject training uncertain truth classifier calibration";
    for key in keys.split_whitespace() {
        assert!(value.get(key).is_some(), "{key}");
        assert_eq!(json.matches(&format!("\n  \"{key}\":")).count(), 1, "{key}");
    }
    assert_eq!(value["interval"]["kind"], "bootstrap-with-refit");
    assert_eq!(value["training"]["debiased"]["ended"], "finished");
}

#[test]
fn other_json_is_refused() {
    let error = Report::from_json("[1, 2").unwrap_err();
    assert_eq!(error.to_string(), "this is not the report of a run");
    assert!(error.source().unwrap().to_string().contains("line 1"));
    assert!(matches!(Report::from_json("{}"), Err(ReportError::NotAReport { .. })));
    let with = |path: &str, value: Value| {
        let mut report: Value = serde_json::from_str(&full(plain(3)).to_json().unwrap()).unwrap();
        *report.pointer_mut(path).unwrap() = value;
        Report::from_json(&report.to_string()).unwrap_err()
    };
    assert!(with("/schema", json!(99)).to_string().contains("use a newer mnar"));
    let why = |error: ReportError| error.source().unwrap().to_string();
    assert!(why(with("/phi", json!([0.5, 0.5, 1.5]))).contains("phi"));
    assert!(why(with("/training/debiased/ended", json!("bored"))).contains("bored"));
    // A broken test is not the same as no test.
    assert!(why(with("/p_value", json!("small"))).contains("invalid type"));
}

/// A list that does not have one value per class would fail only when it is drawn.
#[test]
fn uneven_lists_are_refused() {
    let shortened = |path: &str| {
        let mut report: Value = serde_json::from_str(&full(plain(3)).to_json().unwrap()).unwrap();
        report.pointer_mut(path).unwrap().as_array_mut().unwrap().pop();
        Report::from_json(&report.to_string()).unwrap_err().to_string()
    };
    assert_eq!(shortened("/phi"), "the report has 3 classes, but `phi` has 2 values");
    let lists = [
        ("/labelled_per_class", "labelled_per_class"),
        ("/phi_ci95", "phi_ci95"),
        ("/prevalence", "prevalence"),
        ("/prevalence_ci95", "prevalence_ci95"),
        ("/unlabelled_shares", "unlabelled_shares"),
        ("/classifier/confusion", "classifier.confusion"),
        ("/classifier/confusion/1", "classifier.confusion"),
        ("/sensitivity/2/phi", "sensitivity.phi"),
        ("/sensitivity/2/prevalence", "sensitivity.prevalence"),
        ("/training/phi", "training.phi"),
        ("/training/baseline/held_out_accuracy_per_class", "held_out_accuracy_per_class"),
        ("/truth/phi", "truth.phi"),
        ("/truth/prevalence", "truth.prevalence"),
    ];
    for (path, field) in lists {
        assert!(shortened(path).ends_with(&format!("`{field}` has 2 values")), "{path}");
    }
}

fn schema_1(name: &str) -> (Value, Report) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schema1").join(name);
    let text = std::fs::read_to_string(path).expect("a file");
    (serde_json::from_str(&text).expect("JSON"), Report::from_json(&text).expect("a report"))
}

/// Reports of layout 1 keep their numbers, and their pages can be drawn again.
#[test]
fn reports_of_layout_1_are_upgraded() {
    for name in ["demo.json", "fit.json", "complete.json"] {
        let (old, report) = schema_1(name);
        let new: Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
        assert_eq!(new["schema"], SCHEMA);
        let kept = "version title created command classes n n_labelled labelled_per_class phi phi_se phi_ci95 prevalence \
            prevalence_ci95 method converged test statistic df p_value p_value_chi_square draws condition self_masking \
            identifiability effective_sample_size uncertain truth settings seed computed_on seconds warnings";
        for key in kept.split_whitespace() {
            assert_eq!(new.get(key), old.get(key), "{name}: {key}");
        }
        assert_eq!(new["interval"]["kind"], old["interval"], "{name}");
        assert_eq!(new["training"]["debiased"], old["debiased"], "{name}");
        assert_eq!(new["training"]["baseline"], old["baseline"], "{name}");
        assert_eq!(new["training"]["phi"], old["training_phi"], "{name}");
        assert_eq!(new["classifier"]["confusion"], old["confusion"], "{name}");
        assert_eq!(new["classifier"]["reliability_after"], old["calibration"]["after"], "{name}");
        assert_eq!(new["calibration"]["ece_after"], old["calibration"]["error_after"], "{name}");
        assert!(report.to_html().unwrap().contains("How common is each class really?"), "{name}");
        assert!(!report.to_text().is_empty(), "{name}");
        report.figures().iter().for_each(|figure| assert!(figure.svg().is_ok(), "{name}: {}", figure.id));
    }
    let (_, demo) = schema_1("demo.json");
    assert_eq!(demo.rejects(), Some(true));
    assert_eq!(demo.figures().len(), 7);
    assert_eq!(demo.findings.interval.replicates, 200);
    // The shares of the unlabelled rows follow from those of all rows.
    assert!((demo.findings.unlabelled_shares.iter().sum::<f64>() - 1.0).abs() < 1e-6);
    let (_, fit) = schema_1("fit.json");
    assert_eq!(fit.findings.classifier.unwrap().out_of_fold_accuracy, 0.8839285714285714);
    assert_eq!(fit.training.unwrap().debiased.history.len(), 3);
    let (_, complete) = schema_1("complete.json");
    assert!(complete.verdict().starts_with("No label is missing"));
}

/// No name from the data may end an element or begin one.
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
    // A matrix of 10,000 cells cannot be read.
    assert!(!page.contains("data-figure=\"confusion\""));
    assert!(page.contains("data-figure=\"phi\""));
}

/// The page asks nothing of the network: it has no addresses except those of namespaces.
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
    for kind in KINDS {
        let rates = judged(kind, None).figures().remove(2);
        assert_eq!(rates.id, "rates");
        assert!(rates.svg().unwrap().contains("site (and 4 smaller groups)"));
    }
}

/// Numbers on the page carry the path at which the JSON has them.
#[test]
fn paths_on_the_page_lead_to_numbers_in_the_json() {
    for report in [full(plain(3))].into_iter().chain(KINDS.map(|kind| judged(kind, None))) {
        let json: Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
        let page = report.to_html().unwrap();
        let paths: Vec<&str> = page.split("data-path=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(paths.len() > 50);
        for path in paths {
            let pointer = format!("/{}", path.replace('.', "/"));
            assert!(json.pointer(&pointer).is_some_and(Value::is_number), "{path}");
        }
    }
}

#[test]
fn words_follow_the_numbers() {
    let mut report = full(plain(3));
    assert!(report.verdict().starts_with("These labels are informative (p = 0.0123)"));
    assert!(report.verdict().contains("`class 0` is about 3.0 times as likely to be labelled as class `class 2`"));
    let level = |report: &Report, about: &str| report.lights().iter().find(|light| light.about == about).unwrap().level;
    assert_eq!(level(&report, "Hard and easy rows"), Level::Careful);
    assert_eq!(level(&report, "Telling the classes apart"), Level::Bad);
    assert!(report.next_steps()[0].contains("failed checks"));
    let page = report.to_html().unwrap();
    assert!(page.contains("data-level=\"bad\"") && page.contains("Telling the classes apart: problem found"));
    // A failed check stands before every number, and changes the headline.
    let reason = "Do not rely on these numbers yet: the classes are not told apart well enough";
    assert!(page.contains(&format!("<h1 data-answer=\"headline\">{reason}</h1>")));
    assert!(page.find("id=\"failed\"").unwrap() < page.find("data-answer=\"prevalence\"").unwrap());
    assert!(report.to_text().starts_with(reason));

    let test = report.test.as_mut().unwrap();
    (test.result.p_value, test.reject) = (0.3, false);
    assert!(report.verdict().starts_with("No sign"));
    assert!(report.next_steps().iter().any(|step| step.contains("not proof")));
    report.findings.self_masking.as_mut().unwrap().p_value = 0.34;
    let light = report.lights().remove(0);
    assert_eq!(light.sentence, "No sign that labels depend on more than the class (p = 0.3400).");
    assert_eq!(light.level.name(), "no problem found");
    assert!(report.to_text().contains("No problem found: hard and easy rows"), "{}", report.to_text());
    report.findings.converged = false;
    assert_eq!(level(&report, "Convergence"), Level::Bad);

    report.test = None;
    assert!(report.verdict().contains("not tested"));
    assert!(report.to_html().unwrap().contains("It was not tested whether these labels are informative."));
    let bare = bare();
    assert!(bare.verdict().starts_with("No label is missing"));
    assert!(bare.lights().is_empty());
    assert!(bare.to_html().unwrap().contains("<h1 data-answer=\"headline\">No labels are missing</h1>"));
}

/// The committed texts are those of the code. `MNAR_BLESS=1 cargo test` writes them again.
#[test]
fn every_kind_of_verdict_has_its_text() {
    for kind in KINDS {
        let name = kind_name(kind);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/text/{name}.txt"));
        let report = judged(kind, None);
        let text = estimate_text(&report.findings, &EstimateSettings::default(), |_| None);
        if std::env::var_os("MNAR_BLESS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{name}");
        let verdict = report.findings.verdict.as_ref().unwrap();
        let tables = report.to_text();
        let lines = tables.lines().filter(|line| line.starts_with("  ") && line.contains('%') && !line.contains(':'));
        for line in lines {
            assert!(line.chars().count() <= 80, "{line}");
        }
        // The same answers in the same order.
        let order = ["\n  class ", "\nWho got labelled?  ", "\nWhat was checked?  ", "\nWhat next?  1. "];
        for text in [&text, &tables] {
            let places: Vec<usize> = order.iter().map(|question| text.find(question).unwrap()).collect();
            assert!(places.is_sorted(), "{name}: {text}");
            assert_eq!(text.lines().next(), tables.lines().next(), "{name}");
        }
        // Besides the table and its heading, and warnings, these are ten lines.
        let answers = tables.lines().filter(|line| !line.is_empty() && !line.starts_with("warning: ")).count();
        assert!(answers - (report.findings.about.classes.len() + 1) <= 10, "{name}: {tables}");
        let answer =
            |text: &str, question: &str| text.split(question).nth(1).unwrap().lines().next().unwrap().to_owned();
        for question in ["Who got labelled?", "What was checked?", "What next?"] {
            assert_eq!(answer(&text, question), answer(&tables, question), "{name}");
        }
        for text in [text, report.to_text()] {
            assert!(text.contains(&verdict.headline) && text.contains(&verdict.cannot_know), "{name}");
            let doubted = text.contains("The numbers below assume a mechanism");
            assert_eq!(doubted, kind == VerdictKind::Unclear, "{name}");
        }
    }
}

#[test]
fn words_follow_the_verdict() {
    for kind in KINDS {
        let (name, report) = (kind_name(kind), judged(kind, None));
        let lights = report.lights();
        assert_eq!(lights[0].about, "Other influences", "{name}");
        let expected = if kind == VerdictKind::Unclear { Level::Bad } else { Level::Good };
        assert_eq!(lights[0].level, expected, "{name}");
        let steps = report.next_steps();
        let uses_shares = steps.iter().any(|step| step.contains("use the estimated shares"));
        assert_eq!(uses_shares, !matches!(kind, VerdictKind::Unclear | VerdictKind::AtRandom), "{name}");
        let page = report.to_html().unwrap();
        let headline = page.split("data-answer=\"headline\">").nth(1).unwrap().split("</h1>").next().unwrap();
        assert_eq!(headline.starts_with("Do not rely"), kind == VerdictKind::Unclear, "{name}: {headline}");
        assert_eq!(headline.contains("of all rows (95% interval "), kind != VerdictKind::Unclear, "{name}: {headline}");
        assert!(page.contains("data-figure=\"rates\"") && page.contains("Is it chance?"), "{name}");
        assert_eq!(
            page.contains("Odds of a label by column"),
            !report.findings.labelling.as_ref().unwrap().given.is_empty(),
            "{name}"
        );
        assert!(page.contains("data-path=\"prevalence_ci95.0.1\""), "{name}");
        let seen = page.split("<script").next().unwrap().to_lowercase().replace("how good", "");
        assert!(!seen.contains("believable") && !seen.contains(" good"), "{name}");
    }
    let unclear = judged(VerdictKind::Unclear, None);
    assert!(unclear.next_steps()[0].starts_with("First settle what decides"));
    assert!(unclear.next_steps()[1].contains("`site` and `age`"));
    // Shares that come from an audit rest on no mechanism.
    let mut audited: Value = serde_json::from_str(&unclear.to_json().unwrap()).unwrap();
    audited["audit"] = json!({
        "rows": 90, "reliance": 0.7, "p_value": 0.002, "contradicts": true, "mechanism_prevalence": [0.4, 0.6],
        "audited_shares": [0.35, 0.65],
    });
    audited["next"] = json!([]);
    let audited = Report::from_json(&audited.to_string()).unwrap();
    assert!(audited.next_steps()[0].contains("the 90 audited rows"));
    assert!(!audited.to_text().contains("The numbers below assume"));
    assert!(!audited.to_html().unwrap().contains("p class=\"doubtful\""));
    // Nothing in the checks says why: the verdict itself does.
    let mut unclear = unclear;
    let labelling = unclear.findings.labelling.as_mut().unwrap();
    labelling.class_enough.as_mut().unwrap().columns.iter_mut().for_each(|column| column.p_holm = 0.9);
    assert_eq!((unclear.lights()[0].about, unclear.lights()[0].level), ("Mechanism", Level::Bad));
    // Without columns, nothing was checked.
    unclear.findings.labelling.as_mut().unwrap().class_enough = None;
    assert!(unclear.lights().iter().any(|light| light.sentence.starts_with("Not checked")));
    assert!(unclear.to_html().unwrap().contains("Not checked: no columns were given"));
    // A verdict can stand alone.
    unclear.findings.labelling = None;
    assert!(unclear.to_html().is_ok() && unclear.to_text().contains("What was checked?"));
}

/// Names of columns and groups neither become HTML nor upset a terminal.
#[test]
fn names_of_columns_do_no_harm() {
    for kind in KINDS {
        let report = judged(kind, Some(hostile_columns()));
        let page = report.to_html().unwrap();
        assert!(!page.contains("<img src=x"), "an image came through");
        let texts = [report.to_text(), estimate_text(&report.findings, &EstimateSettings::default(), |_| None)];
        let svgs = report.figures().into_iter().map(|figure| figure.svg().unwrap());
        for text in texts.into_iter().chain(svgs) {
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
            assert!(!text.contains('\u{202e}'), "{text}");
        }
        let json = report.to_json().unwrap();
        assert_eq!(Report::from_json(&json).unwrap().to_json().unwrap(), json);
    }
}

#[test]
fn tables_fit_eighty_columns() {
    for line in full(plain(12)).to_text().lines().filter(|line| line.starts_with("  class ")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

/// Findings as the core makes them, in the words of a terminal.
#[test]
fn estimates_and_tests_are_put_into_words() {
    let p = ndarray::Array2::from_shape_fn((400, 2), |(i, k)| if (i % 2 == 0) == (k == 0) { 0.9 } else { 0.1 });
    let labels = Labels::from_values((0..400).map(|i| match i % 20 {
        0 | 2 | 4 | 6 | 8 => Some("malignant"),
        1 => Some("benign"),
        _ => None,
    }))
    .unwrap();
    let posteriors = Posteriors::new(p, PosteriorKind::Labelled).unwrap();
    let evidence = Evidence::predictions(&posteriors, &labels);
    let settings = EstimateSettings { width: Some(0.1), sensitivity: vec![0.5, 1.0, 2.0], ..Default::default() };
    let mut found = settings.run(&evidence, &()).unwrap();
    let text = estimate_text(&found, &settings, |_| Some("do this".to_owned()));
    let verdict = &found.verdict.as_ref().unwrap().headline;
    assert!(text.contains(&format!("\nWho got labelled?  {verdict}\n")), "{text}");
    assert!(text.contains("\n               do this\n"), "{text}");
    // Known mechanisms and streamed estimates have no verdict.
    (found.verdict, found.labelling) = (None, None);
    let text = estimate_text(&found, &settings, |_| None);
    assert!(
        text.contains("It was not tested whether these labels are informative. By this estimate, class `malignant`"),
        "{text}"
    );
    let table: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("  class ")).take(3).collect();
    let heading = table[0].split("  ").map(str::trim).filter(|cell| !cell.is_empty());
    assert_eq!(
        heading.collect::<Vec<_>>(),
        ["class", "of all rows", "95% interval", "of the labels", "phi", "95% interval"]
    );
    assert!(
        table[2].contains("malignant") && table[2].contains("83.3% (100)") && text.contains("of width 0.1"),
        "{text}"
    );
    assert!(table.iter().all(|line| line.chars().count() <= 80), "{text}");

    let settings = TestSettings { power: Some(0.8), ..Default::default() };
    let mut found = settings.run(&evidence, &()).unwrap();
    let text = test_text(&found, &settings, false, |_| Some("do that".to_owned()));
    let verdict = found.verdict.take().unwrap();
    assert!(text.starts_with(&verdict.headline) && text.contains(&verdict.cannot_know), "{text}");
    assert!(text.contains("\nWhat was checked?\n") && text.contains("\n               do that\n"), "{text}");
    assert!(text.contains("has not seen them") && text.contains("80% would need about"), "{text}");
    assert!(!text.contains("--"), "{text}");
    found.labelling = judged(VerdictKind::ByColumns, None).findings.labelling;
    let text = test_text(&found, &settings, false, |_| None);
    assert!(text.starts_with("These labels are informative (p = 0.0001)"), "{text}");
    assert!(text.contains("Labelling rate by column") && text.contains("odds ratio"), "{text}");
    assert!(!test_text(&found, &settings, true, |_| None).contains("has not seen them"));
}

/// The evaluation of the cross-fitted classifier says whose numbers they are, in text and on the page.
#[test]
fn the_quality_of_the_model_is_shown_with_its_owner() {
    let report = full(plain(3));
    let text = report.to_text();
    let accuracy = "Cross-fitted softmax regression: accuracy 81.0% among all rows (95% interval 78.0% to 84.0%); 85.0% among the labelled rows.";
    assert!(text.contains(accuracy), "{text}");
    assert!(text.contains("How good?  The final, debiased model: accuracy "), "{text}");
    let page = report.to_html().unwrap();
    let place = |words: &str| page.find(words).unwrap_or_else(|| panic!("{words}"));
    assert!(place("The final, debiased model: accuracy ") < place("Cross-fitted softmax regression: accuracy "));
    assert!(place("The biased model, for comparison") < place("More about the cross-fitted classifier"));
    assert!(page.contains("of softmax regression, cross-fitted") && page.contains("another one, a network"));
    assert!(page.contains("changes the accuracy by +3.1 percentage points (95% interval +1.1 to +5.2"), "the gain");
    assert!(page.contains("data-path=\"evaluation.differences.0.corrected\""));
    let own = report.clone().with_evaluation(samples::evaluation().with_final_model(true)).to_html().unwrap();
    assert!(own.contains("The final model, softmax regression, cross-fitted: accuracy "));
    assert!(own.contains("the same classifier, trained on all labels") && !own.contains("another one"));
    let none = report.with_evaluation(None).with_training(None);
    assert!(!none.to_text().contains("How good") && none.to_html().unwrap().contains("No model was evaluated."));
}

/// The accuracy of every group stands below that of all rows, where there are groups.
#[test]
fn the_quality_of_the_model_is_shown_by_group() {
    let report = full(plain(3));
    let mut value: Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    value["evaluation"]["by"] = json!("ward");
    let mut metric = value["evaluation"]["metrics"][4].clone();
    (metric["group"], metric["corrected"]) = (json!("north"), json!(0.71));
    value["evaluation"]["metrics"].as_array_mut().unwrap().push(metric);
    let report = Report::from_json(&value.to_string()).unwrap();
    let page = report.to_html().unwrap();
    assert!(page.contains("data-path=\"evaluation.metrics.8.corrected\" data-value=\"0.71\""));
    assert!(report.to_text().contains("accuracy 81.0% among all rows"), "the group is not taken for all rows");
}

/// The page answers in the order in which a reader asks, and the terminal in the same.
#[test]
fn the_page_has_the_order_of_the_reader() {
    let order = |text: &str, marks: &[&str]| {
        let at: Vec<usize> = marks.iter().map(|mark| text.find(mark).unwrap_or_else(|| panic!("{mark}"))).collect();
        assert!(at.is_sorted(), "{at:?}");
    };
    let report = full(plain(3));
    let sections = ["verdict", "prevalence", "labelling", "quality", "checks", "next", "label-next", "methods", "run"];
    let sections = sections.map(|id| format!("<section id=\"{id}\""));
    let page = report.to_html().unwrap();
    order(&page, &sections.iter().map(String::as_str).collect::<Vec<_>>());
    let asked = ["of all rows", "Who got labelled?", "How good?", "What was checked?", "What next?", "What to label?"];
    order(&report.to_text(), &asked);
    // A methods paragraph with the numbers of this run, and what to cite.
    assert!(page.contains("Estimated class shares (95% interval; share of the labels)") && page.contains("Saerens"));
    // Commands that can be pasted.
    let page = judged(VerdictKind::Unclear, None).to_html().unwrap();
    assert!(
        page.contains("mnar fit patients.csv --label y --given &#39;site,age&#39;")
            || page.contains("--given 'site,age'")
    );
}

#[test]
fn runs_are_compared() {
    let [.., by_columns, by_both, unclear] = KINDS.map(|kind| judged(kind, None));
    let mut other = by_both.clone();
    other.provenance =
        other.provenance.with_settings(serde_json::Map::from_iter([("given".to_owned(), json!("site"))]));
    let runs = vec![("a".to_owned(), by_columns), ("b".to_owned(), other), ("<b>c".to_owned(), unclear)];
    let comparison = Comparison::new(runs).unwrap();
    let (text, page) = (comparison.to_text(), comparison.to_html().unwrap());
    for said in ["33.3% (26.7% to 40.0%)", "Settings that differ\n  given: – | site | –", "<b>c: Unclear"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(page.contains("data-path=\"runs.1.report.prevalence.0\"") && !page.contains("<b>c"));
    assert!(page.contains("Do not rely on every run"));
    let error = Comparison::new(vec![("a".to_owned(), bare()), ("b".to_owned(), full(plain(1)))]);
    assert!(error.is_ok(), "`class 0` is in both");
    assert!(matches!(Comparison::new(vec![("a".to_owned(), bare())]), Err(ReportError::NothingToCompare)));
}

#[test]
fn an_accuracy_above_one_is_refused() {
    let mut value: Value = serde_json::from_str(&full(plain(3)).to_json().unwrap()).unwrap();
    value["evaluation"]["metrics"][0]["corrected"] = json!(1.5);
    let error = Report::from_json(&value.to_string()).unwrap_err();
    assert!(matches!(error, ReportError::OutOfRange { field: "evaluation.metrics", .. }), "{error}");
}
