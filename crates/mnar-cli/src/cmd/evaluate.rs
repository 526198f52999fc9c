//! `mnar evaluate`: how good a model really is.

use crate::Outcome;
use crate::args::{EvaluateArgs, Format};
use crate::input::{Input, Loading};
use crate::interrupt::Stop;
use crate::output::{self, Versioned};
use crate::terminal::Terminal;
use anyhow::{Context as _, Result, bail};
use mnar::analysis::{EstimateSettings, Method};
use mnar::evaluate::{EvaluateSettings, Evaluation, Model, Scores};
use mnar::{Class, Labels, Phi, PosteriorKind, Posteriors};
use mnar_data::PredictionColumns;
use mnar_report::{Report, evaluate_text};
use mnar_run::PerClass;
use ndarray::Array2;
use std::path::Path;

pub(crate) fn run(args: EvaluateArgs) -> Result<Outcome> {
    if args.table.audit.is_some() {
        bail!("evaluate does not use an audit yet; leave out --audit");
    }
    if args.table.features.is_some() && !args.model.is_empty() {
        bail!("--model names columns of a table of predictions, and --features says that the table holds features");
    }
    let stop = Stop::on_signals()?;
    let terminal = Terminal::new(args.table.quiet, stop.flag());
    let found = evaluate(&args, &terminal);
    terminal.clear();
    let found = match found {
        Err(error) if matches!(error.downcast_ref(), Some(mnar::Error::Cancelled)) => {
            return Ok(Outcome::Interrupted(stop.code()));
        }
        found => found?,
    };
    match args.table.format {
        Format::Json => output::print_json(&Versioned::new(&found))?,
        Format::Text => output::print(&evaluate_text(&found))?,
    }
    Ok(Outcome::Done)
}

fn evaluate(args: &EvaluateArgs, terminal: &Terminal) -> Result<Evaluation> {
    let Input::Table(table) = Input::read(&args.table, args.by.as_ref(), Loading::Complete)? else {
        bail!("evaluate needs the table in memory");
    };
    let settings = args.settings(table.labels.names())?;
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
    Ok(settings.run(&evidence, &models, terminal)?)
}

impl EvaluateArgs {
    fn settings(&self, classes: &[String]) -> Result<EvaluateSettings> {
        let (phi, phi_se) = match (&self.run, self.phi.as_slice()) {
            (Some(run), _) => {
                let (phi, se) = of_run(run, classes)?;
                (Some(phi), se)
            }
            (None, []) => (None, None),
            (None, words) => (Some(Phi::new(PerClass::Items(words.to_vec()).resolve("phi", classes)?)?), None),
        };
        let estimate = EstimateSettings {
            method: if phi.is_some() { Method::Known } else { Method::Auto },
            phi,
            given: self.table.given.clone(),
            by: self.by.clone(),
            replicates: self.replicates,
            seed: self.table.seed,
            ..Default::default()
        };
        let curves = self.table.format == Format::Json;
        Ok(EvaluateSettings { estimate, phi_se, augmented: !self.weighting_alone, curves })
    }

    /// The probabilities of another model, in the order of the classes.
    fn probabilities(&self, prefix: &str, labels: &Labels) -> Result<Posteriors> {
        let columns = PredictionColumns {
            prefix: prefix.to_owned(),
            missing: self.table.missing.clone(),
            allow_complete: true,
            ..PredictionColumns::new(&self.table.label)
        };
        let path = self.table.table.display();
        let read = mnar_data::read_predictions(&self.table.table, &columns)?;
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
        let read = mnar_data::read_labels(&self.table.table, column, &self.table.missing)?;
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

/// phi and its standard errors from the report of a run, in the order of the classes.
fn of_run(run: &Path, classes: &[String]) -> Result<(Phi, Option<Vec<f64>>)> {
    let source = run.join("report.json");
    let text = std::fs::read_to_string(&source)
        .with_context(|| format!("{} holds no finished run of `mnar fit`", run.display()))?;
    let findings = Report::from_json(&text).with_context(|| source.display().to_string())?.findings;
    if findings.mechanism.is_some() {
        let given = findings.labelling.as_ref().map_or_else(Vec::new, |labelling| labelling.given.clone());
        bail!(
            "in {} labelling depends on columns, whose effects are not taken over; estimate them here with --given {}",
            run.display(),
            given.join(",")
        );
    }
    let order: Vec<usize> = classes
        .iter()
        .map(|class| {
            let position = findings.about.classes.iter().position(|name| name == class);
            position.with_context(|| format!("{} has no class `{class}`", source.display()))
        })
        .collect::<Result<_>>()?;
    let phi = Phi::new(order.iter().map(|&k| findings.phi[k]).collect())?;
    let se = findings.phi_se.map(|se| {
        let known = order.iter().map(|&k| se[k]);
        known.map(|se| if se.is_finite() { se } else { 0.0 }).collect()
    });
    Ok((phi, se))
}
