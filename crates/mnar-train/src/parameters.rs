//! The numbers of a network by name: for checkpoints, averages and files that other programs read.

use crate::error::TrainError;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::path::Path;

/// A tensor of a network, named by the path of its field.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Its name, for example `conv1.weight`.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its values, with the last index varying fastest.
    pub values: Vec<f32>,
}

/// All floating-point tensors of a network, running statistics included, in the order of its fields.
pub fn export<M: Module>(network: &M) -> Vec<Named> {
    // `valid` settles running statistics that are still in flight.
    let mut reader = Reader { path: Vec::new(), tensors: Vec::new() };
    network.valid().visit(&mut reader);
    reader.tensors
}

struct Reader {
    path: Vec<String>,
    tensors: Vec<Named>,
}

impl ModuleVisitor for Reader {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.val();
        let shape = tensor.dims().to_vec();
        let values = tensor.into_data().iter::<f32>().collect();
        self.tensors.push(Named { name: self.path.join("."), shape, values });
    }
}

/// The same network with these values. `source` is the file they came from, for error messages.
pub fn import<M: Module>(network: M, tensors: &[Named], source: &Path) -> Result<M, TrainError> {
    let mut writer = Writer { path: Vec::new(), tensors, problem: None };
    let network = network.map(&mut writer);
    match writer.problem {
        None => Ok(network),
        Some(what) => Err(TrainError::bad_file(source, what)),
    }
}

struct Writer<'a> {
    path: Vec<String>,
    tensors: &'a [Named],
    problem: Option<String>,
}

impl ModuleMapper for Writer<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.join(".");
        let Some(found) = self.tensors.iter().find(|tensor| tensor.name == name) else {
            self.problem.get_or_insert_with(|| format!("has no `{name}`: it belongs to another network"));
            return param;
        };
        if found.shape != param.dims() {
            self.problem.get_or_insert_with(|| {
                format!("`{name}` has shape {:?}, the network needs {:?}", found.shape, param.dims())
            });
            return param;
        }
        replace(param, found.values.clone())
    }
}

/// The same network with these values, one vector per tensor in the order of [`export`].
pub(crate) fn with_values<M: Module>(network: M, values: &[Vec<f32>]) -> M {
    struct InOrder<'a>(std::slice::Iter<'a, Vec<f32>>);
    impl ModuleMapper for InOrder<'_> {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            match self.0.next() {
                Some(values) => replace(param, values.clone()),
                None => param,
            }
        }
    }
    network.map(&mut InOrder(values.iter()))
}

/// Replaces the values of a parameter; its device and whether it is trained stay the same.
pub(crate) fn replace<const D: usize>(param: Param<Tensor<D>>, values: Vec<f32>) -> Param<Tensor<D>> {
    let (id, tensor, mapper) = param.consume();
    let shape = tensor.dims();
    let (device, trained) = (tensor.device(), tensor.is_require_grad());
    drop(tensor);
    let tensor = Tensor::from_data(TensorData::new(values, shape), &device);
    Param::from_mapped_value(id, if trained { tensor.require_grad() } else { tensor }, mapper)
}

/// Draws the initial weights of a network from its own generator: burn's is shared by the whole process, so a second
/// network built at the same time would change the first.
pub struct Initial<'a> {
    rng: ChaCha8Rng,
    /// The device of the network.
    pub device: &'a Device,
}

impl<'a> Initial<'a> {
    /// A generator; the same seed gives the same weights.
    pub fn new(seed: u64, device: &'a Device) -> Self {
        Self { rng: ChaCha8Rng::seed_from_u64(seed), device }
    }

    /// Values uniform on ±bound.
    pub fn uniform<const D: usize>(&mut self, shape: [usize; D], bound: f64) -> Param<Tensor<D>> {
        let values = (0..shape.iter().product()).map(|_| ((2.0 * self.rng.random::<f64>() - 1.0) * bound) as f32);
        let values: Vec<f32> = values.collect();
        self.param(values, shape)
    }

    /// Normal values with this standard deviation.
    pub fn normal<const D: usize>(&mut self, shape: [usize; D], sd: f64) -> Param<Tensor<D>> {
        // The Box-Muller transform; 1 − u keeps the logarithm finite.
        let values = (0..shape.iter().product()).map(|_| {
            let (u, v): (f64, f64) = (self.rng.random(), self.rng.random());
            (sd * (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()) as f32
        });
        let values: Vec<f32> = values.collect();
        self.param(values, shape)
    }

    /// The same value everywhere.
    pub fn constant<const D: usize>(&mut self, shape: [usize; D], value: f32) -> Param<Tensor<D>> {
        self.param(vec![value; shape.iter().product()], shape)
    }

    fn param<const D: usize>(&self, values: Vec<f32>, shape: [usize; D]) -> Param<Tensor<D>> {
        Param::from_tensor(Tensor::from_data(TensorData::new(values, shape), self.device))
    }
}
