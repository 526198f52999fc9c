//! The two matrix products that everything else is built on, with the sums held in registers.
//!
//! *Product*: every output pixel is the sum of the values in its window times the weights. The values are read in
//! place: channels are last, so a row of a window is one run of consecutive values, and a window is a short list of
//! runs ([`Reads`]) relative to its starting point. Nothing is gathered. *Gradient*: the transpose, weights from values
//! and output gradients.
//!
//! A tile is `ROWS` × `VECTORS` registers of sums: each step loads `VECTORS` registers of weights and multiplies them
//! by `ROWS` single values. Weights and output gradients are laid out in the order in which tiles read them, in
//! [`Panels`].

use crate::Isa;
use crate::simd::{Kernel, Lanes, Registers, dispatch};
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// Rows of weights that stay in the first-level cache while all pixels are processed.
const BLOCK_DEPTH: usize = 384;

/// From this many values on, threads share the work of laying out a matrix.
const PARALLEL_FILL: usize = 64 * 1024;

/// Columns of a matrix that a tile processes together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel {
    /// The first column.
    start: usize,
    /// Number of columns in use.
    columns: usize,
    /// Number of registers that hold them.
    vectors: usize,
}

fn panels(registers: Registers, columns: usize) -> Vec<Panel> {
    let (width, most) = (registers.width, if registers.count == 32 { 4 } else { 2 });
    let mut panels = Vec::new();
    let mut start = 0;
    while start < columns {
        let left = columns - start;
        let vectors = left.div_ceil(width).min(most);
        panels.push(Panel { start, columns: left.min(vectors * width), vectors });
        start += vectors * width;
    }
    panels
}

/// A matrix in the order in which tiles read it: panels of columns one after the other, each row by row, and short ones
/// padded with zeros.
pub(crate) struct Panels {
    isa: Isa,
    values: Vec<f32>,
    depth: usize,
    columns: usize,
    panels: Vec<Panel>,
    width: usize,
}

impl Panels {
    /// An empty matrix, to be filled again and again.
    pub(crate) fn new(isa: Isa) -> Self {
        let width = Registers::of(isa).width;
        Self { isa, values: Vec::new(), depth: 0, columns: 0, panels: Vec::new(), width }
    }

    /// Lays out a matrix of `depth` rows; `row(k)` is the k-th.
    pub(crate) fn fill<'a>(&mut self, depth: usize, columns: usize, row: impl Fn(usize) -> &'a [f32] + Sync) {
        self.each_panel(depth, columns, |panel, wide, values| {
            for (k, values) in values.chunks_exact_mut(wide).enumerate() {
                let (used, unused) = values.split_at_mut(panel.columns);
                used.copy_from_slice(&row(k)[panel.start..panel.start + panel.columns]);
                unused.fill(0.0);
            }
        });
    }

    /// Lays out a matrix given by its columns, in parts of `part` rows: `column(j, i)` holds rows i·part..(i+1)·part of
    /// the j-th column.
    pub(crate) fn fill_transposed<'a>(
        &mut self,
        [depth, columns]: [usize; 2],
        part: usize,
        column: impl Fn(usize, usize) -> &'a [f32] + Sync,
    ) {
        self.each_panel(depth, columns, |panel, wide, values| {
            if panel.columns < wide {
                values.fill(0.0);
            }
            for (i, values) in values.chunks_exact_mut(wide * part).enumerate() {
                for j in 0..panel.columns {
                    for (row, value) in values.chunks_exact_mut(wide).zip(column(panel.start + j, i)) {
                        row[j] = *value;
                    }
                }
            }
        });
    }

    /// Sets the shape and calls `fill(panel, its padded width, its values)`, in parallel if there is much to do.
    fn each_panel(&mut self, depth: usize, columns: usize, fill: impl Fn(&Panel, usize, &mut [f32]) + Sync) {
        self.shape(depth, columns);
        let (panels, width) = (&self.panels, self.width);
        // All but the last panel are as wide as the first.
        let first = panels.first().map_or(0, |panel| panel.vectors * width * depth);
        if first == 0 {
            return;
        }
        let fill = |(values, panel): (&mut [f32], &Panel)| fill(panel, panel.vectors * width, values);
        if self.values.len() > PARALLEL_FILL {
            self.values.par_chunks_mut(first).zip(panels).for_each(fill);
        } else {
            self.values.chunks_mut(first).zip(panels).for_each(fill);
        }
    }

    fn shape(&mut self, depth: usize, columns: usize) {
        if self.columns != columns || self.panels.is_empty() {
            self.panels = panels(Registers::of(self.isa), columns);
        }
        (self.depth, self.columns) = (depth, columns);
        let wide = self.panels.last().map_or(0, |last| last.start + last.vectors * self.width);
        self.values.resize(wide * depth, 0.0);
    }
}

