//! The files that the pages speak of.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::fmt::Write as _;
use std::path::Path;

const ROWS: usize = 500;

struct Patient {
    hospital: &'static str,
    age: f64,
    bmi: f64,
    glucose: f64,
    sick: bool,
    /// Chances that decide about a label and about an audit.
    label: f64,
    audit: f64,
    fold: usize,
}

fn patients() -> Vec<Patient> {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut draw = || {
        let sick = rng.random::<f64>() < 0.35;
        let shift = f64::from(u8::from(sick));
        Patient {
            hospital: if rng.random::<f64>() < 0.5 { "North" } else { "South" },
            age: 30.0 + 40.0 * rng.random::<f64>() + 8.0 * shift,
            bmi: 20.0 + 12.0 * rng.random::<f64>() + 4.0 * shift,
            glucose: 80.0 + 50.0 * rng.random::<f64>() + 35.0 * shift,
            sick,
            label: rng.random(),
            audit: rng.random(),
            fold: rng.random_range(0..5),
        }
    };
    (0..ROWS).map(|_| draw()).collect()
}

impl Patient {
    fn class(&self) -> &'static str {
        if self.sick { "sick" } else { "healthy" }
    }

    /// Six in ten of the sick are labelled, and two in ten of the others.
    fn is_labelled(&self) -> bool {
        self.label < if self.sick { 0.6 } else { 0.2 }
    }

    /// The same, with twice the chance in the north.
    fn is_labelled_by_hospital(&self) -> bool {
        self.label < if self.hospital == "North" { 0.8 } else { 0.15 }
    }

    fn p_sick(&self) -> f64 {
        // What a classifier that was trained on such labels would say, roughly.
        let z = (self.glucose - 122.0) / 9.0 + (self.bmi - 28.0) / 4.0 + 0.5;
        1.0 / (1.0 + (-z).exp())
    }
}

/// Writes the files that a page needs.
pub(crate) fn write(page: &str, folder: &Path) {
    let patients = patients();
    let only_positives = page.contains("positive-unlabelled");
    let audits = page.contains("README") || page.contains("hospital");
    let by_hospital = page.contains("hospital") || page.contains("who-gets-labelled");
    let mut clinic = "patient,hospital,age,bmi,glucose,".to_owned();
    clinic.push_str(if audits { "audited,diagnosis\n" } else { "diagnosis\n" });
    let mut complete = "hospital,age,bmi,glucose,diagnosis\n".to_owned();
    let mut fresh = "patient,hospital,age,bmi,glucose\n".to_owned();
    let mut predictions = "diagnosis,hospital,p_healthy,p_sick,fold\n".to_owned();
    for (i, patient) in patients.iter().enumerate() {
        let Patient { hospital, age, bmi, glucose, fold, .. } = patient;
        let audited = audits && patient.audit < 0.12;
        let labelled = if by_hospital { patient.is_labelled_by_hospital() } else { patient.is_labelled() };
        // Registers know a third of the sick.
        let known = if only_positives { patient.sick && patient.label < 0.3 } else { labelled };
        let shown = known || audited;
        let label = if shown { patient.class() } else { "" };
        let id = format!("P{i:04}");
        let mark = if audits { format!("{},", u8::from(audited)) } else { String::new() };
        writeln!(clinic, "{id},{hospital},{age:.1},{bmi:.2},{glucose:.1},{mark}{label}").unwrap();
        writeln!(complete, "{hospital},{age:.1},{bmi:.2},{glucose:.1},{}", patient.class()).unwrap();
        let p = patient.p_sick();
        writeln!(predictions, "{label},{hospital},{:.6},{p:.6},{fold}", 1.0 - p).unwrap();
        if i < 50 {
            let column = if audits {
                format!("{id},{hospital},{age:.1},{bmi:.2},{glucose:.1},0")
            } else {
                format!("{id},{hospital},{age:.1},{bmi:.2},{glucose:.1}")
            };
            writeln!(fresh, "{column}").unwrap();
        }
    }
    if audits {
        fresh = fresh.replacen("glucose\n", "glucose,audited\n", 1);
    }
    for (name, text) in
        [("clinic.csv", clinic), ("complete.csv", complete), ("new.csv", fresh), ("predictions.csv", predictions)]
    {
        std::fs::write(folder.join(name), text).unwrap();
    }
    if page.contains("README") {
        scans(&folder.join("scans"));
    }
}

/// Small pictures: bright and dark ones, and some without a label.
fn scans(folder: &Path) {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for i in 0..160 {
        let bright = i % 2 == 0;
        let labelled = rng.random::<f64>() < if bright { 0.7 } else { 0.4 };
        let class = match (labelled, bright) {
            (false, _) => "unlabelled",
            (true, true) => "bright",
            (true, false) => "dark",
        };
        let pixels: Vec<u8> = (0..64).map(|_| rng.random_range(0..120) + if bright { 120 } else { 0 }).collect();
        std::fs::create_dir_all(folder.join(class)).unwrap();
        std::fs::write(folder.join(class).join(format!("{i:03}.bmp")), bitmap(&pixels)).unwrap();
    }
}

/// 8 by 8 grey pixels as a BMP file of 24 bits per pixel.
fn bitmap(pixels: &[u8]) -> Vec<u8> {
    let size = 54 + 64 * 3;
    let mut out = b"BM".to_vec();
    for word in [size, 0, 54, 40, 8, 8] {
        out.extend((word as u32).to_le_bytes());
    }
    out.extend([1, 0, 24, 0]);
    for word in [0u32, 64 * 3, 2835, 2835, 0, 0] {
        out.extend(word.to_le_bytes());
    }
    out.extend(pixels.iter().flat_map(|&grey| [grey; 3]));
    out
}
