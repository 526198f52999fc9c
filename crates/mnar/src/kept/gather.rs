//! The sums that keep rows. Which rows are in a sample follows from keys of the rows, so the same rows are kept in whatever order
//! the parts of a pass are merged.

use super::Keep;
use crate::keys::mixed;
use crate::labels::Class;
use crate::rows::{Block, Sums};
use crate::travel::{Bytes, bytes, travels};

/// Labelled or unlabelled rows: all of them, or those with the lowest keys.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// More rows than this are cut down to the sample.
    limit: usize,
    sample: usize,
    /// How many rows are expected to be kept; 0 where that is not known.
    expected: usize,
    /// Rows with higher keys are left out; the highest number as long as none is.
    threshold: u64,
    keys: Vec<u64>,
    pub(super) labels: Vec<Option<Class>>,
    /// Probabilities, and given columns after them.
    columns: Vec<Vec<f64>>,
}

bytes!(Part { limit, sample, expected, threshold, keys, labels, columns });

impl Part {
    fn new(width: usize, limit: usize, sample: usize) -> Self {
        let columns = vec![Vec::new(); width];
        Self { limit, sample, expected: 0, threshold: u64::MAX, keys: Vec::new(), labels: Vec::new(), columns }
    }

    /// Leaves rows out from the start where this many are expected, which are more than are kept.
    fn expect(&mut self, rows: usize) {
        self.expected = rows;
        if rows > self.limit {
            // A fifth more than the sample: were they too few, the sample would be smaller than need be.
            let share = (1.2 * self.sample as f64 / rows as f64).min(1.0);
            self.threshold = (share * u64::MAX as f64) as u64;
            self.expected = (share * rows as f64) as usize;
        }
    }

    fn push(&mut self, key: u64, block: &Block<'_>, i: usize) {
        self.keys.push(key);
        self.labels.push(block.labels[i]);
        for (kept, column) in self.columns.iter_mut().zip(block.columns.iter().chain(block.given)) {
            kept.push(column[i]);
        }
    }

    fn has_all(&self) -> bool {
        self.threshold == u64::MAX
    }

    /// The highest of the `rows` lowest keys; the present threshold where there are no more.
    fn lowest(&self, rows: usize) -> u64 {
        if rows == 0 || self.keys.len() <= rows {
            return self.threshold;
        }
        let mut sorted = self.keys.clone();
        *sorted.select_nth_unstable(rows - 1).1
    }

    /// Keeps the `rows` rows with the lowest keys.
    fn cut(&mut self, rows: usize) {
        self.threshold = self.lowest(rows);
        if rows == 0 || self.keys.len() <= rows {
            return;
        }
        let stays: Vec<bool> = self.keys.iter().map(|key| *key <= self.threshold).collect();
        fn retain<T>(values: &mut Vec<T>, stays: &[bool]) {
            let mut stays = stays.iter();
            values.retain(|_| stays.next().copied().unwrap_or(false));
        }
        retain(&mut self.keys, &stays);
        retain(&mut self.labels, &stays);
        self.columns.iter_mut().for_each(|column| retain(column, &stays));
    }

    /// Makes room for all rows at once when these are more than a few of them: doubling takes up to twice the memory.
    fn make_room(&mut self, more: usize) {
        let rows = self.keys.len() + more;
        if rows > self.keys.capacity() && rows > self.expected / 16 && rows < self.expected {
            let room = self.expected - self.keys.len();
            self.keys.reserve_exact(room);
            self.labels.reserve_exact(room);
            self.columns.iter_mut().for_each(|column| column.reserve_exact(room));
        }
    }

    fn merge(&mut self, other: Self) {
        self.make_room(other.keys.len());
        self.threshold = self.threshold.min(other.threshold);
        self.keys.extend(other.keys);
        self.labels.extend(other.labels);
        self.columns.iter_mut().zip(other.columns).for_each(|(column, other)| column.extend(other));
        if self.keys.len() > self.limit {
            self.cut(self.sample);
        }
    }

    /// About as many rows as the sample has, where all rows were kept and these are more.
    pub(super) fn sampled(&self) -> Self {
        // Keys are spread evenly. To find the threshold for exactly so many rows, all keys would be held twice.
        let share = (self.sample as f64 / self.keys.len().max(1) as f64).min(1.0);
        let threshold = self.threshold.min((share * u64::MAX as f64) as u64);
        let rows: Vec<usize> = (0..self.keys.len()).filter(|&i| self.keys[i] <= threshold).collect();
        fn take<T: Copy>(values: &[T], rows: &[usize]) -> Vec<T> {
            rows.iter().map(|&i| values[i]).collect()
        }
        Self {
            threshold,
            keys: take(&self.keys, &rows),
            labels: take(&self.labels, &rows),
            columns: self.columns.iter().map(|column| take(column, &rows)).collect(),
            ..*self
        }
    }

