//! `results/training.md` from the JSON beside it: no number is typed by hand.

use crate::Failure;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

pub(crate) fn run() -> Result<(), Failure> {
    let mut out = String::from(
        "# Training\n\nMade by `cargo run --release -p mnar-train --example compare -- page` from the JSON in this folder.\n",
    );
    if let Some(rows) = read("training_tables.json")? {
        tables(&mut out, &rows)?;
    }
    if let Some(results) = read("train_step.json")? {
        steps(&mut out, &results)?;
    }
    use std::io::Write;
    let mut file = mnar_data::AtomicFile::create(Path::new("results/training.md"))?;
    file.write_all(out.as_bytes())?;
    Ok(file.commit()?)
}

fn read(name: &str) -> Result<Option<Value>, Failure> {
    let path = Path::new("results").join(name);
    if path.exists() { Ok(Some(serde_json::from_slice(&std::fs::read(path)?)?)) } else { Ok(None) }
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(f64::NAN)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("")
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn tables(out: &mut String, rows: &Value) -> Result<(), Failure> {
    writeln!(
        out,
        "\n## Tables\n\n`compare -- tables --data DIR`: one hidden layer of 128 units, labels hidden by a known mechanism (MNAR) or at the same\noverall rate (MCAR); accuracy and log-loss on the whole population, mean and standard deviation over seeds.\n"
    )?;
    writeln!(
        out,
        "| data | | method | seeds | accuracy | log-loss | normalised MSE of phi |\n|---|---|---|---|---|---|---|"
    )?;
    for row in array(rows) {
        writeln!(
            out,
            "| {} | {} | {} | {} | {:.2}% ± {:.2} | {:.4} ± {:.4} | {:.4} |",
            text(row, "data"),
            text(row, "mechanism"),
            text(row, "method"),
            row["seeds"],
            100.0 * number(row, "accuracy"),
            100.0 * number(row, "accuracy_sd"),
            number(row, "log_loss"),
            number(row, "log_loss_sd"),
            number(row, "phi_normalised_mse")
        )?;
    }
    Ok(())
}

fn steps(out: &mut String, results: &Value) -> Result<(), Failure> {
    writeln!(
        out,
        "\n## Training steps beside PyTorch\n\n`python bench/train_step.py`, both sides in turns, the fastest step of each.\n"
    )?;
    let machine = &results["machine"];
    writeln!(
        out,
        "{}, {} threads, load average at the start {}.\n",
        text(machine, "cpu"),
        machine["threads"],
        machine["load_average_at_start"][0]
    )?;
    writeln!(
        out,
        "| network | batch | ours, ms | PyTorch, ms | ratio | ours, MB | PyTorch, MB |\n|---|---|---|---|---|---|---|"
    )?;
    for name in ["linear", "mlp", "mnist", "medmnist", "wrn", "cnn3d"] {
        let row = &results["networks"][name];
        let best = &row["pytorch"][text(row, "pytorch_best")];
        writeln!(
            out,
            "| {name} | {} | {:.2} | {:.2} ({}) | {:.2} | {:.0} | {:.0} |",
            row["batch"],
            number(&row["ours"], "milliseconds"),
            number(best, "milliseconds"),
            text(row, "pytorch_best"),
            number(row, "ours_over_pytorch"),
            number(&row["ours"], "peak_mb"),
            number(best, "peak_mb")
        )?;
    }
    Ok(())
}
