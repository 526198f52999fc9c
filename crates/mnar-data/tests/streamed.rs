//! Folders of Parquet files that are walked over in flat memory: what they give is what a table in memory gives.

#![allow(clippy::unwrap_used)]

use mnar::analysis::{About, EstimateSettings, Evidence, Findings, Given, StreamedColumns, StreamedGroups};
use mnar::evaluate::{EvaluateSettings, Metric, Model, Scores, StreamedModel};
use mnar::keys::Buckets;
use mnar::{PosteriorKind, Rows as _, Sample};
use mnar_data::{Beside, Column, ParquetPredictions, PredictionColumns, read_columns, read_predictions, write_table};
use std::path::PathBuf;
use tempfile::TempDir;

fn uniform(i: usize, salt: u64) -> f64 {
    let mut x = (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt.wrapping_mul(0xD1B5_4A32_D192_ED03);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// The same rows in one file and in several, one of which is empty and one of which has no labels. The sick, and those of the
/// North, are labelled more often.
fn files() -> (TempDir, PathBuf, PathBuf) {
    let n = 90_000;
    let p: Vec<f64> = (0..n).map(|i| uniform(i, 1)).collect();
    let q: Vec<f64> = p.iter().map(|p| 1.0 - p).collect();
    let site: Vec<Option<&str>> = (0..n).map(|i| Some(if uniform(i, 3) < 0.4 { "North" } else { "South" })).collect();
    let label = |i: usize| {
        let sick = uniform(i, 2) < p[i];
        let phi = if sick { 0.5 } else { 0.15 } * if site[i] == Some("North") { 1.0 } else { 0.5 };
        (uniform(i, 4) < phi && !(70_000..75_000).contains(&i)).then_some(if sick { "sick" } else { "well" })
    };
    let y: Vec<Option<&str>> = (0..n).map(label).collect();
    let folder = TempDir::new().unwrap();
    let (one, parts) = (folder.path().join("one.parquet"), folder.path().join("parts"));
    std::fs::create_dir(&parts).unwrap();
    let write = |path: PathBuf, rows: std::ops::Range<usize>| {
        let columns = [
            ("y", Column::Texts(y[rows.clone()].to_vec())),
            ("p_sick", Column::Numbers(&p[rows.clone()])),
            ("p_well", Column::Numbers(&q[rows.clone()])),
            ("site", Column::Texts(site[rows].to_vec())),
        ];
        write_table(&path, &columns).unwrap();
    };
    write(one.clone(), 0..n);
    for (k, rows) in [0..20_000, 20_000..20_000, 20_000..70_000, 70_000..75_000, 75_000..n].into_iter().enumerate() {
        write(parts.join(format!("part-{k}.parquet")), rows);
    }
    (folder, one, parts)
}

fn about(table: &ParquetPredictions) -> About {
    About {
        classes: table.names().to_vec(),
        n: table.rows(),
        n_labelled: table.n_labelled(),
        labelled_per_class: table.counts().to_vec(),
    }
}

fn assert_same(a: &Findings, b: &Findings) {
    let se = |found: &Findings| found.phi_se.clone().unwrap();
    for (a, b) in a.phi.iter().chain(&se(a)).zip(b.phi.iter().chain(&se(b))) {
        assert!((a - b).abs() < 1e-10, "{a} {b}");
    }
}

#[test]
fn a_folder_gives_the_estimate_of_a_table_in_memory() {
    let (_folder, one, parts) = files();
    let columns = PredictionColumns::new("y");
    let memory = read_predictions(&one, &columns).unwrap();
    let sample = Sample::new(&memory.posteriors, &memory.labels).unwrap();
    let settings = EstimateSettings::default();
    let expected = settings.run_streamed(&sample, About::from(&memory.labels)).unwrap();
    for path in [one, parts.clone(), parts.join("part-*.parquet")] {
        let table = ParquetPredictions::open(&path, &columns).unwrap();
        assert_eq!((table.rows(), table.counts()), (90_000, memory.labels.counts()));
        assert_same(&settings.run_streamed(&table, about(&table)).unwrap(), &expected);
        assert_eq!(ParquetPredictions::claimed_bytes(&path, &columns), Some(90_000 * 2 * 8));
        let mut labels = Vec::new();
        let visited = table.walk_labels(|rows| {
            labels.extend_from_slice(rows.labels);
            Ok(())
        });
        visited.unwrap();
        assert_eq!(labels, memory.labels.as_slice());
    }
}

#[test]
fn columns_groups_and_metrics_of_a_folder_are_those_of_a_table_in_memory() {
    let (_folder, one, parts) = files();
    let columns = PredictionColumns::new("y");
    let memory = read_predictions(&one, &columns).unwrap();
    let covariates = read_columns(&one, &["site".into()], &[]).unwrap().covariates().unwrap();
    let evidence = Evidence::predictions(&memory.posteriors, &memory.labels).with_covariates(&covariates).unwrap();
    let table = ParquetPredictions::open(&parts, &columns).unwrap();
    let buckets = Buckets::of_jackknife(3);
    for given in [&[][..], &["site".to_owned()]] {
        let beside = Beside { given, by: Some("site"), buckets: Some(buckets) };
        let rows = table.with(beside).unwrap();
        let terms = rows.encoder().n_terms();
        let groups = rows.groups().unwrap();
        assert_eq!(groups.names, ["North", "South"]);
        let estimate = EstimateSettings {
            given: if given.is_empty() { Given::None } else { Given::Columns(given.to_vec()) },
            by: Some("site".into()),
            replicates: Some(10),
            ..Default::default()
        };
        let settings = EvaluateSettings { estimate, ..Default::default() };
        let model = Model { name: "p_".into(), scores: Scores::Probabilities(&memory.posteriors) };
        let expected = settings.run(&evidence, &[model], &()).unwrap();

        let mechanism = settings.mechanism(PosteriorKind::Labelled).unwrap();
        let streamed = StreamedColumns { columns: rows.columns(), encoder: rows.encoder() };
        let found = match terms {
            0 => mechanism.run_streamed(&table, about(&table)).unwrap(),
            _ => mechanism.run_streamed_given(&table, &rows, streamed, about(&table)).unwrap(),
        };
        let by_groups = found.clone().by_streamed_groups(&rows, StreamedGroups { groups, column: terms }).unwrap();
        let sizes: Vec<usize> = by_groups.groups.unwrap().iter().map(|group| group.n).collect();
        assert_eq!(sizes.iter().sum::<usize>(), 90_000);
        let model = StreamedModel { name: "p_", groups: Some((groups, terms)), buckets: (terms + 1, 50) };
        let found = settings.run_streamed(found, &rows, model).unwrap();
        assert!(found.metrics.len() > 50, "{}", found.metrics.len());
        for metric in &found.metrics {
            let same = |other: &&Metric| {
                (other.name, &other.class, &other.group, other.population)
                    == (metric.name, &metric.class, &metric.group, metric.population)
            };
            let other = expected.metrics.iter().find(same).unwrap();
            let (ours, theirs) = (metric.corrected.unwrap(), other.corrected.unwrap());
            assert!((ours - theirs).abs() < 1e-8, "{metric:?} {other:?}");
            assert!(metric.ci95.is_some());
        }
    }
    // A column of groups that is not there, and rows without anything beside them.
    assert!(table.with(Beside { by: Some("ward"), ..Default::default() }).is_err());
    let plain = table.with(Beside::default()).unwrap();
    let tally = mnar::sums::Tally::of(&plain).unwrap();
    assert_eq!(tally.n(), 90_000.0);
}