    /// Hands over the rows, each with this weight.
    pub(super) fn with<T>(&self, classes: usize, weight: Option<f64>, visit: impl FnOnce(&Block<'_>) -> T) -> T {
        let columns: Vec<&[f64]> = self.columns.iter().map(Vec::as_slice).collect();
        let (columns, given) = columns.split_at(classes.min(columns.len()));
        let weights = weight.map(|weight| vec![weight; self.labels.len()]);
        visit(&Block { columns, labels: &self.labels, weights: weights.as_deref(), given })
    }

    /// Whether all fields are of the same rows, as they are unless bytes were made up.
    fn is_sound(&self, width: usize, classes: usize) -> bool {
        let rows = self.keys.len();
        self.columns.len() == width
            && self.labels.len() == rows
            && self.columns.iter().all(|column| column.len() == rows)
            && self.labels.iter().flatten().all(|class| class.index() < classes)
    }
}

/// Keeps the labelled rows, and a sample of the unlabelled ones.
#[derive(Clone)]
pub(crate) struct Gather {
    pub(super) classes: usize,
    width: usize,
    /// Rows seen by this part of a pass.
    seen: usize,
    /// Whether rows had weights, which are not kept.
    weighted: bool,
    pub(super) labelled: Part,
    pub(super) unlabelled: Part,
}

bytes!(Gather { classes, width, seen, weighted, labelled, unlabelled });

impl Gather {
    pub(super) fn new(classes: usize, given: usize, keep: Keep) -> Self {
        let width = classes + given;
        let limit = (keep.labelled_numbers / width.max(1)).max(keep.sample);
        Self {
            classes,
            width,
            seen: 0,
            weighted: false,
            labelled: Part::new(width, limit, keep.sample),
            unlabelled: Part::new(width, 2 * keep.sample, keep.sample),
        }
    }

    /// The same, with room for the rows that are expected.
    pub(super) fn expecting(mut self, unlabelled: usize, labelled: usize) -> Self {
        self.unlabelled.expect(unlabelled);
        self.labelled.expect(labelled);
        self
    }

    /// Cuts parts of which rows were left out down to the sample.
    pub(super) fn finish(&mut self) {
        for part in [&mut self.labelled, &mut self.unlabelled] {
            if !part.has_all() || part.sample * 2 == part.limit {
                part.cut(part.sample);
            }
        }
    }

    /// Gives the memory of the keys back once no more rows come.
    pub(super) fn forget_keys(&mut self) {
        (self.labelled.keys, self.unlabelled.keys) = (Vec::new(), Vec::new());
    }

    pub(super) fn has_all_labelled(&self) -> bool {
        self.labelled.has_all()
    }

    /// Whether the rows can stand for the others.
    pub(super) fn is_sound(&self) -> bool {
        !self.weighted && !self.labelled.labels.is_empty() && !self.unlabelled.labels.is_empty()
    }

    /// Whether these are rows of the pass that `self` was made for.
    pub(crate) fn fits(&self, part: &Self) -> bool {
        let sound = |rows: &Part| rows.is_sound(self.width, self.classes);
        (part.classes, part.width) == (self.classes, self.width) && sound(&part.labelled) && sound(&part.unlabelled)
    }
}

impl Sums for Gather {
    fn add(&mut self, block: &Block<'_>) {
        self.weighted |= block.weights.is_some();
        let hashed = &block.columns[..block.columns.len().min(2)];
        for i in 0..block.len() {
            // The place tells rows with equal numbers apart, the numbers those of parts that each begin to count at 0.
            let key =
                hashed.iter().fold(mixed((self.seen + i) as u64), |hash, column| mixed(hash ^ column[i].to_bits()));
            let part = if block.labels[i].is_some() { &mut self.labelled } else { &mut self.unlabelled };
            if key <= part.threshold {
                part.push(key, block, i);
                if part.keys.len() > part.limit {
                    part.cut(part.sample);
                }
            }
        }
        self.seen += block.len();
    }

    fn merge(&mut self, other: Self) {
        self.seen += other.seen;
        self.weighted |= other.weighted;
        self.labelled.merge(other.labelled);
        self.unlabelled.merge(other.unlabelled);
    }

    travels!(Gather);
}

impl Bytes for Option<Class> {
    fn write(&self, out: &mut Vec<u8>) {
        self.map_or(0, |class| class.index() + 1).write(out);
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        let number = usize::read(input)?;
        // More classes than this are refused when labels are read.
        (number <= u32::MAX as usize).then(|| number.checked_sub(1).map(Class::from))
    }
}
