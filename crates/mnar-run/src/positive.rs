//! Tables and small images of which only one class is ever labelled: what they say, and a model where the share of the class is known.

use crate::classifiers::{EncodedTable, SavedClassifier, TableClassifier, TableModels};
use crate::error::RunError;
use crate::fingerprint::Fingerprint;
use crate::fit::FitRequest;
use crate::folder::{MODEL, RunFolder};
use crate::options::{CrossFitWith, FitOptions};
use crate::per_class::PerClass;
use crate::predictions::Predictions;
use crate::report::uncertain_rows;
use mnar::analysis::{Findings, TriedClassifier};
use mnar::calibrate::{Bcts, Calibration};
use mnar::classify::SoftmaxRegression;
use mnar::crossfit::FoldPlan;
use mnar::positive::{KnownShare, PositiveBound};
use mnar::progress::{Progress, Stage};
use mnar::{Class, Labels, PosteriorKind, Posteriors, Remedy, Sample};
use mnar_data::{
    AtomicFile, Expected, FeatureTable, Inputs, RowNames, Source, Split, TableEncoder, read_for_prediction,
};
use mnar_report::Report;
use mnar_train::{Encoding, Examples, Propensity, check_version};
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Instant;

/// How a table of positive-unlabelled rows is looked at.
#[derive(Clone, Copy, Debug)]
pub struct PositiveOptions {
    /// The classifier that tells labelled from unlabelled rows.
    pub classifier: TableClassifier,
    /// Its settings, if it is a regression.
    pub softmax: SoftmaxRegression,
    /// Folds of the cross-fitting.
    pub folds: usize,
    /// Seed of every draw.
    pub seed: u64,
}

/// What a table of positive-unlabelled rows says.
pub struct PositiveAnalysis {
    /// Bounds, whatever the share is.
    pub bound: PositiveBound,
    /// The classifiers that were tried.
    pub tried: Vec<TriedClassifier>,
    /// The classifier, trained on all rows.
    classifier: SavedClassifier,
    calibration: Bcts,
}

impl PositiveAnalysis {
    /// Learns to tell labelled from unlabelled rows. The labels must have a single class.
    pub fn new(
        table: EncodedTable<'_>,
        labels: &Labels,
        options: &PositiveOptions,
        progress: &dyn Progress,
    ) -> Result<Self, RunError> {
        let is_labelled = whether_labelled(labels)?;
        let plan = FoldPlan::for_labels(&is_labelled, options.folds, options.seed)?;
        let (which, seed) = (options.classifier, options.seed);
        let models = TableModels::new(which, options.softmax, table, &is_labelled, &plan, seed, progress)?;
        models.note().into_iter().for_each(|note| progress.warn(note));
        let evidence = models.evidence(&is_labelled, &plan, seed, progress)?;
        let calibration = Calibration::default().fit(&Sample::new(&evidence.posteriors, &is_labelled)?)?;
        let bound = PositiveBound::new(evidence.posteriors.column(0), labels)?;
        let classifier = models.trained(&evidence, seed, progress)?;
        Ok(Self { bound, tried: evidence.tried, classifier, calibration })
    }

    /// The share of the class, as typed: `sick=0.2`, or 0.2 alone.
    pub fn share(&self, shares: &PerClass) -> Result<KnownShare, RunError> {
        let share = shares.resolve("shares", std::slice::from_ref(&self.bound.class))?;
        Ok(self.bound.with_share(share[0])?)
    }

    /// Findings under a known share.
    pub fn findings(&self, labels: &Labels, known: &KnownShare, seed: u64) -> Result<Findings, RunError> {
        Ok(Findings::positive_unlabelled(labels, self.bound.clone(), known, self.tried.clone(), seed)?)
    }

    /// The model that follows from a known share.
    pub(crate) fn model(self, known: KnownShare, encoder: TableEncoder, images: Option<Encoding>) -> PositiveModel {
        PositiveModel {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            share: known.share,
            bound: self.bound,
            classifier: self.classifier,
            calibration: self.calibration,
            encoder,
            images,
        }
    }
}

