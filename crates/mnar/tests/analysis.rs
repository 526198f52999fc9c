//! The assembly line from evidence to findings.
#![allow(clippy::unwrap_used)] // helpers of tests are not seen as tests

use mnar::analysis::{
    Calibrate, EstimateSettings, Evidence, Features, Findings, Given, IntervalKind, IntervalMethod, TestMethod,
    TestSettings, VerdictKind,
};
use mnar::calibrate::Calibration;
use mnar::classify::{Classifier, Fitted, SoftmaxRegression, Training};
use mnar::covariates::Covariate;
use mnar::crossfit::{CrossFit, FoldPlan};
use mnar::diagnose::Verdict;
use mnar::estimate::{Estimator, LabelShift, SharePrior};
use mnar::progress::{Progress, Stage};
use mnar::{Class, ClassShares, Covariates, Error, Labels, Phi, PosteriorKind, Posteriors, RareClass, Sample};
use ndarray::{Array2, Axis};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Two overlapping clouds of 150 and 350 rows, of which 60% and 20% are labelled.
fn clouds(seed: u64) -> (Array2<f64>, Labels) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut x = Array2::zeros((500, 2));
    let mut y = Vec::new();
    for i in 0..500 {
        let sick = i % 10 < 3;
        for j in 0..2 {
            let noise: f64 = (0..6).map(|_| rng.random::<f64>() - 0.5).sum();
            x[[i, j]] = noise + if sick { 0.8 } else { -0.8 };
        }
        let phi = if sick { 0.6 } else { 0.2 };
        y.push((rng.random::<f64>() < phi).then_some(if sick { "sick" } else { "well" }));
    }
    (x, Labels::from_values(y).unwrap())
}

/// Cross-fitting through the trait is training by hand on the other folds, bit by bit.
#[test]
fn cross_fitting_is_training_on_the_other_folds() {
    let (x, labels) = clouds(1);
    let plan = FoldPlan::for_labels(&labels, 4, 7).unwrap();
    let classifier = SoftmaxRegression::default();
    let fitted = CrossFit { classifier: &classifier, x: &x, seed: 0 }.run(&labels, &plan, None, &()).unwrap();
    assert_eq!(fitted.models.len(), 4);
    for (fold, members) in plan.members().iter().enumerate() {
        let (rows, y): (Vec<usize>, Vec<Class>) =
            labels.labelled().filter(|(i, _)| plan.folds()[*i] as usize != fold).unzip();
        let by_hand = classifier.fit(x.select(Axis(0), &rows).view(), &y, 2, None).unwrap();
        let logits = by_hand.logits(x.select(Axis(0), members).view());
        assert_eq!(fitted.models[fold].logits(&x, members).unwrap(), logits);
        let p = fitted.models[fold].predict_proba(&x, members).unwrap();
        for (&i, p) in members.iter().zip(p.rows()) {
            assert_eq!(fitted.posteriors.row(i).to_vec(), p.to_vec());
        }
    }
}

/// A weight of two is a row given twice, also through the trait.
#[test]
fn weights_count_rows() {
    let (x, labels) = clouds(2);
    let (rows, classes): (Vec<usize>, Vec<Class>) = labels.labelled().unzip();
    let weights: Vec<f64> = (0..rows.len()).map(|i| 1.0 + (i % 2) as f64).collect();
    let doubled: Vec<(usize, Class)> =
        rows.iter().zip(&classes).enumerate().flat_map(|(i, (r, c))| vec![(*r, *c); 1 + i % 2]).collect();
    let (twice_rows, twice_classes): (Vec<usize>, Vec<Class>) = doubled.into_iter().unzip();
    let classifier: &dyn Classifier<Array2<f64>> = &SoftmaxRegression { tolerance: 1e-12, ..Default::default() };
    let fit = |rows: &[usize], classes: &[Class], weights: Option<&[f64]>| {
        let training = Training { rows, classes, n_classes: 2, weights };
        classifier.fit(&x, &training, 0, &()).unwrap().predict_proba(&x, &[0, 1, 2]).unwrap()
    };
    let (a, b) = (fit(&rows, &classes, Some(&weights)), fit(&twice_rows, &twice_classes, None));
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-9), "{a} {b}");
}

