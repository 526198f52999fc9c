//! Which mirrors and turns images allow, as far as the images themselves show it.

use super::geometry::{flip_depth, flip_horizontal, flip_vertical, quarter_turns};
use super::weak::Weak;
use mnar::Labels;
use mnar_data::{ImageShape, Images};
use serde::{Deserialize, Serialize};

/// Mirrors and turns that leave images as they are on average: those of all rows, and the labelled ones of every class.
///
/// An image of skin has no top, and a mirrored one is as good an example; a mirrored digit is not. With T the change, m the mean
/// image and v the mean squared distance of an image from it, ‖m − Tm‖²/v (less what chance adds) was at most 0.022 for
/// dermatoscopy and slices of nodules, at least 0.07 for digits and chest X-rays. Of single classes it was at most 0.054 and at least
/// 0.18. That digits as a whole are nearly symmetric is why classes are looked at too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Orientation {
    /// Left and right can be exchanged.
    pub horizontal: bool,
    /// Top and bottom can be exchanged.
    pub vertical: bool,
    /// Front and back of a volume can be exchanged.
    pub depth: bool,
    /// Images can be turned by 90 degrees. Only looked at where both mirrors are allowed.
    pub turns: bool,
}

/// Limits of ‖m − Tm‖²/v, of all rows and of the labelled rows of a class.
const LIMIT_OF_ALL: f64 = 0.03;
const LIMIT_OF_A_CLASS: f64 = 0.1;
/// Images that are looked at: 2,000 say as much about a mean as all of a million.
const MOST_IMAGES: usize = 2000;

impl Orientation {
    /// What the images show. A class with fewer than two labels is not looked at.
    pub fn of(images: &Images, labels: &Labels) -> Self {
        let shape = images.shape();
        let spread = |rows: Vec<usize>| {
            let step = rows.len().div_ceil(MOST_IMAGES).max(1);
            rows.into_iter().step_by(step).collect::<Vec<_>>()
        };
        let all = spread((0..images.len()).collect());
        let mut classes = vec![Vec::new(); labels.n_classes()];
        labels.labelled().for_each(|(row, class)| classes[class.index()].push(row));
        let classes: Vec<Vec<usize>> = classes.into_iter().map(spread).collect();
        let allowed = |change: &dyn Fn(&mut [f32], &mut [f32])| {
            asymmetry(images, &all, change) <= LIMIT_OF_ALL
                && classes.iter().all(|rows| asymmetry(images, rows, change) <= LIMIT_OF_A_CLASS)
        };
        let horizontal = allowed(&|image, _| flip_horizontal(image, shape));
        let vertical = allowed(&|image, _| flip_vertical(image, shape));
        let turns = horizontal
            && vertical
            && (shape.height != shape.width || allowed(&|image, scratch| quarter_turns(image, scratch, shape, 1)));
        Self { horizontal, vertical, depth: false, turns }
    }

    /// What a network has learnt to take as equal.
    pub fn of_view(view: &Weak) -> Self {
        Self {
            horizontal: view.flip_horizontal,
            vertical: view.flip_vertical,
            depth: view.flip_depth,
            turns: view.quarter_turns,
        }
    }

    /// In how many ways an image can be shown: as it is, mirrored and turned.
    pub fn views(self) -> usize {
        let ways = [self.horizontal, self.vertical, self.depth, self.turns];
        ways.into_iter().filter(|way| *way).fold(1, |views, _| 2 * views)
    }

    /// Shows an image in one of these ways; the first is as it is. Half a turn is two mirrors, so that one quarter turn is enough. An
    /// image that is not square cannot be turned, and is shown twice as often instead.
    pub(crate) fn show(self, view: usize, image: &mut [f32], scratch: &mut [f32], shape: ImageShape) {
        let mut left = view;
        let mut chosen = |allowed: bool| {
            let chosen = allowed && left % 2 == 1;
            left /= if allowed { 2 } else { 1 };
            chosen
        };
        if chosen(self.horizontal) {
            flip_horizontal(image, shape);
        }
        if chosen(self.vertical) {
            flip_vertical(image, shape);
        }
        if chosen(self.depth) {
            flip_depth(image, shape);
        }
        if chosen(self.turns) && shape.height == shape.width {
            quarter_turns(image, scratch, shape, 1);
        }
    }

    /// Whether the images have no preferred orientation at all.
    pub fn is_none(self) -> bool {
        self.horizontal && self.vertical && self.turns
    }

    /// Sets the mirrors and turns of a view.
    pub(super) fn apply(self, view: &mut Weak) {
        (view.flip_horizontal, view.flip_vertical) = (self.horizontal, self.vertical);
        view.quarter_turns = self.turns;
    }
}