/// Data of a run whose labels have a single class.
pub(crate) struct PositiveData {
    pub(crate) encoding: Encoding,
    pub(crate) inputs: Inputs,
    pub(crate) labels: Labels,
    pub(crate) row_names: Option<RowNames>,
    pub(crate) fingerprint: Fingerprint,
}

impl PositiveData {
    /// Learns from the table, trains on all rows where the share of the class is known, and writes the run.
    pub(crate) fn fit(
        self,
        request: &FitRequest<'_>,
        mut folder: RunFolder,
        progress: &dyn Progress,
        start: Instant,
    ) -> Result<Report, RunError> {
        let Self { encoding, inputs, labels, row_names, fingerprint } = self;
        let examples = encoding.examples(inputs)?;
        let pixels;
        let (images, encoder, x) = match (encoding, &examples) {
            (Encoding::Table(encoder), Examples::Table(x)) => (None, encoder, x),
            (encoding, examples) => {
                if examples.shape().width() > MOST_PIXELS {
                    return Err(RunError::options(
                        "only one class is ever labelled; that can be learnt from for tables and for images of up to 4,096 numbers",
                        [Remedy::set("resize", "32x32")],
                    ));
                }
                let table = pixel_table(examples)?;
                let encoder = TableEncoder::fit(&table)?;
                pixels = encoder.encode(&table)?;
                (Some(encoding), encoder, &pixels)
            }
        };
        let options = request.options.clone();
        let asked = PositiveOptions {
            classifier: options.cross_fit.and_then(CrossFitWith::of_table).unwrap_or_default(),
            softmax: SoftmaxRegression::default(),
            folds: options.folds.unwrap_or(5),
            seed: options.seed.unwrap_or(0),
        };
        let table = EncodedTable { encoder: &encoder, x: x.view() };
        let analysis = PositiveAnalysis::new(table, &labels, &asked, progress)?;
        let Some(shares) = &options.shares else {
            return Err(RunError::ShareNeeded { bound: Box::new(analysis.bound) });
        };
        let known = analysis.share(shares)?;
        let findings = analysis.findings(&labels, &known, asked.seed)?;
        let options = FitOptions { folds: Some(asked.folds), seed: Some(asked.seed), ..options };
        folder.start(fingerprint, &options)?;
        progress.begin(Stage::Write, 0, 0);
        let model = analysis.model(known, encoder, images);
        model.save(&folder.model(MODEL)?)?;
        let labels = Labels::allow_degenerate(labels.as_slice().to_vec(), model.bound.classes())?;
        let predictions = model.predictions(x.view(), row_names.clone())?;
        let name = |row: usize| row_names.as_ref().and_then(|names| names.names.get(row)).cloned();
        let png = |row: usize| match &examples {
            Examples::Images { images, .. } => images.png(row),
            Examples::Table(_) => None,
        };
        let uncertain =
            uncertain_rows(predictions.population(), &labels, &Propensity::new(&findings.phi, None), name, png);
        predictions.with_labels(labels).write_with(&folder.predictions()?, request.formulas)?;
        let provenance = request.origin.provenance(&options, "cpu".to_owned(), start)?;
        let report = request.origin.with_commands(Report::new(provenance, findings).with_uncertain(uncertain));
        folder.finish(&report)?;
        progress.end();
        Ok(report)
    }
}

/// Larger images are refused: every pixel is a column.
const MOST_PIXELS: usize = 4096;

/// Images as a table of their pixels.
fn pixel_table(examples: &Examples) -> Result<FeatureTable, RunError> {
    let names = (1..=examples.shape().width()).map(|pixel| format!("pixel {pixel}")).collect();
    Ok(FeatureTable::from_numbers(names, examples.features().view(), "the images")?)
}

/// Every row labelled with whether it is labelled.
fn whether_labelled(labels: &Labels) -> Result<Labels, mnar::Error> {
    let y = labels.as_slice().iter().map(|label| Some(Class(u32::from(label.is_none())))).collect();
    Labels::allow_degenerate(y, ["labelled", "unlabelled"].map(String::from).to_vec())
}

