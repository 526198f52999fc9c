//! What decided who got labelled: the questions behind the verdict, the labelling rates by column, and both as text.

use crate::figure::{Cell, Table};
use crate::table::{TextTable, cut, interval, number, p_value, printable};
use mnar::analysis::{
    About, ColumnCheck, ColumnEffect, ColumnsCheck, Findings, Labelling, LabellingRate, Verdict, VerdictKind,
};
use mnar::mechanism::Reference;
use mnar::test::TestResult;

/// The number of groups of a column that a text or a figure shows: those with the most rows.
pub(crate) const GROUPS: usize = 8;
/// The number of columns that are named or drawn where none is given.
pub(crate) const COLUMNS: usize = 6;
/// The number of letters of a name in a heading.
const NAME: usize = 24;

/// Stands right above numbers that rest on a mechanism in doubt.
pub(crate) const DOUBTFUL: &str = "The numbers below assume a mechanism that the data contradict or cannot identify.";

/// Whether the estimate rests on a mechanism that is in doubt; with an audit it rests on none.
pub(crate) fn in_doubt(found: &Findings) -> bool {
    found.audit.is_none() && found.verdict.as_ref().is_some_and(|verdict| verdict.kind == VerdictKind::Unclear)
}

/// Names for a sentence, in backticks; the first ones where there are many.
pub(crate) fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<String> = names.map(|name| format!("`{}`", cut(name, 2 * NAME))).collect();
    match all.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] if all.len() <= COLUMNS => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} more", all[..COLUMNS].join(", "), all.len() - COLUMNS),
    }
}

/// A question about who gets labelled, and its answer.
pub(crate) struct Question {
    pub(crate) asked: String,
    pub(crate) answer: String,
    /// The p-value and its path in the JSON, where the question was asked.
    pub(crate) p_value: Option<(f64, &'static str)>,
    /// What the p-value comes from.
    pub(crate) by: String,
}

/// The three questions: is it chance, is the class enough, and does the class matter beyond the columns?
pub(crate) fn questions(of: &Labelling) -> Vec<Question> {
    let mut all = vec![Question {
        asked: "Is it chance?".into(),
        answer: match of.chance.p_value <= of.level {
            true => "Rejected: labels are not missing completely at random".into(),
            false => "Not rejected".into(),
        },
        p_value: Some((of.chance.p_value, "labelling.chance.p_value")),
        by: test_about(&of.chance),
    }];
    let unasked = |asked: &str, answer: &str| Question {
        asked: asked.into(),
        answer: answer.into(),
        p_value: None,
        by: String::new(),
    };
    all.push(match &of.class_enough {
        Some(check) => enough("Is the class enough?".into(), check, of, "labelling.class_enough.p_value"),
        None => unasked("Is the class enough?", "Not checked: no columns were given"),
    });
    let given = quoted(of.given.iter().map(String::as_str));
    if let Some(check) = &of.class_and_columns_enough {
        let asked = format!("Are the class and {given} enough?");
        all.push(enough(asked, check, of, "labelling.class_and_columns_enough.p_value"));
    }
    all.push(match &of.class_beyond_columns {
        Some(test) => Question {
            asked: format!("Does the class matter beyond {given}?"),
            answer: if test.p_value <= of.level { "Yes".into() } else { "No sign of it".into() },
            p_value: Some((test.p_value, "labelling.class_beyond_columns.p_value")),
            by: test_about(test),
        },
        None if of.given.is_empty() => {
            unasked("Does the class matter beyond the columns?", "Not asked: the mechanism depends on no columns")
        }
        None => unasked(&format!("Does the class matter beyond {given}?"), "The data cannot tell"),
    });
    all
}

fn enough(asked: String, check: &ColumnsCheck, of: &Labelling, path: &'static str) -> Question {
    let found: Vec<&str> = of.found_in(check).into_iter().map(|column| column.column.as_str()).collect();
    let p_values = match check.columns.len() {
        0 => "one p-value".to_owned(),
        columns => format!("smallest of {} p-values, corrected by Holm's method", columns + 1),
    };
    Question {
        asked,
        answer: match found.is_empty() {
            true if check.columns.is_empty() => {
                "No sign of more in how sure the classifier is; there are no columns to look at".into()
            }
            true => {
                format!("Nothing else was found, in {} or in how sure the classifier is", columns(check.columns.len()))
            }
            false => format!("No: labelling also goes with {}", quoted(found.into_iter())),
        },
        p_value: Some((check.p_value, path)),
        by: format!(
            "{p_values}; scores against {}",
            match check.reference {
                Reference::Refit => "replicates that refit the classifier",
                Reference::Orthogonal => "their variance at the actual labels",
            }
        ),
    }
}

/// "1 column", "12 columns".
pub(crate) fn columns(count: usize) -> String {
    format!("{count} column{}", if count == 1 { "" } else { "s" })
}

fn test_about(test: &TestResult) -> String {
    match test.draws {
        0 => test.test.to_string(),
        draws => format!("{}, {draws} draws", test.test),
    }
}

/// The labelling rates along one column, and their path in the JSON.
pub(crate) struct ColumnRates<'a> {
    pub(crate) column: &'a str,
    pub(crate) path: String,
    pub(crate) rates: &'a [LabellingRate],
}

