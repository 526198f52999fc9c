//! One number per class, as people write it.

use crate::error::RunError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::str::FromStr;

/// One number per class: `a=0.2,b=0.8`, the numbers alone in the order of the classes, a list or a table by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PerClass {
    /// As typed. An item with a single `=` is taken whole, so that names may contain commas.
    Text(String),
    /// Several such items.
    Items(Vec<String>),
    /// In the order of the classes.
    Numbers(Vec<f64>),
    /// By the name of the class.
    Named(BTreeMap<String, f64>),
}

impl FromStr for PerClass {
    type Err = Infallible;
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::Text(text.to_owned()))
    }
}

impl PerClass {
    /// The numbers in the order of the classes. `option` is the name of the option, for messages.
    pub fn resolve(&self, option: &'static str, classes: &[String]) -> Result<Vec<f64>, RunError> {
        let wrong = |what: String| {
            // Shares sum to one.
            let rest = 1.0 - 0.2 * (classes.len().min(3) as f64 - 1.0);
            let value = |k: usize| if option == "shares" && k == 0 { rest } else { 0.2 };
            let named = classes.iter().take(3).enumerate();
            let shown: Vec<String> = named.map(|(k, name)| format!("{name}={:.1}", value(k))).collect();
            let more = if classes.len() > 3 { ",..." } else { "" };
            Err(RunError::PerClass { option, what, example: format!("{}{more}", shown.join(",")) })
        };
        let mut items: Vec<(Option<&str>, Result<f64, String>)> = Vec::new();
        let split = |text: &str| -> Vec<String> {
            match text.rsplit_once('=') {
                Some((name, _)) if !name.contains('=') => vec![text.to_owned()],
                _ => text.split(',').map(str::to_owned).collect(),
            }
        };
        let words: Vec<String> = match self {
            Self::Text(text) => split(text),
            Self::Items(texts) => texts.iter().flat_map(|text| split(text)).collect(),
            Self::Numbers(_) | Self::Named(_) => Vec::new(),
        };
        match self {
            Self::Text(_) | Self::Items(_) => {
                for word in &words {
                    let (name, text) = match word.rsplit_once('=') {
                        Some((name, text)) => (Some(name), text),
                        None => (None, word.as_str()),
                    };
                    items.push((name, text.trim().parse().map_err(|_| text.to_owned())));
                }
            }
            Self::Numbers(numbers) => items.extend(numbers.iter().map(|number| (None, Ok(*number)))),
            Self::Named(named) => items.extend(named.iter().map(|(name, number)| (Some(name.as_str()), Ok(*number)))),
        }
        if items.iter().all(|(name, _)| name.is_none()) {
            if items.len() != classes.len() {
                return wrong(format!("has {} numbers, but there are {} classes", items.len(), classes.len()));
            }
            let numbers: Result<Vec<f64>, String> = items.into_iter().map(|(_, number)| number).collect();
            return numbers.or_else(|text| wrong(format!("contains `{text}`, which is not a number")));
        }
        let mut values = vec![None; classes.len()];
        for (name, number) in items {
            let number = match number {
                Ok(number) => number,
                Err(text) => return wrong(format!("contains `{text}`, which is not a number")),
            };
            let Some(name) = name.map(str::trim) else {
                return wrong(format!("contains `{number}` without the name of a class"));
            };
            let Some(k) = classes.iter().position(|known| known == name) else {
                let near = classes
                    .iter()
                    .min_by_key(|known| strsim::levenshtein(known, name))
                    .filter(|known| strsim::levenshtein(known, name) <= 2);
                let hint = near.map_or(String::new(), |known| format!(", did you mean `{known}`?"));
                return wrong(format!("names the class `{name}`, which does not exist{hint}"));
            };
            if values[k].replace(number).is_some() {
                return wrong(format!("names the class `{}` twice", classes[k]));
            }
        }
        match values.iter().position(Option::is_none) {
            Some(k) => wrong(format!("has no value for the class `{}`", classes[k])),
            None => Ok(values.into_iter().flatten().collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(given: PerClass) -> Result<Vec<f64>, String> {
        let classes = ["a", "b, left", "c"].map(String::from);
        given.resolve("phi", &classes).map_err(|error| error.to_string())
    }

    fn text(text: &str) -> Result<Vec<f64>, String> {
        resolve(PerClass::Text(text.to_owned()))
    }

    #[test]
    fn numbers_by_name_by_order_and_by_several_words() {
        let all = Ok(vec![0.1, 0.2, 0.3]);
        assert_eq!(text("0.1,0.2,0.3"), all);
        assert_eq!(resolve(PerClass::Items(["c=0.3", "b, left=0.2", "a=0.1"].map(String::from).to_vec())), all);
        assert_eq!(resolve(PerClass::Numbers(vec![0.1, 0.2, 0.3])), all);
        let named = BTreeMap::from([("c".into(), 0.3), ("b, left".into(), 0.2), ("a".into(), 0.1)]);
        assert_eq!(resolve(PerClass::Named(named)), all);
        assert!(text("0.1,0.2").unwrap_err().contains("2 numbers, but there are 3 classes"));
        assert!(text("a=0.1,c=0.2").unwrap_err().contains("no value for the class `b, left`"));
        assert!(text("a=x").unwrap_err().contains("`x`, which is not a number"));
        assert!(text("cc=0.1").unwrap_err().contains("did you mean `c`?"));
        let twice = PerClass::Items(["a=0.1", "a=0.2"].map(String::from).to_vec());
        assert!(resolve(twice).unwrap_err().contains("`a` twice"));
    }
}
