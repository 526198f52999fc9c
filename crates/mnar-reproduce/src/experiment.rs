//! An experiment: what a file of `experiments/` says.

use crate::error::ReproduceError;
use crate::goals::Goal;
use crate::method::Candidate;
use mnar_train::augment::Augment;
use mnar_train::consistency::{Consistency, FixMatch, PseudoLabels};
use mnar_train::model::Architecture;
use mnar_train::{Criterion, InputShape, TrainSettings};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The experiments that come with the program.
const KNOWN: [(&str, &str); 7] = [
    ("mnist-s1", include_str!("../../../experiments/mnist-s1.toml")),
    ("mnist-s2", include_str!("../../../experiments/mnist-s2.toml")),
    ("dermamnist", include_str!("../../../experiments/dermamnist.toml")),
    ("nodulemnist3d", include_str!("../../../experiments/nodulemnist3d.toml")),
    ("adrenalmnist3d", include_str!("../../../experiments/adrenalmnist3d.toml")),
    ("lidc", include_str!("../../../experiments/lidc.toml")),
    ("cifar10-s2", include_str!("../../../experiments/cifar10-s2.toml")),
];

/// An experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name of its file.
    #[serde(skip)]
    pub name: String,
    /// What it is, in a line.
    pub title: String,
    /// What is done differently from the paper, and why.
    #[serde(default)]
    pub remark: String,
    /// What the tests of informative labels show.
    #[serde(default)]
    pub test_remark: String,
    /// Files or folders below the data folder; the first that is there is read.
    pub data: Vec<String>,
    /// What to do when none is there.
    pub missing: String,
    /// How labels are hidden.
    pub mask: Mask,
    /// Validation rows of the paper's protocol, with the true class shares.
    pub validation: usize,
    /// What the chosen epoch is best at on them.
    pub choose_by: Criterion,
    /// The network.
    pub network: Architecture,
    /// The semi-supervised method that is debiased.
    pub consistency: ConsistencyName,
    /// Which views of images are trained on.
    #[serde(default)]
    pub augment: AugmentName,
    /// Methods, in the order of the table.
    pub methods: Vec<Candidate>,
    /// Masks drawn, and networks started.
    pub seeds: u64,
    /// How networks are trained.
    pub train: TrainSettings,
    /// How the networks of the folds are trained, which see labelled rows only.
    pub folds: TrainSettings,
    /// A class whose accuracy and phi the paper reports by themselves.
    #[serde(default)]
    pub spotlight: Option<usize>,
    /// What it is meant to show.
    #[serde(default)]
    pub goals: Vec<Goal>,
    /// What the paper reports.
    #[serde(default)]
    pub paper: BTreeMap<Candidate, PaperRow>,
}

/// How labels are hidden.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Mask {
    /// So many rows of every class keep their label, and so many lose it (without a number: all the others). Rows
    /// beyond are left out.
    Counts {
        /// By class; one number for all.
        labelled: Counts,
        /// By class.
        unlabelled: Option<Vec<usize>>,
    },
    /// A row of class k has trait s with probability `traits[k][s]`, and keeps its label with probability
    /// `labelled_given_trait[s]`: p(r | y) = Σ_s p(r | s) p(s | y).
    Traits {
        /// By class and trait.
        traits: Vec<Vec<f64>>,
        /// By trait.
        labelled_given_trait: Vec<f64>,
    },
}

impl Mask {
    /// What cannot be right in it.
    fn fault(&self) -> Option<String> {
        let Self::Traits { traits, labelled_given_trait } = self else { return None };
        if traits.iter().any(|shares| shares.len() != labelled_given_trait.len()) {
            return Some("mask: every class needs a share for every number of `labelled_given_trait`".into());
        }
        let is_share = |value: &f64| (0.0..=1.0).contains(value);
        if !traits.iter().flatten().chain(labelled_given_trait).all(is_share) {
            return Some("mask: shares and probabilities are from 0 to 1".into());
        }
        let empty = traits.iter().position(|shares| shares.iter().sum::<f64>() <= 0.0)?;
        Some(format!("mask: the shares of class {empty} are all 0"))
    }
}

/// A number for every class.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Counts {
    /// The same.
    All(usize),
    /// Its own.
    Each(Vec<usize>),
}

impl Counts {
    /// Of a class.
    pub fn of(&self, class: usize) -> Option<usize> {
        match self {
            Self::All(count) => Some(*count),
            Self::Each(counts) => counts.get(class).copied(),
        }
    }
}

/// A semi-supervised method.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConsistencyName {
    /// Pseudo-labels.
    PseudoLabels,
    /// FixMatch.
    Fixmatch,
}

