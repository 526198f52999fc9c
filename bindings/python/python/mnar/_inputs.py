"""Converts arrays and tables of every kind to numpy arrays, and checks them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._errors import InputError, MnarWarning

#: How scikit-learn marks a missing label among numbers.
MISSING = -1


class Labels(NamedTuple):
    """Labels as class numbers, with -1 for a missing label."""

    codes: NDArray[np.int64]
    classes: NDArray[Any]

    @property
    def names(self) -> list[str]:
        """The names of the classes in messages and reports."""
        return [str(name) for name in self.classes]


def as_numpy(values: Any, what: str) -> NDArray[Any]:
    """Converts numpy, pandas, polars, `__array__`, DLPack (torch, jax) or a list to an array, copying if needed."""
    if isinstance(values, np.ndarray):
        return values
    if values is None:
        raise InputError(f"{what} is None; give an array")
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise InputError(f"{what} is a sparse matrix; give a dense array (`.toarray()`)")
    if hasattr(values, "detach"):  # a torch tensor may carry a gradient or live on another device
        values = values.detach().cpu()
    if type(values).__module__.partition(".")[0] == "pyarrow":  # lists cannot be shared with numpy
        return np.asarray(values.to_numpy(zero_copy_only=False))
    if hasattr(values, "to_numpy"):  # pandas and polars
        return np.asarray(values.to_numpy())
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
        return np.asarray(np.from_dlpack(values))
    if isinstance(values, (list, tuple)) and any(isinstance(value, str) for value in values):
        return np.asarray(values, dtype=object)  # otherwise a NaN among strings becomes the string "nan"
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError(f"{what} cannot be made an array: {error}") from error


def probabilities(
    proba: Any, classes: NDArray[Any] | None = None, logits: bool = False, positive: Any = None
) -> NDArray[Any]:
    """n x K probabilities in single or double precision. Columns named after the classes are put in their order. Logits
    become probabilities. A list per row is taken apart, and of two classes `positive` may be given alone."""
    array = as_numpy(proba, "proba")
    if array.ndim == 1 and array.dtype == object:
        array = _stacked(array)
    if array.ndim == 2 and array.shape[1] == 1 and positive is not None:
        array = array[:, 0]
    if array.ndim == 1 and positive is not None:
        return _of_two(array, classes, logits, positive)
    if array.ndim != 2:
        raise InputError(
            f"proba has {array.ndim} dimension(s), but must have two: one row per sample and one column per class"
            + ("; for two classes give both columns, or name the class with `positive`" if array.ndim == 1 else "")
        )
    if array.dtype not in (np.float64, np.float32):
        if array.dtype.kind == "c":
            raise InputError("Complex data not supported: proba must hold real numbers")
        if array.dtype.kind not in "fiubOUS":
            raise InputError(f"proba is of type {array.dtype}, but must hold real numbers")
        try:
            array = array.astype(np.float64)
        except (ValueError, TypeError) as error:
            raise InputError(f"proba is of type {array.dtype}, but must hold numbers: {error}") from error
    if array.shape[1] == 0:
        raise InputError(
            f"Found array with 0 feature(s) (shape={array.shape}) while a minimum of 2 is required: proba has one column a"
            " class"
        )
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    names = [str(name) for name in getattr(proba, "columns", [])]
    if classes is not None and names:
        wanted = [str(name) for name in classes]
        if names != wanted and sorted(names) == sorted(wanted):
            array = array[:, [names.index(name) for name in wanted]]
    return softmax(array) if logits else array


def _stacked(array: NDArray[Any]) -> NDArray[Any]:
    """Rows of a column of lists, as pandas, polars and Arrow have them. Other columns stay as they are."""
    lists = [isinstance(row, (list, tuple, np.ndarray)) for row in array]
    if not any(lists):
        return array
    if not all(lists):
        raise InputError(f"row {lists.index(False) + 1} of proba is {array[lists.index(False)]!r}, but others are lists")
    lengths = [np.shape(row) for row in array]
    odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
    if odd is not None or len(lengths[0]) != 1:
        i = odd or 0
        raise InputError(f"row {i + 1} of proba has shape {lengths[i]}, but every row must have one number per class")
    return np.array(list(array))


def _of_two(array: NDArray[Any], classes: NDArray[Any] | None, logits: bool, positive: Any) -> NDArray[np.float64]:
    """Both columns from that of one class."""
    names = [] if classes is None else [str(name) for name in classes]
    if len(names) != 2:
        raise InputError(f"a single column is for two classes, but there are {len(names)} ({', '.join(names[:12])})")
    if str(positive) not in names:
        raise InputError(f"positive is {positive!r}, but the classes are {' and '.join(names)}")
    try:
        of_one = array.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise InputError(f"proba is of type {array.dtype}, but must hold numbers: {error}") from error
    other = np.zeros_like(of_one) if logits else 1 - of_one
    both = np.column_stack([of_one, other] if names.index(str(positive)) == 0 else [other, of_one])
    return softmax(both) if logits else both


def softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    """Probabilities of log-probabilities that lack a constant per row. A logit may be minus infinity, but not all of a row."""
    array = logits.astype(np.float64)
    highest = array.max(axis=1, initial=-np.inf)
    if not np.isfinite(highest).all():  # NaN, where there is one
        row = int((~np.isfinite(highest)).argmax())
        raise InputError(f"row {row + 1} of proba is {array[row].tolist()}, but logits must be finite numbers")
    array -= highest[:, None]
    np.exp(array, out=array)
    array /= array.sum(axis=1, keepdims=True)
    return array


def labels(y: Any, classes: Any = None) -> Labels:
    """Reads labels. A missing label is -1 or NaN if labels are numbers, None or NaN otherwise. Unless given, classes
    are sorted, as scikit-learn sorts the columns of its probabilities."""
    array = as_numpy(y, "y")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"y has {array.ndim} dimension(s), but must have one: one label per row, -1 or None where missing")
    array, missing = _without_missing(array)
    present = array[~missing]
    if classes is None:
        try:
            known = np.unique(present)
        except TypeError as error:
            raise InputError(f"the labels cannot be sorted, so they are of several types: {error}") from error
    else:
        known = as_numpy(classes, "classes")
        if known.ndim != 1 or len(np.unique(known)) != len(known):
            raise InputError("classes must be a list of different labels, in the order of the columns of proba")
    codes = np.full(len(array), -1, dtype=np.int64)
    codes[~missing] = _positions(present, known)
    return Labels(codes, known)


def _without_missing(array: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    kind = array.dtype.kind
    if kind == "c":
        raise InputError("Complex data not supported: labels must be whole numbers or names")
    if kind in "iu":
        return array, array == MISSING
    if kind == "b":
        return array, np.zeros(len(array), dtype=bool)
    if kind == "f":
        missing = np.isnan(array) | (array == MISSING)
        present = array[~missing]
        if not np.isfinite(present).all():
            raise InputError("y holds infinity; labels must be finite numbers or names")
        if not (present == np.floor(present)).all():
            raise InputError(
                "Unknown label type: continuous. y holds numbers with a fraction; labels must be classes: whole numbers"
                " or names"
            )
        return array, missing
    if kind in "US":
        if (array == "").any():
            raise InputError("y holds empty texts; mark missing labels with None (or NaN), and -1 among numbers")
        return array, np.zeros(len(array), dtype=bool)
    if kind == "O":
        missing = np.array([_is_missing(value) for value in array], dtype=bool)
        present = array[~missing]
        if any(isinstance(value, str) and value == "" for value in present):
            raise InputError("y holds empty texts; mark missing labels with None (or NaN), and -1 among numbers")
        if all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in present):
            numbers = np.array([MISSING if gone else int(value) for value, gone in zip(array, missing)], dtype=np.int64)
            return numbers, numbers == MISSING
        if all(isinstance(value, str) for value in present):
            return np.array(["" if gone else value for value, gone in zip(array, missing)], dtype=object), missing
        if all(isinstance(value, (float, np.floating)) for value in present):
            return _without_missing(np.array([np.nan if gone else value for value, gone in zip(array, missing)], float))
        types = sorted({type(value).__name__ for value in present})
        if len(types) > 1 or not all(isinstance(value, bool) for value in present):
            raise InputError(f"Unknown label type: y holds {', '.join(types)}; labels must be numbers or texts of one type")
        return array, missing
    raise InputError(f"Unknown label type: y is of type {array.dtype}; labels must be whole numbers or names")


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN
    except (TypeError, ValueError):
        return True  # pandas' NA, which is neither equal nor unequal


def _positions(values: NDArray[Any], known: NDArray[Any]) -> NDArray[np.int64]:
    """The position of each value among the known ones."""
    if len(values) == 0:
        return np.empty(0, dtype=np.int64)
    if len(known) == 0:
        raise InputError("classes is empty")
    order = np.argsort(known, kind="stable")
    try:
        at = np.minimum(np.searchsorted(known, values, sorter=order), len(known) - 1)
    except TypeError as error:
        raise InputError(f"y and classes are of different types: {error}") from error
    positions = order[at]
    strange = np.flatnonzero(known[positions] != values)
    if len(strange):
        shown = ", ".join(str(name) for name in known[:12])
        raise InputError(f"label {values[strange[0]]!r} is not among the classes ({shown})")
    return positions.astype(np.int64, copy=False)


def folds(fold: Any, n: int) -> NDArray[np.int64] | None:
    """The fold in which each row was held out, as numbers from 0."""
    if fold is None:
        return None
    array = as_numpy(fold, "fold")
    if array.ndim != 1 or len(array) != n:
        raise InputError(f"fold has shape {array.shape}, but must name a fold for each of the {n} rows")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise InputError(f"fold of row {int(np.isnan(array).argmax()) + 1} is NaN; every row belongs to a fold")
    _, numbers = np.unique(array, return_inverse=True)
    return np.ascontiguousarray(numbers, dtype=np.int64)


def rows(
    proba: Any, y: Any, fold: Any, classes: Any, logits: bool = False, positive: Any = None
) -> tuple[NDArray[Any], Labels, NDArray[np.int64] | None]:
    """Probabilities, labels and folds of the same rows, checked against each other."""
    given = labels(y, classes)
    array = probabilities(proba, given.classes, logits, positive)
    check_lengths(array, given)
    return array, given, folds(fold, len(array))


def warn(messages: list[str], stacklevel: int = 3) -> None:
    """Issues each message as a warning."""
    for message in messages:
        warnings.warn(message, MnarWarning, stacklevel=stacklevel)


def check_lengths(proba: NDArray[Any], given: Labels) -> None:
    """Checks shapes before any work, so that messages use the terms of Python."""
    if len(proba) != len(given.codes):
        raise InputError(f"proba has {len(proba)} rows but y has {len(given.codes)}; give one label per row, missing ones included")
    if proba.shape[1] != len(given.classes):
        raise InputError(
            f"proba has {proba.shape[1]} columns but y has {len(given.classes)} classes"
            f" ({', '.join(given.names[:12])}); give one column per class, or name the classes of the columns with `classes`"
        )


def number(value: Any, name: str) -> float:
    """Checks that the value is a finite number."""
    try:
        found = float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is {value!r}, but must be a number") from error
    if not np.isfinite(found):
        raise InputError(f"{name} is {value!r}, but must be a finite number")
    return found


def seconds(value: Any, name: str) -> float:
    """Checks that the value is a number of seconds."""
    found = number(value, name)
    if found <= 0:
        raise InputError(f"{name} is {value!r}, but must be a number of seconds above 0")
    return found


def count(value: Any, name: str) -> int:
    """Checks that the value is a whole number, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InputError(f"{name} is {value!r}, but must be a whole number, 0 or more")
    return int(value)


