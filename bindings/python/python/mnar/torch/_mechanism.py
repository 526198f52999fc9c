"""The mechanism in the loop: what stands for 1/phi at every step of training, as in ``mnar_train::mechanism``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from .._errors import InputError
from . import _distributed
from ._losses import MISSING, SetShares, cross_entropy, precise

#: Weight of the past in the buffer of class shares; the paper's.
BUFFER = 0.99

T = TypeVar("T", bound="LabelCounts")


class BatchMeans(NamedTuple):
    """What a batch, of all processes, says about the mechanism."""

    #: p̂(y), weighted to stand for all rows, with gradient.
    shares: Tensor
    #: The mean loss of the labelled rows before the step; NaN if the batch has none.
    loss: Tensor


class LabelCounts(nn.Module):
    """What every mechanism has: the shares of the labels, and phi as it stands.

    The state are buffers, so that ``state_dict`` keeps it. They stay in double precision, on the device that the module
    is moved to; a mechanism on the CPU works with logits on any device.
    """

    #: c_k = n_k/n = P(labelled, class k).
    joint_shares: Tensor
    #: phi as it stands.
    phi: Tensor

    #: Whether phi is learnt from the label counts, so that every class needs a label.
    learns = False

    def __init__(self, label_counts: Sequence[int] | Tensor, n: int, *, group: Any = None) -> None:
        super().__init__()
        self.group = group
        self._set_shares: SetShares | None = None
        counts = torch.as_tensor(label_counts, dtype=torch.float64).cpu()
        if counts.ndim != 1 or len(counts) < 2:
            raise InputError(f"label counts have shape {tuple(counts.shape)}, but must be one number per class")
        if not 0 < counts.sum() <= n or (counts < 0).any():
            raise InputError(f"{counts.sum():g} of {n} rows labelled: there must be labels, and no more than rows")
        missing = (counts == 0).nonzero().flatten().tolist()
        if self.learns and missing:
            raise InputError(f"class {missing[0]} has no label, so its phi cannot be learnt")
        self.register_buffer("joint_shares", counts / n)
        self.register_buffer("phi", torch.full_like(counts, min(1.0, float(counts.sum() / n))))

    @classmethod
    def from_labels(cls: type[T], y: Any, n_classes: int | None = None, *, group: Any = None, **settings: Any) -> T:
        """The mechanism of a data set with these labels, -1 where missing.

        Under ``torch.distributed``, counts are added over processes; each may pass its own part of the labels, or all
        of them, which does not change shares.
        """
        counts, n = count_labels(y, n_classes, group)
        return cls(counts, n, group=group, **settings)

    @property
    def set_shares(self) -> SetShares:
        """The shares of labelled and unlabelled rows in the data set."""
        if self._set_shares is None:  # kept, because reading a number from a GPU waits for it
            self._set_shares = SetShares(min(1.0, float(self.joint_shares.sum())))
        return self._set_shares

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        load: Any = super()._load_from_state_dict
        load(*args, **kwargs)
        self._set_shares = None

    def _apply(self: T, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> T:
        # `model.half()` moves modules it contains to half precision, in which 0.99 b + 0.01 x rounds to b.
        def moved(tensor: Tensor) -> Tensor:
            there = fn(tensor)
            return there if there.dtype == tensor.dtype else tensor.to(there.device)

        apply: Any = super()._apply
        apply(moved, recurse)
        return self

    def extra_repr(self) -> str:
        return f"classes={len(self.phi)}, labelled={self.set_shares.labelled:.3g}"


class Mechanism(LabelCounts):
    """Base class of what stands for 1/phi.

    Calling it with the logits and labels of a batch takes note of the batch (in training mode only) and returns 1/phi,
    one number per class.
    """

    #: The number of steps at which a phi above 1 was set to 1, because the network gave a class fewer rows than it has
    #: labels.
    clipped: Tensor

    def __init__(self, label_counts: Sequence[int] | Tensor, n: int, *, group: Any = None) -> None:
        super().__init__(label_counts, n, group=group)
        self.register_buffer("clipped", torch.zeros((), dtype=torch.int64))

    def shares(self) -> Tensor:
        """Class shares p̂(y) = c_k/phi_k as they stand."""
        shares = self.joint_shares / self.phi
        return shares / shares.sum()

    def update(self, means: BatchMeans) -> None:
        """Takes note of a batch."""

    def inverse_phi(self, shares: Tensor) -> Tensor:
        """1/phi for the risk of the batch that :meth:`update` has just seen, whose p̂(y) is `shares`: where phi depends on
        the network, so does the result."""
        return (1 / self.phi).to(shares)

    def batch_means(self, logits: Tensor, y: Tensor) -> BatchMeans:
        """What a batch says about the mechanism, over all processes."""
        p, labelled = torch.softmax(precise(logits), 1), (y != MISSING).unsqueeze(1)
        nothing = p.new_zeros(())
        rows = labelled.sum().to(p)
        loss = cross_entropy(logits.detach(), y).sum()
        sums = [torch.where(labelled, p, nothing).sum(0), torch.where(labelled, nothing, p).sum(0)]
        k = p.shape[1]
        totals = _distributed.summed(torch.cat([*sums, torch.stack([rows, len(y) - rows, loss])]), self.group)
        n_l, n_u, loss = totals[2 * k :].detach()
        # p(y) of all rows, from a batch of each set; where one is missing, the other stands for both.
        weight_l = self.set_shares.labelled * (n_l > 0)
        weight_u = self.set_shares.unlabelled * (n_u > 0)
        of_labelled, of_unlabelled = totals[:k] / n_l.clamp(min=1), totals[k : 2 * k] / n_u.clamp(min=1)
        shares = (weight_l * of_labelled + weight_u * of_unlabelled) / (weight_l + weight_u)
        return BatchMeans(shares, loss / n_l)

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        if logits.ndim != 2 or logits.shape[1] != len(self.phi) or len(y) != len(logits):
            raise InputError(
                f"logits have shape {tuple(logits.shape)}, but there are {len(y)} labels and {len(self.phi)} classes"
            )
        means = self.batch_means(logits, y)
        if self.training:
            with torch.no_grad():
                self.update(means)
        return self.inverse_phi(means.shares)

    def _set_phi(self, phi: Tensor) -> None:
        self.clipped += (phi > 1).any()
        self.phi.copy_(phi.clamp(max=1))


class Given(Mechanism):
    """The debiased risk with a given phi: a known one, or one estimated before (``LabelMechanism().phi_``)."""

    def __init__(self, label_counts: Sequence[int] | Tensor, n: int, *, phi: Any, group: Any = None) -> None:
        super().__init__(label_counts, n, group=group)
        given = torch.as_tensor(getattr(phi, "phi_", phi), dtype=torch.float64).detach().cpu()
        if given.shape != self.phi.shape:
            raise InputError(f"phi has shape {tuple(given.shape)}, but there are {len(self.phi)} classes")
        if not ((given > 0) & (given <= 1)).all():
            raise InputError(f"phi is {given.tolist()}, but must be above 0 and at most 1")
        self.phi.copy_(given)

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        return self.inverse_phi(precise(logits))  # no need to look at the batch


class Constant(Given):
    """phi = n_l/n for every class, as if labels were missing completely at random (DePl)."""

    def __init__(self, label_counts: Sequence[int] | Tensor, n: int, *, group: Any = None) -> None:
        counts = torch.as_tensor(label_counts, dtype=torch.float64)
        phi = (counts.sum() / n).clamp(max=1).expand(counts.shape)
        super().__init__(label_counts, n, phi=phi, group=group)


class _Buffered(Mechanism):
    """A running mean of the network's class shares."""

    #: Running class shares p̂(y), which start at 1/K.
    buffer: Tensor

    learns = True

    def __init__(self, label_counts: Sequence[int] | Tensor, n: int, *, group: Any = None) -> None:
        super().__init__(label_counts, n, group=group)
        self.register_buffer("buffer", torch.full_like(self.phi, 1 / len(self.phi)))

    def shares(self) -> Tensor:
        return self.buffer.clone()

    def update(self, means: BatchMeans) -> None:
        self.buffer.copy_(BUFFER * self.buffer + (1 - BUFFER) * means.shares.to(self.buffer))
        # The moment estimator phi_k = c_k/p̂_k.
        self._set_phi(self.joint_shares / self.buffer.clamp(min=1e-12))


