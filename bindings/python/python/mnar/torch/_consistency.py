"""Consistency losses: losses that need no label, as in ``mnar_train::consistency``.

A consistency loss is any function of :class:`Views` that returns one loss per row. It never sees which rows are
labelled, their labels, or the mechanism, and so the debiased risk is unbiased whatever it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from .._errors import InputError
from ._losses import cross_entropy, precise


@dataclass(frozen=True)
class Views:
    """Logits of the same rows, seen in different ways."""

    #: The weakly augmented rows; plain ones for tables.
    weak: Tensor
    #: The strongly augmented rows, where the caller has them.
    strong: Tensor | None = None
    #: Logits of the weak view from another network, such as one with averaged weights.
    teacher: Tensor | None = None
    #: Probabilities of the rows according to another model.
    targets: Tensor | None = None
    #: The confidence at which a class is accepted as a pseudo-label, one number per class.
    thresholds: Tensor | None = None

    def need(self, name: str) -> Tensor:
        """The view of this name, or an error if the caller did not give it."""
        view: Tensor | None = getattr(self, name)
        if view is None:
            raise InputError(f"this consistency loss needs `{name}`")
        return view


#: The loss of each row, not reduced.
Consistency = Callable[[Views], Tensor]


def entropy(views: Views) -> Tensor:
    """Entropy of the prediction (Grandvalet and Bengio).

    >>> entropy(Views(torch.zeros(1, 4)))
    tensor([1.3863])
    """
    log_p = F.log_softmax(precise(views.weak), 1)
    return -(log_p.exp() * log_p).sum(1)


def pseudo_labels(views: Views) -> Tensor:
    """Cross-entropy with the most likely class as the label, where it is likely enough."""
    return imitate(views.weak, views.weak, views.need("thresholds"))


def fixmatch(views: Views) -> Tensor:
    """Pseudo-labels from the weak view, learnt on the strong view."""
    return imitate(views.weak, views.need("strong"), views.need("thresholds"))


def imputation(views: Views) -> Tensor:
    """Cross-entropy with the probabilities given by another model, which must not have seen the label of the row."""
    log_p = F.log_softmax(precise(views.weak), 1)
    return -(views.need("targets").to(log_p) * log_p).sum(1)


def imitate(teacher: Tensor, student: Tensor, thresholds: Tensor) -> Tensor:
    """-log p(ŷ|x) of `student`, where ŷ is the top class of `teacher`; 0 where the teacher's confidence is below ŷ's
    threshold.

    >>> imitate(torch.tensor([[4.0, 0.0], [0.5, 0.0]]), torch.zeros(2, 2), torch.tensor([0.9, 0.9]))
    tensor([0.6931, 0.0000])
    """
    confidence, top = torch.softmax(precise(teacher.detach()), 1).max(1)
    sure = confidence >= thresholds.to(confidence)[top]
    return cross_entropy(student, top) * sure
