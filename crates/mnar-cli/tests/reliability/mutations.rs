//! Files of a run that someone has changed, with the checksums to go with them.

use crate::Found;
use crate::runs::{fit, interrupt, reseal, said, table};
use mnar::conformal::SetKind;
use mnar::progress::Progress;
use mnar::{Labels, Posteriors};
use mnar_data::{Checksum, Sum};
use mnar_run::{FitOptions, FitPlan, FitRequest, PredictOptions, SavedReport, SetOptions, predict};
use mnar_train::InputShape;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A mutation takes longer than this only if something goes round in circles.
const HANG: Duration = Duration::from_secs(20);

/// What became of a mutated file: refused, or used, or used although it should not have been.
enum Fate {
    Refused,
    Used,
    Wrong(String),
}

/// Mutates each file `times` times.
pub(crate) fn mutate(times: usize, seed: u64) -> Found {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("t.csv");
    fs::write(&data, table(150, seed)).unwrap();
    let words =
        ["t.csv", "--label", "diagnosis", "--epochs", "2", "--replicates", "8", "--permutations", "9", "--quiet"];
    let output = fit(home.path(), &words, &["--out", "run"]);
    assert!(output.status.success(), "{}", said(&output));
    let run = home.path().join("run");
    let started = started(home.path(), &data, &run);
    let labels =
        Labels::from_values((0..60).map(|i| (i % 2 == 0).then_some(if i % 3 == 0 { "healthy" } else { "sick" })));
    let labels = labels.unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut counts, mut failures) = (serde_json::Map::new(), Vec::new());
    let sets = Some(SetOptions { level: 0.9, kind: SetKind::PerClass });
    let with_sets = PredictOptions { sets, ..Default::default() };
    let predicts = |run: &Path, options: &PredictOptions| match predict(run, &data, options) {
        Err(_) => Fate::Refused,
        Ok(predictions) if sound(predictions.population()) => Fate::Used,
        Ok(_) => Fate::Wrong("probabilities that are none".to_owned()),
    };
    let mut part = |name: &str, file: &Path, attempt: &dyn Fn() -> Fate| {
        counts.insert(name.to_owned(), mutate_file(file, times, &mut rng, &mut failures, attempt));
    };
    part("model.json", &run.join("model/model.json"), &|| {
        reseal(&run);
        predicts(&run, &with_sets)
    });
    part("beside.json", &run.join("model/beside.json"), &|| {
        reseal(&run);
        predicts(&run, &with_sets)
    });
    part("sets.json", &run.join("model/sets.json"), &|| {
        reseal(&run);
        predicts(&run, &with_sets)
    });
    let positive = home.path().join("positive");
    fs::write(home.path().join("p.csv"), table(150, seed).replace(",healthy\n", ",\n")).unwrap();
    let known = ["p.csv", "--label", "diagnosis", "--shares", "sick=0.5", "--quiet"];
    let output = fit(home.path(), &known, &["--out", "positive"]);
    assert!(output.status.success(), "{}", said(&output));
    part("positive.json", &positive.join("model/positive.json"), &|| {
        reseal(&positive);
        predicts(&positive, &PredictOptions::default())
    });
    part("report.json", &run.join("report.json"), &|| {
        reseal(&run);
        draw(&run)
    });
    let settings = started.folder.join("settings.toml");
    let original = fs::read_to_string(&settings).unwrap();
    part("settings.toml", &settings, &|| plan(&settings, &original, &started, &labels));
    let (checkpoint, request) = checkpoint(home.path(), &data);
    let (header, _) = parts(&fs::read(&checkpoint).unwrap());
    let state = home.path().join("state.json");
    fs::write(&state, header["__metadata__"]["mnar"].as_str().unwrap()).unwrap();
    let whole = fs::read(&checkpoint).unwrap();
    part("checkpoint", &state, &|| {
        fs::write(&checkpoint, with_state(&whole, &fs::read_to_string(&state).unwrap())).unwrap();
        match mnar_run::fit(&request, &Deadline(Instant::now() + Duration::from_millis(100))) {
            Err(error) if !error.is_cancelled() => Fate::Refused,
            _ => Fate::Used,
        }
    });
    counts.insert("peak_memory_mb".to_owned(), json!(peak_memory_mb()));
    Found { counts: Value::Object(counts), failures }
}

