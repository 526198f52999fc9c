"""The debiased risk around any consistency loss: Algorithm 2 of the paper, one batch at a time."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .._errors import SettingsError
from ._consistency import Consistency, Views, pseudo_labels
from ._losses import SetShares, clip, cross_entropy, ssl_risk
from ._mechanism import Mechanism
from ._threshold import Threshold


class DebiasedLoss(nn.Module):
    """The debiased SSL risk of a batch, for any mechanism and any consistency loss.

    Parameters
    ----------
    mechanism : Mechanism or None
        What stands for 1/phi. None gives the classical SSL risk, which is biased if labels are informative.
    consistency : function of Views, or None
        Returns one loss per row without seeing labels: :func:`pseudo_labels`, :func:`entropy`, :func:`fixmatch` or your
        own. None is for labelled rows only (the IPW risk).
    lam : float
        The weight λ of the consistency loss.
    threshold : Threshold
        The confidence that a pseudo-label needs.
    clip : float, optional
        1/phi is at most this many times n/n_l: a little bias for less variance.
    group : optional
        The process group that shares the batch, for a mechanism of None; otherwise it is that of the mechanism.

    Examples
    --------
    >>> import torch
    >>> from mnar.torch import Given
    >>> y = torch.tensor([0, 1, -1, -1])
    >>> loss = DebiasedLoss(Given.from_labels(y, phi=[0.5, 0.5]), lambda views: views.weak.square().sum(1))
    >>> loss(torch.zeros(4, 2), y)                           # 2 log 2 for half of the rows, and no consistency loss
    tensor(0.6931)
    """

    def __init__(
        self,
        mechanism: Mechanism | None,
        consistency: Consistency | None = pseudo_labels,
        *,
        lam: float = 1.0,
        threshold: Threshold | None = None,
        clip: float | None = None,
        group: Any = None,
    ) -> None:
        super().__init__()
        if not 0 <= lam < float("inf"):
            raise SettingsError(f"lam is {lam}, but must be a finite number, at least 0")
        if clip is not None and not clip >= 1:
            raise SettingsError(f"clip is {clip}, but must be at least 1")
        if not isinstance(mechanism, Mechanism | None):
            raise SettingsError(
                f"{type(mechanism).__name__} does not give 1/phi; use its phi, `Given.from_labels(y, phi=...)`"
            )
        self.mechanism = mechanism
        self.consistency = consistency
        self.lam = lam
        self.threshold = threshold or Threshold()
        self.clip = clip
        self.group = group if mechanism is None else mechanism.group

    def forward(
        self,
        weak: Tensor,
        y: Tensor,
        *,
        strong: Tensor | None = None,
        teacher: Tensor | None = None,
        targets: Tensor | None = None,
        row_inverse_phi: Tensor | None = None,
        row_weights: Tensor | None = None,
    ) -> Tensor:
        """The risk of a batch of rows, of which some have a label and others have -1 in `y`.

        `weak` holds the logits of all rows; `strong`, `teacher` and `targets` are further :class:`Views` of the same
        rows. `row_inverse_phi` is 1/phi of each labelled row, where labelling depends on columns too
        (``LabelMechanism.weights``); it takes the place of a given phi. `row_weights` says how often each labelled row
        counts.
        """
        mechanism = self.mechanism
        if row_inverse_phi is not None and (mechanism is None or mechanism.learns):
            raise SettingsError("1/phi of each row takes the place of a given phi; use the mechanism `Given`")
        # The mechanism moves first: weights and thresholds are those after this batch.
        inverse_phi, shares = None, SetShares(1.0)
        if mechanism is not None:
            inverse_phi, shares = mechanism(weak, y), mechanism.set_shares
            inverse_phi = clip(inverse_phi, self.clip, shares) if row_inverse_phi is None else None
        if row_inverse_phi is not None:
            row_inverse_phi = clip(row_inverse_phi, self.clip, shares)
        h = None
        if self.consistency is not None:
            thresholds = self.threshold.of(mechanism, weak.shape[1]).to(weak.device)
            h = self.consistency(Views(weak, strong, teacher, targets, thresholds))
        return ssl_risk(
            cross_entropy(weak, y),
            h,
            y,
            inverse_phi=inverse_phi,
            row_inverse_phi=row_inverse_phi,
            lam=self.lam,
            shares=shares,
            row_weights=row_weights,
            group=self.group,
        )

    def extra_repr(self) -> str:
        name = getattr(self.consistency, "__name__", type(self.consistency).__name__)
        return f"consistency={name}, lam={self.lam}, threshold={self.threshold}, clip={self.clip}"
