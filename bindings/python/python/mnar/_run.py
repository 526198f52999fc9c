"""The whole pipeline on a file or a table: estimate, test, train, report."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from . import _native
from ._errors import InputError, MnarError


class Run:
    """A finished run of :func:`fit`: its folder, what was found, and a model for new rows."""

    def __init__(self, folder: str | PathLike[str], found: dict[str, Any], html: str) -> None:
        #: Where everything is kept: report.html, report.json, predictions.csv, the models.
        self.folder = Path(folder)
        #: What was found, as report.json has it.
        self.found = found
        #: The report: one page that opens offline.
        self.report_html = html

    @property
    def classes(self) -> list[str]:
        """The names of the classes."""
        return list(self.found["classes"])

    @property
    def phi(self) -> dict[str, float]:
        """P(labelled | class)."""
        return dict(zip(self.found["classes"], self.found["phi"]))

    @property
    def prevalence(self) -> dict[str, float]:
        """The class shares of the whole population."""
        return dict(zip(self.found["classes"], self.found["prevalence"]))

    @property
    def pvalue(self) -> float | None:
        """The p-value of the test of informative labels."""
        return self.found.get("p_value")

    def predict(self, data: Any, output: str | PathLike[str] | None = None, **options: Any) -> Any:
        """Class probabilities of new rows by the debiased model: p_CLASS in the whole population, u_CLASS for a row that
        was left unlabelled. Written to ``output``, or returned as a pandas table where it is None. Every option of ``mnar
        predict`` by its name: ``id="patient"`` puts that column beside the predictions, as text."""
        with tempfile.TemporaryDirectory() as scratch:
            source = _as_file(data, Path(scratch) / "new.csv")
            target = Path(scratch) / "predictions.csv" if output is None else Path(output)
            words = [fspath(self.folder), fspath(source), "--output", fspath(target), *_words(options)]
            with _in_words_of_python(source if source.parent == Path(scratch) else None):
                _native.predict(words)
            if output is not None:
                return None
            try:
                import pandas
            except ImportError as error:
                raise InputError("name a file with `output`, or install pandas to get the predictions as a table") from error
            names = options.get("id")
            return pandas.read_csv(target, dtype={str(names): str} if names else None)

    def __repr__(self) -> str:
        return f"Run(folder={fspath(self.folder)!r}, classes={self.classes}, pvalue={self.pvalue})"

    def _repr_html_(self) -> str:
        # A frame keeps the page's styles from the notebook's, and the other way round.
        from html import escape

        return f'<iframe srcdoc="{escape(self.report_html)}" style="width:100%;height:40em;border:0"></iframe>'


def fit(
    data: Any,
    label: str | None = None,
    *,
    out: str | PathLike[str] | None = None,
    quiet: bool = True,
    **options: Any,
) -> Run:
    """Estimate, test, and train a classifier that informative labels do not fool: the same as ``mnar fit``.

    Parameters
    ----------
    data : path or DataFrame
        A file or folder that ``mnar fit`` reads (CSV, Parquet, npz, idx, image folder), or a pandas or polars table.
    label : str, optional
        The label column of a table; a blank or null label is a missing one.
    out : path, optional
        The folder of the run; by default the name of the data with ``-run``, for a table ``mnar-run``.
    quiet : bool
        No progress on stderr.
    **options
        Every option of ``mnar fit`` by its name, with ``_`` for ``-``: ``epochs=20``, ``method="label-shift"``,
        ``id="patient"``, ``ignore=["ward"]``, ``resume=True``.

    Returns
    -------
    Run
        With ``report_html``, ``phi``, ``prevalence``, ``pvalue``, ``predict``; a notebook shows the report.
    """
    with tempfile.TemporaryDirectory() as scratch:
        source = _as_file(data, Path(scratch) / "table.csv")
        is_table = source.parent == Path(scratch)
        if out is None and is_table:
            out = "mnar-run"
        words = [fspath(source)]
        if label is not None:
            words += ["--label", str(label)]
        if out is not None:
            words += ["--out", fspath(out)]
        if quiet:
            words.append("--quiet")
        with _in_words_of_python(source if is_table else None):
            folder, found, html = _native.fit(words + _words(options), "a table in memory" if is_table else None)
    return Run(folder, json.loads(found), html)


@contextmanager
def _in_words_of_python(scratch: Path | None) -> Iterator[None]:
    """Errors that speak of a table, not of the file it was written to, and of keywords, not of flags."""
    try:
        yield
    except MnarError as error:
        text = str(error) if scratch is None else str(error).replace(fspath(scratch), "the table")
        text = re.sub(r"`--([a-z-]+) ([^`]+)`", lambda found: f"`{_keyword(found[1])}={found[2]!r}`", text)
        text = re.sub(r"--([a-z][a-z-]+)", lambda found: f"`{_keyword(found[1])}`", text)
        raise type(error)(text) from None


def _keyword(flag: str) -> str:
    return flag.replace("-", "_")


def _as_file(data: Any, path: Path) -> Path:
    """The path of a file, or of a table written to one; numbers keep every digit."""
    if isinstance(data, (str, PathLike)):
        return Path(data)
    if hasattr(data, "to_csv"):
        data.to_csv(path, index=False)
    elif hasattr(data, "write_csv"):
        data.write_csv(path)
    else:
        raise InputError(f"data is a {type(data).__name__}; give a path, a pandas or a polars table")
    return path


def _words(options: dict[str, Any]) -> list[str]:
    words = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif isinstance(value, dict):
            words += [flag, ",".join(f"{key}={number}" for key, number in value.items())]
        elif isinstance(value, (list, tuple)) and name != "hidden":
            for item in value:
                words += [flag, str(item)]
        elif isinstance(value, (list, tuple)):
            words += [flag, ",".join(str(item) for item in value)]
        elif value is not None and value is not False:
            words += [flag, str(value)]
    return words