def columns(table: Any, rows: int, what: str) -> list[tuple[str, Any]]:
    """Columns by name, as lists of numbers or of texts, from a table of pandas or polars, a named series, or a mapping."""
    if table is None:
        return []
    if hasattr(table, "columns"):
        items = [(str(name), table[name]) for name in table.columns]
    elif getattr(table, "name", None) is not None:
        items = [(str(table.name), table)]
    elif isinstance(table, Mapping):
        items = [(str(name), table[name]) for name in table]
    else:
        raise InputError(f"{what} needs names: give a table, a named series, or a dict of columns")
    return [(name, _column(values, rows, f"{what} `{name}`")) for name, values in items]


def given_names(columns: list[tuple[str, Any]], products: Sequence[str] | str | None) -> list[str] | str:
    """What labelling may depend on: the columns, and products of two of them such as ``hospital*age``."""
    named = [products] if isinstance(products, str) else list(products or [])
    for product in named:
        if "*" not in str(product):
            raise InputError(f"products are of two columns, such as 'hospital*age', not {product!r}")
    return [name for name, _ in columns] + [str(product) for product in named] or "none"


def _column(values: Any, rows: int, what: str) -> Any:
    array = as_numpy(values, what)
    if array.shape != (rows,):
        raise InputError(f"{what} has shape {array.shape}, but there are {rows} rows")
    if array.dtype.kind in "iufb":
        return array.astype(np.float64).tolist()
    missing = [value is None or value != value for value in array.tolist()]
    return [None if gone else str(value) for value, gone in zip(array.tolist(), missing)]


def marks(values: Any, rows: int, what: str) -> list[bool] | None:
    """Whether each row is marked: by True, or by a number other than 0."""
    if values is None:
        return None
    array = as_numpy(values, what)
    if array.shape != (rows,) or array.dtype.kind not in "iufbO":
        raise InputError(f"{what} must hold one mark per row (True or 1, False or 0)")
    return [bool(value) and value == value for value in array.tolist()]
