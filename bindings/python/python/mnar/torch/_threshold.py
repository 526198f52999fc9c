"""The confidence that a pseudo-label needs, as in ``mnar::threshold``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .._errors import SettingsError

if TYPE_CHECKING:
    from ._mechanism import Mechanism


def adaptive(tau: float, by: Tensor, beta: float) -> Tensor:
    """tau_k = tau (a_k / max a)^beta, one threshold per class.

    >>> adaptive(0.95, torch.tensor([0.1, 0.4]), 0.5)
    tensor([0.4750, 0.9500])
    """
    return tau * (by / by.max()) ** beta


@dataclass(frozen=True)
class Threshold:
    """What the confidence threshold of a class adapts to.

    `rule` is ``fixed``; ``phi``, where the most observed class has the highest threshold, tau (phi_k / max phi)^beta; or
    ``shares``, the same with class shares in place of phi (the CADR rule).
    """

    rule: str = "fixed"
    tau: float = 0.95
    beta: float = 0.5

    def __post_init__(self) -> None:
        if self.rule not in ("fixed", "phi", "shares"):
            raise SettingsError(f"rule is {self.rule!r}, but must be 'fixed', 'phi' or 'shares'")
        if not 0 <= self.tau <= 1:
            raise SettingsError(f"tau is {self.tau}, but must be from 0 to 1")

    def of(self, mechanism: Mechanism | None, classes: int) -> Tensor:
        """The thresholds under a mechanism as it stands, one per class."""
        if mechanism is None or self.rule == "fixed":
            return torch.full((classes,), self.tau, dtype=torch.float64)
        return adaptive(self.tau, mechanism.phi if self.rule == "phi" else mechanism.shares(), self.beta)
