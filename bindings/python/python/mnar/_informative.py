"""Are the labels informative?"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from . import _inputs, _native


@dataclass(frozen=True)
class McarTestResult:
    """What a test of MCAR found; ``statistic`` and ``pvalue`` are named as scipy names them."""

    #: The test statistic.
    statistic: float
    #: The p-value: small where labels are informative.
    pvalue: float
    #: The test.
    method: str
    #: Degrees of freedom, where the test has some.
    df: int | None
    #: Whether the test rejects at its level.
    reject: bool
    #: The level.
    level: float
    #: Everything that was found, as ``mnar test --format json`` prints it.
    found: dict[str, Any] = field(repr=False)
    _text: str = field(repr=False)

    def summary(self) -> str:
        """What was found, for people: the text of ``mnar test``."""
        return self._text

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self._text)}</pre>"


def mcar_test(
    proba: Any,
    y: Any,
    fold: Any = None,
    *,
    classes: Any = None,
    method: str = "auto",
    posterior: str = "labelled",
    level: float = 0.05,
    permutations: int = 9999,
    replicates: int = 199,
    folds: int = 5,
    l2: float = 1.0,
    power: float | None = None,
    seed: int = 0,
) -> McarTestResult:
    """Test whether labels are missing completely at random, against a mechanism that depends on the class.

    Parameters
    ----------
    proba : array of shape (n_samples, n_classes)
        Class probabilities of every row, labelled or not, by a classifier that has not seen the row.
    y : array of shape (n_samples,)
        Labels; a missing one is -1 (or NaN) among numbers, None or NaN among names.
    fold : array of shape (n_samples,), optional
        In which fold each row was held out, where the probabilities are cross-fitted.
    classes : array of shape (n_classes,), optional
        The classes of the columns; by default those of y, sorted.
    method : {"auto", "permutation", "lrt", "lrt-bootstrap", "moments-bootstrap"}
        The test; ``auto`` takes the permutation test, whose size holds.
    posterior : {"labelled", "population"}
        What the probabilities are.
    level, permutations, replicates, seed
        Of the tests. ``folds`` and ``l2`` are of the regressions that the bootstrap tests fit on the logits.
    power : float, optional
        Ask how many labels would give the permutation test this power: ``found["labels_for_power"]``.

    Examples
    --------
    >>> import numpy as np
    >>> from mnar import mcar_test
    >>> truth = np.arange(400) % 2
    >>> proba = np.where(truth[:, None] == [0, 1], 0.9, 0.1)
    >>> u = np.random.default_rng(0).random(400)
    >>> mcar_test(proba, np.where(u < 0.3, truth, -1)).reject                         # blind to the class
    False
    >>> mcar_test(proba, np.where(u < np.where(truth == 1, 0.5, 0.1), truth, -1)).reject
    True
    """
    array, labels, held_out = _inputs.rows(proba, y, fold, classes)
    options = {
        "method": str(method),
        "posterior": str(posterior),
        "level": _inputs.number(level, "level"),
        "permutations": _inputs.count(permutations, "permutations"),
        "replicates": _inputs.count(replicates, "replicates"),
        "folds": _inputs.count(folds, "folds"),
        "l2": _inputs.number(l2, "l2"),
        "power": None if power is None else _inputs.number(power, "power"),
        "seed": _inputs.count(seed, "seed"),
    }
    text, words = _native.test((array, labels.codes, labels.names, held_out), json.dumps(options))
    found = {"version": _native.__version__, **json.loads(text)}
    _inputs.warn(found["warnings"])
    return McarTestResult(
        statistic=found["statistic"],
        pvalue=found["p_value"],
        method=found["test"],
        df=found.get("df"),
        reject=found["reject"],
        level=found["level"],
        found=found,
        _text=words,
    )
