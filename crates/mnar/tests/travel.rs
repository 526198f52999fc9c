//! Sums that travel: rows in several places give the results of rows in one, to the same bits in any order.

#![allow(clippy::unwrap_used)]

use mnar::analysis::{
    About, EstimateSettings, Evidence, Findings, Given, StreamedColumns, StreamedGroups, TestSettings,
};
use mnar::covariates::{ColumnSummary, Covariate, RowCounts};
use mnar::crossfit::FoldPlan;
use mnar::evaluate::{EvaluateSettings, Metric, Model, Scores, StreamedModel};
use mnar::posteriors::Renormalised;
use mnar::rows::{Block, Sums};
use mnar::test::PermutationTest;
use mnar::travel::{Census, Partitions, Walk, WalkRows};
use mnar::{Class, Error, Labels, PosteriorKind, Posteriors, Rows, Sample};
use ndarray::Array2;

const K: usize = 3;
const N: usize = 6000;

/// A table whose labels favour the last class and the site "b".
struct Table {
    p: Array2<f64>,
    y: Vec<Option<Class>>,
    site: Vec<usize>,
    age: Vec<f64>,
}

fn uniform(i: usize, salt: u64) -> f64 {
    let mut x = (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt.wrapping_mul(0xD1B5_4A32_D192_ED03);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

fn table() -> Table {
    let class: Vec<usize> = (0..N).map(|i| (uniform(i, 1) * K as f64) as usize).collect();
    let site: Vec<usize> = (0..N).map(|i| usize::from(uniform(i, 2) < 0.4)).collect();
    let logit = |i: usize, k: usize| {
        let signal = if class[i] == k { 1.8 } else { 0.0 };
        signal + 1.5 * (uniform(i, 10 + k as u64) - 0.5)
    };
    let logits = Array2::from_shape_fn((N, K), |(i, k)| logit(i, k));
    let p = Posteriors::from_logits(logits.view(), PosteriorKind::Labelled).unwrap().view().to_owned();
    let y = (0..N)
        .map(|i| {
            let phi = [0.1, 0.2, 0.5][class[i]] * [0.7, 1.5][site[i]];
            (uniform(i, 3) < phi).then(|| Class::from(class[i]))
        })
        .collect();
    Table { p, y, site, age: (0..N).map(|i| 20.0 + (60.0 * uniform(i, 4)).floor()).collect() }
}

fn names() -> Vec<String> {
    ["a", "b", "c"].map(str::to_owned).to_vec()
}

impl Table {
    /// Uneven parts, one of them empty and one without a label.
    fn places(&self) -> Vec<std::ops::Range<usize>> {
        let quiet = (0..N).find(|&i| self.y[i..i + 3].iter().all(Option::is_none)).unwrap();
        vec![0..quiet, quiet..quiet + 3, quiet + 3..2500, 2500..2500, 2500..5100, 5100..N]
    }

    fn site_name(&self, i: usize) -> &'static str {
        ["a", "b"][self.site[i]]
    }

    /// What a place says about its columns.
    fn census(&self, place: std::ops::Range<usize>) -> Census {
        let mut site = ColumnSummary::categorical("site", Vec::new(), RowCounts::default());
        let mut age = ColumnSummary::numeric("age");
        let rows = place.len();
        for i in place {
            let labelled = self.y[i].is_some();
            let mut one = RowCounts::default();
            one.add(labelled, 1);
            site.add_name(Some(self.site_name(i)), one);
            age.add(self.age[i], labelled, 1);
        }
        Census { rows, renormalised: Renormalised::default(), columns: vec![site, age] }
    }

    /// All places add their rows to the walk, whose given columns are `given`; they answer in the order that `turn` begins with.
    fn walk(&self, given: &[Vec<f64>], job: &[u8], turn: usize) -> Result<Vec<Vec<u8>>, Error> {
        let mut places = self.places();
        let count = places.len();
        places.rotate_left(turn % count);
        let mut parts = Vec::new();
        for place in places {
            let mut walk = Walk::from_bytes(job)?;
            let wanted = walk.rows();
            let read = |i: &usize| match wanted {
                WalkRows::All => true,
                WalkRows::Labelled => self.y[*i].is_some(),
                WalkRows::Unlabelled => self.y[*i].is_none(),
            };
            let rows: Vec<usize> = place.filter(read).collect();
            let column = |values: &dyn Fn(usize) -> f64| rows.iter().map(|&i| values(i)).collect::<Vec<f64>>();
            let columns: Vec<Vec<f64>> = (0..K).map(|k| column(&|i| self.p[(i, k)])).collect();
            let terms: Vec<Vec<f64>> = given.iter().map(|term| column(&|i| term[i])).collect();
            let labels: Vec<Option<Class>> = rows.iter().map(|&i| self.y[i]).collect();
            walk.add(&Block {
                columns: &columns.iter().map(Vec::as_slice).collect::<Vec<_>>(),
                labels: &labels,
                weights: None,
                given: &terms.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            });
            parts.push(walk.to_bytes());
        }
        Ok(parts)
    }

    fn partitions<'a>(&'a self, given: &'a [Vec<f64>], turn: usize) -> impl Rows + 'a {
        Partitions::new(names(), PosteriorKind::Labelled, move |job: &[u8]| self.walk(given, job, turn))
    }

    fn nouns(&self) -> (Posteriors, Labels) {
        let posteriors = Posteriors::new(self.p.clone(), PosteriorKind::Labelled).unwrap();
        (posteriors, Labels::new(self.y.clone(), names()).unwrap())
    }

    fn covariates(&self) -> Vec<Covariate> {
        let site = Covariate::categorical("site", (0..N).map(|i| Some(self.site_name(i))));
        vec![site, Covariate::numeric("age", self.age.clone())]
    }
}

fn close(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-10)
}

