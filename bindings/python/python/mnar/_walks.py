"""Estimates, tests and evaluations of rows that stay where they are: they are passed over as often as needed."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _batches, _inputs, _native
from ._errors import InputError, SettingsError
from ._evaluate import Evaluation
from ._informative import McarTestResult, _result
from ._mechanism import LabelMechanism


class Source(ABC):
    """Rows that can be passed over again and again."""

    @abstractmethod
    def names(self) -> list[str]:
        """The names of the columns."""

    @abstractmethod
    def is_list(self, column: str) -> bool:
        """Whether a column holds a list per row."""

    @abstractmethod
    def census(self, layout: _batches.Layout) -> list[tuple[bytes, str]]:
        """The first look at every part of the rows."""

    @abstractmethod
    def walk(self, layout: _batches.Layout, job: bytes, reader: str, needs: str) -> list[bytes]:
        """One pass: the sums of every part. `needs` says which rows count: "all", "labelled" or "unlabelled"."""


class Rows:
    """A source of which the classes and columns are known."""

    def __init__(
        self,
        source: Source,
        proba: str | Sequence[str],
        y: str,
        *,
        fold: str | None = None,
        classes: Any = None,
        given: Sequence[str] | str | None = None,
        products: Sequence[str] | str | None = None,
        by: str | None = None,
        posterior: str = "labelled",
        logits: bool = False,
    ) -> None:
        self.source = source
        named = _texts(given, "given")
        multiplied = _texts(products, "products")
        for product in multiplied:
            if "*" not in product:
                raise InputError(f"products are of two columns, such as 'hospital*age', not {product!r}")
        parts = [part.strip() for product in multiplied for part in product.split("*")]
        grouping = [by] if by is not None else []
        known = source.names()
        columns, lists, of_columns = _probabilities(source, proba, known)
        wanted = [*columns, y, *named, *parts, *grouping, *([fold] if fold is not None else [])]
        for name in wanted:
            if name not in known:
                raise InputError(f"there is no column `{name}`; the columns are {', '.join(known[:20])}")
        self.layout = _batches.Layout(
            proba=columns,
            lists=lists,
            label=y,
            columns=list(dict.fromkeys([*named, *parts, *grouping])),
            fold=fold,
            logits=bool(logits),
        )
        found = source.census(self.layout)
        counts, width = _labels(found)
        self.classes = _classes(list(counts), classes, of_columns)
        # As the values that the labels are read as.
        self.layout = replace(self.layout, classes=self.classes.tolist())
        names = [str(name) for name in self.classes]
        total = len(columns) if not lists else width
        if total is not None and total != len(names):
            raise InputError(
                f"proba has {total} columns but y has {len(names)} classes"
                f" ({', '.join(names[:12])}); give one column per class, or name the classes of the columns with `classes`"
            )
        parts_found = [part for part, words in found if json.loads(words)["width"] is not None]
        self.everywhere = _native.Everywhere(
            parts_found,
            names,
            [counts.get(value, 0) for value in self.classes.tolist()],
            str(posterior),
            bool(logits),
            [*named, *multiplied],
            by,
            self.layout.fold_name,
            self.walk,
        )
        self.passes = 1

    def walk(self, job: bytes, reader: str) -> list[bytes]:
        """One pass over all rows, for the native half."""
        self.passes += 1
        needs = _native.Accumulator(job, reader).needs
        return self.source.walk(self.layout, job, reader, needs)


def _texts(names: Sequence[str] | str | None, what: str) -> list[str]:
    if names is None:
        return []
    if isinstance(names, str):
        return [names]
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"{what} must be names of columns")
    return list(names)


def _probabilities(source: Source, proba: str | Sequence[str], known: list[str]) -> tuple[list[str], bool, list[str] | None]:
    """The columns of probabilities, whether it is one of lists, and the classes that columns are named for."""
    if not isinstance(proba, str):
        names = _texts(proba, "proba")
        if not names:
            raise InputError("proba must be the names of the columns, one per class")
        return names, False, None
    if proba in known and source.is_list(proba):
        return [proba], True, None
    columns = [name for name in known if name.startswith(proba) and name != proba]
    if not columns:
        raise InputError(
            f"proba is {proba!r}: no column begins with it, and no column of lists has this name; the columns are"
            f" {', '.join(known[:20])}"
        )
    return columns, False, [name[len(proba) :] for name in columns]


def _labels(parts: list[tuple[bytes, str]]) -> tuple[dict[Any, int], int | None]:
    counts: dict[Any, int] = {}
    widths: set[int] = set()
    for _, words in parts:
        found = json.loads(words)
        for value, count in found["labels"]:
            counts[value] = counts.get(value, 0) + count
        if found["width"] is not None:
            widths.add(found["width"])
    if len(widths) > 1:
        raise InputError(f"the lists of probabilities have {' and '.join(str(width) for width in sorted(widths))} numbers")
    return counts, widths.pop() if widths else None


def _classes(values: list[Any], classes: Any, of_columns: list[str] | None) -> NDArray[Any]:
    labels = np.array(values, dtype=object) if any(isinstance(value, str) for value in values) else np.array(values)
    if classes is None and of_columns is not None and values:
        # Columns are named for their classes: by what a label is as text.
        as_text = {str(value): value for value in values}
        strange = [text for text in as_text if text not in of_columns]
        if strange:
            raise InputError(f"label {as_text[strange[0]]!r} is not among the classes ({', '.join(of_columns[:12])})")
        whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
        try:
            classes = [as_text.get(name, int(name) if whole else name) for name in of_columns]
        except ValueError as error:
            raise InputError(f"labels are whole numbers, but the columns are of {', '.join(of_columns[:12])}") from error
    elif classes is None and of_columns is not None:
        classes = of_columns
    read = _inputs.labels(labels, classes) if values else None
    if read is None:
        return np.asarray([] if classes is None else _inputs.as_numpy(classes, "classes"), dtype=object)
    return read.classes


def given_of(given: Sequence[str] | str | None, products: Sequence[str] | str | None) -> list[str] | str:
    """What labelling may depend on, as the settings have it."""
    return [*_texts(given, "given"), *_texts(products, "products")] or "none"


class WalkedMechanism(LabelMechanism):
    """A mechanism that was estimated from rows that stay where they are."""

    def _walked(self, rows: Rows, given: list[str] | str, by: str | None) -> None:
        self._extra = {"given": given, "by": by}
        found, text = rows.everywhere.estimate(self._options())
        self._layout = rows.layout
        self._reader = rows.everywhere.reader()
        self.row_phi_ = None
        self._rows = None
        self.passes_ = rows.passes
        self._take(found, text, rows.classes)
        _inputs.warn(self.found_["warnings"], stacklevel=4)

    def _travelling(self) -> WalkedMechanism:
        """What executors need of this object: not the class that Spark's own objects may hang on."""
        fitted = WalkedMechanism(posterior=self.posterior, logits=self.logits)
        for name in ("found_", "classes_", "phi_", "_layout", "_reader"):
            setattr(fitted, name, getattr(self, name))
        fitted.row_phi_ = None
        return fitted

    def report(self, path: Any, title: str = "LabelMechanism") -> None:
        """There is none: the checks that a report shows compare rows, so they need the table in memory."""
        raise SettingsError("a report needs the table in memory; `summary` and `found_` have everything that was estimated here")

    def _phi_of(self, batch: Any) -> NDArray[np.float64] | None:
        """P(labelled | class, columns) of the rows of a batch; None where labelling depends on the class alone."""
        mechanism = self.found_.get("mechanism")
        if not mechanism:
            return None
        given = _batches.columns(batch, replace(self._layout, fold=None), 0)
        phi = _native.phi_of_rows(self._reader, json.dumps(mechanism), given, batch.num_rows)
        return np.column_stack(phi)

    def _factors_of(self, batch: Any) -> NDArray[np.float64] | None:
        """What the calibration within columns multiplies the probabilities of a batch by; None where there is none."""
        calibration = self.found_.get("column_calibration")
        if not calibration:
            return None
        given = _batches.columns(batch, replace(self._layout, fold=None), 0)
        return np.column_stack(_native.factors_of_rows(self._reader, json.dumps(calibration), given, batch.num_rows))

    def _weights_of(self, batch: Any) -> NDArray[np.float64]:
        """1/phi of the labelled rows of a batch, 0 of the others."""
        codes = _batches.codes(batch, self._layout)
        row_phi = self._phi_of(batch)
        if row_phi is None:
            return _native.risk_weights(codes, self.phi_.tolist())[0]
        seen = codes >= 0
        weights = np.zeros(len(codes))
        weights[seen] = 1.0 / row_phi[np.flatnonzero(seen), codes[seen]]
        return weights

    def _reweighed_of(self, batch: Any, unlabelled: bool) -> NDArray[np.float64]:
        numbers = np.column_stack(_batches.probabilities(batch, self._layout, 0))
        array = _inputs.softmax(numbers) if self.logits else numbers
        return self._reweigh(array, self._phi_of(batch), self._factors_of(batch), unlabelled)


