"""Estimates how likely each class was to be labelled."""

from __future__ import annotations

import json
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from . import _inputs, _native
from ._errors import InputError


class LabelMechanism(BaseEstimator):
    """Estimates phi_k = P(labelled | class k) and the true class shares.

    The inputs are class probabilities and partly missing labels. The probabilities may come from any classifier, but
    those of labelled rows must come from a classifier that has not seen these rows. The usual way is cross-fitting:
    split the rows into folds, score each fold with a model trained on the others, and name the folds in
    ``fit(..., fold=...)``.

    Parameters
    ----------
    method : {"auto", "label-shift", "likelihood", "moments", "confusion", "known"}
        The estimator. ``auto`` uses label-shift for labelled posteriors and likelihood for population posteriors.
    posterior : {"labelled", "population"}
        What the probabilities are: ``labelled`` is what a classifier trained on the labelled rows alone learns,
        ``population`` what one trained with 1/phi weights or on fully labelled data learns.
    logits : bool
        Whether the arrays called `proba` hold logits (log-probabilities up to a constant per row), not probabilities.
    positive : label, optional
        The class whose probability the arrays called `proba` hold, if they are single columns and there are two classes.
    calibrate : {"auto", "bcts", "none"}
        Whether to calibrate labelled posteriors, that is, to adjust them to the class frequencies of the labelled rows.
        ``bcts`` is bias-corrected temperature scaling; ``auto`` uses it for the label-shift estimator.
    shares : "balanced" or array of shape (n_classes,), optional
        Known class shares of the population, for ``method="moments"``.
    phi : array of shape (n_classes,), optional
        The known mechanism, for ``method="known"``.
    prior_weight : float
        Pulls the class shares of the unlabelled rows towards those of the labelled rows with the weight of this many
        rows.
    interval : {"auto", "bootstrap", "information", "profile"}
        How 95% intervals are computed; ``auto`` uses the bootstrap if it is affordable, otherwise the observed
        information.
    replicates : int
        Number of bootstrap replicates.
    budget : float, optional
        Seconds after which no more replicates are started, once there are eight.
    sensitivity : sequence of float
        Odds factors; the result then shows how phi and the class shares move if easy rows are labelled more readily by
        these factors.
    seed : int
        Seed of every draw.

    Attributes
    ----------
    phi_, phi_se_, phi_interval_ : P(labelled | class), standard errors, and 95% intervals of shape (n_classes, 2).
    prevalence_, prevalence_se_, prevalence_interval_ : the same for the class shares of the whole population.
    unlabelled_shares_ : class shares of the unlabelled rows.
    classes_ : the classes, in the order of the columns.
    verdict_ : what decided who got labelled: "at-random", "by-class", "by-columns", "by-class-and-columns" or "unclear"; None
        where the posteriors cannot tell. ``found_["verdict"]`` has it in words.
    row_phi_ : P(labelled | class, columns) of every row of `fit`, of shape (n_samples, n_classes); None where labelling depends
        on the class alone.
    converged_ : whether the estimator converged.
    found_ : the complete result, as printed by ``mnar estimate --format json``.

    Examples
    --------
    >>> import numpy as np
    >>> from mnar import LabelMechanism
    >>> rng = np.random.default_rng(0)
    >>> dog = rng.random(2000) < 0.5
    >>> sure = np.where(dog, rng.beta(8, 2, 2000), rng.beta(2, 8, 2000))
    >>> proba = np.column_stack([1 - sure, sure])                        # of cat, dog
    >>> seen = rng.random(2000) < np.where(dog, 0.1, 0.4)                # dogs are labelled rarely
    >>> y = np.where(seen, np.where(dog, "dog", "cat"), None)
    >>> mechanism = LabelMechanism().fit(proba, y)
    >>> mechanism.phi_.round(1)
    array([0.4, 0.1])
    >>> low, high = mechanism.phi_interval_.T
    >>> bool(low[0] < 0.4 < high[0] and low[1] < 0.1 < high[1])
    True
    >>> weights = mechanism.weights(["cat", "dog", None])                # 1/phi, and 0 without a label
    >>> bool(weights[1] > 3 * weights[0]), float(weights[2])
    (True, 0.0)
    """

    def __init__(
        self,
        method: str = "auto",
        posterior: str = "labelled",
        calibrate: str = "auto",
        shares: str | ArrayLike | None = None,
        phi: ArrayLike | None = None,
        prior_weight: float = 0.0,
        interval: str = "auto",
        replicates: int = 200,
        sensitivity: ArrayLike = (),
        seed: int = 0,
        logits: bool = False,
        positive: Any = None,
        budget: float | None = None,
    ) -> None:
        self.method = method
        self.posterior = posterior
        self.calibrate = calibrate
        self.shares = shares
        self.phi = phi
        self.prior_weight = prior_weight
        self.interval = interval
        self.replicates = replicates
        self.sensitivity = sensitivity
        self.seed = seed
        self.logits = logits
        self.positive = positive
        self.budget = budget

    def fit(
        self,
        proba: Any,
        y: Any,
        fold: Any = None,
        classes: Any = None,
        *,
        given: Any = None,
        products: Any = None,
        by: Any = None,
        audit: Any = None,
    ) -> LabelMechanism:
        """Estimate the mechanism.

        Parameters
        ----------
        proba : array of shape (n_samples, n_classes)
            Class probabilities of every row, labelled or not, as a numpy, pandas, polars or torch object; a column of lists; or
            one column for two classes, see `positive`.
        y : array of shape (n_samples,)
            Labels. A missing label is -1 (or NaN) if labels are numbers, None or NaN if they are strings.
        fold : array of shape (n_samples,), optional
            The fold in which each row was held out, if the probabilities are cross-fitted.
        classes : array of shape (n_classes,), optional
            The classes of the columns; by default the sorted classes of y.
        given : table, named series or dict of columns, optional
            Columns that labelling may depend on besides the class, such as the hospital. The classifier behind `proba`
            must have seen them.
        products : list of str, optional
            Products of two of these columns, such as ``["hospital*age"]``: the effect of one differs by the other then.
        by : named series, or table or dict with one column, optional
            Class shares and phi are estimated for each group of this column too: ``found_["groups"]``.
        audit : array of shape (n_samples,), optional
            True for rows whose label was requested at random. The class shares then rest on these rows, whatever decided
            the other labels. The classifier must not have been trained on them.
        """
        array, labels, folds = _inputs.rows(proba, y, fold, classes, self.logits, self.positive)
        rows = len(labels.codes)
        columns, grouping = _inputs.columns(given, rows, "given"), _inputs.columns(by, rows, "by")
        if len(grouping) > 1:
            raise InputError("by must be a single column")
        self._extra = {
            "given": _inputs.given_names(columns, products),
            "by": grouping[0][0] if grouping else None,
        }
        columns += [column for column in grouping if column[0] not in {name for name, _ in columns}]
        self._fit_labels(array, labels, folds, columns, _inputs.marks(audit, rows, "audit"))
        _inputs.warn(self.found_["warnings"])
        return self

    def _fit_labels(
        self,
        array: NDArray[Any],
        labels: _inputs.Labels,
        folds: NDArray[np.int64] | None,
        columns: list[tuple[str, Any]] | None = None,
        audited: list[bool] | None = None,
    ) -> LabelMechanism:
        options = self._options()
        table = (array, labels.codes, labels.names, folds, columns or [], audited)
        found, text, self._seconds, self.row_phi_, self._factors = _native.estimate(table, str(self.posterior), options)
        self._rows: tuple[_native.Table, str, str] | None = (table, str(self.posterior), options)
        return self._take(found, text, labels.classes)

    def _take(self, found: str, text: str, classes: NDArray[Any]) -> LabelMechanism:
        self.found_: dict[str, Any] = {"version": _native.__version__, **json.loads(found)}
        self._text = text
        self.classes_ = classes
        self.n_features_in_ = len(classes)
        self.phi_ = _numbers(self.found_["phi"])
        self.phi_se_ = _numbers(self.found_["phi_se"])
        self.phi_interval_ = _numbers(self.found_["phi_ci95"])
        self.prevalence_ = _numbers(self.found_["prevalence"])
        self.prevalence_se_ = _numbers(self.found_["prevalence_se"])
        self.prevalence_interval_ = _numbers(self.found_["prevalence_ci95"])
        self.unlabelled_shares_ = _numbers(self.found_["unlabelled_shares"])
        self.verdict_ = (self.found_.get("verdict") or {}).get("kind")
        self.converged_ = bool(self.found_["converged"])
        return self

    def weights(self, y: Any) -> NDArray[np.float64]:
        """Row weights that make a loss over labelled rows unbiased: 1/phi of the label, and 0 for a missing label.

        Where labelling depends on columns too, phi is that of the row, and `y` must hold the rows of `fit`.
        """
        check_is_fitted(self)
        labels = _inputs.labels(y, self.classes_)
        row_phi = self._of_rows(len(labels.codes))
        if row_phi is not None:
            seen = labels.codes >= 0
            weights = np.zeros(len(labels.codes))
            weights[seen] = 1.0 / row_phi[np.flatnonzero(seen), labels.codes[seen]]
            return weights
        return _native.risk_weights(labels.codes, self.phi_.tolist())[0]

    def population_proba(self, proba: Any) -> NDArray[np.float64]:
        """p(y | x) in the whole population. `proba` must be of the same kind as in `fit`; it is calibrated and, if the
        posteriors are those of labelled rows, divided by phi."""
        return self._reweighed(proba, unlabelled=False)

    def unlabelled_proba(self, proba: Any) -> NDArray[np.float64]:
        """p(y | x, no label), by Bayes' rule. NaN if every possible class of a row is always labelled, because such a
        row would have a label."""
        return self._reweighed(proba, unlabelled=True)

    def replicate_weights(self, count: int = 200) -> NDArray[np.float64]:
        """Weights of the rows of `fit` in `count` repetitions of the estimate under random row weights.

        One line per row, one column per replicate; rows without a label have 0. An analysis with :meth:`weights`, repeated with
        every column, varies as it would with new rows and a new estimate of phi: the standard deviation of its results is their
        standard error. :func:`mnar.weighted` does that.
        """
        weights, failed = _native.replicate_weights(*self._table(), self._given(), _inputs.count(count, "count"))
        _inputs.warn([f"{failed} replicates failed and are left out"] if failed else [])
        return weights

    def imputations(self, count: int = 20) -> NDArray[Any]:
        """The labels of the rows of `fit`, with the missing ones drawn `count` times: one line per row, one column per draw.

        Each draw repeats the estimate under random row weights and then draws every missing label from p(y | x, no label), so
        Rubin's rules count what is not known about phi. Labels that are known are the same in every column.
        """
        codes, failed = _native.imputations(*self._table(), self._given(), _inputs.count(count, "count"))
        _inputs.warn([f"{failed} imputations failed and are left out"] if failed else [])
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    def _table(self) -> tuple[Any, str, str]:
        check_is_fitted(self)
        if self._rows is None:
            raise InputError("the rows were left behind when this object was saved; fit it again")
        rows: tuple[Any, str, str] = self._rows
        return rows

    def _given(self) -> list[str]:
        return list((self.found_.get("labelling") or {}).get("given", []))

    def summary(self) -> str:
        """The result as text, as printed by ``mnar estimate``."""
        check_is_fitted(self)
        return self._text

    def report(self, path: str | PathLike[str], title: str = "LabelMechanism") -> None:
        """Write a report page with the estimate, the test and the checks: a single HTML file that opens offline."""
        # Repeats the estimate from the same rows and seed: keeping the rows costs nothing, keeping all results a copy.
        _native.page(*self._table(), title, path)

    def _reweighed(self, proba: Any, unlabelled: bool) -> NDArray[np.float64]:
        check_is_fitted(self)
        array = _inputs.probabilities(proba, self.classes_, self.logits, self.positive)
        if array.shape[1] != len(self.classes_):
            raise InputError(f"proba has {array.shape[1]} columns, but there are {len(self.classes_)} classes")
        return self._reweigh(array, self._of_rows(len(array)), self._factors, unlabelled)

    def _reweigh(
        self,
        array: NDArray[Any],
        row_phi: NDArray[np.float64] | None,
        factors: NDArray[np.float64] | None,
        unlabelled: bool,
    ) -> NDArray[np.float64]:
        calibration = self.found_["calibration"]

        def reweigh(phi: list[float], unlabelled: bool) -> NDArray[np.float64]:
            return _native.reweigh(
                array,
                self.posterior,
                phi,
                calibration["inverse_temperature"] if calibration else None,
                calibration["biases"] if calibration else [],
                unlabelled,
            )

        if row_phi is None:
            return reweigh(self.phi_.tolist(), unlabelled)
        # With phi = 1 the calibrated posteriors stay as they are; every row is then calibrated within its columns, and divided by
        # its own phi.
        calibrated = reweigh([1.0] * len(self.classes_), False)
        if factors is not None:
            calibrated = calibrated * factors
        tilted = calibrated * ((1 - row_phi) / row_phi if unlabelled else 1 / row_phi)
        with np.errstate(invalid="ignore"):
            reweighed: NDArray[np.float64] = tilted / tilted.sum(axis=1, keepdims=True)
        return reweighed

    def _of_rows(self, rows: int) -> NDArray[np.float64] | None:
        row_phi = self.row_phi_
        if row_phi is not None and len(row_phi) != rows:
            raise InputError(
                f"labelling depends on columns, which are known for the {len(row_phi)} rows of `fit` only, and these are"
                f" {rows} rows"
            )
        return row_phi

    def _options(self) -> str:
        def numbers(values: Any, name: str) -> list[float] | None:
            if values is None:
                return None
            try:
                return [float(value) for value in values]
            except (TypeError, ValueError) as error:
                raise InputError(f"{name} must be numbers: {error}") from error

        return json.dumps(
            {
                "method": str(self.method),
                "calibrate": str(self.calibrate),
                "shares": self.shares if isinstance(self.shares, str) else numbers(self.shares, "shares"),
                "phi": numbers(self.phi, "phi"),
                "prior_weight": _inputs.number(self.prior_weight, "prior_weight"),
                "interval": str(self.interval),
                "replicates": _inputs.count(self.replicates, "replicates"),
                "sensitivity": numbers(self.sensitivity, "sensitivity") or [],
                "seed": _inputs.count(self.seed, "seed"),
                "budget": None if self.budget is None else _inputs.seconds(self.budget, "budget"),
                **getattr(self, "_extra", {}),
            }
        )

    def _repr_html_(self) -> str:
        if not hasattr(self, "found_"):
            return super()._repr_html_inner()  # type: ignore[no-any-return]
        from html import escape

        return f"<pre>{escape(self._text)}</pre>"

    def __getstate__(self) -> dict[str, Any]:
        # The rows are kept only for a report; a pickled mechanism should not contain the data.
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_rows": None} if "_rows" in state else state


def _numbers(values: Any) -> Any:
    return None if values is None else np.array(values, dtype=np.float64)
