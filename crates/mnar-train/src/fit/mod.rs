//! From a partly labelled data set to a run folder: cross-fit, calibrate, estimate, test, train debiased, train the
//! biased baseline for comparison, write.

mod estimate;
mod report;
mod settings;

use crate::checkpoint_folder::Checkpoints;
use crate::crossfit::score;
use crate::error::TrainError;
use crate::examples::{Encoding, Examples};
use crate::mechanism::Method;
use crate::model::Network;
use crate::saved::{ModelDescription, save_model, write_text};
use crate::settings::TrainSettings;
use crate::trainer::{Ended, Job, Observer, Trained, train};
use burn::tensor::Device;
pub use estimate::Estimation;
use mnar::{Labels, PosteriorKind, Posteriors};
use mnar_data::{Column, Dataset, RowNames, write_table};
use mnar_report::Report;
pub use settings::{ConsistencyName, CrossFitWith, FitSettings, MethodName};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Hears what `fit` is doing.
pub trait Reporter {
    /// A stage begins.
    fn stage(&mut self, name: &str);
    /// Training of this stage is observed by this; `None` for none.
    fn observer(&mut self, stage: &str) -> Result<Box<dyn Observer + '_>, TrainError>;
    /// So many of so many replicates of a bootstrap are done.
    fn replicate(&self, _of: usize) {}
}

/// Where a run comes from, for its report.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// What the data are called.
    pub title: String,
    /// The command that makes the run again.
    pub command: Option<String>,
}

/// Where a run computes and keeps what it finds.
pub struct Place<'a> {
    /// The run's folder.
    pub folder: &'a Path,
    /// What computes.
    pub device: &'a Device,
    /// Set from outside to stop.
    pub stop: Option<&'a AtomicBool>,
    /// For the report.
    pub origin: Origin,
}

/// Runs the whole of it on rows encoded so ([`Encoding::learn`]). `None` if it was stopped from outside: everything done
/// so far is kept in the folder, and the same call goes on from there.
pub fn fit(
    dataset: Dataset,
    encoding: &Encoding,
    settings: &FitSettings,
    place: &Place<'_>,
    reporter: &mut (dyn Reporter + Sync),
) -> Result<Option<Report>, TrainError> {
    let start = Instant::now();
    let Place { folder, device, stop, .. } = *place;
    let Dataset { inputs, labels, row_names, .. } = dataset;
    settings.train.check()?;
    let examples = encoding.examples(inputs)?;
    let checkpoints = Checkpoints::new(folder)?;
    let context = Context { examples: &examples, labels: &labels, settings, checkpoints: &checkpoints, device, stop };

    let Some(estimation) = estimate::run(&context, reporter)? else { return Ok(None) };
    let Some((debiased, method)) = debiased(&context, &estimation, reporter)? else { return Ok(None) };
    let baseline = match settings.baseline {
        false => None,
        true => match context.train("baseline", Method::Classical, reporter)? {
            None => return Ok(None),
            trained => trained,
        },
    };

    reporter.stage("write");
    let phi = match &method {
        // Without an estimate in the loop the cross-fitted one is the best there is.
        Method::CompleteCase | Method::Classical | Method::Constant | Method::Likelihood => estimation.phi().to_vec(),
        _ => debiased.mechanism.phi().to_vec(),
    };
    let describe = |temperature: f64| ModelDescription {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        architecture: settings.architecture.clone(),
        input: examples.shape(),
        classes: labels.names().to_vec(),
        phi: phi.clone(),
        temperature,
        encoding: encoding.clone(),
    };
    save_model(&folder.join("model"), &debiased.network, &describe(debiased.temperature))?;
    if let Some(baseline) = &baseline {
        save_model(&folder.join("baseline"), &baseline.network, &describe(baseline.temperature))?;
    }
    let population = score(&debiased.network, &examples, debiased.temperature, PosteriorKind::Population)?;
    let given_labels = Some(labels.as_slice().iter().map(|y| y.map(|class| labels.name(class))).collect());
    write_predictions(
        &folder.join("predictions.csv"),
        &population,
        &phi,
        labels.names(),
        row_names.as_ref(),
        given_labels,
    )?;
    let models = report::Models {
        debiased: &debiased,
        baseline: baseline.as_ref(),
        training_phi: &phi,
        population: &population,
        row_names: row_names.as_ref(),
    };
    let report = report::report(&context, &place.origin, &estimation, &models, start.elapsed().as_secs_f64())?;
    write_text(&folder.join("report.html"), &report.to_html()?)?;
    // Last: a folder with a report.json is a finished run.
    write_text(&folder.join("report.json"), &report.to_json()?)?;
    checkpoints.remove()?;
    Ok(Some(report))
}

pub(crate) struct Context<'a> {
    pub(crate) examples: &'a Examples,
    pub(crate) labels: &'a Labels,
    pub(crate) settings: &'a FitSettings,
    pub(crate) checkpoints: &'a Checkpoints,
    pub(crate) device: &'a Device,
    pub(crate) stop: Option<&'a AtomicBool>,
}

