//! The unlabelled rows that would teach most.

use crate::report::{Guess, UncertainRow};
use base64::Engine as _;
use mnar::{Labels, Posteriors};

/// Rows that are shown.
const SHOWN: usize = 12;
/// Their most probable classes.
const GUESSES: usize = 3;

/// The unlabelled rows of largest entropy of p(y | x, r = 0) ∝ p(y | x) (1 − phi_y), from p(y | x). `name` is the file of
/// a row, `png` its image, where it has one.
pub fn most_uncertain(
    population: &Posteriors,
    labels: &Labels,
    phi: &[f64],
    name: impl Fn(usize) -> Option<String>,
    png: impl Fn(usize) -> Option<Vec<u8>>,
) -> Vec<UncertainRow> {
    let hidden = (0..labels.len()).filter(|&row| !labels.is_labelled(row));
    let mut guessed: Vec<(f64, usize, Vec<f64>)> = hidden
        .filter_map(|row| {
            let p = population.given_unlabelled(row, phi)?;
            let entropy = -p.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>();
            Some((entropy, row, p))
        })
        .collect();
    guessed.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    guessed.truncate(SHOWN);
    let shown = guessed.into_iter().map(|(_, row, p)| {
        let mut order: Vec<usize> = (0..p.len()).collect();
        order.sort_by(|&a, &b| p[b].total_cmp(&p[a]));
        let guess = |&k: &usize| Guess { class: labels.names()[k].clone(), probability: p[k] };
        let address =
            |png: Vec<u8>| format!("data:image/png;base64,{}", base64::engine::general_purpose::STANDARD.encode(png));
        UncertainRow {
            row: row + 1,
            name: name(row),
            classes: order.iter().take(GUESSES).map(guess).collect(),
            thumbnail: png(row).map(address),
        }
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mnar::PosteriorKind;
    use ndarray::arr2;

    #[test]
    fn the_least_certain_unlabelled_row_comes_first() {
        let p = arr2(&[[0.5, 0.5], [0.9, 0.1], [0.55, 0.45], [0.99, 0.01]]);
        let population = Posteriors::new(p, PosteriorKind::Population).unwrap();
        let labels = Labels::from_values(vec![Some("a"), None, None, Some("b")]).unwrap();
        let rows = most_uncertain(&population, &labels, &[0.5, 0.5], |_| None, |row| Some(vec![row as u8]));
        assert_eq!(rows.iter().map(|row| row.row).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(rows[0].classes[0], Guess { class: "a".into(), probability: 0.55 });
        assert_eq!(rows[0].thumbnail.as_deref(), Some("data:image/png;base64,Ag=="));
        // A class that is always labelled is never that of an unlabelled row.
        let certain = most_uncertain(&population, &labels, &[1.0, 0.5], |_| None, |_| None);
        assert_eq!(certain[0].classes[0], Guess { class: "b".into(), probability: 1.0 });
    }
}
