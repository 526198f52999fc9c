//! What the words on the command line mean together, checked before any work.

use crate::args::{Calibrate, Method, Posterior};
use anyhow::{Result, bail};
use mnar::PosteriorKind;

/// The estimator that will run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Estimator {
    LabelShift,
    Likelihood,
    Moments,
    Confusion,
    Known,
}

impl From<Posterior> for PosteriorKind {
    fn from(posterior: Posterior) -> Self {
        match posterior {
            Posterior::Labelled => PosteriorKind::Labelled,
            Posterior::Population => PosteriorKind::Population,
        }
    }
}

/// The estimator for a kind of posterior, refusing what would be inconsistent.
pub(crate) fn estimator(method: Method, kind: PosteriorKind, known_shares: bool) -> Result<Estimator> {
    if known_shares && method != Method::Moments {
        bail!("--shares goes with --method moments, the only estimator that takes known class shares");
    }
    let labelled = kind == PosteriorKind::Labelled;
    Ok(match method {
        Method::Auto if labelled => Estimator::LabelShift,
        Method::Auto => Estimator::Likelihood,
        Method::LabelShift | Method::Confusion if !labelled => bail!(
            "this estimator compares labelled with unlabelled rows and needs labelled posteriors; for --posterior population use --method likelihood or moments"
        ),
        Method::Likelihood if labelled => bail!(
            "--method likelihood needs population posteriors p(y|x); for a classifier trained on the labelled rows use --method label-shift (or auto), or say --posterior population"
        ),
        Method::Moments if labelled && !known_shares => bail!(
            "--method moments on labelled posteriors is inconsistent: a classifier trained on the labelled rows repeats their class shares; give --shares, or use --method label-shift, or say --posterior population"
        ),
        Method::LabelShift => Estimator::LabelShift,
        Method::Confusion => Estimator::Confusion,
        Method::Likelihood => Estimator::Likelihood,
        Method::Moments => Estimator::Moments,
        Method::Known => Estimator::Known,
    })
}

/// Whether to calibrate. The confusion matrix needs none, and population posteriors cannot be calibrated on labels.
pub(crate) fn calibrate(asked: Calibrate, kind: PosteriorKind, estimator: Estimator) -> Result<bool> {
    match asked {
        Calibrate::None => Ok(false),
        Calibrate::Auto => Ok(estimator == Estimator::LabelShift),
        Calibrate::Bcts if kind == PosteriorKind::Population => {
            bail!("labelled rows cannot calibrate population posteriors; leave out --calibrate bcts")
        }
        Calibrate::Bcts => Ok(true),
    }
}

/// One number a class from `a=0.2,b=0.8`, from the numbers alone in the order of the classes, or from several such
/// words. A word with a single `=` is taken whole, so that names may hold commas: `--phi 'left, upper=0.2'`.
pub(crate) fn by_class(flag: &str, words: &[String], names: &[String]) -> Result<Vec<f64>> {
    let mut items: Vec<&str> = Vec::new();
    for word in words {
        match word.rsplit_once('=') {
            Some((name, _)) if !name.contains('=') => items.push(word),
            _ => items.extend(word.split(',')),
        }
    }
    let number = |text: &str| -> Result<f64> {
        text.trim().parse().map_err(|_| anyhow::anyhow!("{flag}: `{text}` is not a number; write {}", example(names)))
    };
    if items.iter().all(|item| !item.contains('=')) {
        if items.len() != names.len() {
            bail!("{flag} has {} numbers but there are {} classes; write {}", items.len(), names.len(), example(names));
        }
        return items.into_iter().map(number).collect();
    }
    let mut values = vec![None; names.len()];
    for item in items {
        let Some((name, text)) = item.rsplit_once('=') else {
            bail!("{flag}: `{item}` names no class; write {}", example(names));
        };
        let Some(k) = names.iter().position(|known| known == name.trim()) else {
            let near = names
                .iter()
                .min_by_key(|known| strsim::levenshtein(known, name))
                .filter(|known| strsim::levenshtein(known, name) <= 2);
            let hint = near.map_or(String::new(), |known| format!(", did you mean `{known}`?"));
            bail!("{flag}: there is no class `{}`{hint}; the classes are {}", name.trim(), names.join(", "));
        };
        if values[k].replace(number(text)?).is_some() {
            bail!("{flag} names class `{}` twice", names[k]);
        }
    }
    match values.iter().position(Option::is_none) {
        Some(k) => bail!("{flag} gives no value for class `{}`; write {}", names[k], example(names)),
        None => Ok(values.into_iter().flatten().collect()),
    }
}

fn example(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(3).map(|name| format!("{name}=0.2")).collect();
    format!("{}{}", shown.join(","), if names.len() > 3 { ",..." } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Vec<f64>, String> {
        let names = ["a", "b, left", "c"].map(String::from);
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        by_class("--phi", &words, &names).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_by_name_by_order_and_by_several_words() {
        assert_eq!(parse(&["0.1,0.2,0.3"]), Ok(vec![0.1, 0.2, 0.3]));
        assert_eq!(parse(&["c=0.3", "b, left=0.2", "a=0.1"]), Ok(vec![0.1, 0.2, 0.3]));
        assert!(parse(&["0.1,0.2"]).unwrap_err().contains("2 numbers but there are 3 classes"));
        assert!(parse(&["a=0.1,c=0.2"]).unwrap_err().contains("no value for class `b, left`"));
        assert!(parse(&["a=0.1", "a=0.2"]).unwrap_err().contains("`a` twice"));
        assert!(parse(&["a=x"]).unwrap_err().contains("`x` is not a number"));
        assert!(parse(&["cc=0.1"]).unwrap_err().contains("did you mean `c`?"));
    }
}
