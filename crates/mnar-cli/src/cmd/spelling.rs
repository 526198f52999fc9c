//! What to do next, in commands that can be pasted.

use crate::Typed;
use crate::hint::quoted;
use mnar_report::Task;
use mnar_run::{Origin, Spelling};
use std::path::Path;

impl Typed {
    /// The name of the data, the command, and the commands that come next. `run` is the folder of a run.
    pub(crate) fn origin(&self, data: &Path, label: Option<&str>, run: Option<&Path>) -> Origin {
        let name = data.file_name().map(|name| name.to_string_lossy().into_owned());
        let next = Next {
            typed: Self(self.0.clone()),
            data: data.display().to_string(),
            label: label.map(str::to_owned),
            run: run.map(|run| run.display().to_string()),
        };
        Origin {
            title: name.unwrap_or_else(|| data.display().to_string()),
            command: Some(self.command()),
            spelling: Some(Spelling::new(move |task| next.command(task))),
        }
    }

    /// The same for an embedded sample: what comes next is the user's own data.
    pub(crate) fn origin_of_sample(&self) -> Origin {
        let own = |task: &Task| (*task == Task::OwnData).then(|| "mnar fit DATA --label COLUMN".to_owned());
        Origin { title: String::new(), command: Some(self.command()), spelling: Some(Spelling::new(own)) }
    }
}

/// What is known of the command that was typed.
struct Next {
    typed: Typed,
    data: String,
    label: Option<String>,
    run: Option<String>,
}

impl Next {
    fn command(&self, task: &Task) -> Option<String> {
        match task {
            Task::Give(columns) if columns.is_empty() => Some(self.again("given", "COLUMN", "given")),
            // A name with a comma would be taken for two.
            Task::Give(columns) if columns.iter().any(|name| name.contains(',')) => None,
            Task::Give(columns) => Some(self.again("given", &columns.join(","), "given")),
            Task::Audit => Some(self.again("audit", "COLUMN", "audit")),
            Task::Predict => {
                self.run.as_ref().map(|run| format!("mnar predict {} NEW_DATA -o predictions.csv", quoted(run)))
            }
            // A run of `fit` trains with the weights; the others write them, if they have not just done so.
            Task::Weights if self.run.is_none() && without(&self.typed.0, "weights").len() == self.typed.0.len() => {
                Some(self.again("weights", "weights.csv", ""))
            }
            Task::Inspect => {
                let label = self.label.as_ref().map_or_else(String::new, |label| format!(" --label {}", quoted(label)));
                Some(format!("mnar inspect {}{label}", quoted(&self.data)))
            }
            Task::Estimate => Some(self.estimate()),
            Task::OwnData => Some("mnar fit DATA --label COLUMN".to_owned()),
            _ => None,
        }
    }

    /// `mnar estimate` for a `mnar test`, without the options that only a test has.
    fn estimate(&self) -> String {
        let only_test = ["method", "level", "permutations", "replicates", "power"];
        let mut words = only_test.iter().fold(self.typed.0.clone(), |words, option| without(&words, option));
        words.retain(|word| word != "--fail-on-reject");
        if let Some(test) = words.iter_mut().find(|word| *word == "test") {
            *test = "estimate".to_owned();
        }
        Typed(words).command()
    }

    /// The same command with an option, in a run folder of its own.
    fn again(&self, option: &str, value: &str, folder: &str) -> String {
        let mut words = without(&self.typed.0, option);
        if let Some(run) = &self.run {
            words = without(&words, "out");
            words.extend(["--out".to_owned(), format!("{run}-{folder}")]);
        }
        words.extend([format!("--{option}"), value.to_owned()]);
        Typed(words).command()
    }
}

/// The words without an option and its value.
fn without(words: &[String], option: &str) -> Vec<String> {
    let (flag, with_value) = (format!("--{option}"), format!("--{option}="));
    let mut kept = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if *word == flag {
            words.next();
        } else if !word.starts_with(&with_value) {
            kept.push(word.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(words: &[&str], run: Option<&str>) -> Next {
        let typed = Typed(words.iter().map(|word| (*word).to_owned()).collect());
        Next { typed, data: "my clinic.csv".into(), label: Some("y".into()), run: run.map(str::to_owned) }
    }

    #[test]
    fn commands_can_be_pasted() {
        let words = ["fit", "my clinic.csv", "--label", "y", "--out", "run", "--given=old", "--resume"];
        let fit = next(&words, Some("run"));
        let columns = Task::Give(vec!["the site".into(), "age".into()]);
        let given = "mnar fit 'my clinic.csv' --label y --out run-given --given 'the site,age'";
        assert_eq!(fit.command(&columns).as_deref(), Some(given));
        assert_eq!(fit.command(&Task::Give(vec!["a,b".into()])), None);
        assert_eq!(fit.command(&Task::Predict).as_deref(), Some("mnar predict run NEW_DATA -o predictions.csv"));
        assert_eq!(fit.command(&Task::Inspect).as_deref(), Some("mnar inspect 'my clinic.csv' --label y"));
        let estimate = next(&["estimate", "p.csv", "--label", "y", "--report", "p.html"], None);
        let weights = "mnar estimate p.csv --label y --report p.html --weights weights.csv";
        assert_eq!(estimate.command(&Task::Weights).as_deref(), Some(weights));
        assert_eq!(estimate.command(&Task::Predict), None);
        let words =
            ["test", "p.csv", "--label", "y", "--power", "0.8", "--method=lrt", "--fail-on-reject", "--fold", "f"];
        let test = next(&words, None);
        assert_eq!(test.command(&Task::Estimate).as_deref(), Some("mnar estimate p.csv --label y --fold f"));
    }
}
