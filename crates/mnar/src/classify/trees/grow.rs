//! Grows one tree, the most useful split first.

use super::bins::BinnedTable;
use super::histogram::{NodeRows, Sums};
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
    histogram: Vec<Sums>,
}

/// A leaf that may still be split.
struct Leaf {
    node: usize,
    depth: usize,
    rows: Range<usize>,
    total: Sums,
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
        let node = NodeRows { rows: &work.rows, terms: &work.terms };
        let best = self.search(node, total, &mut work.histogram, hash(seed ^ hash(0)));
        let mut nodes = vec![Node::Leaf(0.0)];
        // In ascending order of the node.
        let mut leaves = vec![Leaf { node: 0, depth: 0, rows: 0..n, total, best }];
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
        [0, 1].map(|side| {
            let (node, rows, total) = (nodes[side], sides[side].clone(), totals[side]);
            let best = seeds[side].and_then(|seed| {
                let Workspace { terms, rows: all, gathered, histogram, .. } = &mut *work;
                let rows = &all[rows.clone()];
                gathered.clear();
                gathered.extend(rows.iter().map(|&i| terms[i as usize]));
                self.search(NodeRows { rows, terms: gathered }, total, histogram, hash(seed ^ hash(node as u64)))
            });
            Leaf { node, depth, rows, total, best }
        })
    }

    fn search(&self, node: NodeRows<'_>, total: Sums, histogram: &mut Vec<Sums>, seed: u64) -> Option<Split> {
        split::best(self.settings, self.table, node, total, &self.draw_columns(seed), histogram, self.parallel)
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
