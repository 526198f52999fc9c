"""Tables in memory, as the native half takes them: nothing is written to disk."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ._errors import InputError


def source(data: Any) -> Any:
    """A path, the columns of a pandas table, or an object with Arrow's stream interface (polars, pyarrow, DuckDB)."""
    if isinstance(data, (str, PathLike)):
        return Path(data)
    if hasattr(data, "dtypes") and hasattr(data, "iloc"):
        return [(str(name), _column(data.iloc[:, i])) for i, name in enumerate(data.columns)]
    if hasattr(data, "__arrow_c_stream__"):
        return data
    raise InputError(f"data is a {type(data).__name__}; give a path, a pandas or a polars table")


def _column(series: Any) -> Any:
    """Numbers and booleans as an array, everything else as text, None where it is missing."""
    kind = getattr(series.dtype, "kind", "O")
    if kind in "iufb" and not hasattr(series.dtype, "na_value"):
        array = series.to_numpy()
        if kind == "b":
            return np.ascontiguousarray(array)
        # A uint64 beyond int64 is a number all the same.
        return np.ascontiguousarray(array, dtype=np.float64 if kind == "f" or array.dtype == np.uint64 else np.int64)
    if kind in "iuf" and series.dtype.name.lower() in _NULLABLE:
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    missing = series.isna()
    values = series.astype(str) if kind == "M" else series
    return [None if gone else str(value) for value, gone in zip(values, missing)]


#: Extension types of pandas that hold numbers with gaps.
_NULLABLE = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)} | {"float32", "float64"}
