from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

__version__: str

Column = tuple[str, list[float] | list[str | None]]
Table = tuple[
    NDArray[Any], NDArray[np.int64], list[str], NDArray[np.int64] | None, list[Column], list[bool] | None
]

def estimate(
    table: Table, posterior: str, options: str
) -> tuple[str, str, float, NDArray[np.float64] | None, NDArray[np.float64] | None]: ...
def page(table: Table, posterior: str, options: str, title: str, path: str | PathLike[str] | None) -> str: ...
def test(table: Table, posterior: str, options: str) -> tuple[str, str]: ...
def evaluate(
    table: Table, posterior: str, options: str, name: str, others: list[tuple[str, NDArray[Any]]]
) -> tuple[str, str]: ...
def reweigh(
    proba: NDArray[Any],
    posterior: str,
    phi: list[float],
    inverse_temperature: float | None,
    biases: list[float],
    unlabelled: bool,
) -> NDArray[np.float64]: ...
def risk_weights(codes: NDArray[np.int64], phi: list[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
class RowCensus:
    def __init__(self, logits: bool) -> None: ...
    def update(
        self, probabilities: list[NDArray[np.float64]], labelled: NDArray[np.bool_], columns: list[tuple[str, Any]]
    ) -> None: ...
    def finish(self) -> bytes: ...

class Accumulator:
    needs: str
    def __init__(self, job: bytes, reader: str) -> None: ...
    def update(
        self, probabilities: list[NDArray[np.float64]], codes: NDArray[np.int64], columns: list[tuple[str, Any]]
    ) -> None: ...
    def merge(self, other: bytes) -> None: ...
    def finish(self) -> bytes: ...

class Everywhere:
    def __init__(
        self,
        parts: list[bytes],
        classes: list[str],
        counts: list[int],
        posterior: str,
        logits: bool,
        given: list[str],
        by: str | None,
        fold: str | None,
        walk: Any,
    ) -> None: ...
    def reader(self) -> str: ...
    def estimate(self, options: str) -> tuple[str, str]: ...
    def test(self, options: str) -> tuple[str, str]: ...
    def evaluate(self, options: str, name: str) -> tuple[str, str]: ...

def phi_of_rows(
    reader: str, mechanism: str, columns: list[tuple[str, Any]], rows: int
) -> list[NDArray[np.float64]]: ...
def replicate_weights(
    table: Table, posterior: str, options: str, given: list[str], count: int
) -> tuple[NDArray[np.float64], int]: ...
def imputations(
    table: Table, posterior: str, options: str, given: list[str], count: int
) -> tuple[NDArray[np.int64], int]: ...
def factors_of_rows(
    reader: str, calibration: str, columns: list[tuple[str, Any]], rows: int
) -> list[NDArray[np.float64]]: ...
def fit(
    data: Any, options: str, folder: PathLike[str], resume: bool, quiet: bool, memory: str | None
) -> tuple[str, str]: ...
def fit_options() -> list[str]: ...
def predict(
    folder: PathLike[str],
    data: Any,
    output: PathLike[str] | None,
    id: str | None,
    split: str,
    baseline: bool,
    sets: tuple[float, str] | None,
    shares: dict[str, float] | None,
    memory: str | None,
) -> tuple[list[tuple[str, Any]] | None, list[str]]: ...
def positive(
    scores: NDArray[np.float64], codes: NDArray[np.int64], name: str, share: float | None
) -> tuple[str, str | None, str, tuple[float, list[float]]]: ...
def command_line(words: list[str]) -> int: ...