/// The columns that the mechanism depends on and those that a check finds beyond them; without the former, those that
/// relate to labelling most.
pub(crate) fn columns_shown(of: &Labelling) -> Vec<ColumnRates<'_>> {
    let mut shown: Vec<ColumnRates<'_>> = of
        .effects
        .iter()
        .enumerate()
        .filter(|(_, effect)| !effect.rates.is_empty())
        .map(|(i, effect)| ColumnRates {
            column: &effect.column,
            path: format!("labelling.effects.{i}.rates"),
            rates: &effect.rates,
        })
        .collect();
    let (check, path) = match of.given.is_empty() {
        true => (of.class_enough.as_ref(), "class_enough"),
        false => (of.class_and_columns_enough.as_ref(), "class_and_columns_enough"),
    };
    let others = check
        .iter()
        .flat_map(|check| check.columns.iter().enumerate())
        .filter(|(_, column)| !column.rates.is_empty() && (of.given.is_empty() || column.p_holm <= of.level));
    let room = COLUMNS.saturating_sub(shown.len());
    shown.extend(others.take(room).map(|(i, column)| ColumnRates {
        column: &column.column,
        path: format!("labelling.{path}.columns.{i}.rates"),
        rates: &column.rates,
    }));
    shown
}

/// The positions of the groups with the most rows, in their own order.
pub(crate) fn largest(rates: &[LabellingRate], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rates.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(rates[i].rows));
    order.truncate(count);
    order.sort_unstable();
    order
}

/// An odds ratio: two decimals where they are enough.
pub(crate) fn odds(value: f64) -> String {
    match value {
        value if (0.095..1e4).contains(&value) => format!("{value:.2}"),
        value if (0.01..0.095).contains(&value) => format!("{value:.3}"),
        value => number(value),
    }
}

fn odds_interval((low, high): (f64, f64)) -> String {
    if low.is_finite() && high.is_finite() { format!("{}–{}", odds(low), odds(high)) } else { "-".to_owned() }
}

/// A number with its path, or a dash where the JSON has none.
fn finite(value: f64, text: String, path: String) -> Cell {
    match value.is_finite() {
        true => Cell::Number { value, text, path: Some(path) },
        false => Cell::text("–"),
    }
}

/// The odds ratios of the columns as a table.
pub(crate) fn odds_table(of: &Labelling) -> Option<Table> {
    let mut lines = Vec::new();
    for (i, effect) in of.effects.iter().enumerate() {
        for (j, term) in effect.terms.iter().enumerate() {
            let path = format!("labelling.effects.{i}.terms.{j}");
            lines.push(vec![
                Cell::text(&effect.column),
                Cell::text(&term.term),
                Cell::text(&effect.compared_with),
                finite(term.odds_ratio, odds(term.odds_ratio), format!("{path}.odds_ratio")),
                Cell::interval(Some(term.ci95), format!("{path}.ci95")),
            ]);
        }
    }
    let heading = ["column", "group", "compared with", "odds ratio", "95% interval"].map(str::to_owned).to_vec();
    (!lines.is_empty()).then_some(Table { heading, lines })
}

