//! The figures of a report.

use crate::figure::{Bar, Cell, Chart, Dot, Figure, Panel, Point, Rate, Table};
use crate::labelling::{GROUPS, columns_shown, largest};
use crate::report::{Report, Truth};
use crate::table::cut;
use mnar::progress::EpochRecord;

/// The largest number of classes for which a matrix of all pairs is drawn: a larger one cannot be read.
const MATRIX_CLASSES: usize = 30;
/// The largest number of curves that can still be told apart in one chart.
const CURVES: usize = 8;
/// The number of points beyond which a curve is thinned.
const CURVE_POINTS: usize = 120;

impl Report {
    /// All figures for which the report has numbers.
    pub fn figures(&self) -> Vec<Figure> {
        let figures = [
            Some(self.phi_figure()),
            Some(self.shares_figure()),
            self.rates_figure(),
            Some(self.counts_figure()),
            self.calibration_figure(),
            self.accuracy_figure(),
            self.risk_figure(),
            self.phi_by_epoch_figure(),
            self.confusion_figure(),
            self.sensitivity_figure(),
        ];
        let mut figures: Vec<Figure> = figures.into_iter().flatten().collect();
        // After phi and the shares of all rows.
        figures.splice(2..2, self.group_figures());
        figures
    }

    fn phi_figure(&self) -> Figure {
        let mut series = vec!["estimate".to_owned()];
        let interval = |k: usize| {
            self.findings.phi_ci95.as_ref().map(|all| all[k]).filter(|(a, b)| a.is_finite() && b.is_finite())
        };
        let mut marks: Vec<Dot> = self
            .classes()
            .iter()
            .enumerate()
            .map(|(k, label)| Dot {
                label: label.clone(),
                series: 0,
                value: self.findings.phi[k],
                interval: interval(k),
            })
            .collect();
        let mut heading = vec!["class", "labels", "phi", "95% interval"];
        if let Some(truth) = &self.truth {
            series.push("true phi".to_owned());
            let dots = self.classes().iter().zip(truth.phi.iter());
            marks.extend(dots.map(|(label, &value)| Dot { label: label.clone(), series: 1, value, interval: None }));
            heading.push("true phi");
        }
        let lines = self.classes().iter().enumerate().map(|(k, class)| {
            let mut line = vec![
                Cell::text(class),
                Cell::count(self.findings.about.labelled_per_class[k], Some(format!("labelled_per_class.{k}"))),
                Cell::number(self.findings.phi[k], Some(format!("phi.{k}"))),
                Cell::interval(interval(k), format!("phi_ci95.{k}")),
            ];
            line.extend(self.truth.as_ref().map(|truth| Cell::number(truth.phi[k], Some(format!("truth.phi.{k}")))));
            line
        });
        Figure {
            id: "phi",
            title: "How likely is a row of each class to be labelled?".into(),
            about: "phi: the probability that a row of the class has a label, with 95% intervals. If all values are equal, whether a row is labelled says nothing about its class.".into(),
            table: table(&heading, lines),
            chart: Chart::Dots { axis: "phi = P(labelled | class)".into(), series, marks },
        }
    }