fn mutate_file(
    file: &Path,
    times: usize,
    rng: &mut ChaCha8Rng,
    failures: &mut Vec<String>,
    attempt: &dyn Fn() -> Fate,
) -> Value {
    let whole = fs::read_to_string(file).unwrap();
    let (mut refused, mut used, mut wrong, mut longest) = (0, 0, 0, Duration::ZERO);
    for i in 0..times {
        let text = mutated(&whole, i, rng);
        fs::write(file, &text).unwrap();
        let began = Instant::now();
        let fate = catch_unwind(AssertUnwindSafe(attempt)).unwrap_or_else(|_| Fate::Wrong("a panic".to_owned()));
        longest = longest.max(began.elapsed());
        match fate {
            Fate::Refused => refused += 1,
            Fate::Used => used += 1,
            Fate::Wrong(what) => {
                wrong += 1;
                failures.push(format!("{} {i}: {what}\n{}", file.display(), difference(&whole, &text)));
            }
        }
    }
    if longest > HANG {
        failures.push(format!("{}: one took {longest:?}", file.display()));
    }
    fs::write(file, whole).unwrap();
    json!({ "tried": times, "refused": refused, "used": used, "failures": wrong, "longest_seconds": longest.as_secs_f64() })
}

/// Two thirds of the mutations know JSON, or lines, and the others bytes.
fn mutated(text: &str, i: usize, rng: &mut ChaCha8Rng) -> String {
    match (i % 3, serde_json::from_str::<Value>(text)) {
        (0, _) => mutated_bytes(text, rng),
        (_, Ok(mut value)) => {
            let target = rng.random_range(0..count(&value));
            mutate_node(&mut value, &mut { target }, rng);
            value.to_string()
        }
        (_, Err(_)) => mutated_line(text, rng),
    }
}

fn mutated_bytes(text: &str, rng: &mut ChaCha8Rng) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..rng.random_range(1..4) {
        let at = rng.random_range(0..bytes.len());
        match rng.random_range(0..4) {
            0 => bytes[at] = rng.random_range(0x20..0x7f),
            1 => bytes.truncate(at.max(1)),
            2 => bytes.insert(at, b"0123456789.-eE\"[]{},"[rng.random_range(0..20)]),
            _ => drop(bytes.remove(at)),
        }
        if bytes.is_empty() {
            bytes.push(b' ');
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A line of a settings file with another value.
fn mutated_line(text: &str, rng: &mut ChaCha8Rng) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| line.contains('=')).collect();
    let line = lines[rng.random_range(0..lines.len())];
    let name = line.split('=').next().unwrap_or_default();
    let value = nasty(rng).to_string();
    text.replacen(line, &format!("{name}= {value}"), 1)
}

fn nasty(rng: &mut ChaCha8Rng) -> Value {
    let values = [
        json!(null),
        json!(0),
        json!(-1),
        json!(1),
        json!(1e308),
        json!(-1e308),
        json!(5e-324),
        json!(0.5),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1_099_511_627_776_u64),
        json!(true),
        json!(""),
        json!("a"),
        json!("\u{202e}"),
        json!("x".repeat(100_000)),
        json!([]),
        json!([1.5, -3]),
        json!({}),
        json!([[[[[[]]]]]]),
    ];
    values[rng.random_range(0..values.len())].clone()
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum::<usize>(),
        _ => 0,
    }
}

/// Changes the node at this position, in the order of a walk.
fn mutate_node(value: &mut Value, left: &mut usize, rng: &mut ChaCha8Rng) -> bool {
    if *left == 0 {
        match (value, rng.random_range(0..4)) {
            (Value::Array(items), 0) if !items.is_empty() => drop(items.remove(rng.random_range(0..items.len()))),
            (Value::Array(items), 1) if !items.is_empty() => items.push(items[0].clone()),
            (Value::Object(fields), 0 | 1) if !fields.is_empty() => {
                let name = fields.keys().nth(rng.random_range(0..fields.len())).unwrap().clone();
                let removed = fields.remove(&name);
                if rng.random() {
                    fields.insert(format!("{name}s"), removed.unwrap());
                }
            }
            (Value::Number(number), 0 | 1) => {
                let factor = [-1.0, 1e-300, 1e300, 2.0, 1e6][rng.random_range(0..5)];
                *number = serde_json::Number::from_f64(number.as_f64().unwrap() * factor).unwrap_or_else(|| 7.into());
            }
            (value, _) => *value = nasty(rng),
        }
        return true;
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| mutate_node(item, left, rng)),
        Value::Object(fields) => fields.values_mut().any(|field| mutate_node(field, left, rng)),
        _ => false,
    }
}