/// A saved model: P(labelled | x), and what turns it into p(class | x).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PositiveModel {
    version: String,
    share: f64,
    bound: PositiveBound,
    classifier: SavedClassifier,
    calibration: Bcts,
    encoder: TableEncoder,
    /// How images become the table of their pixels, which the encoder is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    images: Option<Encoding>,
}

impl PositiveModel {
    /// The file of a model in its folder.
    pub(crate) const FILE: &str = "positive.json";

    /// Writes the model into its folder.
    pub(crate) fn save(&self, folder: &Path) -> Result<(), RunError> {
        let text = serde_json::to_string(self).map_err(|error| broken(folder, error))?;
        Ok(AtomicFile::write_text(&folder.join(Self::FILE), &(text + "\n"))?)
    }

    /// Reads it back, and believes nothing unseen.
    pub(crate) fn load(folder: &Path) -> Result<Self, RunError> {
        let path = folder.join(Self::FILE);
        let text = std::fs::read_to_string(&path).map_err(RunError::io("read", &path))?;
        let model: Self = serde_json::from_str(&text).map_err(|error| broken(folder, error))?;
        check_version(&model.version).map_err(|why| broken(folder, why))?;
        model.check().map_err(|why| broken(folder, why))?;
        Ok(model)
    }

    /// Checks that the parts go together and that every number is in its range. The share is checked with the bound.
    fn check(&self) -> Result<(), &'static str> {
        self.encoder.check()?;
        self.classifier.check(&self.encoder, 2)?;
        let Bcts { inverse_temperature, biases, .. } = &self.calibration;
        let finite = inverse_temperature.is_finite() && biases.iter().all(|bias| bias.abs() < 1e6);
        if biases.len() != 2 || !finite || *inverse_temperature <= 0.0 {
            return Err("the calibration makes no sense");
        }
        if let Some(images) = &self.images {
            images.check()?;
            if !matches!(images, Encoding::Images { shape, .. } if shape.len() <= MOST_PIXELS) {
                return Err("the images are too large");
            }
        }
        match self.bound.n_labelled > 0 && self.bound.n_labelled < self.bound.n {
            true => Ok(()),
            false => Err("the numbers of rows make no sense"),
        }
    }

    /// Reads new rows and predicts them.
    pub(crate) fn predict(&self, data: Source<'_>, split: Split, id: Option<&str>) -> Result<Predictions, RunError> {
        let expected = match &self.images {
            Some(Encoding::Images { shape, .. }) => Expected::Images { shape: *shape, resize: true },
            _ => Expected::Table(&self.encoder),
        };
        let rows = read_for_prediction(data, &expected, split, id)?;
        let encoded = match (&self.images, rows.inputs) {
            (Some(encoding), inputs) => self.encoder.encode(&pixel_table(&encoding.examples(inputs)?)?)?,
            (None, Inputs::Table(table)) => self.encoder.encode(&table)?,
            (None, Inputs::Images(_)) => {
                return Err(RunError::options("this model predicts the rows of a table", []));
            }
        };
        Ok(self.predictions(encoded.view(), rows.row_names)?.with_notes(rows.notes))
    }

    /// p(class | x) of encoded rows, and that of unlabelled ones.
    pub(crate) fn predictions(
        &self,
        encoded: ArrayView2<'_, f32>,
        row_names: Option<RowNames>,
    ) -> Result<Predictions, RunError> {
        let known = self.bound.with_share(self.share)?;
        let table = EncodedTable { encoder: &self.encoder, x: encoded };
        let labelled = Posteriors::new(self.classifier.predict_proba(table)?, PosteriorKind::Labelled)?;
        let labelled = self.calibration.apply(&labelled)?;
        let mut p = Array2::zeros((labelled.len(), 2));
        for (row, mut p) in p.rows_mut().into_iter().enumerate() {
            p[0] = known.probability(labelled.column(0)[row]);
            p[1] = 1.0 - p[0];
        }
        let population = Posteriors::new(p, PosteriorKind::Population)?;
        Predictions::new(population, &known.mechanism()?, &self.bound.classes(), row_names)
    }
}

fn broken(folder: &Path, why: impl ToString) -> RunError {
    RunError::BrokenModel { path: folder.join(PositiveModel::FILE), why: why.to_string() }
}
