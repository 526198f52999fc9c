//! `mnar fit`: from a file to a model that informative labels do not fool.

mod progress;
mod resolve;

use crate::Outcome;
use crate::args::{DataArgs, FitArgs, FitOptions, Format};
use crate::interrupt::stop_on_ctrl_c;
use crate::output;
use crate::plan;
use anyhow::{Context as _, Result, bail};
use mnar_data::{AtomicFile, Inputs, ReadOptions, read_dataset};
use mnar_report::Report;
use mnar_train::Encoding;
use mnar_train::fit::{FitSettings, Origin, Place, check_row_names, fit};
use progress::Terminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const SETTINGS: &str = "settings.toml";

pub(crate) fn run(args: FitArgs) -> Result<Outcome> {
    let stop = stop_on_ctrl_c()?;
    let folder = folder(&args);
    let Some(report) = run_in(&args, &folder, typed_origin(&args.data.data), &stop)? else {
        eprintln!(
            "stopped; everything done so far is in {}.\nGo on with the same command and --resume.",
            folder.display()
        );
        return Ok(Outcome::Interrupted);
    };
    match args.format {
        Format::Json => output::print_json(&report)?,
        Format::Text => output::print(&format!("{}{}", report.to_text(), trailer(&report, &folder)))?,
    }
    Ok(Outcome::Done)
}

/// The folder of the run.
pub(crate) fn folder(args: &FitArgs) -> PathBuf {
    args.out.clone().unwrap_or_else(|| default_folder(&args.data.data))
}

/// Runs all of it; `None` if it was stopped from outside.
pub(crate) fn run_in(args: &FitArgs, folder: &Path, origin: Origin, stop: &AtomicBool) -> Result<Option<Report>> {
    let file = match &args.settings {
        None => FitOptions::default(),
        Some(path) => {
            let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
            toml::from_str(&text).with_context(|| path.display().to_string())?
        }
    };
    let options = args.options.clone().or(file);
    check_folder(folder, args.resume)?;
    let device = plan::device(args.device)?;
    let dataset = read_dataset(&args.data.data, &read_options(&args.data)?)?;
    if !dataset.skipped.is_empty() && !args.quiet {
        let shown: Vec<&str> = dataset.skipped.iter().take(3).map(String::as_str).collect();
        let more = if dataset.skipped.len() > 3 { ", ..." } else { "" };
        eprintln!("skipped {} that are no images: {}{more}", dataset.skipped.len(), shown.join(", "));
    }
    if let Inputs::Table(table) = &dataset.inputs
        && let Some(column) = table.copy_of_label(&dataset.labels)
    {
        bail!(
            "{}: column `{column}` is the label once more wherever there is one, so a model would learn to read it off; leave it out with --ignore {column}",
            args.data.data.display()
        );
    }
    let encoding = Encoding::learn(&dataset.inputs)?;
    if let Encoding::Table(encoder) = &encoding
        && !encoder.dropped().is_empty()
        && !args.quiet
    {
        eprintln!("left out, because they never vary: {}", encoder.dropped().join(", "));
    }
    let shape = encoding.shape();
    let settings = resolve::settings(&options, shape, &dataset.labels)?;
    // Nothing can be estimated from a single class or none; say so before any folder is made.
    settings.train.check()?;
    if dataset.labels.n_unlabelled() > 0 {
        mnar::Labels::new(dataset.labels.as_slice().to_vec(), dataset.labels.names().to_vec())?;
        mnar::crossfit::FoldPlan::for_labels(&dataset.labels, settings.folds, settings.train.seed)?;
    }
    settings.architecture.check(shape, dataset.labels.n_classes())?;
    check_row_names(dataset.row_names.as_ref(), dataset.labels.names())?;
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    write_settings(&folder.join(SETTINGS), &settings, args.resume)?;

    let mut terminal = Terminal::new(folder, args.quiet);
    let place = Place { folder, device: &device, stop: Some(stop), origin };
    let report = fit(dataset, &encoding, &settings, &place, &mut terminal)?;
    terminal.clear();
    Ok(report)
}

fn trailer(report: &Report, folder: &Path) -> String {
    format!(
        "\n{:.1} s on {}, seed {}. In {}: report.html, report.json, predictions.csv, model/, settings.toml, metrics and events.\nNext: open {}, and `mnar predict {} NEW_DATA -o predictions.csv`.\n",
        report.seconds,
        report.computed_on,
        report.seed,
        folder.display(),
        folder.join("report.html").display(),
        folder.display()
    )
}

/// The data's name and the command as typed.
pub(crate) fn typed_origin(data: &Path) -> Origin {
    origin(data, crate::TYPED.get().map_or(&[], Vec::as_slice))
}

/// The data's name and the command, quoted for a shell.
pub(crate) fn origin(data: &Path, words: &[String]) -> Origin {
    let title = data.file_name().map_or_else(|| data.display().to_string(), |name| name.to_string_lossy().into_owned());
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+%@".contains(c);
    let quoted = words.iter().map(|word| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    let words: Vec<String> = std::iter::once("mnar".to_owned()).chain(quoted).collect();
    Origin { title, command: Some(words.join(" ")) }
}

pub(crate) fn read_options(args: &DataArgs) -> Result<ReadOptions> {
    Ok(ReadOptions {
        label: args.label.clone(),
        labels_file: args.labels.clone(),
        split: mnar_data::Split::Train,
        id: args.id.clone(),
        ignore: args.ignore.clone(),
        missing: args.missing.clone(),
        categorical: args.categorical.clone(),
        resize: args.resize.as_deref().map(size).transpose()?,
    })
}

fn size(text: &str) -> Result<(usize, usize)> {
    let parsed = text.split_once('x').and_then(|(h, w)| Some((h.trim().parse().ok()?, w.trim().parse().ok()?)));
    match parsed {
        Some((height, width)) if height > 0 && width > 0 => Ok((height, width)),
        _ => bail!("--resize is `{text}`, but must be HEIGHTxWIDTH in pixels, such as 28x28"),
    }
}

fn default_folder(data: &Path) -> PathBuf {
    let name = data.file_stem().map_or_else(|| "mnar".into(), |name| name.to_string_lossy().into_owned());
    PathBuf::from(format!("{name}-run"))
}

fn check_folder(folder: &Path, resume: bool) -> Result<()> {
    if folder.exists() && !folder.is_dir() {
        bail!("{} is a file, but the run needs a folder; choose another one with --out", folder.display());
    }
    let there = folder.join(SETTINGS).exists();
    if folder.join("report.json").exists() {
        bail!("{} holds a finished run; choose another folder with --out", folder.display());
    }
    if there && !resume {
        bail!("{} holds an unfinished run; go on with --resume, or choose another folder with --out", folder.display());
    }
    if !there && resume {
        bail!("{} holds no run to go on with; leave out --resume, or name its folder with --out", folder.display());
    }
    if !there && folder.is_dir() && std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("{} is not empty; choose another folder with --out", folder.display());
    }
    Ok(())
}

/// Writes the effective settings; a run that goes on must have the same.
fn write_settings(path: &Path, settings: &FitSettings, resume: bool) -> Result<()> {
    let text = toml::to_string_pretty(settings)?;
    if resume {
        let before = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        if before != text {
            bail!("{} holds other settings than asked for; give --resume the same flags as before", path.display());
        }
        return Ok(());
    }
    Ok(AtomicFile::write_text(path, &text)?)
}
