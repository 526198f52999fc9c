"""The golden cases of `reference/`, an independent implementation, once more through Python."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from mnar import LabelMechanism, debiased_loss_weights, mcar_test

FOLDER = Path(__file__).resolve().parents[3] / "reference" / "golden"
CASES = sorted(FOLDER.glob("k*.json"))
TOLERANCE = 1e-7


def close(ours, theirs, what):
    if theirs is None:
        return
    assert ours is not None, what
    theirs = np.array([np.nan if value is None else value for value in theirs], dtype=float)
    ours = np.asarray(ours, dtype=float)
    known = ~np.isnan(theirs)
    assert np.all(np.abs(ours - theirs)[known] <= TOLERANCE * np.maximum(1, np.abs(theirs[known]))), what


def test_there_are_cases():
    assert len(CASES) >= 20


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_golden(path):
    case = json.loads(path.read_text())
    given, expected = case["input"], case["expected"]
    proba = np.array(given["posteriors"])
    y = np.array([-1 if label is None else label for label in given["labels"]])
    classes = np.arange(proba.shape[1])

    def fitted(**settings):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return LabelMechanism(interval="information", **settings).fit(proba, y, classes=classes)

    for method, settings in {
        "label_shift": {"method": "label-shift", "calibrate": "none"},
        "likelihood": {"method": "likelihood", "posterior": "population"},
        "moments_mean": {"method": "moments", "posterior": "population"},
        "moments_known": {"method": "moments", "posterior": "population", "shares": given["known_shares"]},
    }.items():
        theirs = expected.get(method)
        if theirs is None:
            continue
        ours = fitted(**settings)
        close(ours.phi_, theirs["phi"], f"{method}: phi")
        close(ours.prevalence_, theirs.get("prevalence"), f"{method}: shares")
        if theirs.get("se") is not None and method in ("likelihood", "label_shift") and not theirs["on_boundary"]:
            close(ours.phi_se_, theirs["se"], f"{method}: standard errors")
    prior = expected.get("label_shift_prior")
    if prior:
        ours = fitted(method="label-shift", calibrate="none", prior_weight=prior["strength"])
        close(ours.phi_, prior["phi"], "phi with a prior")

    test = expected.get("permutation_statistic")
    if test:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = mcar_test(proba, y, given["folds"], classes=classes, permutations=1)
        close([ours.statistic], [test["statistic"]], "statistic")
        assert ours.df == test["rank"]

    phi = np.array(given["true_phi"])
    weights = debiased_loss_weights(y, phi, classes)
    labelled, unlabelled = np.array(given["labelled_losses"]), np.array(given["unlabelled_losses"])
    risk = np.mean(weights.labelled * labelled + given["lambda"] * weights.unlabelled * unlabelled)
    close([risk], [expected["ipw"]["debiased_ssl_risk"]], "the unbiased risk")
    close([np.mean(weights.labelled * labelled)], [expected["ipw"]["ipw_risk"]], "the weighted risk")