def mcar_test(rows: Rows, *, method: str, level: float, power: float | None, seed: int) -> McarTestResult:
    """The permutation test, in two passes."""
    options = {
        "method": str(method),
        "given": "none",
        "level": _inputs.number(level, "level"),
        "power": None if power is None else _inputs.number(power, "power"),
        "seed": _inputs.count(seed, "seed"),
    }
    text, words = rows.everywhere.test(json.dumps(options))
    return _result(text, words, stacklevel=5)


def evaluate(
    rows: Rows,
    *,
    given: list[str] | str,
    by: str | None,
    phi: Any,
    augmented: bool,
    replicates: int | None,
    name: str,
    seed: int,
) -> Evaluation:
    """The metrics that are functions of sums, in one pass after those of the mechanism."""
    options = {
        "augmented": bool(augmented),
        "estimate": {
            "method": "auto" if phi is None else "known",
            "phi": None if phi is None else [_inputs.number(value, "phi") for value in phi],
            "given": given,
            "by": by,
            "replicates": None if replicates is None else _inputs.count(replicates, "replicates"),
            "seed": _inputs.count(seed, "seed"),
        },
    }
    text, words = rows.everywhere.evaluate(json.dumps(options), str(name))
    found = {"version": _native.__version__, **json.loads(text)}
    _inputs.warn(found["cautions"] + found["warnings"], stacklevel=4)
    return Evaluation(found["metrics"], found["differences"], found["cautions"], found, words)
