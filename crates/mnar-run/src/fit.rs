//! From a partly labelled data set to a run folder: cross-fit, estimate, test, train the debiased model and the biased
//! baseline, write.

use crate::beside::{Beside, Candidates, Table};
use crate::classifiers::{EncodedTable, TableModels};
use crate::error::RunError;
use crate::fingerprint::Fingerprint;
use crate::folder::{BASELINE, MODEL, RunFolder};
use crate::guess::Guess;
use crate::guides::Guides;
use crate::image_columns::{self, columns_beside};
use crate::options::{CrossFitWith, FinalClassifier, FitOptions};
use crate::plan::FitPlan;
use crate::positive::PositiveData;
use crate::predictions::{Predictions, check_row_names};
use crate::quality::out_of_fold;
use crate::recorder::Recorder;
use crate::refits::KeptRefits;
use crate::report::{Origin, more_labels, uncertain_rows};
use crate::sets::SavedSets;
use mnar::analysis::{Audit, CONFIDENCE, Evidence, Features, Findings, Given, TestDecision};
use mnar::classify::SoftmaxRegression;
use mnar::covariates::TermEncoder;
use mnar::crossfit::{CrossFit, FoldPlan};
use mnar::interval::wilson;
use mnar::progress::{Progress, Stage};
use mnar::{Covariates, Labels, Phi, PosteriorKind, Posteriors, RareClass};
use mnar_data::{Dataset, Formulas, Inputs, Note, RowNames, Source, read_dataset, read_marks};
use mnar_report::{Ended, HeldOut, Model, OutOfFold, Report, Training};
use mnar_train::consistency::ConsistencyName;
use mnar_train::device::{self, Device};
use mnar_train::method::{Known, Method, MethodName};
use mnar_train::model::Network;
use mnar_train::{
    Encoding, Examples, Job, LabellingByColumns, ModelDescription, NetworkClassifier, Propensity, Trained, likely_phi,
    logits, save_model, score, train, weighted_scores,
};
use ndarray::Array2;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What to fit, how and where.
#[derive(Clone, Debug)]
pub struct FitRequest<'a> {
    /// The data.
    pub data: Source<'a>,
    /// The options.
    pub options: FitOptions,
    /// The run folder.
    pub folder: PathBuf,
    /// Whether an interrupted run in that folder goes on.
    pub resume: bool,
    /// What the report says about where it comes from.
    pub origin: Origin,
    /// The longest time between two checkpoints: this much work is lost if the run is killed.
    pub checkpoint_every: Duration,
    /// What becomes of texts in `predictions.csv` that a spreadsheet would take for formulas.
    pub formulas: Formulas,
}

impl<'a> FitRequest<'a> {
    /// The longest time between two checkpoints by default.
    pub const CHECKPOINT_EVERY: Duration = Duration::from_secs(20);

    /// A new run of these data in this folder, with default options.
    pub fn new(data: impl Into<Source<'a>>, folder: impl Into<PathBuf>) -> Self {
        let data = data.into();
        let origin = Origin { title: data.name(), ..Default::default() };
        Self {
            data,
            options: FitOptions::default(),
            folder: folder.into(),
            resume: false,
            origin,
            checkpoint_every: Self::CHECKPOINT_EVERY,
            formulas: Formulas::default(),
        }
    }
}

/// Labelled rows below which the accuracy of held-out rows is a rough guess: of 50, an accuracy of 90% is known to ± 8% at
/// best.
const FEW_HELD_OUT: usize = 50;