/// What every row of the left matrix reads, relative to its starting point: runs of consecutive values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    /// Offset from the starting point, and length, of each run.
    runs: Vec<(usize, usize)>,
    /// The runs of each block, whose weights stay in the first-level cache.
    blocks: Vec<std::ops::Range<usize>>,
    /// Number of values read.
    depth: usize,
    /// One past the furthest value read, from the starting point.
    reach: usize,
}

impl Reads {
    pub(crate) fn new(runs: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut reads = Self::default();
        let mut in_block = 0;
        let mut first = 0;
        for (offset, length) in runs {
            // Long runs are divided into equal pieces that fit into a block.
            let pieces = length.div_ceil(BLOCK_DEPTH).max(1);
            let piece = length.div_ceil(pieces).max(1);
            for start in (0..length).step_by(piece) {
                let length = piece.min(length - start);
                if in_block + length > BLOCK_DEPTH && reads.runs.len() > first {
                    reads.blocks.push(first..reads.runs.len());
                    (first, in_block) = (reads.runs.len(), 0);
                }
                reads.runs.push((offset + start, length));
                in_block += length;
                reads.depth += length;
                reads.reach = reads.reach.max(offset + start + length);
            }
        }
        // Even if nothing is read, a bias or a zero has to be written.
        reads.blocks.push(first..reads.runs.len());
        reads
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }
}

/// Where each pixel starts reading, and where it writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pixels {
    from: Vec<usize>,
    to: Vec<usize>,
    furthest_from: usize,
    furthest_to: usize,
}

impl Pixels {
    pub(crate) fn push(&mut self, from: usize, to: usize) {
        self.from.push(from);
        self.to.push(to);
        self.furthest_from = self.furthest_from.max(from);
        self.furthest_to = self.furthest_to.max(to);
    }

    pub(crate) fn len(&self) -> usize {
        self.from.len()
    }
}

/// What is applied to a sum before it is written.
#[derive(Clone, Copy)]
pub(crate) struct Finish<'a> {
    /// Added to the sums, one per column.
    pub(crate) bias: Option<&'a [f32]>,
    /// Slope below zero of the rectifier; 1 for none.
    pub(crate) slope: f32,
}

/// Whether `count` values from `start` on lie within `len`, also where their sum wraps around.
fn inside(start: usize, count: usize, len: usize) -> bool {
    start.checked_add(count).is_some_and(|end| end <= len)
}

/// Writes, for every pixel, Σ (values it reads) · weights.
pub(crate) fn product(
    source: &[f32],
    pixels: &Pixels,
    reads: &Reads,
    weights: &Panels,
    finish: Finish<'_>,
    output: &mut [MaybeUninit<f32>],
) {
    if pixels.len() == 0 {
        return;
    }
    // These four checks keep every access below inside its slice.
    assert!(inside(pixels.furthest_from, reads.reach, source.len()), "pixels must read inside the source");
    assert!(inside(pixels.furthest_to, weights.columns, output.len()), "pixels must write inside the output");
    assert!(weights.depth == reads.depth, "every value read needs a row of weights");
    assert!(finish.bias.is_none_or(|bias| bias.len() == weights.columns), "every column needs a bias");
    dispatch(weights.isa, Product { source, pixels, reads, weights, finish, output });
}

struct Product<'a> {
    source: &'a [f32],
    pixels: &'a Pixels,
    reads: &'a Reads,
    weights: &'a Panels,
    finish: Finish<'a>,
    output: &'a mut [MaybeUninit<f32>],
}