fn analysed(x: &Array2<f64>, labels: &Labels, settings: &EstimateSettings) -> Findings {
    let classifier = SoftmaxRegression::default();
    let names = ["a".to_owned(), "b".to_owned()];
    let features = Features { x, names: &names, classifier: &classifier };
    let plan = FoldPlan::for_labels(labels, 5, settings.seed).unwrap();
    let evidence = Evidence::cross_fit(features, labels, plan, settings.seed, &()).unwrap();
    settings.run(&evidence, &()).unwrap()
}

/// The findings are those of the parts, put together by hand.
#[test]
fn findings_are_those_of_the_parts() {
    let (x, labels) = clouds(3);
    let settings = EstimateSettings { replicates: Some(20), ..Default::default() };
    let found = analysed(&x, &labels, &settings);
    let plan = FoldPlan::for_labels(&labels, 5, 0).unwrap();
    let classifier = SoftmaxRegression::default();
    let raw = CrossFit { classifier: &classifier, x: &x, seed: 0 }.run(&labels, &plan, None, &()).unwrap().posteriors;
    let bcts = Calibration::default().fit(&Sample::new(&raw, &labels).unwrap()).unwrap();
    let calibrated = bcts.apply(&raw).unwrap();
    // A classifier that is cross-fitted here comes with a prior of three rows per class.
    let label_shift = LabelShift { prior: SharePrior::Labelled { weight: 6.0 }, ..Default::default() };
    let estimate = label_shift.estimate(&Sample::new(&calibrated, &labels).unwrap()).unwrap();
    assert_eq!((&found.phi, &found.prevalence), (&estimate.phi, &estimate.prevalence));
    assert_eq!(found.calibration, Some(bcts));
    assert_eq!(found.interval.kind, IntervalKind::BootstrapWithRefit);
    assert_eq!((found.interval.replicates, found.interval.failed_replicates), (20, 0));
    assert_eq!(found.features.as_deref(), Some(&["a".to_owned(), "b".to_owned()][..]));
    let interval = found.phi_ci95.unwrap()[0];
    assert!(interval.0 < found.phi[0] && found.phi[0] < interval.1);
}

/// The prior that nobody asked for moves the estimate, and not the intervals, except that they hold the estimate.
#[test]
fn the_prior_by_default_leaves_the_intervals_alone() {
    let (x, labels) = clouds(3);
    for interval in [IntervalMethod::Bootstrap, IntervalMethod::Information, IntervalMethod::Profile] {
        let settings = EstimateSettings { interval, replicates: Some(20), ..Default::default() };
        let found = |prior_weight| analysed(&x, &labels, &EstimateSettings { prior_weight, ..settings.clone() });
        let (usual, alone) = (found(None), found(Some(0.0)));
        assert_eq!((usual.prior_weight, alone.prior_weight), (6.0, 0.0));
        assert!(usual.phi != alone.phi && usual.labelling.is_some());
        assert_eq!((usual.prior_by_default, alone.prior_by_default), (true, false));
        assert_eq!(usual.phi_se, alone.phi_se);
        // Nor does it hide what the data do not say.
        assert_eq!(usual.identifiability, alone.identifiability);
        let (intervals, without) = (usual.phi_ci95.unwrap(), alone.phi_ci95.unwrap());
        for ((found, without), phi) in intervals.iter().zip(&without).zip(usual.phi.iter()) {
            assert_eq!(*found, (without.0.min(*phi), without.1.max(*phi)), "{interval:?}");
        }
    }
}

