//! Class shares and phi per group, such as each hospital, on the page.

use crate::figure::{Cell, Chart, Dot, Figure, Table};
use crate::report::Report;
use crate::table::{cut, p_value};
use mnar::analysis::{ByGroup, GroupFindings};

/// Groups that a figure shows: those with the most rows.
const DRAWN: usize = 20;
/// Classes that a figure tells apart.
const CLASSES: usize = 8;
/// Lines of the table on the page.
const LINES: usize = 400;

/// What the page says about groups.
pub(crate) struct Groups<'a> {
    pub(crate) by: &'a ByGroup,
    groups: &'a [GroupFindings],
    classes: &'a [String],
}

impl Report {
    /// What is said about groups, where a column was named for them.
    pub(crate) fn groups(&self) -> Option<Groups<'_>> {
        let (by, groups) = (self.findings.by.as_ref()?, self.findings.groups.as_deref()?);
        Some(Groups { by, groups, classes: self.classes() })
    }

    /// The figures of groups: their class shares, and their phi.
    pub(crate) fn group_figures(&self) -> Vec<Figure> {
        let Some(groups) = self.groups() else { return Vec::new() };
        let name = cut(&groups.by.column, 40);
        let shares = groups.figure(
            "groups",
            format!("How common is each class, by {name}?"),
            "The estimated share of each class in each group, with 95% intervals where there are some. Differences between groups are real only as far as the test of homogeneity says so.",
            "share",
            |group, k| Some((group.prevalence[k], group.prevalence_ci95.as_ref().map(|all| all[k]))),
            "prevalence",
        );
        let phi = groups.figure(
            "groups-phi",
            format!("How likely is a label, by {name}?"),
            "phi, the share of each class that has a label, in each group, with 95% intervals where there are some.",
            "phi",
            |group, k| Some((group.phi[k]?, group.phi_ci95.as_ref().map(|all| all[k]))),
            "phi",
        );
        [shares, phi].into_iter().filter(|figure| !figure.table.lines.is_empty()).collect()
    }
}

impl Groups<'_> {
    /// Whether the groups have the same class shares, in one sentence.
    pub(crate) fn homogeneity(&self) -> String {
        match &self.by.homogeneity {
            Some(test) => format!(
                "Same class shares in every group: {} (statistic {:.1} on {} degrees of freedom).",
                p_value(test.p_value),
                test.statistic,
                test.df
            ),
            None => "Whether the groups have the same class shares was not tested, since there are no replicates."
                .to_owned(),
        }
    }

    /// How many lines the table leaves out.
    pub(crate) fn left_out(&self) -> usize {
        (self.groups.len() * self.classes.len()).saturating_sub(LINES)
    }

    /// Everything that is known of every group.
    pub(crate) fn table(&self) -> Table {
        let heading = [
            &cut(&self.by.column, 40),
            "rows",
            "labels",
            "class",
            "phi",
            "95% interval",
            "share",
            "95% interval",
            "pooled share",
            "95% interval",
            "rows of the class",
        ];
        let cells =
            self.groups.iter().enumerate().flat_map(|(i, group)| (0..self.classes.len()).map(move |k| (i, group, k)));
        let line = |(i, group, k): (usize, &GroupFindings, usize)| {
            let path = |field: &str| Some(format!("groups.{i}.{field}"));
            let at = |all: &Option<Vec<(f64, f64)>>, field: &str| {
                Cell::interval(all.as_ref().map(|all| all[k]), format!("groups.{i}.{field}.{k}"))
            };
            vec![
                Cell::text(&group.group),
                Cell::count(group.n, path("n")),
                Cell::count(group.n_labelled, path("n_labelled")),
                Cell::text(&self.classes[k]),
                Cell::maybe(group.phi[k], format!("groups.{i}.phi.{k}")),
                at(&group.phi_ci95, "phi_ci95"),
                Cell::number(group.prevalence[k], path(&format!("prevalence.{k}"))),
                at(&group.prevalence_ci95, "prevalence_ci95"),
                Cell::maybe(
                    group.prevalence_pooled.as_ref().map(|pooled| pooled[k]),
                    format!("groups.{i}.prevalence_pooled.{k}"),
                ),
                at(&group.prevalence_pooled_ci95, "prevalence_pooled_ci95"),
                Cell::Number {
                    value: group.totals[k],
                    text: format!("{:.1}", group.totals[k]),
                    path: path(&format!("totals.{k}")),
                },
            ]
        };
        Table { heading: heading.map(str::to_owned).to_vec(), lines: cells.take(LINES).map(line).collect() }
    }

    /// The groups with the most rows, in their own order.
    fn drawn(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.groups.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(self.groups[i].n));
        order.truncate(DRAWN);
        order.sort_unstable();
        order
    }

    fn figure(
        &self,
        id: &'static str,
        title: String,
        about: &str,
        axis: &str,
        value: impl Fn(&GroupFindings, usize) -> Option<(f64, Option<(f64, f64)>)>,
        field: &str,
    ) -> Figure {
        let classes = self.classes.len().min(CLASSES);
        let (mut marks, mut lines) = (Vec::new(), Vec::new());
        for i in self.drawn() {
            let group = &self.groups[i];
            for k in 0..classes {
                let Some((value, interval)) = value(group, k) else { continue };
                let interval = interval.filter(|(low, high)| low.is_finite() && high.is_finite());
                marks.push(Dot { label: group.group.clone(), series: k, value, interval });
                lines.push(vec![
                    Cell::text(&group.group),
                    Cell::text(&self.classes[k]),
                    Cell::number(value, Some(format!("groups.{i}.{field}.{k}"))),
                    Cell::interval(interval, format!("groups.{i}.{field}_ci95.{k}")),
                ]);
            }
        }
        let more = match self.groups.len().saturating_sub(DRAWN) {
            0 => String::new(),
            more => format!(" The {DRAWN} largest groups are drawn; the table has {more} more."),
        };
        let heading = [self.by.column.as_str(), "class", axis, "95% interval"].map(str::to_owned).to_vec();
        Figure {
            id,
            title,
            about: format!("{about}{more}"),
            table: Table { heading, lines },
            chart: Chart::Dots { axis: axis.to_owned(), series: self.classes[..classes].to_vec(), marks },
        }
    }
}
