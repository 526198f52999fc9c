//! The paper's figures as SVG: phi by class, accuracy by class and label counts.

use crate::error::ReproduceError;
use crate::experiment::Experiment;
use crate::method::Candidate;
use crate::run::Outcome;
use crate::summary::summarise;
use mnar_data::AtomicFile;
use mnar_report::{Bar, Chart, Figure, Table};
use std::path::{Path, PathBuf};

/// Writes `phi.svg`, `accuracy.svg` and `labels.svg` into the folder, and returns their paths.
pub fn write_figures(
    experiment: &Experiment,
    outcomes: &[Outcome],
    folder: &Path,
) -> Result<Vec<PathBuf>, ReproduceError> {
    let Some(first) = outcomes.first() else { return Ok(Vec::new()) };
    let summaries = summarise(outcomes);
    let mut phi = vec![("true".to_owned(), first.true_phi.clone())];
    // Left out: methods that are given phi, or that share the estimate of another method.
    let estimated = [Candidate::Pl, Candidate::Cadr, Candidate::Mle, Candidate::Meg, Candidate::Me, Candidate::Ours];
    let shown = summaries.iter().filter(|summary| estimated.contains(&summary.method));
    phi.extend(shown.map(|summary| (summary.method.title().to_owned(), summary.phi.clone())));
    let accuracy =
        summaries.iter().map(|summary| (summary.method.title().to_owned(), summary.accuracy_per_class.clone()));
    let hidden = |k: usize| first.rows[k].saturating_sub(first.labelled[k]) as f64;
    let counts = vec![
        ("labelled".to_owned(), first.labelled.iter().map(|&count| count as f64).collect()),
        ("unlabelled".to_owned(), (0..first.rows.len()).map(hidden).collect::<Vec<_>>()),
    ];
    let figures = [
        bars("phi", "P(labelled | class)", "phi", false, phi),
        bars("accuracy", "Test accuracy by class", "accuracy", false, accuracy.collect()),
        bars("labels", "Rows by class", "rows (log scale)", true, counts),
    ];
    let mut written = Vec::new();
    for mut figure in figures {
        figure.title = format!("{}: {}", experiment.title, figure.title);
        let path = folder.join(format!("{}.svg", figure.id));
        AtomicFile::write_text(&path, &figure.svg()?)?;
        written.push(path);
    }
    Ok(written)
}

/// A bar chart of named series, each with one value per class.
fn bars(id: &'static str, title: &str, axis: &str, log: bool, series: Vec<(String, Vec<f64>)>) -> Figure {
    let classes = series.first().map_or(0, |(_, values)| values.len());
    let mark = |k: usize, i: usize| Bar { label: k.to_string(), series: i, value: series[i].1[k] };
    let marks = (0..classes).flat_map(|k| (0..series.len()).map(move |i| (k, i))).map(|(k, i)| mark(k, i)).collect();
    let names = series.iter().map(|(name, _)| name.clone()).collect();
    Figure {
        id,
        title: title.to_owned(),
        about: String::new(),
        chart: Chart::Bars { axis: axis.to_owned(), log, series: names, marks },
        table: Table::default(),
    }
}
