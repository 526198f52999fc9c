//! A sentence that knows its numbers: the page links each of them to its place in the JSON, a terminal prints the words.

use crate::html::{number, ticked};
use maud::{Markup, Render, html};

enum Part {
    Words(String),
    Number {
        value: f64,
        text: String,
        path: String,
    },
    /// A count as a share of another one.
    Share {
        value: f64,
        text: String,
        path: String,
        over: &'static str,
    },
}

/// A sentence of words and numbers. Backticks mark names.
#[derive(Default)]
pub(crate) struct Line(Vec<Part>);

impl Line {
    pub(crate) fn new(words: impl Into<String>) -> Self {
        Self::default().words(words)
    }

    pub(crate) fn words(mut self, words: impl Into<String>) -> Self {
        self.0.push(Part::Words(words.into()));
        self
    }

    /// A number, and where the JSON has it.
    pub(crate) fn number(mut self, value: f64, text: String, path: impl Into<String>) -> Self {
        self.0.push(Part::Number { value, text, path: path.into() });
        self
    }

    /// A share in percent.
    pub(crate) fn percent(self, value: f64, path: impl Into<String>) -> Self {
        self.number(value, percent(value), path)
    }

    /// "1.0% to 2.0%".
    pub(crate) fn percents(self, (low, high): (f64, f64), path: &str) -> Self {
        self.percent(low, format!("{path}.0")).words(" to ").percent(high, format!("{path}.1"))
    }

    /// A count over another one, in percent.
    pub(crate) fn share(mut self, value: f64, path: impl Into<String>, over: &'static str) -> Self {
        self.0.push(Part::Share { value, text: percent(value), path: path.into(), over });
        self
    }

    /// The words alone.
    pub(crate) fn text(&self) -> String {
        let words = self.0.iter().map(|part| match part {
            Part::Words(text) | Part::Number { text, .. } | Part::Share { text, .. } => text.as_str(),
        });
        words.collect()
    }
}

/// A share in percent, with one decimal.
pub(crate) fn percent(value: f64) -> String {
    format!("{:.1}%", 100.0 * value)
}

/// A count as a share of another one, with the places of both.
pub(crate) fn share_of(value: f64, path: &str, over: &str) -> Markup {
    html! { span data-path=(path) data-over=(over) data-value=(format!("{value:?}")) { (percent(value)) } }
}

impl Render for Line {
    fn render(&self) -> Markup {
        html! {
            @for part in &self.0 {
                @match part {
                    Part::Words(words) => (ticked(words)),
                    Part::Number { value, text, path } => (number(*value, text.clone(), path)),
                    Part::Share { value, path, over, .. } => (share_of(*value, path, over)),
                }
            }
        }
    }
}
