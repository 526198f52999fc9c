//! `mnar reproduce`.

use super::DeviceName;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// An experiment, and what to change in it.
#[derive(Args)]
#[command(after_help = "Experiments: mnist-s1, mnist-s2, dermamnist, nodulemnist3d, adrenalmnist3d, lidc,
cifar10-s2.

Examples:
  mnar reproduce mnist-s2 --data DIR
  mnar reproduce mnist-s2 --data DIR --methods pl,me,ours --seeds 1 --epochs 20
  mnar reproduce dermamnist --data DIR --protocol real
  mnar reproduce dermamnist --data DIR --test

Every method and seed writes a file of its own; interrupted, the same command goes on where it stopped.")]
pub(crate) struct ReproduceArgs {
    /// Its name, or a TOML file like those of `experiments/`
    #[arg(value_name = "EXPERIMENT", required_unless_present = "page")]
    pub(crate) experiment: Option<String>,

    /// The folder with the data sets
    #[arg(long, value_name = "DIR", required_unless_present = "page")]
    pub(crate) data: Option<PathBuf>,

    /// Methods, comma-separated, in place of the experiment's
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) methods: Option<Vec<String>>,

    /// Masks to draw, in place of the experiment's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: Option<u64>,

    /// Epochs, in place of the experiment's
    #[arg(long, value_name = "N")]
    pub(crate) epochs: Option<usize>,

    /// Choose the epoch by validation rows with the true class shares, as the paper does, or by held-out labelled rows,
    /// as a user must
    #[arg(long, value_enum, default_value_t = ProtocolName::Paper)]
    pub(crate) protocol: ProtocolName,

    /// Test whether labels are informative, on labels drawn at random and by the experiment's mechanism (10 draws each,
    /// or --seeds), in place of the table
    #[arg(long, conflicts_with_all = ["methods", "protocol"])]
    pub(crate) test: bool,

    /// Where to compute
    #[arg(long, value_enum, default_value_t = DeviceName::Cpu)]
    pub(crate) device: DeviceName,

    /// Where results are kept
    #[arg(long, value_name = "DIR", default_value = "reproduce")]
    pub(crate) out: PathBuf,

    /// Write a page of all results in --out to this file, and draw their figures again
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,

    /// No progress
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
