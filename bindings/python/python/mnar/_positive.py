"""Data of which only one class is ever labelled."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _inputs, _native
from ._errors import InputError


@dataclass(frozen=True)
class PositiveUnlabelled:
    """What rows say of which only one class is ever labelled."""

    #: The class that is ever labelled.
    class_: Any
    #: P(labelled | class) is at least this, and the share of the class lies between these two: bounds at the 95% level.
    phi_at_least: float
    share_at_least: float
    share_at_most: float
    #: The share that was given, or None; without it there are bounds only, and the next fields are None as well.
    share: float | None
    #: P(labelled | class), and its 95% interval, which takes the share as exact.
    phi: float | None
    phi_interval: tuple[float, float] | None
    #: Whether the data contradict the share.
    contradicted: bool | None
    #: The complete result, as printed by ``mnar estimate --format json``.
    found: dict[str, Any] = field(repr=False)
    _calibration: tuple[float, list[float]] = field(repr=False)
    _text: str = field(repr=False)

    def weights(self, y: Any) -> NDArray[np.float64]:
        """1/phi for a labelled row, so that labelled rows stand for all of the class, and 0 for a row without a label."""
        phi = self._phi()
        codes = _inputs.labels(y, np.array([self.class_])).codes
        return np.where(codes >= 0, 1.0 / phi, 0.0)

    def population_proba(self, score: Any) -> NDArray[np.float64]:
        """p(class | x) of every row, from P(labelled | x) of the same classifier: calibrated, divided by phi, at most 1."""
        p: NDArray[np.float64] = np.minimum(self._calibrated(score) / self._phi(), 1.0)
        return p

    def unlabelled_proba(self, score: Any) -> NDArray[np.float64]:
        """p(class | x, no label), by Bayes' rule. NaN for a row that is always labelled."""
        phi, p = self._phi(), self.population_proba(score)
        with np.errstate(invalid="ignore"):
            rest: NDArray[np.float64] = (1 - phi) * p / (1 - phi * p)
        return rest

    def summary(self) -> str:
        """The result as text, as printed by ``mnar estimate``."""
        return self._text

    def _phi(self) -> float:
        if self.phi is None:
            raise InputError(
                f"the share of {self.class_} is not known, so there are bounds only; give it: "
                "positive_unlabelled(score, y, share=...)"
            )
        return self.phi

    def _calibrated(self, score: Any) -> NDArray[np.float64]:
        score = _score(score)
        both = np.column_stack([score, 1 - score])
        # With phi = 1 the calibrated probabilities stay as they are.
        return _native.reweigh(both, "labelled", [1.0, 1.0], *self._calibration, False)[:, 0]


def positive_unlabelled(score: Any, y: Any, share: float | None = None) -> PositiveUnlabelled:
    """What labels say of which there is only one class, such as a register of the sick.

    If every row of the class has the same chance phi of a label, P(labelled | x) = phi p(class | x). The data show the product
    only: they bound phi and the share of the class. If the share is known from elsewhere, phi and p(class | x) follow.

    Parameters
    ----------
    score : array of shape (n_samples,)
        P(labelled | x) of every row, from a classifier of labelled against unlabelled rows that has not seen the row: for
        instance ``cross_val_predict(model, X, labelled, method="predict_proba")[:, 1]``.
    y : array of shape (n_samples,)
        Labels: a single class, and missing ones (-1 or NaN among numbers, None or NaN among strings).
    share : float, optional
        The share of the class among all rows.

    Examples
    --------
    >>> import numpy as np, mnar
    >>> rng = np.random.default_rng(0)
    >>> p = rng.choice([0.02, 0.2, 0.98], 4000)                          # p(sick | x)
    >>> sick = rng.random(4000) < p
    >>> y = np.where(sick & (rng.random(4000) < 0.5), "sick", None)      # half of the sick are known
    >>> found = mnar.positive_unlabelled(0.5 * p, y)
    >>> bool(0.4 < found.phi_at_least < 0.5 and found.share_at_least < 0.4 < found.share_at_most)
    True
    >>> found = mnar.positive_unlabelled(0.5 * p, y, share=0.4)
    >>> round(found.phi, 1), bool(np.abs(found.population_proba(0.5 * p) - p).max() < 0.1)
    (0.5, True)
    """
    labels = _inputs.labels(y)
    if len(labels.classes) != 1:
        raise InputError(
            f"y has {len(labels.classes)} classes, but must have one; for several classes use LabelMechanism"
        )
    score = _score(score)
    if len(score) != len(labels.codes):
        raise InputError(f"score has {len(score)} rows but y has {len(labels.codes)}; give one label per row, missing ones included")
    if not (labels.codes < 0).any():
        raise InputError("every row has a label, so there is nothing to estimate; rows without one have -1, NaN or None")
    given = None if share is None else _inputs.number(share, "share")
    bound, findings, text, calibration = _native.positive(score, labels.codes, labels.names[0], given)
    limits = json.loads(bound)
    found = limits if findings is None else json.loads(findings)
    _inputs.warn(found.get("warnings", []))
    return PositiveUnlabelled(
        class_=labels.classes[0],
        phi_at_least=limits["phi_at_least"],
        share_at_least=limits["share_at_least"],
        share_at_most=limits["share_at_most"],
        share=given,
        phi=None if findings is None else found["phi"][0],
        phi_interval=None if findings is None else (found["phi_ci95"][0][0], found["phi_ci95"][0][1]),
        contradicted=None if given is None else given > limits["share_at_most"],
        found={"version": _native.__version__, **found},
        _calibration=calibration,
        _text=text,
    )


def _score(score: Any) -> NDArray[np.float64]:
    array = _inputs.as_numpy(score, "score")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.dtype.kind not in "fiu":
        raise InputError(f"score has shape {array.shape} and type {array.dtype}, but must hold P(labelled | x), one number per row")
    array = np.ascontiguousarray(array, dtype=np.float64)
    strange = np.flatnonzero(~((array >= 0) & (array <= 1)))
    if len(strange):
        raise InputError(f"score of row {strange[0] + 1} is {array[strange[0]]}, but must be a probability")
    return array
