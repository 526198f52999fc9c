//! What the words on the command line mean together, checked before any work.

use crate::args::{Calibrate, DeviceName, EstimateArgs, Interval, Method, Posterior, TableArgs, TestArgs, TestMethod};
use anyhow::{Result, bail};
use mnar::analysis::{self, EstimateSettings, TestSettings};
use mnar::estimate::Shares;
use mnar::linear::SoftmaxRegression;
use mnar::{Phi, PosteriorKind};
use mnar_train::device::{self, Device};

impl From<Posterior> for PosteriorKind {
    fn from(posterior: Posterior) -> Self {
        match posterior {
            Posterior::Labelled => PosteriorKind::Labelled,
            Posterior::Population => PosteriorKind::Population,
        }
    }
}

impl From<Method> for analysis::Method {
    fn from(asked: Method) -> Self {
        match asked {
            Method::Auto => Self::Auto,
            Method::LabelShift => Self::LabelShift,
            Method::Likelihood => Self::Likelihood,
            Method::Moments => Self::Moments,
            Method::Confusion => Self::Confusion,
            Method::Known => Self::Known,
        }
    }
}

impl From<Calibrate> for analysis::Calibrate {
    fn from(asked: Calibrate) -> Self {
        match asked {
            Calibrate::Auto => Self::Auto,
            Calibrate::Bcts => Self::Bcts,
            Calibrate::None => Self::None,
        }
    }
}

impl From<Interval> for analysis::IntervalMethod {
    fn from(asked: Interval) -> Self {
        match asked {
            Interval::Auto => Self::Auto,
            Interval::Information => Self::Information,
            Interval::Bootstrap => Self::Bootstrap,
            Interval::Profile => Self::Profile,
        }
    }
}

impl From<TestMethod> for analysis::TestMethod {
    fn from(asked: TestMethod) -> Self {
        match asked {
            TestMethod::Auto => Self::Auto,
            TestMethod::Permutation => Self::Permutation,
            TestMethod::Lrt => Self::Lrt,
            TestMethod::LrtBootstrap => Self::LrtBootstrap,
            TestMethod::MomentsBootstrap => Self::MomentsBootstrap,
        }
    }
}

/// The settings of an estimate, for classes of these names.
pub(crate) fn estimate(args: &EstimateArgs, names: &[String]) -> Result<EstimateSettings> {
    let shares = match args.shares.as_slice() {
        [] => None,
        [word] if word == "balanced" => Some(Shares::Balanced),
        words => Some(Shares::Known(by_class("--shares", words, names)?)),
    };
    let phi = match args.phi.as_slice() {
        [] => None,
        words => Some(Phi::new(by_class("--phi", words, names)?)?),
    };
    Ok(EstimateSettings {
        method: args.method.into(),
        shares,
        phi,
        calibrate: args.calibrate.into(),
        prior_weight: args.prior_weight,
        interval: args.interval.into(),
        replicates: args.replicates,
        sensitivity: args.sensitivity.clone(),
        width: args.width,
        seed: args.table.seed,
    })
}

/// The settings of a test.
pub(crate) fn test(args: &TestArgs) -> TestSettings {
    TestSettings {
        method: args.method.into(),
        level: args.level,
        permutations: args.permutations,
        replicates: args.replicates,
        folds: args.table.folds,
        regression: regression(&args.table),
        power: args.power,
        seed: args.table.seed,
    }
}

/// Where to compute, if it is built in. Also says so where the environment asks for kernels that are not there.
pub(crate) fn device(name: DeviceName) -> Result<Device> {
    let device = match name {
        DeviceName::Cpu => device::cpu(),
        DeviceName::Cuda => device::cuda()?,
        DeviceName::Wgpu => device::wgpu()?,
    };
    device::name(&device)?;
    Ok(device)
}

/// The classifier of `--features`.
pub(crate) fn regression(args: &TableArgs) -> SoftmaxRegression {
    SoftmaxRegression { l2: args.l2, ..Default::default() }
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
