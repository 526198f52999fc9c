//! A figure: one value that the page draws, a paper prints and a screen reader reads as a table.

use serde::Serialize;

/// A figure, with a table of the same numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Its name in file names and links.
    pub id: &'static str,
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub about: String,
    /// The drawing.
    pub chart: Chart,
    /// The same numbers as a table.
    #[serde(skip)]
    pub table: Table,
}

/// Kinds of charts.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Chart {
    /// Values with intervals, one line per class.
    Dots {
        /// What the values are.
        axis: String,
        /// The names of the series.
        series: Vec<String>,
        /// The values.
        marks: Vec<Dot>,
    },
    /// Bars, one group per class.
    Bars {
        /// What the values are.
        axis: String,
        /// Whether the scale is logarithmic, for counts.
        log: bool,
        /// The names of the series.
        series: Vec<String>,
        /// The values.
        marks: Vec<Bar>,
    },
    /// Curves.
    Lines {
        /// Label of the horizontal axis.
        x: String,
        /// Label of the vertical axis.
        y: String,
        /// Whether the horizontal axis is logarithmic.
        log_x: bool,
        /// Whether both axes run from 0 to 1, with the line of equality.
        unit_square: bool,
        /// The names of the series.
        series: Vec<String>,
        /// The points, by series and from left to right.
        points: Vec<Point>,
        /// Points that stand out, such as the epoch that was kept.
        marked: Vec<Point>,
    },
    /// A matrix.
    Heat {
        /// What the columns show.
        x: String,
        /// What the rows show.
        y: String,
        /// The names of rows and columns.
        labels: Vec<String>,
        /// Values from 0 to 1, row by row.
        cells: Vec<Vec<f64>>,
    },
    /// Shares from 0 to 1: one panel per column of the data, with one bar per group of rows.
    Rates {
        /// What the shares are.
        axis: String,
        /// The share of all rows, drawn as a line.
        overall: f64,
        /// The panels, from top to bottom.
        panels: Vec<Panel>,
    },
}

/// A panel of bars.
#[derive(Clone, Debug, Serialize)]
pub struct Panel {
    /// The column, and how many groups are left out if there are many.
    pub name: String,
    /// The bars, from top to bottom.
    pub bars: Vec<Rate>,
}

/// The share of some rows.
#[derive(Clone, Debug, Serialize)]
pub struct Rate {
    /// What the rows share.
    pub label: String,
    /// How many rows there are.
    pub rows: usize,
    /// The share, from 0 to 1.
    pub value: f64,
}

/// A value with its interval.
#[derive(Clone, Debug, Serialize)]
pub struct Dot {
    /// The class.
    pub label: String,
    /// Index of its series.
    pub series: usize,
    /// The value.
    pub value: f64,
    /// The interval, if there is one.
    pub interval: Option<(f64, f64)>,
}

/// A bar.
#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    /// The class.
    pub label: String,
    /// Index of its series.
    pub series: usize,
    /// The length of the bar.
    pub value: f64,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Point {
    /// Index of its series.
    pub series: usize,
    /// Horizontal position.
    pub x: f64,
    /// Vertical position.
    pub y: f64,
}

/// A table of text and numbers.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// One heading per column.
    pub heading: Vec<String>,
    /// The cells, line by line.
    pub lines: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Cell {
    /// Text.
    Text(String),
    /// A term, and what it means.
    Term {
        /// The term.
        name: String,
        /// What it means, for readers who do not know it.
        meaning: &'static str,
    },
    /// A number.
    Number {
        /// The exact value.
        value: f64,
        /// The text shown.
        text: String,
        /// Its path in the JSON of the report, such as `phi.0`.
        path: Option<String>,
    },
    /// An interval.
    Interval {
        /// Its ends.
        ends: (f64, f64),
        /// Its path in the JSON of the report, such as `phi_ci95.0`.
        path: String,
    },
}

impl Cell {
    /// A cell with text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A cell with a number, shown as by [`crate::table::number`].
    pub(crate) fn number(value: f64, path: Option<String>) -> Self {
        Self::Number { value, text: crate::table::number(value), path }
    }

    /// A cell with an integer.
    pub(crate) fn count(value: usize, path: Option<String>) -> Self {
        Self::Number { value: value as f64, text: value.to_string(), path }
    }

    /// A cell with a number, or a dash if there is none.
    pub(crate) fn maybe(value: Option<f64>, path: String) -> Self {
        value.map_or_else(|| Self::text("–"), |value| Self::number(value, Some(path)))
    }

    /// A cell with an interval, or a dash if there is none.
    pub(crate) fn interval(interval: Option<(f64, f64)>, path: impl Into<String>) -> Self {
        match interval.filter(|(low, high)| low.is_finite() && high.is_finite()) {
            Some(ends) => Self::Interval { ends, path: path.into() },
            None => Self::text("–"),
        }
    }
}
