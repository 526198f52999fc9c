//! `mnar evaluate`: how good a model really is.

use crate::args::{EvaluateArgs, Format};
use crate::input::{Input, Loading, say};
use crate::interrupt::Stop;
use crate::output::{self, Versioned};
use crate::streamed::{Streamed, of_files};
use crate::terminal::Terminal;
use crate::{Outcome, Typed};
use anyhow::{Context as _, Result, bail};
use mnar::analysis::{EstimateSettings, Findings, Given, Method};
use mnar::evaluate::{EvaluateSettings, Evaluation, KnownMechanism, Model, Scores, StreamedModel};
use mnar::keys::Buckets;
use mnar::mechanism::Mechanism;
use mnar::{Class, Labels, Phi, PosteriorKind, Posteriors, Rows as _};
use mnar_data::{AtomicFile, DataError, PredictionColumns, ReadOptions, check_not_read};
use mnar_report::{Report, evaluate_text};
use mnar_run::{PerClass, evaluation_page, mechanism_by_columns};
use ndarray::Array2;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) fn run(mut args: EvaluateArgs, typed: &Typed) -> Result<Outcome> {
    let start = Instant::now();
    if args.table.audit.is_some() && (args.run.is_some() || !args.phi.is_empty()) {
        bail!(
            "with --audit the metrics rest on rows that were drawn at random, so no mechanism is needed; leave out --phi and --run"
        );
    }
    if args.table.features.is_some() && !args.model.is_empty() {
        bail!("--model names columns of a table of predictions, and --features says that the table holds features");
    }
    if let Some(page) = &args.report {
        check_not_read(page, &[&args.table.table])?;
    }
    args.table.hold()?;
    let stop = Stop::on_signals()?;
    let terminal = Terminal::new(args.table.quiet, stop.flag());
    let found = if args.stream { streamed(&args, &terminal) } else { evaluate(&mut args, &terminal) };
    terminal.clear();
    let (settings, found) = match found {
        Err(error) if matches!(error.downcast_ref(), Some(mnar::Error::Cancelled)) => {
            return Ok(Outcome::Interrupted(stop.code()));
        }
        found => found?,
    };
    if let Some(path) = &args.report {
        let page =
            evaluation_page(&found, &settings, &typed.origin(&args.table.table, Some(&args.table.label), None), start)?;
        AtomicFile::write_text(path, &page)?;
    }
    match args.table.format {
        Format::Json => output::print_json(&Versioned::new(&found))?,
        Format::Text => output::print(&evaluate_text(&found))?,
    }
    Ok(Outcome::Done)
}

fn evaluate(args: &mut EvaluateArgs, terminal: &Terminal) -> Result<(EvaluateSettings, Evaluation)> {
    let known = args.run.as_deref().map(OfRun::read).transpose()?;
    if let Some((_, by_columns)) = known.as_ref().and_then(|run| run.by_columns.as_ref()) {
        // The columns of the mechanism are read with the table.
        args.table.given = Given::Columns(by_columns.terms.names().map(str::to_owned).collect());
    }
    let args = &*args;
    let Input::Table(table) = Input::read(&args.table, args.by.as_ref(), Loading::Complete)? else {
        bail!("evaluate needs the table in memory");
    };
    let settings = args.settings(table.labels.names(), known.as_ref())?;
    let classifiers = table.models(&args.table, terminal)?;
    let evidence = table.evidence(classifiers.as_ref(), &args.table, terminal)?;
    let labels = &table.labels;
    let others = args.model.iter().map(|prefix| args.probabilities(prefix, labels)).collect::<Result<Vec<_>>>()?;
    let decisions = args.decision.iter().map(|column| args.decisions(column, labels)).collect::<Result<Vec<_>>>()?;
    let first = if args.table.features.is_some() { "cross-fitted" } else { args.table.proba.as_str() };
    let mut models =
        vec![Model { name: first.to_owned(), scores: Scores::Probabilities(evidence.posteriors.as_ref()) }];
    for (name, p) in args.model.iter().zip(&others) {
        models.push(Model { name: name.clone(), scores: Scores::Probabilities(p) });
    }
    for (name, decisions) in args.decision.iter().zip(&decisions) {
        models.push(Model { name: name.clone(), scores: Scores::Decisions(decisions) });
    }
    let found = settings.run(&evidence, &models, terminal)?;
    Ok((settings, found))
}

/// The metrics of rows that stay in their files.
fn streamed(args: &EvaluateArgs, terminal: &Terminal) -> Result<(EvaluateSettings, Evaluation)> {
    let Input::Stream(table) = Input::read(&args.table, args.by.as_ref(), Loading::Stream)? else {
        bail!("a table that was asked to be streamed was loaded");
    };
    say(table.notes(), terminal);
    let settings = args.settings(table.names(), None)?;
    let buckets = Buckets::of_jackknife(args.table.seed);
    let rows = Streamed::new(&table, &settings.estimate, Some(buckets))?;
    let found = rows.estimate(&settings.mechanism(table.kind())?)?;
    let Some(beside) = &rows.beside else { bail!("the rows have no buckets") };
    let groups = beside.groups().map(|groups| (groups, beside.encoder().n_terms()));
    let place = beside.encoder().n_terms() + usize::from(groups.is_some());
    let model = StreamedModel { name: &args.table.proba, groups, buckets: (place, buckets.count as usize) };
    let found = settings.run_streamed(found, beside, model).map_err(of_files)?;
    Ok((settings, found))
}

