"""The mechanism of a Spark DataFrame, estimated where its rows are.

Every pass over the rows is one ``DataFrame.mapInArrow``, which works on managed and serverless Spark too: each partition adds its
rows up, and a few kilobytes per partition travel to the driver. The parts are merged in an order that follows from what they
hold, so the result has the same bits whichever executor was first, and whichever failed and was started again. `mnar` must be
installed on the executors, in the same version::

    from mnar.spark import LabelMechanism

    mechanism = LabelMechanism().fit(df, proba="p_", y="diagnosis", given=["hospital"])
    print(mechanism.summary())
    weighted = mechanism.weights(df)                    # df with the column `weight`
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

try:
    from pyspark.sql import types as _types
except ImportError as error:  # pragma: no cover
    raise ImportError("mnar.spark needs Spark: pip install 'mnar[spark]'") from error

import pyarrow as _pa
from sklearn.utils.validation import check_is_fitted

from .._evaluate import Evaluation
from .._informative import McarTestResult
from .._walks import Rows, WalkedMechanism, given_of
from .._walks import evaluate as _evaluate
from .._walks import mcar_test as _mcar_test
from ._rows import SparkRows, with_columns

__all__ = ["LabelMechanism", "evaluate", "mcar_test"]


class LabelMechanism(WalkedMechanism):
    """Estimates phi_k = P(labelled | class k) and the true class shares of a Spark DataFrame.

    Settings and results are those of `mnar.LabelMechanism`, with the restrictions of rows that are streamed: intervals come from
    the observed information, or with ``interval="bootstrap"`` from a bootstrap (for mechanisms by class alone), and the checks that
    compare rows (held-out predictions, self-masking, sensitivity) are not run.
    ``passes_`` says how often the rows were passed over.
    """

    def fit(  # type: ignore[override]
        self,
        df: Any,
        proba: str | Sequence[str],
        y: str,
        fold: str | None = None,
        classes: Any = None,
        *,
        given: Sequence[str] | str | None = None,
        products: Sequence[str] | str | None = None,
        by: str | None = None,
        cache: bool = False,
    ) -> LabelMechanism:
        """Estimate the mechanism.

        Parameters
        ----------
        df : pyspark.sql.DataFrame
            One row per sample, labelled or not. It is read several times: cache it if it is expensive to compute.
        proba : str or list of str
            The columns of class probabilities: their names in the order of `classes`, or a prefix such as ``"p_"`` that the names
            of the classes follow, or the name of one column of arrays.
        y : str
            The column of labels. A missing label is null; among numbers also -1 or NaN.
        fold : str, optional
            Accepted as in `mnar.LabelMechanism`, and not needed for an estimate; `mcar_test` uses it.
        classes : sequence, optional
            The classes of the columns; by default those of a prefix, or the sorted labels.
        given : list of str, optional
            Columns that labelling may depend on besides the class, such as the hospital. The classifier must have seen them.
        products : list of str, optional
            Products of two of these columns, such as ``["hospital*age"]``.
        by : str, optional
            Class shares and phi are estimated for each group of this column too: ``found_["groups"]``, without intervals.
        cache : bool, optional
            Spark keeps the needed columns until the end, 8 bytes per number, in the form in which Python gets them, so that rows are
            converted once instead of in every pass. Python then holds a whole partition at a time. Needs `DataFrame.persist`, which
            serverless Spark may not have.
        """
        with closing(SparkRows(df, cache)) as source:
            rows = Rows(
                source,
                proba,
                y,
                classes=classes,
                given=given,
                products=products,
                by=by,
                posterior=str(self.posterior),
                logits=bool(self.logits),
            )
            self._walked(rows, given_of(given, products), by)
        return self

    def weights(self, df: Any, column: str = "weight") -> Any:
        """The DataFrame with a column of row weights that make a loss over labelled rows unbiased: 1/phi of the label (and of the
        row's columns, if labelling depends on them), and 0 for a missing label."""
        check_is_fitted(self)
        fitted = self._travelling()
        return with_columns(
            df, [(column, _types.DoubleType())], lambda batch: [_pa.array(fitted._weights_of(batch), type=_pa.float64())]
        )

    def population_proba(self, df: Any, prefix: str = "population_") -> Any:
        """The DataFrame with p(y | x) in the whole population: one column per class, named by the prefix and the class."""
        return self._with_proba(df, prefix, unlabelled=False)

    def unlabelled_proba(self, df: Any, prefix: str = "unlabelled_") -> Any:
        """The DataFrame with p(y | x, no label), by Bayes' rule: one column per class, named by the prefix and the class."""
        return self._with_proba(df, prefix, unlabelled=True)

    def _with_proba(self, df: Any, prefix: str, unlabelled: bool) -> Any:
        check_is_fitted(self)
        fitted = self._travelling()
        fields = [(f"{prefix}{name}", _types.DoubleType()) for name in self.classes_]

        def compute(batch: _pa.RecordBatch) -> list[_pa.Array]:
            proba = fitted._reweighed_of(batch, unlabelled)
            return [_pa.array(proba[:, k], type=_pa.float64()) for k in range(proba.shape[1])]

        return with_columns(df, fields, compute)


def mcar_test(
    df: Any,
    proba: str | Sequence[str],
    y: str,
    fold: str | None = None,
    *,
    classes: Any = None,
    method: str = "auto",
    posterior: str = "labelled",
    logits: bool = False,
    level: float = 0.05,
    power: float | None = None,
    seed: int = 0,
    cache: bool = False,
) -> McarTestResult:
    """Test whether labels are missing completely at random (MCAR), against a mechanism that depends on the class.

    The statistic is that of `mnar.mcar_test`, computed in three passes, and the p-value is that of the chi-square limit of its
    permutations, which `mnar.mcar_test` takes too for more than 200,000 rows. Columns are named as in `LabelMechanism.fit`; with
    `fold`, rows are compared within folds. `cache` is that of `LabelMechanism.fit`.
    """
    with closing(SparkRows(df, cache)) as source:
        rows = Rows(source, proba, y, fold=fold, classes=classes, posterior=posterior, logits=logits)
        return _mcar_test(rows, method=method, level=level, power=power, seed=seed)


def evaluate(
    df: Any,
    proba: str | Sequence[str],
    y: str,
    *,
    classes: Any = None,
    given: Sequence[str] | str | None = None,
    products: Sequence[str] | str | None = None,
    by: str | None = None,
    phi: Any = None,
    posterior: str = "labelled",
    augmented: bool = True,
    replicates: int | None = None,
    name: str = "model",
    seed: int = 0,
    cache: bool = False,
) -> Evaluation:
    """Accuracy, recall, precision, log-loss and more of a model in the whole population, from informative labels.

    The numbers are those of `mnar.evaluate`, for the metrics that are functions of sums; AUC, average precision, the calibration
    slope and curves need the rows in order and are left out, and there is one model at a time. Intervals come from a jackknife
    over 50 random buckets of rows, in the same pass (``replicates=0`` leaves them out): they include the error of the mechanism,
    and take the classifier and its calibration as given. Needs labelled posteriors, or `phi`. `cache` is that of
    `LabelMechanism.fit`.
    """
    with closing(SparkRows(df, cache)) as source:
        rows = Rows(source, proba, y, classes=classes, given=given, products=products, by=by, posterior=posterior)
        return _evaluate(
            rows,
            given=given_of(given, products),
            by=by,
            phi=phi,
            augmented=augmented,
            replicates=replicates,
            name=name,
            seed=seed,
        )
