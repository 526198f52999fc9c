"""How good models really are, from labels that are a biased selection."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np

from . import _inputs, _native
from ._errors import InputError

#: Metrics of which less is better.
_LOSSES = {"log_loss", "brier", "calibration_error"}


@dataclass(frozen=True)
class Evaluation:
    """The metrics of one or several models."""

    #: One record per metric: name, class, group, model, population ("all" or "unlabelled"), naive, corrected, ci95.
    metrics: list[dict[str, Any]]
    #: Every other model compared with the first, with the same fields, and `than`.
    differences: list[dict[str, Any]] = field(repr=False)
    #: Reasons not to rely on the corrected numbers.
    cautions: list[str]
    #: The complete result, as printed by ``mnar evaluate --format json``.
    found: dict[str, Any] = field(repr=False)
    _text: str = field(repr=False)

    def get(
        self,
        name: str,
        class_: Any = None,
        *,
        model: str | None = None,
        group: str | None = None,
        population: str = "all",
    ) -> dict[str, Any]:
        """The record of one metric; by default of the first model and of all rows."""
        model = self.found["models"][0] if model is None else model
        wanted = {
            "name": name,
            "class": None if class_ is None else str(class_),
            "model": model,
            "group": group,
            "population": population,
        }
        for metric in self.metrics:
            if all(metric[key] == value for key, value in wanted.items()):
                return metric
        raise KeyError(f"there is no metric {wanted}")

    def to_frame(self) -> Any:
        """The metrics as a pandas DataFrame, the interval in the columns ``low`` and ``high``."""
        import pandas as pd

        records = []
        for metric in self.metrics:
            low, high = metric["ci95"] or (np.nan, np.nan)
            records.append({**{key: value for key, value in metric.items() if key != "ci95"}, "low": low, "high": high})
        return pd.DataFrame.from_records(records)

    def summary(self) -> str:
        """The result as text, as printed by ``mnar evaluate``."""
        return self._text

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self._text)}</pre>"


def evaluate(
    proba: Any,
    y: Any,
    fold: Any = None,
    *,
    models: Mapping[str, Any] | None = None,
    classes: Any = None,
    given: Any = None,
    products: Any = None,
    by: Any = None,
    phi: Any = None,
    posterior: str = "labelled",
    logits: bool = False,
    positive: Any = None,
    augmented: bool = True,
    replicates: int | None = None,
    name: str = "model",
    seed: int = 0,
) -> Evaluation:
    """Accuracy, recall, precision, AUC, log-loss and more of a model in the whole population, from informative labels.

    Parameters
    ----------
    proba : array of shape (n_samples, n_classes)
        Class probabilities of every row, labelled or not, from a model that has not seen the row. They are evaluated as they
        are, and they identify the mechanism.
    y : array of shape (n_samples,)
        Labels. A missing label is -1 (or NaN) if labels are numbers, None or NaN if they are strings.
    fold : array of shape (n_samples,), optional
        The fold in which each row was held out, if the probabilities are cross-fitted.
    models : mapping of names to arrays, optional
        Other models, which are compared with the first: their probabilities, of shape (n_samples, n_classes), or their
        decisions, of shape (n_samples,).
    classes : array of shape (n_classes,), optional
        The classes of the columns; by default the sorted classes of y.
    given : table, named series or dict of columns, optional
        Columns that labelling may depend on besides the class.
    products : list of str, optional
        Products of two of these columns, such as ``["hospital*age"]``.
    by : named series, or table or dict with one column, optional
        Metrics are given for each group of this column too.
    phi : array of shape (n_classes,), optional
        P(labelled | class), if it is known; otherwise it is estimated.
    posterior : {"labelled", "population"}
        ``labelled`` if the model was trained on labelled rows alone, ``population`` if it describes all rows.
    logits : bool
        Whether `proba` holds logits (log-probabilities up to a constant per row), not probabilities.
    positive : label, optional
        The class whose probability a single column holds, if there are two classes; other models may then be single columns of
        numbers with a fraction too.
    augmented : bool
        Whether unlabelled rows count with their expected labels. Otherwise labelled rows are weighted by 1/phi and nothing else.
    replicates : int, optional
        Replicates of the bootstrap behind the intervals; 0 for no intervals.
    name : str
        What the first model is called in the result.
    seed : int
        Seed of every draw.

    Examples
    --------
    >>> import numpy as np, mnar
    >>> rng = np.random.default_rng(0)
    >>> sick = rng.random(3000) < 0.2
    >>> p = np.where(sick, rng.beta(3, 2, 3000), rng.beta(1, 6, 3000))
    >>> seen = rng.random(3000) < np.where(sick, 0.6, 0.1)               # the sick are labelled six times as often
    >>> found = mnar.evaluate(np.column_stack([1 - p, p]), np.where(seen, sick.astype(int), -1), replicates=50)
    >>> accuracy = found.get("accuracy")
    >>> truth = np.mean((p > 0.5) == sick)
    >>> bool(accuracy["naive"] < 0.85 < truth), bool(abs(accuracy["corrected"] - truth) < 0.03)
    (True, True)
    """
    array, labels, held_out = _inputs.rows(proba, y, fold, classes, logits, positive)
    rows = len(labels.codes)
    columns, grouping = _inputs.columns(given, rows, "given"), _inputs.columns(by, rows, "by")
    if len(grouping) > 1:
        raise InputError("by must be a single column")
    options = {
        "augmented": bool(augmented),
        "curves": True,
        "estimate": {
            "method": "auto" if phi is None else "known",
            "phi": None if phi is None else [_inputs.number(value, "phi") for value in phi],
            "given": _inputs.given_names(columns, products),
            "by": grouping[0][0] if grouping else None,
            "replicates": None if replicates is None else _inputs.count(replicates, "replicates"),
            "seed": _inputs.count(seed, "seed"),
        },
    }
    columns += [column for column in grouping if column[0] not in {name for name, _ in columns}]
    table = (array, labels.codes, labels.names, held_out, columns, None)
    others = [(str(other), _scores(scores, labels, str(other), positive)) for other, scores in (models or {}).items()]
    text, words = _native.evaluate(table, str(posterior), json.dumps(options), str(name), others)
    found = {"version": _native.__version__, **json.loads(text)}
    _inputs.warn(found["cautions"] + found["warnings"])
    return Evaluation(found["metrics"], found["differences"], found["cautions"], found, words)


def _scores(scores: Any, labels: _inputs.Labels, name: str, positive: Any) -> Any:
    array = _inputs.as_numpy(scores, name)
    lists = array.ndim == 1 and len(array) > 0 and isinstance(array[0], (list, tuple, np.ndarray))
    # Decisions are classes, and numbers with a fraction are not.
    single = positive is not None and array.ndim == 1 and array.dtype.kind == "f" and bool((array % 1 != 0).any())
    if array.ndim != 1 or lists or single:
        return _inputs.probabilities(scores, labels.classes, positive=positive)
    decisions = _inputs.labels(scores, labels.classes).codes
    if (decisions < 0).any():
        raise InputError(f"{name}: row {int((decisions < 0).argmax()) + 1} has no decision")
    return decisions


def scorer(
    metric: str = "accuracy",
    class_: Any = None,
    *,
    phi: Any = None,
    posterior: str = "population",
    population: str = "all",
) -> Callable[[Any, Any, Any], float]:
    """A scorer for scikit-learn's searches and cross-validation on partly labelled rows: the corrected metric of the held-out
    rows, with its sign changed where less is better.

    The estimator must accept missing labels in ``fit``, as `MNARClassifier` does. `posterior` says what its probabilities are.
    Give `phi`, the mechanism of all rows, if it is known or estimated before: held-out rows alone know little about it.
    """

    def score(estimator: Any, X: Any, y: Any) -> float:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            proba = estimator.predict_proba(X)
            found = evaluate(proba, y, classes=estimator.classes_, phi=phi, posterior=posterior, replicates=0)
        value = found.get(metric, class_, population=population)["corrected"]
        if value is None:
            return float("nan")
        return -value if metric in _LOSSES else float(value)

    return score
