//! `mnar estimate` and `mnar test`, on a table of predictions or features.

use super::{Format, MemoryArgs, source};
use anyhow::Result;
use clap::Args;
use mnar::analysis::{Calibrate, EstimateSettings, Given, IntervalMethod, Method, TestMethod, TestSettings};
use mnar::classify::SoftmaxRegression;
use mnar::estimate::Shares;
use mnar::{ClassShares, Phi, PosteriorKind};
use mnar_data::{PredictionColumns, Source, TextTable};
use mnar_run::{Budget, PerClass, TableClassifier};
use std::path::PathBuf;

/// How the table is laid out.
#[derive(Args)]
pub(crate) struct TableArgs {
    /// CSV, Parquet, JSON lines, Arrow or a spreadsheet: the label column and the probabilities of the classes (or features,
    /// with --features); `-` is standard input
    #[arg(value_name = "PRED")]
    pub(crate) table: PathBuf,

    /// The label column; a blank or null label is missing
    #[arg(long, value_name = "COLUMN")]
    pub(crate) label: String,

    /// Prefix of the probability columns; the rest of each name is the class. Or the name of a single column: a list of all
    /// probabilities in every row (see --classes), or the probability of one of two classes (see --positive)
    #[arg(long, value_name = "PREFIX|COLUMN", default_value = "p_")]
    pub(crate) proba: String,

    /// The columns hold logits: log-probabilities up to a constant per row; log-odds in a single column
    #[arg(long)]
    pub(crate) logits: bool,

    /// The classes, comma-separated, in the order of a list of probabilities, and of labels that are numbers from 0
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) classes: Vec<String>,

    /// The class whose probability a single column holds
    #[arg(long, value_name = "CLASS")]
    pub(crate) positive: Option<String>,

    /// What the probabilities stand for: `labelled` is what a classifier learns from the labelled rows alone, `population`
    /// what it learns with 1/phi weights or from fully labelled data
    #[arg(long, value_enum, default_value_t = PosteriorKind::Labelled)]
    pub(crate) posterior: PosteriorKind,

    /// The column with the fold in which each row was held out, if the predictions are cross-fitted
    #[arg(long, value_name = "COLUMN")]
    pub(crate) fold: Option<String>,

    /// The table holds features, not probabilities: cross-fit a classifier on these columns
    /// (comma-separated, or `all` for every column but the label); numbers and names, values may be missing
    #[arg(long, value_name = "COLUMNS", conflicts_with_all = ["proba", "posterior", "logits", "classes", "positive"])]
    pub(crate) features: Option<String>,

    /// Columns that labelling may depend on besides the class, comma-separated, such as hospital,year; "hospital*age" is both
    /// columns and their product. `auto` includes those that the data show to matter (with --features), `none` uses the class
    /// alone. For a table of predictions, the classifier must have seen these columns
    #[arg(long, value_name = "COLUMNS", default_value = "auto")]
    pub(crate) given: Given,

    /// A column that marks rows whose label was requested at random (1 or yes): the class shares are then based on these
    /// rows, whatever decided the other labels, and the mechanism is checked against them
    #[arg(long, value_name = "COLUMN")]
    pub(crate) audit: Option<String>,

    /// The column that names the rows: kept in --weights, and not a feature
    #[arg(long, value_name = "COLUMN")]
    pub(crate) id: Option<String>,

    /// A column that is not a feature, with `--features all`; may be repeated
    #[arg(long, value_name = "COLUMN", requires = "features")]
    pub(crate) ignore: Vec<String>,

    /// A feature that holds names although it looks like numbers; may be repeated
    #[arg(long, value_name = "COLUMN", requires = "features")]
    pub(crate) categorical: Vec<String>,

    /// Another value that means missing, such as NA; may be repeated
    #[arg(long, value_name = "VALUE")]
    pub(crate) missing: Vec<String>,

    /// Treat labels such as NA, ? or -1 as classes, not as missing
    #[arg(long)]
    pub(crate) labels_as_they_are: bool,

    /// Make one class of labels that differ only by case or blanks, such as `Sick` and `sick`
    #[arg(long)]
    pub(crate) merge_labels: bool,

    /// The sheet of a spreadsheet [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) sheet: Option<String>,

    /// Skip N lines of a text file, or rows of a sheet, above the header
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip_rows: usize,

    /// The classifier that is cross-fitted on features; auto takes the one that better predicts labels it has not seen
    #[arg(long, value_enum, default_value_t = TableClassifier::Auto)]
    pub(crate) classifier: TableClassifier,

    /// Folds of the cross-fitting, with --features
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) folds: usize,

    /// Ridge penalty of the softmax regression on standardised features, with --features
    #[arg(long, value_name = "L2", default_value_t = 1.0, allow_negative_numbers = true)]
    pub(crate) l2: f64,

    #[command(flatten)]
    pub(crate) memory: MemoryArgs,

    /// What the table is, if it can be read only once.
    #[arg(skip)]
    pub(crate) held: Option<TextTable>,

    /// Seed of all random draws
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Show no progress on stderr
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:
  mnar estimate predictions.csv --label diagnosis
  mnar estimate predictions.parquet --label y --fold fold --format json
  mnar estimate clinic.csv --label diagnosis --features all
  mnar estimate clinic.csv --label diagnosis --features age,bmi,glucose --given hospital
  mnar estimate predictions.csv --label y --method moments --shares sick=0.1,healthy=0.9
  mnar estimate predictions.csv --label y --weights weights.csv --id patient
  mnar estimate clinic.csv --label y --features all --weights weights.csv --replicate-weights 200
  mnar estimate clinic.csv --label y --features all --imputed labels.csv --imputations 20
  mnar estimate network.parquet --label y --proba logits --logits --classes cat,dog,emu
  mnar estimate scores.csv --label sick --proba score --positive yes")]
