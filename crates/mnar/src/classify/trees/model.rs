//! Trained trees: prediction, and a form that can be saved and is checked when it is read.

use super::bins::Column;
use super::split::Rule;
use crate::classify::Fitted;
use crate::error::Error;
use ndarray::Array2;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Trained trees. They can be saved with serde; what is read is checked, so that a broken file is an error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Saved")]
pub struct FittedTrees {
    pub(super) n_classes: usize,
    pub(super) columns: Vec<Column>,
    /// The scores before the first round: one per class, or a single one (the log-odds of class 1) for two classes.
    pub(super) start: Vec<f64>,
    /// The trees of each round, one per score.
    pub(super) rounds: Vec<Vec<Tree>>,
}

/// One tree. Node 0 is the root, and children come after their parent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
}

/// A node of a tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Node {
    /// What is added to the score.
    Leaf(f64),
    /// A question about one column.
    Split {
        /// The position of the column in the table.
        column: u32,
        /// The bins that go to the left.
        rule: Rule,
        /// The child for these bins.
        left: u32,
        /// The child for the others.
        right: u32,
    },
}

impl Tree {
    /// A tree that adds nothing.
    pub(super) fn constant() -> Self {
        Self { nodes: vec![Node::Leaf(0.0)] }
    }

    /// The value for a row, given the bin of each column.
    fn value(&self, bins: &[u8]) -> f64 {
        let mut node = 0;
        loop {
            match &self.nodes[node] {
                Node::Leaf(value) => return *value,
                Node::Split { column, rule, left, right } => {
                    node = if rule.left(bins[*column as usize]) { *left } else { *right } as usize;
                }
            }
        }
    }

    /// Refuses a tree that would lead outside the tree or the table, or round in circles.
    fn check(&self, n_columns: usize) -> Result<(), &'static str> {
        if self.nodes.is_empty() {
            return Err("a tree has no nodes");
        }
        for (position, node) in self.nodes.iter().enumerate() {
            match node {
                Node::Leaf(value) if !makes_sense(*value) => return Err("the value of a leaf makes no sense"),
                Node::Leaf(_) => {}
                Node::Split { column, .. } if *column as usize >= n_columns => {
                    return Err("a split is on a column that does not exist");
                }
                Node::Split { left, right, .. } => {
                    let valid = |child: u32| (position + 1..self.nodes.len()).contains(&(child as usize));
                    if !(valid(*left) && valid(*right)) {
                        return Err("the children of a node do not come after it");
                    }
                }
            }
        }
        Ok(())
    }
}

/// The bins of some rows, row by row.
pub(super) fn bin_rows(columns: &[Column], x: &Array2<f64>, rows: &[usize]) -> Vec<u8> {
    let mut bins = Vec::with_capacity(rows.len() * columns.len());
    for &row in rows {
        bins.extend(columns.iter().zip(x.row(row)).map(|(column, &value)| column.bin(value)));
    }
    bins
}

/// Adds the trees of one round to the scores of some rows. Bins and scores are row by row.
pub(super) fn add_round(trees: &[Tree], bins: &[u8], n_columns: usize, scores: &mut [f64]) {
    let n = scores.len() / trees.len();
    // Tree by tree, so that a tree stays in the cache while the rows pass through it.
    for (k, tree) in trees.iter().enumerate() {
        for row in 0..n {
            scores[row * trees.len() + k] += tree.value(&bins[row * n_columns..(row + 1) * n_columns]);
        }
    }
}

/// No score is further below the largest one of its row: exp(−700) is 1e-304, and exp(−746) would be 0. Only trees without
/// any penalty get there.
const LOWEST: f64 = 700.0;

/// Rows that are predicted together.
const BLOCK: usize = 256;

impl FittedTrees {
    /// The number of classes.
    pub fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// The number of columns of the table.
    pub fn n_columns(&self) -> usize {
        self.columns.len()
    }

    /// The number of rounds.
    pub fn n_rounds(&self) -> usize {
        self.rounds.len()
    }

    /// The scores of a block of rows, row by row.
    fn scores(&self, x: &Array2<f64>, rows: &[usize]) -> Vec<f64> {
        let bins = bin_rows(&self.columns, x, rows);
        let mut scores = self.start.repeat(rows.len());
        for trees in &self.rounds {
            add_round(trees, &bins, self.columns.len(), &mut scores);
        }
        scores
    }
}

/// Refuses rows that the table does not have, and a table with another number of columns than in training.
pub(in crate::classify) fn check_table(x: &Array2<f64>, rows: &[usize], n_columns: usize) -> Result<(), Error> {
    if x.ncols() != n_columns {
        return Err(Error::ColumnCountMismatch { found: x.ncols(), expected: n_columns });
    }
    match rows.iter().find(|&&row| row >= x.nrows()) {
        Some(row) => Err(Error::OutOfRange {
            name: "the position of a row",
            value: row.to_string(),
            range: "below the number of rows",
        }),
        None => Ok(()),
    }
}

impl Fitted<Array2<f64>> for FittedTrees {
    fn logits(&self, x: &Array2<f64>, rows: &[usize]) -> Result<Array2<f64>, Error> {
        check_table(x, rows, self.columns.len())?;
        let mut logits = Array2::zeros((rows.len(), self.n_classes));
        let blocks: Vec<Vec<f64>> = rows.par_chunks(BLOCK).map(|rows| self.scores(x, rows)).collect();
        let scores = blocks.iter().flat_map(|block| block.chunks_exact(self.start.len()));
        for (mut row, scores) in logits.rows_mut().into_iter().zip(scores) {
            // For two classes the score is that of class 1, and class 0 stays at 0.
            row.iter_mut().rev().zip(scores.iter().rev()).for_each(|(to, score)| *to = *score);
            let floor = row.iter().fold(f64::NEG_INFINITY, |max, score| max.max(*score)) - LOWEST;
            row.iter_mut().for_each(|score| *score = score.max(floor));
        }
        Ok(logits)
    }
}

/// Whether a value can be a part of a score: sums of such values are finite.
fn makes_sense(value: f64) -> bool {
    value.abs() < 1e100
}

/// Trees as they are in a file, not yet checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    n_classes: usize,
    columns: Vec<Column>,
    start: Vec<f64>,
    rounds: Vec<Vec<Tree>>,
}

impl Saved {
    fn check(&self) -> Result<(), &'static str> {
        let n_scores = if self.n_classes == 2 { 1 } else { self.n_classes };
        if self.n_classes < 2 {
            return Err("there are fewer than two classes");
        }
        if self.start.len() != n_scores || self.rounds.iter().any(|trees| trees.len() != n_scores) {
            return Err("the number of scores or trees does not go with the number of classes");
        }
        if self.start.iter().any(|score| !makes_sense(*score)) {
            return Err("a first score makes no sense");
        }
        self.columns.iter().try_for_each(Column::check)?;
        self.rounds.iter().flatten().try_for_each(|tree| tree.check(self.columns.len()))
    }
}

impl TryFrom<Saved> for FittedTrees {
    type Error = Error;

    fn try_from(saved: Saved) -> Result<Self, Error> {
        saved.check().map_err(|why| Error::BrokenModel { what: "boosted trees", why })?;
        let Saved { n_classes, columns, start, rounds } = saved;
        Ok(Self { n_classes, columns, start, rounds })
    }
}
