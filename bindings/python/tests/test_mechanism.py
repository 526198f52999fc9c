"""The mechanism: what it finds, what it gives, what it takes."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import masked

import mnar
from mnar import LabelMechanism, MnarWarning, debiased_loss_weights, mcar_test


def test_finds_the_mechanism():
    phi = np.array([0.6, 0.3, 0.1])
    proba, y, truth = masked(n=20_000, phi=phi)
    mechanism = LabelMechanism().fit(proba, y)
    assert np.all(mechanism.phi_interval_[:, 0] <= phi) and np.all(phi <= mechanism.phi_interval_[:, 1])
    assert np.abs(mechanism.prevalence_ - np.bincount(truth) / len(truth)).max() < 0.02
    assert mechanism.phi_se_.shape == (3,) and mechanism.prevalence_interval_.shape == (3, 2)
    assert mechanism.converged_ and list(mechanism.classes_) == [0, 1, 2]
    assert "times as likely" in mechanism.summary()


def test_proba_by_bayes(rows):
    proba, y = rows
    mechanism = LabelMechanism(calibrate="none", interval="information").fit(proba, y)
    phi = mechanism.phi_
    population = proba / phi
    population /= population.sum(axis=1, keepdims=True)
    assert np.allclose(mechanism.population_proba(proba), population, atol=1e-15)
    unlabelled = population * (1 - phi)
    unlabelled /= unlabelled.sum(axis=1, keepdims=True)
    assert np.allclose(mechanism.unlabelled_proba(proba), unlabelled, atol=1e-14)
    # By total probability over who is labelled: p = P(r=1|x) s + P(r=0|x) u.
    labelled = (population * phi).sum(axis=1, keepdims=True)
    assert np.allclose(labelled * proba + (1 - labelled) * unlabelled, population)


def test_logits_are_probabilities_once_they_are_declared(rows):
    proba, y = rows
    logits = np.log(proba) + np.arange(len(proba))[:, None] % 7  # a constant per row is not seen
    expected = LabelMechanism(interval="information").fit(proba, y)
    mechanism = LabelMechanism(interval="information", logits=True).fit(logits, y)
    assert np.allclose(mechanism.phi_, expected.phi_, rtol=1e-9)
    assert np.allclose(mechanism.population_proba(logits), expected.population_proba(proba), atol=1e-9)
    found = mcar_test(logits, y, logits=True, permutations=99)
    assert found.statistic == pytest.approx(mcar_test(proba, y, permutations=99).statistic)
    with pytest.raises(mnar.InputError, match="hint: logits=True"):
        LabelMechanism().fit(logits - 9, y)
    logits[5, 0] = np.nan
    with pytest.raises(mnar.InputError, match="row 6 of proba"):
        mcar_test(logits, y, logits=True)


def test_weights_are_unbiased():
    """Averaged over all 2^6 masks, the weighted risk is the risk of the whole."""
    phi, truth = np.array([0.7, 0.2]), np.array([0, 1, 1, 0, 1, 0])
    rng = np.random.default_rng(0)
    with_label, without = rng.random(6), rng.random(6)
    total = 0.0
    for mask in range(2**6):
        seen = np.array([(mask >> i) & 1 for i in range(6)], dtype=bool)
        probability = np.prod(np.where(seen, phi[truth], 1 - phi[truth]))
        y = np.where(seen, truth, -1)
        weights = debiased_loss_weights(y, phi, classes=[0, 1])
        total += probability * np.mean(weights.labelled * with_label + 0.5 * weights.unlabelled * without)
    # The expectation of h's weight over the mask is phi * -(1-phi)/phi + (1-phi) = 0: it adds variance, not bias.
    assert total == pytest.approx(with_label.mean(), abs=1e-14)


def test_weights_of_a_mechanism(rows):
    proba, y = rows
    mechanism = LabelMechanism(interval="information").fit(proba, y)
    weights = mechanism.weights(y)
    assert np.array_equal(weights, np.where(y >= 0, 1 / mechanism.phi_[y], 0.0))
    assert np.array_equal(debiased_loss_weights(y, mechanism).labelled, weights)


@pytest.mark.parametrize("kind", ["list", "pandas", "polars", "float32", "fortran", "strided", "big-endian", "array"])
def test_arrays_of_every_kind(rows, kind):
    proba, y = rows
    expected = LabelMechanism(interval="information").fit(proba, y).phi_
    names = ["a", "b", "c"]

    class HasArray:
        def __array__(self, dtype=None, copy=None):
            return proba

    converted = {
        "list": lambda: (proba.tolist(), y.tolist()),
        "pandas": lambda: (pd.DataFrame(proba), pd.Series(y)),
        "polars": lambda: (pl.DataFrame(proba, schema=names), pl.Series(y)),
        "float32": lambda: (proba.astype(np.float32), y.astype(np.int8)),
        "fortran": lambda: (np.asfortranarray(proba), y.astype(float)),
        "strided": lambda: (np.repeat(proba, 2, axis=0)[::2], np.repeat(y, 2)[::2]),
        "big-endian": lambda: (proba.astype(">f8"), y.astype(">i4")),
        "array": lambda: (HasArray(), y),
    }[kind]()
    found = LabelMechanism(interval="information").fit(*converted).phi_
    assert np.allclose(found, expected, atol=1e-5 if kind == "float32" else 0)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_names_and_what_is_missing(rows, missing):
    proba, y = rows
    expected = LabelMechanism(interval="information").fit(proba, y)
    named = [missing if code < 0 else f"class {code}" for code in y]
    for given in (named, np.array(named, dtype=object), pd.Series(named, dtype=object)):
        found = LabelMechanism(interval="information").fit(proba, given)
        assert list(found.classes_) == ["class 0", "class 1", "class 2"]
        assert np.array_equal(found.phi_, expected.phi_)


def test_columns_named_after_classes_find_their_place(rows):
    proba, y = rows
    named = pd.Series([None if code < 0 else "abc"[code] for code in y], dtype=object)
    frame = pd.DataFrame(proba, columns=list("abc"))
    mechanism = LabelMechanism(interval="information").fit(frame, named)
    turned = LabelMechanism(interval="information").fit(frame[["c", "a", "b"]], named)
    assert np.array_equal(mechanism.phi_, turned.phi_)
    assert np.array_equal(mechanism.population_proba(frame), turned.population_proba(frame[["b", "c", "a"]]))


def test_test_of_informative_labels(rows):
    proba, y = rows
    found = mcar_test(proba, y)
    assert found.pvalue < 0.001 and found.reject and found.method == "permutation" and found.df == 2
    assert "depend on the class" in found.summary() and "depend on the class" in found._repr_html_()
    assert found.found["verdict"]["kind"] == "by-class"
    rng = np.random.default_rng(0)
    _, _, truth = masked()
    blind = np.where(rng.random(len(truth)) < 0.3, truth, -1)
    assert mcar_test(proba, blind).pvalue > 0.01


def test_warnings_are_warnings():
    proba, y, truth = masked(n=300, phi=[0.6, 0.5, 0.02], seed=2)
    y[np.flatnonzero(truth == 2)[:3]] = 2
    with pytest.warns(MnarWarning, match="fewer than 10 labels for `2`"):
        LabelMechanism(interval="information").fit(proba, y)


def test_pickles_without_the_rows(rows, tmp_path):
    proba, y = rows
    mechanism = LabelMechanism(interval="information").fit(proba, y)
    saved = pickle.dumps(mechanism)
    assert len(saved) < proba.nbytes / 2
    again = pickle.loads(saved)
    assert np.array_equal(again.population_proba(proba), mechanism.population_proba(proba))
    with pytest.raises(mnar.InputError, match="fit it again"):
        again.report(tmp_path / "page.html")


def test_report_is_a_page(rows, tmp_path):
    proba, y = rows
    mechanism = LabelMechanism().fit(proba, y)
    mechanism.report(tmp_path / "page.html", title="three insects")
    page = (tmp_path / "page.html").read_text()
    assert "three insects" in page and page.lstrip().lower().startswith("<!doctype html>")
    with pytest.raises(mnar.RunError, match="no folder"):
        mechanism.report(tmp_path / "nowhere" / "page.html")


def test_same_seed_same_numbers(rows):
    proba, y = rows
    one, two = (LabelMechanism(replicates=50, seed=3).fit(proba, y).phi_interval_ for _ in range(2))
    other = LabelMechanism(replicates=50, seed=4).fit(proba, y).phi_interval_
    assert np.array_equal(one, two) and not np.array_equal(one, other)


def test_threads_run_meanwhile():
    """Work gives the interpreter's lock away."""
    import threading
    import time

    proba, y, _ = masked(n=20_000)
    ticks, done = [0], threading.Event()

    def count():
        while not done.is_set():
            ticks[0] += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        LabelMechanism(interval="bootstrap", replicates=400).fit(proba, y)
    done.set()
    counter.join()
    assert ticks[0] > 5