/// Two classes with two labels each, which the classifier confuses in a share e of the rows: the doubt is e(1 − e)/(10(1 − 2e))², at
/// most 1, and the prior grows with its square. There are 100 unlabelled rows per label.
#[test]
fn the_prior_by_default_grows_where_labels_do_not_say_what_is_confused() {
    for (e, weight) in [(0.1, 6.0), (0.45, 600.0 * 0.2475 * 0.2475), (0.49, 600.0)] {
        let classes = [Some("a"), Some("a"), Some("b"), Some("b")].into_iter().chain([None; 400]);
        let labels = Labels::from_values(classes).unwrap();
        let of_row = |row: usize| if (row < 2) || (row > 3 && row.is_multiple_of(3)) { 1.0 - e } else { e };
        let p = Array2::from_shape_fn((404, 2), |(row, k)| if k == 0 { of_row(row) } else { 1.0 - of_row(row) });
        let posteriors = Posteriors::new(p, PosteriorKind::Labelled).unwrap();
        let plan = FoldPlan::for_labels(&labels, 2, 0).unwrap();
        let evidence = Evidence::predictions(&posteriors, &labels).cross_fitted(&plan);
        let interval = IntervalMethod::Information;
        let settings = EstimateSettings { calibrate: Calibrate::None, interval, ..Default::default() };
        let found = settings.run(&evidence, &()).unwrap();
        assert!((found.prior_weight - weight).abs() < 1e-9 * weight, "{e}: {}", found.prior_weight);
        let poor = found.identifiability.unwrap().verdict == Verdict::Poor;
        assert!(poor || weight < 600.0);
        // Nobody but the cross-fit gets a prior.
        let given = settings.run(&Evidence::predictions(&posteriors, &labels), &()).unwrap();
        assert_eq!(given.prior_weight, 0.0);
    }
}

/// A trained model's estimate is taken over if the cross-fitted one agrees with it, and only then.
#[test]
fn phi_is_refined_where_nothing_contradicts_it() {
    let (x, labels) = clouds(3);
    let settings = EstimateSettings { interval: IntervalMethod::Information, ..Default::default() };
    let before = analysed(&x, &labels, &settings);
    assert_eq!(before.verdict.as_ref().unwrap().kind, VerdictKind::ByClass);
    let of_shares = |sick: f64| {
        let posteriors = before.calibrated.as_deref().unwrap();
        let mut estimate = LabelShift::default().estimate(&Sample::new(posteriors, &labels).unwrap()).unwrap();
        let shares = [sick, 1.0 - sick];
        let phi = (0..2).map(|k| labels.counts()[k] as f64 / labels.len() as f64 / shares[k]).collect();
        estimate.phi = Phi::new(phi).unwrap();
        estimate.prevalence = ClassShares::new(shares.to_vec()).unwrap();
        estimate
    };
    let se = before.prevalence_se.as_ref().unwrap()[0];
    // By itself, a share 2.1 standard errors off would differ by more than chance; one of two shares may.
    for (errors, agrees) in [(2.1, true), (3.0, false)] {
        let estimate = of_shares(before.prevalence[0] + errors * se);
        let mut after = before.clone();
        after.refine(&estimate);
        let refinement = after.refinement.as_ref().unwrap();
        assert_eq!((&refinement.cross_fitted, &refinement.trained), (&before.phi, &estimate.phi));
        assert_eq!(refinement.agrees, agrees);
        assert_eq!(&after.phi, if agrees { &estimate.phi } else { &before.phi });
        assert_eq!(&after.prevalence, if agrees { &estimate.prevalence } else { &before.prevalence });
        // The words name the phi that stands beside them.
        let ratio = format!("about {:.1} times", after.phi[0] / after.phi[1]);
        assert!(after.verdict.as_ref().unwrap().headline.contains(&ratio), "{ratio}: {:?}", after.verdict);
        let held = |intervals: &Option<Vec<(f64, f64)>>, values: &[f64]| {
            intervals.iter().flatten().zip(values).all(|((low, high), value)| low <= value && value <= high)
        };
        assert!(
            held(&after.phi_ci95, after.phi.as_slice()) && held(&after.prevalence_ci95, after.prevalence.as_slice())
        );
        assert_eq!(after.phi_se, before.phi_se);
        // The prior was that of the cross-fitted estimate.
        assert_eq!(after.prior_weight, if agrees { 0.0 } else { 6.0 });
    }
    // A model that leaves no unlabelled row to a class is not believed, however close it is.
    let mut at_bound = of_shares(before.prevalence[0] + 0.5 * se);
    at_bound.clipped = vec![Class::from(0)];
    let mut after = before.clone();
    after.refine(&at_bound);
    assert!(!after.refinement.as_ref().unwrap().agrees && after.phi == before.phi);
    // Nor is a model asked that the data could not contradict.
    let mut poor = before.clone();
    poor.identifiability.as_mut().unwrap().verdict = Verdict::Poor;
    poor.refine(&of_shares(before.prevalence[0]));
    assert!(poor.refinement.is_none() && poor.phi == before.phi);
    let mut unclear = before.clone();
    unclear.verdict.as_mut().unwrap().kind = VerdictKind::Unclear;
    unclear.refine(&of_shares(before.prevalence[0]));
    assert!(unclear.refinement.is_none());
}

