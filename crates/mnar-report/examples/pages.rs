//! Writes pages that try a browser: hostile names, a hundred classes, and next to nothing.
//!
//!     cargo run -p mnar-report --example pages -- DIR

#[path = "../tests/samples/mod.rs"]
mod samples;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::path::PathBuf::from(std::env::args().nth(1).ok_or("usage: pages DIR")?);
    std::fs::create_dir_all(&folder)?;
    let reports = [
        ("hostile", samples::full(samples::hostile())),
        ("hundred", samples::full(samples::plain(100))),
        ("bare", samples::bare()),
    ];
    for (name, report) in reports {
        let path = folder.join(format!("{name}.html"));
        std::fs::write(&path, report.to_html()?)?;
        println!("{}", path.display());
    }
    Ok(())
}