/// ‖m − Tm‖²/v without its expectation under symmetry; 0 where there are not two different images.
fn asymmetry(images: &Images, rows: &[usize], change: &dyn Fn(&mut [f32], &mut [f32])) -> f64 {
    let width = images.shape().len();
    let n = rows.len() as f64;
    if rows.len() < 2 {
        return 0.0;
    }
    let mut sums = vec![[0.0f64; 4]; width];
    let mut scratch = vec![0.0; width];
    for &row in rows {
        let image: Vec<f32> = images.pixels(row).iter().map(|&pixel| f32::from(pixel)).collect();
        let mut changed = image.clone();
        change(&mut changed, &mut scratch);
        for (sums, (x, changed)) in sums.iter_mut().zip(image.iter().zip(&changed)) {
            let (x, difference) = (f64::from(*x), f64::from(x - changed));
            let terms = [x, x * x, difference, difference * difference];
            sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        }
    }
    let (mut spread, mut off, mut chance) = (0.0, 0.0, 0.0);
    for [x, xx, d, dd] in sums {
        spread += xx / n - (x / n).powi(2);
        off += (d / n).powi(2);
        chance += (dd / n - (d / n).powi(2)) / (n - 1.0);
    }
    if spread > 0.0 { (off - chance) / spread } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mnar_data::ImageShape;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn labels(n: usize) -> Labels {
        let names = ["a", "b"].map(String::from).to_vec();
        let label = |i: usize| (i < n / 2).then_some(if i.is_multiple_of(2) { "a" } else { "b" });
        Labels::with_names((0..n).map(label), names).unwrap()
    }

    /// Noise, with brighter pixels where `bright` says so for a row, a line and a column.
    fn images(n: usize, bright: impl Fn(usize, usize, usize) -> bool) -> Images {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut pixels = Vec::new();
        for row in 0..n {
            for at in 0..36 {
                let noise: f64 = rng.random();
                pixels.push((100.0 * noise + if bright(row, at / 6, at % 6) { 100.0 } else { 0.0 }) as u8);
            }
        }
        Images::new(ImageShape::flat(6, 6, 1), pixels, "noise").unwrap()
    }

    /// All views differ, are made of the same pixels, and the first is the image itself.
    #[test]
    fn every_view_is_shown_once() {
        let all = Orientation { horizontal: true, vertical: true, depth: true, turns: true };
        let flat = Orientation { depth: false, ..all };
        let mirrors = Orientation { turns: false, ..flat };
        let (square, oblong) = (ImageShape::flat(3, 3, 2), ImageShape::flat(2, 4, 1));
        let volume = ImageShape { depth: 2, height: 3, width: 3, channels: 1 };
        for (orientation, shape, views) in
            [(Orientation::default(), square, 1), (mirrors, oblong, 4), (flat, square, 8), (all, volume, 16)]
        {
            assert_eq!(orientation.views(), views);
            let image: Vec<f32> = (0..shape.len()).map(|value| value as f32).collect();
            let mut seen: Vec<Vec<f32>> = Vec::new();
            for view in 0..views {
                let (mut shown, mut scratch) = (image.clone(), vec![0.0; image.len()]);
                orientation.show(view, &mut shown, &mut scratch, shape);
                assert!(!seen.contains(&shown) && (view > 0 || shown == image));
                let mut sorted = shown.clone();
                sorted.sort_by(f32::total_cmp);
                assert_eq!(sorted, image);
                seen.push(shown);
            }
        }
        assert_eq!(Orientation::of_view(&Weak { flip_vertical: true, shift: 3, ..Default::default() }).views(), 2);
    }

    #[test]
    fn mirrors_and_turns_are_those_that_change_nothing() {
        let found = |bright: fn(usize, usize, usize) -> bool| Orientation::of(&images(200, bright), &labels(200));
        let all = Orientation { horizontal: true, vertical: true, depth: false, turns: true };
        assert_eq!(found(|_, y, x| (2..4).contains(&y) && (2..4).contains(&x)), all);
        assert!(all.is_none() && !found(|_, y, _| y < 2).is_none());
        assert_eq!(found(|_, y, _| y < 2), Orientation { horizontal: true, ..Default::default() });
        assert_eq!(found(|_, y, _| (2..4).contains(&y)), Orientation { turns: false, ..all });
        // Together the classes are symmetric, but a mirror exchanges them.
        let exchanged = found(|row, _, x| if row.is_multiple_of(2) { x < 3 } else { x >= 3 });
        assert_eq!(exchanged, Orientation { vertical: true, ..Default::default() });
    }
}
