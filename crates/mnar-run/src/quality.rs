//! How good the cross-fitted classifier is in the whole population. Its out-of-fold predictions are there anyway, and they are of
//! all labelled rows, where a network is judged by the few that were held out.

use mnar::analysis::{EstimateSettings, Evidence, Findings};
use mnar::evaluate::{EvaluateSettings, Model, Scores};
use mnar::progress::Progress;
use mnar::{Error, PosteriorKind, Posteriors};
use mnar_report::OutOfFold;
use mnar_train::Propensity;
use ndarray::Array2;

/// Replicates of the intervals; 100 know the width of an interval to 7%.
const REPLICATES: usize = 100;
/// Probabilities over all replicates, of each of the two models: some 4 seconds on one core.
const AFFORDABLE: usize = 10_000_000;
const FEWEST_REPLICATES: usize = 20;
/// Larger tables, such as 200,000 rows of 10 classes, have no intervals here: 20 replicates would take 15 seconds on one core.
const LARGEST: usize = 2_000_000;

/// Evaluates the predictions of the evidence as they are and corrected for the mechanism. `asked` is the number of replicates, if
/// one was asked for. A run does not fail for want of these numbers: the caller is told why there are none.
pub(crate) fn out_of_fold(
    evidence: &Evidence<'_>,
    findings: &Findings,
    settings: EstimateSettings,
    asked: Option<usize>,
    classifier: &str,
    progress: &dyn Progress,
) -> Result<Option<OutOfFold>, Error> {
    let biased = evidence.posteriors.as_ref();
    let debiased = of_population(biased, &Propensity::new(&findings.phi, findings.row_phi.as_deref()))?;
    let replicates = affordable(biased.len().saturating_mul(biased.n_classes()), asked);
    let by = findings.by.as_ref().map(|by| by.column.clone());
    let estimate = EstimateSettings { by, replicates: Some(replicates), ..settings };
    let models = [(OutOfFold::BIASED, biased), (OutOfFold::DEBIASED, &debiased)];
    let models = models.map(|(name, p)| Model { name: name.to_owned(), scores: Scores::Probabilities(p) });
    let settings = EvaluateSettings { estimate, ..Default::default() };
    match settings.run_with(findings.clone(), evidence, &models, progress) {
        Ok(found) => Ok(Some(OutOfFold::new(classifier, found))),
        Err(Error::Cancelled) => Err(Error::Cancelled),
        Err(error) => {
            progress.warn(&format!("the cross-fitted classifier could not be evaluated: {error}"));
            Ok(None)
        }
    }
}

fn affordable(numbers: usize, asked: Option<usize>) -> usize {
    let most = match numbers {
        large if large > LARGEST => 0,
        numbers => (AFFORDABLE / numbers.max(1)).clamp(FEWEST_REPLICATES, REPLICATES),
    };
    asked.map_or(most, |asked| asked.min(most))
}

/// p(y | x) of every row.
fn of_population(labelled: &Posteriors, phi: &Propensity<'_>) -> Result<Posteriors, Error> {
    let mut p = Array2::zeros((labelled.len(), labelled.n_classes()));
    for (i, mut row) in p.rows_mut().into_iter().enumerate() {
        row.iter_mut().zip(labelled.of_population(i, phi.of(i))).for_each(|(to, p)| *to = p);
    }
    Posteriors::new(p, PosteriorKind::Population)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_tables_have_no_intervals_here() {
        assert_eq!(affordable(768 * 2, None), 100);
        assert_eq!(affordable(200_000, None), 50);
        assert_eq!(affordable(1_000_000, None), 20);
        assert_eq!(affordable(10_000_000, None), 0);
        assert_eq!(affordable(1000, Some(0)), 0);
        assert_eq!(affordable(1000, Some(30)), 30);
    }
}
