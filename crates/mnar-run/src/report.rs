//! Putting reports together.

use crate::error::{FolderState, RunError};
use crate::folder::REPORT;
use crate::manifest::Manifest;
use mnar::analysis::{EstimateSettings, Evidence, Findings, TestSettings};
use mnar::diagnose::most_uncertain_by;
use mnar::evaluate::{EvaluateSettings, Evaluation};
use mnar::{Labels, Posteriors, Progress};
use mnar_report::{Guess, MoreLabels, Provenance, Report, Task, UncertainRow, evaluate_html};
use mnar_train::Propensity;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// What a report says about where it comes from.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// What the data are called.
    pub title: String,
    /// The command that makes the report again.
    pub command: Option<String>,
    /// How the caller spells what to do next.
    pub spelling: Option<Spelling>,
}

/// Spells a task, if it can.
type Spell = dyn Fn(&Task) -> Option<String> + Send + Sync;

/// How the caller spells what to do next: a command, or a call in Python.
#[derive(Clone)]
pub struct Spelling(Arc<Spell>);

impl Spelling {
    /// Tasks are spelt by this function, as far as it knows them.
    pub fn new(spell: impl Fn(&Task) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(spell))
    }
}

impl std::fmt::Debug for Spelling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Spelling")
    }
}

impl Origin {
    pub(crate) fn provenance(
        &self,
        settings: &impl Serialize,
        computed_on: String,
        start: Instant,
    ) -> Result<Provenance, RunError> {
        let settings = match serde_json::to_value(settings).map_err(RunError::spelling)? {
            serde_json::Value::Object(settings) => settings,
            other => serde_json::Map::from_iter([("settings".to_owned(), other)]),
        };
        Ok(Provenance::new(&self.title)
            .with_created(humantime::format_rfc3339_seconds(SystemTime::now()).to_string())
            .with_command(self.command.clone())
            .with_settings(settings)
            .with_computed_on(computed_on)
            .with_seconds(start.elapsed().as_secs_f64()))
    }

    /// The report with the steps that come next, and the commands for them.
    pub(crate) fn with_commands(&self, report: Report) -> Report {
        report.with_commands(|task| self.spell(task))
    }

    /// How a task is spelt, where the caller knows it.
    pub fn spell(&self, task: &Task) -> Option<String> {
        self.spelling.as_ref().and_then(|spelling| (spelling.0)(task))
    }
}

/// What labels of rows drawn at random would tell, from the predictions of all rows under the mechanism.
pub(crate) fn more_labels(posteriors: &Posteriors, findings: &Findings) -> MoreLabels {
    let phi = Propensity::new(&findings.phi, findings.row_phi.as_deref());
    let mut open = vec![0.0; posteriors.n_classes()];
    for row in 0..posteriors.len() {
        let p = posteriors.of_population(row, phi.of(row));
        open.iter_mut().zip(p).for_each(|(sum, p)| *sum += p * (1.0 - p));
    }
    let rows = posteriors.len();
    open.iter_mut().for_each(|sum| *sum /= rows.max(1) as f64);

    MoreLabels::new(findings.prevalence.as_slice(), &open, rows, findings.prevalence_ci95.as_deref())
}

/// The report of a finished run, read back.
#[derive(Clone, Debug)]
pub struct SavedReport {
    /// The report.
    pub report: Report,
    /// Files of the run, other than the report, that are not as the run wrote them.
    pub changed: Vec<String>,
}

impl SavedReport {
    /// Reads the report of a run folder. It must be as the run wrote it, and its content must make sense; a folder without a
    /// `manifest.json`, such as that of a demonstration, holds a report alone.
    pub fn read(folder: &Path) -> Result<Self, RunError> {
        let path = folder.join(REPORT);
        if !path.exists() {
            return Err(RunError::folder(folder, FolderState::NoReport));
        }
        let manifest = Manifest::read(folder)?;
        if let Some(manifest) = &manifest {
            manifest.verify(folder, REPORT)?;
        }
        let text = std::fs::read_to_string(&path).map_err(RunError::io("read", &path))?;
        let report = Report::from_json(&text).map_err(|source| RunError::SavedReport { path, source })?;
        let changed = manifest.map_or_else(Vec::new, |manifest| manifest.changed(folder));
        Ok(Self { report, changed })
    }
}

/// Rows that a report shows as worth labelling.
const SHOWN: usize = 12;
/// Classes shown for each of them.
const GUESSES: usize = 3;

/// The unlabelled rows whose class is least certain. `name` gives the name of a row, `png` its image.
pub(crate) fn uncertain_rows(
    posteriors: &Posteriors,
    labels: &Labels,
    phi: &Propensity<'_>,
    name: impl Fn(usize) -> Option<String>,
    png: impl Fn(usize) -> Option<Vec<u8>>,
) -> Vec<UncertainRow> {
    let rows = most_uncertain_by(posteriors, labels, |row| phi.of(row), SHOWN).into_iter();
    rows.map(|row| {
        let mut order: Vec<usize> = (0..row.probabilities.len()).collect();
        order.sort_by(|&a, &b| row.probabilities[b].total_cmp(&row.probabilities[a]));
        let guess = |&k: &usize| Guess::new(&labels.names()[k], row.probabilities[k]);
        let guesses = order.iter().take(GUESSES).map(guess).collect();
        UncertainRow::new(row.row + 1, name(row.row), guesses, png(row.row))
    })
    .collect()
}

/// An evaluation as one HTML page.
pub fn evaluation_page(
    found: &Evaluation,
    settings: &EvaluateSettings,
    origin: &Origin,
    start: Instant,
) -> Result<String, RunError> {
    Ok(evaluate_html(found, &origin.provenance(settings, "cpu".to_owned(), start)?)?)
}

/// The settings of an estimate, as its report shows them.
#[derive(Serialize)]
struct EstimateRecord<'a> {
    posterior: mnar::PosteriorKind,
    #[serde(flatten)]
    settings: &'a EstimateSettings,
    features: Option<&'a [String]>,
    permutations: usize,
}

/// Estimates, tests with the same seed, and puts both into a report.
pub fn estimate_report(
    settings: &EstimateSettings,
    evidence: &Evidence<'_>,
    origin: &Origin,
    start: Instant,
    progress: &dyn Progress,
) -> Result<(Findings, Report), RunError> {
    let kind = evidence.posteriors.kind();
    let settings = settings.clone().for_report(kind);
    let findings = settings.run(evidence, progress)?;
    let test = TestSettings { seed: settings.seed, ..Default::default() }.decide(evidence, progress)?;
    let posteriors = findings.calibrated.as_deref().unwrap_or(&evidence.posteriors);
    let phi = Propensity::new(&findings.phi, findings.row_phi.as_deref());
    let uncertain = uncertain_rows(posteriors, evidence.labels, &phi, |_| None, |_| None);
    let record = EstimateRecord {
        posterior: kind,
        settings: &settings,
        features: findings.features.as_deref(),
        permutations: test.result.draws,
    };
    let provenance = origin.provenance(&record, "cpu".to_owned(), start)?;
    let more = more_labels(posteriors, &findings);
    let report =
        Report::new(provenance, findings.clone()).with_test(test).with_uncertain(uncertain).with_more_labels(more);
    Ok((findings, origin.with_commands(report)))
}
