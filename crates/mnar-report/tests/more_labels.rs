//! What is promised of a random sample is what an audit of that size gives.
#![allow(clippy::unwrap_used)]

use mnar::analysis::{Audit, EstimateSettings, Evidence, IntervalMethod};
use mnar::{Class, Labels, PosteriorKind, Posteriors};
use mnar_report::MoreLabels;
use ndarray::Array2;

/// A number in [0, 1) that looks random, from its place: the test needs no generator.
fn scattered(at: usize, salt: u64) -> f64 {
    let mut z = (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(salt.wrapping_mul(0xbf58_476d_1ce4_e5b9));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[test]
fn an_audit_is_as_precise_as_promised() {
    let (n, m, phi) = (4000, 200, [0.5, 0.1]);
    // Rows of which the predictions know much: p is near 0 or near 1, with a third of the rows in class 0.
    let p = |row: usize| if scattered(row, 1) < 0.3 { 0.6 + 0.39 * scattered(row, 2) } else { 0.2 * scattered(row, 2) };
    let class = |row: usize| usize::from(scattered(row, 3) >= p(row));
    let labelled = |row: usize| scattered(row, 4) < phi[class(row)];
    let audited: Vec<bool> = (0..n).map(|row| row % (n / m) == 0).collect();
    let y = (0..n).map(|row| (audited[row] || labelled(row)).then(|| Class::from(class(row)))).collect();
    let labels = Labels::new(y, vec!["ill".into(), "well".into()]).unwrap();
    let (rest, audit) = Audit::split(&labels, &audited).unwrap();
    let of_labelled = |row: usize| {
        let odds = [p(row) * phi[0], (1.0 - p(row)) * phi[1]];
        odds.map(|odd| odd / (odds[0] + odds[1]))
    };
    let s = Array2::from_shape_fn((n, 2), |(row, k)| of_labelled(row)[k]);
    let posteriors = Posteriors::new(s, PosteriorKind::Labelled).unwrap();
    let evidence = Evidence::predictions(&posteriors, &rest).with_audit(Some(&audit));
    let settings = EstimateSettings { interval: IntervalMethod::Information, ..Default::default() };
    let found = settings.run(&evidence, &()).unwrap();
    let (low, high) = found.prevalence_ci95.unwrap()[0];

    let open: f64 = (0..n).map(|row| p(row) * (1.0 - p(row))).sum::<f64>() / n as f64;
    let more = MoreLabels::new(found.prevalence.as_slice(), &[open, open], n, None);
    let promised = more.samples.iter().find(|sample| sample.labels == m).unwrap();
    assert!((promised.width[0] / (high - low) - 1.0).abs() < 0.15, "{} {}", promised.width[0], high - low);
    // The predictions help.
    assert!(promised.width[0] < 0.75 * promised.width_alone[0]);
}
