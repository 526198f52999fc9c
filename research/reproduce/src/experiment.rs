//! Experiments, as described by the files in `experiments/`.

use crate::error::ReproduceError;
use crate::goals::Goal;
use crate::method::Candidate;
use mnar_run::FitOptions;
use mnar_train::augment::Augment;
use mnar_train::consistency::ConsistencyName;
use mnar_train::model::Architecture;
use mnar_train::{Criterion, InputShape, TrainSettings};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The files of the built-in experiments.
const KNOWN: [(&str, &str); 8] = [
    ("mnist-s1", include_str!("../experiments/mnist-s1.toml")),
    ("mnist-s2", include_str!("../experiments/mnist-s2.toml")),
    ("dermamnist", include_str!("../experiments/dermamnist.toml")),
    ("nodulemnist3d", include_str!("../experiments/nodulemnist3d.toml")),
    ("adrenalmnist3d", include_str!("../experiments/adrenalmnist3d.toml")),
    ("lidc", include_str!("../experiments/lidc.toml")),
    ("cifar10-s2", include_str!("../experiments/cifar10-s2.toml")),
    ("cifar10-long-tail", include_str!("../experiments/cifar10-long-tail.toml")),
];

/// An experiment: data, mask, network, methods, and the numbers in the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Name of its file, without the extension.
    #[serde(skip)]
    pub name: String,
    /// Title, in one line.
    pub title: String,
    /// How the experiment differs from the paper and why, and what the results show.
    #[serde(default)]
    pub remark: String,
    /// What the tests for informative labels show.
    #[serde(default)]
    pub test_remark: String,
    /// Files or folders below the data folder; the first that exists is read.
    pub data: Vec<String>,
    /// What to do if none of them exists.
    pub missing: String,
    /// How labels are hidden.
    pub mask: Mask,
    /// Number of validation rows in the paper's protocol; they have the true class shares.
    pub validation: usize,
    /// Criterion by which they choose the epoch.
    pub choose_by: Criterion,
    /// Architecture of the network.
    pub network: Architecture,
    /// Semi-supervised method that is debiased.
    pub consistency: ConsistencyName,
    /// Augmentation of the training images.
    #[serde(default)]
    pub augment: AugmentName,
    /// Methods to run, in the order of the table.
    pub methods: Vec<Candidate>,
    /// Number of seeds; each draws a mask and the initial weights.
    pub seeds: u64,
    /// Training settings of the methods.
    pub train: TrainSettings,
    /// Training settings of the networks that see labelled rows only, such as those of the folds.
    pub folds: TrainSettings,
    /// Class whose accuracy and phi the paper reports separately.
    #[serde(default)]
    pub spotlight: Option<usize>,
    /// What the experiment is meant to show.
    #[serde(default)]
    pub goals: Vec<Goal>,
    /// The numbers in the paper, by method.
    #[serde(default)]
    pub paper: BTreeMap<Candidate, PaperRow>,
    /// Options of the whole fit, where it is to have the network and the steps of the other methods.
    #[serde(default)]
    pub fit: FitOptions,
}

/// Puts entries in the place of others, also within tables.
fn overlay(base: &mut toml::Table, entries: toml::Table) {
    for (name, entry) in entries {
        match (base.get_mut(&name), entry) {
            (Some(toml::Value::Table(base)), toml::Value::Table(entries)) => overlay(base, entries),
            (_, entry) => drop(base.insert(name, entry)),
        }
    }
}

/// The variants of a file that are experiments of their own; others change the budget.
fn titled_variants(text: &str) -> Vec<String> {
    let file: toml::Table = toml::from_str(text).unwrap_or_default();
    let variants = file.get("variants").and_then(toml::Value::as_table).cloned().unwrap_or_default();
    variants.into_iter().filter(|(_, entries)| entries.get("title").is_some()).map(|(name, _)| name).collect()
}

/// How labels are hidden.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Mask {
    /// Of each class, a fixed number of rows keep their label and a fixed number lose it (by default, all the others).
    /// Further rows are left out.
    Counts {
        /// Number of labelled rows per class.
        labelled: Counts,
        /// Number of unlabelled rows per class.
        unlabelled: Option<Counts>,
    },
    /// A row of class k has trait s with probability `traits[k][s]`, and keeps its label with probability
    /// `labelled_given_trait[s]`: p(r | y) = Σ_s p(r | s) p(s | y).
    Traits {
        /// P(trait | class), by class and trait.
        traits: Vec<Vec<f64>>,
        /// P(labelled | trait), by trait.
        labelled_given_trait: Vec<f64>,
    },
}