/// Computes the next tile of a panel with the method `$tile`, as tall as the registers allow, and returns its rows.
///
/// The only list of tile shapes: registers for the columns, registers of the processor, maximum number of rows.
macro_rules! next_tile {
    ($self:ident.$tile:ident::<$lanes:ident>($($argument:expr),*), $vectors:expr, $left:expr) => {
        match ($vectors, $lanes::REGISTERS) {
            (4, 32) => next_tile!(@ $self.$tile::<$lanes, 4>, ($($argument),*), $left, 6; 1 2 3 4 5 6),
            (3, 32) => next_tile!(@ $self.$tile::<$lanes, 3>, ($($argument),*), $left, 8; 1 2 3 4 5 6 7 8),
            (2, 32) => next_tile!(@ $self.$tile::<$lanes, 2>, ($($argument),*), $left, 12; 1 2 3 4 5 6 7 8 9 10 11 12),
            (2, _) => next_tile!(@ $self.$tile::<$lanes, 2>, ($($argument),*), $left, 6; 1 2 3 4 5 6),
            _ => next_tile!(@ $self.$tile::<$lanes, 1>, ($($argument),*), $left, 12; 1 2 3 4 5 6 7 8 9 10 11 12),
        }
    };
    (@ $self:ident.$tile:ident::<$lanes:ident, $vectors:literal>, $arguments:tt, $left:expr, $most:literal; $($n:literal)*) => {{
        let rows = next_rows($left, $most);
        match rows {
            $($n => next_tile!(@call $self.$tile::<$lanes, $n, $vectors> $arguments),)*
            _ => unreachable!("a tile has at most as many rows as the largest"),
        }
        rows
    }};
    (@call $self:ident.$tile:ident::<$lanes:ident, $n:literal, $vectors:literal> ($($argument:expr),*)) => {
        $self.$tile::<$lanes, $n, $vectors>($($argument),*)
    };
}

/// Number of rows of the next tile when `left` are left: the largest tile, or equal parts at the end.
#[inline(always)]
fn next_rows(left: usize, largest: usize) -> usize {
    if left >= 2 * largest { largest } else { left.div_ceil(left.div_ceil(largest)) }
}

impl Kernel for Product<'_> {
    #[inline(always)]
    fn run<L: Lanes>(mut self) {
        let weights = self.weights;
        for panel in &weights.panels {
            let mut depth = 0;
            for (i, block) in self.reads.blocks.iter().enumerate() {
                let runs = &self.reads.runs[block.clone()];
                let part = Part { panel, runs, depth, first: i == 0, last: i + 1 == self.reads.blocks.len() };
                depth += runs.iter().map(|run| run.1).sum::<usize>();
                let mut at = 0;
                while at < self.pixels.len() {
                    let left = self.pixels.len() - at;
                    // SAFETY: `at + rows` is at most the number of pixels; `product` checked the rest.
                    let rows = unsafe { next_tile!(self.tile::<L>(&part, at), panel.vectors, left) };
                    at += rows;
                }
            }
        }
    }
}

/// A panel of columns and a block of the values read.
struct Part<'a> {
    panel: &'a Panel,
    runs: &'a [(usize, usize)],
    /// Number of rows of weights before the block.
    depth: usize,
    first: bool,
    last: bool,
}

