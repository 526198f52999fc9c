//! The options of a run: one type with four spellings. Flags of `mnar fit`, a TOML file of settings, keywords in Python
//! and the `settings.toml` that a run writes all describe this type.

use crate::budget::Budget;
use crate::classifiers::TableClassifier;
use crate::error::RunError;
use crate::per_class::PerClass;
use clap::{Args, ValueEnum};
use mnar::analysis::Given;
use mnar_data::{ReadOptions, Split};
use mnar_train::consistency::ConsistencyName;
use mnar_train::method::MethodName;
use mnar_train::{Schedule, ThresholdRule};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Everything that can be chosen about a run. What is not set follows from the data.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FitOptions {
    /// The label column of the table or of --labels; a blank or null label is missing
    #[arg(long, value_name = "COLUMN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,

    /// Read the labels from FILE instead of from the data: one row per data row, in the same order, or for images with a column of
    /// their names
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<PathBuf>,

    /// The column of the table that names its rows: it is not a feature, but is written beside every prediction
    #[arg(long, value_name = "COLUMN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,

    /// A column of the table that is not a feature; may be repeated
    #[arg(long, value_name = "COLUMN")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,

    /// A column that holds names although it looks like numbers; may be repeated
    #[arg(long, value_name = "COLUMN")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categorical: Vec<String>,

    /// Another value that means missing; may be repeated
    #[arg(long, value_name = "VALUE")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,

    /// Treat labels such as NA, ? or -1 as classes, not as missing
    #[arg(long, num_args = 0, default_missing_value = "true")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels_as_they_are: Option<bool>,

    /// Make one class of labels that differ only by case or blanks, such as `Sick` and `sick`
    #[arg(long, num_args = 0, default_missing_value = "true")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge_labels: Option<bool>,

    /// The sheet of a spreadsheet [default: the first]
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sheet: Option<String>,

    /// Skip N lines of a text file, or rows of a sheet, above the header [default: 0]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_rows: Option<usize>,

    /// Resize the images of a folder to this size
    #[arg(long, value_name = "HEIGHTxWIDTH")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resize: Option<String>,

    /// How the selection of labels is corrected [default: adjusted; label-shift with options about weights, and for images that no network guides]
    #[arg(long, value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<MethodName>,

    /// Columns that labelling may depend on besides the class, such as hospital or year: `auto` includes those that the data
    /// show to matter, `none` uses the class alone; "hospital*age" is both columns and their product. For images, columns
    /// of --labels [default: auto]
    #[arg(long, value_name = "COLUMNS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given: Option<Given>,

    /// Report class shares and phi for each group of this column too; for images, a column of --labels
    #[arg(long, value_name = "COLUMN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,

    /// A column that marks rows whose label was requested at random (1 or yes): class shares and phi are based on them
    #[arg(long, value_name = "COLUMN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<String>,

    /// The loss of unlabelled rows [default: guided for images with --method adjusted, else pseudo-labels]
    #[arg(long, value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consistency: Option<ConsistencyName>,

    /// What the final model is made of [default: auto for tables and for guided training]
    #[arg(long, value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classifier: Option<FinalClassifier>,

    /// The network [default: by the shape of the data]
    #[arg(long, value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkName>,

    /// Units of the hidden layers of an mlp, comma-separated [default: 128]
    #[arg(long, value_name = "UNITS", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Vec<usize>>,

    /// The known mechanism, for --method oracle: a=0.2,b=0.8
    #[arg(long, value_name = "PHI")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phi: Option<PerClass>,

    /// Known class shares, for --method known-shares or cadr: a=0.2,b=0.8
    #[arg(long, value_name = "SHARES")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares: Option<PerClass>,

    /// Passes over the labelled rows [default: enough for 3000 steps, at most 300, or 100 for a table; if guided, enough for 16 passes over the unlabelled rows]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<usize>,

    /// Labelled rows per step [default: 64]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_labelled: Option<usize>,

    /// Unlabelled rows per step [default: 256]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_unlabelled: Option<usize>,

    /// Learning rate at the start [default: 0.001, for sgd 0.03, for a guided mnist-cnn 0.003]
    #[arg(long, value_name = "RATE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,

    /// The optimiser [default: adam]
    #[arg(long, value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimiser: Option<OptimiserName>,

    /// How the learning rate falls [default: cosine]
    #[arg(long, value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,

    /// Weight of the past in the averaged weights, which are the ones that predict [default: 0.99]
    #[arg(long, value_name = "DECAY")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub averaging: Option<f64>,

    /// Weight of the unlabelled loss [default: 1]
    #[arg(long, value_name = "WEIGHT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lambda: Option<f64>,

    /// Confidence that a pseudo-label needs [default: 0.95, if guided as sure as the guess must be to be right in 95%]
    #[arg(long, value_name = "TAU")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,

    /// What the threshold of a class adapts to [default: fixed]
    #[arg(long, value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold_rule: Option<ThresholdRule>,

    /// Share of the labelled rows held out to choose the epoch [default: 0.1, if guided 0]
    #[arg(long, value_name = "SHARE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<f64>,

    /// Stop when the held-out risk has not improved for this many epochs
    #[arg(long, value_name = "EPOCHS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<usize>,

    /// Clip 1/phi at this many times n/n_labelled
    #[arg(long, value_name = "FACTOR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip_weights: Option<f64>,

    /// Augmentation of images [default: auto]
    #[arg(long, value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub augment: Option<AugmentName>,

    /// Estimate phi again from the model after every N epochs, with --method label-shift or adjusted
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh: Option<usize>,

    /// The classifier that is cross-fitted to estimate the mechanism [default: auto for tables, softmax for small images]
    #[arg(long, value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cross_fit: Option<CrossFitWith>,

    /// Folds of the cross-fitting [default: 5]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folds: Option<usize>,

    /// Bootstrap replicates; 0 for intervals from the information [default: 200, or fewer where refitting takes long]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicates: Option<usize>,

    /// Stop the bootstrap after this time, such as 30s or 5m, if it has 8 replicates by then
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,

    /// Permutations of the test [default: 9999]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permutations: Option<usize>,

    /// Do not train the biased baseline
    #[arg(long, num_args = 0, default_missing_value = "true")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_baseline: Option<bool>,

    /// Seed of all random draws [default: 0]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,

    /// Where to compute [default: cpu]
    #[arg(long, value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceName>,
}