    fn shares_figure(&self) -> Figure {
        let labelled =
            |k: usize| self.findings.about.labelled_per_class[k] as f64 / self.findings.about.n_labelled.max(1) as f64;
        let interval = |k: usize| {
            self.findings.prevalence_ci95.as_ref().map(|all| all[k]).filter(|(a, b)| a.is_finite() && b.is_finite())
        };
        let mut series = vec!["share (estimated)".to_owned(), "share of the labels".to_owned()];
        let mut marks = Vec::new();
        for (k, label) in self.classes().iter().enumerate() {
            let estimate =
                Dot { label: label.clone(), series: 0, value: self.findings.prevalence[k], interval: interval(k) };
            marks.extend([estimate, Dot { label: label.clone(), series: 1, value: labelled(k), interval: None }]);
        }
        let mut heading = vec!["class", "share of the labels", "share (estimated)", "95% interval"];
        if let Some(truth) = &self.truth {
            series.push("true share".to_owned());
            heading.push("true share");
            let dots = self.classes().iter().zip(truth.prevalence.iter());
            marks.extend(dots.map(|(label, &value)| Dot { label: label.clone(), series: 2, value, interval: None }));
        }
        let lines = self.classes().iter().enumerate().map(|(k, class)| {
            let mut line = vec![
                Cell::text(class),
                Cell::number(labelled(k), None),
                Cell::number(self.findings.prevalence[k], Some(format!("prevalence.{k}"))),
                Cell::interval(interval(k), format!("prevalence_ci95.{k}")),
            ];
            let of_truth = |truth: &Truth| Cell::number(truth.prevalence[k], Some(format!("truth.prevalence.{k}")));
            line.extend(self.truth.as_ref().map(of_truth));
            line
        });
        Figure {
            id: "shares",
            title: "How common is each class among all rows?".into(),
            about: "Estimated shares with their 95% intervals, and the share of each class among the labels.".into(),
            table: table(&heading, lines),
            chart: Chart::Dots { axis: "share".into(), series, marks },
        }
    }

    fn counts_figure(&self) -> Figure {
        let estimated = |k: usize| {
            (self.findings.prevalence[k] * self.findings.about.n as f64)
                .max(self.findings.about.labelled_per_class[k] as f64)
        };
        let mut marks = Vec::new();
        for (k, label) in self.classes().iter().enumerate() {
            marks.push(Bar {
                label: label.clone(),
                series: 0,
                value: self.findings.about.labelled_per_class[k] as f64,
            });
            marks.push(Bar { label: label.clone(), series: 1, value: estimated(k) });
        }
        let lines = self.classes().iter().enumerate().map(|(k, class)| {
            vec![
                Cell::text(class),
                Cell::count(self.findings.about.labelled_per_class[k], Some(format!("labelled_per_class.{k}"))),
                Cell::count(estimated(k).round() as usize, None),
            ]
        });
        Figure {
            id: "counts",
            title: "Labels and rows of each class".into(),
            about: "The number of labels and the estimated number of rows of each class.".into(),
            table: table(&["class", "labels", "rows (estimated)"], lines),
            chart: Chart::Bars {
                axis: "rows".into(),
                log: false,
                series: vec!["labels".into(), "rows (estimated)".into()],
                marks,
            },
        }
    }

