//! Reads the data of an experiment and makes a masked training set, validation rows and test rows.

use crate::error::ReproduceError;
use crate::experiment::{Experiment, Mask};
use mnar::{Class, ClassShares, Labels, Phi};
use mnar_data::{Dataset, Images, Inputs, ReadOptions, Split, read_dataset};
use mnar_train::{Encoding, Examples};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// How it is decided which rows keep their label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Labelling {
    /// Completely at random, but as many labels as the experiment's mechanism keeps.
    AtRandom,
    /// By the experiment's mechanism.
    Informative,
}

impl Labelling {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::AtRandom => "mcar",
            Self::Informative => "mnar",
        }
    }

    /// The name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::AtRandom => "at random",
            Self::Informative => "informative",
        }
    }
}

/// The data of an experiment, fully labelled.
pub(crate) struct Source {
    path: PathBuf,
    train: (Images, Vec<usize>),
    test: (Images, Vec<usize>),
    /// The validation part, where the data set has one.
    validation: Option<(Images, Vec<usize>)>,
    names: Vec<String>,
}

impl Source {
    /// Reads the first of the experiment's files that exists below `folder`.
    pub(crate) fn read(experiment: &Experiment, folder: &Path) -> Result<Self, ReproduceError> {
        let Some(path) = experiment.data.iter().map(|name| folder.join(name)).find(|path| path.exists()) else {
            let path = experiment.data.first().map_or_else(|| folder.to_owned(), |name| folder.join(name));
            return Err(ReproduceError::WrongData { path, what: format!("does not exist; {}", experiment.missing) });
        };
        let read = |split| read_dataset(&path, &ReadOptions { split, ..Default::default() });
        let train = read(Split::Train)?;
        let names = train.labels.names().to_vec();
        let of = |dataset: Dataset| classes(dataset, &names, &path);
        // Only archives can have a validation part, and not all of them do.
        let validation = if path.extension().is_some_and(|ext| ext == "npz") {
            read(Split::Validation).ok().map(of).transpose()?
        } else {
            None
        };
        Ok(Self { test: of(read(Split::Test)?)?, train: of(train)?, validation, names: names.clone(), path })
    }

    pub(crate) fn n_classes(&self) -> usize {
        self.names.len()
    }

    /// Hides labels by the experiment's mechanism; the seed decides which rows.
    pub(crate) fn mask(
        &self,
        experiment: &Experiment,
        labelling: Labelling,
        seed: u64,
    ) -> Result<Masked, ReproduceError> {
        let k = self.names.len();
        let wrong = |what: String| ReproduceError::WrongData { path: self.path.clone(), what };
        let mut by_class = vec![Vec::new(); k];
        self.train.1.iter().enumerate().for_each(|(row, &class)| by_class[class].push(row));
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        by_class.iter_mut().for_each(|rows| rows.shuffle(&mut rng));
        // `kept` holds each row and whether its label is kept, `left` the rows that the mask does not use.
        let (mut kept, mut phi, mut left) = (Vec::new(), Vec::new(), Vec::new());
        for (class, rows) in by_class.iter().enumerate() {
            match &experiment.mask {
                Mask::Counts { labelled, unlabelled } => {
                    let labels = labelled.of(class);
                    let others = labels.map(|labels| rows.len().saturating_sub(labels));
                    let hidden = unlabelled.as_ref().map_or(others, |counts| counts.of(class));
                    let (Some(labels), Some(hidden)) = (labels, hidden) else {
                        return Err(wrong(format!("has {k} classes, but the mask does not mention class {class}")));
                    };
                    if labels + hidden > rows.len() {
                        let there = rows.len();
                        return Err(wrong(format!(
                            "class {class} has {there} rows, but the mask needs {}",
                            labels + hidden
                        )));
                    }
                    phi.push(labels as f64 / (labels + hidden) as f64);
                    kept.extend(rows[..labels + hidden].iter().enumerate().map(|(i, &row)| (row, i < labels)));
                    left.extend_from_slice(&rows[labels + hidden..]);
                }
                Mask::Traits { traits, labelled_given_trait } => {
                    let Some(shares) = traits.get(class) else {
                        return Err(wrong(format!("has {k} classes, but the mask does not mention class {class}")));
                    };
                    phi.push(
                        shares.iter().zip(labelled_given_trait).map(|(s, r)| s * r).sum::<f64>()
                            / shares.iter().sum::<f64>(),
                    );
                    kept.extend(rows.iter().map(|&row| {
                        let of_row = labelled_given_trait[draw(shares, &mut rng)];
                        (row, rng.random::<f64>() < of_row)
                    }));
                }
            }
        }
        kept.sort_unstable();
        if labelling == Labelling::AtRandom {
            let mut shown: Vec<bool> = kept.iter().map(|&(_, shown)| shown).collect();
            shown.shuffle(&mut rng);
            kept.iter_mut().zip(shown).for_each(|(row, shown)| row.1 = shown);
            let share = kept.iter().filter(|row| row.1).count() as f64 / kept.len() as f64;
            phi.fill(share);
        }
        let mut counts = vec![0; k];
        kept.iter().for_each(|&(row, _)| counts[self.train.1[row]] += 1);
        let shares = ClassShares::of_counts(&counts);
        let y = kept.iter().map(|&(row, shown)| shown.then(|| Class::from(self.train.1[row]))).collect();
        let rows: Vec<usize> = kept.iter().map(|&(row, _)| row).collect();
        let train = pick(&self.train.0, &rows)?;
        let encoding = Encoding::learn(&Inputs::Images(train.clone()))?;
        let (validation, validation_classes) = self.validation_rows(experiment, &shares, &left, &mut rng)?;
        let examples = |images: Images| encoding.examples(Inputs::Images(images));
        Ok(Masked {
            train: examples(train)?,
            labels: Labels::new(y, self.names.clone())?,
            phi: Phi::new(phi)?,
            shares,
            validation: examples(validation)?,
            validation_classes,
            test: examples(self.test.0.clone())?,
            test_classes: self.test.1.clone(),
        })
    }

