"""Algorithm 1 of the paper: the network and phi by maximum likelihood."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._errors import MnarWarning
from .._mechanism import LabelMechanism
from . import _distributed
from ._losses import observed_likelihood
from ._mechanism import LabelCounts


class Likelihood(LabelCounts):
    """Algorithm 1 (the paper's MLE), for any training loop.

    Calling it gives the observed negative log-likelihood of a batch, for a gradient step on the network. Once per epoch,
    :meth:`refresh` finds the phi of greatest likelihood for the network as it stands, which is a convex problem, solved
    exactly. At the end, ``Given.from_labels(y, phi=likelihood.phi)`` is the mechanism of Algorithm 2::

        likelihood = Likelihood.from_labels(y)
        for epoch in range(epochs):
            for x_batch, y_batch in batches:                 # -1 where there is no label
                likelihood(network(x_batch), y_batch).backward()
                ...
            likelihood.refresh(torch.softmax(network(x), 1), y)

    phi goes astray when the network begins to overfit the labels: keep that of the epoch with the least risk on held-out
    labelled rows.
    """

    learns = True

    def forward(self, logits: Tensor, y: Tensor, row_weights: Tensor | None = None) -> Tensor:
        return observed_likelihood(
            logits, y, self.phi, shares=self.set_shares, row_weights=row_weights, group=self.group
        )

    def refresh(self, proba: Tensor, y: Tensor) -> Tensor:
        """Replaces phi by the one of greatest likelihood, given the network's p(y|x) of all rows; returns it.

        Under ``torch.distributed``, each process gives its own rows, each row once: a ``DistributedSampler`` that
        repeats rows to make parts equal would count them twice.
        """
        part = proba.detach().double().cpu().numpy(), y.detach().cpu().numpy()
        parts = _distributed.gathered(part, self.group)
        p, labels = np.concatenate([p for p, _ in parts]), np.concatenate([y for _, y in parts])
        p = p / p.sum(axis=1, keepdims=True)  # single precision adds up to 1 only to 1e-7
        estimator = LabelMechanism("likelihood", posterior="population", interval="information")
        with warnings.catch_warnings():
            # They are about an estimate that is reported; this one is a step on the way.
            warnings.simplefilter("ignore", MnarWarning)
            found = estimator.fit(p, labels, classes=np.arange(len(self.phi))).phi_
        with torch.no_grad():
            self.phi.copy_(torch.as_tensor(found))
        return self.phi
