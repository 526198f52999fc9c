//! The three questions about who gets labelled, each under its own null hypothesis and against alternatives: is it chance, is the
//! class enough, does the class matter beyond the columns.

use crate::draws::{Failed, Share, run};
use crate::fit::{FOLDS, REGRESSION};
use crate::mechanisms::{Table, scaled_to};
use crate::worlds::World;
use anyhow::{Context, Result};
use mnar::analysis::{EstimateSettings, Evidence, Features, Given, IntervalMethod};
use mnar::covariates::{Covariate, Covariates};
use mnar::crossfit::FoldPlan;
use mnar::test::{BeyondColumns, PermutationTest};
use mnar::{Labels, Sample};
use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Results for a world and a mechanism.
#[derive(Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) world: String,
    pub(crate) labels_depend_on: String,
    pub(crate) question: String,
    /// Whether the null hypothesis of the question is true.
    pub(crate) null: bool,
    pub(crate) draws: usize,
    pub(crate) failed: Failed,
    /// How often p <= 5%.
    pub(crate) rejected: Share,
}

/// Rows with a column `site` of names and a column `age` of numbers, both related to the first feature.
struct Rows {
    x: Array2<f64>,
    covariates: Covariates,
    labels: Labels,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Chance,
    Class,
    Site,
    Age,
    SiteAndClass,
    AgeAndClass,
}

impl By {
    fn words(self) -> &'static str {
        match self {
            By::Chance => "chance",
            By::Class => "the class",
            By::Site => "site",
            By::Age => "age",
            By::SiteAndClass => "site and class",
            By::AgeAndClass => "age and class",
        }
    }
}

/// New rows of three overlapping classes in every draw.
fn gaussian_rows(by: By, rows: usize, seed: u64) -> Result<Rows> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let all = World::Gaussians.draw(rng.random());
    let (x, _) = all.x.view().split_at(ndarray::Axis(0), rows);
    let y = &all.y[..rows];
    let sites: Vec<usize> = (0..rows)
        .map(|i| {
            let noise: f64 = StandardNormal.sample(&mut rng);
            let at = 0.5 * x[(i, 0)] + noise;
            usize::from(at > -0.5) + usize::from(at > 0.7)
        })
        .collect();
    let age: Vec<f64> = (0..rows)
        .map(|i| {
            let noise: f64 = StandardNormal.sample(&mut rng);
            0.5 * x[(i, 1)] + noise
        })
        .collect();
    let class = |i: usize| [0.8, 0.0, -0.8][y[i].index()];
    let site = |i: usize| [1.2, 0.0, -1.0][sites[i]];
    let logits = (0..rows)
        .map(|i| match by {
            By::Chance => 0.0,
            By::Class => class(i),
            By::Site => site(i),
            By::Age => 1.2 * age[i],
            By::SiteAndClass => site(i) + class(i),
            By::AgeAndClass => 1.2 * age[i] + class(i),
        })
        .collect();
    let labels = scaled_to(logits, 0.3).iter().zip(y).map(|(p, y)| (rng.random::<f64>() < *p).then_some(*y)).collect();
    let labels = Labels::new(labels, all.names.clone())?;
    let wide = Array2::from_shape_fn((rows, 6), |(i, j)| match j {
        0 | 1 => x[(i, j)],
        2 => age[i],
        j => f64::from(u8::from(sites[i] == j - 3)),
    });
    let covariates = Covariates::new(vec![
        Covariate::numeric("x1", x.column(0).to_vec()),
        Covariate::numeric("x2", x.column(1).to_vec()),
        Covariate::numeric("age", age),
        Covariate::categorical("site", sites.iter().map(|&site| Some(["a", "b", "c"][site]))),
    ])?;
    Ok(Rows { x: wide, covariates, labels })
}

