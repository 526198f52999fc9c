//! Figures for a paper: SVG on white, in colours that colour-blind readers can tell apart and printers can reproduce.

use crate::error::ReportError;
use crate::figure::{Bar, Chart, Dot, Figure, Panel, Point, Rate};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::ops::Range;

/// The palette of Okabe and Ito.
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
const WIDTH: u32 = 760;
/// Width in pixels of the class names on the left.
const NAMES: u32 = 170;
/// Height in pixels of the title and one line of legend.
const HEAD: u32 = 58;
/// Height in pixels of one line of the legend.
const LEGEND_LINE: u32 = 20;
const FONT: &str = "sans-serif";

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), String>;

impl Figure {
    /// The figure as SVG.
    pub fn svg(&self) -> Result<String, ReportError> {
        let mut svg = String::new();
        let drawn = {
            let area = SVGBackend::with_string(&mut svg, (WIDTH, self.height())).into_drawing_area();
            self.draw(&area)
        };
        drawn.map_err(|why| ReportError::Drawing { figure: self.id.to_owned(), why })?;
        Ok(svg)
    }

    /// Height in pixels.
    pub(crate) fn height(&self) -> u32 {
        let rows = match &self.chart {
            Chart::Dots { series, marks, .. } => 24.max(12 * series.len() + 10) * marks.len() / series.len().max(1),
            Chart::Bars { series, marks, .. } => (12 * series.len() + 10) * marks.len() / series.len().max(1),
            Chart::Lines { .. } => 320,
            Chart::Heat { labels, .. } => 28 * labels.len() + 20,
            Chart::Rates { panels, .. } => 22 * panels.iter().map(|panel| panel.bars.len() + 1).sum::<usize>(),
        };
        let head = match &self.chart {
            Chart::Dots { series, .. } | Chart::Bars { series, .. } | Chart::Lines { series, .. } => head(series),
            Chart::Heat { .. } | Chart::Rates { .. } => HEAD,
        };
        head + 60 + u32::try_from(rows).unwrap_or(10_000).clamp(60, 10_000)
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        area.fill(&WHITE).map_err(text)?;
        let title = TextStyle::from((FONT, 17)).color(&BLACK);
        area.draw_text(&self.title, &title, (12, 10)).map_err(text)?;
        match &self.chart {
            Chart::Dots { axis, series, marks } => {
                legend(area, series)?;
                dots(area, axis, series, marks)
            }
            Chart::Bars { axis, log, series, marks } => {
                legend(area, series)?;
                bars(area, axis, *log, series, marks)
            }
            Chart::Lines { x, y, log_x, unit_square, series, points, marked } => {
                legend(area, series)?;
                lines(area, (x, y), (*log_x, *unit_square), series, (points, marked))
            }
            Chart::Heat { x, labels, cells, .. } => heat(area, x, labels, cells),
            Chart::Rates { axis, overall, panels } => rates(area, axis, *overall, panels),
        }
    }
}

fn text<E: std::fmt::Display>(error: E) -> String {
    error.to_string()
}

/// After eight series the colours repeat, lighter.
fn colour(series: usize) -> RGBAColor {
    COLOURS[series % COLOURS.len()].mix(if series < COLOURS.len() { 1.0 } else { 0.45 })
}

/// The name without control characters, which XML forbids, cut to a length.
fn short(name: &str, length: usize) -> String {
    crate::table::cut(name, length)
}

/// The names of the series with their positions: side by side, on as many lines as they need.
fn legend_entries(series: &[String]) -> Vec<(String, i32, u32)> {
    let (mut x, mut line) = (14, 0);
    let mut entries = Vec::new();
    for name in series.iter().filter(|_| series.len() > 1) {
        let name = short(name, 22);
        let width = 26 + 7 * name.chars().count() as i32;
        if x + width > WIDTH as i32 {
            (x, line) = (14, line + 1);
        }
        entries.push((name, x, line));
        x += width;
    }
    entries
}

/// Height in pixels of the title and the legend.
fn head(series: &[String]) -> u32 {
    HEAD + LEGEND_LINE * legend_entries(series).last().map_or(0, |(_, _, line)| *line)
}

fn legend(area: &Area<'_>, series: &[String]) -> Drawn {
    for (i, (name, x, line)) in legend_entries(series).into_iter().enumerate() {
        let y = 42 + (LEGEND_LINE * line) as i32;
        area.draw(&Circle::new((x, y), 5, colour(i).filled())).map_err(text)?;
        area.draw_text(&name, &TextStyle::from((FONT, 13)).color(&BLACK), (x + 10, y - 7)).map_err(text)?;
    }
    Ok(())
}

/// Classes from top to bottom, in order of appearance.
fn names<'a>(labels: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for label in labels {
        if names.last() != Some(&label.as_str()) && !names.contains(&label.as_str()) {
            names.push(label);
        }
    }
    names
}