/// Runs all stages. If the caller cancels, everything done so far is kept in the folder, and a request with `resume` goes on
/// from there.
pub fn fit(request: &FitRequest<'_>, progress: &dyn Progress) -> Result<Report, RunError> {
    let start = Instant::now();
    request.options.check_ranges()?;
    let device = FitPlan::device(&request.options)?;
    let mut folder = RunFolder::open(&request.folder, request.resume, request.checkpoint_every)?;
    if !folder.is_locked() {
        progress.warn("note: this file system has no locks; see to it that no other process uses the run folder");
    }
    progress.begin(Stage::Read, 0, 0);
    let dataset = read_dataset(request.data, &request.options.read_options()?)?;
    let marks = match &request.options.audit {
        Some(column) => {
            let sheet = request.options.sheet.as_deref().or(request.data.sheet);
            let skip_rows = request.options.skip_rows.unwrap_or(request.data.skip_rows);
            let table = request.data.with_sheet(sheet).with_skip_rows(skip_rows);
            Some(read_marks(table, column, &request.options.missing)?)
        }
        None => None,
    };
    let beside = columns_beside(&dataset, &request.options, request.data.memory)?;
    let fingerprint = Fingerprint::of(&dataset, marks.as_deref(), beside.as_ref());
    folder.check_data(&fingerprint)?;
    let encoding = learn_encoding(&dataset, &request.data, progress)?;
    progress.end();
    let Dataset { inputs, labels, row_names, notes, .. } = dataset;
    let (labels, audit) = match marks {
        None => (labels, None),
        Some(marks) => {
            let (labels, audit) = Audit::split(&labels, &marks)?;
            (labels, Some(audit))
        }
    };
    if labels.n_classes() == 1 && labels.n_unlabelled() > 0 {
        let data = PositiveData { encoding, inputs, labels, row_names, fingerprint };
        return data.fit(request, folder, progress, start);
    }
    let (labels, rare) = labels.without_rare(FoldPlan::FEWEST_LABELS)?;
    let plan = FitPlan::of(&request.options, encoding.shape(), &inputs, &labels)?;
    check_labels(&labels, &plan)?;
    rare.iter().for_each(|rare| progress.warn(&rare.to_string()));
    check_row_names(row_names.as_ref(), labels.names())?;
    let covariates = plan.covariates(&inputs, beside.as_ref(), &labels)?;
    folder.start(fingerprint, &plan.options)?;

    let encoding = encoding.oriented(plan.orientation());
    let examples = encoding.examples(inputs)?;
    let recorder = Recorder::new(&folder, progress);
    let run = Run {
        examples: &examples,
        encoding: &encoding,
        labels: &labels,
        covariates: &covariates,
        audit: audit.as_ref(),
        notes: about_labels(&notes),
        rare: &rare,
        plan: &plan,
        folder: &folder,
        device,
        formulas: request.formulas,
    };
    let Analysed { mut findings, test, others, guess, sets, evaluation, networks } = run.analyse(&recorder)?;
    let debiased = run.debiased(&mut findings, others, guess, &recorder)?;
    let baseline = match plan.baseline {
        true => Some(run.train(Stage::Baseline, Method::Classical, None, run.alone(&findings), &recorder)?),
        false => None,
    };
    progress.begin(Stage::Write, 0, 0);
    let evaluation = match networks {
        Some(networks) => run.evaluate_networks(&networks, &findings, &recorder)?,
        None => evaluation,
    };
    let models = Models { debiased, baseline, sets, evaluation };
    let report = run.write(findings, test, &models, row_names, &request.origin, start)?;
    progress.end();
    Ok(report)
}

/// Learns how the inputs are encoded, and says what is left out.
fn learn_encoding(dataset: &Dataset, data: &Source<'_>, progress: &dyn Progress) -> Result<Encoding, RunError> {
    if !dataset.skipped.is_empty() {
        let shown: Vec<&str> = dataset.skipped.iter().take(3).map(String::as_str).collect();
        let more = if dataset.skipped.len() > 3 { ", ..." } else { "" };
        let files =
            if dataset.skipped.len() == 1 { "entry that is not an image" } else { "entries that are not images" };
        progress.warn(&format!("skipped {} {files}: {}{more}", dataset.skipped.len(), shown.join(", ")));
    }
    // What never varies is named below.
    say_notes(dataset.notes.iter().filter(|note| !matches!(note, Note::Constant { .. })), progress);
    if let Inputs::Table(table) = &dataset.inputs
        && let Some(column) = table.copy_of_label(&dataset.labels)
    {
        return Err(RunError::LeakedLabel { source_name: data.name(), column: column.to_owned() });
    }
    let encoding = Encoding::learn(&dataset.inputs)?;
    if let Encoding::Table(encoder) = &encoding
        && !encoder.dropped().is_empty()
    {
        progress.warn(&format!("left out because they never vary: {}", encoder.dropped().join(", ")));
    }
    Ok(encoding)
}

