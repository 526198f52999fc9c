//! Grows one tree, the most useful split first.

use super::bins::BinnedTable;
use super::histogram::{self, Histogram, Sums};
use super::model::{Node, Tree};
use super::split::{self, Split, TIE};
use super::{BoostedTrees, hash};
use std::ops::Range;

/// No leaf moves a score by more than this, before the learning rate. Only rows of enormous weights would: there the penalty
/// is nothing, and the Newton step of a rare class is one over its share.
const MAX_STEP: f64 = 100.0;

/// What trees are grown from.
pub(super) struct Grower<'a> {
    pub(super) settings: &'a BoostedTrees,
    pub(super) table: &'a BinnedTable,
    /// Whether one tree may use several threads.
    pub(super) parallel: bool,
}

/// Memory that is used again for the next tree.
#[derive(Default)]
pub(super) struct Workspace {
    /// The derivatives and weight of each row. The caller fills it.
    pub(super) terms: Vec<Sums>,
    /// The rows, sorted by leaf.
    rows: Vec<u32>,
    /// Rows that go to the right in the present split.
    right: Vec<u32>,
    /// The terms of the rows of a node, in order.
    gathered: Vec<Sums>,
    histograms: Vec<Histogram>,
}

/// A leaf that may still be split.
struct Leaf {
    node: usize,
    depth: usize,
    rows: Range<usize>,
    total: Sums,
    /// Empty where no split was searched.
    histogram: Histogram,
    best: Option<Split>,
}

impl Grower<'_> {
    /// Grows a tree from the terms in the workspace, and adds its values to the scores of the training rows.
    pub(super) fn grow(&self, work: &mut Workspace, seed: u64, scores: &mut [f64]) -> Tree {
        let n = self.table.n_rows;
        work.rows.clear();
        work.rows.extend(0..n as u32);
        let mut total = Sums::default();
        work.terms.iter().for_each(|term| total.add(*term));
        let mut histogram = work.histograms.pop().unwrap_or_default();
        histogram::fill(&mut histogram, self.table, &work.rows, &work.terms, self.parallel);
        let best = self.search(&histogram, total, hash(seed ^ hash(0)));
        let mut nodes = vec![Node::Leaf(0.0)];
        // In ascending order of the node.
        let mut leaves = vec![Leaf { node: 0, depth: 0, rows: 0..n, total, histogram, best }];
        while leaves.len() < self.settings.leaves {
            let Some((leaf, split)) = take_best(&mut leaves) else { break };
            let (left, right) = (nodes.len(), nodes.len() + 1);
            let middle = leaf.rows.start + self.partition(work, leaf.rows.clone(), &split);
            let last = leaves.len() + 2 >= self.settings.leaves;
            let node = leaf.node;
            leaves.extend(self.divide(work, leaf, &split, middle, [left, right], (!last).then_some(seed)));
            nodes[node] = Node::Split {
                column: self.table.columns[split.column].position as u32,
                rule: split.rule,
                left: left as u32,
                right: right as u32,
            };
            nodes.extend([Node::Leaf(0.0), Node::Leaf(0.0)]);
        }
        for leaf in leaves {
            let value = self.settings.learning_rate * self.step(leaf.total);
            nodes[leaf.node] = Node::Leaf(value);
            work.rows[leaf.rows].iter().for_each(|&i| scores[i as usize] += value);
            work.histograms.push(leaf.histogram);
        }
        Tree { nodes }
    }

    /// Moves the rows of the left side to the front, each side in its order, and returns their number.
    fn partition(&self, work: &mut Workspace, rows: Range<usize>, split: &Split) -> usize {
        let bins = &self.table.columns[split.column].bins;
        let rows = &mut work.rows[rows];
        work.right.clear();
        let mut n_left = 0;
        for t in 0..rows.len() {
            let i = rows[t];
            if split.rule.left(bins[i as usize]) {
                rows[n_left] = i;
                n_left += 1;
            } else {
                work.right.push(i);
            }
        }
        rows[n_left..].copy_from_slice(&work.right);
        n_left
    }

    /// Makes the two children of a leaf, whose rows on the left end at `middle`. Their own splits are searched only if
    /// there is a seed: the last split of a tree needs none.
    fn divide(
        &self,
        work: &mut Workspace,
        leaf: Leaf,
        split: &Split,
        middle: usize,
        nodes: [usize; 2],
        seed: Option<u64>,
    ) -> [Leaf; 2] {
        let totals = [split.left, leaf.total.minus(split.left)];
        let depth = leaf.depth + 1;
        let sides = [leaf.rows.start..middle, middle..leaf.rows.end];
        let seeds = totals.map(|total| {
            let heavy = split::heavy_enough(total.weight, 2.0 * self.settings.min_weight);
            seed.filter(|_| heavy && depth < self.settings.max_depth)
        });
        let mut histograms = [work.histograms.pop().unwrap_or_default(), leaf.histogram];
        if seeds.iter().any(Option::is_some) {
            // The smaller child's histogram is summed; the other one is what is left of the parent's.
            let small = usize::from(sides[0].len() > sides[1].len());
            let rows = &work.rows[sides[small].clone()];
            work.gathered.clear();
            work.gathered.extend(rows.iter().map(|&i| work.terms[i as usize]));
            let [child, node] = &mut histograms;
            histogram::fill(child, self.table, rows, &work.gathered, self.parallel);
            histogram::subtract(node, child, totals[1 - small].weight);
            histograms.rotate_left(small);
        }
        let mut children = [0, 1].map(|side| Leaf {
            node: nodes[side],
            depth,
            rows: sides[side].clone(),
            total: totals[side],
            histogram: std::mem::take(&mut histograms[side]),
            best: None,
        });
        for (child, seed) in children.iter_mut().zip(seeds) {
            child.best =
                seed.and_then(|seed| self.search(&child.histogram, child.total, hash(seed ^ hash(child.node as u64))));
        }
        children
    }

    fn search(&self, histogram: &[Sums], total: Sums, seed: u64) -> Option<Split> {
        split::best(self.settings, self.table, histogram, total, &self.draw_columns(seed))
    }

    /// The columns that a node tries, in ascending order.
    fn draw_columns(&self, seed: u64) -> Vec<usize> {
        let n = self.table.columns.len();
        let mut columns: Vec<usize> = (0..n).collect();
        let drawn = ((n as f64 * self.settings.columns_per_node).ceil() as usize).min(n);
        if drawn < n {
            let mut state = seed;
            for t in 0..drawn {
                state = hash(state);
                columns.swap(t, t + (state % (n - t) as u64) as usize);
            }
            columns.truncate(drawn);
            columns.sort_unstable();
        }
        columns
    }

    /// The Newton step of a leaf.
    fn step(&self, total: Sums) -> f64 {
        let step = -total.gradient / (total.hessian + self.settings.l2);
        if step.is_finite() { step.clamp(-MAX_STEP, MAX_STEP) } else { 0.0 }
    }
}

/// Takes the leaf with the best split, and among equally good ones the oldest.
fn take_best(leaves: &mut Vec<Leaf>) -> Option<(Leaf, Split)> {
    let mut best: Option<(usize, f64)> = None;
    for (position, leaf) in leaves.iter().enumerate() {
        if let Some(split) = &leaf.best
            && best.is_none_or(|(_, gain)| split.gain > gain * (1.0 + TIE))
        {
            best = Some((position, split.gain));
        }
    }
    let mut leaf = leaves.remove(best?.0);
    let split = leaf.best.take()?;
    Some((leaf, split))
}
