//! The paper's figures as SVG: phi by class, accuracy by class, label counts.

use crate::error::ReproduceError;
use crate::experiment::Experiment;
use crate::method::Candidate;
use crate::run::{Outcome, write_text};
use crate::summary::summarise;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::{Path, PathBuf};

/// Colours that the colour-blind can tell apart (Okabe and Ito).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(120, 120, 120),
    RGBColor(0, 0, 0),
];

/// Pixels at the right for the names of the series.
const LEGEND: u32 = 140;

/// Bars side by side, one group a class.
struct Bars<'a> {
    title: &'a str,
    axis: &'a str,
    /// A name and a value for every class.
    series: Vec<(String, Vec<f64>)>,
    /// Height of the axis.
    top: f64,
    /// A log scale from 1, for counts.
    log: bool,
}

/// Writes `phi.svg`, `accuracy.svg` and `labels.svg` into the folder, and says which.
pub fn write_figures(
    experiment: &Experiment,
    outcomes: &[Outcome],
    folder: &Path,
) -> Result<Vec<PathBuf>, ReproduceError> {
    let Some(first) = outcomes.first() else { return Ok(Vec::new()) };
    let summaries = summarise(outcomes);
    let mut phi = vec![("true".to_owned(), first.true_phi.clone())];
    // Methods that are told phi, or that share it with another, have nothing to show.
    let estimated = [Candidate::Pl, Candidate::Cadr, Candidate::Mle, Candidate::Meg, Candidate::Me, Candidate::Ours];
    let shown = summaries.iter().filter(|summary| estimated.contains(&summary.method));
    phi.extend(shown.map(|summary| (summary.method.title().to_owned(), summary.phi.clone())));
    let top = phi.iter().flat_map(|(_, values)| values).copied().fold(0.0, f64::max) * 1.05;
    let accuracy = summaries.iter().map(|summary| {
        let percent = summary.accuracy_per_class.iter().map(|accuracy| 100.0 * accuracy).collect();
        (summary.method.title().to_owned(), percent)
    });
    let hidden = |k: usize| (first.rows[k] - first.labelled[k]) as f64;
    let counts = vec![
        ("labelled".to_owned(), first.labelled.iter().map(|&count| count as f64).collect()),
        ("unlabelled".to_owned(), (0..first.rows.len()).map(hidden).collect::<Vec<_>>()),
    ];
    let most = first.rows.iter().copied().max().unwrap_or(1) as f64;
    let figures = [
        ("phi.svg", Bars { title: "P(labelled | class)", axis: "phi", series: phi, top, log: false }),
        (
            "accuracy.svg",
            Bars { title: "Test accuracy by class", axis: "%", series: accuracy.collect(), top: 100.0, log: false },
        ),
        ("labels.svg", Bars { title: "Rows by class", axis: "rows", series: counts, top: 2.0 * most, log: true }),
    ];
    let mut written = Vec::new();
    for (name, bars) in figures {
        let path = folder.join(name);
        let svg = bars.svg(&experiment.title).map_err(|what| ReproduceError::BadFile { path: path.clone(), what })?;
        write_text(&path, &svg)?;
        written.push(path);
    }
    Ok(written)
}

impl Bars<'_> {
    fn svg(&self, experiment: &str) -> Result<String, String> {
        let mut svg = String::new();
        {
            let classes = self.series.first().map_or(0, |series| series.1.len());
            let width = (220 + classes * (10 * self.series.len() + 20)).clamp(520, 1600) as u32;
            let root = SVGBackend::with_string(&mut svg, (width, 360)).into_drawing_area();
            let text = |error: DrawingAreaErrorKind<_>| error.to_string();
            root.fill(&WHITE).map_err(text)?;
            let scale = |value: f64| if self.log { value.max(1.0).log10() } else { value };
            let mut chart = ChartBuilder::on(&root)
                .caption(format!("{experiment}: {}", self.title), ("sans-serif", 16))
                .margin(10)
                .x_label_area_size(30)
                .y_label_area_size(55)
                .margin_right(LEGEND)
                .build_cartesian_2d(0.0..classes as f64, 0.0..scale(self.top))
                .map_err(text)?;
            let (log, digits) = (self.log, if self.top > 10.0 { 0 } else { 2 });
            chart
                .configure_mesh()
                .disable_x_mesh()
                .light_line_style(TRANSPARENT)
                .bold_line_style(BLACK.mix(0.15))
                .x_labels(classes.max(1))
                .x_label_formatter(&|_| String::new())
                .y_label_formatter(&|value| {
                    if log { format!("{:.0}", 10f64.powf(*value)) } else { format!("{value:.*}", digits) }
                })
                .y_desc(self.axis)
                .draw()
                .map_err(text)?;
            let bar = 0.8 / self.series.len() as f64;
            for (i, (name, values)) in self.series.iter().enumerate() {
                let colour = COLOURS[i % COLOURS.len()];
                // Beyond eight series the colours come again, lighter.
                let style = if i < COLOURS.len() { colour.filled() } else { colour.mix(0.45).filled() };
                let rectangles = values.iter().enumerate().map(|(k, &value)| {
                    let left = k as f64 + 0.1 + i as f64 * bar;
                    Rectangle::new([(left, 0.0), (left + bar * 0.9, scale(value))], style)
                });
                chart.draw_series(rectangles).map_err(text)?;
                let (x, y) = ((width - LEGEND + 12) as i32, 40 + 18 * i as i32);
                root.draw(&Rectangle::new([(x, y), (x + 10, y + 10)], style)).map_err(text)?;
                let label = TextStyle::from(("sans-serif", 12));
                root.draw_text(name, &label, (x + 16, y - 1)).map_err(text)?;
            }
            let style = TextStyle::from(("sans-serif", 12)).pos(Pos::new(HPos::Center, VPos::Top));
            for k in 0..classes {
                let (x, y) = chart.backend_coord(&(k as f64 + 0.5, 0.0));
                root.draw_text(&k.to_string(), &style, (x, y + 6)).map_err(text)?;
            }
            root.present().map_err(text)?;
        }
        Ok(svg)
    }
}
