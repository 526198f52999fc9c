"""The mechanism of rows in any Arrow source that can be opened again, in flat memory.

A source is a dataset of pyarrow or Ray Data, a lazy frame of Polars, a relation of DuckDB, the path of a Parquet file or of a folder of them,
a table in memory, or a function without arguments that opens the rows anew: it returns an object with Arrow's stream interface
(``__arrow_c_stream__``), or an iterable of record batches. Needs pyarrow (``pip install 'mnar[arrow]'``)::

    import pyarrow.dataset as ds
    from mnar.arrow import LabelMechanism

    mechanism = LabelMechanism().fit(ds.dataset("predictions/"), proba="p_", y="diagnosis")

Settings, results and restrictions are those of `mnar.spark`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from . import _batches
from ._errors import InputError
from ._evaluate import Evaluation
from ._informative import McarTestResult
from ._walks import Rows, Source, WalkedMechanism, given_of
from ._walks import evaluate as _evaluate
from ._walks import mcar_test as _mcar_test

__all__ = ["LabelMechanism", "evaluate", "mcar_test"]

#: Rows of a batch, where that can be chosen.
_BATCH = 65_536


class ArrowRows(Source):
    """Rows that are opened anew for every pass."""

    def __init__(self, source: Any) -> None:
        self.open = _opener(source)
        self.schema = self._schema(source)

    def _schema(self, source: Any) -> pa.Schema:
        # Asking a lazy frame for its schema may be expensive, and says nothing about Arrow.
        schema = None if hasattr(source, "collect_schema") else getattr(source, "schema", None)
        if isinstance(schema, pa.Schema):
            return schema
        for batch in self.open(None):
            return batch.schema
        raise InputError("the source has no rows, and does not say which columns it has")

    def names(self) -> list[str]:
        return list(self.schema.names)

    def is_list(self, column: str) -> bool:
        kind = self.schema.field(column).type
        return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))

    def census(self, layout: _batches.Layout) -> list[tuple[bytes, str]]:
        return [_batches.census(self.open(layout.needed), layout)]

    def walk(self, layout: _batches.Layout, job: bytes, reader: str, needs: str) -> list[bytes]:
        return [_batches.add(self.open(layout.needed), layout, job, reader)]


def _opener(source: Any) -> Callable[[list[str] | None], Iterable[pa.RecordBatch]]:
    """A function that opens the rows, with some of their columns."""
    if isinstance(source, (str, PathLike)):
        import pyarrow.dataset as ds

        source = ds.dataset(source, format="parquet")
    kind = f"{type(source).__module__}.{type(source).__name__}"
    if kind.startswith("pyarrow._dataset."):
        return lambda columns: _dataset(source, columns)
    if kind.startswith("polars.") and hasattr(source, "collect_batches"):
        return lambda columns: _polars(source, columns)
    if "duckdb" in kind and hasattr(source, "project"):
        return lambda columns: _duckdb(source, columns)
    if kind.startswith("ray.data."):
        return lambda columns: _ray(source, columns)
    if hasattr(source, "__arrow_c_stream__") and not isinstance(source, pa.RecordBatchReader):
        return lambda columns: _selected(pa.RecordBatchReader.from_stream(source), columns)
    if callable(source):
        return lambda columns: _selected(_stream(source()), columns)
    raise InputError(
        f"rows of type {type(source).__name__} cannot be read again; give a dataset, a lazy frame, a relation, a table, the path"
        " of a Parquet file, or a function that opens the rows anew"
    )


def _stream(opened: Any) -> Any:
    if hasattr(opened, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(opened)
    if isinstance(opened, Iterable):
        return opened
    raise InputError(f"the function that opens the rows returned {type(opened).__name__}, but must return an Arrow stream")


def _selected(batches: Iterable[pa.RecordBatch], columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch if columns is None else batch.select(columns)


def _dataset(dataset: Any, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    settings: dict[str, Any] = {}
    if getattr(getattr(dataset, "format", None), "default_extname", None) == "parquet":
        import pyarrow.dataset as ds

        # By default, pyarrow keeps what it has read of a file until the file is done: 1.3 GB for 10 million rows of 10 classes.
        settings["fragment_scan_options"] = ds.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
    scanner = dataset.scanner(columns=columns, batch_size=_BATCH, batch_readahead=2, fragment_readahead=1, **settings)
    yield from scanner.to_batches()


def _polars(frame: Any, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    frame = frame if columns is None else frame.select(columns)
    for part in frame.collect_batches(maintain_order=True, chunk_size=_BATCH):
        yield from part.to_arrow().to_batches()


def _ray(dataset: Any, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    dataset = dataset if columns is None else dataset.select_columns(columns)
    # The rows must come in the same order in every pass.
    dataset.context.execution_options.preserve_order = True
    for part in dataset.iter_batches(batch_size=_BATCH, batch_format="pyarrow"):
        yield from part.combine_chunks().to_batches()


def _duckdb(relation: Any, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    if columns is not None:
        relation = relation.project(", ".join('"' + name.replace('"', '""') + '"' for name in columns))
    reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
    yield from reader(_BATCH)


class LabelMechanism(WalkedMechanism):
    """Estimates phi_k = P(labelled | class k) and the true class shares of rows that are read in batches.

    Settings and results are those of `mnar.LabelMechanism`, with the restrictions of rows that are streamed: intervals come from
    the observed information, or with ``interval="bootstrap"`` from a bootstrap (for mechanisms by class alone), and the checks that
    compare rows (held-out predictions, self-masking, sensitivity) are not run.

    >>> import numpy as np, pyarrow as pa
    >>> from mnar.arrow import LabelMechanism
    >>> rng = np.random.default_rng(0)
    >>> sick = rng.random(2000) < 0.3
    >>> p = np.where(sick, rng.beta(8, 2, 2000), rng.beta(2, 8, 2000))
    >>> seen = rng.random(2000) < np.where(sick, 0.5, 0.1)
    >>> y = pa.array(np.where(sick, "sick", "well"), mask=~seen)
    >>> table = pa.table({"p_well": 1 - p, "p_sick": p, "y": y})
    >>> LabelMechanism().fit(table, proba="p_", y="y").phi_.round(1)
    array([0.1, 0.5])
    """

    def fit(  # type: ignore[override]
        self,
        source: Any,
        proba: str | Sequence[str],
        y: str,
        fold: str | None = None,
        classes: Any = None,
        *,
        given: Sequence[str] | str | None = None,
        products: Sequence[str] | str | None = None,
        by: str | None = None,
    ) -> LabelMechanism:
        """Estimate the mechanism. `proba`, `y`, `given` and `by` name columns, as in `mnar.spark.LabelMechanism.fit`."""
        rows = Rows(
            ArrowRows(source),
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

    def weights(self, source: Any) -> Iterator[NDArray[np.float64]]:  # type: ignore[override]
        """Row weights that make a loss over labelled rows unbiased, one array per batch of the source."""
        needed = [self._layout.label, *self._layout.columns]
        return (self._weights_of(batch) for batch in _opener(source)(list(dict.fromkeys(needed))))

    def population_proba(self, source: Any) -> Iterator[NDArray[np.float64]]:  # type: ignore[override]
        """p(y | x) in the whole population, one array per batch of the source."""
        return (self._reweighed_of(batch, False) for batch in _opener(source)(self._layout.needed))

    def unlabelled_proba(self, source: Any) -> Iterator[NDArray[np.float64]]:  # type: ignore[override]
        """p(y | x, no label), one array per batch of the source."""
        return (self._reweighed_of(batch, True) for batch in _opener(source)(self._layout.needed))


def mcar_test(
    source: Any,
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
) -> McarTestResult:
    """Test whether labels are missing completely at random (MCAR): `mnar.spark.mcar_test` on rows that are read in batches."""
    rows = Rows(ArrowRows(source), proba, y, fold=fold, classes=classes, posterior=posterior, logits=logits)
    return _mcar_test(rows, method=method, level=level, power=power, seed=seed)


def evaluate(
    source: Any,
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
) -> Evaluation:
    """How good a model really is: `mnar.spark.evaluate` on rows that are read in batches."""
    rows = Rows(ArrowRows(source), proba, y, classes=classes, given=given, products=products, by=by, posterior=posterior)
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