pub(crate) struct EstimateArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,

    /// The estimator; auto takes label-shift for labelled posteriors and likelihood for population posteriors
    #[arg(long, value_enum, default_value_t = Method::Auto)]
    pub(crate) method: Method,

    /// Known class shares of the whole population, for --method moments: `balanced` or a=0.2,b=0.8
    #[arg(long, value_name = "SHARES")]
    pub(crate) shares: Vec<String>,

    /// The known mechanism, for --method known: a=0.2,b=0.8
    #[arg(long, value_name = "PHI")]
    pub(crate) phi: Vec<String>,

    /// Calibrate labelled posteriors on the labelled rows; auto does so for the label-shift estimator
    #[arg(long, value_enum, default_value_t = Calibrate::Auto)]
    pub(crate) calibrate: Calibrate,

    /// Shrink the shares of the unlabelled rows towards those of the labelled rows with the weight of this many rows [default: 0;
    /// with --features 3 per class, more if labels are very few]
    #[arg(long, value_name = "ROWS", allow_negative_numbers = true)]
    pub(crate) prior_weight: Option<f64>,

    /// How intervals are made; auto takes the bootstrap where it is affordable
    #[arg(long, value_enum, default_value_t = IntervalMethod::Auto)]
    pub(crate) interval: IntervalMethod,

    /// Report class shares and phi for each group of this column too, such as each hospital
    #[arg(long, value_name = "COLUMN")]
    pub(crate) by: Option<String>,

    /// Bootstrap replicates [default: 200, or fewer where refitting takes long]
    #[arg(long, value_name = "N")]
    pub(crate) replicates: Option<usize>,

    /// Stop the bootstrap after this time, such as 30s or 5m, if it has 8 replicates by then
    #[arg(long, value_name = "TIME")]
    pub(crate) budget: Option<Budget>,

    /// Write per-row weights for another trainer: 1/phi of the label, and the factor of an unlabelled loss; `-` is standard
    /// output, and the estimate is then printed on stderr
    #[arg(long, value_name = "FILE")]
    pub(crate) weights: Option<PathBuf>,

    /// Write texts of --weights and --imputed that start with = + - or @ as they are; by default a quote before them keeps spreadsheets from
    /// running them as formulas (in CSV; Parquet has them as they are)
    #[arg(long)]
    pub(crate) keep_formulas: bool,

    /// Add this many replicate weights per row to the --weights file, for standard errors by survey software that include
    /// the error of the mechanism and, with --features, of the classifier
    #[arg(long, value_name = "N", requires = "weights", conflicts_with_all = ["stream", "audit"],
        value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) replicate_weights: Option<u32>,

    /// Write the labels with the missing ones drawn from their estimated distribution, in columns imputed_1, imputed_2, ...:
    /// analyse each column, and combine the results by Rubin's rules
    #[arg(long, value_name = "FILE", conflicts_with_all = ["stream", "audit"])]
    pub(crate) imputed: Option<PathBuf>,

    /// How many times missing labels are drawn [default: 20]
    #[arg(long, value_name = "M", requires = "imputed", value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(crate) imputations: Option<u32>,

    /// Write a report of the estimate, the test and the checks: one HTML page that opens offline
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Show how phi and the shares change if easy rows are labelled more readily, by these odds factors, such as 0.5,1,2
    #[arg(long, value_name = "FACTORS", allow_negative_numbers = true, value_delimiter = ',')]
    pub(crate) sensitivity: Vec<f64>,

    /// Show how many labels would give intervals of phi of this width
    #[arg(long, value_name = "WIDTH", allow_negative_numbers = true)]
    pub(crate) width: Option<f64>,

    /// Stream a Parquet file, or all files of a folder or pattern, in constant memory instead of loading them (automatic if the
    /// probabilities would take more than 4 GB, or a quarter of --memory)
    #[arg(long, conflicts_with_all = ["features", "sensitivity", "audit"])]
    pub(crate) stream: bool,
}

