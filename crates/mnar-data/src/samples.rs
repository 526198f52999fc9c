//! Two small, fully labelled data sets inside the program: for the demo, the examples and the tests.
//!
//! `samples/README.md` in this crate says where they come from and under which licence.

use crate::dataset::{Dataset, Inputs};
use crate::feature_table::FeatureTable;
use crate::images::{ImageShape, Images};
use flate2::read::GzDecoder;
use mnar::{Class, Labels};
use ndarray::Array2;
use std::io::Read;

/// Features and the class of every row.
#[derive(Clone, Debug, PartialEq)]
pub struct FullyLabelled {
    /// The features, one row per example.
    pub x: Array2<f64>,
    /// The class of every row.
    pub y: Vec<Class>,
    /// The names of the classes.
    pub names: Vec<String>,
    /// The names of the features.
    pub feature_names: Vec<String>,
}

/// 1797 handwritten digits, 8 × 8 pixels from 0 to 16, ten classes of about the same size.
pub fn digits() -> FullyLabelled {
    let text = unpack(include_bytes!("../samples/digits.csv.gz"));
    let feature_names = (0..64).map(|i| format!("pixel_{}_{}", i / 8, i % 8)).collect();
    parse(text.lines(), (0..10).map(|digit| digit.to_string()).collect(), feature_names)
}

/// 569 breast tumours, 30 measurements of their cell nuclei, 212 malignant and 357 benign.
pub fn breast_cancer() -> FullyLabelled {
    let text = unpack(include_bytes!("../samples/breast_cancer.csv.gz"));
    const MEASURES: [&str; 10] = [
        "radius",
        "texture",
        "perimeter",
        "area",
        "smoothness",
        "compactness",
        "concavity",
        "concave points",
        "symmetry",
        "fractal dimension",
    ];
    let feature_names = [("mean ", ""), ("", " error"), ("worst ", "")]
        .iter()
        .flat_map(|(before, after)| MEASURES.map(|measure| format!("{before}{measure}{after}")))
        .collect();
    // The first line is "569,30,malignant,benign".
    parse(text.lines().skip(1), vec!["malignant".into(), "benign".into()], feature_names)
}

/// The digits as grey images, the pixels 15 times as bright so that 16 becomes 240.
pub fn digits_as_images() -> Dataset {
    let sample = digits();
    let pixels = sample.x.iter().map(|pixel| (pixel * 15.0) as u8).collect();
    let images = Images::new(ImageShape::flat(8, 8, 1), pixels, "digits").expect("the digits are 8 x 8 pixels");
    sample.dataset(Inputs::Images(images))
}

impl FullyLabelled {
    /// The sample as it would be read from a table.
    pub fn to_dataset(&self) -> Dataset {
        let table = FeatureTable::from_numbers(self.feature_names.clone(), self.x.view(), "sample")
            .expect("the embedded sample is finite");
        self.dataset(Inputs::Table(table))
    }

    fn dataset(&self, inputs: Inputs) -> Dataset {
        let y = self.y.iter().copied().map(Some).collect();
        let labels = Labels::allow_degenerate(y, self.names.clone()).expect("the embedded sample has its classes");
        Dataset { inputs, labels, row_names: None, skipped: Vec::new(), notes: Vec::new() }
    }
}

fn unpack(bytes: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text).expect("the embedded sample is whole");
    text
}

/// Lines of numbers, the last one being the class.
fn parse<'a>(lines: impl Iterator<Item = &'a str>, names: Vec<String>, feature_names: Vec<String>) -> FullyLabelled {
    let mut x = Vec::new();
    let mut y = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let (features, class) = line.rsplit_once(',').expect("the embedded sample has a class in every line");
        x.extend(features.split(',').map(|value| value.parse::<f64>().expect("the embedded sample is numeric")));
        y.push(Class(class.parse::<f64>().expect("the embedded sample has numbered classes") as u32));
    }
    let x = Array2::from_shape_vec((y.len(), feature_names.len()), x).expect("the embedded sample is a full table");
    FullyLabelled { x, y, names, feature_names }
}

#[cfg(test)]
mod tests {
    use super::*;

    // python: d = sklearn.datasets.load_digits(); d.data.sum(), d.target.sum(), numpy.bincount(d.target)
    #[test]
    fn digits_are_those_of_scikit_learn() {
        let sample = digits();
        assert_eq!(sample.x.dim(), (1797, 64));
        assert_eq!(sample.x.sum(), 561_718.0);
        assert_eq!(counts(&sample), [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
        assert_eq!(sample.feature_names[9], "pixel_1_1");
    }

    // python: b = sklearn.datasets.load_breast_cancer(); b.data.sum(), numpy.bincount(b.target)
    #[test]
    fn tumours_are_those_of_scikit_learn() {
        let sample = breast_cancer();
        assert_eq!(sample.x.dim(), (569, 30));
        assert!((sample.x.sum() - 1_056_474.459_635_6).abs() < 1e-6);
        assert_eq!(counts(&sample), [212, 357]);
        assert_eq!(sample.feature_names[29], "worst fractal dimension");
        assert_eq!(sample.names[sample.y[0].index()], "malignant");
    }

    fn counts(sample: &FullyLabelled) -> Vec<usize> {
        let mut counts = vec![0; sample.names.len()];
        sample.y.iter().for_each(|class| counts[class.index()] += 1);
        counts
    }
}
