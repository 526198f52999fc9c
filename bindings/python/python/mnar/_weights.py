"""Weights that make any semi-supervised loss unbiased under informative labels."""

from __future__ import annotations

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