    fn rates_figure(&self) -> Option<Figure> {
        let of = self.findings.labelling.as_ref()?;
        let shown = columns_shown(of);
        let overall = self.findings.about.n_labelled as f64 / self.findings.about.n.max(1) as f64;
        let panel = |column: &crate::labelling::ColumnRates<'_>| Panel {
            name: match column.rates.len().saturating_sub(GROUPS) {
                0 => column.column.to_owned(),
                more => format!("{} (and {more} smaller groups)", cut(column.column, 30)),
            },
            bars: largest(column.rates, GROUPS)
                .into_iter()
                .map(|i| &column.rates[i])
                .map(|rate| Rate { label: rate.group.clone(), rows: rate.rows, value: rate.rate })
                .collect(),
        };
        let lines = shown.iter().flat_map(|column| {
            column.rates.iter().enumerate().map(move |(i, rate)| {
                vec![
                    Cell::text(column.column),
                    Cell::text(&rate.group),
                    Cell::count(rate.rows, Some(format!("{}.{i}.rows", column.path))),
                    Cell::number(rate.rate, Some(format!("{}.{i}.rate", column.path))),
                ]
            })
        });
        let which = match of.given.as_slice() {
            [] if shown.len() < of.class_enough.as_ref().map_or(0, |check| check.columns.len()) => {
                "These are the columns that labelling relates to most beyond the class. "
            }
            _ => "",
        };
        let figure = Figure {
            id: "rates",
            title: "Labelling rate by column".into(),
            about: format!(
                "The share of rows that have a label, group by group; the line is the rate of all rows. {which}Rates may differ because classes are unevenly spread over the groups: the checks tell that apart."
            ),
            table: table(&["column", "group", "rows", "labelling rate"], lines),
            chart: Chart::Rates {
                axis: "share of the rows that are labelled".into(),
                overall,
                panels: shown.iter().map(panel).collect(),
            },
        };
        (!figure.table.lines.is_empty()).then_some(figure)
    }

    fn calibration_figure(&self) -> Option<Figure> {
        let classifier = self.findings.classifier.as_ref()?;
        let (before, after) = (&classifier.reliability_before, &classifier.reliability_after);
        let curves: &[_] = match self.findings.calibration {
            _ if before.is_empty() => return None,
            Some(_) => &[("before calibration", "before", before), ("after calibration", "after", after)],
            None => &[("classifier", "before", before)],
        };
        let mut points = Vec::new();
        let mut lines = Vec::new();
        for (series, (name, side, bins)) in curves.iter().enumerate() {
            for (i, bin) in bins.iter().enumerate() {
                points.push(Point { series, x: bin.confidence, y: bin.accuracy });
                let path = format!("classifier.reliability_{side}.{i}");
                lines.push(vec![
                    Cell::text(*name),
                    Cell::count(bin.rows, Some(format!("{path}.rows"))),
                    Cell::number(bin.confidence, Some(format!("{path}.confidence"))),
                    Cell::number(bin.accuracy, Some(format!("{path}.accuracy"))),
                ]);
            }
        }
        Some(Figure {
            id: "calibration",
            title: "Is the classifier's confidence right?".into(),
            about: "Labelled rows, grouped by the confidence of a classifier that has not seen them. On the diagonal, predictions with 80% confidence are right 80% of the time; the estimate of phi relies on that.".into(),
            table: table(&["classifier", "rows", "mean confidence", "accuracy"], lines.into_iter()),
            chart: Chart::Lines {
                x: "confidence".into(),
                y: "accuracy".into(),
                log_x: false,
                unit_square: true,
                series: curves.iter().map(|(name, ..)| (*name).to_owned()).collect(),
                points,
                marked: Vec::new(),
            },
        })
    }

    fn accuracy_figure(&self) -> Option<Figure> {
        let mut models = self.models();
        models.retain(|(_, _, model)| model.held_out_accuracy_per_class.iter().any(Option::is_some));
        if models.is_empty() {
            return None;
        }
        let mut marks = Vec::new();
        for (k, label) in self.classes().iter().enumerate() {
            for (series, (_, _, model)) in models.iter().enumerate() {
                let value = model.held_out_accuracy_per_class[k];
                marks.extend(value.map(|value| Bar { label: label.clone(), series, value }));
            }
        }
        let heading: Vec<&str> = std::iter::once("class").chain(models.iter().map(|(name, ..)| *name)).collect();
        let overall = models.iter().map(|(_, path, model)| {
            Cell::maybe(model.held_out.map(|held_out| held_out.accuracy), format!("{path}.held_out.accuracy"))
        });
        let first: Vec<Cell> = std::iter::once(Cell::text("all, weighted by 1/phi")).chain(overall).collect();
        let by_class = self.classes().iter().enumerate().map(|(k, class)| {
            let cells = models.iter().map(|(_, path, model)| {
                Cell::maybe(model.held_out_accuracy_per_class[k], format!("{path}.held_out_accuracy_per_class.{k}"))
            });
            std::iter::once(Cell::text(class)).chain(cells).collect()
        });
        let rows = models.iter().filter_map(|(_, _, model)| model.held_out).map(|held_out| held_out.rows).max();
        let hidden = if self.truth.is_some() { "rows whose labels were hidden" } else { "held-out labelled rows" };
        Some(Figure {
            id: "accuracy",
            title: "Accuracy by class, biased and debiased".into(),
            about: format!(
                "Accuracy on {} {hidden}, class by class, of the model trained on the labels as they are and of the debiased model.",
                rows.unwrap_or(0)
            ),
            table: table(&heading, std::iter::once(first).chain(by_class)),
            chart: Chart::Bars {
                axis: "accuracy".into(),
                log: false,
                series: models.iter().map(|(name, ..)| (*name).to_owned()).collect(),
                marks,
            },
        })
    }

    fn risk_figure(&self) -> Option<Figure> {
        let curves: Vec<(&str, Vec<(f64, f64)>)> = self
            .models()
            .into_iter()
            .filter_map(|(name, _, model)| {
                let risk = |epoch: &EpochRecord| Some((epoch.epoch as f64, epoch.validation_risk?));
                let curve: Vec<(f64, f64)> = model.history.iter().filter_map(risk).collect();
                (curve.len() > 1).then_some((name, curve))
            })
            .collect();
        let (points, lines) = curves_of(&curves);
        let mut marked = Vec::new();
        for (series, (name, curve)) in curves.iter().enumerate() {
            let chosen = self.models().iter().find(|(model, ..)| model == name).map(|(_, _, model)| model.chosen_epoch);
            let at = curve.iter().find(|(epoch, _)| Some(*epoch as usize) == chosen);
            marked.extend(at.map(|&(x, y)| Point { series, x, y }));
        }
        (!curves.is_empty()).then(|| Figure {
            id: "training",
            title: "Training".into(),
            about: "Log-loss on held-out labelled rows after every epoch, weighted by 1/phi to stand for the population. Each model keeps the weights of its best epoch, which is ringed.".into(),
            table: table(&["model", "epoch", "held-out risk"], lines.into_iter()),
            chart: Chart::Lines {
                x: "epoch".into(),
                y: "held-out risk".into(),
                log_x: false,
                unit_square: false,
                series: curves.iter().map(|(name, _)| (*name).to_owned()).collect(),
                points,
                marked,
            },
        })
    }

    fn phi_by_epoch_figure(&self) -> Option<Figure> {
        let history = &self.training.as_ref()?.debiased.history;
        let moved = |k: usize| {
            let values = history.iter().filter_map(|epoch| epoch.phi.get(k));
            let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), &phi| (low.min(phi), high.max(phi)));
            high - low
        };
        let mut shown: Vec<usize> = (0..self.classes().len()).filter(|&k| moved(k) > 1e-9).collect();
        shown.sort_by(|&a, &b| moved(b).total_cmp(&moved(a)));
        shown.truncate(CURVES);
        shown.sort_unstable();
        let curves: Vec<(&str, Vec<(f64, f64)>)> = shown
            .iter()
            .map(|&k| {
                let of = |epoch: &EpochRecord| Some((epoch.epoch as f64, *epoch.phi.get(k)?));
                (self.classes()[k].as_str(), history.iter().filter_map(of).collect())
            })
            .collect();
        let (points, lines) = curves_of(&curves);
        (!curves.is_empty()).then(|| Figure {
            id: "phi-by-epoch",
            title: "phi during training".into(),
            about:
                "The mechanism behind the training weights after every epoch, for the classes whose phi changed most."
                    .into(),
            table: table(&["class", "epoch", "phi"], lines.into_iter()),
            chart: Chart::Lines {
                x: "epoch".into(),
                y: "phi".into(),
                log_x: false,
                unit_square: false,
                series: curves.iter().map(|(name, _)| (*name).to_owned()).collect(),
                points,
                marked: Vec::new(),
            },
        })
    }

    fn confusion_figure(&self) -> Option<Figure> {
        let confusion = &self.findings.classifier.as_ref()?.confusion;
        let confusion = Some(confusion).filter(|rows| rows.len() <= MATRIX_CLASSES)?;
        let share = |row: &Vec<usize>| -> Vec<f64> {
            let sum = row.iter().sum::<usize>().max(1) as f64;
            row.iter().map(|&count| count as f64 / sum).collect()
        };
        let heading: Vec<&str> = std::iter::once("class").chain(self.classes().iter().map(String::as_str)).collect();
        let lines = self.classes().iter().zip(confusion).enumerate().map(|(k, (class, row))| {
            let cells = row
                .iter()
                .enumerate()
                .map(|(j, &count)| Cell::count(count, Some(format!("classifier.confusion.{k}.{j}"))));
            std::iter::once(Cell::text(class)).chain(cells).collect()
        });
        Some(Figure {
            id: "confusion",
            title: "Which classes are confused?".into(),
            about: "Labelled rows of each class (down) by the class that a classifier that has not seen them predicts (across), as shares of the class.".into(),
            table: table(&heading, lines),
            chart: Chart::Heat {
                x: "predicted".into(),
                y: "class".into(),
                labels: self.classes().to_vec(),
                cells: confusion.iter().map(share).collect(),
            },
        })
    }

    fn sensitivity_figure(&self) -> Option<Figure> {
        let curve = self.findings.sensitivity.as_ref()?;
        let first = curve.first()?;
        let mut order: Vec<usize> = (0..self.classes().len()).collect();
        order.sort_by(|&a, &b| first.prevalence[b].total_cmp(&first.prevalence[a]));
        order.truncate(CURVES);
        order.sort_unstable();
        let mut points = Vec::new();
        let mut lines = Vec::new();
        for (series, &k) in order.iter().enumerate() {
            for (i, point) in curve.iter().enumerate() {
                points.push(Point { series, x: point.odds_factor, y: point.prevalence[k] });
                lines.push(vec![
                    Cell::text(&self.classes()[k]),
                    Cell::number(point.odds_factor, Some(format!("sensitivity.{i}.odds_factor"))),
                    Cell::number(point.phi[k], Some(format!("sensitivity.{i}.phi.{k}"))),
                    Cell::number(point.prevalence[k], Some(format!("sensitivity.{i}.prevalence.{k}"))),
                ]);
            }
        }
        let only = if self.findings.mechanism.is_some() { "and the given columns" } else { "alone" };
        let refined = self.findings.refinement.as_ref().is_some_and(|refinement| refinement.agrees);
        let whose = if refined { " The curves are those of the cross-fitted classifier." } else { "" };
        Some(Figure {
            id: "sensitivity",
            title: "What if labels also depend on how easy a row is?".into(),
            about: format!(
                "Class shares if the odds of a label were this many times larger for the easiest row of a class than for the hardest. At 1, labels depend on the class {only}. If the curves are flat, the estimate does not depend on that assumption.{whose}"
            ),
            table: table(&["class", "odds factor", "phi", "share"], lines.into_iter()),
            chart: Chart::Lines {
                x: "odds of a label, easiest row over hardest (log scale)".into(),
                y: "share".into(),
                log_x: true,
                unit_square: false,
                series: order.iter().map(|&k| self.classes()[k].clone()).collect(),
                points,
                marked: Vec::new(),
            },
        })
    }
}

fn table(heading: &[&str], lines: impl Iterator<Item = Vec<Cell>>) -> Table {
    Table { heading: heading.iter().map(|text| (*text).to_owned()).collect(), lines: lines.collect() }
}

/// The points of curves, thinned if there are many, and the same numbers as lines of a table.
fn curves_of(curves: &[(&str, Vec<(f64, f64)>)]) -> (Vec<Point>, Vec<Vec<Cell>>) {
    let (mut points, mut lines) = (Vec::new(), Vec::new());
    for (series, (name, curve)) in curves.iter().enumerate() {
        let every = curve.len().div_ceil(CURVE_POINTS).max(1);
        let last = curve.len().saturating_sub(1);
        for (_, &(x, y)) in curve.iter().enumerate().filter(|(i, _)| i % every == 0 || *i == last) {
            points.push(Point { series, x, y });
            lines.push(vec![Cell::text(*name), Cell::count(x as usize, None), Cell::number(y, None)]);
        }
    }
    (points, lines)
}
