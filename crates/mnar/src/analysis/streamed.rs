//! Estimates from rows that stay where they are, with a mechanism that depends on their columns.

use super::effects::Effects;
use super::findings::{Parts, fits_matrices};
use super::intervals::Intervals;
use super::recipe::{Chosen, EstimateSettings, Recipe};
use super::{About, Findings, GroupSums};
use crate::calibrate::{Calibrated, CalibratedByColumns, ColumnCalibration};
use crate::covariates::{ColumnSummary, Grouping, TermEncoder};
use crate::diagnose::{Identifiability, identifiability};
use crate::error::Error;
use crate::estimate::SharePrior;
use crate::kept::Few;
use crate::mechanism::{ClassAndColumns, Mechanism, MechanismEstimate};
use crate::posteriors::PosteriorKind;
use crate::rows::{Block, Rows, Sums};
use crate::sums::Tally;
use crate::travel::{bytes, travels};

/// The columns that labelling depends on, of rows that are streamed.
#[derive(Clone, Copy, Debug)]
pub struct StreamedColumns<'a> {
    /// What a pass over each told.
    pub columns: &'a [ColumnSummary],
    /// Their terms.
    pub encoder: &'a TermEncoder,
}

impl EstimateSettings {
    /// Refuses settings that need the rows in memory, or keys of the rows.
    pub(super) fn check_streamed(&self, kind: PosteriorKind) -> Result<Recipe, Error> {
        use super::IntervalMethod::{Auto, Information};
        if !matches!(self.interval, Auto | Information | super::IntervalMethod::Profile) {
            return Err(Error::Settings(
                "the bootstrap of streamed rows needs a key of every row and a mechanism by class alone; ask for intervals from the observed information, or load the table",
            ));
        }
        self.recipe_of_stream(kind)
    }

    /// Refuses settings that need the rows in memory.
    pub(super) fn recipe_of_stream(&self, kind: PosteriorKind) -> Result<Recipe, Error> {
        let recipe = Recipe::new(self, kind)?;
        if self.interval == super::IntervalMethod::Profile {
            return Err(Error::Settings(
                "streamed rows have intervals from the observed information or a bootstrap; ask for those, or load the table",
            ));
        }
        if matches!(self.given, super::Given::Columns(_)) && self.interval == super::IntervalMethod::Bootstrap {
            return Err(Error::Settings(
                "the bootstrap of streamed rows needs a key of every row and a mechanism by class alone; ask for intervals from the observed information, or load the table",
            ));
        }
        if !self.sensitivity.is_empty() {
            return Err(Error::Settings("the sensitivity analysis needs the table in memory; load it"));
        }
        Ok(recipe)
    }

    /// [`run_streamed`](Self::run_streamed) with a mechanism that depends on columns. `given` are the same rows as `rows`, with
    /// the terms of the columns in [`Block::given`].
    pub fn run_streamed_given<R: Rows, G: Rows>(
        &self,
        rows: &R,
        given: &G,
        columns: StreamedColumns<'_>,
        about: About,
    ) -> Result<Findings, Error> {
        let recipe = self.check_streamed(rows.kind())?;
        if *recipe.chosen() != Chosen::LabelShift || recipe.prior != SharePrior::None {
            return Err(Error::Settings(
                "columns that labelling depends on go with the method label-shift, without a prior weight",
            ));
        }
        columns.columns.iter().try_for_each(ColumnSummary::check)?;
        let terms = columns.encoder.n_terms();
        let given = &Few::of(given, terms, &about)?;
        let bcts = match recipe.calibration() {
            Some(calibration) => {
                Tally::of(given)?;
                Some(calibration.fit(given)?)
            }
            None => None,
        };
        let (by_columns, (fitted, identifiability)) = match &bcts {
            Some(bcts) => {
                let given = Calibrated { rows: given, bcts };
                let calibration = ColumnCalibration::fit(&given, terms)?;
                let found = estimated(&CalibratedByColumns { rows: &given, calibration: &calibration }, terms)?;
                (Some(calibration), found)
            }
            None => (None, estimated(given, terms)?),
        };
        let zero =
            LabelledWeights { mechanism: fitted.mechanism.clone(), sum: 0.0, squares: 0.0, rows: vec![0; terms] };
        let weights = given.scan(&zero)?;
        let effects = Effects { encoder: columns.encoder, fitted: &fitted, replicates: &[], rows: &weights.rows };
        let rates = |name: &str| {
            let column = columns.columns.iter().find(|column| column.name() == name);
            column.map_or_else(Vec::new, ColumnSummary::rates)
        };
        let warning = "the table was streamed: the checks of held-out predictions, of self-masking, and of whether class and columns are enough were not run";
        let parts = Parts {
            about,
            intervals: Intervals::information(&fitted.estimate),
            bcts,
            by_columns,
            identifiability,
            renormalised: rows.renormalised(),
            warnings: vec![warning.to_owned()],
        };
        let effects = effects.all(rates);
        let effective_sample_size = weights.sum * weights.sum / weights.squares;
        let MechanismEstimate { mechanism, estimate, .. } = fitted.clone();
        let found = self.assemble(&recipe, estimate, parts)?;
        Ok(Findings { effects, mechanism: Some(mechanism), effective_sample_size, ..found })
    }
}

