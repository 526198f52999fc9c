"""Passes over a Spark DataFrame, each of them one `mapInArrow`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from .. import _batches, _errors
from .._errors import InputError, MnarError
from .._walks import Source

#: One row per partition: its number, its sums, what else it says, and what is wrong with it.
_PART = "partition int, sums binary, words string, error string, kind string"


def partition() -> int:
    """The number of the partition that this code runs for."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


def part(work: Callable[[Iterable[pa.RecordBatch]], tuple[bytes, str]], batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """The result of one partition as a row. What is wrong with its rows is told to the driver, which names the partition."""
    number = partition()
    try:
        sums, words = work(batches)
        row: tuple[Any, ...] = (number, sums, words, None, None)
    except MnarError as error:
        row = (number, None, None, str(error), type(error).__name__)
    kinds = [pa.int32(), pa.binary(), pa.string(), pa.string(), pa.string()]
    arrays = [pa.array([value], type=kind) for value, kind in zip(row, kinds)]
    return pa.RecordBatch.from_arrays(arrays, names=["partition", "sums", "words", "error", "kind"])


def _pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Every batch as the bytes of an Arrow stream, in one row."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()], type=pa.binary())], names=["rows"])


def _unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for rows in batch.column("rows"):
            yield from pa.ipc.open_stream(rows.as_buffer())


class SparkRows(Source):
    """The rows of a DataFrame. With `cache`, Spark keeps the needed columns in the form in which Python gets them."""

    def __init__(self, frame: Any, cache: bool = False) -> None:
        if not hasattr(frame, "mapInArrow"):
            raise InputError(f"a DataFrame of Spark is needed, not {type(frame).__name__}; use `mnar` itself for arrays in memory")
        self.frame = frame
        self.cache = bool(cache)
        self.packed: Any = None

    def close(self) -> None:
        """Gives the memory of the executors back."""
        if self.packed is not None:
            self.packed.unpersist()
            self.packed = None

    def names(self) -> list[str]:
        return list(self.frame.columns)

    def is_list(self, column: str) -> bool:
        return isinstance(self.frame.schema[column].dataType, T.ArrayType)

    def census(self, layout: _batches.Layout) -> list[tuple[bytes, str]]:
        def look(batches: Iterable[pa.RecordBatch]) -> tuple[bytes, str]:
            return _batches.census(batches, layout)

        frame = self._selected(layout)
        if self.cache:
            self.packed = frame.mapInArrow(_pack, "rows binary").persist()
        return self._parts(frame, look)

    def walk(self, layout: _batches.Layout, job: bytes, reader: str, needs: str) -> list[bytes]:
        def add(batches: Iterable[pa.RecordBatch]) -> tuple[bytes, str]:
            return _batches.add(batches, layout, job, reader), ""

        frame = self._selected(layout)
        if needs != "all" and self.packed is None:
            # Rows that do not count never leave Spark.
            missing = self._missing(layout.label)
            frame = frame.filter(~missing if needs == "labelled" else missing)
        return [sums for sums, _ in self._parts(frame, add)]

    def _selected(self, layout: _batches.Layout) -> Any:
        return self.frame.select(*[_column(name) for name in layout.needed])

    def _missing(self, label: str) -> Any:
        column, kind = _column(label), self.frame.schema[label].dataType
        missing = column.isNull()
        if isinstance(kind, T.NumericType):
            missing = missing | (column == F.lit(-1))
        if isinstance(kind, (T.FloatType, T.DoubleType)):
            missing = missing | F.isnan(column)
        return missing

    def _parts(self, frame: Any, work: Callable[[Iterable[pa.RecordBatch]], tuple[bytes, str]]) -> list[tuple[bytes, str]]:
        packed = self.packed is not None

        def of_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield part(work, _unpack(batches) if packed else batches)

        rows = (self.packed if packed else frame).mapInArrow(of_partition, _PART).collect()
        wrong = sorted((row for row in rows if row["error"] is not None), key=lambda row: row["partition"])
        if wrong:
            kind = getattr(_errors, wrong[0]["kind"], InputError)
            others = f" (and {len(wrong) - 1} other partitions have something wrong too)" if len(wrong) > 1 else ""
            raise kind(f"partition {wrong[0]['partition']}: {wrong[0]['error']}{others}")
        return [(bytes(row["sums"]), row["words"]) for row in rows]


def _column(name: str) -> Any:
    # A name with a dot in it is not a field of a struct here.
    return F.col("`" + name.replace("`", "``") + "`")


def with_columns(frame: Any, fields: list[tuple[str, Any]], compute: Callable[[pa.RecordBatch], list[pa.Array]]) -> Any:
    """The frame with further columns, computed batch by batch."""
    taken = [name for name, _ in fields if name in frame.columns]
    if taken:
        raise InputError(f"there is a column `{taken[0]}` already; choose another name for the result")
    schema = T.StructType([*frame.schema.fields, *[T.StructField(name, kind) for name, kind in fields]])

    def of_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number, row = partition(), 0
        for batch in batches:
            try:
                computed = compute(batch)
            except MnarError as error:
                raise type(error)(f"partition {number}, batch from row {row + 1}: {error}") from error
            names = [*batch.schema.names, *[name for name, _ in fields]]
            yield pa.RecordBatch.from_arrays([*batch.columns, *computed], names=names)
            row += batch.num_rows

    return frame.mapInArrow(of_partition, schema)
