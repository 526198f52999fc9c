//! A report as text for a terminal.

use crate::labelling::{DOUBTFUL, checked_text, columns_text, groups_text, in_doubt};
use crate::report::Report;
use crate::table::{TextTable, interval, number, printable, printable_lines};
use crate::words::{percents, self_masking_line};

impl Report {
    /// The verdict, a table of the classes, what is known of columns and groups, the models, the warnings, and what was checked. Tables
    /// fit 80 columns.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        if self.test.is_some() || self.findings.verdict.is_some() {
            out.push_str(&format!("{}\n\n", printable(&self.verdict())));
        }
        if in_doubt(&self.findings) {
            out.push_str(&format!("{DOUBTFUL}\n"));
        }
        out.push_str(&self.classes_text());
        if let Some(truth) = &self.truth {
            out.push_str(&format!(
                "\n  normalised error of phi {:.4} (a constant mechanism: {:.4})\n",
                truth.phi_normalised_mse, truth.constant_normalised_mse
            ));
        }
        if let Some(check) = self.findings.self_masking.as_ref().filter(|_| self.findings.verdict.is_none()) {
            out.push_str(&format!("\nSelf-masking check: {}.\n", self_masking_line(check)));
        }
        out.push_str(&columns_text(&self.findings));
        out.push_str(&groups_text(&self.findings));
        out.push_str(&self.quality_text());
        out.push_str(&self.models_text());
        for warning in &self.findings.warnings {
            out.push_str(&format!("\nwarning: {warning}\n"));
        }
        out.push_str(&self.findings.verdict.as_ref().map_or_else(String::new, checked_text));
        printable_lines(&out)
    }

    fn classes_text(&self) -> String {
        let found = &self.findings;
        let of = |intervals: &Option<Vec<(f64, f64)>>, k: usize| {
            intervals.as_ref().map_or("-".to_owned(), |all| interval(all[k]))
        };
        let mut table = match &self.truth {
            None => TextTable::new(&["class", "labels", "phi", "95% interval", "share", "95% interval"]),
            Some(_) => TextTable::new(&["class", "labels", "true phi", "phi", "95% interval", "true share", "share"]),
        };
        for (k, class) in self.classes().iter().enumerate() {
            let labels = found.about.labelled_per_class[k].to_string();
            let (phi, share) = (number(found.phi[k]), number(found.prevalence[k]));
            let phi_interval = of(&found.phi_ci95, k);
            table.row(match &self.truth {
                None => vec![class.clone(), labels, phi, phi_interval, share, of(&found.prevalence_ci95, k)],
                Some(truth) => {
                    let (true_phi, true_share) = (number(truth.phi[k]), number(truth.prevalence[k]));
                    vec![class.clone(), labels, true_phi, phi, phi_interval, true_share, share]
                }
            });
        }
        table.render()
    }

    fn models_text(&self) -> String {
        let Some(training) = &self.training else { return String::new() };
        let models = [("debiased", Some(&training.debiased)), ("biased baseline", training.baseline.as_ref())];
        let scored: Vec<_> = models.into_iter().filter_map(|(name, model)| Some((name, model?.held_out?))).collect();
        let Some((_, first)) = scored.first() else { return String::new() };
        let mut out = if self.truth.is_some() {
            format!("\nOn the {} rows whose labels were hidden:\n", first.rows)
        } else {
            format!("\nOn {} held-out labelled rows, weighted by 1/phi to stand for the population:\n", first.rows)
        };
        let mut table = TextTable::new(&["model", "accuracy", "95% interval", "log-loss"]);
        for (name, scores) in scored {
            table.row(vec![
                name.into(),
                format!("{:.2}%", 100.0 * scores.accuracy),
                scores.accuracy_ci95.map_or("-".to_owned(), percents),
                format!("{:.4}", scores.log_loss),
            ]);
        }
        out.push_str(&table.render());
        if let Some(sentence) = training.own_phi(&self.findings) {
            out.push_str(&format!("{sentence}\n"));
        }
        if let Some(parts) = training.parts() {
            out.push_str(&format!("The debiased model is {parts}.\n"));
        }
        out
    }
}