/// Size and power, on small and large samples of Gaussians and on Pima.
pub(crate) fn study(data: Option<&Path>, draws: usize, refits: usize, base: u64) -> Result<Vec<Setting>> {
    let mut settings = Vec::new();
    for (position, rows) in [600, 2000].into_iter().enumerate() {
        let world = format!("gaussians, {rows} rows");
        let base = base + 1_000_000 * position as u64;
        for (by, columns, null) in [
            (By::Site, &["site"][..], true),
            (By::Age, &["age"], true),
            (By::Site, &["site", "age"], true),
            (By::SiteAndClass, &["site"], false),
            (By::AgeAndClass, &["age"], false),
        ] {
            settings.push(class_beyond(&world, by, columns, null, base, draws, |seed| gaussian_rows(by, rows, seed))?);
        }
        for (by, null) in [(By::Chance, true), (By::Class, false)] {
            settings.push(chance(&world, by, null, base + 500_000, draws, |seed| gaussian_rows(by, rows, seed))?);
        }
        for (by, null) in [(By::Chance, true), (By::Class, true), (By::Site, false), (By::Age, false)] {
            let draws = if null { refits } else { refits.div_ceil(4) };
            settings.push(class_enough(&world, by, null, base + 700_000, draws, |seed| gaussian_rows(by, rows, seed))?);
        }
    }
    if let Some(data) = data {
        let table = Table::read(data, "pima", 700, 0.25)?;
        let drawn = |cause| {
            let table = &table;
            move |seed: u64| {
                let drawn = table.draw(cause, seed)?;
                Ok(Rows { x: drawn.x, covariates: drawn.covariates, labels: drawn.labels })
            }
        };
        use crate::mechanisms::Cause;
        let site = Cause::Site { class: 0.0, feature: 1.5, rates_by_class: false, absent: false };
        let feature = Cause::Feature { least: false, class: 0.0 };
        let (pima, base) = ("pima, 700 rows", base + 5_000_000);
        let most = table.most_related_name();
        settings.push(class_beyond(pima, By::Site, &["site"], true, base, draws.min(300), drawn(site))?);
        settings.push(class_beyond(pima, By::Age, &[&most], true, base, draws.min(300), drawn(feature))?);
        settings.push(chance(pima, By::Chance, true, base, draws.min(300), drawn(Cause::Chance))?);
        let other = Table::read(data, "breast-cancer", 520, 0.35)?;
        let by_chance = |seed: u64| {
            let drawn = other.draw(Cause::Chance, seed)?;
            Ok(Rows { x: drawn.x, covariates: drawn.covariates, labels: drawn.labels })
        };
        settings.push(chance("breast cancer, 520 rows", By::Chance, true, base + 300_000, draws, by_chance)?);
        settings.push(class_enough(pima, By::Class, true, base, refits.min(300), drawn(Cause::Class))?);
        settings.push(class_enough(pima, By::Chance, true, base, refits.min(300), drawn(Cause::Chance))?);
    }
    Ok(settings)
}

fn evidence<'a>(rows: &'a Rows, names: &'a [String], folds: u64) -> Result<Evidence<'a>> {
    let plan = FoldPlan::for_labels(&rows.labels, FOLDS, folds)?;
    let features = Features { x: &rows.x, names, classifier: &REGRESSION };
    Ok(Evidence::cross_fit(features, &rows.labels, plan, folds, &())?.with_covariates(&rows.covariates)?)
}

fn setting(
    world: &str,
    by: By,
    question: String,
    null: bool,
    base: u64,
    draws: usize,
    p_value: impl Fn(&crate::draws::Seeds) -> Result<f64> + Sync,
) -> Result<Setting> {
    let drawn = run(&format!("{world}, {}, {question}", by.words()), base, draws, p_value)?;
    let rejected = Share::of(drawn.values.iter().map(|p| *p <= 0.05));
    eprintln!(
        "{world:24} {:16} {question:60} {} {}",
        by.words(),
        if null { "size " } else { "power" },
        rejected.show()
    );
    let (world, labels_depend_on) = (world.to_owned(), by.words().to_owned());
    Ok(Setting { world, labels_depend_on, question, null, draws, failed: drawn.failed, rejected })
}

fn chance(
    world: &str,
    by: By,
    null: bool,
    base: u64,
    draws: usize,
    rows: impl Fn(u64) -> Result<Rows> + Sync,
) -> Result<Setting> {
    setting(world, by, "is it chance".to_owned(), null, base, draws, |seeds| {
        let rows = rows(seeds.data)?;
        let evidence = evidence(&rows, &[], seeds.folds)?;
        let sample = Sample::new(&evidence.posteriors, &rows.labels)?;
        Ok(PermutationTest { permutations: 499, seed: seeds.resample }.run(&sample, &evidence.plan)?.p_value)
    })
}

fn class_beyond(
    world: &str,
    by: By,
    columns: &[&str],
    null: bool,
    base: u64,
    draws: usize,
    rows: impl Fn(u64) -> Result<Rows> + Sync,
) -> Result<Setting> {
    let question = format!("does the class matter beyond {}", columns.join(" and "));
    let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
    setting(world, by, question, null, base, draws, |seeds| {
        let rows = rows(seeds.data)?;
        let evidence = evidence(&rows, &[], seeds.folds)?;
        let sample = Sample::new(&evidence.posteriors, &rows.labels)?;
        let given = rows.covariates.select(&columns)?;
        let test = BeyondColumns { permutations: 499, seed: seeds.resample };
        Ok(test.run(&sample, &evidence.plan, &given)?.p_value)
    })
}

fn class_enough(
    world: &str,
    by: By,
    null: bool,
    base: u64,
    draws: usize,
    rows: impl Fn(u64) -> Result<Rows> + Sync,
) -> Result<Setting> {
    setting(world, by, "is the class enough".to_owned(), null, base, draws, |seeds| {
        let rows = rows(seeds.data)?;
        let evidence = evidence(&rows, &[], seeds.folds)?;
        let settings = EstimateSettings {
            given: Given::None,
            interval: IntervalMethod::Bootstrap,
            permutations: 1,
            seed: seeds.resample,
            ..Default::default()
        };
        let found = settings.run(&evidence, &())?;
        let check = found.labelling.and_then(|labelling| labelling.class_enough).context("no check")?;
        Ok(check.p_value)
    })
}
