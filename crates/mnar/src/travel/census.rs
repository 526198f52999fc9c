//! The first look at rows in several places: how many there are, and what their columns hold.

use super::{opened, sealed};
use crate::covariates::ColumnSummary;
use crate::error::Error;
use crate::posteriors::Renormalised;
use crate::travel::bytes;

/// Counts of rows, and summaries of columns that labelling depends on or that group the rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Census {
    /// The number of rows.
    pub rows: usize,
    /// Rows that were slightly off the simplex.
    pub renormalised: Renormalised,
    /// The columns.
    pub columns: Vec<ColumnSummary>,
}

bytes!(Renormalised { rows, largest_drift });
bytes!(Census { rows, renormalised, columns });

impl Census {
    /// A census from another process.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        opened(bytes)
    }

    /// The same for another process.
    pub fn to_bytes(&self) -> Vec<u8> {
        sealed(self)
    }

    /// All parts together, added in the order of their bytes. A column may hold numbers in one part and names in another where a
    /// table has no types, which is refused.
    pub fn of_parts<B: AsRef<[u8]>>(parts: &[B]) -> Result<Self, Error> {
        let mut parts: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
        parts.sort_unstable();
        let mut total: Option<Self> = None;
        for part in parts {
            let part = Self::from_bytes(part)?;
            match &mut total {
                Some(total) => total.merge(part)?,
                None => total = Some(part),
            }
        }
        Ok(total.unwrap_or_default())
    }

    fn merge(&mut self, other: Self) -> Result<(), Error> {
        self.rows += other.rows;
        self.renormalised.merge(other.renormalised);
        if self.columns.len() != other.columns.len() {
            return Err(Error::Travel("they are of other columns"));
        }
        self.columns.iter_mut().zip(other.columns).try_for_each(|(column, other)| column.merge(other))
    }
}