/// The groups of rows that are streamed.
#[derive(Clone, Copy, Debug)]
pub struct StreamedGroups<'a> {
    /// The groups.
    pub groups: &'a Grouping,
    /// The position of the number of a row's group in [`Block::given`].
    pub column: usize,
}

impl Findings {
    /// Adds class shares and phi per group, from one more pass over the same rows with the number of their group. They come
    /// without intervals, which need replicates.
    pub fn by_streamed_groups<R: Rows>(mut self, rows: &R, by: StreamedGroups<'_>) -> Result<Self, Error> {
        let odds = match &self.mechanism {
            Some(mechanism) => mechanism.classes.iter().map(|a| (-a).exp()).collect(),
            None => self.phi.iter().map(|phi| (1.0 - phi) / phi).collect(),
        };
        let zero = GroupSums::new(odds, by.column, by.groups.names.len());
        let sums = match (&self.calibration, &self.column_calibration) {
            (None, _) => rows.scan(&zero)?,
            (Some(bcts), None) => Calibrated { rows, bcts }.scan(&zero)?,
            (Some(bcts), Some(calibration)) => {
                CalibratedByColumns { rows: &Calibrated { rows, bcts }, calibration }.scan(&zero)?
            }
        };
        let (about, groups) = sums.findings(by.groups);
        (self.by, self.groups) = (Some(about), Some(groups));
        Ok(self)
    }
}

fn estimated<R: Rows>(rows: &R, terms: usize) -> Result<(MechanismEstimate, Option<Identifiability>), Error> {
    let fitted = ClassAndColumns::default().estimate(rows, terms)?;
    let matrices = fits_matrices(rows.n_classes());
    let identified = if matrices { Some(identifiability(rows, &fitted.estimate)?) } else { None };
    Ok((fitted, identified))
}

/// Σ 1/φ(y, z) and Σ 1/φ(y, z)² over the labelled rows, for Kish's formula, and in how many rows each term is not 0.
#[derive(Clone)]
pub(crate) struct LabelledWeights {
    mechanism: Mechanism,
    sum: f64,
    squares: f64,
    rows: Vec<usize>,
}

bytes!(LabelledWeights { mechanism, sum, squares, rows });

impl Sums for LabelledWeights {
    fn add(&mut self, block: &Block<'_>) {
        for (i, class) in block.labels.iter().enumerate().filter_map(|(i, label)| label.map(|class| (i, class))) {
            let weight = 1.0 / self.mechanism.phi(class.index(), block.given.iter().map(|column| column[i]));
            self.sum += weight;
            self.squares += weight * weight;
        }
        for (rows, column) in self.rows.iter_mut().zip(block.given) {
            *rows += column.iter().filter(|value| **value != 0.0).count();
        }
    }

    fn merge(&mut self, other: Self) {
        self.sum += other.sum;
        self.squares += other.squares;
        self.rows.iter_mut().zip(other.rows).for_each(|(rows, other)| *rows += other);
    }

    travels!(LabelledWeights);
}