/// The class shares with class and columns, and with the class alone, as a table.
pub(crate) fn shares_table(found: &Findings) -> Option<Table> {
    let alone = found.labelling.as_ref()?.class_only.as_ref()?;
    let line = |(k, class): (usize, &String)| {
        vec![
            Cell::text(class),
            Cell::number(found.prevalence[k], Some(format!("prevalence.{k}"))),
            Cell::interval(found.prevalence_ci95.as_ref().map(|all| all[k]), format!("prevalence_ci95.{k}")),
            Cell::number(alone.prevalence[k], Some(format!("labelling.class_only.prevalence.{k}"))),
            Cell::interval(
                alone.prevalence_ci95.as_ref().map(|all| all[k]),
                format!("labelling.class_only.prevalence_ci95.{k}"),
            ),
        ]
    };
    let lines = found.about.classes.iter().enumerate().map(line).collect();
    let heading = ["class", "with", "95% interval", "without", "95% interval"];
    Some(Table { heading: heading.map(str::to_owned).to_vec(), lines })
}

/// What is known of columns, as text: rates, odds ratios and both estimates where the mechanism depends on some, and the
/// strongest columns where it leaves some out.
pub(crate) fn columns_text(found: &Findings) -> String {
    let Some(of) = &found.labelling else { return effects_of(&found.effects, false, &found.about) };
    effects_text(of, &found.about) + &both_estimates(found) + &left_out(of)
}

/// The labelling rates and odds ratios of the columns that the mechanism depends on.
pub(crate) fn effects_text(of: &Labelling, about: &About) -> String {
    effects_of(&of.effects, of.found_here, about)
}

fn effects_of(effects: &[ColumnEffect], found_here: bool, about: &About) -> String {
    let mut out = String::new();
    if !effects.is_empty() {
        let overall = about.n_labelled as f64 / about.n.max(1) as f64;
        let chosen = if found_here { ", found in these data" } else { "" };
        out.push_str(&format!("\nLabelling rate by column{chosen} (all rows: {}):\n", number(overall)));
        // A product, and a streamed column of many different numbers, have no rates.
        for (i, effect) in effects.iter().filter(|effect| !effect.rates.is_empty()).enumerate() {
            out.push_str(if i > 0 { "\n" } else { "" });
            let mut table = TextTable::new(&[&cut(&effect.column, 2 * NAME), "rows", "rate"]);
            for i in largest(&effect.rates, GROUPS) {
                let LabellingRate { group, rows, rate } = &effect.rates[i];
                table.row(vec![group.clone(), rows.to_string(), number(*rate)]);
            }
            out.push_str(&table.render());
            if effect.rates.len() > GROUPS {
                out.push_str(&format!("  and {} more\n", effect.rates.len() - GROUPS));
            }
        }
        if effects.iter().any(|effect| !effect.terms.is_empty()) {
            out.push_str("\nOdds of a label, among rows of the same class:\n");
        }
        for (i, effect) in effects.iter().filter(|effect| !effect.terms.is_empty()).enumerate() {
            out.push_str(if i > 0 { "\n" } else { "" });
            let heading = format!("{}, against {}", cut(&effect.column, NAME), cut(&effect.compared_with, 30));
            let mut table = TextTable::new(&[&heading, "odds ratio", "95% interval"]);
            for term in effect.terms.iter().take(GROUPS) {
                table.row(vec![term.term.clone(), odds(term.odds_ratio), odds_interval(term.ci95)]);
            }
            out.push_str(&table.render());
            if effect.terms.len() > GROUPS {
                out.push_str(&format!("  and {} more\n", effect.terms.len() - GROUPS));
            }
        }
    }
    out
}

