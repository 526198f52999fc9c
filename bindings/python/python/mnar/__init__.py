"""Are your labels missing not at random?

From the class probabilities of any classifier and partly missing labels, this package estimates how likely each class
was to be labelled (phi) and how common each class really is, tests whether the labels are informative, and computes
weights that correct the bias.

>>> import numpy as np, mnar
>>> rng = np.random.default_rng(0)
>>> sick = rng.random(2000) < 0.3
>>> proba = np.where(sick, rng.beta(8, 2, 2000), rng.beta(2, 8, 2000))
>>> proba = np.column_stack([1 - proba, proba])
>>> labelled = rng.random(2000) < np.where(sick, 0.5, 0.1)
>>> y = np.where(labelled, sick.astype(int), -1)       # -1: no label
>>> mechanism = mnar.LabelMechanism().fit(proba, y)
>>> mechanism.phi_.round(1)                            # P(labelled | class)
array([0.1, 0.5])
>>> mnar.mcar_test(proba, y).pvalue < 0.001
True
"""

from ._classifier import MNARClassifier
from ._errors import InputError, MnarError, MnarWarning, NotIdentifiedError, RunError, SettingsError
from ._evaluate import Evaluation, evaluate, scorer
from ._informative import McarTestResult, mcar_test
from ._mechanism import LabelMechanism
from ._native import __version__
from ._positive import PositiveUnlabelled, positive_unlabelled
from ._run import Run, fit
from ._weights import LossWeights, Weighted, debiased_loss_weights, weighted

__all__ = [
    "Evaluation",
    "InputError",
    "LabelMechanism",
    "LossWeights",
    "MNARClassifier",
    "McarTestResult",
    "MnarError",
    "MnarWarning",
    "NotIdentifiedError",
    "PositiveUnlabelled",
    "Run",
    "RunError",
    "SettingsError",
    "Weighted",
    "__version__",
    "debiased_loss_weights",
    "evaluate",
    "fit",
    "mcar_test",
    "positive_unlabelled",
    "scorer",
    "weighted",
]
