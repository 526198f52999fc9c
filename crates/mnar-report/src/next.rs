//! What to do next, in order, and the commands that do it.

use crate::labelling::quoted;
use crate::report::Report;
use crate::words::{Level, most_and_least};
use mnar::analysis::{TestFindings, VerdictKind};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something to do with the data or the model of a report. Libraries do not know how that is spelt: a command, a call in Python.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Task {
    /// Analyse the same data again, with columns that labelling may depend on; without names, the reader has to choose some.
    Give(Vec<String>),
    /// Analyse the same data again, with a column that marks rows whose label was requested at random.
    Audit,
    /// Predict new rows with the model.
    Predict,
    /// Weight the labels of the reader's own model.
    Weights,
    /// Test and estimate on data of the reader's own.
    OwnData,
    /// Estimate how common each class is, after a test.
    Estimate,
    /// See how the file was read and how often rows are labelled along each column.
    Inspect,
}

/// A step, and the command for it where there is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct NextStep {
    /// What to do, in a sentence.
    pub step: String,
    /// The command that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

struct Step {
    text: String,
    task: Option<Task>,
}

fn step(text: impl Into<String>) -> Step {
    Step { text: text.into(), task: None }
}

impl Step {
    fn by(self, task: Task) -> Self {
        Self { task: Some(task), ..self }
    }
}

const SETTLE: &str = "Settle the failed checks before you rely on any number.";
const RANDOM_SAMPLE: &str =
    "Have a random sample of the rows labelled, and mark it in a column: those labels say what the others cannot.";
const NOT_PROOF: &str = "A test that does not reject is not proof: look at the width of the intervals.";

impl Report {
    /// The same report with the commands of its next steps, as far as `spell` knows them.
    pub fn with_commands(mut self, spell: impl Fn(&Task) -> Option<String>) -> Self {
        self.next = with_spelling(self.steps(), spell);
        self
    }

    /// What to do next, with the commands that are known.
    pub(crate) fn what_next(&self) -> Vec<NextStep> {
        if self.next.is_empty() {
            return self.steps().into_iter().map(|step| NextStep { step: step.text, command: None }).collect();
        }
        self.next.clone()
    }

    /// What to do next.
    pub fn next_steps(&self) -> Vec<String> {
        self.what_next().into_iter().map(|next| next.step).collect()
    }

    fn steps(&self) -> Vec<Step> {
        if let Some(bound) = &self.findings.positive {
            return with_given_share(&bound.class);
        }
        match &self.findings.verdict {
            Some(verdict) if verdict.kind == VerdictKind::Unclear => self.where_unclear(),
            Some(verdict) => self.after_verdict(verdict.kind),
            None => self.after_test(),
        }
    }

    fn where_unclear(&self) -> Vec<Step> {
        let (labelling, audit) = (self.findings.labelling.as_ref(), self.findings.audit.as_ref());
        let remaining = labelling.and_then(|of| Some((of.remaining()?, of)));
        let mut columns: Vec<&str> = Vec::new();
        if let Some((check, of)) = remaining {
            let found = check.columns.iter().filter(|column| column.p_holm <= of.level);
            columns.extend(found.map(|column| column.column.as_str()));
        }
        let mut steps = vec![step(match audit {
            None => "First settle what decides who gets labelled: until then, do not use the shares, phi or a model that rests on them.".to_owned(),
            Some(audit) => format!(
                "First settle what decides who gets labelled: the shares and phi come from the {} audited rows, but a model's weights rest on the mechanism.",
                audit.rows
            ),
        })];
        if !columns.is_empty() {
            // The columns that it depends on already stay.
            let given = labelling.iter().flat_map(|of| of.given.iter().cloned());
            let all: Vec<String> = given.chain(columns.iter().map(|name| (*name).to_owned())).collect();
            steps.push(
                step(format!(
                    "Let the mechanism also depend on {}, and see whether the checks still find something.",
                    quoted(columns.into_iter())
                ))
                .by(Task::Give(all)),
            );
        }
        steps.push(
            step("Ask those who labelled how they chose rows, and whether it is recorded in a column.")
                .by(Task::Inspect),
        );
        if audit.is_none() {
            steps.push(step(RANDOM_SAMPLE).by(Task::Audit));
        }
        steps
    }

