"""The one place where losses are weighted, as in ``mnar_train::loss``.

Every risk is computed from the labelled and the unlabelled rows of a batch, and its expectation over batches is the
risk of the whole data set: means are multiplied by the *true* shares n_l/n and n_u/n. Nothing is divided by the sum of
a batch's weights, which would bias the estimator again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .._errors import InputError
from . import _distributed

#: How a missing label is marked, as everywhere in this package.
MISSING = -1

#: The smallest 1 - phi that is trusted: rows of a class that is always labelled are never unlabelled, but a phi of 1 is
#: only an estimate.
SMALLEST_SHARE = 1e-3


@dataclass(frozen=True)
class SetShares:
    """The shares of labelled and unlabelled rows in the whole data set."""

    #: n_l/n, the share of labelled rows.
    labelled: float

    @property
    def unlabelled(self) -> float:
        """n_u/n, the share of unlabelled rows."""
        return 1.0 - self.labelled


def precise(logits: Tensor) -> Tensor:
    """Logits in at least single precision: half of it cannot hold a weight of 1/phi = 100 times a small loss."""
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """-log p(y|x), one value per row; 0 where there is no label.

    >>> cross_entropy(torch.zeros(2, 4), torch.tensor([3, -1]))
    tensor([1.3863, 0.0000])
    """
    return F.cross_entropy(precise(logits), y, ignore_index=MISSING, reduction="none")


def clip(inverse_phi: Tensor, factor: float | None, shares: SetShares) -> Tensor:
    """1/phi, at most `factor` times n/n_l: a little bias for less variance. None leaves the weights exact."""
    return inverse_phi if factor is None else inverse_phi.clamp(max=factor / shares.labelled)


def ssl_risk(
    ell: Tensor,
    h: Tensor | None,
    y: Tensor,
    *,
    inverse_phi: Tensor | None = None,
    row_inverse_phi: Tensor | None = None,
    lam: float = 1.0,
    shares: SetShares,
    row_weights: Tensor | None = None,
    group: Any = None,
) -> Tensor:
    """The debiased SSL risk of a batch: with w = 1/phi_y,

    n_l/n · mean over labelled rows of (w ℓ + λ (1 - w) h) + λ · n_u/n · mean over unlabelled rows of h.

    Without weights it is the classical SSL risk, mean ℓ + λ mean h, which is biased if labels are informative.

    Parameters
    ----------
    ell : tensor of shape (rows,)
        The loss of each row with its label; what it says of rows without a label is not used.
    h : tensor of shape (rows,), optional
        The loss of each row without its label, for *all* rows. Without it, the risk is that of the labelled rows.
    y : tensor of shape (rows,)
        The labels, -1 where missing.
    inverse_phi : tensor of shape (classes,), optional
        1/phi of each class. Where it depends on the network, so does the gradient.
    row_inverse_phi : tensor of shape (rows,), optional
        1/phi of each labelled row in its place, where labelling depends on the class and on columns.
    lam : float
        The weight λ of h.
    shares : SetShares
        The shares of labelled and unlabelled rows in the whole data set.
    row_weights : tensor of shape (rows,), optional
        How often each labelled row counts, relative to their mean.
    group : optional
        The process group that shares the batch; all processes by default. The value is that of the joined batch, and
        the *mean* of the gradients over processes, which is what ``DistributedDataParallel`` takes, is its gradient.

    Examples
    --------
    >>> ell, h, y = torch.tensor([0.5, 0.0]), torch.tensor([0.2, 0.4]), torch.tensor([0, -1])
    >>> ssl_risk(ell, h, y, inverse_phi=torch.tensor([4.0]), shares=SetShares(0.25))    # (4 * 0.5 - 3 * 0.2)/4 + 0.3
    tensor(0.6500)
    """
    if inverse_phi is not None and row_inverse_phi is not None:
        raise InputError("1/phi is given by class and by row; give one of them")
    _same_rows(ell, y, h=h, row_weights=row_weights, row_inverse_phi=row_inverse_phi)
    labelled = y != MISSING
    w = row_inverse_phi if inverse_phi is None else inverse_phi[y.clamp(min=0)]
    terms = ell if w is None else w * ell
    if w is not None and h is not None:
        terms = terms + lam * (1 - w) * h
    if row_weights is not None:
        terms = terms * row_weights
    nothing = terms.new_zeros(())
    seen = torch.where(labelled, terms, nothing).sum()
    unseen = nothing if h is None else lam * torch.where(labelled, nothing, h).sum()
    factors = (1.0, 1.0) if w is None else (shares.labelled, shares.unlabelled)
    return _joined((seen, unseen), labelled, factors, group)


def observed_likelihood(
    logits: Tensor,
    y: Tensor,
    phi: Tensor,
    *,
    shares: SetShares,
    row_weights: Tensor | None = None,
    group: Any = None,
) -> Tensor:
    """The observed negative log-likelihood of a batch, as a mean over all rows.

    It is -log phi_y - log p(y|x) for a labelled row, and -log Σ_k (1 - phi_k) p(k|x) for an unlabelled one. The other
    arguments are those of :func:`ssl_risk`.
    """
    logits = precise(logits)
    _same_rows(logits, y, row_weights=row_weights)
    labelled = y != MISSING
    phi = phi.to(logits)
    terms = cross_entropy(logits, y) - phi.log()[y.clamp(min=0)]
    if row_weights is not None:
        terms = terms * row_weights
    # A class that is always labelled adds nothing to the sum over classes.
    hidden = (1 - phi).clamp(min=1e-12).log()
    marginal = -torch.logsumexp(F.log_softmax(logits, 1) + hidden, 1)
    nothing = terms.new_zeros(())
    seen, unseen = torch.where(labelled, terms, nothing).sum(), torch.where(labelled, nothing, marginal).sum()
    return _joined((seen, unseen), labelled, (shares.labelled, shares.unlabelled), group)


def logits_given(labelled: bool, scores: Tensor, phi: Tensor) -> Tensor:
    """Logits of p(y | x, r) from those of p(y | x).

    p(y | x, r = 1) ∝ phi_y p(y | x) and p(y | x, r = 0) ∝ (1 - phi_y) p(y | x). `phi` holds one number per class, or one
    line per row.
    """
    scores = precise(scores)
    share = phi if labelled else (1 - phi).clamp(min=SMALLEST_SHARE)
    return scores + share.log().to(scores)


def _joined(sums: tuple[Tensor, Tensor], labelled: Tensor, factors: tuple[float, float], group: Any) -> Tensor:
    """Means over the labelled and the unlabelled rows of all processes, times their factors, from sums over this
    process's rows."""
    seen, unseen = sums
    n_l = labelled.sum().to(seen.dtype)
    parts = torch.stack([n_l, labelled.numel() - n_l, seen.detach(), unseen.detach()])
    totals = _distributed.summed(parts, group)
    # Where a batch has no row of a kind, its sum is 0 as well.
    scale_l, scale_u = factors[0] / totals[0].clamp(min=1), factors[1] / totals[1].clamp(min=1)
    risk = scale_l * seen + scale_u * unseen
    size = _distributed.processes(group)
    if size == 1:
        return risk
    # Gradients are averaged over processes afterwards; the value is that of the joined batch on each of them.
    risk, value = size * risk, scale_l * totals[2] + scale_u * totals[3]
    return risk + (value - risk).detach()


def _same_rows(first: Tensor, y: Tensor, **others: Tensor | None) -> None:
    for name, tensor in {"y": y, **others}.items():
        if tensor is not None and (tensor.ndim != 1 or len(tensor) != len(first)):
            hint = "; give one loss per row (reduction='none')" if name == "h" else ""
            raise InputError(f"{name} has shape {tuple(tensor.shape)}, but the batch has {len(first)} rows{hint}")
