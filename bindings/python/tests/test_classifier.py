"""The classifier on any base, and scikit-learn's own checks of both estimators."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils.estimator_checks import parametrize_with_checks

import mnar
from mnar import LabelMechanism, MNARClassifier

NOT_FEATURES = (
    "takes class probabilities, one column per class of y and rows that sum to 1, with some labels missing;"
    " this check gives features"
)


def expected_failures(estimator):
    if isinstance(estimator, MNARClassifier):
        return {"check_classifiers_classes": "the check has a class -1, which means no label here, as in scikit-learn"}
    return dict.fromkeys(
        [
            "check_dict_unchanged",
            "check_dont_overwrite_attributes",
            "check_dont_overwrite_parameters",
            "check_dtype_object",
            "check_estimators_dtypes",
            "check_estimators_fit_returns_self",
            "check_estimators_nan_inf",
            "check_estimators_overwrite_params",
            "check_estimators_pickle",
            "check_f_contiguous_array_estimator",
            "check_fit2d_1feature",
            "check_fit2d_predict1d",
            "check_fit_check_is_fitted",
            "check_fit_idempotent",
            "check_fit_score_takes_y",
            "check_methods_sample_order_invariance",
            "check_methods_subset_invariance",
            "check_n_features_in",
            "check_n_features_in_after_fitting",
            "check_pipeline_consistency",
            "check_positive_only_tag_during_fit",
            "check_readonly_memmap_input",
            "check_sample_weights_pandas_series",
        ],
        NOT_FEATURES,
    )


@parametrize_with_checks([MNARClassifier(), LabelMechanism()], expected_failed_checks=expected_failures)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)


def breast_cancer(seed=0, phi=(0.5, 0.08)):
    X, truth = load_breast_cancer(return_X_y=True)
    labelled = np.random.default_rng(seed).random(len(truth)) < np.where(truth == 0, *phi)
    return scale(X), np.where(labelled, truth, -1), truth


@pytest.mark.parametrize("correction", ["impute", "weights"])
def test_ahead_of_the_labelled_rows_alone(correction):
    gained_accuracy, gained_loss = [], []
    for seed in range(5):
        X, y, truth = breast_cancer(seed)
        plain = LogisticRegression().fit(X[y >= 0], y[y >= 0])
        ours = MNARClassifier(correction=correction).fit(X, y)
        gained_accuracy.append(ours.score(X, truth) - plain.score(X, truth))
        gained_loss.append(log_loss(truth, plain.predict_proba(X)) - log_loss(truth, ours.predict_proba(X)))
    assert np.mean(gained_accuracy) > 0 and np.mean(gained_loss) > 0


def test_mechanism_and_probabilities():
    X, y, truth = breast_cancer()
    classifier = MNARClassifier().fit(X, y)
    assert np.abs(classifier.mechanism_.phi_ - [0.5, 0.08]).max() < 0.1
    population, unlabelled = classifier.predict_proba(X), classifier.predict_proba_unlabelled(X)
    assert np.allclose(population.sum(axis=1), 1) and np.allclose(unlabelled.sum(axis=1), 1)
    # Malignant tumours are labelled more often, so an unlabelled one is more likely benign.
    assert np.all(unlabelled[:, 1] >= population[:, 1] - 1e-12)
    blank = y < 0
    assert log_loss(truth[blank], unlabelled[blank]) < log_loss(truth[blank], population[blank]) + 0.02
    assert "times as likely" in classifier.mechanism_.summary()


def test_all_labels_there_is_the_base_itself():
    X, _, truth = breast_cancer()
    plain, ours = LogisticRegression().fit(X, truth), MNARClassifier().fit(X, truth)
    assert ours.mechanism_ is None
    assert np.array_equal(plain.predict_proba(X), ours.predict_proba(X))
    assert np.array_equal(plain.predict_proba(X), ours.predict_proba_unlabelled(X))


@pytest.mark.parametrize(
    "base", [GaussianNB(), KNeighborsClassifier(), make_pipeline(StandardScaler(), LogisticRegression())]
)
def test_other_bases(base):
    X, y, truth = breast_cancer()
    classifier = MNARClassifier(base).fit(X, y)
    assert classifier.score(X, truth) > 0.9
    if isinstance(base, KNeighborsClassifier):
        assert classifier.n_rounds_ == 0
        with pytest.raises(mnar.SettingsError, match="sample_weight"):
            MNARClassifier(base, correction="weights").fit(X, y)


def test_names_tables_and_clones():
    X, y, truth = breast_cancer()
    named = pd.Series(np.array(["malignant", "benign", None], dtype=object)[y])
    assert named.isna().sum() == (y < 0).sum()
    by_name = MNARClassifier(rounds=1).fit(pd.DataFrame(X).add_prefix("x"), named)
    assert list(by_name.classes_) == ["benign", "malignant"]
    by_number = clone(by_name).fit(X, y)
    # Classes in another order, so folds are drawn in another order: alike, not equal.
    agree = np.mean(by_name.predict(pd.DataFrame(X).add_prefix("x")) == np.where(by_number.predict(X), "benign", "malignant"))
    assert agree > 0.97


def test_ten_classes_and_cross_validation():
    X, truth = load_digits(return_X_y=True)
    phi = np.geomspace(0.5, 0.1, 10)
    y = np.where(np.random.default_rng(0).random(len(truth)) < phi[truth], truth, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier = MNARClassifier(LogisticRegression(max_iter=300), rounds=1).fit(X / 16, y)
    plain = LogisticRegression(max_iter=300).fit(X[y >= 0] / 16, y[y >= 0])
    assert classifier.score(X / 16, truth) > plain.score(X / 16, truth)
    X, _, truth = breast_cancer()
    assert cross_val_score(MNARClassifier(rounds=0), X, truth, cv=3).mean() > 0.9


def test_a_base_that_is_far_too_sure_is_warned_of():
    X, truth = load_digits(return_X_y=True)
    y = np.where(np.random.default_rng(0).random(len(truth)) < 0.3, truth, -1)
    with pytest.warns(mnar.MnarWarning, match="far too sure"):
        MNARClassifier(GaussianNB(), rounds=0).fit(X, y)
