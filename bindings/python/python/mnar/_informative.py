"""Tests of whether labels are informative."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from . import _inputs, _native


@dataclass(frozen=True)
class McarTestResult:
    """Result of a test of MCAR (labels missing completely at random); attribute names follow scipy."""

    #: The test statistic.
    statistic: float
    #: The p-value; a small value is evidence that labels are informative.
    pvalue: float
    #: The name of the test.
    method: str
    #: Degrees of freedom, or None if the test has none.
    df: int | None
    #: Whether the test rejects at its level.
    reject: bool
    #: The level of the test.
    level: float
    #: The complete result, as printed by ``mnar test --format json``.
    found: dict[str, Any] = field(repr=False)
    _text: str = field(repr=False)

    def summary(self) -> str:
        """The result as text, as printed by ``mnar test``."""
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
    given: Any = None,
    products: Any = None,
    method: str = "auto",
    posterior: str = "labelled",
    logits: bool = False,
    positive: Any = None,
    level: float = 0.05,
    permutations: int = 9999,
    replicates: int = 199,
    folds: int = 5,
    l2: float = 1.0,
    power: float | None = None,
    seed: int = 0,
) -> McarTestResult:
    """Test whether labels are missing completely at random (MCAR), against a mechanism that depends on the class.

    Parameters
    ----------
    proba : array of shape (n_samples, n_classes)
        Class probabilities of every row, labelled or not, from a classifier that has not seen the row.
    y : array of shape (n_samples,)
        Labels. A missing label is -1 (or NaN) if labels are numbers, None or NaN if they are strings.
    fold : array of shape (n_samples,), optional
        The fold in which each row was held out, if the probabilities are cross-fitted.
    classes : array of shape (n_classes,), optional
        The classes of the columns; by default the sorted classes of y.
    given : table, named series or dict of columns, optional
        Columns that labelling may depend on besides the class; the classifier must have seen them.
        ``found["verdict"]`` then says whether the class matters beyond them.
    products : list of str, optional
        Products of two of these columns, such as ``["hospital*age"]``.
    method : {"auto", "permutation", "lrt", "lrt-bootstrap", "moments-bootstrap"}
        The test. ``auto`` is the permutation test, which rejects true hypotheses as often as it claims.
    posterior : {"labelled", "population"}
        What the probabilities are: ``labelled`` is what a classifier trained on the labelled rows alone learns,
        ``population`` what one trained with 1/phi weights or on fully labelled data learns.
    logits : bool
        Whether `proba` holds logits (log-probabilities up to a constant per row), not probabilities.
    positive : label, optional
        The class whose probability `proba` holds, if it is a single column and there are two classes.
    level : float
        The test rejects if the p-value is below this level.
    permutations, replicates : int
        Number of permutations of the permutation test, and of replicates of the bootstrap tests.
    folds, l2 : int, float
        Folds and ridge penalty of the regressions that the bootstrap tests fit on the logits.
    power : float, optional
        If given, ``found["labels_for_power"]`` says how many labels would give the permutation test this power.
    seed : int
        Seed of every draw.

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
    array, labels, held_out = _inputs.rows(proba, y, fold, classes, logits, positive)
    columns = _inputs.columns(given, len(labels.codes), "given")
    options = {
        "method": str(method),
        "given": _inputs.given_names(columns, products),
        "level": _inputs.number(level, "level"),
        "permutations": _inputs.count(permutations, "permutations"),
        "replicates": _inputs.count(replicates, "replicates"),
        "folds": _inputs.count(folds, "folds"),
        "regression": {"l2": _inputs.number(l2, "l2")},
        "power": None if power is None else _inputs.number(power, "power"),
        "seed": _inputs.count(seed, "seed"),
    }
    table = (array, labels.codes, labels.names, held_out, columns, None)
    text, words = _native.test(table, str(posterior), json.dumps(options))
    return _result(text, words)


def _result(text: str, words: str, stacklevel: int = 4) -> McarTestResult:
    found = {"version": _native.__version__, **json.loads(text)}
    _inputs.warn(found["warnings"], stacklevel)
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