/// A network by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkName {
    /// A single linear layer
    Linear,
    /// A multilayer perceptron
    Mlp,
    /// The paper's network for MNIST
    MnistCnn,
    /// The paper's network for MedMNIST
    #[value(name = "medmnist-cnn")]
    #[serde(rename = "medmnist-cnn")]
    MedMnistCnn,
    /// A wide residual network, depth 28 and width 2
    #[value(name = "wide-resnet")]
    #[serde(rename = "wide-resnet")]
    WideResNet,
    /// A convolutional network for volumes
    Cnn3d,
}

/// An optimiser by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimiserName {
    /// Adam
    Adam,
    /// Stochastic gradient descent with momentum
    Sgd,
}

/// An augmentation preset by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AugmentName {
    /// The images as they are
    None,
    /// By the shape of the images and, if guided, by the mirrors and turns that leave them as they are on average
    Auto,
    /// Orientation-free: medical images without a preferred up or left
    Medical,
}

/// What the final model is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinalClassifier {
    /// For tables a mixture of softmax regression, trees and the network, by their losses on rows that they have not seen; for
    /// images the network and the networks that guided it, if some did
    #[default]
    Auto,
    /// The network alone
    Network,
    /// Boosted trees alone
    Trees,
}

/// The classifier that is cross-fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrossFitWith {
    /// Softmax regression, with or without quadratic terms, or boosted trees: whichever has the lowest loss on labelled rows that
    /// it has not seen
    Auto,
    /// Softmax regression, refitted in every replicate of the bootstrap
    Softmax,
    /// Softmax regression with the squares and products of the columns, refitted as well; for tables
    Quadratic,
    /// Gradient-boosted trees, refitted in every replicate of the bootstrap; for tables
    Trees,
    /// The network itself
    Network,
}

