//! The command line.

use clap::{Parser, ValueEnum};
use std::path::PathBuf;

/// Rerun the paper's experiments and compare the results with the published ones
#[derive(Parser)]
#[command(name = "reproduce", version, max_term_width = 100)]
#[command(after_help = "Experiments: mnist-s1, mnist-s2, dermamnist, nodulemnist3d, adrenalmnist3d, lidc,
cifar10-s2.

Examples:
  cargo run --release -p reproduce -- mnist-s2 --data DIR
  cargo run --release -p reproduce -- mnist-s2 --data DIR --methods pl,me,ours --seeds 1 --epochs 20
  cargo run --release -p reproduce -- dermamnist --data DIR --protocol real
  cargo run --release -p reproduce -- dermamnist --data DIR --test

Each method and seed writes its own file. After an interruption, the same command continues where it stopped.")]
pub(crate) struct Args {
    /// Name of an experiment, or a TOML file like those in `research/reproduce/experiments`
    #[arg(value_name = "EXPERIMENT", required_unless_present = "page")]
    pub(crate) experiment: Option<String>,

    /// Folder with the data sets
    #[arg(long, value_name = "DIR", required_unless_present = "page")]
    pub(crate) data: Option<PathBuf>,

    /// Comma-separated methods, instead of the experiment's
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) methods: Option<Vec<String>>,

    /// Number of masks to draw, instead of the experiment's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: Option<u64>,

    /// The first of the masks; rules and settings are chosen on 100 and above, and reported on 0 and above
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) first_seed: u64,

    /// Number of epochs, instead of the experiment's
    #[arg(long, value_name = "N")]
    pub(crate) epochs: Option<usize>,

    /// How the epoch is chosen: by validation rows with the true class shares, as in the paper, or by held-out labelled
    /// rows, as a user has to
    #[arg(long, value_enum, default_value_t = ProtocolName::Paper)]
    pub(crate) protocol: ProtocolName,

    /// Instead of the table, test whether labels are informative, on labels drawn at random and by the experiment's
    /// mechanism (10 draws each, or --seeds)
    #[arg(long, conflicts_with_all = ["methods", "protocol"])]
    pub(crate) test: bool,

    /// Device to compute on
    #[arg(long, value_enum, default_value_t = DeviceName::Cpu)]
    pub(crate) device: DeviceName,

    /// Folder for the results
    #[arg(long, value_name = "DIR", default_value = "reproduce")]
    pub(crate) out: PathBuf,

    /// Write a page with all results in --out to this file, and redraw their figures
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,

    /// Show no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ProtocolName {
    /// Validation rows with the true class shares
    Paper,
    /// A tenth of the labelled rows, weighted by 1/phi
    Real,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum DeviceName {
    /// All cores of the processor
    Cpu,
    /// An NVIDIA card; needs a build with `--features cuda`
    Cuda,
    /// Any card with a driver for Vulkan, Metal or DirectX; needs a build with `--features wgpu`
    Wgpu,
}
