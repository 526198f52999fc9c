"""Columns that labelling depends on, groups and audits."""

from __future__ import annotations

import numpy as np
import pytest

import mnar


def world(seed: int = 0, n: int = 4000, hidden: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities, true classes, sites and labels that depend on the site, and on a cause that is in no column."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.4).astype(int)
    site = rng.integers(0, 3, n)
    x = rng.normal(size=n) + 2.0 * truth
    unseen = rng.normal(size=n) + 1.5 * x * (hidden > 0)
    logit = np.array([1.2, -0.6, -1.4])[site] + hidden * unseen - hidden
    seen = rng.random(n) < 1 / (1 + np.exp(-logit))
    # What a classifier with the site among its features learns from the labelled rows: x tells all it needs.
    odds = np.log(0.4 / 0.6) + 2.0 * x - 2.0
    p = 1 / (1 + np.exp(-odds))
    return np.column_stack([1 - p, p]), truth, site, np.where(seen, truth, -1)


def test_a_column_is_taken_into_the_mechanism() -> None:
    proba, truth, site, y = world()
    names = np.array(["north", "south", "west"])[site]
    mechanism = mnar.LabelMechanism(replicates=40).fit(proba, y, given={"site": names})
    assert mechanism.verdict_ == "by-columns"
    low, high = mechanism.prevalence_interval_[1]
    assert low < truth.mean() < high
    assert mechanism.row_phi_.shape == proba.shape
    assert mechanism.weights(y).sum() == pytest.approx(len(y), rel=0.1)
    assert mechanism.population_proba(proba)[:, 1].mean() == pytest.approx(truth.mean(), abs=0.03)
    with pytest.raises(mnar.InputError, match="rows of `fit`"):
        mechanism.weights(y[:5])
    labelling = mechanism.found_["labelling"]
    assert labelling["given"] == ["site"]
    terms = {term["term"]: term["odds_ratio"] for term in labelling["effects"][0]["terms"]}
    assert len(terms) == 2
    assert mnar.mcar_test(proba, y, given={"site": names}, permutations=199).found["verdict"]["kind"] == "by-columns"


def test_pandas_and_numbers() -> None:
    pandas = pytest.importorskip("pandas")
    proba, _, site, y = world(1)
    frame = pandas.DataFrame({"site": np.array(["north", "south", "west"])[site], "age": np.arange(len(y)) % 70})
    found = mnar.LabelMechanism(replicates=40).fit(proba, y, given=frame[["site"]], by=frame["site"]).found_
    groups = {group["group"]: group for group in found["groups"]}
    assert set(groups) == {"north", "south", "west"}
    assert sum(group["n"] for group in found["groups"]) == len(y)
    total = sum(sum(group["totals"]) for group in found["groups"])
    assert total == pytest.approx(len(y))
    assert found["by"]["column"] == "site"
    # A column that decides nothing is checked and not found.
    assert mnar.LabelMechanism(interval="information").fit(proba, y, given=frame[["site", "age"]]).verdict_ is not None


def test_products_of_columns() -> None:
    proba, _, site, y = world(5)
    given = {"site": np.array(["north", "south", "west"])[site], "age": np.arange(len(y)) % 70}
    found = mnar.LabelMechanism(interval="information").fit(proba, y, given=given, products=["site*age"]).found_
    effects = {effect["column"]: effect for effect in found["labelling"]["effects"]}
    assert list(effects) == ["site", "age", "site x age"]
    terms = [term["term"] for term in effects["site x age"]["terms"]]
    assert len(terms) == 2 and all(term.startswith("site=") and term.endswith(" x age") for term in terms)
    assert mnar.mcar_test(proba, y, given=given, products="site*age", permutations=99).found["labelling"]["given"][-1] == "site*age"
    with pytest.raises(mnar.MnarError, match="weight"):
        mnar.LabelMechanism(interval="information").fit(proba, y, given=given, products=["site*weight"])
    with pytest.raises(mnar.InputError, match="two columns"):
        mnar.LabelMechanism(interval="information").fit(proba, y, given=given, products=["site"])


def test_an_audit_holds_whatever_decides() -> None:
    proba, truth, _, y = world(2, hidden=1.0)
    rng = np.random.default_rng(3)
    audited = rng.random(len(y)) < 0.05
    y = np.where(audited, truth, y)
    mechanism = mnar.LabelMechanism(interval="information").fit(proba, y, audit=audited)
    low, high = mechanism.prevalence_interval_[1]
    assert low < truth.mean() < high
    assert mechanism.found_["audit"]["rows"] == audited.sum()


def test_wrong_columns_are_named() -> None:
    proba, _, site, y = world(4, n=400)
    fit = mnar.LabelMechanism(interval="information").fit
    with pytest.raises(mnar.MnarError, match="same value in every row"):
        fit(proba, y, given={"year": np.full(len(y), 2020)})
    with pytest.raises(mnar.MnarError, match="identifier"):
        fit(proba, y, given={"id": [f"row {i}" for i in range(len(y))]})
    with pytest.raises(mnar.MnarError, match="exactly which rows are labelled"):
        fit(proba, y, given={"status": np.where(y >= 0, "done", "open")})
    with pytest.raises(mnar.InputError, match="names"):
        fit(proba, y, given=site)
    with pytest.raises(mnar.InputError, match="400 rows"):
        fit(proba, y, given={"site": site[:10]})
    with pytest.raises(mnar.MnarError, match="audited"):
        fit(proba, y, audit=np.ones(len(y), dtype=bool))


def test_a_site_that_the_classifier_ignores_is_calibrated() -> None:
    """Sites that go with the class, and a classifier that has not seen them."""
    rng = np.random.default_rng(7)
    n = 8000
    truth = (rng.random(n) < 0.4).astype(int)
    # Two in three of the sick are in the north, which labels half of its rows; one in four of the others.
    north = rng.random(n) < np.where(truth == 1, 2 / 3, 1 / 4)
    seen = rng.random(n) < np.where(north, 0.5, 0.1)
    x = rng.normal(size=n) + 1.5 * truth
    labelled_sick = truth[seen].mean()
    odds = np.log(labelled_sick / (1 - labelled_sick)) + 1.5 * x - 1.125
    p = 1 / (1 + np.exp(-odds))
    proba = np.column_stack([1 - p, p])
    y = np.where(seen, truth, -1)
    mechanism = mnar.LabelMechanism(replicates=40).fit(proba, y, given={"site": np.where(north, "north", "south")})
    assert mechanism.verdict_ == "by-columns"
    low, high = mechanism.prevalence_interval_[1]
    assert low < truth.mean() < high
    population = mechanism.population_proba(proba)[:, 1]
    assert population.mean() == pytest.approx(truth.mean(), abs=0.03)
    for site in (north, ~north):
        assert population[site].mean() == pytest.approx(truth[site].mean(), abs=0.05)


def test_any_analysis_with_standard_errors() -> None:
    proba, truth, site, y = world(3)
    names = np.array(["north", "south", "west"])[site]
    mechanism = mnar.LabelMechanism(replicates=40).fit(proba, y, given={"site": names})
    weights = mechanism.replicate_weights(60)
    assert weights.shape == (len(y), 60) and (weights[y < 0] == 0).all() and (weights[y >= 0] >= 0).all()
    found = mnar.weighted(lambda w: np.average(truth, weights=w), mechanism, replicates=60)
    assert found.interval[0] < truth.mean() < found.interval[1]
    assert found.se == pytest.approx(mechanism.prevalence_se_[1], rel=0.6)
    two = mnar.weighted(lambda w: [np.average(truth, weights=w), w.sum()], mechanism, replicates=20)
    assert two.estimate.shape == (2,) and two.estimate[0] == found.estimate
    with pytest.raises(mnar.InputError, match="callable"):
        mnar.weighted(3, mechanism)


def test_labels_are_imputed_with_the_uncertainty_of_the_mechanism() -> None:
    proba, truth, site, y = world(4)
    labels = np.where(y >= 0, np.array(["well", "sick"])[y], None)
    names = np.array(["north", "south", "west"])[site]
    mechanism = mnar.LabelMechanism(replicates=40).fit(proba, labels, classes=["well", "sick"], given={"site": names})
    draws = mechanism.imputations(12)
    assert draws.shape == (len(y), 12) and set(np.unique(draws)) == {"well", "sick"}
    assert (draws[y >= 0] == labels[y >= 0][:, None]).all()
    shares = (draws == "sick").mean(axis=0)
    assert shares.mean() == pytest.approx(truth.mean(), abs=0.04) and shares.std() > 0.001