/// Two clouds of which one in three rows comes from a site, and that site has no label.
#[test]
fn a_site_without_labels_is_unclear() {
    let (x, labels) = clouds(5);
    let sites = (0..500).map(|row| Some(["a", "b", "c"][row % 3]));
    let covariates = Covariates::new(vec![Covariate::categorical("site", sites)]).unwrap();
    let hidden = |row: usize| labels.get(row).filter(|_| row % 3 != 2);
    let hidden = Labels::new((0..500).map(hidden).collect(), labels.names().to_vec()).unwrap();
    let found = |labels: &Labels| {
        let classifier = SoftmaxRegression::default();
        let names = ["a".to_owned(), "b".to_owned()];
        let features = Features { x: &x, names: &names, classifier: &classifier };
        let plan = FoldPlan::for_labels(labels, 5, 0).unwrap();
        let evidence = Evidence::cross_fit(features, labels, plan, 0, &()).unwrap();
        let evidence = evidence.with_covariates(&covariates).unwrap();
        let given = Given::Columns(vec!["site".to_owned()]);
        let settings = EstimateSettings { given, interval: IntervalMethod::Information, ..Default::default() };
        settings.run(&evidence, &()).unwrap().verdict.unwrap()
    };
    let verdict = found(&hidden);
    assert_eq!(verdict.kind, VerdictKind::Unclear);
    assert!(verdict.headline.contains("none of the 166 rows where `site` is c has a label"), "{}", verdict.headline);
    assert!(!found(&labels).headline.contains("has a label"));
}

/// What belongs to a class with one label cannot be known, unless there are so many rows that it can hardly be much.
#[test]
fn a_class_that_was_set_aside_is_in_the_verdict() {
    let (x, labels) = clouds(3);
    let classifier = SoftmaxRegression::default();
    let names = ["a".to_owned(), "b".to_owned()];
    let features = Features { x: &x, names: &names, classifier: &classifier };
    let plan = FoldPlan::for_labels(&labels, 5, 0).unwrap();
    let evidence = Evidence::cross_fit(features, &labels, plan, 0, &()).unwrap();
    let rare = RareClass { class: "odd".to_owned(), labels: 1 };
    let evidence = evidence.with_set_aside(&[rare]);
    let settings = EstimateSettings { interval: IntervalMethod::Information, ..Default::default() };
    let found = settings.run(&evidence, &()).unwrap();
    let verdict = found.verdict.unwrap();
    assert_eq!(verdict.kind, VerdictKind::Unclear);
    assert!(verdict.headline.contains("the class `odd` has 1 label and was set aside"), "{}", verdict.headline);
    assert!(found.warnings.iter().any(|warning| warning.contains("`odd` is set aside")));
}

