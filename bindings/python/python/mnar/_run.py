"""The whole pipeline on a file or a table: estimate, test, train, report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from . import _inputs, _native, _tables
from ._errors import InputError, SettingsError

#: Options that take several values; a single one may be given as it is.
_LISTS = {"ignore", "categorical", "missing", "hidden"}


class Run:
    """A finished run of :func:`fit`: its folder, its findings, and a model for new rows."""

    def __init__(self, folder: str | PathLike[str], found: dict[str, Any], html: str) -> None:
        #: The run folder: report.html, report.json, predictions.csv, settings.toml and the models.
        self.folder = Path(folder)
        #: The findings, as in report.json.
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
        """The p-value of the test of whether labels are informative."""
        return self.found.get("p_value")

    def predict(
        self,
        data: Any,
        output: str | PathLike[str] | None = None,
        *,
        id: str | None = None,
        split: str = "test",
        baseline: bool = False,
        sets: float | None = None,
        set_kind: str = "per-class",
        shares: Mapping[Any, float] | None = None,
        memory: str | None = None,
    ) -> Any:
        """Predict new rows with the debiased model.

        Parameters
        ----------
        data : path or table
            Rows like those the model was trained on; labels are not needed.
        output : path, optional
            The file to write: CSV, TSV or Parquet by its name. Without it, a pandas table is returned.
        id : str, optional
            A column that names the rows; it is put beside the predictions, as text.
        split : {"train", "validation", "test", "all"}
            Which part of the data, where they come in parts.
        baseline : bool
            Use the biased baseline instead.
        sets : float, optional
            Also predict sets of classes that contain the true one with this probability, such as 0.9; for tables.
        set_kind : {"per-class", "marginal"}
            Whether the sets hold for every class, or on average over the population.
        shares : mapping of class to share, optional
            Class shares where the model is used, if they are others than in the run.
        memory : str, optional
            How much memory there is, such as ``"2GB"``; data may take a quarter of it. By default that of the machine.

        Returns
        -------
        pandas.DataFrame or None
            ``predicted`` and ``confidence``; ``p_CLASS``, the probability in the whole population; ``u_CLASS``, the
            probability for a row that was left unlabelled; with ``sets``, ``set`` (classes separated by `` | ``) and
            ``set_size``.
        """
        target = None if output is None else Path(output)
        asked = None if sets is None else (float(sets), set_kind)
        moved = None if shares is None else {str(name): float(share) for name, share in shares.items()}
        found = _native.predict(self.folder, _tables.source(data), target, id, split, baseline, asked, moved, memory)
        columns, said = found
        _inputs.warn(said)
        if columns is None:
            return None
        try:
            import pandas
        except ImportError as error:
            raise InputError("name a file with `output`, or install pandas to get the predictions as a table") from error
        return pandas.DataFrame(dict(columns))

    def __repr__(self) -> str:
        return f"Run(folder={fspath(self.folder)!r}, classes={self.classes}, pvalue={self.pvalue})"

    def _repr_html_(self) -> str:
        # A frame keeps the page's styles apart from the notebook's.
        from html import escape

        return f'<iframe srcdoc="{escape(self.report_html)}" style="width:100%;height:40em;border:0"></iframe>'


def fit(
    data: Any,
    label: str | None = None,
    *,
    out: str | PathLike[str] | None = None,
    resume: bool = False,
    quiet: bool = True,
    memory: str | None = None,
    **options: Any,
) -> Run:
    """Estimate, test, and train a classifier corrected for label-selection bias: the same as ``mnar fit``.

    Parameters
    ----------
    data : path or table
        A file or folder that ``mnar fit`` reads (CSV, Parquet, npz, idx, image folder), a pandas table, or any table with
        Arrow's stream interface, such as polars'. Tables are passed in memory.
    label : str, optional
        The label column of a table; a blank or null label is missing.
    out : path, optional
        The run folder; by default the name of the data with ``-run``, for a table ``mnar-run``.
    resume : bool
        Resume an interrupted run in that folder.
    quiet : bool
        No progress on stderr.
    memory : str, optional
        How much memory there is, such as ``"2GB"``; data may take a quarter of it, and larger files are refused. By default that
        of the machine.
    **options
        Every option of ``mnar fit`` by its name, with ``_`` for ``-``: ``epochs=20``, ``method="label-shift"``,
        ``id="patient"``, ``ignore=["ward"]``, ``merge_labels=True``, ``skip_rows=2``, ``budget="60s"``.

    Returns
    -------
    Run
        With ``report_html``, ``phi``, ``prevalence``, ``pvalue`` and ``predict``; a notebook shows the report.
    """
    source = _tables.source(data)
    if out is None:
        out = f"{source.stem}-run" if isinstance(source, Path) else "mnar-run"
    given = _options({**options, "label": label})
    found, html = _native.fit(source, json.dumps(given), Path(out), bool(resume), bool(quiet), memory)
    return Run(out, json.loads(found), html)


def _options(options: dict[str, Any]) -> dict[str, Any]:
    """Options as the native half spells them, without those that are not set."""
    known = _native.fit_options()
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            raise SettingsError(f"there is no option `{name}`" + (f"; did you mean `{near[0]}`?" if near else ""))
    return {
        name.replace("_", "-"): _value(name, value) for name, value in options.items() if value is not None
    }


def _value(name: str, value: Any) -> Any:
    if isinstance(value, PathLike):
        return fspath(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): float(number) for key, number in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    return [value] if name in _LISTS else value
