//! Fully connected layers: the same tiles, with rows of a matrix as pixels.

use crate::Isa;
use crate::buffer::{len_of, written};
use crate::tile::{Finish, Panels, Pixels, Reads, outer_products, product};
use rayon::prelude::*;

/// A fully connected layer applied to a batch of rows, with weights inputs × outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dense {
    /// Number of rows in the batch.
    pub rows: usize,
    /// Number of values in a row.
    pub inputs: usize,
    /// Number of values in a row of the output.
    pub outputs: usize,
}

impl Dense {
    fn check(&self, x: Option<&[f32]>, weight: Option<&[f32]>, dy: Option<&[f32]>) {
        assert!(self.inputs > 0 && self.outputs > 0, "there must be inputs and outputs");
        let (input, output) = (len_of(&[self.rows, self.inputs]), len_of(&[self.rows, self.outputs]));
        let weights = len_of(&[self.inputs, self.outputs]);
        assert!(x.is_none_or(|x| x.len() == input), "the input must have the batch's shape");
        assert!(weight.is_none_or(|weight| weight.len() == weights), "weights must be inputs × outputs");
        assert!(dy.is_none_or(|dy| dy.len() == output), "the gradient must fit the output");
    }

    /// x · weight + bias, through a rectifier of this slope below zero (1 for none).
    pub fn forward(&self, isa: Isa, x: &[f32], weight: &[f32], bias: Option<&[f32]>, slope: f32) -> Vec<f32> {
        self.check(Some(x), Some(weight), None);
        let mut panels = Panels::new(isa);
        panels.fill(self.inputs, self.outputs, |k| &weight[k * self.outputs..(k + 1) * self.outputs]);
        multiply(x, self.inputs, &panels, self.outputs, Finish { bias, slope })
    }

    /// The gradient of the input, from the gradient `dy` of the output.
    pub fn input_gradient(&self, isa: Isa, dy: &[f32], weight: &[f32]) -> Vec<f32> {
        self.check(None, Some(weight), Some(dy));
        let mut panels = Panels::new(isa);
        let column = |input: usize, _| &weight[input * self.outputs..(input + 1) * self.outputs];
        panels.fill_transposed([self.outputs, self.inputs], self.outputs, column);
        multiply(dy, self.outputs, &panels, self.inputs, Finish { bias: None, slope: 1.0 })
    }

    /// The gradient of the weights, from the gradient `dy` of the output.
    pub fn weight_gradient(&self, isa: Isa, x: &[f32], dy: &[f32]) -> Vec<f32> {
        self.check(Some(x), None, Some(dy));
        let mut gradient = vec![0.0; self.inputs * self.outputs];
        let mut pixels = Pixels::default();
        (0..self.rows).for_each(|row| pixels.push(row * self.inputs, 0));
        let mut panels = Panels::new(isa);
        panels.fill(self.rows, self.outputs, |row| &dy[row * self.outputs..(row + 1) * self.outputs]);
        // Threads divide the inputs, not the rows: no partial sums are left to add up.
        let block = job(self.inputs);
        gradient.par_chunks_mut(block * self.outputs).enumerate().for_each(|(i, gradient)| {
            let inputs = gradient.len() / self.outputs;
            let reads = Reads::new([(i * block, inputs)]);
            let mut sum = vec![0.0; panels.sums(inputs)];
            outer_products(x, &pixels, &reads, &panels, &mut sum);
            panels.unpack(&sum, inputs, gradient, false);
        });
        gradient
    }
}

/// Number of rows a thread takes at a time: whole tiles, and enough jobs to keep all threads busy.
fn job(rows: usize) -> usize {
    rows.div_ceil(16).next_multiple_of(12).min(96)
}

fn multiply(x: &[f32], inputs: usize, weights: &Panels, outputs: usize, finish: Finish<'_>) -> Vec<f32> {
    let reads = Reads::new([(0, inputs)]);
    let rows = job(x.len() / inputs);
    let write = |output: &mut [_]| {
        output.par_chunks_mut(rows * outputs).zip(x.par_chunks(rows * inputs)).for_each(|(output, x)| {
            let mut pixels = Pixels::default();
            (0..x.len() / inputs).for_each(|row| pixels.push(row * inputs, row * outputs));
            product(x, &pixels, &reads, weights, finish, output);
        });
    };
    // SAFETY: every block of rows is a chunk of the output, and every row of it is among its pixels.
    unsafe { written(len_of(&[x.len() / inputs, outputs]), write) }
}
