//! Do 95% intervals cover where boosted trees score the rows: cross-fitted here and refitted by the bootstrap, or as predictions of
//! a model that somebody has already?

use crate::draws::{Failed, Share, run};
use crate::fit::{FOLDS, tuned_trees};
use crate::mechanisms::{Cause, TABLES, Table};
use anyhow::{Context, Result};
use mnar::analysis::{EstimateSettings, Evidence, Features, Given};
use mnar::crossfit::FoldPlan;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Results for a table and a source of predictions.
#[derive(Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) table: String,
    pub(crate) rows: usize,
    /// Whether the trees are refitted, or their out-of-fold predictions are taken as they are.
    pub(crate) refitted: bool,
    pub(crate) mean_labels: f64,
    pub(crate) draws: usize,
    pub(crate) failed: Failed,
    /// How often phi, or the share of a class, lay in its interval, over all classes.
    pub(crate) phi_covered: Share,
    pub(crate) shares_covered: Share,
    /// The median width of the intervals of the shares.
    pub(crate) width: f64,
}

/// Tables, and whether the trees are refitted.
const CONFIGURATIONS: [(&str, bool); 5] =
    [("pima", true), ("spam", true), ("satellite", true), ("pima", false), ("spam", false)];

/// Replicates of a bootstrap with refits: the program takes up to 200 where there is time.
const REPLICATES: usize = 20;

/// The five configurations, with labels that depend on the class.
pub(crate) fn study(data: &Path, draws: usize, only: Option<&str>, base: u64) -> Result<Vec<Setting>> {
    let mut settings = Vec::new();
    for (position, (name, refitted)) in CONFIGURATIONS.into_iter().enumerate() {
        if only.is_some_and(|only| !only.split(',').any(|only| only == name)) {
            continue;
        }
        let (_, rows, rate) = TABLES.into_iter().find(|table| table.0 == name).context("no such table")?;
        let table = Table::read(data, name, rows, rate)?;
        settings.push(setting(&table, (name, rows, refitted), base + 100_000 * position as u64, draws)?);
    }
    Ok(settings)
}

struct Outcome {
    labels: usize,
    phi: Vec<bool>,
    shares: Vec<bool>,
    widths: Vec<f64>,
}

fn setting(table: &Table, of: (&str, usize, bool), base: u64, draws: usize) -> Result<Setting> {
    let (name, n_rows, refitted) = of;
    let source = if refitted { "refitted" } else { "own predictions" };
    let drawn = run(&format!("{name}, trees, {source}"), base, draws, |seeds| {
        let rows = table.draw(Cause::Class, seeds.data)?;
        let (k, n) = (rows.labels.n_classes(), rows.y.len() as f64);
        let plan = FoldPlan::for_labels(&rows.labels, FOLDS, seeds.folds)?;
        let trees = tuned_trees(&rows.x, &rows.labels, &plan, seeds.folds)?;
        let features = Features { x: &rows.x, names: &[], classifier: &trees };
        let cross_fit = Evidence::cross_fit(features, &rows.labels, plan.clone(), seeds.folds, &())?;
        let posteriors = cross_fit.posteriors.clone().into_owned();
        let evidence = match refitted {
            true => cross_fit,
            false => Evidence::predictions(&posteriors, &rows.labels).with_folds(&plan),
        };
        let settings = EstimateSettings {
            seed: seeds.resample,
            permutations: 99,
            replicates: refitted.then_some(REPLICATES),
            given: Given::None,
            ..Default::default()
        };
        let found = settings.run(&evidence, &())?;
        let of_class = |c: usize| rows.y.iter().zip(&rows.probability).filter(move |(y, _)| y.index() == c);
        let truth: Vec<f64> = (0..k).map(|c| of_class(c).count() as f64 / n).collect();
        let phi: Vec<f64> = (0..k).map(|c| of_class(c).map(|(_, p)| p).sum::<f64>() / (truth[c] * n)).collect();
        let covered = |intervals: &Option<Vec<(f64, f64)>>, truth: &[f64]| -> Result<Vec<bool>> {
            let intervals = intervals.as_ref().context("no intervals")?;
            Ok(intervals.iter().zip(truth).map(|((low, high), truth)| low <= truth && truth <= high).collect())
        };
        Ok(Outcome {
            labels: rows.labels.n_labelled(),
            phi: covered(&found.phi_ci95, &phi)?,
            shares: covered(&found.prevalence_ci95, &truth)?,
            widths: found.prevalence_ci95.iter().flatten().map(|(low, high)| high - low).collect(),
        })
    })?;
    let outcomes = &drawn.values;
    let mut widths: Vec<f64> = outcomes.iter().flat_map(|outcome| outcome.widths.iter().copied()).collect();
    widths.sort_by(f64::total_cmp);
    let pooled =
        |of: fn(&Outcome) -> &Vec<bool>| Share::pooled(&outcomes.iter().map(|o| of(o).clone()).collect::<Vec<_>>());
    let setting = Setting {
        table: name.to_owned(),
        rows: n_rows,
        refitted,
        mean_labels: outcomes.iter().map(|outcome| outcome.labels as f64).sum::<f64>() / outcomes.len() as f64,
        draws,
        phi_covered: pooled(|outcome| &outcome.phi),
        shares_covered: pooled(|outcome| &outcome.shares),
        width: widths.get(widths.len() / 2).copied().context("no draw")?,
        failed: drawn.failed,
    };
    eprintln!(
        "{name:12} {source:16} phi {} shares {} width {:.3} failed {}",
        setting.phi_covered.show(),
        setting.shares_covered.show(),
        setting.width,
        setting.failed.draws
    );
    Ok(setting)
}