impl TableArgs {
    /// Where a table of predictions keeps what, and what it means.
    pub(crate) fn columns(&self) -> PredictionColumns {
        PredictionColumns {
            proba: self.proba.clone(),
            logits: self.logits,
            classes: self.classes.iter().map(|name| name.trim().to_owned()).collect(),
            positive: self.positive.clone(),
            fold: self.fold.clone(),
            id: self.id.clone(),
            kind: self.posterior,
            missing: self.missing.clone(),
            labels_as_they_are: self.labels_as_they_are,
            merge_labels: self.merge_labels,
            ..PredictionColumns::new(&self.label)
        }
    }

    /// Takes in a table that can be read only once: it is read several times, once for each role of its columns.
    pub(crate) fn hold(&mut self) -> Result<()> {
        self.held = TextTable::hold(&self.table, self.memory.most())?;
        Ok(())
    }

    /// The table.
    pub(crate) fn source(&self) -> Source<'_> {
        source(&self.table, self.held.as_ref(), self.memory.most())
            .with_sheet(self.sheet.as_deref())
            .with_skip_rows(self.skip_rows)
    }

    /// The softmax regression that is cross-fitted on features.
    pub(crate) fn softmax(&self) -> SoftmaxRegression {
        SoftmaxRegression { l2: self.l2, ..Default::default() }
    }
}

impl EstimateArgs {
    /// The settings of the estimate, for classes of these names.
    pub(crate) fn settings(&self, classes: &[String]) -> Result<EstimateSettings> {
        let shares = match self.shares.as_slice() {
            [] => None,
            [word] if word == "balanced" => Some(Shares::Balanced),
            words => {
                let shares = PerClass::Items(words.to_vec()).resolve("shares", classes)?;
                Some(Shares::Known(ClassShares::new(shares)?))
            }
        };
        let phi = match self.phi.as_slice() {
            [] => None,
            words => Some(Phi::new(PerClass::Items(words.to_vec()).resolve("phi", classes)?)?),
        };
        Ok(EstimateSettings {
            method: self.method,
            shares,
            phi,
            calibrate: self.calibrate,
            bias_precision: None,
            prior_weight: self.prior_weight,
            interval: self.interval,
            replicates: self.replicates,
            budget: self.budget.map(Budget::seconds),
            sensitivity: self.sensitivity.clone(),
            width: self.width,
            given: self.table.given.clone(),
            by: self.by.clone(),
            permutations: EstimateSettings::default().permutations,
            describe_classifier: false,
            seed: self.table.seed,
        })
    }
}

impl TestArgs {
    /// The settings of the test.
    pub(crate) fn settings(&self) -> TestSettings {
        TestSettings {
            method: self.method,
            level: self.level,
            permutations: self.permutations,
            replicates: self.replicates,
            folds: self.table.folds,
            regression: self.table.softmax(),
            given: self.table.given.clone(),
            power: self.power,
            seed: self.table.seed,
        }
    }
}

#[derive(Args)]
#[command(after_help = "The classifier must not have seen the rows it scores: predictions for labelled rows must be \
out-of-fold (give --fold) or come from a classifier trained on other data.

Examples:
  mnar test predictions.csv --label diagnosis --fold fold
  mnar test clinic.csv --label diagnosis --features all
  mnar test predictions.csv --label y --fail-on-reject && train.sh")]
pub(crate) struct TestArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,

    /// The test; auto takes the permutation test, whose size holds whatever the classifier
    #[arg(long, value_enum, default_value_t = TestMethod::Auto)]
    pub(crate) method: TestMethod,

    /// Level below which the test rejects
    #[arg(long, value_name = "P", default_value_t = 0.05, allow_negative_numbers = true)]
    pub(crate) level: f64,

    /// Stream Parquet files in constant memory instead of loading them: the permutation test with its chi-square limit, without
    /// folds and without the verdict on columns
    #[arg(long, conflicts_with_all = ["features", "fold", "audit"])]
    pub(crate) stream: bool,

    /// Permutations of the permutation test
    #[arg(long, value_name = "N", default_value_t = 9999)]
    pub(crate) permutations: usize,

    /// Replicates of the bootstrap tests
    #[arg(long, value_name = "N", default_value_t = 199)]
    pub(crate) replicates: usize,

    /// Show how many labels would give the permutation test this power
    #[arg(long, value_name = "POWER", allow_negative_numbers = true)]
    pub(crate) power: Option<f64>,

    /// Exit with 1 if the test rejects
    #[arg(long)]
    pub(crate) fail_on_reject: bool,
}
