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


def two_classes():
    proba, y, _ = masked(n=400)
    keep = proba[:, 2] < 0.5
    proba, y = proba[keep, :2] / proba[keep, :2].sum(axis=1, keepdims=True), np.where(y == 2, -1, y)[keep]
    return proba, y


@pytest.mark.filterwarnings("ignore")
def test_one_column_for_two_classes():
    proba, y = two_classes()
    both = LabelMechanism(replicates=20).fit(proba, y)
    one = LabelMechanism(replicates=20, positive=1).fit(proba[:, 1], y)
    np.testing.assert_allclose(one.phi_, both.phi_, rtol=1e-9)
    np.testing.assert_allclose(one.population_proba(proba[:, 1]), both.population_proba(proba), rtol=1e-9)
    first = LabelMechanism(replicates=20, positive=0).fit(proba[:, :1], y)
    np.testing.assert_allclose(first.phi_, both.phi_, rtol=1e-9)
    logits = np.log(proba[:, 1] / proba[:, 0])
    of_logits = LabelMechanism(replicates=20, positive=1, logits=True).fit(logits, y)
    np.testing.assert_allclose(of_logits.phi_, both.phi_, rtol=1e-6)
    p_value = mcar_test(proba, y, permutations=99).pvalue
    assert mcar_test(proba[:, 1], y, positive=1, permutations=99).pvalue == p_value
    evaluated = mnar.evaluate(proba, y, models={"other": proba[:, ::-1]}, replicates=0)
    single = mnar.evaluate(proba[:, 1], y, positive=1, models={"other": proba[:, 0]}, replicates=0)
    for model in (None, "other"):
        for metric in ("accuracy", "log_loss"):
            found, expected = (e.get(metric, model=model)["corrected"] for e in (single, evaluated))
            assert found == pytest.approx(expected, rel=1e-9)
    # Without a name the class could be either.
    with pytest.raises(mnar.InputError, match="name the class with `positive`"):
        LabelMechanism().fit(proba[:, 1], y)
    with pytest.raises(mnar.InputError, match="the classes are 0 and 1"):
        LabelMechanism(positive="sick").fit(proba[:, 1], y)
    with pytest.raises(mnar.InputError, match="for two classes, but there are 3"):
        LabelMechanism(positive=1).fit(PROBA[:, 1], Y)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "lists"])
def test_a_column_of_lists(kind):
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    proba, y, _ = masked(n=300)
    column = {
        "pandas": lambda: pd.Series(list(proba)),
        "polars": lambda: pl.Series(proba.tolist()),
        "arrow": lambda: pa.array(proba.tolist()),
        "lists": lambda: proba.tolist(),
    }[kind]()
    expected = LabelMechanism(replicates=20).fit(proba, y)
    mechanism = LabelMechanism(replicates=20).fit(column, y)
    np.testing.assert_array_equal(mechanism.phi_, expected.phi_)
    np.testing.assert_array_equal(mechanism.unlabelled_proba(column), expected.unlabelled_proba(proba))
    found = mnar.evaluate(column, y, models={"same": column}, replicates=0)
    assert found.get("accuracy", model="same")["corrected"] == found.get("accuracy")["corrected"]


def test_lists_that_do_not_fit():
    import pandas as pd

    lists = PROBA.tolist()
    with pytest.raises(mnar.InputError, match=r"row 5 of proba has shape \(2,\)"):
        LabelMechanism().fit(pd.Series([*lists[:4], lists[4][:2], *lists[5:]]), Y)
    with pytest.raises(mnar.InputError, match="row 2 of proba is None, but others are lists"):
        LabelMechanism().fit(pd.Series([lists[0], None, *lists[2:]]), Y)


@pytest.mark.filterwarnings("ignore")
def test_budget():
    proba, y, _ = masked(n=4000)
    assert LabelMechanism(interval="bootstrap", replicates=50, budget=600).fit(proba, y).found_["interval"]["replicates"] == 50
    short = LabelMechanism(interval="bootstrap", replicates=5000, budget=0.05).fit(proba, y)
    assert 8 <= short.found_["interval"]["replicates"] < 5000
    for wrong in (0, -1, "60s", float("nan")):
        with pytest.raises(mnar.InputError, match="budget"):
            LabelMechanism(budget=wrong).fit(proba, y)