fn bits(found: &Findings) -> Vec<u64> {
    let se = found.phi_se.iter().chain(&found.prevalence_se).flatten();
    found.phi.iter().chain(found.prevalence.iter()).chain(se).map(|value| value.to_bits()).collect()
}

#[test]
fn an_estimate_is_that_of_one_place_and_the_same_bits_in_any_order() {
    let table = table();
    let (posteriors, labels) = table.nouns();
    let about = About::from(&labels);
    let settings = EstimateSettings::default();
    let one = settings.run_streamed(&Sample::new(&posteriors, &labels).unwrap(), about.clone()).unwrap();
    let several = settings.run_streamed(&table.partitions(&[], 0), about.clone()).unwrap();
    assert!(close(one.phi.as_slice(), several.phi.as_slice()), "{:?} {:?}", one.phi, several.phi);
    assert!(close(one.phi_se.as_ref().unwrap(), several.phi_se.as_ref().unwrap()));
    assert!((one.phi[2] / one.phi[0] - 5.0).abs() < 1.5, "{:?}", one.phi);
    for turn in 1..6 {
        let turned = settings.run_streamed(&table.partitions(&[], turn), about.clone()).unwrap();
        assert_eq!(bits(&several), bits(&turned));
    }
}

#[test]
fn columns_and_groups_are_those_of_one_place() {
    let table = table();
    let (posteriors, labels) = table.nouns();
    let about = About::from(&labels);
    let parts: Vec<Vec<u8>> = table.places().into_iter().map(|place| table.census(place).to_bytes()).collect();
    let census = Census::of_parts(&parts).unwrap();
    let turned: Vec<Vec<u8>> = parts.iter().rev().cloned().collect();
    assert_eq!(census, Census::of_parts(&turned).unwrap());
    assert_eq!(census.rows, N);

    let covariates = mnar::Covariates::new(table.covariates()).unwrap();
    let encoder = ColumnSummary::encoder(&census.columns, Vec::new()).unwrap();
    let mut given = encoder.terms(&covariates).unwrap();
    let grouping = census.columns[1].grouping().unwrap();
    let groups = grouping.of(&table.covariates()[1]).unwrap();
    // The groups are those of a table in memory.
    for (number, group) in table.covariates()[1].groups().iter().enumerate() {
        assert_eq!(grouping.names[number], group.name);
        assert!(group.rows.iter().all(|&row| groups[row] == number as f64));
    }
    given.push(groups);

    let settings = EstimateSettings { given: Given::Columns(vec!["site".into(), "age".into()]), ..Default::default() };
    let columns = StreamedColumns { columns: &census.columns, encoder: &encoder };
    let by = StreamedGroups { groups: &grouping, column: given.len() - 1 };
    let run = |turn: usize| {
        let rows = table.partitions(&given, turn);
        let found = settings.run_streamed_given(&rows, &rows, columns, about.clone()).unwrap();
        found.by_streamed_groups(&rows, by).unwrap()
    };
    let several = run(0);
    let evidence = Evidence::predictions(&posteriors, &labels).with_covariates(&covariates).unwrap();
    let in_memory = EstimateSettings {
        by: Some("age".into()),
        interval: mnar::analysis::IntervalMethod::Information,
        ..settings.clone()
    };
    let one = in_memory.run(&evidence, &()).unwrap();
    assert!(close(one.phi.as_slice(), several.phi.as_slice()), "{:?} {:?}", one.phi, several.phi);
    let terms = |found: &Findings| found.mechanism.clone().unwrap().terms;
    assert!(close(&terms(&one), &terms(&several)));
    for (one, several) in one.groups.unwrap().iter().zip(several.groups.as_ref().unwrap()) {
        assert_eq!((&one.group, one.n, one.n_labelled), (&several.group, several.n, several.n_labelled));
        assert!(close(&one.prevalence, &several.prevalence));
    }
    for turn in 1..6 {
        assert_eq!(bits(&several), bits(&run(turn)));
    }
}

