//! A methods paragraph for a paper, with the numbers of the run, and what to cite.

use crate::labelling::quoted;
use crate::line::percent as percents;
use crate::report::Report;
use crate::words::percent;
use mnar::analysis::IntervalKind;

/// Classes whose shares the paragraph lists.
const LISTED: usize = 6;

/// What intervals come from, for a sentence.
fn made_by(kind: IntervalKind) -> &'static str {
    match kind {
        IntervalKind::BootstrapWithRefit => "a bootstrap that refits the classifier",
        IntervalKind::Bootstrap => "a bootstrap that takes the classifier as given",
        IntervalKind::Profile => "the profile likelihood",
        IntervalKind::Information => "the observed information",
        kind => kind.name(),
    }
}

impl Report {
    /// How the numbers were made, for the methods section of a paper; empty where nothing was estimated.
    pub fn methods(&self) -> String {
        let found = &self.findings;
        if self.nothing_missing() {
            return String::new();
        }
        if let Some(bound) = &found.positive {
            return format!(
                "Only rows of the class `{}` are ever labelled. P(labelled | class) is the share of labelled rows divided by the share of the class, which was given; its interval is Wilson's, with that share taken as exact. p(class | x) is P(labelled | x), from a calibrated classifier that was trained on all rows, divided by P(labelled | class), under the assumption that all rows of the class have the same chance of a label. From {} rows, {} of them labelled.",
                bound.class, bound.n, bound.n_labelled
            );
        }
        let given = found.labelling.as_ref().map_or_else(String::new, |of| quoted(of.given.iter().map(String::as_str)));
        let depends = if given.is_empty() { "the class".to_owned() } else { format!("the class and {given}") };
        let mut out = match &found.audit {
            Some(audit) => format!(
                "The class shares come from {} rows whose labels were requested at random, made more precise by the predictions of all rows.",
                audit.rows
            ),
            None => format!(
                "P(labelled | class) and the class shares were estimated by the method `{}` from a classifier's probabilities for {} rows, {} of them labelled, under the assumption that labelling depends on {depends} alone.",
                found.method, found.about.n, found.about.n_labelled
            ),
        };
        if found.calibration.is_some() {
            out.push_str(
                " The probabilities were calibrated on the labelled rows by temperature scaling with a bias per class.",
            );
        }
        if found.prior_weight > 0.0 && found.audit.is_none() {
            out.push_str(&format!(
                " The class shares of the unlabelled rows had a Dirichlet prior at those of the labelled rows, with the weight of {} rows{}.",
                (10.0 * found.prior_weight).round() / 10.0,
                if found.prior_by_default { "; the intervals were made without it" } else { "" }
            ));
        }
        if found.refinement.as_ref().is_some_and(|refinement| refinement.agrees) {
            out.push_str(
                " P(labelled | class) and the class shares were then estimated again, by the observed likelihood of the predictions of the trained network; the intervals are those of the first estimate, extended where they did not contain the second.",
            );
        }
        if found.interval.kind != IntervalKind::None && found.audit.is_none() {
            let replicates = match found.interval.replicates {
                0 => String::new(),
                replicates => format!(" ({replicates} replicates)"),
            };
            out.push_str(&format!(" The 95% intervals come from {}{replicates}.", made_by(found.interval.kind)));
        }
        if let Some(of) = &found.labelling {
            out.push_str(&format!(
                " Whether labels are missing completely at random was tested by a {} test",
                of.chance.test
            ));
            if of.class_enough.is_some() {
                out.push_str(", and whether columns matter beyond the mechanism by score tests with Holm's correction");
            }
            out.push_str(&format!(", at the {} level.", percent(of.level)));
        }
        out.push_str(&self.results());
        if let Some(found) = &self.evaluation {
            out.push_str(&found.sentence());
        }
        out
    }

    /// The class shares that were found, in a sentence.
    fn results(&self) -> String {
        let of = |k: usize| {
            let interval = self
                .share_interval(k)
                .map_or_else(String::new, |(low, high)| format!("{} to {}; ", percents(low), percents(high)));
            let labels = percents(self.label_share(k));
            let share = percents(self.findings.prevalence[k]);
            format!("`{}` {share} ({interval}{labels} of the labels)", self.classes()[k])
        };
        let mut order = self.by_gap();
        let more = if order.len() > LISTED { "; the other classes are closer to the labels" } else { "" };
        order.truncate(LISTED);
        order.sort_unstable();
        let listed: Vec<String> = order.into_iter().map(of).collect();
        let interval = if self.findings.prevalence_ci95.is_some() { "95% interval; " } else { "" };
        format!(" Estimated class shares ({interval}share of the labels): {}{more}.", listed.join(", "))
    }

    /// What a paper that uses these numbers should cite, as far as it was used.
    pub(crate) fn citations(&self) -> Vec<String> {
        let found = &self.findings;
        let mut all = vec![
            format!("mnar, version {}: statistics of labels that are missing not at random (software).", self.provenance.version),
            "A. Sportisse, H. Schmutz, O. Humbert, C. Bouveyron and P.-A. Mattei. Are labels informative in semi-supervised learning? Estimating and leveraging the missing-data mechanism. ICML 2023.".to_owned(),
        ];
        let labelling = found.labelling.as_ref();
        let used = [
            (
                found.positive.is_some(),
                "C. Elkan and K. Noto. Learning classifiers from only positive and unlabeled data. KDD 2008.",
            ),
            (
                found.method == "label-shift",
                "M. Saerens, P. Latinne and C. Decaestecker. Adjusting the outputs of a classifier to new a priori probabilities. Neural Computation 14, 2002.",
            ),
            (
                found.calibration.is_some(),
                "A. Alexandari, A. Kundaje and A. Shrikumar. Maximum likelihood with bias-corrected calibration is hard-to-beat at label shift adaptation. ICML 2020.",
            ),
            (
                found.audit.is_some(),
                "A. N. Angelopoulos, S. Bates, C. Fannjiang, M. I. Jordan and T. Zrnic. Prediction-powered inference. Science 382, 2023.",
            ),
            (
                labelling.is_some_and(|of| of.class_enough.is_some()),
                "S. Holm. A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6, 1979.",
            ),
        ];
        all.extend(used.into_iter().filter(|(used, _)| *used).map(|(_, cited)| cited.to_owned()));
        all
    }
}