impl CrossFitWith {
    /// The classifier of a table, where it is one that learns from columns.
    pub(crate) fn of_table(self) -> Option<TableClassifier> {
        match self {
            Self::Auto => Some(TableClassifier::Auto),
            Self::Quadratic => Some(TableClassifier::Quadratic),
            Self::Trees => Some(TableClassifier::Trees),
            Self::Softmax => Some(TableClassifier::Softmax),
            Self::Network => None,
        }
    }
}

/// A device by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceName {
    /// The processor
    Cpu,
    /// An NVIDIA graphics card, in builds that support it
    Cuda,
    /// Any graphics card through WebGPU, in builds that support it
    Wgpu,
}

impl FitOptions {
    /// The names of all options, as they are spelled in a TOML file.
    pub fn names() -> Vec<String> {
        let command = Self::augment_args(clap::Command::new("fit"));
        command.get_arguments().filter_map(|argument| argument.get_long().map(str::to_owned)).collect()
    }

    /// Reads options from a TOML file, such as the `settings.toml` of an earlier run.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let text = std::fs::read_to_string(path).map_err(RunError::io("read", path))?;
        toml::from_str(&text)
            .map_err(|source| RunError::SettingsFile { path: path.to_owned(), source: Box::new(source) })
    }

    /// These options, and the others where these are silent.
    pub fn or(self, others: Self) -> Result<Self, RunError> {
        let mut merged = others.to_table()?;
        merged.extend(self.to_table()?);
        merged.try_into().map_err(RunError::spelling)
    }

    /// The options as TOML.
    pub fn to_toml(&self) -> Result<String, RunError> {
        toml::to_string_pretty(self).map_err(RunError::spelling)
    }

    fn to_table(&self) -> Result<toml::Table, RunError> {
        toml::Table::try_from(self).map_err(RunError::spelling)
    }

    /// How to read the data.
    pub fn read_options(&self) -> Result<ReadOptions, RunError> {
        Ok(ReadOptions {
            label: self.label.clone(),
            labels_file: self.labels.clone(),
            split: Split::Train,
            id: self.id.clone(),
            features: None,
            ignore: self.ignore.iter().chain(&self.audit).cloned().collect(),
            missing: self.missing.clone(),
            labels_as_they_are: self.labels_as_they_are.unwrap_or(false),
            merge_labels: self.merge_labels.unwrap_or(false),
            sheet: self.sheet.clone(),
            skip_rows: self.skip_rows.unwrap_or(0),
            categorical: self.categorical.clone(),
            resize: self.resize.as_deref().map(size).transpose()?,
        })
    }
}

fn size(text: &str) -> Result<(usize, usize), RunError> {
    let parsed = text.split_once('x').and_then(|(h, w)| Some((h.trim().parse().ok()?, w.trim().parse().ok()?)));
    match parsed {
        Some((height, width)) if height > 0 && width > 0 => Ok((height, width)),
        _ => Err(RunError::OptionValue {
            option: "resize",
            value: text.to_owned(),
            expected: "HEIGHTxWIDTH in pixels, such as 28x28".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_win_over_the_file() {
        let file: FitOptions =
            toml::from_str("label = \"y\"\nepochs = 3\nignore = [\"a\"]\nmethod = \"me\"\nphi = { a = 0.1, b = 0.5 }")
                .unwrap();
        let flags = FitOptions { epochs: Some(7), ignore: vec!["b".into()], ..Default::default() };
        let merged = flags.or(file).unwrap();
        assert_eq!((merged.epochs, merged.label.as_deref()), (Some(7), Some("y")));
        assert_eq!((merged.ignore, merged.method), (vec!["b".to_owned()], Some(MethodName::Me)));
        let error = toml::from_str::<FitOptions>("epoch = 3").unwrap_err().to_string();
        // The names of the flags are the names of the fields.
        for name in FitOptions::names() {
            assert!(error.contains(&format!("`{name}`")), "{name}: {error}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size("28x32").unwrap(), (28, 32));
        for bad in ["28", "0x3", "ax3", "3x"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