impl Product<'_> {
    /// # Safety
    /// `at + ROWS` is at most the number of pixels, `L` is what `weights` were laid out for with `VECTORS` registers in
    /// this panel, and the conditions that [`product`] checks hold.
    #[inline(always)]
    unsafe fn tile<L: Lanes, const ROWS: usize, const VECTORS: usize>(&mut self, part: &Part<'_>, at: usize) {
        // SAFETY: sources are read at from + offset + k < furthest_from + reach; weights at rows below their depth; the
        // output at to + column below furthest_to + columns.
        unsafe {
            let wide = VECTORS * L::WIDTH;
            let panel = part.panel;
            let output = self.output.as_mut_ptr().cast::<f32>().add(panel.start);
            let to: [*mut f32; ROWS] = std::array::from_fn(|i| output.add(*self.pixels.to.get_unchecked(at + i)));
            let mut sums = [[L::splat(0.0); VECTORS]; ROWS];
            if !part.first {
                for i in 0..ROWS {
                    sums[i] = load_columns::<L, VECTORS>(to[i], panel.columns);
                }
            } else if let Some(bias) = self.finish.bias {
                let bias = load_columns::<L, VECTORS>(bias.as_ptr().add(panel.start), panel.columns);
                sums = [bias; ROWS];
            }
            let source = self.source.as_ptr();
            let from: [*const f32; ROWS] = std::array::from_fn(|i| source.add(*self.pixels.from.get_unchecked(at + i)));
            let mut weight = self.weights.values.as_ptr().add(panel.start * self.weights.depth + part.depth * wide);
            for &(offset, length) in part.runs {
                let from: [*const f32; ROWS] = std::array::from_fn(|i| from[i].add(offset));
                for k in 0..length {
                    let row: [L; VECTORS] = std::array::from_fn(|j| L::load(weight.add(j * L::WIDTH)));
                    for i in 0..ROWS {
                        let value = L::splat(*from[i].add(k));
                        for j in 0..VECTORS {
                            sums[i][j] = sums[i][j].fused(value, row[j]);
                        }
                    }
                    weight = weight.add(wide);
                }
            }
            if part.last && self.finish.slope != 1.0 {
                let slope = L::splat(self.finish.slope);
                for row in &mut sums {
                    for sum in row {
                        *sum = sum.leaky(slope);
                    }
                }
            }
            for i in 0..ROWS {
                store_columns(sums[i], to[i], panel.columns);
            }
        }
    }
}

/// # Safety
/// `from` is valid for reading `columns` values, at most `VECTORS · WIDTH`.
#[inline(always)]
unsafe fn load_columns<L: Lanes, const VECTORS: usize>(from: *const f32, columns: usize) -> [L; VECTORS] {
    // SAFETY: whole registers where the columns fill them, otherwise through a buffer as long as the registers.
    unsafe {
        if columns == VECTORS * L::WIDTH {
            std::array::from_fn(|j| L::load(from.add(j * L::WIDTH)))
        } else {
            let mut buffer = [0.0f32; 64];
            std::ptr::copy_nonoverlapping(from, buffer.as_mut_ptr(), columns);
            std::array::from_fn(|j| L::load(buffer.as_ptr().add(j * L::WIDTH)))
        }
    }
}

/// # Safety
/// `to` is valid for writing `columns` values, at most `VECTORS · WIDTH`.
#[inline(always)]
unsafe fn store_columns<L: Lanes, const VECTORS: usize>(sums: [L; VECTORS], to: *mut f32, columns: usize) {
    // SAFETY: as in `load_columns`.
    unsafe {
        if columns == VECTORS * L::WIDTH {
            for j in 0..VECTORS {
                sums[j].store(to.add(j * L::WIDTH));
            }
        } else {
            let mut buffer = [0.0f32; 64];
            for j in 0..VECTORS {
                sums[j].store(buffer.as_mut_ptr().add(j * L::WIDTH));
            }
            std::ptr::copy_nonoverlapping(buffer.as_ptr(), to, columns);
        }
    }
}

/// Adds Σ over pixels of (values a pixel reads) ⊗ (its output gradient) to `sum`, which is laid out like the panels of
/// `gradient` but with a row for every value read.
///
/// The rows of `gradient` are the pixels.
pub(crate) fn outer_products(source: &[f32], pixels: &Pixels, reads: &Reads, gradient: &Panels, sum: &mut [f32]) {
    if pixels.len() == 0 {
        return;
    }
    assert!(inside(pixels.furthest_from, reads.reach, source.len()), "pixels must read inside the source");
    assert!(gradient.depth == pixels.len(), "every pixel needs an output gradient");
    assert!(sum.len() == gradient.sums(reads.depth), "every weight needs a sum");
    dispatch(gradient.isa, OuterProducts { source, pixels, reads, gradient, sum });
}

