//! Estimates of rows that stay in their Parquet files.

use anyhow::Result;
use mnar::Rows as _;
use mnar::analysis::{About, EstimateSettings, Findings, Given, IntervalMethod, StreamedColumns, StreamedGroups};
use mnar::keys::Buckets;
use mnar_data::{Beside, DataError, GivenPredictions, ParquetPredictions};

/// Predictions in Parquet files, and what the settings need beside them.
pub(crate) struct Streamed<'a> {
    pub(crate) table: &'a ParquetPredictions,
    /// The rows with the terms of columns, their groups and their buckets; `None` where nothing of this is needed.
    pub(crate) beside: Option<GivenPredictions<'a>>,
    by_columns: bool,
}

impl<'a> Streamed<'a> {
    pub(crate) fn new(
        table: &'a ParquetPredictions,
        settings: &EstimateSettings,
        buckets: Option<Buckets>,
    ) -> Result<Self> {
        let given: &[String] = match &settings.given {
            Given::Columns(names) => names,
            Given::Auto | Given::None => &[],
        };
        let by = settings.by.as_deref();
        let needed = !given.is_empty() || by.is_some() || buckets.is_some();
        let beside = needed.then(|| table.with(Beside { given, by, buckets })).transpose()?;
        Ok(Self { table, beside, by_columns: !given.is_empty() })
    }

    /// The mechanism, by class or by class and columns.
    pub(crate) fn estimate(&self, settings: &EstimateSettings) -> Result<Findings> {
        let found = match &self.beside {
            Some(rows) if self.by_columns => {
                let columns = StreamedColumns { columns: rows.columns(), encoder: rows.encoder() };
                settings.run_streamed_given(self.table, rows, columns, about(self.table))
            }
            Some(rows) if settings.interval == IntervalMethod::Bootstrap => {
                let keys = rows.encoder().n_terms() + usize::from(rows.groups().is_some());
                settings.run_streamed_bootstrap(rows, keys, about(self.table))
            }
            _ => settings.run_streamed(self.table, about(self.table)),
        };
        found.map_err(of_files)
    }

    /// Adds what is known of each group, if the rows have groups.
    pub(crate) fn by_groups(&self, found: Findings) -> Result<Findings> {
        match self.beside.as_ref().and_then(|rows| Some((rows, rows.groups()?))) {
            Some((rows, groups)) => {
                let groups = StreamedGroups { groups, column: rows.encoder().n_terms() };
                found.by_streamed_groups(rows, groups).map_err(of_files)
            }
            None => Ok(found),
        }
    }
}

/// What is wrong with a file is said alike, whether it is met when the file is opened or in a later pass over it.
pub(crate) fn of_files(error: mnar::Error) -> anyhow::Error {
    match error {
        mnar::Error::Source(cause) => match cause.downcast::<DataError>() {
            Ok(error) => (*error).into(),
            Err(cause) => mnar::Error::Source(cause).into(),
        },
        error => error.into(),
    }
}

/// What the pass over the labels has counted.
pub(crate) fn about(table: &ParquetPredictions) -> About {
    About {
        classes: table.names().to_vec(),
        n: table.rows(),
        n_labelled: table.n_labelled(),
        labelled_per_class: table.counts().to_vec(),
    }
}
