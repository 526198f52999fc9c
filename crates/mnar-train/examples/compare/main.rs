//! Debiased training beside the methods it is compared with, on real data masked by known mechanisms.
//!
//! cargo run --release -p mnar-train --example compare -- tables --data DIR [--seeds N]
//!
//! cargo run --release -p mnar-train --example compare -- page
//!
//! Prints tables and writes `results/training_<what>.json`, and from them `results/training.md`.

mod methods;
mod page;
mod tables;

use std::collections::HashMap;
use std::path::PathBuf;

type Failure = Box<dyn std::error::Error>;

/// The command line: `--name value` pairs after the command.
struct Options(HashMap<String, String>);

impl Options {
    fn number(&self, name: &str, default: usize) -> Result<usize, Failure> {
        self.0.get(name).map_or(Ok(default), |text| Ok(text.parse()?))
    }

    fn data(&self) -> Result<PathBuf, Failure> {
        self.0.get("data").map(PathBuf::from).ok_or_else(|| "give the data folder with --data DIR".into())
    }

    fn list(&self, name: &str) -> Option<Vec<String>> {
        self.0.get(name).map(|text| text.split(',').map(str::to_owned).collect())
    }
}

fn main() -> Result<(), Failure> {
    let mut words = std::env::args().skip(1);
    let command = words.next().ok_or("say tables or page")?;
    let mut options = HashMap::new();
    while let Some(name) = words.next() {
        let name = name.strip_prefix("--").ok_or_else(|| format!("`{name}` should start with --"))?.to_owned();
        let value = words.next().ok_or_else(|| format!("--{name} needs a value"))?;
        options.insert(name, value);
    }
    let options = Options(options);
    match command.as_str() {
        "tables" => tables::run(&options),
        "page" => page::run(),
        other => Err(format!("there is no `{other}`; say tables or page").into()),
    }
}

/// Writes pretty JSON into `results/`.
fn write_results(name: &str, value: &impl serde::Serialize) -> Result<(), Failure> {
    use std::io::Write;
    let path = PathBuf::from("results").join(name);
    let mut file = mnar_data::AtomicFile::create(&path)?;
    file.write_all(serde_json::to_string_pretty(value)?.as_bytes())?;
    file.write_all(b"\n")?;
    file.commit()?;
    Ok(())
}