#[test]
fn the_test_is_that_of_one_place() {
    let table = table();
    let (posteriors, labels) = table.nouns();
    let sample = Sample::new(&posteriors, &labels).unwrap();
    let plan = FoldPlan::given((0..N).map(|i| (i % 4) as u32).collect());
    let one = PermutationTest { permutations: 0, seed: 0 }.run(&sample, &plan).unwrap();
    let fold = vec![(0..N).map(|i| (i % 4) as f64).collect()];
    let run = |turn: usize| {
        let rows = table.partitions(&fold, turn);
        TestSettings::default().run_streamed(&rows, About::from(&labels), Some((0, 4))).unwrap().decision.result
    };
    let several = run(0);
    assert!((one.statistic - several.statistic).abs() < 1e-9 * one.statistic);
    assert_eq!((one.df, &one.condition), (several.df, &several.condition));
    assert!(several.p_value < 1e-12);
    assert_eq!(several, run(3));
}

/// Metrics are those of rows in memory; intervals, which rest on a jackknife here and on a bootstrap there, are about as wide.
#[test]
fn an_evaluation_is_that_of_one_place() {
    let table = table();
    let (posteriors, labels) = table.nouns();
    let covariates = mnar::Covariates::new(table.covariates()).unwrap();
    let census = table.census(0..N);
    let encoder = ColumnSummary::encoder(&census.columns[..1], Vec::new()).unwrap();
    let bucket: Vec<f64> = (0..N).map(|i| (50.0 * uniform(i, 77)).floor()).collect();
    let grouping = census.columns[0].grouping().unwrap();
    let group = grouping.of(&table.covariates()[0]).unwrap();
    for by_columns in [false, true] {
        let site = if by_columns { Given::Columns(vec!["site".into()]) } else { Given::None };
        let estimate = EstimateSettings { given: site, by: Some("site".into()), ..Default::default() };
        let settings = EvaluateSettings { estimate, ..Default::default() };
        let evidence = Evidence::predictions(&posteriors, &labels).with_covariates(&covariates).unwrap();
        let model = Model { name: "p".into(), scores: Scores::Probabilities(&posteriors) };
        let one = settings.run(&evidence, &[model], &()).unwrap();

        let mut given = if by_columns { encoder.terms(&covariates).unwrap() } else { Vec::new() };
        let terms = given.len();
        given.extend([group.clone(), bucket.clone()]);
        let run = |turn: usize| {
            let rows = table.partitions(&given, turn);
            let estimate = settings.mechanism(PosteriorKind::Labelled).unwrap();
            let about = About::from(&labels);
            let columns = StreamedColumns { columns: &census.columns[..1], encoder: &encoder };
            let found = match by_columns {
                true => estimate.run_streamed_given(&rows, &rows, columns, about).unwrap(),
                false => estimate.run_streamed(&rows, about).unwrap(),
            };
            let groups = Some((&grouping, terms));
            let model = StreamedModel { name: "p", groups, buckets: (terms + 1, 50) };
            settings.run_streamed(found, &rows, model).unwrap()
        };
        let several = run(0);
        let mut ratios = Vec::new();
        for metric in &several.metrics {
            let same = |other: &&Metric| {
                (other.name, &other.class, &other.group, other.population)
                    == (metric.name, &metric.class, &metric.group, metric.population)
            };
            let other = one.metrics.iter().find(same).unwrap();
            let (ours, theirs) = (metric.corrected.unwrap(), other.corrected.unwrap());
            assert!((ours - theirs).abs() < 1e-9, "{metric:?} {other:?}");
            assert!((metric.naive.unwrap() - other.naive.unwrap()).abs() < 1e-9);
            let width = |ci95: Option<(f64, f64)>| ci95.map(|(low, high)| high - low);
            if let (Some(ours), Some(theirs), None) = (width(metric.ci95), width(other.ci95), &metric.group) {
                ratios.push(ours / theirs);
            }
        }
        assert_eq!(several.confusion.len(), one.confusion.len());
        ratios.sort_by(f64::total_cmp);
        let (low, median, high) = (ratios[ratios.len() / 10], ratios[ratios.len() / 2], ratios[ratios.len() * 9 / 10]);
        // Intervals in memory are wider where they rest on a handful of rows, which a jackknife over buckets cannot see.
        assert!(low > 0.35 && (0.75..1.25).contains(&median) && high < 1.6, "{low} {median} {high}");
        let bits = |found: &mnar::evaluate::Evaluation| serde_json::to_string(found).unwrap();
        assert_eq!(bits(&several), bits(&run(2)));
    }
}

