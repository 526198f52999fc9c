"""Debias a semi-supervised training loop in PyTorch (``pip install 'mnar[torch]'``).

The loop keeps its network, optimiser, views and consistency loss; the loss is replaced by the debiased risk, which is
unbiased although labels are informative. In all functions, ``y`` holds one class number per row of the batch, and -1
where there is no label; a *mechanism* says what stands for 1/phi, where phi_k = P(labelled | class k):

>>> import torch
>>> from mnar.torch import DebiasedLoss, Moments, entropy
>>> y = torch.tensor([0, 0, 1, -1, -1, -1, -1, -1])              # the labels of all rows of the data set
>>> loss = DebiasedLoss(Moments.from_labels(y), entropy)
>>> _ = torch.manual_seed(0)
>>> network, x = torch.nn.Linear(4, 2), torch.randn(8, 4)
>>> risk = loss(network(x), y)                                   # a batch with and without labels
>>> risk.backward()
>>> loss.mechanism.phi                                           # the moment estimator, after one batch
tensor([..., ...], dtype=torch.float64)

Names and numbers are those of the Rust crate ``mnar-train``, and both are tested against the same golden values. Sums
over a batch are taken over all processes of ``torch.distributed`` if it is initialised, so that under
``DistributedDataParallel`` gradients are those of one process with the joined batch.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("mnar.torch needs PyTorch; install it with `pip install 'mnar[torch]'`") from error

from ._consistency import Consistency, Views, entropy, fixmatch, imitate, imputation, pseudo_labels
from ._debiased import DebiasedLoss
from ._likelihood import Likelihood
from ._losses import SetShares, clip, cross_entropy, logits_given, observed_likelihood, ssl_risk
from ._mechanism import BatchMeans, ClassShares, Constant, Given, Mechanism, Moments, MomentsGradient
from ._threshold import Threshold, adaptive

__all__ = [
    "BatchMeans",
    "ClassShares",
    "Consistency",
    "Constant",
    "DebiasedLoss",
    "Given",
    "Likelihood",
    "Mechanism",
    "Moments",
    "MomentsGradient",
    "SetShares",
    "Threshold",
    "Views",
    "adaptive",
    "clip",
    "cross_entropy",
    "entropy",
    "fixmatch",
    "imitate",
    "imputation",
    "logits_given",
    "observed_likelihood",
    "pseudo_labels",
    "ssl_risk",
]
