"""Data of which only one class is ever labelled."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

import mnar


def clinic(n=1500, phi=0.6, seed=0):
    """30% are sick, and 60% of these are known."""
    rng = np.random.default_rng(seed)
    sick = rng.random(n) < 0.3
    x = rng.normal(size=(n, 3)) + 1.6 * sick[:, None]
    known = sick & (rng.random(n) < phi)
    return x, sick, np.where(known, "sick", None)


@pytest.fixture(scope="module")
def rows():
    x, sick, y = clinic()
    labelled = pd.notna(y)
    score = cross_val_predict(LogisticRegression(), x, labelled, method="predict_proba")[:, 1]
    return score, y, sick


def test_bounds_without_a_share(rows):
    score, y, sick = rows
    found = mnar.positive_unlabelled(score, y)
    assert found.class_ == "sick" and found.phi is None and found.share is None
    assert 0.3 < found.phi_at_least < 0.65
    assert found.share_at_least < sick.mean() < found.share_at_most
    assert found.found["phi_at_least"] == found.phi_at_least
    assert "cannot say how common" in found.summary()
    for call in (lambda: found.weights(y), lambda: found.population_proba(score), lambda: found.unlabelled_proba(score)):
        with pytest.raises(mnar.InputError, match="give it"):
            call()


def test_with_the_share():
    x, sick, y = clinic()
    labelled = pd.notna(y)
    # P(labelled | x) as it is: the odds of being sick, by Bayes' rule, times phi.
    odds = 0.3 / 0.7 * np.exp(1.6 * x.sum(axis=1) - 3 * 1.6**2 / 2)
    score = 0.6 * odds / (1 + odds)
    found = mnar.positive_unlabelled(score, y, share=0.3)
    assert found.phi == pytest.approx(labelled.mean() / 0.3, abs=1e-12)
    assert found.phi_interval[0] < 0.6 < found.phi_interval[1] and not found.contradicted
    weights = found.weights(y)
    assert weights.sum() / len(y) == pytest.approx(0.3, abs=1e-12)
    p = found.population_proba(score)
    assert abs(p.mean() - 0.3) < 0.05
    # Calibrated: among rows with about the same probability, as many are sick.
    for low, high in [(0.0, 0.1), (0.9, 1.01)]:
        there = (p >= low) & (p < high)
        assert abs(sick[there].mean() - p[there].mean()) < 0.12, (low, high)
    u = found.unlabelled_proba(score)
    left = ~labelled
    assert abs(u[left].mean() - sick[left].mean()) < 0.05
    assert (u <= p + 1e-12).all()


def test_labels_may_be_numbers(rows):
    score, y, _ = rows
    numbers = np.where(pd.notna(y), 1, -1)
    found = mnar.positive_unlabelled(score, numbers, share=0.3)
    assert found.class_ == 1
    assert found.phi == mnar.positive_unlabelled(score, y, share=0.3).phi


def test_a_share_that_the_data_contradict(rows):
    score, y, _ = rows
    with pytest.warns(mnar.MnarWarning, match="contradict"):
        found = mnar.positive_unlabelled(score, y, share=0.9)
    assert found.contradicted and found.found["verdict"]["kind"] == "unclear"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, y: (s[:-1], y, None), "rows but y has"),
        (lambda s, y: (s * 3, y, None), "must be a probability"),
        (lambda s, y: (np.where(s == s[3], np.nan, s), y, None), "score of row 4 is nan"),
        (lambda s, y: (np.column_stack([s, s]), y, None), "one number per row"),
        (lambda s, y: (s, np.where(y == "sick", "sick", "well"), None), "2 classes, but must have one"),
        (lambda s, y: (s, np.full(len(y), None), None), "0 classes"),
        (lambda s, y: (s, np.full(len(y), "sick"), None), "nothing to estimate"),
        (lambda s, y: (s, y, 0.01), "0.01 of all rows"),
        (lambda s, y: (s, y, 1.5), "between 0 and 1"),
        (lambda s, y: (s, y, "a third"), "share is"),
    ],
)
def test_what_cannot_be_used(rows, change, message):
    score, y, _ = rows
    with pytest.raises(mnar.MnarError, match=message):
        mnar.positive_unlabelled(*change(score, y))


def test_a_run(tmp_path):
    x, sick, y = clinic(n=600)
    table = pd.DataFrame(x, columns=["a", "b", "c"]).assign(diagnosis=y)
    with pytest.raises(mnar.RunError, match="a model needs the share") as raised:
        mnar.fit(table, "diagnosis", out=tmp_path / "run")
    assert 'shares="sick=SHARE"' in str(raised.value)
    run = mnar.fit(table, "diagnosis", out=tmp_path / "run", shares={"sick": 0.3})
    assert run.classes == ["sick", "not sick"]
    assert run.phi["sick"] == pytest.approx(pd.notna(y).mean() / 0.3)
    new, truth, _ = clinic(n=400, seed=7)
    predicted = run.predict(pd.DataFrame(new, columns=["a", "b", "c"]))
    assert np.mean((predicted["p_sick"] > 0.5) == truth) > 0.85