class Moments(_Buffered):
    """The moment estimator with a buffer, phi_k = c_k/p̂(k); no gradient flows through phi (the paper's ME).

    >>> mechanism = Moments([30, 10], n=400)
    >>> inverse_phi = mechanism(torch.zeros(8, 2), torch.tensor([0, 1, -1, -1, -1, -1, -1, -1]))
    >>> inverse_phi                                          # (1/2) / (30/400) and (1/2) / (10/400)
    tensor([ 6.6667, 20.0000])
    """

    def batch_means(self, logits: Tensor, y: Tensor) -> BatchMeans:
        return super().batch_means(logits.detach(), y)


class MomentsGradient(_Buffered):
    """The same value, with the gradient of the batch (the paper's MEg).

    The part of the risk that depends on phi is Σ_y p̂(y) D_y, with D_y the mean of ℓ - λh over the labelled rows of class
    y: its gradient moves predictions towards classes that are learnt already. So it is followed only as far as labelled
    rows are learnt (:meth:`trust`): not at all while their running loss is above a tenth of log K, and fully as it
    approaches 0.
    """

    #: Running loss of the labelled rows; NaN before the first batch.
    running_loss: Tensor

    def __init__(self, label_counts: Sequence[int] | Tensor, n: int, *, group: Any = None) -> None:
        super().__init__(label_counts, n, group=group)
        self.register_buffer("running_loss", torch.full((), math.nan, dtype=torch.float64))

    def shares(self) -> Tensor:
        return Mechanism.shares(self)

    def update(self, means: BatchMeans) -> None:
        loss = means.loss.to(self.running_loss)
        running = torch.where(self.running_loss.isnan(), loss, 0.95 * self.running_loss + 0.05 * loss)
        self.running_loss.copy_(torch.where(loss.isnan(), self.running_loss, running))
        super().update(means)

    def trust(self) -> Tensor:
        """How far the gradient through phi is followed, from 0 to 1."""
        bound = 0.1 * math.log(len(self.phi))
        return (1 - self.running_loss / bound).clamp(0, 1).nan_to_num(0.0)

    def inverse_phi(self, shares: Tensor) -> Tensor:
        # The value is the buffer's, whose noise is a tenth of a batch's; the gradient is the batch's.
        value = self.buffer.to(shares, copy=True)
        shares = value + (shares - shares.detach()) * self.trust().to(shares)
        return (shares / self.joint_shares.to(shares)).clamp(min=1)