impl Context<'_> {
    /// Trains a network from the start, or from its checkpoint; `None` if stopped.
    fn train(
        &self,
        stage: &str,
        method: Method,
        reporter: &mut dyn Reporter,
    ) -> Result<Option<Trained<Network>>, TrainError> {
        reporter.stage(stage);
        let settings: &TrainSettings = &self.settings.train;
        let shape = self.examples.shape();
        let network = self.settings.architecture.build(shape, self.labels.n_classes(), settings.seed, self.device)?;
        let consistency = self.settings.consistency.build();
        let job = Job {
            examples: self.examples,
            labels: self.labels,
            method,
            consistency: consistency.as_ref(),
            settings,
            targets: None,
            validation: None,
            checkpoint: Some(self.checkpoints.plan(stage)),
            stop: self.stop,
        };
        let mut observer = reporter.observer(stage)?;
        let trained = train(network, &job, observer.as_mut())?;
        Ok((trained.ended != Ended::Interrupted).then_some(trained))
    }
}

fn debiased(
    context: &Context<'_>,
    estimation: &Estimation,
    reporter: &mut dyn Reporter,
) -> Result<Option<(Trained<Network>, Method)>, TrainError> {
    let counts = context.labels.counts();
    let from_shares = |shares: &[f64]| {
        let n = context.labels.len() as f64;
        counts.iter().zip(shares).map(|(&count, share)| (count as f64 / n / share).min(1.0)).collect::<Vec<f64>>()
    };
    let method = match &context.settings.method {
        MethodName::LabelShift => Method::Given(estimation.phi().to_vec()),
        MethodName::Adjusted => Method::Adjusted(estimation.phi().to_vec()),
        MethodName::Ipw => Method::Weighted(estimation.phi().to_vec()),
        MethodName::Me => Method::Moments,
        MethodName::Meg => Method::MomentsGradient,
        MethodName::Cadr => Method::ClassShares { shares: context.settings.shares.clone() },
        MethodName::DePl => Method::Constant,
        MethodName::Pl => Method::Classical,
        MethodName::CompleteCase => Method::CompleteCase,
        MethodName::Oracle => Method::Given(context.settings.phi.clone().unwrap_or_default()),
        MethodName::KnownShares => Method::Given(from_shares(context.settings.shares.as_deref().unwrap_or_default())),
        MethodName::Mle => {
            let Some(first) = context.train("likelihood", Method::Likelihood, reporter)? else { return Ok(None) };
            Method::Given(first.mechanism.phi().to_vec())
        }
    };
    Ok(context.train("debiased", method.clone(), reporter)?.map(|trained| (trained, method)))
}

/// A name of the rows that is also that of a column of predictions would stand there twice; better said before training.
pub fn check_row_names(row_names: Option<&RowNames>, classes: &[String]) -> Result<(), TrainError> {
    let Some(RowNames { column, .. }) = row_names else { return Ok(()) };
    let of_class =
        |prefix: &str| column.strip_prefix(prefix).is_some_and(|rest| classes.iter().any(|class| class == rest));
    if ["label", "predicted", "confidence"].contains(&column.as_str()) || of_class("p_") || of_class("u_") {
        return Err(TrainError::Setting {
            name: "the column that names the rows",
            value: column.clone(),
            range: "called otherwise: predictions have a column of that name",
        });
    }
    Ok(())
}

/// Writes p(y|x), p(y|x, unlabelled), the most likely class and its probability, one row a row.
pub fn write_predictions(
    path: &Path,
    population: &Posteriors,
    phi: &[f64],
    classes: &[String],
    row_names: Option<&RowNames>,
    labels: Option<Vec<Option<&str>>>,
) -> Result<(), TrainError> {
    check_row_names(row_names, classes)?;
    let n = population.len();
    let mut given_unlabelled = vec![vec![f64::NAN; n]; classes.len()];
    let (mut top, mut confidence) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for i in 0..n {
        let p = population.row(i);
        // Where no such row is ever unlabelled, nothing can be said.
        for (k, p) in population.given_unlabelled(i, phi).into_iter().flatten().enumerate() {
            given_unlabelled[k][i] = p;
        }
        let best = (0..classes.len()).max_by(|&a, &b| p[a].total_cmp(&p[b])).unwrap_or(0);
        top.push(Some(classes[best].as_str()));
        confidence.push(p[best]);
    }
    let population_names: Vec<String> = classes.iter().map(|class| format!("p_{class}")).collect();
    let unlabelled_names: Vec<String> = classes.iter().map(|class| format!("u_{class}")).collect();
    let mut columns: Vec<(&str, Column<'_>)> = Vec::new();
    if let Some(RowNames { column, names }) = row_names {
        columns.push((column, Column::Texts(names.iter().map(|name| Some(name.as_str())).collect())));
    }
    if let Some(labels) = &labels {
        columns.push(("label", Column::Texts(labels.clone())));
    }
    columns.push(("predicted", Column::Texts(top)));
    columns.push(("confidence", Column::Numbers(&confidence)));
    for (k, name) in population_names.iter().enumerate() {
        columns.push((name, Column::Numbers(population.column(k))));
    }
    for (k, name) in unlabelled_names.iter().enumerate() {
        columns.push((name, Column::Numbers(&given_unlabelled[k])));
    }
    Ok(write_table(path, &columns)?)
}
