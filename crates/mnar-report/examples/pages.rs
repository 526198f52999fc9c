//! Writes pages that try a browser: hostile names, a hundred classes, next to nothing, and verdicts about columns.
//!
//!     cargo run -p mnar-report --example pages -- DIR

#[path = "../tests/samples/mod.rs"]
mod samples;

use mnar_report::Comparison;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::path::PathBuf::from(std::env::args().nth(1).ok_or("usage: pages DIR")?);
    std::fs::create_dir_all(&folder)?;
    let mut reports = vec![
        ("hostile".to_owned(), samples::full(samples::hostile())),
        ("hundred".to_owned(), samples::full(samples::plain(100))),
        ("forty".to_owned(), samples::full(samples::plain(40))),
        ("bare".to_owned(), samples::bare()),
    ];
    for kind in samples::KINDS {
        reports.push((samples::kind_name(kind), samples::judged(kind, None)));
    }
    let unclear = samples::judged(samples::KINDS[4], Some(samples::hostile_columns()));
    reports.push(("hostile-columns".to_owned(), unclear));
    let compared = reports.iter().filter(|(name, _)| name.starts_with("by-")).cloned().collect();
    let comparison = Comparison::new(compared)?;
    std::fs::write(folder.join("comparison.html"), comparison.to_html()?)?;
    println!("{}", folder.join("comparison.html").display());
    for (name, report) in reports {
        let path = folder.join(format!("{name}.html"));
        std::fs::write(&path, report.to_html()?)?;
        println!("{}", path.display());
    }
    Ok(())
}