class ClassShares(_Buffered):
    """Weights by class shares in place of the mechanism (CADR): 1/phi becomes proportional to 1/p(y).

    Without known `shares`, they are those of the network, averaged over the batches.
    """

    def __init__(
        self, label_counts: Sequence[int] | Tensor, n: int, *, shares: Any = None, group: Any = None
    ) -> None:
        super().__init__(label_counts, n, group=group)
        self.known = shares is not None
        if self.known:
            known = torch.as_tensor(shares, dtype=torch.float64).detach().cpu()
            if known.shape != self.phi.shape or not (known > 0).all() or abs(float(known.sum()) - 1) > 1e-6:
                raise InputError(f"shares must be {len(self.phi)} positive numbers that add up to 1")
            self.buffer.copy_(known)

    def batch_means(self, logits: Tensor, y: Tensor) -> BatchMeans:
        return super().batch_means(logits.detach(), y)

    def update(self, means: BatchMeans) -> None:
        if self.known:
            self._set_phi(self.joint_shares / self.buffer)
        else:
            super().update(means)

    def inverse_phi(self, shares: Tensor) -> Tensor:
        # Scaled so that the weights of the labelled rows still add up to n.
        weights = 1 / self.buffer.clamp(min=1e-6)
        return (weights / (weights * self.joint_shares).sum()).to(shares)


def count_labels(y: Any, n_classes: int | None, group: Any) -> tuple[Tensor, int]:
    """The number of labels of each class and the number of rows, over all processes."""
    labels = torch.as_tensor(y).detach().cpu()
    if labels.ndim != 1 or labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise InputError("y must be one class number per row, and -1 where there is no label")
    if len(labels) and int(labels.min()) < MISSING:
        raise InputError(f"y holds {int(labels.min())}; class numbers start at 0, and a missing label is -1")
    known = labels[labels != MISSING].long()
    if n_classes is None:
        n_classes = max(_distributed.gathered(int(known.max()) + 1 if len(known) else 0, group))
    elif len(known) and int(known.max()) >= n_classes:
        raise InputError(f"y holds class {int(known.max())}, but there are {n_classes} classes")
    counts = torch.bincount(known, minlength=n_classes)
    totals = _distributed.summed_counts(torch.cat([counts, torch.tensor([len(labels)])]), group)
    return totals[:-1], int(totals[-1])