/// A value within the range of an axis. Far outside of it, the position in pixels would overflow.
fn within(value: f64, range: &Range<f64>) -> f64 {
    value.max(range.start).min(range.end)
}

/// A chart with classes on the left axis and a value to the right; `draw` gets the row of a class.
macro_rules! by_class {
    ($area:expr, $head:expr, $names:expr, $axis:expr, $range:expr, $log:expr, |$chart:ident| $draw:block) => {{
        let names: &[&str] = $names;
        let rows = names.len() as f64;
        let log: bool = $log;
        let mut $chart = ChartBuilder::on($area)
            .margin_top($head)
            .margin_right(24)
            .margin_bottom(6)
            .x_label_area_size(44)
            .y_label_area_size(NAMES)
            .build_cartesian_2d($range, 0.0..rows)
            .map_err(text)?;
        $chart
            .configure_mesh()
            .disable_y_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.15))
            .y_labels(0)
            .x_desc($axis)
            .x_label_formatter(&|value| if log { format!("{:.0}", 10f64.powf(*value)) } else { format!("{value:.2}") })
            .draw()
            .map_err(text)?;
        let style = TextStyle::from((FONT, 13)).color(&BLACK).pos(Pos::new(HPos::Right, VPos::Center));
        let left = $chart.plotting_area().get_pixel_range().0.start - 8;
        for (k, name) in names.iter().enumerate() {
            let (_, y) = $chart.backend_coord(&($chart.x_range().start, rows - k as f64 - 0.5));
            $area.draw_text(&short(name, 22), &style, (left, y)).map_err(text)?;
        }
        $draw
    }};
}

fn dots(area: &Area<'_>, axis: &str, series: &[String], marks: &[Dot]) -> Drawn {
    let names = names(marks.iter().map(|mark| &mark.label));
    let top = marks.iter().map(|mark| mark.interval.map_or(mark.value, |(_, high)| high.max(mark.value)));
    let range = 0.0..top.fold(1e-6, f64::max) * 1.05;
    by_class!(area, head(series), &names, axis, range.clone(), false, |chart| {
        for mark in marks {
            let place = names.iter().position(|name| *name == mark.label).unwrap_or(0) as f64;
            let lane = (mark.series as f64 + 0.5) / series.len() as f64;
            let y = names.len() as f64 - place - 0.15 - 0.7 * lane;
            let style = colour(mark.series);
            if let Some((low, high)) = mark.interval {
                let (low, high) = (within(low, &range), within(high, &range));
                chart
                    .draw_series(std::iter::once(PathElement::new([(low, y), (high, y)], style.stroke_width(2))))
                    .map_err(text)?;
            }
            chart
                .draw_series(std::iter::once(Circle::new((within(mark.value, &range), y), 4, style.filled())))
                .map_err(text)?;
        }
        Ok(())
    })
}

fn bars(area: &Area<'_>, axis: &str, log: bool, series: &[String], marks: &[Bar]) -> Drawn {
    let names = names(marks.iter().map(|mark| &mark.label));
    // A log scale has no 0: bars start at 0.5, so that a single row is visible.
    let scale = |value: f64| if log { value.max(0.5).log10() } else { value };
    let top = scale(marks.iter().map(|mark| mark.value).fold(if log { 1.0 } else { 1e-6 }, f64::max)) * 1.03;
    let range = scale(0.0)..top;
    by_class!(area, head(series), &names, axis, range.clone(), log, |chart| {
        for mark in marks {
            let place = names.iter().position(|name| *name == mark.label).unwrap_or(0) as f64;
            let height = 0.8 / series.len() as f64;
            let y = names.len() as f64 - place - 0.1 - mark.series as f64 * height;
            let corners = [(range.start, y), (within(scale(mark.value), &range), y - height * 0.92)];
            let bar = Rectangle::new(corners, colour(mark.series).filled());
            chart.draw_series(std::iter::once(bar)).map_err(text)?;
        }
        Ok(())
    })
}

/// One line per panel with its name, and one bar below it for each of its groups.
fn rates(area: &Area<'_>, axis: &str, overall: f64, panels: &[Panel]) -> Drawn {
    let entries: Vec<(&Panel, Option<&Rate>)> = panels
        .iter()
        .flat_map(|panel| std::iter::once((panel, None)).chain(panel.bars.iter().map(move |bar| (panel, Some(bar)))))
        .collect();
    let names: Vec<&str> = entries.iter().map(|(_, bar)| bar.map_or("", |bar| bar.label.as_str())).collect();
    by_class!(area, HEAD, &names, axis, 0.0..1.0, false, |chart| {
        let rows = entries.len() as f64;
        for (i, (panel, bar)) in entries.iter().enumerate() {
            let top = rows - i as f64;
            let Some(bar) = bar else {
                let (left, y) = chart.backend_coord(&(0.0, top - 0.5));
                let style = TextStyle::from((FONT, 13, FontStyle::Bold)).color(&BLACK);
                let style = style.pos(Pos::new(HPos::Left, VPos::Center));
                area.draw_text(&short(&panel.name, 60), &style, (left + 4, y)).map_err(text)?;
                continue;
            };
            let corners = [(0.0, top - 0.12), (within(bar.value, &(0.0..1.0)), top - 0.88)];
            chart.draw_series(std::iter::once(Rectangle::new(corners, colour(0).filled()))).map_err(text)?;
        }
        let overall = within(overall, &(0.0..1.0));
        let line = PathElement::new([(overall, 0.0), (overall, rows)], BLACK.mix(0.7).stroke_width(1));
        chart.draw_series(std::iter::once(line)).map_err(text)?;
        Ok(())
    })
}

