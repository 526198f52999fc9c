//! A whole `mnar fit` on a masked data set, as a user would run it: no option but the seed, unless the experiment has some.

use crate::data::Masked;
use crate::error::ReproduceError;
use crate::method::Learnt;
use mnar::Progress;
use mnar_data::{ImageShape, Split};
use mnar_run::{FitOptions, FitRequest, PredictOptions, fit, predict};
use mnar_train::Examples;
use ndarray::Axis;
use std::io::Write;
use std::path::Path;

/// Fits in a temporary folder, and scores the test rows with the model that the run left there.
pub(crate) fn whole_fit(
    masked: &Masked,
    options: &FitOptions,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Learnt, ReproduceError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| ReproduceError::Io { path, source }
    };
    let home = tempfile::tempdir().map_err(io(&std::env::temp_dir()))?;
    let data = home.path().join("masked.npz");
    let k = masked.labels.n_classes();
    let hidden = |row: usize| masked.labels.get(row).map_or(u8::MAX, |class| class.index() as u8);
    let labels: Vec<u8> = (0..masked.labels.len()).map(hidden).collect();
    // The classes of the test rows are not given away.
    let archive = archive(&[("train", &masked.train, &labels), ("test", &masked.test, &vec![0; masked.test.len()])]);
    std::fs::write(&data, archive.map_err(io(&data))?).map_err(io(&data))?;
    let mut request = FitRequest::new(data.as_path(), home.path().join("run"));
    request.options = FitOptions { seed: Some(seed), no_baseline: Some(true), ..options.clone() };
    let report = fit(&request, progress)?;
    let test = PredictOptions { split: Split::Test, ..Default::default() };
    let predicted = predict(&request.folder, data.as_path(), &test)?;
    // Classes are written as numbers, and a run sorts them by name.
    let findings = &report.findings;
    let place = |class: usize| findings.about.classes.iter().position(|name| *name == class.to_string());
    let places: Option<Vec<usize>> = (0..k).map(place).collect();
    let places = places.ok_or_else(|| ReproduceError::bad_file(&data, "the model lacks a class"))?;
    let phi = mnar::Phi::new(places.iter().map(|&k| findings.phi[k]).collect())?;
    Ok(Learnt {
        test_scores: predicted.population().view().select(Axis(1), &places).mapv(|p| p.max(f64::MIN_POSITIVE).ln()),
        phi,
        phi_ci95: findings.phi_ci95.as_ref().map(|ends| places.iter().map(|&k| ends[k]).collect()),
        chosen_epoch: report.training.as_ref().map_or(0, |training| training.debiased.chosen_epoch),
        seconds_before: 0.0,
    })
}

/// Rows in MedMNIST's layout; a missing label is −1.
fn archive(parts: &[(&str, &Examples, &[u8])]) -> std::io::Result<Vec<u8>> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (part, examples, labels) in parts {
        let Examples::Images { images, .. } = examples else { return Err(std::io::ErrorKind::Unsupported.into()) };
        let ImageShape { depth, height, width, channels } = images.shape();
        let sizes =
            [depth, height, width, channels].map(|size| if size > 1 { format!(", {size}") } else { String::new() });
        let shape = format!("({}{})", images.len(), sizes.concat());
        let arrays =
            [("images", "|u1", shape, images.all()), ("labels", "|i1", format!("({}, 1)", labels.len()), labels)];
        for (name, kind, shape, bytes) in arrays {
            let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
            // The header ends with a line break at a multiple of 64 bytes.
            let padded = format!("{header:<width$}\n", width = (header.len() + 11).next_multiple_of(64) - 11);
            zip.start_file(format!("{part}_{name}.npy"), stored)?;
            zip.write_all(b"\x93NUMPY\x01\x00")?;
            zip.write_all(&(padded.len() as u16).to_le_bytes())?;
            zip.write_all(padded.as_bytes())?;
            zip.write_all(bytes)?;
        }
    }
    Ok(zip.finish()?.into_inner())
}
