//! A figure: one value that the page draws, a paper prints and a screen reader reads as a table.

use serde::Serialize;

/// A figure, with the table that says the same.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Its name in files and addresses.
    pub id: &'static str,
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub about: String,
    /// The drawing.
    pub chart: Chart,
    /// The same numbers.
    #[serde(skip)]
    pub table: Table,
}

/// Kinds of drawings.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Chart {
    /// A value with its interval, a line a class.
    Dots {
        /// What the values are.
        axis: String,
        /// The names of the series.
        series: Vec<String>,
        /// The values.
        marks: Vec<Dot>,
    },
    /// Bars, a group a class.
    Bars {
        /// What the values are.
        axis: String,
        /// A log scale, for counts.
        log: bool,
        /// The names of the series.
        series: Vec<String>,
        /// The values.
        marks: Vec<Bar>,
    },
    /// Curves.
    Lines {
        /// What runs to the right.
        x: String,
        /// What runs upwards.
        y: String,
        /// A log scale to the right.
        log_x: bool,
        /// Both axes from 0 to 1, and the line of equality.
        unit_square: bool,
        /// The names of the series.
        series: Vec<String>,
        /// The points, by series and from left to right.
        points: Vec<Point>,
    },
    /// A matrix.
    Heat {
        /// What the columns are.
        x: String,
        /// What the rows are.
        y: String,
        /// The names of rows and columns.
        labels: Vec<String>,
        /// Row by row, from 0 to 1.
        cells: Vec<Vec<f64>>,
    },
}

/// A value with its interval.
#[derive(Clone, Debug, Serialize)]
pub struct Dot {
    /// The class.
    pub label: String,
    /// Number of its series.
    pub series: usize,
    /// The value.
    pub value: f64,
    /// The interval.
    pub interval: Option<(f64, f64)>,
}

/// A bar.
#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    /// The class.
    pub label: String,
    /// Number of its series.
    pub series: usize,
    /// Its length.
    pub value: f64,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Point {
    /// Number of its series.
    pub series: usize,
    /// To the right.
    pub x: f64,
    /// Upwards.
    pub y: f64,
}

/// A table of texts and numbers.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// One a column.
    pub heading: Vec<String>,
    /// Line by line.
    pub lines: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Clone, Debug)]
pub enum Cell {
    /// A text.
    Text(String),
    /// A number.
    Number {
        /// In full.
        value: f64,
        /// As shown.
        text: String,
        /// Where it stands in the JSON of the report, such as `phi.0`.
        path: Option<String>,
    },
}

impl Cell {
    /// A text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A number with four decimals.
    pub(crate) fn number(value: f64, path: Option<String>) -> Self {
        Self::Number { value, text: crate::table::number(value), path }
    }

    /// A whole number.
    pub(crate) fn count(value: usize, path: Option<String>) -> Self {
        Self::Number { value: value as f64, text: value.to_string(), path }
    }

    /// A number, or a dash where there is none.
    pub(crate) fn maybe(value: Option<f64>, path: String) -> Self {
        value.map_or_else(|| Self::text("–"), |value| Self::number(value, Some(path)))
    }

    /// An interval.
    pub(crate) fn interval(interval: Option<(f64, f64)>) -> Self {
        Self::Text(interval.map_or_else(|| "–".to_owned(), crate::table::interval))
    }
}
