//! An audit of 100 rows: whether it repairs the class shares, whatever decided who got labelled.

use crate::draws::{Failed, Share, run};
use crate::fit::{FOLDS, REGRESSION};
use crate::mechanisms::{Cause, TABLES, Table};
use anyhow::{Context, Result};
use mnar::Labels;
use mnar::analysis::{Audit, EstimateSettings, Evidence, Features};
use mnar::crossfit::FoldPlan;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The number of audited rows.
const AUDITED: usize = 100;

/// Results for a table and a mechanism.
#[derive(Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) table: String,
    pub(crate) labels_depend_on: String,
    pub(crate) audited: usize,
    pub(crate) draws: usize,
    pub(crate) failed: Failed,
    /// How often a class's share lay in its interval, over all classes.
    pub(crate) shares_covered: Share,
    /// How often the audit contradicted the mechanism.
    pub(crate) contradicted: Share,
    /// Root mean squared error of the shares: with the audit, of the mechanism without it, and of the audited rows alone.
    pub(crate) error: f64,
    pub(crate) error_mechanism: f64,
    pub(crate) error_audited: f64,
}

/// A column that is not in the table decides, and it is related to the class and to a feature: nothing else can show that.
const HIDDEN: (&str, Cause) = (
    "site, tied to class and feature, column absent",
    Cause::Site { class: 1.0, feature: 1.0, rates_by_class: false, absent: true },
);

/// The tables that are named, every mechanism, and a hidden cause.
pub(crate) fn study(data: &Path, draws: usize, only: Option<&str>, base: u64) -> Result<Vec<Setting>> {
    let only = only.unwrap_or("pima,breast-cancer");
    let mut settings = Vec::new();
    for (name, rows, rate) in TABLES.into_iter().filter(|(name, ..)| only.split(',').any(|only| only == *name)) {
        let table = Table::read(data, name, rows, rate)?;
        for (position, (words, cause)) in Cause::ALL.into_iter().chain([HIDDEN]).enumerate() {
            settings.push(setting(&table, name, words, cause, base + 100_000 * position as u64, draws)?);
        }
    }
    Ok(settings)
}

struct Outcome {
    covered: Vec<bool>,
    contradicted: bool,
    squared: [f64; 3],
}

fn setting(table: &Table, name: &str, words: &str, cause: Cause, base: u64, draws: usize) -> Result<Setting> {
    let drawn = run(&format!("{name}, {words}, audit"), base, draws, |seeds| {
        let rows = table.draw(cause, seeds.data)?;
        let n = rows.y.len();
        let mut order: Vec<usize> = (0..n).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(seeds.resample));
        let mut audited = vec![false; n];
        let mut labels = rows.labels.as_slice().to_vec();
        for &row in &order[..AUDITED] {
            audited[row] = true;
            labels[row] = Some(rows.y[row]);
        }
        let (labels, audit) = Audit::split(&Labels::new(labels, rows.labels.names().to_vec())?, &audited)?;
        let plan = FoldPlan::for_labels(&labels, FOLDS, seeds.folds)?;
        let features = Features { x: &rows.x, names: &[], classifier: &REGRESSION };
        let evidence = Evidence::cross_fit(features, &labels, plan, seeds.folds, &())?
            .with_covariates(&rows.covariates)?
            .with_audit(&audit);
        let settings = EstimateSettings { seed: seeds.resample, permutations: 99, ..Default::default() };
        let found = settings.run(&evidence, &())?;
        let k = labels.n_classes();
        let truth: Vec<f64> =
            (0..k).map(|c| rows.y.iter().filter(|y| y.index() == c).count() as f64 / n as f64).collect();
        let intervals = found.prevalence_ci95.as_ref().context("no intervals")?;
        let by_audit = found.audit.as_ref().context("no audit")?;
        let squared = |shares: &[f64]| shares.iter().zip(&truth).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / k as f64;
        Ok(Outcome {
            covered: intervals.iter().zip(&truth).map(|((low, high), t)| low <= t && t <= high).collect(),
            contradicted: by_audit.contradicts,
            squared: [
                squared(found.prevalence.as_slice()),
                squared(by_audit.mechanism_prevalence.as_slice()),
                squared(by_audit.audited_shares.as_slice()),
            ],
        })
    })?;
    let outcomes = &drawn.values;
    let error =
        |j: usize| (outcomes.iter().map(|outcome| outcome.squared[j]).sum::<f64>() / outcomes.len() as f64).sqrt();
    let setting = Setting {
        table: name.to_owned(),
        labels_depend_on: words.to_owned(),
        audited: AUDITED,
        draws,
        shares_covered: Share::pooled(&outcomes.iter().map(|outcome| outcome.covered.clone()).collect::<Vec<_>>()),
        contradicted: Share::of(outcomes.iter().map(|outcome| outcome.contradicted)),
        error: error(0),
        error_mechanism: error(1),
        error_audited: error(2),
        failed: drawn.failed,
    };
    eprintln!(
        "{name:14} {words:48} covered {} contradicted {} error {:.3} mechanism {:.3} audited rows {:.3}",
        setting.shares_covered.show(),
        setting.contradicted.show(),
        setting.error,
        setting.error_mechanism,
        setting.error_audited
    );
    Ok(setting)
}