/// The class shares with class and columns beside those with the class alone.
fn both_estimates(found: &Findings) -> String {
    // With an audit, the shares rest on no mechanism.
    let labelling = found.labelling.as_ref().filter(|_| found.audit.is_none());
    let Some(alone) = labelling.and_then(|of| of.class_only.as_ref()) else { return String::new() };
    let mut out = "\nClass shares if class and columns decide, and if the class alone does:\n".to_owned();
    let mut table = TextTable::new(&["class", "with columns", "95% interval", "class alone", "95% interval"]);
    for (k, class) in found.about.classes.iter().enumerate() {
        let at = |all: &Option<Vec<(f64, f64)>>| all.as_ref().map_or("-".to_owned(), |all| interval(all[k]));
        let (of_both, of_alone) = (number(found.prevalence[k]), number(alone.prevalence[k]));
        table.row(vec![class.clone(), of_both, at(&found.prevalence_ci95), of_alone, at(&alone.prevalence_ci95)]);
    }
    out.push_str(&table.render());
    out
}

/// The strongest of the columns that the mechanism leaves out although labelling goes with them.
pub(crate) fn left_out(of: &Labelling) -> String {
    let Some(check) = of.remaining() else { return String::new() };
    let found: Vec<&ColumnCheck> = of.found_in(check);
    if found.is_empty() {
        return String::new();
    }
    let beyond = match of.given.as_slice() {
        [] => "the class".to_owned(),
        given => format!("the class and {}", quoted(given.iter().map(String::as_str))),
    };
    let mut out = format!("\nBeyond {beyond}, labelling also goes with:\n");
    let mut table = TextTable::new(&["", "corrected p"]);
    for column in found.iter().take(COLUMNS) {
        let p = p_value(column.p_holm);
        table.row(vec![column.column.clone(), p.trim_start_matches("p ").trim_start_matches("= ").to_owned()]);
    }
    out.push_str(&table.render());
    if found.len() > COLUMNS {
        out.push_str(&format!("  and {} more\n", found.len() - COLUMNS));
    }
    out
}

/// What was checked, one line each.
pub(crate) fn checked_text(verdict: &Verdict) -> String {
    verdict.checked.iter().map(|sentence| format!("  {}\n", printable(sentence))).collect()
}

/// Lines of the table of groups that are shown.
const GROUP_LINES: usize = 40;

/// Class shares and phi per group.
pub(crate) fn groups_text(found: &Findings) -> String {
    let (Some(by), Some(groups)) = (&found.by, &found.groups) else { return String::new() };
    let mut table =
        TextTable::new(&[&by.column, "rows", "class", "phi", "share", "95% interval", "pooled", "95% interval"]);
    let lines = groups.len() * found.about.classes.len();
    for (line, (group, k)) in
        groups.iter().flat_map(|group| (0..found.about.classes.len()).map(move |k| (group, k))).enumerate()
    {
        if line >= GROUP_LINES {
            break;
        }
        let at =
            |values: &Option<Vec<(f64, f64)>>| values.as_ref().map_or("-".to_owned(), |values| interval(values[k]));
        let first = k == 0;
        table.row(vec![
            if first { group.group.clone() } else { String::new() },
            if first { group.n.to_string() } else { String::new() },
            found.about.classes[k].clone(),
            group.phi[k].map_or("-".to_owned(), number),
            number(group.prevalence[k]),
            at(&group.prevalence_ci95),
            group.prevalence_pooled.as_ref().map_or("-".to_owned(), |pooled| number(pooled[k])),
            at(&group.prevalence_pooled_ci95),
        ]);
    }
    let mut out = format!("\nBy {}:\n{}", by.column, table.render());
    if lines > GROUP_LINES {
        out.push_str(&format!("  and {} more lines; --format json has them all\n", lines - GROUP_LINES));
    }
    out.push_str(
        "  (pooled: drawn towards the other groups, as far as the groups are alike; better for small groups)\n",
    );
    if let Some(test) = &by.homogeneity {
        out.push_str(&format!(
            "  same class shares in every group: {} (statistic {:.1} on {} degrees of freedom)\n",
            crate::table::p_value(test.p_value),
            test.statistic,
            test.df
        ));
    }
    out
}

/// What an audit adds.
pub(crate) fn audit_text(found: &Findings) -> String {
    let Some(audit) = &found.audit else { return String::new() };
    format!(
        "  audit        {} rows; the shares rest on them, helped by the predictions of all rows (weight {:.2})\n",
        audit.rows, audit.reliance
    )
}