#[test]
fn a_class_without_a_label_is_named() {
    let mut table = table();
    table.y.iter_mut().for_each(|label| *label = label.filter(|class| class.index() != 1));
    let labels = Labels::new(table.y.clone(), names()).unwrap();
    let error = EstimateSettings::default().run_streamed(&table.partitions(&[], 0), About::from(&labels)).unwrap_err();
    let Error::ClassWithoutLabel { class, rows, .. } = error else { panic!("{error}") };
    assert_eq!(class, "b");
    let likely = |i: &usize| table.y[*i].is_none() && table.p.row(*i).iter().all(|p| *p <= table.p[(*i, 1)]);
    assert_eq!(rows, (0..N).filter(likely).count());
}

/// Sums that stay where they are, bytes of another version, damaged bytes and answers to another question are refused.
#[test]
fn what_cannot_be_used_is_refused() {
    let table = table();
    let rows = Partitions::new(names(), PosteriorKind::Labelled, |job: &[u8]| Ok(vec![job[..job.len() - 1].to_vec()]));
    assert!(mnar::sums::Tally::of(&rows).unwrap_err().to_string().contains("not of the pass"));
    let rows = Partitions::new(names(), PosteriorKind::Labelled, |job: &[u8]| {
        let mut newer = job.to_vec();
        newer[4] += 1;
        Ok(vec![newer])
    });
    assert!(mnar::sums::Tally::of(&rows).is_err());
    assert!(Walk::from_bytes(b"sums").is_err());
    assert!(Walk::from_bytes(b"mnar\x01T").is_err_and(|error| error.to_string().contains("another version")));
    assert!(Walk::from_bytes(b"mnar\x01?").is_err());
    #[derive(Clone)]
    struct Stays;
    impl Sums for Stays {
        fn add(&mut self, _: &Block<'_>) {}
        fn merge(&mut self, _: Self) {}
    }
    assert!(table.partitions(&[], 0).scan(&Stays).is_err());
}
