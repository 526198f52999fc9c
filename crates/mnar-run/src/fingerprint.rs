//! What a run was started with, so that it is not resumed with something else.

use crate::options::FitOptions;
use mnar::Labels;
use mnar_data::{Checksum, ColumnValues, Dataset, FeatureColumn, FeatureTable, Inputs, RowNames, Sum};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Checksums of the content of a data set, however its file is called or written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fingerprint {
    rows: usize,
    features: Sum,
    labels: Sum,
    classes: Sum,
    row_names: Option<Sum>,
}

/// A part of a run that is not what it was when the run was started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// The number of rows.
    Rows,
    /// The columns, their values, or the images.
    Features,
    /// Which rows are labelled, or with what.
    Labels,
    /// The names of the classes.
    ClassNames,
    /// The names of the rows.
    RowNames,
    /// Options, by name.
    Options(Vec<String>),
    /// The version of the program.
    Version {
        /// The one that started the run.
        started: String,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows => f.write_str("the number of rows"),
            Self::Features => f.write_str("the features"),
            Self::Labels => f.write_str("the labels"),
            Self::ClassNames => f.write_str("the class names"),
            Self::RowNames => f.write_str("the row names"),
            Self::Options(names) => write!(f, "the options {}", names.join(", ")),
            Self::Version { started } => {
                write!(f, "the version of mnar ({started} then, {} now)", env!("CARGO_PKG_VERSION"))
            }
        }
    }
}

impl Fingerprint {
    /// The fingerprint of a data set; `marks` are the rows whose label was requested at random, and `beside` has columns of the
    /// file of labels.
    pub(crate) fn of(dataset: &Dataset, marks: Option<&[bool]>, beside: Option<&FeatureTable>) -> Self {
        Self {
            rows: dataset.labels.len(),
            features: of_inputs(&dataset.inputs, beside),
            labels: of_labels(&dataset.labels, marks),
            classes: of_texts(dataset.labels.names()),
            row_names: dataset.row_names.as_ref().map(of_row_names),
        }
    }

    /// What is not as it was.
    pub(crate) fn differences(&self, before: &Self) -> Vec<Difference> {
        if self.rows != before.rows {
            // Then nothing else can be the same.
            return vec![Difference::Rows];
        }
        let parts = [
            (self.features == before.features, Difference::Features),
            (self.labels == before.labels, Difference::Labels),
            (self.classes == before.classes, Difference::ClassNames),
            (self.row_names == before.row_names, Difference::RowNames),
        ];
        parts.into_iter().filter(|(same, _)| !same).map(|(_, difference)| difference).collect()
    }
}

/// The names of the options that differ.
pub(crate) fn other_options(ours: &FitOptions, theirs: &FitOptions) -> Vec<String> {
    let fields = |options| match serde_json::to_value(options) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (ours, theirs) = (fields(ours), fields(theirs));
    let names: std::collections::BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    names.into_iter().filter(|name| ours.get(*name) != theirs.get(*name)).cloned().collect()
}

fn of_inputs(inputs: &Inputs, beside: Option<&FeatureTable>) -> Sum {
    let mut sum = Checksum::default();
    match inputs {
        Inputs::Table(table) => table.columns().iter().for_each(|column| add_column(&mut sum, column)),
        Inputs::Images(images) => {
            let shape = images.shape();
            [shape.depth, shape.height, shape.width, shape.channels].into_iter().for_each(|side| sum.add_count(side));
            sum.add(images.all());
        }
    }
    beside.iter().flat_map(|table| table.columns()).for_each(|column| add_column(&mut sum, column));
    sum.finish()
}

/// Numbers that are added together, which is faster than one by one.
const CHUNK: usize = 4096;

fn add_column(sum: &mut Checksum, column: &FeatureColumn) {
    sum.add_text(&column.name);
    match &column.values {
        ColumnValues::Numeric(values) => {
            sum.add(b"numbers");
            for values in values.chunks(CHUNK) {
                // All that is missing is the same.
                let bits = |value: &f32| if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() };
                sum.add(&values.iter().flat_map(|value| bits(value).to_le_bytes()).collect::<Vec<u8>>());
            }
        }
        ColumnValues::Categorical(names) => {
            sum.add(b"names");
            sum.add_count(names.levels().len());
            names.levels().iter().for_each(|level| sum.add_text(level));
            let code = |row: usize| names.code(row).map_or(u32::MAX, |code| code as u32).to_le_bytes();
            for start in (0..names.len()).step_by(CHUNK) {
                let rows = start..(start + CHUNK).min(names.len());
                sum.add(&rows.flat_map(code).collect::<Vec<u8>>());
            }
        }
    }
}

fn of_labels(labels: &Labels, marks: Option<&[bool]>) -> Sum {
    let mut sum = Checksum::default();
    let code = |label: &Option<mnar::Class>| label.map_or(u32::MAX, |class| class.0).to_le_bytes();
    for labels in labels.as_slice().chunks(CHUNK) {
        sum.add(&labels.iter().flat_map(code).collect::<Vec<u8>>());
    }
    if let Some(marks) = marks {
        sum.add(&marks.iter().map(|mark| u8::from(*mark)).collect::<Vec<u8>>());
    }
    sum.finish()
}

fn of_texts(texts: &[String]) -> Sum {
    let mut sum = Checksum::default();
    texts.iter().for_each(|text| sum.add_text(text));
    sum.finish()
}

fn of_row_names(RowNames { column, names }: &RowNames) -> Sum {
    let mut sum = Checksum::default();
    [column].into_iter().chain(names).for_each(|name| sum.add_text(name));
    sum.finish()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use mnar_data::{ReadOptions, read_dataset};

    fn of(text: &str) -> Fingerprint {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, text).unwrap();
        let options = ReadOptions { label: Some("y".into()), id: Some("id".into()), ..Default::default() };
        Fingerprint::of(&read_dataset(&path, &options).unwrap(), None, None)
    }

    const TABLE: &str = "id,n,c,y\nr1,1.5,u,a\nr2,2.5,v,b\nr3,,u,\nr4,4.0,v,a\n";

    #[test]
    fn what_differs_is_named() {
        let before = of(TABLE);
        assert_eq!(of(TABLE).differences(&before), []);
        // The same content, written in another way.
        assert_eq!(of(&TABLE.replace("4.0", "4").replace('\n', "\r\n")).differences(&before), []);
        for (from, to, expected) in [
            ("1.5", "1.25", Difference::Features),
            ("1.5", "", Difference::Features),
            ("r2,2.5,v", "r2,2.5,u", Difference::Features),
            ("id,n,", "id,m,", Difference::Features),
            ("4.0,v,a", "4.0,v,b", Difference::Labels),
            ("4.0,v,a", "4.0,v,", Difference::Labels),
            (",a\n", ",A\n", Difference::ClassNames),
            ("r3", "r33", Difference::RowNames),
            ("r4,4.0,v,a\n", "r4,4.0,v,a\nr5,4.0,v,a\n", Difference::Rows),
        ] {
            assert_eq!(of(&TABLE.replace(from, to)).differences(&before), [expected], "{from} -> {to}");
        }
    }

    #[test]
    fn options_are_named() {
        let ours = FitOptions { epochs: Some(3), seed: Some(1), ..Default::default() };
        let theirs = FitOptions { epochs: Some(4), label: Some("y".into()), seed: Some(1), ..Default::default() };
        assert_eq!(other_options(&ours, &theirs), ["epochs", "label"]);
        assert!(other_options(&ours, &ours).is_empty());
    }
}
