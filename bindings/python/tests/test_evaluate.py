"""Metrics of models from informative labels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

import mnar


def world(seed: int = 0, n: int = 3000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sick = (rng.random(n) < 0.2).astype(int)
    p = np.where(sick == 1, rng.beta(3, 2, n), rng.beta(1, 6, n))
    seen = rng.random(n) < np.where(sick == 1, 0.6, 0.1)
    return np.column_stack([1 - p, p]), sick, np.where(seen, sick, -1)


def test_corrected_metrics_are_close_to_the_truth_and_naive_ones_are_not() -> None:
    proba, truth, y = world()
    found = mnar.evaluate(proba, y, replicates=50)
    expected = {
        "accuracy": sk.accuracy_score(truth, proba.argmax(1)),
        "auc": sk.roc_auc_score(truth, proba[:, 1]),
        "log_loss": sk.log_loss(truth, proba),
        "brier": sk.brier_score_loss(truth, proba[:, 1]),
    }
    for name, value in expected.items():
        low, high = found.get(name)["ci95"]
        assert low - 0.01 < value < high + 0.01, (name, value, low, high)
    precision = found.get("precision", 1)
    assert abs(precision["corrected"] - sk.precision_score(truth, proba.argmax(1))) < 0.1
    assert precision["naive"] > precision["corrected"]
    frame = found.to_frame()
    assert {"name", "class", "group", "model", "population", "naive", "corrected", "low", "high"} <= set(frame.columns)
    assert "corrected" in found.summary()


def test_all_labels_give_scikit_learn() -> None:
    proba, truth, _ = world()
    with pytest.warns(mnar.MnarWarning):
        found = mnar.evaluate(proba, truth, replicates=0)
    assert found.get("auc", 1)["corrected"] == pytest.approx(sk.roc_auc_score(truth, proba[:, 1]), abs=1e-12)
    assert found.get("log_loss")["corrected"] == pytest.approx(sk.log_loss(truth, proba), abs=1e-12)


def test_models_and_decisions_are_compared() -> None:
    proba, truth, y = world()
    coin = np.random.default_rng(1).integers(0, 2, len(y))
    found = mnar.evaluate(proba, y, models={"flat": np.full_like(proba, 0.5), "coin": coin}, replicates=30)
    assert found.get("auc", model="flat")["corrected"] == pytest.approx(0.5)
    worse = [d for d in found.differences if d["model"] == "coin" and d["name"] == "accuracy" and d["population"] == "all"]
    assert worse[0]["ci95"][1] < 0
    with pytest.raises(mnar.InputError):
        mnar.evaluate(proba, y, models={"coin": np.where(coin == 0, -1, coin)})


def test_a_scorer_for_searches() -> None:
    proba, truth, y = world()

    class Fixed:
        classes_ = np.array([0, 1])

        def predict_proba(self, X: np.ndarray) -> np.ndarray:
            return proba[X[:, 0]]

    rows = np.arange(len(y)).reshape(-1, 1)
    score = mnar.scorer("log_loss", phi=[0.1, 0.6], posterior="labelled")(Fixed(), rows, y)
    assert score == pytest.approx(-sk.log_loss(truth, proba), abs=0.05)