/// A classifier that knows nothing does not make phi or a share smaller than the label counts allow.
#[test]
fn intervals_keep_to_the_label_counts() {
    let classes = (0..600).map(|row| {
        if row < 15 {
            Some("a")
        } else if row < 45 {
            Some("b")
        } else {
            None
        }
    });
    let labels = Labels::from_values(classes).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let rows: Vec<f64> = (0..600).map(|_| 0.32 + 0.02 * rng.random::<f64>()).collect();
    let p = Array2::from_shape_fn((600, 2), |(row, k)| if k == 0 { rows[row] } else { 1.0 - rows[row] });
    let posteriors = Posteriors::new(p, PosteriorKind::Labelled).unwrap();
    let plan = FoldPlan::for_labels(&labels, 3, 0).unwrap();
    let evidence = Evidence::predictions(&posteriors, &labels).cross_fitted(&plan);
    let settings = EstimateSettings { interval: IntervalMethod::Information, ..Default::default() };
    let found = settings.run(&evidence, &()).unwrap();
    let (phi, shares) = (found.phi_ci95.unwrap(), found.prevalence_ci95.unwrap());
    for (k, count) in [(0, 15.0), (1, 30.0)] {
        let least = mnar::interval::wilson(count / 600.0, 600.0, 0.95).0;
        assert!(phi[k].0 >= least && shares[k].0 >= least, "{phi:?} {shares:?}");
        assert!(shares[1 - k].1 <= 1.0 - least);
        // It knows nothing more.
        assert!(shares[k].1 - shares[k].0 > 0.8, "{phi:?} {shares:?}");
    }
}

/// What a report shows is there when it is asked for, and findings survive JSON.
#[test]
fn findings_survive_json() {
    let (x, labels) = clouds(4);
    let settings = EstimateSettings { replicates: Some(20), ..Default::default() };
    let plain = analysed(&x, &labels, &settings);
    assert!(plain.classifier.is_none() && plain.sensitivity.is_none());
    let found = analysed(&x, &labels, &settings.for_report(mnar::PosteriorKind::Labelled));
    assert_eq!(found.sensitivity.as_ref().map(Vec::len), Some(9));
    let classifier = found.classifier.as_ref().unwrap();
    assert_eq!(classifier.confusion.iter().flatten().sum::<usize>(), labels.n_labelled());
    let right = classifier.confusion[0][0] + classifier.confusion[1][1];
    assert!((classifier.out_of_fold_accuracy - right as f64 / labels.n_labelled() as f64).abs() < 0.05);
    let text = serde_json::to_string(&found).unwrap();
    let again: Findings = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
    let complete = Labels::allow_degenerate(vec![Some(Class(0)), Some(Class(1))], labels.names().to_vec()).unwrap();
    let nothing = Findings::nothing_missing(&complete, 3);
    let text = serde_json::to_string(&nothing).unwrap();
    assert_eq!(serde_json::from_str::<Findings>(&text).unwrap().prevalence.as_slice(), [0.5, 0.5]);
}

/// Counts what it is told, and cancels after some steps.
struct Impatient {
    stages: Mutex<Vec<Stage>>,
    steps: AtomicUsize,
    patience: usize,
}

impl Progress for Impatient {
    fn begin(&self, stage: Stage, _steps: u64, _done: u64) {
        self.stages.lock().unwrap().push(stage);
    }

    fn step(&self) {
        self.steps.fetch_add(1, Ordering::SeqCst);
    }

    fn cancelled(&self) -> bool {
        self.steps.load(Ordering::SeqCst) >= self.patience
    }
}

#[test]
fn bootstraps_can_be_cancelled_everywhere() {
    let (x, labels) = clouds(5);
    let classifier = SoftmaxRegression::default();
    let features = Features { x: &x, names: &[], classifier: &classifier };
    let plan = FoldPlan::for_labels(&labels, 5, 0).unwrap();
    let evidence = Evidence::cross_fit(features, &labels, plan, 0, &()).unwrap();
    let impatient = || Impatient { stages: Mutex::default(), steps: AtomicUsize::new(0), patience: 3 };
    let watch = impatient();
    let error = EstimateSettings { replicates: Some(1000), ..Default::default() }.run(&evidence, &watch).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
    assert!(watch.steps.load(Ordering::SeqCst) < 100);
    assert_eq!(*watch.stages.lock().unwrap(), [Stage::Bootstrap]);
    for method in [TestMethod::Lrt, TestMethod::LrtBootstrap, TestMethod::MomentsBootstrap] {
        let watch = impatient();
        let error = TestSettings { method, replicates: 500, ..Default::default() }.run(&evidence, &watch).unwrap_err();
        assert!(matches!(error, Error::Cancelled), "{method:?}: {error}");
        assert!(watch.steps.load(Ordering::SeqCst) < 100, "{method:?}");
    }
}