fn lines(
    area: &Area<'_>,
    (x, y): (&str, &str),
    (log_x, unit_square): (bool, bool),
    series: &[String],
    (points, marked): (&[Point], &[Point]),
) -> Drawn {
    let scale = |value: f64| if log_x { value.log10() } else { value };
    let range = |values: &mut dyn Iterator<Item = f64>| {
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let room = ((high - low) * 0.05).max(1e-9);
        if unit_square { 0.0..1.0 } else { low - room..high + room }
    };
    let (to_right, upwards) =
        (range(&mut points.iter().map(|point| scale(point.x))), range(&mut points.iter().map(|point| point.y)));
    let place = |point: &Point| (within(scale(point.x), &to_right), within(point.y, &upwards));
    let mut chart = ChartBuilder::on(area)
        .margin_top(head(series))
        .margin_right(24)
        .margin_bottom(6)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(to_right.clone(), upwards.clone())
        .map_err(text)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.15))
        .x_desc(x)
        .y_desc(y)
        .x_label_formatter(&|value| if log_x { format!("{:.2}", 10f64.powf(*value)) } else { format!("{value:.2}") })
        .y_label_formatter(&|value| format!("{value:.3}"))
        .draw()
        .map_err(text)?;
    if unit_square {
        chart.draw_series(LineSeries::new([(0.0, 0.0), (1.0, 1.0)], BLACK.mix(0.5))).map_err(text)?;
    }
    for i in 0..series.len() {
        let of = points.iter().filter(|point| point.series == i).map(place);
        chart.draw_series(LineSeries::new(of, colour(i).stroke_width(2))).map_err(text)?;
    }
    for point in marked {
        let ring = Circle::new(place(point), 5, colour(point.series).stroke_width(2));
        chart.draw_series(std::iter::once(ring)).map_err(text)?;
    }
    Ok(())
}

fn heat(area: &Area<'_>, across: &str, labels: &[String], cells: &[Vec<f64>]) -> Drawn {
    let names: Vec<&str> = labels.iter().map(String::as_str).collect();
    let (rows, columns) = (labels.len() as f64, labels.len());
    let mut chart = ChartBuilder::on(area)
        .margin_top(HEAD)
        .margin_right(24)
        .margin_bottom(30)
        .y_label_area_size(NAMES)
        .build_cartesian_2d(0.0..columns as f64, 0.0..rows)
        .map_err(text)?;
    let side = TextStyle::from((FONT, 13)).color(&BLACK);
    let letters = (76 / columns.max(1)).max(2);
    for (k, name) in names.iter().enumerate() {
        let (left, y) = chart.backend_coord(&(0.0, rows - k as f64 - 0.5));
        let style = side.clone().pos(Pos::new(HPos::Right, VPos::Center));
        area.draw_text(&short(name, 22), &style, (left - 8, y)).map_err(text)?;
        let (x, top) = chart.backend_coord(&(k as f64 + 0.5, rows));
        let style = side.clone().pos(Pos::new(HPos::Center, VPos::Bottom));
        area.draw_text(&short(name, letters), &style, (x, top - 4)).map_err(text)?;
    }
    for (i, row) in cells.iter().enumerate() {
        for (j, &value) in row.iter().enumerate() {
            let (x, y) = (j as f64, rows - i as f64);
            let cell = Rectangle::new([(x, y), (x + 1.0, y - 1.0)], COLOURS[0].mix(value.clamp(0.02, 1.0)).filled());
            chart.draw_series(std::iter::once(cell)).map_err(text)?;
            if columns <= 15 && value >= 0.005 {
                let (x, y) = chart.backend_coord(&(x + 0.5, y - 0.5));
                let ink = if value > 0.6 { &WHITE } else { &BLACK };
                let style = TextStyle::from((FONT, 12)).color(ink).pos(Pos::new(HPos::Center, VPos::Center));
                area.draw_text(&format!("{:.0}%", 100.0 * value), &style, (x, y)).map_err(text)?;
            }
        }
    }
    let (middle, bottom) = chart.backend_coord(&(columns as f64 / 2.0, 0.0));
    let style = side.pos(Pos::new(HPos::Center, VPos::Top));
    area.draw_text(across, &style, (middle, bottom + 8)).map_err(text)?;
    Ok(())
}