impl ConsistencyName {
    /// The method.
    pub fn method(self) -> &'static dyn Consistency {
        match self {
            Self::PseudoLabels => &PseudoLabels,
            Self::Fixmatch => &FixMatch,
        }
    }
}

/// Which views of images are trained on.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AugmentName {
    /// Plain images.
    #[default]
    None,
    /// What suits the shape.
    Auto,
    /// For findings with no up and no left.
    Medical,
    /// The same for findings in the centre, which stay there.
    MedicalCentred,
}

impl AugmentName {
    /// The views.
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

/// By which rows the epoch is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// By validation rows with the true class shares, as in the paper. No user has them.
    Paper,
    /// By the 1/phi-weighted risk of a tenth of the labelled rows, which do not train, as `mnar fit` does.
    Real,
}

impl Protocol {
    /// Its name in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Real => "real",
        }
    }
}

/// What the paper reports of a method: means, and standard deviations where it gives them. Accuracies in percent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperRow {
    /// Test accuracy.
    pub accuracy: Option<(f64, f64)>,
    /// Test loss.
    pub loss: Option<f64>,
    /// Σ(φ̂−φ)²/Σφ².
    pub phi_error: Option<f64>,
    /// Test accuracy of the spotlight class.
    pub spotlight_accuracy: Option<f64>,
}

impl Experiment {
    /// The names of the experiments that come with the program.
    pub fn known() -> Vec<String> {
        KNOWN.iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    /// By its name, or from a file.
    pub fn find(name: &str) -> Result<Self, ReproduceError> {
        if let Some((name, text)) = KNOWN.iter().find(|(known, _)| *known == name) {
            return Self::parse(name, text, Path::new(name));
        }
        let path = Path::new(name);
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text =
                std::fs::read_to_string(path).map_err(|why| ReproduceError::Io { path: path.to_owned(), why })?;
            let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
            return Self::parse(&stem, &text, path);
        }
        Err(ReproduceError::Unknown { name: name.to_owned(), known: Self::known() })
    }

    fn parse(name: &str, text: &str, path: &Path) -> Result<Self, ReproduceError> {
        let mut experiment: Self = toml::from_str(text)
            .map_err(|error| ReproduceError::BadFile { path: path.to_owned(), what: error.to_string() })?;
        experiment.name = name.to_owned();
        experiment.train.check()?;
        experiment.folds.check()?;
        let of_goals = || experiment.goals.iter().find_map(Goal::fault).map(str::to_owned);
        if let Some(what) = experiment.mask.fault().or_else(of_goals) {
            return Err(ReproduceError::BadFile { path: path.to_owned(), what });
        }
        Ok(experiment)
    }

    /// How networks are trained with a seed on rows of this shape: those of the methods, and those of the folds.
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

    /// Does what it says fit data of so many classes?
    pub(crate) fn check_classes(&self, classes: usize) -> Result<(), ReproduceError> {
        let spoken_of = match &self.mask {
            Mask::Counts { labelled: Counts::All(_), unlabelled } => unlabelled.as_ref().map_or(classes, Vec::len),
            Mask::Counts { labelled: Counts::Each(counts), unlabelled } => {
                counts.len().min(unlabelled.as_ref().map_or(counts.len(), Vec::len))
            }
            Mask::Traits { traits, .. } => traits.len(),
        };
        let what = if spoken_of != classes {
            format!("the mask speaks of {spoken_of} classes, but the data have {classes}")
        } else if let Some(class) = self.spotlight.filter(|&class| class >= classes) {
            format!("the spotlight is on class {class}, but the data have {classes} classes")
        } else {
            return Ok(());
        };
        Err(ReproduceError::BadFile { path: self.name.clone().into(), what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_understood_and_speaks_only_of_methods_it_runs() {
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
    fn what_cannot_be_right_is_refused() {
        let (_, lidc) = KNOWN.iter().find(|(name, _)| *name == "lidc").unwrap();
        let said = |from: &str, to: &str| {
            assert!(lidc.contains(from));
            Experiment::parse("x", &lidc.replace(from, to), Path::new("x")).unwrap_err().to_string()
        };
        assert!(said("[0.1, 0.1, 0.1, 0.9, 0.9]", "[0.1, 0.9]").contains("a share for every number"));
        assert!(said("[0.1, 0.1, 0.1, 0.9, 0.9]", "[0.1, 0.1, 0.1, 0.9, 9.0]").contains("from 0 to 1"));
        assert!(said("[0.007, 0.017, 0.061, 0.233, 0.683]", "[0.0, 0.0, 0.0, 0.0, 0.0]").contains("class 1 are all 0"));
        assert!(said("epochs = 40", "epochs = 0").contains("number of epochs"));
        assert!(said("target = { ahead-of = [\"pl\"] }", "target = { ahead-of = [] }").contains("names no method"));
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