/// Says what a reader decided about a file, and after each note what could be done about it; the same hint once.
pub fn say_notes<'a>(notes: impl Iterator<Item = &'a Note>, progress: &dyn Progress) {
    let notes: Vec<&Note> = notes.collect();
    for (i, note) in notes.iter().enumerate() {
        progress.warn(&format!("note: {note}"));
        let remedies = note.remedies();
        // One hint below all of the notes that it is for.
        if notes.get(i + 1).is_none_or(|next| next.remedies() != remedies) {
            remedies.iter().for_each(|remedy| progress.suggest(remedy));
        }
    }
}

/// Which labels are there is what everything rests on: what was done about them belongs into the findings.
fn about_labels(notes: &[Note]) -> Vec<String> {
    let changed = |note: &&Note| matches!(note, Note::MissingLabels { .. } | Note::MergedLabels { .. });
    notes.iter().filter(changed).map(Note::to_string).collect()
}

/// Refuses labels that nothing can be estimated from, before any folder is made.
fn check_labels(labels: &Labels, plan: &FitPlan) -> Result<(), RunError> {
    if labels.n_unlabelled() > 0 {
        Labels::new(labels.as_slice().to_vec(), labels.names().to_vec())?;
        FoldPlan::for_labels(labels, plan.folds, plan.seed())?;
    }
    Ok(())
}

/// What all stages share.
struct Run<'a> {
    examples: &'a Examples,
    encoding: &'a Encoding,
    labels: &'a Labels,
    /// Columns that labelling may depend on.
    covariates: &'a Covariates,
    /// Rows whose label was requested at random, which the labels do not have.
    audit: Option<&'a Audit>,
    /// What readers should know about the labels.
    notes: Vec<String>,
    /// Classes that were set aside for want of labels.
    rare: &'a [RareClass],
    plan: &'a FitPlan,
    folder: &'a RunFolder,
    device: Device,
    formulas: Formulas,
}

/// What comes of the analysis.
struct Analysed {
    findings: Findings,
    test: Option<TestDecision>,
    /// Other models that may count beside the network.
    others: Option<Candidates>,
    /// What cross-fitted networks say about missing labels, where training is guided by it.
    guess: Option<Guess>,
    /// What prediction sets are made from.
    sets: Option<SavedSets>,
    /// How good the cross-fitted classifier is.
    evaluation: Option<OutOfFold>,
    /// Cross-fitted networks, which are evaluated once phi is final.
    networks: Option<Networks>,
}

/// What networks that were cross-fitted say of the rows that they have not seen.
struct Networks {
    posteriors: Posteriors,
    folds: FoldPlan,
}

struct Models {
    debiased: Debiased,
    baseline: Option<Trained<Network>>,
    sets: Option<SavedSets>,
    evaluation: Option<OutOfFold>,
}

struct Debiased {
    trained: Trained<Network>,
    /// The phi that the model carries.
    phi: Phi,
    /// Other models that count beside the network.
    beside: Option<Beside>,
    /// Networks of the folds that count beside it, and what they say of all rows.
    guides: Option<(Guides, Posteriors)>,
    /// log p(y|x) of the held-out rows, up to a constant per row.
    held_out: Array2<f64>,
}

/// What a network learns from the unlabelled rows.
#[derive(Clone, Copy)]
enum LearnsFrom<'a> {
    /// The guess of cross-fitted networks, one line per row.
    Guess(&'a [f32]),
    /// Its own predictions.
    Itself(ConsistencyName),
}