impl Mask {
    /// A description of what is invalid, if anything.
    fn fault(&self) -> Option<String> {
        let Self::Traits { traits, labelled_given_trait } = self else { return None };
        if traits.iter().any(|shares| shares.len() != labelled_given_trait.len()) {
            return Some("mask: each class needs one share per entry of `labelled_given_trait`".into());
        }
        let is_share = |value: &f64| (0.0..=1.0).contains(value);
        if !traits.iter().flatten().chain(labelled_given_trait).all(is_share) {
            return Some("mask: shares and probabilities must be between 0 and 1".into());
        }
        let empty = traits.iter().position(|shares| shares.iter().sum::<f64>() <= 0.0)?;
        Some(format!("mask: the shares of class {empty} are all 0"))
    }
}

/// A number of rows per class.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Counts {
    /// The same number for all classes.
    All(usize),
    /// One number per class.
    Each(Vec<usize>),
}

impl Counts {
    /// The number of classes, if it is limited.
    fn classes(&self) -> Option<usize> {
        match self {
            Self::All(_) => None,
            Self::Each(counts) => Some(counts.len()),
        }
    }

    /// The number for a class.
    pub fn of(&self, class: usize) -> Option<usize> {
        match self {
            Self::All(count) => Some(*count),
            Self::Each(counts) => counts.get(class).copied(),
        }
    }
}

/// Name of an augmentation of the training images.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AugmentName {
    /// None: plain images.
    #[default]
    None,
    /// The default for the shape of the images.
    Auto,
    /// For medical images, which have no preferred orientation.
    Medical,
    /// The same for findings in the centre: images are not shifted.
    MedicalCentred,
}

impl AugmentName {
    /// The augmentation for images of this shape.
    pub fn views(self, shape: mnar_data::ImageShape) -> Option<Augment> {
        match self {
            Self::None => None,
            Self::Auto => Some(Augment::for_shape(shape)),
            Self::Medical => Some(Augment::medical(shape)),
            Self::MedicalCentred => {
                let mut augment = Augment::medical(shape);
                augment.weak.shift = 0;
                augment.strong.weak.shift = 0;
                Some(augment)
            }
        }
    }
}

/// How the epoch is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// By validation rows with the true class shares, as in the paper. Users do not have such rows.
    Paper,
    /// By the 1/phi-weighted risk on a tenth of the labelled rows, held out from training, as `mnar fit` does.
    Real,
}

impl Protocol {
    /// The name in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Real => "real",
        }
    }
}

/// The paper's numbers for a method. Accuracies are in percent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperRow {
    /// Mean and standard deviation of the test accuracy; 0 where the paper gives no standard deviation.
    pub accuracy: Option<(f64, f64)>,
    /// Test loss.
    pub loss: Option<f64>,
    /// Normalised squared error of phi, Σ(φ̂−φ)²/Σφ².
    pub phi_error: Option<f64>,
    /// Test accuracy of the spotlight class.
    pub spotlight_accuracy: Option<f64>,
}

impl Experiment {
    /// Names of the built-in experiments. Where variants of a file have titles, they are experiments of their own, `FILE:VARIANT`.
    pub fn known() -> Vec<String> {
        let names = KNOWN.iter().map(|(name, text)| {
            let several: Vec<String> = titled_variants(text).iter().map(|one| format!("{name}:{one}")).collect();
            if several.is_empty() { vec![(*name).to_owned()] } else { several }
        });
        names.flatten().collect()
    }

