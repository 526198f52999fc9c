//! What a terminal shows of a report.

use crate::report::Report;
use crate::table::{TextTable, interval, number};
use crate::words::self_masking_line;

impl Report {
    /// The verdict, a table of the classes, the models and the warnings, in 80 columns.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        if self.result.is_some() {
            out.push_str(&format!("{}\n\n", self.verdict()));
        }
        out.push_str(&self.classes_text());
        if let Some(truth) = &self.truth {
            out.push_str(&format!(
                "\n  normalised error of phi {:.4} (a constant mechanism: {:.4})\n",
                truth.phi_normalised_mse, truth.constant_normalised_mse
            ));
        }
        if let Some(check) = &self.self_masking {
            out.push_str(&format!("\n{}\n", self_masking_line(check)));
        }
        out.push_str(&self.models_text());
        for warning in &self.warnings {
            out.push_str(&format!("\nwarning: {warning}\n"));
        }
        out
    }

    fn classes_text(&self) -> String {
        let of = |intervals: &Option<Vec<(f64, f64)>>, k: usize| {
            intervals.as_ref().map_or("-".to_owned(), |all| interval(all[k]))
        };
        let mut table = match &self.truth {
            None => TextTable::new(&["class", "labels", "phi", "95% interval", "share", "95% interval"]),
            Some(_) => TextTable::new(&["class", "labels", "true phi", "phi", "95% interval", "true share", "share"]),
        };
        for (k, class) in self.classes.iter().enumerate() {
            let labels = self.labelled_per_class[k].to_string();
            let (phi, share) = (number(self.phi[k]), number(self.prevalence[k]));
            table.row(match &self.truth {
                None => {
                    vec![class.clone(), labels, phi, of(&self.phi_ci95, k), share, of(&self.prevalence_ci95, k)]
                }
                Some(truth) => {
                    let (true_phi, true_share) = (number(truth.phi[k]), number(truth.prevalence[k]));
                    vec![class.clone(), labels, true_phi, phi, of(&self.phi_ci95, k), true_share, share]
                }
            });
        }
        table.render()
    }

    fn models_text(&self) -> String {
        let models = [("debiased", &self.debiased), ("biased baseline", &self.baseline)];
        let scored: Vec<_> =
            models.into_iter().filter_map(|(name, model)| Some((name, model.as_ref()?.held_out?))).collect();
        let Some((_, first)) = scored.first() else { return String::new() };
        let mut out = if self.truth.is_some() {
            format!("\nOn the {} rows whose labels were hidden:\n", first.rows)
        } else {
            format!("\n{} labelled rows were held out; weighted by 1/phi they stand for the population:\n", first.rows)
        };
        let mut table = TextTable::new(&["model", "accuracy", "log-loss"]);
        for (name, scores) in scored {
            table.row(vec![name.into(), format!("{:.2}%", 100.0 * scores.accuracy), format!("{:.4}", scores.log_loss)]);
        }
        out.push_str(&table.render());
        out
    }
}
