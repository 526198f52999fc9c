"""A classifier for the whole population, trained on labels whose absence depends on the class."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, _fit_context, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
    validate_data,
)

from . import _inputs
from ._errors import InputError, SettingsError
from ._mechanism import LabelMechanism

Floats = NDArray[np.float64]

#: Smaller probabilities are raised to this value, because log 0 is infinite.
FLOOR = 1e-12

#: If calibration needs a higher temperature than this, the base estimator is too overconfident to start from.
HIGHEST_TEMPERATURE = 3.0

#: Imputed classes less probable than this are left out of a refit: they add rows and change almost nothing.
LEAST_IMPUTED = 0.01


class MNARClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Wraps a classifier and corrects it for label-selection bias.

    Each class k is labelled with its own, unknown probability phi_k. The labelled rows therefore have the wrong class
    shares, and a classifier trained on them has the wrong prior. `fit` cross-fits the base classifier (each row is
    predicted by a fit that saw neither the row nor its label), calibrates it on the labelled rows (adjusts its
    probabilities to agree with observed frequencies), and estimates phi from all rows.

    With ``correction="impute"``, fitting continues in rounds. Each round adds every unlabelled row once per class,
    weighted by the probability that the previous round gave to the class, and estimates phi again. Rounds stop as soon
    as the out-of-fold log-loss no longer falls. With ``correction="weights"``, the base is refitted once on the
    labelled rows with weights 1/phi.

    Parameters
    ----------
    estimator : classifier with `predict_proba`, optional
        The base classifier; by default ``LogisticRegression()``. If its `fit` (or that of a pipeline's last step) does
        not accept `sample_weight`, its probabilities are corrected by phi, and it is not refitted.
    correction : {"impute", "weights"}
        How the refit uses phi. ``impute`` did better in trials with logistic regression.
    folds : int
        Number of folds for cross-fitting.
    rounds : int
        Maximum number of rounds with imputed rows; with 0, the probabilities are corrected by phi alone. The total
        cost is at most (folds + 1) (rounds + 1) fits of the base.
    random_state : int, RandomState or None
        Seed or generator for drawing the folds.

    Attributes
    ----------
    classes_ : the classes.
    mechanism_ : the fitted :class:`LabelMechanism`, or None if no label is missing. Its folds are stratified for the
        sake of rare classes, so the test in its report is conservative: :func:`mcar_test` needs folds drawn without
        looking at the labels.
    estimator_ : the base classifier, fitted on all rows.
    n_rounds_ : the number of rounds with imputed rows that were kept.
    log_loss_path_ : the out-of-fold log-loss after each round tried, with labelled rows weighted by 1/phi.
    n_features_in_ : the number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from mnar import MNARClassifier
    >>> X, truth = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> labelled = np.random.default_rng(0).random(len(truth)) < np.where(truth == 0, 0.5, 0.08)
    >>> y = np.where(labelled, truth, -1)          # malignant tumours are labelled more often
    >>> classifier = MNARClassifier().fit(X, y)
    >>> classifier.mechanism_.phi_.round(1)
    array([0.5, 0.1])
    >>> bool(classifier.score(X, truth) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict_proba"]), None],
        "correction": [StrOptions({"impute", "weights"})],
        "folds": [Interval(Integral, 2, None, closed="left")],
        "rounds": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any = None,
        correction: str = "impute",
        folds: int = 5,
        rounds: int = 3,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.correction = correction
        self.folds = folds
        self.rounds = rounds
        self.random_state = random_state

    # The base estimator validates its own parameters.
    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> MNARClassifier:
        """Fit on all rows. A missing label is -1 (or NaN) if labels are numbers, None or NaN if they are strings."""
        if y is None:
            raise InputError("MNARClassifier requires y to be passed, but the target y is None")
        # Rows must be sliceable; the base estimator decides whether NaN is allowed.
        X = validate_data(self, X, accept_sparse="csr", ensure_all_finite=False)
        labels = _inputs.labels(_one_column(y))
        codes = labels.codes
        check_consistent_length(X, codes)
        self.classes_ = labels.classes
        self.n_rounds_ = 0
        self.log_loss_path_: list[float] = []
        #: The phi used to turn the probabilities of `estimator_` into those of the population; None if they were not.
        self._prior_phi: Floats | None = None
        self._recalibrated = True
        counts = np.bincount(codes[codes >= 0], minlength=len(self.classes_))
        if not len(counts):
            raise InputError("y has no label: every value is -1, None or NaN")
        if (codes >= 0).all():
            self.estimator_ = clone(self._base()).fit(X, codes)
            self.mechanism_: LabelMechanism | None = None
            return self
        if len(counts) == 1:
            raise InputError(
                f"the labels are all of one class, {self.classes_[0]}: labels of at least 2 classes are needed"
                " (-1, None and NaN mean no label)"
            )
        if counts.min() < 2:
            few = self.classes_[counts.argmin()]
            raise InputError(f"class {few} has one label, but cross-fitting needs at least 2 of each class")
        mechanism = self._fit_weights(X, codes) if self.correction == "weights" else self._fit_rounds(X, codes)
        self.mechanism_ = mechanism
        _inputs.warn(mechanism.found_["warnings"] + _too_sure(mechanism))
        return self

    def _fit_weights(self, X: Any, codes: NDArray[np.int64]) -> LabelMechanism:
        keyword = _weight_parameter(self._base())
        if keyword is None:
            raise SettingsError(
                'correction="weights" needs an estimator whose fit takes sample_weight; correction="impute" with any'
                " estimator corrects its probabilities"
            )
        fold = _folds(codes, self.folds, check_random_state(self.random_state))
        out_of_fold = np.empty((len(codes), len(self.classes_)))
        for j in range(self.folds):
            fit = self._fit_chain(X, codes, fold != j, None, None)
            out_of_fold[fold == j] = self._labelled_posterior(fit, X[fold == j], None)
        mechanism = _mechanism(out_of_fold, _inputs.Labels(codes, self.classes_), fold)
        known = np.flatnonzero(codes >= 0)
        weights = 1 / mechanism.phi_[codes[known]]
        # Scaled to mean 1, so that a penalty of the base keeps its strength.
        self.estimator_ = clone(self._base()).fit(X[known], codes[known], **{keyword: weights / weights.mean()})
        self._prior_phi, self._recalibrated = mechanism.phi_, False
        return mechanism

    def _fit_rounds(self, X: Any, codes: NDArray[np.int64]) -> LabelMechanism:
        labelled = codes >= 0
        fold = _folds(codes, self.folds, check_random_state(self.random_state))
        # One chain of fits per fold, which never sees the fold, and finally the chain that sees all rows. If folds
        # shared imputed labels, a fold's labels would leak into its own calibration.
        members = [fold != j for j in range(self.folds)] + [np.ones(len(codes), dtype=bool)]
        posteriors: list[Floats] = []
        prior_phi: Floats | None = None
        mechanism: LabelMechanism | None = None
        best: Any = None
        rounds = self.rounds if _weight_parameter(self._base()) else 0
        for r in range(rounds + 1):
            fits = [
                self._fit_chain(X, codes, rows, mechanism, posteriors[j] if posteriors else None)
                for j, rows in enumerate(members)
            ]
            now = [self._labelled_posterior(fit, X, prior_phi) for fit in fits]
            out_of_fold = np.empty((len(codes), len(self.classes_)))
            for j in range(self.folds):
                out_of_fold[fold == j] = now[j][fold == j]
            found = _mechanism(out_of_fold, _inputs.Labels(codes, self.classes_), fold)
            p = found.population_proba(out_of_fold[labelled])
            loss = -np.log(np.maximum(p[np.arange(len(p)), codes[labelled]], FLOOR))
            # Weights 1/phi turn the mean over labelled rows into a population mean; both rounds use the same phi.
            weights = 1 / (found if mechanism is None else mechanism).phi_[codes[labelled]]
            self.log_loss_path_.append(float(np.average(loss, weights=weights)))
            if r and np.average(loss - best, weights=weights) >= 0:
                # This catches a base that is misled by its own imputations (naive Bayes on pixels).
                break
            posteriors, mechanism = now, found
            self.estimator_, self._prior_phi, self.n_rounds_ = fits[-1], prior_phi, r
            prior_phi, best = found.phi_, loss
        assert mechanism is not None  # round 0 is always kept
        return mechanism

    def _fit_chain(
        self,
        X: Any,
        codes: NDArray[np.int64],
        rows: NDArray[np.bool_],
        mechanism: LabelMechanism | None,
        posterior: Floats | None,
    ) -> Any:
        """Fits the base once on `rows`: on the labelled ones alone, or with the unlabelled ones imputed."""
        known = np.flatnonzero(rows & (codes >= 0))
        base = clone(self._base())
        if mechanism is None or posterior is None:
            return base.fit(X[known], codes[known])
        blank = np.flatnonzero(rows & (codes < 0))
        q = mechanism.unlabelled_proba(posterior[blank])
        q = np.where(q >= np.minimum(LEAST_IMPUTED, q.max(axis=1, keepdims=True)), q, 0.0)
        i, c = np.nonzero(q)
        # Each unlabelled row has total weight 1, like a labelled row.
        weights = np.r_[np.ones(len(known)), _normalised(q)[i, c]]
        keyword = str(_weight_parameter(base))  # there is one, otherwise there would be no rounds
        return base.fit(X[np.r_[known, blank[i]]], np.r_[codes[known], c], **{keyword: weights})

    def _raw(self, fit: Any, X: Any) -> Floats:
        """The base's probabilities, with one column per class."""
        p = np.zeros((X.shape[0], len(self.classes_)))
        p[:, fit.classes_] = fit.predict_proba(X)
        return p

    def _labelled_posterior(self, fit: Any, X: Any, prior_phi: Floats | None) -> Floats:
        """P(class | x, labelled). Round 0 gives it directly; later rounds give P(class | x), which phi converts."""
        p = np.maximum(self._raw(fit, X), FLOOR)
        return _normalised(p if prior_phi is None else p * prior_phi)

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", ensure_all_finite=False, reset=False)

    def predict_proba(self, X: Any) -> Floats:
        """P(class | x) in the whole population."""
        X = self._checked(X)
        p = self._raw(self.estimator_, X)
        if self.mechanism_ is None or not self._recalibrated:
            return p
        recalibrated = self.mechanism_.population_proba(self._labelled_posterior(self.estimator_, X, self._prior_phi))
        # A fit with imputed rows gives P(class | x) directly, but may be over- or underconfident; its recalibration
        # rests on few labels. The mean of the two has a log-loss at most log 2 above the better one, and usually below
        # both.
        return recalibrated if self._prior_phi is None else (p + recalibrated) / 2

    def predict_proba_unlabelled(self, X: Any) -> Floats:
        """P(class | x, no label): for a row that was left unlabelled by the same mechanism."""
        X = self._checked(X)
        p = self._raw(self.estimator_, X)
        if self.mechanism_ is None:
            return p
        own = _normalised(np.maximum(p, FLOOR) * (1 - self.mechanism_.phi_))
        if not self._recalibrated:
            return own
        recalibrated = self.mechanism_.unlabelled_proba(self._labelled_posterior(self.estimator_, X, self._prior_phi))
        return recalibrated if self._prior_phi is None else (own + recalibrated) / 2

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class in the population."""
        # Checked before `classes_` is read, which an unfitted estimator does not have.
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]  # type: ignore[no-any-return]

    def _base(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = get_tags(self._base())
        tags.input_tags.sparse = base.input_tags.sparse
        tags.input_tags.allow_nan = base.input_tags.allow_nan
        tags.classifier_tags.multi_class = base.classifier_tags.multi_class if base.classifier_tags else True
        return tags


def _mechanism(out_of_fold: Floats, labels: _inputs.Labels, fold: NDArray[np.int64]) -> LabelMechanism:
    """Estimates phi by label shift. A prior of one row keeps phi below 1, so that every class can be imputed."""
    return LabelMechanism(prior_weight=1.0, interval="information")._fit_labels(out_of_fold, labels, fold)


def _too_sure(mechanism: LabelMechanism) -> list[str]:
    """Warns of an overconfident base. Naive Bayes on pixels has temperatures of 7 and more, and lost accuracy."""
    temperature = 1 / mechanism.found_["calibration"]["inverse_temperature"]
    if temperature <= HIGHEST_TEMPERATURE:
        return []
    return [
        f"the estimator is far too sure of its probabilities (temperature {temperature:.1f}), which the mechanism rests on;"
        " compare with the estimator alone, or take one whose probabilities can be trusted"
    ]


def _folds(codes: NDArray[np.int64], n_folds: int, random_state: Any) -> NDArray[np.int64]:
    """One fold per row: each class, and the unlabelled rows, are spread evenly over the folds from a random start."""
    fold = np.empty(len(codes), dtype=np.int64)
    for code in np.unique(codes):
        rows = random_state.permutation(np.flatnonzero(codes == code))
        fold[rows] = (np.arange(len(rows)) + random_state.randint(n_folds)) % n_folds
    return fold


def _normalised(p: Floats) -> Floats:
    return p / p.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]


def _one_column(y: Any) -> NDArray[Any]:
    """Accepts y as scikit-learn does: a column vector is flattened, with scikit-learn's warning."""
    array = _inputs.as_numpy(y, "y")
    if array.ndim == 2 and array.shape[1] == 1:
        return column_or_1d(array, warn=True)  # type: ignore[no-any-return]
    return array


def _weight_parameter(estimator: Any) -> str | None:
    """The keyword for row weights in `fit` (for a pipeline, that of its last step), or None if there is none."""
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    steps = getattr(estimator, "steps", None)
    if steps and hasattr(steps[-1][1], "fit") and has_fit_parameter(steps[-1][1], "sample_weight"):
        return f"{steps[-1][0]}__sample_weight"
    return None
