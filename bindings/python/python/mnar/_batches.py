"""Reads Arrow batches, wherever they are: what the executors of a cluster and the readers of a file have in common."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from . import _inputs, _native
from ._errors import InputError

#: A column as the native half takes it: numbers, or names and their places.
Values = Any


@dataclass(frozen=True)
class Layout:
    """Which columns are read, and how. It travels to the executors."""

    #: One column per class, or a single column of lists.
    proba: list[str]
    lists: bool
    label: str
    #: Columns that labelling depends on, and one that groups the rows.
    columns: list[str] = field(default_factory=list)
    fold: str | None = None
    logits: bool = False
    #: The classes in the order of the probabilities; None before they are known.
    classes: list[Any] | None = None

    @property
    def needed(self) -> list[str]:
        """All columns, each once."""
        names = [*self.proba, self.label, *self.columns, *([self.fold] if self.fold else [])]
        return list(dict.fromkeys(names))

    @property
    def fold_name(self) -> str | None:
        """What the folds are called among the columns: a fold may also be a column that labelling depends on."""
        return f"fold {self.fold}" if self.fold else None


def census(batches: Iterable[pa.RecordBatch], layout: Layout) -> tuple[bytes, str]:
    """The first look: rows, columns, and how often each label occurs."""
    found = _native.RowCensus(layout.logits)
    counts: dict[Any, int] = {}
    width = None
    row = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        places, values = _label_values(batch.column(layout.label), layout.label)
        for value, count in zip(values, np.bincount(places[places >= 0], minlength=len(values))):
            if count:
                counts[value] = counts.get(value, 0) + int(count)
        numbers = probabilities(batch, layout, row)
        if width is not None and width != len(numbers):
            raise InputError(f"the lists in `{layout.proba[0]}` have {width} numbers in some rows and {len(numbers)} in others")
        width = len(numbers)
        found.update(numbers, places >= 0, columns(batch, layout, row))
        row += batch.num_rows
    return found.finish(), json.dumps({"labels": list(counts.items()), "width": width})


def add(batches: Iterable[pa.RecordBatch], layout: Layout, job: bytes, reader: str) -> bytes:
    """One pass over the rows of a place."""
    sums = _native.Accumulator(job, reader)
    row = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        sums.update(probabilities(batch, layout, row), codes(batch, layout), columns(batch, layout, row))
        row += batch.num_rows
    return sums.finish()


def codes(batch: pa.RecordBatch, layout: Layout) -> NDArray[np.int64]:
    """The number of every row's class, -1 without a label."""
    places, values = _label_values(batch.column(layout.label), layout.label)
    known = {value: number for number, value in enumerate(layout.classes or [])}
    numbers = np.array([known.get(value, -2) for value in values] + [-1], dtype=np.int64)
    found: NDArray[np.int64] = numbers[places]
    if (found == -2).any():
        strange = values[places[(found == -2).argmax()]]
        raise InputError(f"label {strange!r} is not among the classes ({', '.join(str(name) for name in known)})")
    return found


def probabilities(batch: pa.RecordBatch, layout: Layout, row: int) -> list[NDArray[np.float64]]:
    """One array per class."""
    if layout.lists:
        return _of_lists(batch.column(layout.proba[0]), layout.proba[0], row)
    return [_numbers(batch.column(name), f"proba `{name}`") for name in layout.proba]


def columns(batch: pa.RecordBatch, layout: Layout, row: int) -> list[tuple[str, Values]]:
    """The columns that labelling depends on or that group the rows, and the folds."""
    found = [(name, _values(batch.column(name), name)) for name in layout.columns]
    if layout.fold and layout.fold_name:
        # As names: numbers would be put into five groups.
        folds = batch.column(layout.fold)
        missing = pc.is_null(folds, nan_is_null=True).to_numpy(zero_copy_only=False)
        if missing.any():
            raise InputError(f"fold of row {row + int(missing.argmax()) + 1} is missing; every row belongs to a fold")
        found.append((layout.fold_name, _names(folds.cast(pa.large_string()))))
    return found


def _numbers(column: pa.Array, what: str) -> NDArray[np.float64]:
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind)):
        raise InputError(f"{what} is of type {kind}, but must hold numbers")
    if kind != pa.float64():
        column = column.cast(pa.float64(), safe=False)
    return np.ascontiguousarray(column.to_numpy(zero_copy_only=False))


def _of_lists(column: pa.Array, name: str, row: int) -> list[NDArray[np.float64]]:
    kind = column.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        raise InputError(f"proba `{name}` is of type {kind}, but must hold a list of numbers per row")
    if column.null_count:
        missing = pc.is_null(column).to_numpy(zero_copy_only=False)
        raise InputError(f"row {row + int(missing.argmax()) + 1}: the list in `{name}` is missing")
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    if (lengths != lengths[0]).any():
        place = int((lengths != lengths[0]).argmax())
        raise InputError(f"row {row + place + 1}: the list in `{name}` has {lengths[place]} numbers, those before have {lengths[0]}")
    table = _numbers(column.flatten(), f"proba `{name}`").reshape(len(column), int(lengths[0]))
    return list(np.ascontiguousarray(table.T))


def _values(column: pa.Array, name: str) -> Values:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view():
        return _names(column)
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_temporal(kind):
        raise InputError(f"the column `{name}` is of type {kind}; make it a number (such as the year) or text")
    return _numbers(column, f"the column `{name}`")


def _names(column: pa.Array) -> tuple[list[str], NDArray[np.int64]]:
    places, values = _distinct(column)
    return [str(value) for value in values], places


def _distinct(column: pa.Array) -> tuple[NDArray[np.int64], list[Any]]:
    """The place of every value among the distinct ones, -1 for null."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    places = column.indices.fill_null(-1).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return places, column.dictionary.to_pylist()


def _label_values(column: pa.Array, name: str) -> tuple[NDArray[np.int64], list[Any]]:
    """The place of every label among the distinct ones, -1 where it is missing: by the rules for arrays in memory."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_null(kind):
        return np.full(len(column), -1, dtype=np.int64), []
    if pa.types.is_temporal(kind) or pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise InputError(f"the label `{name}` is of type {kind}; labels must be whole numbers or names")
    places, values = _distinct(column.cast(pa.float64()) if pa.types.is_decimal(kind) else column)
    if not values:
        return places, []
    distinct = np.array(values, dtype=object)
    read, missing = _inputs._without_missing(distinct)
    kept = [None if gone else _plain(value) for value, gone in zip(read.tolist(), missing)]
    numbers = np.array([-1 if gone else place for place, gone in enumerate(missing)] + [-1], dtype=np.int64)
    return numbers[places], kept


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) else value