    /// Finds a built-in experiment by name, or reads a TOML file. After a colon, `+` between them, come the variants of the
    /// file that take the place of its own entries.
    pub fn find(name: &str) -> Result<Self, ReproduceError> {
        let (file, variants) = name.rsplit_once(':').unwrap_or((name, ""));
        if let Some((name, text)) = KNOWN.iter().find(|(known, _)| *known == file) {
            return Self::parse(name, variants, text, Path::new(name));
        }
        let path = Path::new(file);
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text =
                std::fs::read_to_string(path).map_err(|source| ReproduceError::Io { path: path.to_owned(), source })?;
            let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
            return Self::parse(&stem, variants, &text, path);
        }
        Err(ReproduceError::Unknown { name: name.to_owned(), known: Self::known() })
    }

    fn parse(name: &str, variants: &str, text: &str, path: &Path) -> Result<Self, ReproduceError> {
        let unreadable = |error| ReproduceError::unreadable(path, "is not an experiment", error);
        let mut file: toml::Table = toml::from_str(text).map_err(unreadable)?;
        let mut known: BTreeMap<String, toml::Table> = match file.remove("variants") {
            Some(variants) => variants.try_into().map_err(unreadable)?,
            None => BTreeMap::new(),
        };
        let names = known.keys().cloned().collect::<Vec<_>>().join(", ");
        // Those without a title alter others.
        let first_titled =
            known.iter().find(|(_, entries)| entries.contains_key("title")).map(|(name, _)| name.clone());
        let chosen: Vec<&str> = variants.split('+').filter(|variant| !variant.is_empty()).collect();
        for variant in &chosen {
            let entries = known.remove(*variant).ok_or_else(|| {
                ReproduceError::bad_file(path, format!("there is no variant `{variant}`; the variants are: {names}"))
            })?;
            overlay(&mut file, entries);
        }
        if !file.contains_key("mask") && !known.is_empty() {
            let what = format!(
                "name a variant, as in `{name}:{}`; the variants are: {names}",
                first_titled.unwrap_or_default()
            );
            return Err(ReproduceError::bad_file(path, what));
        }
        let mut experiment: Self = file.try_into().map_err(unreadable)?;
        experiment.name = std::iter::once(name).chain(chosen).collect::<Vec<_>>().join("-");
        experiment.train.check()?;
        experiment.folds.check()?;
        let of_goals = || experiment.goals.iter().find_map(Goal::fault).map(str::to_owned);
        if let Some(what) = experiment.mask.fault().or_else(of_goals) {
            return Err(ReproduceError::bad_file(path, what));
        }
        Ok(experiment)
    }

    /// Training settings for a seed and a shape of rows: those of the methods, and those of the folds.
    pub(crate) fn settings(
        &self,
        seed: u64,
        epochs: Option<usize>,
        shape: InputShape,
    ) -> (TrainSettings, TrainSettings) {
        let augment = match shape {
            InputShape::Image(shape) => self.augment.views(shape),
            InputShape::Row(_) => None,
        };
        let of = |settings: &TrainSettings| TrainSettings { seed, augment: augment.clone(), ..settings.clone() };
        let mut train = of(&self.train);
        train.epochs = epochs.unwrap_or(train.epochs);
        (train, of(&self.folds))
    }

    /// Checks that the experiment fits data with this many classes.
    pub(crate) fn check_classes(&self, classes: usize) -> Result<(), ReproduceError> {
        let mentioned = match &self.mask {
            Mask::Counts { labelled, unlabelled } => {
                let given = [Some(labelled), unlabelled.as_ref()].into_iter().flatten();
                given.filter_map(Counts::classes).min().unwrap_or(classes)
            }
            Mask::Traits { traits, .. } => traits.len(),
        };
        let what = if mentioned != classes {
            format!("the mask has {mentioned} classes, but the data have {classes}")
        } else if let Some(class) = self.spotlight.filter(|&class| class >= classes) {
            format!("the spotlight is on class {class}, but the data have only {classes} classes")
        } else {
            return Ok(());
        };
        Err(ReproduceError::bad_file(&self.name, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_valid_and_mentions_only_methods_it_runs() {
        for name in Experiment::known() {
            let experiment = Experiment::find(&name).unwrap();
            assert!(experiment.seeds >= 2, "{name}");
            let of_goals = experiment.goals.iter().flat_map(Goal::all_methods);
            for method in experiment.paper.keys().copied().chain(of_goals) {
                assert!(experiment.methods.contains(&method), "{name}: {method:?}");
            }
        }
    }

    #[test]
    fn invalid_files_are_refused() {
        let (_, lidc) = KNOWN.iter().find(|(name, _)| *name == "lidc").unwrap();
        let said = |from: &str, to: &str| {
            assert!(lidc.contains(from));
            Experiment::parse("x", "", &lidc.replace(from, to), Path::new("x")).unwrap_err().to_string()
        };
        assert!(said("[0.1, 0.1, 0.1, 0.9, 0.9]", "[0.1, 0.9]").contains("one share per entry"));
        assert!(said("[0.1, 0.1, 0.1, 0.9, 0.9]", "[0.1, 0.1, 0.1, 0.9, 9.0]").contains("between 0 and 1"));
        assert!(said("[0.007, 0.017, 0.061, 0.233, 0.683]", "[0.0, 0.0, 0.0, 0.0, 0.0]").contains("class 1 are all 0"));
        assert!(said("epochs = 40", "epochs = 0").contains("number of epochs"));
        assert!(said("target = { ahead-of = [\"pl\"] }", "target = { ahead-of = [] }").contains("`ahead-of` is empty"));
        let experiment = Experiment::find("dermamnist").unwrap();
        assert!(experiment.check_classes(7).is_ok());
        assert!(experiment.check_classes(4).unwrap_err().to_string().contains("spotlight is on class 5"));
        assert!(Experiment::find("lidc").unwrap().check_classes(3).unwrap_err().to_string().contains("2 classes"));
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let message = Experiment::find("mnist").unwrap_err().to_string();
        assert!(message.contains("mnist-s1, mnist-s2"), "{message}");
    }
}