    fn after_verdict(&self, kind: VerdictKind) -> Vec<Step> {
        let labelling = self.findings.labelling.as_ref();
        let mut steps = Vec::new();
        if self.lights().iter().any(|light| light.level == Level::Bad) {
            steps.push(step(SETTLE));
        }
        let given = labelling.map_or_else(String::new, |of| quoted(of.given.iter().map(String::as_str)));
        match kind {
            VerdictKind::AtRandom => {
                steps.push(step("Nothing that was checked asks for a correction of how the labels were chosen."));
                steps.push(step(NOT_PROOF));
                if self.training.is_some() {
                    steps.push(self.model_step(""));
                }
            }
            VerdictKind::ByClass => {
                steps.push(step("Do not read class shares off the labels: use the estimated shares."));
                steps.push(self.model_step("1/phi"));
                steps.extend(self.more_labels_step());
            }
            VerdictKind::ByColumns | VerdictKind::ByClassAndColumns => {
                steps.push(step(format!("Do not read class shares off the labels: use the estimated shares, which take {given} into account.")));
                steps.push(self.model_step(&format!(
                    "the inverse of its probability of being labelled, which depends on {given}"
                )));
                if kind == VerdictKind::ByClassAndColumns {
                    steps.extend(self.more_labels_step());
                }
            }
            VerdictKind::Unclear => {}
        }
        if labelling.is_some_and(|of| of.class_enough.as_ref().is_none_or(|check| check.columns.is_empty())) {
            steps.push(
                step("Give the columns that may have decided who got labelled, such as place, time or who labelled: only then can it be checked whether the class is enough.")
                    .by(if self.truth.is_some() { Task::OwnData } else { Task::Give(Vec::new()) }),
            );
        }
        steps
    }

    fn model_step(&self, weight: &str) -> Step {
        match self.training {
            Some(_) => step("Predict with the debiased model.").by(Task::Predict),
            None => step(format!("When you train a model, weight each label by {weight}.")).by(Task::Weights),
        }
    }

    fn more_labels_step(&self) -> Option<Step> {
        let (_, least) = most_and_least(&self.findings.phi)?;
        let such_as = if self.uncertain.is_empty() { "" } else { ", such as the uncertain rows that the page lists" };
        Some(step(format!(
            "More labels help most in the class that is labelled least often: start with rows that may be `{}`{such_as}.",
            self.classes()[least]
        )))
    }

    fn after_test(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.lights().iter().any(|light| light.level == Level::Bad) {
            steps.push(step(SETTLE));
        }
        match self.rejects() {
            Some(true) => {
                steps.push(step("Do not read class shares off the labels: use the estimated shares."));
                steps.push(match self.training {
                    Some(_) => step("Predict with the debiased model.").by(Task::Predict),
                    None => step("Weight each label by 1/phi when you train a model; a full run does that for you.")
                        .by(Task::Weights),
                });
                steps.extend(self.more_labels_step());
            }
            Some(false) => {
                steps.push(step("The test gives no reason to correct for how the labels were chosen."));
                steps.push(step(NOT_PROOF));
            }
            None if self.nothing_missing() => steps.push(step("Use the data as they are.")),
            None => {
                steps.push(step("Test whether the labels are informative before you rely on the labels alone."));
            }
        }
        steps
    }
}

/// What to do after a test.
pub(crate) fn after_test(found: &TestFindings, spell: impl Fn(&Task) -> Option<String>) -> Vec<NextStep> {
    let kind = found.verdict.as_ref().map(|verdict| verdict.kind);
    let steps = match kind {
        Some(VerdictKind::Unclear) => vec![
            step("First settle what decides who gets labelled: ask those who labelled how they chose rows, and whether it is recorded in a column.")
                .by(Task::Inspect),
            step(RANDOM_SAMPLE).by(Task::Audit),
        ],
        Some(VerdictKind::AtRandom) => vec![step(NOT_PROOF).by(Task::Estimate)],
        None if !found.decision.reject => vec![step(NOT_PROOF).by(Task::Estimate)],
        _ => vec![
            step("Do not read class shares off the labels: estimate how common each class really is.").by(Task::Estimate),
        ],
    };
    with_spelling(steps, spell)
}

fn with_spelling(steps: Vec<Step>, spell: impl Fn(&Task) -> Option<String>) -> Vec<NextStep> {
    let command = |step: Step| NextStep { command: step.task.as_ref().and_then(&spell), step: step.text };
    steps.into_iter().map(command).collect()
}

/// What to do where only one class is ever labelled.
fn with_given_share(class: &str) -> Vec<Step> {
    vec![
        step(format!("Check where the share of `{class}` comes from: every number here rests on it.")),
        step(format!("Ask whether all rows of `{class}` had the same chance of a label, severe and mild ones alike.")),
        step("Have a random sample of the rows labelled, whatever their class, and mark it in a column: it replaces both assumptions.")
            .by(Task::Audit),
    ]
}