    /// Rows with the true class shares, drawn from the validation part, else from the training rows that the mask left
    /// out, else from the test part.
    fn validation_rows(
        &self,
        experiment: &Experiment,
        shares: &ClassShares,
        left: &[usize],
        rng: &mut ChaCha8Rng,
    ) -> Result<(Images, Vec<usize>), ReproduceError> {
        let (images, classes, mut pool): (&Images, &[usize], Vec<usize>) = match &self.validation {
            Some((images, classes)) => (images, classes, (0..classes.len()).collect()),
            None if !left.is_empty() => (&self.train.0, &self.train.1, left.to_vec()),
            None => (&self.test.0, &self.test.1, (0..self.test.1.len()).collect()),
        };
        pool.shuffle(rng);
        let mut rows = Vec::new();
        for (class, share) in shares.iter().enumerate() {
            let wanted = (share * experiment.validation as f64).round() as usize;
            rows.extend(pool.iter().copied().filter(|&row| classes[row] == class).take(wanted.max(1)));
        }
        Ok((pick(images, &rows)?, rows.iter().map(|&row| classes[row]).collect()))
    }
}

/// A training set with hidden labels, and the truth about it.
pub(crate) struct Masked {
    pub(crate) train: Examples,
    pub(crate) labels: Labels,
    /// The true mechanism.
    pub(crate) phi: Phi,
    /// The true class shares.
    pub(crate) shares: ClassShares,
    pub(crate) validation: Examples,
    pub(crate) validation_classes: Vec<usize>,
    pub(crate) test: Examples,
    pub(crate) test_classes: Vec<usize>,
}

/// Draws an index in proportion to the shares.
fn draw(shares: &[f64], rng: &mut ChaCha8Rng) -> usize {
    let mut at = rng.random::<f64>() * shares.iter().sum::<f64>();
    for (i, share) in shares.iter().enumerate() {
        at -= share;
        if at < 0.0 {
            return i;
        }
    }
    shares.len() - 1
}

fn pick(images: &Images, rows: &[usize]) -> Result<Images, ReproduceError> {
    let pixels = rows.iter().flat_map(|&row| images.pixels(row)).copied().collect();
    Ok(Images::new(images.shape(), pixels, "the chosen rows")?)
}

/// The images, and their classes as positions in `names`.
fn classes(dataset: Dataset, names: &[String], path: &Path) -> Result<(Images, Vec<usize>), ReproduceError> {
    let wrong = |what: &str| ReproduceError::WrongData { path: path.to_owned(), what: what.to_owned() };
    let Inputs::Images(images) = dataset.inputs else { return Err(wrong("holds no images")) };
    let place: Vec<Option<usize>> =
        dataset.labels.names().iter().map(|name| names.iter().position(|known| known == name)).collect();
    let classes: Option<Vec<usize>> =
        dataset.labels.as_slice().iter().map(|y| y.and_then(|class| place[class.index()])).collect();
    Ok((images, classes.ok_or_else(|| wrong("every row needs a label, and one that occurs in the training part"))?))
}
