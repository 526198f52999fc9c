//! Products of columns, columns that are streamed, and tilted mechanisms by class and columns: against closed forms and against
//! the same in memory.

#![allow(clippy::unwrap_used)]

use mnar::analysis::{About, EstimateSettings, Evidence, Given, IntervalMethod, StreamedColumns};
use mnar::covariates::{ColumnSummary, Covariate, Covariates, Design, Product, RowCounts, TermEncoder};
use mnar::diagnose::{most_uncertain, most_uncertain_by};
use mnar::mechanism::ClassAndColumns;
use mnar::{Class, Labels, Phi, PosteriorKind, Posteriors, Rows, Sample};
use ndarray::{Array2, arr2};
use rand::{RngExt as _, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn slices(design: &Design) -> Vec<&[f64]> {
    design.columns().iter().map(Vec::as_slice).collect()
}

fn product(first: &str, second: &str) -> Vec<Product> {
    vec![Product { first: first.into(), second: second.into() }]
}

/// With two columns of two names, their product, and posteriors that tell nothing about the class, the fit is saturated: the
/// labelling rate of every cell. Without the product these rates are out of reach.
#[test]
fn two_binary_columns_and_their_product_are_the_cells() {
    let counts = [[(10, 90), (60, 40)], [(50, 50), (20, 180)]];
    let (mut y, mut site, mut sex) = (Vec::new(), Vec::new(), Vec::new());
    for (i, by_site) in counts.iter().enumerate() {
        for (j, &(labelled, unlabelled)) in by_site.iter().enumerate() {
            for row in 0..labelled + unlabelled {
                y.push((row < labelled).then(|| Class::from(row % 2)));
                site.push(Some(["A", "B"][i]));
                sex.push(Some(["f", "m"][j]));
            }
        }
    }
    let posteriors = Posteriors::new(Array2::from_elem((y.len(), 2), 0.5), PosteriorKind::Labelled).unwrap();
    let labels = Labels::new(y, vec!["no".into(), "yes".into()]).unwrap();
    let columns = vec![Covariate::categorical("site", site), Covariate::categorical("sex", sex)];
    let covariates = Covariates::new(columns).unwrap();
    let flat = ClassAndColumns { class_spread: 1e3, term_spread: 1e3, ..Default::default() };
    let furthest = |products: Vec<Product>| {
        let design = Design::with_products(&covariates, products).unwrap();
        let given = slices(&design);
        let sample = Sample::new(&posteriors, &labels).unwrap().given(&given).unwrap();
        let found = flat.estimate(&sample, design.len()).unwrap();
        assert!(found.estimate.stop.converged());
        let mut start = 0;
        let mut furthest: f64 = 0.0;
        for &(labelled, unlabelled) in counts.iter().flatten() {
            let n = labelled + unlabelled;
            // The prior of the classes makes both effects the same, so that phi is P(labelled) of the cell.
            let phi = found.mechanism.phi(0, given.iter().map(|column| column[start]));
            furthest = furthest.max((phi - labelled as f64 / n as f64).abs());
            start += n;
        }
        furthest
    };
    assert!(furthest(product("site", "sex")) < 1e-5, "{}", furthest(product("site", "sex")));
    assert!(furthest(Vec::new()) > 0.05);
}

#[test]
fn products_are_named_checked_and_saved() {
    let columns = Covariates::new(vec![
        Covariate::categorical("site", [Some("A"), Some("B"), None, Some("A")]),
        Covariate::numeric("age", vec![20.0, 40.0, f64::NAN, 60.0]),
        Covariate::numeric("a*b", vec![1.0, 2.0, 3.0, 4.0]),
    ])
    .unwrap();
    let names = |given: &[&str]| given.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    let of = |given: &[&str]| {
        let given = names(given);
        let selected =
            columns.select(&given).map(|all| all.columns().iter().map(|c| c.name.clone()).collect::<Vec<_>>());
        (selected, columns.products(&given))
    };
    let (selected, products) = of(&["site * age", "age*site", "age"]);
    assert_eq!((selected.unwrap(), products.unwrap()), (names(&["site", "age"]), product("site", "age")));
    // A column that has a star in its name is a column.
    let (selected, products) = of(&["a*b"]);
    assert_eq!((selected.unwrap(), products.unwrap().len()), (names(&["a*b"]), 0));
    assert!(of(&["site*weight"]).0.unwrap_err().to_string().contains("`weight`"));
    assert!(of(&["site*age*age"]).0.unwrap_err().to_string().contains("two columns"));
    assert!(TermEncoder::learn(&columns).with_products(product("age", "age")).is_err());

    // Every name with the age, a missing name included; a missing age has no slope.
    let encoder = TermEncoder::learn(&columns.select(&names(&["site", "age"])).unwrap());
    let encoder = encoder.with_products(product("site", "age")).unwrap();
    let terms = encoder.terms(&columns).unwrap();
    assert_eq!((terms.len(), encoder.n_terms()), (3 + 2 + 3, 8));
    let z = (60.0 - 40.0) / (800.0f64 / 3.0).sqrt();
    for (term, expected) in [(5, [-z, 0.0, 0.0, z]), (6, [0.0, 0.0, 0.0, 0.0]), (7, [0.0, 0.0, 0.0, 0.0])] {
        for (found, expected) in terms[term].iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{term}: {:?}", terms[term]);
        }
    }
    let read = serde_json::from_str::<TermEncoder>(&serde_json::to_string(&encoder).unwrap()).unwrap();
    assert_eq!((read.terms(&columns).unwrap(), read.check()), (terms, Ok(())));
    // Files of before have no products.
    let plain = serde_json::to_string(&TermEncoder::learn(&columns)).unwrap();
    assert!(!plain.contains("products"));

    let many: Vec<String> = (0..60).map(|row| format!("{}", row % 12)).collect();
    let wide = |name: &str| Covariate::categorical(name, many.iter().map(|text| Some(text.as_str())));
    let wide = Covariates::new(vec![wide("a"), wide("b")]).unwrap();
    assert!(Design::with_products(&wide, product("a", "b")).unwrap_err().to_string().contains("144 terms"));
}

