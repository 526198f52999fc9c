"""Wrong input gets an exception of ours that says what is wrong, never a crash or a hang."""

import numpy as np
import pytest
from conftest import masked

import mnar
from mnar import LabelMechanism, MNARClassifier, debiased_loss_weights, mcar_test

PROBA, Y, TRUTH = masked(n=60)


def changed(array, at, value):
    array = np.array(array, dtype=object if isinstance(value, str) else None)
    array[at] = value
    return array


@pytest.mark.parametrize(
    ("proba", "y", "message"),
    [
        (None, Y, "proba is None"),
        (PROBA, None, "y is None"),
        (PROBA[:, 0], Y, "two: one row per sample"),
        (PROBA[None], Y, "two: one row per sample"),
        (PROBA[:50], Y, "50 rows but y has 60"),
        (PROBA[:, :2], Y, "2 columns but y has 3 classes"),
        (PROBA, Y[:, None].repeat(2, axis=1), "y has 2 dimension"),
        (np.empty((0, 3)), np.empty(0, dtype=int), "0 classes|no rows"),
        (PROBA, np.full(60, -1), "0 classes|has a label"),
        (PROBA, TRUTH, "all 60 rows have a label"),
        (PROBA[:, :1], np.where(Y == 0, 0, -1), "only one class"),
        (changed(PROBA, (3, 1), np.nan), Y, "row 4: the probability of class number 2 is NaN"),
        (changed(PROBA, (3, 1), -0.5), Y, "row 4: .* -0.5"),
        (PROBA * 2, Y, "row 1|sum to"),
        (np.log(PROBA + 1e-9), Y, "probabilit"),
        (changed(PROBA, (0, 0), "high"), Y, "must hold numbers"),
        (np.array([["a", "b", "c"]] * 60), Y, "must hold numbers"),
        (PROBA.astype(complex), Y, "."),
        (PROBA, np.linspace(0, 1, 60), "continuous"),
        (PROBA, changed(Y.astype(float), 5, np.inf), "infinity"),
        (PROBA, np.array(["a", "", "b"] * 20), "empty texts"),
        (PROBA, np.array(["a", 1, None] * 20, dtype=object), "one type"),
        (PROBA, np.array([[1], "x", None] * 20, dtype=object), "one type"),
        (PROBA, np.array(["2020-01-01"] * 60, dtype="datetime64[D]"), "whole numbers or names"),
        ([[0.5, 0.5], [1.0]], [0, 1], "cannot be made an array"),
        ({"a": 1}, Y, "."),
    ],
)
@pytest.mark.parametrize("call", [lambda p, y: LabelMechanism().fit(p, y), mcar_test], ids=["fit", "test"])
@pytest.mark.filterwarnings("ignore")
def test_wrong_rows(proba, y, message, call):
    with pytest.raises(mnar.MnarError, match=message) as raised:
        call(proba, y)
    assert isinstance(raised.value, ValueError)


def test_classes():
    with pytest.raises(mnar.InputError, match="not among the classes"):
        LabelMechanism().fit(PROBA, Y, classes=[0, 1, 7])
    with pytest.raises(mnar.InputError, match="different labels"):
        LabelMechanism().fit(PROBA, Y, classes=[0, 1, 1])
    with pytest.raises(mnar.InputError, match="class `9` has no label"):
        proba = np.column_stack([PROBA * 0.9, np.full(60, 0.1)])
        LabelMechanism().fit(proba, Y, classes=[0, 1, 2, 9])


def test_folds():
    with pytest.raises(mnar.InputError, match="fold has shape"):
        LabelMechanism().fit(PROBA, Y, fold=[0, 1])
    with pytest.raises(mnar.InputError, match="fold of row 1 is NaN"):
        LabelMechanism().fit(PROBA, Y, fold=np.full(60, np.nan))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "magic"}, "unknown variant `magic`"),
        ({"posterior": "both"}, "unknown variant `both`"),
        ({"interval": "wide"}, "unknown variant"),
        ({"calibrate": "yes"}, "unknown variant"),
        ({"method": "likelihood"}, "population"),
        ({"method": "moments"}, "inconsistent"),
        ({"method": "known"}, "go together"),
        ({"phi": [0.1, 0.2, 0.3]}, "go together"),
        ({"method": "known", "phi": [0.1, 0.2, 1.3]}, "1.3"),
        ({"method": "known", "phi": [0.1, 0.2]}, "."),
        ({"method": "moments", "shares": "equal"}, "balanced"),
        ({"method": "moments", "shares": [0.2, 0.2, 0.2]}, "sum"),
        ({"method": "moments", "shares": ["a", "b", "c"]}, "must be numbers"),
        ({"shares": "balanced"}, "moments"),
        ({"prior_weight": -1.0}, "prior weight is -1"),
        ({"prior_weight": float("nan")}, "finite"),
        ({"prior_weight": "much"}, "must be a number"),
        ({"replicates": 3}, "at least 8"),
        ({"replicates": 2.5}, "whole number"),
        ({"seed": -1}, "whole number"),
        ({"sensitivity": [0.0]}, "odds factor"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_wrong_settings(settings, message):
    with pytest.raises(mnar.MnarError, match=message):
        LabelMechanism(**settings).fit(PROBA, Y)


@pytest.mark.parametrize(
    "settings",
    [{"level": 2}, {"permutations": 0}, {"method": "magic"}, {"power": 7.0}, {"seed": "x"}, {"posterior": "x"}],
)
@pytest.mark.filterwarnings("ignore")
def test_wrong_settings_of_a_test(settings):
    with pytest.raises(mnar.MnarError):
        mcar_test(PROBA, Y, **settings)


@pytest.mark.filterwarnings("ignore")
def test_after_the_fit():
    mechanism = LabelMechanism(interval="information").fit(PROBA, Y)
    with pytest.raises(mnar.InputError, match="2 columns"):
        mechanism.population_proba(PROBA[:, :2])
    with pytest.raises(mnar.InputError, match="not among"):
        mechanism.weights([0, 9])
    with pytest.raises(mnar.InputError, match="row 1"):
        mechanism.unlabelled_proba(PROBA * 3)


def test_weights():
    with pytest.raises(mnar.SettingsError, match="phi"):
        debiased_loss_weights([0, 1], [0.5, 0.0])
    with pytest.raises(mnar.InputError, match="2 numbers but there are 3 classes"):
        debiased_loss_weights([0, 1, 2], [0.5, 0.1])
    with pytest.raises(mnar.InputError, match="one number per class"):
        debiased_loss_weights([0, 1], "half")


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.full(60, -1), "no label"),
        (np.where(np.arange(60) < 5, 1, -1), "one class"),
        (np.where(np.arange(60) < 5, 1, np.where(np.arange(60) == 9, 0, -1)), "one label"),
        (None, "requires y"),
    ],
)
def test_classifier(y, message):
    with pytest.raises(mnar.InputError, match=message):
        MNARClassifier().fit(PROBA, y)
