//! Writes pages that try a browser: hostile names, a hundred classes, next to nothing, and verdicts about columns.
//!
//!     cargo run -p mnar-report --example pages -- DIR

#[path = "../tests/samples/mod.rs"]
mod samples;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::path::PathBuf::from(std::env::args().nth(1).ok_or("usage: pages DIR")?);
    std::fs::create_dir_all(&folder)?;
    let mut reports = vec![
        ("hostile".to_owned(), samples::full(samples::hostile())),
        ("hundred".to_owned(), samples::full(samples::plain(100))),
        ("bare".to_owned(), samples::bare()),
    ];
    let [.., by_both, unclear] = samples::KINDS;
    for (kind, columns) in [(by_both, None), (unclear, Some(samples::hostile_columns()))] {
        reports.push((samples::kind_name(kind), samples::judged(kind, columns)));
    }
    for (name, report) in reports {
        let path = folder.join(format!("{name}.html"));
        std::fs::write(&path, report.to_html()?)?;
        println!("{}", path.display());
    }
    Ok(())
}