/// Rows whose labels depend on the class, on two columns and on their product.
struct World {
    posteriors: Posteriors,
    labels: Labels,
    covariates: Covariates,
}

fn world(rows: usize, seed: u64, easy: f64) -> World {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut p, mut y, mut site, mut age) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let s: f64 = rng.random();
        let (class, at, years) =
            (usize::from(rng.random::<f64>() >= s), rng.random_range(0..3), 80.0 * rng.random::<f64>());
        let slope = [0.0, 0.8, -0.8][at];
        let logit = [0.5, -0.7][class]
            + [-0.5, 0.0, 0.5][at]
            + slope * (years - 40.0) / 23.0
            + easy * (2.0 * s.max(1.0 - s) - 1.5);
        y.push((rng.random::<f64>() < 1.0 / (1.0 + (-logit).exp())).then(|| Class::from(class)));
        p.extend([s, 1.0 - s]);
        site.push(Some(["A", "B", "C"][at]));
        age.push(if rng.random::<f64>() < 0.1 { f64::NAN } else { years });
    }
    World {
        // The classifier knows the classes of the population, so it is made one of the labelled rows below.
        posteriors: Posteriors::new(Array2::from_shape_vec((rows, 2), p).unwrap(), PosteriorKind::Labelled).unwrap(),
        labels: Labels::new(y, vec!["a".into(), "b".into()]).unwrap(),
        covariates: Covariates::new(vec![Covariate::categorical("site", site), Covariate::numeric("age", age)])
            .unwrap(),
    }
}

fn settings(given: &[&str]) -> EstimateSettings {
    EstimateSettings {
        given: Given::Columns(given.iter().map(|name| (*name).to_owned()).collect()),
        interval: IntervalMethod::Information,
        permutations: 99,
        ..Default::default()
    }
}

impl World {
    fn found(&self, settings: &EstimateSettings) -> mnar::analysis::Findings {
        let evidence = Evidence::predictions(&self.posteriors, &self.labels).with_covariates(&self.covariates).unwrap();
        settings.run(&evidence, &()).unwrap()
    }

    /// The summaries of the columns, as a pass over a file makes them.
    fn summaries(&self) -> Vec<ColumnSummary> {
        let labelled = |row: usize| self.labels.is_labelled(row);
        let mut age = ColumnSummary::numeric("age");
        let mnar::covariates::CovariateValues::Numeric(years) = &self.covariates.get("age").unwrap().values else {
            unreachable!()
        };
        years.iter().enumerate().for_each(|(row, years)| age.add(*years, labelled(row), 1));
        let count = |rows: &[usize]| {
            let mut counts = RowCounts::default();
            rows.iter().for_each(|&row| counts.add(labelled(row), 1));
            counts
        };
        let groups = self.covariates.get("site").unwrap().groups();
        let levels = groups.into_iter().map(|group| (group.name, count(&group.rows))).collect();
        vec![ColumnSummary::categorical("site", levels, RowCounts::default()), age]
    }
}

