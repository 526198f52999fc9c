//! The probability of a label, by class alone or by class and the columns of each row.

use mnar::{Class, Phi};

/// P(labelled) of some rows, for every class that they may have.
///
/// Where labelling depends on the class alone, all rows share one phi. Where it also depends on columns, such as the
/// hospital, each row has its own φ(k, z_i).
#[derive(Clone, Debug, PartialEq)]
pub enum Propensity<'a> {
    /// φ(k), the same for every row.
    ByClass(&'a Phi),
    /// φ(k, z_i), one entry per row.
    ByRow(Vec<&'a Phi>),
}

impl<'a> Propensity<'a> {
    /// The phi of each row where there is one, or else the phi by class.
    pub fn new(by_class: &'a Phi, by_row: Option<&'a [Phi]>) -> Self {
        by_row.map_or(Self::ByClass(by_class), Self::from)
    }

    /// The same for these rows out of all.
    pub fn of_rows(by_class: &'a Phi, by_row: Option<&'a [Phi]>, rows: &[usize]) -> Self {
        match by_row {
            Some(all) => Self::ByRow(rows.iter().map(|&row| &all[row]).collect()),
            None => Self::ByClass(by_class),
        }
    }

    /// phi of row `i`.
    pub fn of(&self, i: usize) -> &'a Phi {
        match self {
            Self::ByClass(phi) => phi,
            Self::ByRow(rows) => rows[i],
        }
    }

    /// 1/phi of row `i` if it has this class.
    pub fn inverse(&self, i: usize, class: Class) -> f64 {
        1.0 / self.of(i)[class.index()]
    }

    /// The distinct lines of phi: a single one for all rows, or one per row.
    pub(crate) fn lines(&self) -> &[&'a Phi] {
        match self {
            Self::ByClass(phi) => std::slice::from_ref(phi),
            Self::ByRow(rows) => rows,
        }
    }
}

impl<'a> From<&'a Phi> for Propensity<'a> {
    fn from(phi: &'a Phi) -> Self {
        Self::ByClass(phi)
    }
}

impl<'a> From<&'a [Phi]> for Propensity<'a> {
    fn from(rows: &'a [Phi]) -> Self {
        Self::ByRow(rows.iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_own_phi_where_there_is_one() {
        let by_class = Phi::new(vec![0.5, 0.25]).unwrap();
        let by_row = [0.2, 0.4, 0.8].map(|phi| Phi::new(vec![phi, phi / 2.0]).unwrap());
        assert_eq!(Propensity::new(&by_class, None).of(2), &by_class);
        let all = Propensity::new(&by_class, Some(&by_row));
        assert_eq!((all.of(2), all.inverse(2, Class(1))), (&by_row[2], 2.5));
        let some = Propensity::of_rows(&by_class, Some(&by_row), &[2, 0]);
        assert_eq!(some.lines(), [&by_row[2], &by_row[0]]);
        assert_eq!(Propensity::of_rows(&by_class, None, &[2, 0]).lines(), [&by_class]);
    }
}
