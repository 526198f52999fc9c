"""Weights that make any semi-supervised loss unbiased under informative labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _inputs, _native
from ._errors import InputError
from ._mechanism import LabelMechanism


class LossWeights(NamedTuple):
    """One weight per row for each of the two losses; the mean of the weighted sum over all rows is the risk."""

    #: Weights of the loss that uses the label: 1/phi of the label, and 0 for a missing label.
    labelled: NDArray[np.float64]
    #: Weights of the loss that does not: 1 without a label, and -(1 - phi)/phi with one.
    unlabelled: NDArray[np.float64]


def debiased_loss_weights(y: Any, phi: Any, classes: Any = None) -> LossWeights:
    """Compute the weights of each row's losses in the debiased risk of semi-supervised learning.

    ``mean(w.labelled * supervised + lam * w.unlabelled * unsupervised)`` over all rows, labelled or not, is an unbiased
    estimate of the mean supervised loss with all labels known, although labels are informative. ``unsupervised`` is any
    loss that does not use the label (entropy, pseudo-label, FixMatch); compute it for labelled rows as well.

    Parameters
    ----------
    y : array of shape (n_samples,)
        Labels; a missing label is marked as in :class:`LabelMechanism`.
    phi : LabelMechanism or array of shape (n_classes,)
        A fitted mechanism, or P(labelled | class) in the order of the classes.
    classes : array of shape (n_classes,), optional
        The classes of phi if it is an array; by default the sorted classes of y.

    Examples
    --------
    >>> from mnar import debiased_loss_weights
    >>> weights = debiased_loss_weights([0, 1, -1], phi=[0.5, 0.25])
    >>> weights.labelled
    array([2., 4., 0.])
    >>> weights.unlabelled
    array([-1., -3.,  1.])
    """
    if isinstance(phi, LabelMechanism):
        if classes is not None:
            raise InputError("classes are those of the mechanism; leave them out")
        phi, classes = phi.phi_, phi.classes_
    numbers = _inputs.as_numpy(phi, "phi")
    if numbers.ndim != 1 or numbers.dtype.kind not in "fiu":
        raise InputError("phi must be one number per class, or a fitted LabelMechanism")
    labels = _inputs.labels(y, classes)
    if len(labels.classes) != len(numbers):
        raise InputError(
            f"phi has {len(numbers)} numbers but there are {len(labels.classes)} classes"
            f" ({', '.join(labels.names[:12])}); name the classes of phi with `classes`"
        )
    return LossWeights(*_native.risk_weights(labels.codes, numbers.astype(float).tolist()))


class Weighted(NamedTuple):
    """The result of an analysis with weights 1/phi."""

    #: What the analysis gives with these weights: a number, or an array of numbers.
    estimate: Any
    #: Its standard error, which counts that phi was estimated.
    se: Any
    #: The lower and upper ends of the 95% interval, estimate -/+ 1.96 standard errors.
    interval: tuple[Any, Any]


def weighted(
    statistic: Callable[[NDArray[np.float64]], Any], mechanism: LabelMechanism, replicates: int = 200
) -> Weighted:
    """Run any analysis of the labelled rows as if they had been drawn at random, with standard errors.

    Parameters
    ----------
    statistic : callable
        The analysis: it takes one weight per row of ``mechanism.fit`` (0 for rows without a label) and returns a number or an
        array of numbers, such as ``lambda w: np.average(age, weights=w)`` or the coefficients of a regression.
    mechanism : LabelMechanism
        A fitted mechanism, with the rows that it was fitted on.
    replicates : int
        How often everything is repeated for the standard error. 200 know it to 5%.

    Examples
    --------
    >>> import numpy as np, mnar
    >>> rng = np.random.default_rng(1)
    >>> sick = rng.random(2000) < 0.3
    >>> age = rng.normal(np.where(sick, 60, 40), 10)
    >>> p = 1 / (1 + np.exp(-(np.log(0.3 / 0.7 * 5) + 0.2 * (age - 50))))  # learnt where the sick are labelled more often
    >>> y = np.where(rng.random(2000) < np.where(sick, 0.5, 0.1), sick.astype(int), -1)
    >>> mechanism = mnar.LabelMechanism().fit(np.column_stack([1 - p, p]), y)
    >>> found = mnar.weighted(lambda w: np.average(age, weights=w), mechanism, replicates=50)
    >>> low, high = found.interval
    >>> bool(low < 46 < high), bool(age[y >= 0].mean() > 50)               # the labels alone suggest that all are older
    (True, True)
    """
    if not callable(statistic):
        raise InputError("statistic must be callable: it takes one weight per row and returns a number or an array")
    table = mechanism._table()[0]
    names = mechanism.classes_
    codes = table[1]
    labels = np.array([None if code < 0 else names[code] for code in codes], dtype=object)
    estimate = np.asarray(statistic(mechanism.weights(labels)), dtype=float)
    columns = mechanism.replicate_weights(replicates)
    repeated = np.array([np.asarray(statistic(column), dtype=float) for column in columns.T])
    se = repeated.std(axis=0, ddof=1)
    low, high = estimate - 1.96 * se, estimate + 1.96 * se

    def plain(values: NDArray[np.float64]) -> Any:
        return float(values) if values.ndim == 0 else values

    return Weighted(plain(estimate), plain(np.asarray(se)), (plain(low), plain(high)))