/// Whether the guess of cross-fitted networks is worth following: not where labels are too few to say which classes they confuse. With
/// 2 to 100 labels per class of CIFAR-10 (seed 100), a network that was guided all the same had 18% right, and one that was not 29%.
fn guidable(findings: &Findings) -> bool {
    let doubt = findings.identifiability.as_ref().and_then(|found| found.doubt);
    doubt.is_none_or(|doubt| doubt < 1.0)
}

impl Run<'_> {
    /// Cross-fits a classifier, estimates the mechanism with it, and tests whether the labels are informative.
    fn analyse(&self, progress: &dyn Progress) -> Result<Analysed, RunError> {
        let (labels, seed) = (self.labels, self.plan.seed());
        if labels.n_unlabelled() == 0 {
            let findings = Findings::nothing_missing(labels, seed);
            return Ok(Analysed {
                findings,
                test: None,
                others: None,
                guess: None,
                sets: None,
                evaluation: None,
                networks: None,
            });
        }
        let folds = match self.examples {
            Examples::Table(x) => FoldPlan::for_rows(x.view(), labels, self.plan.folds, seed)?,
            Examples::Images { .. } => FoldPlan::for_labels(labels, self.plan.folds, seed)?,
        };
        let covariates = self.covariates;
        let names = match self.encoding {
            Encoding::Table(encoder) => encoder.feature_names(),
            Encoding::Images { .. } => Vec::new(),
        };
        let (x, regression, models);
        let (mut others, mut guess, mut networks) = (None, None, None);
        let table = match (self.plan.cross_fit_with.of_table(), self.encoding, self.examples) {
            (Some(which), Encoding::Table(encoder), Examples::Table(x)) => Some((which, encoder, x)),
            _ => None,
        };
        let mut table_models = None;
        let evidence = match (self.plan.cross_fit_with, table) {
            (_, Some((which, encoder, x))) => {
                let (softmax, table) = (SoftmaxRegression::default(), EncodedTable { encoder, x: x.view() });
                models = TableModels::new(which, softmax, table, labels, &folds, seed, progress)?;
                models.note().into_iter().for_each(|note| progress.warn(note));
                let (evidence, candidates) = models.cross_fit(labels, &folds, seed, progress)?;
                (others, table_models) = (candidates, Some(&models));
                evidence.with_covariates(covariates)?
            }
            (CrossFitWith::Network, None) => {
                let checkpoint = |seed: u64| self.folder.checkpoint(&format!("{}-{seed}", Stage::CrossFit.name()));
                let classifier = NetworkClassifier {
                    architecture: &self.plan.architecture,
                    settings: &self.plan.fold_train,
                    device: &self.device,
                    checkpoint: Some(&checkpoint),
                };
                let cross_fit = CrossFit { classifier: &classifier, x: self.examples, seed: self.plan.fold_train.seed };
                let fitted = cross_fit.run(labels, &folds, None, progress)?;
                if self.plan.consistency == ConsistencyName::Guided {
                    guess = Some(Guess::new(&fitted, self.examples, labels)?);
                }
                let posteriors = self.given_columns(fitted.posteriors, &folds)?;
                self.of_networks(networks.insert(Networks { posteriors, folds }))?
            }
            (_, None) => {
                (x, regression) = (self.with_columns(self.examples.features())?, SoftmaxRegression::default());
                let features = Features { x: &x, names: &names, classifier: &regression };
                Evidence::cross_fit(features, labels, folds.clone(), seed, progress)?.with_covariates(covariates)?
            }
        };
        let evidence = evidence.with_audit(self.audit).with_notes(self.notes.clone()).with_set_aside(self.rare);
        progress.begin(Stage::Estimate, 0, 0);
        let test = self.plan.test().decide(&evidence, progress)?;
        let refits = KeptRefits::open(self.folder, &evidence, seed, progress)?;
        let findings = self.plan.estimate().run(&evidence, &refits).inspect_err(|_| refits.flush())?;
        let sets = match table_models {
            Some(models) => Some(SavedSets::new(models, &evidence, &findings, seed, progress)?),
            None => None,
        };
        let evaluation = match evidence.features {
            Some(features) => {
                let (settings, classifier) = (self.plan.estimate(), features.classifier.name());
                out_of_fold(&evidence, &findings, settings, self.plan.replicates, classifier, progress)?
            }
            None => None,
        };
        Ok(Analysed { findings, test: Some(test), others, guess, sets, evaluation, networks })
    }

    fn of_networks<'a>(&'a self, networks: &'a Networks) -> Result<Evidence<'a>, RunError> {
        let evidence = Evidence::predictions(&networks.posteriors, self.labels).cross_fitted(&networks.folds);
        Ok(evidence.with_covariates(self.covariates)?)
    }

    /// How good the cross-fitted networks are. They are not refitted, but the rows that they are evaluated on are resampled all the
    /// same.
    fn evaluate_networks(
        &self,
        networks: &Networks,
        findings: &Findings,
        progress: &dyn Progress,
    ) -> Result<Option<OutOfFold>, RunError> {
        let evidence = self.of_networks(networks)?.with_audit(self.audit);
        let name = self.plan.architecture.name();
        Ok(out_of_fold(&evidence, findings, self.plan.estimate(), None, name, progress)?)
    }

    /// The columns that were asked for beside images. The columns of a table are among its features already.
    fn beside(&self) -> Option<&Covariates> {
        let asked = matches!(self.plan.given, Given::Columns(_)) && matches!(self.encoding, Encoding::Images { .. });
        asked.then_some(self.covariates)
    }

    /// Features, with the columns beside images.
    fn with_columns(&self, x: Array2<f64>) -> Result<Array2<f64>, RunError> {
        match self.beside() {
            Some(beside) => Ok(image_columns::appended(x, beside)?),
            None => Ok(x),
        }
    }

    /// Posteriors of images, made posteriors given the columns beside them.
    fn given_columns(&self, posteriors: Posteriors, folds: &FoldPlan) -> Result<Posteriors, RunError> {
        match self.beside() {
            Some(beside) => {
                Ok(image_columns::given_columns(&posteriors, beside, self.labels, folds, self.plan.seed())?)
            }
            None => Ok(posteriors),
        }
    }

    /// What a network that is not guided learns from the unlabelled rows. Where labels are too few for a guess, views of the same
    /// image have more to say than the network itself.
    fn alone(&self, findings: &Findings) -> LearnsFrom<'static> {
        LearnsFrom::Itself(match self.plan.consistency {
            ConsistencyName::Guided if guidable(findings) => ConsistencyName::PseudoLabels,
            ConsistencyName::Guided => ConsistencyName::Fixmatch,
            asked => asked,
        })
    }

    /// Trains a network from the start, or from its checkpoint; with the phi of every row where it is given.
    fn train(
        &self,
        stage: Stage,
        method: Method,
        row_phi: Option<&[Phi]>,
        from: LearnsFrom<'_>,
        progress: &dyn Progress,
    ) -> Result<Trained<Network>, RunError> {
        let mut settings = self.plan.train.clone();
        let (consistency, targets) = match from {
            LearnsFrom::Guess(targets) => (ConsistencyName::Guided, Some(targets)),
            LearnsFrom::Itself(consistency) => (consistency, None),
        };
        if let (Some(targets), None) = (targets, self.plan.options.threshold) {
            settings.threshold.tau = Guess::threshold(targets, self.labels);
        }
        let settings = &settings;
        let shape = self.examples.shape();
        let network = self.plan.architecture.build(shape, self.labels.n_classes(), settings.seed, &self.device)?;
        let consistency = consistency.build();
        let job = Job {
            stage,
            examples: self.examples,
            labels: self.labels,
            method,
            row_phi,
            consistency: consistency.as_ref(),
            settings,
            weights: None,
            targets,
            validation: None,
            checkpoint: Some(self.folder.checkpoint(stage.name())),
        };
        Ok(train(network, &job, progress)?)
    }

    /// Trains the debiased model with the estimated mechanism, or with what the method puts in its place. Guided networks learn from
    /// all labels and refine the phi of the findings.
    fn debiased(
        &self,
        findings: &mut Findings,
        others: Option<Candidates>,
        guess: Option<Guess>,
        progress: &dyn Progress,
    ) -> Result<Debiased, RunError> {
        let name = self.plan.method;
        let cross_fitted = findings.phi.clone();
        let row_phi = findings.row_phi.clone();
        let row_phi = row_phi.as_deref().filter(|_| name.takes_cross_fitted());
        let first = match name.needs_likelihood_first() {
            true => Some(self.train(Stage::Likelihood, Method::Likelihood, None, self.alone(findings), progress)?),
            false => None,
        };
        let known = Known {
            estimate: first.as_ref().map_or(&cross_fitted, |first| first.mechanism.phi()),
            phi: self.plan.phi.as_ref(),
            shares: self.plan.shares.as_ref(),
            labels: self.labels,
        };
        let method = Method::new(name, &known)?;
        let targets = guess.as_ref().map(|guess| guess.targets(findings, &method)).transpose()?;
        let adjusts = method.adjusts_logits();
        if targets.is_some() && !guidable(findings) {
            findings.warnings.push(
                "labels are too few to say which classes the networks of the folds confuse, so that training was not guided by them"
                    .to_owned(),
            );
        }
        let from = match &targets {
            Some(targets) if guidable(findings) => LearnsFrom::Guess(targets),
            _ => self.alone(findings),
        };
        let mut trained = self.train(Stage::Debiased, method, row_phi, from, progress)?;
        if targets.is_some() && name.takes_cross_fitted() && findings.can_be_refined() {
            match likely_phi(&trained.network, self.examples, self.labels) {
                Ok(estimate) => findings.refine(&estimate),
                Err(error) => findings.warnings.push(format!("the trained network led to no phi of its own: {error}")),
            }
        }
        let phi = match &findings.refinement {
            Some(refinement) if refinement.agrees => findings.phi.clone(),
            _ => name.reported_phi(&cross_fitted, trained.mechanism.phi()).clone(),
        };
        if let (Some(targets), true, true) = (&targets, adjusts, trained.held_out.is_empty()) {
            // The targets follow from the phi that training started from, and so does what is compared with them.
            let phi = Propensity::new(&cross_fitted, row_phi);
            trained.temperature = Guess::temperature(&trained.network, self.examples, self.labels, targets, &phi);
        }
        let mut held_out = self.scores(&trained);
        let mut beside = None;
        // The others count as far as they help on rows that neither they nor the network have seen.
        if let (Some(others), Some(table)) = (others, Table::new(self.encoding, self.examples))
            && self.plan.classifier != FinalClassifier::Network
        {
            let (rows, propensity) = (&trained.held_out, Propensity::new(&phi, row_phi));
            let (shares, weight) = match self.plan.classifier {
                FinalClassifier::Network | FinalClassifier::Trees => (others.trees_alone(), 1.0),
                FinalClassifier::Auto => {
                    let shares = others.shares(self.labels, &propensity);
                    let weight = others.weight(&shares, self.labels, &propensity, rows, &held_out);
                    (shares, weight)
                }
            };
            held_out = others.mixed(&shares, &propensity, rows, &held_out, weight);
            beside = Some(others.train(&table, self.labels, &shares, weight, self.plan.seed(), progress)?);
        }
        // The networks of the folds have seen the rows that were held out, and know nothing of columns beside the images.
        let alone = self.plan.classifier == FinalClassifier::Network || self.beside().is_some() || !guidable(findings);
        let guides = guess.filter(|_| !alone && trained.held_out.is_empty()).map(|guess| guess.guides(findings));
        Ok(Debiased { trained, phi, beside, guides, held_out })
    }

    /// log p(y|x) of the rows that a network was not trained on, up to a constant per row.
    fn scores(&self, trained: &Trained<Network>) -> Array2<f64> {
        logits(&trained.network, self.examples, &trained.held_out) / trained.temperature
    }

    /// Writes models, predictions and the report.
    fn write(
        &self,
        mut findings: Findings,
        test: Option<TestDecision>,
        models: &Models,
        row_names: Option<RowNames>,
        origin: &Origin,
        start: Instant,
    ) -> Result<Report, RunError> {
        let Models { debiased: Debiased { trained, phi, beside, guides, held_out }, baseline, sets, evaluation } =
            models;
        let (labels, folder) = (self.labels, self.folder);
        // The mechanism that the model carries: that of every row, unless the method has a phi of its own.
        let by_columns = self.by_columns(&findings)?;
        let row_phi = findings.row_phi.as_deref().filter(|_| by_columns.is_some());
        let describe = |temperature: f64| ModelDescription {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            architecture: self.plan.architecture.clone(),
            input: self.examples.shape(),
            classes: labels.names().to_vec(),
            phi: phi.clone(),
            by_columns: by_columns.clone(),
            temperature,
            encoding: self.encoding.clone(),
        };
        let model = folder.model(MODEL)?;
        save_model(&model, &trained.network, &describe(trained.temperature))?;
        if let Some(beside) = beside {
            beside.save(&model)?;
        }
        if let Some((guides, _)) = guides {
            guides.save(&model)?;
        }
        if let Some(sets) = sets {
            sets.save(&model)?;
        }
        if let Some(baseline) = baseline {
            save_model(&folder.model(BASELINE)?, &baseline.network, &describe(baseline.temperature))?;
        }
        let mut population = score(&trained.network, self.examples, trained.temperature, PosteriorKind::Population)?;
        if let (Some(beside), Some(table)) = (beside, Table::new(self.encoding, self.examples)) {
            population = beside.population(&population, &table, &Propensity::new(phi, row_phi))?;
        }
        if let Some((guides, together)) = guides {
            population = guides.population(&population, together, &Propensity::new(phi, row_phi))?;
        }
        let name = |row: usize| row_names.as_ref().and_then(|names| names.names.get(row)).cloned();
        let png = |row: usize| match self.examples {
            Examples::Images { images, .. } => images.png(row),
            Examples::Table(_) => None,
        };
        let uncertain = uncertain_rows(&population, labels, &Propensity::new(phi, row_phi), name, png);
        // Cross-fitted predictions are not as sure of the labelled rows as the model that has seen them.
        let more = more_labels(findings.calibrated.as_deref().unwrap_or(&population), &findings);
        let predictions =
            Predictions::new(population, Propensity::new(phi, row_phi), labels.names(), row_names.clone())?;
        predictions.with_labels(labels.clone()).write_with(&folder.predictions()?, self.formulas)?;

        let cross_fitted = Propensity::new(&findings.phi, findings.row_phi.as_deref());
        let training = Training::new(phi.clone(), self.model(trained, held_out, &cross_fitted))
            .with_baseline(
                baseline.as_ref().map(|baseline| self.model(baseline, &self.scores(baseline), &cross_fitted)),
            )
            .with_beside(
                beside.iter().flat_map(Beside::weights).chain(guides.iter().map(|(guides, _)| guides.weight())),
            );
        // The cross-fitted networks were judged by labels that they had not seen, and the model rests on them.
        if self.plan.consistency != ConsistencyName::Guided {
            findings.warnings.extend(held_out_warning(trained.held_out.len()));
        }
        findings.warnings.extend(self.columns_warning(&findings));
        findings.warnings.extend(self.plan.contradiction(&findings.about));
        let provenance = origin.provenance(&self.plan.options, device::name(&self.device), start)?;
        // A single classifier without the network is the one that was cross-fitted, if that is what the analysis chose.
        let evaluation = evaluation.clone().map(|found| {
            let is_final_model = training.is_alone(&found.classifier);
            found.with_final_model(is_final_model)
        });
        let report = Report::new(provenance, findings)
            .with_test(test)
            .with_evaluation(evaluation)
            .with_training(training)
            .with_uncertain(uncertain)
            .with_more_labels(more);
        let report = origin.with_commands(report);
        folder.finish(&report)?;
        Ok(report)
    }

    /// The mechanism by class and columns, if there is one and the model carries it.
    fn by_columns(&self, findings: &Findings) -> Result<Option<LabellingByColumns>, RunError> {
        let (Some(mechanism), Some(labelling)) = (&findings.mechanism, &findings.labelling) else { return Ok(None) };
        if !self.plan.method.carries_cross_fitted() {
            return Ok(None);
        }
        let terms = TermEncoder::learn(&self.covariates.select(&labelling.given)?)
            .with_products(self.covariates.products(&labelling.given)?)?;
        Ok(Some(LabellingByColumns { mechanism: mechanism.clone(), terms }))
    }

    /// What training does not do with a mechanism that depends on columns.
    fn columns_warning(&self, findings: &Findings) -> Option<String> {
        let columns = findings.labelling.as_ref().map(|labelling| labelling.given.join(", "))?;
        findings.row_phi.as_ref()?;
        let method = self.plan.method;
        if !method.carries_cross_fitted() {
            return Some(format!(
                "labelling depends on {columns} besides the class, but the method chosen for training corrects for the class alone"
            ));
        }
        let refreshes = matches!(method, MethodName::LabelShift | MethodName::Adjusted);
        (self.plan.train.refresh.is_some() && refreshes).then(|| {
            format!("phi was not refreshed during training, because it depends on {columns} besides the class")
        })
    }

    fn model(&self, trained: &Trained<Network>, scores: &Array2<f64>, phi: &Propensity<'_>) -> Model {
        let ended = match trained.ended {
            mnar_train::Ended::Finished => Ended::Finished,
            mnar_train::Ended::EarlyStop => Ended::EarlyStop,
        };
        let model = Model::new(ended, self.labels.n_classes())
            .with_history(trained.history.clone(), trained.chosen_epoch)
            .with_temperature(trained.temperature)
            .with_clipped_steps(trained.mechanism.clipped());
        match self.held_out(&trained.held_out, scores, phi) {
            Some((held_out, per_class)) => model.with_held_out(held_out, per_class),
            None => model,
        }
    }

    /// Scores of the held-out labelled rows, weighted by 1/phi to stand for the population, and accuracy class by class.
    fn held_out(
        &self,
        rows: &[usize],
        scores: &Array2<f64>,
        phi: &Propensity<'_>,
    ) -> Option<(HeldOut, Vec<Option<f64>>)> {
        let classes = self.labels.n_classes();
        if rows.is_empty() {
            return None;
        }
        let class = |row: usize| self.labels.get(row).map_or(0, |class| class.index());
        let weights: Vec<(usize, f64)> = rows.iter().map(|&row| (class(row), 1.0 / phi.of(row)[class(row)])).collect();
        let (log_loss, accuracy) = weighted_scores(scores, &weights, 1.0);
        let accuracy_of = |k: usize| {
            let alone: Vec<(usize, f64)> = weights.iter().map(|&(y, _)| (y, f64::from(u8::from(y == k)))).collect();
            alone.iter().any(|(_, weight)| *weight > 0.0).then(|| weighted_scores(scores, &alone, 1.0).1)
        };
        let (sum, squares) =
            weights.iter().fold((0.0, 0.0), |(sum, squares), (_, weight)| (sum + weight, squares + weight * weight));
        // Kish's effective number of rows: weights that differ are worth fewer rows.
        let interval = wilson(accuracy, sum * sum / squares, CONFIDENCE);
        Some((HeldOut::new(rows.len(), accuracy, interval, log_loss), (0..classes).map(accuracy_of).collect()))
    }
}

fn held_out_warning(rows: usize) -> Option<String> {
    match rows {
        0 => Some("no labels were held out: the last epoch was taken unchecked".to_owned()),
        rows if rows < FEW_HELD_OUT => Some(format!(
            "only {rows} labelled rows were held out: their accuracy is a rough guess, and the models may well rank the other way round on new rows"
        )),
        _ => None,
    }
}
