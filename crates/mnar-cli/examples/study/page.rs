//! The page that shows the results, made from the JSON files that are there.

use crate::{ACCURACY, COVERAGE, Results, SELF_MASKING, SIZE, accuracy, coverage, self_masking, size};
use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use std::path::Path;

/// A Markdown page.
pub(crate) fn page(folder: &Path) -> Result<String> {
    let mut page = String::from(
        "# Simulation study\n\n\
         Made by `cargo run --release -p mnar-cli --example study -- all --data DIR`, where DIR holds `mnist/` (idx\n\
         files) and `optdigits/`. Seeds are fixed, so the figures come out the same on any number of threads (but for\n\
         the seconds). In brackets: 95% Wilson intervals for the number of draws; for pooled shares, whose classes\n\
         depend on each other within a draw, the normal interval of a mean over draws.\n",
    );
    if let Some(results) = load::<size::Setting>(folder, SIZE)? {
        heading(&mut page, "Size and power", &results);
        size_tables(&mut page, &results.settings);
    }
    if let Some(results) = load::<coverage::Setting>(folder, COVERAGE)? {
        heading(&mut page, "Coverage of 95% intervals", &results);
        results.settings.iter().for_each(|setting| coverage_table(&mut page, setting));
    }
    if let Some(results) = load::<accuracy::Setting>(folder, ACCURACY)? {
        heading(&mut page, "Accuracy of phi on MNIST", &results);
        accuracy_tables(&mut page, &results.settings);
    }
    if let Some(results) = load::<self_masking::Setting>(folder, SELF_MASKING)? {
        heading(&mut page, "Checks of self-masking and of in-sample predictions", &results);
        self_masking_table(&mut page, &results.settings);
    }
    Ok(page)
}