impl Panels {
    /// The length of a buffer of sums for [`outer_products`] over this many rows of weights.
    pub(crate) fn sums(&self, depth: usize) -> usize {
        self.panels.last().map_or(0, |last| last.start + last.vectors * self.width) * depth
    }

    /// Copies sums laid out in panels to rows of `columns` values; adds to them if `add` is set.
    pub(crate) fn unpack(&self, sums: &[f32], depth: usize, rows: &mut [f32], add: bool) {
        for panel in &self.panels {
            let wide = panel.vectors * self.width;
            let sums = sums[panel.start * depth..][..wide * depth].chunks_exact(wide);
            for (row, sums) in rows.chunks_exact_mut(self.columns).zip(sums) {
                let row = &mut row[panel.start..panel.start + panel.columns];
                if add {
                    row.iter_mut().zip(sums).for_each(|(value, sum)| *value += sum);
                } else {
                    row.copy_from_slice(&sums[..panel.columns]);
                }
            }
        }
    }
}

struct OuterProducts<'a> {
    source: &'a [f32],
    pixels: &'a Pixels,
    reads: &'a Reads,
    gradient: &'a Panels,
    sum: &'a mut [f32],
}

/// Pixels whose values stay in the first-level cache while all weights are processed.
const CHUNK: usize = 96;

impl Kernel for OuterProducts<'_> {
    #[inline(always)]
    fn run<L: Lanes>(mut self) {
        let (count, depth) = (self.pixels.len(), self.reads.depth);
        let mut start = 0;
        while start < count {
            let chunk = start..start + next_rows(count - start, CHUNK);
            start = chunk.end;
            for panel in &self.gradient.panels {
                let mut before = 0;
                for &(offset, length) in &self.reads.runs {
                    let mut at = 0;
                    while at < length {
                        let left = length - at;
                        let sum = panel.start * depth + (before + at) * panel.vectors * L::WIDTH;
                        let tile = GradientTile { panel, chunk: chunk.clone(), offset: offset + at, sum };
                        // SAFETY: `at + rows` is at most the length of the run; `outer_products` checked the rest.
                        let rows = unsafe { next_tile!(self.tile::<L>(&tile), panel.vectors, left) };
                        at += rows;
                    }
                    before += length;
                }
            }
        }
    }
}

struct GradientTile<'a> {
    panel: &'a Panel,
    chunk: std::ops::Range<usize>,
    /// Offset from a pixel's starting point to the first of the values.
    offset: usize,
    /// Position of the sums in the buffer.
    sum: usize,
}

impl OuterProducts<'_> {
    /// # Safety
    /// `offset + ROWS` is within the reach of the reads, the sums are `ROWS` rows of the panel inside the buffer, the
    /// chunk is inside the pixels, `L` is what the panels were laid out for, and what [`outer_products`] checks holds.
    #[inline(always)]
    unsafe fn tile<L: Lanes, const ROWS: usize, const VECTORS: usize>(&mut self, tile: &GradientTile<'_>) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let wide = VECTORS * L::WIDTH;
            let sum = self.sum.as_mut_ptr().add(tile.sum);
            let mut sums: [[L; VECTORS]; ROWS] =
                std::array::from_fn(|i| std::array::from_fn(|j| L::load(sum.add(i * wide + j * L::WIDTH))));
            let source = self.source.as_ptr().add(tile.offset);
            let gradient = self.gradient.values.as_ptr().add(tile.panel.start * self.gradient.depth);
            let mut gradient = gradient.add(tile.chunk.start * wide);
            for &from in self.pixels.from.get_unchecked(tile.chunk.clone()) {
                let row: [L; VECTORS] = std::array::from_fn(|j| L::load(gradient.add(j * L::WIDTH)));
                let from = source.add(from);
                for i in 0..ROWS {
                    let value = L::splat(*from.add(i));
                    for j in 0..VECTORS {
                        sums[i][j] = sums[i][j].fused(value, row[j]);
                    }
                }
                gradient = gradient.add(wide);
            }
            for i in 0..ROWS {
                for j in 0..VECTORS {
                    sums[i][j].store(sum.add(i * wide + j * L::WIDTH));
                }
            }
        }
    }
}
