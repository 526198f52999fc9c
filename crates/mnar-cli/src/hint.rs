//! Errors in the words of the command line: remedies as flags that can be pasted.

use mnar::Remedy;
use mnar_data::DataError;
use mnar_run::RunError;

/// What would cure an error, one hint per remedy.
pub(crate) fn hints(error: &anyhow::Error) -> Vec<String> {
    let remedies = error.chain().find_map(|cause| {
        let remedies = if let Some(error) = cause.downcast_ref::<RunError>() {
            error.remedies()
        } else if let Some(error) = cause.downcast_ref::<DataError>() {
            error.remedies()
        } else if let Some(error) = cause.downcast_ref::<mnar::Error>() {
            error.remedies()
        } else {
            Vec::new()
        };
        (!remedies.is_empty()).then_some(remedies)
    });
    remedies.unwrap_or_default().iter().map(flag).collect()
}

/// Whether an error of the statistics needs the name of the table.
pub(crate) fn speaks_of_rows(error: &anyhow::Error) -> bool {
    error.is::<mnar::Error>()
        || matches!(error.downcast_ref(), Some(RunError::Statistics(_)))
        || matches!(error.downcast_ref(), Some(RunError::Train(mnar_train::TrainError::WrongInput { .. })))
}

/// A remedy as flags.
pub(crate) fn flag(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Set { option, value } if value.is_empty() => format!("--{option}"),
        // A value that starts with a dash would be taken for a flag.
        Remedy::Set { option, value } if value.starts_with('-') => format!("--{option}={}", quoted(value)),
        Remedy::Set { option, value } => format!("--{option} {}", quoted(value)),
        Remedy::All(remedies) => remedies.iter().map(flag).collect::<Vec<_>>().join(" "),
        Remedy::Unset { option } => format!("leave out --{option}"),
        _ => String::new(),
    }
}

/// A word as a shell takes it literally.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_can_be_pasted() {
        assert_eq!(flag(&Remedy::set("ignore", "Individual ID")), "--ignore 'Individual ID'");
        assert_eq!(flag(&Remedy::set("missing", "it's")), r"--missing 'it'\''s'");
        assert_eq!(flag(&Remedy::set("label", "COLUMN")), "--label COLUMN");
        assert_eq!(flag(&Remedy::set("missing", "-999")), "--missing=-999");
        let all = Remedy::All(vec![Remedy::set("ignore", "Individual ID"), Remedy::set("missing", "?")]);
        assert_eq!(flag(&all), "--ignore 'Individual ID' --missing '?'");
        assert_eq!(flag(&Remedy::set("resume", "")), "--resume");
        assert_eq!(flag(&Remedy::unset("resume")), "leave out --resume");
        let class = mnar::Class::from(0);
        let logits = || mnar::Error::NotAProbability { row: 1, class, value: 3.5, sum: 1.0 };
        assert_eq!(hints(&anyhow::Error::from(RunError::from(logits())).context("a.csv")), ["--logits"]);
        assert_eq!(hints(&anyhow::Error::from(logits())), ["--logits"]);
    }
}