#[test]
fn streamed_columns_give_the_mechanism_of_columns_in_memory() {
    let world = world(3_000, 1, 0.0);
    let settings = settings(&["site*age"]);
    let in_memory = world.found(&settings);
    let summaries = world.summaries();
    let encoder = ColumnSummary::encoder(&summaries, product("site", "age")).unwrap();
    let terms = encoder.terms(&world.covariates).unwrap();
    let slices: Vec<&[f64]> = terms.iter().map(Vec::as_slice).collect();
    let rows = Sample::new(&world.posteriors, &world.labels).unwrap();
    let given = rows.given(&slices).unwrap();
    let columns = StreamedColumns { columns: &summaries, encoder: &encoder };
    let streamed = settings.run_streamed_given(&rows, &given, columns, About::from(&world.labels)).unwrap();
    let close = |a: &[f64], b: &[f64]| a.iter().zip(b).for_each(|(a, b)| assert!((a - b).abs() < 1e-8, "{a} {b}"));
    let (ours, theirs) = (streamed.mechanism.unwrap(), in_memory.mechanism.unwrap());
    close(&ours.classes, &theirs.classes);
    close(&ours.terms, &theirs.terms);
    close(streamed.phi.as_slice(), in_memory.phi.as_slice());
    close(&streamed.phi_se.unwrap(), &in_memory.phi_se.unwrap());
    close(&[streamed.effective_sample_size], &[in_memory.effective_sample_size]);
    let effects = in_memory.labelling.unwrap().effects;
    assert_eq!(effects.iter().map(|effect| effect.column.as_str()).collect::<Vec<_>>(), ["site", "age", "site x age"]);
    let terms: Vec<&str> = effects[2].terms.iter().map(|term| term.term.as_str()).collect();
    assert_eq!(terms.len(), 2, "{terms:?}");
    assert!(terms.iter().all(|term| term.starts_with("site=") && term.ends_with(" x age")), "{terms:?}");
    // The slopes of B and C differ by 1.6 per standard deviation, whichever site they are compared with.
    assert!(effects[2].terms.iter().any(|term| !(term.ci95.0 < 1.0 && term.ci95.1 > 1.0)));
    assert_eq!(streamed.effects[0].rates, effects[0].rates);
    assert_eq!(rows.renormalised(), streamed.renormalised);
    // Without the columns, the stream is refused: their effect cannot be left out in silence.
    assert!(settings.run_streamed(&rows, About::from(&world.labels)).is_err());
}

#[test]
fn summaries_refuse_what_columns_in_memory_refuse() {
    let rows = 40;
    let labels =
        Labels::from_values((0..rows).map(|i| (i % 4 == 0).then_some(if i % 8 == 0 { "a" } else { "b" }))).unwrap();
    let columns: Vec<(&str, Vec<f64>)> = vec![
        ("constant", vec![3.0; rows]),
        ("rare", (0..rows).map(|i| f64::from(u8::from(i != 3))).collect()),
        ("mostly high", (0..rows).map(|i| if i < 6 { i as f64 } else { 9.0 }).collect()),
        ("with the label", (0..rows).map(|i| if i % 4 == 0 { 2024.0 } else { f64::NAN }).collect()),
        ("apart", (0..rows).map(|i| if i % 4 == 0 { 1.0 + i as f64 } else { -(i as f64) }).collect()),
        ("middle", (0..rows).map(|i| [1.0, 0.0, 2.0, 2.0][i % 4]).collect()),
        ("zeros", (0..rows).map(|i| [0.0, -0.0][i % 2]).collect()),
        ("gaps", (0..rows).map(|i| if i % 3 == 0 { f64::NAN } else { 1.0 }).collect()),
        ("none", vec![f64::NAN; rows]),
        ("fine", (0..rows).map(|i| (i * 7 % 11) as f64).collect()),
    ];
    for (name, values) in columns {
        let mut summary = ColumnSummary::numeric(name);
        values.iter().enumerate().for_each(|(row, value)| summary.add(*value, labels.is_labelled(row), 1));
        let column = Covariates::new(vec![Covariate::numeric(name, values)]).unwrap();
        let in_memory = column.usable(&[name.to_owned()], &labels).map(drop).map_err(|error| error.to_string());
        assert_eq!(summary.check().map_err(|error| error.to_string()), in_memory, "{name}");
        let usable = ["rare", "mostly high", "gaps", "fine"].contains(&name);
        assert_eq!(in_memory.is_ok(), usable, "{name}: {in_memory:?}");
    }
}

