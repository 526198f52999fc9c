from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

__version__: str

def estimate(
    proba: NDArray[Any], codes: NDArray[np.int64], names: list[str], folds: NDArray[np.int64] | None, options: str
) -> tuple[str, str, float]: ...
def page(
    proba: NDArray[Any],
    codes: NDArray[np.int64],
    names: list[str],
    folds: NDArray[np.int64] | None,
    options: str,
    title: str,
    path: str | PathLike[str] | None,
) -> str: ...
def test(
    proba: NDArray[Any], codes: NDArray[np.int64], names: list[str], folds: NDArray[np.int64] | None, options: str
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
def fit(words: list[str], title: str | None = None) -> tuple[PathLike[str], str, str]: ...
def predict(words: list[str]) -> None: ...
def command_line(words: list[str]) -> int: ...
