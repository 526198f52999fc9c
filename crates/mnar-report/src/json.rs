//! `report.json`: reading, checking and writing.

use crate::check::check_sizes;
use crate::error::ReportError;
use crate::more_labels::RandomSample;
use crate::report::{Report, SCHEMA};
use crate::v1;
use mnar::analysis::TestDecision;
use serde::Deserialize;
use serde_json::Value;

impl Report {
    /// Reads `report.json`. Layouts of earlier versions are upgraded.
    pub fn from_json(text: &str) -> Result<Self, ReportError> {
        #[derive(Deserialize)]
        struct Layout {
            schema: u32,
        }
        let value: Value = serde_json::from_str(text).map_err(ReportError::not_a_report)?;
        // First the number alone: a later layout need not have today's fields.
        let Layout { schema: found } = Layout::deserialize(&value).map_err(ReportError::not_a_report)?;
        if found > SCHEMA {
            return Err(ReportError::TooNew { found, known: SCHEMA });
        }
        check_sizes(&value)?;
        let report = if found < SCHEMA { v1::read(value) } else { read(value) }.map_err(ReportError::not_a_report)?;
        report.check()?;
        report.check_ranges()?;
        report.check_thumbnails()?;
        Ok(report)
    }

    /// The report as the text of `report.json`.
    pub fn to_json(&self) -> Result<String, ReportError> {
        let text = serde_json::to_string_pretty(self).map_err(ReportError::unwritable)?;
        Ok(format!("{text}\n"))
    }

    /// The JSON schema of the layout.
    #[cfg(feature = "schema")]
    pub fn json_schema() -> String {
        let schema = schemars::schema_for!(Self);
        format!("{}\n", serde_json::to_string_pretty(&schema).unwrap_or_default())
    }

    /// Images of a page are its own: an address would tell its owner who opens the report.
    fn check_thumbnails(&self) -> Result<(), ReportError> {
        match self.uncertain.iter().find(|row| row.thumbnail.as_deref().is_some_and(|image| !is_own_image(image))) {
            Some(row) => Err(ReportError::Thumbnail { row: row.row }),
            None => Ok(()),
        }
    }

    /// Checks that every list has one value per class, so that drawing cannot fail on a file that was edited by hand.
    fn check(&self) -> Result<(), ReportError> {
        let found = &self.findings;
        let classes = found.about.classes.len();
        let mut lengths: Vec<(&'static str, Option<usize>)> = vec![
            ("labelled_per_class", Some(found.about.labelled_per_class.len())),
            ("phi", Some(found.phi.len())),
            ("phi_se", found.phi_se.as_ref().map(Vec::len)),
            ("phi_ci95", found.phi_ci95.as_ref().map(Vec::len)),
            ("prevalence", Some(found.prevalence.len())),
            ("prevalence_se", found.prevalence_se.as_ref().map(Vec::len)),
            ("prevalence_ci95", found.prevalence_ci95.as_ref().map(Vec::len)),
            ("unlabelled_shares", Some(found.unlabelled_shares.len())),
            ("labels_for_width", found.labels_for_width.as_ref().map(Vec::len)),
        ];
        if let Some(more) = &self.more_labels {
            lengths.push(("more_labels.unexplained", Some(more.unexplained.len())));
            lengths.push(("more_labels.width_now", Some(more.width_now.len())));
            lengths.push(("more_labels.to_halve", Some(more.to_halve.len())));
            let of = |sample: &RandomSample| [sample.width.len(), sample.width_alone.len()];
            lengths.extend(more.samples.iter().flat_map(of).map(|length| ("more_labels.samples", Some(length))));
        }
        if let Some(classifier) = &found.classifier {
            lengths.push(("classifier.confusion", Some(classifier.confusion.len())));
            lengths.extend(classifier.confusion.iter().map(|row| ("classifier.confusion", Some(row.len()))));
        }
        if let Some(alone) = found.labelling.as_ref().and_then(|labelling| labelling.class_only.as_ref()) {
            lengths.push(("labelling.class_only.phi", Some(alone.phi.len())));
            lengths.push(("labelling.class_only.prevalence", Some(alone.prevalence.len())));
            lengths.push(("labelling.class_only.prevalence_ci95", alone.prevalence_ci95.as_ref().map(Vec::len)));
        }
        if let Some(audit) = &found.audit {
            lengths.push(("audit.mechanism_prevalence", Some(audit.mechanism_prevalence.len())));
            lengths.push(("audit.audited_shares", Some(audit.audited_shares.len())));
        }
        for group in found.groups.iter().flatten() {
            lengths.push(("groups.phi", Some(group.phi.len())));
            lengths.push(("groups.phi_ci95", group.phi_ci95.as_ref().map(Vec::len)));
            lengths.push(("groups.prevalence", Some(group.prevalence.len())));
            lengths.push(("groups.prevalence_ci95", group.prevalence_ci95.as_ref().map(Vec::len)));
            lengths.push(("groups.prevalence_pooled", group.prevalence_pooled.as_ref().map(Vec::len)));
            lengths.push(("groups.prevalence_pooled_ci95", group.prevalence_pooled_ci95.as_ref().map(Vec::len)));
            lengths.push(("groups.totals", Some(group.totals.len())));
        }
        for point in found.sensitivity.iter().flatten() {
            lengths.push(("sensitivity.phi", Some(point.phi.len())));
            lengths.push(("sensitivity.prevalence", Some(point.prevalence.len())));
        }
        if let Some(training) = &self.training {
            lengths.push(("training.phi", Some(training.phi.len())));
        }
        for (_, _, model) in self.models() {
            lengths.push(("held_out_accuracy_per_class", Some(model.held_out_accuracy_per_class.len())));
        }
        if let Some(truth) = &self.truth {
            lengths.push(("truth.phi", Some(truth.phi.len())));
            lengths.push(("truth.prevalence", Some(truth.prevalence.len())));
        }
        match lengths.into_iter().find(|(_, found)| found.is_some_and(|found| found != classes)) {
            Some((field, Some(found))) => Err(ReportError::Uneven { classes, field, found }),
            _ => Ok(()),
        }
    }
}

/// Whether this is a PNG image in an address of its own, and nothing else.
pub(crate) fn is_own_image(address: &str) -> bool {
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    address.strip_prefix(PNG).is_some_and(|image| !image.is_empty() && image.bytes().all(base64))
}

/// How the address of an image starts that is its own content.
const PNG: &str = "data:image/png;base64,";

/// The report in a value of the current layout.
pub(crate) fn read(value: Value) -> Result<Report, serde_json::Error> {
    // A flattened option that cannot be read counts as absent, and a broken test must not pass for no test.
    if value.get("test").is_some() {
        TestDecision::deserialize(&value)?;
    }
    serde_json::from_value(value)
}