/// Counts how often it is trained.
#[derive(Default)]
struct Counted(SoftmaxRegression, AtomicUsize);

impl Classifier<Array2<f64>> for Counted {
    fn name(&self) -> &str {
        Classifier::<Array2<f64>>::name(&self.0)
    }

    fn fit(
        &self,
        x: &Array2<f64>,
        training: &Training<'_>,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Box<dyn Fitted<Array2<f64>>>, Error> {
        self.1.fetch_add(1, Ordering::SeqCst);
        Classifier::fit(&self.0, x, training, seed, progress)
    }

    fn seconds(&self, rows: usize, columns: usize, classes: usize) -> f64 {
        Classifier::<Array2<f64>>::seconds(&self.0, rows, columns, classes)
    }
}

/// Keeps every other part.
#[derive(Default)]
struct Keeping(Mutex<HashMap<String, Vec<u8>>>);

impl Progress for Keeping {
    fn keep(&self, name: &str, bytes: &dyn Fn() -> Vec<u8>) {
        let mut kept = self.0.lock().unwrap();
        let number: usize = name.rsplit(' ').next().unwrap().parse().unwrap();
        if number.is_multiple_of(2) {
            assert!(kept.insert(name.to_owned(), bytes()).is_none(), "{name} was done twice");
        }
    }

    fn kept(&self, name: &str) -> Option<Vec<u8>> {
        self.0.lock().unwrap().get(name).cloned()
    }
}

/// Gives back what is not whole.
struct Short(HashMap<String, Vec<u8>>);

impl Progress for Short {
    fn kept(&self, name: &str) -> Option<Vec<u8>> {
        self.0.get(name).cloned()
    }
}

#[test]
fn refits_that_were_kept_are_not_repeated() {
    let (x, labels) = clouds(8);
    let classifier = Counted::default();
    let trained = || classifier.1.swap(0, Ordering::SeqCst);
    let features = Features { x: &x, names: &[], classifier: &classifier };
    let plan = FoldPlan::for_labels(&labels, 5, 0).unwrap();
    let evidence = Evidence::cross_fit(features, &labels, plan, 0, &()).unwrap();
    assert_eq!(trained(), 5);
    let settings = EstimateSettings { replicates: Some(20), ..Default::default() };
    let run = |progress: &dyn Progress| serde_json::to_string(&settings.run(&evidence, progress).unwrap()).unwrap();
    let alone = run(&());
    assert_eq!(trained(), 20 * 5);
    let keeping = Keeping::default();
    assert_eq!(run(&keeping), alone);
    assert_eq!(trained(), 20 * 5);
    assert_eq!(run(&keeping), alone, "not to the same bits");
    assert_eq!(trained(), 10 * 5);
    // What is not what it should be is done again.
    let short = keeping.0.lock().unwrap().iter().map(|(name, bytes)| (name.clone(), bytes[..70].to_vec())).collect();
    trained();
    assert_eq!(run(&Short(short)), alone);
    assert_eq!(trained(), 20 * 5);
}

/// Too few replicates leave an estimate outside its own interval.
#[test]
fn a_handful_of_replicates_is_refused() {
    let (x, labels) = clouds(6);
    let classifier = SoftmaxRegression::default();
    let features = Features { x: &x, names: &[], classifier: &classifier };
    let plan = FoldPlan::for_labels(&labels, 5, 0).unwrap();
    let evidence = Evidence::cross_fit(features, &labels, plan, 0, &()).unwrap();
    let few = EstimateSettings { replicates: Some(7), ..Default::default() };
    assert!(few.run(&evidence, &()).unwrap_err().to_string().contains("at least 8"));
    // Intervals from the information draw nothing.
    let information = EstimateSettings { interval: IntervalMethod::Information, ..few };
    let found = information.run(&evidence, &()).unwrap();
    assert_eq!(found.interval.kind, IntervalKind::Information);
    assert!(found.warnings.iter().any(|warning| warning.contains("take the classifier as given")));
}