impl EvaluateArgs {
    fn settings(&self, classes: &[String], run: Option<&OfRun>) -> Result<EvaluateSettings> {
        let (phi, phi_se, mechanism) = match (run, self.phi.as_slice()) {
            (Some(run), _) => {
                let (phi, se, mechanism) = run.of_classes(classes)?;
                (Some(phi), se, mechanism)
            }
            (None, []) => (None, None, None),
            (None, words) => (Some(Phi::new(PerClass::Items(words.to_vec()).resolve("phi", classes)?)?), None, None),
        };
        let given = if mechanism.is_some() { Given::None } else { self.table.given.clone() };
        let estimate = EstimateSettings {
            method: if phi.is_some() { Method::Known } else { Method::Auto },
            phi,
            given,
            by: self.by.clone(),
            replicates: self.replicates,
            seed: self.table.seed,
            ..Default::default()
        };
        let curves = self.table.format == Format::Json || self.report.is_some();
        Ok(EvaluateSettings { estimate, phi_se, mechanism, augmented: !self.weighting_alone, curves })
    }

    /// The probabilities of another model, in the order of the classes.
    fn probabilities(&self, prefix: &str, labels: &Labels) -> Result<Posteriors> {
        let columns = PredictionColumns { proba: prefix.to_owned(), allow_complete: true, ..self.table.columns() };
        let path = self.table.table.display();
        let read = match mnar_data::read_predictions(self.table.source(), &columns) {
            // Its hints are about the first model.
            Err(error @ DataError::NoClassColumns { .. }) => bail!("{error}"),
            read => read?,
        };
        let position = |class: &String| read.labels.names().iter().position(|name| name == class);
        let order: Vec<usize> = labels
            .names()
            .iter()
            .map(|class| position(class).with_context(|| format!("{path}: there is no column `{prefix}{class}`")))
            .collect::<Result<_>>()?;
        if let Some(extra) = read.labels.names().iter().find(|name| !labels.names().contains(name)) {
            bail!("{path}: the column `{prefix}{extra}` is of a class that the first model does not know");
        }
        let p = Array2::from_shape_fn((labels.len(), order.len()), |(i, k)| read.posteriors.column(order[k])[i]);
        Ok(Posteriors::new(p, PosteriorKind::Population)?)
    }

    fn decisions(&self, column: &str, labels: &Labels) -> Result<Vec<Class>> {
        let path = self.table.table.display();
        let options = ReadOptions {
            label: Some(column.to_owned()),
            missing: self.table.missing.clone(),
            labels_as_they_are: true,
            ..Default::default()
        };
        let (read, _) = mnar_data::read_labels(self.table.source(), &options)?;
        let decided = |i: usize| -> Result<Class> {
            let Some(class) = read.get(i) else {
                bail!("{path}: row {}: the column `{column}` is empty; every row needs a decision", i + 1);
            };
            let name = read.name(class);
            let known = labels.names().iter().position(|class| class == name);
            let known = known.with_context(|| {
                format!("{path}: row {}: `{name}` in the column `{column}` is not one of the classes", i + 1)
            })?;
            Ok(Class::from(known))
        };
        (0..read.len()).map(decided).collect()
    }
}

/// The mechanism of a run.
struct OfRun {
    source: PathBuf,
    findings: Findings,
    /// Effects of classes and columns, with the classes in their order.
    by_columns: Option<(Vec<String>, KnownMechanism)>,
}

impl OfRun {
    fn read(run: &Path) -> Result<Self> {
        let source = run.join("report.json");
        let text = std::fs::read_to_string(&source)
            .with_context(|| format!("{} holds no finished run of `mnar fit`", run.display()))?;
        let findings = Report::from_json(&text).with_context(|| source.display().to_string())?.findings;
        let by_columns = match findings.mechanism {
            Some(_) => mechanism_by_columns(run)?,
            None => None,
        };
        if findings.mechanism.is_some() && by_columns.is_none() {
            let given = findings.labelling.as_ref().map_or_else(Vec::new, |labelling| labelling.given.clone());
            bail!(
                "in {} labelling depends on columns, whose effects the model of the run does not have; estimate them here with --given {}",
                run.display(),
                given.join(",")
            );
        }
        Ok(Self { source, findings, by_columns })
    }

    /// phi, its standard errors and the effects of columns, in the order of these classes.
    fn of_classes(&self, classes: &[String]) -> Result<(Phi, Option<Vec<f64>>, Option<KnownMechanism>)> {
        let positions = |known: &[String]| -> Result<Vec<usize>> {
            let position = |class: &String| {
                let position = known.iter().position(|name| name == class);
                position.with_context(|| format!("{} has no class `{class}`", self.source.display()))
            };
            classes.iter().map(position).collect()
        };
        let order = positions(&self.findings.about.classes)?;
        let phi = Phi::new(order.iter().map(|&k| self.findings.phi[k]).collect())?;
        let se = self.findings.phi_se.as_ref().map(|se| {
            let known = order.iter().map(|&k| se[k]);
            known.map(|se| if se.is_finite() { se } else { 0.0 }).collect()
        });
        let by_columns = match &self.by_columns {
            None => None,
            Some((names, KnownMechanism { mechanism, terms, term_se })) => {
                let effects = positions(names)?.iter().map(|&k| mechanism.classes[k]).collect();
                let mechanism = Mechanism { classes: effects, terms: mechanism.terms.clone() };
                Some(KnownMechanism { mechanism, terms: terms.clone(), term_se: term_se.clone() })
            }
        };
        Ok((phi, se, by_columns))
    }
}