fn load<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<Results<T>>> {
    let path = folder.join(name);
    match std::fs::read(&path) {
        Ok(bytes) => {
            let results =
                serde_json::from_slice(&bytes).with_context(|| format!("{} is of another study", path.display()))?;
            Ok(Some(results))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

fn heading<T>(page: &mut String, title: &str, results: &Results<T>) {
    page.push_str(&format!("\n## {title}\n\n`{}` ({:.0} s)\n", results.command, results.seconds));
    for skipped in &results.skipped {
        page.push_str(&format!("\nSkipped {skipped}.\n"));
    }
}

fn row(page: &mut String, cells: &[String]) {
    page.push_str(&format!("| {} |\n", cells.join(" | ")));
}

fn header(page: &mut String, cells: &[&str]) {
    page.push('\n');
    row(page, &cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>());
    page.push_str(&"|---".repeat(cells.len()));
    page.push_str("|\n");
}

/// Was the target met?
fn verdict(value: f64, target: [f64; 2]) -> &'static str {
    if value >= target[0] && value <= target[1] { "met" } else { "**missed**" }
}

fn numbers(values: &[f64], decimals: usize) -> String {
    values.iter().map(|value| format!("{value:.decimals$}")).collect::<Vec<_>>().join(" ")
}

fn failures(page: &mut String, what: &str, failed: &crate::draws::Failed) {
    if let Some(message) = &failed.first_message {
        page.push_str(&format!("\n{} {what} gave nothing, the first because: {message}\n", failed.draws));
    }
}

fn size_tables(page: &mut String, settings: &[size::Setting]) {
    page.push_str(
        "\nShare of draws in which a test rejects MCAR. Classifiers are softmax regressions on the raw features, cross-fitted\n\
         over five folds unless said. `auto` must reject between 3.5% and 6.5% of true MCAR hypotheses at 5%.\n\
         The label-shift ratio takes the label shares n_k / n_l and the posteriors as known, so its chi-square reference leaves\n\
         out their sampling error. It sums over unlabelled rows only, which no classifier here was trained on: cross-fitting\n\
         changes little.\n",
    );
    for setting in settings {
        page.push_str(&format!(
            "\n### {}, {}\n\nphi = {}; {:.0} labels on average.\n",
            setting.world,
            setting.mechanism,
            numbers(&setting.phi, 3),
            setting.mean_labels
        ));
        header(page, &["test", "draws", "at 1%", "at 5%", "at 10%", "target at 5%"]);
        for test in &setting.tests {
            let target = test.target.map_or(String::new(), |target| {
                format!("{:.1}% to {:.1}%: {}", 100.0 * target[0], 100.0 * target[1], verdict(test.at_5.share, target))
            });
            row(
                page,
                &[
                    test.test.clone(),
                    test.draws.to_string(),
                    test.at_1.show(),
                    test.at_5.show(),
                    test.at_10.show(),
                    target,
                ],
            );
        }
        failures(page, "draws", &setting.failed);
        failures(page, "draws of the bootstrap tests", &setting.failed_bootstrap);
    }
}

fn coverage_table(page: &mut String, setting: &coverage::Setting) {
    page.push_str(&format!(
        "\n### {} labels of {} expected\n\nphi = {}; {} draws, {} bootstrap replicates each ({} of them failed). The estimate: relative bias {}, relative\n\
         standard deviation {}.\n",
        setting.expected_labels,
        setting.n,
        numbers(&setting.phi, 4),
        setting.draws,
        setting.replicates,
        setting.failed_replicates,
        numbers(&setting.relative_bias, 3),
        numbers(&setting.relative_sd, 3),
    ));
    header(
        page,
        &[
            "of",
            "interval",
            "covers, pooled",
            "class 1",
            "class 2",
            "class 3",
            "truth below",
            "truth above",
            "width / truth",
            "target",
        ],
    );
    for (kind, coverage) in setting.intervals.iter().enumerate() {
        let target = if kind == coverage::PROGRAM {
            let [low, high] = setting.target;
            format!("{:.0}% to {:.0}%: {}", 100.0 * low, 100.0 * high, verdict(coverage.pooled.share, setting.target))
        } else {
            String::new()
        };
        let mut cells = vec![coverage.of.clone(), coverage.interval.clone(), coverage.pooled.show()];
        cells.extend(coverage.per_class.iter().map(|share| share.show()));
        cells.push(format!("{:.1}%", 100.0 * coverage.below.share));
        cells.push(format!("{:.1}%", 100.0 * coverage.above.share));
        cells.push(numbers(&coverage.relative_width, 2));
        cells.push(target);
        row(page, &cells);
    }
    failures(page, "draws", &setting.failed);
}

fn accuracy_tables(page: &mut String, settings: &[accuracy::Setting]) {
    page.push_str(
        "\nNormalised squared error of phi, sum (estimate - phi)^2 / sum phi^2. Softmax regression on pixels / 255, cross-fitted\n\
         over five folds; `calibrated (default)` has the target.\n",
    );
    for setting in settings {
        page.push_str(&format!(
            "\n### {}\n\n{} labels of {} rows, {} seeds; cross-fitting takes {:.1} s. Paper's best: {}.\n",
            setting.setting, setting.labels, setting.n, setting.seeds, setting.seconds_cross_fit, setting.paper
        ));
        header(page, &["estimate", "mean", "sd", "each seed", "further seconds", "target"]);
        for (j, estimate) in setting.estimates.iter().enumerate() {
            let target = if j == 0 {
                format!("{}: {}", setting.target, verdict(estimate.mean, [0.0, setting.target]))
            } else {
                String::new()
            };
            row(
                page,
                &[
                    estimate.method.clone(),
                    format!("{:.4}", estimate.mean),
                    estimate.sd.map_or(String::new(), |sd| format!("{sd:.4}")),
                    numbers(&estimate.normalised_mse, 4),
                    format!("{:.2}", estimate.seconds),
                    target,
                ],
            );
        }
    }
}

fn self_masking_table(page: &mut String, settings: &[self_masking::Setting]) {
    page.push_str(&format!(
        "\n`self-masked`: the class alone decides, so the check should give p <= 5% in 5% of the draws. `easy rows first`: in each\n\
         class, the half that is easier to classify has {} times the odds of a label, and the check should find out. The\n\
         in-sample check warns at z > 4. It should stay quiet on self-masked, cross-fitted predictions; easy rows labelled\n\
         first look to it like a classifier that has seen its rows.\n",
        self_masking::ODDS
    ));
    header(
        page,
        &[
            "rows",
            "mechanism",
            "draws",
            "check, p <= 5%",
            "the same, not calibrated",
            "mean df",
            "warns: cross-fitted",
            "warns: not calibrated",
            "warns: in-sample",
            "mean z of the three",
        ],
    );
    for setting in settings {
        row(
            page,
            &[
                setting.world.clone(),
                setting.mechanism.clone(),
                setting.draws.to_string(),
                setting.check.show(),
                setting.check_uncalibrated.show(),
                format!("{:.1}", setting.mean_df),
                setting.alarm_cross_fitted.show(),
                setting.alarm_uncalibrated.show(),
                setting.alarm_in_sample.show(),
                numbers(&setting.mean_z, 1),
            ],
        );
    }
    for setting in settings {
        failures(page, &format!("draws of {}, {},", setting.world, setting.mechanism), &setting.failed);
    }
}