/// At a factor of 1 the curve is the estimate; where easy rows are labelled more readily, the curve at that factor is nearer to
/// the truth than the estimate is.
#[test]
fn the_sensitivity_curve_tilts_the_mechanism_by_columns() {
    let world = world(6_000, 2, 0.0);
    let settings = EstimateSettings { sensitivity: vec![0.25, 1.0, 4.0], ..settings(&["site*age"]) };
    let found = world.found(&settings);
    let curve = found.sensitivity.unwrap();
    for k in 0..2 {
        assert!((curve[1].phi[k] - found.phi[k]).abs() < 1e-7, "{} {}", curve[1].phi[k], found.phi[k]);
        assert!((curve[1].prevalence[k] - found.prevalence[k]).abs() < 1e-7);
    }
    assert!((curve[0].phi[0] - curve[2].phi[0]).abs() > 1e-3);
    // By the class alone, the curve is another one.
    let alone = world.found(&EstimateSettings { given: Given::None, ..settings.clone() }).sensitivity.unwrap();
    assert!((alone[1].phi[0] - curve[1].phi[0]).abs() > 1e-4, "{} {}", alone[1].phi[0], curve[1].phi[0]);
    // The class has an effect here, so a breakdown point lies away from 1, if there is one.
    assert!(found.breakdown.is_none_or(|factor| (factor.ln()).abs() > 0.1));
}

/// Where labels depend on the product of two columns and the scores do too, the class seems to matter beyond the columns unless
/// their product is given.
#[test]
fn a_product_of_columns_is_not_taken_for_an_effect_of_the_class() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (mut p, mut y, mut a, mut b) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..4_000 {
        let (u, v) = (2.0 * rng.random::<f64>() - 1.0, 2.0 * rng.random::<f64>() - 1.0);
        let s = 1.0 / (1.0 + (-(2.0 * u * v + 2.0 * rng.random::<f64>() - 1.0)).exp());
        let class = usize::from(rng.random::<f64>() >= s);
        let labelled = rng.random::<f64>() < 1.0 / (1.0 + (-3.0 * u * v).exp());
        y.push(labelled.then(|| Class::from(class)));
        p.extend([s, 1.0 - s]);
        a.push(u);
        b.push(v);
    }
    let rows = y.len();
    let posteriors = Posteriors::new(Array2::from_shape_vec((rows, 2), p).unwrap(), PosteriorKind::Labelled).unwrap();
    let labels = Labels::new(y, vec!["no".into(), "yes".into()]).unwrap();
    let covariates = Covariates::new(vec![Covariate::numeric("a", a), Covariate::numeric("b", b)]).unwrap();
    let p_value = |given: &[&str]| {
        let evidence = Evidence::predictions(&posteriors, &labels).with_covariates(&covariates).unwrap();
        let found = settings(given).run(&evidence, &()).unwrap();
        found.labelling.unwrap().class_beyond_columns.unwrap().p_value
    };
    assert!(p_value(&["a", "b"]) < 0.05);
    assert!(p_value(&["a*b"]) > 0.05, "{}", p_value(&["a*b"]));
}

#[test]
fn uncertain_rows_have_the_phi_of_their_row() {
    let p =
        Posteriors::new(arr2(&[[0.5, 0.5], [0.6, 0.4], [0.6, 0.4], [0.9, 0.1]]), PosteriorKind::Population).unwrap();
    let labels = Labels::from_values(vec![Some("a"), None, None, Some("b")]).unwrap();
    let by_class = Phi::new(vec![0.5, 0.25]).unwrap();
    let rows =
        [by_class.clone(), Phi::new(vec![0.9, 0.1]).unwrap(), Phi::new(vec![0.4, 0.1]).unwrap(), by_class.clone()];
    // By the class alone both rows look the same, and the first comes first.
    assert_eq!(most_uncertain(&p, &labels, &by_class, 2)[0].row, 1);
    let found = most_uncertain_by(&p, &labels, |row| &rows[row], 2);
    // 0.6·0.6 : 0.4·0.9 is even; 0.6·0.1 : 0.4·0.9 is one to six.
    assert_eq!((found[0].row, found[1].row), (2, 1));
    assert!((found[0].probabilities[0] - 0.5).abs() < 1e-12 && (found[1].probabilities[0] - 1.0 / 7.0).abs() < 1e-12);
}