fn sound(posteriors: &Posteriors) -> bool {
    (0..posteriors.len()).all(|row| {
        let p = posteriors.row(row);
        p.iter().all(|p| (0.0..=1.0).contains(p)) && (p.iter().sum::<f64>() - 1.0).abs() < 1e-6
    })
}

fn draw(run: &Path) -> Fate {
    let Ok(SavedReport { report, .. }) = SavedReport::read(run) else { return Fate::Refused };
    let drawn = report.to_html().and_then(|_| report.figures().iter().try_for_each(|figure| figure.svg().map(drop)));
    let _ = report.to_text();
    match drawn {
        Ok(()) => Fate::Used,
        Err(_) => Fate::Refused,
    }
}

/// A run that has been started and does nothing further.
struct Started<'a> {
    folder: PathBuf,
    request: FitRequest<'a>,
}

fn started<'a>(home: &Path, data: &'a Path, finished: &Path) -> Started<'a> {
    struct Stopped;
    impl Progress for Stopped {
        fn cancelled(&self) -> bool {
            true
        }
    }
    let folder = home.join("started");
    let mut request = FitRequest::new(data, &folder);
    request.options = FitOptions::read(&finished.join("settings.toml")).unwrap();
    assert!(mnar_run::fit(&request, &Stopped).unwrap_err().is_cancelled());
    request.resume = true;
    Started { folder, request }
}

/// Stops the work at a time.
struct Deadline(Instant);

impl Progress for Deadline {
    fn cancelled(&self) -> bool {
        Instant::now() >= self.0
    }
}

/// The first checkpoint of an interrupted run, and the request that goes on from it.
fn checkpoint<'a>(home: &Path, data: &'a Path) -> (PathBuf, FitRequest<'a>) {
    let words =
        ["t.csv", "--label", "diagnosis", "--permutations=9", "--cross-fit", "network", "--hidden", "4", "--quiet"];
    let run = interrupt(home, &[&words[..], &["--epochs", "2000"]].concat(), "killed");
    mnar_data::sweep_partial(&run.join("checkpoints")).unwrap();
    let file = fs::read_dir(run.join("checkpoints")).unwrap().next().unwrap().unwrap().path();
    let mut request = FitRequest::new(data, &run);
    request.options = FitOptions::read(&run.join("settings.toml")).unwrap();
    request.resume = true;
    (file, request)
}

/// The header of a checkpoint, and the tensors after it.
fn parts(file: &[u8]) -> (Value, &[u8]) {
    let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    (serde_json::from_slice(&file[8..8 + length]).unwrap(), &file[8 + length..file.len() - Sum::LEN])
}

/// A checkpoint with another state, and the checksum to go with it.
fn with_state(file: &[u8], state: &str) -> Vec<u8> {
    let (mut header, tensors) = parts(file);
    header["__metadata__"]["mnar"] = state.into();
    let header = header.to_string();
    let mut bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), tensors].concat();
    bytes.extend(Checksum::of(&bytes).to_bytes());
    bytes
}

/// Settings are read, and the plan that they lead to is made; a run with changed settings is not resumed.
fn plan(settings: &Path, original: &str, started: &Started<'_>, labels: &Labels) -> Fate {
    if fs::read_to_string(settings).ok().as_deref() == Some(original) {
        return Fate::Used;
    }
    match mnar_run::fit(&started.request, &()) {
        Err(error) if error.to_string().contains("cannot be trusted") => {}
        other => return Fate::Wrong(format!("resumed: {other:?}")),
    }
    match FitOptions::read(settings).and_then(|options| FitPlan::new(&options, InputShape::Row(5), labels)) {
        Ok(_) => Fate::Used,
        Err(_) => Fate::Refused,
    }
}

/// The part in which two texts differ.
fn difference(before: &str, after: &str) -> String {
    let start = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
    let around = |text: &str| text.bytes().skip(start.saturating_sub(60)).take(160).map(char::from).collect::<String>();
    format!("  was {}\n  is  {}", around(before), around(after))
}

/// The most memory that this process ever held.
fn peak_memory_mb() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes / 1024)
}
